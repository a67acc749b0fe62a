//! The store: what the control plane must not forget.
//!
//! [`Store`] says it in the domain's words, so that an embedded file ([`SqliteStore`]) and a shared server
//! ([`replica::Upstream`]) can stand behind it. A write that was answered with `Ok` is durable: it survives `kill -9` and a loss
//! of power.

mod access;
pub mod alerts;
mod backup;
mod ban_pages;
mod ban_rows;
mod bans;
mod contents;
pub mod counts;
mod elsewhere;
mod entities;
mod error;
pub mod events;
pub mod fabric;
pub mod feeds;
mod file;
pub mod history;
mod incidents;
pub mod inventory;
mod ledger;
pub mod messages;
pub mod migrate;
mod operators;
mod passkeys;
mod pending;
mod places;
pub mod replays;
pub mod replica;
mod replica_files;
mod replica_rows;
pub mod rollups;
mod room;
mod schema;
mod setback;
pub mod sign_in;
mod sqlite;
mod sqlite_alerts;
mod sqlite_counts;
mod sqlite_fabric;
mod sqlite_feeds;
mod sqlite_history;
mod sqlite_identities;
mod sqlite_inventory;
mod sqlite_passkeys;
mod sqlite_replays;
mod sqlite_rollups;
mod sqlite_sign_in;
mod writer;

use tokio::sync::watch;

use accounts::{AdminKey, Scope};
use accounts::{Identity, Operator, Passkey, Role, Session, Ticket};

pub use alerts::AlertStore;
pub use backup::{Restored, backup, restore};
pub use contents::Contents;
pub use counts::CountStore;
pub use elsewhere::{Elsewhere, Keys, Others};
pub use error::StoreError;
pub use events::EventStore;
pub use fabric::FabricStore;
pub use feeds::FeedStore;
pub use history::{Author, AuthorKind, HistoryStore, Origin};
pub use inventory::InventoryStore;
pub use passkeys::PasskeyStore;
pub use pending::Pending;
pub use replays::ReplayStore;
pub use rollups::RollupStore;
pub use setback::{Held, Setback, Setbacks};
pub use sign_in::SignInStore;
pub use sqlite::{SqliteOptions, SqliteStore};

