//! gzip (RFC 1952): one or more members.

use super::stream::{Content, MAX_STREAMS};
use super::{Opener, Stop};
use crate::bytes::{le16, le32};
use crate::{Format, Name, Reason};

/// The header of a member.
struct Header<'a> {
    name: Option<&'a [u8]>,
    length: usize,
}

pub(super) fn open(opener: &mut Opener<'_>, bytes: &[u8], depth: u32, complete: bool) -> Result<(), Stop> {
    let mut rest = bytes;
    let mut content = Content::default();
    let mut members = 0;
    let mut name = Name::default();
    while !rest.is_empty() {
        members += 1;
        let Some(header) = header(rest).filter(|_| members <= MAX_STREAMS) else {
            if rest.iter().all(|byte| *byte == 0) {
                break;
            }
            if members > 1 && complete {
                opener.findings.add(Reason::Polyglot, "data follows a gzip file");
            } else if complete {
                return Err(opener.unreadable("the header of a gzip file is damaged"));
            }
            break;
        };
        if let Some(raw) = header.name {
            name = opener.entry(raw, true)?;
        } else {
            opener.step()?;
        }
        let input = rest.get(header.length..).unwrap_or_default();
        let inflated = opener.inflate(input, |start| content.is_opened(start))?;
        content.add(&inflated.kept, inflated.whole, opener.work.memory);
        let trailer = input.get(inflated.taken..).unwrap_or_default();
        if !inflated.ended {
            if complete {
                return Err(opener.unreadable("the data of a gzip file is damaged"));
            }
            break;
        }
        let sum = (le32(trailer, 0), le32(trailer, 4).map(u64::from));
        if sum != (Some(inflated.crc), Some(inflated.length & 0xffff_ffff)) && (complete || trailer.len() >= 8) {
            return Err(opener.unreadable("a gzip file lies about its content"));
        }
        rest = trailer.get(8..).unwrap_or_default();
    }
    content.open(opener, &name, Format::Gzip, depth, complete)
}

fn header(bytes: &[u8]) -> Option<Header<'_>> {
    if !bytes.starts_with(b"\x1f\x8b\x08") {
        return None;
    }
    let flags = *bytes.get(3)?;
    let mut at: usize = 10;
    if flags & 0x04 != 0 {
        at = at.checked_add(2)?.checked_add(usize::from(le16(bytes, at)?))?;
    }
    let mut text = |set: bool| {
        if !set {
            return Some(None);
        }
        let rest = bytes.get(at..)?;
        let length = memchr::memchr(0, rest)?;
        at += length + 1;
        Some(rest.get(..length))
    };
    let name = text(flags & 0x08 != 0)?;
    text(flags & 0x10 != 0)?;
    let length = if flags & 0x02 != 0 { at + 2 } else { at };
    (flags & 0xe0 == 0 && length <= bytes.len()).then_some(Header { name, length })
}
