//! Bans, the allowlist, the ledger and incidents from the console.

mod bans;
mod incidents;
mod ledger;
mod status;

use crate::console_support::{ConsoleApi, Login};
use base::clock;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

struct Desk {
    console: ConsoleApi,
    login: Login,
}

impl Desk {
    /// On a clock that stands at the present, because the events' own goes on.
    async fn new() -> Desk {
        let console = ConsoleApi::new().await;
        console.clock.store(clock::now_millis(), Ordering::Relaxed);
        let login = console.login("alice").await;
        Desk { console, login }
    }

    fn now(&self) -> u64 {
        self.console.clock.load(Ordering::Relaxed)
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.console.get(&self.login, &format!("/security/{path}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.body
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.console.post(&self.login, &format!("/security/{path}"), &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.body
    }

    async fn audits(&self) -> Vec<Value> {
        let events = self.console.events().await;
        events.into_iter().filter(|event| event["user"]["name"] == "alice" && event["action"] != "login").collect()
    }

    fn event(&self, ip: &str, score: f64, module: &str) {
        let event = json!({
            "@type": "SvcSecurityEvent", "@timestamp": clock::rfc3339(clock::now_millis()),
            "event": { "category": "threat", "action": "deny", "outcome": "blocked", "module": module },
            "source": { "ip": ip },
            "threat": { "score": score, "tags": ["waf:match"], "signals": [{ "tag": "waf:match", "weight": score }] },
            "incident": { "id": "node-made", "count": 1 }, "decision": { "enforced": true },
            "route": { "id": "r", "name": "shop", "node": "n1" }, "message": "refused",
        });
        self.console.api.state.events.publish(event.to_string().as_bytes()).unwrap();
    }
}
