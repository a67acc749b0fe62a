//! The records of all consumers and kinds, shared by the workers of a node.

use exchange::{Exchange, Host};
use node_state::{Membership, Records, Sets, keyed_hash};

use crate::object::{Kind, Object};
use crate::record::{Limits, Patterns, Record};
use crate::shape::Identifier;

/// How long a record without a request is kept, in milliseconds.
const IDLE: u64 = 3_600_000;
/// The most detected kinds of a consumer; what is detected beyond them is one kind.
pub(crate) const MAX_KINDS: u16 = 64;

/// The records.
pub(crate) struct Watch {
    limits: Limits,
    records: Records,
    /// The detected kinds of each consumer.
    kinds: Sets,
}

/// Where a consumer's record for a kind is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place(Vec<u8>);

impl Watch {
    pub(crate) fn new(limits: Limits, max_keys: u32) -> Self {
        // Records are large, so that a shard has few: with a third more room hashing fills hardly any of them.
        let room = max_keys.saturating_add(max_keys / 3);
        Self {
            limits,
            records: Records::new("objects.records", room, Record::MAX_BYTES, IDLE),
            kinds: Sets::new("objects.kinds", MAX_KINDS, IDLE, max_keys),
        }
    }

    /// Notes a request of a consumer for an object, which stands for its `member` in sets: the patterns that it is in, and the place of the
    /// record. Beyond the limit of kinds the object is of another one from then on.
    pub(crate) fn read(
        &self,
        consumer: &str,
        (object, member): (&mut Object<'_>, &[u8]),
        exchange: &Exchange,
        host: &dyn Host,
    ) -> (Patterns, Place) {
        let place = self.place(consumer, &object.kind);
        let hash = keyed_hash(host.shared(), "objects.object", member);
        let [a, b, c, d, ..] = hash.to_le_bytes();
        let hash = u32::from_le_bytes([a, b, c, d]);
        let update =
            |place: &Place, object: &Object<'_>, make| self.update(place, (hash, &object.identifiers), make, host);
        if let Some(patterns) = update(&place, object, !object.kind.is_detected()) {
            return (patterns, place);
        }
        let inserted = self.kinds.insert(host.shared(), consumer.as_bytes(), &object.kind.key, host.now());
        if inserted.membership == Membership::Full {
            object.kind = Kind::other(exchange);
        }
        let place = self.place(consumer, &object.kind);
        (update(&place, object, true).unwrap_or_default(), place)
    }

    /// Notes that a request was denied.
    pub(crate) fn denied(&self, place: &Place, host: &dyn Host) -> Patterns {
        let now = seconds(host);
        let change = |known: Option<&[u8]>| {
            let Some(mut record) = known.and_then(Record::decode) else { return (Patterns::default(), None) };
            let patterns = record.denied(now, &self.limits);
            (patterns, Some((record.encode(), until(host))))
        };
        let updated = self.records.update(host.shared(), &place.0, host.now(), Record::weight_of, change);
        unless_lost(updated.result, updated.lost)
    }

    /// `None` where there is no record and none is made.
    fn update(&self, place: &Place, object: (u32, &[Identifier<'_>]), make: bool, host: &dyn Host) -> Option<Patterns> {
        let now = seconds(host);
        let change = |known: Option<&[u8]>| {
            let known = known.and_then(Record::decode);
            let Some(mut record) = known.or_else(|| make.then(Record::default)) else { return (None, None) };
            let patterns = record.read(object, now, &self.limits);
            (Some(patterns), Some((record.encode(), until(host))))
        };
        let updated = self.records.update(host.shared(), &place.0, host.now(), Record::weight_of, change);
        updated.result.map(|patterns| unless_lost(patterns, updated.lost))
    }

    /// Steps that count in other buckets or windows have records of their own.
    fn place(&self, consumer: &str, kind: &Kind) -> Place {
        let Limits { surge, enumeration, .. } = &self.limits;
        let mut key = Vec::with_capacity(consumer.len() + kind.key.len() + 10);
        key.extend_from_slice(&surge.bucket_seconds.to_le_bytes());
        key.extend_from_slice(&enumeration.window_seconds.to_le_bytes());
        key.extend_from_slice(consumer.as_bytes());
        key.push(0);
        key.extend_from_slice(&kind.key);
        Place(key)
    }
}

/// What was not stored is reported with the next request.
fn unless_lost(patterns: Patterns, lost: bool) -> Patterns {
    if lost { Patterns { due: [false; 3], ..patterns } } else { patterns }
}

/// The time in seconds since the Unix epoch.
pub(crate) fn seconds(host: &dyn Host) -> u32 {
    u32::try_from(host.now() / 1000).unwrap_or(u32::MAX)
}

fn until(host: &dyn Host) -> u64 {
    host.now().saturating_add(IDLE)
}
