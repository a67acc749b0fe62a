//! A plugin that counts each request together with other nodes, under the key in its query (`?alice`); of a set the header `member`
//! is what is added. It refuses with 429 from the limit on, and shows what it has counted in an event's message, or as the body of
//! the refusal: `OWN+OTHERS`, of a set the size. With `ask` it asks the control plane, and without an answer goes on with what the
//! node knows.

use exchange::shared_counts::{Budget, CappedSet, ClusterCount, Membership, Window};
use exchange::{Answer, Build, Category, Exchange, Host, Plugin, PluginDefinition, Refusal, ReplyBody, Slot, Verdict};
use serde::Deserialize;

use super::emit_observed;

pub(crate) const PLUGIN: PluginDefinition = PluginDefinition::new("probe-count", build);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    form: Form,
    /// A window refuses once its count is above this, a budget once more would be, a set what does not fit.
    limit: u16,
    #[serde(default)]
    ask: bool,
    /// Refuses every request, so that its body shows the count.
    #[serde(default)]
    show: bool,
    #[serde(default = "span_millis")]
    span_millis: u64,
    #[serde(default)]
    everywhere_from: u32,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Form {
    Window,
    Budget,
    Set,
}

const fn span_millis() -> u64 {
    600_000
}

/// How long a request waits for an answer, in milliseconds.
const WAIT: u32 = 5_000;

struct Counter {
    counted: Counted,
    config: Config,
}

enum Counted {
    Window(Window),
    Budget(Budget),
    Set(CappedSet),
}

/// Whether the request is above the limit, and what was counted.
type Found = (bool, String);

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let config: Config = serde_json::from_slice(config).map_err(|error| error.to_string())?;
    let (span, everywhere) = (config.span_millis, config.everywhere_from);
    let counted = match config.form {
        Form::Window => Counted::Window(Window::new("probe.window", span, 6)?.everywhere_from(everywhere)),
        Form::Budget => Counted::Budget(Budget::new("probe.budget", span, 6)?),
        Form::Set => Counted::Set(CappedSet::new("probe.set", config.limit, span, 6)?.everywhere_from(everywhere)),
    };
    Ok(Box::new(Counter { counted, config }))
}

impl Plugin for Counter {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (key, member) = words(exchange);
        if key.is_empty() {
            return Verdict::Pass;
        }
        let limit = u64::from(self.config.limit);
        match (&self.counted, self.config.ask) {
            (Counted::Window(window), true) => {
                window.add(host, &key, 1);
                Verdict::Ask(window.ask(host, &key, WAIT))
            }
            (Counted::Budget(budget), true) => Verdict::Ask(budget.ask(host, &key, 1, limit, WAIT)),
            (Counted::Set(set), true) => Verdict::Ask(set.ask(host, &key, &member, WAIT)),
            (Counted::Window(window), false) => {
                let count = window.add(host, &key, 1);
                self.verdict(self.of_count(count), exchange, host)
            }
            (_, false) => self.verdict(self.alone(&key, &member, host), exchange, host),
        }
    }

    fn answered(&self, exchange: &mut Exchange, answer: Answer, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (key, member) = words(exchange);
        let found = match &self.counted {
            Counted::Window(window) => window.answered(host, &key, &answer).map(|count| self.of_count(count)),
            Counted::Budget(budget) => {
                budget.answered(host, &key, &answer).map(|found| (!found.taken, text(found.used)))
            }
            Counted::Set(set) => set
                .answered(host, &key, &member, &answer)
                .map(|found| (found.membership == Membership::Full, found.size.to_string())),
        };
        let found = found.unwrap_or_else(|| self.alone(&key, &member, host));
        self.verdict(found, exchange, host)
    }
}

impl Counter {
    /// What the node knows decides. A window has counted the request already.
    fn alone(&self, key: &[u8], member: &[u8], host: &dyn Host) -> Found {
        match &self.counted {
            Counted::Window(window) => self.of_count(window.get(host, key)),
            Counted::Budget(budget) => {
                let found = budget.take(host, key, 1, u64::from(self.config.limit));
                (!found.taken, text(found.used))
            }
            Counted::Set(set) => {
                let found = set.insert(host, key, member);
                (found.membership == Membership::Full, found.size.to_string())
            }
        }
    }

    fn of_count(&self, count: ClusterCount) -> Found {
        (count.total() > u32::from(self.config.limit), text(count))
    }

    fn verdict(&self, (above, found): Found, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        if !above && !self.config.show {
            emit_observed("probe-count", Category::Threat, &found, exchange, host);
            return Verdict::Pass;
        }
        let status = if above { 429 } else { 403 };
        let body = ReplyBody::Bytes { content_type: "text/plain", bytes: found.into_bytes() };
        Verdict::Refuse(Refusal::new(status, Category::Threat, "counted by a probe").body(body))
    }
}

fn text(count: ClusterCount) -> String {
    format!("{}+{}", count.own, count.others)
}

/// The key and the member of a request.
fn words(exchange: &Exchange) -> (Vec<u8>, Vec<u8>) {
    let member = exchange.request.headers.get("member").unwrap_or_default().to_vec();
    (exchange.request.query().to_vec(), member)
}
