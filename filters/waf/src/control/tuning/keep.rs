//! What gateways report, in the store, for as long as the control plane runs.
//!
//! Of several control planes with one store, the one that leads gets the reports. The others take over what it writes, and it what an
//! operator does at one of them, by the document: what it has counted in a window since it wrote it last is lost then.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kit::{Entity as _, GatewayReports, Sources};
use prost::Message as _;
use store::{Elsewhere, Keys, StoreError};
use tokio::time::MissedTickBehavior;

use super::matches::{KeptMatch, MatchStore, bounded, bounded_parameter};
use super::windows::{MAX_PARAMETERS, Windows};
use super::workers::Workers;
use crate::control::config::WafConfig;
use crate::samples::messages::{MATCHES, MAX_SUSPECTS, MatchReport, Matched, Parameter, Totals};

/// How often what has changed is written.
const WRITE: Duration = Duration::from_secs(5);
/// How long to wait before the store is read again.
const RETRY: Duration = Duration::from_secs(5);
/// The names of the documents of matches, and of windows, begin with it.
const MATCH: &str = "waf-match/";
const WINDOW: &str = "waf-window/";

/// What gateways have reported; `None` until it was read from the store.
#[derive(Default)]
pub(in crate::control) struct Reported(Mutex<Option<Known>>);

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Known {
    workers: Workers,
    pub(super) matches: MatchStore,
    pub(super) windows: Windows,
    /// Records that no filter of this release makes.
    refused: u64,
}

impl Reported {
    /// Works on it; `None` until it was read from the store.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Known) -> T) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }

    pub(super) fn put(&self, known: Known) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }
}

impl Known {
    /// Takes a report of a node. `is_config` says whether there is a WAF config of that id.
    pub(super) fn take(&mut self, node: &str, bytes: &[u8], is_config: impl Fn(&str) -> bool, now: u64) {
        let Ok(report) = MatchReport::decode(bytes) else {
            self.refused = self.refused.saturating_add(1);
            return;
        };
        if !self.workers.admit(node, report.worker, report.sequence, now) {
            return;
        }
        let mut suspects = report.suspects;
        suspects.truncate(MAX_SUSPECTS);
        self.windows.suspect(&suspects);
        self.learn(report.parameters, &is_config);
        self.count(node, (report.matches, &report.totals), is_config, now);
    }

    /// Takes what was seen of parameters.
    pub(super) fn learn(&mut self, mut parameters: Vec<Parameter>, is_config: impl Fn(&str) -> bool) {
        let before = parameters.len();
        parameters.truncate(MAX_PARAMETERS);
        parameters.retain_mut(|one| bounded_parameter(one) && is_config(&one.config));
        self.refused = self.refused.saturating_add(u64::try_from(before - parameters.len()).unwrap_or(0));
        self.windows.learn(&parameters);
    }

    /// Takes over a document as it is now; `None` where it is gone.
    fn follow(&mut self, name: &str, body: Option<&[u8]>, leads: bool) {
        if let Some(id) = name.strip_prefix(MATCH) {
            self.matches.follow(id, body.and_then(|body| KeptMatch::decode(body).ok()));
        } else if let Some(config) = name.strip_prefix(WINDOW)
            && let Some(workers) = self.windows.follow(config, body, leads)
        {
            self.workers.add(workers);
        }
    }

    /// Takes over all documents as they are now. What has changed here and is not written yet stays.
    fn follow_all(&mut self, all: &Documents, leads: bool) {
        let matches = self.matches.ids().map(|id| format!("{MATCH}{id}"));
        let names: Vec<String> =
            matches.chain(self.windows.configs().map(|config| format!("{WINDOW}{config}"))).collect();
        for name in names.iter().filter(|name| !all.contains_key(*name)) {
            self.follow(name, None, leads);
        }
        for (name, body) in all {
            self.follow(name, Some(body), leads);
        }
    }

    /// Counts matches and exchanges of a node.
    pub(super) fn count(
        &mut self,
        node: &str,
        (mut matches, totals): (Vec<Matched>, &[Totals]),
        is_config: impl Fn(&str) -> bool,
        now: u64,
    ) {
        let before = matches.len();
        matches.retain_mut(|one| bounded(one) && is_config(&one.config));
        self.refused = self.refused.saturating_add(u64::try_from(before - matches.len()).unwrap_or(0));
        self.windows.take(node, totals, &matches);
        self.matches.take(matches, now);
    }
}

