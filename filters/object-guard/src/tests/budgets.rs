//! Budgets, with a control plane that is a map of sets.

use exchange::Ask;

use super::*;

fn with_budget(budget: u32) -> ObjectGuardStep {
    ObjectGuardStep { budget, ..step() }
}

fn get(plugin: &dyn Plugin, host: &FakeHost, consumer: &str, path: &str, store: &mut Store) -> Sent {
    pass(plugin, host, exchange(consumer, path), 200, store).0
}

#[test]
fn a_budget_admits_so_many_objects_and_refuses_others_until_the_window_ends() {
    let (plugin, host, mut store) = (plugin(&with_budget(3)), node(), Store::default());
    for object in [1, 2, 3, 1, 2, 3, 3] {
        assert_eq!(get(&*plugin, &host, "shop", &format!("/orders/{object}"), &mut store), Sent::default());
    }
    assert_eq!(store.asked, 3, "what was let in is known");
    for object in [4, 5, 4] {
        let sent = get(&*plugin, &host, "shop", &format!("/orders/{object}"), &mut store);
        assert_eq!((sent.refused, sent.retry_after), (Some(429), Some(3600 - 10)));
        assert_eq!((sent.score, sent.tags.as_str()), (0.0, "objects:budget"));
    }
    assert_eq!((store.asked, store.members()), (5, 3), "what was refused is not counted, and known as well");
    assert_eq!(get(&*plugin, &host, "shop", "/orders/3", &mut store).refused, None);
    // Other consumers and kinds have budgets of their own.
    assert_eq!(get(&*plugin, &host, "other", "/orders/4", &mut store).refused, None);
    assert_eq!(get(&*plugin, &host, "shop", "/users/4", &mut store).refused, None);
    host.advance(3_589_999);
    let sent = get(&*plugin, &host, "shop", "/orders/4", &mut store);
    assert_eq!((sent.refused, sent.retry_after), (Some(429), Some(1)));
    host.advance(1);
    assert_eq!(get(&*plugin, &host, "shop", "/orders/4", &mut store).refused, None, "the next window");
}

#[test]
fn a_refusal_says_what_is_beyond_which_budget() {
    let (plugin, host, mut store) = (plugin(&with_budget(1)), node(), Store::default());
    assert_eq!(get(&*plugin, &host, "shop", "/orders/1", &mut store).refused, None);
    let (mut exchange, mut slot) = (exchange("shop", "/orders/2"), Slot::default());
    let Verdict::Ask(ask) = plugin.request(&mut exchange, false, &mut slot, &host) else { panic!() };
    assert_eq!(ask.millis, 1000);
    let verdict = plugin.answered(&mut exchange, store.answer(&ask), &mut slot, &host);
    let Verdict::Refuse(refusal) = verdict else { panic!("{verdict:?}") };
    assert_eq!((refusal.category, refusal.scored), (Category::Objects, false));
    assert_eq!(
        refusal.reason,
        "budget of objects: one more than 1 distinct objects of `/orders/{id}` in the window of 3600 s, which ends in 3590 s"
    );
}

#[test]
fn with_log_it_is_reported_once_a_minute_and_passes() {
    let step = ObjectGuardStep { budget_logs: true, ..with_budget(2) };
    let (plugin, host, mut store) = (plugin(&step), node(), Store::default());
    for object in 0..130 {
        let sent = get(&*plugin, &host, "shop", &format!("/orders/{}", object * 1_000_003), &mut store);
        assert_eq!(sent.refused, None);
        assert_eq!(sent.tags, if object < 2 { "" } else { "objects:budget" });
        host.advance(1000);
    }
    assert_eq!(told(&host), ["objects objects:budget"; 3]);
    assert!(messages(&host)[0].ends_with("; the request went on, as `budget_action` says"));
    assert_eq!(store.members(), 2);
}

#[test]
fn declared_paths_have_budgets_of_their_own() {
    let path = |template: &str, budget| ObjectPath { template: template.to_owned(), budget, ..ObjectPath::default() };
    let paths = vec![path("/a/{id}", Some(1)), path("/b/{id}", Some(0)), path("/c/{id}", None)];
    let step = ObjectGuardStep { paths, ..with_budget(2) };
    let (plugin, host, mut store) = (plugin(&step), node(), Store::default());
    let mut admitted = |kind: &str| {
        (0..9).filter(|id| get(&*plugin, &host, "shop", &format!("/{kind}/{id}"), &mut store).refused.is_none()).count()
    };
    assert_eq!((admitted("a"), admitted("b"), admitted("c"), admitted("d")), (1, 9, 2, 2));
}

