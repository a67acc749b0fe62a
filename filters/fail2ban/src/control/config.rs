//! The plugin's configuration.

use exchange::{Exemptions, Scope};
use kit::{FieldProblem, checks, typed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{counter_key, duration};
use crate::{Fail2BanRule, Fail2BanScope, Fail2BanStep, StatusRange};

/// The most entries of `status_codes`.
const MAX_STATUS_CODES: usize = 64;
/// The most entries of `url_rules`.
const MAX_URL_RULES: usize = 64;
/// The most methods of a rule.
const MAX_METHODS: usize = 16;
/// The longest pattern of a rule, in bytes.
const MAX_PATTERN: usize = 1024;
/// The most entries of `ignored`.
const MAX_IGNORED: usize = 1000;
/// The highest `max_retry`.
const MAX_RETRY: u32 = 10_000;
/// The bounds of `detect_time`, in milliseconds: 10 seconds to 7 days.
const DETECT_MILLIS: std::ops::RangeInclusive<u64> = 10_000..=604_800_000;
/// The bounds of `ban_time`, in milliseconds: a second to a year.
const BAN_MILLIS: std::ops::RangeInclusive<u64> = 1_000..=31_536_000_000;

/// Which identity of a caller is banned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BanScopeChoice {
    /// The most specific one: an API key before a user before the address.
    #[default]
    Auto,
    /// The address.
    Ip,
    /// The API key.
    ApiKey,
}

/// The configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fail2BanConfig {
    /// Bans are only reported.
    pub dry_run: bool,
    /// How many failures lead to a ban: 1 to 10,000.
    pub max_retry: u32,
    /// Within how long: `10s` to `7d`.
    pub detect_time: String,
    /// The length of a ban: `1s` to `365d`.
    pub ban_time: String,
    /// Statuses (`"401"`) and ranges of them (`"500-599"`) that are failures.
    pub status_codes: Vec<String>,
    /// What failures are counted by.
    pub counter_key: String,
    /// Which identity is banned.
    pub ban_scope: BanScopeChoice,
    /// Limits of paths.
    pub url_rules: Vec<UrlRule>,
    /// Addresses and CIDRs that are never counted.
    pub ignored: Vec<String>,
    /// What a failure adds to the score: 0 to 100.
    pub fabric_weight: f64,
}

/// Limits of the requests to some paths. What is left out is as in the configuration around it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UrlRule {
    /// A regular expression on the path.
    pub pattern: String,
    /// Methods; empty for all.
    pub methods: Vec<String>,
    /// See [`Fail2BanConfig::status_codes`].
    pub status_codes: Option<Vec<String>>,
    /// See [`Fail2BanConfig::max_retry`].
    pub max_retry: Option<u32>,
    /// See [`Fail2BanConfig::detect_time`].
    pub detect_time: Option<String>,
    /// See [`Fail2BanConfig::ban_time`].
    pub ban_time: Option<String>,
}

impl Default for Fail2BanConfig {
    fn default() -> Self {
        Self {
            dry_run: true,
            max_retry: 5,
            detect_time: "10m".to_owned(),
            ban_time: "1h".to_owned(),
            status_codes: ["401", "403", "407", "429"].map(str::to_owned).to_vec(),
            counter_key: "${route.id}-${req.ip}".to_owned(),
            ban_scope: BanScopeChoice::Auto,
            url_rules: Vec::new(),
            ignored: Vec::new(),
            fabric_weight: 3.0,
        }
    }
}

impl Fail2BanConfig {
    /// Reads a configuration and checks it.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn read(config: &Map<String, Value>) -> Result<Self, Vec<FieldProblem>> {
        let config: Self = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn problems(&self) -> Vec<FieldProblem> {
        let times = (Some(self.max_retry), Some(self.detect_time.as_str()), Some(self.ban_time.as_str()));
        let mut problems = limits_problems(times, Some(&self.status_codes));
        problems.extend(counter_key::read(&self.counter_key).err());
        problems.extend(checks::count("/url_rules", self.url_rules.len(), MAX_URL_RULES));
        for (index, rule) in self.url_rules.iter().enumerate() {
            problems.extend(rule.problems().into_iter().map(|problem| problem.under(&format!("/url_rules/{index}"))));
        }
        problems.extend(checks::count("/ignored", self.ignored.len(), MAX_IGNORED));
        for (index, entry) in self.ignored.iter().enumerate() {
            if Exemptions::new(std::slice::from_ref(entry)).is_err() {
                let message = format!("`{}` is neither an address nor a range", entry.escape_debug());
                let problem = FieldProblem::new(format!("/ignored/{index}"), message);
                problems.push(problem.expected("an address or a CIDR, such as `192.0.2.0/24`"));
            }
        }
        problems.extend(checks::weight("/fabric_weight", self.fabric_weight));
        problems
    }