/// Takes what gateways report, and keeps it in the store.
pub(in crate::control) async fn gather(sources: Sources, reported: &Reported) {
    // Before anything else: what gateways report until the store was read waits here.
    let mut reports = sources.reports(MATCHES);
    let mut others = sources.store.elsewhere();
    let mut entities = sources.entities.clone();
    loop {
        match read(&sources).await {
            Ok(known) => break reported.put(known),
            Err(error) => sources.trouble(&format!("matches of rules cannot be read from the store: {error}")),
        }
        if tokio::time::timeout(RETRY, entities.changed()).await.is_ok_and(|changed| changed.is_err()) {
            return;
        }
    }
    let mut write = tokio::time::interval(WRITE);
    write.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            reports = reports.next() => {
                let Some(GatewayReports { node, reports }) = reports else { break };
                let now_entities = entities.borrow().clone();
                let is_config = |id: &str| now_entities.slot(WafConfig::COLLECTION, id).is_some();
                for report in reports {
                    reported.with(|known| known.take(&node, &report, is_config, (sources.clock)()));
                }
            }
            _ = write.tick() => save(&sources, reported).await,
            Some(changed) = others.next() => follow(&sources, reported, &changed).await,
            changed = entities.changed() => {
                if changed.is_err() {
                    break;
                }
                let now_entities = entities.borrow_and_update().clone();
                let is_config = |id: &str| now_entities.slot(WafConfig::COLLECTION, id).is_some();
                reported.with(|known| {
                    known.matches.forget(is_config);
                    known.windows.forget(is_config);
                });
            }
        }
    }
    save(&sources, reported).await;
}

/// Takes over what another control plane has written. What is to be written here is newer, and stays.
async fn follow(sources: &Sources, reported: &Reported, changed: &Elsewhere) {
    let leads = *sources.store.leads().borrow();
    let Elsewhere::Keys(Keys { documents, .. }) = changed else {
        match all_documents(sources).await {
            Ok(all) => drop(reported.with(|known| known.follow_all(&all, leads))),
            Err(error) => sources.trouble(&format!("matches of rules cannot be read from the store: {error}")),
        }
        return;
    };
    for name in documents.iter().filter(|name| name.starts_with(MATCH) || name.starts_with(WINDOW)) {
        match sources.store.document(name).await {
            Ok(body) => drop(reported.with(|known| known.follow(name, body.as_deref(), leads))),
            Err(error) => sources.trouble(&format!("matches of rules cannot be read from the store: {error}")),
        }
    }
}

async fn read(sources: &Sources) -> Result<Known, String> {
    let (mut kept, mut windows) = (Vec::new(), Vec::new());
    for (name, body) in all_documents(sources).await? {
        if name.starts_with(WINDOW) {
            windows.push(body);
        } else {
            // What an older release has written in another form is not worth an error.
            kept.extend(KeptMatch::decode(body.as_slice()).ok());
        }
    }
    let mut known = Known { matches: MatchStore::load(kept.into_iter()), ..Known::default() };
    for body in windows {
        if let Some(workers) = known.windows.load(&body) {
            known.workers.add(workers);
        }
    }
    Ok(known)
}

/// The documents of all matches and windows, by name.
async fn all_documents(sources: &Sources) -> Result<Documents, String> {
    let mut all = Documents::new();
    for prefix in [MATCH, WINDOW] {
        for name in sources.store.document_names(prefix).await.map_err(|error| error.to_string())? {
            if let Some(body) = sources.store.document(&name).await.map_err(|error| error.to_string())? {
                all.insert(name, body);
            }
        }
    }
    Ok(all)
}

type Documents = BTreeMap<String, Vec<u8>>;

