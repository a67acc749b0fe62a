//! The recordings of real applications in `tests/traffic/apps`: what measurements take for granted.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use recording::{Entry, Options, open};

const APPLICATIONS: [&str; 6] = ["dokuwiki", "mediawiki", "phpmyadmin", "redmine", "roundcube", "wordpress"];
/// What an application has at least.
const EACH: usize = 1_500;
const TOGETHER: usize = 20_000;

#[test]
fn the_applications_are_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traffic/apps");
    let (mut distinct, mut callers, mut methods) = (HashSet::new(), HashSet::new(), HashMap::new());
    let mut with_body = 0;
    for name in APPLICATIONS {
        let entries = read(&folder.join(format!("{name}.jsonl.gz")));
        assert!(entries.len() >= EACH, "{name} has {}", entries.len());
        assert!(entries.is_sorted_by_key(|entry| entry.at_millis), "{name} is not in the order of time");
        let mut own = HashSet::new();
        for entry in entries {
            let (request, response) = (&entry.exchange.request, &entry.exchange.response);
            let place = &entry.place;
            assert!(response.body.is_empty() && response.trailers.is_empty(), "{place} has an answer's body");
            assert!(
                response.headers.iter().all(|(name, _)| name == b"content-type"),
                "{place} has an answer's headers"
            );
            assert!(entry.at_millis.is_some() && entry.status.is_some(), "{place} has no time or no status");
            assert!(entry.notes.is_empty(), "{place}: {:?}", entry.notes);
            let word = |name| request.header(name).unwrap_or_default().to_vec();
            let (address, _) = request.peer.rsplit_once(':').unwrap();
            own.insert(address.to_owned());
            *methods.entry(word(":method")).or_insert(0) += 1;
            with_body += usize::from(!request.body.is_empty());
            let asked = (word(":method"), word(":authority"), word(":path"), request.body.clone());
            assert!(distinct.insert(asked), "{place} asks for what another one asks for");
        }
        assert!(own.len() >= 20, "{name} has {} callers", own.len());
        callers.extend(own);
    }
    assert!(distinct.len() >= TOGETHER, "{} requests", distinct.len());
    assert!(with_body * 3 >= distinct.len(), "{with_body} of {} have a body", distinct.len());
    assert!(callers.len() >= 40, "{} callers", callers.len());
    assert!([&b"GET"[..], b"POST", b"PUT"].iter().all(|method| methods.contains_key(*method)), "{methods:?}");
}

fn read(file: &Path) -> Vec<Entry> {
    let recording = open(&[file.to_owned()], &Options::default()).unwrap();
    recording.map(|entry| entry.unwrap_or_else(|bad| panic!("{bad}"))).collect()
}
