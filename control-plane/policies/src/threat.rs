//! `threat-policies`: what is done at which score.

use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ChallengeProvider;
use kit::{Entity, FieldProblem, Head, Item, References, did_you_mean, number, reference};

/// The highest score there is.
pub const MAX_SCORE: f64 = 100.0;
/// The longest time that a tier holds a request, in milliseconds: the listener ends streams that are silent for 5 minutes.
const MAX_TARPIT_MILLIS: u64 = 300_000;

/// A threat policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ThreatPolicy {
    /// False: it is not used. Default true.
    pub enabled: bool,
    /// The decision is recorded and the request passes. A new policy starts true.
    pub dry_run: bool,
    /// The tiers. The highest matching one applies; their order is irrelevant.
    pub tiers: Vec<Tier>,
    /// Addresses and CIDRs of clients that the decision fabric ignores.
    pub exemptions: Vec<String>,
    /// The identity that is banned.
    pub ban_identity: BanIdentity,
    /// The score of a WAF block, 0 to 100. Default 50.
    #[serde(with = "number")]
    #[schemars(with = "f64", range(min = 0, max = 100))]
    pub waf_block_weight: f64,
    /// The id of a challenge provider; needed only when a tier challenges.
    pub challenge_provider: Option<String>,
}

/// A tier of a threat policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// The score from which it applies, 0 to 100.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub min_score: f64,
    /// The action. Default log; an unknown action is read as log.
    #[serde(default)]
    #[schemars(with = "TierAction")]
    pub action: WrittenAction,
    /// The HTTP status of a refusal. Default 403.
    #[serde(default = "default_status")]
    pub status: u16,
    /// How long `tarpit` holds a request, in milliseconds, at most 300000 (5 minutes). Default 3000.
    #[serde(default = "default_tarpit_millis")]
    #[schemars(range(max = 300_000))]
    pub tarpit_millis: u64,
    /// How long `ban` lasts, in seconds. Default 3600.
    #[serde(default = "default_ban_for_seconds")]
    pub ban_for_seconds: u64,
    /// How many requests `throttle` admits within its window. Default 20.
    #[serde(default = "default_throttle_quota")]
    pub throttle_quota: u64,
    /// The window of `throttle`, in seconds. Default 10.
    #[serde(default = "default_throttle_window_seconds")]
    pub throttle_window_seconds: u64,
}

/// The action of a tier as a document has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenAction {
    /// What it is read as. It alone is stored and shown.
    pub read_as: TierAction,
    /// The word of the document where it is no action, at most its first [`WrittenAction::LONGEST`] characters.
    pub unknown: Option<String>,
}

/// The action of a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", from = "String")]
pub enum TierAction {
    /// Record the request and forward it.
    #[default]
    Log,
    /// Ask the client to solve a challenge.
    Challenge,
    /// Forward requests up to a quota, answer 429 beyond it.
    Throttle,
    /// Delay the request, then forward it.
    Tarpit,
    /// Refuse.
    Deny,
    /// Refuse by generated pages, within the budgets of `security.maze`. Verified bots, those that obey robots.txt, requests other than GET
    /// and HEAD, and what is over a budget are refused with the status.
    Maze,
    /// Refuse the request, and all requests of the identity until the ban ends.
    Ban,
}

/// The identity that is banned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BanIdentity {
    /// The most specific verified one: API key, then user, then address.
    #[default]
    Auto,
    /// The address.
    Ip,
    /// The API key.
    Apikey,
}

// === impl ThreatPolicy ===

impl ThreatPolicy {
    /// The policy that is used where none was saved: everything is recorded, nothing enforced.
    #[must_use]
    pub fn builtin() -> Item<ThreatPolicy> {
        let tier = |min_score, action: TierAction| Tier { action: action.into(), ..Tier::at(min_score) };
        let head = Head { id: "builtin".to_owned(), name: "Built-in (dry run)".to_owned(), ..Head::default() };
        let tiers = vec![tier(40.0, TierAction::Log), tier(70.0, TierAction::Tarpit), tier(90.0, TierAction::Ban)];
        Item { head, body: ThreatPolicy { tiers, ..ThreatPolicy::default() } }
    }
}

impl Default for ThreatPolicy {
    fn default() -> ThreatPolicy {
        ThreatPolicy {
            enabled: true,
            dry_run: true,
            tiers: Vec::new(),
            exemptions: Vec::new(),
            ban_identity: BanIdentity::default(),
            waf_block_weight: 50.0,
            challenge_provider: None,
        }
    }
}

