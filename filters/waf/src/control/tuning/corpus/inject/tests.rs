//! Each kind of input: the bytes that change, and that the engine finds the payload there.

use std::sync::Arc;

use seclang::{ENGINE_CONF, Engine, Source, Transaction, TransactionStart};

use super::super::attacks;
use super::*;
use crate::control::tuning::exclusion::selects;

fn request(uri: &str, headers: &[(&str, &str)], body: &str) -> SampledRequest {
    let header = |(name, value): &(&str, &str)| SampledHeader {
        name: name.as_bytes().to_vec(),
        value: value.as_bytes().to_vec(),
    };
    let mut headers: Vec<SampledHeader> = [("host", "shop.example")].iter().chain(headers).map(header).collect();
    if !body.is_empty() {
        headers.push(header(&("content-length", &body.len().to_string())));
    }
    SampledRequest {
        method: if body.is_empty() { "GET" } else { "POST" }.to_owned(),
        uri: uri.as_bytes().to_vec(),
        protocol: "HTTP/1.1".to_owned(),
        headers,
        body: body.as_bytes().to_vec(),
        cut: false,
        masked: false,
    }
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
const MULTIPART: (&str, &str) = ("content-type", "multipart/form-data; boundary=b");
const XML: (&str, &str) = ("content-type", "application/soap+xml");

const PARTS: &str = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
    --b\r\ncontent-disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\ntext\r\n\
    --b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n2\r\n--b--\r\n";

fn target(text: &str) -> Target {
    Target::parse(text.as_bytes()).unwrap()
}

fn changed(request: &SampledRequest, to: &str, payload: &str) -> Option<SampledRequest> {
    inject(request, &target(to), payload.as_bytes())
}

/// The URI and the body after the injection.
fn sent(request: &SampledRequest, to: &str, payload: &str) -> Option<(String, String)> {
    let changed = changed(request, to, payload)?;
    let length = header(&changed, b"content-length").map(|value| String::from_utf8(value.to_vec()).unwrap());
    assert_eq!(length.unwrap_or_else(|| "0".to_owned()), changed.body.len().to_string(), "{to}");
    Some((String::from_utf8(changed.uri).unwrap(), String::from_utf8(changed.body).unwrap()))
}

fn uri(request: &SampledRequest, to: &str, payload: &str) -> String {
    let (uri, body) = sent(request, to, payload).unwrap();
    assert_eq!(body.as_bytes(), request.body, "{to}");
    uri
}

fn body(request: &SampledRequest, to: &str, payload: &str) -> Option<String> {
    let (uri, body) = sent(request, to, payload)?;
    assert_eq!(uri.as_bytes(), request.uri, "{to}");
    Some(body)
}

fn value(request: &SampledRequest, to: &str, payload: &str, name: &str) -> String {
    let changed = changed(request, to, payload).unwrap();
    String::from_utf8(header(&changed, name.as_bytes()).unwrap().to_vec()).unwrap()
}

#[test]
fn parameters_of_the_query_are_replaced_or_added() {
    let base = request("/p?a=1&b=2&a=3&&c", &[], "");
    for (to, expected) in [
        ("ARGS:a", "/p?a=%27x&b=2&a=%27x&&c"),
        ("ARGS:A", "/p?a=%27x&b=2&a=%27x&&c"),
        ("ARGS_GET:c", "/p?a=1&b=2&a=3&&c=%27x"),
        ("ARGS:d e", "/p?a=1&b=2&a=3&&c&d%20e=%27x"),
        ("ARGS_GET:d", "/p?a=1&b=2&a=3&&c&d=%27x"),
        ("ARGS", "/p?a=%27x&b=%27x&a=%27x&&c=%27x"),
        ("ARGS_NAMES", "/p?a=1&b=2&a=3&&c&%27x=1"),
        ("ARGS_GET_NAMES", "/p?a=1&b=2&a=3&&c&%27x=1"),
        ("QUERY_STRING", "/p?%27x"),
        ("REQUEST_LINE", "/p?%27x"),
    ] {
        assert_eq!(uri(&base, to, "'x"), expected, "{to}");
    }
    assert_eq!(uri(&request("/p?a%5b%5D=1", &[], ""), "ARGS:a[]", "x"), "/p?a%5b%5D=x");
    assert_eq!(uri(&request("/p?", &[], ""), "ARGS:a", "&="), "/p?a=%26%3D");
    assert_eq!(uri(&request("/p", &[], ""), "ARGS", "x"), "/p?q=x");
    assert_eq!(changed(&base, "ARGS_NAMES:a", "x"), None, "a name that is given is not another one");
}

#[test]
fn payloads_need_not_be_text() {
    let changed = inject(&request("/p?a=1", &[], ""), &target("ARGS:a"), b"\xff\0a+ ").unwrap();
    assert_eq!(changed.uri, b"/p?a=%FF%00a%2B%20");
    let form = request("/p", &[FORM], "a=1");
    assert_eq!(inject(&form, &target("ARGS:a"), b"\xff").unwrap().body, b"a=%FF");
    assert_eq!(inject(&request("/p", &[JSON], "{\"a\":1}"), &target("ARGS:json.a"), b"\xff"), None);
    assert_eq!(inject(&request("/p", &[XML], "<a/>"), &target("XML:/*"), b"\xff"), None);
    let parts = request("/p", &[MULTIPART], PARTS);
    let changed = inject(&parts, &target("ARGS:a"), b"\xff\r\n").unwrap();
    assert!(changed.body.windows(7).any(|window| window == b"\xff\r\n\r\n--"));
}

#[test]
fn paths_get_a_segment() {
    let base = request("/a/b?c=1", &[], "");
    for to in ["REQUEST_FILENAME", "REQUEST_BASENAME", "REQUEST_URI", "REQUEST_URI_RAW", "PATH_INFO", "REQUEST_PATH"] {
        assert_eq!(uri(&base, to, "x/../y"), "/a/b/x%2F..%2Fy?c=1", "{to}");
    }
    assert_eq!(uri(&request("/", &[], ""), "REQUEST_FILENAME", "x y"), "/x%20y");
}

#[test]
fn targets_of_requests_get_the_payload_and_keep_their_folded_path() {
    let sent = |uri: &str, (to, path): (&str, &str), spot, payload: &str| {
        let changed = inject_at(&request(uri, &[], ""), (&target(to), path), spot, payload.as_bytes())?;
        Some(String::from_utf8(changed.uri).unwrap())
    };
    let some = |uri: &str| Some(uri.to_owned());
    let shop = |spot, payload| sent("/shop?a=1", ("REQUEST_URI_RAW", "/shop"), spot, payload);
    assert_eq!(shop(Spot::Query, "..%2f|x y#"), some("/shop?..%252f%7Cx%20y%23"));
    assert_eq!(shop(Spot::RawQuery, "..%2f|x y#"), some("/shop?..%2f|x%20y%23"));
    assert_eq!(shop(Spot::RawQuery, "abc"), None, "it is the same");
    assert_eq!(shop(Spot::Path, "<x>"), some("/shop;%3Cx%3E?a=1"));
    assert_eq!(shop(Spot::Segment, "<x>"), some("/shop/%3Cx%3E?a=1"));
    for (uri, to, path, expected) in [
        ("/items/7?a", "REQUEST_FILENAME", "/items/{id}", "/items/%3Cx?a"),
        ("//items/7/", "REQUEST_FILENAME", "/items/{id}", "//items/%3Cx/"),
        ("/items;s=1/7;v=2/edit", "REQUEST_FILENAME", "/items/{id}/edit", "/items;s=1/%3Cx/edit"),
        ("/items/7/edit", "REQUEST_BASENAME", "/items/{id}/edit", "/items/7/edit;%3Cx"),
        ("/files/7.pdf", "REQUEST_BASENAME", "/files/{id}.pdf", "/files/%3Cx.pdf"),
        ("/users/ann/7", "REQUEST_URI", "/users/{slug}/{id}", "/users/ann/%3Cx"),
        ("/users/ann", "REQUEST_URI", "/users/{slug}", "/users/%3Cx"),
        ("/", "REQUEST_FILENAME", "/", "/;%3Cx"),
        ("/a/", "REQUEST_FILENAME", "/a", "/a;%3Cx/"),
    ] {
        assert_eq!(sent(uri, (to, path), Spot::Path, "<x"), some(expected), "{uri}");
    }
}

#[test]
fn requests_with_a_method_write_programs() {
    let sent = |uri: &str, method: &str, path: &str, file: &str| {
        let to = target(&format!("REQUEST_METHOD:{method}"));
        let changed = inject_at(&request(uri, &[], ""), (&to, path), Spot::Written, file.as_bytes()).unwrap();
        let to = header(&changed, b"destination").map(|value| String::from_utf8(value.to_vec()).unwrap());
        (changed.method, String::from_utf8(changed.uri).unwrap(), to)
    };
    let expected =
        |method: &str, uri: &str, to: Option<&str>| (method.to_owned(), uri.to_owned(), to.map(str::to_owned));
    assert_eq!(sent("/f/1", "PUT", "/f/{id}", "a.j%73p"), expected("PUT", "/f/a.j%73p", None));
    assert_eq!(sent("/f", "PUT", "/f", "a.jsp"), expected("PUT", "/f;a.jsp", None));
    assert_eq!(sent("/f/1", "MOVE", "/f/{id}", "/a.jsp"), expected("MOVE", "/f/1", Some("/a.jsp")));
}

/// An exclusion says nothing about attacks on a path on which it does not hold.
#[test]
fn all_attacks_but_those_with_a_segment_more_are_on_the_path_of_an_exclusion() {
    let samples = [
        ("/", "/"),
        ("/shop?a=1", "/shop"),
        ("/shop;s=1/cart/?a=1", "/shop/cart"),
        ("/items/7", "/items/{id}"),
        ("/items/7/edit?a", "/items/{id}/edit"),
        ("/files/7.pdf", "/files/{id}.pdf"),
        ("/users/ann/posts/7", "/users/{slug}/posts/{id}"),
        ("/caf%C3%A9/7/", "/caf%C3%A9/{id}"),
    ];
    let targets = [
        "ARGS:a",
        "QUERY_STRING",
        "REQUEST_LINE",
        "REQUEST_URI",
        "REQUEST_URI_RAW",
        "REQUEST_FILENAME",
        "REQUEST_BASENAME",
        "REQUEST_HEADERS:x-a",
        "REQUEST_COOKIES:a",
        "REQUEST_METHOD:PUT",
        "REQUEST_METHOD:MOVE",
    ];
    for (to, (uri, path)) in targets.iter().flat_map(|to| samples.iter().map(move |sample| (to, *sample))) {
        let (to, base) = (target(to), request(uri, &[], ""));
        let mut placed = 0;
        for spot in spots(&to) {
            let payloads: Vec<&String> = match spot {
                Spot::Written => attacks().iter().flat_map(|attack| &attack.writes).collect(),
                _ => attacks().iter().filter_map(|attack| attack.payload.as_ref()).collect(),
            };
            for payload in payloads {
                // Rules see an escaped slash in a path as the end of a segment.
                let is_other_path = *spot == Spot::Segment || *spot == Spot::Path && payload.contains('/');
                let Some(changed) = inject_at(&base, (&to, path), *spot, payload.as_bytes()) else { continue };
                assert!(is_other_path || selects(path, &changed.uri), "{to} {path} {spot:?} {payload}: {changed:?}");
                placed += usize::from(!is_other_path);
            }
        }
        assert!(placed > if to.method().is_some() { 5 } else { 100 }, "{to} {path}: {placed}");
    }
}

#[test]
fn form_bodies_are_changed_with_their_length() {
    let base = request("/p?a=0", &[FORM], "a=1&b=2&a=3");
    assert_eq!(sent(&base, "ARGS:a", "'"), Some(("/p?a=%27".to_owned(), "a=%27&b=2&a=%27".to_owned())));
    assert_eq!(body(&base, "ARGS:b", "' OR 1").unwrap(), "a=1&b=%27%20OR%201&a=3");
    assert_eq!(body(&base, "ARGS_POST:a", "x").unwrap(), "a=x&b=2&a=x");
    assert_eq!(body(&base, "ARGS_POST:c", "x").unwrap(), "a=1&b=2&a=3&c=x");
    assert_eq!(body(&base, "ARGS_POST_NAMES", "<").unwrap(), "a=1&b=2&a=3&%3C=1");
    assert_eq!(body(&base, "REQUEST_BODY", "a=<").unwrap(), "a%3D%3C");
    assert_eq!(changed(&request("/p?a=1", &[], ""), "ARGS_POST:a", "x"), None, "there is no body");
}

#[test]
fn values_of_json_are_found_by_the_names_of_the_engine() {
    let text = r#"{"z":1,"items":[{"name":"a","n":2.50},{"name":"b"}],"o":{"0":"c","":null},"a.b":[],"last":true}"#;
    let base = request("/p", &[JSON], text);
    for (to, expected) in [
        ("ARGS:json.z", text.replacen(":1,", ":\"x\",", 1)),
        ("ARGS:json.items.array_1.name", text.replace("\"b\"", "\"x\"")),
        ("ARGS:json.items.1.name", text.replace("\"b\"", "\"x\"")),
        ("ARGS:JSON.Items.Array_0.Name", text.replace("\"a\",\"n\"", "\"x\",\"n\"")),
        ("ARGS:json.o.0", text.replace("\"c\"", "\"x\"")),
        ("ARGS:json.o.empty-key", text.replace("null", "\"x\"")),
        ("ARGS:json.a.b", text.replace("[]", "\"x\"")),
        ("REQUEST_BODY", "\"x\"".to_owned()),
    ] {
        // Numbers are written in their shortest form.
        assert_eq!(body(&base, to, "x").unwrap(), expected.replace("2.50", "2.5"), "{to}");
    }
    let all = r#"{"z":"x","items":[{"name":"x","n":"x"},{"name":"x"}],"o":{"0":"x","":"x"},"a.b":[],"last":"x"}"#;
    assert_eq!(body(&base, "ARGS", "x").unwrap(), all);
    assert_eq!(uri(&base, "ARGS:json.items.2.name", "x"), "/p?json.items.2.name=x");
    assert_eq!(uri(&base, "ARGS:json.items", "x"), "/p?json.items=x");
    assert_eq!(body(&request("/p", &[JSON], " [1] "), "ARGS:json.0", "\"\n\u{e9}").unwrap(), "[\"\\\"\\n\u{e9}\"]");
    assert_eq!(body(&request("/p", &[JSON], "1"), "ARGS:json", "x").unwrap(), "\"x\"");
}

#[test]
fn parts_of_multipart_bodies_are_changed() {
    let base = request("/p", &[MULTIPART], PARTS);
    let written = PARTS.replace("content-disposition", "Content-Disposition");
    for (to, expected) in [
        ("ARGS:a", written.replace("\r\n\r\n1\r\n", "\r\n\r\n<x\"\r\n").replace("\r\n\r\n2\r\n", "\r\n\r\n<x\"\r\n")),
        (
            "ARGS_POST",
            written.replace("\r\n\r\n1\r\n", "\r\n\r\n<x\"\r\n").replace("\r\n\r\n2\r\n", "\r\n\r\n<x\"\r\n"),
        ),
        (
            "REQUEST_BODY",
            written.replace("\r\n\r\n1\r\n", "\r\n\r\n<x\"\r\n").replace("\r\n\r\n2\r\n", "\r\n\r\n<x\"\r\n"),
        ),
        ("FILES:f", written.replace("x.txt", "<x\\\"")),
        ("FILES", written.replace("x.txt", "<x\\\"")),
        ("FILES_NAMES", written.replace("name=\"f\"", "name=\"<x\\\"\"")),
        ("FILES_TMP_CONTENT:f", written.replace("\r\ntext\r\n", "\r\n<x\"\r\n")),
        ("MULTIPART_PART_HEADERS:f", written.replace("text/plain\r\n", "text/plain\r\nX-Note: <x\"\r\n")),
    ] {
        assert_eq!(body(&base, to, "<x\"").unwrap(), expected, "{to}");
    }
    let added = "--b\r\nContent-Disposition: form-data; name=\"c\"\r\n\r\nx\r\n--b--";
    assert_eq!(body(&base, "ARGS_POST:c", "x").unwrap(), written.replace("--b--", added));
    assert_eq!(uri(&base, "ARGS:f", "x"), "/p?f=x", "the content of a file is no parameter");
    for (to, payload) in [
        ("FILES:a", "x"),
        ("FILES", "a\r\nb"),
        ("FILES_NAMES:f", "x"),
        ("MULTIPART_NAME:f", "x"),
        ("MULTIPART_FILENAME:x.txt", "x"),
        ("FILES_TMP_CONTENT:a", "x"),
        ("ARGS:a", "--b"),
        ("ARGS", "a\r\n--b--"),
    ] {
        assert_eq!(changed(&base, to, payload), None, "{to}");
    }
}

#[test]
fn documents_hold_the_payload_alone() {
    let base = request("/p", &[XML], "<a><b>1</b></a>");
    assert_eq!(body(&base, "XML:/*", "<x&\"'\t").unwrap(), "<a>&lt;x&amp;&quot;'&#9;</a>");
    assert_eq!(body(&base, "XML://@*", "1\n").unwrap(), "<a b=\"1&#10;\"/>");
    assert_eq!(body(&base, "REQUEST_BODY", "x").unwrap(), "<a>x</a>");
    assert_eq!(changed(&base, "XML:/*", "\0"), None);
    assert_eq!(changed(&request("/p", &[FORM], "a=1"), "XML:/*", "x"), None, "that body is no document");
    assert_eq!(uri(&base, "ARGS:a", "x"), "/p?a=x");
}

#[test]
fn other_bodies_are_taken_as_a_whole() {
    let mut base = request("/p", &[("content-type", "text/plain")], "abc");
    base.cut = true;
    assert_eq!(body(&base, "REQUEST_BODY", "a=<").unwrap(), "a=<");
    assert!(!changed(&base, "REQUEST_BODY", "a").unwrap().cut);
    assert_eq!(changed(&request("/p", &[], ""), "REQUEST_BODY", "a"), None, "there is no body");
}

#[test]
fn lengths_are_those_of_the_new_body() {
    let mut base = request("/p", &[FORM, ("Content-Length", "7")], "a=1");
    let lengths = |request: &SampledRequest| {
        let lengths = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(b"content-length"));
        lengths.map(|header| String::from_utf8(header.value.clone()).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(lengths(&changed(&base, "ARGS:a", "four").unwrap()), ["6", "6"]);
    assert_eq!(lengths(&changed(&base, "ARGS:b", "four").unwrap()), ["7", "3"], "the body stays");
    base.headers.retain(|header| !header.name.eq_ignore_ascii_case(b"content-length"));
    assert_eq!(lengths(&changed(&base, "ARGS:a", "four").unwrap()), ["6"]);
    base.headers.push(SampledHeader { name: b"transfer-encoding".to_vec(), value: b"chunked".to_vec() });
    assert_eq!(lengths(&changed(&base, "ARGS:a", "four").unwrap()), [""; 0]);
}

#[test]
fn bodies_that_cannot_be_read_get_nothing() {
    for (kind, text) in [
        (JSON, "{\"a\":"),
        (JSON, "{\"a\":1} x"),
        (JSON, "{\"a\":\"\u{0}\"}"),
        (MULTIPART, "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1"),
        (MULTIPART, "--b\r\nContent-Disposition: form-data; name=a=\"a\"\r\n\r\n1\r\n--b--\r\n"),
        (("content-type", "multipart/form-data"), PARTS),
    ] {
        let base = request("/p?a=1", &[kind], text);
        assert_eq!(changed(&base, "ARGS:a", "x"), None, "{text}");
        assert_eq!(changed(&base, "ARGS_POST:a", "x"), None, "{text}");
        assert_eq!(changed(&base, "FILES:a", "x"), None, "{text}");
        assert!(changed(&base, "ARGS_GET:a", "x").is_some(), "{text}");
    }
    let json = request("/p", &[JSON], "{\"a\":1}");
    assert_eq!(changed(&json, "ARGS_POST:json.a", "x"), None, "it is in ARGS alone");
    assert_eq!(changed(&json, "ARGS_POST_NAMES", "x"), None, "it is in ARGS_NAMES alone");
}

#[test]
fn headers_are_replaced_or_added() {
    let base = request("/p", &[("user-agent", "curl"), ("x-a", "1"), ("x-a", "2"), FORM], "a=1");
    assert_eq!(value(&base, "REQUEST_HEADERS:User-Agent", " <x> ", "user-agent"), "<x>");
    let twice = changed(&base, "REQUEST_HEADERS:X-A", "x").unwrap();
    let all: Vec<&[u8]> =
        twice.headers.iter().filter(|header| header.name == b"x-a").map(|header| header.value.as_slice()).collect();
    assert_eq!(all, [b"x", b"x"]);
    assert_eq!(value(&base, "REQUEST_HEADERS:X-New", "x", "x-new"), "x");
    let whole = changed(&base, "REQUEST_HEADERS", "x").unwrap();
    assert_eq!((header(&whole, b"user-agent").unwrap(), header(&whole, b"referer").unwrap()), (&b"x"[..], &b"x"[..]));
    assert_eq!(header(&whole, b"host").unwrap(), b"shop.example");
    assert_eq!(inject(&base, &target("REQUEST_HEADERS:X-A"), b"\xff").unwrap().headers[2].value, b"\xff");
    for (to, payload) in [
        ("REQUEST_HEADERS:X-A", "a\r\nb"),
        ("REQUEST_HEADERS:X-A", "a\0"),
        ("REQUEST_HEADERS:X-A", " "),
        ("REQUEST_HEADERS:X A", "a"),
        ("REQUEST_HEADERS:Content-Length", "7"),
        ("REQUEST_HEADERS:Transfer-Encoding", "chunked"),
        ("REQUEST_HEADERS_NAMES", "a"),
        ("REQUEST_METHOD", "a"),
        ("REQUEST_PROTOCOL", "a"),
        ("RESPONSE_BODY", "a"),
        ("TX:a", "a"),
    ] {
        assert_eq!(changed(&base, to, payload), None, "{to}");
    }
}

#[test]
fn cookies_are_replaced_or_added() {
    let base = request("/p", &[("cookie", "a=1; b=2;A=3; c")], "");
    for (to, payload, expected) in [
        ("REQUEST_COOKIES:a", "1' OR 1=1", "a=1' OR 1=1; b=2;A=1' OR 1=1; c"),
        ("REQUEST_COOKIES:c", "x", "a=1; b=2;A=3; c=x"),
        ("REQUEST_COOKIES:d", "x", "a=1; b=2;A=3; c; d=x"),
        ("REQUEST_COOKIES", "x", "a=x; b=x;A=x; c=x"),
        ("REQUEST_COOKIES:b", ";+ \n%", "a=1; b=%3B%2B%20%0A%25;A=3; c"),
        ("REQUEST_COOKIES_NAMES", "<x>", "a=1; b=2;A=3; c; <x>=1"),
        ("REQUEST_HEADERS:Cookie", "x=1", "x=1"),
    ] {
        assert_eq!(value(&base, to, payload, "cookie"), expected, "{to}");
    }
    let none = request("/p", &[], "");
    assert_eq!(value(&none, "REQUEST_COOKIES:a", "x", "cookie"), "a=x");
    assert_eq!(value(&none, "REQUEST_COOKIES", "x", "cookie"), "id=x");
    for (to, payload) in
        [("REQUEST_COOKIES_NAMES", "a=b"), ("REQUEST_COOKIES_NAMES", "a;b"), ("REQUEST_COOKIES_NAMES:a", "x")]
    {
        assert_eq!(changed(&none, to, payload), None, "{to}");
    }
    let twice = request("/p", &[("cookie", "a=1"), ("cookie", "a=2; b=3")], "");
    let both: Vec<Vec<u8>> =
        changed(&twice, "REQUEST_COOKIES:a", "x").unwrap().headers.into_iter().skip(1).map(|h| h.value).collect();
    assert_eq!(both, [b"a=x".to_vec(), b"a=x; b=3".to_vec()]);
}

/// The transaction of the request, with the engine's own configuration and a rule.
fn run(engine: &Arc<Engine>, request: &SampledRequest) -> Transaction {
    let start = TransactionStart {
        unique_id: b"1".to_vec(),
        now_millis: 1_700_000_000_000,
        random: 1,
        client_addr: b"192.0.2.1".to_vec(),
        client_port: 40_000,
        server_addr: b"192.0.2.2".to_vec(),
        server_port: 443,
    };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    transaction.request_line(request.method.as_bytes(), &request.uri, request.protocol.as_bytes());
    for header in &request.headers {
        transaction.request_header(&header.name, &header.value);
    }
    assert!(transaction.request_headers().is_none(), "{request:?}");
    assert!(transaction.request_body(&request.body, true).is_none(), "{request:?}");
    transaction
}

fn engine(rule: &str) -> Arc<Engine> {
    let sources = [Source::new("engine.conf", ENGINE_CONF), Source::new("rule", rule)];
    let program = seclang::compile(&sources, waf_presets::data_files()).unwrap();
    Arc::new(Engine::new(program).unwrap())
}

#[test]
fn the_engine_finds_the_payload_at_the_target() {
    const PAYLOAD: &str = "1'\";<b>&=%41 x";
    // What is decoded before the rule is decoded once more by it; what is not, is not.
    const FOUND: &str = "@rx 1'\\\";<b>&=(?:A|%41) x";
    let query = request("/p/q?a=1&b=2", &[("cookie", "a=1; b=2")], "");
    let form = request("/p", &[FORM], "a=1&b=2");
    let json = request("/p", &[JSON], r#"{"items":[{"name":"a"},{"name":"b"}]}"#);
    let parts = request("/p", &[MULTIPART], PARTS);
    let xml = request("/p", &[XML], "<a/>");
    let text = request("/p", &[("content-type", "text/plain")], "abc");
    for (base, to) in [
        (&query, "ARGS:a"),
        (&query, "ARGS:new"),
        (&query, "ARGS"),
        (&query, "ARGS_GET:b"),
        (&query, "ARGS_NAMES"),
        (&query, "QUERY_STRING"),
        (&query, "REQUEST_LINE"),
        (&query, "REQUEST_FILENAME"),
        (&query, "REQUEST_BASENAME"),
        (&query, "REQUEST_URI"),
        (&query, "REQUEST_URI_RAW"),
        (&query, "PATH_INFO"),
        (&query, "REQUEST_HEADERS"),
        (&query, "REQUEST_HEADERS:User-Agent"),
        (&query, "REQUEST_COOKIES:a"),
        (&query, "REQUEST_COOKIES"),
        (&form, "ARGS:a"),
        (&form, "ARGS_POST:new"),
        (&form, "ARGS_POST_NAMES"),
        (&form, "REQUEST_BODY"),
        (&json, "ARGS:json.items.array_1.name"),
        (&json, "ARGS:json.items.1.name"),
        (&json, "ARGS"),
        (&parts, "ARGS:a"),
        (&parts, "ARGS_POST:new"),
        (&parts, "FILES:f"),
        (&parts, "MULTIPART_FILENAME"),
        (&parts, "MULTIPART_NAME"),
        (&parts, "FILES_NAMES"),
        (&parts, "FILES_TMP_CONTENT:f"),
        (&parts, "MULTIPART_PART_HEADERS:f"),
        (&parts, "REQUEST_BODY"),
        (&xml, "XML:/*"),
        (&xml, "XML://@*"),
        (&text, "REQUEST_BODY"),
    ] {
        let engine = engine(&format!("SecRule {to} \"{FOUND}\" \"id:1,phase:2,pass,t:none,t:urlDecodeUni\""));
        let finds = |request| run(&engine, request).matched_ids().any(|id| id == 1);
        let changed = changed(base, to, PAYLOAD).unwrap();
        assert!(!finds(base) && finds(&changed), "{to}: {changed:?}");
    }
}

#[test]
fn every_payload_arrives_as_it_is() {
    let engine = engine("");
    let query = request("/p/q?a=1", &[], "");
    let form = request("/p", &[FORM], "a=1");
    let json = request("/p", &[JSON], r#"{"a":[{"b":1}]}"#);
    let parts = request("/p", &[MULTIPART], PARTS);
    for payload in attacks().iter().filter_map(|attack| attack.payload.as_deref()) {
        for (base, to, name) in [
            (&query, "ARGS:a", "a"),
            (&form, "ARGS:a", "a"),
            (&json, "ARGS", "json.a.array_0.b"),
            (&parts, "ARGS", "a"),
        ] {
            let found = run(&engine, &changed(base, to, payload).unwrap()).variable(b"ARGS", name.as_bytes());
            assert_eq!(found.as_deref(), Some(payload.as_bytes()), "{to}");
        }
        let found = changed(&query, "REQUEST_COOKIES:a", payload).map(|changed| run(&engine, &changed));
        assert!(found.and_then(|found| found.variable(b"REQUEST_COOKIES", b"a")).is_some(), "{payload}");
    }
}
