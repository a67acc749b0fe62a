//! DNS blocklists: what a step asks, and what it makes of verdicts.

use exchange::fake::FakeHost;
use exchange::{Answer, Ask};
use tables::{KeyOps, KeysBuilder};

use super::*;

fn zone(key: &str, weight: f64, blocks: bool) -> FeedOfStep {
    FeedOfStep { zone: true, ..feed(key, weight, blocks) }
}

/// A step on a worker with a table of verdicts.
struct Worker {
    plugin: Box<dyn Plugin>,
    tables: Rc<Tables>,
    state: Vec<u8>,
    host: FakeHost,
}

impl Worker {
    fn new(wait_millis: u32, zones: Vec<FeedOfStep>) -> Worker {
        let config = IpReputationStep { wait_millis, passthrough: vec!["203.0.113.0/28".into()], ..step(zones) };
        let tables = Rc::new(Tables::default());
        let mut build = Build::new(std::iter::empty()).with_tables(Rc::clone(&tables));
        let plugin = super::build(&config.encode_to_vec(), &mut build).unwrap();
        let data = KeysBuilder::default().build().unwrap();
        let state = State::of_base(&data).0.to_vec();
        let worker = Worker { plugin, tables, state, host: FakeHost::at(1_000_000) };
        let size = u32::try_from(data.len()).unwrap();
        let state = worker.state.clone();
        let base = snapshot::TableChange { name: VERDICTS.into(), state, data, size, ..Default::default() };
        assert_eq!(worker.tables.take(&base), Taken::Applied);
        worker
    }

    /// The control plane changes a verdict.
    fn put(&mut self, address: &str, verdict: &AddressVerdict) {
        let mut ops = KeyOps::default();
        ops.put(&verdict_key(address.parse().unwrap()), &verdict.to_bytes()).unwrap();
        let data = ops.finish();
        let from = self.state.clone();
        let state = State(<[u8; 32]>::try_from(from.as_slice()).unwrap()).after(&data).0.to_vec();
        self.state.clone_from(&state);
        let change = snapshot::TableChange { name: VERDICTS.into(), state, from, data, ..Default::default() };
        assert_eq!(self.tables.take(&change), Taken::Applied);
    }

    fn access(&self, address: &str) -> (Verdict, Exchange) {
        let mut exchange = Exchange::default();
        exchange.caller.ip = address.into();
        let verdict = self.plugin.access(&mut exchange, &mut Slot::default(), &self.host);
        (verdict, exchange)
    }

    fn answered(&self, address: &str, answer: Answer) -> (Verdict, f64) {
        let mut exchange = Exchange::default();
        exchange.caller.ip = address.into();
        let verdict = self.plugin.answered(&mut exchange, answer, &mut Slot::default(), &self.host);
        (verdict, exchange.score.total())
    }

    /// What it asks for without waiting, since the last call.
    fn reports(&self) -> Vec<IpAddr> {
        let reports = std::mem::take(&mut *self.host.reports.borrow_mut());
        let read = |(kind, data): (&'static str, Vec<u8>)| {
            assert_eq!(kind, REPORTS);
            read_address(&AddressQuestion::decode(data.as_slice()).unwrap().address).unwrap()
        };
        reports.into_iter().map(read).collect()
    }
}

fn asked(verdict: &Verdict) -> Option<(AddressQuestion, u32)> {
    match verdict {
        Verdict::Ask(Ask { question, millis, body: false }) => Some((question.read().unwrap(), *millis)),
        _ => None,
    }
}

fn keys(text: &str) -> Answer {
    Answer::Data(AddressAnswer { keys: text.as_bytes().to_vec() }.encode_to_vec())
}

#[test]
fn an_unknown_caller_waits_once_and_the_node_knows_the_answer() {
    let worker = Worker::new(100, vec![zone("k", 40.0, true)]);
    let (question, millis) = asked(&worker.access("192.0.2.7").0).unwrap();
    assert_eq!((question.address.as_slice(), question.millis, millis), (&[192, 0, 2, 7][..], 100, 100));
    assert!(matches!(worker.access("::ffff:192.0.2.7").0, Verdict::Pass), "the question is under way, nothing waits");
    let (verdict, score) = worker.answered("192.0.2.7", keys("k"));
    assert!(matches!(verdict, Verdict::Refuse(refusal) if refusal.status == 451) && score == 40.0);
    let (verdict, exchange) = worker.access("192.0.2.7");
    assert!(matches!(verdict, Verdict::Refuse(_)), "before the table comes");
    assert_eq!(exchange.score.tags(), ["feed:k", "reputation:id-k"]);
    assert!(worker.reports().is_empty());
    // Nothing known in time: the request passes, and nothing waits again for a while.
    assert!(asked(&worker.access("192.0.2.8").0).is_some());
    for answer in [Answer::Unavailable, Answer::NoControlPlane, Answer::Data(vec![0xff])] {
        assert!(matches!(worker.answered("192.0.2.8", answer), (Verdict::Pass, 0.0)));
    }
    assert!(matches!(worker.access("192.0.2.8").0, Verdict::Pass));
    worker.host.advance(10_001);
    assert!(asked(&worker.access("192.0.2.8").0).is_some());
}