impl Entity for ThreatPolicy {
    const COLLECTION: &'static str = "threat-policies";
    const KIND: &'static str = "threat-policy";

    fn check(&self, _head: &Head, refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        for (index, tier) in self.tiers.iter().enumerate() {
            problems.extend(tier.check().into_iter().map(|problem| problem.under(&format!("/tiers/{index}"))));
        }
        for (index, exemption) in self.exemptions.iter().enumerate() {
            if exemption.parse::<IpNet>().is_err() && exemption.parse::<IpAddr>().is_err() {
                let message = format!("`{}` is neither an address nor a CIDR", exemption.escape_debug());
                let problem = FieldProblem::new(format!("/exemptions/{index}"), message);
                problems.push(problem.expected("such as `192.0.2.7` or `2001:db8::/32`"));
            }
        }
        if !(0.0..=MAX_SCORE).contains(&self.waf_block_weight) {
            problems.push(FieldProblem::new("/waf_block_weight", "scores end at 100").expected("0 to 100"));
        }
        if let Some(id) = &self.challenge_provider {
            problems.extend(reference(refs, ChallengeProvider::COLLECTION, id, "/challenge_provider".to_owned()));
        }
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }

    fn misread(&self) -> Vec<FieldProblem> {
        let told = self.tiers.iter().enumerate().filter_map(|(index, tier)| {
            let word = tier.action.unknown.as_deref()?;
            let hint = did_you_mean(word, TierAction::WORDS).map(|near| format!(", did you mean `{near}`?"));
            let message =
                format!("`{}` is no action and is read as `log`{}", word.escape_debug(), hint.unwrap_or_default());
            let problem = FieldProblem::new(format!("/tiers/{index}/action"), message);
            Some(problem.expected(TierAction::WORDS.join(", ")))
        });
        told.collect()
    }

    fn longest_ban(&self) -> Option<u64> {
        let bans = self.tiers.iter().filter(|tier| tier.action.read_as == TierAction::Ban);
        bans.map(|tier| tier.ban_for_seconds).max()
    }
}

// === impl Tier ===

impl Tier {
    /// A tier that logs from `min_score` on, with every default.
    #[must_use]
    pub fn at(min_score: f64) -> Tier {
        Tier {
            min_score,
            action: WrittenAction::default(),
            status: default_status(),
            tarpit_millis: default_tarpit_millis(),
            ban_for_seconds: default_ban_for_seconds(),
            throttle_quota: default_throttle_quota(),
            throttle_window_seconds: default_throttle_window_seconds(),
        }
    }

    fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        if !(0.0..=MAX_SCORE).contains(&self.min_score) {
            problems.push(FieldProblem::new("/min_score", "no score ever reaches it").expected("0 to 100"));
        }
        if !(200..=599).contains(&self.status) {
            let message = format!("{} is not a status of a final answer", self.status);
            problems.push(FieldProblem::new("/status", message).expected("200 to 599"));
        }
        if self.tarpit_millis > MAX_TARPIT_MILLIS {
            let message = "a request that is held so long only costs the gateway";
            problems.push(
                FieldProblem::new("/tarpit_millis", message)
                    .expected(format!("0 to {MAX_TARPIT_MILLIS}, which is 5 minutes")),
            );
        }
        for (field, value) in
            [("/ban_for_seconds", self.ban_for_seconds), ("/throttle_window_seconds", self.throttle_window_seconds)]
        {
            if value == 0 {
                problems.push(FieldProblem::new(field, "0 seconds would never hold").expected("1 or more"));
            }
        }
        problems
    }
}

// === impl WrittenAction ===

impl WrittenAction {
    /// The longest part of an unknown word that is kept, in characters.
    pub const LONGEST: usize = 64;
}

impl From<TierAction> for WrittenAction {
    fn from(action: TierAction) -> WrittenAction {
        WrittenAction { read_as: action, unknown: None }
    }
}

impl Serialize for WrittenAction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read_as.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WrittenAction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WrittenAction, D::Error> {
        let word = String::deserialize(deserializer)?;
        let unknown =
            (!TierAction::WORDS.contains(&word.as_str())).then(|| word.chars().take(WrittenAction::LONGEST).collect());
        Ok(WrittenAction { read_as: TierAction::from(word), unknown })
    }
}

