//! The decision fabric's memory: bans, the allowlist, the ledger, and what operators make of incidents.
//!
//! The store has them; [`Fabric`] changes them for operators and for the ledger, tells every gateway in the order of the
//! record, and says who did what. Bans that gateways ask for come in through [`Bans`]. [`challenges`] answers what nodes ask
//! about puzzles and tokens of widgets.

mod announcer;
mod bans;
pub mod challenges;
mod charging;
mod ledger;
mod live;
mod others;
mod rules;
mod setbacks;
mod unrecorded;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use snapshot::{AllowChange, Down};

use base::identity::Identity;
use compiler::enforces;
use entities::{EntityService, EntitySet};
use events::{Audit, AuditAction, BanWay, EventHub, IncidentLimits};
use store::fabric::{Allowance, Ban, Issued, Note, Step, Workflow};
use store::{Store, StoreError};

use bans::{allow_of, change_of, lift_of};

pub use announcer::{Announcer, Refreshed};
pub use bans::{BanOutcome, Bans};
pub use ledger::Ledger;
pub use live::LiveList;
pub use rules::{BanRefusal, BanRules};

/// How often what has ended is forgotten.
const SWEEP: Duration = Duration::from_secs(60);

/// Who does something.
#[derive(Clone, Debug)]
pub struct Actor {
    /// The operator's name.
    pub name: String,
    /// Where to reach them.
    pub email: String,
    /// The address that they call from.
    pub source: Option<IpAddr>,
}

/// The decision fabric's memory. Cheap to clone.
#[derive(Clone)]
pub struct Fabric {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    entities: EntityService,
    events: EventHub,
    announcer: Announcer,
    clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// As they were read last.
    counts: Mutex<Counts>,
    tables: OnceLock<TablesShown>,
}

/// Tells the state of all tables that gatherers have published.
type TablesShown = Box<dyn Fn() -> Vec<TableStatus> + Send + Sync>;

/// A table that workers keep, such as the addresses of feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableStatus {
    /// Its name, which begins with that of its plugin.
    pub name: String,
    /// The state that workers should have: the first 16 hexadecimal digits of a SHA-256.
    pub state: String,
    /// The length of the base that a worker gets which has nothing, in bytes.
    pub base_bytes: usize,
    /// How many workers have the table in this state.
    pub current: usize,
    /// How many have another state of it, or nothing yet.
    pub behind: usize,
}

/// How much there is.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Bans that hold.
    pub bans: u64,
    /// Entries of the allowlist that hold.
    pub allowed: usize,
    /// Why they are not those of now.
    pub error: Option<String>,
}

