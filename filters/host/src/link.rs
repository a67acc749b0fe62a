//! The link from this worker to the control plane: events, bans and questions go up, bans and answers come down.
//!
//! One stream per VM, opened once there is something to send. A gateway opens a stream before it is connected, so events,
//! bans and questions wait until the control plane has sent its greeting on it. At most `max_queued` events of 8 MiB
//! wait; the oldest are dropped first, and their number is sent with the next batch.

mod bodies;
mod events;
mod orders;
mod pause;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bodies::Bodies;
use events::Events;
use exchange::{Answer, Ask, BanOrder, MAX_QUESTIONS, Metric, offline, outage, shared_counts};
use node_state::allowlist;
use node_state::bans::{self, BanOf};
use snapshot::{AllowChange, AskBody, BanChange, BanRequest, Down, LinkSettings, LoadReport, Message, Up};

use crate::calls::{self, LogLevel};
use crate::shared::NodeSharedData;
use crate::{held, http, proxy_host, reports, tables};

/// The most bytes of events, and of questions, in one batch: well under what a gRPC server takes.
const MAX_BATCH: usize = 1 << 20;
/// The status of a stream that the control plane has ended, because the worker did not read it.
const RESOURCE_EXHAUSTED: u32 = 8;
/// For how long after the next try the node is offline, in milliseconds.
const OFFLINE_MILLIS: u64 = 5_000;

thread_local! {
    static LINK: RefCell<Link> = RefCell::new(Link::default());
}

#[derive(Default)]
struct Link {
    settings: Option<LinkSettings>,
    node: String,
    stream: Option<Stream>,
    /// Streams of earlier root contexts, which stay open until the questions on them are answered.
    earlier: Vec<Stream>,
    /// Not before this time, in milliseconds since the Unix epoch.
    retry_at: u64,
    failures: u32,
    events: Events,
    bans: VecDeque<BanRequest>,
    /// Questions that wait for the greeting of a stream.
    asks: VecDeque<snapshot::Ask>,
    /// Bodies that go with questions.
    bodies: Bodies,
    /// Events and bans dropped that the control plane does not know of yet.
    dropped: u64,
    /// Since when this worker has no link, in milliseconds since the Unix epoch; `None` while it has one.
    lost_since: Option<u64>,
    /// Events dropped meanwhile that the node does not know of yet.
    dropped_offline: u64,
    /// Load reports of this VM, sent again on each new stream.
    loads: Vec<LoadReport>,
    unsent_loads: Vec<LoadReport>,
}

struct Stream {
    token: u32,
    /// The root context that opened it and gets its messages.
    owner: u32,
    /// The control plane has sent its greeting on it.
    greeted: bool,
}

/// Takes over the settings of a new snapshot.
pub(crate) fn configure(settings: Option<LinkSettings>) {
    LINK.with_borrow_mut(|link| link.settings = settings);
}

pub(crate) fn queue_event(event: &[u8]) {
    LINK.with_borrow_mut(|link| link.queue_event(event.to_vec()));
}

pub(crate) fn queue_ban(ban: BanOrder, now: u64) {
    LINK.with_borrow_mut(|link| {
        let order = BanRequest {
            key: ban.identity.key(),
            until_millis: ban.until,
            reason: ban.reason,
            score: ban.score,
            tags: ban.tags,
            issued_at_millis: now,
            address: ban.address,
        };
        if !orders::add(&mut link.bans, order) {
            link.dropped += 1;
        }
    });
}

/// Asks the control plane for the message of a stream with this `context`, which waits for the answer from now on. `caller` is the
/// same number for all of a caller, `None` where it is not known. The `body` in hand follows the question as it is granted. `context` is in effect again afterwards.
///
/// # Errors
///
/// The answer, if it is known already; then nothing waits.
pub(crate) fn ask(
    ask: Ask,
    body: Option<AskBody>,
    (context, caller): (u32, Option<u64>),
    stream: &Rc<RefCell<http::Stream>>,
) -> Result<(), Answer> {
    LINK.with_borrow_mut(|link| link.ask(ask, body, (context, caller), stream))
}

/// Whether there is a control plane to report to.
pub(crate) fn is_configured() -> bool {
    LINK.with_borrow(|link| link.settings.is_some())
}

/// Queues a load report.
pub(crate) fn report_load(report: LoadReport) {
    LINK.with_borrow_mut(|link| {
        link.loads.retain(|known| known.filter != report.filter);
        if !link.unsent_loads.contains(&report) {
            link.unsent_loads.push(report.clone());
        }
        link.loads.push(report);
    });
}

