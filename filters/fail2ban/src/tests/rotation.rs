//! What a client may rotate (accounts, headers) neither takes the ban of its address nor hides its failures.

use super::*;

/// A failure from an address, with a verified user or API key.
fn fail(plugin: &dyn Plugin, host: &FakeHost, (user, apikey): (Option<&str>, Option<&str>), token: &str) {
    let mut exchange =
        Exchange { response: Some(Response { status: 401, ..Response::default() }), ..Exchange::default() };
    exchange.caller.ip = "192.0.2.1".into();
    exchange.caller.user = user.map(str::to_owned);
    exchange.caller.apikey = apikey.map(str::to_owned);
    exchange.request.headers = Headers::new(&[("x-token", token)]);
    let _ = plugin.response(&mut exchange, false, &mut Slot::default(), host);
}

fn plugin(step: &Fail2BanStep) -> Box<dyn Plugin> {
    build(&step.encode_to_vec(), &mut Build::new(std::iter::empty())).unwrap()
}

#[test]
fn a_throw_away_user_takes_a_ban_and_the_count_of_the_address_stays() {
    let (host, plugin) = (FakeHost::at(NOW), plugin(&step()));
    (0..2).for_each(|_| fail(&*plugin, &host, (None, None), ""));
    fail(&*plugin, &host, (Some("throw-away"), None), "");
    assert_eq!(banned(&host), ["user:throw-away"], "the third failure");
    fail(&*plugin, &host, (Some("another"), None), "");
    fail(&*plugin, &host, (None, None), "");
    assert_eq!(banned(&host)[1..], ["user:another", "ip:192.0.2.1"]);
    (0..9).for_each(|_| fail(&*plugin, &host, (None, None), ""));
    assert_eq!(banned(&host).len(), 3, "a banned address is not counted");
}

#[test]
fn an_identity_that_was_banned_is_judged_by_what_it_fails_afterwards() {
    let (host, plugin) = (FakeHost::at(NOW), plugin(&step()));
    (0..3).for_each(|_| fail(&*plugin, &host, (Some("ada"), None), ""));
    assert_eq!(banned(&host), ["user:ada"]);
    node_state::bans::apply(&host.shared_data, "user:ada", NOW, "lifted", NOW).unwrap();
    (0..2).for_each(|_| fail(&*plugin, &host, (Some("ada"), None), ""));
    assert_eq!(banned(&host).len(), 1, "what led to the ban that was lifted does not lead to another one");
    fail(&*plugin, &host, (Some("ada"), None), "");
    assert_eq!(banned(&host), ["user:ada", "user:ada"]);
}

#[test]
fn failures_without_an_identity_of_the_scope_use_up_nothing() {
    let by_key = Fail2BanStep { ban_scope: Fail2BanScope::ApiKey.into(), ..step() };
    let (host, plugin) = (FakeHost::at(NOW), plugin(&by_key));
    (0..3).for_each(|_| fail(&*plugin, &host, (None, None), ""));
    assert_eq!((banned(&host).len(), host.events.borrow().len()), (0, 1), "no one can be banned, which is reported");
    fail(&*plugin, &host, (None, Some("k1")), "");
    assert_eq!(banned(&host), ["apikey:k1"], "nor do they hide those of a key");
}

