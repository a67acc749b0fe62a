//! From a policy to what gateways run.

use super::super::compile::reaction;
use super::BotFingerprints;
use crate::{FingerprintList, FingerprintPair, FingerprintRule, FingerprintStep};

/// What a step does; `None` for a policy that leaves fingerprints alone.
pub(in super::super) fn step(fingerprints: &BotFingerprints) -> Option<FingerprintStep> {
    fingerprints.enabled.then_some(FingerprintStep {
        mismatch_weight: fingerprints.mismatch_weight,
        unknown_weight: fingerprints.unknown_weight,
        rotation_weight: fingerprints.rotation_weight,
        rotation_families: fingerprints.rotation_families,
        rotation_networks: fingerprints.rotation_networks,
        learn: fingerprints.learn,
    })
}

/// The pairs and rules; `None` as for [`step`].
pub(in super::super) fn list(fingerprints: &BotFingerprints) -> Option<FingerprintList> {
    let pairs = fingerprints
        .pairs
        .iter()
        .map(|pair| FingerprintPair { family: pair.family.clone(), fingerprints: pair.fingerprints.clone() });
    let rules = fingerprints.rules.iter().map(|rule| FingerprintRule {
        fingerprint: rule.fingerprint.clone(),
        reaction: reaction(rule.action).into(),
        weight: rule.weight,
        requests_per_minute: rule.requests_per_minute,
    });
    fingerprints.enabled.then(|| FingerprintList { pairs: pairs.collect(), rules: rules.collect() })
}
