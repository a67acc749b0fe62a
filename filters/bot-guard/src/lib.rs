//! The bot guard: knows bots by their user agents and verifies them by the signatures of their requests, by the addresses that their owners
//! publish, and by reverse DNS.
//!
//! Nothing waits for DNS. The control plane resolves and keeps a table of verdicts; a step looks a crawler up in it, and reports one that
//! has none (module `asking`). Until the verdict is there the crawler is treated as one that cannot be verified. Published addresses are a
//! second table, and keys of signers a third (module `signing`), which the control plane fetches.

mod asking;
#[cfg(feature = "control")]
pub mod control;
mod fingerprint;
mod identity;
mod matcher;
mod messages;
mod pages;
mod robots;
mod serving;
mod signing;
mod unknown;
mod verdict;

use std::borrow::Cow;
use std::net::IpAddr;
use std::rc::Rc;

use exchange::{
    Build, Category, Exchange, Host, KeysTable, Plugin, PluginDefinition, RangesTable, Refusal, Request, Role, Signal,
    Skip, SkipRight, Skipped, Slot, Verdict,
};
use maze::Maze;
use prost::Message as _;

use fingerprint::Evidence;
pub use fingerprint::{
    FAMILIES, FINGERPRINTS, Family, FingerprintList, FingerprintPair, FingerprintRule, FingerprintSeen,
    FingerprintStep, Pattern, SIGHTINGS, families_of,
};
use identity::Identity;
use matcher::{Bots, Found};
pub use messages::{BotGuardStep, BotList, BotReaction, CrawlerSeen, KnownBot};
use robots::Readers;
pub use signing::{
    DIRECTORY_BYTES, DirectoryKind, KEYS, SignerKey, directory_label, identifier, is_signature, key_row,
};
use signing::{Demands, Signed, Signer};
use unknown::UnknownBots;
pub use verdict::{CrawlerVerdict, Finding, LISTS, METHOD_BYTES, RANGES, REPORTS, TABLE, key, read_key};

/// The plugin.
pub const PLUGIN: PluginDefinition =
    PluginDefinition::new("bot-guard", build).role(Role::Detector).may_skip(SkipRight::Access);

/// The bytes of all `User-Agent` headers together that are looked at. What is behind them is not.
pub const MAX_USER_AGENT: usize = 8192;

/// The source of what the policy says of a bot.
const BY_POLICY: &str = "bots.policy";
/// The source of what is found out about its identity.
const BY_IDENTITY: &str = "bots.identity";
/// The source of what the signature of a request says.
const BY_SIGNATURE: &str = "bots.signature";
/// The source of what it does with robots.txt.
const BY_ROBOTS: &str = "bots.robots";
/// The tag of a request that is signed by a directory of the policy, which the detail of the signal names.
const SIGNED: &str = "bot:signed";
/// What an agent is called that no signature names, and that is no browser.
const UNKNOWN: &str = "unknown";

struct BotGuard {
    bots: Rc<Bots>,
    /// The words of unknown bots, where they make a difference.
    unknown: Option<UnknownBots>,
    /// Who has read the robots.txt that is served, if it matters.
    readers: Option<Readers>,
    /// What the TLS of a client says, if it matters.
    evidence: Option<Evidence>,
    impersonator: BotReaction,
    /// The pages for bots that take what robots.txt forbids, if a rule has any.
    maze: Option<Maze>,
    status: u16,
    step: BotGuardStep,
    table: Option<KeysTable>,
    /// The addresses that owners of bots publish, if a bot is verified by them.
    ranges: Option<RangesTable>,
    /// The keys of signers, if a bot is verified by them.
    keys: Option<KeysTable>,
}

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = BotGuardStep::decode(config).map_err(|error| error.to_string())?;
    let impersonator = match step.impersonator() {
        BotReaction::Unspecified => return Err("the bot guard has no action that this filter knows".to_owned()),
        known => known,
    };
    let status = u16::try_from(step.status).ok().filter(|status| (200..=599).contains(status));
    let status = status.ok_or("the bot guard refuses with something that is no status")?;
    let bots = build.shared(&step.bots, Bots::read)?;
    let watches = (step.robots_weight > 0.0 || step.marks_spared) && bots.robots_txt.is_some();
    let maze = step.maze.clone().map(Maze::new).transpose()?;
    let readers = if watches { Some(Readers::new()?) } else { None };
    let unknown = if step.unknown_weight > 0.0 || watches { Some(UnknownBots::new()?) } else { None };
    let table = if step.verify { Some(build.keys(TABLE)?) } else { None };
    let ranges = if step.verify && bots.has_ranges() { Some(build.ranges(RANGES)?) } else { None };
    let signed = step.verify && step.signatures && bots.signing.has_directories();
    let keys = if signed { Some(build.keys(KEYS)?) } else { None };
    let evidence = Evidence::new(&step, build)?;
    Ok(Box::new(BotGuard { bots, unknown, readers, evidence, impersonator, maze, status, step, table, ranges, keys }))
}

