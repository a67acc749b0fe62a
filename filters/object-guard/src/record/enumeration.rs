//! How many requests for objects were denied.

use super::bytes::{Reader, Writer};
use crate::messages::EnumerationLimits;

/// The slices of a window. A request counts for as long as the window, and for up to one slice more.
const SLICES: u32 = 5;
const KEPT: usize = SLICES as usize + 1;
/// The bytes that it is written in.
pub(crate) const MAX_BYTES: usize = 4 + KEPT * 4;

/// The requests of the last minutes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Denials {
    /// The number of the newest slice.
    newest: u32,
    /// All requests and those that were denied, of each slice from the newest back.
    counts: [(u16, u16); KEPT],
}

/// An enumeration that is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Enumeration {
    pub(crate) requests: u32,
    pub(crate) denied: u32,
}

impl Denials {
    /// Counts requests for objects that were not read lately, and denials of requests, at a time in seconds.
    pub(crate) fn add(&mut self, requests: u16, denied: u16, now: u32, limits: &EnumerationLimits) {
        let slice = now / limits.window_seconds.div_ceil(SLICES).max(1);
        if self.newest.saturating_sub(slice) > SLICES {
            // The clock was put back.
            *self = Self { newest: slice, ..Self::default() };
        }
        let passed = slice.saturating_sub(self.newest);
        for _ in 0..passed.min(SLICES + 1) {
            self.counts.rotate_right(1);
            if let Some(newest) = self.counts.first_mut() {
                *newest = (0, 0);
            }
        }
        self.newest = self.newest.max(slice);
        if let Some((all, refused)) = self.counts.first_mut() {
            *all = all.saturating_add(requests);
            *refused = refused.saturating_add(denied);
        }
    }

    /// The enumeration that is on, as of the last addition.
    pub(crate) fn found(&self, limits: &EnumerationLimits) -> Option<Enumeration> {
        let add = |(all, refused): (u32, u32), (more, denied): &(u16, u16)| {
            (all + u32::from(*more), refused + u32::from(*denied))
        };
        let (requests, denied) = self.counts.iter().fold((0, 0), add);
        // Requests are those for objects that were not read lately; each denial is one as well.
        let requests = requests.max(denied);
        let is_on = requests >= limits.min && f64::from(denied) >= limits.ratio * f64::from(requests) && denied > 0;
        is_on.then_some(Enumeration { requests, denied })
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        to.u32(self.newest);
        for (all, denied) in self.counts {
            to.u16(all);
            to.u16(denied);
        }
    }

    pub(crate) fn read_from(from: &mut Reader<'_>) -> Option<Self> {
        let mut read = Self { newest: from.u32()?, ..Self::default() };
        for (all, denied) in &mut read.counts {
            (*all, *denied) = (from.u16()?, from.u16()?);
        }
        Some(read)
    }
}
