//! Which failures count, for how long, and what they lead to.

use exchange::{Metric, shared_counts};
use node_state::{allowlist, bans as standing};
use serde_json::json;
use snapshot::CountsDown;

use super::*;

#[test]
fn the_failure_that_reaches_the_limit_bans_with_evidence() {
    let (host, chain) = (FakeHost::at(NOW), chain(&step()));
    for status in [401, 200, 403, 302] {
        send(&chain, &host, "192.0.2.1", "/login", status);
    }
    assert_eq!((banned(&host).len(), host.events.borrow().len()), (0, 0), "two failures, and successes in between");
    send(&chain, &host, "192.0.2.1", "/login", 401);
    let orders = host.bans.borrow();
    assert_eq!((orders.len(), orders[0].identity.key()), (1, "ip:192.0.2.1".to_owned()));
    assert_eq!((orders[0].until, orders[0].score), (NOW + 60 * MINUTE, 3.0));
    assert_eq!(orders[0].tags, ["fail2ban:401", "fail2ban"]);
    assert_eq!(orders[0].reason, "fail2ban: 3 failed requests within 600 s, the last one with status 401");
    let event = &host.events_json()[0];
    assert_eq!((&event["event"]["category"], &event["event"]["action"]), (&json!("fail2ban"), &json!("ban")));
    assert_eq!((&event["event"]["outcome"], &event["decision"]["enforced"]), (&json!("blocked"), &json!(true)));
    assert_eq!(event["threat"]["tags"], json!(["fail2ban:401", "fail2ban"]));
    assert!(event["message"].as_str().unwrap().ends_with("; ip:192.0.2.1 is banned for 3600 s"), "{event}");
}

#[test]
fn answers_to_a_banned_caller_do_not_count() {
    let (host, chain) = (FakeHost::at(NOW), chain(&step()));
    for _ in 0..50 {
        send(&chain, &host, "192.0.2.1", "/", 403);
    }
    assert_eq!((banned(&host).len(), host.events.borrow().len()), (1, 1));
    host.advance(60 * MINUTE);
    send(&chain, &host, "192.0.2.1", "/", 403);
    assert_eq!(banned(&host).len(), 1, "the ban was not renewed, and counting begins anew");
}

#[test]
fn a_lifted_ban_is_not_set_again_by_what_led_to_it() {
    let (host, chain) = (FakeHost::at(NOW), chain(&step()));
    (0..3).for_each(|_| send(&chain, &host, "192.0.2.1", "/", 401));
    standing::apply(&host.shared_data, "ip:192.0.2.1", NOW, "lifted", NOW).unwrap();
    (0..2).for_each(|_| send(&chain, &host, "192.0.2.1", "/", 401));
    assert_eq!(banned(&host).len(), 1);
    send(&chain, &host, "192.0.2.1", "/", 401);
    assert_eq!(banned(&host).len(), 2, "three new ones do");
}

#[test]
fn failures_leave_the_window() {
    let (host, chain) = (FakeHost::at(NOW), chain(&step()));
    // One in four minutes is never three within ten, also with the tenth that a count may stay longer.
    for _ in 0..30 {
        host.advance(6 * MINUTE);
        send(&chain, &host, "192.0.2.1", "/", 401);
    }
    assert_eq!(banned(&host), [] as [String; 0]);
    host.advance(4 * MINUTE);
    send(&chain, &host, "192.0.2.1", "/", 401);
    host.advance(4 * MINUTE);
    send(&chain, &host, "192.0.2.1", "/", 401);
    assert_eq!(banned(&host).len(), 1, "three within eight minutes");
}

