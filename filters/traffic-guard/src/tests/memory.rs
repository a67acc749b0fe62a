//! What a flood of keys does to what is kept.

use super::*;
use crate::paces::Paces;

/// The most bytes that the plugin keeps with the defaults: 200,000 records in shards for a third more, and the sketch.
const MOST: usize = 24 << 20;

#[test]
fn a_flood_of_new_sources_pushes_out_no_source_that_is_known() {
    let host = FakeHost::at(NOW);
    let shop: Rc<str> = "shop".into();
    let paces = Paces::new(limits(), 200_000);
    let count = |key: &[u8], by| paces.count((Dimension::Source, key), (by, &shop), 5.0, &host);
    for _ in 0..20 {
        count(b"office", 20);
        host.advance(BUCKET);
    }
    let usual = count(b"office", 1).unwrap().pace.usual;
    assert!((15.0..21.0).contains(&usual), "{usual}");
    let mut records = 0_u32;
    for number in 0..250_000_u32 {
        records += u32::from(count(&number.to_le_bytes(), 1).is_some());
        if number % 50_000 == 0 {
            host.advance(BUCKET);
            count(b"office", 20);
        }
    }
    let bytes = host.shared_data.bytes();
    println!("250,000 new sources: {records} have a record, {} KiB in all", bytes / 1024);
    assert!(records < 25_000, "{records}");
    assert!(bytes < MOST, "{bytes}");
    let after = count(b"office", 1).unwrap().pace.usual;
    assert!((10.0..25.0).contains(&after), "{after}");
}

#[test]
fn with_fewer_places_than_fast_sources_the_known_ones_stay() {
    let host = FakeHost::at(NOW);
    let shop: Rc<str> = "shop".into();
    let paces = Paces::new(limits(), 100);
    let count = |key: &[u8], by| paces.count((Dimension::Source, key), (by, &shop), 5.0, &host);
    paces.count((Dimension::Route, b"shop"), (1, &shop), 20.0, &host);
    for _ in 0..20 {
        count(b"office", 60);
        host.advance(BUCKET);
    }
    // Each is as fast as a source must be to have a record.
    for number in 0..20_000_u32 {
        let _ = count(&number.to_le_bytes(), 20);
    }
    let after = count(b"office", 1).unwrap().pace.usual;
    assert!(after > 50.0, "{after}");
    let route = paces.count((Dimension::Route, b"shop"), (1, &shop), 20.0, &host).unwrap();
    assert_eq!(route.pace.count, 1, "the 20 buckets are closed");
    let losses = host.shared_data_losses();
    assert!(losses > 19_000, "{losses}");
}

trait Losses {
    fn shared_data_losses(&self) -> u64;
}

impl Losses for FakeHost {
    /// How many records gave way.
    fn shared_data_losses(&self) -> u64 {
        use exchange::SharedData as _;
        self.shared_data.memory().take_losses().iter().map(|(_, losses)| losses.evicted).sum()
    }
}

#[test]
fn many_routes_are_noted_without_limit_on_the_node_and_with_one_in_a_worker() {
    let host = FakeHost::at(NOW);
    let paces = Paces::new(limits(), 1000);
    let count = |route: &Rc<str>, by| paces.count((Dimension::Source, b"a"), (by, route), 5.0, &host);
    for number in 0..5000 {
        let _ = count(&Rc::from(format!("route-{number}")), 0);
    }
    host.advance(7 * BUCKET);
    let moment = count(&Rc::from("route-0"), 200).unwrap();
    assert_ne!(moment.pace.since, 0, "it has been watched since it was first noted");
}
