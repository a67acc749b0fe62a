//! tar: ustar (POSIX 1003.1), with the extensions of GNU and pax, and the form before it.

mod pax;
mod pixz;

use super::{Opener, Stop};
use crate::bytes::{place, slice};
use crate::{Name, Reason};

use pax::Said;

/// The length of a header and of the unit of content, in bytes.
const BLOCK: usize = 512;
/// The largest length that eleven octal digits have.
const MAX_OCTAL: u64 = 0o777_7777_7777;

/// Whether bytes begin with a header, of the old form without a signature too: its checksum is right. Its name may be of any bytes, or
/// empty where a header in front of it has another one.
pub(crate) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(..BLOCK).is_some_and(is_right)
}

pub(super) fn open(opener: &mut Opener<'_>, bytes: &[u8], depth: u32, complete: bool) -> Result<(), Stop> {
    let mut rest = bytes;
    // What headers in front say of the next entry, and of all that follow.
    let (mut said, mut global) = (Said::default(), Said::default());
    let (mut ended, mut extended) = (false, false);
    while let Some(header) = rest.get(..BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            ended = true;
            let behind = rest.get(BLOCK..).unwrap_or_default();
            let start = behind.iter().position(|byte| *byte != 0);
            let behind = start.and_then(|start| behind.get(start..)).unwrap_or_default();
            if !behind.is_empty() && !pixz::is_index(behind, bytes.len()) {
                opener.findings.add(Reason::Polyglot, "data follows the end of a tar file");
            }
            break;
        }
        if !is_right(header) {
            return Err(opener.unreadable("a header of a tar file is damaged"));
        }
        let Some(mut size) = number(slice(header, 124, 12).unwrap_or_default()) else {
            return Err(opener.unreadable("a header of a tar file has no length"));
        };
        let kind = header.get(156).copied().unwrap_or_default();
        let is_entry = !matches!(kind, b'L' | b'K' | b'x' | b'X' | b'g');
        if let Some(other) = said.size.or(global.size).filter(|other| is_entry && *other != size) {
            // A length that the header has no place for is in front of it alone.
            if other <= MAX_OCTAL {
                opener.unreadable("two headers of a tar file contradict each other on a length");
            }
            size = other;
        }
        // Links, devices and folders have no content, whatever they say.
        let length = if matches!(kind, b'1'..=b'6') { 0 } else { place(size) };
        let mut behind = rest.get(BLOCK..).unwrap_or_default();
        extended |= matches!(kind, b'x' | b'X' | b'g');
        if kind == b'1' && size > 0 && has_content(header, behind, extended) {
            return Err(opener.unreadable("some readers take what follows a hard link of a tar file for its content"));
        }
        // The list of the parts of a sparse file goes on in blocks of its own.
        let mut listed = kind == b'S' && header.get(482).is_some_and(|more| *more != 0);
        while listed {
            opener.step()?;
            listed = behind.get(504).is_some_and(|more| *more != 0);
            behind = behind.get(BLOCK..).unwrap_or_default();
        }
        let whole = slice(behind, 0, length);
        if whole.is_none() {
            opener.declares(size)?;
            if complete {
                return Err(opener.unreadable("a tar file is shorter than its entries"));
            }
        }
        let content = whole.unwrap_or(behind);
        match kind {
            b'L' | b'K' => {
                opener.step()?;
                let long = text(content);
                if kind == b'L' { said.name(opener, long) } else { said.target(long) }
            }
            // Solaris has `X` for `x`.
            b'x' | b'X' => {
                opener.step()?;
                said.read(opener, content, whole.is_some())?;
            }
            b'g' => {
                opener.step()?;
                global.read(opener, content, whole.is_some())?;
                global.keep_last();
            }
            _ => {
                let name = names(opener, header, &said, &global)?;
                if matches!(kind, b'1' | b'2') {
                    link(opener, header, &said, &global);
                }
                let real = if kind == b'S' { number(slice(header, 483, 12).unwrap_or_default()) } else { said.real };
                opener.expand(real.unwrap_or(0).max(u64::try_from(content.len()).unwrap_or(u64::MAX)))?;
                opener.content(&name, content, depth, whole.is_some())?;
                said = Said::default();
            }
        }
        let blocks = length.div_ceil(BLOCK).saturating_mul(BLOCK);
        rest = behind.get(blocks..).unwrap_or_default();
    }
    if complete && !ended && !rest.is_empty() {
        return Err(opener.unreadable("a tar file ends within a header"));
    }
    Ok(())
}

