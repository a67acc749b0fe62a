//! `asn-databases`: which network an address belongs to, and what kind of network that is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::{count, tag, text, weight, within};
use kit::{Entity, FieldProblem, Head, References, number};

use super::databases::url;

/// A table of address ranges and the networks they belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AsnDatabase {
    /// False: it is neither fetched nor consulted. Default true.
    pub enabled: bool,
    /// The address of the table; `{yyyy}` and `{MM}` are the year and the month of the fetch. Default
    /// `https://iptoasn.com/data/ip2asn-v4.tsv.gz`. Shown in full.
    pub url: String,
    /// Whether the table may be on a loopback address or a private one of IPv4. Default false.
    pub allow_private: bool,
    /// Whether the file may be compressed with gzip. Default true.
    pub gzip: bool,
    /// The format of the table. Default `iptoasn_tsv`.
    pub format: AsnFormat,
    /// The interval of fetches in seconds, 1 to 31536000. Default 86400.
    pub refresh_interval_seconds: u64,
    /// The timeout of a fetch in milliseconds, 1 to 3600000. Default 120000.
    pub timeout_millis: u64,
    /// The maximum number of ranges, 1 to 10000000. Default 1500000.
    pub max_entries: u64,
    /// The classes of networks, at most 64; the first that matches applies. Default cdn, vpn, hosting.
    pub categories: Vec<AsnCategory>,
}

/// The format of a table of networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AsnFormat {
    /// Lines of start, end, number, country and name separated by tabs.
    #[default]
    IptoasnTsv,
    /// A MaxMind database with the number and the owner of networks.
    Mmdb,
}

/// A class of networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AsnCategory {
    /// The name of the class: a-z 0-9 _ -, at most 64.
    pub name: String,
    /// What a match adds to the score, 0 to 100. Default 0.
    #[serde(default, with = "number")]
    #[schemars(with = "f64")]
    pub weight: f64,
    /// Always `monitor`: a class of networks only adds its weight.
    #[serde(default)]
    pub action: AsnAction,
    /// The tag of its signals; empty means `asn:<name>`.
    #[serde(default)]
    pub tag: String,
    /// Substrings of the name of the network's owner, in any case of letters, at most 1000; one must match.
    #[serde(default)]
    pub org_contains: Vec<String>,
    /// Numbers of networks, at most 10000.
    #[serde(default)]
    pub asns: Vec<u32>,
}

/// The action of a class of networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AsnAction {
    /// It adds to the score.
    #[default]
    Monitor,
}

const CDN: [&str; 11] = [
    "cloudflare",
    "fastly",
    "akamai",
    "edgecast",
    "stackpath",
    "bunny",
    "cdn77",
    "keycdn",
    "cachefly",
    "imperva",
    "incapsula",
];
const VPN: [&str; 11] = [
    "nordvpn",
    "expressvpn",
    "mullvad",
    "private internet access",
    "cyberghost",
    "surfshark",
    "protonvpn",
    "ipvanish",
    "m247",
    "datacamp",
    "vpn",
];
const HOSTING: [&str; 18] = [
    "amazon",
    "google",
    "microsoft",
    "ovh",
    "hetzner",
    "digitalocean",
    "linode",
    "vultr",
    "oracle",
    "alibaba",
    "tencent",
    "scaleway",
    "leaseweb",
    "contabo",
    "cloud",
    "vps",
    "hosting",
    "datacenter",
];
const CDN_NUMBERS: [u32; 4] = [13335, 54113, 20940, 212_238];
const VPN_NUMBERS: [u32; 1] = [9009];
const HOSTING_NUMBERS: [u32; 11] = [16509, 14618, 15169, 396_982, 8075, 16276, 24940, 14061, 20473, 63949, 12876];

// === impl AsnDatabase ===

impl Default for AsnDatabase {
    fn default() -> AsnDatabase {
        let category = |name: &str, weight, org_contains: &[&str], asns: &[u32]| AsnCategory {
            name: name.to_owned(),
            weight,
            action: AsnAction::Monitor,
            tag: String::new(),
            org_contains: org_contains.iter().map(|text| (*text).to_owned()).collect(),
            asns: asns.to_vec(),
        };
        AsnDatabase {
            enabled: true,
            url: "https://iptoasn.com/data/ip2asn-v4.tsv.gz".to_owned(),
            allow_private: false,
            gzip: true,
            format: AsnFormat::default(),
            refresh_interval_seconds: 86_400,
            timeout_millis: 120_000,
            max_entries: 1_500_000,
            categories: vec![
                category("cdn", 0.0, &CDN, &CDN_NUMBERS),
                category("vpn", 30.0, &VPN, &VPN_NUMBERS),
                category("hosting", 15.0, &HOSTING, &HOSTING_NUMBERS),
            ],
        }
    }
}

impl Entity for AsnDatabase {
    const COLLECTION: &'static str = "asn-databases";
    const KIND: &'static str = "asn-database";

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(url::check("/url", &self.url, self.enabled));
        problems.extend(within("/refresh_interval_seconds", self.refresh_interval_seconds, 1..=31_536_000));
        problems.extend(within("/timeout_millis", self.timeout_millis, 1..=3_600_000));
        problems.extend(within("/max_entries", self.max_entries, 1..=10_000_000));
        problems.extend(count("/categories", self.categories.len(), 64));
        for (index, category) in self.categories.iter().enumerate() {
            let place = format!("/categories/{index}");
            problems.extend(category.check().into_iter().map(|problem| problem.under(&place)));
            if self.categories.iter().take(index).any(|earlier| earlier.name == category.name) {
                let message = format!("the class `{}` is there twice", category.name.escape_debug());
                problems.push(FieldProblem::new(format!("{place}/name"), message).expected("a unique name"));
            }
        }
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}

// === impl AsnCategory ===

impl AsnCategory {
    /// The tag of its signals.
    #[must_use]
    pub fn tag(&self) -> String {
        if self.tag.is_empty() { format!("asn:{}", self.name) } else { self.tag.clone() }
    }

    /// Whether a network is of the class, by its number and the name of its owner in lower case.
    pub(super) fn has(&self, number: u32, owner: &str) -> bool {
        self.asns.contains(&number) || self.org_contains.iter().any(|part| owner.contains(&part.to_lowercase()))
    }

    fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let sane = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        if !(1..=64).contains(&self.name.len()) || !self.name.bytes().all(sane) {
            let message = format!("`{}` cannot be the name of a class", self.name.escape_debug());
            problems.push(FieldProblem::new("/name", message).expected("1 to 64 characters of a-z 0-9 _ -"));
        }
        problems.extend(weight("/weight", self.weight));
        problems.extend(tag("/tag", &self.tag));
        problems.extend(count("/org_contains", self.org_contains.len(), 1000));
        problems.extend(count("/asns", self.asns.len(), 10_000));
        for (index, part) in self.org_contains.iter().enumerate() {
            let place = format!("/org_contains/{index}");
            if part.trim().is_empty() {
                problems.push(FieldProblem::new(&place, "an empty text is in every name").expected("a part of a name"));
            }
            problems.extend(text(&place, part, 256));
        }
        problems
    }
}
