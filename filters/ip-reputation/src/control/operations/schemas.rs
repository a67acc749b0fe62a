//! What the operations answer, as JSON Schemas.

use kit::NamedSchema;
use serde_json::{Map, Value, json};

/// A call that cannot be carried out.
pub(super) const FAILED: NamedSchema = NamedSchema { name: "ReputationFailed", schema: failed };
/// An entry of the catalogue.
pub(super) const CATALOG_ENTRY: NamedSchema = NamedSchema { name: "FeedCatalogEntry", schema: catalog_entry };
/// A feed that is not saved.
pub(super) const FEED: NamedSchema = NamedSchema { name: "FeedTemplate", schema: feed };
/// A feed with its state.
pub(super) const FEED_STATUS: NamedSchema = NamedSchema { name: "FeedStatus", schema: feed_status };
/// A bouncer with its state.
pub(super) const BOUNCER_STATUS: NamedSchema = NamedSchema { name: "BouncerStatus", schema: bouncer_status };
/// A list that was fetched.
pub(super) const SNAPSHOT: NamedSchema = NamedSchema { name: "FeedSnapshot", schema: snapshot };
/// A zone of a DNS blocklist with its state.
pub(super) const ZONE_STATUS: NamedSchema = NamedSchema { name: "DnsblZoneStatus", schema: zone_status };
/// A database of networks with its state.
pub(super) const ASN_STATUS: NamedSchema = NamedSchema { name: "AsnStatus", schema: asn_status };
/// A database of places with its state.
pub(super) const GEO_STATUS: NamedSchema = NamedSchema { name: "GeoStatus", schema: geo_status };
/// A database that was fetched.
pub(super) const DATABASE_SNAPSHOT: NamedSchema = NamedSchema { name: "DatabaseSnapshot", schema: database_snapshot };
/// Where an address is.
pub(super) const LOCATION: NamedSchema = NamedSchema { name: "AddressLocation", schema: location };
/// What all sources have of an address.
pub(super) const VERDICT: NamedSchema = NamedSchema { name: "ReputationVerdict", schema: verdict };

fn text() -> Value {
    json!({ "type": "string" })
}

fn text_or_null(about: &str) -> Value {
    json!({ "type": ["string", "null"], "description": about })
}

fn count(about: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": about })
}

/// An object that has all of these fields, and may have the optional ones.
fn object(fields: Value, optional: Value) -> Value {
    let mut properties = fields.as_object().cloned().unwrap_or_default();
    let required: Vec<String> = properties.keys().cloned().collect();
    properties.extend(optional.as_object().cloned().unwrap_or_else(Map::new));
    json!({ "type": "object", "required": required, "properties": properties })
}