#[test]
fn failures_that_led_to_a_ban_lead_to_no_other_one_when_an_earlier_ban_leaves_the_window() {
    for user in [None, Some("ada")] {
        let host = FakeHost::at(NOW);
        let short = Fail2BanRule { ban_millis: MINUTE, ..limits(5) };
        let step = Fail2BanStep { general: Some(short), ..step() };
        let plugin = build(&step.encode_to_vec(), &mut Build::new(std::iter::empty())).unwrap();
        let bans_after = |seconds: u64, failures: usize| {
            host.clock.set(NOW + seconds * 1000);
            for _ in 0..failures {
                let response = Response { status: 401, ..Response::default() };
                let mut exchange = Exchange { response: Some(response), ..Exchange::default() };
                exchange.caller.ip = "192.0.2.1".into();
                exchange.caller.user = user.map(str::to_owned);
                let _ = plugin.response(&mut exchange, false, &mut Slot::default(), &host);
            }
            banned(&host).len()
        };
        assert_eq!((bans_after(0, 5), bans_after(400, 5)), (1, 2), "{user:?}");
        // The first ban leaves after 660 s.
        assert_eq!((bans_after(700, 1), bans_after(701, 3)), (2, 2), "{user:?}");
        assert_eq!(bans_after(702, 1), 3, "{user:?}: the fifth behind the second ban");
    }
}

#[test]
fn only_the_statuses_of_the_configuration_are_failures() {
    let range = Fail2BanRule { statuses: vec![StatusRange { first: 500, last: 599 }], ..limits(1) };
    let chain = chain(&Fail2BanStep { general: Some(range), ..step() });
    for (status, expected) in [(499, 0), (500, 1), (599, 1), (200, 0), (404, 0), (401, 0), (0, 0)] {
        let host = FakeHost::at(NOW);
        send(&chain, &host, "192.0.2.1", "/", status);
        assert_eq!(banned(&host).len(), expected, "{status}");
    }
}

#[test]
fn a_dry_run_reports_each_ban_that_it_would_have_made() {
    let (host, chain) = (FakeHost::at(NOW), chain(&Fail2BanStep { dry_run: true, ..step() }));
    (0..100).for_each(|_| send(&chain, &host, "192.0.2.1", "/", 401));
    assert_eq!((banned(&host).len(), host.counts.borrow().get(&Metric::Bans)), (0, None));
    let events = host.events_json();
    let event = &events[0];
    assert_eq!((events.len(), &event["event"]["outcome"]), (1, &json!("observed")));
    assert_eq!((&event["decision"]["dry_run"], &event["decision"]["enforced"]), (&json!(true), &json!(false)));
    assert!(
        event["message"].as_str().unwrap().ends_with("; ip:192.0.2.1 would have been banned for 3600 s"),
        "{event}"
    );
    host.advance(61 * MINUTE);
    (0..3).for_each(|_| send(&chain, &host, "192.0.2.1", "/", 401));
    assert_eq!(host.events.borrow().len(), 2, "the ban would have ended");
}

#[test]
fn callers_that_are_ignored_are_never_counted() {
    let ignored = vec!["192.0.2.0/24".to_owned(), "2001:db8::1".to_owned()];
    let (host, chain) = (FakeHost::at(NOW), chain(&Fail2BanStep { ignored, ..step() }));
    for _ in 0..5 {
        send(&chain, &host, "192.0.2.1", "/", 401);
        send(&chain, &host, "2001:db8::1", "/", 401);
        send(&chain, &host, "198.51.100.1", "/", 401);
    }
    assert_eq!(banned(&host), ["ip:198.51.100.1"]);
}

#[test]
fn callers_on_the_allowlist_are_reported_once_a_minute() {
    let (host, chain) = (FakeHost::at(NOW), chain(&step()));
    allowlist::apply(&host.shared_data, "ip:192.0.2.1", NOW + 90 * MINUTE, NOW).unwrap();
    (0..30).for_each(|_| send(&chain, &host, "192.0.2.1", "/", 401));
    assert_eq!((banned(&host).len(), host.events.borrow().len()), (1, 1));
    assert_eq!(host.events_json()[0]["event"]["outcome"], "observed");
    assert!(bans::standing(&Exchange::default(), &host).is_none());
    host.advance(MINUTE);
    (0..3).for_each(|_| send(&chain, &host, "192.0.2.1", "/", 401));
    assert_eq!(host.events.borrow().len(), 2);
}

