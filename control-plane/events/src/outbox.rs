//! The outbox: events that were kept in the store with the change that they are about, sent from here. The commands beside
//! the running control plane leave theirs there, and so does the decision fabric.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::EventHub;
use super::exporters::Mark;
use store::{Kept, Setbacks, Store, StoreError};

/// How soon an event is sent that another process has left in the store.
const EVERY: Duration = Duration::from_secs(1);

/// Sends what the store keeps to be sent. Cheap to clone.
///
/// An event leaves the store once every exporter has written or lost it, or has it on disk. A process that ends in between sends it again at
/// the next start, with the same `@id`, and so does one whose store had a setback ([`Store::setbacks`]).
#[derive(Clone)]
pub struct Outbox {
    store: Arc<dyn Store>,
    events: EventHub,
    sent: Arc<Mutex<Sent>>,
}

struct Sent {
    /// The number of the last event that exporters were given.
    last: u64,
    /// The events that exporters have not finished yet: the last one of each batch.
    unfinished: VecDeque<(Kept, Mark)>,
    /// After a setback of the store's server other events have the numbers that were sent.
    setbacks: Setbacks,
}

impl Outbox {
    /// The outbox of `store`, for the exporters of `events`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, events: EventHub) -> Outbox {
        let sent = Sent { last: 0, unfinished: VecDeque::new(), setbacks: store.setbacks() };
        Outbox { store, events, sent: Arc::new(Mutex::new(sent)) }
    }

    /// Sends what comes, for as long as the store is open. For a task of its own.
    pub async fn run(self) {
        let mut ticks = tokio::time::interval(EVERY);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.events.outbox_notified() => {}
            }
            match self.look().await {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(%error, "sending events from the store failed; retrying"),
            }
        }
    }

    /// Gives exporters what the store has for them, where this control plane leads, and removes what they have finished.
    ///
    /// # Errors
    /// What the store reports; nothing is given twice because of it.
    pub async fn look(&self) -> Result<(), StoreError> {
        let mut sent = self.sent.lock().await;
        while *self.store.leads().borrow() {
            let kept = self.store.kept_events(sent.last).await?;
            // What was read may lack events whose numbers were sent before the setback.
            if sent.begins_anew() {
                continue;
            }
            let Some(newest) = kept.last().cloned() else { break };
            for event in &kept {
                self.events.tell(&event.event);
            }
            sent.last = newest.number;
            sent.unfinished.push_back((newest, self.events.mark()));
        }
        let mut finished = None;
        while let Some((_, mark)) = sent.unfinished.front()
            && self.events.has_passed(mark)
        {
            finished = sent.unfinished.pop_front();
        }
        match finished {
            // Where this fails, the next batch that is finished takes these with it.
            Some((last, _)) => self.store.kept_events_told(last).await,
            None => Ok(()),
        }
    }
}

impl Sent {
    /// Forgets what was sent if the server has had a setback since: to send an event again, with the same `@id`, is better than never.
    fn begins_anew(&mut self) -> bool {
        let begins = self.setbacks.came();
        if begins {
            self.last = 0;
            self.unfinished.clear();
        }
        begins
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Audit, AuditAction, Exporter};
    use accounts::{AdminKey, Scope};
    use base::clock;
    use store::{AccessChange, SqliteOptions, SqliteStore};

    #[tokio::test]
    async fn what_was_kept_is_told_once_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
        let file = folder.path().join("events");
        let events = EventHub::new(vec![Exporter::File(file.clone())], clock::now_millis);
        let key = AdminKey::issue("ci", &[Scope::Read], 1, None).unwrap().key;
        let id = key.id.clone();
        let note = |action| Audit::new(action).of(format!("admin-keys/{id}")).note(7);
        assert!(store.access_change(AccessChange::KeyPut(key), note(AuditAction::KeyCreate)).await.unwrap());
        let revoke = |id: &str| AccessChange::KeyRevoke { id: id.to_owned(), at_millis: 9 };
        assert!(store.access_change(revoke(&id), note(AuditAction::KeyRevoke)).await.unwrap());
        assert!(!store.access_change(revoke("none"), note(AuditAction::KeyRevoke)).await.unwrap());
        assert_eq!(store.kept_events(0).await.unwrap().len(), 2, "what changed nothing is not kept");

        let outbox = Outbox::new(Arc::clone(&store), events.clone());
        outbox.look().await.unwrap();
        events.flush().await;
        outbox.look().await.unwrap();
        assert_eq!(store.kept_events(0).await.unwrap(), Vec::new());
        let told = std::fs::read_to_string(file).unwrap();
        let actions: Vec<&str> =
            told.lines().map(|line| line.split("\"action\":\"").nth(1).unwrap().split('"').next().unwrap()).collect();
        assert_eq!(actions, ["key-create", "key-revoke"], "{told}");
        assert!(told.contains("1970-01-01T00:00:00.007Z"), "the time is that of the change: {told}");
    }

    /// A disk that is away, as far as the exporter can tell.
    #[tokio::test]
    async fn what_an_exporter_has_not_written_stays_and_holds_up_nothing_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
        let (file, away) = (folder.path().join("events"), folder.path().join("away/events"));
        let exporters = vec![Exporter::File(file.clone()), Exporter::File(away.clone())];
        let events = EventHub::new(exporters, clock::now_millis);
        let outbox = Outbox::new(Arc::clone(&store), events.clone());
        let key = AdminKey::issue("ci", &[Scope::Read], 1, None).unwrap().key;
        let mut noted = 0;
        let mut change = async || {
            noted += 1;
            let event = Audit::new(AuditAction::KeyCreate).of(format!("admin-keys/{noted}")).note(noted);
            store.access_change(AccessChange::KeyPut(key.clone()), event).await.unwrap();
        };
        for _ in 0..1200 {
            change().await;
        }
        outbox.look().await.unwrap();
        change().await;
        outbox.look().await.unwrap();
        let of_ours = |text: String| text.lines().filter(|line| line.contains("key-create")).count();
        while of_ours(std::fs::read_to_string(&file).unwrap_or_default()) < 1201 {
            tokio::task::yield_now().await;
        }
        outbox.look().await.unwrap();
        assert_eq!(store.kept_events(0).await.unwrap().len(), 1000, "the first thousand of all that were kept");
        std::fs::create_dir(folder.path().join("away")).unwrap();
        events.flush().await;
        outbox.look().await.unwrap();
        assert_eq!(store.kept_events(0).await.unwrap(), Vec::new());
        assert_eq!(of_ours(std::fs::read_to_string(&away).unwrap()), 1201, "each once");
    }
}
