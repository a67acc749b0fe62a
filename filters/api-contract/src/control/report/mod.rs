//! The API report: what all gateways have counted and looked at, beside the contracts.

mod auth;
mod compare;
mod contracts;
mod declared;
mod document;
mod endpoint;
mod routes;
mod rows;
mod sensitive;
mod state;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::{EntitySource, GatewayReports, Sources, View};
use prost::Message as _;
use store::Elsewhere;
use tokio::time::MissedTickBehavior;

use super::ApiContract;
use crate::inventory::messages::{DRIFT, DriftSample, INVENTORY, InventoryReport};
use contracts::{Contracts, ReadContract};
use routes::{ReportedRoute, routes};
use state::State;

pub(super) use endpoint::REPORT;

/// How often what has changed is written to the store. Gateways send each report twice, half a minute apart: what is lost in between
/// comes again.
const WRITE: Duration = Duration::from_secs(5);
/// How often what was not seen for long is forgotten.
const FORGET: Duration = Duration::from_secs(3600);
/// How long to wait before the store is read again.
const RETRY: Duration = Duration::from_secs(5);
/// How long a report waits for the inventory to be read from the store.
const LOAD: Duration = Duration::from_secs(10);

/// What the plugin knows of the APIs behind all gateways.
#[derive(Default)]
pub(super) struct ApiReport {
    state: Mutex<Option<State>>,
    loaded: Condvar,
    contracts: Contracts,
}

/// The routes whose calls are counted, by id, and the routes of each contract.
type Counted = HashMap<String, ReportedRoute>;

impl ApiReport {
    /// The inventory, once it was read from the store; `None` if that takes too long.
    fn wait(&self) -> Option<MutexGuard<'_, Option<State>>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.loaded.wait_timeout_while(state, LOAD, |state| state.is_none());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_some().then_some(state)
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }

    fn put(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
        self.loaded.notify_all();
    }

    /// The contract of a route as it is now.
    fn contract(&self, route: &ReportedRoute, entities: &dyn EntitySource) -> Option<Arc<ReadContract>> {
        let item = View::new(entities).get::<ApiContract>(route.contract.as_deref()?)?;
        item.body.enabled.then(|| self.contracts.get(item))
    }

    /// Takes what a gateway has counted.
    fn count(
        &self,
        GatewayReports { node, reports }: &GatewayReports,
        counted: &Counted,
        entities: &dyn EntitySource,
        now: u64,
    ) {
        for report in reports {
            let Ok(report) = InventoryReport::decode(report.as_slice()) else {
                self.with(|state| state.refused = state.refused.saturating_add(1));
                continue;
            };
            if self.with(|state| state.admit(node, report.worker, report.sequence, now)) != Some(true) {
                continue;
            }
            let running: BTreeSet<&str> = report.contracts.iter().map(String::as_str).collect();
            let runs = |route: &&ReportedRoute| route.contract.as_deref().is_some_and(|id| running.contains(id));
            let observed = counted.values().filter(runs).map(|route| route.id.as_str());
            self.with(|state| state.observe(observed, now));
            for counts in report.routes {
                let Some(route) = counted.get(&counts.route) else { continue };
                let Some(contract) = self.contract(route, entities) else { continue };
                let declares = |method: &str, path: &str| contract.declared.operation(method, path).is_some();
                self.with(|state| state.add(counts, &contract.version, declares, now));
            }
        }
    }

    /// Takes what payloads look like.
    fn compare(&self, reports: &[Vec<u8>], counted: &Counted, entities: &dyn EntitySource, now: u64) {
        for report in reports {
            let Ok(sample) = DriftSample::decode(report.as_slice()) else {
                self.with(|state| state.refused = state.refused.saturating_add(1));
                continue;
            };
            let Some(route) = counted.get(&sample.route) else { continue };
            let Some(contract) = self.contract(route, entities) else { continue };
            let findings = compare::compare(&contract.declared, &sample);
            let operation = format!("{} {}", sample.method, sample.path);
            self.with(|state| state.drifted(&sample.route, &operation, &contract.version, findings, now));
        }
    }
}

