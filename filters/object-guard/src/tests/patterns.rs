//! Patterns of consumers: signals and events.

use serde_json::json;

use super::*;

/// Sends requests for these paths one after another: how many until one of them has a tag.
fn until_tag(
    plugin: &dyn Plugin,
    host: &FakeHost,
    paths: impl Iterator<Item = (String, u16)>,
    millis: u64,
) -> Option<(usize, Sent)> {
    let sent = paths.enumerate().map(|(at, (path, status))| {
        host.advance(millis);
        (at + 1, send(plugin, host, Request { path: &path, status, ..GET }))
    });
    sent.into_iter().find(|(_, sent)| !sent.tags.is_empty())
}

/// Objects whose numbers are far from each other.
fn scattered(from: u64) -> impl Iterator<Item = (String, u16)> {
    (from..).map(|at| (format!("/orders/{}", at * 1_000_003), 200))
}

#[test]
fn a_surge_adds_to_the_score_and_ends_with_a_calm_minute() {
    let (plugin, host) = (plugin(&scored()), node());
    let (at, sent) = until_tag(&*plugin, &host, scattered(0), 10).unwrap();
    assert_eq!((at, sent.score, sent.tags.as_str()), (151, 40.0, "objects:surge"));
    // Also a request for an object that it knows, as long as the surge is on.
    assert_eq!(send(&*plugin, &host, Request { path: "/orders/0", ..GET }).score, 40.0);
    assert_eq!(send(&*plugin, &host, Request { consumer: "other", ..GET }), Sent::default());
    assert_eq!(send(&*plugin, &host, Request { path: "/users/1", ..GET }), Sent::default(), "another kind");
    host.advance(60_000);
    assert_eq!(send(&*plugin, &host, GET).tags, "objects:surge");
    host.advance(60_000);
    assert_eq!(send(&*plugin, &host, GET).tags, "");
    assert_eq!(told(&host), ["objects objects:surge", "objects objects:surge"], "the second a minute later");
    let event = &host.events_json()[0];
    assert_eq!((&event["event"]["outcome"], &event["event"]["action"]), (&json!("observed"), &json!("log")));
    assert_eq!(event["event"]["module"], "object-guard");
    assert_eq!(
        messages(&host)[0],
        "surge of objects: 151 of `/orders/{id}` in 60 s that were not read lately; what is usual is not learned yet, and more than \
         150 a surge"
    );
}

#[test]
fn objects_that_were_read_lately_make_no_surge() {
    let (plugin, host) = (plugin(&scored()), node());
    let again = (0..20_000_u64).map(|at| (format!("/orders/{}", at % 100 * 1_000_003), 200));
    assert_eq!(until_tag(&*plugin, &host, again, 5), None);
}

#[test]
fn what_is_usual_is_learned_over_ten_minutes() {
    let (plugin, host) = (plugin(&scored()), node());
    let mut orders = scattered(0);
    for _ in 0..12 {
        let minute: Vec<_> = orders.by_ref().take(20).collect();
        assert_eq!(until_tag(&*plugin, &host, minute.into_iter(), 2000), None);
        host.advance(20_000);
    }
    let (at, sent) = until_tag(&*plugin, &host, orders, 10).unwrap();
    assert_eq!((at, sent.tags.as_str()), (101, "objects:surge"));
    assert!(messages(&host)[0].contains("20.0 are usual, and more than 100 a surge"), "{:?}", messages(&host));
}

#[test]
fn a_walk_adds_to_the_score_while_it_is_in_its_window() {
    let (plugin, host) = (plugin(&scored()), node());
    let steps = (1..100).map(|at| (format!("/orders/{}", 2 * at), 200));
    let (at, sent) = until_tag(&*plugin, &host, steps, 5000).unwrap();
    assert_eq!((at, sent.score, sent.tags.as_str()), (30, 50.0, "objects:sequential"));
    assert_eq!(
        messages(&host),
        ["sequential walk: 30 numbered objects of `/orders/{id}` between 2 and 60 in 600 s with a median gap of 2"]
    );
    assert_eq!(send(&*plugin, &host, Request { path: "/orders/2", ..GET }).tags, "objects:sequential");
    host.advance(600_000);
    assert_eq!(send(&*plugin, &host, Request { path: "/orders/2", ..GET }), Sent::default());
}