impl Fabric {
    /// A fabric that keeps its state in `store`, reads its settings from `entities`, and tells gateways through `announcer`.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        entities: EntityService,
        events: EventHub,
        announcer: Announcer,
        clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    ) -> Fabric {
        let settings = entities.clone();
        events.judge_ipv6_by(move || settings.current().global().identity.ipv6_prefix);
        let settings = entities.clone();
        events.limit_incidents_by(move || incident_limits(&settings.current()));
        let (counts, tables) = (Mutex::default(), OnceLock::new());
        Fabric { inner: Arc::new(Inner { store, entities, events, announcer, clock, counts, tables }) }
    }

    /// The time, in milliseconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        (self.inner.clock)()
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        self.inner.store.as_ref()
    }

    /// The entities.
    pub fn entities(&self) -> &EntityService {
        &self.inner.entities
    }

    /// Events and incidents.
    pub fn events(&self) -> &EventHub {
        &self.inner.events
    }

    /// What sends changes to the links of gateways.
    pub fn announcer(&self) -> &Announcer {
        &self.inner.announcer
    }

    /// Takes the state of tables from `shown`; a second call changes nothing.
    pub fn show_tables(&self, shown: impl Fn() -> Vec<TableStatus> + Send + Sync + 'static) {
        let _ = self.inner.tables.set(Box::new(shown));
    }

    /// The tables that gatherers have published, by name.
    #[must_use]
    pub fn tables(&self) -> Vec<TableStatus> {
        self.inner.tables.get().map(|shown| shown()).unwrap_or_default()
    }

    /// Reads how many bans and entries of the allowlist there are, as a process does that starts.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn load(&self) -> Result<(), StoreError> {
        self.count().await?;
        self.inner.announcer.loaded();
        Ok(())
    }

    /// How many bans and entries of the allowlist hold now; where the store cannot say, those of the time before, and why.
    pub async fn counts(&self) -> Counts {
        match self.count().await {
            Ok(counts) => counts,
            Err(error) => {
                let last = self.inner.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
                Counts { error: Some(error.to_string()), ..last }
            }
        }
    }

    async fn count(&self) -> Result<Counts, StoreError> {
        let now = self.now();
        let bans = self.inner.store.bans_count(now).await?;
        let allowed = self.inner.store.allowlist(now).await?.len();
        let counts = Counts { bans, allowed, error: None };
        *self.inner.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts.clone();
        Ok(counts)
    }

    /// What of bans the configuration says now.
    #[must_use]
    pub fn rules(&self) -> BanRules {
        BanRules::of(&self.inner.entities.current())
    }

    /// The width of the IPv6 networks that callers are judged by, in bits.
    pub fn ipv6_prefix(&self) -> u8 {
        self.inner.entities.current().global().identity.ipv6_prefix
    }

    /// How long events belong to one incident, and what is kept of it.
    #[must_use]
    pub fn incident_limits(&self) -> IncidentLimits {
        incident_limits(&self.inner.entities.current())
    }

    /// Why a ban on this identity is enforced nowhere; `None` where it is.
    #[must_use]
    pub fn unenforced(&self, identity: &Identity) -> Option<String> {
        if let Err(why) = enforces(&self.inner.entities.current(), identity) {
            return Some(why.to_string());
        }
        let reason = "no gateway is linked to this control plane; gateways that connect later get the ban";
        (self.inner.announcer.links() == 0).then(|| reason.to_owned())
    }

    /// Bans by hand.
    ///
    /// # Errors
    /// What the store reports; nothing was changed.
    pub async fn ban(
        &self,
        actor: &Actor,
        identity: &Identity,
        millis: u64,
        reason: &str,
    ) -> Result<Issued, StoreError> {
        let now = self.now();
        let step = Step { at: now, action: "ban".into(), by: actor.name.clone(), detail: reason.to_owned() };
        let ban = Ban {
            key: identity.key(),
            reason: reason.to_owned(),
            tags: vec!["manual".to_owned()],
            issued_at: now,
            until: now.saturating_add(millis),
            issued_by: actor.name.clone(),
            by_hand: true,
            signals: self.inner.events.signals(&identity.key()),
            timeline: vec![step],
            ..Ban::default()
        };
        let (done, refused) = (by(actor, AuditAction::Ban), by(actor, AuditAction::BanRefused));
        let key = identity.key();
        let note = Note::new(move |issued: &Vec<Issued>| match issued.first() {
            Some(Issued::Live(ban)) => event(done.of(ban.key.clone()).detail(lasting(ban, now)), now),
            Some(Issued::Allowlisted(entry)) => {
                let detail = format!("{} is on the allowlist: {}", entry.key, entry.reason);
                event(refused.of(key).detail(detail), now)
            }
            Some(Issued::Lifted(_) | Issued::Full) | None => Vec::new(),
        });
        let store = &self.inner.store;
        let issue = async { store.bans_issue(vec![ban], now, note).await?.pop().ok_or(StoreError::Closed) };
        let issued = self.change(issue, told).await?;
        if let Issued::Live(ban) = &issued {
            self.inner.events.banned(ban, BanWay::Hand, now);
        }
        Ok(issued)
    }

    /// Moves the end of a ban that is in force, which is an operator's from then on; `None` where there is none.
    ///
    /// # Errors
    /// What the store reports; nothing was changed.
    pub async fn extend(&self, actor: &Actor, identity: &Identity, millis: u64) -> Result<Option<Ban>, StoreError> {
        let now = self.now();
        let detail = format!("by {} s", millis / 1000);
        let step = Step { at: now, action: "extend".into(), by: actor.name.clone(), detail };
        let bans = |ban: &Option<Ban>| Down { bans: ban.iter().map(change_of).collect(), ..Down::default() };
        let audit = by(actor, AuditAction::Extend);
        let note = Note::new(move |ban: &Option<Ban>| match ban {
            Some(ban) => event(audit.of(ban.key.clone()).detail(lasting(ban, now)), now),
            None => Vec::new(),
        });
        self.change(self.inner.store.ban_extend(&identity.key(), millis, step, note), bans).await
    }

    /// Lifts a ban; false where there was none. The gateways are told in either case.
    ///
    /// # Errors
    /// What the store reports; nothing was changed.
    pub async fn unban(&self, actor: &Actor, identity: &Identity) -> Result<bool, StoreError> {
        let key = identity.key();
        let down = |_: &bool| Down { bans: vec![lift_of(key.clone())], ..Down::default() };
        let (now, audit) = (self.now(), by(actor, AuditAction::Unban).of(key.clone()));
        let note = Note::new(move |lifted: &bool| {
            event(audit.detail(if *lifted { "the ban was lifted" } else { "there was no ban" }), now)
        });
        self.change(self.inner.store.ban_lift(&key, now, note), down).await
    }

    /// Lifts every ban; answers the keys.
    ///
    /// # Errors
    /// What the store reports; nothing was changed.
    pub async fn unban_all(&self, actor: &Actor) -> Result<Vec<String>, StoreError> {
        let down = |keys: &Vec<String>| Down { bans: keys.iter().cloned().map(lift_of).collect(), ..Down::default() };
        let (now, audit) = (self.now(), by(actor, AuditAction::UnbanAll));
        let note = Note::new(move |lifted: &Vec<String>| {
            event(audit.detail(format!("{} bans were lifted", lifted.len())), now)
        });
        self.change(self.inner.store.bans_lift_all(now, note), down).await
    }

    /// Puts an identity on the allowlist, for good where `millis` is `None`, and forgets `charged` in the ledger: what it is
    /// charged as. Answers the entry and the keys of the bans that were lifted; `None` where the list is full.
    ///
    /// # Errors
    /// What the store reports; nothing was changed.
    pub async fn allow(
        &self,
        actor: &Actor,
        identity: &Identity,
        charged: &Identity,
        reason: &str,
        millis: Option<u64>,
        unban: bool,
    ) -> Result<Option<(Allowance, Vec<String>)>, StoreError> {
        let now = self.now();
        let entry = Allowance {
            key: identity.key(),
            reason: reason.to_owned(),
            added_by: actor.name.clone(),
            added_at: now,
            until: millis.map(|millis| now.saturating_add(millis)),
        };
        let down = |released: &Option<Vec<String>>| match released {
            Some(keys) => Down {
                allowed: vec![allow_of(&entry)],
                bans: keys.iter().cloned().map(lift_of).collect(),
                ..Down::default()
            },
            None => Down::default(),
        };
        let (audit, reason) = (by(actor, AuditAction::Allowlist).of(entry.key.clone()), reason.to_owned());
        let note = Note::new(move |released: &Option<Vec<String>>| match released {
            Some(released) => event(audit.detail(format!("{reason}; {} bans were lifted", released.len())), now),
            None => Vec::new(),
        });
        let charged = charged.key();
        let released = self.change(self.inner.store.allow(entry.clone(), &charged, unban, note), down).await?;
        Ok(released.map(|released| (entry, released)))
    }

    /// Takes an identity off the allowlist; false where it was not on it.
    ///
    /// # Errors
    /// What the store reports; nothing was changed.
    pub async fn disallow(&self, actor: &Actor, identity: &Identity) -> Result<bool, StoreError> {
        let key = identity.key();
        let down =
            |_: &bool| Down { allowed: vec![AllowChange { key: key.clone(), until_millis: 0 }], ..Down::default() };
        let (now, audit) = (self.now(), by(actor, AuditAction::AllowlistRemove).of(key.clone()));
        let note = Note::new(move |removed: &bool| {
            event(audit.detail(if *removed { "the entry was removed" } else { "there was no entry" }), now)
        });
        self.change(self.inner.store.disallow(&key, now, note), down).await
    }

    /// Sets the state of an incident; `open` clears it.
    ///
    /// # Errors
    /// What the store reports; nothing was changed.
    pub async fn set_state(&self, actor: &Actor, key: &str, state: &str, note: &str) -> Result<Workflow, StoreError> {
        let now = self.now();
        let (key, state) = (key.to_owned(), state.to_owned());
        let workflow = Workflow { key, state, by: actor.name.clone(), at: now, note: note.to_owned() };
        let action = match workflow.state.as_str() {
            "acknowledged" => AuditAction::IncidentAcknowledged,
            "resolved" => AuditAction::IncidentResolved,
            _ => AuditAction::IncidentOpen,
        };
        let audit = by(actor, action).of(workflow.key.clone()).detail(note);
        let note = Note::new(move |(): &()| event(audit, now));
        let kept = (action != AuditAction::IncidentOpen).then(|| workflow.clone());
        match &kept {
            Some(workflow) => self.inner.store.workflow_put(workflow.clone(), note).await?,
            None => self.inner.store.workflows_clear(vec![(workflow.key.clone(), now)], note).await?,
        }
        self.inner.events.outbox_filled();
        self.inner.events.set_workflow(&workflow.key, kept);
        Ok(workflow)
    }

    /// Forgets an identity in the ledger; false where it was not known.
    ///
    /// # Errors
    /// What the store reports; nothing was changed.
    pub async fn forget(&self, actor: &Actor, identity: &Identity) -> Result<bool, StoreError> {
        let key = identity.key();
        let (now, audit) = (self.now(), by(actor, AuditAction::LedgerForget).of(key.clone()));
        let note = Note::new(move |known: &bool| {
            event(audit.detail(if *known { "the ledger entry was removed" } else { "there was no ledger entry" }), now)
        });
        let known = self.inner.store.ledger_forget(&key, note).await?;
        self.inner.events.outbox_filled();
        Ok(known)
    }

    /// Forgets what has ended, every minute while this control plane leads, for as long as the store is open. For a task of its own.
    pub async fn sweep(self) {
        let mut ticks = tokio::time::interval(SWEEP);
        loop {
            ticks.tick().await;
            let (store, now) = (&self.inner.store, self.now());
            if !*store.leads().borrow() {
                match self.count().await {
                    Ok(_) => self.inner.announcer.loaded(),
                    Err(StoreError::Closed) => return,
                    Err(error) => tracing::debug!(%error, "the numbers of bans and of entries cannot be read"),
                }
                continue;
            }
            let window = Ledger::of(&self.inner.entities).window_millis();
            let swept = async {
                store.fabric_sweep(now, now.saturating_sub(self.incident_limits().kept)).await?;
                store.ledger_sweep(now.saturating_sub(window)).await
            };
            match swept.await {
                Ok(()) => self.inner.announcer.loaded(),
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(%error, "deleting expired bans and charges failed"),
            }
        }
    }

    /// Records something and tells the gateways, in the order of the record.
    async fn change<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
        down: impl FnOnce(&T) -> Down,
    ) -> Result<T, StoreError> {
        let work = async {
            let result = work.await;
            let down = result.as_ref().map_or_else(|_| Down::default(), down);
            (result, down)
        };
        let result = self.inner.announcer.change(work).await;
        self.inner.events.outbox_filled();
        result
    }
}

