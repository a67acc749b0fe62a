//! Cooldowns and waiting messages in the store, so that a restart neither repeats nor loses an alert.
//!
//! What a look at events leads to is committed before anything of it is sent: a message that was committed is sent at least
//! once. Where the process ends between the delivery and [`Keeper::settle`], it is sent again with the same id. Where the
//! store fails, messages are sent all the same.

use std::sync::Arc;
use std::time::Duration;

use super::cooldown::Unkept;
use super::message::Message;
use store::alerts::{AlertNotes, Told, WaitingAlert};
use store::{Store, StoreError};

/// How long the store may take before messages are sent without it.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest cooldown that a rule can have, in milliseconds: seven days.
const LONGEST_COOLDOWN: u64 = 604_800_000;
/// A message that has waited longer is not sent by a later process: a day, in milliseconds.
const MAX_AGE: u64 = 86_400_000;

/// What alert rules keep in the store. Cheap to clone.
#[derive(Clone)]
pub(super) struct Keeper {
    store: Arc<dyn Store>,
}

impl Keeper {
    pub(super) fn new(store: Arc<dyn Store>) -> Keeper {
        Keeper { store }
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

    /// The messages that an earlier process has not delivered, oldest first.
    pub(super) async fn waiting(&self, now: u64) -> Vec<Message> {
        let waiting = self.store.alerts_waiting().await.unwrap_or_else(|error| {
            tracing::error!(%error, "reading the queued alerts failed");
            Vec::new()
        });
        let (mut messages, mut dropped) = (Vec::new(), Vec::new());
        for WaitingAlert { id, at, json } in waiting {
            match serde_json::from_str::<Message>(&json) {
                Ok(message) if now.saturating_sub(at) <= MAX_AGE => messages.push(message),
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
        messages
    }

    /// Commits what a look at events has led to.
    pub(super) async fn note(&self, unkept: Unkept, messages: impl Iterator<Item = &Message>) {
        let Unkept { told, forgotten } = unkept;
        let waiting = messages.filter_map(|message| {
            let json = serde_json::to_string(message).ok()?;
            Some(WaitingAlert { id: message.id.clone(), at: message.at, json })
        });
        let noted = AlertNotes { told, forgotten, waiting: waiting.collect() };
        if noted == AlertNotes::default() {
            return;
        }
        match tokio::time::timeout(PATIENCE, self.store.alerts_note(noted)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "storing alerts failed; they are sent, and a restart may lose or repeat them");
            }
            Err(_) => tracing::warn!("the store is slow; alerts are sent before they are stored"),
        }
    }

    /// Forgets a message that was delivered or given up.
    pub(super) async fn settle(&self, id: String) {
        self.forget(vec![id]).await;
    }

    async fn forget(&self, ids: Vec<String>) {
        match self.store.alerts_settle(ids).await {
            Ok(()) | Err(StoreError::Closed) => {}
            Err(error) => tracing::warn!(%error, "a completed alert stays in the store and may be sent again"),
        }
    }
}
