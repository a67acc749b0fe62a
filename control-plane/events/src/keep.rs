//! Incidents in the store, so that a restart does not lose them and control planes that share it have the same.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::EventHub;
use super::incidents::{Incident, Unsaved};
use store::fabric::{IncidentRow, Note};
use store::{Elsewhere, Keys, Others, Store, StoreError};

/// How soon what has changed of incidents is kept.
const EVERY: Duration = Duration::from_secs(1);
/// How many incidents are written or read at a time: with a change of the store for all of them, thousands would lie in memory three
/// times, and other control planes would not get their turn.
const BATCH: usize = 128;
/// How many are read at a time where all of them are read.
const PAGE: u32 = 1000;

/// Takes over the incidents that an earlier process has kept, and what operators made of them.
///
/// # Errors
///
/// What the store reports.
pub async fn restore_incidents(store: &dyn Store, events: &EventHub) -> Result<(), StoreError> {
    let mut pages = Pages::default();
    while let Some(incidents) = pages.next(store).await? {
        events.restore_incidents(incidents);
    }
    events.restore_workflows(store.workflows().await?);
    Ok(())
}

/// Keeps what changes of incidents, every second, and takes over what other control planes have changed (`others`, from before
/// [`restore_incidents`]), for as long as the store is open. For a task of its own.
pub async fn keep_incidents(store: Arc<dyn Store>, events: EventHub, mut others: Others) {
    let mut ticks = tokio::time::interval(EVERY);
    // Both in one task: what was read before something was kept must not come after it.
    let mut changed: Option<Elsewhere> = None;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            more = others.next() => match (more, changed.take()) {
                (Some(more), Some(before)) => changed = Some(before.and(&more)),
                (Some(more), None) => changed = Some(more),
                (None, _) => return,
            },
        }
        if let Some(now) = &changed {
            match follow(store.as_ref(), &events, now).await {
                Ok(()) => changed = None,
                Err(StoreError::Closed) => return,
                Err(error) => tracing::debug!(%error, "incidents of other control planes cannot be read yet"),
            }
            // What is to be kept waits for its second: others may change something many times in one.
            if changed.is_none() {
                continue;
            }
        }
        match save_incidents(store.as_ref(), &events).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "storing incidents failed; retrying"),
        }
    }
}

/// Keeps what has changed of incidents so far.
///
/// # Errors
///
/// What the store reports; what it did not take is offered again. Where its answer was lost, events may count twice.
pub async fn save_incidents(store: &dyn Store, events: &EventHub) -> Result<(), StoreError> {
    let Unsaved { added, removed, cleared } = events.unsaved();
    if !cleared.is_empty()
        && let Err(error) = store.workflows_clear(cleared.clone(), Note::none()).await
    {
        events.put_back(Unsaved { added, removed, cleared });
        return Err(error);
    }
    let row = |incident: &Incident| {
        Some(IncidentRow { key: incident.key.to_string(), json: serde_json::to_string(incident).ok()? })
    };
    let (mut added, mut removed) = (added.into_iter(), removed.into_iter());
    loop {
        let batch: Vec<Incident> = added.by_ref().take(BATCH).collect();
        let silent: Vec<(String, u64)> = removed.by_ref().take(BATCH).collect();
        if batch.is_empty() && silent.is_empty() {
            return Ok(());
        }
        let rows = batch.iter().filter_map(row).collect();
        match store.incidents_merge(rows, events.merge_incidents(), silent.clone()).await {
            Ok(merged) => events.kept(read(merged)),
            Err(error) => {
                let (added, removed) = (batch.into_iter().chain(added), silent.into_iter().chain(removed));
                let unsaved = Unsaved { added: added.collect(), removed: removed.collect(), cleared: Vec::new() };
                events.put_back(unsaved);
                return Err(error);
            }
        }
    }
}

/// Every incident in the store, in parts: as one list of rows, all of them would be in memory twice.
#[derive(Default)]
struct Pages {
    /// The last key that was read.
    after: String,
    is_last: bool,
}

impl Pages {
    /// The next part; `None` after the last one.
    async fn next(&mut self, store: &dyn Store) -> Result<Option<Vec<Incident>>, StoreError> {
        if self.is_last {
            return Ok(None);
        }
        let rows = store.incidents(&self.after, PAGE).await?;
        self.is_last = rows.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
        if let Some(last) = rows.last() {
            last.key.clone_into(&mut self.after);
        }
        Ok(Some(read(rows)))
    }
}

async fn follow(store: &dyn Store, events: &EventHub, changed: &Elsewhere) -> Result<(), StoreError> {
    match changed {
        Elsewhere::Anything => {
            let mut gone: HashSet<String> = events.incident_keys().into_iter().collect();
            let mut pages = Pages::default();
            while let Some(incidents) = pages.next(store).await? {
                for incident in &incidents {
                    gone.remove(&*incident.key);
                }
                events.kept(incidents);
            }
            events.incidents_gone(&gone.into_iter().collect::<Vec<_>>());
            follow_workflows(store, events).await?;
        }
        Elsewhere::Keys(Keys { incidents, workflows, .. }) => {
            let mut keys = incidents.iter().cloned();
            loop {
                let batch: Vec<String> = keys.by_ref().take(BATCH).collect();
                if batch.is_empty() {
                    break;
                }
                let incidents = read(store.incidents_of(batch.clone()).await?);
                let found: HashSet<&str> = incidents.iter().map(|incident| &*incident.key).collect();
                let gone: Vec<String> = batch.into_iter().filter(|key| !found.contains(key.as_str())).collect();
                events.incidents_gone(&gone);
                events.kept(incidents);
            }
            if *workflows {
                follow_workflows(store, events).await?;
            }
        }
    }
    Ok(())
}

async fn follow_workflows(store: &dyn Store, events: &EventHub) -> Result<(), StoreError> {
    loop {
        let changes = events.workflow_changes();
        if events.follow_workflows(store.workflows().await?, changes) {
            return Ok(());
        }
    }
}

fn read(rows: Vec<IncidentRow>) -> Vec<Incident> {
    let read = rows.into_iter().filter_map(|row| match serde_json::from_str(&row.json) {
        Ok(incident) => Some(incident),
        Err(error) => {
            tracing::warn!(key = row.key, %error, "an incident of another release is unreadable and ignored");
            None
        }
    });
    read.collect()
}
