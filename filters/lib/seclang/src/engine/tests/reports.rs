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
