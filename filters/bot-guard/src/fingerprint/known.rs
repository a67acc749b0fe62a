//! Which families of agents a fingerprint is known to be of, and the rules of a policy for fingerprints.

use std::collections::HashMap;

use exchange::tls::Ja4;
use snapshot::{JA4_BYTES, JA4_PARTS, is_ja3, is_ja4_part};

use super::messages::{FingerprintList, FingerprintPair, FingerprintRule};
use super::{Family, Fingerprint};
use crate::messages::BotReaction;

/// A fingerprint, or all that agree in a part: a JA4, a JA4 with `*` in place of some of its three parts (`t13d1516h2_8daaf6152771_*`), or
/// a JA3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// The given parts of a JA4: the bits of their places, and a JA4 with `*` for every byte of the others.
    Ja4(u8, [u8; JA4_BYTES]),
    /// A JA3.
    Ja3([u8; 32]),
}

/// The pairs and rules of a policy.
#[derive(Default)]
pub(crate) struct KnownFingerprints {
    /// The bits of the families of each pattern.
    pairs: HashMap<Vec<u8>, u32>,
    /// Which parts of a JA4 patterns have, each once.
    masks: Vec<u8>,
    rules: Vec<(Pattern, FingerprintRule)>,
    /// The bits of all families that have a pair.
    families: u32,
}

/// The families in a value of the table of accepted pairs: the bits of [`Family::bit`], four bytes, little endian. `None` if it is none.
#[must_use]
pub fn families_of(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_le_bytes)
}

/// A JA4 with `*` in place of the parts that are not in `mask`.
fn masked(ja4: &[u8; JA4_BYTES], mask: u8) -> [u8; JA4_BYTES] {
    let (mut out, mut at) = (*ja4, 0);
    for (place, length) in JA4_PARTS.into_iter().enumerate() {
        let end = at + length;
        if mask & (1 << place) == 0
            && let Some(part) = out.get_mut(at..end)
        {
            part.fill(b'*');
        }
        at = end + 1;
    }
    out
}

// === impl Pattern ===

impl Pattern {
    /// Reads one; `None` for anything else.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        if is_ja3(text.as_bytes()) {
            return text.as_bytes().try_into().ok().map(Self::Ja3);
        }
        let parts: Vec<&[u8]> = text.as_bytes().split(|byte| *byte == b'_').collect();
        let parts: [&[u8]; 3] = parts.try_into().ok()?;
        let (mut mask, mut bytes) = (0, Vec::with_capacity(JA4_BYTES));
        for (place, (part, length)) in parts.into_iter().zip(JA4_PARTS).enumerate() {
            match part {
                b"*" => bytes.extend(std::iter::repeat_n(b'*', length)),
                given if is_ja4_part(place, given) => {
                    mask |= 1 << place;
                    bytes.extend_from_slice(given);
                }
                _ => return None,
            }
            if place < 2 {
                bytes.push(b'_');
            }
        }
        // Without a part it would be every client there is.
        (mask != 0).then_some(Self::Ja4(mask, bytes.try_into().ok()?))
    }

    /// Whether a client has it.
    pub(super) fn matches(&self, fingerprint: &Fingerprint) -> bool {
        match self {
            Self::Ja4(mask, pattern) => fingerprint.ja4.is_some_and(|ja4| masked(ja4.bytes(), *mask) == *pattern),
            Self::Ja3(pattern) => fingerprint.ja3.is_some_and(|ja3| ja3.bytes() == pattern),
        }
    }
}

// === impl KnownFingerprints ===

impl KnownFingerprints {
    /// # Errors
    ///
    /// A family, a fingerprint or an action that this filter does not know.
    pub(crate) fn new(list: FingerprintList) -> Result<Self, String> {
        let mut known = Self::default();
        for FingerprintPair { family, fingerprints } in &list.pairs {
            let family = Family::read(family).ok_or_else(|| format!("the family `{family}` is not known"))?;
            for text in fingerprints {
                let key = match read(text)? {
                    Pattern::Ja4(mask, pattern) => {
                        if !known.masks.contains(&mask) {
                            known.masks.push(mask);
                        }
                        pattern.to_vec()
                    }
                    Pattern::Ja3(pattern) => pattern.to_vec(),
                };
                *known.pairs.entry(key).or_default() |= family.bit();
                known.families |= family.bit();
            }
        }
        for rule in list.rules {
            if rule.reaction() == BotReaction::Unspecified {
                return Err("a fingerprint has no action that this filter knows".to_owned());
            }
            known.rules.push((read(&rule.fingerprint)?, rule));
        }
        Ok(known)
    }

