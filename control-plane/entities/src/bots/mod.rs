//! `bot-policies`: which bots are known, how they prove who they are, and what each may do.

mod known;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::{count, status, text, url, weight, word};
use super::{Entity, FieldProblem, Head, References, did_you_mean, number};

/// A policy on bots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BotPolicy {
    /// False: it is not used. Default true.
    pub enabled: bool,
    /// The known bots, at most 1000. Default: 27 of them.
    pub signatures: Vec<BotSignature>,
    /// The actions by bot, at most 1000. A name takes precedence over a category, a category over `*`. Default: search and
    /// monitoring are allowed, ai weighs 0, seo 10, and nothing is denied.
    pub rules: Vec<BotRule>,
    /// Whether bots are verified by forward-confirmed reverse DNS, if their signature allows it. Default true.
    pub verify_known_bots: bool,
    /// Whether verified bots pass. Default true.
    pub verified_bypass: bool,
    /// What a failed verification adds to the score, 0 to 100. Default 60.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub impersonator_weight: f64,
    /// The action after a failed verification. Default deny.
    pub impersonator_action: BotAction,
    /// What an unknown bot adds to the score, 0 to 100. Default 0.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub unknown_bot_weight: f64,
    /// The status of a refusal, 200 to 599. Default 403.
    pub deny_status: u16,
    /// Lines appended to the generated robots.txt, at most 65536 bytes.
    pub robots_extra: String,
    /// The text of llms.txt, at most 1048576 bytes.
    pub llms_txt: String,
}

/// A bot that is known by its user agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BotSignature {
    /// Its name: 1 to 64 of a-z 0-9 . _ -.
    pub name: String,
    /// Its purpose.
    pub category: BotCategory,
    /// Substrings of its user agent, in any case of letters, 1 to 64; one must match.
    pub ua_contains: Vec<String>,
    /// Suffixes of the host names of its addresses, at most 64, each with a leading dot.
    #[serde(default)]
    pub rdns_suffixes: Vec<String>,
    /// The owner's page about it; empty for none.
    #[serde(default)]
    pub homepage: String,
    /// Whether it can be verified by reverse DNS. Default false.
    #[serde(default)]
    pub verifiable: bool,
}

/// The purpose of a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BotCategory {
    /// Search engines.
    Search,
    /// Training and answers of AI models.
    Ai,
    /// Search engine optimisation.
    Seo,
    /// Monitoring of availability.
    Monitoring,
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
    /// It passes and adds to the score.
    #[default]
    Monitor,
    /// It is refused.
    Deny,
}

const CATEGORIES: [&str; 4] = ["search", "ai", "seo", "monitoring"];

// === impl BotPolicy ===

impl BotPolicy {
    /// The signatures of a new policy.
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
            verified_bypass: true,
            impersonator_weight: 60.0,
            impersonator_action: BotAction::Deny,
            unknown_bot_weight: 0.0,
            deny_status: 403,
            robots_extra: String::new(),
            llms_txt: String::new(),
        }
    }
}

impl Entity for BotPolicy {
    const COLLECTION: &'static str = "bot-policies";
    const KIND: &'static str = "bot-policy";

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(count("/signatures", self.signatures.len(), 1000));
        for (index, signature) in self.signatures.iter().enumerate() {
            let place = format!("/signatures/{index}");
            problems.extend(signature.check().into_iter().map(|problem| problem.under(&place)));
            if self.signatures.iter().take(index).any(|earlier| earlier.name == signature.name) {
                let message = format!("the bot `{}` is there twice", signature.name.escape_debug());
                problems.push(FieldProblem::new(format!("{place}/name"), message).expected("a unique name"));
            }
        }
        problems.extend(count("/rules", self.rules.len(), 1000));
        for (index, rule) in self.rules.iter().enumerate() {
            let place = format!("/rules/{index}");
            problems.extend(self.target_problem(&rule.target, &format!("{place}/target")));
            problems.extend(weight(&format!("{place}/weight"), rule.weight));
        }
        problems.extend(weight("/impersonator_weight", self.impersonator_weight));
        problems.extend(weight("/unknown_bot_weight", self.unknown_bot_weight));
        problems.extend(status("/deny_status", self.deny_status));
        problems.extend(text("/robots_extra", &self.robots_extra, 65_536));
        problems.extend(text("/llms_txt", &self.llms_txt, 1_048_576));
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}

impl BotPolicy {
    fn target_problem(&self, target: &str, pointer: &str) -> Option<FieldProblem> {
        if target == "*" {
            return None;
        }
        match target.split_once(':') {
            Some(("category", category)) => word(pointer, category, &CATEGORIES),
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
                Some(problem.expected(format!("`*`, `name:<bot>` or `category:` with {}", CATEGORIES.join(", "))))
            }
        }
    }
}

// === impl BotSignature ===

impl BotSignature {
    fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let sane = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        if !(1..=64).contains(&self.name.len()) || !self.name.bytes().all(sane) {
            let message = format!("`{}` cannot be the name of a bot", self.name.escape_debug());
            problems.push(FieldProblem::new("/name", message).expected("1 to 64 characters of a-z 0-9 . _ -"));
        }
        if self.ua_contains.is_empty() {
            let problem = FieldProblem::new("/ua_contains", "the bot would never be recognised");
            problems.push(problem.expected("at least one part of its user agent"));
        }
        problems.extend(count("/ua_contains", self.ua_contains.len(), 64));
        for (index, part) in self.ua_contains.iter().enumerate() {
            let place = format!("/ua_contains/{index}");
            if part.trim().is_empty() {
                let problem = FieldProblem::new(&place, "an empty text is in every user agent");
                problems.push(problem.expected("a part of the bot's user agent"));
            }
            problems.extend(text(&place, part, 256));
        }
        problems.extend(count("/rdns_suffixes", self.rdns_suffixes.len(), 64));
        for (index, suffix) in self.rdns_suffixes.iter().enumerate() {
            let rest = suffix.strip_prefix('.').unwrap_or_default();
            let label = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
            if rest.is_empty() || rest.starts_with('.') || suffix.len() > 253 || !rest.bytes().all(label) {
                let message = format!("`{}` is not a suffix of names", suffix.escape_debug());
                let problem = FieldProblem::new(format!("/rdns_suffixes/{index}"), message);
                problems.push(problem.expected("a domain that begins with a dot, such as `.search.example.com`"));
            }
        }
        if self.verifiable && self.rdns_suffixes.is_empty() {
            let problem = FieldProblem::new("/verifiable", "without `rdns_suffixes` nothing can be verified");
            problems.push(problem.expected("false, or suffixes"));
        }
        if !self.homepage.is_empty() {
            problems.extend(url("/homepage", &self.homepage));
        }
        problems
    }
}
