//! Our rule engine against the recorded answers of libmodsecurity: every difference is explained, and no explanation is
//! without use.

use std::path::{Path, PathBuf};

use crate::compare::Comparison;
use crate::explained::{Explained, Run};
use crate::generate;
use crate::golden::Golden;
use crate::ours::Ours;
use crate::rules::Rules;

fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn differences_from_libmodsecurity_are_explained() {
    let golden = Golden::parse(&std::fs::read_to_string(own("golden.txt")).unwrap()).unwrap();
    let explained = Explained::read(&own("explained.yaml")).unwrap();
    let cases = generate::cases(golden.seed, golden.answers.len(), &[]);
    for (case, (digest, _)) in cases.iter().zip(&golden.answers) {
        assert_eq!(&case.digest(), digest, "case {} is generated differently: record the answers again", case.name);
    }
    let crs = std::env::var_os("PALISADE_CRS_DIR").map_or_else(|| own("../../.cache/crs"), Into::into);
    let rules = Rules::find(&crs).unwrap_or_else(|error| panic!("{error}: run `make crs` first"));
    if rules.release != golden.release {
        eprintln!("the answers are those of rules {}, these are {}: nothing to compare", golden.release, rules.release);
        return;
    }
    let ours = Ours::new(rules.compile().unwrap()).unwrap();
    let mut comparison = Comparison::default();
    for (case, (_, answer)) in cases.iter().zip(&golden.answers) {
        comparison.add(case, answer, &explained, |case| ours.answer(case));
    }
    assert!(comparison.agreements > 10 * comparison.cases, "the rules are not the ones that were recorded");
    let run = Run::of(golden.seed, false, comparison.cases).expect("as many answers as the standard run has");
    let (unexplained, stale) = (comparison.unexplained().count(), comparison.stale(&explained, run));
    assert!(unexplained == 0 && stale.is_empty(), "stale: {stale:?}\n{}", comparison.table(&explained));
}
