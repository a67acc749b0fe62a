use super::*;
use crate::operator::DataFiles;

struct NoFiles;

impl DataFiles for NoFiles {
    fn read(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

fn compiled(text: &str) -> Result<Program, Vec<Diagnostic>> {
    compile(&[Source::new("test.conf", text)], &NoFiles)
}

#[track_caller]
fn good(text: &str) -> Program {
    compiled(text).unwrap_or_else(|errors| panic!("{}", errors[0]))
}

#[track_caller]
fn refused(text: &str) -> Diagnostic {
    compiled(text).expect_err("this should not compile").remove(0)
}

#[test]
fn the_engine_configuration_compiles() {
    let program = good(crate::ENGINE_CONF);
    let settings = program.settings();
    assert_eq!(settings.mode, crate::program::EngineMode::On);
    assert!(settings.request_body_access && settings.response_body_access);
    assert_eq!(settings.response_mime_types.len(), 4);
    assert_eq!(program.warnings().count(), 0);
}

#[test]
fn a_program_survives_its_encoding() {
    let program = good(
        "SecRule ARGS|!ARGS:a|TX:/^x/ \"!@within %{tx.allowed}\" \"id:1,phase:1,deny,status:406,t:lowercase,tag:x,\
         setvar:tx.n=+1,ctl:ruleRemoveTargetByTag=x;ARGS:b,skipAfter:END\"\nSecMarker END",
    );
    assert_eq!(Program::decode(&program.encode()).unwrap(), program);
    assert!(Program::decode(b"\x08\x63").unwrap_err().contains("compile it again"));
    assert!(Program::decode(b"nonsense").is_err());
}

#[test]
fn all_errors_are_reported_in_order() {
    let errors = compiled(
        "SecRule ARGZ \"@rx a\" \"id:1,deny\"\n\
         SecRule ARGS \"@foo a\" \"id:2,deny\"\n\
         SecRule ARGS \"@rx (\" \"id:3,deny,t:lowercaes,nonsense\"\n\
         SecFoo bar\n",
    )
    .unwrap_err();
    let lines: Vec<_> = errors.iter().map(|error| (error.line, error.rule_id)).collect();
    assert_eq!(lines, [(1, Some(1)), (2, Some(2)), (3, Some(3)), (3, Some(3)), (3, Some(3)), (4, None)]);
    assert_eq!(errors[0].help.as_deref(), Some("did you mean 'ARGS'?"));
    assert_eq!(errors[0].column, 9);
    let misspelt = errors.iter().find(|error| error.message.contains("lowercaes")).unwrap();
    assert_eq!(misspelt.help.as_deref(), Some("did you mean 'lowercase'?"));
}

#[test]
fn what_is_not_possible_says_why() {
    for (text, part) in [
        ("SecRule ARGS \"a\" \"id:1,exec:/bin/sh\"", "no programs"),
        ("Include more.conf", "into the text"),
        ("SecRuleScript x.lua", "no scripts"),
        ("SecRemoteRules key https://rules.example/a.conf", "not fetched"),
        ("SecAction \"id:1,ctl:hashEngine=On\"", "not rewritten"),
        ("SecAction \"id:1,xmlns:a\"", "equals sign"),
        ("SecAction \"id:1,xmlns:a=b\"", "no URL"),
        ("SecRule PERF_ALL \"a\" \"id:1\"", "not visible to rules"),
        ("SecRule SCRIPT_UID \"a\" \"id:1\"", "no scripts"),
        ("SecRule XML:/a/count(b) \"a\" \"id:1\"", "XML:/*"),
        ("SecRule XML:/s:a \"a\" \"id:1\"", "xmlns:prefix"),
        ("SecAction \"id:1,xmlns:a=http://x\"\nSecAction \"id:2,xmlns:a=http://y\"", "another prefix"),
        ("SecAction \"id:1,initcol:tx=1\"", "GLOBAL, IP"),
        ("SecAction \"id:1,initcol:ip=\"", "initcol:ip=%{REMOTE_ADDR}"),
        ("SecAction \"id:1,expirevar:ip.a=soon\"", "expirevar:ip.logins=60"),
        ("SecAction \"id:1,deprecatevar:ip.a=1\"", "deprecatevar:session.score=60/300"),
        ("SecAction \"id:1,deprecatevar:ip.a=1/0\"", "a period in seconds"),
        ("SecAction \"id:1,setvar:ip.key=1\"", "IP.KEY cannot be written to"),
        ("SecRule REMOTE_ADDR \"@rbl a b\" \"id:1\"", "not the name of a zone"),
        ("SecRule ARGS \"a\" \"id:1,setvar:args.x=1\"", "TX"),
        ("SecRule ARGS \"a\" \"id:1,msg:'%{FOO}'\"", "FOO"),
    ] {
        let shown = refused(text).to_string();
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn ids_are_there_and_unique() {
    assert!(refused("SecRule ARGS \"a\" \"deny\"").message.contains("no id"));
    let twice = refused("SecAction \"id:7\"\n\nSecAction \"id:'7'\"");
    assert_eq!(twice.line, 3);
    assert!(twice.help.unwrap().contains("test.conf:1"));
}

#[test]
fn chains_end_and_act_through_their_first_rule() {
    assert!(refused("SecRule ARGS \"a\" \"id:1,chain\"").message.contains("no end"));
    assert!(refused("SecRule ARGS \"a\" \"id:1,chain\"\nSecMarker X").message.contains("no end"));
    let link = "SecRule ARGS \"a\" \"id:1,chain,pass\"\nSecRule ARGS \"b\" \"deny\"";
    assert!(refused(link).message.contains("first rule of a chain"));
    let errors =
        compiled("SecRule ARGZ \"a\" \"id:1,chain\"\nSecRule ARGS \"b\" \"t:none\"\nSecAction \"id:2\"").unwrap_err();
    assert_eq!(errors.len(), 1, "the link of a broken head is not blamed");
    assert_eq!(good("SecRule ARGS \"a\" \"id:1,chain\"\nSecRule ARGS \"b\"").rule_count(), 1);
}

#[test]
fn jumps_go_forward_to_a_marker() {
    assert!(refused("SecAction \"id:1,skipAfter:END\"").message.contains("END"));
    assert!(refused("SecMarker END\nSecAction \"id:1,skipAfter:END\"").message.contains("after"));
    let program = good("SecAction \"id:1,skipAfter:END\"\nSecAction \"id:2\"\nSecMarker END\nSecAction \"id:3\"");
    assert_eq!(program.wire.rules[0].skip_to, 3);
}

#[test]
fn removals_drop_rules_and_keep_jumps_right() {
    let program = good(
        "SecAction \"id:1,skipAfter:END\"\nSecAction \"id:2,tag:a\"\nSecAction \"id:3,msg:'m'\"\nSecMarker END\n\
         SecAction \"id:4\"\nSecAction \"id:10\"\nSecRuleRemoveById 10-20 99\nSecRuleRemoveByTag a\nSecRuleRemoveByMsg m",
    );
    assert_eq!(program.rule_ids().collect::<Vec<_>>(), [1, 4]);
    assert_eq!(program.wire.rules[0].skip_to, 2);
}

#[test]
fn updates_reach_the_chain() {
    let program = good(
        "SecRule ARGS \"a\" \"id:1,chain,tag:x,deny\"\nSecRule ARGS \"b\"\n\
         SecRuleUpdateTargetById 1 \"!ARGS:pass,REQUEST_URI\"\n\
         SecRuleUpdateTargetByTag x \"!ARGS:/^p/\"\n\
         SecRuleUpdateActionById 1 \"pass,nolog,status:500\"",
    );
    let rule = &program.wire.rules[0];
    assert_eq!((rule.links[0].targets.len(), rule.links[0].exclusions.len()), (2, 2));
    assert_eq!((rule.links[1].targets.len(), rule.links[1].exclusions.len()), (1, 2));
    assert_eq!((rule.disruption, rule.log, rule.status), (wire::Disruption::Pass.code(), false, 500));
}

#[test]
fn an_update_without_a_rule_warns() {
    let program = good("SecRuleUpdateTargetById 1 \"!ARGS:a\"");
    assert!(program.warnings().any(|warning| warning.message.contains("no rule")));
}

#[test]
fn default_actions_resolve_block_and_transformations() {
    let program = good(
        "SecDefaultAction \"phase:2,deny,status:418,nolog,t:lowercase\"\n\
         SecRule ARGS \"a\" \"id:1,block,t:length\"\n\
         SecRule ARGS \"a\" \"id:2,pass,log,t:none\"\n\
         SecRule ARGS \"a\" \"id:3,phase:1,block\"",
    );
    let [first, second, third] = program.wire.rules.as_slice() else { panic!() };
    assert_eq!((first.disruption, first.status, first.log), (wire::Disruption::Deny.code(), 418, false));
    assert_eq!(first.links[0].transforms.len(), 2);
    assert_eq!((second.disruption, second.log), (wire::Disruption::Pass.code(), true));
    assert!(second.links[0].transforms.is_empty());
    assert_eq!((third.disruption, third.log), (wire::Disruption::Pass.code(), true));
}

#[test]
fn default_actions_of_a_text_do_not_compete() {
    let twice = "SecDefaultAction \"phase:2,pass\"\nSecDefaultAction \"phase:2,deny\"";
    assert!(refused(twice).message.contains("phase 2 already"));
    let defaults = |origin| Source::new(origin, "SecDefaultAction \"phase:2,pass\"");
    assert!(compile(&[defaults("a.conf"), defaults("b.conf")], &NoFiles).is_ok());
    // Next to an action that is named outright, `block` says nothing.
    let program = good("SecDefaultAction \"phase:2,deny,block,status:418\"\nSecRule ARGS \"a\" \"id:1,block\"");
    assert_eq!((program.wire.rules[0].disruption, program.wire.rules[0].status), (wire::Disruption::Deny.code(), 418));
    assert!(
        good("SecDefaultAction \"phase:2,block\"").warnings().any(|warning| warning.message.contains("means pass"))
    );
}

#[test]
fn slips_are_corrected_to_what_is_refused_too() {
    for (text, part) in [
        ("SecRuleScripts x.lua", "SecRuleScript"),
        ("SecAuditEngin On", "SecAuditEngine"),
        ("SecAction \"id:1,sanitizeArg:a\"", "sanitise"),
        ("SecRule SCRIPT_UUID \"a\" \"id:1\"", "SCRIPT_UID"),
        ("SecRule ARGS \"a\" \"id:1,msg:'%{ARG.a}'\"", "ARGS"),
        ("SecAction \"id:1,ctl:ruleEngin=Off\"", "ruleEngine"),
    ] {
        let help = refused(text).help.unwrap_or_default();
        assert!(help.contains("did you mean") && help.contains(part), "{text}: {help}");
    }
}

#[test]
fn directives_without_a_meaning_warn() {
    let program = good("SecAuditEngine On\nSecPcreMatchLimit 1000\nSecGeoLookupDb /geo.mmdb");
    assert_eq!(program.warnings().count(), 3);
    assert_eq!(program.warnings().next().unwrap().line, 1);
}

#[test]
fn operators_are_shared() {
    let program = good("SecRule ARGS \"@rx a\" \"id:1\"\nSecRule ARGS_NAMES \"@rx a\" \"id:2\"");
    assert_eq!(program.wire.operators.len(), 1);
}

#[test]
fn an_xpath_complaint_points_into_the_expression() {
    let shown = refused("SecRule ARGS|XML:/a/count(b) \"x\" \"id:1\"");
    assert_eq!((shown.line, shown.column), (1, 21));
}

#[test]
fn positions_in_json_names_are_written_in_two_ways() {
    let program = good("SecRule ARGS:json.a.0.b|ARGS:json.a.array_0.b|ARGS:a.0|TX:json.0 \"a\" \"id:1\"");
    let selections: Vec<_> = program.wire.rules[0].links[0].targets.iter().map(|target| target.selection).collect();
    assert_eq!(selections, [wire::KEY_PATTERN, wire::KEY_NAME, wire::KEY_NAME, wire::KEY_NAME]);
}

/// Each of these took the square of its length, and minutes: a step for every rule that walked over the whole text, or over all
/// rules.
#[test]
fn long_texts_take_no_longer_than_they_are() {
    const RULES: usize = 30_000;
    let all = |line: &dyn Fn(usize) -> String| (1..=RULES).map(line).collect::<String>();
    let actions = all(&|id| format!("SecAction \"id:{id},phase:1,pass,nolog\"\n"));
    let program = good(&actions);
    assert_eq!(program.wire.rules.last().map(|rule| (rule.id, rule.line)), Some((30_000, 30_000)));

    let removals = all(&|id| format!("SecRuleRemoveById {id}\n"));
    assert_eq!(good(&format!("{actions}{removals}")).rule_count(), 0);
    let updates = all(&|id| format!("SecRuleUpdateActionById {id} \"status:404\"\n"));
    let updated = good(&format!("{actions}{updates}"));
    assert!(updated.wire.rules.iter().all(|rule| rule.status == 404));

    let jumps = all(&|id| format!("SecAction \"id:{id},phase:1,pass,nolog,skipAfter:M{id}\"\nSecMarker M{id}\n"));
    let jumping = good(&jumps);
    assert_eq!(jumping.wire.rules.last().map(|rule| rule.skip_to), Some(30_001));
    let coverage =
        good(&all(&|id| format!("SecAction \"id:{id},phase:1,pass,ctl:ruleRemoveById={}\"\n", 2 * id + RULES)));
    assert!(!coverage.coverage(&[]).detects);

    let warned = good(&all(&|_| "SecAuditEngine On\n".to_owned()));
    assert_eq!(warned.warnings().last().map(|warning| warning.line), Some(30_000));
    let twice = compiled(&format!("{actions}{actions}")).unwrap_err();
    assert_eq!((twice.len(), twice[0].line), (MAX_DIAGNOSTICS, 30_001));
    let open = compiled(&all(&|_| "SecAction \"\n".to_owned())).unwrap_err();
    assert_eq!(open.len(), MAX_DIAGNOSTICS);
    let continued = format!("SecAction \"id:1,\\\n{}pass\"", "\\\n".repeat(RULES * 5));
    assert_eq!(good(&continued).rule_count(), 1);
}

/// A text of 1 MiB took gigabytes.
#[test]
fn updates_of_all_rules_have_a_bound() {
    let rules: String = (1..=4_000).map(|id| format!("SecRule ARGS \"a\" \"id:{id}\"\n")).collect();
    let excluded = "SecRuleUpdateTargetById 1-999999 \"!ARGS:x\"\n";
    let program = good(&format!("{rules}{}", excluded.repeat(20)));
    assert!(program.wire.rules.iter().all(|rule| rule.links[0].exclusions.len() == 20));
    let long = format!("SecRuleUpdateActionById 1-999999 \"msg:'{}'\"\n", "x".repeat(20_000));
    for updates in [excluded.repeat(4_000), long] {
        let errors = compiled(&format!("{rules}{updates}")).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].to_string().contains("add more than 64 MiB in all"), "{}", errors[0]);
    }
}