/// Sends what waits. Called on every tick of the newest root context, which is `owner`.
pub(crate) fn flush(owner: u32) {
    LINK.with_borrow_mut(|link| link.flush(owner));
}

/// A root context ends, and with it the streams that it opened.
pub(crate) fn owner_gone(owner: u32) {
    LINK.with(|link| {
        if let Ok(mut link) = link.try_borrow_mut() {
            let link = &mut *link;
            let ended = link.stream.take_if(|stream| stream.owner == owner);
            let earlier = link.earlier.extract_if(.., |stream| stream.owner == owner);
            ended.into_iter().chain(earlier).for_each(|stream| held::lose(stream.token));
        }
    });
}

/// The stream has ended; the next try waits longer, the more failed before it.
pub(crate) fn closed(token: u32, status: u32) {
    held::lose(token);
    LINK.with_borrow_mut(|link| {
        link.earlier.retain(|stream| stream.token != token);
        let ended = link.stream.take_if(|stream| stream.token == token).is_some();
        if ended {
            shared_counts::lost(&NodeSharedData);
            // Something to say, so that the next stream does not wait for an event: bans of other nodes come on it.
            link.unsent_loads.clone_from(&link.loads);
            // One that reads too slowly is cut off by itself: the control plane is there.
            let slow = status == RESOURCE_EXHAUSTED && link.failures == 0;
            link.back_off(&format!("the stream ended with gRPC status {status}"), !slow);
        }
    });
}

/// A message from the control plane on a stream.
pub(crate) fn received(token: u32, bytes: &[u8]) {
    LINK.with_borrow_mut(|link| link.greeted(token));
    match Down::decode(bytes) {
        Ok(down) => {
            if !down.seed.is_empty() {
                proxy_host::mix_random(&down.seed);
            }
            // First who is allowed: a ban that comes with it must not hold for a moment.
            apply_allowed(&down.allowed);
            apply_bans(&down.bans);
            // Of a link whose snapshot was replaced, they are a state behind those of the next.
            if LINK.with_borrow(|link| link.stream.as_ref().is_some_and(|stream| stream.token == token)) {
                tables::take(&down.tables);
            }
            if let Some(counts) = &down.counts {
                shared_counts::learn(&NodeSharedData, counts, calls::now());
            }
            LINK.with_borrow_mut(|link| link.send_bodies(token, &down));
            for answered in down.answers {
                held::answered(answered.id, answered.data.map_or(Answer::Unavailable, Answer::Data));
            }
        }
        Err(error) => {
            calls::log(LogLevel::Warn, &format!("palisade: unreadable message from the control plane: {error}"))
        }
    }
}

fn apply_bans(changes: &[BanChange]) {
    let now = calls::now();
    let bans = changes.iter().filter_map(|change| {
        let ban = BanOf {
            key: &change.key,
            until: change.until_millis,
            hand_until: change.hand_until_millis,
            reason: &change.reason,
        };
        if change.unrecorded { bans::lasting(&NodeSharedData, ban, now) } else { Some(ban) }
    });
    for key in bans::apply_all(&NodeSharedData, bans, now) {
        calls::log(LogLevel::Warn, &format!("palisade: the ban of {key} could not be noted on this node"));
    }
}

fn apply_allowed(changes: &[AllowChange]) {
    let entries = changes.iter().map(|change| (change.key.as_str(), change.until_millis));
    for key in allowlist::apply_all(&NodeSharedData, entries, calls::now()) {
        calls::log(LogLevel::Warn, &format!("palisade: the allowlist entry of {key} could not be noted on this node"));
    }
}

impl Link {
    fn queue_event(&mut self, event: Vec<u8>) {
        let Some(settings) = &self.settings else { return };
        let limit = usize::try_from(settings.max_queued).unwrap_or(usize::MAX);
        let dropped = self.events.push(event, limit);
        if dropped > 0 {
            self.dropped += dropped;
            self.dropped_offline += if self.lost_since.is_some() { dropped } else { 0 };
            proxy_host::count(Metric::EventsDropped, dropped);
        }
    }

    /// The control plane has said something. An outage of the node ends with the first message of the first new stream.
    fn greeted(&mut self, token: u32) {
        self.failures = 0;
        let fresh = |stream: &&mut Stream| stream.token == token && !stream.greeted;
        let Some(stream) = self.stream.as_mut().filter(fresh) else { return };
        stream.greeted = true;
        self.share_dropped();
        self.lost_since = None;
        let Some(outage) = outage::end(&NodeSharedData, calls::now()) else { return };
        proxy_host::show_control_plane_lost(false);
        let seconds = outage.until.saturating_sub(outage.since).div_ceil(1000);
        calls::log(LogLevel::Info, &format!("palisade: the control plane is back after {seconds} s"));
        proxy_host::count(Metric::Events, 1);
        self.queue_event(outage.event(&self.node, &proxy_host::ProxyHost::default()));
    }

