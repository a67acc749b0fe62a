use std::sync::Arc;

mod bodies;
mod readings;
mod reports;
mod suspicion;

use super::prepare::{RESERVED, RESERVED_PIECE};
use super::*;
use crate::operator::DataFiles;
use crate::source::Source;
use crate::vocabulary::Variable;

struct NoFiles;

impl DataFiles for NoFiles {
    fn read(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

const BASE: &str = "SecRuleEngine On\nSecRequestBodyAccess On\nSecResponseBodyAccess On\n";

/// A transaction of `GET /a%2fb/index.php?x=1&y=two&X=3` or, with a body, of a form.
fn transaction(rules: &str, body: Option<&str>) -> Transaction {
    let program = crate::compile(&[Source::new("base", BASE), Source::new("rules", rules)], &NoFiles)
        .unwrap_or_else(|errors| panic!("{}", errors[0]));
    let program = crate::Program::decode(&program.encode()).unwrap();
    let start = TransactionStart {
        unique_id: b"u1".to_vec(),
        now_millis: 1_709_210_096_000,
        client_addr: b"192.0.2.7".to_vec(),
        client_port: 1234,
        ..TransactionStart::default()
    };
    let mut transaction = Transaction::new(Arc::new(Engine::new(program).unwrap()), start);
    transaction.request_line(
        if body.is_some() { b"POST" } else { b"GET" },
        b"/a%2fb/index.php?x=1&y=two&X=3",
        b"HTTP/1.1",
    );
    transaction.request_header(b"Host", b"shop.example:8080");
    transaction.request_header(b"User-Agent", b"Tester/1.0");
    transaction.request_header(b"Cookie", b"sid=1; theme=dark");
    if body.is_some() {
        transaction.request_header(b"Content-Type", b"application/x-www-form-urlencoded");
    }
    transaction
}

/// All phases on an HTML response; the ids that matched.
fn ids(rules: &str) -> Vec<u64> {
    let mut transaction = transaction(rules, Some("a=1&pass=secret"));
    finish(&mut transaction, "a=1&pass=secret");
    transaction.matched_ids().collect()
}

fn finish(transaction: &mut Transaction, body: &str) -> Option<Intervention> {
    let mut found = transaction.request_headers();
    found = found.or_else(|| transaction.request_body(body.as_bytes(), true));
    transaction.response_line(200, b"HTTP/1.1");
    transaction.response_header(b"Content-Type", b"text/html; charset=utf-8");
    found = found.or_else(|| transaction.response_headers());
    found = found.or_else(|| transaction.response_body(b"<p>hello</p>", true));
    transaction.logging();
    found
}

fn tx(rules: &str, name: &str) -> Option<String> {
    let mut transaction = transaction(rules, Some("a=1&pass=secret"));
    finish(&mut transaction, "a=1&pass=secret");
    transaction.variable(b"TX", name.as_bytes()).map(|value| String::from_utf8(value).unwrap())
}

#[test]
fn a_name_that_stands_in_a_request_once_has_an_only_value() {
    let mut transaction = transaction("", Some("a=1&b=%27&pass=secret&A=2"));
    finish(&mut transaction, "a=1&b=%27&pass=secret&A=2");
    let only = |collection, name: &str| transaction.only_value(collection, name.as_bytes()).map(<[u8]>::to_vec);
    assert_eq!(only(Variable::Args, "B"), Some(b"'".to_vec()), "decoded, in any case");
    assert_eq!(only(Variable::Args, "y"), Some(b"two".to_vec()));
    for twice in ["x", "a", "none"] {
        assert_eq!(only(Variable::Args, twice), None, "{twice}");
    }
    assert_eq!(only(Variable::RequestHeaders, "user-agent"), Some(b"Tester/1.0".to_vec()));
    assert_eq!(only(Variable::RequestCookies, "theme"), Some(b"dark".to_vec()));
    assert_eq!(only(Variable::Tx, "theme"), None);
}

#[test]
fn variables_have_the_values_of_modsecurity() {
    for (variable, expected) in [
        ("REQUEST_LINE", "POST /a%2fb/index.php?x=1&y=two&X=3 HTTP/1.1"),
        ("REQUEST_URI", "/a/b/index.php?x=1&y=two&X=3"),
        ("REQUEST_URI_RAW", "/a%2fb/index.php?x=1&y=two&X=3"),
        ("REQUEST_FILENAME", "/a/b/index.php"),
        ("REQUEST_BASENAME", "index.php"),
        ("QUERY_STRING", "x=1&y=two&X=3"),
        ("REQUEST_METHOD", "POST"),
        ("REQUEST_PROTOCOL", "HTTP/1.1"),
        ("REQUEST_BODY", "a=1&pass=secret"),
        ("REQUEST_BODY_LENGTH", "15"),
        ("REQBODY_PROCESSOR", "URLENCODED"),
        ("SERVER_NAME", "shop.example"),
        ("REMOTE_ADDR", "192.0.2.7"),
        ("REMOTE_PORT", "1234"),
        ("UNIQUE_ID", "u1"),
        ("RESPONSE_STATUS", "200"),
        ("RESPONSE_BODY", "<p>hello</p>"),
        ("RESPONSE_CONTENT_TYPE", "text/html"),
        ("RESPONSE_CONTENT_LENGTH", "12"),
        ("TIME", "12:34:56"),
        ("TIME_YEAR", "2024"),
        ("ARGS_COMBINED_SIZE", "20"),
        ("HIGHEST_SEVERITY", "255"),
    ] {
        let rule = format!("SecAction \"id:1,phase:4,pass,setvar:'tx.v=%{{{variable}}}'\"");
        assert_eq!(tx(&rule, "v").as_deref(), Some(expected), "{variable}");
    }
}

#[test]
fn collections_select_without_regard_to_case() {
    for (target, count) in [
        ("ARGS", "5"),
        ("ARGS:x", "2"),
        ("ARGS_GET", "3"),
        ("ARGS_POST", "2"),
        ("ARGS_NAMES:/^[xy]$/", "3"),
        ("REQUEST_HEADERS:user-agent", "1"),
        ("REQUEST_COOKIES", "2"),
        ("REQUEST_COOKIES:/^THE/", "1"),
        ("RESPONSE_HEADERS:content-type", "1"),
        ("REQUEST_HEADERS:Absent", "0"),
        ("TX:absent", "0"),
        ("REQBODY_ERROR", "1"),
        ("REMOTE_USER", "0"),
    ] {
        let rule =
            format!("SecRule &{target} \"@unconditionalMatch\" \"id:1,phase:4,pass,setvar:tx.v=%{{MATCHED_VAR}}\"");
        assert_eq!(tx(&rule, "v").as_deref(), Some(count), "{target}");
    }
}

#[test]
fn exclusions_take_names_patterns_and_whole_collections_away() {
    for (targets, matches) in [
        ("ARGS", true),
        ("ARGS|!ARGS:PASS", false),
        ("ARGS|!ARGS:/^pa/", false),
        ("ARGS|!ARGS", false),
        ("ARGS|!ARGS_POST:pass", true),
        ("ARGS|REQUEST_BODY|!ARGS:pass", true),
    ] {
        let found = ids(&format!("SecRule {targets} \"@contains secret\" \"id:1,phase:2,pass\""));
        assert_eq!(!found.is_empty(), matches, "{targets}");
    }
}

#[test]
fn assignments_run_for_every_matching_value_and_before_the_chain_ends() {
    let rule = "SecRule ARGS:x \"@unconditionalMatch\" \"id:1,phase:2,pass,chain,setvar:tx.n=+1\"\n\
                SecRule REQUEST_METHOD \"@streq PUT\" \"setvar:tx.never=1\"";
    assert_eq!(tx(rule, "n").as_deref(), Some("2"));
    assert_eq!(tx(rule, "never"), None);
    assert!(ids(rule).is_empty());
}

#[test]
fn assignments_add_subtract_and_remove() {
    let rules = "SecAction \"id:1,phase:1,pass,setvar:tx.Step=3,setvar:tx.n=10\"\n\
                 SecAction \"id:2,phase:1,pass,setvar:tx.n=+%{TX.step},setvar:tx.n=-1,setvar:tx.flag,setvar:!tx.step\"\n\
                 SecAction \"id:3,phase:1,pass,setvar:tx.made_%{tx.n}=yes,setvar:tx.word=abc,setvar:tx.word=+2\"";
    assert_eq!(tx(rules, "N").as_deref(), Some("12"));
    assert_eq!(tx(rules, "flag").as_deref(), Some("1"));
    assert_eq!(tx(rules, "step"), None);
    assert_eq!(tx(rules, "made_12").as_deref(), Some("yes"));
    assert_eq!(tx(rules, "word").as_deref(), Some("2"));
}

#[test]
fn captures_cross_the_chain() {
    let rule = "SecRule ARGS:y \"@rx ^(t)(w)\" \"id:1,phase:2,pass,capture,chain\"\n\
                SecRule TX:2 \"@streq w\" \"setvar:tx.v=%{tx.0}-%{tx.1}\"";
    assert_eq!(tx(rule, "v").as_deref(), Some("tw-t"));
}

#[test]
fn matched_vars_hold_the_matches_of_the_chain() {
    let rule = "SecRule ARGS|REQUEST_METHOD \"@rx ^(?:1|two)$\" \"id:1,phase:2,pass,chain\"\n\
                SecRule &MATCHED_VARS \"@eq 3\" \"setvar:tx.v=%{MATCHED_VARS_NAMES}\"\n\
                SecRule MATCHED_VARS_NAMES \"@streq ARGS:y\" \"id:2,phase:2,pass\"";
    assert_eq!(tx(rule, "v").as_deref(), Some("ARGS:x"));
    assert_eq!(ids(rule), [1], "the next rule starts afresh");
}

#[test]
fn skips_leave_rules_out_in_every_phase() {
    for phase in 1..=5 {
        let rules = format!(
            "SecAction \"id:1,phase:{phase},pass,skipAfter:END\"\nSecAction \"id:2,phase:{phase},pass\"\n\
             SecMarker END\nSecAction \"id:3,phase:{phase},pass,skip:1\"\n\
             SecAction \"id:4,phase:{phase},pass\"\nSecAction \"id:5,phase:{phase},pass\""
        );
        assert_eq!(ids(&rules), [1, 3, 5]);
    }
}

#[test]
fn multi_match_tests_the_original_and_each_change() {
    let rule = |pattern: &str, action: &str| {
        ids(&format!("SecRule ARGS:y \"@rx {pattern}\" \"id:1,phase:2,pass,t:uppercase,t:length{action}\"")).len()
    };
    assert_eq!(rule("^3$", ""), 1);
    assert_eq!(rule("^TWO$", ""), 0);
    assert_eq!(rule("^TWO$", ",multiMatch"), 1);
    assert_eq!(rule("^two$", ",multiMatch"), 1);
}

#[test]
fn a_denial_stops_and_is_reported_once() {
    let rules = "SecRule ARGS:pass \"@streq secret\" \"id:1,phase:2,deny,status:406,severity:CRITICAL,msg:'Saw %{MATCHED_VAR}'\"\n\
                 SecAction \"id:2,phase:2,pass\"\nSecAction \"id:3,phase:3,pass\"\nSecAction \"id:4,phase:5,pass\"";
    let mut transaction = transaction(rules, Some(""));
    assert_eq!(transaction.request_headers(), None);
    let found = transaction.request_body(b"pass=secret", true).unwrap();
    assert_eq!((found.status, found.rule_id, found.kind), (406, 1, InterventionKind::Deny));
    assert_eq!(found.msg, b"Saw secret");
    assert_eq!(transaction.response_headers(), None);
    transaction.logging();
    let matched: Vec<_> = transaction.matched_ids().collect();
    assert_eq!(matched, [1, 4]);
    let first = &transaction.matched_rules()[0];
    assert_eq!((first.variable.as_slice(), first.disruptive), (&b"ARGS:pass"[..], true));
    assert_eq!(transaction.variable(b"HIGHEST_SEVERITY", b"").as_deref(), Some(&b"2"[..]));
}

#[test]
fn detection_only_lets_through_and_says_so() {
    let rules = "SecRuleEngine DetectionOnly\nSecAction \"id:1,phase:1,deny\"\nSecAction \"id:2,phase:2,drop\"";
    let mut transaction = transaction(rules, Some(""));
    assert_eq!(finish(&mut transaction, ""), None);
    assert_eq!(transaction.would_block().map(|found| found.rule_id), Some(1));
    assert_eq!(transaction.matched_rules().len(), 2);
}

#[test]
fn redirects_expand_their_target() {
    let rules = "SecAction \"id:1,phase:1,redirect:'https://%{SERVER_NAME}/blocked'\"";
    let found = transaction(rules, None).request_headers().unwrap();
    assert_eq!(found.status, 302);
    assert_eq!(found.kind, InterventionKind::Redirect(b"https://shop.example/blocked".to_vec()));
}

#[test]
fn allow_reaches_as_far_as_it_says() {
    let rest = "\nSecAction \"id:2,phase:1,pass\"\nSecAction \"id:3,phase:2,pass\"\nSecAction \"id:4,phase:3,pass\"\n\
                SecAction \"id:5,phase:5,pass\"";
    assert_eq!(ids(&format!("SecAction \"id:1,phase:1,allow\"{rest}")), [1, 5]);
    assert_eq!(ids(&format!("SecAction \"id:1,phase:1,allow:request\"{rest}")), [1, 4, 5]);
    assert_eq!(ids(&format!("SecAction \"id:1,phase:1,allow:phase\"{rest}")), [1, 3, 4, 5]);
}

#[test]
fn controls_change_the_rest_of_the_transaction() {
    let rules = "\nSecRule ARGS \"@contains secret\" \"id:10,phase:2,pass,tag:t/one,msg:'m'\"\n\
                 SecRule ARGS \"@unconditionalMatch\" \"id:11,phase:2,pass,chain\"\nSecRule ARGS:pass \"@contains secret\"";
    for (control, expected) in [
        ("auditEngine=Off", &[1u64, 10, 11][..]),
        ("ruleRemoveById=10", &[1, 11]),
        ("ruleRemoveById=10-12", &[1]),
        ("ruleRemoveByTag=t/one", &[1, 11]),
        ("ruleRemoveByMsg=m", &[1, 11]),
        ("ruleRemoveTargetById=10;ARGS:pass", &[1, 11]),
        ("ruleRemoveTargetById=11;ARGS:pass", &[1, 10]),
        ("ruleRemoveTargetById=11;ARGS:/^P/", &[1, 10]),
        ("ruleRemoveTargetByTag=t/one;ARGS", &[1, 11]),
        ("ruleRemoveTargetByMsg=m;ARGS:pass", &[1, 11]),
        ("requestBodyAccess=Off", &[1]),
        ("ruleEngine=Off", &[1]),
    ] {
        let mut rules = format!("SecAction \"id:1,phase:1,pass,ctl:{control}\"{rules}");
        if control.starts_with("requestBody") {
            rules = rules.replace("@unconditionalMatch", "@contains secret");
        }
        assert_eq!(ids(&rules), expected, "{control}");
    }
}

#[test]
fn a_body_over_the_limit_is_cut_or_refused() {
    let rule = "SecRule INBOUND_DATA_ERROR \"@eq 1\" \"id:1,phase:2,pass\"\nSecRule REQUEST_BODY \"@streq a=1&p\" \"id:2,phase:2,pass\"";
    assert_eq!(ids(&format!("SecRequestBodyLimit 5\n{rule}")), [1, 2]);
    let reject = "SecRequestBodyLimit 5\nSecRequestBodyLimitAction Reject";
    let found = finish(&mut transaction(reject, Some("")), "a=1&pass=secret").unwrap();
    assert_eq!((found.status, found.rule_id), (413, 0));
}

#[test]
fn the_response_body_is_inspected_by_media_type() {
    let rule = "SecRule RESPONSE_BODY \"@contains hello\" \"id:1,phase:4,pass\"\nSecAction \"id:2,phase:4,pass\"";
    assert_eq!(ids(rule), [1, 2]);
    assert_eq!(ids(&format!("SecResponseBodyMimeType image/png\n{rule}")), [2]);
}

#[test]
fn macros_do_not_run_away() {
    let mut rules = "SecAction \"id:1,phase:1,pass,setvar:tx.a=0123456789\"\n".to_owned();
    for id in 2..40 {
        rules.push_str(&format!("SecAction \"id:{id},phase:1,pass,setvar:tx.a=%{{tx.a}}%{{tx.a}}\"\n"));
    }
    assert_eq!(tx(&rules, "a").unwrap().len(), limits::EXPANSION_LENGTH);
    assert_eq!(ids("SecAction \"id:1,phase:1,pass,log,logdata:'%{RULE.logdata}'\""), [1]);
}

#[test]
fn large_bodies_do_not_multiply() {
    let mut rules = "SecRule REQUEST_BODY \"@rx ^A\" \"id:1,phase:2,pass,t:uppercase\"\n".to_owned();
    let pipelines = ["t:uppercase,t:hexEncode", "t:hexEncode,t:uppercase", "t:base64Encode,t:uppercase"];
    for (pipeline, id) in pipelines.iter().cycle().take(24).zip(2..) {
        rules.push_str(&format!("SecRule REQUEST_BODY \"!@streq x\" \"id:{id},phase:2,pass,{pipeline}\"\n"));
    }
    let mut transaction = transaction(&rules, Some(""));
    transaction.request_headers();
    transaction.request_body("aB".repeat(1 << 20).as_bytes(), true);
    assert_eq!(transaction.matched_rules().len(), 25);
    assert_eq!(transaction.matched_rules()[2].value.len(), limits::REPORTED_LENGTH);
    assert!(transaction.arena.bytes() < 2 * limits::CACHED_BYTES + 24 * 2 * limits::KEPT_LENGTH);
}

/// A small generator of numbers: tests must not depend on chance.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn damaged_rules_and_requests_do_no_harm() {
    let rules = "SecDefaultAction \"phase:2,log,pass,t:lowercase\"\n\
        SecRule ARGS|!ARGS:/^a|b/|&TX:x|XML:/*|REQUEST_COOKIES:'k|k' \"!@rx ^(a+)b\\x41[[:alpha:]]\" \\\n  \
        \"id:1,phase:2,deny,status:403,chain,capture,msg:'m %{TX.1}',setvar:'tx.n_%{MATCHED_VAR_NAME}=+%{tx.n}'\"\n\
        SecRule TX:1|MATCHED_VARS_NAMES \"@within %{tx.n} b\" \"multiMatch,t:none,t:urlDecodeUni,ctl:ruleRemoveTargetById=1-9;ARGS:x\"\n\
        SecAction \"id:2,phase:1,pass,skipAfter:END\"\nSecMarker END\nSecRuleUpdateTargetById 1 \"!ARGS:c\"\n";
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut compiled = 0;
    for _ in 0..500 {
        let mut text = rules.as_bytes().to_vec();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(text.len());
            match numbers.below(3) {
                0 => text[at] = numbers.below(256) as u8,
                1 => {
                    text.remove(at);
                }
                _ => text.truncate(at.max(1)),
            }
        }
        let sources = [Source::new("base", BASE), Source::new("x", text)];
        match crate::compile(&sources, &NoFiles) {
            Err(errors) => errors.iter().for_each(|error| assert!(!error.to_string().is_empty())),
            Ok(program) => {
                compiled += 1;
                let mut transaction =
                    Transaction::new(Arc::new(Engine::new(program).unwrap()), TransactionStart::default());
                let noise: Vec<u8> = (0..64).map(|_| numbers.below(256) as u8).collect();
                transaction.request_line(&noise[..4], &noise, &noise[..9]);
                for name in ["Cookie", "Host", "Content-Type", "Authorization"] {
                    transaction.request_header(name.as_bytes(), &noise);
                }
                transaction.request_headers();
                transaction.request_body(&noise, false);
                transaction.response_header(&noise, &noise);
                transaction.response_headers();
                transaction.response_body(&noise, true);
                transaction.logging();
            }
        }
    }
    assert!(compiled > 20, "only {compiled} of the texts compiled");
}