/// `done: true` with a field, or why not.
fn or_failed(field: &str, schema: Value) -> Value {
    let done = object(json!({ "done": { "const": true }, field: schema }), Value::Null);
    json!({ "anyOf": [done, FAILED.reference()] })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn failed() -> Value {
    object(json!({ "done": { "const": false }, "error": text() }), Value::Null)
}

pub(super) fn catalog() -> Value {
    object(json!({ "categories": list(text()), "entries": list(CATALOG_ENTRY.reference()) }), Value::Null)
}

fn catalog_entry() -> Value {
    let number = || json!({ "type": "number" });
    let flag = |about: &str| json!({ "type": "boolean", "description": about });
    object(
        json!({
            "id": text(), "name": text(), "description": text(), "category": text(), "url": text(), "format": text(),
            "options": { "type": "object" }, "tag": text(), "weight": number(), "action": { "enum": ["monitor", "block"] },
            "refresh_interval_seconds": { "type": "integer" }, "licence": text(), "homepage": text(),
            "requires_auth": flag("Its publisher wants credentials."), "auth_hint": text_or_null("The credentials."),
            "manual_url": flag("The URL has to be pasted."), "notes": text(),
        }),
        Value::Null,
    )
}

pub(super) fn status() -> Value {
    let done = object(
        json!({
            "feeds": list(FEED_STATUS.reference()), "svc_bouncers": list(BOUNCER_STATUS.reference()),
            "asn": list(ASN_STATUS.reference()), "geo": list(GEO_STATUS.reference()), "dnsbl": list(ZONE_STATUS.reference()),
        }),
        Value::Null,
    );
    json!({ "anyOf": [done, FAILED.reference()] })
}

fn feed_status() -> Value {
    let previous = object(
        json!({
            "entries": count("The entries of the list that a rollback restores."),
            "ranges": count("The ranges that they make."),
            "fetched_at": count("When it was fetched, in milliseconds since 1970."),
        }),
        Value::Null,
    );
    object(
        json!({
            "id": text(), "name": text(), "enabled": { "type": "boolean" }, "url": text(), "format": text(),
            "action": { "enum": ["monitor", "block"] }, "weight": { "type": "number" }, "tag": text(),
            "snapshot": SNAPSHOT.reference(), "previous": { "anyOf": [previous, { "type": "null" }] },
        }),
        Value::Null,
    )
}

fn bouncer_status() -> Value {
    let store = object(
        json!({
            "decisions": count("The decisions in force."),
            "initialized": { "type": "boolean", "description": "The service has sent all of its decisions, be it before a restart." },
            "last_error": text_or_null("Why the last call failed, or why the decisions are not used. Null if all is well."),
            "exact": count("Those on single addresses."),
            "ranges": count("Those on ranges of addresses."),
            "named": count("Those on countries and networks. They match with the help of the geolocation and ASN databases."),
            "rejected": count("Decisions of the last whole list that cannot be used."),
            "last_sync": { "type": ["integer", "null"], "description": "When the service was last heard, in milliseconds since 1970." },
        }),
        Value::Null,
    );
    let push = object(
        json!({
            "sent": count("Alerts that the service has taken since the control plane started, or since alerts were switched on."),
            "skipped_bans": count("Those of them that asked for no ban although the bouncer has `push_with_decision`, because the caller is private or on the allowlist."),
            "dropped": count("Alerts that were dropped since then: too many waited, or the service does not take them."),
            "last_push": { "type": ["integer", "null"], "description": "When the service last took alerts, in milliseconds since 1970." },
            "last_error": text_or_null("Why the last call failed. Null if it did not."),
        }),
        Value::Null,
    );
    object(
        json!({
            "id": text(), "name": text(), "enabled": { "type": "boolean" }, "lapi_url": text(),
            "action": { "enum": ["monitor", "block"] }, "weight": { "type": "number" }, "push_enabled": { "type": "boolean" },
            "pending_push": count("Alerts that wait to be sent, those that are on their way included."), "push": push, "store": store,
        }),
        Value::Null,
    )
}

fn zone_status() -> Value {
    let health = object(
        json!({
            "ok": { "type": "boolean", "description": "It was checked, and can be believed." },
            "error": text_or_null("Why it is not asked. Null if it is."),
            "checked_at": { "type": ["integer", "null"], "description": "When it was last checked, in milliseconds since 1970." },
        }),
        Value::Null,
    );
    object(
        json!({
            "zone": text(), "enabled": { "type": "boolean" }, "action": { "enum": ["monitor", "block"] }, "weight": { "type": "number" },
            "tag": text(), "health": health, "listed": count("Lookups of listed addresses since the zone is asked."),
            "unlisted": count("Lookups of addresses that are not listed."), "failed": count("Lookups without a usable answer."),
        }),
        Value::Null,
    )
}

fn asn_status() -> Value {
    object(
        json!({
            "id": text(), "name": text(), "enabled": { "type": "boolean" }, "url": text(),
            "format": { "enum": ["iptoasn_tsv", "mmdb"] }, "snapshot": DATABASE_SNAPSHOT.reference(),
        }),
        Value::Null,
    )
}

fn geo_status() -> Value {
    object(
        json!({
            "id": text(), "name": text(), "enabled": { "type": "boolean" }, "url": text(),
            "snapshot": DATABASE_SNAPSHOT.reference(),
        }),
        Value::Null,
    )
}

fn database_snapshot() -> Value {
    let mut schema = snapshot();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove("feed_id");
        properties.insert("database_id".to_owned(), text());
        properties.insert(
            "rejected".to_owned(),
            count("The entries that are not used: they are no ranges, others count in their place, or they have no network or country."),
        );
        properties.insert(
            "error".to_owned(),
            text_or_null("Why the last fetch failed: the database before is in force. Null if it did not."),
        );
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.iter_mut().filter(|name| **name == "feed_id").for_each(|name| *name = "database_id".into());
    }
    schema
}

