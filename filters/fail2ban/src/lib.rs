//! Fail2ban: callers whose requests fail too often within some time are banned.
//!
//! A request fails if it is answered with one of the statuses of the configuration, by the backend or by a plugin behind this one.
//! Failures are counted by a key of the configuration over all workers and all nodes. A success in between changes nothing: who tries
//! many passwords also logs in to an account of their own.

#[cfg(feature = "control")]
pub mod control;
mod key;
mod messages;
mod rule;

use std::cell::Cell;

use exchange::bans::{self, BanScope, Banned, NewBan};
use exchange::{
    Action, Build, Category, Decision, Exchange, Exemptions, Host, IdentityKind, IdentityRef, Outcome, PathReadings,
    Plugin, PluginDefinition, Request, Role, SecurityEvent, Signal, Slot, Table, Update, Verdict,
};
use prost::Message as _;

use key::CounterKey;
pub use messages::{Fail2BanRule, Fail2BanScope, Fail2BanStep, KeyPart, KeyPlace, StatusRange};
use rule::{Rule, Statuses, banned_by};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("fail2ban", build).role(Role::Detector);

/// Keys whose failures led to no ban that is in force: what would be banned next is not reported again until then.
const REPORTED: Table = Table { name: "fail2ban.reported", shards: 64, entries_per_shard: 128 };
/// How many times `max_retry` failures of an address are too many that are spread over several keys.
const SPREAD: u32 = 10;
/// How long a key is not reported again whose caller cannot be banned, in milliseconds: each time is a message to the control plane.
const REPORT_AFTER: u64 = 60_000;

struct Fail2Ban {
    dry_run: bool,
    scope: BanScope,
    key: CounterKey,
    ignored: Exemptions,
    weight: f64,
    general: Rule,
    rules: Vec<Rule>,
    /// The statuses of all rules.
    statuses: Statuses,
    /// This worker has introduced what it counts.
    introduced: Cell<bool>,
}

/// What is counted of an answer, and what it may lead to.
struct Counted {
    key: Vec<u8>,
    scope: BanScope,
    /// Whom a ban would be on.
    identity: Option<IdentityRef>,
    /// What such bans are counted by.
    banned_by: Vec<u8>,
    /// How many failures lead to a ban.
    limit: u32,
    /// The failures are those of an address, whatever key they have.
    is_spread: bool,
}

/// The request has come as far as this plugin, and its answer was not seen yet.
struct Unanswered;

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = Fail2BanStep::decode(config).map_err(|error| error.to_string())?;
    let scope = match step.ban_scope() {
        Fail2BanScope::Auto => BanScope::Auto,
        Fail2BanScope::Ip => BanScope::Ip,
        Fail2BanScope::ApiKey => BanScope::ApiKey,
    };
    let general = Rule::new(step.general.ok_or("fail2ban has no limits")?)?;
    let rules = step.rules.into_iter().map(Rule::new).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(Fail2Ban {
        dry_run: step.dry_run,
        scope,
        key: CounterKey::new(step.key)?,
        ignored: Exemptions::new(&step.ignored)?,
        weight: step.weight,
        statuses: rules.iter().fold(general.statuses, |all, rule| all.union(rule.statuses)),
        general,
        rules,
        introduced: Cell::new(false),
    }))
}

impl Plugin for Fail2Ban {
    fn access(&self, _exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) -> Verdict {
        if !self.introduced.replace(true) {
            self.rules.iter().chain([&self.general]).for_each(|rule| rule.introduce(host));
        }
        slot.put(Unanswered);
        Verdict::Pass
    }

    fn response(&self, exchange: &mut Exchange, _has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        slot.take::<Unanswered>();
        if let Some(status) = exchange.response.as_ref().map(|response| response.status) {
            self.answered(status, exchange, host);
        }
        Verdict::Pass
    }

    /// An answer in the backend's place has no response phase. What was refused in front of this plugin is not counted: there the
    /// caller is known already.
    fn finish(&self, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) {
        if slot.take::<Unanswered>().is_none() {
            return;
        }
        // A challenge is a question, and a quota is not used up by failing: their answers are milder than a ban on purpose.
        let given = exchange.given.filter(|given| !matches!(given.action, Action::Challenge | Action::Throttle));
        if let Some(given) = given {
            self.answered(given.status, exchange, host);
        }
    }
}

