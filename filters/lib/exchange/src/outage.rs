//! The times in which a node is without its control plane, as all its workers know them: each is one event, whichever
//! workers and filters lose their links.

use node_state::{SharedData, Table, Update};
use serde_json::json;

use crate::event::timestamp;
use crate::{Category, Host};

const OUTAGE: Table = Table { name: "svc.outage", shards: 1, entries_per_shard: 1 };
const KEY: &[u8] = b"node";

/// The module that the event names.
const MODULE: &str = "node-link";

/// A time without the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When the first worker lost its link, in milliseconds since the Unix epoch.
    pub since: u64,
    /// When the first worker heard from the control plane again; 0 while none has.
    pub until: u64,
    /// Events that the workers had dropped until then, because too many waited.
    pub dropped: u64,
}

impl Outage {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (since, rest) = bytes.split_first_chunk::<8>()?;
        let (until, rest) = rest.split_first_chunk::<8>()?;
        let (dropped, _) = rest.split_first_chunk::<8>()?;
        let [since, until, dropped] = [since, until, dropped].map(|bytes| u64::from_le_bytes(*bytes));
        Some(Self { since, until, dropped })
    }

    fn bytes(self) -> Vec<u8> {
        [self.since, self.until, self.dropped].map(u64::to_le_bytes).concat()
    }

    fn is_over(self) -> bool {
        self.until > 0
    }

    /// The event of an outage that is over, a line of JSON.
    #[must_use]
    pub fn event(&self, node: &str, host: &dyn Host) -> Vec<u8> {
        let Self { since, until, dropped } = *self;
        let category = Category::Dependency.word();
        let seconds = until.saturating_sub(since).div_ceil(1000);
        let (from, to) = (timestamp(since), timestamp(until));
        let message = format!(
            "the control plane was lost for {seconds} s, from {from} to {to}; protection went on as configured, {dropped} events \
             were dropped"
        );
        json!({
            "@type": "SvcSecurityEvent",
            "@id": format!("event_{:016x}", host.random()),
            "@timestamp": timestamp(host.now()),
            "event": {
                "kind": "alert", "category": category, "action": "log", "outcome": "observed", "severity": 2,
                "module": MODULE, "dataset": format!("svc.{category}"),
            },
            "source": { "ip": null, "apikey": null, "user": null },
            "threat": { "score": 0, "tags": [format!("dependency:{MODULE}")], "signals": [] },
            "incident": { "id": null, "count": 0 },
            "route": { "id": null, "name": null, "node": node },
            "outage": { "since": from, "until": to, "dropped": dropped },
            "message": message,
        })
        .to_string()
        .into_bytes()
    }
}

/// Notes that a worker has no link since `since`. True for the one worker with which an outage of the node begins: it is not
/// under way already, and the worker has not been without a link since one that is over.
pub fn begin(shared: &dyn SharedData, since: u64, now: u64) -> bool {
    let mut begun = false;
    let noted = OUTAGE.update(shared, KEY, now, |entry| {
        let known = entry.and_then(|entry| Outage::read(&entry.value));
        begun = known.is_none_or(|known| known.is_over() && since > known.until);
        if !begun {
            return Update::Keep;
        }
        Update::Put(Outage { since, until: 0, dropped: 0 }.bytes(), u64::MAX)
    });
    noted.is_ok() && begun
}

/// Adds events that a worker has dropped to the outage that is under way; false where they could not be noted, because other
/// workers were faster every time.
pub fn dropped(shared: &dyn SharedData, events: u64, now: u64) -> bool {
    let noted = OUTAGE.update(shared, KEY, now, |entry| {
        match entry.and_then(|entry| Outage::read(&entry.value)).filter(|known| !known.is_over()) {
            Some(known) => {
                Update::Put(Outage { dropped: known.dropped.saturating_add(events), ..known }.bytes(), u64::MAX)
            }
            None => Update::Keep,
        }
    });
    noted.is_ok()
}

/// Notes that a worker has heard from the control plane. The outage that ends with it, for that one worker to report.
pub fn end(shared: &dyn SharedData, now: u64) -> Option<Outage> {
    let open = |value: &[u8]| Outage::read(value).filter(|known| !known.is_over());
    // Every new link asks, and hardly ever is there anything to write.
    OUTAGE.get(shared, KEY, now).and_then(|entry| open(&entry.value))?;
    let mut ended = None;
    let noted = OUTAGE.update(shared, KEY, now, |entry| {
        ended = entry.and_then(|entry| open(&entry.value));
        match &mut ended {
            Some(outage) => {
                outage.until = now.max(outage.since).max(1);
                Update::Put(outage.bytes(), u64::MAX)
            }
            None => Update::Keep,
        }
    });
    noted.ok().and(ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    #[test]
    fn workers_that_lose_their_links_together_have_one_outage() {
        let host = FakeHost::at(1000);
        let shared = host.shared();
        assert_eq!(end(shared, 900), None, "it was there all the time");
        assert!(begin(shared, 1000, 1000));
        assert!(!begin(shared, 1001, 1001) && !begin(shared, 1000, 5000), "another worker, and another try");
        assert!(dropped(shared, 3, 2000) && dropped(shared, 4, 2500));
        let outage = Outage { since: 1000, until: 3000, dropped: 7 };
        assert_eq!(end(shared, 3000), Some(outage));
        assert_eq!(end(shared, 3001), None, "one worker reports");
        assert!(!begin(shared, 1001, 3500), "a worker that is still on its way back");
        assert!(dropped(shared, 9, 3600));
        assert!(begin(shared, 4000, 4000), "the next one");
        assert_eq!(end(shared, 4500), Some(Outage { since: 4000, until: 4500, dropped: 0 }));
    }

    #[test]
    fn the_event_says_from_when_to_when_and_what_was_lost() {
        let host = FakeHost::at(60_000);
        let outage = Outage { since: 1_000, until: 4_500, dropped: 7 };
        let event: serde_json::Value = serde_json::from_slice(&outage.event("gateway-1", &host)).unwrap();
        assert_eq!(
            (&event["event"]["category"], &event["event"]["outcome"]),
            (&"dependency".into(), &"observed".into())
        );
        assert_eq!(
            (&event["route"]["node"], &event["threat"]["tags"][0]),
            (&"gateway-1".into(), &"dependency:node-link".into())
        );
        let (since, until) = ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:04.500Z");
        assert_eq!(event["outage"], json!({ "since": since, "until": until, "dropped": 7 }));
        let message = event["message"].as_str().unwrap();
        assert!(message.contains(since) && message.contains(until) && message.contains("7 events"), "{message}");
        assert!(event["source"]["ip"].is_null(), "it belongs to no incident");
    }
}
