//! `fingerprints` of a bot policy.

use kit::checks::{count, weight, within, word};
use kit::{FieldProblem, number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BotAction;
use crate::{FAMILIES, Pattern};

/// The pairs of a policy, the fingerprints of one, and the rules, at most. Each request is compared with all rules.
const MAX_PAIRS: usize = 100;
const MAX_OF_PAIR: usize = 100;
const MAX_RULES: usize = 64;
/// The largest limit of a rule.
const MAX_REQUESTS: u32 = 1_000_000;

/// What is done with TLS fingerprints (JA4, JA3). The gateway's listener must compute them: that of xDS does if `gateway.tls` is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BotFingerprints {
    /// Whether they are looked at. Default false.
    pub enabled: bool,
    /// Which software has which fingerprints, at most 100, beside the learned pairs that operators have accepted.
    pub pairs: Vec<KnownPair>,
    /// The actions for single fingerprints, at most 64; the first that matches counts, and nothing else is judged by the fingerprint then.
    pub rules: Vec<FingerprintPolicyRule>,
    /// What a client adds to the score whose fingerprint is that of other software than its agent says, 0 to 100. Default 40.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub mismatch_weight: f64,
    /// What a client adds whose fingerprint is none of those in `pairs` for the software that its agent says, 0 to 100. Only software
    /// with a pair is judged. Default 0.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub unknown_weight: f64,
    /// What a client adds whose fingerprint came with agents of `rotation_families` different software within a day, 0 to 100. Default 0.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub rotation_weight: f64,
    /// From how many kinds of software on `rotation_weight` is added, 2 to 16. Browsers with Chromium's TLS are one. Default 3.
    #[schemars(range(min = 2, max = 16))]
    pub rotation_families: u32,
    /// From how many networks (/24, /48) each of them must have come, 1 to 64. Default 8.
    #[schemars(range(min = 1, max = 64))]
    pub rotation_networks: u32,
    /// Whether gateways report pairs of fingerprint and software, for operators to accept. Default true.
    pub learn: bool,
}

/// The fingerprints of a software.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnownPair {
    /// The software, as agents name it: `chrome`, `firefox`, `curl`, ...
    pub family: String,
    /// Its fingerprints, at most 100: a JA4, a JA4 with `*` in place of some of its three parts (`t13d1516h2_8daaf6152771_*`), or a JA3.
    pub fingerprints: Vec<String>,
}

/// The action for a fingerprint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FingerprintPolicyRule {
    /// The fingerprint, as in `pairs`.
    pub fingerprint: String,
    /// The action: `allow` leaves it alone, `monitor` adds the weight, `deny` refuses as well. Default monitor.
    #[serde(default)]
    pub action: BotAction,
    /// What a match adds to the score, 0 to 100. Default 0.
    #[serde(default, with = "number")]
    #[schemars(with = "f64")]
    pub weight: f64,
    /// How many requests of all clients with the fingerprint pass in a minute on all gateways before the rule acts, 0 to 1000000; `deny`
    /// then answers with 429. Default 0: it acts on every request.
    #[serde(default)]
    #[schemars(range(max = 1_000_000))]
    pub requests_per_minute: u32,
}

// === impl BotFingerprints ===

impl Default for BotFingerprints {
    fn default() -> BotFingerprints {
        BotFingerprints {
            enabled: false,
            pairs: Vec::new(),
            rules: Vec::new(),
            mismatch_weight: 40.0,
            unknown_weight: 0.0,
            rotation_weight: 0.0,
            rotation_families: 3,
            rotation_networks: 8,
            learn: true,
        }
    }
}

impl BotFingerprints {
    /// What is wrong with them, from `/fingerprints` on.
    pub(in super::super) fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(count("/pairs", self.pairs.len(), MAX_PAIRS));
        for (index, pair) in self.pairs.iter().enumerate() {
            let place = format!("/pairs/{index}");
            problems.extend(word(&format!("{place}/family"), &pair.family, &FAMILIES));
            problems.extend(count(&format!("{place}/fingerprints"), pair.fingerprints.len(), MAX_OF_PAIR));
            for (at, fingerprint) in pair.fingerprints.iter().enumerate() {
                problems.extend(pattern(&format!("{place}/fingerprints/{at}"), fingerprint));
            }
        }
        problems.extend(count("/rules", self.rules.len(), MAX_RULES));
        for (index, rule) in self.rules.iter().enumerate() {
            let place = format!("/rules/{index}");
            problems.extend(pattern(&format!("{place}/fingerprint"), &rule.fingerprint));
            problems.extend(weight(&format!("{place}/weight"), rule.weight));
            problems.extend(within(
                &format!("{place}/requests_per_minute"),
                rule.requests_per_minute,
                0..=MAX_REQUESTS,
            ));
        }
        problems.extend(weight("/mismatch_weight", self.mismatch_weight));
        problems.extend(weight("/unknown_weight", self.unknown_weight));
        problems.extend(weight("/rotation_weight", self.rotation_weight));
        problems.extend(within("/rotation_families", self.rotation_families, 2..=16));
        problems.extend(within("/rotation_networks", self.rotation_networks, 1..=64));
        problems.into_iter().map(|problem| problem.under("/fingerprints")).collect()
    }
}

fn pattern(pointer: &str, text: &str) -> Option<FieldProblem> {
    if Pattern::read(text).is_some() {
        return None;
    }
    let shown: String = text.chars().take(80).collect();
    let problem = FieldProblem::new(pointer, format!("`{}` is no TLS fingerprint", shown.escape_debug()));
    Some(problem.expected(
        "a JA4 such as `t13d1516h2_8daaf6152771_02713d6af862`, with `*` in place of one or two of its parts, or the 32 digits of a JA3",
    ))
}
