//! What entities were before: a version for each committed change, with its author.

use std::sync::Arc;

use super::Pending;

/// The most versions of an entity, the one in force and its deletion included; of more, the oldest go.
pub const MAX_VERSIONS: u32 = 100;
/// The bytes that the earlier versions of one entity may take, by the size of the latest of them: a document of 1 MiB has 32
/// versions. At least one earlier version is kept, whatever its size.
pub const MAX_ENTITY_HISTORY_BYTES: u64 = 32 << 20;
/// The bytes that all earlier versions take, at most, with [`VERSION_BYTES`] for each; of more, those go that were replaced
/// first, and what undoes a deletion after all others. Every control plane of a shared store has a copy of them, and reads it when
/// it starts. Of a file whose size is bounded ([`SqliteOptions::max_pages`](super::SqliteOptions::max_pages)) a quarter, if that is less.
pub const MAX_HISTORY_BYTES: u64 = 128 << 20;
/// What a version that is not in force counts beside its document, in bytes.
pub const VERSION_BYTES: u64 = 256;
/// How long a version stays after it was replaced, and a deletion with the last document, in milliseconds: 90 days.
pub const HISTORY_KEPT_MILLIS: u64 = 90 * 86_400_000;

/// The part of a [`Store`](super::Store) that keeps the history of entities. Each write of an entity
/// ([`Store::entities_write`](super::Store::entities_write)) adds a version in its own transaction; the number of a version is the
/// global revision of that write, so that it is never given again, and the version in force has the revision of the entity.
pub trait HistoryStore: Send + Sync + 'static {
    /// The versions of an entity without their documents, newest first, after leaving out `skip` of them, at most `limit`.
    /// Nothing for an entity that never was, or whose history is over.
    fn versions(&self, collection: &str, id: &str, skip: u32, limit: u32) -> Pending<'_, VersionPage>;

    /// One version of an entity with its document; `None` where it is not kept.
    fn version(&self, collection: &str, id: &str, number: u64) -> Pending<'_, Option<Version>>;

    /// The entities of a collection that were deleted and can be restored, the last deleted first, after leaving out `skip` of them,
    /// at most `limit`.
    fn deleted(&self, collection: &str, skip: u32, limit: u32) -> Pending<'_, DeletedPage>;

    /// Removes the versions that were replaced [`HISTORY_KEPT_MILLIS`] before `now_millis`, and returns how many. Each write of an
    /// entity does the same.
    fn history_sweep(&self, now_millis: u64) -> Pending<'_, u64>;
}

/// A part of the versions of an entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionPage {
    /// How many there are in all.
    pub total: u32,
    /// The versions of this part, newest first.
    pub versions: Vec<VersionHead>,
}

/// A part of the deleted entities of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeletedPage {
    /// How many there are in all.
    pub total: u32,
    /// The entities of this part, the last deleted first.
    pub entities: Vec<DeletedEntity>,
}

/// An entity that was deleted, and whose last document is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedEntity {
    /// Its id.
    pub id: String,
    /// The version that deleted it.
    pub deletion: VersionHead,
    /// The number of the version before, which has the last document.
    pub last: u64,
}

/// A version with its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Everything else.
    pub head: VersionHead,
    /// The document as it was written, JSON, with its secrets; `None` for a deletion.
    pub body: Option<String>,
}

/// A version without its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionHead {
    /// The global revision of the change, by which the version is known.
    pub number: u64,
    /// Where it came from.
    pub origin: Origin,
    /// Whether the change deleted the entity.
    pub is_deletion: bool,
}

/// Who has changed an entity, when, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// When, in milliseconds since 1970; 0 where that is not known.
    pub at_millis: u64,
    /// Who.
    pub author: Author,
    /// What was done, in a word such as `create`; empty where that is not known.
    pub action: String,
    /// A note for people: what caused the change; may be empty.
    pub detail: Arc<str>,
}

/// Who has changed an entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// What the author is.
    pub kind: AuthorKind,
    /// The id of the admin key, or the name of the operator; empty for others.
    pub id: Arc<str>,
    /// What the owner of the admin key called it; empty for others.
    pub name: Arc<str>,
}

/// What an author is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorKind {
    /// Not known: the entity is older than its history, or a newer release wrote a word that this one does not know.
    #[default]
    Unknown,
    /// The owner of an admin key.
    ApiKey,
    /// An operator of the console.
    Operator,
    /// A command on the machine of the store.
    CommandLine,
    /// The control plane by itself; [`Origin::detail`] has the reason.
    ControlPlane,
}

// === impl Author ===

impl Author {
    /// The owner of an admin key.
    #[must_use]
    pub fn api_key(id: &str, name: &str) -> Author {
        Author { kind: AuthorKind::ApiKey, id: id.into(), name: name.into() }
    }

    /// An operator of the console.
    #[must_use]
    pub fn operator(name: &str) -> Author {
        Author { kind: AuthorKind::Operator, id: name.into(), name: Arc::default() }
    }

    /// A command, or the control plane by itself.
    #[must_use]
    pub fn nameless(kind: AuthorKind) -> Author {
        Author { kind, ..Author::default() }
    }
}

// === impl AuthorKind ===

impl AuthorKind {
    /// All of them.
    pub const ALL: [AuthorKind; 5] =
        [Self::Unknown, Self::ApiKey, Self::Operator, Self::CommandLine, Self::ControlPlane];

    /// As it is stored and shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::ApiKey => "api_key",
            Self::Operator => "operator",
            Self::CommandLine => "command_line",
            Self::ControlPlane => "control_plane",
        }
    }

    /// Reads [`AuthorKind::as_str`].
    pub(super) fn from_text(text: &str) -> AuthorKind {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).unwrap_or_default()
    }
}
