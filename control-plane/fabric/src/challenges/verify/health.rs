//! Which vendors fail: told once when it begins and once when it is over.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use events::{EventHub, dependency};

/// How long a vendor must not have failed until it counts as mended, in milliseconds. One that fails every second time would
/// otherwise fill the events.
const QUIET: u64 = 60_000;

/// The providers whose vendor fails, and when it did so last.
pub(super) struct Health {
    events: EventHub,
    failing: Mutex<BTreeMap<String, u64>>,
}

impl Health {
    pub(super) fn new(events: EventHub) -> Health {
        Health { events, failing: Mutex::default() }
    }

    /// A verification came to nothing.
    pub(super) fn failed(&self, provider: &str, why: &str, now: u64) {
        let begins = self.failing().insert(provider.to_owned(), now).is_none();
        if begins {
            tracing::error!(provider, why, "tokens of a widget cannot be verified");
            self.tell(
                provider,
                1.0,
                &format!(
                    "tokens of the challenge provider `{provider}` cannot be verified, so clients get no clearance by it: {why}"
                ),
                now,
            );
        }
    }

    /// The vendor gave an answer that counts.
    pub(super) fn worked(&self, provider: &str, now: u64) {
        let ended = {
            let mut failing = self.failing();
            let is_over = failing.get(provider).is_some_and(|last| now >= last.saturating_add(QUIET));
            is_over && failing.remove(provider).is_some()
        };
        if ended {
            tracing::info!(provider, "tokens of a widget can be verified again");
            let message = format!("tokens of the challenge provider `{provider}` can be verified again");
            self.tell(provider, 0.0, &message, now);
        }
    }

    fn tell(&self, provider: &str, failing: f64, message: &str, now: u64) {
        metrics::gauge!("palisade_challenge_verification_failing", "provider" => provider.to_owned()).set(failing);
        let event = dependency(now, "challenge", None, message);
        if let Err(error) = self.events.publish(event.to_string().as_bytes()) {
            tracing::error!(reason = %error, "the report on a vendor is not a valid event");
        }
    }

    fn failing(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
