//! What is watched, and what a surge of it adds to the score.

use super::*;

/// A plugin whose node has watched the route `shop` for a while, with little traffic.
fn watching(step: &TrafficGuardStep) -> (Box<dyn Plugin>, FakeHost) {
    let (plugin, host) = (plugin(step), FakeHost::at(NOW));
    let of_network = From { ip: "192.0.2.200", apikey: Some("other"), ..ONE };
    for _ in 0..10 {
        assert_eq!(send(&*plugin, &host, of_network), (0.0, String::new()));
        assert_eq!(bucket(&*plugin, &host, ONE, 1), (0.0, String::new()));
    }
    (plugin, host)
}

#[test]
fn a_source_that_surges_is_found_within_the_bucket_and_past_twice_and_four_times_it_weighs_more() {
    let (plugin, host) = watching(&step());
    let flood = From { ip: "203.0.113.9", ..ONE };
    let outcomes: Vec<(f64, String)> = (0..700).map(|_| send(&*plugin, &host, flood)).collect();
    let first = outcomes.iter().position(|(_, tags)| tags.contains("traffic:source_surge")).unwrap();
    assert!((100..=151).contains(&first), "{first}");
    assert_eq!(outcomes[first].0, 40.0);
    let scores = |at: usize| outcomes[at].0;
    assert_eq!((scores(280), scores(320), scores(590)), (40.0, 60.0, 60.0));
    assert_eq!(outcomes[650], (100.0, "traffic:route_surge traffic:source_surge".to_owned()), "with the route's");
    let other = send(&*plugin, &host, From { ip: "203.0.113.10", ..ONE });
    assert_eq!(other, (40.0, "traffic:route_surge".to_owned()), "another source has no part in it");
    let elsewhere = send(&*plugin, &host, From { ip: "203.0.113.10", route: "blog", ..ONE });
    assert_eq!(elsewhere, (0.0, String::new()), "nor has another route");
    host.advance(BUCKET);
    assert_eq!(send(&*plugin, &host, flood).1, "traffic:route_surge traffic:source_surge", "until a bucket was calm");
    host.advance(BUCKET);
    assert_eq!(send(&*plugin, &host, flood), (0.0, String::new()));
}

#[test]
fn a_route_never_escalates() {
    let (plugin, host) = watching(&only(Dimension::Route));
    let mut last = (0.0, String::new());
    for source in 0..6000_u32 {
        let ip = std::net::Ipv4Addr::from(0x0a00_0000 + source).to_string();
        last = send(&*plugin, &host, From { ip: &ip, ..ONE });
    }
    assert_eq!(last, (40.0, "traffic:route_surge".to_owned()));
}

#[test]
fn a_consumer_and_a_network_surge_whatever_their_addresses_are() {
    let (plugin, host) = watching(&step());
    let mut last = (0.0, String::new());
    for source in 0..=310_u32 {
        let ip = std::net::Ipv4Addr::from(0x0a00_0000 + source).to_string();
        last = send(&*plugin, &host, From { ip: &ip, apikey: Some("partner"), ..ONE });
    }
    assert_eq!(last, (40.0, "traffic:consumer_surge".to_owned()));
    let (plugin, host) = watching(&only(Dimension::Asn));
    for source in 0..=610_u32 {
        let ip = format!("192.0.2.{}", source % 250);
        last = send(&*plugin, &host, From { ip: &ip, ..ONE });
    }
    assert_eq!(last, (30.0, "traffic:asn_surge".to_owned()));
    assert!(messages(&host)[0].contains("the network AS64496"), "{:?}", messages(&host));
    assert_eq!(send(&*plugin, &host, ONE), (0.0, String::new()), "an address without a network");
}

#[test]
fn consumers_that_become_known_later_were_not_slow_before_on_any_route() {
    let (plugin, host) = (plugin(&only(Dimension::Consumer)), FakeHost::at(NOW));
    (0..20).for_each(|_| drop(bucket(&*plugin, &host, ONE, 1000)));
    for number in 0..10 {
        // A filter of the gateway begins to verify them, without a new snapshot.
        let from = From { apikey: Some("partner"), route: if number % 2 == 0 { "shop" } else { "blog" }, ..ONE };
        assert_eq!(bucket(&*plugin, &host, from, 1000), (0.0, String::new()));
    }
}

