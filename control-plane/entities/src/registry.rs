//! The collections of this release.

use std::sync::Arc;

use serde_json::Value;

use super::entity::{AnyEntity, Entity};
use super::{
    AlertRule, ApiContract, AsnDatabase, BotPolicy, ChallengeProvider, FieldProblem, GeoDatabase, GlobalConfig,
    HoneypotPolicy, MalwareScanner, Route, SvcBouncer, ThreatFeed, ThreatPolicy, WafConfig, WafRuleset, did_you_mean,
    parse, schema,
};

/// Every collection, one line each.
pub static KINDS: &[Kind] = &[
    Kind::of::<WafConfig>(),
    Kind::of::<WafRuleset>(),
    Kind::of::<ThreatPolicy>(),
    Kind::of::<ThreatFeed>(),
    Kind::of::<AsnDatabase>(),
    Kind::of::<GeoDatabase>(),
    Kind::of::<SvcBouncer>(),
    Kind::of::<BotPolicy>(),
    Kind::of::<ChallengeProvider>(),
    Kind::of::<HoneypotPolicy>(),
    Kind::of::<ApiContract>(),
    Kind::of::<AlertRule>(),
    Kind::of::<MalwareScanner>(),
    Kind::of::<Route>(),
    Kind::of::<GlobalConfig>(),
];

/// Reads a document into an entity.
type Reader = fn(Value) -> Result<Arc<dyn AnyEntity>, Vec<FieldProblem>>;

/// A collection, its type forgotten.
#[derive(Debug)]
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
    reader: Reader,
    template: fn() -> Value,
    schema: fn() -> Value,
}

impl Kind {
    /// The collection of a type.
    pub const fn of<T: Entity>() -> Kind {
        Kind {
            collection: T::COLLECTION,
            kind: T::KIND,
            id_prefix: T::ID_PREFIX,
            singleton: T::SINGLETON,
            own_kinds: T::OWN_KINDS,
            reader: parse::read::<T>,
            template: T::template,
            schema: schema::of::<T>,
        }
    }

    /// Reads a document. It must have its id; see [`super::AnyEntity::check`] for what the types do not say.
    ///
    /// # Errors
    /// Every field that could be found wrong, by JSON pointer.
    pub fn read(&self, document: Value) -> Result<Arc<dyn AnyEntity>, Vec<FieldProblem>> {
        (self.reader)(document)
    }

    /// The document to start a new entity from.
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
    /// [`super::AnyEntity::check`] finds, references above all, it does not know.
    pub fn schema(&self) -> Value {
        (self.schema)()
    }

    /// Gives a document without an id a new one.
    pub(super) fn give_id(&self, document: &mut Value) {
        if let Some(fields) = document.as_object_mut()
            && fields.get("id").is_none_or(|id| id.is_null() || id.as_str() == Some(""))
        {
            fields.insert("id".to_owned(), Value::from(self.new_id()));
        }
    }

    /// Why the entities of this kind cannot be deleted, where they cannot.
    pub(super) fn undeletable(&self) -> Option<FieldProblem> {
        self.singleton.map(|_| {
            let message = format!("the {} always exists; PUT `{{}}` to go back to its defaults", self.kind);
            FieldProblem::new("", message)
        })
    }

    /// A new id of this kind.
    pub fn new_id(&self) -> String {
        match self.singleton {
            Some(id) => id.to_owned(),
            None => format!("{}_{}", self.id_prefix, uuid::Uuid::new_v4()),
        }
    }
}

/// The collection with this name.
pub fn by_collection(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.collection == name)
}

/// The collection whose documents have this `kind`; the collection's own name is understood as well, and a word that
/// one collection alone has in a field `kind` of its own.
pub fn by_kind(name: &str) -> Option<&'static Kind> {
    let named = KINDS.iter().find(|kind| kind.kind == name || kind.collection == name);
    named.or_else(|| KINDS.iter().find(|kind| kind.own_kinds.contains(&name)))
}

/// What to say about a collection that does not exist.
pub fn unknown_collection(name: &str) -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.collection).collect();
    let hint = did_you_mean(name, names.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    let hint = hint.unwrap_or_else(|| format!("; there are: {}", names.join(", ")));
    format!("there is no collection `{}`{hint}", name.escape_debug())
}
