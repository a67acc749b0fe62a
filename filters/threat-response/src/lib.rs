//! The threat response: the one component that reads the score and acts on it.
//!
//! On a request that nobody refused it acts by the highest tier that the score reaches. On one that a detector refused it
//! is asked as well, because a refused request may still be worth a ban: a stricter action takes the place of the
//! refusal, a milder one leaves it as it is. Either way there is one decision and one event.
//!
//! Signals that come later, from the response or at the end of the exchange, may reach a higher tier (module `late`).

#[cfg(feature = "control")]
pub mod control;
mod late;
mod messages;
mod preflight;
mod throttle;

pub use messages::ThreatResponseStep;

use challenge::Challenges;
use exchange::bans::{self, BanScope, NewBan};
use exchange::{
    About, Action, Answer, Build, Category, Decision, Exchange, Exemptions, Half, Host, Outcome, Plugin,
    PluginDefinition, Refusal, Reply, Role, SecurityEvent, Slot, Verdict,
};
use maze::Maze;
use snapshot::{Message, Policy, Tier};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("threat-response", build).role(Role::Response);

struct ThreatResponse {
    policy: Policy,
    exemptions: Exemptions,
    challenges: Option<Challenges>,
    maze: Option<Maze>,
}

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = ThreatResponseStep::decode(config).map_err(|error| error.to_string())?;
    let mut policy = step.policy.ok_or("a threat response needs a policy")?;
    let exemptions = Exemptions::new(&policy.exemptions)?;
    let challenges = policy.challenge.take().and_then(Challenges::new);
    let maze = step.maze.map(Maze::new).transpose()?;
    Ok(Box::new(ThreatResponse { policy, exemptions, challenges, maze }))
}

impl Plugin for ThreatResponse {
    /// A submitted solution is judged before the rule engine sees it. It is so in dry run too: otherwise the solution of a
    /// page that is open already would reach the backend.
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        match &self.challenges {
            Some(challenges) if !self.exemptions.cover(&exchange.caller.ip) => {
                let last = !exchange.is_judged_later;
                challenges.access(PLUGIN.name, last, exchange, host)
            }
            _ => Verdict::Pass,
        }
    }

    fn judges(&self) -> Option<&str> {
        self.challenges.as_ref().map(Challenges::provider)
    }

    fn answered(&self, exchange: &mut Exchange, answer: Answer, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        match &self.challenges {
            Some(challenges) => challenges.answered(PLUGIN.name, &answer, exchange, host),
            None => Verdict::Pass,
        }
    }

    fn request(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let score = exchange.score.total();
        slot.put(late::Judged(score));
        if self.exemptions.cover(&exchange.caller.ip) {
            return Verdict::Pass;
        }
        let Some(tier) = self.policy.tier_at(score) else {
            return self.inside_maze(score, exchange, host);
        };
        if self.has_acted(tier, exchange) {
            return Verdict::Pass;
        }
        let reason = format!("score {score} reaches tier {} of policy `{}`", tier.index, self.policy.name);
        let decision = self.decision(tier, score, reason);
        if self.policy.dry_run {
            return self.observed(decision, exchange, host);
        }
        let would_ask = tier.action() == Action::Challenge && self.challenges.is_some();
        if would_ask && preflight::is_preflight(exchange, has_body) {
            return self.spare_preflight(decision, exchange, host);
        }
        self.enforce(tier, decision, exchange, host)
    }

    fn response(&self, exchange: &mut Exchange, _has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        self.at_response(exchange, slot, host)
    }

    fn finish(&self, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) {
        self.at_end(exchange, slot, host);
    }

    fn stricter(&self, exchange: &Exchange, refusal: &Refusal) -> Option<Action> {
        self.stricter_tier(exchange, refusal).map(Tier::action)
    }

    fn on_refusal(
        &self,
        exchange: &mut Exchange,
        refusal: &Refusal,
        by: &str,
        _half: Half,
        host: &dyn Host,
    ) -> Option<Verdict> {
        if self.exemptions.cover(&exchange.caller.ip) {
            return None;
        }
        let score = exchange.score.total();
        let stricter = self.stricter_tier(exchange, refusal);
        let mut decision = Decision {
            tier: self.policy.tier_at(score).map(|tier| tier.index),
            dry_run: self.policy.dry_run,
            held_millis: if stricter.is_some() { 0 } else { refusal.hold_millis },
            about: self.about_refusal(refusal, stricter.is_some()),
            ..Decision::new(stricter.map_or(refusal.action, Tier::action), score, refusal.reason.clone()).enforced()
        };
        let mut hold_millis = decision.held_millis;
        let mut reply = None;
        if let Some((tier, action)) = stricter.map(|tier| (tier, tier.action())) {
            match action {
                Action::Tarpit => {
                    hold_millis = tier.tarpit_millis;
                    decision.held_millis = hold_millis;
                }
                Action::Ban => self.ban(tier, &decision, exchange, host),
                _ => {}
            }
            let page = if action == Action::Maze { self.page(&mut decision, exchange, host) } else { None };
            hold_millis = hold_millis.max(decision.held_millis);
            reply = Some(page.unwrap_or_else(|| refuse(tier.status, exchange)));
        }
        let event = SecurityEvent {
            category: refusal.category,
            outcome: Outcome::Blocked,
            module: by,
            message: &decision.reason,
            decision: &decision,
        };
        exchange.emit(&event, host);
        Some(Verdict::Enforce { decision, hold_millis, reply })
    }
}