#[test]
fn limits_are_what_they_say() {
    let mut transaction = transaction("", None);
    for number in 0..limits::HEADERS + 10 {
        transaction.request_header(format!("X-{number}").as_bytes(), b"1");
    }
    assert_eq!(transaction.request_headers.entries.len(), limits::HEADERS);
    assert_eq!((limits::HEADERS, limits::MATCHED_RULES, limits::EXPANSION_LENGTH), (1000, 2048, 262_144));
}

#[test]
fn an_engine_refuses_a_program_it_does_not_know() {
    let mut program = crate::compile(&[Source::new("x", "SecAction \"id:1\"")], &NoFiles).unwrap();
    program.wire.rules[0].phase = 9;
    assert!(Engine::new(program).unwrap_err().contains("no phase"));
}

#[test]
fn what_rules_may_need_is_built_in_advance_once_and_no_more() {
    let rules = "SecAction \"id:1,phase:1,pass,nolog,setvar:tx.level=1\"\n\
        SecRule ARGS \"@rx a+b\" \"id:2,phase:2,pass\"\n\
        SecRule ARGS \"@pm one two\" \"id:3,phase:2,pass,chain\"\n\
        SecRule ARGS \"@detectSQLi\" \"t:none\"\n\
        SecRule TX:level \"@lt 2\" \"id:4,phase:2,pass,nolog,skipAfter:END\"\n\
        SecRule ARGS \"@rx c+d\" \"id:5,phase:2,pass\"\n\
        SecMarker END";
    let program = crate::compile(&[Source::new("base", BASE), Source::new("rules", rules)], &NoFiles).unwrap();
    let engine = Engine::new(program).unwrap();
    let built = std::iter::repeat_with(|| engine.prepare()).take_while(|more| *more).count();
    // The first engine of a VM that is prepared reserves memory as well, piece by piece.
    let reserved = if cfg!(target_family = "wasm") { RESERVED / RESERVED_PIECE } else { 0 };
    assert!(built == 3 || built == 3 + reserved, "the pattern behind the skip is never searched for: {built}");
    assert!(!engine.prepare());
}

