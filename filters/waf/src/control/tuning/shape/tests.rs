use super::*;

const NETWORK: u64 = 7;

fn are_enough(callers: &BTreeSet<u64>) -> bool {
    callers.len() >= 3
}

fn shapes(values: &[&str]) -> Vec<ValueShape> {
    let numbered = values.iter().zip(1..);
    numbered.map(|(value, caller)| ValueShape::of(caller << 32 | NETWORK, value.as_bytes())).collect()
}

fn shape(values: &[&str]) -> Option<Shape> {
    Shape::of(&shapes(values), &Target::parse(b"ARGS:a").unwrap(), are_enough)
}

#[test]
fn what_enough_callers_send_is_the_shape() {
    let tokens = shape(&["aB3/x+9=", "Zz0+a/1=", "Qq7/+bb=", "aaaBBB00"]).unwrap();
    assert_eq!(tokens.pattern(), "\\A[a-zA-Z0-9+/=]{8}\\z");
    let names = shape(&["ab-c", "x.y", "a-b.c", "aa-bb.cc", "a.a-a"]).unwrap();
    assert_eq!(names.pattern(), "\\A[a-z\\-.]{3,10}\\z");
    assert_eq!(names.described(), "3 to 10 of the characters a-z-.");
    let header = Target::parse(b"REQUEST_HEADERS:referer").unwrap();
    assert_eq!(Shape::of(&shapes(&["a+b", "a+b", "a+b"]), &header, are_enough), None, "it may be a blank there");
    assert!(tokens.holds(b"abc") && !tokens.holds(b"a b") && !names.holds(b"A"));
}

#[test]
fn what_an_attack_is_written_with_is_in_no_shape() {
    for mark in " !\"#$%'()*;<>[]\\^`{|}\t\n\u{e4}".chars() {
        let value = format!("abc{mark}");
        assert_eq!(shape(&[&value, &value, &value, &value]), None, "{mark:?}");
    }
    assert_eq!(shape(&[]), None);
    assert_eq!(shape(&["", "", ""]), None, "nothing is no value");
    let long = "a".repeat(257);
    assert_eq!(shape(&[&long, &long, &long]), None);
}

#[test]
fn a_few_callers_do_not_change_the_shape() {
    let honest = ["abc1", "dea2", "ffa3", "abc4", "bca5", "dda6", "aba7", "bbb8"];
    let expected = shape(&honest).unwrap();
    assert_eq!(expected.pattern(), "\\A[a-z0-9]{4}\\z");
    let with = |more: &[&str]| shape(&[&honest, more].concat());
    assert_eq!(with(&["'or'", "1;2"]), Some(expected));
    assert_eq!(with(&["a", "abcdefghijklm1"]), Some(expected), "nor its length");
    assert_eq!(with(&["=/=/", "=//="]), Some(expected));
    assert_eq!(shape(&["abc", "abd"]), None, "two are few");
    assert_eq!(with(&["a b", "c d", "e f"]), None, "many send something else");
}

#[test]
fn exclusions_are_written_as_chains() {
    let token = shape(&["ab=", "ca=", "dd="]).unwrap();
    let place = |target: &str, path: &str| Place {
        rule_id: 942_120,
        target: Target::parse(target.as_bytes()).unwrap(),
        path: path.to_owned(),
    };
    let written =
        |place: &Place, kind, switch| Condition { shape: token, phase: 2 }.written(kind, place, 50_001, switch);
    let of_token = place("ARGS:token", "/a/{id}");
    assert_eq!(
        written(&of_token, ExclusionKind::ScopedShape, None).unwrap(),
        "SecRule REQUEST_FILENAME \"@rx \\A/+a(?:;[^/]*)?/+[^/]+/*\\z\" \"id:50001,phase:2,pass,nolog,t:none,chain\"\n\
         SecRule &ARGS:token \"@eq 1\" \"t:none,chain\"\n\
         SecRule ARGS:token \"@rx \\A[a-z=]{3}\\z\" \"t:none,ctl:ruleRemoveTargetById=942120;ARGS:token\""
    );
    assert_eq!(
        written(&of_token, ExclusionKind::Shape, Some(",x1,")).unwrap(),
        "SecRule UNIQUE_ID \"@contains ,x1,\" \"id:50001,phase:2,pass,nolog,t:none,chain\"\n\
         SecRule &ARGS:token \"@eq 1\" \"t:none,chain\"\n\
         SecRule ARGS:token \"@rx \\A[a-z=]{3}\\z\" \"t:none,ctl:ruleRemoveTargetById=942120;ARGS:token\""
    );
    for target in ["ARGS", "ARGS_NAMES", "REQUEST_BODY", "XML:/*", "ARGS:rest_of_body", "ARGS:a\"b", "QUERY_STRING"] {
        assert_eq!(written(&place(target, "/a"), ExclusionKind::Shape, None), None, "{target}");
    }
    assert_eq!(written(&place("ARGS:token", "/a\""), ExclusionKind::ScopedShape, None), None);
    assert_eq!(written(&of_token, ExclusionKind::ScopedTarget, None), None);
}