#[test]
fn failures_that_are_spread_over_many_keys_are_those_of_an_address() {
    let keys = [part(KeyPlace::Header, "x-token"), part(KeyPlace::User, ""), part(KeyPlace::Path, "")];
    for (number, place) in keys.into_iter().enumerate() {
        let (host, plugin) = (FakeHost::at(NOW), plugin(&Fail2BanStep { key: vec![place], ..step() }));
        let failures = (1..100).find(|failure| {
            let (user, token) = (format!("u{failure}"), format!("t{failure}"));
            let user = (number == 1).then_some(user.as_str());
            match number {
                2 => {
                    let path = format!("/p{failure}").into_bytes();
                    let mut exchange = Exchange {
                        response: Some(Response { status: 401, ..Response::default() }),
                        ..Exchange::default()
                    };
                    exchange.caller.ip = "192.0.2.1".into();
                    exchange.request.path = path;
                    let _ = plugin.response(&mut exchange, false, &mut Slot::default(), &host);
                }
                _ => fail(&*plugin, &host, (user, None), &token),
            }
            !host.bans.borrow().is_empty()
        });
        assert_eq!(
            (failures, banned(&host)),
            (Some(30), vec!["ip:192.0.2.1".to_owned()]),
            "{number}: ten times the limit"
        );
        assert!(host.bans.borrow()[0].reason.contains("30 failed requests of an address within 600 s"));
    }
    // A key that names the address alone counts by nothing else, and where API keys alone are banned no address is.
    let header = vec![part(KeyPlace::Header, "x-token")];
    let by_key = Fail2BanStep { key: header, ban_scope: Fail2BanScope::ApiKey.into(), ..step() };
    let (host, plugin) = (FakeHost::at(NOW), plugin(&by_key));
    (0..100).for_each(|failure| fail(&*plugin, &host, (None, None), &format!("t{failure}")));
    assert_eq!((banned(&host).len(), host.events.borrow().len()), (0, 0));
}

#[test]
fn a_ban_on_an_address_begins_the_count_of_all_its_failures_anew() {
    let by_token = Fail2BanStep { key: vec![part(KeyPlace::Header, "x-token")], ..step() };
    let (host, plugin) = (FakeHost::at(NOW), plugin(&by_token));
    let spread = |from: u32, to: u32| {
        (from..to).for_each(|token| fail(&*plugin, &host, (None, None), &format!("t{token}")));
    };
    spread(0, 20);
    (0..3).for_each(|_| fail(&*plugin, &host, (None, None), "guess"));
    assert_eq!(banned(&host), ["ip:192.0.2.1"], "three of one key");
    node_state::bans::apply(&host.shared_data, "ip:192.0.2.1", NOW, "lifted", NOW).unwrap();
    spread(20, 49);
    assert_eq!(banned(&host).len(), 1, "29 since the ban, and 23 in front of it");
    spread(49, 50);
    assert_eq!(banned(&host).len(), 2);
    assert!(host.bans.borrow()[1].reason.contains("30 failed requests of an address"));
}

#[test]
fn a_ban_on_a_user_leaves_the_count_of_the_address() {
    let by_user = Fail2BanStep { key: vec![part(KeyPlace::User, "")], ..step() };
    let (host, plugin) = (FakeHost::at(NOW), plugin(&by_user));
    let failures = (0..100).find(|failure| {
        fail(&*plugin, &host, (Some(&format!("u{}", failure / 3)), None), "");
        banned(&host).contains(&"ip:192.0.2.1".to_owned())
    });
    // The thirtieth failure bans the tenth user.
    assert_eq!((failures, banned(&host).len()), (Some(30), 11));
}

#[test]
fn a_dry_run_reports_no_ban_for_failures_that_another_one_would_have_kept_away() {
    for place in [part(KeyPlace::Header, "x-token"), part(KeyPlace::User, "")] {
        let by_user = place.place() == KeyPlace::User;
        let (host, plugin) = (FakeHost::at(NOW), plugin(&Fail2BanStep { key: vec![place], dry_run: true, ..step() }));
        let user = by_user.then_some("ada");
        (0..100).for_each(|_| fail(&*plugin, &host, (user, None), "guess"));
        assert_eq!(host.events.borrow().len(), 1, "the third failure");
        let other = |number: usize| {
            let (user, token) = (format!("u{number}"), format!("t{number}"));
            fail(&*plugin, &host, (by_user.then_some(user.as_str()), None), &token);
        };
        (0..26).for_each(other);
        assert_eq!(host.events.borrow().len(), 1, "what comes from a user who would be banned counts for no one");
        (26..100).for_each(other);
        // A ban on the address would be in force, and one on the user keeps no one else away.
        assert_eq!(host.events.borrow().len(), if by_user { 2 } else { 1 });
        host.advance(61 * MINUTE);
        (0..30).for_each(other);
        assert_eq!(host.events.borrow().len(), if by_user { 3 } else { 2 }, "the bans would have ended");
    }
}
