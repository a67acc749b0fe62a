//! The threat gate: callers under a standing ban are refused before anything of their request is parsed. A caller that is not
//! banned and submits the solution of a challenge is answered here, before the rule engine sees it.

#[cfg(feature = "control")]
pub mod control;
mod messages;
mod traffic;

pub use messages::ThreatGateStep;
pub use traffic::{RouteTraffic, TRAFFIC, TrafficReport};

use challenge::Challenges;
use exchange::bans;
use exchange::{
    About, Action, Answer, Build, Category, Decision, Exchange, Exemptions, Host, Outcome, Plugin, PluginDefinition,
    Refusal, Role, SecurityEvent, Slot, Timer, Verdict,
};
use snapshot::{Message, Policy};

/// The status of a refusal where no tier of the policy bans.
const STATUS: u16 = 403;

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("threat-gate", build).role(Role::Enforcement);

struct ThreatGate {
    exemptions: Exemptions,
    dry_run: bool,
    /// Id of the policy; empty without one.
    policy: String,
    /// The status of a refusal.
    status: u16,
    challenges: Option<Challenges>,
}

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = ThreatGateStep::decode(config).map_err(|error| error.to_string())?;
    let mut policy = step.policy.unwrap_or_default();
    let challenges = policy.challenge.take().and_then(Challenges::new);
    let exemptions = Exemptions::new(&policy.exemptions)?;
    let (dry_run, status) = (policy.dry_run, status(&policy));
    Ok(Box::new(ThreatGate { exemptions, dry_run, policy: policy.id, status, challenges }))
}

/// The status of the highest tier that bans: whatever a ban came from, a banned caller is answered as it was when the tier
/// banned it.
fn status(policy: &Policy) -> u16 {
    let bans = policy.tiers.iter().filter(|tier| tier.action() == Action::Ban);
    let highest = bans.max_by(|one, other| one.min_score.total_cmp(&other.min_score));
    let status = highest.and_then(|tier| u16::try_from(tier.status).ok());
    status.filter(|status| (200..=599).contains(status)).unwrap_or(STATUS)
}

impl Plugin for ThreatGate {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        traffic::count(exchange, host);
        let Some(mut ban) = bans::standing(exchange, host) else {
            return self.submission(exchange, host);
        };
        if self.exemptions.cover(&exchange.caller.ip) {
            return Verdict::Pass;
        }
        if self.dry_run {
            // What an operator has banned is no trial of a policy.
            let Some(by_hand) = bans::standing_by_hand(exchange, host) else {
                self.observe(exchange, ban.describe(host.now()), host);
                return self.submission(exchange, host);
            };
            ban = by_hand;
        }
        let reason = ban.describe(host.now());
        Verdict::Refuse(Refusal::new(self.status, Category::Ban, reason).about(self.about()))
    }

    fn judges(&self) -> Option<&str> {
        self.challenges.as_ref().map(Challenges::provider)
    }

    fn timer(&self) -> Option<Timer> {
        Some(traffic::TIMER)
    }

    fn on_timer(&self, host: &dyn Host) {
        traffic::report(host);
    }

    fn answered(&self, exchange: &mut Exchange, answer: Answer, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        match &self.challenges {
            Some(challenges) => challenges.answered(PLUGIN.name, &answer, exchange, host),
            None => Verdict::Pass,
        }
    }
}

impl ThreatGate {
    /// A submission to another provider is left to later steps, where one may take it.
    fn submission(&self, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        match &self.challenges {
            Some(challenges) if !self.exemptions.cover(&exchange.caller.ip) => {
                let last = !exchange.is_judged_later;
                challenges.access(PLUGIN.name, last, exchange, host)
            }
            _ => Verdict::Pass,
        }
    }

    fn about(&self) -> About {
        About::policy(Policy::COLLECTION, &self.policy)
    }

