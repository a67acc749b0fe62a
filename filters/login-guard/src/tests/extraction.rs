//! Which requests are logins, and what their users and passwords are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

fn fields() -> Fields {
    Fields::new(step().username_fields, step().password_fields)
}

fn body(content_type: &str, body: &[u8]) -> (String, String) {
    let mut found = Credentials::default();
    fields().read_body(content_type.as_bytes(), false, body, &mut found);
    (text(&found.users), text(&found.passwords))
}

/// All values, one behind another.
fn text(values: &[Vec<u8>]) -> String {
    if values.is_empty() { "-".to_owned() } else { String::from_utf8_lossy(&values.join(&0)).into_owned() }
}

fn pair(user: &str, password: &str) -> (String, String) {
    (user.to_owned(), password.to_owned())
}

#[test]
fn forms_are_decoded() {
    let form = "application/x-www-form-urlencoded; charset=utf-8";
    assert_eq!(body(form, b"a=1&user=ada&password=s%26cret+x"), pair("ada", "s&cret x"));
    assert_eq!(body(form, b"%75ser=ada%40example.com&pwd=%zz%"), pair("ada@example.com", "%zz%"));
    assert_eq!(body(form, b"user=&user=ada&user=eve&user=ada&pass"), pair("ada\0eve", "-"), "all that have a value");
    assert_eq!(body("", b"email=ada&passwd=x"), pair("ada", "x"), "without a content type");
    assert_eq!(body(form, b"\xff=\xfe&&=&user=%ff"), pair("\u{fffd}", "-"));
}

