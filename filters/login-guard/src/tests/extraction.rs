//! Which requests are logins, and what their users and passwords are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

fn fields() -> Fields {
    Fields::new(step().username_fields, step().password_fields)
}

fn body(content_type: &str, body: &[u8]) -> (String, String) {
    let found = fields().of_body(content_type.as_bytes(), body);
    let text =
        |value: Option<Vec<u8>>| value.map_or("-".to_owned(), |value| String::from_utf8_lossy(&value).into_owned());
    (text(found.user), text(found.password))
}

fn pair(user: &str, password: &str) -> (String, String) {
    (user.to_owned(), password.to_owned())
}

#[test]
fn forms_are_decoded() {
    let form = "application/x-www-form-urlencoded; charset=utf-8";
    assert_eq!(body(form, b"a=1&user=ada&password=s%26cret+x"), pair("ada", "s&cret x"));
    assert_eq!(body(form, b"%75ser=ada%40example.com&pwd=%zz%"), pair("ada@example.com", "%zz%"));
    assert_eq!(body(form, b"user=&user=ada&user=eve&pass"), pair("ada", "-"), "the first that has a value");
    assert_eq!(body("", b"email=ada&passwd=x"), pair("ada", "x"), "without a content type");
    assert_eq!(body(form, b"\xff=\xfe&&=&user=%ff"), pair("\u{fffd}", "-"));
}

