//! Clients that attack the guard itself.

use super::*;

#[test]
fn a_flood_of_consumers_keeps_to_its_room_and_a_walker_is_found_all_the_same() {
    let step = ObjectGuardStep { max_keys: 500, ..scored() };
    let (plugin, host) = (plugin(&step), node());
    let walk = |step: u64| {
        let path = format!("/orders/{step}");
        send(&*plugin, &host, Request { consumer: "walker", path: &path, status: 200 })
    };
    walk(0);
    let mut found = None;
    for at in 0..150_000_u64 {
        let (consumer, path) = (format!("flood-{at}"), format!("/orders/{at}"));
        send(&*plugin, &host, Request { consumer: &consumer, path: &path, status: 404 });
        if at % 4000 == 0 && found.is_none() {
            let step = at / 4000 + 1;
            found = (!walk(step).tags.is_empty()).then_some(step + 1);
        }
    }
    assert!(host.shared_data.bytes() < 1 << 20, "{} bytes", host.shared_data.bytes());
    assert_eq!(found, Some(30), "records with more objects stay");
}

#[test]
fn one_consumer_with_a_million_kinds_has_one_kind_for_most_of_them() {
    let (plugin, host) = (plugin(&scored()), node());
    // The kinds that it really reads are among the first.
    for at in 1..30 {
        assert_eq!(send(&*plugin, &host, Request { path: &format!("/orders/{at}"), ..GET }).tags, "");
    }
    let mut surged = None;
    for at in 0..100_000_u64 {
        let path = format!("/junk-{at}/{}", at * 1_000_003);
        let sent = send(&*plugin, &host, Request { path: &path, ..GET });
        if surged.is_none() && !sent.tags.is_empty() {
            assert_eq!(sent.tags, "objects:surge");
            surged = Some(at);
        }
    }
    assert_eq!(surged, Some(63 + 150), "63 kinds of their own, then one for all others");
    assert!(messages(&host)[0].contains("of `(other paths)`"), "{:?}", messages(&host));
    assert!(host.shared_data.bytes() < 1 << 20, "{} bytes", host.shared_data.bytes());
    assert_eq!(send(&*plugin, &host, Request { path: "/orders/30", ..GET }).tags, "objects:sequential");
}

#[test]
fn spellings_neither_hide_a_walk_nor_make_more_of_a_budget() {
    let step = ObjectGuardStep { budget: 10, ..scored() };
    let (plugin, host, mut store) = (plugin(&step), node(), Store::default());
    let spelt = |id: u64| match id % 8 {
        0 => format!("/Orders/{id}"),
        1 => format!("//orders/{id}/"),
        2 => format!("/orders/%3{}", id % 10),
        3 => format!("/orders/{id};v={id}"),
        4 => format!("/orders/000{id}"),
        5 => format!("/orders%2F{id}"),
        6 => format!("/orders/{id}.json"),
        _ => format!("/x/../orders/{id}?page={id}"),
    };
    let mut refused = 0;
    for id in 0..10 {
        for spelling in 0..8 {
            let path = match spelt(id * 8 + spelling) {
                // One object in eight spellings.
                path if spelling == 2 => path.replace(&format!("%3{}", (id * 8 + 2) % 10), &format!("%3{id}")),
                path => path.replace(&(id * 8 + spelling).to_string(), &id.to_string()),
            };
            refused += usize::from(pass(&*plugin, &host, exchange("shop", &path), 200, &mut store).0.refused.is_some());
        }
    }
    assert_eq!((refused, store.members()), (0, 10), "ten objects, in eighty spellings");
    let sent = pass(&*plugin, &host, exchange("shop", "/ORDERS/%31%31;x"), 200, &mut store).0;
    assert_eq!(sent.refused, Some(429));
    let walk = (12..40).map(|id| pass(&*plugin, &host, exchange("shop", &spelt(id)), 200, &mut store).0.tags);
    assert!(walk.last().unwrap().contains("objects:sequential"));
}

#[test]
fn clocks_that_step_leave_no_pattern_on_and_lose_none_for_long() {
    let (plugin, host) = (plugin(&scored()), node());
    let walk = |from: u64| {
        (from..from + 30)
            .map(|at| send(&*plugin, &host, Request { path: &format!("/orders/{at}"), ..GET }).tags)
            .last()
            .unwrap()
    };
    assert_eq!(walk(0), "objects:sequential");
    host.clock.set(NOW - 30 * 86_400_000);
    assert_eq!(send(&*plugin, &host, Request { path: "/orders/500", ..GET }).tags, "", "a month back");
    assert_eq!(walk(1000), "objects:sequential");
    host.clock.set(NOW + 30 * 86_400_000);
    assert_eq!(send(&*plugin, &host, Request { path: "/orders/500", ..GET }).tags, "", "and ahead");
    assert_eq!(walk(2000), "objects:sequential");
    for clock in [0, u64::MAX, 1, NOW] {
        host.clock.set(clock);
        send(&*plugin, &host, GET);
    }
}

#[test]
fn bytes_of_all_kinds_in_paths_are_taken() {
    let step = ObjectGuardStep {
        paths: vec![ObjectPath { template: "/a/{id}*".to_owned(), ..ObjectPath::default() }],
        budget: 5,
        ..scored()
    };
    let (plugin, host, mut store) = (plugin(&step), node(), Store::default());
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let alphabet = b"/%.;*{}\\ aA0129fF-+\0\xff\xef\xbc\x94?#:";
    for _ in 0..20_000 {
        let path: Vec<u8> = (0..random(40)).map(|_| alphabet[random(alphabet.len() as u64) as usize]).collect();
        let mut exchange = exchange("shop", "");
        exchange.request.path = path;
        pass(&*plugin, &host, exchange, 404, &mut store);
    }
}

#[test]
fn a_key_of_sixty_kilobytes_costs_no_more_memory() {
    let step = ObjectGuardStep { budget: 5, ..scored() };
    let (plugin, host, mut store) = (plugin(&step), node(), Store::default());
    for at in 0..200 {
        let path = format!("/orders/{at}/{}", "k".repeat(60_000));
        // Names of consumers are cut to 128 bytes where they are read.
        pass(&*plugin, &host, exchange(&"c".repeat(128), &path), 200, &mut store);
    }
    assert!(host.shared_data.bytes() < 100_000, "{} bytes", host.shared_data.bytes());
    assert_eq!(store.members(), 5);
    assert!(host.events.borrow().iter().all(|event| event.len() < 8192));
}
