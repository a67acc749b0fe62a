//! What nodes count together: it comes up with the other words of a worker, and what others have counted goes down to one worker of
//! each node.

use std::sync::Arc;
use std::time::Duration;

use ::counts::{Asking, Counts};
use snapshot::{
    AddToSet, AddedToSet, BudgetTaken, COUNT_KEY, CountGroup, CountKind, CountNow, CountedNow, CountsDown, Down,
    SetMembership, TakeBudget,
};
use store::counts::{AddOutcome, BudgetTake, Counted, SetAdd, TakeOutcome};
use store::{Store, StoreError};
use tokio::sync::{mpsc, watch};
use tonic::Status;

use crate::hub::LinkHub;
use crate::pace::{QUEUE, send_with_room};
use crate::{AnswerLimits, Answerer};

/// The document that holds the secret of the hashes that nodes have in common.
const KEY: &str = "count-key";
const WRONG_KEY: &str = "the secret of shared counts in the store is not 16 bytes long";
/// Between two messages to a node: what changes meanwhile goes in one.
const PACE: Duration = Duration::from_millis(100);
/// How often what has left its window is forgotten.
const SWEEP: Duration = Duration::from_secs(10);
/// For how long a row of the store outlasts its window, in milliseconds: clocks are put back.
const GRACE: u64 = 60_000;
/// Those that run together share a commit of the store.
const LIMITS: AnswerLimits = AnswerLimits { running: 1024, waiting: 4096 };

/// The counts of all nodes, over a store that has the secret of their hashes; it is made if there is none yet.
///
/// # Errors
///
/// What the store reports, also if its document is none, or the system gives no random bytes.
pub async fn start_counts(store: &dyn Store, clock: fn() -> u64) -> Result<Counts, StoreError> {
    let failed = |detail: &str| StoreError::Failed { path: KEY.into(), detail: detail.to_owned() };
    let random = |bytes: &mut [u8]| getrandom::fill(bytes).map_err(|error| failed(&error.to_string()));
    let mut key = [0; COUNT_KEY];
    if let Some(kept) = store.document(KEY).await? {
        key = kept.try_into().map_err(|_| failed(WRONG_KEY))?;
    } else {
        random(&mut key)?;
        let kept = store.document_put_first(KEY, key.to_vec()).await?;
        key = kept.try_into().map_err(|_| failed(WRONG_KEY))?;
    }
    let mut instance = [0; 8];
    random(&mut instance)?;
    Ok(Counts::new(key, u64::from_le_bytes(instance).max(1), clock))
}

/// Forgets periodically what has left its window, in memory, and in the store while this control plane leads.
pub async fn sweep_counts(counts: Arc<Counts>, store: Arc<dyn Store>, clock: fn() -> u64) {
    let mut ticks = tokio::time::interval(SWEEP);
    loop {
        ticks.tick().await;
        counts.sweep();
        if !*store.leads().borrow() {
            continue;
        }
        match store.counts_sweep(clock().saturating_sub(GRACE)).await {
            Ok(_) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "deleting expired budgets and sets failed"),
        }
    }
}

/// Tells a worker what was taken of it, and, over one link of each node, what others have counted; as long as the link lasts.
pub(crate) async fn tell(
    hub: &LinkHub,
    (node, link): (String, u64),
    mut taken: watch::Receiver<u64>,
    down: &mpsc::Sender<Result<Down, Status>>,
) -> Result<(), Status> {
    let Some(counts) = hub.counts() else { return std::future::pending().await };
    let mut told = 0;
    let Some(mut changes) = counts.linked(&node, link) else {
        tracing::warn!(node, "too many nodes count: this one does not learn what others have counted");
        return std::future::pending().await;
    };
    loop {
        // The senders live as long as the link.
        let alive = tokio::select! {
            changed = changes.changed() => changed.is_ok(),
            changed = taken.changed() => changed.is_ok(),
        };
        if !alive {
            return std::future::pending().await;
        }
        tokio::time::sleep(PACE).await;
        changes.mark_unchanged();
        loop {
            let number =
                if taken.has_changed().unwrap_or(false) { *taken.borrow_and_update() } else { *taken.borrow() };
            let (news, more) = match counts.news(&node, link) {
                Some(news) => (news, true),
                None => (CountsDown { now_millis: (hub.clock())(), ..CountsDown::default() }, false),
            };
            if more || number > told {
                send(CountsDown { taken: number, ..news }, down).await?;
                told = number;
            }
            if !more {
                break;
            }
            tokio::time::sleep(PACE).await;
        }
    }
}

