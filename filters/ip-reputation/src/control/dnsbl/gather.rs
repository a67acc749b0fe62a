//! The loop: questions and reports of gateways in, lookups, verdicts out.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dns::{Resolver, system_resolvers};
use kit::{EntitySource, GatewayReports, ReportStream, Sources};
use metrics::gauge;
use prost::Message as _;
use snapshot::{TableKind, Topic as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::super::runtime::Reputation;
use super::health::Watched;
use super::runtime::{Asked, ShownBlocklists};
use super::settings::{DnsblSettings, server};
use super::verdicts::{Found, Listing, Verdict, Verdicts};
use super::waiting::{Tell, Waiting};
use super::zone::Zone;
use crate::{AddressAnswer, AddressQuestion, REPORTS, VERDICTS, read_address, verdict_key};

/// How often lookups begin, and verdicts are told.
const TICK: Duration = Duration::from_millis(20);
/// How often ended verdicts are removed, and the system's resolvers are looked up.
const SWEEP: Duration = Duration::from_secs(10);
/// Questions to zones that are under way at once, at most: each has a socket of its own.
const MAX_RUNNING: usize = 256;
/// The longest that a gateway's question waits.
const MAX_WAIT: u32 = 2_000;
/// The most zones that have numbers of their own: a label that was used once stays for as long as the process lives.
const MAX_LABELS: usize = 64;

/// What each zone, by its key, says of an address; and which zones were asked, by [`Gatherer::generation`].
struct Answers {
    generation: u64,
    answers: Vec<(String, Result<Vec<Ipv4Addr>, String>)>,
}

/// What a task found out.
enum Ended {
    /// What zones say of an address.
    LookedUp(IpAddr, Answers),
    Checked(String, Result<(), String>),
}

struct Gatherer {
    sources: Sources,
    runtime: Arc<Reputation>,
    settings: DnsblSettings,
    zones: Vec<Watched>,
    /// Counts changes of the zones.
    generation: u64,
    resolver: Resolver,
    verdicts: Verdicts,
    waiting: Waiting,
    running: JoinSet<Ended>,
    /// Lookups among them.
    lookups: usize,
    labels: BTreeSet<Arc<str>>,
    /// Lookups that may begin now, in thousandths.
    allowance: u64,
    filled: Instant,
    published: bool,
}

/// Looks up what gateways ask for as long as the control plane runs.
pub(in super::super) async fn gather(sources: Sources) {
    let Some(runtime) = sources.runtime::<Reputation>() else { return };
    let Some(mut questions) = runtime.blocklists.inbox() else { return };
    let mut entities = sources.entities.clone();
    let settings = settings(&**entities.borrow_and_update());
    let mut gatherer = Gatherer {
        resolver: resolver(&settings),
        sources,
        runtime,
        settings: DnsblSettings::default(),
        zones: Vec::new(),
        generation: 0,
        verdicts: Verdicts::default(),
        waiting: Waiting::default(),
        running: JoinSet::new(),
        lookups: 0,
        labels: BTreeSet::new(),
        allowance: 0,
        filled: Instant::now(),
        published: false,
    };
    gatherer.reconfigure(settings);
    let (mut tick, mut sweep) = (interval(TICK), interval(SWEEP));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // What gateways ask for is listened to from the first zone on.
    let (mut reports, mut listens) = (None::<Box<dyn ReportStream>>, false);
    loop {
        if !listens && !gatherer.zones.is_empty() {
            listens = true;
            reports = Some(gatherer.sources.reports(REPORTS));
            answer_questions(&gatherer.sources, &gatherer.runtime);
        }
        let receiving = async {
            match &mut reports {
                Some(reports) => reports.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = entities.changed() => {
                if changed.is_err() {
                    return;
                }
                let settings = self::settings(&**entities.borrow_and_update());
                gatherer.reconfigure(settings);
            }
            received = receiving => match received {
                Some(reports) => gatherer.reported(&reports),
                // Another receiver has taken over, as in tests of the frame.
                None => reports = None,
            },
            Some(asked) = questions.recv() => gatherer.asked(asked),
            Some(ended) = gatherer.running.join_next() => {
                if let Ok(ended) = ended {
                    gatherer.ended(ended);
                }
            }
            _ = tick.tick(), if gatherer.is_busy() => gatherer.tick(),
            _ = sweep.tick() => gatherer.sweep(),
        }
    }
}

/// Answers the questions that requests wait for.
fn answer_questions(sources: &Sources, runtime: &Arc<Reputation>) {
    let runtime = Arc::downgrade(runtime);
    sources.answer(
        AddressQuestion::TOPIC,
        Arc::new(move |data| {
            let runtime = runtime.upgrade();
            Box::pin(async move {
                let question = AddressQuestion::decode(data.as_slice()).ok()?;
                let address = read_address(&question.address)?;
                let patience = Duration::from_millis(question.millis.min(MAX_WAIT).into());
                let found = runtime?.blocklists.ask(address, patience).await?;
                Some(AddressAnswer { keys: found.keys() }.encode_to_vec())
            })
        }),
    );
}

impl Gatherer {
    /// Takes what a gateway asks for without waiting. It may say anything: what is no address is dropped.
    fn reported(&mut self, reports: &GatewayReports) {
        let now = (self.sources.clock)();
        for report in &reports.reports {
            let Ok(question) = AddressQuestion::decode(report.as_slice()) else { continue };
            let Some(address) = read_address(&question.address) else { continue };
            let known = self.verdicts.get(&verdict_key(address), now);
            if self.zones.is_empty() || known.is_some_and(|verdict| verdict.renew > now) {
                continue;
            }
            self.waiting.add(address, None);
        }
        self.tick();
    }

    fn asked(&mut self, Asked { address, tell }: Asked) {
        let now = (self.sources.clock)();
        if let Some(verdict) = self.verdicts.get(&verdict_key(address), now) {
            let _ = tell.send(verdict.found.clone());
            return;
        }
        if !self.zones.is_empty() {
            self.waiting.add(address, Some(tell));
            self.tick();
        }
    }

    /// Begins what may begin, and tells gateways what has changed.
    fn tick(&mut self) {
        self.check_zones();
        // Before the first check nothing is known of a zone: what is looked up without it would be kept.
        if self.zones.iter().all(|zone| zone.checked_at.is_some()) {
            self.begin_lookups();
        }
        self.publish_changes();
        self.show();
    }

    fn check_zones(&mut self) {
        let now = Instant::now();
        for watched in &mut self.zones {
            if watched.next_check().is_none_or(|at| at > now) {
                continue;
            }
            watched.begin_check();
            let (zone, resolver) = (watched.zone.clone(), self.resolver.clone());
            self.running.spawn(async move {
                let key = zone.key.clone();
                let checking = tokio::spawn(async move { zone.check(&resolver).await });
                Ended::Checked(key, checking.await.unwrap_or_else(|_| Err(UNREADABLE.to_owned())))
            });
        }
    }

    fn begin_lookups(&mut self) {
        let rate = u64::from(self.settings.lookups_per_second);
        let passed = u64::try_from(self.filled.elapsed().as_millis()).unwrap_or(u64::MAX);
        if passed > 0 {
            self.filled = Instant::now();
        }
        // Never more than a second's worth at once, and always enough to begin one.
        self.allowance = self.allowance.saturating_add(passed.saturating_mul(rate)).min((rate * 1000).max(1000));
        while self.allowance >= 1000 && self.lookups * self.zones.len() < MAX_RUNNING {
            let Some(address) = self.waiting.next() else { break };
            self.allowance -= 1000;
            self.lookups += 1;
            let zones: Vec<Zone> =
                self.zones.iter().filter(|zone| zone.is_asked()).map(|watched| watched.zone.clone()).collect();
            let resolver = self.resolver.clone();
            self.running.spawn(look_up(address, zones, resolver, self.generation));
        }
    }

    fn ended(&mut self, ended: Ended) {
        let now = (self.sources.clock)();
        match ended {
            Ended::Checked(key, outcome) => {
                if let Some(zone) = self.zones.iter_mut().find(|watched| watched.zone.key == key) {
                    zone.checked(outcome, now, &self.sources);
                }
            }
            Ended::LookedUp(address, answers) => {
                self.lookups -= 1;
                self.looked_up(address, answers, now);
            }
        }
        self.tick();
    }

    fn looked_up(&mut self, address: IpAddr, Answers { generation, answers }: Answers, now: u64) {
        let tell: Vec<Tell> = self.waiting.ended(address);
        // Where no zone works, and where others were asked than there are now, the next look is soon.
        let is_partial = answers.is_empty() || generation != self.generation;
        let mut found = Found { is_partial, ..Found::default() };
        let listed_until = after(now, self.settings.listed_ttl_seconds);
        found.unknown.extend(self.zones.iter().map(|watched| watched.zone.key.clone()));
        for (key, outcome) in answers {
            let Some(zone) = self.zones.iter_mut().find(|watched| watched.zone.key == key) else { continue };
            zone.looked_up(outcome.as_ref().map(|codes| !codes.is_empty()).map_err(|_| ()));
            if outcome.is_ok() {
                found.unknown.remove(&key);
            }
            match outcome {
                Ok(codes) if codes.is_empty() => {}
                Ok(codes) => drop(found.listed.insert(key, Listing { codes, until: listed_until })),
                Err(_) => found.is_partial = true,
            }
        }
        let key = verdict_key(address);
        if let Some(before) = self.verdicts.found(&key) {
            found.remember(before, now);
        }
        let settings = &self.settings;
        let seconds = match (found.is_partial, found.listed.is_empty()) {
            (true, _) => settings.failed_ttl_seconds,
            (false, true) => settings.unlisted_ttl_seconds,
            (false, false) => settings.listed_ttl_seconds,
        };
        let until = after(now, seconds);
        // Gateways have one end for all listings: the first one.
        let until = found.first_end().map_or(until, |end| end.min(until));
        // A caller that stays listed has a verdict all the time.
        let renew = if found.listed.is_empty() { until } else { until - (until - now) / 10 };
        for tell in tell {
            let _ = tell.send(found.clone());
        }
        let max = usize::try_from(settings.max_entries).unwrap_or(usize::MAX);
        self.verdicts.put(&key, Verdict { found, until, renew }, max);
    }

    fn reconfigure(&mut self, settings: DnsblSettings) {
        if settings == self.settings && self.published {
            return;
        }
        let zones: Vec<Zone> = settings.enabled().map(Zone::of).collect();
        let resolvers_changed = settings.resolvers != self.settings.resolvers;
        self.settings = settings;
        self.resolver = resolver(&self.settings);
        let mut before = std::mem::take(&mut self.zones);
        let has_changed = before.iter().map(|watched| &watched.zone).ne(zones.iter());
        for zone in zones {
            let known = before.iter().position(|watched| watched.zone == zone).map(|place| before.swap_remove(place));
            let mut watched = known.unwrap_or_else(|| {
                let named = self.labels.len() < MAX_LABELS && self.labels.insert(Arc::clone(&zone.name));
                let has_metrics = named || self.labels.contains(&zone.name);
                Watched::new(zone, has_metrics)
            });
            if resolvers_changed {
                watched.suspect();
            }
            self.zones.push(watched);
        }
        for gone in before {
            gone.ends(&self.sources);
        }
        if has_changed {
            // Verdicts of before do not have what a new zone says.
            self.verdicts.clear();
            self.generation += 1;
        }
        let is_used = !self.zones.is_empty() || self.sources.material.get(VERDICTS).is_some();
        if !self.published && is_used {
            self.publish();
        }
        self.tick();
    }

    fn sweep(&mut self) {
        self.verdicts.expire((self.sources.clock)());
        if self.settings.resolvers.is_empty() {
            self.resolver = resolver(&self.settings);
        }
        self.tick();
    }

    /// Whether there is something to do at a tick.
    fn is_busy(&self) -> bool {
        self.waiting.len() > 0 || !self.running.is_empty() || self.verdicts.is_changed()
    }

    fn publish_changes(&mut self) {
        if !self.published {
            return;
        }
        for delta in self.verdicts.deltas() {
            if let Err(error) = self.sources.material.change(VERDICTS, &delta) {
                self.sources.trouble(&error.to_string());
                return self.publish();
            }
        }
    }

    /// Publishes all verdicts.
    fn publish(&mut self) {
        let table = self.verdicts.table();
        let publish = |table| self.sources.material.publish(VERDICTS, TableKind::Keys, table);
        match table.and_then(|table| publish(table).map_err(|error| error.to_string())) {
            Ok(()) => self.published = true,
            Err(error) => self.sources.trouble(&error),
        }
    }

    fn show(&self) {
        gauge!("palisade_dnsbl_entries").set(u32::try_from(self.verdicts.len()).unwrap_or(u32::MAX));
        let zones = self.zones.iter().map(|watched| (watched.zone.name.to_string(), watched.shown()));
        self.runtime.blocklists.show(ShownBlocklists {
            zones: zones.collect(),
            resolvers: self.resolver.servers.iter().map(ToString::to_string).collect(),
            entries: self.verdicts.len(),
            listed: self.verdicts.listed(),
            waiting: self.waiting.len() + self.lookups,
            dropped: self.waiting.dropped,
        });
    }
}

/// What an answer is that makes the parser fail.
const UNREADABLE: &str = "an answer that cannot be read";

/// Asks all zones at once.
async fn look_up(address: IpAddr, zones: Vec<Zone>, resolver: Resolver, generation: u64) -> Ended {
    let mut asking = Vec::new();
    for zone in zones {
        let resolver = resolver.clone();
        // In a task of its own: an answer that makes the parser panic is one that cannot be read.
        let key = zone.key.clone();
        asking.push((key, tokio::spawn(async move { zone.look_up(address, &resolver).await })));
    }
    let mut answers = Vec::new();
    for (key, task) in asking {
        answers.push((key, task.await.unwrap_or_else(|_| Err(UNREADABLE.to_owned()))));
    }
    Ended::LookedUp(address, Answers { generation, answers })
}

fn after(now: u64, seconds: u32) -> u64 {
    now.saturating_add(u64::from(seconds) * 1000)
}

fn resolver(settings: &DnsblSettings) -> Resolver {
    let named: Vec<SocketAddr> = settings.resolvers.iter().filter_map(|text| server(text)).collect();
    let servers = if named.is_empty() { system_resolvers() } else { named };
    Resolver { servers, timeout: Duration::from_millis(settings.timeout_millis.into()) }
}

/// The settings, which are a part of an entity that this crate does not have: `security.dnsbl` of `global-config`.
pub(in super::super) fn settings(entities: &dyn EntitySource) -> DnsblSettings {
    let global = entities.slot("global-config", "global-config").map(|slot| slot.entity.shown());
    let settings = global.and_then(|global| global.pointer("/security/dnsbl").cloned());
    settings.and_then(|settings| serde_json::from_value(settings).ok()).unwrap_or_default()
}
