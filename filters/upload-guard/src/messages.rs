//! The compiled configuration of a step.

use prost::{Enumeration, Message};
use snapshot::Topic;

/// Configuration of an `upload-guard` step.
#[derive(Clone, PartialEq, Message)]
pub struct UploadStep {
    /// It only reports what it would have refused.
    #[prost(bool, tag = "1")]
    pub monitor: bool,
    /// The most bytes of a body that are inspected.
    #[prost(uint64, tag = "2")]
    pub body_limit: u64,
    /// The extensions that files may have; empty for all.
    #[prost(string, repeated, tag = "3")]
    pub allowed_extensions: Vec<String>,
    /// The extensions that are refused.
    #[prost(string, repeated, tag = "4")]
    pub denied_extensions: Vec<String>,
    /// The types that files may have; empty for all.
    #[prost(string, repeated, tag = "5")]
    pub allowed_types: Vec<String>,
    /// The types that are refused.
    #[prost(string, repeated, tag = "6")]
    pub denied_types: Vec<String>,
    /// The content must be what the extension and the media type say.
    #[prost(bool, tag = "7")]
    pub check_mismatch: bool,
    /// The most files of a request.
    #[prost(uint32, tag = "8")]
    pub max_files: u32,
    /// The longest file, in bytes; 0 for any length.
    #[prost(uint64, tag = "9")]
    pub max_file_size: u64,
    /// How deep archives may lie in each other.
    #[prost(uint32, tag = "10")]
    pub archive_max_depth: u32,
    /// The most entries of archives.
    #[prost(uint64, tag = "11")]
    pub archive_max_entries: u64,
    /// The most bytes that archives may expand to.
    #[prost(uint64, tag = "12")]
    pub archive_max_expanded_size: u64,
    /// The most bytes that an archive may expand to for each of its own.
    #[prost(uint64, tag = "13")]
    pub archive_max_ratio: u64,
    /// Archives that cannot be read are refused.
    #[prost(bool, tag = "14")]
    pub reject_unreadable: bool,
    /// Extensions and types of the entries of archives are checked as those of files.
    #[prost(bool, tag = "15")]
    pub check_entries: bool,
    /// Fields of JSON that hold files.
    #[prost(message, repeated, tag = "16")]
    pub json_fields: Vec<JsonField>,
    /// What a reason that shows an attack adds to the score, 0 to 100.
    #[prost(double, tag = "17")]
    pub weight: f64,
    /// The scanner that files are sent to; empty for none.
    #[prost(string, tag = "18")]
    pub scanner: String,
    /// How long a request waits for the scanner, in milliseconds.
    #[prost(uint32, tag = "19")]
    pub scan_millis: u32,
    /// Requests whose files could not be scanned go on.
    #[prost(bool, tag = "20")]
    pub allow_unscanned: bool,
}

/// A field of JSON that holds a file in base64.
#[derive(Clone, PartialEq, Message)]
pub struct JsonField {
    /// Its path: keys joined by `.`, `[]` for each element of an array.
    #[prost(string, tag = "1")]
    pub path: String,
    /// The key beside it that has the file's name; empty for none.
    #[prost(string, tag = "2")]
    pub name: String,
}

/// Asks for a scan of the files in the body that comes along.
#[derive(Clone, PartialEq, Message)]
pub struct ScanFiles {
    /// The scanner: an id of `malware-scanners`.
    #[prost(string, tag = "1")]
    pub scanner: String,
    /// The `content-type` of the request.
    #[prost(bytes = "vec", tag = "2")]
    pub content_type: Vec<u8>,
    /// Its content codings, as one list.
    #[prost(bytes = "vec", tag = "3")]
    pub content_encoding: Vec<u8>,
    /// Fields of JSON that hold files.
    #[prost(message, repeated, tag = "4")]
    pub json_fields: Vec<JsonField>,
    /// The most bytes of the body, decoded.
    #[prost(uint64, tag = "5")]
    pub body_limit: u64,
    /// The most files of the body.
    #[prost(uint32, tag = "6")]
    pub max_files: u32,
    /// How long the request waits, in milliseconds.
    #[prost(uint32, tag = "7")]
    pub millis: u32,
    /// The address of the caller; empty where it is not known.
    #[prost(string, tag = "8")]
    pub ip: String,
}

impl Topic for ScanFiles {
    const TOPIC: &'static str = "upload-guard.scan";
    type Answer = ScanAnswer;
}

/// What a scan has found.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ScanAnswer {
    /// The verdict.
    #[prost(enumeration = "ScanVerdict", tag = "1")]
    pub verdict: i32,
    /// The name of what was found, or why there is no verdict.
    #[prost(string, tag = "2")]
    pub detail: String,
}

/// The verdict of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum ScanVerdict {
    /// There is none.
    Failed = 0,
    /// Nothing was found in any file.
    Clean = 1,
    /// A file is infected.
    Infected = 2,
    /// There is none, because callers send more than is scanned at once: that is no failure of the scanner, and lets nothing pass.
    Overrun = 3,
}