#[test]
fn a_large_budget_is_exact_over_several_sets() {
    for budget in [1023, 1024, 1025, 2500, budget::MAX_BUDGET] {
        let (plugin, host, mut store) = (plugin(&with_budget(budget)), node(), Store::default());
        let mut admitted = |consumer: &str, objects: std::ops::Range<u32>| {
            objects
                .filter(|id| get(&*plugin, &host, consumer, &format!("/o/{}", id * 7), &mut store).refused.is_none())
                .count()
        };
        assert_eq!(admitted("shop", 0..budget + 100), budget as usize);
        assert_eq!(admitted("shop", 0..budget), budget as usize, "the same again");
        assert_eq!(store.members(), budget as usize);
        // A worker that knows nothing asks for each, and finds the same.
        let fresh = self::plugin(&with_budget(budget));
        let again = (0..budget + 50)
            .filter(|id| get(&*fresh, &host, "shop", &format!("/o/{}", id * 7), &mut store).refused.is_none());
        assert_eq!(again.count(), budget as usize);
        assert_eq!(store.members(), budget as usize);
    }
}

#[test]
fn two_nodes_with_two_workers_admit_exactly_the_budget() {
    let nodes = [node(), node()];
    let workers: Vec<_> = (0..4).map(|_| plugin(&with_budget(40))).collect();
    let mut store = Store::default();
    let mut admitted = BTreeSet::new();
    for at in 0..1000_usize {
        let object = at * 7919 % 97;
        let path = format!("/orders/{}", object * 1_000_003);
        let (worker, host) = (&workers[at % 4], &nodes[at % 2]);
        if get(&**worker, host, "shop", &path, &mut store).refused.is_none() {
            admitted.insert(object);
        }
    }
    assert_eq!((admitted.len(), store.members()), (40, 40));
}

#[test]
fn a_control_plane_that_is_gone_lets_objects_pass_and_is_told_once_a_minute() {
    let (plugin, host, mut store) = (plugin(&with_budget(2)), node(), Store::default());
    store.is_gone = true;
    for object in 0..100 {
        let sent = get(&*plugin, &host, "shop", &format!("/orders/{}", object * 1_000_003), &mut store);
        assert_eq!(sent.refused, None);
        host.advance(1000);
    }
    assert_eq!(told(&host), ["dependency objects:budget_uncounted"; 2]);
    assert!(messages(&host)[0].contains("the control plane did not answer in time"), "{:?}", messages(&host));
    // It comes back and has forgotten nothing; what passed meanwhile was not counted.
    store.is_gone = false;
    let mut again =
        |object: u64| get(&*plugin, &host, "shop", &format!("/orders/{}", object * 1_000_003), &mut store).refused;
    assert_eq!((again(50), again(51), again(52), again(50)), (None, None, Some(429), None));
}

#[test]
fn a_gateway_without_a_control_plane_says_so() {
    let (plugin, host) = (plugin(&with_budget(1)), FakeHost::at(NOW));
    let (mut exchange, mut slot) = (exchange("shop", "/orders/1"), Slot::default());
    let Verdict::Ask(ask) = plugin.request(&mut exchange, false, &mut slot, &host) else { panic!() };
    assert!(!ask.question.fits(), "without the secret of all nodes nothing is asked");
    assert_eq!(plugin.answered(&mut exchange, Answer::NoControlPlane, &mut slot, &host), Verdict::Pass);
    let text = "budgets of objects are not counted: this gateway has no control plane; requests go on";
    assert_eq!(messages(&host), [text]);
}

#[test]
fn a_budget_that_is_raised_holds_at_once_for_what_was_refused() {
    let (host, mut store) = (node(), Store::default());
    let (small, large) = (plugin(&with_budget(1)), plugin(&with_budget(2)));
    let mut get = |plugin: &dyn Plugin, path: &str| get(plugin, &host, "shop", path, &mut store).refused;
    assert_eq!((get(&*small, "/o/1"), get(&*small, "/o/2")), (None, Some(429)));
    assert_eq!((get(&*large, "/o/2"), get(&*large, "/o/3")), (None, Some(429)));
    assert_eq!(get(&*small, "/o/1"), None);
}

#[test]
fn windows_follow_the_clock_of_the_control_plane() {
    let (plugin, host, mut store) = (plugin(&with_budget(1)), FakeHost::at(NOW), Store::default());
    joins(&host, NOW + 3_000_000);
    get(&*plugin, &host, "shop", "/o/1", &mut store);
    let sent = get(&*plugin, &host, "shop", "/o/2", &mut store);
    assert_eq!((sent.refused, sent.retry_after), (Some(429), Some(590)));
    // The clock of the gateway is put back by a day: that of the control plane has not changed.
    host.clock.set(NOW - 86_400_000);
    joins(&host, NOW + 3_000_000);
    let sent = get(&*plugin, &host, "shop", "/o/2", &mut store);
    assert_eq!((sent.refused, sent.retry_after), (Some(429), Some(590)));
}