impl Fail2Ban {
    /// Counts an answer if its status is a failure.
    fn answered(&self, status: u16, exchange: &mut Exchange, host: &dyn Host) {
        if !self.statuses.contains(status) || self.ignored.cover(&exchange.caller.ip) {
            return;
        }
        let rule = self.rule(&exchange.request, status);
        // A banned caller is refused for its ban, which would otherwise be renewed for as long as it asks.
        if !rule.statuses.contains(status) || bans::standing(exchange, host).is_some() {
            return;
        }
        let counted = |key: Vec<u8>, scope, limit, is_spread| {
            let identity = bans::identity(exchange, scope);
            Counted { banned_by: banned_by(&key, identity.as_ref()), key, scope, identity, limit, is_spread }
        };
        let is_reported = |counted: &Counted| REPORTED.get(host.shared(), &counted.banned_by, host.now()).is_some();
        let by_key = counted(self.key.of(exchange, &rule.label), self.scope, rule.max_retry, false);
        // Where API keys alone are banned, the address is not what this is about.
        let of_address = self.key.of_address(exchange, &rule.label).filter(|_| self.scope != BanScope::ApiKey);
        let spread = of_address.map(|key| counted(key, BanScope::Ip, rule.max_retry.saturating_mul(SPREAD), true));
        let failures = rule.count(&by_key.key, &by_key.banned_by, host);
        let detail = format!("an answer with status {status}, failure {failures} of {}", rule.max_retry);
        exchange.score.add(signal(self.weight, format!("fail2ban:{status}"), detail, host));
        // With the ban that was reported it would not have come: it counts for no other one.
        if is_reported(&by_key) {
            return;
        }
        let spread = spread.map(|spread| (rule.count(&spread.key, &spread.banned_by, host), spread));
        // One answer leads to one ban.
        if failures >= by_key.limit {
            let spread = spread.as_ref().map(|(_, spread)| spread);
            self.act((&by_key, spread), (failures, status), rule, exchange, host);
        } else if let Some((failures, spread)) = spread
            && failures >= spread.limit
            && !is_reported(&spread)
        {
            self.act((&spread, None), (failures, status), rule, exchange, host);
        }
    }

    /// The first rule that is about a request. A path that backends read in several ways may be another's as well, or none's: then it is
    /// the strictest of those that count an answer with this status.
    fn rule(&self, request: &Request, status: u16) -> &Rule {
        if self.rules.is_empty() {
            return &self.general;
        }
        let path = PathReadings::of(request.path_only());
        let mut strictest: Option<&Rule> = None;
        let covering = self.rules.iter().filter(|rule| rule.covers(request, &path)).chain([&self.general]);
        for (place, rule) in covering.enumerate() {
            let is_sure = rule.surely_covers(&path);
            if is_sure && place == 0 {
                return rule;
            }
            if rule.statuses.contains(status) && strictest.is_none_or(|before| rule.max_retry < before.max_retry) {
                strictest = Some(rule);
            }
            if is_sure {
                break;
            }
        }
        strictest.unwrap_or(&self.general)
    }

    /// Bans the caller, or reports that it would have been banned. A ban on an address is one for its failures that are `spread` as well.
    fn act(
        &self,
        (counted, spread): (&Counted, Option<&Counted>),
        (failures, status): (u32, u16),
        rule: &Rule,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) {
        let about = if rule.pattern.is_empty() { String::new() } else { format!(" to `{}`", rule.pattern) };
        let of = if counted.is_spread { " of an address" } else { "" };
        let seconds = rule.detect_millis / 1000;
        let found =
            format!("{failures} failed requests{of}{about} within {seconds} s, the last one with status {status}");
        exchange.score.add(signal(0.0, "fail2ban".to_owned(), found.clone(), host));
        let score = exchange.score.total();
        let scope = counted.scope;
        let ban = NewBan { scope, millis: rule.ban_millis, reason: &format!("fail2ban: {found}"), score };
        let banned = match self.dry_run {
            true => bans::preview(exchange, scope, host),
            false => bans::ban(exchange, &ban, host),
        };
        let in_force = !self.dry_run && matches!(banned, Banned::InForce(_));
        let quiet = if self.dry_run { rule.ban_millis } else { REPORT_AFTER.min(rule.ban_millis) };
        let until = host.now().saturating_add(quiet);
        let is_address = counted.identity.as_ref().is_some_and(|identity| identity.kind == IdentityKind::Ip);
        for used in [Some(counted), spread.filter(|_| is_address)].into_iter().flatten() {
            // Where no one can be banned nothing is used up.
            if counted.identity.is_some() {
                rule.note_ban(&used.banned_by, host);
            }
            if !in_force {
                // Without the note it is reported again, which is all.
                let _ = REPORTED.update(host.shared(), &used.banned_by, host.now(), |_| Update::Put(Vec::new(), until));
            }
        }
        let consequence = self.consequence(&banned, rule.ban_millis / 1000);
        let decision = Decision::new(Action::Ban, score, format!("{found}; {consequence}"));
        let decision = match self.dry_run {
            true => decision.dry_run(),
            false => Decision { enforced: in_force, ..decision },
        };
        let event = SecurityEvent {
            category: Category::Fail2ban,
            outcome: if in_force { Outcome::Blocked } else { Outcome::Observed },
            module: PLUGIN.name,
            message: &decision.reason,
            decision: &decision,
        };
        exchange.emit(&event, host);
    }

    fn consequence(&self, banned: &Banned, seconds: u64) -> String {
        match (banned, self.dry_run) {
            (Banned::InForce(key), true) => format!("{key} would have been banned for {seconds} s"),
            (Banned::InForce(key), false) => format!("{key} is banned for {seconds} s"),
            (Banned::Allowlisted(key), _) => format!("{key} is on the allowlist and not banned"),
            (Banned::NotStored(key), _) => format!("the ban on {key} could not be noted on this node"),
            (Banned::NoIdentity, _) => "the caller has no identity that could be banned".to_owned(),
        }
    }
}

fn signal(weight: f64, tag: String, detail: String, host: &dyn Host) -> Signal {
    Signal {
        source: "fail2ban".into(),
        kind: "fail2ban".into(),
        weight,
        confidence: 1.0,
        tag: tag.into(),
        detail,
        at: host.now(),
    }
}

#[cfg(test)]
mod tests;
