//! The figures of a report: what they are, and what is withheld, with the reason.

use serde_json::{Value, json};

use super::super::windows::Window;
use super::verify::Verified;
use crate::control::config::WafConfig;
use kit::Item;

/// The requests that figures need.
pub(super) const ENOUGH: u64 = 1000;
/// The share of requests that may be refused wrongly, in a thousandth.
const TOLERATED_PER_MILLE: u64 = 1;
/// What is tried above the threshold as it is.
const STEPS: [u32; 6] = [0, 5, 10, 15, 20, 30];

/// What can be measured with a config as it is.
pub(super) fn mode(config: &Item<WafConfig>) -> Value {
    let (mode, measures, note) = match (config.enabled, config.block) {
        (false, _) => ("off", false, "The WAF config is disabled: nothing is counted. Enable it with `block: false`."),
        (true, true) => (
            "blocking",
            false,
            "The WAF config blocks: a request that is refused is not inspected to its end, so that counts are too low. Set `block` to \
             false for the window to learn what blocking would do.",
        ),
        (true, false) => {
            ("detection_only", true, "Every request is inspected to its end and none is refused: counts are complete.")
        }
    };
    json!({ "mode": mode, "arming_estimate_reliable": measures, "rule_counts_complete": measures, "note": note })
}

pub(super) fn measures(config: &Item<WafConfig>) -> bool {
    config.enabled && !config.block
}

/// Whether figures are withheld, and why.
pub(super) fn withheld(window: &Window, config: &Item<WafConfig>) -> Option<String> {
    if !measures(config) {
        return Some("withheld: the config does not only detect, so that its counts are too low".to_owned());
    }
    (window.requests < ENOUGH)
        .then(|| format!("withheld: {} requests are too few, {ENOUGH} are needed", window.requests))
}

/// Whether so many of the requests may be refused wrongly.
pub(super) fn is_tolerable(refused: u64, requests: u64) -> bool {
    refused.saturating_mul(1000) <= requests.saturating_mul(TOLERATED_PER_MILLE)
}

/// The paranoia level that the traffic bears.
pub(super) fn paranoia(window: &Window, config: &Item<WafConfig>, verified: &[Verified]) -> Value {
    let current = config.crs.paranoia_level.max(1);
    if let Some(why) = withheld(window, config) {
        return json!({ "current": current, "recommended": null, "rationale": why });
    }
    let is_ended = |key: &str| verified.iter().any(|one| (one.accepted || one.ended) && one.key() == key);
    let up_to = |level: u32| {
        let left = window.entries.iter().filter(|(key, entry)| entry.paranoia <= level && !is_ended(key));
        // Of an exchange with several matches each counts: the sum is what may be refused at most.
        left.map(|(_, entry)| entry.would_block).fold(0, u64::saturating_add)
    };
    let bearable = (1..=current).rev().find(|level| is_tolerable(up_to(*level), window.requests));
    let (recommended, rationale) = match bearable {
        Some(level) if level == current => (
            None,
            format!(
                "With the verified exclusions at most {} of {} requests are refused at level {level}.",
                up_to(level),
                window.requests
            ),
        ),
        Some(level) => (
            Some(level),
            format!(
                "At level {current} up to {} of {} requests would be refused also with the verified exclusions, at level {level} up to {}.",
                up_to(current),
                window.requests,
                up_to(level)
            ),
        ),
        None => (
            None,
            format!(
                "Up to {} of {} requests would be refused even at level 1: no level ends that, exclusions or a higher threshold are needed.",
                up_to(1),
                window.requests
            ),
        ),
    };
    json!({ "current": current, "recommended": recommended, "rationale": rationale })
}

