//! What the plugin has at work in a control plane: the feeds as they are now, for the console, and orders to the gatherer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::bouncers::{NamedRows, Row};
use super::databases::{DatabaseKey, DatabaseState};
use super::dnsbl::{Blocklists, Found};
use super::metrics::BouncerLabels;
use super::push::{Pushed, ShownPush};
use super::state::FeedState;

/// Orders that wait for the gatherer, at most: each belongs to a call of the console, of which few run at a time.
const MAX_ORDERS: usize = 64;
/// How long an order is waited for. The console gives up after 30 seconds.
const PATIENCE: Duration = Duration::from_secs(25);
/// How long a lookup waits for DNS blocklists.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(10);

/// What the plugin has at work: shared by its gatherer and the operations of the console.
pub(super) struct Reputation {
    feeds: Mutex<BTreeMap<String, Arc<FeedState>>>,
    bouncers: Mutex<BTreeMap<String, Arc<ShownBouncer>>>,
    /// The alerts to services, by bouncer.
    pushes: Mutex<BTreeMap<String, Arc<Pushed>>>,
    labels: Mutex<BouncerLabels>,
    pub(super) blocklists: Blocklists,
    databases: Mutex<BTreeMap<DatabaseKey, Arc<DatabaseState>>>,
    /// Orders for feeds.
    orders: Orders,
    /// Orders for bouncers.
    syncs: Orders,
    /// Orders for databases.
    downloads: Orders,
}

/// A way to a gatherer.
struct Orders {
    sender: mpsc::Sender<Order>,
    /// Taken by the gatherer.
    inbox: Mutex<Option<mpsc::Receiver<Order>>>,
}

/// A bouncer as the console shows it.
#[derive(Debug, Default)]
pub(super) struct ShownBouncer {
    pub(super) initialized: bool,
    pub(super) last_error: Option<String>,
    pub(super) decisions: usize,
    /// Decisions on single addresses.
    pub(super) exact: usize,
    /// Decisions on ranges.
    pub(super) ranges: usize,
    /// Decisions on countries and networks.
    pub(super) named: usize,
    /// Decisions that cannot be used.
    pub(super) rejected: usize,
    /// When the service was last heard, in milliseconds since 1970.
    pub(super) last_sync: Option<u64>,
    /// The ranges that gateways have.
    pub(super) rows: Arc<Vec<Row>>,
    /// The countries and networks that gateways have.
    pub(super) named_rows: Arc<NamedRows>,
}

/// What an operator wants.
#[derive(Debug)]
pub(super) struct Order {
    /// What is to be done.
    pub(super) what: Want,
    /// Tells when it is done, or why it cannot be.
    pub(super) done: oneshot::Sender<Result<(), Refused>>,
}

/// What is to be done with a feed, a bouncer or a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Fetch it now. `force`: take its list although it was rolled back, or has little to do with the one before.
    Refresh { feed: String, force: bool },
    /// Restore the previous list.
    RollBack { feed: String },
    /// Ask the service of a bouncer for all decisions now.
    Sync { bouncer: String },
    /// Fetch a database now. `force`: take it although it has far less than the one before.
    RefreshDatabase { key: DatabaseKey, force: bool },
}

/// Why an order is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The gatherer has no such feed, or has not seen it yet.
    Unknown,
    /// For people.
    Because(String),
}

/// How an order went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ordered {
    /// It is done.
    Done,
    /// It was begun and takes longer than calls wait.
    Begun,
    /// It cannot be done, for people.
    Refused(String),
}

// === impl Reputation ===

impl Default for Reputation {
    fn default() -> Reputation {
        let (orders, syncs, downloads) = (Orders::default(), Orders::default(), Orders::default());
        Reputation {
            feeds: Mutex::default(),
            bouncers: Mutex::default(),
            pushes: Mutex::default(),
            labels: Mutex::default(),
            blocklists: Blocklists::default(),
            databases: Mutex::default(),
            orders,
            syncs,
            downloads,
        }
    }
}

impl Default for Orders {
    fn default() -> Orders {
        let (sender, inbox) = mpsc::channel(MAX_ORDERS);
        Orders { sender, inbox: Mutex::new(Some(inbox)) }
    }
}

impl Orders {
    fn inbox(&self) -> MutexGuard<'_, Option<mpsc::Receiver<Order>>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reputation {
    /// The orders for feeds, for the one gatherer.
    pub(super) fn inbox(&self) -> Option<mpsc::Receiver<Order>> {
        self.orders.inbox().take()
    }

    /// The orders for bouncers, for the one gatherer.
    pub(super) fn sync_inbox(&self) -> Option<mpsc::Receiver<Order>> {
        self.syncs.inbox().take()
    }

    /// The orders for databases, for the one gatherer.
    pub(super) fn database_inbox(&self) -> Option<mpsc::Receiver<Order>> {
        self.downloads.inbox().take()
    }