/// Writes what has changed. What cannot be written is tried again.
async fn save(sources: &Sources, reported: &Reported) {
    let changes = reported.with(|known| {
        let refused = std::mem::take(&mut known.refused);
        (known.matches.changes(), known.windows.changes(), refused)
    });
    let Some(((matches, gone), (windows, ended), refused)) = changes else { return };
    if refused > 0 {
        sources.trouble(&format!("gateways have sent {refused} matches that no filter of this release makes"));
    }
    let mut failed = None;
    for (id, one) in matches {
        if let Err(error) = sources.store.document_put(&format!("{MATCH}{id}"), one.encode_to_vec()).await {
            failed = Some(error);
            reported.with(|known| known.matches.put_back(id));
        }
    }
    for config in windows.iter().chain(&ended) {
        failed = save_window(sources, reported, config).await.err().or(failed);
    }
    for id in gone {
        if let Err(error) = sources.store.document_remove(&format!("{MATCH}{id}")).await {
            failed = Some(error);
            reported.with(|known| known.matches.put_back(id));
        }
    }
    if let Some(error) = failed {
        sources.trouble(&format!("matches of rules cannot be written to the store: {error}"));
    }
}

/// Writes the window of a config as it is by now, or removes it. What an operator has done at another control plane meanwhile is taken over
/// first: its notice may still wait.
async fn save_window(sources: &Sources, reported: &Reported, config: &str) -> Result<(), StoreError> {
    let name = format!("{WINDOW}{config}");
    let there = sources.store.document(&name).await?;
    let leads = *sources.store.leads().borrow();
    let (taken, is_gone) = reported
        .with(|known| {
            known.follow(&name, there.as_deref(), leads);
            let workers = known.workers.kept();
            (known.windows.take_changed(config, workers), known.windows.is_gone(config))
        })
        .unwrap_or_default();
    if let Some((bytes, times)) = taken {
        let written = sources.store.document_put(&name, bytes).await;
        reported.with(|known| match written.is_ok() {
            true => known.windows.written(config, times),
            false => known.windows.put_back(config),
        });
        return written;
    }
    if is_gone {
        sources.store.document_remove(&name).await?;
        reported.with(|known| known.windows.removed(config));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::messages::Totals;

    #[test]
    fn what_is_not_written_yet_survives_reading_everything_anew() {
        let matched = |path: &str| Matched {
            config: "shop".to_owned(),
            rule_id: 1,
            phase: 2,
            target: "ARGS:q".to_owned(),
            path: path.to_owned(),
            count: 1,
            ..Matched::default()
        };
        let documents = |known: &mut Known| {
            let mut all = Documents::new();
            for (id, one) in known.matches.changes().0 {
                all.insert(format!("{MATCH}{id}"), one.encode_to_vec());
            }
            for config in known.windows.changes().0 {
                let (bytes, times) = known.windows.take_changed(&config, known.workers.kept()).unwrap();
                known.windows.written(&config, times);
                all.insert(format!("{WINDOW}{config}"), bytes);
            }
            all
        };
        let mut known = Known::default();
        for config in ["shop", "stopped", "discarded", "elsewhere"] {
            known.windows.start(config, 5);
        }
        known.count("a", (vec![matched("/a"), matched("/b")], &[]), |_| true, 1);
        let mut all = documents(&mut known);
        // None of it is written when the store is read anew, but that a window and a match are gone.
        known.windows.start("begun", 7);
        assert!(known.windows.stop("stopped", 9) && known.windows.discard("discarded"));
        let totals = [Totals { config: "shop".to_owned(), requests: 10, ..Totals::default() }];
        known.count("a", (vec![matched("/b"), matched("/c")], &totals), |_| true, 1);
        all.remove(&format!("{WINDOW}elsewhere"));
        let of_a = known.matches.all().find(|one| one.matched.path == "/a").unwrap().id();
        all.remove(&format!("{MATCH}{of_a}"));
        known.follow_all(&all, true);
        assert!(known.windows.configs().eq(["begun", "shop", "stopped"]));
        assert!(!known.windows.get("stopped").unwrap().is_running() && known.windows.is_gone("discarded"));
        assert_eq!(known.windows.get("shop").unwrap().requests, 10);
        let mut paths: Vec<(&str, u64)> =
            known.matches.all().map(|one| (one.matched.path.as_str(), one.matched.count)).collect();
        paths.sort_unstable();
        assert_eq!(paths, [("/b", 2), ("/c", 1)]);
        assert_eq!(known.windows.changes().0, ["begun", "shop", "stopped"]);
    }
}
