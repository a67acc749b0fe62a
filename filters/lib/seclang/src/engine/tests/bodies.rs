//! Bodies: what of them becomes which variable, and what limits make of them.

use super::*;

#[test]
fn the_names_of_xml_are_not_in_the_request_body_unless_it_is_forced_or_no_xml() {
    let sees = |force: &str, body: &str| {
        let rules = format!(
            "SecAction \"id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=XML{force}\"\n\
             SecRule REQUEST_BODY \"@contains evil\" \"id:2,phase:2,pass\"\n\
             SecRule FULL_REQUEST \"@contains evil\" \"id:3,phase:2,pass\"\n\
             SecRule XML:/* \"@contains evil\" \"id:4,phase:2,pass\""
        );
        let mut transaction = transaction(&rules, Some(body));
        finish(&mut transaction, body);
        transaction.matched_ids().filter(|id| *id > 1).collect::<Vec<_>>()
    };
    let force = ",ctl:forceRequestBodyVariable=On";
    assert_eq!(sees("", "<a><evil>x</evil></a>"), [3]);
    assert_eq!(sees("", "<a>evil</a>"), [3, 4]);
    assert_eq!(sees(force, "<a><evil>x</evil></a>"), [2, 3]);
    assert_eq!(sees("", "<a><evil"), [2, 3]);
}

/// All phases on a body of this type; the ids that matched.
pub(super) fn body_ids(rules: &str, content_type: &str, body: &str) -> Vec<u64> {
    let mut transaction = transaction(&format!("{}\n{rules}", crate::ENGINE_CONF), None);
    transaction.request_header(b"Content-Type", content_type.as_bytes());
    finish(&mut transaction, body);
    transaction.matched_ids().filter(|id| *id < 200_000).collect()
}

#[test]
fn quoted_fields_are_arguments_in_each_way_that_applications_read_them() {
    let rules = "SecRule ARGS \"@contains ' or 1=1\" \"id:1,phase:2,pass\"\n\
        SecRule ARGS \"@rx onload=\\s*alert\" \"id:2,phase:2,pass\"\n\
        SecRule ARGS \"@contains <script>\" \"id:3,phase:2,pass\"";
    for (content, expected) in [
        ("=\r=27 or 1=3D1 -- \r\nx", &[1][..]),
        ("=6fnload= \n=61lert(1)", &[2]),
        ("<scr= \r\nipt>", &[3]),
        ("<scr=\rx\nipt>", &[3]),
        ("=3Dfine=\r\n", &[]),
    ] {
        let head = "Content-Disposition: form-data; name=\"q\"\r\nContent-Transfer-Encoding: quoted-printable";
        let body = format!("--b\r\n{head}\r\n\r\n{content}\r\n--b--\r\n");
        assert_eq!(body_ids(rules, "multipart/form-data; boundary=b", &body), expected, "{content}");
    }
}

#[test]
fn paths_look_into_xml_bodies() {
    let rules = "SecRule XML:/a/b \"@streq x\" \"id:1,phase:2,pass\"\n\
        SecRule XML://b/@k \"@streq v\" \"id:2,phase:2,pass\"\n\
        SecRule XML:/a/b[2] \"@streq y\" \"id:3,phase:2,pass,chain\"\n\
        SecRule MATCHED_VAR_NAME \"@streq XML:/a/b[2]\"\n\
        SecRule &XML:/a/b \"@eq 2\" \"id:4,phase:2,pass\"\n\
        SecRule XML:/a/b|!XML:/a/b \"@unconditionalMatch\" \"id:5,phase:2,pass\"\n\
        SecRule XML:/s:a/b \"@streq x\" \"id:6,phase:2,pass,xmlns:s='http://s'\"\n\
        SecRule XML:/a/c|XML:/a/b/text() \"@streq y\" \"id:7,phase:2,pass\"";
    let document = "<a xmlns='http://s'><b>x</b><b k='v'>y</b></a>";
    assert_eq!(body_ids(rules, "text/xml", document), [1, 2, 3, 4, 6, 7]);
    let other = "<a xmlns='http://t'><b>x</b></a>";
    assert_eq!(body_ids(rules, "text/xml", other), [1]);
    // What leads to more than is inspected is an error of the body.
    let deep = format!("{}{}{}", "<d>".repeat(250), "x".repeat(40_000), "</d>".repeat(250));
    let rules = "SecRule XML://d \"@streq x\" \"id:1,phase:2,pass\"\n\
        SecRule REQBODY_ERROR_MSG \"@contains leads to more\" \"id:8,phase:5,pass\"";
    assert_eq!(body_ids(rules, "text/xml", &deep), [8]);
}

#[test]
fn xml_becomes_arguments_where_that_is_wanted() {
    let rule = "SecRule ARGS:xml.a.b \"@streq x\" \"id:1,phase:2,pass\"\n\
        SecRule XML:/*|REQUEST_BODY \"@contains x\" \"id:2,phase:2,pass\"";
    for (setting, expected) in [
        ("", &[2][..]),
        ("SecParseXmlIntoArgs On", &[1, 2]),
        ("SecParseXmlIntoArgs OnlyArgs", &[1]),
        ("SecAction \"id:9,phase:1,pass,nolog,ctl:parseXmlIntoArgs=On\"", &[9, 1, 2]),
    ] {
        assert_eq!(body_ids(&format!("{setting}\n{rule}"), "text/xml", "<a><b>x</b></a>"), expected, "{setting}");
    }
}

