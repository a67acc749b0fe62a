//! Bodies of responses: scanned for leaks and sensitive data, and masked.

use response_scan::leakage;
use response_scan::sensitive::{Detector, Scanner, mask};

pub fn run(data: &[u8]) {
    let scanner = Scanner::new(Detector::BUILT_IN.into_iter().collect(), 2, Vec::new());
    let found = scanner.scan(data);
    assert!(found.windows(2).all(|pair| pair[0].start <= pair[1].start), "{found:?}");
    let mut masked = data.to_vec();
    for finding in &found {
        assert!(finding.start < finding.end && finding.end <= data.len(), "{finding:?} of {}", data.len());
        mask(&mut masked, finding, true);
    }
    assert_eq!(masked.len(), data.len());
    let was_json = serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok();
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&masked).is_ok();
    assert!(!was_json || is_json, "{} became {}", data.escape_ascii(), masked.escape_ascii());
    for leak in leakage::Scanner::new(leakage::MAX_LEVEL).scan(data) {
        assert!(leak.at < data.len(), "{leak:?} of {}", data.len());
    }
}