    /// The bits of the families that have a fingerprint: at most eight looks into the pairs.
    pub(super) fn families(&self, fingerprint: &Fingerprint) -> u32 {
        let of = |key: &[u8]| self.pairs.get(key).copied().unwrap_or(0);
        let by_ja4 = |ja4: Ja4| self.masks.iter().fold(0, |all, mask| all | of(&masked(ja4.bytes(), *mask)));
        fingerprint.ja4.map_or(0, by_ja4) | fingerprint.ja3.map_or(0, |ja3| of(ja3.bytes()))
    }

    /// Whether fingerprints of a family, or one with the same TLS, are known.
    pub(super) fn has(&self, family: Family) -> bool {
        self.families & family.kin() != 0
    }

    /// The first rule for a fingerprint.
    pub(super) fn rule(&self, fingerprint: &Fingerprint) -> Option<&FingerprintRule> {
        self.rules.iter().find(|(pattern, _)| pattern.matches(fingerprint)).map(|(_, rule)| rule)
    }
}

fn read(text: &str) -> Result<Pattern, String> {
    Pattern::read(text).ok_or_else(|| format!("`{}` is no TLS fingerprint", text.escape_debug()))
}

#[cfg(test)]
mod tests {
    use exchange::tls::Ja3;

    use super::*;

    const JA4: &str = "t13d1516h2_8daaf6152771_02713d6af862";
    const JA3: &str = "cd08e31494f9531f560d64c695473da9";

    fn of(ja4: &str, ja3: &str) -> Fingerprint {
        Fingerprint { ja4: Ja4::read(ja4.as_bytes()), ja3: Ja3::read(ja3.as_bytes()) }
    }

    #[test]
    fn a_pattern_has_at_least_one_part_and_matches_by_those_it_has() {
        for (pattern, matches) in [
            (JA4, true),
            ("t13d1516h2_8daaf6152771_*", true),
            ("*_8daaf6152771_*", true),
            ("t13d1516h2_*_02713d6af862", true),
            ("*_*_02713d6af862", true),
            ("t13d1516h1_*_*", false),
            ("*_8daaf6152772_*", false),
            (JA3, true),
            ("cd08e31494f9531f560d64c695473da8", false),
        ] {
            assert_eq!(Pattern::read(pattern).unwrap().matches(&of(JA4, JA3)), matches, "{pattern}");
            assert!(!Pattern::read(pattern).unwrap().matches(&of("", "")), "{pattern}");
        }
        for wrong in
            ["*_*_*", "*", "", "t13d1516h2", "t13d1516h2_8daaf6152771", "t13*_*_*", "t13d1516h2_8daaf6152771_*_*"]
        {
            assert_eq!(Pattern::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_fingerprint_may_be_of_several_families_by_several_of_its_parts() {
        let pair = |family: &str, fingerprints: &[&str]| FingerprintPair {
            family: family.to_owned(),
            fingerprints: fingerprints.iter().map(|text| (*text).to_owned()).collect(),
        };
        let pairs = vec![pair("curl", &[JA4]), pair("python", &["*_8daaf6152771_*"]), pair("go", &[JA3])];
        let known = KnownFingerprints::new(FingerprintList { pairs, rules: Vec::new() }).unwrap();
        let bits = |words: &[&str]| words.iter().fold(0, |all, word| all | Family::read(word).unwrap().bit());
        assert_eq!(known.families(&of(JA4, "")), bits(&["curl", "python"]));
        assert_eq!(known.families(&of("t12i0505h1_8daaf6152771_000000000000", JA3)), bits(&["python", "go"]));
        assert_eq!(known.families(&of("t12i0505h1_000000000000_000000000000", "")), 0);
        assert!(known.has(Family::read("go").unwrap()) && !known.has(Family::read("chrome").unwrap()));
        let refused = |list| KnownFingerprints::new(list).err().unwrap();
        let list = FingerprintList { pairs: vec![pair("netscape", &[JA4])], rules: Vec::new() };
        assert!(refused(list).contains("netscape"));
        let list = FingerprintList { pairs: vec![pair("curl", &["*_*_*"])], rules: Vec::new() };
        assert!(refused(list).contains("no TLS fingerprint"));
    }
}