impl ThreatResponse {
    /// The tier whose action takes the place of a refusal.
    fn stricter_tier(&self, exchange: &Exchange, refusal: &Refusal) -> Option<&Tier> {
        if self.policy.dry_run || self.exemptions.cover(&exchange.caller.ip) {
            return None;
        }
        // A page of the maze stands unless the caller is banned.
        let least = if refusal.action == Action::Maze { Action::Ban } else { Action::Tarpit };
        self.policy.tier_at(exchange.score.total()).filter(|tier| tier.action() >= least)
    }

    /// Whether this policy has acted on the request by that tier or a higher one already: the same policy may be in the global chain and in
    /// that of the route.
    fn has_acted(&self, tier: &Tier, exchange: &Exchange) -> bool {
        let own = self.about().policy;
        let before = exchange.decision.as_ref().filter(|decision| !own.is_empty() && decision.about.policy == own);
        let before = before.and_then(|decision| self.policy.tier_at(decision.score));
        before.is_some_and(|before| before.min_score >= tier.min_score)
    }

    fn decision(&self, tier: &Tier, score: f64, reason: String) -> Decision {
        let dry_run = self.policy.dry_run;
        let enforced = !dry_run && tier.action() >= Action::Throttle;
        let about = self.about();
        Decision { tier: Some(tier.index), dry_run, enforced, about, ..Decision::new(tier.action(), score, reason) }
    }

    fn about(&self) -> About {
        About::policy(Policy::COLLECTION, &self.policy.id)
    }

    /// What the event of a refusal is about. Its pattern is the plugin's; the policy is this one where it `has_answered` more
    /// strictly.
    fn about_refusal(&self, refusal: &Refusal, has_answered: bool) -> About {
        let of_plugin = refusal.about.clone();
        if has_answered { About { policy: self.about().policy, ..of_plugin } } else { of_plugin }
    }

    fn enforce(&self, tier: &Tier, mut decision: Decision, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        match tier.action() {
            Action::Log => self.observed(decision, exchange, host),
            Action::Challenge => self.challenge(tier, decision, exchange, host),
            Action::Throttle => match throttle::take(tier, &self.policy.id, exchange, host) {
                throttle::Outcome::Within => {
                    decision.enforced = false;
                    self.observed(decision, exchange, host)
                }
                throttle::Outcome::Beyond { retry_after } => {
                    let mut reply = refuse(429, exchange);
                    reply.headers.push(("retry-after".to_owned(), retry_after.to_string().into_bytes()));
                    self.blocked(decision, reply, exchange, host)
                }
            },
            Action::Tarpit => {
                decision.held_millis = tier.tarpit_millis;
                // The delay is enforced, and the request goes on after it: nothing is blocked.
                emit(Outcome::Observed, &decision, exchange, host);
                Verdict::Enforce { decision, hold_millis: tier.tarpit_millis, reply: None }
            }
            Action::Deny => self.blocked(decision, refuse(tier.status, exchange), exchange, host),
            Action::Maze => {
                let page = self.page(&mut decision, exchange, host);
                self.blocked(decision, page.unwrap_or_else(|| refuse(tier.status, exchange)), exchange, host)
            }
            Action::Ban => {
                self.ban(tier, &decision, exchange, host);
                self.blocked(decision, refuse(tier.status, exchange), exchange, host)
            }
        }
    }

