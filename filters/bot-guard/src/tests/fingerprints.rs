//! TLS fingerprints as evidence.

use super::*;

const CHROME: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
const EDGE: &str = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const OF_CHROME: &str = "t13d1516h2_8daaf6152771_02713d6af862";
const OF_CURL: &str = "t13d3012h2_1d37bd780c83_d339722ba4af";
const UNSEEN: &str = "t12i100500_0123456789ab_ba9876543210";
const NOW: u64 = 1_800_000_000_000;

fn evidence() -> FingerprintStep {
    FingerprintStep {
        mismatch_weight: 40.0,
        unknown_weight: 0.0,
        rotation_weight: 0.0,
        rotation_families: 3,
        rotation_networks: 2,
        learn: false,
    }
}

fn pairs() -> Vec<FingerprintPair> {
    let pair = |family: &str, ja4: &str| FingerprintPair { family: family.into(), fingerprints: vec![ja4.into()] };
    vec![pair("chrome", OF_CHROME), pair("curl", OF_CURL)]
}

fn rule(fingerprint: &str, reaction: BotReaction, weight: f64, requests_per_minute: u32) -> FingerprintRule {
    FingerprintRule { fingerprint: fingerprint.into(), reaction: reaction.into(), weight, requests_per_minute }
}

fn guard(evidence: FingerprintStep, pairs: Vec<FingerprintPair>, rules: Vec<FingerprintRule>) -> Box<dyn Plugin> {
    let list =
        BotList { bots: some_bots(), fingerprints: Some(FingerprintList { pairs, rules }), ..BotList::default() };
    plugin_of(BotGuardStep { fingerprints: Some(evidence), ..step() }, list, None)
}

/// A request with this JA4 in the filter state. The status of a refusal, the score, and the tags.
fn asks(guard: &dyn Plugin, ja4: &str, address: &str, agent: &str, host: &FakeHost) -> (Option<u16>, f64, Vec<String>) {
    let path = ["filter_state", "svc.ja4"].map(str::to_owned).to_vec();
    host.properties.borrow_mut().insert(path, ja4.as_bytes().to_vec());
    let mut exchange = request(address, &[agent.as_bytes()]);
    let status = match guard.access(&mut exchange, &mut Slot::default(), host) {
        Verdict::Refuse(refusal) => Some(refusal.status),
        Verdict::Pass => None,
        other => panic!("{other:?}"),
    };
    (status, exchange.score.total(), exchange.score.tags().into_iter().map(str::to_owned).collect())
}

fn nothing() -> (Option<u16>, f64, Vec<String>) {
    (None, 0.0, Vec::new())
}

#[test]
fn an_agent_with_the_fingerprint_of_other_software_weighs() {
    let (guard, host) = (guard(evidence(), pairs(), Vec::new()), FakeHost::at(NOW));
    let found = asks(&*guard, OF_CURL, "192.0.2.7", CHROME, &host);
    assert_eq!(found, (None, 40.0, tags(&["bot:fingerprint:mismatch:chrome"])));
    for (ja4, agent) in [
        (OF_CHROME, CHROME),
        // Chromium's TLS under another name.
        (OF_CHROME, EDGE),
        (OF_CURL, "curl/8.5.0"),
        // Nothing is known of the fingerprint, or of what the agent is.
        (UNSEEN, CHROME),
        (OF_CURL, "Mozilla/5.0 Something/1.0"),
        (OF_CURL, ""),
        // What is no JA4 is ignored.
        ("", CHROME),
        ("-", CHROME),
        ("t13d3012h2_1d37bd780c83_d339722ba4af\n", CHROME),
    ] {
        assert_eq!(asks(&*guard, ja4, "192.0.2.7", agent, &host), nothing(), "{ja4:?} {agent}");
    }
}

#[test]
fn a_header_is_no_fingerprint_and_a_client_without_one_is_judged_by_the_rest() {
    let (guard, host) = (guard(evidence(), pairs(), vec![rule(OF_CURL, BotReaction::Deny, 9.0, 0)]), FakeHost::at(NOW));
    let mut exchange = request("192.0.2.7", &[]);
    let headers: [(&str, &[u8]); 4] = [
        ("user-agent", CHROME.as_bytes()),
        ("svc.ja4", OF_CURL.as_bytes()),
        ("x-ja4", OF_CURL.as_bytes()),
        ("ja4", OF_CURL.as_bytes()),
    ];
    exchange.request.headers = Headers::new(&headers);
    assert_eq!(guard.access(&mut exchange, &mut Slot::default(), &host), Verdict::Pass);
    assert!(exchange.score.signals().is_empty());
}

