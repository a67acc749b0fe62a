//! The way of an event through the control plane.

mod incidents;
mod rollups;
mod troubles;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::audit::Audit;
use super::event::{self, Checked, EventError, Kind};
use super::exporter::Exporter;
use super::exporters::{ExporterStatus, Exporters, Mark};
use super::format::EventFormat;
use super::incidents::{IncidentLimits, Incidents, Place};
use super::offence::{self, ChargedByTrail, Offence};
use super::reported::Reported;
use super::seen::{self, BanWay, Seen, Sighting};
use super::spill::{Spill, SpillError};
use super::tally::Tallies;
use super::tap::{EventTap, Taps};
use super::trouble::{Part, Troubles};
use base::identity::IPV6_PREFIX;
use rollups::Names;
use store::fabric::Ban;

/// Takes events, exports them, and keeps the incidents. Clones share one state.
#[derive(Clone, Debug)]
pub struct EventHub {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    exporters: Exporters,
    incidents: Mutex<Incidents>,
    /// Where denials are told, for the ledger.
    offences: Mutex<Option<(mpsc::Sender<Offence>, ChargedByTrail)>>,
    /// Where alerts are told what happens.
    watcher: Mutex<Option<mpsc::Sender<Seen>>>,
    taps: Taps,
    /// Taps of everything that is exported.
    all_taps: Taps,
    tallies: Mutex<Tallies>,
    reported: Mutex<Reported>,
    names: OnceLock<Names>,
    /// The store has events to be sent.
    outbox: Notify,
    troubles: Mutex<Troubles>,
    ipv6_prefix: OnceLock<Ipv6Prefix>,
    limits: OnceLock<Limits>,
    clock: fn() -> u64,
}

/// Says the width of the networks that callers of IPv6 are judged by, in bits.
struct Ipv6Prefix(Box<dyn Fn() -> u8 + Send + Sync>);

/// Says what is kept of incidents.
struct Limits(Box<dyn Fn() -> IncidentLimits + Send + Sync>);

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Limits").field(&(self.0)()).finish()
    }
}

impl fmt::Debug for Ipv6Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ipv6Prefix").field(&(self.0)()).finish()
    }
}

impl EventHub {
    /// A hub that exports to `exporters` and takes the time, in milliseconds since the Unix epoch, from `clock`. Must be
    /// called within a tokio runtime: each exporter gets a task. All exporters write one format. With `spill`, events of exporters over
    /// the network that have no room in memory go to the disk, and those that wait when the process ends.
    ///
    /// # Errors
    ///
    /// A folder of `spill` cannot be used.
    pub fn start(
        exporters: Vec<Exporter>,
        format: EventFormat,
        spill: Option<&Spill>,
        clock: fn() -> u64,
    ) -> Result<EventHub, SpillError> {
        Exporters::start(exporters, format, spill, clock).map(|exporters| EventHub::over(exporters, clock))
    }

    /// [`EventHub::start`] with the format of gateways, and nothing on disk.
    #[must_use]
    pub fn new(exporters: Vec<Exporter>, clock: fn() -> u64) -> EventHub {
        EventHub::over(Exporters::in_memory(exporters, clock), clock)
    }

    fn over(exporters: Exporters, clock: fn() -> u64) -> EventHub {
        for part in Part::ALL {
            metrics::gauge!("palisade_health_troubles", "part" => part.word()).set(0.0);
        }
        EventHub {
            inner: Arc::new(Inner {
                exporters,
                incidents: Mutex::default(),
                offences: Mutex::default(),
                watcher: Mutex::default(),
                taps: Taps::default(),
                all_taps: Taps::default(),
                tallies: Mutex::default(),
                reported: Mutex::default(),
                names: OnceLock::new(),
                outbox: Notify::new(),
                troubles: Mutex::default(),
                ipv6_prefix: OnceLock::new(),
                limits: OnceLock::new(),
                clock,
            }),
        }
    }

    /// Takes one event, as JSON. Never waits: an exporter that is too slow loses its oldest events.
    ///
    /// # Errors
    ///
    /// [`EventError`] where the bytes are no event; nothing is exported then.
    pub fn publish(&self, bytes: &[u8]) -> Result<(), EventError> {
        self.publish_of("", bytes)
    }