/// Half of the queue is left to bans and answers, as with tables.
async fn send(counts: CountsDown, down: &mpsc::Sender<Result<Down, Status>>) -> Result<(), Status> {
    let message = Down { counts: Some(counts), ..Down::default() };
    send_with_room(message, QUEUE / 2, down).await
}

/// Answers how often something happened on all nodes.
pub(crate) struct CountsNow(pub(crate) Arc<Counts>);

/// Takes of budgets.
pub(crate) struct Budgets(pub(crate) Shared);

/// Adds to sets.
pub(crate) struct Sets(pub(crate) Shared);

/// What decides for all nodes: what they have counted on their own, and what was decided before.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) counts: Arc<Counts>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: fn() -> u64,
}

impl Shared {
    /// Where the window of a group is.
    fn counted(&self, node: &str, group: &CountGroup, key: u64) -> Counted {
        let slice = (self.clock)() / group.slice_millis;
        let slices = u64::from(group.slices);
        Counted {
            scope: group.scope(),
            key,
            slice,
            first: slice.saturating_sub(slices),
            until_millis: (slice + slices + 1) * group.slice_millis,
            node: node.to_owned(),
        }
    }
}

/// The group of a question, if it is of the kind that the question is about.
fn of_kind(group: Option<CountGroup>, kind: CountKind) -> Option<CountGroup> {
    group.filter(|group| group.is_valid() && group.kind() == kind)
}

impl Answerer for CountsNow {
    type Question = CountNow;

    const LIMITS: AnswerLimits = LIMITS;

    async fn answer(&self, node: &str, question: CountNow) -> Option<CountedNow> {
        let group = of_kind(question.group, CountKind::Window)?;
        let asking = Asking { node, incarnation: question.incarnation, group: &group };
        let others = self.0.count_now(asking, &question.own?)?;
        Some(CountedNow { others: Some(others) })
    }
}

impl Answerer for Budgets {
    type Question = TakeBudget;

    const LIMITS: AnswerLimits = LIMITS;

    async fn answer(&self, node: &str, question: TakeBudget) -> Option<BudgetTaken> {
        let Shared { counts, store, .. } = &self.0;
        let group = of_kind(question.group, CountKind::Budget)?;
        let (own, amount) = (question.own?, question.amount);
        let asking = Asking { node, incarnation: question.incarnation, group: &group };
        let unasked = counts.taken_unasked(asking, &own)?;
        let of = self.0.counted(node, &group, own.key);
        let taken = match question.limit.checked_sub(unasked) {
            Some(limit) => store.budget_take(BudgetTake { of, amount, limit }).await,
            // Nothing is left; the store is asked all the same for what others have taken by asking.
            None => store.budget_take(BudgetTake { of, amount: u32::MAX, limit: 0 }).await,
        };
        let taken = taken.inspect_err(|error| tracing::error!(%error, "taking from a budget failed")).ok()?;
        counts.note_taken(&group, own.key, &taken.sums);
        if taken.outcome == TakeOutcome::Full {
            metrics::counter!("palisade_counts_refused_total", "reason" => "store").increment(1);
            return None;
        }
        let others = counts.count_now(asking, &own);
        Some(BudgetTaken { taken: taken.outcome == TakeOutcome::Taken, others })
    }
}

impl Answerer for Sets {
    type Question = AddToSet;

    const LIMITS: AnswerLimits = LIMITS;

    async fn answer(&self, node: &str, question: AddToSet) -> Option<AddedToSet> {
        let Shared { counts, store, .. } = &self.0;
        let group = of_kind(question.group, CountKind::Set)?;
        let (own, member) = (question.own?, question.member);
        let asking = Asking { node, incarnation: question.incarnation, group: &group };
        let asked_alone = question.limit > 0;
        let (cap, known) = match asked_alone {
            true => (question.limit.min(group.cap), Vec::new()),
            false => (group.cap, counts.members(asking, &own)?),
        };
        let of = self.0.counted(node, &group, own.key);
        let added = store.set_add(SetAdd { of, member, cap, known }).await;
        let added = added.inspect_err(|error| tracing::error!(%error, "adding to a set failed")).ok()?;
        if !asked_alone {
            counts.note_members(&group, own.key, &added.members);
        }
        let membership = match added.outcome {
            AddOutcome::Added => SetMembership::Added,
            AddOutcome::Known => SetMembership::Known,
            AddOutcome::Over => SetMembership::Full,
            AddOutcome::Full => {
                metrics::counter!("palisade_counts_refused_total", "reason" => "store").increment(1);
                return None;
            }
        };
        Some(AddedToSet { membership: membership.into(), size: added.size })
    }
}
