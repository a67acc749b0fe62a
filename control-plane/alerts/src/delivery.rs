//! From a message to its channel: beside everything else, a few times, and not for ever.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::channels::{Rendered, render};
use super::keep::Keeper;
use super::lanes::{Full, Lanes, Room};
use super::message::Message;
use axum::http::{Method, StatusCode};
use entities::{AlertRule, ChannelKind, EntityService, Item};
use events::{Backoff, EventHub, dependency, retry_after};
use outbound::{Call, Outbound, OutboundFault};

/// How often a message is tried, at most.
const ATTEMPTS: u32 = 7;
/// The longest that a channel may make us wait.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// The longest that a test may take: somebody waits for it.
const MAX_TEST: Duration = Duration::from_secs(30);
/// So much of an answer is read.
const MAX_ANSWER: usize = 64 * 1024;
/// So many bytes of an answer are shown.
const MAX_SHOWN: usize = 2048;

/// Brings messages to their channels.
pub(super) struct Delivery {
    keeper: Keeper,
    entities: EntityService,
    events: EventHub,
    outbound: Outbound,
    clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    lanes: Lanes,
    /// The messages that are being sent, by id.
    pending: Mutex<HashMap<String, Message>>,
    /// The rules whose last message was given up.
    failing: Mutex<HashSet<String>>,
    /// Held while the number of waiting messages is counted and shown.
    gauging: Mutex<()>,
}

/// A message that has room, and is not sent yet.
pub(super) struct Accepted {
    delivery: Arc<Delivery>,
    message: Message,
    room: Room,
}

/// What a channel has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The status; none where there was no call.
    pub status: Option<StatusCode>,
    /// It was taken.
    pub ok: bool,
    /// The beginning of the body.
    pub body: String,
    /// How long it wants us to wait.
    after: Option<Duration>,
}

/// Why a test message was not delivered, in a sentence without any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered(String);

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Undelivered {}

/// Why an attempt has failed.
struct Failure {
    why: String,
    /// Whether it is worth another attempt.
    passing: bool,
    after: Option<Duration>,
}

impl Accepted {
    pub(super) fn message(&self) -> &Message {
        &self.message
    }

    /// Sends it beside everything else. It leaves the store once it is delivered or given up.
    pub(super) fn send(self) {
        let Accepted { delivery, message, room } = self;
        delivery.pending_lock().insert(message.id.clone(), message.clone());
        tokio::spawn(async move {
            delivery.bring(&message, &room).await;
            delivery.pending_lock().remove(&message.id);
            delivery.keeper.settle(message.id).await;
            drop(room);
            delivery.gauge();
        });
    }
}

impl Delivery {
    pub(super) fn new(
        keeper: Keeper,
        entities: EntityService,
        events: EventHub,
        outbound: Outbound,
        clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    ) -> Delivery {
        begin_metrics();
        Delivery {
            keeper,
            entities,
            events,
            outbound,
            clock,
            lanes: Lanes::new(),
            pending: Mutex::default(),
            failing: Mutex::default(),
            gauging: Mutex::default(),
        }
    }

    /// Takes a message over, where there is room for it. Never waits.
    pub(super) fn accept(this: &Arc<Delivery>, message: Message) -> Option<Accepted> {
        match this.lanes.enter(&message.rule_id) {
            Ok(room) => Some(Accepted { delivery: Arc::clone(this), message, room }),
            Err(Full { first }) => {
                metrics::counter!("palisade_alerts_dropped_total", "reason" => "full").increment(1);
                if first {
                    let rule = message.rule_id;
                    tracing::warn!(rule, "too many alerts wait for their channel; further ones are dropped");
                }
                None
            }
        }
    }

    /// The messages that are being sent, kept at `now`.
    pub(super) fn pending(&self, now: u64) -> Vec<Message> {
        self.pending_lock().values().map(|message| Message { kept_at: now, ..message.clone() }).collect()
    }

    fn pending_lock(&self) -> MutexGuard<'_, HashMap<String, Message>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is under way.
    pub(super) async fn drained(&self) {
        self.lanes.drained().await;
    }

    /// One attempt, for a caller that waits for it.
    pub(super) async fn once(&self, rule: &Item<AlertRule>, message: &Message) -> Result<Delivered, Undelivered> {
        self.attempt(rule, message, MAX_TEST).await.map_err(|failure| Undelivered(failure.why))
    }

