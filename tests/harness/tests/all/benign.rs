//! Requests of good intent pass a core rule set that blocks at its default settings.

use std::path::{Path, PathBuf};

use ftw::corpus::{Corpus, Verdict};
use ftw::rules::{Setup, compile_crs};
use harness::engine::Native;

/// A fixed time.
const NOW_MILLIS: u64 = 1_750_000_000_000;

/// A folder beside this crate's manifest.
fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn verdicts(paranoia: u8) -> Vec<Verdict> {
    let crs = std::env::var_os("PALISADE_CRS_DIR").map_or_else(|| own("../../.cache/crs"), PathBuf::from);
    let compiled = compile_crs(&crs, Setup::Default(paranoia)).unwrap_or_else(|why| panic!("{why}\nrun `make crs`"));
    let mut native = Native::load(&compiled.snapshot, "node-1", NOW_MILLIS, 7).unwrap();
    let corpus = Corpus::read(&own("../corpus/benign")).unwrap();
    assert!(corpus.requests.len() >= 300, "{}", corpus.requests.len());
    corpus.run(&mut native)
}

#[test]
fn none_is_denied_but_the_known() {
    let verdicts = verdicts(1);
    let denied: Vec<&Verdict> = verdicts.iter().filter(|verdict| verdict.denied && !verdict.is_known()).collect();
    assert!(denied.is_empty(), "{denied:#?}");
    for verdict in verdicts.iter().filter(|verdict| verdict.is_known()) {
        // One that passes by now belongs among the others.
        assert!(verdict.denied && verdict.status == 403, "{verdict:?}");
        assert_eq!(verdict.ids, verdict.known, "{}", verdict.name);
    }
}

/// What the higher levels deny is theirs to decide; the count is worth reading.
#[test]
fn higher_levels_are_counted() {
    let mut last = 0;
    for paranoia in 2..=4 {
        let verdicts = verdicts(paranoia);
        let denied = verdicts.iter().filter(|verdict| verdict.denied).count();
        println!("paranoia {paranoia}: {denied} of {} denied", verdicts.len());
        assert!(denied >= last, "a higher level denies at least as much: {denied} after {last}");
        last = denied;
    }
}
