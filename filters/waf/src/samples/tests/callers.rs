//! Who stands behind matches.

use exchange::Signal;

use super::*;

#[test]
fn equal_matches_are_one_record() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    for number in 0..1_000 {
        let mut exchange = exchange("/?q=odd", Headers::default());
        exchange.caller.ip = format!("192.0.2.{}", number % 50);
        ask(&*plugin, exchange, b"", &host);
    }
    let found = matched(&*plugin, &host);
    assert_eq!((found.count, found.would_block, found.callers.len()), (1_000, 0, MAX_CALLERS));
    assert!(found.callers.is_sorted());
    // The smallest hashes are the same, whichever callers come again.
    host.advance(PERIOD);
    for number in (0..50).rev() {
        let mut exchange = exchange("/?q=odd", Headers::default());
        exchange.caller.ip = format!("192.0.2.{number}");
        ask(&*plugin, exchange, b"", &host);
    }
    let again = matched(&*plugin, &host);
    assert_eq!((again.count, &again.callers, &again.request), (50, &found.callers, &None));
}

#[test]
fn a_caller_is_the_same_in_all_matches_and_its_network_beside_it() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    for address in
        ["192.0.2.1", "192.0.2.2", "198.51.100.1", "::ffff:192.0.2.1", "2001:db8:1::1", "2001:db8:1:2::1", "none"]
    {
        let mut exchange = exchange("/?q=odd", Headers::default());
        exchange.caller.ip = address.into();
        ask(&*plugin, exchange, b"", &host);
    }
    let found = matched(&*plugin, &host);
    let half = |caller: u64| caller & u64::from(u32::MAX);
    let networks: std::collections::BTreeSet<u64> = found.callers.iter().copied().map(half).collect();
    assert_eq!(networks.len(), 4, "two of IPv4, one of IPv6, and what is no address: {:x?}", found.callers);
    assert!((6..=7).contains(&found.callers.len()));
}

#[test]
fn callers_that_other_plugins_find_bad_are_named() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    let ask_as = |address: &str, kind: &'static str, weight: f64| {
        let mut exchange = exchange("/", Headers::default());
        exchange.caller.ip = address.into();
        exchange.score.add(Signal {
            source: kind.into(),
            kind: kind.into(),
            weight,
            confidence: 1.0,
            tag: kind.into(),
            detail: String::new(),
            at: 0,
        });
        ask(&*plugin, exchange, b"", &host);
    };
    ask_as("192.0.2.1", "reputation", 60.0);
    ask_as("192.0.2.1", "reputation", 60.0);
    ask_as("192.0.2.2", "reputation", 0.0);
    ask_as("192.0.2.3", "waf", 60.0);
    let suspects = |host: &FakeHost| -> Vec<u64> {
        all_of_tick(&*plugin, host).into_iter().flat_map(|report| report.suspects).collect()
    };
    let first = suspects(&host);
    assert_eq!(first.len(), 1, "once, and neither one without weight nor one whom a WAF alone accuses");
    host.advance(PERIOD);
    let mut exchange = exchange("/?q=odd", Headers::default());
    exchange.caller.ip = "192.0.2.1".into();
    ask(&*plugin, exchange, b"", &host);
    assert_eq!(matched(&*plugin, &host).callers, first);
    for number in 0..10_000 {
        ask_as(&format!("10.0.{}.{}", number / 250, number % 250), "honeypot", 100.0);
    }
    host.advance(PERIOD);
    assert_eq!(suspects(&host).len(), crate::samples::messages::MAX_SUSPECTS);
}

#[test]
fn the_last_requests_are_named() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    for id in ["a-1", "", "a-2", "a-3", "a-4", "a-5", &"x".repeat(65)] {
        let mut exchange = exchange("/?q=odd", Headers::default());
        exchange.request.id = id.into();
        ask(&*plugin, exchange, b"", &host);
    }
    assert_eq!(matched(&*plugin, &host).references, ["a-2", "a-3", "a-4", "a-5"]);
}
