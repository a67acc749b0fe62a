//! The honeypot: decoy paths and canaries, which no legitimate client uses.
//!
//! It looks at the bytes of a request's head before anything is parsed. A path is a decoy in every spelling ([`exchange::spelling`]); a
//! canary is found in the values of headers, the path and the query. Values of canaries are secrets: events name them by their
//! descriptions.

#[cfg(feature = "control")]
pub mod control;
mod messages;
mod traps;

use std::rc::Rc;

use exchange::bans::{self, BanScope, Banned, NewBan};
use exchange::{
    About, Action, Build, Category, Decision, Exchange, Host, Outcome, Plugin, PluginDefinition, Refusal, Request,
    Role, SecurityEvent, Signal, Slot, Verdict, spelling,
};
use prost::Message as _;

pub use messages::{CanaryHead, CanaryTail, DecoyPath, HEAD_BYTES, HoneypotReaction, HoneypotStep, HoneypotTraps};
use traps::{Place, Traps};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("honeypot", build).role(Role::Detector);

/// A ban that ends at most so much sooner than a new one would is not set anew, in milliseconds: each touch of a decoy would
/// otherwise be a message to the control plane.
const RENEW_AFTER: u64 = 60_000;

struct Honeypot {
    traps: Rc<Traps>,
    reaction: HoneypotReaction,
    status: u16,
    step: HoneypotStep,
}

/// A canary that a request has, and where.
struct Caught<'a> {
    label: &'a str,
    place: &'static str,
    /// Events name the part of the request that it is in.
    shown: bool,
}

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = HoneypotStep::decode(config).map_err(|error| error.to_string())?;
    let reaction = match step.reaction() {
        HoneypotReaction::Unspecified => return Err("the honeypot has no action that this filter knows".to_owned()),
        known => known,
    };
    let status = u16::try_from(step.status).ok().filter(|status| (200..=599).contains(status));
    let status = status.ok_or("the honeypot refuses with something that is no status")?;
    let traps = build.shared(&step.traps, Traps::read)?;
    Ok(Box::new(Honeypot { traps, reaction, status, step }))
}

impl Plugin for Honeypot {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        let path = exchange.request.path_only();
        let spellings: Vec<Vec<u8>> = spelling::decoded(path).collect();
        let decoy = self.traps.has_decoys().then(|| self.traps.decoy(path, &spellings)).flatten();
        let canary = self.traps.has_canaries().then(|| self.canary(&exchange.request, &spellings)).flatten();
        let mut seen = Vec::new();
        if let Some(decoy) = decoy {
            let detail = format!("the decoy path `{}` was asked for", decoy.shown);
            exchange.score.add(self.signal("honeypot.path", "honeypot:path", &detail, host));
            seen.push(detail);
        }
        if let Some(canary) = canary {
            let detail = format!("the canary {} was in {}", canary.label, canary.place);
            exchange.score.add(self.signal("honeypot.canary", "honeypot:canary", &detail, host));
            exchange.target_is_secret |= canary.shown;
            seen.push(detail);
        }
        if seen.is_empty() {
            return Verdict::Pass;
        }
        self.react(format!("honeypot `{}`: {}", self.step.name, seen.join("; ")), exchange, host)
    }
}

impl Honeypot {
    fn react(&self, mut reason: String, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let about = About::policy("honeypot-policies", &self.step.id);
        match self.reaction {
            HoneypotReaction::Unspecified | HoneypotReaction::Monitor => {
                let decision = Decision::new(Action::Log, exchange.score.total(), reason).about(about);
                let event = SecurityEvent {
                    category: Category::Honeypot,
                    outcome: Outcome::Observed,
                    module: PLUGIN.name,
                    message: &decision.reason,
                    decision: &decision,
                };
                exchange.emit(&event, host);
                return Verdict::Pass;
            }
            HoneypotReaction::Deny => {}
            HoneypotReaction::Ban => {
                let outcome = self.ban(&reason, exchange, host);
                reason.push_str(&outcome);
            }
        }
        Verdict::Refuse(Refusal::new(self.status, Category::Honeypot, reason).scored().about(about))
    }

    /// Bans the caller, unless it is banned for about as long already; what came of it, for people.
    fn ban(&self, reason: &str, exchange: &Exchange, host: &dyn Host) -> String {
        let millis = self.step.ban_for_seconds.saturating_mul(1000);
        let until = host.now().saturating_add(millis);
        let renewed = until.saturating_sub(RENEW_AFTER.min(millis / 10));
        if let Some(standing) = bans::standing(exchange, host).filter(|standing| standing.until >= renewed) {
            return format!("; {} is banned already", standing.key);
        }
        let ban = NewBan { scope: BanScope::Auto, millis, reason, score: exchange.score.total() };
        match bans::ban(exchange, &ban, host) {
            Banned::InForce(key) => format!("; {key} is banned for {} s", self.step.ban_for_seconds),
            Banned::Allowlisted(key) => format!("; {key} is on the allowlist and not banned"),
            Banned::NotStored(key) => format!("; the ban on {key} could not be noted on this node"),
            Banned::NoIdentity => "; the caller has no identity that could be banned".to_owned(),
        }
    }

    /// The first canary in the path, the query or a header. `spellings` are those of the path.
    fn canary(&self, request: &Request, spellings: &[Vec<u8>]) -> Option<Caught<'_>> {
        let find = |place, text: &[u8]| self.traps.canary(place, text).map(|found| found.label.as_str());
        let mut paths = std::iter::once(request.path_only()).chain(spellings.iter().map(Vec::as_slice));
        if let Some(label) = paths.find_map(|path| find(Place::Path, path)) {
            return Some(Caught { label, place: "the path", shown: true });
        }
        let query = request.query();
        let in_query = |query: &[u8]| {
            find(Place::Query, query).or_else(|| spelling::decoded(query).find_map(|query| find(Place::Query, &query)))
        };
        // Forms write a space as `+`, and a value may have a `+` as well.
        let with_spaces = || {
            let written = query.contains(&b'+');
            written.then(|| query.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect::<Vec<u8>>())
        };
        if let Some(label) = in_query(query).or_else(|| in_query(&with_spaces()?)) {
            return Some(Caught { label, place: "the query", shown: false });
        }
        if let Some(label) = find(Place::Header, &request.authority) {
            return Some(Caught { label, place: "the host", shown: true });
        }
        let label = request.headers.regular().find_map(|(_, value)| find(Place::Header, value))?;
        Some(Caught { label, place: "a header", shown: false })
    }

    fn signal(&self, source: &'static str, tag: &'static str, detail: &str, host: &dyn Host) -> Signal {
        Signal {
            source: source.into(),
            kind: "honeypot".into(),
            weight: self.step.weight,
            confidence: 1.0,
            tag: tag.into(),
            detail: detail.to_owned(),
            at: host.now(),
        }
    }
}

#[cfg(test)]
mod tests;
