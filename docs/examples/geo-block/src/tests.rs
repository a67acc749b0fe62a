use std::rc::Rc;

use super::*;
use ::tables::{LabelWidth, RangesBuilder, State};
use exchange::fake::FakeHost;
use exchange::{Tables, Taken};

/// The plugin in a worker that has a table: 192.0.2.0/24 is of AA, 198.51.100.0/24 of BB.
fn plugin(step: &GeoBlockStep, with_table: bool) -> Box<dyn Plugin> {
    let tables = Rc::new(Tables::default());
    let plugin =
        build(&step.encode_to_vec(), &mut Build::new(std::iter::empty()).with_tables(Rc::clone(&tables))).unwrap();
    if with_table {
        let mut ranges = RangesBuilder::new(LabelWidth::Two);
        for (label, name, first, last) in
            [(1, b"AA", "192.0.2.0", "192.0.2.255"), (2, b"BB", "198.51.100.0", "198.51.100.255")]
        {
            ranges.set(first.parse().unwrap(), last.parse().unwrap(), label).unwrap();
            ranges.name(label, name).unwrap();
        }
        let data = ranges.build().unwrap();
        let state = State::of_base(&data).0.to_vec();
        let size = u32::try_from(data.len()).unwrap();
        let change = snapshot::TableChange { name: TABLE.into(), state, data, size, ..Default::default() };
        assert_eq!(tables.take(&change), Taken::Applied);
    }
    plugin
}

fn ask(plugin: &dyn Plugin, address: &str) -> (Option<u16>, f64) {
    let mut exchange = Exchange::default();
    exchange.caller.ip = address.into();
    let verdict = plugin.access(&mut exchange, &mut Slot::default(), &FakeHost::at(0));
    let status = match verdict {
        Verdict::Refuse(refusal) => Some(refusal.status),
        Verdict::Pass => None,
        other => panic!("{other:?}"),
    };
    (status, exchange.score.total())
}

fn step() -> GeoBlockStep {
    GeoBlockStep { countries: vec!["AA".into()], status: 451, monitor: false, weight: 60.0 }
}

#[test]
fn listed_countries_are_refused_and_others_pass() {
    let plugin = plugin(&step(), true);
    assert_eq!(ask(&*plugin, "192.0.2.7"), (Some(451), 60.0));
    for other in ["198.51.100.7", "203.0.113.7", "2001:db8::1", "", "no address"] {
        assert_eq!(ask(&*plugin, other), (None, 0.0), "{other}");
    }
}

#[test]
fn a_monitoring_plugin_adds_to_the_score_and_refuses_no_request() {
    let plugin = plugin(&GeoBlockStep { monitor: true, ..step() }, true);
    assert_eq!(ask(&*plugin, "192.0.2.7"), (None, 60.0));
}

#[test]
fn without_its_table_it_lets_requests_pass() {
    assert_eq!(ask(&*plugin(&step(), false), "192.0.2.7"), (None, 0.0));
}

#[test]
fn a_step_that_cannot_be_read_is_refused() {
    let build = |step: &GeoBlockStep| build(&step.encode_to_vec(), &mut Build::new(std::iter::empty())).is_err();
    assert!(build(&GeoBlockStep { countries: vec!["AAA".into()], ..step() }));
    assert!(!build(&GeoBlockStep { countries: Vec::new(), ..step() }));
}