    /// [`EventHub::publish`] for an event that a node has sent: it is that node's, whatever it says. `node` is empty where it
    /// is not known who has sent it.
    ///
    /// # Errors
    ///
    /// As of [`EventHub::publish`].
    pub fn publish_of(&self, node: &str, bytes: &[u8]) -> Result<(), EventError> {
        let checked = event::check(bytes).inspect_err(|_| {
            metrics::counter!("palisade_events_total", "outcome" => "refused").increment(1);
        })?;
        metrics::counter!("palisade_events_total", "outcome" => "taken").increment(1);
        let Checked { mut value, kind } = checked;
        let now = (self.inner.clock)();
        let ipv6_prefix = self.ipv6_prefix();
        self.tell_offence(|charged_by_trail| offence::of(&kind, charged_by_trail, node, ipv6_prefix, now));
        if !node.is_empty() {
            give_node(&mut value, node);
        }
        if let Kind::Security(mut security) = kind {
            if !node.is_empty() {
                security.route.node = Some(node.to_owned());
            }
            self.tallies().count(&value, &security, &|name| self.is_known(name), now);
            let made = event::severity(security.threat.score().unwrap_or(0.0));
            let severity = security.event.severity.is_none().then_some(made);
            let sighting = self.watcher().map(|watcher| (watcher, seen::sighting(&security, ipv6_prefix, made)));
            let place = self.lock().record(*security, ipv6_prefix, now);
            if let Some((watcher, sighting)) = sighting {
                let sighting = Sighting { place: place.clone(), ..sighting };
                show(&watcher, Seen::Event(Box::new(sighting)));
            }
            complete(&mut value, place, severity);
        }
        // As it was read, in one line: a name that is there twice has one value, for all who read it.
        let line: Arc<[u8]> = value.to_string().into_bytes().into();
        self.inner.taps.tell(&line);
        self.export(&line);
        Ok(())
    }

    fn export(&self, line: &Arc<[u8]>) {
        self.inner.all_taps.tell(line);
        self.inner.exporters.export(line);
    }

    /// Judges callers of IPv6 by networks of as many bits as `ipv6_prefix` says at that time, where they were those of the
    /// default configuration. Only the first call counts.
    pub fn judge_ipv6_by(&self, ipv6_prefix: impl Fn() -> u8 + Send + Sync + 'static) {
        let _first_wins = self.inner.ipv6_prefix.set(Ipv6Prefix(Box::new(ipv6_prefix)));
    }

    /// Keeps incidents as `limits` says at that time, where it was by the default limits. Only the first call counts.
    pub fn limit_incidents_by(&self, limits: impl Fn() -> IncidentLimits + Send + Sync + 'static) {
        let _first_wins = self.inner.limits.set(Limits(Box::new(limits)));
    }

    fn ipv6_prefix(&self) -> u8 {
        self.inner.ipv6_prefix.get().map_or(IPV6_PREFIX, |prefix| (prefix.0)())
    }

    /// Tells `offences` what the ledger may charge, from here on. What it has no room for is lost, and counted. The refusals of a
    /// module are not in it as denials where `charged_by_trail` holds for its name.
    pub fn feed(&self, offences: mpsc::Sender<Offence>, charged_by_trail: ChargedByTrail) {
        *self.inner.offences.lock().unwrap_or_else(PoisonError::into_inner) = Some((offences, charged_by_trail));
    }

    /// Tells `watcher` of events and bans, from here on. What it has no room for is lost, and counted.
    pub fn watch(&self, watcher: mpsc::Sender<Seen>) {
        *self.inner.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
    }

    /// All events that [`EventHub::publish`] takes from here on, for `receiver`, which metrics name. It costs as long as it is open.
    #[must_use]
    pub fn tap(&self, receiver: &'static str) -> EventTap {
        self.inner.taps.open(receiver)
    }

    /// All events that are exported from here on, those about the control plane itself as well.
    pub(super) fn tap_all(&self, receiver: &'static str) -> EventTap {
        self.inner.all_taps.open(receiver)
    }

    /// The time, in milliseconds since the Unix epoch.
    pub(super) fn now(&self) -> u64 {
        (self.inner.clock)()
    }

