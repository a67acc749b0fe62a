//! Sensitive data in a text: numbers with checksums, keys and tokens with known beginnings, many e-mail addresses.

mod checksum;
mod custom;
mod emails;
mod iban;
mod mask;
mod numbers;
mod separators;
mod tokens;

pub use checksum::Checksum;
pub use custom::{CustomPattern, MAX_PATTERN_BYTES};
pub use mask::{Form, mask, mask_all};

use crate::escapes::{byte, byte_before, is_inside_word, is_word};
use emails::Emails;
use tokens::Tokens;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detector {
    /// Payment card numbers of 14 to 19 digits, with a known issuer and a right Luhn digit (ISO/IEC 7812-1).
    Card,
    /// International bank account numbers (ISO 13616): length by country, remainder 1 modulo 97.
    Iban,
    /// French social security numbers with their key.
    FrNir,
    /// US social security numbers, with hyphens.
    UsSsn,
    /// Keys of cloud providers.
    CloudKey,
    /// Tokens of code hosts, package registries, messengers, payment services.
    ServiceToken,
    /// Keys of services for language models.
    LlmKey,
    /// Private keys in PEM (RFC 7468) and OpenPGP armor.
    PrivateKey,
    /// JSON Web Tokens with a signature (RFC 7519).
    Jwt,
    /// At least a threshold of distinct e-mail addresses.
    EmailBulk,
    /// A pattern of the configuration, by its place.
    Custom(u8),
}

impl Detector {
    /// The detectors with a name of their own.
    pub const BUILT_IN: [Self; 10] = [
        Self::Card,
        Self::Iban,
        Self::FrNir,
        Self::UsSsn,
        Self::CloudKey,
        Self::ServiceToken,
        Self::LlmKey,
        Self::PrivateKey,
        Self::Jwt,
        Self::EmailBulk,
    ];

    /// The name in configurations, tags and events; `custom` for those of a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Iban => "iban",
            Self::FrNir => "fr_nir",
            Self::UsSsn => "us_ssn",
            Self::CloudKey => "cloud_key",
            Self::ServiceToken => "service_token",
            Self::LlmKey => "llm_key",
            Self::PrivateKey => "private_key",
            Self::Jwt => "jwt",
            Self::EmailBulk => "email_bulk",
            Self::Custom(_) => "custom",
        }
    }

    fn bit(self) -> u16 {
        match self {
            Self::Custom(_) => 0,
            other => Self::BUILT_IN.iter().position(|known| *known == other).map_or(0, |at| 1 << at),
        }
    }
}

/// A set of built-in detectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DetectorSet(u16);

impl DetectorSet {
    /// Whether a detector is in it.
    #[must_use]
    pub fn has(self, detector: Detector) -> bool {
        self.0 & detector.bit() != 0
    }

    fn any(self, detectors: &[Detector]) -> bool {
        detectors.iter().any(|detector| self.has(*detector))
    }
}

impl FromIterator<Detector> for DetectorSet {
    fn from_iter<I: IntoIterator<Item = Detector>>(detectors: I) -> Self {
        Self(detectors.into_iter().fold(0, |set, detector| set | detector.bit()))
    }
}

/// A match: the bytes from `start` to `end` of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// What was found.
    pub detector: Detector,
    /// Its first byte.
    pub start: usize,
    /// The byte behind its last.
    pub end: usize,
}

/// The scanner of one configuration.
#[derive(Debug)]
pub struct Scanner {
    detectors: DetectorSet,
    email_threshold: usize,
    tokens: Option<Tokens>,
    custom: Vec<CustomPattern>,
}

impl Scanner {
    /// A scanner of these detectors. `email_threshold` is the fewest distinct addresses that [`Detector::EmailBulk`] reports.
    #[must_use]
    pub fn new(detectors: DetectorSet, email_threshold: usize, custom: Vec<CustomPattern>) -> Self {
        Self { detectors, email_threshold, tokens: Tokens::new(detectors), custom }
    }

    /// All matches in a text, sorted by their beginning. They may overlap where two detectors know the same bytes.
    #[must_use]
    pub fn scan(&self, text: &[u8]) -> Vec<Finding> {
        let mut found = Vec::new();
        let set = self.detectors;
        if set.any(&[Detector::Card, Detector::Iban, Detector::FrNir, Detector::UsSsn, Detector::EmailBulk]) {
            let mut emails = set.has(Detector::EmailBulk).then(|| Emails::new(self.email_threshold));
            numbers::scan(text, set, emails.as_mut(), &mut found);
            found.extend(emails.into_iter().flat_map(Emails::into_findings));
        }
        if let Some(tokens) = &self.tokens {
            tokens.scan(text, &mut found);
        }
        for (place, pattern) in (0u8..).zip(&self.custom) {
            pattern.scan(text, Detector::Custom(place), &mut found);
        }
        found.sort_unstable_by_key(|finding| (finding.start, finding.end, finding.detector));
        // Digits behind a percent sign are read in two ways.
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests;
