//! The console's `reputation/…`: the catalogue, the state of feeds, and what operators do with them.
//!
//! A call that asks for something impossible is answered with 200 and `done: false`.

mod audit;
mod databases;
mod schemas;

use std::net::IpAddr;

use kit::{
    BodyKind, BodyRefusal, Entity as _, Item, NamedSchema, Operation, OperationAnswer, OperationAudit, OperationBody,
    OperationContext, OperationGroup, OperationMethod, View,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::catalog::{CATEGORIES, CatalogEntry, ENTRIES};
use super::databases::DatabaseKind;
use super::dnsbl;
use super::lookup::{number, verdict};
use super::runtime::{Ordered, Reputation, Want};
use super::{DnsblZone, MAX_BOUNCERS, MAX_FEEDS, SvcBouncer, ThreatFeed};
use databases::GeoBody;
use schemas::{
    ASN_STATUS, BOUNCER_STATUS, CATALOG_ENTRY, DATABASE_SNAPSHOT, FAILED, FEED, FEED_STATUS, GEO_STATUS, LOCATION,
    SNAPSHOT, VERDICT, ZONE_STATUS,
};

/// The bytes of a body, at most.
const MAX_BODY: usize = 64 * 1024;
const BODY_TEXT: &str = "A JSON object, at most 64 KiB.";
const BUSY: &str = "other feeds are being refreshed";
const GROUP: OperationGroup = OperationGroup {
    name: "reputation",
    about: "Threat feeds and decision services: the catalogue, their state, and lookups. Calls that fail are answered with 200 too, `done` being false.",
};
const REFUSAL: BodyRefusal = BodyRefusal { as_done: true, schema: FAILED, conflict: None, answer: failed };

/// The operations of the plugin.
pub(super) const OPERATIONS: &[Operation] = &[
    get::<CatalogBody>(
        "/reputation/_catalog",
        "reputationCatalog",
        "Show the catalogue of feeds",
        schemas::catalog,
        &[CATALOG_ENTRY],
    ),
    get::<StatusBody>(
        "/reputation/_status",
        "reputationStatus",
        "Show every feed, bouncer, database and DNS blocklist with its state",
        schemas::status,
        &[FEED_STATUS, SNAPSHOT, BOUNCER_STATUS, ASN_STATUS, GEO_STATUS, DATABASE_SNAPSHOT, ZONE_STATUS],
    ),
    Operation {
        path: "/reputation/_template",
        id: "reputationTemplate",
        summary: "Build a feed from an entry of the catalogue",
        description: "Nothing is saved. A feed that needs credentials or a URL is not enabled.",
        body: BodyKind::of::<TemplateBody>(),
        example: || json!({ "entry": "tor-exit-nodes" }),
        answer_text: "The feed, or why there is none.",
        answer: schemas::template,
        schemas: &[FEED],
        ..POST
    },
    Operation {
        path: "/reputation/_refresh",
        id: "reputationRefresh",
        summary: "Fetch feeds or databases now",
        description: "The answer comes when they are fetched and published, or after 25 seconds; what takes longer goes on. A fetch that \
                      fails keeps the list before and is shown in `error` of the snapshot.",
        body: BodyKind::of::<RefreshBody>(),
        example: || json!({ "feed": "threat-feed_tor" }),
        answer_text: "The snapshots after it, or why nothing was fetched.",
        answer: schemas::refresh,
        schemas: &[SNAPSHOT, DATABASE_SNAPSHOT],
        audit: Some(OperationAudit { action: "feed-refresh", of: audit::feed, detail: audit::refreshed }),
        ..POST
    },
    Operation {
        path: "/reputation/_rollback",
        id: "reputationRollback",
        summary: "Restore the previous list of a feed",
        description: "The list that was in force is not taken again until its publisher changes it. There is one previous list at most.",
        body: BodyKind::of::<RollbackBody>(),
        example: || json!({ "feed": "threat-feed_tor" }),
        answer_text: "The snapshot that is restored, or why none is.",
        answer: schemas::rollback,
        schemas: &[SNAPSHOT],
        busy: "other feeds are being rolled back",
        at_once: true,
        audit: Some(OperationAudit { action: "feed-rollback", of: audit::feed, detail: audit::rolled_back }),
        ..POST
    },
    Operation {
        path: "/reputation/_crowd_sync",
        id: "reputationCrowdSync",
        summary: "Ask decision services for all of their decisions now",
        description: "The answer comes when gateways are sent what has changed, or after 25 seconds. A list that is much shorter than what is in \
                      force is taken when the next one says the same.",
        body: BodyKind::of::<SyncBody>(),
        example: || json!({ "bouncer": "svc-bouncer_crowd" }),
        answer_text: "The outcome of each bouncer, or why there is none.",
        answer: schemas::synced,
        schemas: &[],
        busy: "other bouncers are being synced",
        audit: Some(OperationAudit { action: "bouncer-sync", of: audit::bouncer, detail: audit::synced }),
        ..POST
    },
    Operation {
        path: "/reputation/_lookup",
        id: "reputationLookup",
        summary: "Look an address up in every enabled feed, bouncer, database and DNS blocklist",
        body: BodyKind::of::<LookupBody>(),
        example: || json!({ "ip": "192.0.2.7" }),
        answer_text: "The verdict, or why there is none.",
        answer: schemas::lookup,
        schemas: &[VERDICT, LOCATION],
        busy: "other addresses are being looked up",
        at_once: true,
        ..POST
    },
    Operation {
        path: "/reputation/_geo",
        id: "reputationGeo",
        summary: "Show where addresses are",
        description: "Location, network and AS number of up to 500 addresses by the enabled databases, and what the licences of the \
                      databases require to be shown with them.",
        body: BodyKind::of::<GeoBody>(),
        example: || json!({ "ips": ["192.0.2.7"] }),
        answer_text: "What is known of each address, or why there is nothing.",
        answer: schemas::geo,
        schemas: &[LOCATION],
        busy: "other addresses are being looked up",
        at_once: true,
        ..POST
    },
];

/// What the operations with a body share.
const POST: Operation = Operation {
    path: "",
    method: OperationMethod::Post,
    id: "",
    group: &GROUP,
    summary: "",
    description: "",
    body: BodyKind::of::<CatalogBody>(),
    body_text: BODY_TEXT,
    max_body: MAX_BODY,
    example: || json!({}),
    answer_text: "",
    answer: schemas::catalog,
    schemas: &[],
    refusal: Some(REFUSAL),
    busy: BUSY,
    at_once: false,
    audit: None,
};

const fn get<T: OperationBody>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    answer: fn() -> Value,
    schemas: &'static [NamedSchema],
) -> Operation {
    let body = BodyKind::of::<T>();
    let answer_text = "All of it.";
    Operation {
        path,
        method: OperationMethod::Get,
        id,
        summary,
        body,
        answer_text,
        answer,
        schemas,
        busy: "others are reading",
        ..POST
    }
}

/// Nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CatalogBody {}

/// Nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusBody {}

/// An entry of the catalogue.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TemplateBody {
    /// Its id.
    entry: String,
}

/// What is fetched; without a field, every enabled feed.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
struct RefreshBody {
    /// The id of a feed.
    feed: Option<String>,
    /// Take the list although it was rolled back, or has little to do with the one before; or the databases although they have less
    /// than half of what they had. With `feed`, `asn` or `geo`. Default false.
    force: bool,
    /// The enabled ASN databases. Not with `feed`. Default false.
    asn: bool,
    /// The enabled geolocation databases. Not with `feed`. Default false.
    geo: bool,
}

/// What is synced; without a field, every enabled bouncer.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
struct SyncBody {
    /// The id of a bouncer.
    bouncer: Option<String>,
}

/// A feed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RollbackBody {
    /// Its id.
    feed: String,
}

/// An address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LookupBody {
    /// IPv4 or IPv6.
    ip: String,
}

fn failed(error: &str) -> Value {
    json!({ "done": false, "error": error })
}

fn not_done(error: impl AsRef<str>) -> OperationAnswer {
    OperationAnswer::Done(failed(error.as_ref()))
}

/// Carries out orders where the gatherer of the same control plane can be reached.
fn with_runtime(context: &OperationContext<'_>, work: impl FnOnce(&Reputation) -> Value) -> OperationAnswer {
    match context.runtime::<Reputation>() {
        Some(runtime) => OperationAnswer::Done(work(&runtime)),
        None => not_done("this control plane gathers no feeds"),
    }
}

fn feed_of<'a>(context: &OperationContext<'a>, id: &str) -> Result<&'a Item<ThreatFeed>, Value> {
    let feed = View::new(context.entities).get::<ThreatFeed>(id);
    feed.ok_or_else(|| failed(&format!("there is no feed `{}`", id.escape_debug())))
}