#[test]
fn a_client_that_says_it_is_a_bot_is_no_mismatch_and_a_verified_one_is_let_alone() {
    let host = FakeHost::at(NOW);
    let agent = format!("{CHROME} (compatible; Googlebot/2.1)");
    let guard = |rules: Vec<FingerprintRule>| {
        let fingerprints = Some(FingerprintList { pairs: pairs(), rules });
        let list = BotList { bots: some_bots(), fingerprints, ..BotList::default() };
        let verdict = CrawlerVerdict { finding: Finding::Verified, until: NOW + 1000, renew: NOW + 900 };
        let verdicts = [(key(&METHOD, "192.0.2.7".parse().unwrap()), verdict)];
        plugin_of(BotGuardStep { fingerprints: Some(evidence()), ..step() }, list, Some(&verdicts))
    };
    let plain = guard(Vec::new());
    assert_eq!(asks(&*plain, OF_CURL, "192.0.2.8", &agent, &host).2, tags(&["bot:search:googlebot", "bot:search"]));
    let denies = guard(vec![rule(OF_CURL, BotReaction::Deny, 9.0, 0)]);
    assert_eq!(asks(&*denies, OF_CURL, "192.0.2.8", &agent, &host).0, Some(451));
    let path = ["filter_state", "svc.ja4"].map(str::to_owned).to_vec();
    host.properties.borrow_mut().insert(path, OF_CURL.as_bytes().to_vec());
    let verdict = denies.access(&mut request("192.0.2.7", &[agent.as_bytes()]), &mut Slot::default(), &host);
    assert!(matches!(verdict, Verdict::Skip(_)), "{verdict:?}");
}

#[test]
fn a_fingerprint_that_is_none_of_the_softwares_own_weighs_if_the_policy_says_so() {
    let step = FingerprintStep { unknown_weight: 15.0, ..evidence() };
    let (guard, host) = (guard(step, pairs(), Vec::new()), FakeHost::at(NOW));
    let found = asks(&*guard, UNSEEN, "192.0.2.7", CHROME, &host);
    assert_eq!(found, (None, 15.0, tags(&["bot:fingerprint:unknown:chrome"])));
    assert_eq!(asks(&*guard, UNSEEN, "192.0.2.7", FIREFOX, &host), nothing(), "no pair of its software is known");
    assert_eq!(asks(&*guard, OF_CURL, "192.0.2.7", CHROME, &host).1, 40.0, "a mismatch is one signal");
}

#[test]
fn a_rule_acts_on_its_fingerprint_and_replaces_other_evidence() {
    let rules = vec![
        rule(OF_CHROME, BotReaction::Allow, 50.0, 0),
        rule("*_1d37bd780c83_*", BotReaction::Deny, 30.0, 0),
        rule("t12i100500_*_*", BotReaction::Monitor, 20.0, 0),
    ];
    let (guard, host) = (guard(evidence(), pairs(), rules), FakeHost::at(NOW));
    assert_eq!(asks(&*guard, OF_CHROME, "192.0.2.7", "curl/8", &host), nothing());
    let listed = tags(&["bot:fingerprint:listed"]);
    assert_eq!(asks(&*guard, OF_CURL, "192.0.2.7", CHROME, &host), (Some(451), 30.0, listed.clone()));
    assert_eq!(asks(&*guard, UNSEEN, "192.0.2.7", CHROME, &host), (None, 20.0, listed));
}

#[test]
fn a_limit_counts_all_clients_with_the_fingerprint_together() {
    let rules = vec![rule("*_1d37bd780c83_*", BotReaction::Deny, 30.0, 10)];
    let host = FakeHost::at(NOW);
    let workers = [guard(evidence(), pairs(), rules.clone()), guard(evidence(), pairs(), rules)];
    let mut asked = 0..;
    let mut ask = |ja4: &str| {
        let number = asked.next().unwrap();
        asks(&*workers[number % 2], ja4, &format!("192.0.2.{number}"), "curl/8", &host)
    };
    assert!((0..10).all(|_| ask(OF_CURL) == nothing()));
    assert_eq!(ask(OF_CURL), (Some(429), 30.0, tags(&["bot:fingerprint:limited"])));
    let other = "t13d3012h2_1d37bd780c83_000000000000";
    assert_eq!(ask(other), nothing(), "each fingerprint is an identity of its own");
    host.advance(80_000);
    assert_eq!(ask(OF_CURL), nothing());
    // By this list nodes tell the control plane what they count.
    let (groups, _) = node_state::SharedData::get(host.shared(), "svc.counts.used").unwrap();
    assert!(groups.windows(17).any(|name| name == b"bots.fingerprints"), "other nodes learn of it");
}

