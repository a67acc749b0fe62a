//! The key: places, hostile values, and many of them.

use super::*;

fn key(parts: &[KeyPart], exchange: &Exchange) -> Vec<u8> {
    CounterKey::new(parts.to_vec()).unwrap().of(exchange, "")
}

fn exchange() -> Exchange {
    let mut exchange = Exchange::default();
    exchange.caller.ip = "192.0.2.1".into();
    exchange
}

#[test]
fn each_place_tells_requests_apart() {
    type Change = fn(&mut Exchange);
    let changes: [(KeyPlace, Change); 10] = [
        (KeyPlace::RouteId, |exchange| exchange.route.id = "r2".into()),
        (KeyPlace::RouteName, |exchange| exchange.route.label = "r2".into()),
        (KeyPlace::Ip, |exchange| exchange.caller.ip = "192.0.2.2".into()),
        (KeyPlace::Method, |exchange| exchange.request.method = b"PUT".to_vec()),
        (KeyPlace::Path, |exchange| exchange.request.path = b"/b?x".to_vec()),
        (KeyPlace::Host, |exchange| exchange.request.authority = b"b.test".to_vec()),
        (KeyPlace::User, |exchange| exchange.caller.user = Some("ada".into())),
        (KeyPlace::ApiKey, |exchange| exchange.caller.apikey = Some("k".into())),
        (KeyPlace::Identity, |exchange| exchange.caller.user = Some("ada".into())),
        (KeyPlace::Header, |exchange| exchange.request.headers = Headers::new(&[("x-key", "b")])),
    ];
    for (place, change) in changes {
        let parts = [part(place, if place == KeyPlace::Header { "x-key" } else { "" })];
        let mut changed = exchange();
        assert_eq!(key(&parts, &changed), key(&parts, &exchange()));
        change(&mut changed);
        assert_ne!(key(&parts, &changed), key(&parts, &exchange()), "{place:?}");
        let literal = [part(KeyPlace::Literal, "all")];
        assert_eq!(key(&literal, &changed), key(&literal, &exchange()));
    }
    let parts = [part(KeyPlace::Path, "")];
    let path = |path: &str| {
        let mut exchange = exchange();
        exchange.request.path = path.as_bytes().to_vec();
        key(&parts, &exchange)
    };
    assert_eq!(path("/a?x=1"), path("/a?x=2"), "the query is no part of it");
}

#[test]
fn a_network_of_ipv6_counts_as_one() {
    let of = |ip: &str| {
        let mut exchange = exchange();
        exchange.caller.ip = ip.into();
        key(&[part(KeyPlace::Ip, "")], &exchange)
    };
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
}

#[test]
fn a_place_without_a_value_counts_by_the_address() {
    for place in [KeyPlace::User, KeyPlace::ApiKey, KeyPlace::Header] {
        let of = |ip: &str| {
            let mut exchange = exchange();
            exchange.caller.ip = ip.into();
            key(&[part(place, "x-key")], &exchange)
        };
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"), "{place:?}");
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff"), "{place:?}: of IPv6 by the network");
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"), "{place:?}");
    }
}

#[test]
fn values_cannot_be_chosen_so_that_they_add_up_to_another_key() {
    let parts = [part(KeyPlace::Header, "a"), part(KeyPlace::Literal, "-"), part(KeyPlace::Header, "b")];
    let of = |a: &[u8], b: &[u8]| {
        let mut exchange = exchange();
        exchange.request.headers = Headers::new(&[("a", a), ("b", b)]);
        key(&parts, &exchange)
    };
    assert_ne!(of(b"1-2", b"3"), of(b"1", b"2-3"));
    assert_ne!(of(b"1", b""), of(b"", b"1"));
    // Long values count as a whole, and none is kept.
    let long = |last: u8| [vec![b'x'; 60_000], vec![last]].concat();
    assert_ne!(of(&long(b'1'), b""), of(&long(b'2'), b""));
    let hash = snapshot::content_hash(&long(b'1'));
    assert_ne!(of(&long(b'1'), b""), of(&hash, b""));
    for odd in [&b"\xff\x00\r\n${req.ip}"[..], b"\0", "\u{1f512}".as_bytes()] {
        assert_eq!(of(odd, b"1").len(), 32);
    }
}

#[test]
fn half_a_million_keys_stay_bounded_and_one_that_fails_on_is_banned() {
    let parts = vec![part(KeyPlace::Header, "x-key")];
    let chain = chain(&Fail2BanStep { key: parts, ..step() });
    let host = FakeHost::at(NOW);
    let send = |value: String, ip: &str| {
        let headers = Headers::new(&[("x-key", value.as_str())]);
        let request = Request { method: b"POST".to_vec(), path: b"/".to_vec(), headers, ..Request::default() };
        send_as(&chain, &host, ip, request, 401);
    };
    let mut bytes = 0;
    for number in 0..500_000_u32 {
        // From an address of its own each: those of one address count together.
        send(format!("key-{number}"), &std::net::Ipv4Addr::from(0x0a00_0000 + number).to_string());
        if number == 300_000 {
            bytes = size(&host);
        }
        if number == 400_000 {
            (0..2).for_each(|_| send("the same".to_owned(), "198.51.100.7"));
        }
    }
    assert!(size(&host) < bytes + bytes / 8 && bytes < 16 << 20, "{} after {bytes}", size(&host));
    send("the same".to_owned(), "198.51.100.7");
    assert_eq!(banned(&host), ["ip:198.51.100.7"]);
}

/// The bytes that the workers of the node share.
fn size(host: &FakeHost) -> usize {
    host.shared_data.bytes()
}