#[test]
fn the_scope_says_who_is_banned() {
    let mut exchange = Exchange::default();
    exchange.caller.ip = "192.0.2.1".into();
    exchange.caller.user = Some("ada".into());
    let ban = |scope: Fail2BanScope, exchange: &mut Exchange| {
        let host = FakeHost::at(NOW);
        let step = Fail2BanStep { ban_scope: scope.into(), general: Some(limits(1)), ..step() };
        let plugin = build(&step.encode_to_vec(), &mut Build::new(std::iter::empty())).unwrap();
        exchange.response = Some(Response { status: 401, ..Response::default() });
        let _ = plugin.response(exchange, false, &mut Slot::default(), &host);
        banned(&host)
    };
    assert_eq!(ban(Fail2BanScope::Auto, &mut exchange), ["user:ada"]);
    assert_eq!(ban(Fail2BanScope::Ip, &mut exchange), ["ip:192.0.2.1"]);
    assert_eq!(ban(Fail2BanScope::ApiKey, &mut exchange), [] as [String; 0]);
    exchange.caller.apikey = Some("k1".into());
    assert_eq!(ban(Fail2BanScope::ApiKey, &mut exchange), ["apikey:k1"]);
}

#[test]
fn a_rule_has_a_count_and_limits_of_its_own() {
    let login = Fail2BanRule {
        pattern: "^/login$".into(),
        methods: vec!["POST".into()],
        statuses: statuses(&[404]),
        max_retry: 2,
        ban_millis: 5 * MINUTE,
        ..limits(2)
    };
    let second = Fail2BanRule { pattern: "^/log".into(), ..limits(1) };
    let chain = chain(&Fail2BanStep { rules: vec![login, second], ..step() });
    let host = FakeHost::at(NOW);
    (0..2).for_each(|_| send(&chain, &host, "192.0.2.1", "/", 401));
    (0..4).for_each(|_| send(&chain, &host, "192.0.2.1", "/login", 401));
    send(&chain, &host, "192.0.2.1", "/login", 404);
    assert_eq!(banned(&host), [] as [String; 0], "one of two, and two of three; 401 is no failure of the first rule");
    send(&chain, &host, "192.0.2.1", "/x/../%6Cogin", 404);
    let orders = host.bans.borrow();
    assert_eq!((orders.len(), orders[0].until), (1, NOW + 5 * MINUTE), "in every spelling of the path");
    assert!(orders[0].reason.contains("2 failed requests to `^/login$` within 600 s"), "{}", orders[0].reason);
    drop(orders);
    send(&chain, &host, "192.0.2.2", "/logout", 401);
    assert_eq!(banned(&host).len(), 2, "the second rule");
    let get = Request { method: b"GET".to_vec(), path: b"/login".to_vec(), ..Request::default() };
    send_as(&chain, &host, "192.0.2.3", get, 403);
    assert_eq!(banned(&host).len(), 3, "with another method the first rule does not match, and the second does");
}

#[test]
fn methods_of_a_rule_match_in_any_case() {
    let login = Fail2BanRule { pattern: "^/login$".into(), methods: vec!["POST".into()], ..limits(1) };
    let chain = chain(&Fail2BanStep { rules: vec![login], ..step() });
    let host = FakeHost::at(NOW);
    for (number, method) in ["POST", "post", "pOsT"].iter().enumerate() {
        let request = Request { method: method.as_bytes().to_vec(), path: b"/login".to_vec(), ..Request::default() };
        send_as(&chain, &host, &format!("192.0.2.{number}"), request, 401);
        assert_eq!(banned(&host).len(), number + 1, "{method}");
    }
}