#[test]
fn a_limit_of_the_response_may_change() {
    let rules = "SecAction \"id:1,phase:3,pass,ctl:responseBodyLimit=5\"\n\
        SecRule OUTBOUND_DATA_ERROR \"@eq 1\" \"id:2,phase:4,pass,chain\"\nSecRule RESPONSE_BODY \"@streq <p>he\"";
    assert_eq!(ids(rules), [1, 2]);
}

#[test]
fn time_advances_with_set_now() {
    let mut transaction = transaction("SecRule DURATION \"@ge 1500\" \"id:1,phase:2,pass\"", None);
    transaction.set_now(1_709_210_097_500);
    transaction.set_now(0);
    finish(&mut transaction, "");
    assert_eq!(transaction.matched_rules().len(), 1);
}

#[test]
fn rules_that_give_up_are_named_and_their_work_is_bounded() {
    let mut rules: String =
        (1..=3).map(|id| format!("SecRule ARGS_POST \"@rx (x+x+)+(?=y)z{id}\" \"id:{id},phase:2,pass\"\n")).collect();
    rules.push_str("SecRule ARGS:/(x+x+)+(?=y)z/ \"@unconditionalMatch\" \"id:4,phase:2,pass\"\n");
    rules.push_str("SecRule TX:/^MSC_/ \"!@streq 0\" \"id:5,phase:2,pass\"\n");
    let long = "x".repeat(40);
    let body = format!("a={long}yz&b={long}yz&{long}yz=1");
    let mut transaction = transaction(&rules, Some(&body));
    transaction.set_budget(BudgetLimits::NONE);
    finish(&mut transaction, &body);
    let exceeded: Vec<_> = transaction
        .exceeded_limits()
        .iter()
        .map(|limit| (limit.rule_id, String::from_utf8_lossy(&limit.variable).into_owned(), limit.searches))
        .collect();
    let value = |id| (id, "ARGS_POST:a".to_owned(), 2);
    assert_eq!(exceeded, [value(1), value(2), value(3), (4, "ARGS".to_owned(), 1)]);
    let matched: Vec<u64> = transaction.matched_rules().iter().map(|rule| rule.rule_id).collect();
    assert_eq!(matched, [5], "a rule that gave up matched nothing, and a rule can tell");
    assert_eq!(transaction.variable(b"MSC_PCRE_LIMITS_EXCEEDED", b"").as_deref(), Some(&b"1"[..]));
    let backtracks = transaction.work().backtracks;
    assert!((700_000..=800_000).contains(&backtracks), "{backtracks}: seven searches, each up to its limit");
}