#[test]
fn positions_in_json_names_are_found_in_both_spellings() {
    let body = r#"{"a": [{"b": "x"}], "o": {"0": "x"}}"#;
    for (target, found) in [
        ("ARGS:json.a.0.b", true),
        ("ARGS:json.a.array_0.b", true),
        ("ARGS:JSON.A.0.B", true),
        ("ARGS:json.o.0", true),
        ("ARGS:json.o.array_0", false),
        ("ARGS:json.a.1.b", false),
        ("ARGS:json.a.0", false),
        ("ARGS|!ARGS:json.a.0.b|!ARGS:json.o.0", false),
        ("ARGS_NAMES:json.a.0.b", false),
    ] {
        let rule = format!("SecRule {target} \"@streq x\" \"id:1,phase:2,pass\"");
        assert_eq!(!body_ids(&rule, "application/json", body).is_empty(), found, "{target}");
    }
    let rules = "SecAction \"id:2,phase:1,pass,nolog,ctl:ruleRemoveTargetById=1;ARGS:json.a.0.b\"\n\
        SecRule ARGS \"@streq x\" \"id:1,phase:2,pass\"";
    assert_eq!(body_ids(rules, "application/json", r#"{"a": [{"b": "x"}]}"#), [2]);
}

#[test]
fn limits_of_bodies_are_errors_of_bodies() {
    let many = |count: usize, join: &str, part: &str| vec![part; count].join(join);
    let part = "--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nv\r\n";
    let file = "--b\r\nContent-Disposition: form-data; name=\"n\"; filename=\"f\"\r\n\r\nvvvvvvvvvv\r\n";
    let rules = "SecArgumentsLimit 10\nSecUploadFileLimit 2\nSecRequestBodyJsonDepthLimit 5\n\
        SecRule REQBODY_ERROR \"@eq 1\" \"id:1,phase:5,pass\"\n\
        SecRule MULTIPART_FILE_LIMIT_EXCEEDED \"@eq 1\" \"id:2,phase:5,pass\"\n\
        SecRule INBOUND_DATA_ERROR \"@eq 1\" \"id:3,phase:5,pass\"";
    let multipart = |parts: String| format!("{parts}--b--\r\n");
    let form = "application/x-www-form-urlencoded";
    // The query of the request brings three arguments.
    for (what, more, kind, body, expected) in [
        ("a form", "", form, many(7, "&", "a=1"), &[][..]),
        ("too many arguments", "", form, many(8, "&", "a=1"), &[1]),
        ("JSON", "", "application/json", format!("[{}]", many(7, ",", "1")), &[]),
        ("too many values", "", "application/json", format!("[{}]", many(8, ",", "1")), &[1]),
        ("JSON of depth 5", "", "application/json", "[[[[[1]]]]]".to_owned(), &[]),
        ("JSON of depth 6", "", "application/json", "[[[[[[1]]]]]]".to_owned(), &[1]),
        ("multipart", "", "multipart/form-data; boundary=b", multipart(many(7, "", part)), &[]),
        ("too many fields", "", "multipart/form-data; boundary=b", multipart(many(8, "", part)), &[1]),
        ("files", "", "multipart/form-data; boundary=b", multipart(many(2, "", file)), &[]),
        ("too many files", "", "multipart/form-data; boundary=b", multipart(many(3, "", file)), &[2]),
        ("XML too deep", "", "text/xml", format!("{}{}", "<a>".repeat(300), "</a>".repeat(300)), &[1]),
        ("XML of many elements", "SecParseXmlIntoArgs On", "text/xml", format!("<a>{}</a>", many(8, "", "<b/>")), &[1]),
        ("a long form", "SecRequestBodyNoFilesLimit 10", form, many(3, "&", "abc=1"), &[1, 3]),
        ("a short one", "SecRequestBodyNoFilesLimit 10", form, "abc=1".to_owned(), &[]),
        (
            "a limit of this request",
            "SecAction \"id:200900,phase:1,pass,ctl:requestBodyLimit=10\"",
            form,
            many(3, "&", "abc=1"),
            &[3],
        ),
    ] {
        let found = body_ids(&format!("{rules}\n{more}"), kind, &body);
        // Rule 200002 of the engine's configuration ends the request; phase 5 runs all the same.
        assert_eq!(found, expected, "{what}");
    }
    let files = "SecRequestBodyNoFilesLimit 150\nSecRule REQBODY_ERROR \"@eq 1\" \"id:1,phase:5,pass\"";
    let kind = "multipart/form-data; boundary=b";
    let long = file.replace("vvvvvvvvvv", &"v".repeat(500));
    assert!(body_ids(files, kind, &multipart(long)).is_empty(), "files do not count");
    assert_eq!(body_ids(files, kind, &multipart(part.replace("\r\nv", &format!("\r\n{}", "v".repeat(500))))), [1]);
}