#[test]
fn a_fingerprint_that_comes_as_different_software_from_many_networks_weighs() {
    let step = FingerprintStep { rotation_weight: 25.0, mismatch_weight: 0.0, ..evidence() };
    let (guard, host) = (guard(step, pairs(), Vec::new()), FakeHost::at(NOW));
    let rotates = (None, 25.0, tags(&["bot:fingerprint:rotates"]));
    // One network that says everything is none, nor are many addresses that say the same, or Chromium under two names.
    for agent in [CHROME, EDGE, FIREFOX, "curl/8", "python-requests/2", "Go-http-client/2"] {
        for low in 0..20 {
            assert_eq!(asks(&*guard, UNSEEN, &format!("192.0.2.{low}"), agent, &host), nothing(), "{agent}");
        }
    }
    for third in 0..5 {
        assert_eq!(asks(&*guard, UNSEEN, &format!("198.51.{third}.1"), CHROME, &host), nothing());
        assert_eq!(asks(&*guard, UNSEEN, &format!("198.51.{third}.1"), EDGE, &host), nothing());
    }
    assert_eq!(asks(&*guard, UNSEEN, "198.51.100.1", FIREFOX, &host), nothing(), "two kinds");
    assert_eq!(asks(&*guard, UNSEEN, "198.51.100.1", "curl/8", &host), rotates, "three kinds from two networks each");
    assert_eq!(asks(&*guard, UNSEEN, "203.0.113.1", "", &host), rotates, "whatever it says now");
    // Browsers are not blamed for those who pretend to be others with their fingerprint.
    for agent in [FIREFOX, "curl/8", "python-requests/2", "Go-http-client/2"] {
        for third in 0..3 {
            asks(&*guard, OF_CHROME, &format!("198.51.{third}.1"), agent, &host);
        }
    }
    assert_eq!(asks(&*guard, OF_CHROME, "203.0.113.1", CHROME, &host), nothing());
    let both = tags(&["bot:fingerprint:mismatch:firefox", "bot:fingerprint:rotates"]);
    assert_eq!(asks(&*guard, OF_CHROME, "203.0.113.1", FIREFOX, &host), (None, 25.0, both));
    host.advance(2 * 86_400_000);
    assert_eq!(asks(&*guard, UNSEEN, "203.0.113.1", "", &host), nothing(), "it has ended");
}

/// The reports that a host has sent.
fn reported(host: &FakeHost) -> Vec<FingerprintSeen> {
    let reports = host.reports.borrow();
    let kinds = reports.iter().filter(|(kind, _)| *kind == SIGHTINGS);
    kinds.map(|(_, data)| FingerprintSeen::decode(data.as_slice()).unwrap()).collect()
}

#[test]
fn what_is_seen_is_reported_once_for_each_network_and_only_if_the_policy_learns() {
    let step = FingerprintStep { learn: true, ..evidence() };
    let (learns, host) = (guard(step, Vec::new(), Vec::new()), FakeHost::at(NOW));
    for _ in 0..50 {
        asks(&*learns, OF_CHROME, "192.0.2.7", CHROME, &host);
        asks(&*learns, OF_CHROME, "192.0.2.8", CHROME, &host);
        asks(&*learns, OF_CHROME, "2001:db8:1:2::9", CHROME, &host);
        asks(&*learns, OF_CHROME, "192.0.2.7", "Mozilla/5.0 Something/1.0", &host);
        asks(&*learns, OF_CHROME, "192.0.2.7", &format!("{CHROME} Googlebot"), &host);
    }
    let seen = |network: &[u8]| FingerprintSeen {
        ja4: OF_CHROME.as_bytes().to_vec(),
        family: "chrome".into(),
        network: network.to_vec(),
    };
    assert_eq!(reported(&host), [seen(&[192, 0, 2]), seen(&[0x20, 1, 0xd, 0xb8, 0, 1])]);
    host.advance(2 * 86_400_000);
    asks(&*learns, OF_CHROME, "192.0.2.7", CHROME, &host);
    assert_eq!(reported(&host).len(), 3, "it is still there");

    let (silent, host) = (guard(evidence(), Vec::new(), Vec::new()), FakeHost::at(NOW));
    asks(&*silent, OF_CHROME, "192.0.2.7", CHROME, &host);
    assert_eq!(reported(&host), []);
}

