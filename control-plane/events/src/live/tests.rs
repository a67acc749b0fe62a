use serde_json::json;

use super::*;

const NOW: u64 = 1_800_000_000_000;

fn hub() -> EventHub {
    EventHub::new(Vec::new(), || NOW)
}

fn publish(hub: &EventHub, number: usize, module: &str) {
    let event = json!({ "@type": "SvcSecurityEvent", "@id": format!("e{number}"), "event": { "module": module } });
    hub.publish(event.to_string().as_bytes()).unwrap();
}

fn number(event: &LiveEvent) -> String {
    serde_json::from_slice::<serde_json::Value>(&event.line).unwrap()["@id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_listener_gets_what_it_asked_for_and_nothing_from_before() {
    let hub = hub();
    let live = LiveEvents::new(hub.clone(), None);
    publish(&hub, 0, "waf");
    let mut all = live.listen(Vec::new(), "alice").unwrap();
    let mut some = live.listen(vec![(EventField::Plugin, "waf".to_owned())], "alice").unwrap();
    publish(&hub, 1, "fail2ban");
    publish(&hub, 2, "waf");
    hub.tell(r#"{"@type":"SvcWafSecurityAudit","@id":"e3","action":"login"}"#);
    let mut got = Vec::new();
    while got.len() < 3 {
        got.extend(all.next().await.events);
    }
    assert_eq!(got.iter().map(number).collect::<Vec<_>>(), ["e1", "e2", "e3"]);
    assert_eq!(some.next().await.events.iter().map(number).collect::<Vec<_>>(), ["e2"]);
    drop((all, some));
    assert_eq!(live.listeners(), 0);
    assert!(live.inner.listeners().reader.is_none(), "nothing is read for no listener");
}

#[tokio::test]
async fn a_slow_listener_loses_the_oldest_and_is_told_how_many() {
    let hub = hub();
    let live = LiveEvents::new(hub.clone(), None);
    let mut slow = live.listen(Vec::new(), "alice").unwrap();
    let mut quick = live.listen(Vec::new(), "bob").unwrap();
    let (mut seen, mut lost) = (0, 0);
    for round in 0..10 {
        (0..500).for_each(|number| publish(&hub, round * 500 + number, "waf"));
        while seen + lost < (round as u64 + 1) * 500 {
            let batch = quick.next().await;
            seen += batch.events.len() as u64;
            lost += batch.dropped;
        }
    }
    assert_eq!((seen, lost), (5000, 0), "one that keeps up loses nothing");
    let batch = slow.next().await;
    assert_eq!((batch.events.len(), batch.dropped), (MAX_WAITING_EVENTS, 4000));
    assert_eq!(number(&batch.events[0]), "e4000");
}

#[tokio::test]
async fn what_waits_is_bounded_in_bytes() {
    let hub = hub();
    let live = LiveEvents::new(hub.clone(), None);
    let mut slow = live.listen(Vec::new(), "alice").unwrap();
    let text = "x".repeat(200_000);
    for number in 0..40 {
        let event = json!({ "@type": "SvcSecurityEvent", "@id": format!("e{number}"), "message": text });
        hub.publish(event.to_string().as_bytes()).unwrap();
        // Each is read before the next one comes.
        tokio::task::yield_now().await;
    }
    let (mut bytes, mut all) = (0, 0);
    while all < 40 {
        let batch = slow.next().await;
        bytes = bytes.max(batch.events.iter().map(|event| event.line.len()).sum());
        all += batch.events.len() as u64 + batch.dropped;
    }
    assert!(bytes <= 4 << 20, "{bytes}");
}

#[tokio::test]
async fn listeners_are_limited() {
    let live = LiveEvents::new(hub(), None);
    let mut open: Vec<_> = (0..4).map(|_| live.listen(Vec::new(), "alice").unwrap()).collect();
    assert!(live.listen(Vec::new(), "alice").is_none());
    open.extend((0..28).map(|number| live.listen(Vec::new(), &format!("o{number}")).unwrap()));
    assert!(live.listen(Vec::new(), "another").is_none());
    open.clear();
    assert!(live.listen(Vec::new(), "alice").is_some());
}