// === impl TierAction ===

impl TierAction {
    /// The words of documents, from the mildest to the sternest action.
    pub const WORDS: [&str; 7] = ["log", "challenge", "throttle", "tarpit", "deny", "maze", "ban"];
}

impl From<String> for TierAction {
    fn from(word: String) -> TierAction {
        match word.as_str() {
            "challenge" => TierAction::Challenge,
            "throttle" => TierAction::Throttle,
            "tarpit" => TierAction::Tarpit,
            "deny" => TierAction::Deny,
            "maze" => TierAction::Maze,
            "ban" => TierAction::Ban,
            _ => TierAction::Log,
        }
    }
}

fn default_status() -> u16 {
    403
}

fn default_tarpit_millis() -> u64 {
    3000
}

fn default_ban_for_seconds() -> u64 {
    3600
}

fn default_throttle_quota() -> u64 {
    20
}

fn default_throttle_window_seconds() -> u64 {
    10
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let expected = json!({
            "enabled": true, "dry_run": true, "tiers": [], "exemptions": [], "ban_identity": "auto",
            "waf_block_weight": 50, "challenge_provider": null
        });
        assert_eq!(serde_json::to_value(ThreatPolicy::default()).unwrap(), expected);
        let tier: Tier = serde_json::from_value(json!({"min_score": 12.5, "action": "explode"})).unwrap();
        let expected = json!({
            "min_score": 12.5, "action": "log", "status": 403, "tarpit_millis": 3000, "ban_for_seconds": 3600,
            "throttle_quota": 20, "throttle_window_seconds": 10
        });
        assert_eq!(serde_json::to_value(tier).unwrap(), expected);
    }

    #[test]
    fn words_that_are_no_actions_are_told() {
        let told = |words: &[&str]| {
            let tiers: Vec<_> = words.iter().map(|word| json!({"min_score": 40, "action": word})).collect();
            let policy: ThreatPolicy = serde_json::from_value(json!({ "tiers": tiers })).unwrap();
            policy.misread().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(told(&TierAction::WORDS), Vec::<String>::new());
        let expected = "(expected log, challenge, throttle, tarpit, deny, maze, ban)";
        assert_eq!(
            told(&["ban", "denny", "Deny", "explode"]),
            [
                format!("/tiers/1/action: `denny` is no action and is read as `log`, did you mean `deny`? {expected}"),
                format!("/tiers/2/action: `Deny` is no action and is read as `log`, did you mean `deny`? {expected}"),
                format!("/tiers/3/action: `explode` is no action and is read as `log` {expected}"),
            ]
        );
        assert!(told(&["x".repeat(5000).as_str()])[0].len() < 300);
        for word in TierAction::WORDS {
            let action: WrittenAction = serde_json::from_value(json!(word)).unwrap();
            assert_eq!(serde_json::to_value(action).unwrap(), word);
        }
    }

    #[test]
    fn weights_and_delays_end() {
        struct Nothing;
        impl References for Nothing {
            fn exists(&self, _collection: &str, _id: &str) -> Option<bool> {
                None
            }
        }
        let problems = |waf_block_weight: f64, tarpit_millis: u64| {
            let tiers = vec![Tier { tarpit_millis, ..Tier::at(1.0) }];
            let policy = ThreatPolicy { waf_block_weight, tiers, ..ThreatPolicy::default() };
            let found = policy.check(&Head::default(), &Nothing);
            found.into_iter().map(|problem| problem.pointer).collect::<Vec<_>>()
        };
        assert!(problems(0.0, 0).is_empty() && problems(100.0, 300_000).is_empty());
        for weight in [-1.0, 100.5, 1e308, f64::NAN, f64::INFINITY] {
            assert_eq!(problems(weight, 0), ["/waf_block_weight"], "{weight}");
        }
        assert_eq!(problems(1.0, 300_001), ["/tiers/0/tarpit_millis"]);
    }

    #[test]
    fn the_built_in_policy_enforces_nothing() {
        let policy = ThreatPolicy::builtin();
        assert!(policy.dry_run && policy.enabled);
        let rungs: Vec<_> = policy.tiers.iter().map(|tier| (tier.min_score as u32, tier.action.read_as)).collect();
        assert_eq!(rungs, [(40, TierAction::Log), (70, TierAction::Tarpit), (90, TierAction::Ban)]);
    }
}