    /// Shows what is known of a database; `None` for one that is gone.
    pub(super) fn show_database(&self, key: &DatabaseKey, state: Option<Arc<DatabaseState>>) {
        let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            Some(state) => databases.insert(key.clone(), state),
            None => databases.remove(key),
        };
    }

    /// What is known of a database.
    pub(super) fn database(&self, key: &DatabaseKey) -> Arc<DatabaseState> {
        self.databases.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned().unwrap_or_default()
    }

    /// Shows what is known of a bouncer; `None` for one that is gone.
    pub(super) fn show_bouncer(&self, id: &str, shown: Option<Arc<ShownBouncer>>) {
        let mut bouncers = self.bouncers.lock().unwrap_or_else(PoisonError::into_inner);
        match shown {
            Some(shown) => bouncers.insert(id.to_owned(), shown),
            None => bouncers.remove(id),
        };
    }

    /// What is known of a bouncer.
    pub(super) fn bouncer(&self, id: &str) -> Arc<ShownBouncer> {
        self.bouncers.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned().unwrap_or_default()
    }

    /// Shows the alerts to the service of a bouncer; `None` where none are sent.
    pub(super) fn show_push(&self, id: &str, pushed: Option<Arc<Pushed>>) {
        let mut pushes = self.pushes.lock().unwrap_or_else(PoisonError::into_inner);
        match pushed {
            Some(pushed) => pushes.insert(id.to_owned(), pushed),
            None => pushes.remove(id),
        };
    }

    /// The alerts to the service of a bouncer.
    pub(super) fn push(&self, id: &str) -> ShownPush {
        let pushes = self.pushes.lock().unwrap_or_else(PoisonError::into_inner);
        pushes.get(id).map(|pushed| pushed.shown()).unwrap_or_default()
    }

    /// Whether a bouncer has numbers of its own for monitoring: the first ones that there are.
    pub(super) fn has_metrics(&self, id: &str) -> bool {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner).takes(id)
    }

    /// Shows what is known of a feed; `None` for one that is gone.
    pub(super) fn show(&self, id: &str, state: Option<Arc<FeedState>>) {
        match state {
            Some(state) => self.feeds().insert(id.to_owned(), state),
            None => self.feeds().remove(id),
        };
    }

    /// What is known of a feed.
    pub(super) fn feed(&self, id: &str) -> Arc<FeedState> {
        self.feeds().get(id).cloned().unwrap_or_default()
    }

    /// What DNS blocklists say of an address; `None` if that is not found out in time. In a thread that may block.
    pub(super) fn listed(&self, address: IpAddr) -> Option<Found> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        runtime.block_on(self.blocklists.ask(address, LOOKUP_PATIENCE))
    }

    /// Has orders carried out, all of them for feeds, for bouncers or for databases, and waits for all of them together. In a thread that
    /// may block.
    pub(super) fn order(&self, wants: Vec<Want>) -> Vec<Ordered> {
        let nowhere = || Ordered::Refused("this control plane gathers no feeds".to_owned());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return wants.iter().map(|_| nowhere()).collect();
        };
        let way = match wants.first() {
            Some(Want::Sync { .. }) => &self.syncs,
            Some(Want::RefreshDatabase { .. }) => &self.downloads,
            _ => &self.orders,
        };
        if way.inbox().is_some() {
            return wants.iter().map(|_| nowhere()).collect();
        }
        runtime.block_on(async {
            let end = tokio::time::Instant::now() + PATIENCE;
            let mut running = tokio::task::JoinSet::new();
            for (place, want) in wants.iter().cloned().enumerate() {
                let orders = way.sender.clone();
                running.spawn(async move { (place, carried_out(&orders, want).await) });
            }
            let mut outcomes = vec![Ordered::Begun; wants.len()];
            while let Ok(Some(ended)) = tokio::time::timeout_at(end, running.join_next()).await {
                let Ok((place, outcome)) = ended else { continue };
                if let Some(slot) = outcomes.get_mut(place) {
                    *slot = outcome;
                }
            }
            running.detach_all();
            outcomes
        })
    }

    fn feeds(&self) -> MutexGuard<'_, BTreeMap<String, Arc<FeedState>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives an order and waits until it was carried out.
async fn carried_out(orders: &mpsc::Sender<Order>, what: Want) -> Ordered {
    /// How often an order for a feed is repeated that the gatherer has not seen yet, and the pause in between.
    const LOOKS: u32 = 40;
    const PAUSE: Duration = Duration::from_millis(25);
    for _ in 0..LOOKS {
        let (done, told) = oneshot::channel();
        if orders.send(Order { what: what.clone(), done }).await.is_err() {
            break;
        }
        match told.await {
            Ok(Ok(())) => return Ordered::Done,
            Ok(Err(Refused::Because(why))) => return Ordered::Refused(why),
            Ok(Err(Refused::Unknown)) => tokio::time::sleep(PAUSE).await,
            Err(_) => break,
        }
    }
    let what = match what {
        Want::Sync { .. } => "bouncer",
        Want::RefreshDatabase { .. } => "database",
        Want::Refresh { .. } | Want::RollBack { .. } => "feed",
    };
    Ordered::Refused(format!("the {what} is gone, or no {what}s are gathered at the moment"))
}
