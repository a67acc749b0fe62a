//! `bot-policies`: which bots are known, how they prove who they are, and what each may do.

use std::collections::{HashMap, HashSet};

use kit::checks::{count, host, status, text, url, weight, within, word};
use kit::{Entity, FieldProblem, Head, References, did_you_mean, number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BotFingerprints;
use super::known;
use super::signature::{BotCategory, BotSignature};

/// A policy on bots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BotPolicy {
    /// False: it is not used. Default true.
    pub enabled: bool,
    /// The known bots, at most 1000; their `ua_contains` have at most 65536 bytes together. Default: 27 bots.
    pub signatures: Vec<BotSignature>,
    /// The actions by bot, at most 1000. A name takes precedence over a category, a category over `*`. Default: search and
    /// monitoring are allowed, ai weighs 0, seo 10, and nothing is denied.
    pub rules: Vec<BotRule>,
    /// Whether bots are verified by forward-confirmed reverse DNS, if their signature allows it. Default true.
    pub verify_known_bots: bool,
    /// Whether bots are verified by the addresses that their owners publish as well, if `verify_known_bots` is true: the control plane
    /// fetches the lists that their signatures name in `ip_ranges`, at most 64 in all. Default false.
    pub verify_by_ip_ranges: bool,
    /// Whether bots are verified by the signatures of their requests as well (Web Bot Auth), if `verify_known_bots` is true: the control
    /// plane fetches the key directories that their signatures name in `key_directory`, at most 64 in all. Default false.
    pub verify_by_signatures: bool,
    /// The longest life of a signature that is accepted, from `created` to `expires`, in seconds, 10 to 604800. Default 86400.
    #[schemars(range(min = 10, max = 604_800))]
    pub signature_max_age_seconds: u32,
    /// Whether a signature must have a nonce; one that has a nonce is accepted once by a gateway in any case. Default false.
    pub signature_nonce_required: bool,
    /// The hosts that signatures must be for, without a port, `*.example.com` for all below, at most 64. Default: none, which means any. Name
    /// them if gateways answer for any host: a bot's signature for another site is one for them otherwise.
    pub signature_hosts: Vec<String>,
    /// The most signatures that a worker of a gateway verifies in a second, 1 to 10000; half of them are for callers that have sent a right
    /// one within the last hour. Default 100.
    #[schemars(range(min = 1, max = 10_000))]
    pub signatures_per_second: u32,
    /// Whether verified bots pass: unless a rule denies them, checks of who is calling behind the bot guard are skipped. Default true.
    pub verified_bypass: bool,
    /// What a failed verification adds to the score, 0 to 100. Default 60.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub impersonator_weight: f64,
    /// The action after a failed verification. Default deny.
    pub impersonator_action: BotAction,
    /// What a program that is no browser and matches no signature adds to the score, 0 to 100. Default 0.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub unknown_bot_weight: f64,
    /// The status of a refusal, 200 to 599. Default 403.
    pub deny_status: u16,
    /// Lines appended to the generated robots.txt, at most 65536 bytes.
    pub robots_extra: String,
    /// The text of llms.txt, at most 1048576 bytes.
    pub llms_txt: String,
    /// The URLs of RSL licences, each a line `License: URL` of the generated robots.txt, at most 16.
    pub robots_licenses: Vec<String>,
    /// Whether gateways answer requests for /robots.txt with the generated one. Default false.
    pub serve_robots_txt: bool,
    /// Whether gateways answer requests for /llms.txt with `llms_txt`, unless it is empty. Default false.
    pub serve_llms_txt: bool,
    /// What a bot adds to the score that has read the served robots.txt within a day and asks for what it forbids, 0 to 100. Default 20.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub robots_weight: f64,
    /// What is done with TLS fingerprints. Default: nothing.
    pub fingerprints: BotFingerprints,
}

/// The action for a bot, or a category of bots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BotRule {
    /// `category:<category>`, `name:<name>` or `*`.
    pub target: String,
    /// The action. Default monitor.
    #[serde(default)]
    pub action: BotAction,
    /// What a match adds to the score, 0 to 100. Default 0.
    #[serde(default, with = "number")]
    #[schemars(with = "f64")]
    pub weight: f64,
}

/// The action for a bot. There is no challenge: no bot would pass it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BotAction {
    /// It passes.
    Allow,
    /// It passes and adds its weight to the score.
    #[default]
    Monitor,
    /// It is refused, and adds its weight to the score.
    Deny,
    /// It adds its weight to the score and may take what the served robots.txt allows it, by default nothing. What that forbids is refused: a
    /// bot that is not verified gets a generated page, within the budgets of `security.maze`, all others `deny_status`. It needs
    /// `serve_robots_txt`, and is none for `impersonator_action`.
    Maze,
}

/// The bytes of all `ua_contains` together, at most: each worker searches for all of them at once.
const MAX_TOKENS: usize = 65_536;

// === impl BotPolicy ===

impl BotPolicy {
    /// The signatures of a new policy.
    #[must_use]
    pub fn known_signatures() -> Vec<BotSignature> {
        known::known()
    }
}

impl Default for BotPolicy {
    fn default() -> BotPolicy {
        let rule = |category: &str, action, weight| BotRule { target: format!("category:{category}"), action, weight };
        BotPolicy {
            enabled: true,
            signatures: known::known(),
            rules: vec![
                rule("search", BotAction::Allow, 0.0),
                rule("monitoring", BotAction::Allow, 0.0),
                rule("ai", BotAction::Monitor, 0.0),
                rule("seo", BotAction::Monitor, 10.0),
            ],
            verify_known_bots: true,
            verify_by_ip_ranges: false,
            verify_by_signatures: false,
            signature_max_age_seconds: 86_400,
            signature_nonce_required: false,
            signature_hosts: Vec::new(),
            signatures_per_second: 100,
            verified_bypass: true,
            impersonator_weight: 60.0,
            impersonator_action: BotAction::Deny,
            unknown_bot_weight: 0.0,
            deny_status: 403,
            robots_extra: String::new(),
            llms_txt: String::new(),
            robots_licenses: Vec::new(),
            serve_robots_txt: false,
            serve_llms_txt: false,
            robots_weight: 20.0,
            fingerprints: BotFingerprints::default(),
        }
    }
}