/// What would be denied at other thresholds.
pub(super) fn threshold(window: &Window, config: &Item<WafConfig>) -> Value {
    let current = match config.crs.inbound_anomaly_threshold {
        0 => 5,
        set => set,
    };
    let denied = |threshold: u32| {
        let from = window.scores.iter().filter(|(score, _)| **score >= threshold);
        from.map(|(_, requests)| *requests).fold(0, u64::saturating_add)
    };
    let curve: Vec<(u32, u64)> =
        STEPS.iter().map(|step| current.saturating_add(*step)).map(|at| (at, denied(at))).collect();
    let shown: Vec<Value> =
        curve.iter().map(|(at, denied)| json!({ "threshold": at, "still_denied": denied })).collect();
    let (recommended, rationale) = match withheld(window, config) {
        Some(why) => (None, why),
        None => match curve.iter().find(|(_, denied)| is_tolerable(*denied, window.requests)) {
            Some((at, denied)) => (
                Some(*at),
                format!("At {at}, {denied} of {} requests would be denied, without any exclusion.", window.requests),
            ),
            None => (None, "No threshold that is tried lets enough requests pass: exclusions are needed.".to_owned()),
        },
    };
    json!({ "current": current, "curve": shown, "recommended": recommended, "rationale": rationale })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kit::Head;

    use super::*;
    use crate::control::config::Crs;
    use crate::control::tuning::windows::{Entry, entry_key};

    fn config(block: bool, level: u32) -> Item<WafConfig> {
        let crs = Crs { paranoia_level: level, ..Crs::default() };
        Item { head: Head::default(), body: WafConfig { block, crs, ..WafConfig::default() } }
    }

    fn window(requests: u64, entries: &[(u64, u32, u64)]) -> Window {
        let entry = |(rule_id, paranoia, would_block): &(u64, u32, u64)| {
            let (target, path) = ("ARGS:q".to_owned(), "/a".to_owned());
            let key = entry_key(*rule_id, &target, &path);
            let (count, callers) = (*would_block, Vec::new());
            (
                key,
                Entry {
                    rule_id: *rule_id,
                    target,
                    path,
                    count,
                    would_block: *would_block,
                    alone: 0,
                    paranoia: *paranoia,
                    callers,
                    shapes: Vec::new(),
                },
            )
        };
        Window {
            requests,
            scores: BTreeMap::from([(5, 100), (12, 8), (40, 1)]),
            entries: entries.iter().map(entry).collect(),
            ..Window::default()
        }
    }

    #[test]
    fn figures_are_withheld_where_nothing_can_be_measured() {
        for (window, config) in [(window(999, &[]), config(false, 1)), (window(100_000, &[]), config(true, 1))] {
            for figure in [paranoia(&window, &config, &[]), threshold(&window, &config)] {
                assert!(
                    figure["recommended"].is_null() && figure["rationale"].as_str().unwrap().starts_with("withheld")
                );
            }
        }
        assert_eq!(mode(&config(true, 1))["arming_estimate_reliable"], false);
        assert_eq!(mode(&config(false, 1))["mode"], "detection_only");
    }

    #[test]
    fn the_highest_level_that_is_borne_is_recommended() {
        let recommended = |entries: &[(u64, u32, u64)]| {
            paranoia(&window(10_000, entries), &config(false, 3), &[])["recommended"].clone()
        };
        assert!(recommended(&[(1, 3, 10)]).is_null(), "the level as it is");
        assert_eq!(recommended(&[(1, 3, 11), (2, 2, 3)]), 2);
        assert_eq!(recommended(&[(1, 3, 1), (2, 2, 11)]), 1);
        assert!(recommended(&[(1, 1, 11)]).is_null());
    }

    #[test]
    fn the_curve_counts_the_scores_from_each_threshold_on() {
        let found = threshold(&window(10_000, &[]), &config(false, 1));
        let still: Vec<u64> =
            found["curve"].as_array().unwrap().iter().map(|one| one["still_denied"].as_u64().unwrap()).collect();
        assert_eq!(still, [109, 9, 1, 1, 1, 1]);
        assert_eq!((&found["current"], &found["recommended"]), (&json!(5), &json!(10)));
    }
}
