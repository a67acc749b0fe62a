//! The records of persistent collections in the node's shared data.

use std::rc::Rc;

use exchange::{SharedData, Table, Update};
use seclang::{CollectionKind, Collections, RecordName, StoredRecord, UpdateLost};
use snapshot::content_hash;

/// The records that a node keeps: of clients up to 16,384, at the most 18 MiB. A full shard gives up the record that
/// ends first, which is the one least recently written where all live equally long.
const fn table(name: &'static str, shards: u16) -> Table {
    Table { name, shards, entries_per_shard: 64 }
}

const GLOBAL: Table = table("svc.collection.global", 16);
const IP: Table = table("svc.collection.ip", 256);
const SESSION: Table = table("svc.collection.session", 256);
const USER: Table = table("svc.collection.user", 128);
const RESOURCE: Table = table("svc.collection.resource", 128);

/// What all workers of the node share, as rules see it.
pub(crate) struct NodeCollections(pub(crate) Rc<dyn SharedData>);

impl Collections for NodeCollections {
    fn load(&self, name: &RecordName<'_>, now_millis: u64) -> Option<Vec<u8>> {
        table_of(name.kind).get(&*self.0, &key(name), now_millis).map(|entry| entry.value)
    }

    fn update(
        &self,
        name: &RecordName<'_>,
        now_millis: u64,
        change: &mut dyn FnMut(Option<&[u8]>) -> Option<StoredRecord>,
    ) -> Result<(), UpdateLost> {
        let updated = table_of(name.kind).update(&*self.0, &key(name), now_millis, |entry| {
            match change(entry.map(|entry| entry.value.as_slice())) {
                Some(stored) => Update::Put(stored.bytes, stored.expires_at),
                None => Update::Keep,
            }
        });
        updated.map_err(|_| UpdateLost)
    }
}

fn table_of(kind: CollectionKind) -> &'static Table {
    match kind {
        CollectionKind::Global => &GLOBAL,
        CollectionKind::Ip => &IP,
        CollectionKind::Session => &SESSION,
        CollectionKind::User => &USER,
        CollectionKind::Resource => &RESOURCE,
    }
}

/// A key of one size, whatever a request brings: nobody can make two keys that meet.
fn key(name: &RecordName<'_>) -> [u8; 32] {
    let length = u64::try_from(name.application.len()).unwrap_or(u64::MAX).to_le_bytes();
    content_hash(&[&length, name.application, name.key].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use exchange::MemorySharedData;

    fn put(collections: &NodeCollections, key: &[u8], value: &[u8], until: u64) {
        let name = RecordName { kind: CollectionKind::Ip, application: b"default", key };
        let stored = StoredRecord { bytes: value.to_vec(), expires_at: until };
        collections.update(&name, 0, &mut |_| Some(stored.clone())).unwrap();
    }

    fn get(collections: &NodeCollections, application: &[u8], key: &[u8], now: u64) -> Option<Vec<u8>> {
        collections.load(&RecordName { kind: CollectionKind::Ip, application, key }, now)
    }

    #[test]
    fn records_are_found_by_kind_application_and_key_until_they_end() {
        let collections = NodeCollections(Rc::new(MemorySharedData::default()));
        let long = vec![b'k'; 100_000];
        put(&collections, &long, b"1", 100);
        assert_eq!(get(&collections, b"default", &long, 99).as_deref(), Some(&b"1"[..]));
        assert_eq!(get(&collections, b"default", &long, 100), None);
        assert_eq!(get(&collections, b"shop", &long, 0), None);
        assert_eq!(get(&collections, b"defaultk", long.get(1..).unwrap(), 0), None);
    }

    #[test]
    fn the_largest_record_fits_and_the_least_recent_goes_first() {
        let collections = NodeCollections(Rc::new(MemorySharedData::default()));
        put(&collections, b"large", &[7; seclang::RECORD_LENGTH], 1);
        for at in 0..40_000u32 {
            put(&collections, &at.to_le_bytes(), b"x", 1000 + u64::from(at));
        }
        let kept = (0..40_000u32).filter(|at| get(&collections, b"default", &at.to_le_bytes(), 0).is_some()).count();
        assert_eq!(kept, 256 * 64);
        assert!(get(&collections, b"default", &39_999u32.to_le_bytes(), 0).is_some());
        assert!(get(&collections, b"default", &0u32.to_le_bytes(), 0).is_none());
    }
}
