//! Canaries.

use super::*;

const VALUE: &str = "AKIA-bait/0+1 x";

fn bait(place: &str) -> Chain {
    chain(policy(&json!({ "canaries": [{ "value": VALUE, "description": "key in the backup", "where": place }] })))
}

#[test]
fn a_canary_is_found_in_its_places_only() {
    let header = || get(b"/", &[("x-other", b"1"), ("authorization", format!("Bearer {VALUE}.").as_bytes())]);
    let host = || Request { authority: VALUE.into(), ..get(b"/", &[]) };
    let path = || get(format!("/share/{VALUE}/x").as_bytes(), &[]);
    let query = || get(format!("/?k=1&t={VALUE}").as_bytes(), &[]);
    for (place, expected) in [
        ("any", [true, true, true, true]),
        ("header", [true, true, false, false]),
        ("path", [false, false, true, false]),
        ("query", [false, false, false, true]),
    ] {
        let chain = bait(place);
        let found = [header(), host(), path(), query()].map(|request| tags(&chain, request) == ["honeypot:canary"]);
        assert_eq!(found, expected, "{place}");
    }
}

#[test]
fn escapes_are_undone_in_the_path_and_in_the_query_and_nowhere_else() {
    let chain = bait("any");
    for target in [
        "/AKIA-bait%2F0+1%20x",
        "/%41KIA-bait%2f0%2b1%20x",
        "/AKIA-bait%252F0+1%2520x",
        "/?AKIA-bait%2F0%2B1+x",
        "/?AKIA-bait/0%2B1+x",
        "/?AKIA-bait%252F0%252B1%2520x",
        "/?AKIA-bait/0+1 x",
        "/a?next=%2Fb%3Ft%3DAKIA-bait%252F0%252B1%2520x",
    ] {
        assert!(caught(&chain, target), "{target}");
    }
    for target in ["/akia-bait/0+1 x", "/?AKIA-bait/0+1%2x", "/AKIA-bait?/0+1 x", "/AKIA-bait%2F0+1+x"] {
        assert!(!caught(&chain, target), "{target}");
    }
    assert!(tags(&chain, get(b"/", &[("cookie", b"a=AKIA-bait%2F0%2B1%20x")])).is_empty());
    assert!(tags(&chain, get(b"/", &[(VALUE, b"its name is no value")])).is_empty());
    // Two values are two values.
    assert!(tags(&chain, get(b"/", &[("x-a", b"AKIA-bait"), ("x-a", b"/0+1 x")])).is_empty());
}

#[test]
fn the_value_is_in_no_event() {
    let fields = json!({ "canaries": [
        { "value": VALUE },
        { "value": "second-secret", "description": "not second-secret, nor AKIA" },
        { "value": "third-secret", "description": "the old one was AKIA-bait/0+1 x" },
        { "value": "fourth-secret", "description": " in the wiki " },
    ] });
    for action in ["monitor", "deny", "ban"] {
        let mut fields = fields.clone();
        fields["action"] = json!(action);
        let chain = chain(policy(&fields));
        for (value, label) in [
            (VALUE, "/canaries/0"),
            ("second-secret", "/canaries/1"),
            ("third-secret", "/canaries/2"),
            ("fourth-secret", "`in the wiki`"),
        ] {
            let requests = [
                (get(format!("/a/{value}?{value}").as_bytes(), &[("x-a", value.as_bytes())]), "the path", "(hidden)"),
                (get(format!("/a?{value}").as_bytes(), &[("x-a", value.as_bytes())]), "the query", "/a"),
                (get(b"/a", &[("x-a", value.as_bytes())]), "a header", "/a"),
                (Request { authority: value.into(), ..get(b"/a", &[]) }, "the host", "(hidden)"),
            ];
            for (request, place, path) in requests {
                let host = FakeHost::at(0);
                status(&chain, request, &host);
                let events = host.events_json();
                assert_eq!(events.len(), 1, "{events:?}");
                let text =
                    format!("{events:?} {:?} {:?} {:?}", host.bans.borrow(), host.logged.borrow(), host.state.borrow());
                assert!(!text.contains(value) && !text.contains(VALUE), "{text}");
                let message = events[0]["message"].as_str().unwrap();
                assert!(
                    message.starts_with(&format!("honeypot `traps`: the canary {label} was in {place}")),
                    "{message}"
                );
                assert_eq!(events[0]["http"]["path"], path);
            }
        }
    }
}

#[test]
fn canaries_that_share_their_beginning_are_told_apart() {
    let head = "https://files.example/shared/documents/";
    let values =
        [format!("{head}a"), format!("{head}ab"), format!("{head}b"), format!("{head}abc"), head[..30].to_owned()];
    let canaries: Vec<Value> = ["query", "path", "any", "header", "header"]
        .iter()
        .zip(&values)
        .map(|(place, value)| json!({ "value": value, "where": place }))
        .collect();
    let chain = chain(policy(&json!({ "canaries": canaries })));
    let found = |request: Request| {
        let host = FakeHost::at(0);
        status(&chain, request, &host);
        host.events_json().first().map(|event| event["threat"]["signals"][0]["detail"].as_str().unwrap().to_owned())
    };
    let label = |index: usize, place: &str| Some(format!("the canary /canaries/{index} was in {place}"));
    let target = |separator: &str, end: &str| get(format!("/{separator}{head}{end}").as_bytes(), &[]);
    assert_eq!(found(target("?", "abcd")), label(0, "the query"));
    assert_eq!(found(target("?", "b")), label(2, "the query"));
    assert_eq!(found(target("?", "c")), None);
    assert_eq!(found(target("", "abc")), label(1, "the path"));
    assert_eq!(found(target("", "a")), None);
    assert_eq!(found(get(b"/", &[("x-a", &values[4].as_bytes()[..29])])), None);
    assert_eq!(found(get(b"/", &[("x-a", format!("{head}zz").as_bytes())])), label(4, "a header"));
}

#[test]
fn a_thousand_canaries_of_full_length() {
    let value = |index: usize| format!("{}{index:04}{}", "head".repeat(20), "t".repeat(940));
    let canaries: Vec<Value> = (0..1000).map(|index| json!({ "value": value(index) })).collect();
    let chain = chain(policy(&json!({ "canaries": canaries })));
    for index in [0, 1, 499, 998, 999] {
        let header = format!("{}{}{}", "head".repeat(10_000), value(index), "x".repeat(10_000));
        assert_eq!(tags(&chain, get(b"/", &[("x-a", header.as_bytes())])), ["honeypot:canary"], "{index}");
        assert!(caught(&chain, format!("/{}?x", value(index))));
    }
    assert!(!caught(&chain, format!("/{}", value(1000))));
    assert!(!caught(&chain, format!("/{}", &value(7)[..1023])));
    let many: Vec<(&str, &[u8])> = (0..5000).map(|_| ("x-same", b"headheadheadheadhead".as_slice())).collect();
    assert!(tags(&chain, get(&b"%68ead".repeat(10_000), &many)).is_empty());
}

#[test]
fn bytes_that_are_no_text_are_searched_like_others() {
    let chain = bait("any");
    let value = [b"\xff\xfe\0".as_slice(), VALUE.as_bytes(), b"\xc0"].concat();
    assert_eq!(tags(&chain, get(b"/\xff", &[("x-a", &value)])), ["honeypot:canary"]);
    assert!(caught(&chain, [b"/\xff?".as_slice(), &value].concat()));
    assert!(caught(&chain, [b"/%ff%fe%00".as_slice(), VALUE.as_bytes()].concat()));
}
