//! Crawlers with and without verdicts, and what the control plane is asked.

use super::*;

const NOW: u64 = 1_800_000_000_000;
const GOOGLE: &[u8] = b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

fn verdict(finding: Finding) -> CrawlerVerdict {
    CrawlerVerdict { finding, until: NOW + 1000, renew: NOW + 900 }
}

fn of(address: &str, finding: Finding) -> (Vec<u8>, CrawlerVerdict) {
    (key(&METHOD, address.parse().unwrap()), verdict(finding))
}

fn with(step: BotGuardStep, address: &str, finding: Finding) -> Box<dyn Plugin> {
    plugin(step, some_bots(), Some(&[of(address, finding)]))
}

/// The verdict on a request of this crawler, the score and the tags.
fn meets(plugin: &dyn Plugin, address: &str, host: &FakeHost) -> (Verdict, f64, Vec<String>) {
    let mut exchange = request(address, &[GOOGLE]);
    let verdict = plugin.access(&mut exchange, &mut Slot::default(), host);
    (verdict, exchange.score.total(), exchange.score.tags().into_iter().map(str::to_owned).collect())
}

fn asked(host: &FakeHost) -> Vec<Vec<u8>> {
    let reports = host.reports.borrow();
    reports
        .iter()
        .map(|(kind, data)| {
            assert_eq!(*kind, REPORTS);
            CrawlerSeen::decode(data.as_slice()).unwrap().key
        })
        .collect()
}

#[test]
fn a_verified_crawler_skips_the_checks_of_who_is_calling_alone() {
    let host = FakeHost::at(NOW);
    for address in ["192.0.2.7", "::ffff:192.0.2.7"] {
        let (verdict, score, seen) = meets(&*with(step(), "192.0.2.7", Finding::Verified), address, &host);
        let Verdict::Skip(Skip { steps, reason }) = verdict else { panic!("{verdict:?}") };
        assert_eq!((steps, reason.as_str()), (Skipped::Access, "`googlebot`, verified by reverse DNS"));
        assert_eq!((score, seen), (0.0, tags(&["bot:verified:googlebot", "bot:search:googlebot", "bot:search"])));
    }
    assert_eq!(asked(&host), Vec::<Vec<u8>>::new());
    assert_eq!(PLUGIN.may_skip, SkipRight::Access);

    let no_bypass = with(BotGuardStep { bypass: false, ..step() }, "192.0.2.7", Finding::Verified);
    assert_eq!(meets(&*no_bypass, "192.0.2.7", &host).0, Verdict::Pass);
}

#[test]
fn a_rule_that_denies_holds_for_verified_crawlers_as_well() {
    let mut bots = some_bots();
    bots[0].reaction = BotReaction::Deny.into();
    let plugin = plugin(step(), bots, Some(&[of("192.0.2.7", Finding::Verified)]));
    let (verdict, score, _) = meets(&*plugin, "192.0.2.7", &FakeHost::at(NOW));
    assert!(matches!(verdict, Verdict::Refuse(Refusal { status: 451, .. })), "{verdict:?}");
    assert_eq!(score, 30.0);
}

#[test]
fn an_impersonator_is_refused_or_weighs_as_the_policy_says() {
    let host = FakeHost::at(NOW);
    let seen = tags(&["bot:impersonator:googlebot", "bot:search:googlebot", "bot:search"]);
    let (verdict, score, found) = meets(&*with(step(), "2001:db8::7", Finding::Impersonator), "2001:db8::7", &host);
    let Verdict::Refuse(refusal) = verdict else { panic!("{verdict:?}") };
    assert_eq!((refusal.status, refusal.scored, score, found), (451, true, 60.0, seen.clone()));
    assert!(refusal.reason.contains("bot policy `Bots`: the address is not one of `googlebot`"), "{refusal:?}");
    for (action, weight) in [(BotReaction::Monitor, 60.0), (BotReaction::Allow, 0.0)] {
        let step = BotGuardStep { impersonator: action.into(), ..step() };
        let outcome = meets(&*with(step, "192.0.2.7", Finding::Impersonator), "192.0.2.7", &host);
        assert_eq!(outcome, (Verdict::Pass, weight, seen.clone()), "{action:?}");
    }
}

