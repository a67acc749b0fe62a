//! The plugin's configuration.

use std::collections::BTreeMap;

use kit::{FieldProblem, checks, did_you_mean, token, typed};
use response_scan::content_types_problem;
use response_scan::sensitive::{Checksum, CustomPattern, Detector, MAX_PATTERN_BYTES};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CustomDetector, DataAction, DetectorAction, MAX_CUSTOM, PatternChecksum, SensitiveDataStep};

/// The largest `body_limit`, in bytes: 4 MiB.
const MAX_BODY_LIMIT: u64 = 4 << 20;
/// The most entries of `content_types`.
const MAX_CONTENT_TYPES: usize = 64;
/// The highest `email_threshold`.
const MAX_EMAILS: u32 = 10_000;
/// The longest match of a pattern, in bytes. With it a search is linear in the body.
const MAX_MATCH: usize = 256;
/// The longest name of a detector, in bytes.
const MAX_NAME: usize = 64;

/// What is done about each detector, by its name.
pub(super) type Choices = BTreeMap<String, DetectorChoice>;

/// Whether matches have consequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensitiveDataMode {
    /// They have those of their detector.
    #[default]
    Enforce,
    /// They are reported.
    Monitor,
}

/// What is done about matches of a detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetectorChoice {
    /// It is not looked for.
    Off,
    /// They are reported.
    Log,
    /// They are masked.
    Mask,
    /// The response is withheld.
    Block,
}

/// A checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternCheck {
    /// None.
    #[default]
    None,
    /// The Luhn digit.
    Luhn,
    /// Remainder 1 modulo 97, as of an IBAN.
    Mod97,
}

/// A detector of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomConfig {
    /// Its name: lower-case letters, digits and `_`.
    pub name: String,
    /// A regular expression on bytes.
    pub pattern: String,
    /// What matches must have beyond that.
    #[serde(default)]
    pub checksum: PatternCheck,
    /// What is done.
    #[serde(default = "mask")]
    pub action: DetectorChoice,
}

/// The configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SensitiveDataConfig {
    /// Whether matches have consequences.
    pub mode: SensitiveDataMode,
    /// What is done about each detector; those that are not named keep their default.
    pub detectors: BTreeMap<String, DetectorChoice>,
    /// Further detectors, at most [`MAX_CUSTOM`].
    pub custom_detectors: Vec<CustomConfig>,
    /// The fewest distinct addresses that `email_bulk` reports: 1 to 10,000.
    pub email_threshold: u32,
    /// The most bytes of a body that are inspected: 1 KiB to 4 MiB.
    pub body_limit: u64,
    /// The media types that are inspected; empty for texts, JSON and XML.
    pub content_types: Vec<String>,
    /// What the matches of a detector add to the score: 0 to 100.
    pub weight: f64,
    /// Whether clients get parts of texts.
    pub ranges: Ranges,
}

/// Whether clients get parts of texts (RFC 9110, section 14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ranges {
    /// Only the whole of them: a part may cut what is looked for.
    Whole,
    /// They do, as the backend sends them, not inspected.
    #[default]
    Pass,
}

impl Default for SensitiveDataConfig {
    fn default() -> Self {
        Self {
            mode: SensitiveDataMode::Enforce,
            detectors: BTreeMap::new(),
            custom_detectors: Vec::new(),
            email_threshold: 50,
            body_limit: 262_144,
            content_types: Vec::new(),
            weight: 0.0,
            ranges: Ranges::Pass,
        }
    }
}

fn mask() -> DetectorChoice {
    DetectorChoice::Mask
}

/// What is done about a detector that a configuration does not name.
fn default_choice(detector: Detector) -> DetectorChoice {
    match detector {
        Detector::PrivateKey => DetectorChoice::Block,
        Detector::Jwt | Detector::EmailBulk => DetectorChoice::Log,
        _ => DetectorChoice::Mask,
    }
}

