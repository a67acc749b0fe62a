//! `geo-databases`: where an address is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::{Headers, headers, text, within};
use kit::{Entity, FieldProblem, Head, References, Secret};

use super::databases::url;

/// A database of locations in the MaxMind format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GeoDatabase {
    /// False: it is neither fetched nor consulted. Default true.
    pub enabled: bool,
    /// Its address; `{yyyy}` and `{MM}` are the year and the month of the fetch. Default
    /// `https://download.db-ip.com/free/dbip-country-lite-{yyyy}-{MM}.mmdb.gz`. Shown in full.
    pub url: String,
    /// The user of the fetch (HTTP basic); empty for none.
    pub username: String,
    /// The password of the fetch, a secret.
    pub password: Secret,
    /// Headers of the fetch; their values are secrets.
    pub headers: Headers,
    /// Whether the database may be on a loopback address or a private one of IPv4. Default false.
    pub allow_private: bool,
    /// The interval of fetches in seconds, 1 to 31536000. Default 86400.
    pub refresh_interval_seconds: u64,
    /// The timeout of a fetch in milliseconds, 1 to 3600000. Default 300000.
    pub timeout_millis: u64,
    /// The size of the unpacked database in MiB, 1 to 4096. Default 512.
    pub max_size_mb: u64,
    /// The attribution that its licence requires, at most 1024 bytes. Default `IP Geolocation by DB-IP`.
    pub attribution: String,
    /// The link of the attribution; empty for none. Default `https://db-ip.com`.
    pub attribution_url: String,
}

// === impl GeoDatabase ===

impl Default for GeoDatabase {
    fn default() -> GeoDatabase {
        GeoDatabase {
            enabled: true,
            url: "https://download.db-ip.com/free/dbip-country-lite-{yyyy}-{MM}.mmdb.gz".to_owned(),
            username: String::new(),
            password: Secret::default(),
            headers: Headers::new(),
            allow_private: false,
            refresh_interval_seconds: 86_400,
            timeout_millis: 300_000,
            max_size_mb: 512,
            attribution: "IP Geolocation by DB-IP".to_owned(),
            attribution_url: "https://db-ip.com".to_owned(),
        }
    }
}

impl Entity for GeoDatabase {
    const COLLECTION: &'static str = "geo-databases";
    const KIND: &'static str = "geo-database";

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(url::check("/url", &self.url, self.enabled));
        if self.username.is_empty() && self.password.is_set() {
            problems.push(FieldProblem::new("/username", "a password without a user").expected("the user"));
        }
        if self.username.contains(':') || self.username.chars().any(char::is_control) {
            let problem =
                FieldProblem::new("/username", "a user's name cannot have a colon or control characters in it");
            problems.push(problem.expected("the user of HTTP basic authentication"));
        }
        problems.extend(text("/username", &self.username, 256));
        problems.extend(headers("/headers", &self.headers));
        problems.extend(within("/refresh_interval_seconds", self.refresh_interval_seconds, 1..=31_536_000));
        problems.extend(within("/timeout_millis", self.timeout_millis, 1..=3_600_000));
        problems.extend(within("/max_size_mb", self.max_size_mb, 1..=4096));
        problems.extend(text("/attribution", &self.attribution, 1024));
        if !self.attribution_url.is_empty() {
            problems.extend(kit::checks::url("/attribution_url", &self.attribution_url));
        }
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}