#[test]
fn without_a_wait_a_listing_counts_from_the_next_request_on() {
    let mut worker = Worker::new(0, vec![zone("k", 40.0, false), feed("f", 1.0, true)]);
    assert!(matches!(worker.access("2001:db8:0:1::7").0, Verdict::Pass));
    assert_eq!(worker.reports(), ["2001:db8:0:1::7".parse::<IpAddr>().unwrap()]);
    let verdict = AddressVerdict { until: 1_100_000, renew: 1_090_000, keys: b"gone,k,f".to_vec() };
    worker.put("2001:db8:0:1::7", &verdict);
    let score = |worker: &Worker, address: &str| worker.access(address).1.score.total();
    assert_eq!(score(&worker, "2001:db8:0:1::7"), 40.0, "the key of a feed is none of a zone");
    assert_eq!(score(&worker, "2001:db8:0:1:ffff::1"), 40.0, "the same /64");
    assert_eq!(score(&worker, "2001:db8:0:2::7"), 0.0);
    // It is renewed while it holds.
    worker.reports();
    worker.host.advance(90_000);
    assert_eq!((score(&worker, "2001:db8:0:1::7"), worker.reports().len()), (40.0, 1));
    assert_eq!((score(&worker, "2001:db8:0:1::7"), worker.reports().len()), (40.0, 0));
    worker.host.advance(10_000);
    assert_eq!(score(&worker, "2001:db8:0:1::7"), 0.0, "it has ended");
}

#[test]
fn what_need_not_be_asked_is_not_asked() {
    let mut refusing = Worker::new(100, vec![zone("k", 40.0, true)]);
    for address in
        ["10.1.2.3", "127.0.0.1", "100.64.0.1", "169.254.1.1", "fe80::1", "fd00::1", "::1", "203.0.113.9", ""]
    {
        assert!(matches!(refusing.access(address).0, Verdict::Pass), "{address}");
    }
    let listed = AddressVerdict { until: 1_100_000, renew: 1_100_000, keys: b"k".to_vec() };
    refusing.put("203.0.113.9", &listed);
    assert!(matches!(refusing.access("203.0.113.9").0, Verdict::Pass), "it passes through");
    refusing.put("203.0.113.99", &listed);
    assert!(matches!(refusing.access("203.0.113.99").0, Verdict::Refuse(_)));
    refusing.put("198.51.100.1", &AddressVerdict { keys: Vec::new(), ..listed });
    assert!(matches!(refusing.access("198.51.100.1").0, Verdict::Pass));
    assert!(refusing.reports().is_empty());
}

#[test]
fn a_flood_of_addresses_asks_little() {
    let worker = Worker::new(100, vec![zone("k", 40.0, true)]);
    let ask = |address: String| u32::from(asked(&worker.access(&address).0).is_some());
    let of_network: u32 = (0..256).map(|last| ask(format!("192.0.2.{last}"))).sum();
    assert_eq!(of_network, 32);
    worker.host.advance(1_000);
    let of_all: u32 =
        (0..1_000_u32).map(|number| ask(IpAddr::from((0x0100_0000 + number * 256).to_be_bytes()).to_string())).sum();
    assert_eq!(of_all, 100);
}

#[test]
fn a_zone_counts_beside_feeds_classes_and_decisions_on_networks() {
    let class = FeedOfStep { class: true, tag: "asn:hosting".into(), ..feed("c", 15.0, false) };
    let service = FeedOfStep { bouncer: true, ..feed("s", 20.0, false) };
    let mut config = step(vec![zone("k", 40.0, true), feed("f", 10.0, false), class, service]);
    config.by_network = true;
    let mut networks = RangesBuilder::new(LabelWidth::Four);
    networks.set("192.0.2.0".parse().unwrap(), "192.0.2.255".parse().unwrap(), 64496).unwrap();
    let mut named = KeysBuilder::default();
    named.put(b"as:64496", b"s").unwrap();
    // Keys of a zone mean nothing in the tables of lists.
    let tables = vec![
        (TABLE, table(&[("f", "192.0.2.0", "192.0.2.255"), ("k", "198.51.100.0", "198.51.100.255")])),
        (CLASSES, table(&[("c", "192.0.2.0", "192.0.2.255")])),
        (NETWORKS, networks.build().unwrap()),
        (NAMED_DECISIONS, named.build().unwrap()),
    ];
    let plugin = with_tables(&config, tables);
    let judged = |address: &str, listed: &str| {
        let mut exchange = Exchange::default();
        exchange.caller.ip = address.into();
        let verdict = plugin.answered(&mut exchange, keys(listed), &mut Slot::default(), &FakeHost::at(7));
        let refused = match verdict {
            Verdict::Refuse(refusal) => Some(refusal.reason),
            _ => None,
        };
        (refused, exchange.score.total())
    };
    let reason = "the caller's address is on the DNS blocklist `id-k`";
    assert_eq!(judged("192.0.2.7", "k"), (Some(reason.into()), 85.0));
    assert_eq!(judged("192.0.2.8", ""), (None, 45.0), "without the zone");
    assert_eq!(judged("198.51.100.7", ""), (None, 0.0));
}
