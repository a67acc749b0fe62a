//! The compiled configuration of a step.

use prost::{Enumeration, Message};

/// Configuration of a `sensitive-data` step.
#[derive(Clone, PartialEq, Message)]
pub struct SensitiveDataStep {
    /// It only reports what it would have masked or withheld.
    #[prost(bool, tag = "1")]
    pub monitor: bool,
    /// The most bytes of a body that are inspected.
    #[prost(uint64, tag = "2")]
    pub body_limit: u64,
    /// The media types that are inspected; empty for the usual ones.
    #[prost(string, repeated, tag = "3")]
    pub content_types: Vec<String>,
    /// The fewest distinct e-mail addresses of a response that are reported.
    #[prost(uint32, tag = "4")]
    pub email_threshold: u32,
    /// The weight of a signal, 0 to 100.
    #[prost(double, tag = "5")]
    pub weight: f64,
    /// The detectors that are not off.
    #[prost(message, repeated, tag = "6")]
    pub detectors: Vec<DetectorAction>,
    /// Detectors of the configuration, at most 16.
    #[prost(message, repeated, tag = "7")]
    pub custom: Vec<CustomDetector>,
    /// Requests for parts of texts go on, and the parts are not inspected.
    #[prost(bool, tag = "8")]
    pub pass_ranges: bool,
}

/// A built-in detector and what is done about its matches.
#[derive(Clone, PartialEq, Message)]
pub struct DetectorAction {
    /// Its name.
    #[prost(string, tag = "1")]
    pub detector: String,
    /// What is done.
    #[prost(enumeration = "DataAction", tag = "2")]
    pub action: i32,
}

/// A detector of the configuration.
#[derive(Clone, PartialEq, Message)]
pub struct CustomDetector {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A regular expression whose matches have at most 256 bytes.
    #[prost(string, tag = "2")]
    pub pattern: String,
    /// What matches must have beyond that.
    #[prost(enumeration = "PatternChecksum", tag = "3")]
    pub checksum: i32,
    /// What is done.
    #[prost(enumeration = "DataAction", tag = "4")]
    pub action: i32,
}

/// What is done about a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum DataAction {
    /// None was given: no step has this.
    Unspecified = 0,
    /// It is reported.
    Log = 1,
    /// It is masked, and the response goes on.
    Mask = 2,
    /// The response is withheld.
    Block = 3,
}

/// The checksum of the matches of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum PatternChecksum {
    /// None.
    None = 0,
    /// The last digit is the Luhn digit of the others.
    Luhn = 1,
    /// The remainder modulo 97 is 1, as of an IBAN.
    Mod97 = 2,
}