#[test]
fn json_is_searched_at_any_depth() {
    let json = "application/vnd.api+json";
    assert_eq!(body(json, br#"{"data":{"attributes":{"email":"ada","password":"x"}}}"#), pair("ada", "x"));
    assert_eq!(
        body(json, br#"{"inner":{"user":"eve"},"user":"ada","pass":7}"#),
        pair("ada", "7"),
        "the outer one first"
    );
    assert_eq!(body("", br#" [{"identifier":"ada"},{"pwd":"x"}]"#), pair("ada", "x"));
    assert_eq!(body("text/plain", br#"{"account":"ada"}"#), pair("ada", "-"));
    for odd in [&b"{"[..], b"[]", b"null", b"", b"{\"user\":{}}", b"{\"user\":\"\xff\"}", &b"[".repeat(100_000)] {
        assert_eq!(body(json, odd), pair("-", "-"));
    }
    let wide = format!("{{\"a\":[{}],\"b\":[{{\"user\":\"ada\"}}]}}", vec!["{}"; 10_000].join(","));
    assert_eq!(body(json, wide.as_bytes()), pair("-", "-"), "no more than a bounded number of values is looked at");
}

#[test]
fn multipart_forms_are_read_but_for_their_files() {
    let part = |disposition: &str, value: &str| {
        format!("--b1\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{value}\r\n")
    };
    let all = [
        part("name=\"user\"; filename=\"a\"", "a file"),
        part("name=user", "ada"),
        part("name=\"password\"", "two\r\nlines"),
        "--b1--\r\n".to_owned(),
    ]
    .concat();
    for kind in ["multipart/form-data; boundary=b1", "Multipart/Form-Data; boundary=\"b1\""] {
        assert_eq!(body(kind, all.as_bytes()), pair("ada", "two\r\nlines"), "{kind}");
    }
    for (kind, odd) in [
        ("multipart/form-data", "--b1"),
        ("multipart/form-data; boundary=", "--"),
        ("multipart/form-data; boundary=b1", "--b1\r\n--b1\r\n\r\n--b1"),
    ] {
        assert_eq!(body(kind, odd.as_bytes()), pair("-", "-"));
    }
    let many = [part("name=x", "1").repeat(64), part("name=user", "ada")].concat();
    assert_eq!(body("multipart/form-data; boundary=b1", many.as_bytes()), pair("-", "-"));
}

#[test]
fn basic_authentication_is_read() {
    let basic = |value: &str| of_basic(&Headers::new(&[("authorization", value)]));
    let found = basic(&format!("basic {}", STANDARD.encode("ada:s:x"))).unwrap();
    assert_eq!((found.user.as_deref(), found.password.as_deref()), (Some(&b"ada"[..]), Some(&b"s:x"[..])));
    for wrong in ["", "Basic", "Basic %%%", "Bearer YTpi", &format!("Basic {}", STANDARD.encode("nocolon"))] {
        assert_eq!(basic(wrong), None, "{wrong}");
    }
}

#[test]
fn users_are_compared_without_case_and_space_and_long_values_by_their_beginning() {
    assert_eq!(credentials::normalized(b" Ada@Example.COM "), b"ada@example.com");
    assert_eq!(credentials::normalized("\u{c4}da".as_bytes()), "\u{e4}da".as_bytes());
    assert_eq!(credentials::normalized(b"\xffADA"), b"\xffada");
    let long = format!("user={}", "x".repeat(10_000));
    assert_eq!(body("", long.as_bytes()).0.len(), 256);
}

/// Whether a request waits for its body.
fn is_watched(step: &LoginGuardStep, method: &str, path: &str) -> bool {
    let host = FakeHost::at(NOW);
    let request = Request { method: method.into(), ..request(path, &[]) };
    let start = Start { request, route: b"", peer: b"192.0.2.1", node: &"node".into() };
    matches!(Run::new(&chain(step), start, &host).request_headers(true, &host), Flow::Buffer { limit: 65_536 })
}

#[test]
fn only_logins_wait_for_their_bodies() {
    for path in ["/login", "/LOGIN?next=/", "/x/../%6cogin"] {
        assert!(is_watched(&step(), "POST", path), "{path}");
    }
    for (method, path) in [("GET", "/login"), ("POST", "/"), ("POST", "/login2"), ("POST", "/app/login")] {
        assert!(!is_watched(&step(), method, path), "{method} {path}");
    }
    let put = LoginGuardStep { methods: vec!["PUT".into()], ..step() };
    assert!(is_watched(&put, "PUT", "/login") && !is_watched(&put, "POST", "/login"));
}

/// How many of twelve different logins it takes until credential stuffing is noticed, by a request and a body for each.
fn noticed_at(step: &LoginGuardStep, of: &dyn Fn(usize) -> (Request, Vec<u8>), response: &Response) -> Option<usize> {
    let (chain, host) = (chain(step), FakeHost::at(NOW));
    (1..=12).find(|number| {
        let (request, body) = of(*number);
        let told = send(&chain, &host, "192.0.2.1", (request, &body), response.clone());
        told.tags.contains(&"login:credential_stuffing".to_owned())
    })
}

#[test]
fn each_way_to_send_credentials_is_counted() {
    let json = |number: usize| {
        let body = format!(r#"{{"login":"u{number}","password":"p"}}"#).replace("\"p\"", &format!("\"p{number}\""));
        (request("/login", &[("content-type", "application/json")]), body.into_bytes())
    };
    let basic = |number: usize| {
        let value = format!("Basic {}", STANDARD.encode(format!("u{number}:p{number}")));
        (request("/login", &[("authorization", &value)]), Vec::new())
    };
    // A body that cannot be read counts by what it is.
    let unreadable = |number: usize| (request("/login", &[]), format!("<login>u{number}</login>").into_bytes());
    let padded = |number: usize| {
        (
            request("/login", &[("content-type", "application/json")]),
            format!("{{\"user\":\"u{number}\",\"x\":\"").into_bytes(),
        )
    };
    for of in [&json as &dyn Fn(usize) -> _, &basic, &unreadable, &padded] {
        assert_eq!(noticed_at(&step(), of, &status(401)), Some(10));
    }
    let same = |_| (request("/login", &[]), b"<login>u</login>".to_vec());
    assert_eq!(noticed_at(&step(), &same, &status(401)), None, "one and the same");
    let empty = |_| (request("/login", &[]), Vec::new());
    assert_eq!(noticed_at(&step(), &empty, &status(401)), None, "no credentials at all");
}

#[test]
fn failures_are_told_by_status_and_by_a_marker_in_the_redirect() {
    let form = |number: usize| (request("/login", &[]), format!("user=u{number}&pass=p{number}").into_bytes());
    for (code, expected) in
        [(401, Some(10)), (403, Some(10)), (200, None), (302, None), (500, None), (404, None), (429, None)]
    {
        assert_eq!(noticed_at(&step(), &form, &status(code)), expected, "{code}");
    }
    let step = LoginGuardStep { failure_statuses: vec![422], failure_marker: "error=1".into(), ..step() };
    assert_eq!(noticed_at(&step, &form, &status(422)), Some(10));
    assert_eq!(noticed_at(&step, &form, &status(401)), None);
    let to = |location| Response { headers: Headers::new(&[("location", location)]), ..status(303) };
    assert_eq!(noticed_at(&step, &form, &to("/login?error=1")), Some(10));
    assert_eq!(noticed_at(&step, &form, &to("/home")), None);
}

#[test]
fn a_marker_in_the_body_makes_a_failure() {
    let marked = LoginGuardStep { failure_marker: "Wrong password".into(), ..step() };
    let (chain, host) = (chain(&marked), FakeHost::at(NOW));
    for number in 0..10 {
        let form = format!("user=u{number}&pass=p{number}");
        let start = Start { request: request("/login", &[]), route: b"", peer: b"192.0.2.1", node: &"node".into() };
        let mut run = Run::new(&chain, start, &host);
        let _ = run.request_headers(true, &host);
        assert_eq!(run.request_body(Body { bytes: form.as_bytes(), complete: true }, &host), Flow::Continue);
        let page = Response { headers: Headers::new(&[("content-type", "text/html")]), ..status(200) };
        assert_eq!(run.response_headers(page, true, &host), Flow::Buffer { limit: 65_536 });
        let page = if number < 5 { &b"<p>Wrong password"[..] } else { b"<p>Wrong password, or user" };
        assert_eq!(run.response_body(Body { bytes: page, complete: true }, &host), Flow::Continue);
        run.finish(&host);
    }
    assert!(events(&host)[0].starts_with("credential stuffing"), "{:?}", events(&host));
}

#[test]
fn registrations_and_resets_count_apart_and_by_each_answer() {
    let endpoint = |pattern: &str, kind: EndpointKind| Endpoint { pattern: pattern.into(), kind: kind.into() };
    let endpoints = vec![
        endpoint("^/login$", EndpointKind::Login),
        endpoint("^/signup$", EndpointKind::Registration),
        endpoint("^/reset$", EndpointKind::Reset),
    ];
    let step = LoginGuardStep { endpoints, ..step() };
    for path in ["/signup", "/reset"] {
        let form = |number: usize| (request(path, &[]), format!("email=u{number}").into_bytes());
        assert_eq!(noticed_at(&step, &form, &status(200)), Some(10), "{path}");
        assert_eq!(noticed_at(&step, &form, &status(503)), None, "{path}");
    }
    let mixed = |number: usize| {
        let path = ["/login", "/signup", "/reset"][number % 3];
        (request(path, &[]), format!("email=u{number}").into_bytes())
    };
    assert_eq!(noticed_at(&step, &mixed, &status(401)), None);
}