    /// A caller that follows the links of pages stays in the maze, whatever this request alone scores.
    fn inside_maze(&self, score: f64, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let inside = self.maze.as_ref().filter(|_| !self.policy.dry_run);
        if !inside.is_some_and(|maze| maze.is_inside(exchange, host)) {
            return Verdict::Pass;
        }
        let reason = format!("the caller follows the links of the maze of policy `{}`", self.policy.name);
        let decision = Decision::new(Action::Maze, score, reason).enforced();
        let mut decision = decision.about(self.about());
        match self.page(&mut decision, exchange, host) {
            Some(reply) => self.blocked(decision, reply, exchange, host),
            None => self.blocked(decision, refuse(404, exchange), exchange, host),
        }
    }

    /// The answer of the maze. Where none is to be shown the decision becomes a denial and says why.
    fn page(&self, decision: &mut Decision, exchange: &Exchange, host: &dyn Host) -> Option<Reply> {
        let page = match &self.maze {
            Some(_) if maze::may_be_obedient(exchange) => Err("the caller is verified, or obeys robots.txt"),
            Some(maze) => maze.page(exchange, host).ok_or("a budget is used up, or the request is no GET"),
            None => Err("this filter has none"),
        };
        match page {
            Ok(page) => {
                decision.held_millis = page.hold_millis;
                Some(page.refusal("").reply(&exchange.request, host))
            }
            Err(why) => {
                decision.action = Action::Deny;
                decision.reason.push_str("; no page of the maze was shown: ");
                decision.reason.push_str(why);
                None
            }
        }
    }

    /// No browser shows the answer to a preflight to anyone, and without it no page of another origin could ask: what is challenged is the
    /// request behind it.
    fn spare_preflight(&self, mut decision: Decision, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        decision.enforced = false;
        decision.reason.push_str("; a preflight is not asked, the request behind it is");
        self.observed(decision, exchange, host)
    }

    fn challenge(&self, tier: &Tier, mut decision: Decision, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let Some(challenges) = &self.challenges else {
            decision.reason.push_str("; no challenge provider answers for this policy, so nothing was asked");
            return self.observed(decision, exchange, host);
        };
        if challenges.cleared(exchange, decision.score, host.now()) {
            challenges.note_passed(exchange, host);
            decision.reason.push_str("; the caller has clearance");
            return self.observed(decision, exchange, host);
        }
        decision.enforced = true;
        let status = u16::try_from(tier.status).unwrap_or(403);
        let reply = challenges.present(exchange, decision.score, status, host);
        self.blocked(decision, reply, exchange, host)
    }

    /// Records a decision that changes nothing for the caller.
    fn observed(&self, decision: Decision, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        emit(Outcome::Observed, &decision, exchange, host);
        Verdict::Enforce { decision, hold_millis: 0, reply: None }
    }

    /// Records a decision that answers the caller in the backend's place.
    fn blocked(&self, decision: Decision, reply: Reply, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        emit(Outcome::Blocked, &decision, exchange, host);
        let hold_millis = decision.held_millis;
        Verdict::Enforce { decision, hold_millis, reply: Some(reply) }
    }

    fn ban(&self, tier: &Tier, decision: &Decision, exchange: &Exchange, host: &dyn Host) {
        let scope = match &self.policy {
            policy if policy.ban_address => BanScope::Ip,
            policy if policy.ban_api_key_only => BanScope::ApiKey,
            _ => BanScope::Auto,
        };
        let millis = tier.ban_for_seconds.saturating_mul(1000);
        // A caller that is not banned, being on the allowlist, is refused all the same.
        bans::ban(exchange, &NewBan { scope, millis, reason: &decision.reason, score: decision.score }, host);
    }
}

fn refuse(status: u32, exchange: &Exchange) -> Reply {
    Reply::refusal(u16::try_from(status).unwrap_or(403), &exchange.request.id)
}

fn emit(outcome: Outcome, decision: &Decision, exchange: &mut Exchange, host: &dyn Host) {
    let category = if decision.action == Action::Challenge { Category::Challenge } else { Category::Threat };
    let event = SecurityEvent { category, outcome, module: PLUGIN.name, message: &decision.reason, decision };
    exchange.emit(&event, host);
}

#[cfg(test)]
mod tests;
