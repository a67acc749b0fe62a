//! A collection whose type is not known.

use std::sync::Arc;

use serde_json::Value;

use crate::entity::{AnyEntity, Entity};
use crate::plugin::Checked;
use crate::{FieldProblem, Tools, View, parse, schema};

/// Reads a document into an entity.
type Reader = fn(Value) -> Result<Arc<dyn AnyEntity>, Vec<FieldProblem>>;

/// A collection, its type forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The collection's name in paths.
    pub collection: &'static str,
    /// The `kind` of its documents.
    pub kind: &'static str,
    /// What generated ids begin with.
    pub id_prefix: &'static str,
    /// The one id of a collection with exactly one entity.
    pub singleton: Option<&'static str>,
    /// The words of a field `kind` that the collection has for itself, see [`Entity::OWN_KINDS`].
    pub own_kinds: &'static [&'static str],
    /// The longest document in a request for one entity, in bytes; 0 where the general limit is enough.
    pub max_document: usize,
    reader: Reader,
    template: fn() -> Value,
    schema: fn(Option<&str>) -> Value,
    examine: Option<Examine>,
}

/// Examines the entity with an id by what it leads to; see [`Entity::EXAMINE`].
type Examine = fn(&str, &View<'_>, &Tools) -> Result<Checked, Vec<FieldProblem>>;

impl Kind {
    /// The collection of a type.
    #[must_use]
    pub const fn of<T: Entity>() -> Kind {
        Kind {
            collection: T::COLLECTION,
            kind: T::KIND,
            id_prefix: T::ID_PREFIX,
            singleton: T::SINGLETON,
            own_kinds: T::OWN_KINDS,
            max_document: T::MAX_DOCUMENT,
            reader: parse::read::<T>,
            template: T::template,
            schema: schema::of::<T>,
            examine: if T::EXAMINE.is_some() { Some(examine::<T>) } else { None },
        }
    }

    /// Reads a document. It must have its id; see [`AnyEntity::check`] for what the types do not say.
    ///
    /// # Errors
    /// Every field that could be found wrong, by JSON pointer.
    pub fn read(&self, document: Value) -> Result<Arc<dyn AnyEntity>, Vec<FieldProblem>> {
        (self.reader)(document)
    }

    /// The document to start a new entity from.
    #[must_use]
    pub fn template(&self) -> Value {
        let mut template = (self.template)();
        if let Some(fields) = template.as_object_mut()
            && self.own_kinds.is_empty()
        {
            fields.insert("kind".to_owned(), Value::from(self.kind));
        }
        template
    }

    /// The JSON Schema (2020-12) of the collection's documents: their shape, with descriptions and defaults. What only
    /// [`AnyEntity::check`] finds, references above all, it does not know. `note` is said of the collection as a whole.
    #[must_use]
    pub fn schema(&self, note: Option<&str>) -> Value {
        (self.schema)(note)
    }

    /// Whether its entities are examined by what they lead to.
    #[must_use]
    pub fn is_examined(&self) -> bool {
        self.examine.is_some()
    }

    /// Examines the entity with this id by what it leads to; nothing is said where there is none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn examine(&self, id: &str, view: &View<'_>, tools: &Tools) -> Result<Checked, Vec<FieldProblem>> {
        self.examine.map_or_else(|| Ok(Checked::default()), |examine| examine(id, view, tools))
    }

    /// Gives a document without an id a new one.
    pub fn give_id(&self, document: &mut Value) {
        if let Some(fields) = document.as_object_mut()
            && fields.get("id").is_none_or(|id| id.is_null() || id.as_str() == Some(""))
        {
            fields.insert("id".to_owned(), Value::from(self.new_id()));
        }
    }

    /// Why the entities of this kind cannot be deleted, where they cannot.
    #[must_use]
    pub fn undeletable(&self) -> Option<FieldProblem> {
        self.singleton.map(|_| {
            let message = format!("the {} always exists; PUT `{{}}` to go back to its defaults", self.kind);
            FieldProblem::new("", message)
        })
    }

    /// A new id of this kind.
    #[must_use]
    pub fn new_id(&self) -> String {
        match self.singleton {
            Some(id) => id.to_owned(),
            None => format!("{}_{}", self.id_prefix, uuid::Uuid::new_v4()),
        }
    }
}

fn examine<T: Entity>(id: &str, view: &View<'_>, tools: &Tools) -> Result<Checked, Vec<FieldProblem>> {
    match (T::EXAMINE, view.get::<T>(id)) {
        (Some(examine), Some(item)) => examine(item, view, tools),
        _ => Ok(Checked::default()),
    }
}
