//! What every entity has and can do.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Checked, FieldProblem, Tools, View, secret};

/// The fields of one collection. Its serde form must be an object that refuses unknown fields and has a default for
/// every field that a document may leave out; the fields of [`Head`] are taken off before it is read. Its JSON Schema is
/// derived from the same attributes, and the comments of its fields are the descriptions that people read there.
pub trait Entity: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The collection's name in paths, such as `waf-configs`.
    const COLLECTION: &'static str;
    /// The `kind` of its documents, such as `waf-config`.
    const KIND: &'static str;
    /// What the ids begin with that the server gives: `<prefix>_<uuid>`.
    const ID_PREFIX: &'static str = Self::KIND;
    /// The one id of a collection that has exactly one entity, which exists with its defaults before it is written.
    const SINGLETON: Option<&'static str> = None;
    /// The words of a field `kind` that the collection has for itself. Its documents then do not carry
    /// [`Entity::KIND`]; the path or the folder says what they are, and where there is neither, one of these words.
    const OWN_KINDS: &'static [&'static str] = &[];
    /// The longest document in a request for one entity, in bytes, where that is more than `--max-body-bytes` allows; 0 where the
    /// general limit is enough.
    const MAX_DOCUMENT: usize = 0;

    /// What is wrong with the fields that their types do not say. Empty when nothing is.
    fn check(&self, head: &Head, refs: &dyn References) -> Vec<FieldProblem>;

    /// False where its owner has switched it off.
    fn is_enabled(&self) -> bool {
        true
    }

    /// Examines an enabled entity by what it leads to, whether a chain uses it or not, so that the writer gets the error. `None` where its
    /// own check says all there is to say.
    const EXAMINE: Option<Examine<Self>> = None;

    /// The longest ban that gateways may order because of it, in seconds; `None` where it leads to none. The control plane
    /// shortens longer ones: a gateway is not to be believed without limit. It counts where the entity is switched off as well, because
    /// a gateway may have ordered it before.
    fn longest_ban(&self) -> Option<u64> {
        None
    }

    /// What is set in it that this release does not use, beside what is said of its collection as a whole.
    fn unused(&self, _head: &Head) -> Vec<FieldProblem> {
        Vec::new()
    }

    /// What is read as something other than it says. It is told of entities that are switched off as well: the store keeps only what
    /// it is read as, so that the write that has it is the only one that can be warned.
    fn misread(&self) -> Vec<FieldProblem> {
        Vec::new()
    }

    /// Places in the schema of fields that this release does not use, and what is said of them there.
    fn unused_fields() -> Vec<(String, String)> {
        Vec::new()
    }

    /// The document to start a new entity from; without an id.
    fn template() -> Value {
        serde_json::from_value::<Self>(Value::Object(Map::new()))
            .and_then(serde_json::to_value)
            .unwrap_or(Value::Object(Map::new()))
    }
}

/// See [`Entity::EXAMINE`].
pub type Examine<T> = fn(&Item<T>, &View<'_>, &Tools) -> Result<Checked, Vec<FieldProblem>>;

/// The fields that all entities share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Head {
    /// Unique within the collection; 1 to 128 of `A-Z a-z 0-9 . _ -`, not beginning with `_`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9.-][A-Za-z0-9._-]{0,127}$"))]
    pub id: String,
    /// Its display name.
    pub name: String,
    /// Its purpose, for people.
    pub description: String,
    /// Words to search by.
    pub tags: Vec<String>,
    /// Free notes of its owner; the server keeps `created_at` and `updated_at` (RFC 3339) in it.
    pub metadata: BTreeMap<String, Value>,
}

/// An entity: its head and the fields of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<T> {
    /// What it shares with all entities.
    pub head: Head,
    /// The fields of its kind; also reached through `Deref`.
    pub body: T,
}

/// Answers whether something that an entity names exists.
pub trait References {
    /// Whether `collection` has an entity `id`. `None` when this release has no such collection, so that nothing can be
    /// said.
    fn exists(&self, collection: &str, id: &str) -> Option<bool>;

    /// The id in `collection` that is nearest to `id`, when one is near enough to be meant.
    fn nearest(&self, _collection: &str, _id: &str) -> Option<String> {
        None
    }

    /// The groups of gateways that `global-config` has. `None` where it is not known, so that nothing can be said.
    fn groups(&self) -> Option<Vec<String>> {
        None
    }
}

/// The entities of one collection, by id.
pub type Collection = BTreeMap<String, Slot>;