#[test]
fn a_client_that_varies_its_fingerprint_reports_little() {
    let step = FingerprintStep { learn: true, ..evidence() };
    let (learns, host) = (guard(step, Vec::new(), Vec::new()), FakeHost::at(NOW));
    let vary = |number: u32| format!("t13d1516h2_{number:012x}_02713d6af862");
    for number in 0..2_000 {
        asks(&*learns, &vary(number), "192.0.2.7", CHROME, &host);
        host.advance(100);
    }
    assert_eq!(reported(&host).len(), 16, "a network has its share");
    let host = FakeHost::at(NOW);
    for number in 0..20_000_u32 {
        let address = std::net::Ipv4Addr::from(0x1000_0000 + number * 263);
        asks(&*learns, &vary(number), &address.to_string(), CHROME, &host);
    }
    assert_eq!(reported(&host).len(), 50, "a worker as well");
}

#[test]
fn a_client_that_varies_its_fingerprint_takes_no_sighting_from_others() {
    let step = FingerprintStep { learn: true, ..evidence() };
    let (learns, host) = (guard(step, Vec::new(), Vec::new()), FakeHost::at(NOW));
    for number in 0..2_000 {
        asks(&*learns, &format!("t13d1516h2_{number:012x}_02713d6af862"), "192.0.2.7", CHROME, &host);
    }
    assert_eq!(reported(&host).len(), 16, "a network has its share");
    asks(&*learns, OF_CHROME, "198.51.100.7", CHROME, &host);
    assert_eq!(reported(&host).last().map(|seen| seen.network.clone()), Some(vec![198, 51, 100]));
}

#[test]
fn accepted_pairs_of_the_table_act_like_those_of_the_policy() {
    let list = BotList { bots: some_bots(), ..BotList::default() };
    let part = list.encode_to_vec();
    let hash = snapshot::content_hash(&part).to_vec();
    let step = BotGuardStep { bots: hash.clone(), fingerprints: Some(evidence()), ..step() };
    let tables = Rc::new(Tables::default());
    let mut parts = Build::new(std::iter::once((hash.as_slice(), part.as_slice()))).with_tables(Rc::clone(&tables));
    let guard = build(&step.encode_to_vec(), &mut parts).unwrap();
    let host = FakeHost::at(NOW);
    assert_eq!(asks(&*guard, OF_CURL, "192.0.2.7", CHROME, &host), nothing(), "the table is not there yet");
    let mut builder = KeysBuilder::default();
    let curl = Family::read("curl").unwrap().bit();
    builder.put(OF_CURL.as_bytes(), &curl.to_le_bytes()).unwrap();
    builder.put(UNSEEN.as_bytes(), b"no bits").unwrap();
    let data = builder.build().unwrap();
    let (state, size) = (State::of_base(&data).0.to_vec(), u32::try_from(data.len()).unwrap());
    let change = snapshot::TableChange { name: FINGERPRINTS.into(), state, data, size, ..Default::default() };
    assert_eq!(tables.take(&change), Taken::Applied);
    assert_eq!(asks(&*guard, OF_CURL, "192.0.2.7", CHROME, &host).1, 40.0);
    assert_eq!(asks(&*guard, OF_CURL, "192.0.2.7", "curl/8", &host), nothing());
    assert_eq!(asks(&*guard, UNSEEN, "192.0.2.7", CHROME, &host), nothing(), "a value of another release");
}

#[test]
fn a_step_with_fingerprints_that_are_none_is_refused() {
    let built = |rules: Vec<FingerprintRule>| {
        let fingerprints = Some(FingerprintList { pairs: Vec::new(), rules });
        Bots::new(BotList { fingerprints, ..BotList::default() }).map(|_| ())
    };
    assert_eq!(built(vec![rule(OF_CURL, BotReaction::Deny, 0.0, 0)]), Ok(()));
    assert!(built(vec![rule("curl", BotReaction::Deny, 0.0, 0)]).is_err());
    assert!(built(vec![rule(OF_CURL, BotReaction::Unspecified, 0.0, 0)]).is_err());
}