/// What becomes of a request whose question is given up in front of the backend, and of the question in front of its response.
fn overrun(
    plugin: &dyn Plugin,
    host: &FakeHost,
    (method, path): (&str, &str),
    status: u16,
    again: impl FnOnce(&Ask) -> Answer,
) -> Sent {
    let (mut exchange, mut slot) = (exchange("shop", path), Slot::default());
    exchange.request.method = method.into();
    let Verdict::Ask(_) = plugin.request(&mut exchange, true, &mut slot, host) else { panic!("{path}") };
    let mut verdict = plugin.answered(&mut exchange, Answer::Overrun, &mut slot, host);
    if verdict == Verdict::Pass {
        exchange.response = Some(Response { status, ..Response::default() });
        verdict = plugin.response(&mut exchange, true, &mut slot, host);
    }
    if let Verdict::Ask(ask) = &verdict {
        verdict = plugin.answered(&mut exchange, again(ask), &mut slot, host);
    }
    let mut sent = Sent::default();
    if let Verdict::Refuse(refusal) = &verdict {
        let header = refusal.headers.iter().find(|(name, _)| name == "retry-after");
        sent.refused = Some(refusal.status);
        sent.retry_after = header.map(|(_, value)| String::from_utf8_lossy(value).parse().unwrap());
    } else {
        assert_eq!(verdict, Verdict::Pass, "{path}");
    }
    sent.tags = exchange.score.tags().join(" ");
    sent
}

#[test]
fn a_long_body_is_no_way_around_a_budget() {
    let (plugin, host, mut store) = (plugin(&with_budget(1)), node(), Store::default());
    // Within the budget it passes, and is counted.
    let sent = overrun(&*plugin, &host, ("PUT", "/orders/1"), 200, |ask| store.answer(ask));
    assert_eq!(sent, Sent::default());
    assert_eq!(get(&*plugin, &host, "shop", "/orders/1", &mut store).refused, None);
    for path in ["/orders/2", "/orders/3"] {
        let sent = overrun(&*plugin, &host, ("PUT", path), 200, |ask| store.answer(ask));
        assert_eq!((sent.refused, sent.retry_after, sent.tags.as_str()), (Some(429), Some(3590), "objects:budget"));
    }
    assert_eq!(store.members(), 1);
    // Both waits are given up: it is not known, and not let through.
    let sent = overrun(&*plugin, &host, ("PUT", "/orders/4"), 200, |_| Answer::Overrun);
    assert_eq!((sent.refused, sent.retry_after, sent.tags.as_str()), (Some(429), Some(1), "objects:budget_uncounted"));
    // No honest request of these methods has such a body: the backend does not see it.
    for method in ["GET", "HEAD", "DELETE"] {
        let sent = overrun(&*plugin, &host, (method, "/orders/4"), 200, |_| panic!("nothing is asked"));
        assert_eq!((sent.refused, sent.retry_after), (Some(429), Some(1)), "{method}");
    }
    assert!(told(&host).is_empty(), "the chain tells of refusals, and there is no outage");
    // What is denied is not in the response, and a control plane that is gone is an outage.
    assert_eq!(overrun(&*plugin, &host, ("PUT", "/orders/5"), 404, |_| panic!("nothing is asked")).refused, None);
    assert_eq!(overrun(&*plugin, &host, ("PUT", "/orders/6"), 200, |_| Answer::Unavailable).refused, None);
    assert_eq!(told(&host), ["dependency objects:budget_uncounted"]);
}

#[test]
fn with_log_a_long_body_is_reported_and_passes() {
    let step = ObjectGuardStep { budget_logs: true, ..with_budget(1) };
    let (plugin, host, mut store) = (plugin(&step), node(), Store::default());
    get(&*plugin, &host, "shop", "/orders/1", &mut store);
    assert_eq!(overrun(&*plugin, &host, ("GET", "/orders/2"), 200, |ask| store.answer(ask)).refused, None);
    assert_eq!(overrun(&*plugin, &host, ("GET", "/orders/3"), 200, |_| Answer::Overrun).refused, None);
    assert_eq!(told(&host), ["objects objects:budget", "dependency objects:budget_uncounted"]);
    assert!(messages(&host)[1].contains("more of a body came than may wait"), "{:?}", messages(&host));
}
