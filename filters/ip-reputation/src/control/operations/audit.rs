//! What is told of what operators do with feeds.

use kit::Entity as _;
use serde_json::Value;

use super::super::{SvcBouncer, ThreatFeed};

/// Why an order has no outcome yet.
pub(super) const LATER: &str = "it takes longer than calls wait";

/// The feed that a body names.
pub(super) fn feed(body: &Value) -> Option<String> {
    // Text that is no id is not repeated at any length.
    let id = body.get("feed")?.as_str().filter(|id| id.len() <= 128)?;
    Some(format!("{}/{id}", ThreatFeed::COLLECTION))
}

/// The bouncer that a body names.
pub(super) fn bouncer(body: &Value) -> Option<String> {
    let id = body.get("bouncer")?.as_str().filter(|id| id.len() <= 128)?;
    Some(format!("{}/{id}", SvcBouncer::COLLECTION))
}

/// How many services were asked, and how many of them failed.
pub(super) fn synced(answer: &Value) -> Option<String> {
    let results = answer.get("results").filter(|_| is_done(answer))?.as_array()?;
    let failed = results.iter().filter(|result| result.get("ok").is_some_and(|ok| ok == false)).count();
    Some(format!("bouncers: {}, with an error: {failed}", results.len()))
}

fn is_done(answer: &Value) -> bool {
    answer.get("done").and_then(Value::as_bool).unwrap_or(false)
}

/// How many feeds or databases were fetched, and how many of them failed.
pub(super) fn refreshed(answer: &Value) -> Option<String> {
    let snapshots = answer.get("snapshots").filter(|_| is_done(answer))?.as_array()?;
    let count = |field: &str, is: fn(&Value) -> bool| {
        snapshots.iter().filter(|snapshot| snapshot.get(field).is_some_and(is)).count()
    };
    let (failed, goes_on) = (count("error", Value::is_string), count("refreshing", |value| value == true));
    let are_databases = snapshots.iter().any(|snapshot| snapshot.get("database_id").is_some());
    let what = if are_databases { "databases" } else { "feeds" };
    Some(format!("{what}: {}, with an error: {failed}, still being fetched: {goes_on}", snapshots.len()))
}

/// The list that is in force then.
pub(super) fn rolled_back(answer: &Value) -> Option<String> {
    if is_done(answer) {
        let entries = answer.pointer("/snapshot/entries").and_then(Value::as_u64).unwrap_or(0);
        return Some(format!("{entries} entries"));
    }
    (answer.get("error")?.as_str()? == LATER).then(|| LATER.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_done_is_not_told() {
        let refused = json!({ "done": false, "error": "there is no feed `a`" });
        assert_eq!((refreshed(&refused), rolled_back(&refused)), (None, None));
        let later = json!({ "done": false, "error": LATER });
        assert_eq!(rolled_back(&later).as_deref(), Some(LATER), "it may be done by now");
        let two = json!({ "done": true, "snapshots": [{ "error": null, "refreshing": true }, { "error": "500" }] });
        assert_eq!(refreshed(&two).unwrap(), "feeds: 2, with an error: 1, still being fetched: 1");
        let database =
            json!({ "done": true, "snapshots": [{ "database_id": "a", "error": null, "refreshing": false }] });
        assert_eq!(refreshed(&database).unwrap(), "databases: 1, with an error: 0, still being fetched: 0");
        assert_eq!(feed(&json!({ "feed": "a" })).as_deref(), Some("threat-feeds/a"));
        assert_eq!((feed(&json!({ "feed": "x".repeat(129) })), feed(&json!({}))), (None, None));
    }
}
