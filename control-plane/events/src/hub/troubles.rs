//! What does not work as it should, for the status, the log and the exporters.

use std::sync::{MutexGuard, PoisonError};

use super::EventHub;
use crate::dependency::dependency;
use crate::trouble::{Part, Trouble, Troubles};

impl EventHub {
    /// Notes that something does not work as it should, and why. When it begins it is an event of category `dependency`.
    pub fn trouble(&self, part: Part, subject: &str, reason: &str) {
        let now = (self.inner.clock)();
        let mut troubles = self.troubles_lock();
        let begins = troubles.begin(part, subject, reason, now);
        self.show_troubles(part, &troubles);
        drop(troubles);
        if begins {
            tracing::error!(part = part.word(), subject, reason, "the control plane is degraded");
            self.tell_trouble(part, &format!("{} fails: {reason}", named(part, subject)), now);
        }
    }

    /// Notes that it works again, where it did not; that is an event as well.
    pub fn recovered(&self, part: Part, subject: &str) {
        let now = (self.inner.clock)();
        let mut troubles = self.troubles_lock();
        let since = troubles.end(part, subject);
        self.show_troubles(part, &troubles);
        drop(troubles);
        if let Some(since) = since {
            tracing::info!(part = part.word(), subject, since, "it works again");
            let seconds = now.saturating_sub(since) / 1000;
            self.tell_trouble(part, &format!("{} works again, after {seconds} s", named(part, subject)), now);
        }
    }

    /// Reports something that has happened once to a part: an event of category `dependency`, and a line of the log.
    pub fn mishap(&self, part: Part, message: &str) {
        tracing::error!(part = part.word(), "{message}");
        self.tell_trouble(part, message, (self.inner.clock)());
    }

    /// Notes that whether it works is of no interest any more. That is no event.
    pub fn dismiss_trouble(&self, part: Part, subject: &str) {
        let mut troubles = self.troubles_lock();
        if let Some(since) = troubles.end(part, subject) {
            tracing::info!(part = part.word(), subject, since, "it is not used any more");
        }
        self.show_troubles(part, &troubles);
    }

    /// What does not work as it should now, by part and subject.
    #[must_use]
    pub fn troubles(&self) -> Vec<Trouble> {
        self.troubles_lock().all()
    }

    fn tell_trouble(&self, part: Part, message: &str, now: u64) {
        let event = dependency(now, part.word(), None, message);
        if let Err(error) = self.publish(event.to_string().as_bytes()) {
            tracing::error!(reason = %error, "the report on a problem is not a valid event");
        }
    }

    fn show_troubles(&self, part: Part, troubles: &Troubles) {
        metrics::gauge!("palisade_health_troubles", "part" => part.word()).set(troubles.count(part));
    }

    fn troubles_lock(&self) -> MutexGuard<'_, Troubles> {
        self.inner.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part and its subject, for people.
fn named(part: Part, subject: &str) -> String {
    match (part, subject) {
        (Part::Publication, "all") => "the publication to all groups".to_owned(),
        (Part::Publication, group) => format!("the publication to the group `{group}`"),
        (Part::Entities, "verified_by") => "the verification of callers".to_owned(),
        (Part::Entities, _) => "the reading of entities".to_owned(),
        (Part::Login, _) => "the login provider".to_owned(),
        (Part::Nodes, _) => "the delivery to gateways".to_owned(),
        (Part::Sources, source) => source.to_owned(),
        (Part::Store, what) => format!("the store ({what})"),
    }
}
