//! How a bot is known, and how it proves who it is.

use std::net::IpAddr;

use axum::http::Uri;
use domain::base::Name;
use kit::FieldProblem;
use kit::checks::{count, text, url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use snapshot::content_hash;

use super::directories::{WELL_KNOWN, WantedDirectory};
use crate::{DirectoryKind, METHOD_BYTES, identifier};

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
    /// The URLs of the lists of addresses that its owner publishes (JSON, `prefixes[].ipv4Prefix` and `ipv6Prefix`), at most 8. They are
    /// used if the policy has `verify_by_ip_ranges`.
    #[serde(default)]
    pub ip_ranges: Vec<String>,
    /// Where the keys are that it signs requests with (Web Bot Auth): the origin of its directory, such as `https://example.com`, or a URL as
    /// `key_directory_type` says; empty for none. It is used if the policy has `verify_by_signatures`.
    #[serde(default)]
    pub key_directory: String,
    /// What `key_directory` is, as `type` in the header `Signature-Agent` says. Default directory.
    #[serde(default)]
    pub key_directory_type: KeyDirectoryType,
}

/// What a key directory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyDirectoryType {
    /// An origin with a key set at `/.well-known/http-message-signatures-directory`.
    #[default]
    Directory,
    /// The URL of a key set (JWKS).
    JwksUri,
    /// The URL of a card of the agent (a client ID metadata document), which has `jwks` or `jwks_uri`.
    Cimd,
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

impl BotCategory {
    /// The words of documents.
    pub(super) const WORDS: [&str; 4] = ["search", "ai", "seo", "monitoring"];

    pub(super) fn word(self) -> &'static str {
        match self {
            BotCategory::Search => "search",
            BotCategory::Ai => "ai",
            BotCategory::Seo => "seo",
            BotCategory::Monitoring => "monitoring",
        }
    }
}

impl BotSignature {
    /// The domains that the host names of its addresses are below, in their order, if it can be verified. Policies with the same domains
    /// share verdicts.
    pub(super) fn domains(&self) -> Option<Vec<String>> {
        let mut domains: Vec<String> = match self.verifiable {
            true => self.rdns_suffixes.iter().map(|suffix| suffix.trim_matches('.').to_ascii_lowercase()).collect(),
            false => Vec::new(),
        };
        domains.sort_unstable();
        domains.dedup();
        (!domains.is_empty()).then_some(domains)
    }

    /// Its key directory, if it has one.
    pub(super) fn directory(&self) -> Option<WantedDirectory> {
        let kind = match self.key_directory_type {
            KeyDirectoryType::Directory => DirectoryKind::Directory,
            KeyDirectoryType::JwksUri => DirectoryKind::JwksUri,
            KeyDirectoryType::Cimd => DirectoryKind::Cimd,
        };
        let (named, bot) = (self.key_directory.as_str(), self.name.clone());
        // Owners publish the whole URL as well.
        let origin = named.strip_suffix(WELL_KNOWN).unwrap_or(named);
        let identified = if kind == DirectoryKind::Directory { origin } else { named };
        let identifier = String::from_utf8(identifier(kind, identified.as_bytes())?).ok()?;
        let url = match (kind, identifier.split_once(' ')) {
            (DirectoryKind::Directory, Some((_, origin))) => format!("{origin}{WELL_KNOWN}"),
            _ => named.to_owned(),
        };
        Some(WantedDirectory { identifier, kind, url, bot })
    }

    fn directory_problem(&self) -> Option<FieldProblem> {
        if self.key_directory.is_empty() {
            return None;
        }
        if let Some(problem) = url("/key_directory", &self.key_directory) {
            return Some(problem);
        }
        let shown = self.key_directory.escape_debug();
        let problem = |message: String| Some(FieldProblem::new("/key_directory", message));
        match self.directory() {
            None => problem(format!("`{shown}` cannot be a key directory")).map(|problem| {
                problem.expected("such as `https://example.com`, or `key_directory_type`: `jwks_uri` or `cimd`")
            }),
            // Keys that came without TLS could be anyone's.
            Some(directory) if !directory.url.starts_with("https://") && !is_private(&directory.url) => {
                problem(format!("`{shown}` is without TLS"))
                    .map(|problem| problem.expected("https://, or a loopback or private address"))
            }
            Some(_) => None,
        }
    }

    pub(super) fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(self.directory_problem());
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
            let is_name = Name::vec_from_str(rest).is_ok();
            if rest.is_empty() || suffix.len() > 253 || !rest.bytes().all(label) || !is_name {
                let message = format!("`{}` is not a suffix of names", suffix.escape_debug());
                let problem = FieldProblem::new(format!("/rdns_suffixes/{index}"), message);
                problems.push(problem.expected("a domain that begins with a dot, such as `.search.example.com`"));
            }
        }
        if self.verifiable && self.rdns_suffixes.is_empty() {
            let problem = FieldProblem::new("/verifiable", "without `rdns_suffixes` nothing can be verified");
            problems.push(problem.expected("false, or suffixes"));
        }
        problems.extend(count("/ip_ranges", self.ip_ranges.len(), 8));
        for (index, list) in self.ip_ranges.iter().enumerate() {
            problems.extend(url(&format!("/ip_ranges/{index}"), list));
        }
        if !self.homepage.is_empty() {
            problems.extend(url("/homepage", &self.homepage));
        }
        problems
    }
}

/// Whether the host of a URL is an address of loopback or of a private network.
fn is_private(url: &str) -> bool {
    let host = url.parse::<Uri>().ok().and_then(|uri| uri.host().map(|host| host.trim_matches(['[', ']']).to_owned()));
    let address = host.and_then(|host| host.parse::<IpAddr>().ok());
    address.is_some_and(|address| outbound::PRIVATE.iter().any(|network| network.contains(&address)))
}

/// What stands for the domains of a bot in keys of verdicts.
pub(super) fn method(domains: &[String]) -> [u8; METHOD_BYTES] {
    let hash = content_hash(domains.join("\n").as_bytes());
    hash.first_chunk().copied().unwrap_or_default()
}
