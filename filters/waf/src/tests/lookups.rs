//! Rules that look up addresses, with tables made in the test.

use reputation_tables::{AddressQuestion, AddressVerdict, COUNTRIES, REPORTS, VERDICTS, country_label, verdict_key};
use snapshot::TableChange;
use tables::{KeysBuilder, LabelWidth, RangesBuilder, State as TableState};

use super::*;
use crate::WafZone;
use exchange::{Tables, Taken};

const RULES: &str = r#"
SecRuleEngine On
SecRequestBodyAccess On
SecRule REMOTE_ADDR "@geoLookup" "id:1,phase:1,deny,status:451,chain"
    SecRule GEO:COUNTRY_CODE "@streq BR"
SecRule REMOTE_ADDR "!@geoLookup" "id:2,phase:1,deny,status:404"
SecRule ARGS:peer "@rbl bl.test" "id:3,phase:2,deny,status:406"
SecRule ARGS:peer "!@rbl bl.test" "id:4,phase:2,deny,status:405"
"#;

/// A worker that asks for the tables of the rules.
struct Worker {
    plugin: Box<dyn Plugin>,
    tables: Rc<Tables>,
    host: FakeHost,
}

impl Worker {
    fn new(places: bool, zones: &[&str]) -> Worker {
        let source = Source { origin: "test".into(), text: RULES.as_bytes().to_vec() };
        let program = seclang::compile(&[source], &Nothing).unwrap_or_else(|errors| panic!("{}", errors[0])).encode();
        let zones = zones.iter().map(|zone| WafZone { name: (*zone).into(), key: format!("key of {zone}") }).collect();
        let step = WafStep { program: content_hash(&program).to_vec(), places, zones, ..step() };
        let parts = [(step.program.clone(), program)];
        let tables = Rc::new(Tables::default());
        let build = Build::new(parts.iter().map(|(hash, data)| (hash.as_slice(), data.as_slice())));
        let plugin = build_with(&step, build.with_tables(Rc::clone(&tables)));
        Worker { plugin, tables, host: FakeHost::at(1_000_000) }
    }

    fn take(&self, name: &str, data: Vec<u8>) {
        let (state, size) = (TableState::of_base(&data).0.to_vec(), u32::try_from(data.len()).unwrap());
        let change = TableChange { name: name.into(), state, data, size, ..TableChange::default() };
        assert_eq!(self.tables.take(&change), Taken::Applied);
    }

    fn countries(&self) {
        let mut builder = RangesBuilder::new(LabelWidth::Two);
        for (first, last, country) in [("192.0.2.0", "192.0.2.255", *b"BR"), ("2001:db8::", "2001:db8::ffff", *b"DE")] {
            builder.set(first.parse().unwrap(), last.parse().unwrap(), country_label(country)).unwrap();
        }
        self.take(COUNTRIES, builder.build().unwrap());
    }

    fn verdicts(&self, verdicts: &[(&str, &str)]) {
        let mut builder = KeysBuilder::default();
        for (address, keys) in verdicts {
            let verdict = AddressVerdict { until: 2_000_000, renew: 1_500_000, keys: keys.as_bytes().to_vec() };
            builder.put(&verdict_key(address.parse().unwrap()), &verdict.to_bytes()).unwrap();
        }
        self.take(VERDICTS, builder.build().unwrap());
    }

    /// The status of a refusal of a request to its end.
    fn status(&self, from: &str, path: &str) -> Option<u16> {
        let mut exchange = exchange(path, Headers::default());
        exchange.caller.ip = from.into();
        let mut slot = Slot::default();
        let verdict = send(&*self.plugin, &mut exchange, Body { bytes: b"", complete: true }, &mut slot, &self.host);
        self.plugin.finish(&mut exchange, &mut slot, &self.host);
        status(&verdict)
    }

    /// The addresses that the control plane was asked for since the last call.
    fn asked(&self) -> Vec<Vec<u8>> {
        let reports = std::mem::take(&mut *self.host.reports.borrow_mut());
        let question = |(kind, data): (&'static str, Vec<u8>)| {
            assert_eq!(kind, REPORTS);
            let question = AddressQuestion::decode(data.as_slice()).unwrap();
            assert_eq!(question.millis, 0, "nothing waits");
            question.address
        };
        reports.into_iter().map(question).collect()
    }
}

fn build_with(step: &WafStep, mut parts: Build<'_>) -> Box<dyn Plugin> {
    build(&step.encode_to_vec(), &mut parts).unwrap()
}

#[test]
fn a_rule_refuses_by_the_country_of_the_caller() {
    let worker = Worker::new(true, &[]);
    assert_eq!(worker.status("192.0.2.7", "/"), None, "there is no table yet: neither way matches");
    assert_eq!(worker.status("203.0.113.7", "/"), None);
    worker.countries();
    assert_eq!((worker.status("192.0.2.7", "/"), worker.status("::ffff:192.0.2.7", "/")), (Some(451), Some(451)));
    assert_eq!((worker.status("2001:db8::7", "/"), worker.status("203.0.113.7", "/")), (None, Some(404)));
    assert!(worker.asked().is_empty());
}

#[test]
fn a_listing_counts_from_the_next_request_on_and_nothing_waits() {
    let worker = Worker::new(false, &["bl.test"]);
    let both = |address: &str| (worker.status("203.0.113.1", &format!("/?peer={address}")), worker.asked());
    assert_eq!(both("192.0.2.66"), (None, vec![vec![192, 0, 2, 66]]), "not known: it is asked for");
    assert_eq!(both("192.0.2.66"), (None, Vec::new()), "once");
    worker.verdicts(&[
        ("192.0.2.66", "key of bl.test"),
        ("192.0.2.1", "key of another"),
        ("192.0.2.99", "?key of bl.test"),
    ]);
    assert_eq!(both("192.0.2.66"), (Some(406), Vec::new()));
    assert_eq!(both("192.0.2.1"), (Some(405), Vec::new()));
    assert_eq!(both("192.0.2.99"), (None, Vec::new()), "the zone has not answered");
    assert_eq!(both("10.0.0.1"), (Some(405), Vec::new()), "no list has private addresses");
    worker.host.advance(600_000);
    assert_eq!(both("192.0.2.66"), (Some(406), vec![vec![192, 0, 2, 66]]), "it is renewed while it holds");
}

#[test]
fn a_request_asks_for_a_few_addresses_at_most() {
    let worker = Worker::new(false, &["bl.test"]);
    let query: Vec<String> = (0..200).map(|number| format!("peer=198.51.{number}.7")).collect();
    assert_eq!(worker.status("203.0.113.1", &format!("/?{}", query.join("&"))), None);
    assert_eq!(worker.asked().len(), 8);
}

#[test]
fn without_its_zone_a_rule_asks_nothing() {
    let worker = Worker::new(false, &["other.test"]);
    assert_eq!(worker.status("203.0.113.1", "/?peer=192.0.2.66"), None);
    assert!(worker.asked().is_empty());
    let kept = worker.tables.names();
    assert_eq!(kept, [VERDICTS], "no table of countries is sent for rules that do not use it");
}