/// The message to gateways on the outcome of a request for a ban.
fn told(issued: &Issued) -> Down {
    let bans = match issued {
        Issued::Live(ban) => vec![change_of(ban)],
        Issued::Allowlisted(_) | Issued::Lifted(_) | Issued::Full => Vec::new(),
    };
    Down { bans, ..Down::default() }
}

fn by(actor: &Actor, action: AuditAction) -> Audit {
    Audit::new(action).operator(&actor.name, &actor.email).from(actor.source)
}

/// What the outbox keeps of an audit.
fn event(audit: Audit, now: u64) -> Vec<String> {
    vec![audit.note(now)]
}

fn lasting(ban: &Ban, now: u64) -> String {
    format!("for another {} s: {}", ban.until.saturating_sub(now) / 1000, ban.reason)
}

impl fmt::Debug for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fabric").finish_non_exhaustive()
    }
}

/// As `security.incidents` of the global configuration says.
fn incident_limits(entities: &EntitySet) -> IncidentLimits {
    let settings = entities.global().security.incidents;
    IncidentLimits {
        window: settings.window_seconds.saturating_mul(1000),
        timeline: usize::try_from(settings.timeline).unwrap_or(usize::MAX),
        kept: settings.kept_seconds.saturating_mul(1000),
        reopen_grace: settings.reopen_grace_seconds.saturating_mul(1000),
        held: usize::try_from(settings.max_held).unwrap_or(usize::MAX),
    }
}
