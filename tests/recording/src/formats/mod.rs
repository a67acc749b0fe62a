//! The formats' readers.

pub(crate) mod har;
pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod tap;

use std::path::Path;
use std::sync::Arc;

use crate::{Entries, Format, Input, Options, Reader};

/// The reader of a file: the one that was asked for, or the one that knows the file.
pub(crate) fn find(options: &Options, path: &Path, head: &[u8]) -> Result<Found, String> {
    if let Some(format) = options.format {
        return Ok(Found::Own(format));
    }
    if let Some(reader) = options.other.iter().find(|reader| reader.knows(path, head)) {
        return Ok(Found::Other(Arc::clone(reader)));
    }
    Format::find(path, head).map(Found::Own).ok_or_else(|| {
        let others = options.other.iter().map(|reader| reader.name());
        let tried: Vec<&str> = Format::ALL.iter().map(|format| format.name()).chain(others).collect();
        let text = path.extension().is_some_and(|ending| ending == "pb_text");
        let hint = if text { "; traces as protobuf text are not read: set the tap's format to PROTO_BINARY or JSON" } else { "" };
        format!(
            "the file is of no known format, by its content or by its name; tried: {}{hint}. Name the format, or leave the \
             file out",
            tried.join(", ")
        )
    })
}

/// What reads a file.
pub(crate) enum Found {
    Own(Format),
    Other(Arc<dyn Reader>),
}

impl Found {
    pub(crate) fn read(&self, input: Input) -> Entries {
        match self {
            Self::Other(reader) => reader.read(input),
            Self::Own(Format::Har) => Box::new(har::Har::new(input)),
            Self::Own(Format::TapJson) => Box::new(tap::Tap::new(input, tap::json::Documents::new)),
            Self::Own(Format::TapProto) => Box::new(tap::Tap::new(input, tap::proto::Single::new)),
            Self::Own(Format::TapDelimited) => Box::new(tap::Tap::new(input, tap::proto::Delimited::new)),
            Self::Own(Format::Http) => Box::new(http::read(input)),
            Self::Own(Format::Lines) => Box::new(lines::Lines::new(input)),
        }
    }
}

/// An entry that is longer than it may be.
pub(crate) fn too_long(length: u64, limit: usize) -> String {
    format!("the entry has {length} bytes, {limit} are allowed: raise the limit, or record less of the bodies")
}