    fn observe(&self, exchange: &mut Exchange, reason: String, host: &dyn Host) {
        let decision = Decision::new(Action::Deny, exchange.score.total(), reason).dry_run();
        let decision = decision.about(self.about());
        let event = SecurityEvent {
            category: Category::Ban,
            outcome: Outcome::Observed,
            module: PLUGIN.name,
            message: &decision.reason,
            decision: &decision,
        };
        exchange.emit(&event, host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exchange::fake::FakeHost;
    use node_state::{allowlist, bans};
    use snapshot::{Tier, TierAction};

    fn gate(policy: Policy) -> Box<dyn Plugin> {
        let step = ThreatGateStep { policy: Some(policy) };
        build(&step.encode_to_vec(), &mut Build::new(std::iter::empty())).unwrap()
    }

    fn access(gate: &dyn Plugin, exchange: &mut Exchange, host: &FakeHost) -> Verdict {
        gate.access(exchange, &mut Slot::default(), host)
    }

    fn exchange() -> Exchange {
        let mut exchange = Exchange::default();
        exchange.caller.ip = "192.0.2.1".into();
        exchange.caller.user = Some("ada".into());
        exchange
    }

    #[test]
    fn a_banned_identity_of_any_kind_is_refused_until_the_ban_ends() {
        let host = FakeHost::at(1_000);
        bans::apply(&host.shared_data, "user:ada", 11_000, "score 95", 1_000).unwrap();
        let gate = gate(Policy { id: "p".into(), ..Policy::default() });
        let Verdict::Refuse(refusal) = access(&*gate, &mut exchange(), &host) else { panic!("it passed") };
        assert_eq!((refusal.status, refusal.scored), (403, false));
        assert_eq!(refusal.about, About::policy("threat-policies", "p"));
        assert_eq!(refusal.reason, "user:ada is banned for another 10 s: score 95");
        host.advance(10_000);
        assert_eq!(access(&*gate, &mut exchange(), &host), Verdict::Pass);
    }

    #[test]
    fn a_banned_caller_gets_the_status_of_the_highest_tier_that_bans() {
        let host = FakeHost::at(1_000);
        bans::apply(&host.shared_data, "ip:192.0.2.1", 11_000, "score 95", 1_000).unwrap();
        let tier = |min_score, action: TierAction, status| Tier {
            min_score,
            action: action.into(),
            status,
            ..Tier::default()
        };
        let answered = |tiers: &[Tier]| {
            let policy = Policy { tiers: tiers.to_vec(), ..Policy::default() };
            match access(&*gate(policy), &mut exchange(), &host) {
                Verdict::Refuse(refusal) => refusal.status,
                other => panic!("{other:?}"),
            }
        };
        let [low, high] = [tier(50.0, TierAction::Ban, 418), tier(90.0, TierAction::Ban, 410)];
        assert_eq!(answered(&[high.clone(), low.clone()]), 410);
        assert_eq!(answered(&[low.clone(), high, tier(95.0, TierAction::Deny, 404)]), 410);
        assert_eq!(answered(&[low]), 418);
        assert_eq!(answered(&[tier(90.0, TierAction::Deny, 404)]), 403, "no tier bans");
        assert_eq!(answered(&[tier(90.0, TierAction::Ban, 0)]), 403, "that is no status");
    }

    #[test]
    fn a_range_is_refused_but_for_whom_the_allowlist_names() {
        let host = FakeHost::at(1_000);
        let gate = gate(Policy::default());
        bans::apply(&host.shared_data, "ip:192.0.0.0/16", 11_000, "range", 1_000).unwrap();
        assert!(matches!(access(&*gate, &mut exchange(), &host), Verdict::Refuse(_)));
        allowlist::apply(&host.shared_data, "ip:192.0.2.1", 9_000, 1_000).unwrap();
        assert_eq!(access(&*gate, &mut exchange(), &host), Verdict::Pass);
        // Another identity of the same caller is another matter.
        bans::apply(&host.shared_data, "user:ada", 11_000, "by hand", 1_000).unwrap();
        assert!(matches!(access(&*gate, &mut exchange(), &host), Verdict::Refuse(_)));
        bans::apply(&host.shared_data, "user:ada", 0, "", 1_000).unwrap();
        host.advance(8_000);
        assert!(matches!(access(&*gate, &mut exchange(), &host), Verdict::Refuse(_)), "the entry has ended");
    }

    #[test]
    fn a_ban_by_hand_is_enforced_in_dry_run_but_for_whom_nothing_bans() {
        let host = FakeHost::at(1_000);
        let by_hand = |key, until, hand_until| {
            let ban = bans::BanOf { key, until, hand_until, reason: "by hand" };
            assert!(bans::apply_all(&host.shared_data, std::iter::once(ban), 1_000).is_empty());
        };
        // A tier has banned the address, for longer; an operator the network around it, and the user.
        bans::apply(&host.shared_data, "ip:192.0.2.1", 90_000, "score 95", 1_000).unwrap();
        by_hand("ip:192.0.2.0/24", 11_000, 11_000);
        let dry = gate(Policy { dry_run: true, ..Policy::default() });
        let Verdict::Refuse(refusal) = access(&*dry, &mut exchange(), &host) else { panic!("it passed") };
        assert_eq!(refusal.reason, "ip:192.0.2.1 is banned for another 10 s: by hand");
        allowlist::apply(&host.shared_data, "ip:192.0.2.1", 5_000, 1_000).unwrap();
        assert_eq!(access(&*dry, &mut exchange(), &host), Verdict::Pass);
        by_hand("user:ada", 90_000, 11_000);
        assert!(matches!(access(&*dry, &mut exchange(), &host), Verdict::Refuse(_)));
        let exempt = Policy { dry_run: true, exemptions: vec!["192.0.2.1".into()], ..Policy::default() };
        assert_eq!(access(&*gate(exempt), &mut exchange(), &host), Verdict::Pass);
        host.advance(10_000);
        assert_eq!(access(&*dry, &mut exchange(), &host), Verdict::Pass, "what is left of it is a tier's");
        assert_eq!(host.events_json().pop().unwrap()["event"]["outcome"], "observed");
    }

    #[test]
    fn a_network_of_ipv6_is_refused_but_for_the_address_that_the_allowlist_names() {
        let host = FakeHost::at(1_000);
        bans::apply(&host.shared_data, "ip:2001:db8:1:2::/64", 11_000, "score 95", 1_000).unwrap();
        let (gate, mut exchange) = (gate(Policy::default()), Exchange::default());
        exchange.caller.ip = "2001:db8:1:2:ffff::9".into();
        assert!(matches!(access(&*gate, &mut exchange, &host), Verdict::Refuse(_)));
        allowlist::apply(&host.shared_data, "ip:2001:db8:1:2:ffff::9", 9_000, 1_000).unwrap();
        assert_eq!(access(&*gate, &mut exchange, &host), Verdict::Pass);
        exchange.caller.ip = "2001:db8:1:2:ffff::10".into();
        assert!(matches!(access(&*gate, &mut exchange, &host), Verdict::Refuse(_)));
        exchange.caller.ip = "2001:db8:1:3::9".into();
        assert_eq!(access(&*gate, &mut exchange, &host), Verdict::Pass);
    }

    #[test]
    fn dry_run_says_what_it_would_have_done_and_an_exemption_passes_silently() {
        let host = FakeHost::at(1_000);
        bans::apply(&host.shared_data, "ip:192.0.2.1", 11_000, "by hand", 1_000).unwrap();
        let dry = gate(Policy { dry_run: true, ..Policy::default() });
        assert_eq!(access(&*dry, &mut exchange(), &host), Verdict::Pass);
        assert_eq!(host.events_json()[0]["event"]["outcome"], "observed");
        let exempt = gate(Policy { exemptions: vec!["192.0.2.0/24".into()], ..Policy::default() });
        assert_eq!(access(&*exempt, &mut exchange(), &host), Verdict::Pass);
        assert_eq!(host.events_json().len(), 1);
    }
}
