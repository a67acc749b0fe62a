//! Ten weeks of a shop, and attacks on it: the guard beside fail2ban with its defaults. All of it is drawn from seeds, with a clock
//! that stands until it is moved.

mod attacks;
mod shop;

use std::collections::BTreeSet;

use exchange::bans::standing;
use exchange::{Caller, Registry};
use snapshot::{Policy, Tier, TierAction};
use threat_response::ThreatResponseStep;

use super::*;
use shop::Login;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// A Monday, at midnight.
const MONDAY: u64 = 1_700_438_400_000;

/// A gateway with one plugin that is tried.
struct Tried {
    chain: Chain,
    host: FakeHost,
}

/// The outcome of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The backend saw it.
    Passed,
    /// The caller was banned before.
    Banned,
    /// It was refused for its score.
    Refused,
}

impl Tried {
    fn new(steps: &[(&str, Vec<u8>)], registry: &Registry) -> Self {
        let step = |(plugin, config): &(&str, Vec<u8>)| Step {
            plugin: (*plugin).to_owned(),
            config: config.clone(),
            ..Step::default()
        };
        let global = steps.iter().map(step).collect();
        let snapshot = Snapshot { filter: "preset".into(), global, ..Snapshot::default() };
        Self { chain: Chain::load(&snapshot, registry).unwrap(), host: FakeHost::at(MONDAY) }
    }

    /// The guard, with a threat response that denies from 70 points on and bans from 90 on.
    fn guard() -> Self {
        let tier = |index, min_score, action: TierAction| Tier {
            index,
            min_score,
            action: action.into(),
            status: 403,
            ban_for_seconds: 3600,
            ..Tier::default()
        };
        let tiers =
            vec![tier(0, 40.0, TierAction::Log), tier(1, 70.0, TierAction::Deny), tier(2, 90.0, TierAction::Ban)];
        let response =
            ThreatResponseStep { policy: Some(Policy { tiers, ..Policy::default() }), ..ThreatResponseStep::default() };
        let steps = [(PLUGIN.name, step().encode_to_vec()), ("threat-response", response.encode_to_vec())];
        Self::new(&steps, &[PLUGIN, threat_response::PLUGIN])
    }

    /// Fail2ban with the defaults of its page, but for the dry run.
    fn fail2ban() -> Self {
        use fail2ban::{Fail2BanRule, Fail2BanStep, KeyPart, KeyPlace, StatusRange};
        let statuses = [401, 403, 407, 429].map(|status| StatusRange { first: status, last: status }).to_vec();
        let general = Fail2BanRule {
            statuses,
            max_retry: 5,
            detect_millis: 600_000,
            ban_millis: HOUR,
            ..Fail2BanRule::default()
        };
        let key = vec![KeyPart { place: KeyPlace::Ip.into(), text: String::new() }];
        let step = Fail2BanStep { key, weight: 3.0, general: Some(general), ..Fail2BanStep::default() };
        Self::new(&[(fail2ban::PLUGIN.name, step.encode_to_vec())], &[fail2ban::PLUGIN])
    }

    fn send(&self, login: &Login) -> Fate {
        self.host.clock.set(login.at);
        let caller = Caller { ip: login.ip.clone(), ..Caller::default() };
        if standing(&Exchange { caller, ..Exchange::default() }, &self.host).is_some() {
            return Fate::Banned;
        }
        let body = format!("username={}&password={}", login.user, login.password);
        let request = request("/login", &[("content-type", "application/x-www-form-urlencoded")]);
        let start = Start { request, route: b"", peer: login.ip.as_bytes(), node: &"node".into() };
        let mut run = Run::new(&self.chain, start, &self.host);
        let mut flow = run.request_headers(true, &self.host);
        if matches!(flow, Flow::Buffer { .. }) {
            flow = run.request_body(Body { bytes: body.as_bytes(), complete: true }, &self.host);
        }
        let passed = flow == Flow::Continue;
        if passed {
            let _ = run.response_headers(status(if login.ok { 302 } else { 401 }), false, &self.host);
        }
        run.finish(&self.host);
        self.host.state.borrow_mut().clear();
        if passed { Fate::Passed } else { Fate::Refused }
    }

    /// The tags of events of the guard that came since the last call.
    fn reported(&self) -> Vec<String> {
        let events = self.host.events_json();
        self.host.events.borrow_mut().clear();
        let own = events.iter().filter(|event| event["event"]["module"] == PLUGIN.name);
        own.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn ten_weeks_of_a_shop_without_an_attack_lead_to_no_takeover_and_no_ban() {
    ten_weeks(1);
}

/// The same for other draws; it takes a while.
#[test]
#[ignore = "run it after a change of thresholds"]
fn ten_weeks_of_other_shops_lead_to_no_takeover_and_no_ban_either() {
    (2..12).for_each(ten_weeks);
}

fn ten_weeks(seed: u64) {
    let (guard, other) = (Tried::guard(), Tried::fail2ban());
    let mut shop = shop::Shop::new(seed);
    let (mut logins, mut refused, mut banned, mut events) = (0_u32, 0_u32, 0_u32, Vec::new());
    for day in 0..70 {
        for login in shop.day(day, MONDAY + day * DAY) {
            logins += 1;
            refused += u32::from(guard.send(&login) != Fate::Passed);
            banned += u32::from(other.send(&login) == Fate::Banned);
            events.extend(guard.reported());
        }
    }
    let bans: BTreeSet<String> = other.host.bans.borrow().iter().map(|ban| ban.identity.key()).collect();
    println!("ten weeks of seed {seed}, {logins} logins");
    println!(
        "  login guard: {} events, {} bans, {refused} logins refused",
        events.len(),
        guard.host.bans.borrow().len()
    );
    println!("  fail2ban: {} bans of {} sources, {banned} logins refused", other.host.bans.borrow().len(), bans.len());
    events.iter().take(20).for_each(|event| println!("  {event}"));
    assert!(logins > 40_000, "{logins}");
    assert!(!events.iter().any(|event| event.contains("takeover")), "{events:?}");
    assert_eq!((guard.host.bans.borrow().len(), refused), (0, 0));
}
