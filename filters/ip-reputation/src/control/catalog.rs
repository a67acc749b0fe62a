//! The catalogue of feeds that others publish, from which feeds are created.

use kit::{Entity as _, Secret};
use serde_json::{Value, json};
use uuid::Uuid;

use super::lookup::number;
use super::{FeedFormat, FeedOptions, SourceAction, ThreatFeed};

/// An entry of the catalogue.
#[derive(Debug)]
pub(super) struct CatalogEntry {
    pub(super) id: &'static str,
    name: &'static str,
    description: &'static str,
    category: &'static str,
    /// Empty where its user pastes it.
    url: &'static str,
    format: FeedFormat,
    /// The option `path` of the format `json_path`.
    path: Option<&'static str>,
    tag: &'static str,
    weight: f64,
    action: SourceAction,
    refresh_hours: u64,
    licence: &'static str,
    homepage: &'static str,
    /// The credentials that it wants; empty for none.
    auth_hint: &'static str,
    notes: &'static str,
}

/// What entries are for.
pub(super) const CATEGORIES: [&str; 4] = ["anonymity", "blocklist", "cloud", "allowlist"];

/// The ids of the entries.
pub(super) const IDS: [&str; 14] = {
    let mut ids = [""; 14];
    let mut place = 0;
    while place < ids.len() {
        #[allow(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
        {
            ids[place] = ENTRIES[place].id;
        }
        place += 1;
    }
    ids
};