/// Counts an entry, and checks its name and the global one; those of headers in front of it alone are checked already.
fn names(opener: &mut Opener<'_>, header: &[u8], said: &Said<'_>, global: &Said<'_>) -> Result<Name, Stop> {
    let name = opener.entry(&path(header), true)?;
    for other in &other_paths(header) {
        opener.named(other, true);
    }
    for other in &global.names {
        opener.named(other, true);
    }
    Ok(said.names.last().map_or(name, |last| Name::read(last)))
}

/// Checks a link. The name and the target in its header may be cut where longer ones are in front of it.
fn link(opener: &mut Opener<'_>, header: &[u8], said: &Said<'_>, global: &Said<'_>) {
    let own = path(header);
    // A link is as deep as its prefix says where the format has one.
    let others = if has_prefix(header) { Vec::new() } else { other_paths(header) };
    let mut names = said.names.clone();
    if names.is_empty() {
        names.push(&own);
        names.extend(others.iter().map(Vec::as_slice));
        names.extend(&global.names);
    }
    let mut targets = [said.targets.as_slice(), &global.targets].concat();
    targets.push(text(slice(header, 157, 100).unwrap_or_default()));
    opener.link(&names, &targets, header.get(156) == Some(&b'1'));
}

/// The name of an entry, with its prefix.
fn path(header: &[u8]) -> Vec<u8> {
    match parts(header) {
        (name, prefix) if has_prefix(header) && !prefix.is_empty() => [prefix, b"/", name].concat(),
        (name, _) => name.to_vec(),
    }
}

/// The names that readers give an entry who join the prefix in another way, or take one where the format has none: GNU has two times
/// there, whose digits lead nowhere.
fn other_paths(header: &[u8]) -> Vec<Vec<u8>> {
    match parts(header) {
        (_, []) => Vec::new(),
        (name, prefix) if has_prefix(header) => vec![[prefix, name].concat()],
        (name, prefix) => vec![[prefix, b"/", name].concat(), [prefix, name].concat()],
    }
}

/// The name and the prefix of a header.
fn parts(header: &[u8]) -> (&[u8], &[u8]) {
    let field = |at, length| text(slice(header, at, length).unwrap_or_default());
    (field(0, 100), field(345, 155))
}

/// Whether a header is of the format that has a prefix (POSIX).
fn has_prefix(header: &[u8]) -> bool {
    slice(header, 257, 5) == Some(b"ustar") && slice(header, 257, 8) != Some(b"ustar  \0")
}

/// Whether some readers (libarchive) take what is behind a hard link for its content: where a header of pax came before, and in a POSIX
/// archive where no header of that format follows. Many archives have the length of the file there, and no content.
fn has_content(header: &[u8], behind: &[u8], extended: bool) -> bool {
    let next = behind.get(..BLOCK).unwrap_or_default();
    let ends = next.iter().all(|byte| *byte == 0);
    extended || has_prefix(header) && !ends && slice(next, 257, 5) != Some(b"ustar")
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A number in octal digits, or in base 256 where the first bit is set.
fn number(field: &[u8]) -> Option<u64> {
    let (first, rest) = field.split_first()?;
    if *first & 0x80 != 0 {
        let start = u64::from(first & 0x7f);
        return rest.iter().try_fold(start, |value, byte| value.checked_mul(256)?.checked_add(u64::from(*byte)));
    }
    let digits = field.trim_ascii_start().split(|byte| matches!(byte, 0 | b' ')).next().unwrap_or_default();
    digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 8)?;
        value.checked_mul(8)?.checked_add(u64::from(digit))
    })
}

/// Whether the checksum of a header is right: the sum of its bytes with blanks in place of the checksum. Old programs have added them as
/// numbers with a sign. A checksum is never zero, as which a field without digits is read.
fn is_right(header: &[u8]) -> bool {
    let bytes = || header.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { *byte });
    let sum: i64 = bytes().map(i64::from).sum();
    let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
    let named = number(slice(header, 148, 8).unwrap_or_default()).and_then(|named| i64::try_from(named).ok());
    named.is_some_and(|named| named > 0 && (named == sum || named == signed))
}