#[test]
fn networks_and_consumers_that_become_known_later_were_not_slow_before() {
    let (step, host) = (step(), FakeHost::at(NOW));
    let before = plugin_with(&step, false);
    let visitor = |number: u32| format!("192.0.2.{}", number % 250);
    for _ in 0..10 {
        (0..1000).for_each(|number| drop(send(&*before, &host, From { ip: &visitor(number), ..ONE })));
        host.advance(BUCKET);
    }
    // The database comes, and keys are verified from now on.
    let after = plugin(&step);
    for _ in 0..10 {
        for number in 0..1000 {
            let from = From { ip: &visitor(number), apikey: Some("partner"), ..ONE };
            assert_eq!(send(&*after, &host, from), (0.0, String::new()));
        }
        host.advance(BUCKET);
    }
}

#[test]
fn a_route_that_none_has_asked_for_is_watched_since_the_guard_came() {
    let flood = From { ip: "192.0.2.9", route: "never-asked-for", apikey: Some("partner"), path: "/" };
    for (dimension, most) in [(Dimension::Source, 151), (Dimension::Consumer, 301), (Dimension::Asn, 601)] {
        let (plugin, host) = watching(&only(dimension));
        let first = (1..2000).find(|_| !send(&*plugin, &host, flood).1.is_empty());
        assert!(first.is_some_and(|first| first <= most), "{dimension:?}: {first:?}");
        // The same for a caller that begins on it and goes on elsewhere.
        assert_eq!(send(&*plugin, &host, From { route: "shop", ..flood }).1, dimension.tag());
    }
    // By its timer, a guard is at work without a request.
    let (plugin, host) = (plugin(&only(Dimension::Source)), FakeHost::at(NOW));
    plugin.on_timer(&host);
    host.advance(BUCKET);
    send(&*plugin, &host, ONE);
    host.advance(7 * BUCKET);
    assert!((0..200).any(|_| !send(&*plugin, &host, flood).1.is_empty()));
    // A guard that has only come has watched nothing.
    let (after, host) = (super::plugin(&only(Dimension::Source)), host);
    assert!((0..400).all(|_| send(&*after, &host, From { ip: "192.0.2.10", route: "new", ..flood }).1.is_empty()));
}

#[test]
fn each_dimension_can_be_left_out_and_a_weight_of_0_only_tags() {
    for dimension in [Dimension::Route, Dimension::Source, Dimension::Consumer, Dimension::Asn] {
        let flood = From { ip: "192.0.2.7", apikey: Some("partner"), ..ONE };
        let (one, host) = watching(&only(dimension));
        let tag = dimension.tag();
        assert_eq!((0..2000).map(|_| send(&*one, &host, flood)).last().unwrap().1, tag);
        let mut all = step();
        all.dimensions.retain(|one| one.dimension != i32::from(dimension));
        let (others, host) = watching(&all);
        let tags = (0..2000).map(|_| send(&*others, &host, flood)).last().unwrap().1;
        assert!(!tags.contains(tag) && tags.split(' ').count() == 3, "{tags}");
        let mut weightless = only(dimension);
        weightless.dimensions[0].weight = 0.0;
        let (plugin, host) = watching(&weightless);
        assert_eq!((0..9000).map(|_| send(&*plugin, &host, flood)).last().unwrap(), (0.0, tag.to_owned()));
    }
}

#[test]
fn an_address_of_ipv6_is_watched_by_its_network() {
    let (plugin, host) = watching(&only(Dimension::Source));
    for host_part in 0..400_u32 {
        let ip = format!("2001:db8:1:2::{host_part:x}");
        send(&*plugin, &host, From { ip: &ip, ..ONE });
    }
    assert_eq!(send(&*plugin, &host, From { ip: "2001:db8:1:2:ffff::", ..ONE }).1, "traffic:source_surge");
    assert_eq!(send(&*plugin, &host, From { ip: "2001:db8:1:3::", ..ONE }).1, "");
    assert!(messages(&host)[0].contains("the source 2001:db8:1:2::/64:"), "{:?}", messages(&host));
}

