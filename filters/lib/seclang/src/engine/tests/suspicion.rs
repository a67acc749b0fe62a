//! Which part of a body beyond its limit rules look at.

use super::*;

/// The windows of a form beyond its limit that count as suspicious, and what the rules find in them.
fn behind_the_limit(rules: &str, rest: &str) -> (usize, Vec<u64>) {
    let rules = format!("SecRequestBodyLimitAction ProcessPartial\n{rules}");
    let mut first = transaction(&rules, Some(""));
    first.request_headers();
    first.request_body(b"a=", false);
    let windows = first.request_body_rest(rest.as_bytes(), true);
    let mut second = transaction(&rules, Some(""));
    second.request_headers();
    second.evaluate_suspicious(&windows);
    (windows.len(), second.matched_ids().collect())
}

#[test]
fn what_a_rule_sees_after_a_transformation_is_suspicious() {
    let entities = "SecRule ARGS \"@contains <script\" \"id:1,phase:2,pass,t:none,t:htmlEntityDecode,t:lowercase\"";
    let escapes = "SecRule ARGS_POST:rest_of_body \"@rx on\\w+=\" \"id:1,phase:2,pass,t:jsDecode\"";
    for (rules, attack, plain) in
        [(entities, "x&lt;sCript", "x lt;sCript"), (escapes, "a\\x6fnload\\u003d1", "a x6fnload u003d1")]
    {
        let pad = "lorem ipsum ".repeat(1000);
        for rest in [attack.to_owned(), format!("{pad}{attack}{pad}")] {
            let (windows, found) = behind_the_limit(rules, &rest);
            assert!(windows > 0 && found == [1], "{rules}: {rest:.20}");
        }
        let (windows, found) = behind_the_limit(rules, plain);
        assert_eq!((windows, found.as_slice()), (0, &[][..]), "{rules}");
    }
}

#[test]
fn rules_that_look_elsewhere_make_no_window_suspicious() {
    for rule in [
        "REQUEST_HEADERS \"@rx (\\w)\\1x\" \"id:1,phase:2,pass\"",
        "ARGS:q|ARGS_GET \"@rx (\\w)\\1x\" \"id:1,phase:2,pass\"",
        "ARGS \"@rx (\\w)\\1x\" \"id:1,phase:1,pass\"",
        "ARGS \"@gt 400\" \"id:1,phase:2,pass,t:length\"",
        "&ARGS \"@eq 400\" \"id:1,phase:2,pass\"",
    ] {
        let rules = format!("SecRule {rule}\nSecRule ARGS \"@contains <b>\" \"id:2,phase:2,pass\"");
        assert_eq!(behind_the_limit(&rules, "abc aax"), (0, Vec::new()), "{rule}");
        assert_eq!(behind_the_limit(&rules, "<b>").0, 1, "{rule}");
    }
}