    /// Attempts until it is delivered or given up. The rule is looked up each time: what was changed of it holds at once.
    async fn bring(&self, message: &Message, room: &Room) {
        self.gauge();
        let mut backoff = Backoff::default();
        let mut attempt = 0;
        loop {
            let turn = room.turn().await;
            let entities = self.entities.current();
            let Some(rule) = entities.get::<AlertRule>(&message.rule_id).filter(|rule| rule.enabled) else {
                metrics::counter!("palisade_alerts_dropped_total", "reason" => "gone").increment(1);
                return;
            };
            let channel = rule.channel.kind.word();
            attempt += 1;
            let failure = match self.attempt(rule, message, Duration::MAX).await.and_then(judge) {
                Ok(()) => {
                    metrics::counter!("palisade_alerts_messages_total", "channel" => channel, "outcome" => "delivered")
                        .increment(1);
                    self.works(rule);
                    return;
                }
                Err(failure) => failure,
            };
            if !failure.passing || attempt >= ATTEMPTS {
                metrics::counter!("palisade_alerts_messages_total", "channel" => channel, "outcome" => "failed")
                    .increment(1);
                self.fails(rule, attempt, &failure.why);
                return;
            }
            metrics::counter!("palisade_alerts_retries_total", "channel" => channel).increment(1);
            let wait = failure.after.map_or_else(|| backoff.next_wait(), |after| after.min(MAX_WAIT));
            drop((entities, turn));
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self, rule: &AlertRule, message: &Message, most: Duration) -> Result<Delivered, Failure> {
        let lasting = |why: String| Failure { why, passing: false, after: None };
        let (url, headers, body) = match render(&rule.channel, message).map_err(lasting)? {
            Rendered::Post { url, headers, body } => (url, headers, body),
            Rendered::Event(event) => {
                self.events.tell(&event.to_string());
                return Ok(Delivered { status: None, ok: true, body: String::new(), after: None });
            }
        };
        let call = Call {
            method: Method::POST,
            url,
            headers,
            body,
            timeout: Duration::from_millis(rule.channel.timeout_millis).min(most),
            max_answer_bytes: MAX_ANSWER,
            redirects: 0,
        };
        match self.outbound.call(call).await {
            Ok(answer) => Ok(Delivered {
                status: Some(answer.status),
                ok: answer.status.is_success(),
                body: beginning(&answer.body),
                after: retry_after(&answer.headers, (self.clock)()),
            }),
            // What it says is too long to read; that it was taken is known.
            Err(error) if error.fault() == OutboundFault::TooLong => {
                let status = error.status();
                let ok = status.is_some_and(|status| status.is_success());
                Ok(Delivered { status, ok, body: String::new(), after: None })
            }
            Err(error) => Err(Failure { why: error.to_string(), passing: error.is_passing(), after: None }),
        }
    }

    fn fails(&self, rule: &Item<AlertRule>, attempts: u32, why: &str) {
        let (id, channel) = (rule.head.id.as_str(), rule.channel.kind.word());
        tracing::warn!(rule = id, channel, attempts, why, "an alert could not be delivered and is dropped");
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let entities = self.entities.current();
        failing.retain(|id| entities.get::<AlertRule>(id).is_some());
        if failing.insert(id.to_owned()) {
            drop(failing);
            self.tell(&format!("the {channel} channel of the alert rule {id} fails: {why}"));
        }
    }

    fn works(&self, rule: &Item<AlertRule>) {
        let (id, channel) = (rule.head.id.as_str(), rule.channel.kind.word());
        if self.failing.lock().unwrap_or_else(PoisonError::into_inner).remove(id) {
            tracing::info!(rule = id, channel, "alerts are delivered again");
            self.tell(&format!("the {channel} channel of the alert rule {id} works again"));
        }
    }

    /// To the exporters alone: an alert about alerts could go on for ever.
    fn tell(&self, message: &str) {
        self.events.tell(&dependency((self.clock)(), "alerts", None, message).to_string());
    }

    fn gauge(&self) {
        // Counted and said in one: otherwise one of two that end at once overwrites the other with an older count.
        let _turn = self.gauging.lock().unwrap_or_else(PoisonError::into_inner);
        metrics::gauge!("palisade_alerts_waiting_messages").set(self.lanes.waiting());
    }
}

/// Counters that begin with 0, so that the first one is seen to be more.
fn begin_metrics() {
    for reason in ["full", "gone", "old"] {
        metrics::counter!("palisade_alerts_dropped_total", "reason" => reason).increment(0);
    }
    for kind in
        [ChannelKind::Slack, ChannelKind::Teams, ChannelKind::Pagerduty, ChannelKind::Webhook, ChannelKind::Event]
    {
        let channel = kind.word();
        metrics::counter!("palisade_alerts_retries_total", "channel" => channel).increment(0);
        for outcome in ["delivered", "failed"] {
            metrics::counter!("palisade_alerts_messages_total", "channel" => channel, "outcome" => outcome)
                .increment(0);
        }
    }
}

/// What an answer means: 408, 429 and 5xx may be another the next time.
fn judge(delivered: Delivered) -> Result<(), Failure> {
    if delivered.ok {
        return Ok(());
    }
    let status = delivered.status.unwrap_or_default();
    let hint = if status.is_redirection() { " (redirects are not followed)" } else { "" };
    let passing =
        status.is_server_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    Err(Failure { why: format!("the channel answers {status}{hint}"), passing, after: delivered.after })
}

/// The first bytes of a body as text.
fn beginning(body: &[u8]) -> String {
    let mut shown = String::from_utf8_lossy(body.get(..MAX_SHOWN).unwrap_or(body)).into_owned();
    // What is no text has become characters that are longer.
    while shown.len() > MAX_SHOWN {
        shown.pop();
    }
    shown
}