#[test]
fn the_options_of_a_step_change_what_a_surge_is() {
    let begins_at = |step: &TrafficGuardStep| {
        let (plugin, host) = watching(step);
        let flood = From { ip: "203.0.113.9", ..ONE };
        (1..20_000).find(|_| !send(&*plugin, &host, flood).1.is_empty())
    };
    let source = only(Dimension::Source);
    let normal = begins_at(&source).unwrap();
    assert!((140..=151).contains(&normal), "{normal}");
    let high = begins_at(&TrafficGuardStep { surge_factor: 2.0, ..source.clone() }).unwrap();
    assert!((90..=101).contains(&high), "{high}");
    let mut floor = source.clone();
    floor.dimensions[0].floor = 50.0;
    let floor = begins_at(&floor).unwrap();
    assert!((1400..=1501).contains(&floor), "{floor}");
    let short = begins_at(&TrafficGuardStep { bucket_millis: 2_000, ..source.clone() }).unwrap();
    assert!((30..=45).contains(&short), "{short}");
    assert_eq!(begins_at(&TrafficGuardStep { warmup_buckets: 11, ..source }), None, "ten buckets were watched");
}

#[test]
fn a_request_counts_once_however_many_guards_it_passes() {
    let (plugin, host) = watching(&only(Dimension::Source));
    let flood = From { ip: "203.0.113.9", ..ONE };
    let mut surges = 0;
    for number in 0..145 {
        host.state.borrow_mut().clear();
        let (mut exchange, mut slot) = (exchange(flood), Slot::default());
        plugin.access(&mut exchange, &mut slot, &host);
        plugin.access(&mut exchange, &mut slot, &host);
        surges += usize::from(number < 135 && exchange.score.total() > 0.0);
    }
    assert_eq!(surges, 0);
}

#[test]
fn guards_with_other_buckets_find_floods_that_alternate_between_them() {
    let long = only(Dimension::Source);
    let short = TrafficGuardStep { bucket_millis: 2_000, ..long.clone() };
    let (one, host) = watching(&long);
    let two = plugin(&short);
    (0..10).for_each(|_| drop(bucket(&*two, &host, ONE, 1)));
    send(&*one, &host, ONE);
    let flood = From { ip: "203.0.113.9", ..ONE };
    let found = (0..400).map(|_| [send(&*one, &host, flood).1, send(&*two, &host, flood).1]).last().unwrap();
    assert_eq!(found, ["traffic:source_surge", "traffic:source_surge"]);
}

#[test]
fn a_new_snapshot_and_another_worker_go_on_with_what_is_known() {
    let (one, host) = watching(&only(Dimension::Source));
    let flood = From { ip: "203.0.113.9", ..ONE };
    (0..100).for_each(|_| assert_eq!(send(&*one, &host, flood).1, ""));
    let other_worker =
        FakeHost { shared_data: Rc::clone(&host.shared_data), clock: host.clock.clone(), ..FakeHost::default() };
    let two = plugin(&only(Dimension::Source));
    let found = (0..60).filter(|_| !send(&*two, &other_worker, flood).1.is_empty()).count();
    assert!(found > 0);
    // A worker that has few requests of it looks at what the others have counted four times in a bucket.
    host.advance(2_500);
    assert_eq!(send(&*one, &host, flood).1, "traffic:source_surge");
    drop(one);
    let after = plugin(&TrafficGuardStep { surge_factor: 4.0, ..only(Dimension::Source) });
    assert_eq!(send(&*after, &host, flood).1, "traffic:source_surge", "a step of a new snapshot");
    assert_eq!(messages(&host).len() + messages(&other_worker).len(), 1, "one event on the node");
}

#[test]
fn a_step_that_cannot_be_read_is_refused() {
    let unknown = DimensionOfStep { dimension: 9, floor: 1.0, weight: 1.0 };
    let step = TrafficGuardStep { dimensions: vec![unknown], ..step() };
    assert!(build(&step.encode_to_vec(), &mut Build::new(std::iter::empty())).is_err());
}