#[test]
fn a_limit_met_with_a_full_cache_stays_noted() {
    let rules = "SecRule ARGS_POST:a \"@rx (x+x+)+(?=y)z\" \"id:1,phase:2,pass,t:none,t:uppercase,t:lowercase\"\n\
                 SecRule TX:/^MSC_/ \"!@streq 0\" \"id:2,phase:2,pass\"";
    let body = format!("a={}yz", "x".repeat(40));
    let mut transaction = transaction(rules, Some(&body));
    transaction.set_budget(BudgetLimits::NONE);
    transaction.arena.push(vec![b'.'; limits::CACHED_BYTES + 1]);
    finish(&mut transaction, &body);
    let matched: Vec<u64> = transaction.matched_rules().iter().map(|rule| rule.rule_id).collect();
    assert_eq!(matched, [2]);
    assert_eq!(transaction.variable(b"TX", b"MSC_PCRE_LIMITS_EXCEEDED").as_deref(), Some(&b"1"[..]));
}

/// A rule that only assigns is not run if its first test decides; a removed target cannot decide.
#[test]
fn a_rule_that_only_assigns_misses_the_removed_targets() {
    for (target, away) in [("SERVER_PORT \"@ge 0\"", "SERVER_PORT"), ("&REQUEST_COOKIES \"@ge 0\"", "REQUEST_COOKIES")]
    {
        let rule = format!("SecRule {target} \"id:2,phase:1,pass,nolog,setvar:tx.hit=1\"");
        assert_eq!(tx(&rule, "hit").as_deref(), Some("1"), "{target}");
        let taken = format!("SecAction \"id:1,phase:1,pass,nolog,ctl:ruleRemoveTargetById=2;{away}\"\n{rule}");
        assert_eq!(tx(&taken, "hit"), None, "{target}");
    }
}
