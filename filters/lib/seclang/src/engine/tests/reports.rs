//! Reports: masked values, and the limits that left content out.

use super::*;

#[test]
fn what_is_sanitised_is_masked_in_reports() {
    let reports = |more: &str| {
        let rules = format!(
            "SecRule ARGS:pass \"@rx cre\" \"id:1,phase:2,pass,capture,t:uppercase,t:lowercase,msg:'m',\
             logdata:'%{{TX.0}} in %{{MATCHED_VAR}}'\"\n\
             SecRule REQUEST_BODY \"@contains pass\" \"id:2,phase:2,pass,logdata:'%{{MATCHED_VAR}}'\"\n\
             SecRule REQUEST_HEADERS:User-Agent \"@contains Tester\" \"id:3,phase:2,pass\"\n{more}"
        );
        let mut transaction = transaction(&rules, Some(""));
        finish(&mut transaction, "a=1&pass=secret");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let rules = transaction.matched_rules().iter().take(3);
        rules.map(|rule| [text(&rule.value), text(&rule.logdata)]).collect::<Vec<_>>()
    };
    let own = |pairs: [[&str; 2]; 3]| pairs.map(|pair| pair.map(String::from)).to_vec();
    let plain = own([["secret", "cre in secret"], ["a=1&pass=secret", "a=1&pass=secret"], ["Tester/1.0", ""]]);
    assert_eq!(reports(""), plain);
    let masked = reports("SecAction \"id:9,phase:5,pass,nolog,sanitiseArg:pass,sanitiseRequestHeader:user-agent\"");
    let hidden = [["******", "*************"], ["a=1&pass=******", "a=1&pass=******"], ["**********", ""]];
    assert_eq!(masked, own(hidden));
    let matched = reports("SecRule ARGS:pass \"@contains secret\" \"id:9,phase:5,pass,nolog,sanitiseMatched\"");
    assert_eq!(matched[0], hidden[0].map(String::from));
    assert_eq!(matched[2], plain[2]);
}

/// Every input that matched in a chain, in order and once, however many there are.
#[test]
fn all_inputs_of_a_chain_are_reported() {
    let rules = "SecRule ARGS|REQUEST_HEADERS:User-Agent \"@rx ^(Tester|odd)\" \"id:1,phase:2,pass,capture,chain\"\n\
                 SecRule ARGS:b|TX:1 \"@unconditionalMatch\" \"t:none\"";
    let inputs = |body: &str| {
        let mut transaction = transaction(rules, Some(""));
        finish(&mut transaction, body);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let found = &transaction.matched_rules()[0];
        assert_eq!(found.inputs().last(), Some((found.variable.as_slice(), found.value.as_slice())));
        found.inputs().map(|(variable, value)| format!("{}={}", text(variable), text(value))).collect::<Vec<_>>()
    };
    assert_eq!(inputs("a=fine"), ["REQUEST_HEADERS:User-Agent=Tester/1.0", "TX:1=Tester"]);
    assert_eq!(
        inputs("a=odd1&a=odd2&b=odd3&c=fine"),
        ["ARGS:a=odd1", "ARGS:b=odd3", "REQUEST_HEADERS:User-Agent=Tester/1.0", "TX:1=Tester"]
    );
    let many: Vec<String> = (0..100).map(|at| format!("a{at}=odd")).collect();
    let found = inputs(&many.join("&"));
    assert_eq!(found.len(), limits::REPORTED_INPUTS + 1);
    assert_eq!(
        (found[0].as_str(), found[14].as_str(), found[15].as_str()),
        ("ARGS:a0=odd", "ARGS:a14=odd", "TX:1=Tester")
    );
    // Names are cut like values.
    let long = format!("{}=odd&{}=odd", "n".repeat(2000), "n".repeat(3000));
    assert_eq!(inputs(&long).iter().filter(|input| input.starts_with("ARGS:n")).count(), 1);
}