#[test]
fn json_is_searched_at_any_depth() {
    let json = "application/vnd.api+json";
    assert_eq!(body(json, br#"{"data":{"attributes":{"email":"ada","password":"x"}}}"#), pair("ada", "x"));
    assert_eq!(body(json, br#"{"inner":{"user":"eve"},"user" : "ada","pass":7}"#), pair("eve\0ada", "7"));
    assert_eq!(body(json, br#"{"\u0075ser":"a\"d\u0061","a":"user","pwd":-1.5e3}"#), pair("a\"da", "-1.5e3\0-1500"));
    assert_eq!(body("", br#" [{"identifier":"ada"},{"pwd":"x"}]"#), pair("ada", "x"));
    assert_eq!(body("text/plain", br#"{"account":"ada"}"#), pair("ada", "-"));
    for odd in [&b"{"[..], b"[]", b"null", b"", b"{\"user\":{}}", b"{\"user\":\"\xff\"}", &b"[".repeat(100_000)] {
        assert_eq!(body(json, odd), pair("-", "-"));
    }
    let wide = format!("{{{},\"user\":\"ada\"}}", vec!["\"a\":1"; 5_000].join(","));
    assert_eq!(body(json, wide.as_bytes()), pair("-", "-"), "no more than a bounded number of names is looked at");
}

#[test]
fn multipart_forms_are_read_but_for_their_files() {
    let part = |disposition: &str, value: &str| {
        format!("--b1\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{value}\r\n")
    };
    let all = [
        part("name=\"avatar\"; filename=\"a\"", "a file"),
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
fn only_fields_of_the_configuration_are_read() {
    let fields = Fields::new(vec!["nick".into()], vec!["word".into()]);
    let read = |body: &[u8]| {
        let mut found = Credentials::default();
        fields.read_body(b"", false, body, &mut found);
        pair(&text(&found.users), &text(&found.passwords))
    };
    assert_eq!(read(b"nick=ada&word=x&user=eve&password=y"), pair("ada", "x"));
    assert_eq!(read(b"+Nick+=ada&user=eve&password=y"), pair("ada", "-"), "in any case");
    for name in ["a[nick]", "a[b][nick]", "nick[]", "nick[0]", "a[nick][]", "nick%00x", "a%5Bnick%5D"] {
        assert_eq!(read(format!("{name}=ada").as_bytes()), pair("ada", "-"), "{name}");
    }
    for other in ["nick[x]", "nick]", "anick", "nick.x", "[]", "]"] {
        assert_eq!(read(format!("{other}=ada").as_bytes()), pair("-", "-"), "{other}");
    }
    let dotted = Fields::new(vec!["user_name".into()], vec![]);
    for name in ["user.name", "user+name", "user[name"] {
        let mut found = Credentials::default();
        dotted.read_body(b"", false, format!("{name}=ada").as_bytes(), &mut found);
        assert_eq!(found.users, [b"ada"], "PHP reads {name} so");
    }
}

#[test]
fn basic_authentication_and_the_query_are_read() {
    let head = |value: &str| fields().of_head(&request("/login", &[("authorization", value)]));
    let found = head(&format!("basic {}", STANDARD.encode("ada:s:x")));
    assert_eq!((found.users, found.passwords), (vec![b"ada".to_vec()], vec![b"s:x".to_vec()]));
    for none in ["", "Basic", "Basic  ", "Bearer YTpi"] {
        assert_eq!(head(none), Credentials::default(), "{none}");
    }
    // Without padding, with bits behind the end, with other letters: as lenient backends read it.
    for lenient in ["Basic YWRhOnM6eA", "Basic YWRhOnM6eB==", "BASIC YWRh OnM6eA=="] {
        let found = head(lenient);
        assert_eq!((found.users, found.passwords), (vec![b"ada".to_vec()], vec![b"s:x".to_vec()]), "{lenient}");
    }
    for separator in ["\t", "  ", " \t", "", "x", "\u{a0}", " ,", ","] {
        let found = head(&format!("bAsIc{separator}{}", STANDARD.encode("ada:s:x")));
        let has_it = found.users.contains(&b"ada".to_vec()) && found.passwords.contains(&b"s:x".to_vec());
        assert!(has_it || separator.contains(','), "{separator:?}: {found:?}");
        assert!(found != Credentials::default(), "{separator:?}");
    }
    // Several headers are one list.
    let several = head(&format!("Basic {},Basic {}", STANDARD.encode("x:x"), STANDARD.encode("ada:s:x")));
    assert!(several.odd && several.users.contains(&b"ada".to_vec()), "{several:?}");
    assert_eq!(head("Digest username=\"Basic\", realm=\"a\""), Credentials::default());
    for odd in ["Basic %%%", &format!("Basic {}", STANDARD.encode("nocolon"))] {
        let found = head(odd);
        assert!(found.odd && found.users.len() == 1, "{odd}: {found:?}");
    }
    let query = fields().of_head(&request("/login?user=ada&pass=x", &[]));
    assert_eq!((query.users, query.passwords), (vec![b"ada".to_vec()], vec![b"x".to_vec()]));
}

#[test]
fn users_are_compared_without_case_and_space_and_long_values_by_their_beginning() {
    let account = |user: &[u8]| accounts(user).remove(0);
    assert_eq!(account(b" Ada@Example.COM "), b"ada@example.com");
    assert_eq!(account(b"\xffADA"), b"\xffada");
    assert_eq!(account("\u{ff41}d\u{200d}a\u{ad}".as_bytes()), b"ada");
    let long = |end: &str| account(format!("{}{end}", "x".repeat(10_000)).as_bytes());
    assert_ne!(long("a"), long("b"), "all of it counts");
    assert!(long("a").len() < 1024);
    assert_eq!(body("", format!("user={}ada", "+".repeat(300)).as_bytes()).0, "ada", "blanks are no value");
}

/// The accounts of a user, by basic authentication, which leaves its bytes as they are.
fn accounts(user: &[u8]) -> Vec<Vec<u8>> {
    let value = format!("Basic {}", STANDARD.encode([user, b":p"].concat()));
    fields().of_head(&request("/login", &[("authorization", &value)])).users
}

#[test]
fn spellings_of_a_user_that_databases_compare_alike_are_one_account() {
    for (spellings, account) in [
        // Composed and decomposed, with other accents, without one.
        (&["jos\u{e9}", "jose\u{301}", "JOS\u{c9}", "jos\u{e8}", "jose\u{301}\u{302}\u{301}", "jose"][..], "jose"),
        // Compatibility forms.
        (&["\u{ff56}\u{ff49}\u{ff43}tim", "\u{1d42f}\u{2170}c\u{1d42d}im", "v\u{2071}ctim"], "victim"),
        (&["\u{24d0}d\u{1d5ba}", "\u{aa}da", "a\u{2146}a", "\u{ff41}\u{ff44}\u{ff41}"], "ada"),
        (&["\u{fb03}x\u{2460}", "FFIX1"], "ffix1"),
        // Case that has more than two letters.
        (&["stra\u{df}e", "STRASSE", "stra\u{1e9e}e", "\u{17f}trasse"], "strasse"),
        (&["\u{131}da", "\u{130}DA", "ida"], "ida"),
        (&["\u{3c3}\u{3c2}", "\u{3a3}\u{3a3}"], "\u{3c3}\u{3c3}"),
        (&["s\u{f8}ren", "S\u{d8}REN"], "soren"),
        (&["\u{30cf}\u{309a}", "\u{30d1}", "\u{ff8a}"], "\u{30cf}"),
        // What is not shown.
        (
            &["a\u{200b}d\u{fe0f}a", "a\u{202e}da\u{e0041}", "\u{34f}ada\u{2066}", "a\u{1}d\u{7f}a", "\u{feff}ada"],
            "ada",
        ),
        // Marks around letters.
        (
            &[
                "a\u{20dd}d\u{20de}a\u{20e0}",
                "ad\u{488}\u{489}a",
                "\u{1abe}ada",
                "a\u{20e2}da\u{20e4}",
                "ada\u{a670}\u{a672}",
            ],
            "ada",
        ),
        // White space around it, however it is made.
        (&["\u{3000}ada\u{a0}\u{200b} \u{2003}", "\tada\n", "\u{ad} ada"], "ada"),
        // What differs stays apart.
        (&["a da"], "a da"),
        (&["\u{430}da"], "\u{430}da"),
        (&["\u{915}\u{94d}\u{937}"], "\u{915}\u{94d}\u{937}"),
        (&["\u{ac00}"], "\u{1100}\u{1161}"),
    ] {
        for spelling in spellings {
            assert_eq!(String::from_utf8_lossy(&accounts(spelling.as_bytes())[0]), account, "{spelling:?}");
        }
    }
    // What no spelling of a user is may be as long as it likes.
    let padded = |pad: &str| accounts(["vic", &pad.repeat(5_000), "tim"].concat().as_bytes());
    for pad in ["\u{200b}", "\u{301}", "\u{202a}\u{ad}"] {
        assert_eq!(padded(pad), [b"victim"], "{pad:?}");
    }
    assert!(padded("\u{fdfa}")[0].len() <= 256, "eighteen characters of one");
    assert_eq!(accounts(b"victim\0x"), [&b"victimx"[..], b"victim"], "backends cut it off there, or leave it out");
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
    assert!(is_watched(&step(), "post", "/login") && is_watched(&put, "Put", "/login"), "in any case");
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
    let tab = |number: usize| {
        let value = format!("Basic\t{}", STANDARD.encode(format!("u{number}:p{number}")));
        (request("/login", &[("authorization", &value)]), Vec::new())
    };
    let lower = |number: usize| {
        let form = format!("user=u{number}&password=p{number}");
        (Request { method: b"post".to_vec(), ..request("/login", &[]) }, form.into_bytes())
    };
    for of in [&json as &dyn Fn(usize) -> _, &basic, &tab, &lower, &unreadable, &padded] {
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
        [(401, Some(10)), (403, Some(10)), (200, None), (302, None), (308, None), (500, None), (404, None), (429, None)]
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
    let endpoint = |pattern: &str, kind: EndpointKind| Endpoint {
        pattern: pattern.into(),
        kind: kind.into(),
        ..Endpoint::default()
    };
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

#[test]
fn values_that_only_the_guard_takes_for_the_user_hide_nothing() {
    type Way = fn(usize) -> (Request, Vec<u8>);
    let ways: [(&str, Way); 30] = [
        ("the first of two fields", |n| {
            (request("/login", &[]), format!("user=x&password=x&user=u{n}&password=p{n}").into())
        }),
        ("another name", |n| (request("/login", &[]), format!("user=x&pass=x&email=u{n}").into())),
        ("behind many fields", |n| {
            (request("/login", &[]), format!("user=x&{}user=u{n}&password=p{n}", "a=1&".repeat(300)).into())
        }),
        ("behind many users", |n| {
            let decoys: String = (0..20).map(|decoy| format!("user=d{decoy}&")).collect();
            (request("/login", &[]), format!("{decoys}user=u{n}").into())
        }),
        ("the query", |n| (request(&format!("/login?user=u{n}&password=p{n}"), &[]), b"user=x&password=x".to_vec())),
        ("beside basic authentication", |n| {
            let value = format!("Basic {}", STANDARD.encode("x:x"));
            (request("/login", &[("authorization", &value)]), format!("user=u{n}&password=p{n}").into())
        }),
        ("a name twice in an object", |n| {
            let body = format!(r#"{{"user":"u{n}","password":"p{n}","user":"x","password":"x"}}"#);
            (request("/login", &[("content-type", "application/json")]), body.into())
        }),
        ("behind the end of the JSON", |n| {
            let body = format!(r#"{{"user":"x","password":"x"}}&user=u{n}&password=p{n}"#);
            (request("/login", &[("content-type", "application/json")]), body.into())
        }),
        ("a part that only some read", |n| {
            let head = "Content-Disposition: form-data; name=user";
            let body = format!("--b\r\n{head}\r\n\r\nx\r\n--b\n{head}\n\nu{n}\n--b--");
            (request("/login", &[("content-type", "multipart/form-data; boundary=b")]), body.into())
        }),
        ("behind many fields of the query", |n| {
            let query = format!("/login?{}user=u{n}&password=p{n}", "&".repeat(256));
            (request(&query, &[]), b"user=x&password=x".to_vec())
        }),
        ("a name in another case", |n| {
            let body = format!(r#"{{"user":"x","password":"x","User":"u{n}","PA\u017f\u017fWORD":"p{n}"}}"#);
            (request("/login", &[("content-type", "application/json")]), body.into())
        }),
        ("a name behind a blank", |n| {
            (request("/login", &[]), format!("user=x&password=x&+user=u{n}&%20password=p{n}").into())
        }),
        ("JSON that is a form as well", |n| {
            let body = format!(r#"{{"a":"&user=x&password=x&","user":"u{n}","password":"p{n}"}}"#);
            (request("/login", &[("content-type", "application/x-www-form-urlencoded")]), body.into())
        }),
        ("a body that is not read, beside the query", |n| {
            let body = format!("<login><user>u{n}</user></login>").into_bytes();
            (request("/login?user=x&password=x", &[("content-type", "application/xml")]), body)
        }),
        ("a body with a content coding", |n| {
            let coded = [("content-encoding", "gzip")];
            (request("/login", &coded), format!("user=x&password=x&u{n}").into())
        }),
        ("a part that is a file for some", |n| {
            let part =
                |head: &str, value: String| format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n");
            let body = [
                part("name=\"user\"; x=\"; filename=a\"", format!("u{n}")),
                part("name=\"password\"; filename=\"\"", format!("p{n}")),
                part("name=\"user\"", "x".into()),
                "--b--".into(),
            ];
            (request("/login", &[("content-type", "multipart/form-data; boundary=b")]), body.concat().into())
        }),
        ("parts behind what looks like the end", |n| {
            let part = |name: &str, value: &str| {
                format!("--b\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}\r\n")
            };
            let body = [part("junk", "a--b--c"), part("user", &format!("u{n}")), "--b--".into()].concat();
            (request("/login?user=x&password=x", &[("content-type", "multipart/form-data; boundary=b")]), body.into())
        }),
        ("a list of users", |n| {
            let body = format!(r#"{{"user":"x","password":"x","email":["u{n}"]}}"#);
            (request("/login", &[("content-type", "application/json")]), body.into())
        }),
        ("pairs that a semicolon separates", |n| {
            (request("/login", &[]), format!("user=x;user=u{n}&password=x;password=p{n}").into())
        }),
        ("JSON that only lenient parsers read", |n| {
            let body = format!(r#"{{"user":"x","password":"x","user":"u{n}","a":NaN,}}"#);
            (request("/login", &[("content-type", "application/json")]), body.into())
        }),
        ("JSON in UTF-16", |n| {
            let body = format!(r#"{{"user":"x","password":"x","user":"u{n}"}}"#);
            (request("/login", &[]), body.encode_utf16().flat_map(u16::to_le_bytes).collect())
        }),
        ("another form than the content type says", |n| {
            (request("/login", &[("content-type", "multipart/form-data")]), format!("user=u{n}&password=p{n}").into())
        }),
        ("a form whose type ends at a comma", |n| {
            let body = format!(r#"{{"user":"x","password":"x","a":"&user=u{n}&password=p{n}&"}}"#);
            (request("/login", &[("content-type", "application/x-www-form-urlencoded,x")]), body.into())
        }),
        ("parts whose type ends at a comma", |n| parts("multipart/form-data,x; boundary=b", n)),
        ("parts of another type", |n| parts("multipart/mixed; boundary=b", n)),
        ("a form in a comment of XML", |n| xml("application/soap+xml", n)),
        ("the same without a type", |n| xml("", n)),
        ("the same with the type of a form", |n| xml("application/x-www-form-urlencoded", n)),
        ("two types", |n| {
            let body = format!("a=&user=x&password=x&z=\r\n--b\r\n{DISPOSITION} name=user\r\n\r\nu{n}\r\n--b--");
            let types = [
                ("content-type", "application/x-www-form-urlencoded"),
                ("content-type", "multipart/form-data;boundary=b"),
            ];
            (request("/login", &types), body.into())
        }),
        ("basic authentication behind a tab", |n| {
            let value = format!("Basic\t{}", STANDARD.encode(format!("u{n}:p{n}")));
            (request("/login", &[("authorization", &value)]), b"user=x&password=x".to_vec())
        }),
    ];
    for (name, of) in ways {
        assert_eq!(noticed_at(&step(), &of, &status(401)), Some(10), "{name}");
    }
}

const DISPOSITION: &str = "Content-Disposition: form-data;";

/// A form in front of the parts with the user.
fn parts(content_type: &str, n: usize) -> (Request, Vec<u8>) {
    let part = |name: &str, value: String| format!("--b\r\n{DISPOSITION} name={name}\r\n\r\n{value}\r\n");
    let (user, password) = (part("user", format!("u{n}")), part("password", format!("p{n}")));
    let body = format!("user=x&password=x&z=\r\n{user}{password}--b--\r\n");
    (request("/login", &[("content-type", content_type)]), body.into())
}

fn xml(content_type: &str, n: usize) -> (Request, Vec<u8>) {
    let body = format!("<!-- &user=x&password=x& --><login><user>u{n}</user><password>p{n}</password></login>");
    let types = [("content-type", content_type)];
    (request("/login", if content_type.is_empty() { &[] } else { &types }), body.into())
}

/// Boundaries, headers of parts and line ends that backends read in different ways, behind parts with a user that is always the same.
#[test]
fn parts_that_backends_read_in_different_ways_hide_nothing() {
    let decoys = format!("--a\r\n{DISPOSITION} name=user\r\n\r\nx\r\n--a\r\n{DISPOSITION} name=pass\r\n\r\nx\r\n");
    for content_type in [
        "multipart/form-data; boundary=a; boundary=b",
        "multipart/form-data; boundary=b; boundary=a",
        "multipart/form-data; boundary=a; boundary*=utf-8''b",
        "multipart/form-data; boundary=a; boundary*0=b",
        "multipart/form-data; xboundary=b; boundary=a",
        "multipart/form-data; boundary=\"a\"; x=\"; boundary=b\"",
        "multipart/form-data; boundary=a, multipart/form-data; boundary=b",
    ] {
        let of = |n: usize| {
            let body = format!("{decoys}--a--\r\n--b\r\n{DISPOSITION} name=user\r\n\r\nu{n}\r\n--b--\r\n");
            (request("/login", &[("content-type", content_type)]), body.into_bytes())
        };
        assert_eq!(noticed_at(&step(), &of, &status(401)), Some(10), "{content_type}");
        let other = |n: usize| {
            let body = format!(
                "--b\r\n{DISPOSITION} name=z\r\n\r\n{decoys}--a--\r\n--b\r\n{DISPOSITION} name=user\r\n\r\nu{n}\r\n--b--"
            );
            (request("/login", &[("content-type", content_type)]), body.into_bytes())
        };
        assert_eq!(noticed_at(&step(), &other, &status(401)), Some(10), "{content_type}, inside");
    }
    for part in [
        "\r\nContent-Disposition: form-data; name=\"z\"; name=\"username\"\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=\"username\"; name=\"z\"\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=\"z\"; name*=utf-8''user%6eame\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name*0=\"user\"; name*1=\"name\"\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=z; name=z; name=z; name=z; name=username\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=z\r\nContent-Disposition: form-data; name=username\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=username\r\ncontent-disposition : form-data; name=z\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=z;\r\n name=username\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=z\r\n;name=username\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name='username'\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=\"user\\name\"\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=\"=?utf-8?q?username?=\"\r\n\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=\"username\"\n\nVALUE\r\n\r\n",
        "\r\nContent-Disposition: form-data; name=\"username\"\r\rVALUE\r\n\r\n",
        "\r\nContent-Disposition: form-data; name=username\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\nx\r\nVALUE\r\n",
        "\r\nContent-Disposition: form-data; name=z\r\n\r\n\r--a\r\nContent-Disposition: form-data; name=username\r\n\r\nVALUE\r\n",
        " \r\nContent-Disposition: form-data; name=username\r\n\r\nVALUE\r\n",
        "--\r\n--a\r\nContent-Disposition: form-data; name=username\r\n\r\nVALUE\r\n",
    ] {
        let of = |n: usize| {
            let body = format!("{decoys}--a{}--a--\r\n", part.replace("VALUE", &format!("u{n}")));
            (request("/login", &[("content-type", "multipart/form-data; boundary=a")]), body.into_bytes())
        };
        assert_eq!(noticed_at(&step(), &of, &status(401)), Some(10), "{part:?}");
    }
}

/// What ordinary clients send is read in one way: the user counts, and not the body.
#[test]
fn bodies_of_ordinary_clients_are_not_odd() {
    let is_odd = |content_type: &str, body: &[u8]| {
        let mut found = Credentials::default();
        fields().read_body(content_type.as_bytes(), false, body, &mut found);
        assert_eq!(text(&found.users), "ada", "{content_type} {body:?}");
        found.odd || found.hides
    };
    let (form, json) = (&b"user=ada&password=x"[..], &br#"{"user":"ada","password":"x"}"#[..]);
    for (content_type, body) in [
        ("", form),
        ("application/x-www-form-urlencoded", form),
        ("application/x-www-form-urlencoded; charset=UTF-8", form),
        ("application/x-www-form-urlencoded;charset=\"iso-8859-1\"", form),
        ("application/x-www-form-urlencoded ;charset=windows-1252", form),
        ("text/plain;charset=UTF-8", json),
        ("application/json", json),
        ("application/json;odata=verbose; charset=utf-8", json),
        ("application/vnd.api+json", json),
        ("application/x-amz-json-1.1", json),
        ("application/json", b"\xef\xbb\xbf{\"user\":\"ada\",\"password\":\"x\"}"),
    ] {
        assert!(!is_odd(content_type, body), "{content_type}");
    }
    for (boundary, quote) in [("----WebKitFormBoundary7MA4YWxkTrZu0gW", ""), ("=-_x=", "\""), ("a", "")] {
        let part = |head: &str, value: &str| format!("--{boundary}\r\n{head}\r\n\r\n{value}\r\n");
        let parts = [
            part("Content-Disposition: form-data; name=\"user\"", "ada"),
            part(
                "content-disposition: form-data; name=\"password\"\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Transfer-Encoding: 8bit",
                "x\n\ny\r\n\r\n",
            ),
            part(
                "Content-Disposition: form-data; name=\"f\"; filename=\"\u{e9}.png\"; filename*=utf-8''%c3%a9.png\r\nContent-Type: image/png",
                "\0\u{1}",
            ),
        ];
        let content_type = format!("multipart/form-data; boundary={quote}{boundary}{quote}");
        for (before, behind) in [("", ""), ("\r\n", "\r\n")] {
            let body = format!("{before}{}--{boundary}--{behind}", parts.concat());
            assert!(!is_odd(&content_type, body.as_bytes()), "{content_type}");
        }
    }
}

#[test]
fn texts_in_wide_characters_are_decoded() {
    let json = "{\"x\":\"\u{2220}\",\"user\":\"ad\u{e4}\",\"password\":\"g\u{1f600}\"}";
    let two = |of: fn(u16) -> [u8; 2]| json.encode_utf16().flat_map(of).collect::<Vec<u8>>();
    let four = |of: fn(u32) -> [u8; 4]| json.chars().flat_map(|letter| of(letter.into())).collect::<Vec<u8>>();
    let wide = [two(u16::to_le_bytes), two(u16::to_be_bytes), four(u32::to_le_bytes), four(u32::to_be_bytes)];
    let marks = [&b"\xff\xfe"[..], b"\xfe\xff", b"\xff\xfe\0\0", b"\0\0\xfe\xff"];
    let types = ["utf-16le", "UTF-16BE", "utf-32le", "\"utf-32be\""];
    for ((sent, mark), charset) in wide.iter().zip(marks).zip(types) {
        let content_type = format!("application/json; charset={charset}");
        for (content_type, sent, doubtful) in [
            ("", sent.clone(), true),
            ("application/json", [mark, sent].concat(), false),
            (&content_type, sent.clone(), false),
            ("application/json; charset=ibm037", sent.clone(), true),
        ] {
            let mut found = Credentials::default();
            fields().read_body(content_type.as_bytes(), false, &sent, &mut found);
            assert_eq!((text(&found.users), text(&found.passwords)), pair("ada", "g\u{1f600}"), "{content_type}");
            assert_eq!((found.odd, found.hides), (doubtful, doubtful), "{content_type} {charset}");
        }
    }
    for (declared, sent) in [("utf-16be", &wide[0]), ("utf-32", &wide[1])] {
        let mut found = Credentials::default();
        fields().read_body(format!("application/json; charset={declared}").as_bytes(), false, sent, &mut found);
        assert!(found.hides && found.odd, "{declared}");
    }
}

/// A path that some backend takes for the login is one for what a request hides as well.
#[test]
fn what_is_hidden_counts_whatever_the_spelling_of_the_path() {
    let coded = |path: &str, n: usize| {
        let head = request(path, &[("content-type", "application/json; charset=ibm037")]);
        (head, super::decoys::ebcdic(&format!("user=u{n}&password=p{n}")))
    };
    for path in ["/x/..;/login", "/x%2f..%2flogin", "//login", "/login%00.png", "/%25256cogin", "/x/\u{2025}/login"] {
        assert_eq!(noticed_at(&step(), &|n| coded(path, n), &status(401)), Some(10), "{path}");
        let xml = |n: usize| (request(path, &[]), format!("<user>u{n}</user>").into_bytes());
        assert_eq!(noticed_at(&step(), &xml, &status(401)), Some(10), "{path}");
    }
    for path in ["/x//upload", "/files/..;/x", "/login2/..;/x"] {
        assert_eq!(noticed_at(&step(), &|n| coded(path, n), &status(401)), None, "{path}");
    }
    // The kind is that of the endpoint which the path may stand for.
    let endpoint = |path: &str, kind: EndpointKind| Endpoint {
        pattern: format!("^{path}(?:\\.[A-Za-z0-9]{{1,8}})?/?$"),
        kind: kind.into(),
        path: path.into(),
    };
    let endpoints = vec![endpoint("/login", EndpointKind::Login), endpoint("/signup", EndpointKind::Registration)];
    let step = LoginGuardStep { endpoints, ..step() };
    for (path, code, expected) in
        [("/x/..;/signup", 200, Some(10)), ("/x/..;/login", 200, None), ("/x/..;/login.json", 401, Some(10))]
    {
        assert_eq!(noticed_at(&step, &|n| coded(path, n), &status(code)), expected, "{path}");
    }
}

/// With a marker only a text that was read to its end, and has none, is a success.
#[test]
fn a_response_that_was_not_read_to_its_end_is_no_success() {
    let step = LoginGuardStep { failure_marker: "Wrong password".into(), ..step() };
    let chain = chain(&step);
    let page = |headers: &[(&str, &str)], code: u16| Response { headers: Headers::new(headers), ..status(code) };
    let html = [("content-type", "text/html")];
    let whole = |bytes: &'static [u8]| Some(Body { bytes, complete: true });
    let part = Some(Body { bytes: b"<p>Hello", complete: false });
    // Whether the user is known to a source after a response with a body.
    let is_success = |response: Response, body: Option<Body<'_>>| {
        let host = FakeHost::at(NOW);
        let send = |ip: &str, form: &str, response: Response, body: Option<Body<'_>>| {
            let start =
                Start { request: request("/login", &[]), route: b"", peer: ip.as_bytes(), node: &"node".into() };
            let mut run = Run::new(&chain, start, &host);
            let _ = run.request_headers(true, &host);
            let _ = run.request_body(Body { bytes: form.as_bytes(), complete: true }, &host);
            let flow = run.response_headers(response, body.is_some(), &host);
            if let (Flow::Buffer { .. }, Some(body)) = (flow, body) {
                let _ = run.response_body(body, &host);
            }
            run.finish(&host);
            run.exchange().score.total() > 0.0
        };
        send("192.0.2.1", "user=victim&pass=x", response, body);
        let charged = |number: usize| {
            send(&format!("198.51.{number}.1"), &format!("user=victim&pass=g{number}"), status(401), None)
        };
        assert!((0..12).any(charged));
        !send("192.0.2.1", "user=victim&pass=y", status(401), None)
    };
    assert!(is_success(page(&html, 200), whole(b"<p>Hello")));
    assert!(is_success(page(&[], 204), None), "without a body");
    assert!(is_success(page(&html, 200), None));
    assert!(is_success(page(&[("location", "/home")], 302), None));
    assert!(!is_success(page(&html, 200), whole(b"<p>Wrong password")));
    assert!(!is_success(page(&html, 200), part), "longer than what is read");
    assert!(!is_success(page(&html, 206), whole(b"<p>Hello")), "a part");
    assert!(is_success(page(&[("content-type", "text/html"), ("content-range", "0-1/9")], 200), whole(b"<p>Hello")));
    for charset in ["Shift_JIS", "GBK", "EUC-KR", "koi8-r", "big5", "windows-874", "iso-8859-8-i", "ISO8859_1"] {
        let kind = format!("text/html; charset={charset}");
        assert!(is_success(page(&[("content-type", &kind)], 200), whole(b"<p>Hello \x83\x41")), "{charset}");
    }
    for charset in ["utf-7", "iso-2022-jp", "hz-gb-2312", "cp1047", "unknown"] {
        let kind = format!("text/html; charset={charset}");
        assert!(!is_success(page(&[("content-type", &kind)], 200), whole(b"<p>Hello")), "{charset}");
    }
    assert!(!is_success(page(&[("content-type", "image/png")], 200), whole(b"<p>Hello")));
    assert!(!is_success(page(&[("content-type", "text/html"), ("content-encoding", "zstd")], 200), whole(b"?")));
    assert!(!is_success(page(&[("content-type", "text/html; charset=ibm037")], 200), whole(b"?")));
    // No part of it can be asked for.
    let host = FakeHost::at(NOW);
    let ranged = request("/login", &[("range", "bytes=0-9"), ("if-range", "\"a\"")]);
    let start = Start { request: ranged, route: b"", peer: b"192.0.2.1", node: &"node".into() };
    let mut run = Run::new(&chain, start, &host);
    let _ = run.request_headers(true, &host);
    let headers = &run.exchange().request.headers;
    assert_eq!((headers.get("range"), headers.get("if-range")), (None, None));
}

/// An answer that every user gets is no success: neither one that sends the request elsewhere, nor one to a path that may name anything,
/// nor one to a form without its password.
#[test]
fn what_is_no_login_resolves_no_failures() {
    let failed_between = |probe: &dyn Fn(usize) -> (Request, Vec<u8>, u16), before: usize| {
        let (chain, host) = (chain(&step()), FakeHost::at(NOW));
        let send = |(request, form): (Request, Vec<u8>), status: u16, peer: &[u8]| {
            let start = Start { request, route: b"", peer, node: &"node".into() };
            let mut run = Run::new(&chain, start, &host);
            let _ = run.request_headers(true, &host);
            let _ = run.request_body(Body { bytes: &form, complete: true }, &host);
            let _ = run.response_headers(Response { status, ..Response::default() }, false, &host);
            run.exchange().score.total() > 0.0
        };
        for number in 0..before {
            send((request("/login", &[]), format!("user=o{number}&pass=o").into()), 302, b"198.51.100.1");
        }
        (1..=12).find(|number| {
            let failed = (request("/login", &[]), format!("user=u{number}&pass=p{number}").into());
            let noticed = send(failed, 401, b"192.0.2.1");
            let (asked, form, status) = probe(*number);
            send((asked, form), status, b"192.0.2.1");
            noticed
        })
    };
    let form = |number: usize| format!("user=u{number}&pass=x").into_bytes();
    assert_eq!(failed_between(&|n| (request("/login", &[]), form(n), 302), 0), None, "they log in");
    for status in [301, 304, 307, 308] {
        assert_eq!(failed_between(&|n| (request("/login", &[]), form(n), status), 0), Some(10), "{status}");
    }
    assert_eq!(failed_between(&|n| (request("/any.", &[]), form(n), 200), 0), Some(10));
    let empty = |n: usize| (request("/login", &[]), format!("user=u{n}&pass=").into_bytes(), 200);
    assert_eq!(failed_between(&empty, 20), Some(10));
    assert_eq!(failed_between(&empty, 0), None, "passwords may have another name here");
    // A path that may name anything is a login only where it has a user.
    let other = |number: usize| (request(&format!("/tags/c%23{number}"), &[]), Vec::new());
    assert_eq!(noticed_at(&step(), &other, &status(401)), None);
    let user = |number: usize| (request("/x%252flogin", &[]), format!("user=u{number}&pass=p").into_bytes());
    assert_eq!(noticed_at(&step(), &user, &status(401)), Some(10));
}

#[test]
fn what_is_not_read_hides_nothing() {
    let (chain, host) = (chain(&step()), FakeHost::at(NOW));
    // Bodies that begin alike, and are longer than what is read.
    let noticed = (1..=12).find(|_| {
        let start = Start { request: request("/login", &[]), route: b"", peer: b"192.0.2.1", node: &"node".into() };
        let mut run = Run::new(&chain, start, &host);
        let _ = run.request_headers(true, &host);
        let _ = run.request_body(Body { bytes: b"user=x&password=x&a=", complete: false }, &host);
        let _ = run.response_headers(status(401), false, &host);
        run.exchange().score.total() > 0.0
    });
    assert_eq!(noticed, Some(10));
    // What looks like the beginning of another protocol is not held.
    let noticed = (1..=12).find(|_| {
        let request = Request { streaming: true, ..request("/login", &[("upgrade", "h2c")]) };
        let start = Start { request, route: b"", peer: b"192.0.2.2", node: &"node".into() };
        let mut run = Run::new(&chain, start, &host);
        assert_eq!(run.request_headers(true, &host), Flow::Continue);
        let _ = run.response_headers(status(401), false, &host);
        run.exchange().score.total() > 0.0
    });
    assert_eq!(noticed, Some(10));
}

#[test]
fn hostile_bodies_are_read_within_bounds() {
    let alphabet = br#"{}[]":,\\=&%--b
u01 "user""password";name=filename"#;
    let mut state = 1_u64;
    let mut draw = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % end
    };
    for _ in 0..20_000 {
        let body: Vec<u8> = (0..draw(80)).map(|_| alphabet[draw(alphabet.len())]).collect();
        for kind in ["application/json", "multipart/form-data; boundary=b", "", "a/b;boundary=\"\""] {
            let mut found = Credentials::default();
            fields().read_body(kind.as_bytes(), false, &body, &mut found);
            assert!(found.users.len() <= 4 && found.users.iter().all(|user| user.len() <= 256));
        }
    }
}
