//! What a node knows of one consumer and one kind of objects.

mod bytes;
mod enumeration;
mod lately;
mod pace;
mod walk;

use crate::messages::{EnumerationLimits, SurgeLimits, WalkLimits};
use crate::shape::Identifier;
use bytes::{Reader, Writer};
use enumeration::Denials;
pub(crate) use enumeration::Enumeration;
use lately::Lately;
use pace::Pace;
pub(crate) use pace::Surge;
#[cfg(any(test, feature = "control"))]
pub(crate) use walk::MAX_NUMBERS;
pub(crate) use walk::Steps;
use walk::Walk;

/// How long a pattern is not reported again, in seconds.
const REPORT_AFTER: u32 = 60;

/// The bytes of what has one size: the pace, the denials and the times of reports.
const FIXED: usize = 18 + enumeration::MAX_BYTES + 12;

/// The limits of all patterns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Limits {
    pub(crate) surge: SurgeLimits,
    pub(crate) walk: WalkLimits,
    pub(crate) enumeration: EnumerationLimits,
}

/// The record; what a request does not change stays in the bytes that it was read from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record<'r> {
    lately: Lately<'r>,
    pace: Pace,
    walk: Walk<'r>,
    denials: Denials,
    /// When each pattern was last reported, in seconds since the Unix epoch: surge, walk, enumeration.
    reported: [u32; 3],
}

/// The patterns that a request is in.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Patterns {
    pub(crate) surge: Option<Surge>,
    pub(crate) walk: Option<Steps>,
    pub(crate) enumeration: Option<Enumeration>,
    /// Which of them are due for a report, in their order; that is noted.
    pub(crate) due: [bool; 3],
}

impl<'r> Record<'r> {
    /// The most bytes that a record is written in.
    pub(crate) const MAX_BYTES: usize = lately::MAX_BYTES + walk::MAX_BYTES + FIXED;

    /// A request for an object, by its hash and its identifiers, at a time in seconds.
    pub(crate) fn read(&mut self, object: (u32, &[Identifier<'_>]), now: u32, limits: &Limits) -> Patterns {
        let (hash, identifiers) = object;
        let new = self.lately.read(hash, now);
        self.pace.read(new, now, &limits.surge);
        if new {
            self.walk.read(identifiers, now, &limits.walk);
        }
        // One object that is read again and again does not make others less of an enumeration.
        self.denials.add(u16::from(new), 0, now, &limits.enumeration);
        self.patterns(now, limits)
    }

    /// The request was denied.
    pub(crate) fn denied(&mut self, now: u32, limits: &Limits) -> Patterns {
        self.denials.add(0, 1, now, &limits.enumeration);
        let enumeration = self.denials.found(&limits.enumeration);
        self.with_reports(Patterns { enumeration, ..Patterns::default() }, now)
    }

    fn patterns(&mut self, now: u32, limits: &Limits) -> Patterns {
        let surge = self.pace.surge(&limits.surge);
        let walk = self.walk.found(now, &limits.walk);
        let enumeration = self.denials.found(&limits.enumeration);
        self.with_reports(Patterns { surge, walk, enumeration, due: [false; 3] }, now)
    }

    fn with_reports(&mut self, mut patterns: Patterns, now: u32) -> Patterns {
        let on = [patterns.surge.is_some(), patterns.walk.is_some(), patterns.enumeration.is_some()];
        for ((on, reported), due) in on.into_iter().zip(&mut self.reported).zip(&mut patterns.due) {
            // A clock that was put back reports once more.
            if on && now.abs_diff(*reported) >= REPORT_AFTER {
                (*reported, *due) = (now, true);
            }
        }
        patterns
    }

    /// What it counts against others for a place: those that were reported stay, then those with the most objects.
    pub(crate) fn weight(&self) -> u64 {
        let reported = self.reported.iter().any(|reported| *reported != 0);
        u64::from(reported) << 32 | u64::try_from(self.lately.len()).unwrap_or(u64::MAX)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::with_capacity(self.lately.bytes() + self.walk.bytes() + FIXED);
        self.reported.iter().for_each(|reported| to.u32(*reported));
        self.lately.write(&mut to);
        self.pace.write(&mut to);
        self.walk.write(&mut to);
        self.denials.write(&mut to);
        to.end()
    }

    /// `None` for bytes that are none.
    pub(crate) fn decode(bytes: &'r [u8]) -> Option<Self> {
        let mut from = Reader::of(bytes);
        let reported = [from.u32()?, from.u32()?, from.u32()?];
        let (lately, pace) = (Lately::read_from(&mut from)?, Pace::read_from(&mut from)?);
        Some(Self {
            lately,
            pace,
            walk: Walk::read_from(&mut from)?,
            denials: Denials::read_from(&mut from)?,
            reported,
        })
    }

    /// [`Record::weight`] of a record's bytes, of which only the beginning is read.
    pub(crate) fn weight_of(bytes: &[u8]) -> u64 {
        let mut from = Reader::of(bytes);
        let mut read = || {
            let reported = [from.u32()?, from.u32()?, from.u32()?];
            Some(Record { reported, lately: Lately::read_from(&mut from)?, ..Record::default() }.weight())
        };
        read().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
