//! How a bot is known, and how it proves who it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::FieldProblem;
use kit::checks::{count, text, url};

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

impl BotSignature {
    pub(super) fn check(&self) -> Vec<FieldProblem> {
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
