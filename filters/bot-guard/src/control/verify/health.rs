//! Whether the resolvers work.
//!
//! A lookup that fails says little: who owns an address decides whether its host name can be found out. So after some failures in a row
//! the resolvers are asked for something that every one of them has.

use std::time::Duration;

use dns::{NoAnswer, Resolver};
use kit::Sources;
use tokio::time::Instant;

/// What operators know them by.
const SUBJECT: &str = "DNS resolver of the bot guard";
/// Failures in a row after which the resolvers are suspected.
const SUSPECT_AFTER: u32 = 3;
/// The pause between two probes.
const PAUSE: Duration = Duration::from_secs(10);

/// What is known of the resolvers.
#[derive(Debug, Default)]
pub(super) struct Health {
    failures: u32,
    /// Why they are known to fail; `None` while they work.
    pub(super) failing: Option<String>,
    probed: Option<Instant>,
    probing: bool,
}

impl Health {
    /// A lookup has got answers, or none.
    pub(super) fn looked_up<T>(&mut self, outcome: &Result<T, NoAnswer>, sources: &Sources) {
        match outcome {
            Ok(_) => self.works(sources),
            Err(_) => self.failures = self.failures.saturating_add(1),
        }
    }

    /// The probe to be made now, if any.
    pub(super) fn probe(&mut self, resolver: &Resolver) -> Option<Resolver> {
        let suspected = self.failures >= SUSPECT_AFTER || self.failing.is_some();
        let rested = self.probed.is_none_or(|probed| probed.elapsed() >= PAUSE);
        if !suspected || !rested || self.probing {
            return None;
        }
        (self.probed, self.probing) = (Some(Instant::now()), true);
        Some(resolver.clone())
    }

    /// A probe is over.
    pub(super) fn probed(&mut self, outcome: Result<(), NoAnswer>, sources: &Sources) {
        self.probing = false;
        match outcome {
            Ok(()) => self.works(sources),
            Err(NoAnswer(why)) => {
                if self.failing.is_none() {
                    sources.health.fails(SUBJECT, &why);
                }
                self.failing = Some(why);
            }
        }
    }

    /// Nothing is looked up any more.
    pub(super) fn ends(&mut self, sources: &Sources) {
        if self.failing.take().is_some() {
            sources.health.ends(SUBJECT);
        }
        self.failures = 0;
    }

    fn works(&mut self, sources: &Sources) {
        if self.failing.take().is_some() {
            sources.health.works(SUBJECT);
        }
        self.failures = 0;
    }
}