impl Entity for BotPolicy {
    const COLLECTION: &'static str = "bot-policies";
    const KIND: &'static str = "bot-policy";

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(count("/signatures", self.signatures.len(), 1000));
        let mut names = HashSet::new();
        for (index, signature) in self.signatures.iter().enumerate() {
            let place = format!("/signatures/{index}");
            problems.extend(signature.check().into_iter().map(|problem| problem.under(&place)));
            if !names.insert(signature.name.as_str()) {
                let message = format!("the bot `{}` is there twice", signature.name.escape_debug());
                problems.push(FieldProblem::new(format!("{place}/name"), message).expected("a unique name"));
            }
        }
        let tokens: usize = self.signatures.iter().flat_map(|signature| &signature.ua_contains).map(String::len).sum();
        if tokens > MAX_TOKENS {
            let problem = FieldProblem::new("/signatures", format!("all `ua_contains` have {tokens} bytes"));
            problems.push(problem.expected(format!("at most {MAX_TOKENS} bytes together")));
        }
        problems.extend(count("/rules", self.rules.len(), 1000));
        for (index, rule) in self.rules.iter().enumerate() {
            let place = format!("/rules/{index}");
            problems.extend(self.target_problem(&rule.target, &format!("{place}/target")));
            problems.extend(weight(&format!("{place}/weight"), rule.weight));
            if rule.action == BotAction::Maze && !self.serve_robots_txt {
                let message = "the maze is for bots that take what robots.txt forbids, and this policy serves none";
                let problem = FieldProblem::new(format!("{place}/action"), message);
                problems.push(problem.expected("`serve_robots_txt` true, or another action"));
            }
        }
        if self.impersonator_action == BotAction::Maze {
            let problem =
                FieldProblem::new("/impersonator_action", "robots.txt may allow the bot that they say they are");
            problems.push(problem.expected("allow, monitor, deny"));
        }
        problems.extend(within("/signature_max_age_seconds", self.signature_max_age_seconds, 10..=604_800));
        problems.extend(count("/signature_hosts", self.signature_hosts.len(), 64));
        for (index, name) in self.signature_hosts.iter().enumerate() {
            problems.extend(host(&format!("/signature_hosts/{index}"), name.strip_prefix("*.").unwrap_or(name)));
        }
        problems.extend(within("/signatures_per_second", self.signatures_per_second, 1..=10_000));
        problems.extend(weight("/impersonator_weight", self.impersonator_weight));
        problems.extend(weight("/unknown_bot_weight", self.unknown_bot_weight));
        problems.extend(status("/deny_status", self.deny_status));
        problems.extend(text("/robots_extra", &self.robots_extra, 65_536));
        problems.extend(text("/llms_txt", &self.llms_txt, 1_048_576));
        problems.extend(count("/robots_licenses", self.robots_licenses.len(), 16));
        for (index, license) in self.robots_licenses.iter().enumerate() {
            problems.extend(url(&format!("/robots_licenses/{index}"), license));
        }
        problems.extend(weight("/robots_weight", self.robots_weight));
        problems.extend(self.fingerprints.check());
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}

impl BotPolicy {
    /// Whether it has a text that gateways serve.
    pub(super) fn serves(&self) -> bool {
        self.serve_robots_txt || self.serve_llms_txt && !self.llms_txt.is_empty()
    }

    /// Whether it does anything.
    pub(super) fn acts(&self) -> bool {
        !self.signatures.is_empty() || self.unknown_bot_weight > 0.0 || self.serves() || self.fingerprints.enabled
    }

    /// Whether the published addresses of its bots are used.
    pub(super) fn uses_ranges(&self) -> bool {
        self.verify_known_bots && self.verify_by_ip_ranges
    }

    /// Whether signatures of requests are verified.
    pub(super) fn uses_signatures(&self) -> bool {
        self.verify_known_bots && self.verify_by_signatures
    }

    /// The rule for each target that has one: the first of it counts.
    pub(super) fn rules_by_target(&self) -> HashMap<&str, &BotRule> {
        let mut rules = HashMap::new();
        for rule in &self.rules {
            rules.entry(rule.target.as_str()).or_insert(rule);
        }
        rules
    }

    fn target_problem(&self, target: &str, pointer: &str) -> Option<FieldProblem> {
        if target == "*" {
            return None;
        }
        match target.split_once(':') {
            Some(("category", category)) => word(pointer, category, &BotCategory::WORDS),
            Some(("name", name)) => {
                let names = self.signatures.iter().map(|signature| signature.name.as_str());
                if names.clone().any(|known| known == name) {
                    return None;
                }
                let hint = did_you_mean(name, names).map(|near| format!(", did you mean `{near}`?"));
                let message =
                    format!("no signature has the name `{}`{}", name.escape_debug(), hint.unwrap_or_default());
                Some(FieldProblem::new(pointer, message).expected("the name of one of the policy's `signatures`"))
            }
            _ => {
                let message = format!("`{}` is not a target", target.escape_debug());
                let problem = FieldProblem::new(pointer, message);
                Some(
                    problem
                        .expected(format!("`*`, `name:<bot>` or `category:` with {}", BotCategory::WORDS.join(", "))),
                )
            }
        }
    }
}
