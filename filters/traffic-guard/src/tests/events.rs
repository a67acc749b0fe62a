//! The events of a surge.

use super::*;
use crate::paces::Paces;

fn flooded(host: &FakeHost) -> Box<dyn Plugin> {
    let plugin = plugin(&only(Dimension::Route));
    (0..10).for_each(|_| drop(bucket(&*plugin, host, ONE, 50)));
    plugin
}

#[test]
fn a_surge_has_an_event_at_its_begin_after_a_bucket_and_at_its_end_and_names_who_it_is() {
    let host = FakeHost::at(NOW);
    let plugin = flooded(&host);
    for number in 0..2100_u32 {
        if number % 700 == 0 && number > 0 {
            host.advance(BUCKET);
        }
        // Half of them are one source's, on one path.
        let ip = format!("203.0.113.{}", if number % 2 == 0 { 9 } else { number % 200 });
        let path = if number % 2 == 0 { "/search?q=secret" } else { "/" };
        send(&*plugin, &host, From { ip: &ip, path, ..ONE });
    }
    host.advance(BUCKET);
    (0..3).for_each(|_| drop(bucket(&*plugin, &host, ONE, 10)));
    let told = messages(&host);
    let [begin, goes_on, end] = &told[..] else { panic!("{told:#?}") };
    assert_eq!(begin, "surge of the route `shop`: 601 requests in 10 s; 50.0 are usual, and more than 600 a surge");
    assert!(goes_on.starts_with("surge of the route `shop`: 700 requests in 10 s;"), "{goes_on}");
    assert!(goes_on.contains("most requests: sources 203.0.113.9 ("), "{goes_on}");
    assert!(goes_on.contains("networks 203.0.113.0/24 ("), "{goes_on}");
    assert!(goes_on.contains("/search (") && !goes_on.contains("secret"), "{goes_on}");
    assert!(goes_on.ends_with(')') && goes_on.contains("user agents curl/8 ("), "{goes_on}");
    assert!(
        end.starts_with("end of the surge of the route `shop` after 30 s with up to 700 requests in 10 s;"),
        "{end}"
    );
    assert!(end.contains("sources 203.0.113.9 ("), "{end}");
    let event = &host.events_json()[0];
    assert_eq!((&event["event"]["action"], &event["event"]["module"]), (&"log".into(), &"traffic-guard".into()));
    assert_eq!(event["threat"]["tags"], serde_json::json!(["traffic:route_surge"]));
}

#[test]
fn a_path_with_a_secret_is_in_no_event() {
    let host = FakeHost::at(NOW);
    let plugin = flooded(&host);
    for number in 0..2100_u32 {
        if number % 700 == 0 && number > 0 {
            host.advance(BUCKET);
        }
        host.state.borrow_mut().clear();
        let (mut exchange, mut slot) = (exchange(From { path: "/token-hunter2", ..ONE }), Slot::default());
        plugin.access(&mut exchange, &mut slot, &host);
        // A plugin behind this one has found it.
        exchange.target_is_secret = true;
        plugin.finish(&mut exchange, &mut slot, &host);
    }
    let told = messages(&host);
    assert!(told[1].contains("paths (hidden) ("), "{told:?}");
    assert!(!told.join(" ").contains("hunter2"));
}

#[test]
fn many_sources_that_surge_at_once_have_few_events() {
    let host = FakeHost::at(NOW);
    let plugin = plugin(&only(Dimension::Source));
    (0..10).for_each(|_| drop(bucket(&*plugin, &host, ONE, 1)));
    let mut surges = 0;
    for source in 0..200_u32 {
        let ip = format!("203.0.113.{source}");
        surges += (0..160).filter(|_| !send(&*plugin, &host, From { ip: &ip, ..ONE }).1.is_empty()).count().min(1);
    }
    assert_eq!((surges, messages(&host).len()), (200, 30));
    host.advance(70_000);
    (0..160).for_each(|_| drop(send(&*plugin, &host, From { ip: "203.0.114.1", ..ONE })));
    assert_eq!(messages(&host).len(), 31);
}

#[test]
fn hostile_text_is_one_line_of_an_event() {
    let host = FakeHost::at(NOW);
    let plugin = flooded(&host);
    for number in 0..2100_u32 {
        if number % 700 == 0 && number > 0 {
            host.advance(BUCKET);
        }
        send(&*plugin, &host, From { path: "/\u{1b}[31m\r\n\u{85}x", ..ONE });
    }
    let told = messages(&host);
    assert!(told[1].contains("paths /?[31m????x (") || told[1].contains("paths /?[31m???x ("), "{}", told[1]);
}

#[test]
fn the_end_of_a_surge_is_told_by_the_timer_where_no_request_comes() {
    let host = FakeHost::at(NOW);
    let plugin = flooded(&host);
    (0..700).for_each(|_| drop(send(&*plugin, &host, ONE)));
    assert_eq!(messages(&host).len(), 1);
    // The bucket of the surge is not over, then it was one of the surge.
    plugin.on_timer(&host);
    host.advance(BUCKET);
    plugin.on_timer(&host);
    assert_eq!(messages(&host).len(), 1);
    host.advance(BUCKET);
    plugin.on_timer(&host);
    let told = messages(&host);
    let [_, end] = &told[..] else { panic!("{told:#?}") };
    assert!(
        end.starts_with("end of the surge of the route `shop` after 10 s with up to 700 requests in 10 s;"),
        "{end}"
    );
    let route = &host.events_json()[1]["route"];
    assert_eq!(route["id"], "shop", "{route}");
    host.advance(BUCKET);
    plugin.on_timer(&host);
    assert_eq!(messages(&host).len(), 2, "once");
}

#[test]
fn requests_that_a_worker_holds_back_are_counted_by_the_node_in_time() {
    let host = FakeHost::at(NOW);
    let (one, other) = (plugin(&only(Dimension::Route)), plugin(&only(Dimension::Route)));
    let shared = |host: &FakeHost| {
        let key = (Dimension::Route, &b"shop"[..]);
        Paces::new(limits(), 200_000).look(key, 20.0, host).map_or(0, |moment| moment.pace.count)
    };
    (0..100).for_each(|_| drop(send(&*one, &host, ONE)));
    assert!((90..100).contains(&shared(&host)), "the others are few, and a surge is far");
    host.advance(2_500);
    one.on_timer(&host);
    assert_eq!(shared(&host), 100);
    host.advance(7_500);
    // Two workers side by side see the surge as one would.
    for _ in 0..10 {
        (0..25).for_each(|_| drop((send(&*one, &host, ONE), send(&*other, &host, ONE))));
        host.advance(BUCKET);
    }
    let all = (0..700).map(|number| send(if number % 2 == 0 { &*one } else { &*other }, &host, ONE).1);
    let begun = all.take_while(|tags| tags.is_empty()).count();
    assert!((595..=630).contains(&begun), "{begun}");
}
