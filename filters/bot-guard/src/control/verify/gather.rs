//! The loop: reports of gateways in, verifications, verdicts out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dns::{NoAnswer, Resolver};
use kit::{GatewayReports, Sources};
use metrics::{counter, gauge};
use prost::Message as _;
use snapshot::TableKind;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::confirm::confirm;
use super::health::Health;
use super::keep;
use super::runtime::{Verification, VerificationState};
use super::verdicts::Verdicts;
use super::waiting::Waiting;
use super::wanted::Wanted;
use crate::{CrawlerSeen, CrawlerVerdict, Finding, REPORTS, TABLE, read_key};

/// How often verifications begin and verdicts are told.
const TICK: Duration = Duration::from_millis(100);
/// How often ended verdicts are removed, and the system's resolvers are looked up.
const SWEEP: Duration = Duration::from_secs(10);
/// Verifications that run at once, at most.
const MAX_RUNNING: usize = 64;

/// What a task found out.
enum Ended {
    Verified(Vec<u8>, Result<Finding, NoAnswer>),
    Probed(Result<(), NoAnswer>),
}

struct Verifier {
    sources: Sources,
    wanted: Wanted,
    resolver: Resolver,
    verdicts: Verdicts,
    waiting: Waiting,
    health: Health,
    running: JoinSet<Ended>,
    /// Verifications that may begin now, in thousandths.
    allowance: u64,
    filled: Instant,
}

/// Verifies crawlers for as long as the control plane runs.
pub(in super::super) async fn gather(sources: Sources) {
    let mut reports = sources.reports(REPORTS);
    let mut entities = sources.entities.clone();
    let wanted = Wanted::of(&**entities.borrow_and_update());
    let mut verifier = Verifier {
        resolver: wanted.resolver(),
        sources,
        wanted,
        verdicts: Verdicts::default(),
        waiting: Waiting::default(),
        health: Health::default(),
        running: JoinSet::new(),
        allowance: 0,
        filled: Instant::now(),
    };
    verifier.load().await;
    verifier.publish();
    verifier.show();
    let (mut tick, mut sweep) = (interval(TICK), interval(SWEEP));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let receiving = async {
            match reports.next().await {
                Some(reports) => reports,
                // Another receiver has taken over, as in tests of the frame.
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            reports = receiving => verifier.take(&reports),
            Some(ended) = verifier.running.join_next() => {
                if let Ok(ended) = ended {
                    verifier.ended(ended);
                }
            }
            changed = entities.changed() => {
                if changed.is_err() {
                    return;
                }
                let wanted = Wanted::of(&**entities.borrow_and_update());
                verifier.reconfigure(wanted);
            }
            _ = tick.tick(), if verifier.is_busy() => verifier.tick(),
            _ = sweep.tick() => {
                verifier.sweep();
                verifier.keep().await;
            }
        }
    }
}

impl Verifier {
    /// Takes up the verdicts that were kept. Without them crawlers are verified again.
    async fn load(&mut self) {
        let document = match self.sources.store.document(keep::DOCUMENT).await {
            Ok(document) => document.unwrap_or_default(),
            Err(error) => return self.sources.trouble(&format!("verdicts on crawlers could not be read: {error}")),
        };
        let settings = &self.wanted.settings;
        let longest = u64::from(settings.verified_ttl_seconds) * 1000;
        let max = usize::try_from(settings.max_entries).unwrap_or(usize::MAX);
        for (key, verdict) in keep::restored(&document, (self.sources.clock)(), longest) {
            if read_key(&key).is_some_and(|(method, _)| self.wanted.methods.contains_key(&method)) {
                self.verdicts.put(&key, verdict, max);
            }
        }
        // They are kept already.
        let _ = self.verdicts.unkept();
    }

    /// Keeps the verdicts on verified crawlers if they changed.
    async fn keep(&mut self) {
        let Some(document) = self.verdicts.unkept().map(keep::document) else { return };
        if let Err(error) = self.sources.store.document_put(keep::DOCUMENT, document).await {
            self.sources.trouble(&format!("verdicts on crawlers could not be kept: {error}"));
            self.verdicts.keep_again();
        }
    }

    /// Takes what a gateway has met. It may say anything: what is no key of a known method is dropped.
    fn take(&mut self, reports: &GatewayReports) {
        let now = (self.sources.clock)();
        for report in &reports.reports {
            let Ok(CrawlerSeen { key }) = CrawlerSeen::decode(report.as_slice()) else { continue };
            let Some((method, address)) = read_key(&key) else { continue };
            let verdict = self.verdicts.get(&key, now);
            if !self.wanted.methods.contains_key(&method) || verdict.is_some_and(|verdict| verdict.renew > now) {
                continue;
            }
            let known = verdict.is_some_and(|verdict| verdict.finding == Finding::Verified);
            self.waiting.add(&key, address, known);
        }
    }