pub(super) fn geo() -> Value {
    let source = object(json!({ "kind": { "enum": ["asn", "geo"] }, "id": text(), "name": text() }), Value::Null);
    let attribution = object(json!({ "text": text(), "url": text() }), Value::Null);
    let results = json!({
        "type": "object",
        "description": "By address; null for one that no database has.",
        "additionalProperties": { "anyOf": [LOCATION.reference(), { "type": "null" }] },
    });
    let done = object(
        json!({
            "done": { "const": true }, "sources": list(source), "attributions": list(attribution), "results": results,
        }),
        Value::Null,
    );
    json!({ "anyOf": [done, FAILED.reference()] })
}

fn location() -> Value {
    let degrees = |about: &str| json!({ "type": ["number", "null"], "description": about });
    object(
        json!({
            "asn": { "type": ["integer", "null"], "minimum": 0, "description": "The number of the network." },
            "country": text_or_null("Two letters."), "org": text_or_null("The owner of the network."),
            "country_name": text_or_null("In English."), "continent": text_or_null("Two letters."),
            "continent_name": text_or_null("In English."), "region": text_or_null("The code of a part of the country."),
            "region_name": text_or_null("In English."), "city": text_or_null("In English."),
            "postal_code": text_or_null("As the database has it."),
            "latitude": degrees("North is positive."), "longitude": degrees("East is positive."),
            "located": { "type": "boolean", "description": "False: the country is only where the network is registered." },
        }),
        Value::Null,
    )
}

pub(super) fn synced() -> Value {
    let result = object(
        json!({
            "id": text(), "name": text(), "ok": { "type": "boolean" }, "decisions": count("The decisions in force."),
            "error": text_or_null("Why it failed."),
        }),
        Value::Null,
    );
    or_failed("results", list(result))
}

fn snapshot() -> Value {
    let at = json!({ "type": ["integer", "null"], "description": "When it was fetched or found unchanged, in milliseconds since 1970." });
    object(
        json!({
            "feed_id": text(),
            "entries": count("The entries that are used."),
            "ranges": count("The ranges that they make."),
            "rejected": count("The entries that are not used: no address, or none of the Internet."),
            "error": text_or_null("Why the last fetch failed: the list before is in force. Null if it did not."),
            "fetched_at": at,
            "etag": text_or_null("What the publisher calls this version."),
            "last_modified": text_or_null("When the publisher changed it."),
            "not_modified": { "type": "boolean", "description": "The last fetch found the list unchanged." },
        }),
        json!({ "refreshing": { "type": "boolean", "description": "In answers of `_refresh`: the fetch goes on." } }),
    )
}

fn feed() -> Value {
    json!({ "type": "object", "description": "A document of `threat-feeds`; not saved." })
}

pub(super) fn template() -> Value {
    or_failed("feed", FEED.reference())
}

pub(super) fn refresh() -> Value {
    or_failed("snapshots", list(json!({ "anyOf": [SNAPSHOT.reference(), DATABASE_SNAPSHOT.reference()] })))
}

pub(super) fn rollback() -> Value {
    or_failed("snapshot", SNAPSHOT.reference())
}

pub(super) fn lookup() -> Value {
    or_failed("verdict", VERDICT.reference())
}

fn verdict() -> Value {
    let hit = object(
        json!({
            "kind": { "enum": ["feed", "bouncer", "asn", "dnsbl"] }, "source_id": text(), "source_name": text(), "tag": text(),
            "weight": { "type": "number" }, "blocking": { "type": "boolean" },
            "detail": { "type": "string", "description": "The range of the list, or of a decision, that has the address; or its network, or its country; or the answers of a DNS blocklist." },
        }),
        Value::Null,
    );
    object(
        json!({
            "ip": text(), "score": { "type": "number" }, "blocking": { "type": "boolean" }, "tags": list(text()), "hits": list(hit),
            "location": { "anyOf": [LOCATION.reference(), { "type": "null" }] },
        }),
        Value::Null,
    )
}
