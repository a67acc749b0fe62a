//! The fingerprint of a client's TLS as evidence: what it says of the software that a client uses, against what its agent says.
//!
//! A fingerprint never comes from a header, and a client without one (plain text, HTTP/3, a listener that computes none) is judged by
//! everything else. What gateways learn never acts by itself: pairs act once an operator has accepted them.

mod family;
mod known;
mod limit;
mod messages;
mod sightings;

use exchange::tls::{self, Ja3, Ja4};
use exchange::{Build, Category, Exchange, Host, KeysTable, Refusal, Verdict};

use crate::add;
use crate::messages::{BotGuardStep, BotReaction};
use family::Families;
pub use family::{FAMILIES, Family};
pub(crate) use known::KnownFingerprints;
pub use known::{Pattern, families_of};
use limit::Limits;
pub use messages::{FingerprintList, FingerprintPair, FingerprintRule, FingerprintSeen, FingerprintStep};
use sightings::Sightings;

/// The table of pairs that operators have accepted: the families of a JA4, as [`families_of`] reads them.
pub const FINGERPRINTS: &str = "bot-guard.fingerprints";
/// The kind of the reports by which gateways tell what they have seen.
pub const SIGHTINGS: &str = "bot-guard.fingerprints";

/// The source of all signals about fingerprints.
const SOURCE: &str = "bots.fingerprint";
/// The status of a refusal of a fingerprint over its limit.
const TOO_MANY: u16 = 429;

/// The fingerprints of a client.
#[derive(Clone, Copy)]
pub(crate) struct Fingerprint {
    ja4: Option<Ja4>,
    ja3: Option<Ja3>,
}

/// What a step does with fingerprints.
pub(crate) struct Evidence {
    step: FingerprintStep,
    families: Families,
    limits: Limits,
    /// The pairs that operators have accepted.
    accepted: KeysTable,
    /// What this node has seen, where it is of interest.
    sightings: Option<Sightings>,
}

impl Evidence {
    /// What a step does with fingerprints; `None` for one that leaves them alone.
    ///
    /// # Errors
    ///
    /// Why the step cannot be built, for people.
    pub(crate) fn new(step: &BotGuardStep, build: &mut Build<'_>) -> Result<Option<Self>, String> {
        let Some(step) = step.fingerprints else { return Ok(None) };
        let watches = step.learn || step.rotation_weight > 0.0;
        let sightings = if watches { Some(Sightings::new(&step)?) } else { None };
        let accepted = build.keys(FINGERPRINTS)?;
        Ok(Some(Self { step, families: Families::new()?, limits: Limits::new()?, accepted, sightings }))
    }

    /// The software that user agents say they are.
    pub(crate) fn family(&self, agents: &[&[u8]]) -> Option<Family> {
        self.families.of(agents)
    }

    /// Adds the signals that the fingerprint of a request gives; the refusal if a rule of the policy refuses it. `family` is what its agent
    /// says it is.
    pub(crate) fn judge(
        &self,
        known: &KnownFingerprints,
        family: Option<Family>,
        policy: &Policy<'_>,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Option<Verdict> {
        let property = |path: &[String]| host.property(path);
        let fingerprint = Fingerprint { ja4: tls::ja4(&property), ja3: tls::ja3(&property) };
        if fingerprint.ja4.is_none() && fingerprint.ja3.is_none() {
            return None;
        }
        if let Some(rule) = known.rule(&fingerprint) {
            return self.obey(rule, &fingerprint, policy, exchange, host);
        }
        let families = known.families(&fingerprint) | self.accepted_families(&fingerprint);
        let fits = family.is_some_and(|family| families & family.kin() != 0);
        if let Some(family) = family.filter(|_| !fits) {
            self.mismatch(family, families, known, &fingerprint, exchange, host);
        }
        if let (Some(sightings), Some(ja4)) = (&self.sightings, fingerprint.ja4) {
            if let Some(family) = family {
                sightings.note(family, &ja4, &exchange.caller.ip, host);
            }
            // What is known to be a browser's is not blamed for those who pretend to be others with it.
            if !fits && sightings.rotates(&ja4, host) {
                let detail =
                    format!("the TLS fingerprint {ja4} came with agents of different software from many networks");
                add(exchange, SOURCE, "bot:fingerprint:rotates".into(), self.step.rotation_weight, detail, host);
            }
        }
        None
    }

    /// The agent says that it is of a family, and no pair of its fingerprint does.
    fn mismatch(
        &self,
        family: Family,
        families: u32,
        known: &KnownFingerprints,
        fingerprint: &Fingerprint,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) {
        let said = family.word();
        if let Some(other) = Family::first(families) {
            let is = other.word();
            let detail = format!("the agent says `{said}`, and the TLS fingerprint {fingerprint} is that of `{is}`");
            let tag = format!("bot:fingerprint:mismatch:{said}");
            add(exchange, SOURCE, tag.into(), self.step.mismatch_weight, detail, host);
        } else if self.step.unknown_weight > 0.0 && known.has(family) {
            let detail = format!("the agent says `{said}`, and the TLS fingerprint {fingerprint} is none of its own");
            let tag = format!("bot:fingerprint:unknown:{said}");
            add(exchange, SOURCE, tag.into(), self.step.unknown_weight, detail, host);
        }
    }

    /// Acts by the rule that a policy has for a fingerprint.
    fn obey(
        &self,
        rule: &FingerprintRule,
        fingerprint: &Fingerprint,
        policy: &Policy<'_>,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Option<Verdict> {
        if rule.reaction() == BotReaction::Allow {
            return None;
        }
        let limited = rule.requests_per_minute > 0;
        if limited && !self.limits.is_over(fingerprint, rule.requests_per_minute, host) {
            return None;
        }
        let what = match limited {
            true => {
                format!("over {} requests a minute with the TLS fingerprint {fingerprint}", rule.requests_per_minute)
            }
            false => format!("the TLS fingerprint {fingerprint} has a rule"),
        };
        let tag = if limited { "bot:fingerprint:limited" } else { "bot:fingerprint:listed" };
        add(exchange, SOURCE, tag.into(), rule.weight, what.clone(), host);
        let status = if limited { TOO_MANY } else { policy.status };
        let reason = format!("bot policy `{}`: {what}", policy.name);
        let refusal = || Refusal::new(status, Category::Threat, reason).scored();
        (rule.reaction() == BotReaction::Deny).then(|| Verdict::Refuse(refusal()))
    }

    fn accepted_families(&self, fingerprint: &Fingerprint) -> u32 {
        let Some(ja4) = fingerprint.ja4 else { return 0 };
        let found = self.accepted.read(|keys| keys.find(ja4.bytes()).and_then(families_of)).flatten();
        found.unwrap_or(0)
    }
}

/// What a refusal says of the policy.
pub(crate) struct Policy<'a> {
    /// Its name, for people.
    pub(crate) name: &'a str,
    /// The status of a refusal.
    pub(crate) status: u16,
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.ja4, &self.ja3) {
            (Some(ja4), _) => write!(f, "{ja4}"),
            (None, Some(ja3)) => f.write_str(std::str::from_utf8(ja3.bytes()).unwrap_or_default()),
            (None, None) => Ok(()),
        }
    }
}