/// The entries.
pub(super) const ENTRIES: [CatalogEntry; 14] = [
    CatalogEntry {
        id: "tor-exit-nodes",
        name: "Tor exit nodes",
        description: "The addresses by which users of Tor reach the Internet.",
        category: "anonymity",
        url: "https://check.torproject.org/torbulkexitlist",
        format: FeedFormat::CidrLines,
        path: None,
        tag: "feed:tor-exit",
        weight: 40.0,
        action: SourceAction::Monitor,
        refresh_hours: 1,
        licence: "public",
        homepage: "https://www.torproject.org/",
        auth_hint: "",
        notes: "Most users of Tor are no attackers: leave it to the score.",
    },
    CatalogEntry {
        id: "firehol-level1",
        name: "FireHOL level 1",
        description: "Networks that attack or were hijacked, with the fewest false positives.",
        category: "blocklist",
        url: "https://raw.githubusercontent.com/firehol/blocklist-ipsets/master/firehol_level1.netset",
        format: FeedFormat::CidrLines,
        path: None,
        tag: "feed:firehol-l1",
        weight: 80.0,
        action: SourceAction::Block,
        refresh_hours: 6,
        licence: "per source",
        homepage: "https://iplists.firehol.org/",
        auth_hint: "",
        notes: "It lists reserved and private networks as well; those are left out and counted as rejected.",
    },
    CatalogEntry {
        id: "firehol-level2",
        name: "FireHOL level 2",
        description: "Addresses that attacked within about the last two days.",
        category: "blocklist",
        url: "https://raw.githubusercontent.com/firehol/blocklist-ipsets/master/firehol_level2.netset",
        format: FeedFormat::CidrLines,
        path: None,
        tag: "feed:firehol-l2",
        weight: 60.0,
        action: SourceAction::Monitor,
        refresh_hours: 6,
        licence: "per source",
        homepage: "https://iplists.firehol.org/",
        auth_hint: "",
        notes: "",
    },
    CatalogEntry {
        id: "firehol-level3",
        name: "FireHOL level 3",
        description: "Addresses that attacked within about the last month.",
        category: "blocklist",
        url: "https://raw.githubusercontent.com/firehol/blocklist-ipsets/master/firehol_level3.netset",
        format: FeedFormat::CidrLines,
        path: None,
        tag: "feed:firehol-l3",
        weight: 40.0,
        action: SourceAction::Monitor,
        refresh_hours: 6,
        licence: "per source",
        homepage: "https://iplists.firehol.org/",
        auth_hint: "",
        notes: "",
    },
    CatalogEntry {
        id: "emerging-threats-compromised",
        name: "Emerging Threats: compromised hosts",
        description: "Hosts that are known to be compromised.",
        category: "blocklist",
        url: "https://rules.emergingthreats.net/blockrules/compromised-ips.txt",
        format: FeedFormat::CidrLines,
        path: None,
        tag: "feed:et-compromised",
        weight: 70.0,
        action: SourceAction::Block,
        refresh_hours: 6,
        licence: "check for commercial use",
        homepage: "https://rules.emergingthreats.net/",
        auth_hint: "",
        notes: "",
    },
    CatalogEntry {
        id: "spamhaus-drop",
        name: "Spamhaus DROP",
        description: "Networks that were hijacked or belong to criminals.",
        category: "blocklist",
        url: "https://www.spamhaus.org/drop/drop.txt",
        format: FeedFormat::CidrLines,
        path: None,
        tag: "feed:spamhaus-drop",
        weight: 90.0,
        action: SourceAction::Block,
        refresh_hours: 12,
        licence: "non-commercial",
        homepage: "https://www.spamhaus.org/blocklists/do-not-route-or-peer/",
        auth_hint: "",
        notes: "The publisher asks for at most one fetch an hour.",
    },
    CatalogEntry {
        id: "abuseipdb-blacklist",
        name: "AbuseIPDB blacklist",
        description: "Addresses that many users have reported.",
        category: "blocklist",
        url: "https://api.abuseipdb.com/api/v2/blacklist",
        format: FeedFormat::JsonPath,
        path: Some("data[].ipAddress"),
        tag: "feed:abuseipdb",
        weight: 85.0,
        action: SourceAction::Block,
        refresh_hours: 12,
        licence: "account",
        homepage: "https://www.abuseipdb.com/",
        auth_hint: "An API key in the header `Key`.",
        notes: "A free account has few fetches a day.",
    },
    CatalogEntry {
        id: "aws-ranges-v4",
        name: "AWS, IPv4",
        description: "The networks of Amazon Web Services.",
        category: "cloud",
        url: "https://ip-ranges.amazonaws.com/ip-ranges.json",
        format: FeedFormat::JsonPath,
        path: Some("prefixes[].ip_prefix"),
        tag: "asn:aws",
        weight: 15.0,
        action: SourceAction::Monitor,
        refresh_hours: 24,
        licence: "public",
        homepage: "https://docs.aws.amazon.com/vpc/latest/userguide/aws-ip-ranges.html",
        auth_hint: "",
        notes: "",
    },
    CatalogEntry {
        id: "aws-ranges-v6",
        name: "AWS, IPv6",
        description: "The networks of Amazon Web Services.",
        category: "cloud",
        url: "https://ip-ranges.amazonaws.com/ip-ranges.json",
        format: FeedFormat::JsonPath,
        path: Some("ipv6_prefixes[].ipv6_prefix"),
        tag: "asn:aws",
        weight: 15.0,
        action: SourceAction::Monitor,
        refresh_hours: 24,
        licence: "public",
        homepage: "https://docs.aws.amazon.com/vpc/latest/userguide/aws-ip-ranges.html",
        auth_hint: "",
        notes: "",
    },
    CatalogEntry {
        id: "gcp-ranges-v4",
        name: "Google Cloud, IPv4",
        description: "The networks of Google Cloud.",
        category: "cloud",
        url: "https://www.gstatic.com/ipranges/cloud.json",
        format: FeedFormat::JsonPath,
        path: Some("prefixes[].ipv4Prefix"),
        tag: "asn:gcp",
        weight: 15.0,
        action: SourceAction::Monitor,
        refresh_hours: 24,
        licence: "public",
        homepage: "https://cloud.google.com/vpc/docs/access-apis-external-ip",
        auth_hint: "",
        notes: "",
    },
    CatalogEntry {
        id: "digitalocean-ranges",
        name: "DigitalOcean",
        description: "The networks of DigitalOcean.",
        category: "cloud",
        url: "https://www.digitalocean.com/geo/google.csv",
        format: FeedFormat::Csv,
        path: None,
        tag: "asn:digitalocean",
        weight: 20.0,
        action: SourceAction::Monitor,
        refresh_hours: 24,
        licence: "public",
        homepage: "https://docs.digitalocean.com/platform/",
        auth_hint: "",
        notes: "",
    },
    CatalogEntry {
        id: "cloudflare-v4",
        name: "Cloudflare, IPv4",
        description: "The networks of Cloudflare's proxies.",
        category: "allowlist",
        url: "https://www.cloudflare.com/ips-v4",
        format: FeedFormat::CidrLines,
        path: None,
        tag: "infra:cloudflare",
        weight: 0.0,
        action: SourceAction::Monitor,
        refresh_hours: 24,
        licence: "public",
        homepage: "https://www.cloudflare.com/ips/",
        auth_hint: "",
        notes: "It weighs nothing; an answer of `_lookup` shows it.",
    },
    CatalogEntry {
        id: "cloudflare-v6",
        name: "Cloudflare, IPv6",
        description: "The networks of Cloudflare's proxies.",
        category: "allowlist",
        url: "https://www.cloudflare.com/ips-v6",
        format: FeedFormat::CidrLines,
        path: None,
        tag: "infra:cloudflare",
        weight: 0.0,
        action: SourceAction::Monitor,
        refresh_hours: 24,
        licence: "public",
        homepage: "https://www.cloudflare.com/ips/",
        auth_hint: "",
        notes: "It weighs nothing; an answer of `_lookup` shows it.",
    },
    CatalogEntry {
        id: "azure-ranges",
        name: "Azure",
        description: "The networks of Microsoft Azure.",
        category: "cloud",
        url: "",
        format: FeedFormat::JsonPath,
        path: Some("values[].properties.addressPrefixes[]"),
        tag: "asn:azure",
        weight: 15.0,
        action: SourceAction::Monitor,
        refresh_hours: 24,
        licence: "public",
        homepage: "https://www.microsoft.com/en-us/download/details.aspx?id=56519",
        auth_hint: "",
        notes: "The address of the file changes with each version: paste it from the homepage.",
    },
];