#[test]
fn an_enumeration_is_signalled_while_it_goes_on() {
    for (status, expected) in [(401, Some(20)), (403, Some(20)), (404, Some(20)), (410, None), (500, None), (200, None)]
    {
        let (plugin, host) = (plugin(&scored()), node());
        let requests = scattered(0).take(100).map(|(path, _)| (path, status));
        let found = until_tag(&*plugin, &host, requests, 2500);
        assert_eq!(found.as_ref().map(|(at, _)| *at), expected, "{status}");
        if let Some((_, sent)) = found {
            assert_eq!((sent.score, sent.tags.as_str()), (50.0, "objects:enumeration"));
            let event = &host.events_json()[0];
            // With the twentieth request, before the backend sees it.
            assert_eq!((&event["http"]["status"], &event["event"]["category"]), (&json!(null), &json!("objects")));
            let text = "enumeration of objects: 19 of 20 requests for `/orders/{id}` in 300 s were denied";
            assert_eq!(messages(&host), [text]);
            let next = send(&*plugin, &host, Request { path: "/orders/5", ..GET });
            assert_eq!((next.score, next.tags.as_str()), (50.0, "objects:enumeration"));
            let next = send(&*plugin, &host, Request { path: "/orders/5", status, ..GET });
            assert_eq!(next.score, 50.0);
        }
    }
}

#[test]
fn an_enumeration_is_not_hidden_by_one_object_that_is_read_again_and_again() {
    let (plugin, host) = (plugin(&scored()), node());
    let guesses = (1..200_u64).flat_map(|at| {
        [(format!("/orders/{}", at * 1_000_003), 404), ("/orders/7".to_owned(), 200), ("/orders/7".to_owned(), 200)]
    });
    let (at, sent) = until_tag(&*plugin, &host, guesses, 10).unwrap();
    assert!(at <= 3 * 21, "{at}");
    assert_eq!(sent.tags, "objects:enumeration");
}

#[test]
fn an_enumeration_that_a_response_completes_is_told_with_it() {
    let (plugin, host) = (plugin(&scored()), node());
    // Twenty requests, of which the ten last are denied.
    let requests = scattered(0).take(20).enumerate().map(|(at, (path, _))| (path, if at < 10 { 200 } else { 404 }));
    let (at, sent) = until_tag(&*plugin, &host, requests, 2500).unwrap();
    assert_eq!((at, sent.score, sent.tags.as_str()), (20, 50.0, "objects:enumeration"));
    assert_eq!(host.events_json()[0]["http"]["status"], 404);
}

#[test]
fn half_of_the_requests_have_to_be_denied() {
    let mixed = |denied: u64| {
        let (plugin, host) = (plugin(&scored()), node());
        let requests = scattered(0).take(100).enumerate();
        let requests = requests.map(move |(at, (path, _))| (path, if at as u64 * 7 % 10 < denied { 404 } else { 200 }));
        until_tag(&*plugin, &host, requests, 5000).is_some()
    };
    assert!(mixed(5) && !mixed(4));
}

#[test]
fn answers_of_the_gateway_are_no_denials() {
    let (plugin, host) = (plugin(&scored()), node());
    for at in 0..100 {
        let mut exchange = exchange("shop", &format!("/orders/{}", at * 1_000_003));
        let mut slot = Slot::default();
        assert_eq!(plugin.request(&mut exchange, false, &mut slot, &host), Verdict::Pass);
        exchange.answered = true;
        exchange.given = Some(GivenAnswer { status: 403, action: exchange::Action::Deny });
        exchange.response = Some(Response { status: 403, ..Response::default() });
        assert_eq!(plugin.response(&mut exchange, false, &mut slot, &host), Verdict::Pass);
        assert_eq!(exchange.score.tags(), [""; 0]);
        host.advance(1000);
    }
}

