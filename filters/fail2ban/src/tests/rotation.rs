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