/// A lax rule is no way around the general limits, by a path that only some backends take for one of the rule.
#[test]
fn a_path_that_may_be_anything_has_the_strictest_limits() {
    let lax = Fail2BanRule { pattern: r"\.css$".into(), ..limits(1000) };
    let chain = chain(&Fail2BanStep { rules: vec![lax], ..step() });
    let host = FakeHost::at(NOW);
    (0..9).for_each(|_| send(&chain, &host, "192.0.2.1", "/a.css", 401));
    assert_eq!(banned(&host), [] as [String; 0]);
    for (number, path) in ["/login;x.css", "/;/login", "/login%2fx.css", "/login%252ecss"].iter().enumerate() {
        (0..3).for_each(|_| send(&chain, &host, &format!("192.0.2.{}", 10 + number), path, 401));
        assert_eq!(banned(&host).len(), number + 1, "{path}");
    }
}

#[test]
fn workers_and_plugins_with_the_same_key_count_together() {
    let (host, one, other) = (FakeHost::at(NOW), chain(&step()), chain(&step()));
    send(&one, &host, "192.0.2.1", "/", 401);
    send(&other, &host, "192.0.2.1", "/", 401);
    send(&one, &host, "192.0.2.1", "/", 401);
    assert_eq!(banned(&host).len(), 1);
}

#[test]
fn nodes_count_together() {
    // Eight gateways with one worker each, and the counts of a real control plane between them.
    let hub = counts::Counts::new([7; 16], 1, || NOW);
    let defaults = Fail2BanStep { general: Some(limits(5)), ..step() };
    let nodes: Vec<(FakeHost, Chain)> = (0..8).map(|_| (FakeHost::at(NOW), chain(&defaults))).collect();
    let name = |number: usize| format!("node-{number}");
    for (number, (host, chain)) in nodes.iter().enumerate() {
        let _link = hub.linked(&name(number), 1);
        shared_counts::learn(host.shared(), &hub.greeting(), NOW);
        // Any request introduces what the node counts.
        send(chain, host, "192.0.2.9", "/", 200);
    }
    let carry = || {
        for (number, (host, _)) in nodes.iter().enumerate() {
            while let Some(up) = shared_counts::news(host.shared(), NOW) {
                hub.take(&name(number), &up);
                let taken = CountsDown { now_millis: NOW, taken: up.number, ..CountsDown::default() };
                shared_counts::learn(host.shared(), &taken, NOW);
            }
        }
        for (number, (host, _)) in nodes.iter().enumerate() {
            while let Some(down) = hub.news(&name(number), 1) {
                shared_counts::learn(host.shared(), &down, NOW);
            }
        }
    };
    carry();
    let bans: Vec<usize> = nodes
        .iter()
        .map(|(host, chain)| {
            send(chain, host, "192.0.2.1", "/", 401);
            carry();
            banned(host).len()
        })
        .collect();
    assert_eq!(
        bans,
        [0, 0, 0, 0, 1, 0, 0, 0],
        "the fifth failure, on the fifth node; counting begins anew on all of them"
    );
}

#[test]
fn failures_add_to_the_score_and_successes_do_not() {
    let host = FakeHost::at(NOW);
    let plugin =
        build(&Fail2BanStep { weight: 7.0, ..step() }.encode_to_vec(), &mut Build::new(std::iter::empty())).unwrap();
    for (status, total, tags) in [(200, 0.0, &[][..]), (401, 7.0, &["fail2ban:401"]), (429, 7.0, &["fail2ban:429"])] {
        let mut exchange =
            Exchange { response: Some(Response { status, ..Response::default() }), ..Exchange::default() };
        assert_eq!(plugin.response(&mut exchange, false, &mut Slot::default(), &host), Verdict::Pass);
        assert_eq!((exchange.score.total(), exchange.score.tags().as_slice()), (total, tags));
    }
}
