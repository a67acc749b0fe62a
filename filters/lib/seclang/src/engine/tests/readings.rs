//! What an application may read in a body beyond what its type says.

use super::*;

const MULTIPART: &str = "multipart/form-data; boundary=b";
const SQL: &str = "1' UNION SELECT";

/// Whether the rules of a gateway see the text in a body of this type, and whether they refuse the body.
fn seen(content_type: &str, body: &str) -> (bool, bool) {
    let rules = "SecRule ARGS|ARGS_NAMES|XML:/* \"@contains UNION SELECT\" \"id:1,phase:2,pass\"\n\
        SecRule REQBODY_ERROR \"@eq 1\" \"id:2,phase:5,pass\"";
    let rules = format!("SecRuleEngine DetectionOnly\n{rules}");
    let found = body_ids(&rules, content_type, body);
    (found.contains(&1), found.contains(&2))
}

fn part(head: &str, kind: &str, content: &str) -> String {
    format!(
        "--b\r\nContent-Disposition: form-data; name=\"p\"{head}\r\nContent-Type: {kind}\r\n\r\n{content}\r\n--b--\r\n"
    )
}

#[test]
fn parts_that_are_messages_are_parsed() {
    let escaped = "{\"q\": \"1' \\u0055NION \\u0053ELECT\"}";
    let xml = "<a>1' &#85;NION SELECT</a>";
    let many = format!("[{}{escaped}]", "\"a b\",".repeat(2000));
    let numbers = format!("[{}{escaped}]", "1,".repeat(2000));
    for head in ["", "; filename=\"blob\""] {
        for (kind, content) in [
            ("application/json", escaped),
            ("application/merge-patch+json;charset=utf-8", escaped),
            ("application/xml", xml),
            ("application/soap+xml", xml),
            ("text/xml", "<a b=\"UNI&#79;N SELECT\"/>"),
            ("application/x-www-form-urlencoded", "a=1&q=1%27%20%55NION+SELECT"),
            ("application/json", "{\"UNION SELECT\": {}}"),
            ("application/json", "{\"UNION SELECT\": 1}"),
        ] {
            assert_eq!(seen(MULTIPART, &part(head, kind, content)), (true, false), "{head} {kind}");
        }
    }
    let file = "; filename=\"export.json\"";
    for content in [many.as_str(), &numbers, "{'q': '1 \\u0055NION SELECT'}", "{\"q\": \"UNION SELECT\""] {
        assert_eq!(seen(MULTIPART, &part(file, "application/json", content)), (true, false), "{content:.20}");
    }
    let base64 = part(
        "; filename=\"blob\"",
        "application/json\r\nContent-Transfer-Encoding: base64",
        "eyJxIjoiVU5JT04gU0VMRUNUIn0=",
    );
    assert_eq!(seen(MULTIPART, &base64), (true, false));
    assert_eq!(seen(MULTIPART, &part("", "application/json", "{")), (false, true), "a field has to be what it says");
}

#[test]
fn files_of_users_are_refused_for_nothing() {
    let rows = format!("[{}]", vec!["{\"id\": 1, \"name\": \"Ada Lovelace\", \"tags\": {}}"; 2000].join(",\n"));
    let drawing = "<?xml version=\"1.0\"?><!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"a.dtd\"><svg/>";
    for (name, kind, content) in [
        ("rows.json", "application/json", rows.as_str()),
        ("broken.json", "application/json", "// a comment\n{\"a\": 1,}"),
        ("empty.json", "application/json", ""),
        ("a.xml", "text/xml", "<a><b></a>"),
        ("a.xml", "text/xml", drawing),
        ("a.svg", "image/svg+xml", "<svg>UNION SELECT</svg>"),
        ("a.sql", "text/plain", "UNION SELECT"),
        ("a.eml", "message/rfc822", "Content-Disposition: attachment; filename=\"a\"\r\n\r\nUNION SELECT"),
    ] {
        let body = part(&format!("; filename=\"{name}\""), kind, content);
        assert_eq!(seen(MULTIPART, &body), (false, false), "{name}");
    }
}

#[test]
fn fields_within_a_file_are_arguments() {
    for (end, head) in [
        ("\r\n", "Content-Disposition: form-data; name=\"q\""),
        ("\n", "content-disposition:form-data;name=q"),
        ("\r", "CONTENT-DISPOSITION: x; name=\"q\""),
    ] {
        let content = ["x", "--a", head, "", SQL, "--a--", ""].join(end);
        let body = part("; filename=\"a.bin\"", "application/octet-stream", &content);
        let rules = "SecRule ARGS \"@streq 1' UNION SELECT\" \"id:1,phase:2,pass\"\n\
            SecRule REQBODY_ERROR \"@eq 1\" \"id:2,phase:5,pass\"";
        assert_eq!(body_ids(rules, MULTIPART, &body), [1], "{end:?}");
    }
    let recorded = "POST / HTTP/1.1\r\n\r\n--a\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n1\r\n--a--\r\n";
    assert_eq!(seen(MULTIPART, &part("; filename=\"a.http\"", "text/plain", recorded)), (false, false));
    assert!(seen("multipart/form-data; boundary=b,c", &part("", "text/plain", SQL).replace("--b", "--b,c")).1);
}

#[test]
fn keys_of_empty_values_are_seen() {
    for body in ["{\"UNION SELECT\": {}}", "{\"UNION SELECT\": []}", "{\"a\": [{}, {\"UNION SELECT\": [[]]}]}"] {
        assert_eq!(seen("application/json", body), (true, false), "{body}");
    }
    for honest in ["{},[],".repeat(2000), "{\"tags\": [], \"meta\": {}},".repeat(2000)] {
        let honest = format!("{{\"a\": [{honest}{{}}]}}");
        assert_eq!(seen("application/json", &honest), (false, false), "an empty value of a known key is no argument");
    }
}
