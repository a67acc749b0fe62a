//! Cooldowns and waiting messages in the store, so that a restart neither repeats nor loses an alert.
//!
//! What a look at events leads to is committed before anything of it is sent: a message that was committed is sent at least
//! once. Where the process ends between the delivery and [`Keeper::settle`], it is sent again with the same id. Where the
//! store fails, messages are sent all the same.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::message::Message;
use store::alerts::{AlertNotes, Burst, Claim, Forgotten, Told, WaitingAlert};
use store::{Store, StoreError};

/// How long the store may take before messages are sent without it.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest cooldown that a rule can have, in milliseconds: seven days.
const LONGEST_COOLDOWN: u64 = 604_800_000;
/// A message that has waited longer is not sent by a later process: a day, in milliseconds.
const MAX_AGE: u64 = 86_400_000;
/// A message that its control plane has not kept for so long is another one's to deliver, in milliseconds. That is much longer than
/// [`KEEP_EVERY`] and than clocks may differ.
const ABANDONED: u64 = 120_000;
/// The most completed messages that the store is still to forget.
const MAX_UNSETTLED: usize = 1000;
/// How often a control plane keeps the messages that it is about to deliver, where others have the same store.
pub(super) const KEEP_EVERY: Duration = Duration::from_secs(30);

/// What alert rules keep in the store. Cheap to clone.
#[derive(Clone)]
pub(super) struct Keeper {
    store: Arc<dyn Store>,
    /// Messages that were completed, and that the store has not forgotten yet.
    unsettled: Arc<Mutex<Vec<String>>>,
}

impl Keeper {
    pub(super) fn new(store: Arc<dyn Store>) -> Keeper {
        Keeper { store, unsettled: Arc::default() }
    }

    /// What was told and may still be cooling down, oldest first.
    pub(super) async fn told(&self, now: u64) -> Vec<Told> {
        let told = async {
            self.store.alerts_sweep(now.saturating_sub(LONGEST_COOLDOWN)).await?;
            self.store.alerts_told().await
        };
        let told: Result<Vec<Told>, StoreError> = told.await;
        told.unwrap_or_else(|error| {
            tracing::error!(%error, "reading the cooldowns of alert rules failed: messages may be repeated");
            Vec::new()
        })
    }

    /// The messages that no control plane is about to deliver any more, oldest first: of an embedded store all, of a shared one those that
    /// theirs has not kept for [`ABANDONED`]. They are kept by this one now.
    pub(super) async fn waiting(&self, now: u64) -> Vec<Message> {
        let waiting = self.store.alerts_waiting().await.unwrap_or_else(|error| {
            tracing::error!(%error, "reading the queued alerts failed");
            Vec::new()
        });
        let (mut messages, mut dropped) = (Vec::new(), Vec::new());
        for WaitingAlert { id, at, json } in waiting {
            match serde_json::from_str::<Message>(&json) {
                Ok(message) if self.is_shared() && message.kept_at.saturating_add(ABANDONED) > now => {}
                Ok(message) if now.saturating_sub(at) <= MAX_AGE => messages.push(Message { kept_at: now, ..message }),
                Ok(_) => dropped.push(id),
                Err(error) => {
                    tracing::warn!(id, %error, "an alert of another release is unreadable and ignored");
                    dropped.push(id);
                }
            }
        }
        if !dropped.is_empty() {
            let count = u64::try_from(dropped.len()).unwrap_or(u64::MAX);
            metrics::counter!("palisade_alerts_dropped_total", "reason" => "old").increment(count);
            tracing::warn!(count, "alerts that were queued for too long are dropped");
            self.forget(dropped).await;
        }
        self.keep(messages.iter()).await;
        messages
    }

    /// Says that this control plane is about to deliver these, as they are now.
    pub(super) async fn keep(&self, messages: impl Iterator<Item = &Message>) {
        let waiting: Vec<WaitingAlert> = messages.filter_map(row).collect();
        if !waiting.is_empty() && self.is_shared() {
            match self.store.alerts_keep(waiting).await {
                Ok(()) | Err(StoreError::Closed) => {}
                Err(error) => {
                    tracing::warn!(%error, "queued alerts cannot be kept; another control plane may send them, too")
                }
            }
        }
    }

    /// Commits what a look at events has led to. For each message: `None` where it is to be sent, else when another control plane has
    /// told of the same.
    pub(super) async fn note<'a>(
        &self,
        forgotten: Vec<Forgotten>,
        messages: impl Iterator<Item = &'a Message>,
    ) -> Vec<Option<u64>> {
        let claim = |message: &Message| {
            let told = Told { rule: message.rule_id.clone(), subject: message.cools.clone(), at: message.at };
            let empty = || WaitingAlert { id: message.id.clone(), at: message.at, json: String::new() };
            Claim { told, cooldown: message.cooldown, message: row(message).unwrap_or_else(empty) }
        };
        let noted = AlertNotes { forgotten, claims: messages.map(claim).collect() };
        if noted == AlertNotes::default() {
            return Vec::new();
        }
        let messages = noted.claims.len();
        match tokio::time::timeout(PATIENCE, self.store.alerts_note(noted)).await {
            Ok(Ok(outcomes)) => return outcomes,
            Ok(Err(error)) => {
                tracing::warn!(%error, "storing alerts failed; they are sent, and a restart may lose or repeat them");
            }
            Err(_) => tracing::warn!("the store is slow; alerts are sent before they are stored"),
        }
        vec![None; messages]
    }

    /// Adds events of a burst; answers those of all control planes. `None` where the store did not take them in time.
    pub(super) async fn burst(&self, burst: Burst) -> Option<Vec<(u64, u64)>> {
        match tokio::time::timeout(PATIENCE, self.store.alerts_burst(burst)).await {
            Ok(Ok(parts)) => Some(parts),
            Ok(Err(StoreError::Closed)) | Err(_) => None,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a burst is counted here alone for now");
                None
            }
        }
    }

    /// Whether other control planes have the same store.
    pub(super) fn is_shared(&self) -> bool {
        self.store.is_dedicated()
    }

    /// Whether this control plane takes over messages that others have left.
    pub(super) fn leads(&self) -> bool {
        *self.store.leads().borrow()
    }

    /// Forgets a message that was delivered or given up.
    pub(super) async fn settle(&self, id: String) {
        self.forget(vec![id]).await;
    }

    /// Forgets what could not be forgotten before: otherwise another control plane would send it again.
    pub(super) async fn settle_again(&self) {
        let unsettled = std::mem::take(&mut *self.unsettled.lock().unwrap_or_else(PoisonError::into_inner));
        if !unsettled.is_empty() {
            self.forget(unsettled).await;
        }
    }

    async fn forget(&self, ids: Vec<String>) {
        match self.store.alerts_settle(ids.clone()).await {
            Ok(()) | Err(StoreError::Closed) => {}
            Err(error) => {
                tracing::warn!(%error, "a completed alert stays in the store and may be sent again");
                let mut unsettled = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MAX_UNSETTLED.saturating_sub(unsettled.len());
                unsettled.extend(ids.into_iter().take(room));
            }
        }
    }
}

/// A message as it is kept.
fn row(message: &Message) -> Option<WaitingAlert> {
    let json = serde_json::to_string(message).ok()?;
    Some(WaitingAlert { id: message.id.clone(), at: message.at, json })
}
