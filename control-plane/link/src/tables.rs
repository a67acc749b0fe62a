//! Keeps the tables of one worker up to date.

mod word;

use std::collections::BTreeMap;
use std::time::Duration;

use ::tables::State;
use material::{Material, Next};
use snapshot::{Down, KeptTables, TableChange, TableKind};

use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::Status;

use word::{Word, Words};

use super::pace::{BREATH, QUEUE, send_with_room};

/// A worker that refuses a change gets the base, but no sooner than this after the one before.
const BASE_PAUSE: Duration = Duration::from_secs(10);
/// A table that was replaced as a whole, such as one of a list that was fetched, comes no sooner than this after the base before.
const REPLACED_PAUSE: Duration = Duration::from_secs(1);

pub(crate) use word::check;

/// The tables of a worker.
pub(crate) struct WorkerTables {
    words: Words,
}

/// A table as the worker will have it once it has taken what was sent.
struct Sent {
    kind: TableKind,
    state: Option<State>,
    base_at: Option<Instant>,
}

/// Ends with the channel `down`, or once [`WorkerTables`] is gone; otherwise with the reason to cut the worker off.
pub(crate) fn keep(
    material: Material,
    down: mpsc::Sender<Result<Down, Status>>,
) -> (WorkerTables, impl Future<Output = Result<(), Status>>) {
    let (words, mut said) = word::words();
    let kept = async move {
        let mut changes = material.changes();
        let mut tables = BTreeMap::new();
        loop {
            changes.mark_unchanged();
            let due = send_all(&material, &mut tables, &down).await?;
            tokio::select! {
                word = said.next() => match word {
                    Some(word) => take(&mut tables, word),
                    None => return Ok(()),
                },
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
                () = sleep_until(due) => {},
                () = down.closed() => return Ok(()),
            }
        }
    };
    (WorkerTables { words }, kept)
}

impl WorkerTables {
    /// The worker says what it has. Its words may come faster than changes go down: of those that wait, the last counts.
    pub(crate) fn said(&self, kept: KeptTables) {
        self.words.say(kept);
    }
}

/// A worker's word is old where changes are on their way to it: only what is new in it counts.
fn take(tables: &mut BTreeMap<String, Sent>, Word { kept, anew }: Word) {
    tables.retain(|name, _| !anew.contains(name) && kept.tables.iter().any(|kept| kept.name == *name));
    for kept in kept.tables {
        let Ok(kind) = TableKind::try_from(kept.kind) else { continue };
        match tables.get_mut(&kept.name).filter(|known| known.kind == kind) {
            Some(_) if kept.refused.is_empty() => {}
            Some(known) => {
                metrics::counter!("palisade_table_refusals_total").increment(1);
                tracing::warn!(table = kept.name, reason = kept.refused, "a worker did not take a change of a table");
                known.state = None;
            }
            None => {
                let state = <[u8; 32]>::try_from(kept.state.as_slice()).ok().map(State);
                tables.insert(kept.name, Sent { kind, state, base_at: None });
            }
        }
    }
}

/// Sends what is missing. When a base that has to wait is due.
async fn send_all(
    material: &Material,
    tables: &mut BTreeMap<String, Sent>,
    down: &mpsc::Sender<Result<Down, Status>>,
) -> Result<Option<Instant>, Status> {
    let mut due: Option<Instant> = None;
    for (name, table) in tables {
        while let Some(next) = material.next(name, table.kind, table.state) {
            match next {
                Next::Change(change, state) => {
                    send(change, down).await?;
                    table.state = Some(state);
                }
                Next::Base(published) => {
                    // A worker that has refused something has no state.
                    let pause = if table.state.is_none() { BASE_PAUSE } else { REPLACED_PAUSE };
                    let at = table.base_at.map(|at| at + pause);
                    if let Some(at) = at.filter(|at| *at > Instant::now()) {
                        due = due.into_iter().chain([at]).min();
                        break;
                    }
                    for chunk in published.chunks(name) {
                        send(chunk, down).await?;
                        // The worker serves requests on the thread that takes it.
                        tokio::time::sleep(BREATH).await;
                    }
                    table.base_at = Some(Instant::now());
                    table.state = Some(published.base_state());
                }
            }
        }
    }
    Ok(due)
}

/// Half of the queue is left to bans and answers, which cut a worker off that has no room for them.
async fn send(change: TableChange, down: &mpsc::Sender<Result<Down, Status>>) -> Result<(), Status> {
    let message = Down { tables: vec![change], ..Down::default() };
    send_with_room(message, QUEUE / 2, down).await
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
