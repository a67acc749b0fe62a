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
    let other = "SecRule ARGS \"@contains <b>\" \"id:2,phase:2,pass\"";
    for (targets, phase, suspicious) in
        [("ARGS", 2, 1), ("REQUEST_HEADERS", 2, 0), ("ARGS:q|ARGS_GET", 2, 0), ("ARGS", 1, 0)]
    {
        let rule = format!("{targets} \"@contains <script\" \"id:1,phase:{phase},pass,t:htmlEntityDecode\"");
        let rules = format!("SecRule {rule}\n{other}");
        assert_eq!(behind_the_limit(&rules, "abc &x"), (suspicious, Vec::new()), "{rule}");
        assert_eq!(behind_the_limit(&rules, "<b>"), (1, vec![2]), "{rule}");
    }
}

#[test]
fn without_a_prefilter_every_window_is_suspicious() {
    let pattern = "SecRule ARGS \"@rx (\\w)\\1x\" \"id:1,phase:2,pass\"";
    assert_eq!(behind_the_limit(pattern, "abc aax"), (1, vec![1]));
    let rules = format!("{pattern}\nSecRule ARGS \"@contains <b>\" \"id:2,phase:2,pass\"");
    assert_eq!(behind_the_limit(&rules, "abc aax"), (0, Vec::new()));
    assert_eq!(behind_the_limit(&rules, "aax<b>"), (1, vec![1, 2]));
}

/// A value has 64 bits for the pipelines of transformations that change it.
#[test]
fn a_rule_behind_many_other_transformations_sees_windows() {
    let steps = ["t:urlDecodeUni", "t:jsDecode", "t:cssDecode", "t:removeNulls"];
    let mut pipelines: Vec<String> = Vec::new();
    for first in steps {
        for second in steps {
            pipelines.extend(steps.map(|third| format!("{first},{second},{third}")));
        }
    }
    pipelines.push("t:base64Decode".to_owned());
    assert_eq!(pipelines.len(), 65);
    let rule = |targets: &str, id: usize, pipeline: &str| {
        format!("SecRule {targets} \"@contains <script\" \"id:{id},phase:2,pass,{pipeline}\"\n")
    };
    let elsewhere = pipelines.iter().zip(10..).map(|(pipeline, id)| rule("REQUEST_HEADERS:x", id, pipeline));
    let rules: String = elsewhere.chain([rule("ARGS", 1, "t:htmlEntityDecode")]).collect();
    assert_eq!(behind_the_limit(&rules, "x&lt;script"), (1, vec![1]));
    assert_eq!(behind_the_limit(&rules, "x\\u003cscript %zz"), (0, Vec::new()));
}
