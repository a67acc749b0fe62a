//! What is wrong with a file.

/// Why a file is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A name holds a NUL byte.
    NullByte,
    /// A name leads out of its folder.
    ZipSlip,
    /// A multipart body that cannot be read.
    MalformedMultipart,
    /// Opening it writes more than the limits allow, or entries of it share their bytes.
    ArchiveBomb,
    /// An archive in an archive, deeper than the limit.
    ArchiveDepth,
    /// More entries than the limit.
    ArchiveEntries,
    /// More files in a request than the limit.
    TooManyFiles,
    /// A file is longer than the limit.
    FileTooLarge,
    /// The extension is denied.
    DeniedExtension,
    /// An extension in front of the last one is denied, or the name hides its extension.
    DoubleExtension,
    /// The extension is none of those allowed.
    ExtensionNotAllowed,
    /// The type of the content is denied.
    DeniedType,
    /// The type of the content is none of those allowed.
    TypeNotAllowed,
    /// The content is not what the extension or the media type says.
    TypeMismatch,
    /// The content can be read as two formats.
    Polyglot,
    /// An archive that cannot be read: encrypted, damaged, contradictory, of a method that is not known, or too much work.
    UnreadableArchive,
    /// The coding of a body or of a field cannot be undone.
    UndecodableBody,
    /// A scanner has found malware.
    Malware,
    /// A scanner has not answered.
    ScanFailed,
}

impl Reason {
    /// Every reason, those that decide first in front.
    pub const ALL: [Self; 19] = [
        Self::NullByte,
        Self::ZipSlip,
        Self::MalformedMultipart,
        Self::ArchiveBomb,
        Self::ArchiveDepth,
        Self::ArchiveEntries,
        Self::TooManyFiles,
        Self::FileTooLarge,
        Self::DeniedExtension,
        Self::DoubleExtension,
        Self::ExtensionNotAllowed,
        Self::DeniedType,
        Self::TypeNotAllowed,
        Self::TypeMismatch,
        Self::Polyglot,
        Self::UnreadableArchive,
        Self::UndecodableBody,
        Self::Malware,
        Self::ScanFailed,
    ];

    /// Its word in answers and tags.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NullByte => "null_byte",
            Self::ZipSlip => "zip_slip",
            Self::MalformedMultipart => "malformed_multipart",
            Self::ArchiveBomb => "archive_bomb",
            Self::ArchiveDepth => "archive_depth",
            Self::ArchiveEntries => "archive_entries",
            Self::TooManyFiles => "too_many_files",
            Self::FileTooLarge => "file_too_large",
            Self::DeniedExtension => "denied_extension",
            Self::DoubleExtension => "double_extension",
            Self::ExtensionNotAllowed => "extension_not_allowed",
            Self::DeniedType => "denied_type",
            Self::TypeNotAllowed => "type_not_allowed",
            Self::TypeMismatch => "type_mismatch",
            Self::Polyglot => "polyglot",
            Self::UnreadableArchive => "unreadable_archive",
            Self::UndecodableBody => "undecodable_body",
            Self::Malware => "malware",
            Self::ScanFailed => "scan_failed",
        }
    }

    /// Whether it shows an attack: people who upload the wrong file, or one that is too long, do not come to it.
    #[must_use]
    pub const fn is_attack(self) -> bool {
        use Reason::{ArchiveBomb, DoubleExtension, Malware, NullByte, Polyglot, ZipSlip};
        matches!(self, ArchiveBomb | DoubleExtension | Malware | NullByte | Polyglot | ZipSlip)
    }

    /// The status of a refusal for it.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::NullByte | Self::ZipSlip | Self::MalformedMultipart => 400,
            Self::Malware => 403,
            Self::ArchiveBomb | Self::ArchiveDepth | Self::ArchiveEntries | Self::TooManyFiles | Self::FileTooLarge => {
                413
            }
            Self::DeniedExtension
            | Self::DoubleExtension
            | Self::ExtensionNotAllowed
            | Self::DeniedType
            | Self::TypeNotAllowed
            | Self::TypeMismatch
            | Self::Polyglot
            | Self::UnreadableArchive
            | Self::UndecodableBody => 415,
            Self::ScanFailed => 503,
        }
    }
}

/// Something that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Why it is refused.
    pub reason: Reason,
    /// What it is, for people: a sentence without its end.
    pub detail: String,
}

/// The most findings of one request that are kept.
const MAX_FINDINGS: usize = 16;

/// The findings of a request, each reason once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Adds a finding, unless there is one of its reason.
    pub fn add(&mut self, reason: Reason, detail: impl Into<String>) {
        if self.0.len() < MAX_FINDINGS && !self.has(reason) {
            self.0.push(Finding { reason, detail: detail.into() });
        }
    }

    /// Whether there is one of this reason.
    #[must_use]
    pub fn has(&self, reason: Reason) -> bool {
        self.0.iter().any(|finding| finding.reason == reason)
    }

    /// All of them, in the order in which they were found.
    #[must_use]
    pub fn list(&self) -> &[Finding] {
        &self.0
    }

    /// The one that decides: the first in the order of [`Reason`].
    #[must_use]
    pub fn first(&self) -> Option<&Finding> {
        self.0.iter().min_by_key(|finding| finding.reason)
    }
}
