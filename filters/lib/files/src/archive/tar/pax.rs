//! What headers in front of an entry of a tar file say of it: those of pax (POSIX 1003.1), and the long names of GNU.

use crate::archive::{Opener, Stop};
use crate::bytes::place;

/// The longest global name and target that are kept, in bytes: systems have no longer paths.
const MAX_GLOBAL: usize = 4096;
/// The most digits of a number.
const MAX_DIGITS: usize = 20;

/// What is said of an entry.
#[derive(Default)]
pub(super) struct Said<'b> {
    /// Its names, in the order in which they are read: readers differ in which of them they take.
    pub(super) names: Vec<&'b [u8]>,
    /// Where it leads, if it is a link, likewise.
    pub(super) targets: Vec<&'b [u8]>,
    /// The length of its content, in bytes.
    pub(super) size: Option<u64>,
    /// How long a sparse file is once it is written, in bytes.
    pub(super) real: Option<u64>,
}

impl<'b> Said<'b> {
    /// Takes a name, and checks it at once: a later one may take its place.
    pub(super) fn name(&mut self, opener: &mut Opener<'_>, name: &'b [u8]) {
        if !name.is_empty() {
            opener.named(name, true);
            self.names.push(name);
        }
    }

    pub(super) fn target(&mut self, target: &'b [u8]) {
        if !target.is_empty() {
            self.targets.push(target);
        }
    }

    /// Keeps what all later entries have of a global header: the last name and the last target.
    pub(super) fn keep_last(&mut self) {
        for list in [&mut self.names, &mut self.targets] {
            *list = list.last().map(|last| last.get(..MAX_GLOBAL).unwrap_or(last)).into_iter().collect();
        }
    }

    /// Reads the records of a pax header, each of which is `LENGTH KEY=VALUE\n`. A value may hold line breaks.
    pub(super) fn read(&mut self, opener: &mut Opener<'_>, content: &'b [u8], whole: bool) -> Result<(), Stop> {
        let mut rest = content;
        // Padding may follow.
        while rest.first().is_some_and(|byte| *byte != 0) {
            opener.step()?;
            let Some((record, behind)) = record(rest) else {
                if whole {
                    opener.unreadable("a pax header of a tar file is damaged");
                }
                return self.read_lines(opener, rest);
            };
            let value = match record.split_last() {
                Some((b'\n', value)) => value,
                Some((_, value)) => {
                    opener.unreadable("a record of a pax header of a tar file does not end with its line");
                    value
                }
                None => record,
            };
            self.add(opener, value);
            rest = behind;
        }
        Ok(())
    }

    /// Reads what is damaged by its lines, as lenient readers may.
    fn read_lines(&mut self, opener: &mut Opener<'_>, content: &'b [u8]) -> Result<(), Stop> {
        for line in content.split(|byte| *byte == b'\n') {
            opener.step()?;
            if let Some(record) = line.splitn(2, |byte| *byte == b' ').nth(1) {
                self.add(opener, record);
            }
        }
        Ok(())
    }

    fn add(&mut self, opener: &mut Opener<'_>, record: &'b [u8]) {
        let mut parts = record.splitn(2, |byte| *byte == b'=');
        let (Some(key), Some(value)) = (parts.next(), parts.next()) else { return };
        match key {
            b"path" | b"GNU.sparse.name" => self.name(opener, value),
            b"linkpath" => self.target(value),
            b"GNU.sparse.realsize" | b"GNU.sparse.size" => self.real = decimal(value),
            b"size" => {
                let size = decimal(value);
                if size.is_none() || self.size.is_some_and(|before| Some(before) != size) {
                    opener.unreadable("a pax header of a tar file has no length of its entry, or several");
                }
                self.size = size.or(self.size);
            }
            _ => {}
        }
    }
}

/// A record without its length, and what is behind it.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = bytes.iter().take(MAX_DIGITS + 1).position(|byte| *byte == b' ')?;
    let length = place(decimal(bytes.get(..blank)?)?);
    Some((bytes.get(blank + 1..length)?, bytes.get(length..)?))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}