impl OperationBody for CatalogBody {
    const SCHEMA: &'static str = "CatalogBody";

    fn run(self, _context: &OperationContext<'_>) -> OperationAnswer {
        let entries: Vec<Value> = ENTRIES.iter().map(CatalogEntry::shown).collect();
        OperationAnswer::Done(json!({ "categories": CATEGORIES, "entries": entries }))
    }
}

impl OperationBody for StatusBody {
    const SCHEMA: &'static str = "StatusBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let feeds = |runtime: &Reputation| {
            let view = View::new(context.entities);
            view.all::<ThreatFeed>().map(|feed| status(feed, runtime)).collect::<Vec<_>>()
        };
        let bouncers = |runtime: &Reputation| {
            let view = View::new(context.entities);
            view.all::<SvcBouncer>().map(|bouncer| bouncer_status(bouncer, runtime)).collect::<Vec<_>>()
        };
        with_runtime(context, |runtime| {
            let (feeds, bouncers) = (feeds(runtime), bouncers(runtime));
            let view = View::new(context.entities);
            let (asn, geo) = (databases::networks(&view, runtime), databases::places(&view, runtime));
            let zones = zones_status(context, runtime);
            json!({ "feeds": feeds, "svc_bouncers": bouncers, "asn": asn, "geo": geo, "dnsbl": zones })
        })
    }
}

fn zones_status(context: &OperationContext<'_>, runtime: &Reputation) -> Vec<Value> {
    let shown = runtime.blocklists.shown();
    let zones = dnsbl::settings(context.entities).zones;
    let status = |zone: &DnsblZone| {
        let state = shown.zones.get(&zone.name()).cloned().unwrap_or_default();
        json!({
            "zone": zone.name(),
            "enabled": zone.enabled,
            "action": zone.action,
            "weight": number(zone.weight),
            "tag": zone.tag(),
            "health": {
                "ok": zone.enabled && state.checked_at.is_some() && state.error.is_none(),
                "error": state.error,
                "checked_at": state.checked_at,
            },
            "listed": state.listed,
            "unlisted": state.unlisted,
            "failed": state.failed,
        })
    };
    zones.iter().map(status).collect()
}

fn bouncer_status(bouncer: &Item<SvcBouncer>, runtime: &Reputation) -> Value {
    let (shown, push) = (runtime.bouncer(&bouncer.head.id), runtime.push(&bouncer.head.id));
    json!({
        "id": bouncer.head.id,
        "name": bouncer.head.name,
        "enabled": bouncer.enabled,
        "lapi_url": bouncer.lapi_url,
        "action": bouncer.action,
        "weight": number(bouncer.weight),
        "push_enabled": bouncer.push_enabled,
        "pending_push": push.pending,
        "push": {
            "sent": push.sent,
            "skipped_bans": push.skipped_bans,
            "dropped": push.dropped,
            "last_push": push.last_push,
            "last_error": push.last_error,
        },
        "store": {
            "decisions": shown.decisions,
            "initialized": shown.initialized,
            "last_error": shown.last_error,
            "exact": shown.exact,
            "ranges": shown.ranges,
            "named": shown.named,
            "rejected": shown.rejected,
            "last_sync": shown.last_sync,
        },
    })
}

fn status(feed: &Item<ThreatFeed>, runtime: &Reputation) -> Value {
    let state = runtime.feed(&feed.head.id);
    json!({
        "id": feed.head.id,
        "name": feed.head.name,
        "enabled": feed.enabled,
        "url": feed.url,
        "format": feed.format,
        "action": feed.action,
        "weight": number(feed.weight),
        "tag": feed.tag(&feed.head),
        "snapshot": state.snapshot(&feed.head.id),
        "previous": state.previous(),
    })
}

impl OperationBody for TemplateBody {
    const SCHEMA: &'static str = "TemplateBody";

    fn run(self, _context: &OperationContext<'_>) -> OperationAnswer {
        match CatalogEntry::by_id(&self.entry) {
            Some(entry) => OperationAnswer::Done(json!({ "done": true, "feed": entry.feed() })),
            None => not_done("unknown entry"),
        }
    }
}

