//! Whether a zone can be believed, and what it has answered.

use std::time::Duration;

use kit::Sources;
use metrics::{counter, gauge};
use tokio::time::Instant;

use super::zone::Zone;

/// The pause between two checks of a zone that works, and of one that does not.
const PAUSE: Duration = Duration::from_secs(60);
const PAUSE_FAILING: Duration = Duration::from_secs(10);
/// Failures in a row after which a zone is checked at once.
const SUSPECT_AFTER: u32 = 3;
/// The longest text of an error, in characters.
const MAX_ERROR: usize = 300;

/// A zone with its state.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) zone: Zone,
    /// Why it is not asked; `None` while it works.
    pub(super) error: Option<String>,
    /// When it was last checked, in milliseconds since 1970.
    pub(super) checked_at: Option<u64>,
    next_check: Instant,
    checking: bool,
    failures: u32,
    has_metrics: bool,
    /// Answers that list an address, that do not, and lookups without an answer.
    pub(super) listed: u64,
    pub(super) unlisted: u64,
    pub(super) failed: u64,
}

/// What is shown of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct ShownZone {
    pub(in super::super) error: Option<String>,
    pub(in super::super) checked_at: Option<u64>,
    pub(in super::super) listed: u64,
    pub(in super::super) unlisted: u64,
    pub(in super::super) failed: u64,
}

// === impl Watched ===

impl Watched {
    pub(super) fn new(zone: Zone, has_metrics: bool) -> Watched {
        Watched {
            zone,
            error: None,
            checked_at: None,
            next_check: Instant::now(),
            checking: false,
            failures: 0,
            has_metrics,
            listed: 0,
            unlisted: 0,
            failed: 0,
        }
    }

    /// Whether it is asked about addresses.
    pub(super) fn is_asked(&self) -> bool {
        self.checked_at.is_some() && self.error.is_none()
    }

    /// When it is checked next; `None` while it is being checked.
    pub(super) fn next_check(&self) -> Option<Instant> {
        (!self.checking).then_some(self.next_check)
    }

    /// A check begins.
    pub(super) fn begin_check(&mut self) {
        self.checking = true;
    }

    /// Checks it soon, as with another resolver.
    pub(super) fn suspect(&mut self) {
        self.next_check = Instant::now();
    }

    /// A check is over.
    pub(super) fn checked(&mut self, outcome: Result<(), String>, now: u64, sources: &Sources) {
        (self.checking, self.checked_at, self.failures) = (false, Some(now), 0);
        let subject = self.subject();
        match outcome {
            Ok(()) => {
                sources.health.works(&subject);
                self.error = None;
            }
            Err(why) => {
                let why: String = why.chars().take(MAX_ERROR).collect();
                sources.health.fails(&subject, &why);
                self.error = Some(why);
            }
        }
        self.next_check = Instant::now() + if self.error.is_some() { PAUSE_FAILING } else { PAUSE };
        if self.has_metrics {
            let failing = u32::from(self.error.is_some());
            gauge!("palisade_dnsbl_zone_failing", "zone" => self.zone.name.to_string()).set(failing);
        }
    }

    /// It was asked about an address.
    pub(super) fn looked_up(&mut self, is_listed: Result<bool, ()>) {
        let (count, outcome) = match is_listed {
            Ok(true) => (&mut self.listed, "listed"),
            Ok(false) => (&mut self.unlisted, "unlisted"),
            Err(()) => (&mut self.failed, "failed"),
        };
        *count = count.saturating_add(1);
        if self.has_metrics {
            let zone = self.zone.name.to_string();
            counter!("palisade_dnsbl_lookups_total", "outcome" => outcome, "zone" => zone).increment(1);
        }
        match is_listed {
            Ok(_) => self.failures = 0,
            Err(()) => {
                self.failures += 1;
                if self.failures == SUSPECT_AFTER {
                    self.suspect();
                }
            }
        }
    }

    /// It is not asked any more.
    pub(super) fn ends(&self, sources: &Sources) {
        sources.health.ends(&self.subject());
        if self.has_metrics {
            gauge!("palisade_dnsbl_zone_failing", "zone" => self.zone.name.to_string()).set(0);
        }
    }

    pub(super) fn shown(&self) -> ShownZone {
        ShownZone {
            error: self.error.clone(),
            checked_at: self.checked_at,
            listed: self.listed,
            unlisted: self.unlisted,
            failed: self.failed,
        }
    }

    /// What operators know it by.
    fn subject(&self) -> String {
        format!("DNS blocklist `{}`", self.zone.name)
    }
}
