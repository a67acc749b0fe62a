//! Events in the Open Cybersecurity Schema Framework (OCSF, <https://schema.ocsf.io>). Which event becomes which class stands in
//! docs/control-plane.md, and why in RATIONALE.md. What has no place in a class is in `unmapped`: nothing is lost.

mod audit;
mod class;
mod fields;
mod request;

use serde_json::{Map, Value};

use class::{BASE, Event, OTHER};
use fields::Fields;

/// An event as OCSF has it, made at `now_millis`. What is no object of JSON is the raw data of a base event.
pub(super) fn map(line: &[u8], now_millis: u64) -> Map<String, Value> {
    let Ok(event) = serde_json::from_slice::<Map<String, Value>>(line) else {
        let mut fields = Fields::new(Map::new());
        let mut event = Event::new(&BASE, (0, "Unknown"), &mut fields, now_millis);
        event.put_severity(0);
        event.put("raw_data", String::from_utf8_lossy(line));
        return event.done(fields);
    };
    let fields = Fields::new(event);
    let kind = fields.text(&["@type"]).unwrap_or_default().to_owned();
    match kind.as_str() {
        "SvcWafSecurityAudit" => audit::audit(fields, now_millis),
        _ if request::has_request(&fields) => request::http(fields, now_millis),
        _ if fields.text(&["event", "category"]) == Some("dependency") => base(fields, now_millis),
        "SvcSecurityEvent" => request::finding(fields, now_millis),
        _ => base(fields, now_millis),
    }
}

/// Something that the gateway or the control plane depends on has trouble, or has none any more.
fn base(mut fields: Fields, now_millis: u64) -> Map<String, Value> {
    let name = fields.text(&["event", "category"]).unwrap_or("event").to_owned();
    let mut event = Event::new(&BASE, (OTHER, name.as_str()), &mut fields, now_millis);
    event.take_severity(&mut fields);
    event.put("message", fields.take_text(&["message"]));
    event.done(fields)
}

#[cfg(test)]
mod tests;
