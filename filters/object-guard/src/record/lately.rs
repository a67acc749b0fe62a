//! Which objects a consumer has read lately.

use std::borrow::Cow;

use super::bytes::{Reader, Writer};

/// How long a generation takes in objects, in seconds: an object that was not read for twice as long is new again.
const TURN: u32 = 1800;
/// The most objects of a generation.
const OBJECTS: usize = 128;
/// The bytes of an object: its hash of 32 bits under the secret of the node.
const BYTES: usize = 4;
/// The most bytes that it is written in.
pub(crate) const MAX_BYTES: usize = 2 * (2 + OBJECTS * BYTES) + 4;

/// Two generations of objects. With that, between 128 and 256 objects that are read in turns are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lately<'r> {
    current: Cow<'r, [u8]>,
    before: Cow<'r, [u8]>,
    /// When the current generation began, in seconds since the Unix epoch.
    turned: u32,
}

impl<'r> Lately<'r> {
    /// Notes that an object is read at a time in seconds; whether it was not read lately.
    pub(crate) fn read(&mut self, object: u32, now: u32) -> bool {
        let age = now.abs_diff(self.turned);
        if age >= TURN {
            let current = std::mem::take(&mut self.current);
            self.before = if age < 2 * TURN { current } else { Cow::default() };
            self.turned = now;
        }
        let object = object.to_le_bytes();
        if contains(&self.current, object) {
            return false;
        }
        let new = !contains(&self.before, object);
        if self.current.len() >= OBJECTS * BYTES {
            self.before = std::mem::take(&mut self.current);
            self.turned = now;
        }
        self.current.to_mut().extend_from_slice(&object);
        new
    }

    /// How many objects are known, at most.
    pub(crate) fn len(&self) -> usize {
        (self.current.len() + self.before.len()) / BYTES
    }

    /// The bytes that it is written in.
    pub(crate) fn bytes(&self) -> usize {
        8 + self.current.len() + self.before.len()
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        to.u32(self.turned);
        to.bytes(&self.current);
        to.bytes(&self.before);
    }

    pub(crate) fn read_from(from: &mut Reader<'r>) -> Option<Self> {
        let (turned, current, before) = (from.u32()?, from.bytes()?, from.bytes()?);
        let fits = |objects: &[u8]| objects.len() <= OBJECTS * BYTES && objects.len().is_multiple_of(BYTES);
        (fits(current) && fits(before)).then_some(Self { current: current.into(), before: before.into(), turned })
    }
}

fn contains(objects: &[u8], object: [u8; BYTES]) -> bool {
    let object = u32::from_le_bytes(object);
    // All of them, without an end in between: that is a few vector instructions.
    objects.as_chunks::<BYTES>().0.iter().fold(false, |found, known| found | (u32::from_le_bytes(*known) == object))
}