    /// Tells the watcher of a ban that was asked for at `now` and holds.
    pub fn banned(&self, ban: &Ban, way: BanWay, now: u64) {
        let Some(watcher) = self.watcher() else { return };
        let made = seen::made(ban, way, now, self.lock().timeline(&ban.key));
        if let Some(made) = made {
            show(&watcher, Seen::Ban(Box::new(made)));
        }
    }

    fn watcher(&self) -> Option<mpsc::Sender<Seen>> {
        self.inner.watcher.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell_offence(&self, offence: impl FnOnce(ChargedByTrail) -> Option<Offence>) {
        let feed = self.inner.offences.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((sender, charged_by_trail)) = feed
            && let Some(offence) = offence(charged_by_trail)
            && sender.try_send(offence).is_err()
        {
            metrics::counter!("palisade_ledger_lost_total").increment(1);
        }
    }

    /// Exports what was done to the control plane, with an id and the time. Never waits, as [`EventHub::publish`], which
    /// takes no such event: a node that is in other hands must not say what operators have done.
    pub fn audit(&self, audit: Audit) {
        let (id, _) = uuid::Uuid::new_v4().as_u64_pair();
        let event = audit.event(id, (self.inner.clock)());
        metrics::counter!("palisade_events_total", "outcome" => "audited").increment(1);
        self.export(&event.to_string().into_bytes().into());
    }

    /// Exports an event that the control plane has made: it belongs to no incident, and no alert looks at it.
    pub fn tell(&self, event: &str) {
        metrics::counter!("palisade_events_total", "outcome" => "audited").increment(1);
        self.export(&event.as_bytes().into());
    }

    /// Says that a committed change has left events in the store's outbox: they are sent at once.
    pub fn outbox_filled(&self) {
        self.inner.outbox.notify_one();
    }

    /// Waits for [`EventHub::outbox_filled`].
    pub(super) async fn outbox_notified(&self) {
        self.inner.outbox.notified().await;
    }

    /// What the exporters were given so far.
    pub(super) fn mark(&self) -> Mark {
        self.inner.exporters.mark()
    }

    /// Whether every exporter has written, lost or on disk what it was given up to a mark.
    pub(super) fn has_passed(&self, mark: &Mark) -> bool {
        self.inner.exporters.has_passed(mark)
    }

    /// How each exporter is doing.
    #[must_use]
    pub fn exporters(&self) -> Vec<ExporterStatus> {
        self.inner.exporters.statuses()
    }

    /// Waits until every event that was taken is written or lost: before the process ends. An exporter that waits after a
    /// failure tries again at once. Takes as long as it takes: an exporter that keeps failing keeps its events.
    pub async fn flush(&self) {
        self.inner.exporters.drained().await;
    }

    /// Ends all exporters. Events that still wait go to the disk where that is configured; the others are lost. Logs both.
    pub async fn close(&self) {
        self.inner.exporters.close().await;
    }
}

fn show(watcher: &mpsc::Sender<Seen>, seen: Seen) {
    if watcher.try_send(seen).is_err() {
        metrics::counter!("palisade_alerts_missed_events_total").increment(1);
    }
}

/// Gives an event the node that has sent it.
fn give_node(event: &mut Value, node: &str) {
    let Some(fields) = event.as_object_mut() else { return };
    let route = fields.entry("route").or_insert_with(|| json!({}));
    if !route.is_object() {
        *route = json!({});
    }
    if let Some(route) = route.as_object_mut() {
        route.insert("node".to_owned(), node.into());
    }
}

/// Gives an event its place in its incident, over all nodes, and a severity where it has none.
fn complete(event: &mut Value, place: Option<Place>, severity: Option<u8>) {
    let Some(fields) = event.as_object_mut() else { return };
    if let Some(Place { id, count, .. }) = place {
        fields.insert("incident".to_owned(), json!({ "id": id, "count": count }));
    }
    if let Some(severity) = severity
        && let Some(event) = fields.entry("event").or_insert_with(|| json!({})).as_object_mut()
    {
        event.insert("severity".to_owned(), severity.into());
    }
}

#[cfg(test)]
mod tests;
