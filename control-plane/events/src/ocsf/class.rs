//! The classes of events, and what all of them have.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use crate::event::timestamp_millis;

/// The version of the schema, the first that has the method PATCH. Events of a version are valid in the later ones of the same major
/// version.
pub(super) const VERSION: &str = "1.6.0";

/// A class of events, with the profiles that its events have.
pub(super) struct Class {
    uid: u64,
    name: &'static str,
    category: (u64, &'static str),
    profiles: &'static [&'static str],
}

pub(super) const BASE: Class =
    Class { uid: 0, name: "Base Event", category: (0, "Uncategorized"), profiles: &["host"] };
pub(super) const FINDING: Class =
    Class { uid: 2004, name: "Detection Finding", category: (2, "Findings"), profiles: &["security_control", "host"] };
pub(super) const AUTHENTICATION: Class =
    Class { uid: 3002, name: "Authentication", category: (3, "Identity & Access Management"), profiles: &[] };
pub(super) const ENTITY: Class =
    Class { uid: 3004, name: "Entity Management", category: (3, "Identity & Access Management"), profiles: &[] };
pub(super) const HTTP: Class = Class {
    uid: 4002,
    name: "HTTP Activity",
    category: (4, "Network Activity"),
    profiles: &["security_control", "host"],
};

/// A number of an enumeration with its name. That of [`OTHER`] is the event's own.
pub(super) type Named<'a> = (u64, &'a str);

pub(super) const OTHER: u64 = 99;

pub(super) const UNKNOWN: Named<'_> = (0, "Unknown");
pub(super) const SUCCESS: Named<'_> = (1, "Success");
pub(super) const FAILURE: Named<'_> = (2, "Failure");

/// An event as it is made.
pub(super) struct Event(Map<String, Value>);

impl Event {
    /// An event of a class, with what it has in common with all others.
    pub(super) fn new(class: &Class, activity: Named<'_>, fields: &mut Fields, now_millis: u64) -> Event {
        let time = fields.get(&["@timestamp"]).and_then(timestamp_millis).unwrap_or(now_millis);
        let (category, category_name) = class.category;
        let (activity, activity_name) = activity;
        let mut event = Event(Map::new());
        event.put("class_uid", class.uid);
        event.put("class_name", class.name);
        event.put("category_uid", category);
        event.put("category_name", category_name);
        event.put("activity_id", activity);
        event.put("activity_name", activity_name);
        event.put("type_uid", class.uid * 100 + activity);
        event.put("type_name", format!("{}: {activity_name}", class.name));
        event.put("time", time);
        event.put("metadata", metadata(class, fields, now_millis));
        if class.profiles.contains(&"host") {
            let node = fields.take_text(&["route", "node"]);
            event.put("device", node.map(|node| json!({ "name": node, "type_id": OTHER, "type": "Gateway" })));
        }
        event
    }

    /// Sets an attribute; null is none.
    pub(super) fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets an attribute of an enumeration and its name: `status` and `status_id`.
    pub(super) fn put_named(&mut self, name: &str, (id, caption): Named<'_>) {
        self.put(&format!("{name}_id"), id);
        self.put(name, caption);
    }

    /// Sets the severity, 1 to 4, as events of gateways have it. What is above counts as 4.
    pub(super) fn put_severity(&mut self, severity: u64) {
        let severity = match severity {
            0 => UNKNOWN,
            1 => (1, "Informational"),
            2 => (2, "Low"),
            3 => (3, "Medium"),
            4.. => (4, "High"),
        };
        self.put_named("severity", severity);
    }

    /// Takes the severity of an event of a gateway over.
    pub(super) fn take_severity(&mut self, fields: &mut Fields) {
        let above = fields.get(&["event", "severity"]).and_then(Value::as_u64);
        let known = fields.take(&["event", "severity"], |value| value.as_u64().filter(|severity| *severity <= 4));
        self.put_severity(known.or(above).unwrap_or(1));
    }

    /// Sets the endpoint of the caller and the observable for it, which is named `at`.
    pub(super) fn put_source(&mut self, source: Option<Value>, at: &str) {
        let address = source.as_ref().and_then(|source| source.get("ip")).cloned();
        let observable = |address| json!([{ "name": at, "type_id": 2, "type": "IP Address", "value": address }]);
        self.put("observables", address.map(observable));
        match at.split_once('[') {
            Some((list, _)) => self.put(list, source.map(|source| json!([{ "src_endpoint": source }]))),
            None => self.put("src_endpoint", source),
        }
    }

    /// The whole event; what is left of `fields` is unmapped.
    pub(super) fn done(mut self, fields: Fields) -> Map<String, Value> {
        self.put("unmapped", fields.rest());
        super::fields::prune(&mut self.0);
        self.0
    }
}

fn metadata(class: &Class, fields: &mut Fields, now_millis: u64) -> Value {
    let feature = fields.take_text(&["event", "module"]).map(|module| json!({ "name": module }));
    let tags = fields.take(&["threat", "tags"], |tags| {
        let tags = tags.as_array().filter(|tags| tags.iter().all(Value::is_string))?;
        Some(tags.clone())
    });
    json!({
        "version": VERSION,
        "product": {
            "name": "Palisade", "vendor_name": "Palisade", "version": env!("CARGO_PKG_VERSION"), "feature": feature,
        },
        "profiles": class.profiles,
        "uid": fields.take_text(&["@id"]),
        "log_name": fields.take_text(&["@type"]),
        "event_code": fields.take_text(&["action"]).or_else(|| fields.take_text(&["event", "category"])),
        "correlation_uid": fields.take_text(&["incident", "id"]),
        "labels": tags,
        "original_time": fields.take_text(&["@timestamp"]),
        "logged_time": now_millis,
    })
}