/// An entity with the revision of the change that wrote it.
#[derive(Clone)]
pub struct Slot {
    /// The global revision; 0 for a singleton that was never written, and for entities from files.
    pub revision: u64,
    /// The entity.
    pub entity: Arc<dyn AnyEntity>,
}

/// All entities at one revision.
pub trait EntitySource {
    /// An entity whose type does not matter.
    fn slot(&self, collection: &str, id: &str) -> Option<&Slot>;

    /// A collection as a whole; shared with every revision in which it is the same.
    fn collection(&self, collection: &str) -> Option<&Arc<Collection>>;

    /// Whether the store has an entity that this release cannot read, which is in no collection then. What belongs to it is kept.
    fn is_unreadable(&self, _collection: &str, _id: &str) -> bool {
        false
    }
}

/// An [`Item`] whose type is not known here.
pub trait AnyEntity: Any + Send + Sync {
    /// The fields that all entities share.
    fn head(&self) -> &Head;
    /// The whole document, every field written out, with [`secret::MASK`] in the place of each secret. For everything
    /// but the store.
    fn shown(&self) -> Value;
    /// The whole document with its secrets. For the store alone.
    fn stored(&self) -> Value;
    /// See [`Entity::check`]; checks the head as well.
    fn check(&self, refs: &dyn References) -> Vec<FieldProblem>;
    /// See [`Entity::is_enabled`].
    fn is_enabled(&self) -> bool;
    /// See [`Entity::unused`]; nothing where it is switched off.
    fn unused(&self) -> Vec<FieldProblem>;
    /// See [`Entity::misread`].
    fn misread(&self) -> Vec<FieldProblem>;
    /// See [`Entity::longest_ban`].
    fn longest_ban(&self) -> Option<u64>;
    /// For the way back to the typed [`Item`].
    fn as_any(&self) -> &dyn Any;
}

// === impl Item ===

impl<T> Deref for Item<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.body
    }
}

impl<T: Entity> AnyEntity for Item<T> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn shown(&self) -> Value {
        let mut document = Map::new();
        // Entities are plain data: writing them to a JSON value has no way to fail.
        for part in [serde_json::to_value(&self.head), serde_json::to_value(&self.body)] {
            if let Ok(Value::Object(fields)) = part {
                document.extend(fields);
            }
        }
        if T::OWN_KINDS.is_empty() {
            document.insert("kind".to_owned(), Value::from(T::KIND));
        }
        Value::Object(document)
    }

    fn stored(&self) -> Value {
        secret::revealed(|| self.shown())
    }

    fn check(&self, refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems: Vec<FieldProblem> = id_problem(&self.head.id).into_iter().collect();
        problems.extend(self.body.check(&self.head, refs));
        problems
    }

    fn is_enabled(&self) -> bool {
        self.body.is_enabled()
    }

    fn unused(&self) -> Vec<FieldProblem> {
        if self.body.is_enabled() { self.body.unused(&self.head) } else { Vec::new() }
    }

    fn misread(&self) -> Vec<FieldProblem> {
        self.body.misread()
    }

    fn longest_ban(&self) -> Option<u64> {
        self.body.longest_ban()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("revision", &self.revision).field("id", &self.entity.head().id).finish()
    }
}

impl fmt::Debug for dyn AnyEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entity").field("id", &self.head().id).finish_non_exhaustive()
    }
}

/// Why an id cannot be one: it goes into paths, file names and Envoy resource names as it is.
fn id_problem(id: &str) -> Option<FieldProblem> {
    let sane = (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && id.bytes().any(|byte| byte != b'.')
        // The service's own paths below a collection, such as `_count`.
        && !id.starts_with('_');
    (!sane).then(|| {
        FieldProblem::new("/id", format!("`{}` cannot be an id", id.escape_debug()))
            .expected("1 to 128 characters of A-Z a-z 0-9 . _ -, not beginning with _")
    })
}

/// Checks a reference by id to an entity of `collection`.
#[must_use]
pub fn reference(refs: &dyn References, collection: &str, id: &str, pointer: String) -> Option<FieldProblem> {
    (refs.exists(collection, id) == Some(false)).then(|| {
        let hint = refs.nearest(collection, id).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        let message = format!("there is no entity `{}` in {collection}{hint}", id.escape_debug());
        FieldProblem::new(pointer, message).expected(format!("the id of an entity in {collection}"))
    })
}