impl OperationBody for RefreshBody {
    const SCHEMA: &'static str = "RefreshBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let kinds = [(self.asn, DatabaseKind::Asn), (self.geo, DatabaseKind::Geo)];
        let kinds: Vec<DatabaseKind> = kinds.into_iter().filter_map(|(asked, kind)| asked.then_some(kind)).collect();
        if !kinds.is_empty() {
            return match self.feed {
                Some(_) => not_done("either `feed`, or `asn` and `geo`"),
                None => databases::refresh(context, &kinds, self.force),
            };
        }
        if self.force && self.feed.is_none() {
            return not_done("`force` is for one feed, or for databases");
        }
        let ids: Vec<String> = match &self.feed {
            Some(id) => match feed_of(context, id) {
                Ok(feed) if feed.is_enabled() => vec![id.clone()],
                Ok(_) => return not_done(format!("the feed `{id}` is disabled")),
                Err(answer) => return OperationAnswer::Done(answer),
            },
            None => {
                let view = View::new(context.entities);
                let enabled = view.all::<ThreatFeed>().filter(|feed| feed.enabled).take(MAX_FEEDS);
                enabled.map(|feed| feed.head.id.clone()).collect()
            }
        };
        with_runtime(context, |runtime| {
            let want = |id: &String| Want::Refresh { feed: id.clone(), force: self.force };
            let outcomes = runtime.order(ids.iter().map(want).collect());
            if let (Some(_), Some(Ordered::Refused(why))) = (&self.feed, outcomes.first()) {
                return failed(why);
            }
            let snapshots = ids.iter().zip(&outcomes).map(|(id, outcome)| {
                let mut snapshot = runtime.feed(id).snapshot(id);
                if let Some(fields) = snapshot.as_object_mut() {
                    fields.insert("refreshing".to_owned(), (*outcome == Ordered::Begun).into());
                    if let Ordered::Refused(why) = outcome {
                        fields.insert("error".to_owned(), why.clone().into());
                    }
                }
                snapshot
            });
            json!({ "done": true, "snapshots": snapshots.collect::<Vec<_>>() })
        })
    }
}

impl OperationBody for SyncBody {
    const SCHEMA: &'static str = "CrowdSyncBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let view = View::new(context.entities);
        let bouncers: Vec<&Item<SvcBouncer>> = match &self.bouncer {
            Some(id) => match view.get::<SvcBouncer>(id) {
                Some(bouncer) if bouncer.is_enabled() => vec![bouncer],
                Some(_) => return not_done(format!("the bouncer `{id}` is disabled")),
                None => return not_done(format!("there is no bouncer `{}`", id.escape_debug())),
            },
            None => view.all::<SvcBouncer>().filter(|bouncer| bouncer.enabled).take(MAX_BOUNCERS).collect(),
        };
        with_runtime(context, |runtime| {
            let want = |bouncer: &&Item<SvcBouncer>| Want::Sync { bouncer: bouncer.head.id.clone() };
            let outcomes = runtime.order(bouncers.iter().map(want).collect());
            let results = bouncers.iter().zip(outcomes).map(|(bouncer, outcome)| {
                let shown = runtime.bouncer(&bouncer.head.id);
                let error = match outcome {
                    Ordered::Done => shown.last_error.clone(),
                    Ordered::Begun => Some(audit::LATER.to_owned()),
                    Ordered::Refused(why) => Some(why),
                };
                json!({
                    "id": bouncer.head.id, "name": bouncer.head.name, "ok": error.is_none(), "decisions": shown.decisions, "error": error,
                })
            });
            json!({ "done": true, "results": results.collect::<Vec<_>>() })
        })
    }
}

impl OperationBody for RollbackBody {
    const SCHEMA: &'static str = "RollbackBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        if let Err(answer) = feed_of(context, &self.feed) {
            return OperationAnswer::Done(answer);
        }
        with_runtime(context, |runtime| match runtime.order(vec![Want::RollBack { feed: self.feed.clone() }]).first() {
            Some(Ordered::Done) => json!({ "done": true, "snapshot": runtime.feed(&self.feed).snapshot(&self.feed) }),
            Some(Ordered::Refused(why)) => failed(why),
            _ => failed(audit::LATER),
        })
    }
}

impl OperationBody for LookupBody {
    const SCHEMA: &'static str = "LookupBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let Ok(address) = self.ip.trim().parse::<IpAddr>() else {
            return not_done(format!("`{}` is not an address", self.ip.escape_debug()));
        };
        let settings = dnsbl::settings(context.entities);
        let verdict = |runtime: &Reputation| verdict(address, &View::new(context.entities), runtime, &settings);
        with_runtime(context, |runtime| json!({ "done": true, "verdict": verdict(runtime) }))
    }
}