/// Durable memory of the control plane. Every method may wait for the medium; none blocks the async runtime.
/// What the decision fabric keeps is in [`FabricStore`], what alert rules keep in [`AlertStore`], what nodes count together in
/// [`CountStore`], what is kept of threat feeds in [`FeedStore`], what entities were before in [`HistoryStore`], what is counted of
/// APIs in [`InventoryStore`], recordings of traffic and replays in [`ReplayStore`], counts of events in [`RollupStore`], passkeys in
/// [`PasskeyStore`], and what other logins of operators need in [`SignInStore`]. Events themselves are in an [`EventStore`] beside it.
pub trait Store:
    AlertStore
    + CountStore
    + FabricStore
    + FeedStore
    + HistoryStore
    + InventoryStore
    + ReplayStore
    + RollupStore
    + SignInStore
    + PasskeyStore
    + Send
    + Sync
    + 'static
{
    /// All entities of all collections with the revision they were read at, in one consistent view.
    fn entities(&self) -> Pending<'_, EntityRows>;

    /// Writes one entity and returns the new global revision.
    ///
    /// `expected` is the revision the caller has seen: 0 demands that the entity does not exist yet, a number that it
    /// is unchanged since; otherwise [`StoreError::Conflict`]. Its version in the history says nothing of its origin.
    fn entity_put(&self, collection: &str, id: &str, body: String, expected: u64) -> Pending<'_, u64>;

    /// Removes one entity that is still at revision `expected`, and returns the new global revision.
    fn entity_remove(&self, collection: &str, id: &str, expected: u64) -> Pending<'_, u64>;

    /// Makes several changes as one: all of them become durable together, under one new global revision, which is
    /// returned, or none does. One change notice goes out. An empty list (with a `judged_at` that holds) changes nothing and
    /// answers the revision as it is.
    ///
    /// `judged_at` is the global revision at which the caller has judged what the entities would be with the changes; where it is not the
    /// store's any more, all are refused with [`StoreError::Moved`]; otherwise the new revision is the next one, `judged_at + 1`. With
    /// `None` other entities may have changed.
    ///
    /// Each change has an `expected` revision as in [`Store::entity_put`]. The first that does not hold, or that names an
    /// entity for the second time, refuses all with [`StoreError::BatchConflict`].
    fn entities_write(&self, changes: Vec<EntityChange>, judged_at: Option<u64>) -> Pending<'_, u64>;

    /// Announces the global revision after each committed change of an entity. Bans, keys and documents do not count:
    /// they are no part of a snapshot.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Announces what other control planes change, soon after they did. Nothing, where no other one shares the store. What this one
    /// changes is not announced, nor bans that end by themselves or give way to another.
    fn elsewhere(&self) -> Others;

    /// Announces when the server of a shared store has lost changes that this control plane has read; [`Store::elsewhere`] announces
    /// [`Elsewhere::Anything`] with it. Nothing, where the store is not shared.
    fn setbacks(&self) -> Setbacks;

    /// Whether this control plane leads: of those that share a store, one does the work that is done once for all of them (feeds, expiries,
    /// events in the outbox). Always, where the store is not shared. Where the server cannot be reached no one leads. When a leader
    /// is gone, another one leads within seconds; for the length of a call, two may.
    fn leads(&self) -> watch::Receiver<bool>;

    /// Adds an admin key, or replaces the one with the same id.
    fn admin_key_put(&self, key: AdminKey) -> Pending<'_, ()>;

    /// The admin key with this id.
    fn admin_key(&self, id: &str) -> Pending<'_, Option<AdminKey>>;

    /// All admin keys, the revoked ones included, oldest first.
    fn admin_keys(&self) -> Pending<'_, Vec<AdminKey>>;

    /// Marks a key as revoked at `now_millis`; false when there is no such key.
    fn admin_key_revoke(&self, id: &str, now_millis: u64) -> Pending<'_, bool>;

    /// Makes a change of who has access, and keeps `event` (JSON) until it is sent; both, or neither. False when
    /// there is nothing to change.
    fn access_change(&self, change: AccessChange, event: String) -> Pending<'_, bool>;

    /// The events in the outbox whose number is above `after`, oldest first, at most 1000: those of
    /// [`Store::access_change`] and of the [`Note`](fabric::Note)s of changes.
    fn kept_events(&self, after: u64) -> Pending<'_, Vec<Kept>>;

    /// Removes the events up to this one from the outbox; none, where it has another event of that number or none: since a setback of the
    /// server ([`Store::setbacks`]) earlier numbers may be those of other events.
    fn kept_events_told(&self, last: Kept) -> Pending<'_, ()>;

    /// Adds an operator of the console; false when the name is taken.
    fn operator_add(&self, operator: Operator) -> Pending<'_, bool>;

    /// The operator of this name.
    fn operator(&self, name: &str) -> Pending<'_, Option<Operator>>;

    /// All operators, by name.
    fn operators(&self) -> Pending<'_, Vec<Operator>>;

    /// Removes an operator with their second factor, passkeys, identities, login links and sessions; false when there is none of this name.
    fn operator_remove(&self, name: &str) -> Pending<'_, bool>;

    /// Gives an operator another password hash at `now_millis` and ends their login links and sessions; false when there is none of
    /// this name. An empty hash is no password.
    fn operator_set_password(&self, name: &str, hash: &str, now_millis: u64) -> Pending<'_, bool>;

    /// Begins a session; false when the operator is gone, has another password than `password_hash` by now, or has a second factor by
    /// now and no code was checked (`with_code`). Of an operator's sessions the `limit` last used ones are kept.
    fn session_begin(&self, session: Session, password_hash: &str, with_code: bool, limit: u32) -> Pending<'_, bool>;

    /// The session with the token of this SHA-256, and whose it is.
    fn session(&self, token_sha256: [u8; 32]) -> Pending<'_, Option<(Session, Operator)>>;

    /// Notes that a session was used at `now_millis`.
    fn session_touch(&self, token_sha256: [u8; 32], now_millis: u64) -> Pending<'_, ()>;

    /// Ends a session; false when there is none.
    fn session_end(&self, token_sha256: [u8; 32]) -> Pending<'_, bool>;

    /// Forgets the sessions last used at or before `seen_until`, or begun at or before `created_until` (milliseconds
    /// since 1970), and returns how many.
    fn sessions_sweep(&self, seen_until: u64, created_until: u64) -> Pending<'_, u64>;

    /// Writes the named document.
    fn document_put(&self, name: &str, body: Vec<u8>) -> Pending<'_, ()>;

    /// Writes the named document unless there is one; answers the one that there is then. Of several control planes that make a secret
    /// at once, all get the same.
    fn document_put_first(&self, name: &str, body: Vec<u8>) -> Pending<'_, Vec<u8>>;

    /// The named document, when there is one.
    fn document(&self, name: &str) -> Pending<'_, Option<Vec<u8>>>;

    /// Removes the named document; false when there was none.
    fn document_remove(&self, name: &str) -> Pending<'_, bool>;

    /// The names that begin with `prefix`, sorted.
    fn document_names(&self, prefix: &str) -> Pending<'_, Vec<String>>;

    /// Spends a puzzle: true the first time, false ever after, until [`Store::puzzles_sweep`] forgets it. Of two calls at
    /// once, one alone is the first.
    fn puzzle_spend(&self, id: &str, until_millis: u64) -> Pending<'_, bool>;

    /// Forgets the puzzles that expired at or before `until_millis`, and returns how many.
    fn puzzles_sweep(&self, until_millis: u64) -> Pending<'_, u64>;

    /// Why the last read failed, and the last write; none where it worked. Does not wait.
    fn faults(&self) -> StoreFaults;

    /// Whether the store is a server of its own that several control planes share.
    fn is_dedicated(&self) -> bool;

    /// Sends a message to the other control planes that share the store, soon. Nothing, where there is none. Never waits: a message may be lost,
    /// which is counted.
    fn tell(&self, message: Vec<u8>);

    /// The messages of others from now on ([`Store::tell`]).
    fn told(&self) -> messages::Listener;

    /// What makes acknowledged changes less durable than they should be, such as settings of a shared server; sentences.
    fn cautions(&self) -> Vec<String>;

    /// Proves that the store can be read.
    fn ping(&self) -> Pending<'_, ()>;

    /// Finishes what was begun and closes the store. Later calls answer [`StoreError::Closed`].
    fn close(&self) -> Pending<'_, ()>;
}

