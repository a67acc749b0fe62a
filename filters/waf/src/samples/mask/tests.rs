use super::*;

const FORM: &[u8] = b"application/x-www-form-urlencoded";
const JSON: &[u8] = b"application/json";
const PARTS: &[u8] = b"multipart/form-data; boundary=\"b\"";
/// The number of a card, by its check digit.
const CARD: &str = "4111111111111111";

fn mask(target: &'static str) -> Mask<'static> {
    Mask::new(Target::read(target.as_bytes()).unwrap(), &[], &[])
}

fn body_of(target: &'static str, kind: &[u8], body: &str) -> String {
    String::from_utf8(mask(target).body(kind, body.as_bytes())).unwrap()
}

fn body(kind: &[u8], text: &str) -> String {
    body_of("ARGS:q", kind, text)
}

fn uri(text: &str) -> String {
    String::from_utf8(mask("ARGS:q").uri(text.as_bytes())).unwrap()
}

#[test]
fn parameters_are_masked_by_their_names() {
    for (sent, masked) in [
        ("/", "/"),
        ("/a?", "/a?"),
        ("/a?q=1", "/a?q=1"),
        ("/a?password=x&q=1", "/a?password=***&q=1"),
        ("/a?PassWord=x", "/a?PassWord=***"),
        ("/a?password[]=x&password[]=y", "/a?password[]=***&password[]=***"),
        ("/a?pass%77ord=x", "/a?pass%77ord=***"),
        ("/a?user%5Bpin%5D=1234", "/a?user%5Bpin%5D=***"),
        ("/a?password", "/a?password"),
        ("/a?password=&token", "/a?password=&token"),
        ("/a?=x&&=", "/a?=x&&="),
        ("/a?password=a=b;c", "/a?password=***"),
        ("/a?x=1;token=abc&q=1", "/a?x=1;token=***&q=1"),
        ("/a?x=1?token=abc", "/a?x=1?token=***"),
        ("/a?author=Ann", "/a?author=Ann"),
        ("/cart;jsessionid=ABC/items;v=2?q=1", "/cart;jsessionid=***/items;v=2?q=1"),
        ("/a?to=https%3A%2F%2Fb%2F%3Ftoken%3Dabc%26x%3D1", "/a?to=https://b/?token%3D***%26x%3D1"),
        (
            "/a?to=/b&x=%7B%22secret%22%3A%22s%22%2C%22n%22%3A1%7D",
            "/a?to=/b&x=%7B%22secret%22:%22***%22%2C%22n%22:1%7D",
        ),
        ("/a?x={\"secret\":\"s\"}", "/a?x={\"secret\":\"***\"}"),
        ("/a?q=1%27%20or%20password=%27x", "/a?q=1%27%20or%20password=%27x"),
        ("/a?q=1;password=x", "/a?q=1;password=***"),
        ("/a?q=%3Fa%3D1%26token%3Dabc", "/a?q=?a%3D1%26token%3D***"),
    ] {
        assert_eq!(uri(sent), masked, "{sent}");
    }
}

#[test]
fn forms_are_masked_whatever_their_type_says() {
    for kind in [FORM, b"text/plain", b"", b"Application/X-WWW-Form-Urlencoded; charset=utf-8"] {
        assert_eq!(body(kind, "a=1&password=x%26y&b=2"), "a=1&password=***&b=2");
        assert_eq!(body(kind, ""), "");
    }
    assert_eq!(body(b"text/plain", "a=1\r\npassword=x y\r\nb=2"), "a=1\r\npassword=***\r\nb=2");
    assert_eq!(body(JSON, "password=x&a=1"), "password=***&a=1");
    assert_eq!(body(PARTS, "password=x&a=1"), "password=***&a=1");
    assert_eq!(body(FORM, "{\"password\":\"x&y=z\",\"a\":1}"), "{\"password\":\"***\",\"a\":1}");
}

#[test]
fn members_of_documents_are_masked_and_the_document_stays_one() {
    for (sent, masked) in [
        (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
        (r#"{"password":"x","a":1}"#, r#"{"password":"***","a":1}"#),
        (r#"{"password" : "say \"x\", \\","a":1}"#, r#"{"password" : "***","a":1}"#),
        (r#"{"PASS\u0077ORD":"x"}"#, r#"{"PASS\u0077ORD":"***"}"#),
        (
            r#"{"pin":1234,"cvv":-1.5e3,"token":true,"secret":null}"#,
            r#"{"pin":"***","cvv":"***","token":true,"secret":null}"#,
        ),
        (r#"{"password":""}"#, r#"{"password":""}"#),
        (
            r#"{"token":{"type":"a","n":[1,"b",null]},"a":"c"}"#,
            r#"{"token":{"type":"***","n":["***","***",null]},"a":"c"}"#,
        ),
        (r#"{"tokens":["a","b"],"a":["token","b"]}"#, r#"{"tokens":["***","***"],"a":["token","b"]}"#),
        (r#"["x",":",{"password":"y"}]"#, r#"["x",":",{"password":"***"}]"#),
        (r#"{"a":"\"","password":"y"}"#, r#"{"a":"\"","password":"***"}"#),
        (r#"{"a":"b\\","password":"y"}"#, r#"{"a":"b\\","password":"***"}"#),
        (r#"{"a":"{\"password\":\"y\",\"n\":1}","b":2}"#, r#"{"a":"{\"password\":\"***\",\"n\":1}","b":2}"#),
        (
            r#"{"query":"mutation { login(user: \"u\", password: \"x y\", pin : \"1\") }"}"#,
            r#"{"query":"mutation { login(user: \"u\", password: \"***\", pin : \"***\") }"}"#,
        ),
        (r#"["a","{\"password\":\"x\"}"]"#, r#"["a","{\"password\":\"***\"}"]"#),
        (r#"{"a":"password:","b":"c"}"#, r#"{"a":"password:","b":"c"}"#),
        (r#"{"a":"https://b/?token=abc&x=1"}"#, r#"{"a":"https://b/?token=***&x=1"}"#),
        (r#"{"a":["https://b/?token=abc"]}"#, r#"{"a":["https://b/?token=***"]}"#),
        ("{\"password\":\n\t\"x\"}", "{\"password\":\n\t\"***\"}"),
        (r#"{"password":"cut of"#, r#"{"password":"***"#),
        (r#"{"password":"#, r#"{"password":"#),
        (r#"{"password""#, r#"{"password""#),
        (r#"{"q":"' or password='x"}"#, r#"{"q":"' or password='x"}"#),
    ] {
        let shown = body(JSON, sent);
        assert_eq!(shown, masked, "{sent}");
        if serde_json::from_str::<serde_json::Value>(sent).is_ok() {
            assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{shown}");
        }
    }
}

#[test]
fn parts_of_forms_are_masked_by_their_names() {
    let part =
        |head: &str, content: &str| format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n");
    let sent = [
        part("name=\"q\"", "a\r\nb"),
        part("name=\"password\"", "hunter2\r\nhunter3"),
        part("name=pin", "hunter4"),
        part("filename=\"a.txt\"; name=\"x\"\r\nContent-Type: text/plain", "name=\"password\" is a word"),
        part("name=\"x\";\r\n name*=utf-8''%74oken", "hunter5"),
        part("name=\"token\"", ""),
        part("name=\"json\"", "{\"secret\":\"hunter6\"}"),
        "--b--\r\n".to_owned(),
    ];
    let masked = [
        part("name=\"q\"", "a\r\nb"),
        part("name=\"password\"", "***"),
        part("name=pin", "***"),
        part("filename=\"a.txt\"; name=\"x\"\r\nContent-Type: text/plain", "name=\"password\" is a word"),
        part("name=\"x\";\r\n name*=utf-8''%74oken", "***"),
        part("name=\"token\"", ""),
        part("name=\"json\"", "{\"secret\":\"***\"}"),
        "--b--\r\n".to_owned(),
    ];
    for kind in [PARTS, b"text/plain", b"multipart/form-data", b"multipart/form-data; boundary=other"] {
        assert_eq!(body(kind, &sent.concat()), masked.concat(), "{}", kind.escape_ascii());
    }
    let cut = "--b\nContent-Disposition: form-data; name=\"password\"\n\nhunter2";
    assert_eq!(body(PARTS, cut), cut.replace("hunter2", "***"));
    let nested = "--b\r\nContent-Disposition: form-data; name=f\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n--i\r\n\
        Content-Disposition: form-data; name=secret\r\n\r\nhunter2\r\n--i--\r\n--b--\r\n";
    assert_eq!(body(PARTS, nested), nested.replace("hunter2", "***"));
}

#[test]
fn elements_and_attributes_are_masked_by_their_names() {
    for (sent, masked) in [
        ("<a><b>c</b></a>", "<a><b>c</b></a>"),
        (
            "<a><s:Password type='x'>y</s:Password><b>c</b></a>",
            "<a><s:Password type='***'>***</s:Password><b>c</b></a>",
        ),
        ("<a><token><v n=\"1\">x</v> </token><b>c</b></a>", "<a><token><v n=\"***\">***</v> </token><b>c</b></a>"),
        ("<a><pin/><pin></pin><b>c</b></a>", "<a><pin/><pin></pin><b>c</b></a>"),
        ("<a><secret><![CDATA[x<y]]></secret>z</a>", "<a><secret><![CDATA[***]]></secret>z</a>"),
        ("<a user=\"u\" password=\"x y\"/>", "<a user=\"u\" password=\"***\"/>"),
        ("<secret>cut", "<secret>***"),
    ] {
        assert_eq!(body(b"text/xml", sent), masked, "{sent}");
    }
}

#[test]
fn cookies_keep_the_value_that_matched() {
    for (target, sent, masked) in [
        ("REQUEST_COOKIES:a", "a=1; b=2;c=3", "a=1; b=***;c=***"),
        ("REQUEST_COOKIES:A", "a=1; a=2; b=3", "a=1; a=2; b=***"),
        ("ARGS:a", "a=1; b=2", "a=***; b=***"),
        ("ARGS:a", "a=; b; =c;; d=\"x; y\"", "a=; ***; =***;; d=***; ***"),
        ("REQUEST_COOKIES_NAMES:a", "a=1", "a=***"),
        ("REQUEST_COOKIES:a", "a; b", "a; ***"),
        ("REQUEST_COOKIES:sid", "sid=1", "sid=***"),
        ("ARGS:a", "", ""),
    ] {
        assert_eq!(mask(target).header(b"Cookie", sent.as_bytes()), masked.as_bytes(), "{sent}");
    }
}

#[test]
fn headers_are_masked_by_their_names_and_addresses_in_them_too() {
    for (name, sent, masked) in [
        ("authorization", "Bearer x", "***"),
        ("proxy-authorization", "Basic x", "***"),
        ("x-api-key", "x", "***"),
        ("api-key", "x", "***"),
        ("x-auth-token", "x", "***"),
        ("x-my-token", "x", "***"),
        ("x-password-hint", "x", "***"),
        ("x-session-id", "x", "***"),
        ("x-client-secret", "", ""),
        ("referer", "https://a/?token=abc&q=1", "https://a/?token=***&q=1"),
        ("x-data", "a=1; session=abc d", "a=1; session=*** d"),
        ("x-data", "password=\"a\\\"b c\", x=1", "password=\"***\", x=1"),
        ("user-agent", "curl/8.0 (x; y)", "curl/8.0 (x; y)"),
        ("accept", "text/html;q=0.9", "text/html;q=0.9"),
    ] {
        assert_eq!(mask("ARGS:a").header(name.as_bytes(), sent.as_bytes()), masked.as_bytes(), "{name}: {sent}");
    }
}

#[test]
fn numbers_of_cards_are_masked_unless_they_matched() {
    for (sent, masked) in [
        (CARD, "***"),
        ("n=4111111111111112", "n=4111111111111112"),
        ("n=411111111111", "n=411111111111"),
        ("n=4111 1111 1111 1111!", "n=***!"),
        ("n=4111-1111-1111-1111", "n=***"),
        ("n=3782 822463 10005", "n=***"),
        ("n=%414111111111111111", "n=%41***"),
        ("n=0000000000000000", "n=0000000000000000"),
        ("50% 4111111111111111", "50% ***"),
    ] {
        assert_eq!(body(b"text/plain", sent), masked, "{sent}");
    }
    assert_eq!(body(JSON, r#"{"a":4111111111111111,"b":[-4111111111111111.5]}"#), r#"{"a":"***","b":["***"]}"#);
    assert_eq!(
        body(JSON, r#"{"a":"x:4111111111111111,\"50%","b":4111111111111111}"#),
        r#"{"a":"x:***,\"50%","b":"***"}"#
    );
    assert_eq!(uri("/cards/4111111111111111?a=4111111111111111"), "/cards/***?a=***");
    let cards = cards(b"card 4111 1111 1111 1111, 5555555555554445");
    let mut matched = Mask::new(Target::read(b"ARGS:q").unwrap(), &cards, &[]);
    assert_eq!(
        matched.body(FORM, b"q=4111+1111+1111+1111&x=4111111111111111&y=5555555555554444"),
        b"q=4111+1111+1111+1111&x=4111111111111111&y=***"
    );
}

#[test]
fn a_value_is_what_matched_unless_it_holds_secrets() {
    let value = |target: &'static str, sent: &str, kind: &[u8], content: &str, matched: &str| {
        let mut mask = Mask::new(Target::read(target.as_bytes()).unwrap(), &[], &[]);
        let (uri, body) = (mask.uri(sent.as_bytes()), mask.body(kind, content.as_bytes()));
        mask.header(b"referer", b"https://a/?token=hunter2");
        let shown = mask.shown([sent.as_bytes(), &uri], [content.as_bytes(), &body]);
        let mut mask = Mask::new(Target::read(target.as_bytes()).unwrap(), &[], &[]);
        let value = shown.unwrap_or_else(|| mask.value(matched.as_bytes()));
        String::from_utf8(value).unwrap()
    };
    assert_eq!(value("ARGS:q", "/?q=A'%20or", FORM, "", "a' or"), "a' or");
    assert_eq!(value("ARGS:password", "/?password=x", FORM, "", "x"), "***");
    assert_eq!(value("ARGS:rest_of_body", "/", FORM, "", "x"), "***");
    assert_eq!(value("QUERY_STRING", "/?q=1&token=hunter2", FORM, "", "q=1token=hunter2"), "/?q=1&token=***");
    assert_eq!(value("QUERY_STRING", "/?q=A", FORM, "", "q=a"), "q=a");
    assert_eq!(value("REQUEST_BODY", "/", FORM, "Q=1&token=hunter2", "q=1&token=hunter2"), "Q=1&token=***");
    assert_eq!(value("XML:/*", "/", b"text/xml", "<a><pin>hunter2</pin></a>", "hunter2"), "<a><pin>***</pin></a>");
    assert_eq!(
        value("ARGS:q", "/?q=https%3A//b%3Ftoken%3Dhunter2", FORM, "", "b?token hunter2"),
        "https://b?token=***"
    );
    assert_eq!(value("ARGS:q", "/?q=1;token=hunter2", FORM, "", "1;token=hunter2"), "1;token=***");
    assert_eq!(value("ARGS:p", "/", FORM, "p=%7B%22pin%22%3A%22hunter2%22%7D", "pin hunter2"), "{\"pin\":\"***\"}");
    assert_eq!(value("ARGS:json.p", "/", JSON, r#"{"p":"{\"pin\":\"hunter2\"}"}"#, "pin hunter2"), "{\"pin\":\"***\"}");
    assert_eq!(value("REQUEST_HEADERS:Referer", "/", FORM, "", "token hunter2"), "https://a/?token=***");
}

#[test]
fn names_that_rules_sanitise_are_secrets() {
    let sanitised = [b"note".to_vec()];
    let mut mask = Mask::new(Target::read(b"ARGS:q").unwrap(), &[], &sanitised);
    assert_eq!(mask.uri(b"/?Note=x&notes=y"), b"/?Note=***&notes=y");
    assert_eq!(mask.header(b"note", b"x"), b"***");
    assert_eq!(mask.body(JSON, br#"{"note":"x"}"#), br#"{"note":"***"}"#);
}

#[test]
fn messages_show_no_secret() {
    assert_eq!(mask("ARGS:pin").message(b"SQL injection"), b"SQL injection");
    assert_eq!(mask("ARGS:q").message(b"in /?token=x"), b"in /?token=***");
}

#[test]
fn any_bytes_are_masked_and_grow_little() {
    let words: [&[u8]; 20] = [
        b"\"",
        b"password",
        b":",
        b"=",
        b"&",
        b"{",
        b"}",
        b"[",
        b"<token",
        b">",
        b"</token>",
        b"\\",
        b"\r\n",
        b"--b",
        b"%",
        b"41",
        b" ",
        b"4111111111111111",
        b"Content-Disposition: a; name=pin\r\n\r\n",
        b"\xff\0",
    ];
    let mut seed = 7_u64;
    let mut next = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 40).unwrap()
    };
    for round in 0..3_000 {
        let text: Vec<u8> = (0..round % 40).flat_map(|_| words[next() % words.len()].to_vec()).collect();
        for kind in [FORM, JSON, PARTS, b"text/xml", b""] {
            let once = mask("ARGS:q").body(kind, &text);
            assert!(once.len() <= 10 * text.len() + 16, "{}", text.escape_ascii());
        }
        mask("ARGS:q").uri(&text);
        mask("REQUEST_COOKIES:a").header(b"cookie", &text);
        mask("REQUEST_HEADERS:a").header(b"a", &text);
    }
}

/// A reading that went back would not end here.
#[test]
fn long_texts_are_read_once() {
    let patterns: [&[u8]; 12] = [
        b"\"",
        b"\"a",
        b"\\\"",
        b"\"token\":[",
        b"=",
        b"token=",
        b"<",
        b"<token>",
        b"--content-a\n",
        b"1 ",
        b"4111-",
        b"a\":\"",
    ];
    for pattern in patterns {
        let text = pattern.repeat(300_000 / pattern.len());
        for kind in [FORM, JSON, PARTS, b"text/xml", b""] {
            assert!(!mask("ARGS:q").body(kind, &text).is_empty());
        }
        assert!(!mask("REQUEST_COOKIES:a").header(b"cookie", &text).is_empty());
    }
}

#[test]
fn binary_bodies_stay_as_they_are() {
    let all: Vec<u8> = (0..=255).collect();
    for kind in [b"application/octet-stream".as_slice(), b"", JSON] {
        assert_eq!(mask("ARGS:q").body(kind, &all), all);
    }
}
