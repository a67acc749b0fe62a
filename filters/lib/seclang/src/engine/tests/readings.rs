//! What an application may read in a body beyond what its type says.

use super::bodies::body_ids;
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
        let mut transaction = transaction(crate::ENGINE_CONF, None);
        transaction.request_header(b"Content-Type", MULTIPART.as_bytes());
        finish(&mut transaction, &body);
        assert_eq!((transaction.would_block(), transaction.uninspected()), (None, &[][..]), "{name}");
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

#[test]
fn attributes_are_seen_where_arguments_stand_for_the_text() {
    let rules = "SecParseXmlIntoArgs OnlyArgs\nSecRule XML://@* \"@contains UNION\" \"id:1,phase:2,pass\"\n\
        SecRule XML:/* \"@contains text\" \"id:2,phase:2,pass\"";
    assert_eq!(body_ids(rules, "text/xml", "<a q=\"1' UNION SELECT\">text</a>"), [1]);
}

#[test]
fn quoted_cookies_are_seen_in_both_readings() {
    let rules = "SecRule REQUEST_COOKIES:c \"@streq 1' or 1=1\" \"id:1,phase:2,pass\"\n\
        SecRule REQUEST_COOKIES:c \"@contains 047\" \"id:2,phase:2,pass\"\n\
        SecRule REQUEST_COOKIES:d \"@streq x; y\" \"id:3,phase:2,pass\"\n\
        SecRule &REQUEST_COOKIES:e \"@eq 1\" \"id:4,phase:2,pass\"";
    let mut transaction = transaction(rules, None);
    transaction.request_header(b"Cookie", br#"c="1\047 or 1=1"; d="x; y"; e="plain""#);
    finish(&mut transaction, "");
    assert_eq!(transaction.matched_ids().collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn quotes_of_cookies_hide_nothing() {
    let rules = "SecRule REQUEST_COOKIES \"@beginsWith 1' or 1\" \"id:1,phase:2,pass\"";
    for value in [r#""1' or 1""#, r#""1' or 1=1x"#, r#""1\047 or 1""#, r#"""1' or 1""#, r#""a"\061\047 or 1""#] {
        let mut transaction = transaction(rules, None);
        transaction.request_header(b"Cookie", format!("a=b; c={value} ; d=e").as_bytes());
        finish(&mut transaction, "");
        let found = transaction.matched_ids().count();
        assert_eq!(found, usize::from(!value.starts_with("\"\"") && !value.starts_with("\"a")), "{value}");
    }
    let rules = "SecRule REQUEST_COOKIES \"@contains 1' or 1\" \"id:1,phase:2,pass\"";
    for value in [r#"""\061\047 or 1""#, r#""a"\061\047 or \1""#] {
        let mut transaction = transaction(rules, None);
        transaction.request_header(b"Cookie", format!("c={value}").as_bytes());
        finish(&mut transaction, "");
        assert_eq!(transaction.matched_ids().count(), 1, "{value}");
    }
}

#[test]
fn escapes_of_a_language_within_json_are_undone() {
    let value = r#"{"query": "{item(id: \"1\\u0027 \\u0055NION\")}"}"#;
    let rules = "SecRule ARGS \"@contains 1' UNION\" \"id:1,phase:2,pass\"";
    assert_eq!(body_ids(rules, "application/json", value), [1]);
    assert_eq!(body_ids(rules, "application/json", r#"{"path": "C:\\users\\x"}"#), [0; 0]);
}

#[test]
fn arguments_behind_semicolons_are_seen() {
    let rules = "SecRule ARGS_POST:q \"@streq 1 or 1\" \"id:1,phase:2,pass\"\n\
        SecRule &ARGS_POST \"@eq 3\" \"id:2,phase:2,pass\"";
    let form = "application/x-www-form-urlencoded";
    assert_eq!(body_ids(rules, form, "a=b;q=1+or+1"), [1]);
    assert_eq!(body_ids(rules, form, "a=1;2&b=x;y&c=z%3Bq=1+or+1"), [2], "no argument begins there");
}

/// What the limits left out of a request with this query and body.
fn left_out(rules: &str, query: &str, body: &str) -> Vec<String> {
    let mut transaction = transaction(rules, Some(body));
    transaction.request_line(b"POST", query.as_bytes(), b"HTTP/1.1");
    finish(&mut transaction, body);
    transaction.uninspected().iter().map(ToString::to_string).collect()
}

#[test]
fn a_chain_reports_matches_it_does_not_see() {
    let rule = "SecArgumentsLimit 5000\nSecRule ARGS \"@contains a\" \"id:1,phase:2,pass,chain\"\n";
    let first = format!("{rule}SecRule REQUEST_METHOD \"@streq GET\"");
    let list = format!("{rule}SecRule MATCHED_VARS \"@contains evil\"");
    let many = vec!["x=a"; 1500].join("&");
    assert_eq!(left_out(&first, "/", &many), [""; 0], "nothing looks for the rest");
    assert_eq!(left_out(&list, "/", &many[..3000]), [""; 0]);
    assert_eq!(left_out(&list, "/", &many), ["MATCHED_VARS is not inspected beyond values that matched 1000"]);
    let capture = "SecRule ARGS:y \"@rx ^b+\" \"id:1,phase:2,pass,capture,chain\"\nSecRule TX:0 \"@contains evil\"";
    let text = |length: usize| format!("y={}", "b".repeat(length));
    assert_eq!(left_out(capture, "/", &text(70_000)), ["TX is not inspected beyond bytes of a capture 65536"]);
    assert_eq!(left_out(capture, "/", &text(60_000)), [""; 0]);
    for captures in ["TX", "TX:/^[0-9]$/", "TX:/^0/"] {
        let capture = capture.replace("TX:0", captures);
        assert_eq!(left_out(&capture, "/", &text(70_000)), ["TX is not inspected beyond bytes of a capture 65536"]);
        assert_eq!(left_out(&capture, "/", &text(60_000)), [""; 0]);
    }
    assert_eq!(left_out("SecRule ARGS:y \"@rx ^b+\" \"id:1,phase:2,pass,capture\"", "/", &text(70_000)), [""; 0]);
    let argument = "SecRule ARGS:x \"@within %{REQUEST_BODY}\" \"id:1,phase:2,pass\"";
    let long = format!("y={}&x=a", "b".repeat(limits::EXPANSION_LENGTH));
    assert_eq!(left_out(argument, "/", &long), ["TX is not inspected beyond bytes of an operator's argument 262144"]);
    assert_eq!(left_out(argument, "/", &long[..1000]), [""; 0]);
}

#[test]
fn a_long_response_is_reported_and_refused_as_the_backends() {
    let answer = |rules: &str, open: bool| {
        let mut transaction = transaction(&format!("SecResponseBodyLimit 10\n{rules}"), None);
        if open {
            transaction.fail_open();
        }
        transaction.request_headers();
        transaction.request_body(b"", true);
        transaction.response_line(200, b"HTTP/1.1");
        transaction.response_header(b"Content-Type", b"text/html");
        transaction.response_headers();
        let refused = transaction.response_body(b"<p>hello, world</p>", true);
        let found = transaction.uninspected().first().map(|found| (found.to_string(), found.tolerated));
        (refused.map(|refused| refused.status), found)
    };
    let left = |tolerated| Some(("RESPONSE_BODY is not inspected beyond bytes 10".to_owned(), tolerated));
    assert_eq!(answer("SecResponseBodyLimitAction ProcessPartial", false), (None, left(true)));
    assert_eq!(answer("SecResponseBodyLimitAction Reject", false), (Some(502), left(false)));
    assert_eq!(answer("SecResponseBodyLimitAction Reject", true), (None, left(false)));
    assert_eq!(answer("SecResponseBodyLimit 100", false), (None, None));
}

#[test]
fn pairs_of_a_form_are_found_in_compressed_data() {
    let seen = |sent: &[u8], decoded: &[u8]| {
        let rules = "SecRule ARGS \"@contains or\" \"id:1,phase:2,pass\"\nSecRule ARGS \"@contains fine\" \"id:2,phase:2,pass\"";
        let mut transaction = transaction(rules, None);
        transaction.request_header(b"Content-Type", b"application/x-www-form-urlencoded");
        transaction.request_headers();
        transaction.request_body_as_sent(sent, decoded);
        transaction.request_body(decoded, true);
        transaction.matched_ids().collect::<Vec<_>>()
    };
    let noise: Vec<u8> = (0..200u8).map(|at| at.wrapping_mul(151) | 0x80).chain(1..8).collect();
    let around = |pair: &[u8]| [&noise, pair, &noise].concat();
    assert_eq!(seen(&around(b"\0&q='or 1=1#&"), b"a=fine"), [1, 2]);
    assert_eq!(seen(&around(b"\0&q='\xa0or\xa01=1#&"), b"a=fine"), [1, 2]);
    assert_eq!(seen(&around(b"\0&q='or 1=1#\0"), b"a=fine"), [1, 2]);
    assert_eq!(seen(&around(b"\0&q='or 1=1#&"), b"&q='or 1=1#&"), [1], "what is in both is in front of the rules once");
    assert_eq!(seen(&around(b"\0a"), b"a=fine"), [2]);
}

#[test]
fn stored_blocks_of_text_are_no_other_reading() {
    // Between long runs of text are short ones, so that the next long one is not near.
    let decoded = "a=words of plain text, some of them&b=\u{fc}ab\u{fc}cd\u{fc}ef\u{fc}gh\u{fc}ij\u{fc}"
        .repeat(12_000)
        .into_bytes();
    let mut sent = b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec();
    for block in decoded.chunks(0xffff) {
        let length = u16::try_from(block.len()).unwrap();
        sent.extend([&[0][..], &length.to_le_bytes(), &(!length).to_le_bytes(), block].concat());
    }
    let mut transaction = transaction("SecRule ARGS \"@contains xyz\" \"id:1,phase:2,pass\"", None);
    transaction.request_header(b"Content-Type", b"text/plain");
    transaction.request_headers();
    transaction.request_body_as_sent(&sent, &decoded);
    assert_eq!(transaction.uninspected().iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn what_names_a_foreign_character_set_is_a_body_error() {
    let form = "application/x-www-form-urlencoded";
    let refused = |content_type: &str, body: &str| seen(content_type, body).1;
    for parameter in ["charset=ibm037", "Charset=ibm037", "CHARSET=\"utf-16\"", "a=\"charset=utf-8\"; charset = utf-7"]
    {
        for kind in [form, "application/json", "text/xml", "text/plain", "multipart/form-data; boundary=b"] {
            let body = match kind {
                "application/json" => "{}".to_owned(),
                "text/xml" => "<a/>".to_owned(),
                "multipart/form-data; boundary=b" => part("", "text/plain", "v"),
                _ => "a=1".to_owned(),
            };
            assert!(refused(&format!("{kind}; {parameter}"), &body), "{kind}; {parameter}");
            assert!(refused(&format!("{kind}; {parameter}"), ""), "{kind}; {parameter} without a body");
            assert!(!refused(&format!("{kind}; Charset=\"UTF-8\""), &body), "{kind}");
        }
        assert!(refused(MULTIPART, &part("", &format!("text/plain; {parameter}"), "v")), "part {parameter}");
        assert!(
            refused(MULTIPART, &part("; filename=\"a\"", &format!("application/json; {parameter}"), "{}")),
            "{parameter}"
        );
        assert!(
            !refused(MULTIPART, &part("; filename=\"a\"", &format!("text/csv; {parameter}"), "v")),
            "a file is no text"
        );
    }
    for body in ["_charset_=ibm037&q=1", "q=1&_CHARSET_=utf-16", "%5fcharset_=utf-7"] {
        assert!(refused(form, body), "{body}");
    }
    assert!(refused(MULTIPART, &part("", "text/plain", "utf-7").replace("\"p\"", "\"_charset_\"")));
    assert!(!refused(form, "_charset_=windows-1252&_charset_=&charset=ibm037"));
    let mut transaction = transaction(crate::ENGINE_CONF, None);
    transaction.request_line(b"GET", b"/?_charset_=ibm037&q=1", b"HTTP/1.1");
    assert_eq!(finish(&mut transaction, "").map(|refused| refused.status), Some(400), "a query is a form as well");
}

/// Whether the rules see the text in a body of a type that no processor reads.
fn seen_undeclared(content_type: &str, body: &[u8]) -> bool {
    let rules = "SecRule ARGS|ARGS_NAMES|XML:/* \"@contains UNION SELECT\" \"id:1,phase:2,pass\"\n\
        SecRule ARGS \"@contains \\x00\" \"id:3,phase:2,pass\"";
    let mut transaction = transaction(&format!("{}\nSecRuleEngine DetectionOnly\n{rules}", crate::ENGINE_CONF), None);
    transaction.request_header(b"Content-Type", content_type.as_bytes());
    transaction.request_headers();
    transaction.request_body(body, true);
    assert_eq!((transaction.would_block(), transaction.uninspected()), (None, &[][..]), "{}", body.escape_ascii());
    transaction.matched_ids().any(|id| id == 1)
}

#[test]
fn each_pair_of_a_form_counts_whatever_is_around_it() {
    let long = format!("{}=1&", "n".repeat(200));
    let many = "a=1&".repeat(5000);
    for before in [
        "",
        "a&",
        "&",
        "?",
        "a:b=1&",
        "\u{e9}=1&",
        "~a=1&",
        "@a=1&",
        "a b=1&",
        "\u{feff}",
        "a=\u{1}&",
        "{\"a\":1}&",
        &long,
        &many,
    ] {
        for kind in ["text/plain", "application/octet-stream", "application/vnd.x"] {
            let body = format!("{before}q=1'+UNION+%53ELECT&r=1");
            assert!(seen_undeclared(kind, body.as_bytes()), "{kind} {before:.20}");
        }
    }
    assert!(seen_undeclared("text/plain", b"a=\xff&q=1' UNION SELECT"));
    assert!(seen_undeclared("text/plain", b"q=1'\xff UNION SELECT\x01"));
    let noise: Vec<u8> = (0..20_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    assert!(seen_undeclared("application/octet-stream", &[&noise, b"&q=1' UNION SELECT&".as_slice(), &noise].concat()));
    assert!(!seen_undeclared("application/octet-stream", &noise));
    assert!(!seen_undeclared("text/plain", b"if (a == b && c = d) UNION SELECT, dear all"), "prose has no pairs");
}

#[test]
fn documents_behind_each_other_are_read_as_such() {
    let line = "{\"id\": 1, \"text\": \"it's \\\"fine\\\"; really\"}\n";
    for count in [2, 3000] {
        let honest = line.repeat(count);
        assert!(!seen_undeclared("text/plain", honest.as_bytes()));
        assert!(
            !body_ids("SecRule ARGS \"@contains {\" \"id:1,phase:2,pass\"", "text/plain", &honest).contains(&1),
            "{count}"
        );
        let attack = format!("{honest}{{\"q\": \"1' \\u0055NION SELECT\"}}");
        assert!(seen_undeclared("text/plain", attack.as_bytes()), "{count}");
    }
}

#[test]
fn what_resembles_a_document_is_read_as_lenient_parsers_do() {
    let escaped = r#""q": "1' \u0055NION \x53ELECT""#;
    let deep = format!("{}{{{escaped}}}{}", "[".repeat(600), "]".repeat(600));
    for body in [
        &format!("{{{escaped},}}"),
        &format!("{{\"a\": 1}}\n{{{escaped}}}\n"),
        &format!("\u{feff}{{{escaped}}}"),
        &format!(")]}}',\n{{{escaped}}}"),
        &format!("// a comment\n{{{escaped}}}"),
        &format!("{{\"a\": NaN, {escaped}}}"),
        &format!("{{\"a\": 01, {escaped}}}"),
        &format!("{{\"a\": \"\u{1}\", {escaped}}}"),
        &format!("{{{escaped}}}\0"),
        &format!("{{{}}}", escaped.replace("1'", "1").replace('"', "'")),
        r#""1' \u0055NION SELECT""#,
        "{\"a\": \"1' UNION SELECT\",}",
        &deep,
        "<a><q>1' &#x55;NION SELECT</a>",
        "<q>1' &#85;NION SELECT</q><q/>",
        "1' &#85;NION<![CDATA[ ]]>SELECT</q>",
        "<a>1' UNION SELECT</b>",
    ] {
        assert!(seen_undeclared("text/plain", body.as_bytes()), "{body:.60}");
    }
    assert!(seen_undeclared("text/plain", &[b"{\"a\": \"\xff\", ", escaped.as_bytes(), b"}"].concat()));
    let head = "content-type: application/json\r\n";
    for (head, content) in [
        (head, format!("{{{escaped}}}")),
        ("content-type: text/plain\r\ncontent-transfer-encoding: base64\r\n", "MScgVU5JT04gU0VMRUNU".to_owned()),
        ("content-transfer-encoding: quoted-printable\r\n", "1' =55NION=20SELECT".to_owned()),
    ] {
        for preamble in ["", "a preamble\r\n", "\u{1}\r\n"] {
            let body = format!("{preamble}--b\r\n{head}\r\n{content}\r\n--b--\r\n");
            for kind in ["multipart/related; boundary=b", "multipart/mixed; boundary=\"b\"", "text/plain"] {
                assert!(seen_undeclared(kind, body.as_bytes()), "{kind} {head} {preamble:?}");
            }
        }
    }
}

#[test]
fn a_form_that_begins_like_a_document_is_read_as_one_too() {
    const FORM: &str = "application/x-www-form-urlencoded";
    for attack in [
        r#"{"q":"1' \u0055NION SELECT"}"#,
        r#"{"a":"x\/y","q":"\u0055NION \u0053ELECT"}"#,
        r#" [{"q":"\u0055NION SELECT"},]"#,
        "<a>&#x55;NION SELECT</a>",
        "<a b='&#85;NION SELECT'/>",
        "<p>&#85;NION SELECT<br>",
    ] {
        assert_eq!(seen(FORM, attack), (true, false), "{attack}");
    }
    for harmless in ["a={\"b\":1}", "{}", "[1]", "<a/>", "a=b&c=<d", "{not json", "<not xml"] {
        assert_eq!(seen(FORM, harmless), (false, false), "{harmless}");
    }
}
