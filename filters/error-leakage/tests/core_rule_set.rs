//! The response cases of the core rule set's own suite. `PALISADE_CRS_TESTS` names its folder; without it nothing is tested.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::path::PathBuf;

use response_scan::leakage::{MAX_LEVEL, Scanner};
use serde_json::Value;

/// The fewest of 1000 cases that are recognized.
const GOAL: usize = 990;

#[test]
fn response_cases_are_recognized() {
    let Some(folder) = std::env::var_os("PALISADE_CRS_TESTS").map(PathBuf::from) else {
        println!("PALISADE_CRS_TESTS is not set: nothing was tested");
        return;
    };
    let scanner = Scanner::new(MAX_LEVEL);
    let (mut cases, mut recognized, mut missed) = (0, 0, Vec::new());
    let files = ftw::case::find(&folder).unwrap();
    let of_responses = |file: &PathBuf| file.to_string_lossy().contains("/RESPONSE-95");
    for file in files.into_iter().filter(of_responses) {
        let file = ftw::case::read(&file).unwrap();
        // The last rule only adds up what the others have found.
        if file.rule_id / 1000 == 959 {
            continue;
        }
        for test in &file.tests {
            for stage in &test.stages {
                let log = &stage.output.log;
                let (expected, refused) =
                    (log.expect_ids.contains(&file.rule_id), log.no_expect_ids.contains(&file.rule_id));
                let data = stage.input.data.as_deref().unwrap_or_default();
                // The suite's backend answers with the text of this field.
                let reflected =
                    serde_json::from_str::<Value>(data).ok().and_then(|data| Some(data["body"].as_str()?.to_owned()));
                let body = reflected.as_deref().unwrap_or(data);
                // At paranoia level 1, where a rule of that level is to stay silent.
                let found = if refused { Scanner::new(1).scan(body.as_bytes()) } else { scanner.scan(body.as_bytes()) };
                cases += 1;
                if found.is_empty() != expected {
                    recognized += 1;
                } else {
                    missed.push(format!("{} test {}: {body}", file.rule_id, test.test_id));
                }
            }
        }
    }
    println!("{recognized} of {cases} response cases recognized; missed: {missed:#?}");
    assert!(cases > 40, "{cases} cases in {}", folder.display());
    assert!(recognized * 1000 >= cases * GOAL, "{recognized} of {cases}: {missed:#?}");
}
