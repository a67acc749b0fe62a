//! `honeypot-policies`: paths and values that no legitimate client uses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::{count, status, text, weight, within};
use kit::{Entity, FieldProblem, Head, References, number};

/// Decoy paths and values, and the action for clients that use them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HoneypotPolicy {
    /// False: it is not used. Default true.
    pub enabled: bool,
    /// Decoy paths, at most 1000, in any case of ASCII letters and in every spelling; a `*` at the end matches anything. Default: 16 that scanners request.
    pub paths: Vec<String>,
    /// What a match adds to the score, 0 to 100. Default 100.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub weight: f64,
    /// The action. Default deny.
    pub action: HoneypotAction,
    /// The duration of `ban` in seconds, 1 to 31536000. Default 86400.
    pub ban_for_seconds: u64,
    /// The status of the refusal, 200 to 599. Default 404.
    pub status: u16,
    /// Values laid out as bait, at most 1000.
    pub canaries: Vec<Canary>,
}

/// A value laid out as bait: no legitimate client knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// The value, 4 to 1024 bytes.
    pub value: String,
    /// Where it was laid out, for operators; at most 1024 bytes.
    #[serde(default)]
    pub description: String,
    /// The part of a request that is searched. Default any.
    #[serde(default, rename = "where")]
    pub place: CanaryPlace,
}

/// The part of a request that is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CanaryPlace {
    /// Everywhere.
    #[default]
    Any,
    /// In the values of headers.
    Header,
    /// In the path.
    Path,
    /// In the query.
    Query,
}

/// The action for a client that uses a decoy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HoneypotAction {
    /// It adds to the score.
    Monitor,
    /// The request is refused.
    #[default]
    Deny,
    /// The request is refused, and its identity banned.
    Ban,
}

/// The decoy paths of a new policy.
pub const DECOYS: [&str; 16] = [
    "/.env",
    "/.env.local",
    "/.git/config",
    "/.git/HEAD",
    "/.aws/credentials",
    "/wp-login.php",
    "/wp-admin*",
    "/xmlrpc.php",
    "/phpmyadmin*",
    "/phpinfo.php",
    "/actuator/env",
    "/actuator/heapdump",
    "/_ignition/execute-solution",
    "/vendor/phpunit*",
    "/solr/admin*",
    "/config.json.bak",
];

// === impl HoneypotPolicy ===

impl Default for HoneypotPolicy {
    fn default() -> HoneypotPolicy {
        HoneypotPolicy {
            enabled: true,
            paths: DECOYS.iter().map(|path| (*path).to_owned()).collect(),
            weight: 100.0,
            action: HoneypotAction::default(),
            ban_for_seconds: 86_400,
            status: 404,
            canaries: Vec::new(),
        }
    }
}

impl Entity for HoneypotPolicy {
    const COLLECTION: &'static str = "honeypot-policies";
    const KIND: &'static str = "honeypot-policy";

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(count("/paths", self.paths.len(), 1000));
        for (index, path) in self.paths.iter().enumerate() {
            let place = format!("/paths/{index}");
            if path == "/*" || path == "/" {
                let problem = FieldProblem::new(&place, format!("`{path}` is requested by every client"));
                problems.push(problem.expected("a path that no legitimate client requests"));
            } else if !is_decoy(path) {
                let problem = FieldProblem::new(&place, format!("`{}` is not a decoy path", path.escape_debug()));
                problems.push(problem.expected("a path that begins with /, without query; a `*` at its end alone"));
            }
            problems.extend(text(&place, path, 1024));
        }
        problems.extend(weight("/weight", self.weight));
        problems.extend(within("/ban_for_seconds", self.ban_for_seconds, 1..=31_536_000));
        problems.extend(status("/status", self.status));
        problems.extend(count("/canaries", self.canaries.len(), 1000));
        for (index, canary) in self.canaries.iter().enumerate() {
            let place = format!("/canaries/{index}");
            if !(4..=1024).contains(&canary.value.len()) {
                let message = format!("a value of {} bytes", canary.value.len());
                let problem = FieldProblem::new(format!("{place}/value"), message);
                problems.push(problem.expected("4 to 1024 bytes: what is shorter is found by chance"));
            }
            problems.extend(text(&format!("{place}/description"), &canary.description, 1024));
        }
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }

    fn longest_ban(&self) -> Option<u64> {
        (self.action == HoneypotAction::Ban).then_some(self.ban_for_seconds)
    }
}

fn is_decoy(path: &str) -> bool {
    let name = path.strip_suffix('*').unwrap_or(path);
    name.starts_with('/') && !name.bytes().any(|byte| byte.is_ascii_control() || b"?#* ".contains(&byte))
}
