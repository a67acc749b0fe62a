//! Files that are compressed streams, one behind the other, as `tar.xz` has them.

use super::coding::Coding;
use super::unpack::CHUNK;
use super::{Opener, Stop, opaque};
use crate::bytes::{le32, place};
use crate::{Format, Name, Reason, identify_plain};

/// The most streams of a file.
pub(super) const MAX_STREAMS: usize = 1000;

pub(super) fn open(
    opener: &mut Opener<'_>,
    bytes: &[u8],
    (format, coding): (Format, Coding),
    depth: u32,
    complete: bool,
) -> Result<(), Stop> {
    if let Some(length) = opaque::declared(bytes, format, complete) {
        opener.declares(length)?;
    }
    let mut rest = bytes;
    let mut content = Content::default();
    let mut streams = 0;
    while !rest.is_empty() {
        opener.step()?;
        if let Some(length) = skipped(coding, rest) {
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        let begins = coding.signature().map_or(streams == 0, |signature| rest.starts_with(signature));
        if !begins || streams == MAX_STREAMS {
            if streams == 0 && complete {
                return Err(opener.unreadable(format!("the header of a {format} file is damaged")));
            }
            if !padding(coding, rest) && complete {
                opener.findings.add(Reason::Polyglot, format!("data follows a {format} file"));
            }
            break;
        }
        streams += 1;
        let unpacked = opener.unpack(coding, rest, |start| content.is_opened(start))?;
        content.add(&unpacked.kept, unpacked.whole, opener.work.memory);
        if !unpacked.ended {
            if complete {
                return Err(opener.unreadable(format!("a {format} file is damaged, or needs too much memory")));
            }
            break;
        }
        rest = rest.get(unpacked.taken..).unwrap_or_default();
    }
    content.open(opener, &Name::default(), format, depth, complete)
}

/// The length of a frame of zstd that decoders skip (RFC 8878, section 3.1.2).
fn skipped(coding: Coding, bytes: &[u8]) -> Option<usize> {
    let is_skipped = |magic: &u32| coding == Coding::Zstd && (0x184d_2a50..=0x184d_2a5f).contains(magic);
    le32(bytes, 0).filter(is_skipped)?;
    Some(place(le32(bytes, 4)?).saturating_add(8))
}

/// Whether nothing but padding follows.
fn padding(coding: Coding, rest: &[u8]) -> bool {
    coding == Coding::Xz && rest.iter().all(|byte| *byte == 0)
}

/// The content of a file of compressed streams: that of all of them.
#[derive(Default)]
pub(super) struct Content {
    bytes: Vec<u8>,
    /// Something of it was not kept.
    cut: bool,
}

impl Content {
    /// Whether content that goes on with a stream that `start`s so is opened.
    pub(super) fn is_opened(&self, start: &[u8]) -> bool {
        // As many bytes as decide of the first stream; all of them would be searched again for each stream.
        let known = self.bytes.get(..CHUNK).unwrap_or(&self.bytes);
        super::opens(if known.is_empty() { start } else { known })
    }

    /// Adds the content of a stream, which is whole or not, as far as there is memory.
    pub(super) fn add(&mut self, kept: &[u8], whole: bool, memory: u64) {
        let length = self.bytes.len().saturating_add(kept.len());
        let fits = u64::try_from(length).is_ok_and(|length| length <= memory);
        self.cut |= !whole || !fits;
        if fits {
            self.bytes.extend_from_slice(kept);
        }
    }

    /// Opens it, if it is an archive, and checks its type where the policy says so.
    pub(super) fn open(
        self,
        opener: &mut Opener<'_>,
        name: &Name,
        outer: Format,
        depth: u32,
        complete: bool,
    ) -> Result<(), Stop> {
        let bytes = &self.bytes;
        if self.cut || !super::opens(bytes) {
            opener.kind_of_start(name, bytes);
            return match super::opens(bytes) {
                true => Err(opener.unreadable(format!("an archive within a {outer} file is too long to be opened"))),
                false => Ok(()),
            };
        }
        // A tar file that is compressed is one archive.
        let tar = identify_plain(bytes) == Format::Tar;
        opener.holding(bytes.len(), |opener| match tar {
            true => {
                opener.kind(name, Format::Tar);
                opener.open(bytes, Format::Tar, depth, complete)
            }
            false => opener.content(name, bytes, depth, complete),
        })
    }
}
