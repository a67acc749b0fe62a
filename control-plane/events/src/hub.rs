//! The way of an event through the control plane.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::audit::Audit;
use super::dependency::dependency;
use super::event::{self, Checked, EventError, Kind};
use super::exporter::Exporter;
use super::exporters::{ExporterStatus, Exporters, Mark};
use super::format::EventFormat;
use super::incidents::{Incident, IncidentLimits, IncidentState, Incidents, Place, Unsaved};
use super::offence::{self, ChargedByTrail, Offence};
use super::reported::Reported;
use super::seen::{self, BanWay, Seen, Sighting};
use super::spill::{Spill, SpillError};
use super::tally::{RollupName, Taken, Tallies};
use super::tap::{EventTap, Taps};
use super::trouble::{Part, Trouble, Troubles};
use base::identity::IPV6_PREFIX;
use store::fabric::{Ban, MergeIncident, Workflow};

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

/// Says which names are counted by themselves.
struct Names(Box<dyn Fn(RollupName<'_>) -> bool + Send + Sync>);

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Names").finish_non_exhaustive()
    }
}

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

    /// Counts requests of routes for the rollups, as a gateway reports them; the id is empty for those outside of all routes. Of more than
    /// the gateway can have had since its last report, the rest is not counted.
    pub fn count_requests<'a>(&self, node: &str, routes: impl IntoIterator<Item = (&'a str, u64)>) {
        let now = (self.inner.clock)();
        for (route, requests) in routes {
            let mut reported = self.inner.reported.lock().unwrap_or_else(PoisonError::into_inner);
            let counted = reported.allow(node, requests, now);
            drop(reported);
            if counted < requests {
                metrics::counter!("palisade_requests_uncounted_total").increment(requests - counted);
            }
            self.tallies().count_requests(route, counted, &|name| self.is_known(name), now);
        }
    }

    /// Counts events and requests by the names for which `is_known` holds at that time, and by no others. All names are known before the
    /// first call, which alone counts.
    pub fn count_by(&self, is_known: impl Fn(RollupName<'_>) -> bool + Send + Sync + 'static) {
        let _first_wins = self.inner.names.set(Names(Box::new(is_known)));
    }

    fn is_known(&self, name: RollupName<'_>) -> bool {
        self.inner.names.get().is_none_or(|names| (names.0)(name))
    }

    /// What was counted since the last call.
    pub(super) fn take_tallies(&self) -> Taken {
        self.tallies().take()
    }

    pub(super) fn put_back_tallies(&self, taken: Taken) {
        self.tallies().put_back(taken);
    }

    fn tallies(&self) -> MutexGuard<'_, Tallies> {
        self.inner.tallies.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn lock(&self) -> MutexGuard<'_, Incidents> {
        let limits = self.inner.limits.get().map(|limits| (limits.0)());
        let mut incidents = self.inner.incidents.lock().unwrap_or_else(PoisonError::into_inner);
        incidents.limit(limits.unwrap_or_default());
        incidents
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

    /// The incidents with an event since `oldest` (milliseconds since the Unix epoch; 0 for all), each with its state; the most recent
    /// first. There may be many: they are shared, and no event waits while a caller looks through them.
    #[must_use]
    pub fn incidents_since(&self, oldest: u64) -> Vec<(Arc<Incident>, IncidentState)> {
        let now = (self.inner.clock)();
        self.lock().since(oldest, now)
    }

    /// How many incidents there are.
    #[must_use]
    pub fn incidents_count(&self) -> usize {
        let now = (self.inner.clock)();
        self.lock().count(now)
    }

    /// What operators made of the incident of an identity; `None` while it is open.
    #[must_use]
    pub fn workflow(&self, key: &str) -> Option<Workflow> {
        let now = (self.inner.clock)();
        self.lock().workflow(key, now).cloned()
    }

    /// Takes over what the store has acknowledged; `None` where the state was cleared.
    pub fn set_workflow(&self, key: &str, workflow: Option<Workflow>) {
        self.lock().set_workflow(key, workflow);
    }

    /// The signals of the last event of an identity.
    pub fn signals(&self, key: &str) -> Vec<Value> {
        self.lock().signals(key)
    }

    pub(super) fn restore_incidents(&self, incidents: Vec<Incident>) {
        self.lock().restore(incidents);
    }

    pub(super) fn restore_workflows(&self, workflows: Vec<Workflow>) {
        self.lock().restore_workflows(workflows);
    }

    pub(super) fn unsaved(&self) -> Unsaved {
        let now = (self.inner.clock)();
        self.lock().unsaved(now)
    }

    pub(super) fn put_back(&self, unsaved: Unsaved) {
        self.lock().put_back(unsaved);
    }

    pub(super) fn merge_incidents(&self) -> MergeIncident {
        self.lock().merge()
    }

    pub(super) fn kept(&self, incidents: Vec<Incident>) {
        let now = (self.inner.clock)();
        self.lock().kept(incidents, now);
    }

    /// The store has no incidents with these keys any more: another control plane has forgotten them.
    pub(super) fn incidents_gone(&self, keys: &[String]) {
        self.lock().gone(keys);
    }

    pub(super) fn incident_keys(&self) -> Vec<String> {
        self.lock().keys()
    }

    pub(super) fn workflow_changes(&self) -> u64 {
        self.lock().workflow_changes()
    }

    pub(super) fn follow_workflows(&self, workflows: Vec<Workflow>, changes: u64) -> bool {
        self.lock().follow_workflows(workflows, changes)
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