/// What a rule has made of a secret before is as secret.
#[test]
fn what_a_chain_makes_of_a_secret_is_masked() {
    let rules = "SecRule ARGS_POST \"@rx ^(\\w+)$\" \"id:1,phase:2,pass,capture,logdata:'%{MATCHED_VAR}',chain\"\n\
                 SecRule TX:1 \"@rx ^\\w\" \"t:none,t:sha1,t:hexEncode\"\n\
                 SecRule ARGS_POST \"@rx ^\\w\" \"id:2,phase:2,pass,t:uppercase,logdata:'%{MATCHED_VAR}'\"\n\
                 SecAction \"id:9,phase:5,pass,nolog,sanitiseArg:pass\"";
    let mut transaction = transaction(rules, Some(""));
    finish(&mut transaction, "pass=secret&q=plain");
    let [chain, single] = [0, 1].map(|at| &transaction.matched_rules()[at]);
    for text in [&chain.value, &chain.logdata, &chain.earlier[0].value, &single.logdata, &single.earlier[0].value] {
        assert!(text.iter().all(|byte| *byte == b'*'), "{}", text.escape_ascii());
    }
    assert_eq!(chain.earlier[1].value, b"plain");
    assert_eq!((single.variable.as_slice(), single.value.as_slice()), (&b"ARGS_POST:q"[..], &b"PLAIN"[..]));
}

/// More matches than are noted: none is shown.
#[test]
fn what_is_sanitised_is_masked_however_much_it_is() {
    let rules = "SecRule ARGS \"@contains secret\" \"id:1,phase:2,pass,logdata:'%{MATCHED_VAR}',sanitiseMatched\"\n\
                 SecRule ARGS:last \"@contains secret\" \"id:2,phase:2,pass,msg:'%{MATCHED_VAR}'\"";
    let pairs: String = (0..limits::SANITISED + 10).map(|at| format!("a{at}=secret{at}&")).collect();
    let body = format!("{pairs}last=secret-of-all");
    let mut transaction = transaction(rules, Some(""));
    finish(&mut transaction, &body);
    assert!(transaction.matched_rules().len() >= 2);
    for rule in transaction.matched_rules() {
        for text in [&rule.value, &rule.logdata, &rule.msg] {
            assert!(text.iter().all(|byte| *byte == b'*'), "{}", text.escape_ascii());
        }
    }
}

/// Later rules do not see what an assignment cuts, or names of TX beyond the limit: both are reported.
#[test]
fn assignments_report_what_they_leave_out() {
    let left_out = |rule: &str, body: &str| {
        let mut transaction = transaction(rule, Some(""));
        transaction.set_budget(BudgetLimits::NONE);
        finish(&mut transaction, body);
        transaction.uninspected().iter().map(|found| found.limit).collect::<Vec<_>>()
    };
    let twice = "SecAction \"id:1,phase:2,pass,nolog,setvar:'tx.all=%{ARGS.a}%{ARGS.a}'\"";
    assert_eq!(left_out(twice, &format!("a={}", "x".repeat(1000))), Vec::<&str>::new());
    assert_eq!(left_out(twice, &format!("a={}", "x".repeat(200_000))), ["bytes of an assignment"]);
    let names = "SecRule ARGS \"@unconditionalMatch\" \"id:1,phase:2,pass,nolog,setvar:'tx.of_%{MATCHED_VAR}=1'\"";
    let body = |count: usize| (0..count).map(|at| format!("a={at}")).collect::<Vec<_>>().join("&");
    assert_eq!(left_out(names, &body(900)), Vec::<&str>::new());
    let environment = names.replace("setvar:'tx.of_", "setenv:'of_");
    for names in [names, &environment] {
        let names = format!("SecArgumentsLimit 5000\n{names}");
        assert_eq!(left_out(&names, &body(4000)), Vec::<&str>::new(), "{names}");
        assert_eq!(left_out(&names, &body(limits::DYNAMIC_NAMES + 1)), ["names"], "{names}");
    }
}
