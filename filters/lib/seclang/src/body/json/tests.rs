use super::*;

fn arguments(body: &[u8], limits: &Limits) -> (Vec<(String, String)>, Result<Outcome, JsonError>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut found = Vec::new();
    let outcome = parse(body, limits, |argument| found.push((text(argument.name), text(argument.value))));
    (found, outcome)
}

#[test]
fn flattens_values() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        (
            r#"{"a":[{"b":1},2,null,true,"x"],"c":{"d":1.50}}"#,
            &[
                ("json.a.array_0.b", "1"),
                ("json.a.array_1", "2"),
                ("json.a.array_2", ""),
                ("json.a.array_3", "true"),
                ("json.a.array_4", "x"),
                ("json.c.d", "1.50"),
            ],
        ),
        ("[1,[2,[]],{}]", &[("json.array_0", "1"), ("json.array_1.array_0", "2")]),
        ("[[],1]", &[("json.array_1", "1")]),
        (r#""x""#, &[("json", "x")]),
        (" false\n", &[("json", "false")]),
        ("-0.5e+10", &[("json", "-0.5e+10")]),
        ("{}", &[]),
        (r#"{"a":1,"a":2}"#, &[("json.a", "1"), ("json.a", "2")]),
        (r#"{"":{"":1}}"#, &[("json.empty-key.empty-key", "1")]),
        (r#"{"a.b":1}"#, &[("json.a.b", "1")]),
        (r#"{"a":{},"b":[]}"#, &[("json.a", ""), ("json.b", "")]),
        (
            r#"{"a":[{},[],{"c":{}},1,{}]}"#,
            &[("json.a.array_0", ""), ("json.a.array_2.c", ""), ("json.a.array_3", "1")],
        ),
        (r#"[{"a":{}},{"a":{}},{"a":[],"b":2}]"#, &[("json.array_0.a", ""), ("json.array_2.b", "2")]),
        (
            r#"[{"a":{"b":{},"c":{}}},{"a":{"b":{},"c":[]}},{"a":{"b":{},"d":1}}]"#,
            &[("json.array_0.a.b", ""), ("json.array_0.a.c", ""), ("json.array_2.a.d", "1")],
        ),
        (r#"{"a":{"b":1,"c":{"d":[[]]}}}"#, &[("json.a.b", "1"), ("json.a.c.d.array_0", "")]),
        (r#"{"\u0061\n":"\u0000\u00e9\ud83d\ude00\ud800x\/\"\\"}"#, &[("json.a\n", "\0\u{e9}\u{1f600}?x/\"\\")]),
        ("{ \"a\" : [ 1 , 2 ] }", &[("json.a.array_0", "1"), ("json.a.array_1", "2")]),
    ];
    for (body, expected) in cases {
        let (found, outcome) = arguments(body.as_bytes(), &Limits::default());
        let expected: Vec<_> = expected.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        assert_eq!(found, expected, "{body}");
        assert_eq!(outcome, Ok(Outcome { arguments: expected.len(), limit_exceeded: false }), "{body}");
    }
}

#[test]
fn refuses_what_is_not_json() {
    let cases: &[(&[u8], usize)] = &[
        (b"", 0),
        (b" ", 1),
        (b"{\"a\":1,}", 7),
        (b"[1,]", 3),
        (b"{\"a\":1} x", 8),
        (b"{a:1}", 1),
        (b"{\"a\" 1}", 5),
        (b"[1 2]", 3),
        (b"[1}", 2),
        (b"[", 1),
        (b"[1", 2),
        (b"\"abc", 4),
        (b"\"a\nb\"", 2),
        (b"\"\\x\"", 1),
        (b"\"\\u12\"", 1),
        (b"\"a\xff\"", 2),
        (b"01", 1),
        (b"-", 1),
        (b"1.", 2),
        (b"1e", 2),
        (b"tru", 0),
        (b"'a'", 0),
        (b"\xef\xbb\xbf{}", 0),
        (b"// comment\n1", 0),
        (b"NaN", 0),
    ];
    for &(body, offset) in cases {
        let (_, outcome) = arguments(body, &Limits::default());
        assert_eq!(outcome.map_err(|error| error.offset), Err(offset), "{:?}", String::from_utf8_lossy(body));
    }
    assert_eq!(arguments(b"{\"a\":1,\"b\":x}", &Limits::default()).0.len(), 1, "what is complete is reported");
}

#[test]
fn limits_hold() {
    let limits = Limits::default();
    assert_eq!(limits, Limits { depth: 512, arguments: 1000, name_length: 8192 });
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    assert!(arguments(&nested(512), &limits).1.is_ok());
    assert!(arguments(&nested(513), &limits).1.is_err());
    assert!(arguments(&nested(1_000_000), &Limits { depth: usize::MAX, ..limits }).1.is_err(), "the path is limited");
    let many = format!("[{}1]", "1,".repeat(1000));
    let (found, outcome) = arguments(many.as_bytes(), &limits);
    assert_eq!(found.len(), 1000);
    assert_eq!(outcome, Ok(Outcome { arguments: 1000, limit_exceeded: true }));
    let long = format!("{{\"{}\":1}}", "k".repeat(8192));
    assert!(arguments(long.as_bytes(), &limits).1.is_err());
}

/// How many bytes of names the parser keeps at the end.
fn kept(body: &str, limits: &Limits) -> usize {
    let mut parser = Parser::new(body.as_bytes(), limits, |_| ());
    assert!(parser.run().is_ok(), "{body:.80}");
    parser.empty.iter().map(Vec::len).sum()
}

#[test]
fn no_more_is_kept_of_empty_values_than_was_sent() {
    let long = "k".repeat(8100);
    let empty = vec!["{}"; 50_000].join(",");
    let members = (0..5000).map(|at| format!("\"m{at}\":[]")).collect::<Vec<_>>().join(",");
    let again = vec![r#""a":{}"#; 50_000].join(",");
    let unlimited = Limits { arguments: usize::MAX, ..Limits::default() };
    for (body, least) in [
        (format!("[{}{{\"{long}\":[{empty}]}}]", "1,".repeat(1000)), 0),
        (format!("[{}{{\"{long}\":{{{members}}}}}]", "1,".repeat(999)), 0),
        (format!("{{\"{long}\":[{empty}]}}"), long.len()),
        (format!("{{\"{long}\":{{{members}}}}}"), long.len()),
        (format!("[{{\"{long}\":{{\"a\":{{}}}}}},{{\"{long}\":{{{again},\"b\":[]}}}}]"), long.len()),
    ] {
        for limits in [Limits::default(), unlimited] {
            let kept = kept(&body, &limits);
            assert!(kept >= least && kept <= body.len(), "{kept} of {}: {body:.30}", body.len());
        }
    }
}

#[test]
fn empty_values_exceed_the_limit_where_they_are_new() {
    let limits = Limits { arguments: 2, ..Limits::default() };
    for (body, exceeded) in [
        (r#"{"a":{},"b":1}"#, false),
        (r#"[{"a":{},"b":1},{"a":{}},{}]"#, false),
        (r#"{"a":{},"b":1,"c":[]}"#, true),
        (r#"{"a":{},"b":[],"c":{"d":[]}}"#, true),
    ] {
        let (found, outcome) = arguments(body.as_bytes(), &limits);
        assert_eq!(outcome, Ok(Outcome { arguments: found.len(), limit_exceeded: exceeded }), "{body}");
    }
}