    /// Adds what this worker has dropped while the control plane was lost to the outage of the node.
    fn share_dropped(&mut self) {
        if self.dropped_offline > 0 && outage::dropped(&NodeSharedData, self.dropped_offline, calls::now()) {
            self.dropped_offline = 0;
        }
    }

    fn flush(&mut self, owner: u32) {
        let Some(settings) = self.settings.clone() else { return };
        self.move_to(owner);
        // Some have waited too long for the greeting.
        self.asks.retain(|ask| held::waits(ask.id));
        self.bodies.abandon(self.stream.iter().chain(&self.earlier));
        self.bodies.send(self.stream.iter().chain(&self.earlier));
        calls::set_effective_context(owner);
        self.share_dropped();
        let now = calls::now();
        let waits = self.waits() || shared_counts::wait(&NodeSharedData);
        if self.stream.is_none() && (!waits || !pause::is_over(self.retry_at, now)) {
            return;
        }
        if self.stream.is_none() && !self.open(&settings, owner) {
            return self.back_off(&format!("the cluster `{}` takes no stream", settings.cluster), true);
        }
        // What is sent before the greeting is lost if the gateway cannot connect.
        let Some(token) = self.stream.as_ref().filter(|stream| stream.greeted).map(|stream| stream.token) else {
            return;
        };
        // A part of them with each tick, however many keys have changed.
        let mut counts = shared_counts::news(&NodeSharedData, now);
        while self.waits() || self.dropped > 0 || counts.is_some() {
            let batch = Up { counts: counts.take(), ..self.batch() };
            if !calls::send_stream_message(token, &batch.encode_to_vec()) {
                self.put_back(batch);
                self.stream = None;
                held::lose(token);
                return self.back_off("the stream took no message", true);
            }
            for ask in &batch.asks {
                held::sent(ask.id, token);
                self.bodies.asked(ask.id, token);
            }
        }
    }

    /// Whether anything waits that is worth a stream.
    fn waits(&self) -> bool {
        !(self.events.is_empty() && self.bans.is_empty() && self.unsent_loads.is_empty() && self.asks.is_empty())
            || tables::has_news()
            || reports::wait()
    }

    /// A message waits for the answer: the question does not wait for the next tick where there is a stream.
    fn ask(
        &mut self,
        ask: Ask,
        body: Option<AskBody>,
        (context, caller): (u32, Option<u64>),
        stream: &Rc<RefCell<http::Stream>>,
    ) -> Result<(), Answer> {
        if self.settings.is_none() {
            return Err(Answer::NoControlPlane);
        }
        if self.stream.is_none() && !pause::is_over(self.retry_at, calls::now()) {
            return Err(Answer::Unavailable);
        }
        let Ask { question, millis, .. } = ask;
        let id = held::open((context, caller), question.data.len(), millis, stream)?;
        if body.is_some_and(|body| !self.bodies.open(id, body, (context, caller), stream)) {
            held::withdraw(id);
            return Err(Answer::Overrun);
        }
        let (topic, data) = (question.topic.into_owned(), question.data);
        let ask = snapshot::Ask { id, topic, data, wait_millis: millis, body, ..snapshot::Ask::default() };
        let Some(&Stream { token, owner, .. }) = self.stream.as_ref().filter(|stream| stream.greeted) else {
            if self.asks.len() >= MAX_QUESTIONS {
                self.asks.retain(|ask| held::waits(ask.id));
            }
            self.asks.push_back(ask);
            return Ok(());
        };
        let up = Up { node: self.node.clone(), asks: vec![ask], ..Up::default() };
        let sent = calls::set_effective_context(owner) && calls::send_stream_message(token, &up.encode_to_vec());
        calls::set_effective_context(context);
        if sent {
            held::sent(id, token);
            self.bodies.asked(id, token);
            Ok(())
        } else {
            held::withdraw(id);
            self.bodies.end(id);
            Err(Answer::Unavailable)
        }
    }