    /// Begins what may begin, and tells gateways what has changed.
    fn tick(&mut self) {
        let rate = u64::from(self.wanted.settings.lookups_per_second);
        let passed = u64::try_from(self.filled.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.filled = Instant::now();
        // Never more than a second's worth at once, and always enough to begin one.
        self.allowance = self.allowance.saturating_add(passed.saturating_mul(rate)).min((rate * 1000).max(1000));
        while self.allowance >= 1000 && self.running.len() < MAX_RUNNING {
            let Some(key) = self.waiting.next() else { break };
            let found = read_key(&key).and_then(|(method, address)| Some((self.wanted.methods.get(&method)?, address)));
            let Some((domains, address)) = found else {
                self.waiting.ended(&key);
                continue;
            };
            self.allowance -= 1000;
            let (domains, resolver) = (Arc::clone(domains), self.resolver.clone());
            // In a task of its own: an answer that makes the parser panic is one that cannot be read, and the key does not stay taken.
            let confirming = tokio::spawn(async move { confirm(address, &domains, &resolver).await });
            self.running.spawn(async move {
                let unreadable = |_| Err(NoAnswer("an answer that cannot be read".to_owned()));
                Ended::Verified(key, confirming.await.unwrap_or_else(unreadable))
            });
        }
        if let Some(resolver) = self.health.probe(&self.resolver) {
            self.running.spawn(async move { Ended::Probed(resolver.probe().await) });
        }
        self.publish_changes();
        self.show();
    }

    fn ended(&mut self, ended: Ended) {
        let (key, outcome) = match ended {
            Ended::Verified(key, outcome) => (key, outcome),
            Ended::Probed(outcome) => return self.health.probed(outcome, &self.sources),
        };
        self.waiting.ended(&key);
        let word = match &outcome {
            Ok(Finding::Verified) => "verified",
            Ok(Finding::Impersonator) => "impersonator",
            Ok(Finding::Unverifiable) | Err(_) => "failed",
        };
        counter!("palisade_bots_verifications_total", "outcome" => word).increment(1);
        self.health.looked_up(&outcome, &self.sources);
        if !read_key(&key).is_some_and(|(method, _)| self.wanted.methods.contains_key(&method)) {
            return;
        }
        let (settings, now) = (&self.wanted.settings, (self.sources.clock)());
        let after = |seconds: u32| now.saturating_add(u64::from(seconds) * 1000);
        let failed = after(settings.failed_ttl_seconds);
        let verdict = match outcome {
            Ok(Finding::Verified) => {
                let until = after(settings.verified_ttl_seconds);
                CrawlerVerdict { finding: Finding::Verified, until, renew: until - (until - now) / 10 }
            }
            Ok(Finding::Impersonator) => {
                let until = after(settings.impersonator_ttl_seconds);
                CrawlerVerdict { finding: Finding::Impersonator, until, renew: until }
            }
            // What was found out before holds until its end.
            Ok(Finding::Unverifiable) | Err(_) => match self.verdicts.get(&key, now) {
                Some(before) => CrawlerVerdict { renew: failed.min(before.until), ..before },
                None => CrawlerVerdict { finding: Finding::Unverifiable, until: failed, renew: failed },
            },
        };
        let max = usize::try_from(settings.max_entries).unwrap_or(usize::MAX);
        self.verdicts.put(&key, verdict, max);
    }

    fn reconfigure(&mut self, wanted: Wanted) {
        if wanted.methods.is_empty() {
            self.health.ends(&self.sources);
        }
        self.wanted = wanted;
        self.resolver = self.wanted.resolver();
        let methods = &self.wanted.methods;
        self.verdicts.retain(|key| read_key(key).is_some_and(|(method, _)| methods.contains_key(&method)));
        self.publish_changes();
        self.show();
    }

    fn sweep(&mut self) {
        self.verdicts.expire((self.sources.clock)());
        self.resolver = self.wanted.resolver();
        self.publish_changes();
        self.show();
    }

    /// Whether there is something to do at a tick.
    fn is_busy(&self) -> bool {
        self.waiting.len() > 0
            || !self.running.is_empty()
            || self.verdicts.is_changed()
            || self.health.failing.is_some()
    }

    fn publish_changes(&mut self) {
        for delta in self.verdicts.deltas() {
            if let Err(error) = self.sources.material.change(TABLE, &delta) {
                self.sources.trouble(&error.to_string());
                return self.publish();
            }
        }
    }

    /// Publishes all verdicts.
    fn publish(&mut self) {
        let table = self.verdicts.table();
        let publish = |table| self.sources.material.publish(TABLE, TableKind::Keys, table);
        let published = table.and_then(|table| publish(table).map_err(|error| error.to_string()));
        if let Err(error) = published {
            self.sources.trouble(&error);
        }
    }

    fn show(&self) {
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let Some(shown) = self.sources.runtime::<Verification>() else { return };
        let counts: BTreeMap<Finding, usize> = self.verdicts.counts();
        let count = |finding| counts.get(&finding).copied().unwrap_or_default();
        let waiting = self.waiting.len() + self.running.len();
        gauge!("palisade_bots_verdicts", "finding" => "verified").set(number(count(Finding::Verified)));
        gauge!("palisade_bots_verdicts", "finding" => "impersonator").set(number(count(Finding::Impersonator)));
        gauge!("palisade_bots_verdicts", "finding" => "unverifiable").set(number(count(Finding::Unverifiable)));
        gauge!("palisade_bots_waiting").set(number(waiting));
        counter!("palisade_bots_dropped_total").absolute(self.waiting.dropped);
        shown.show(VerificationState {
            resolvers: self.resolver.servers.iter().map(ToString::to_string).collect(),
            error: self.health.failing.clone(),
            verified: count(Finding::Verified),
            impersonators: count(Finding::Impersonator),
            unverifiable: count(Finding::Unverifiable),
            waiting,
            dropped: self.waiting.dropped,
        });
    }
}
