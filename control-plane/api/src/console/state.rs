//! What the endpoints of the console share.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use super::replay::LatestTraffic;
use super::rules::LoginRules;
use crate::error::ApiError;
use accounts::{Passwords, SessionLimits};
use entities::EntityService;
use events::EventHub;
use kit::{Runtimes, Tools};
use listen::Throttle;
use store::{AccessChange, Store};

/// Failed logins within a minute after which an address has to wait. More than a name has: behind one address there may
/// be an office, and no account is opened by guesses at thirty of them.
const ADDRESS_FAILURES: u32 = 30;
/// Failed logins within a minute after which a name has to wait, wherever they come from.
const NAME_FAILURES: u32 = 10;

/// Tells the time in milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What the endpoints of the console share. Cheap to clone.
#[derive(Clone)]
pub struct Console {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) store: Arc<dyn Store>,
    pub(super) entities: EntityService,
    pub(super) events: EventHub,
    pub(super) clock: Clock,
    pub(super) limits: SessionLimits,
    /// Whether the admin API speaks plain HTTP on loopback alone; see [`super::session::wants_secure`].
    pub(super) loopback: bool,
    pub(super) addresses: Throttle,
    pub(super) names: Throttle<[u8; 32]>,
    pub(super) passwords: Passwords,
    pub(super) login: LoginRules,
    /// What plugins keep from one call of their operations to the next.
    pub(super) tools: Tools,
    /// What plugins have at work in this control plane.
    pub(super) runtimes: Runtimes,
    /// Recorded traffic; nothing where recordings are not served.
    pub(super) traffic: OnceLock<LatestTraffic>,
}

impl Console {
    /// A console on this store, which tells `events` who logs in and out. `plain` is where the admin API listens for
    /// plain HTTP, `None` where it speaks TLS itself: then the session cookie is for TLS alone in any case. `runtimes` are those that the
    /// gatherers of plugins have as well.
    pub fn new(
        store: Arc<dyn Store>,
        entities: EntityService,
        events: EventHub,
        plain: Option<SocketAddr>,
        clock: Clock,
        runtimes: Runtimes,
        login: LoginRules,
    ) -> Console {
        Console {
            inner: Arc::new(Inner {
                store,
                entities,
                events,
                clock,
                limits: SessionLimits::default(),
                loopback: plain.is_some_and(|address| address.ip().is_loopback()),
                addresses: Throttle::after(ADDRESS_FAILURES),
                names: Throttle::after(NAME_FAILURES),
                passwords: Passwords::default(),
                login,
                tools: Tools::default(),
                runtimes,
                traffic: OnceLock::new(),
            }),
        }
    }

    /// Gives plugins recorded traffic; the first that is given stays.
    pub(super) fn give_traffic(&self, traffic: LatestTraffic) {
        let _given_before = self.inner.traffic.set(traffic);
    }

    pub(super) fn now(&self) -> u64 {
        (self.inner.clock)()
    }

    /// Changes who has access, with the event of it; `refusal` is the answer where the store does not take the change.
    pub(super) async fn change_access(
        &self,
        change: AccessChange,
        note: String,
        refusal: impl FnOnce() -> ApiError,
    ) -> Result<(), ApiError> {
        if self.inner.store.access_change(change, note).await? { Ok(()) } else { Err(refusal()) }
    }

    /// Forgets the sessions and tickets of logins that have ended. Worth a call every few minutes; what has ended is refused whether it was
    /// forgotten or not.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn sweep(&self) -> Result<u64, store::StoreError> {
        if !*self.inner.store.leads().borrow() {
            return Ok(0);
        }
        let (now, limits) = (self.now(), self.inner.limits);
        let until = |millis| now.saturating_sub(millis);
        self.inner.store.tickets_sweep(now).await?;
        self.inner.store.sessions_sweep(until(limits.idle_millis), until(limits.absolute_millis)).await
    }
}

/// The name of the host that this control plane runs on.
pub(super) fn node() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "control plane".to_owned() } else { name.to_owned() }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("limits", &self.inner.limits).finish_non_exhaustive()
    }
}