/// What does not work of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreFaults {
    /// Why the last read failed.
    pub reads: Option<StoreError>,
    /// Why the last write failed. A write that changes nothing proves nothing.
    pub writes: Option<StoreError>,
}

/// Every entity at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityRows {
    /// The global revision: the number of changes ever committed; several that were made as one count once.
    pub revision: u64,
    /// The entities, by collection and id.
    pub rows: Vec<EntityRow>,
}

/// One change of an entity, as a part of [`Store::entities_write`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityChange {
    /// The collection, such as `waf-configs`.
    pub collection: String,
    /// The id within the collection.
    pub id: String,
    /// The revision the caller has seen; 0 where the entity does not exist yet.
    pub expected: u64,
    /// The new document, JSON; `None` removes the entity.
    pub body: Option<String>,
    /// What the history of the entity says of the change.
    pub origin: Origin,
}

/// One stored entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityRow {
    /// The collection, such as `waf-configs`.
    pub collection: String,
    /// The id within the collection.
    pub id: String,
    /// The global revision of the change that wrote it.
    pub revision: u64,
    /// The document, JSON.
    pub body: String,
}

/// A change of who has access, as a command or an admin makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessChange {
    /// As [`Store::admin_key_put`].
    KeyPut(AdminKey),
    /// As [`Store::admin_key_revoke`].
    KeyRevoke {
        /// The id of the key.
        id: String,
        /// Since when, in milliseconds since 1970.
        at_millis: u64,
    },
    /// Sets the end of a key.
    KeyExpire {
        /// The id of the key.
        id: String,
        /// From when on it is refused, in milliseconds since 1970; `None` for never.
        at_millis: Option<u64>,
    },
    /// As [`Store::operator_add`].
    OperatorAdd(Operator),
    /// Adds an operator who is linked to an identity; nothing if the name or the identity is taken.
    OperatorAddLinked {
        /// The operator.
        operator: Operator,
        /// Who they are at the provider.
        identity: Identity,
    },
    /// Links an operator to an identity; nothing if it is taken, or the operator has one of the same issuer.
    IdentityLink {
        /// The operator's name.
        name: String,
        /// Who they are at the provider.
        identity: Identity,
    },
    /// Adds a passkey, and ends the operator's login links and other sessions; nothing if the credential is there already, or the operator has
    /// [`PASSKEYS`](accounts::PASSKEYS).
    PasskeyAdd {
        /// The passkey.
        passkey: Passkey,
        /// The session that goes on.
        keep_session: [u8; 32],
    },
    /// Removes a passkey of an operator, or all of them.
    PasskeyRemove {
        /// The operator's name.
        name: String,
        /// The credential; `None` for all.
        credential: Option<Vec<u8>>,
        /// Whether the operator's login links and sessions end.
        end_sessions: bool,
    },
    /// Removes the identities of an operator, and ends their login links and sessions.
    IdentityUnlink {
        /// The operator's name.
        name: String,
    },
    /// As [`Store::operator_remove`].
    OperatorRemove {
        /// The operator's name.
        name: String,
        /// The last admin is not removed.
        keep_admin: bool,
    },
    /// As [`Store::operator_set_password`].
    OperatorPassword {
        /// The operator's name.
        name: String,
        /// The new password, hashed; empty for none.
        hash: String,
        /// When, in milliseconds since 1970.
        at_millis: u64,
    },
    /// Gives an operator another role and ends their login links and sessions; nothing if the role is the same.
    OperatorRole {
        /// The operator's name.
        name: String,
        /// The new role.
        role: Role,
        /// The last admin keeps the role.
        keep_admin: bool,
    },
    /// Keeps a login link; earlier ones of the same operator end.
    LoginLink(Ticket),
    /// Confirms the second factor of an operator: logins need it from now on. Nothing if it is confirmed already. Ends the operator's
    /// login links and other sessions.
    SecondFactorConfirm {
        /// The operator's name.
        name: String,
        /// The step of the code that has confirmed it.
        step: u64,
        /// When, in milliseconds since 1970.
        at_millis: u64,
        /// The digests of its recovery codes.
        recovery_codes: Vec<[u8; 32]>,
        /// The session that goes on.
        keep_session: [u8; 32],
    },
    /// Removes the second factor of an operator, confirmed or not.
    SecondFactorRemove {
        /// The operator's name.
        name: String,
        /// Whether the operator's login links and sessions end.
        end_sessions: bool,
    },
    /// Adds a key in the place of another one, which ends at `until_millis` unless it ends before. Nothing if the other one is revoked or
    /// has ended at `now_millis`.
    KeyRotate {
        /// The id of the other one.
        id: String,
        /// Its end, in milliseconds since 1970.
        until_millis: u64,
        /// Now, in milliseconds since 1970.
        now_millis: u64,
        /// The new one.
        key: AdminKey,
    },
}

/// An event that waits to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Grows with each.
    pub number: u64,
    /// The event, JSON.
    pub event: String,
}

/// Scopes as one text, the way they are kept: `read,write`.
fn scopes_to_text(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",")
}

/// Reads [`scopes_to_text`]; words of a newer release are left out, which only takes rights away.
fn scopes_from_text(text: &str) -> Vec<Scope> {
    text.split(',').filter_map(|word| word.parse().ok()).collect()
}