impl SensitiveDataConfig {
    /// Reads a configuration and checks it.
    pub(super) fn read(config: &Map<String, Value>) -> Result<Self, Vec<FieldProblem>> {
        let config: Self = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn problems(&self) -> Vec<FieldProblem> {
        let types = self.content_types.iter().enumerate().filter_map(|(place, entry)| {
            let problem = FieldProblem::new(format!("/content_types/{place}"), content_types_problem(entry)?);
            Some(problem.expected("a media type, such as `application/json` or `text/*`"))
        });
        let custom = self.custom_detectors.iter().enumerate().filter_map(|(place, own)| {
            let earlier = self.custom_detectors.iter().take(place);
            own.problem(earlier).map(|problem| problem.under(&format!("/custom_detectors/{place}")))
        });
        [
            check_detectors("/detectors", &self.detectors).err(),
            checks::within("/email_threshold", self.email_threshold, 1..=MAX_EMAILS),
            checks::within("/body_limit", self.body_limit, 1024..=MAX_BODY_LIMIT),
            checks::count("/content_types", self.content_types.len(), MAX_CONTENT_TYPES),
            checks::count("/custom_detectors", self.custom_detectors.len(), MAX_CUSTOM),
            checks::weight("/weight", self.weight),
        ]
        .into_iter()
        .flatten()
        .chain(types)
        .chain(custom)
        .collect()
    }

    /// The step.
    pub(super) fn step(&self) -> SensitiveDataStep {
        let built_in = Detector::BUILT_IN.into_iter().filter_map(|detector| {
            let choice = self.detectors.get(detector.name()).copied().unwrap_or_else(|| default_choice(detector));
            let action = action(choice)?.into();
            Some(DetectorAction { detector: detector.name().to_owned(), action })
        });
        let custom = self.custom_detectors.iter().filter_map(|own| {
            let checksum = match own.checksum {
                PatternCheck::None => PatternChecksum::None,
                PatternCheck::Luhn => PatternChecksum::Luhn,
                PatternCheck::Mod97 => PatternChecksum::Mod97,
            };
            let (name, pattern) = (own.name.clone(), own.pattern.clone());
            Some(CustomDetector { name, pattern, checksum: checksum.into(), action: action(own.action)?.into() })
        });
        SensitiveDataStep {
            monitor: self.mode == SensitiveDataMode::Monitor,
            body_limit: self.body_limit,
            content_types: self.content_types.clone(),
            email_threshold: self.email_threshold,
            weight: self.weight,
            detectors: built_in.collect(),
            custom: custom.collect(),
            pass_ranges: self.ranges == Ranges::Pass,
        }
    }
}

impl CustomConfig {
    fn problem<'a>(&self, mut earlier: impl Iterator<Item = &'a Self>) -> Option<FieldProblem> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if self.name.is_empty() || self.name.len() > MAX_NAME || !self.name.bytes().all(plain) {
            let problem = FieldProblem::new("/name", "the name of a detector is a word of at most 64 bytes");
            return Some(problem.expected("lower-case letters, digits and `_`"));
        }
        let known = Detector::BUILT_IN.iter().any(|detector| detector.name() == self.name);
        if known || earlier.any(|other| other.name == self.name) {
            return Some(FieldProblem::new("/name", format!("there is another detector `{}`", self.name)));
        }
        self.pattern_problem().map(|message| {
            FieldProblem::new("/pattern", message).expected("a regular expression whose matches have 1 to 256 bytes")
        })
    }

    fn pattern_problem(&self) -> Option<String> {
        if self.pattern.len() > MAX_PATTERN_BYTES {
            return Some(format!("the pattern has more than {MAX_PATTERN_BYTES} bytes"));
        }
        let mut parser = regex_syntax::ParserBuilder::new().utf8(false).unicode(false).build();
        let parsed = match parser.parse(&self.pattern) {
            Ok(parsed) => parsed,
            Err(error) => return Some(format!("the pattern is no regular expression: {error}")),
        };
        let properties = parsed.properties();
        let longest = properties.maximum_len();
        if longest.is_none_or(|longest| longest > MAX_MATCH) {
            return Some(
                "a match of the pattern may have more than 256 bytes; write `{1,20}` in place of `+` or `*`".to_owned(),
            );
        }
        if properties.minimum_len().unwrap_or(0) == 0 {
            return Some("the pattern matches the empty text".to_owned());
        }
        CustomPattern::new(&self.pattern, Checksum::None)
            .err()
            .map(|error| format!("the pattern is too large: {error}"))
    }
}

/// Whether all names are those of detectors.
pub(super) fn check_detectors(pointer: &str, choices: &Choices) -> Result<(), FieldProblem> {
    let names = || Detector::BUILT_IN.iter().map(|detector| detector.name());
    let Some(unknown) = choices.keys().find(|name| !names().any(|known| known == name.as_str())) else {
        return Ok(());
    };
    let hint = did_you_mean(unknown, names()).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
    let message = format!("there is no detector `{}`{hint}", unknown.escape_debug());
    let expected = format!("one of {}", names().collect::<Vec<_>>().join(", "));
    Err(FieldProblem::new(format!("{pointer}/{}", token(unknown)), message).expected(expected))
}

fn action(choice: DetectorChoice) -> Option<DataAction> {
    match choice {
        DetectorChoice::Off => None,
        DetectorChoice::Log => Some(DataAction::Log),
        DetectorChoice::Mask => Some(DataAction::Mask),
        DetectorChoice::Block => Some(DataAction::Block),
    }
}