#[test]
fn a_crawler_without_a_verdict_is_treated_as_one_that_cannot_be_verified() {
    let mut bots = some_bots();
    bots[0].reaction = BotReaction::Monitor.into();
    let rule = (Verdict::Pass, 30.0, tags(&["bot:search:googlebot", "bot:search"]));
    let cases: [(Option<Vec<_>>, usize); 5] = [
        (None, 1),
        (Some(Vec::new()), 1),
        (Some(vec![of("192.0.2.8", Finding::Verified)]), 1),
        (Some(vec![of("192.0.2.7", Finding::Unverifiable)]), 0),
        (Some(vec![(key(b"method-2", "192.0.2.7".parse().unwrap()), verdict(Finding::Impersonator))]), 1),
    ];
    for (verdicts, questions) in cases {
        let host = FakeHost::at(NOW);
        let plugin = plugin(step(), bots.clone(), verdicts.as_deref());
        assert_eq!(meets(&*plugin, "192.0.2.7", &host), rule, "{verdicts:?}");
        assert_eq!(asked(&host).len(), questions, "{verdicts:?}");
    }
    let host = FakeHost::at(NOW);
    let off = plugin(BotGuardStep { verify: false, ..step() }, bots.clone(), None);
    assert_eq!((meets(&*off, "192.0.2.7", &host), asked(&host)), (rule.clone(), Vec::new()));
    let plugin = plugin(step(), bots, None);
    assert_eq!((meets(&*plugin, "", &host), asked(&host)), (rule, Vec::new()), "a caller without an address");
}

#[test]
fn a_verdict_ends_and_is_renewed_before() {
    let host = FakeHost::at(NOW + 899);
    let plugin = with(step(), "192.0.2.7", Finding::Verified);
    let skips = |host: &FakeHost| matches!(meets(&*plugin, "192.0.2.7", host).0, Verdict::Skip(_));
    assert!(skips(&host) && asked(&host).is_empty());
    host.advance(1);
    assert!(skips(&host));
    assert_eq!(asked(&host), [key(&METHOD, "192.0.2.7".parse().unwrap())], "it is to be renewed");
    host.advance(100);
    assert!(!skips(&host), "it has ended");
    assert_eq!(asked(&host).len(), 1, "and was asked for already");
}

#[test]
fn a_question_is_asked_once_by_a_node_until_it_was_waited_for() {
    let host = FakeHost::at(NOW);
    // Two workers, and another route with the same policy.
    let workers = [plugin(step(), some_bots(), None), plugin(step(), some_bots(), None)];
    for _ in 0..100 {
        workers.iter().for_each(|worker| assert_eq!(meets(&**worker, "192.0.2.7", &host).0, Verdict::Pass));
    }
    assert_eq!(asked(&host), [key(&METHOD, "192.0.2.7".parse().unwrap())]);
    host.advance(29_999);
    meets(&*workers[1], "192.0.2.7", &host);
    assert_eq!(asked(&host).len(), 1);
    host.advance(1);
    meets(&*workers[1], "192.0.2.7", &host);
    assert_eq!(asked(&host).len(), 2, "the answer did not come");
}

#[test]
fn a_flood_of_addresses_asks_little() {
    let host = FakeHost::at(NOW);
    let plugin = plugin(step(), some_bots(), None);
    for number in 0..100_000_u32 {
        let address = std::net::Ipv4Addr::from(0x1000_0000 + number * 263);
        meets(&*plugin, &address.to_string(), &host);
    }
    assert_eq!(asked(&host).len(), 50, "the questions of a second");
    host.advance(1000);
    for low in 0..=255 {
        meets(&*plugin, &format!("203.0.113.{low}"), &host);
        meets(&*plugin, &format!("2001:db8:7:{low}::1"), &host);
    }
    let of = |start: &[u8]| asked(&host).iter().filter(|key| key[METHOD_BYTES..].starts_with(start)).count();
    assert_eq!((of(&[203, 0, 113]), of(&[0x20, 1, 0xd, 0xb8, 0, 7])), (16, 16), "each network has its share");
}

#[test]
fn a_network_that_asks_too_much_takes_no_question_from_others() {
    let host = FakeHost::at(NOW);
    let plugin = plugin(step(), some_bots(), None);
    for low in 0..=255 {
        meets(&*plugin, &format!("203.0.113.{low}"), &host);
        meets(&*plugin, &format!("2001:db8:7:{low}::1"), &host);
    }
    assert_eq!(asked(&host).len(), 32, "the share of each network");
    for address in ["198.51.100.7", "2001:db8:8::1"] {
        meets(&*plugin, address, &host);
        assert_eq!(asked(&host).last(), Some(&key(&METHOD, address.parse().unwrap())));
    }
}
