//! A real Envoy: its clock is the wall's, and one exchange runs at a time.

use std::time::{Instant, SystemTime};

use super::gateway::Gateway;
use crate::engine::{Engine as _, Envoy};
use proxy_host::Finished;
use proxy_host::traffic::Exchange;

/// Recorded traffic through a real Envoy, without the recording's pauses.
pub struct Real {
    engine: Envoy,
    route: String,
    finished: Vec<Finished>,
}

impl Real {
    /// Takes a gateway from [`Envoy::for_replay`] whose only route has this name.
    #[must_use]
    pub fn new(engine: Envoy, route: &str) -> Self {
        Self { engine, route: route.to_owned(), finished: Vec::new() }
    }
}

impl Gateway for Real {
    fn name(&self) -> &'static str {
        "envoy"
    }

    fn now_millis(&self) -> u64 {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Nobody moves the wall's clock.
    fn run_until(&mut self, _millis: u64) {}

    fn begin(&mut self, ticket: u64, exchange: &Exchange) {
        let mut notes = Vec::new();
        let mut exchange = exchange.clone();
        let request = &mut exchange.request;
        if !request.protocol.starts_with(b"HTTP/1.") {
            notes.push(format!("it went over HTTP/1.1; it was recorded over {}", request.protocol.escape_ascii()));
            request.protocol = b"HTTP/1.1".to_vec();
        }
        if request.route != self.route {
            notes.push(format!("it took route `{}`: this gateway has no other", self.route));
        }
        if !request.trailers.is_empty() {
            notes.push("its trailers were left out".to_owned());
        }
        let began = Instant::now();
        let outcome = self.engine.exchange(&exchange);
        let timed = |event: &serde_json::Value| {
            event["event"]["category"] == "ban"
                || matches!(event["decision"]["action"].as_str(), Some("ban" | "throttle" | "tarpit"))
        };
        if outcome.events.iter().any(timed) {
            notes.push("the gateway's clock is the wall's: windows and bans do not follow the recording".to_owned());
        }
        self.finished.push(Finished { ticket, outcome, spent: began.elapsed(), notes });
    }

    fn take_finished(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.finished)
    }

    fn drain(&mut self) {}
}