// === impl CatalogEntry ===

impl CatalogEntry {
    /// The entry with this id.
    pub(super) fn by_id(id: &str) -> Option<&'static CatalogEntry> {
        static ALL: [CatalogEntry; 14] = ENTRIES;
        ALL.iter().find(|entry| entry.id == id)
    }

    /// The entry as the catalogue shows it.
    pub(super) fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "category": self.category,
            "url": self.url,
            "format": self.format,
            "options": self.options(),
            "tag": self.tag,
            "weight": number(self.weight),
            "action": self.action,
            "refresh_interval_seconds": self.refresh_hours * 3600,
            "licence": self.licence,
            "homepage": self.homepage,
            "requires_auth": !self.auth_hint.is_empty(),
            "auth_hint": if self.auth_hint.is_empty() { Value::Null } else { self.auth_hint.into() },
            "manual_url": self.url.is_empty(),
            "notes": self.notes,
        })
    }

    /// A feed that can be saved as it is. It is not enabled where something is missing that its owner has to add.
    pub(super) fn feed(&self) -> Value {
        let body = ThreatFeed {
            enabled: self.auth_hint.is_empty() && !self.url.is_empty(),
            url: self.url.to_owned(),
            headers: match self.auth_hint.is_empty() {
                true => kit::Headers::new(),
                false => [("Key".to_owned(), Secret::default())].into(),
            },
            format: self.format,
            options: self.options(),
            refresh_interval_seconds: self.refresh_hours * 3600,
            weight: self.weight,
            action: self.action,
            tag: self.tag.to_owned(),
            catalog_ref: Some(self.id.to_owned()),
            ..ThreatFeed::default()
        };
        let mut feed = json!({
            "id": format!("{}_{}", ThreatFeed::KIND, Uuid::new_v4()),
            "name": self.name,
            "description": self.description,
            "tags": [],
            "metadata": {},
        });
        let fields = serde_json::to_value(body).unwrap_or_default();
        if let (Some(feed), Value::Object(fields)) = (feed.as_object_mut(), fields) {
            feed.extend(fields);
            feed.insert("kind".to_owned(), ThreatFeed::KIND.into());
        }
        feed
    }

    fn options(&self) -> FeedOptions {
        let column = (self.format == FeedFormat::Csv).then_some(0);
        FeedOptions { column, path: self.path.map(str::to_owned), ..FeedOptions::default() }
    }
}