    /// The longest ban of its rules, in milliseconds.
    #[must_use]
    pub fn longest_ban_millis(&self) -> u64 {
        let of_rules = self.url_rules.iter().filter_map(|rule| rule.ban_time.as_deref());
        of_rules.chain([self.ban_time.as_str()]).filter_map(duration::millis).max().unwrap_or(0)
    }

    /// The step of a configuration without problems.
    #[must_use]
    pub fn step(&self) -> Fail2BanStep {
        let scope = match self.ban_scope {
            BanScopeChoice::Auto => Fail2BanScope::Auto,
            BanScopeChoice::Ip => Fail2BanScope::Ip,
            BanScopeChoice::ApiKey => Fail2BanScope::ApiKey,
        };
        Fail2BanStep {
            dry_run: self.dry_run,
            ban_scope: scope.into(),
            key: counter_key::read(&self.counter_key).unwrap_or_default(),
            ignored: self.ignored.clone(),
            weight: self.fabric_weight,
            general: Some(self.rule(&UrlRule::default())),
            rules: self.url_rules.iter().map(|rule| self.rule(rule)).collect(),
        }
    }

    fn rule(&self, rule: &UrlRule) -> Fail2BanRule {
        let time = |own: &Option<String>, general: &String| {
            duration::millis(own.as_ref().unwrap_or(general)).unwrap_or_default()
        };
        let statuses = rule.status_codes.as_ref().unwrap_or(&self.status_codes);
        Fail2BanRule {
            pattern: rule.pattern.clone(),
            methods: rule.methods.iter().map(|method| method.to_ascii_uppercase()).collect(),
            statuses: statuses.iter().filter_map(|code| range(code)).collect(),
            max_retry: rule.max_retry.unwrap_or(self.max_retry),
            detect_millis: time(&rule.detect_time, &self.detect_time),
            ban_millis: time(&rule.ban_time, &self.ban_time),
        }
    }
}

impl UrlRule {
    fn problems(&self) -> Vec<FieldProblem> {
        let times = (self.max_retry, self.detect_time.as_deref(), self.ban_time.as_deref());
        let mut problems = limits_problems(times, self.status_codes.as_deref());
        problems.extend(checks::text("/pattern", &self.pattern, MAX_PATTERN));
        let wrong = if self.pattern.is_empty() {
            Some("the rule matches no path".to_owned())
        } else {
            Scope::new(std::slice::from_ref(&self.pattern), &[]).err()
        };
        let expected = "a regular expression on the path, such as `^/login$`";
        problems.extend(wrong.map(|wrong| FieldProblem::new("/pattern", wrong).expected(expected)));
        problems.extend(checks::count("/methods", self.methods.len(), MAX_METHODS));
        for (index, method) in self.methods.iter().enumerate() {
            if method.is_empty() || method.len() > 32 || !method.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                let message = format!("`{}` is not a method", method.escape_debug());
                problems.push(FieldProblem::new(format!("/methods/{index}"), message).expected("such as `POST`"));
            }
        }
        problems
    }
}

/// What is wrong with the fields that a configuration and its rules share: `max_retry`, `detect_time`, `ban_time` and `status_codes`.
fn limits_problems(
    (max_retry, detect_time, ban_time): (Option<u32>, Option<&str>, Option<&str>),
    status_codes: Option<&[String]>,
) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    problems.extend(max_retry.and_then(|retries| checks::within("/max_retry", retries, 1..=MAX_RETRY)));
    let times = [
        ("/detect_time", detect_time, DETECT_MILLIS, "a duration from `10s` to `7d`, such as `10m`"),
        ("/ban_time", ban_time, BAN_MILLIS, "a duration from `1s` to `365d`, such as `1h`"),
    ];
    for (pointer, text, bounds, expected) in times {
        let Some(text) = text else { continue };
        if !duration::millis(text).is_some_and(|millis| bounds.contains(&millis)) {
            let message = format!("`{}` is not a duration within the limits", text.escape_debug());
            problems.push(FieldProblem::new(pointer, message).expected(expected));
        }
    }
    let Some(codes) = status_codes else { return problems };
    if codes.is_empty() {
        let problem = FieldProblem::new("/status_codes", "no status is a failure");
        problems.push(problem.expected("at least one status, such as `401` or `500-599`"));
    }
    problems.extend(checks::count("/status_codes", codes.len(), MAX_STATUS_CODES));
    for (index, code) in codes.iter().enumerate().filter(|(_, code)| range(code).is_none()) {
        let message = format!("`{}` is neither a status nor a range of them", code.escape_debug());
        let problem = FieldProblem::new(format!("/status_codes/{index}"), message);
        problems.push(problem.expected("100 to 599, such as `401` or `500-599`"));
    }
    problems
}

/// A status or a range of them.
fn range(code: &str) -> Option<StatusRange> {
    let status = |text: &str| {
        let text = text.trim();
        let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten();
        number.filter(|status| (100..=599).contains(status))
    };
    let (first, last) = code.split_once('-').unwrap_or((code, code));
    let (first, last) = (status(first)?, status(last)?);
    (first <= last).then_some(StatusRange { first, last })
}