/// Takes what gateways report, and keeps it in the store, for as long as the control plane runs.
pub(super) async fn gather(sources: Sources, report: Arc<ApiReport>) {
    // Before anything else: what gateways report until the store was read waits here.
    let (mut counts, mut drift) = (sources.reports(INVENTORY), sources.reports(DRIFT));
    let (mut others, leads) = (sources.store.elsewhere(), sources.store.leads());
    let mut entities = sources.entities.clone();
    loop {
        match sources.store.inventory().await {
            Ok(kept) => break report.put(State::load(kept)),
            Err(error) => sources.trouble(&format!("the API inventory cannot be read from the store: {error}")),
        }
        if tokio::time::timeout(RETRY, entities.changed()).await.is_ok_and(|changed| changed.is_err()) {
            return;
        }
    }
    let (mut write, mut forget) = (tokio::time::interval(WRITE), tokio::time::interval(FORGET));
    write.set_missed_tick_behavior(MissedTickBehavior::Delay);
    forget.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The control plane that leads counts, and writes; another one shows what it has written.
    let mut is_behind = false;
    let mut now_entities = entities.borrow_and_update().clone();
    let mut counted = Arc::new(counted_routes(&*now_entities));
    loop {
        let now = (sources.clock)();
        tokio::select! {
            reports = counts.next() => {
                let Some(reports) = reports else { break };
                let (report, counted, entities) = (Arc::clone(&report), Arc::clone(&counted), Arc::clone(&now_entities));
                // A contract that is new is read here, which may take seconds.
                let work = move || report.count(&reports, &counted, &*entities, now);
                let _ = tokio::task::spawn_blocking(work).await;
            }
            reports = drift.next() => {
                let Some(reports) = reports else { break };
                let (report, counted, entities) = (Arc::clone(&report), Arc::clone(&counted), Arc::clone(&now_entities));
                let work = move || report.compare(&reports.reports, &counted, &*entities, now);
                let _ = tokio::task::spawn_blocking(work).await;
            }
            Some(changed) = others.next() => is_behind |= !*leads.borrow() && has_inventory(&changed),
            _ = write.tick() => {
                if is_behind {
                    match sources.store.inventory().await {
                        Ok(kept) => {
                            report.put(State::load(kept));
                            is_behind = false;
                        }
                        Err(error) => sources.trouble(&format!("the API inventory cannot be read from the store: {error}")),
                    }
                }
                save(&sources, &report, now).await;
            }
            _ = forget.tick() => {
                let is_there = |id: &str| now_entities.slot("routes", id).is_some();
                report.with(|state| {
                    state.forget(now);
                    state.forget_routes(is_there);
                });
            }
            changed = entities.changed() => {
                if changed.is_err() {
                    break;
                }
                now_entities = entities.borrow_and_update().clone();
                counted = Arc::new(counted_routes(&*now_entities));
                let used: BTreeSet<String> = counted.values().filter_map(|route| route.contract.clone()).collect();
                report.contracts.keep(|id| used.contains(id));
            }
        }
    }
    save(&sources, &report, (sources.clock)()).await;
}

fn has_inventory(changed: &Elsewhere) -> bool {
    match changed {
        Elsewhere::Keys(keys) => keys.inventory,
        Elsewhere::Anything => true,
    }
}

fn counted_routes(entities: &dyn EntitySource) -> Counted {
    let counted = routes(entities).into_iter().filter(|route| route.counted && route.contract.is_some());
    counted.map(|route| (route.id.clone(), route)).collect()
}

/// Writes what has changed. What cannot be written is tried again.
async fn save(sources: &Sources, report: &ApiReport, now: u64) {
    let refused = report.with(|state| std::mem::take(&mut state.refused)).unwrap_or(0);
    if refused > 0 {
        sources.trouble(&format!("gateways have sent {refused} records of APIs that no filter of this release makes"));
    }
    let Some(change) = report.with(|state| state.take_changes(now)).flatten() else { return };
    if let Err(error) = sources.store.inventory_write(change.clone()).await {
        sources.trouble(&format!("the API inventory cannot be written to the store: {error}"));
        report.with(|state| state.put_back(change));
    }
}

#[cfg(test)]
mod tests;
