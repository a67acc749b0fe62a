//! The console: operators, their sessions, and the endpoints under [`NAMESPACE`](crate::names::NAMESPACE), which want a session and no admin key.
//!
//! `docs/console.md` is the reference for those who call it.

mod body;
mod challenges;
mod describe;
mod guard;
mod login;
mod report;
mod rules;
mod security;
mod session;
mod trial;
mod trial_host;
mod workbench;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::openapi::Routes;
use accounts::{Passwords, SessionLimits};
use entities::EntityService;
use events::EventHub;
use listen::Throttle;
use store::Store;

pub use guard::protect;
pub use security::router as security_router;

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
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    entities: EntityService,
    events: EventHub,
    clock: Clock,
    limits: SessionLimits,
    /// Whether the admin API speaks plain HTTP on loopback alone; see [`session::wants_secure`].
    loopback: bool,
    addresses: Throttle,
    names: Throttle<[u8; 32]>,
    passwords: Passwords,
    workbench: workbench::Workbench,
}

impl Console {
    /// A console on this store, which tells `events` who logs in and out. `plain` is where the admin API listens for
    /// plain HTTP, `None` where it speaks TLS itself: then the session cookie is for TLS alone in any case.
    pub fn new(
        store: Arc<dyn Store>,
        entities: EntityService,
        events: EventHub,
        plain: Option<SocketAddr>,
        clock: Clock,
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
                workbench: workbench::Workbench::default(),
            }),
        }
    }

    fn now(&self) -> u64 {
        (self.inner.clock)()
    }

    /// Forgets the sessions that have ended. Worth a call every few minutes; a session that has ended is refused
    /// whether it was forgotten or not.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn sweep(&self) -> Result<u64, store::StoreError> {
        let (now, limits) = (self.now(), self.inner.limits);
        let until = |millis| now.saturating_sub(millis);
        self.inner.store.sessions_sweep(until(limits.idle_millis), until(limits.absolute_millis)).await
    }
}

/// The endpoints of this module: `session/…` and `utils/…`. They bring their own access control.
pub fn router(console: &Console) -> Routes {
    let guarded = Routes::new().merge(login::guarded()).merge(rules::router()).merge(challenges::router());
    let guarded = protect(guarded.with_state(console.clone()), console.clone());
    login::open().with_state(console.clone()).merge(guarded)
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("limits", &self.inner.limits).finish_non_exhaustive()
    }
}