impl Plugin for BotGuard {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (texts, whole) = user_agents(&exchange.request);
        let found = self.bots.find(texts.iter().copied());
        // One that a signature names says that it is a bot, not a browser.
        let family = self.evidence.as_ref().filter(|_| found.is_none()).and_then(|evidence| evidence.family(&texts));
        let words = self.unknown.as_ref().filter(|_| found.is_none());
        let unknown = words.is_some_and(|words| !whole || is_unknown(&texts, words));
        let class = found.map(|found| found.bot.name.as_str()).or(unknown.then_some(UNKNOWN));
        if let Some(served) = self.bots.serve(exchange) {
            if let (Some(readers), Some(class), true) = (&self.readers, class, served.is_robots) {
                readers.note(class, &exchange.caller.ip, host);
            }
            return served.verdict;
        }
        let signed = self.signed(found, exchange, host);
        // A signature names the bot where the user agent does not.
        let (found, unknown, class) = match signed {
            Signed::By(directory) if found.is_none() => {
                let signer = self.bots.of_directory(directory);
                (signer, false, signer.map(|signer| signer.bot.name.as_str()))
            }
            _ => (found, unknown, class),
        };
        let identity = found.map(|found| self.identity(found.bot, signed, &exchange.caller.ip, host));
        if let Some(class) = class {
            let obeys = self.obedience(class, found, identity, exchange, host);
            self.spare(class, found.zip(identity), obeys, exchange, host);
        }
        if let Some(refused) = self.by_fingerprint(family, identity, exchange, host) {
            return refused;
        }
        match (found, identity) {
            (Some(found), Some(identity)) => self.judge(found, identity, exchange, host),
            _ if unknown && self.step.unknown_weight > 0.0 => {
                let detail = "the user agent is that of a bot without a signature".to_owned();
                add(exchange, BY_POLICY, "bot:unknown".into(), self.step.unknown_weight, detail, host);
                Verdict::Pass
            }
            _ => Verdict::Pass,
        }
    }
}

impl BotGuard {
    /// What the signature of the request says, with a signal of it.
    fn signed(&self, found: Option<Found<'_>>, exchange: &mut Exchange, host: &dyn Host) -> Signed {
        let Some(keys) = &self.keys else { return Signed::No };
        let signing = &self.bots.signing;
        let demands = Demands {
            hosts: &self.step.signature_hosts,
            max_age: self.step.signature_max_age,
            nonce: self.step.signature_nonce,
            per_second: self.step.signatures_per_second,
        };
        // A step before this one has verified it, in this filter or in another one: its nonce is spent. The policy of that step may have asked
        // for less than this one.
        let is_verified = |signal: &&Signal| signal.source == BY_SIGNATURE && signal.tag == SIGNED;
        let mut verified = exchange.score.signals().iter().filter(is_verified);
        let before = verified.find_map(|signal| signing.place_of(signal.detail.as_bytes()));
        let signed = match before {
            Some(place) => signing.recheck(place, &exchange.request, demands, host.now()),
            None => {
                let (address, bot) = (exchange.caller.ip.parse::<IpAddr>().ok(), found.map(|found| found.bot));
                signing.check(Signer { request: &exchange.request, address, bot }, demands, keys, host)
            }
        };
        let (tag, detail) = match signed {
            Signed::No => return signed,
            // The step before has left the signal of it.
            Signed::By(_) if before.is_some() => return signed,
            Signed::By(place) => (SIGNED, signing.name_of(place).to_owned()),
            Signed::Bad(place) => ("bot:bad-signature", format!("not signed by `{}`", signing.name_of(place))),
            Signed::Unverified(place, why) => {
                let detail = format!("a signature by `{}` was not verified: {}", signing.name_of(place), why.text());
                ("bot:unverified-signature", detail)
            }
        };
        add(exchange, BY_SIGNATURE, tag.into(), 0.0, detail, host);
        signed
    }

