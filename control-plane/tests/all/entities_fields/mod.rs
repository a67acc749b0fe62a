//! Every collection's fields: defaults, limits, errors, templates.

use crate::entities_samples;

mod defaults;
mod errors;
mod limits;

use crate::entities_samples::{minimal, problems, sample};
use entities::registry::{self, KINDS};
use entities::{Item, Kind};
use ip_reputation::control::ThreatFeed;
use serde_json::json;

fn kind(collection: &str) -> &'static Kind {
    registry::by_collection(collection).unwrap()
}

#[test]
fn templates_are_valid_once_what_has_no_default_is_set() {
    for kind in KINDS.iter() {
        assert_eq!(problems(kind, minimal(kind)), [] as [String; 0], "{}", kind.collection);
        let prefix = format!("{}_", kind.kind);
        assert!(kind.singleton.is_some() || kind.new_id().starts_with(&prefix), "{}", kind.new_id());
        // And what is disabled needs nothing more at all.
        let disabled = problems(kind, json!({"id": "x", "enabled": false}));
        assert!(disabled.is_empty() || kind.singleton.is_some(), "{}: {disabled:?}", kind.collection);
    }
}

#[test]
fn a_kind_of_its_own_tells_the_collection_and_stays() {
    let provider = kind("challenge-providers");
    for (document, expected) in [
        (json!({"id": "x"}), "pow"),
        (json!({"id": "x", "kind": "challenge-provider"}), "pow"),
        (json!({"id": "x", "kind": "vendor"}), "vendor"),
    ] {
        assert_eq!(provider.read(document).unwrap().shown()["kind"], expected);
    }
    assert_eq!(registry::by_kind("icap").unwrap().collection, "malware-scanners");
    assert_eq!(registry::by_kind("malware-scanner").unwrap().collection, "malware-scanners");
    let words: Vec<_> = KINDS.iter().flat_map(|kind| kind.own_kinds.iter().chain([&kind.kind])).collect();
    assert_eq!(words.iter().collect::<std::collections::BTreeSet<_>>().len(), words.len(), "each word means one kind");
}

#[test]
fn tags_of_sources_have_defaults() {
    let read = kind("threat-feeds").read(json!({"id": "tor", "url": "http://a"})).unwrap();
    let feed: &Item<ThreatFeed> = read.as_any().downcast_ref().unwrap();
    assert_eq!(feed.body.tag(&feed.head), "feed:tor");
    let read = kind("threat-feeds").read(json!({"id": "tor", "url": "http://a", "tag": "feed:tor-exit"})).unwrap();
    let feed: &Item<ThreatFeed> = read.as_any().downcast_ref().unwrap();
    assert_eq!(feed.body.tag(&feed.head), "feed:tor-exit");
}

#[test]
fn there_is_a_sample_of_every_kind_and_it_is_in_order() {
    let set = entities_samples::set();
    for kind in registry::documented() {
        assert!(set.slots(kind.collection).count() > 0, "{}", kind.collection);
        for slot in set.slots(kind.collection) {
            let again = kind.read(slot.entity.stored()).unwrap();
            assert_eq!(again.stored(), slot.entity.stored(), "a document comes back as it went");
        }
    }
    assert_eq!(sample("malware-scanners", "icap")["port"], 1344);
}
