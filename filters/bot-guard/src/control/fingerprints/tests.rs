//! Pairs as they are learned, kept, decided on and published.

use serde_json::{Value, json};

use super::learned::{Learned, MAX_NETWORKS, MAX_PAIRS, PairKey, PairState};
use super::{BotFingerprints, keep};
use crate::control::BotPolicy;
use crate::{Family, FingerprintSeen};

mod gathering;

const CHROME: &str = "t13d1516h2_8daaf6152771_02713d6af862";
const NOW: u64 = 1_800_000_000_000;
const DAY: u64 = 86_400_000;

fn seen(family: &str, ja4: &str, network: &[u8]) -> FingerprintSeen {
    FingerprintSeen { ja4: ja4.as_bytes().to_vec(), family: family.into(), network: network.to_vec() }
}

fn key(family: &str, ja4: &str) -> PairKey {
    PairKey::read(family, ja4.as_bytes()).unwrap()
}

fn networks(learned: &Learned, family: &str, ja4: &str) -> usize {
    learned.pairs.get(&key(family, ja4)).map_or(0, |pair| pair.networks.len())
}

#[test]
fn networks_count_once_and_up_to_a_bound() {
    let mut learned = Learned::default();
    // Two nodes, again and again: one network stays one.
    for _ in 0..500 {
        learned.take(&seen("chrome", CHROME, &[192, 0, 2]), NOW);
    }
    assert_eq!(networks(&learned, "chrome", CHROME), 1);
    for number in 0..=u16::MAX {
        let [high, low] = number.to_be_bytes();
        learned.take(&seen("chrome", CHROME, &[10, high, low]), NOW + 5);
    }
    let pair = &learned.pairs[&key("chrome", CHROME)];
    assert_eq!((pair.networks.len(), pair.first_seen, pair.last_seen), (MAX_NETWORKS, NOW, NOW + 5));
    assert_eq!(pair.state, PairState::Candidate);
    assert!(learned.accepted().is_empty(), "no number of networks makes it act");
}

#[test]
fn what_a_gateway_makes_up_is_dropped() {
    let mut learned = Learned::default();
    for wrong in [
        seen("netscape", CHROME, &[1, 2, 3]),
        seen("chrome", "t13d1516h2", &[1, 2, 3]),
        seen("chrome", CHROME, &[]),
        seen("chrome", CHROME, &[1, 2, 3, 4]),
        seen("", "", &[1; 6]),
    ] {
        learned.take(&wrong, NOW);
    }
    assert_eq!((learned.pairs.len(), learned.dropped), (0, 5));
}

#[test]
fn a_flood_displaces_neither_decisions_nor_what_many_networks_have() {
    let mut learned = Learned::default();
    let vary = |number: usize| format!("t13d1516h2_{number:012x}_02713d6af862");
    learned.take(&seen("curl", &vary(0), &[1, 2, 3]), NOW);
    learned.decide(&key("curl", &vary(0)), PairState::Rejected, NOW).unwrap();
    for low in 0..3 {
        learned.take(&seen("chrome", CHROME, &[192, 0, low]), NOW);
    }
    for number in 1..MAX_PAIRS + 500 {
        learned.take(&seen("firefox", &vary(number), &[10, 0, 0]), NOW + 1);
    }
    assert_eq!((learned.pairs.len(), learned.dropped), (MAX_PAIRS, 501));
    assert_eq!(networks(&learned, "chrome", CHROME), 3);
    assert_eq!(learned.count(PairState::Rejected), 1);
}

#[test]
fn networks_end_and_candidates_with_them_but_decisions_stay() {
    let mut learned = Learned::default();
    learned.take(&seen("chrome", CHROME, &[192, 0, 2]), NOW);
    learned.take(&seen("curl", CHROME, &[192, 0, 2]), NOW);
    learned.decide(&key("curl", CHROME), PairState::Accepted, NOW + 7).unwrap();
    learned.take(&seen("chrome", CHROME, &[192, 0, 3]), NOW + 20 * DAY);
    learned.expire(NOW + 30 * DAY);
    assert_eq!((networks(&learned, "chrome", CHROME), networks(&learned, "curl", CHROME)), (1, 0));
    learned.expire(NOW + 60 * DAY);
    assert_eq!(learned.pairs.keys().map(PairKey::family).collect::<Vec<_>>(), ["curl"]);
    let curl = Family::read("curl").unwrap().bit();
    assert_eq!(learned.accepted().into_values().collect::<Vec<_>>(), [curl]);
}

#[test]
fn what_is_kept_is_restored_and_nothing_else_is_read() {
    let mut learned = Learned { secret: vec![7; 32], ..Learned::default() };
    learned.take(&seen("chrome", CHROME, &[192, 0, 2]), NOW);
    learned.take(&seen("go", CHROME, &[0x20, 1, 0xd, 0xb8, 0, 1]), NOW + 1);
    learned.decide(&key("go", CHROME), PairState::Rejected, NOW + 2).unwrap();
    let document = keep::document(&learned);
    let restored = keep::restored(&document).unwrap();
    assert_eq!((&restored.pairs, &restored.secret), (&learned.pairs, &learned.secret));
    let has = |bytes: &[u8]| document.windows(bytes.len()).any(|window| window == bytes);
    assert!(!has(&[192, 0, 2]) && !has(&[0x20, 1, 0xd, 0xb8, 0, 1]), "no network is kept as it is");
    assert!(keep::restored(b"\xff\xff").is_err());
}

#[test]
fn problems_of_a_policy_are_named_with_their_place() {
    let problems = |fields: Value| -> Vec<String> {
        let fingerprints: BotFingerprints = serde_json::from_value(fields).unwrap();
        fingerprints.check().into_iter().map(|problem| problem.pointer).collect()
    };
    let good = json!({
        "enabled": true,
        "pairs": [{ "family": "curl", "fingerprints": [CHROME, "t13d1516h2_*_*", "cd08e31494f9531f560d64c695473da9"] }],
        "rules": [{ "fingerprint": "*_8daaf6152771_*", "action": "deny", "requests_per_minute": 10 }],
    });
    assert_eq!(problems(good), Vec::<String>::new());
    let wrong = json!({
        "pairs": [{ "family": "crul", "fingerprints": ["*_*_*", "x"] }],
        "rules": [{ "fingerprint": "", "weight": 101, "requests_per_minute": 1_000_001 }],
        "mismatch_weight": -1, "unknown_weight": 101, "rotation_weight": 200, "rotation_families": 1, "rotation_networks": 65,
    });
    let expected = [
        "pairs/0/family",
        "pairs/0/fingerprints/0",
        "pairs/0/fingerprints/1",
        "rules/0/fingerprint",
        "rules/0/weight",
        "rules/0/requests_per_minute",
        "mismatch_weight",
        "unknown_weight",
        "rotation_weight",
        "rotation_families",
        "rotation_networks",
    ];
    assert_eq!(problems(wrong), expected.map(|place| format!("/fingerprints/{place}")));
}

#[test]
fn a_policy_is_compiled_with_its_fingerprints_only_if_they_are_enabled() {
    let policy = |enabled: bool| BotPolicy {
        fingerprints: BotFingerprints { enabled, ..BotFingerprints::default() },
        ..BotPolicy::default()
    };
    let (on, off) = (policy(true).fingerprints, policy(false).fingerprints);
    assert!(super::step(&off).is_none() && super::list(&off).is_none());
    let step = super::step(&on).unwrap();
    assert_eq!((step.mismatch_weight, step.rotation_weight, step.learn), (40.0, 0.0, true));
    assert!(super::list(&on).is_some());
}