    /// Adds what the TLS fingerprint says; the refusal of a rule for it. Verified bots that pass are known by more than their software.
    fn by_fingerprint(
        &self,
        family: Option<Family>,
        identity: Option<Identity>,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Option<Verdict> {
        let evidence = self.evidence.as_ref()?;
        if identity.is_some_and(Identity::is_verified) && self.step.bypass {
            return None;
        }
        let policy = fingerprint::Policy { name: &self.step.name, status: self.status };
        evidence.judge(&self.bots.fingerprints, family, &policy, exchange, host)
    }

    /// Adds the signal of a bot that has read the robots.txt and takes what it forbids. Of verified bots that pass, it weighs nothing.
    /// True for one that has read it and takes what it allows, where that makes a difference.
    fn obedience(
        &self,
        class: &str,
        found: Option<Found<'_>>,
        identity: Option<Identity>,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> bool {
        let Some(readers) = &self.readers else { return false };
        let forbidden = self.bots.robots_forbid(found, &exchange.request.path);
        let matters = if forbidden { self.step.robots_weight > 0.0 } else { self.step.marks_spared };
        // The memory of the node is read only where it matters.
        if !matters || !readers.has(class, &exchange.caller.ip, host) {
            return false;
        }
        if !forbidden {
            return true;
        }
        let passes = identity.is_some_and(Identity::is_verified) && self.step.bypass;
        let weight = if passes { 0.0 } else { self.step.robots_weight };
        let detail = format!("`{class}` has read robots.txt and asks for what it forbids");
        add(exchange, BY_ROBOTS, format!("bot:disobeys:{class}").into(), weight, detail, host);
        false
    }

    fn judge(&self, found: Found<'_>, identity: Identity, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let bot = found.bot;
        let KnownBot { name, category, weight, .. } = bot;
        let passes = identity.is_verified() && self.step.bypass;
        let denied = bot.reaction() == BotReaction::Deny;
        match identity {
            Identity::Impersonator | Identity::BadSignature => {
                let weight = if self.impersonator == BotReaction::Allow { 0.0 } else { self.step.impersonator_weight };
                let (tag, detail) = match identity {
                    Identity::BadSignature => ("bad-signature", is_not_signed(name)),
                    _ => ("impersonator", is_not_from(name)),
                };
                add(exchange, BY_IDENTITY, format!("bot:{tag}:{name}").into(), weight, detail, host);
            }
            Identity::Verified(how) => {
                let detail = format!("it is `{name}`, verified {how}");
                add(exchange, BY_IDENTITY, format!("bot:verified:{name}").into(), 0.0, detail, host);
            }
            Identity::Unverifiable | Identity::Pending => {}
        }
        // An impersonator is not the bot of the rule: its weight is that of an impersonator.
        let monitored = matches!(bot.reaction(), BotReaction::Monitor | BotReaction::Maze);
        let weighs = denied || monitored && !identity.is_false() && !passes;
        let weight = if weighs { *weight } else { 0.0 };
        let tag = format!("bot:{category}:{name}");
        add(exchange, BY_POLICY, tag.into(), weight, format!("the request is that of `{name}`"), host);
        add(exchange, BY_POLICY, format!("bot:{category}").into(), 0.0, format!("a bot of `{category}`"), host);

        if let Some(verdict) = self.led_astray(found, identity, exchange, host) {
            return verdict;
        }
        match identity {
            _ if denied => self.refuse(&format!("`{name}` is denied")),
            Identity::Impersonator if self.impersonator == BotReaction::Deny => self.refuse(&is_not_from(name)),
            Identity::BadSignature if self.impersonator == BotReaction::Deny => self.refuse(&is_not_signed(name)),
            Identity::Verified(how) if passes => {
                Verdict::Skip(Skip { steps: Skipped::Access, reason: format!("`{name}`, verified {how}") })
            }
            _ => Verdict::Pass,
        }
    }

    fn refuse(&self, reason: &str) -> Verdict {
        Verdict::Refuse(Refusal::new(self.status, Category::Threat, self.of_policy(reason)).scored())
    }

    fn of_policy(&self, reason: &str) -> String {
        format!("bot policy `{}`: {reason}", self.step.name)
    }
}

fn is_not_from(name: &str) -> String {
    format!("the address is not one of `{name}`, which it says it is")
}

fn is_not_signed(name: &str) -> String {
    format!("the signature is not one of `{name}`, which it says it is")
}

/// The texts of all `User-Agent` headers, as much of them as is looked at, and whether that is all.
fn user_agents(request: &Request) -> (Vec<&[u8]>, bool) {
    let (mut texts, mut room) = (Vec::new(), MAX_USER_AGENT);
    for text in request.headers.all("user-agent") {
        let taken = text.get(..room).unwrap_or(text);
        room = room.saturating_sub(taken.len());
        texts.push(taken);
        if taken.len() < text.len() {
            return (texts, false);
        }
    }
    (texts, true)
}

/// Whether no user agent is there, or one of an unknown bot.
fn is_unknown(texts: &[&[u8]], words: &UnknownBots) -> bool {
    texts.is_empty() || texts.iter().any(|text| words.has(text))
}

fn add(
    exchange: &mut Exchange,
    source: &'static str,
    tag: Cow<'static, str>,
    weight: f64,
    detail: String,
    host: &dyn Host,
) {
    let kind = "bot".into();
    // A guard of the global chain may have found the same.
    exchange.score.add_once(Signal {
        source: source.into(),
        kind,
        weight,
        confidence: 1.0,
        tag,
        detail,
        at: host.now(),
    });
}

#[cfg(test)]
mod tests;