    /// Sends bodies as a message on a stream grants it. The owner of that stream is in effect again afterwards.
    fn send_bodies(&mut self, token: u32, down: &Down) {
        down.answers.iter().for_each(|answered| self.bodies.end(answered.id));
        self.bodies.grant(&down.grants);
        // An answer makes room for others, too.
        if down.grants.is_empty() && down.answers.is_empty() {
            return;
        }
        let streams = self.stream.iter().chain(&self.earlier);
        self.bodies.abandon(streams.clone());
        self.bodies.send(streams.clone());
        if let Some(stream) = streams.clone().find(|stream| stream.token == token) {
            calls::set_effective_context(stream.owner);
        }
    }

    /// A stream belongs to the root context that opened it, and no other can send on it: the newest one opens its own.
    fn move_to(&mut self, owner: u32) {
        if let Some(stream) = self.stream.take_if(|stream| stream.owner != owner) {
            self.earlier.push(stream);
            // The new stream is told what this VM runs.
            self.unsent_loads = self.loads.clone();
        }
        if self.earlier.is_empty() {
            return;
        }
        for stream in self.earlier.extract_if(.., |stream| !held::wait_on(stream.token)) {
            if calls::set_effective_context(stream.owner) {
                calls::close_stream(stream.token);
            }
        }
        calls::set_effective_context(owner);
    }

    /// Opens a stream and introduces the node: its id, and the snapshots that this VM runs.
    fn open(&mut self, settings: &LinkSettings, owner: u32) -> bool {
        let Some(token) = calls::open_stream(&settings.cluster, "palisade.v1.NodeLink", "Stream") else {
            return false;
        };
        if self.node.is_empty() {
            self.node = node_id();
        }
        let introduction =
            Up { node: self.node.clone(), loads: self.loads.clone(), tables: tables::introduction(), ..Up::default() };
        if !calls::send_stream_message(token, &introduction.encode_to_vec()) {
            return false;
        }
        self.stream = Some(Stream { token, owner, greeted: false });
        self.unsent_loads.clear();
        true
    }

    fn batch(&mut self) -> Up {
        let events = fitting(self.events.lengths());
        let asks = fitting(self.asks.iter().map(|ask| ask.data.len()));
        Up {
            node: self.node.clone(),
            events: self.events.take(events),
            dropped: std::mem::take(&mut self.dropped),
            bans: self.bans.drain(..).collect(),
            loads: std::mem::take(&mut self.unsent_loads),
            asks: self.asks.drain(..asks).collect(),
            tables: tables::news(),
            reports: reports::take(),
            counts: None,
            chunks: Vec::new(),
        }
    }

    fn put_back(&mut self, batch: Up) {
        self.events.put_back(batch.events);
        batch.bans.into_iter().rev().for_each(|ban| self.bans.push_front(ban));
        self.dropped += batch.dropped;
        batch.asks.into_iter().rev().for_each(|ask| self.asks.push_front(ask));
        self.unsent_loads = batch.loads;
        reports::put_back(batch.reports);
        if let Some(counts) = &batch.counts {
            shared_counts::put_back(&NodeSharedData, counts);
        }
    }

    /// The link is lost, and with it the control plane; `lost` is false if only this stream was cut off.
    fn back_off(&mut self, why: &str, lost: bool) {
        let pause = pause::after(self.failures);
        // Workers that lost the control plane together must not come back together.
        let jitter = exchange::Host::random(&proxy_host::ProxyHost::default()) % (pause / 2 + 1);
        let now = calls::now();
        self.retry_at = now.saturating_add(pause / 2 + jitter);
        if lost {
            offline::mark(&NodeSharedData, self.retry_at.saturating_add(OFFLINE_MILLIS), now);
        }
        let since = *self.lost_since.get_or_insert(now);
        if lost && outage::begin(&NodeSharedData, since, now) {
            proxy_host::count(Metric::ControlPlaneLosses, 1);
            proxy_host::show_control_plane_lost(true);
            calls::log(
                LogLevel::Warn,
                &format!(
                    "palisade: no link to the control plane ({why}); events wait, protection goes on as configured"
                ),
            );
        }
        self.failures = self.failures.saturating_add(1);
        // Messages do not wait for the next stream.
        self.asks.clear();
        held::lose_unsent();
    }
}

/// How many items of these sizes fit into a batch: one at least, if there is any.
fn fitting(sizes: impl Iterator<Item = usize> + Clone) -> usize {
    let mut total = 0_usize;
    let fits = |size: &usize| {
        total = total.saturating_add(*size);
        total <= MAX_BATCH
    };
    let first = sizes.clone().take(1).count();
    sizes.take_while(fits).count().max(first)
}

pub(crate) fn node_id() -> String {
    let id = calls::property(&["xds", "node", "id"]).or_else(|| calls::property(&["node", "id"]));
    String::from_utf8_lossy(&id.unwrap_or_default()).into_owned()
}