#[test]
fn without_contribute_patterns_are_reported_and_weigh_nothing() {
    let (plugin, host) = (plugin(&step()), node());
    let steps = (1..400).map(|at| (format!("/orders/{at}"), 404));
    let sent: Vec<Sent> =
        steps.map(|(path, status)| send(&*plugin, &host, Request { path: &path, status, ..GET })).collect();
    assert!(sent.iter().all(|sent| sent.score == 0.0));
    assert_eq!(sent.last().unwrap().tags, "objects:surge objects:sequential objects:enumeration");
    assert_eq!(
        told(&host),
        [
            "objects objects:enumeration",
            "objects objects:sequential objects:enumeration",
            "objects objects:surge objects:sequential objects:enumeration"
        ]
    );
}

#[test]
fn events_are_one_a_minute_for_each_consumer_kind_and_pattern() {
    let (plugin, host) = (plugin(&step()), node());
    for at in 0..600_u64 {
        for consumer in ["one", "two"] {
            for kind in ["orders", "users"] {
                let path = format!("/{kind}/{}", at * 1_000_003);
                send(&*plugin, &host, Request { consumer, path: &path, status: 404 });
            }
        }
        host.advance(1000);
    }
    // Ten minutes less the 20 s until the twentieth request.
    assert_eq!(host.events.borrow().len(), 4 * 10, "{:?}", messages(&host).first());
    for event in host.events_json() {
        let [tag, subject] = ["tag", "subject"].map(|name| event["decision"][name].as_str().unwrap());
        assert_eq!(tag, "objects:enumeration");
        assert!(event["message"].as_str().unwrap().contains(&format!(" for `{subject}` ")), "{event}");
    }
}

#[test]
fn callers_without_a_key_are_consumers_by_their_address() {
    let (plugin, host) = (plugin(&scored()), node());
    let steps = (1..=30).map(|at| format!("/orders/{at}"));
    let last =
        steps.map(|path| send(&*plugin, &host, Request { consumer: "", path: &path, status: 200 })).last().unwrap();
    assert_eq!(last.tags, "objects:sequential");
    let mut other = exchange("", "/orders/31");
    other.caller.ip = "192.0.2.2".into();
    let mut none = exchange("", "/orders/31");
    none.caller.ip = String::new();
    for exchange in [other, none] {
        assert_eq!(pass(&*plugin, &host, exchange, 200, &mut Store::default()).0, Sent::default());
    }
}

#[test]
fn a_path_that_holds_a_secret_is_not_shown() {
    let (plugin, host) = (plugin(&step()), node());
    for at in 0..30 {
        let mut exchange = exchange("shop", &format!("/token-abc/{at}"));
        exchange.target_is_secret = true;
        pass(&*plugin, &host, exchange, 200, &mut Store::default());
    }
    assert_eq!(host.events.borrow().len(), 1);
    assert!(!String::from_utf8_lossy(&host.events.borrow()[0]).contains("token-abc"));
    assert_eq!(host.events_json()[0]["decision"]["subject"], "(hidden)");
}

#[test]
fn workers_of_a_node_count_together() {
    let (one, two, host) = (plugin(&scored()), plugin(&scored()), node());
    let workers = [&*one, &*two];
    let found = (1..100_usize).find(|at| {
        let path = format!("/orders/{at}");
        !send(workers[at % 2], &host, Request { path: &path, ..GET }).tags.is_empty()
    });
    assert_eq!(found, Some(30));
}

#[test]
fn a_consumer_is_forgotten_an_hour_after_its_last_request() {
    let (plugin, host) = (plugin(&scored()), node());
    let walk = |from: u64, to: u64| {
        (from..to).map(|at| send(&*plugin, &host, Request { path: &format!("/orders/{at}"), ..GET })).last().unwrap()
    };
    assert_eq!(walk(0, 29).tags, "");
    host.advance(3_600_000);
    assert_eq!(walk(29, 58).tags, "", "nothing is left of the first");
    assert_eq!(walk(58, 59).tags, "objects:sequential");
}

#[test]
fn without_limits_there_is_no_plugin() {
    let built = build(&ObjectGuardStep::default().encode_to_vec(), &mut Build::new(std::iter::empty()));
    assert!(built.is_err());
    let wrong = ObjectGuardStep {
        paths: vec![ObjectPath { template: "orders".to_owned(), ..ObjectPath::default() }],
        ..step()
    };
    assert!(build(&wrong.encode_to_vec(), &mut Build::new(std::iter::empty())).is_err());
}
