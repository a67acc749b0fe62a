//! The collections of this release.

use std::sync::LazyLock;

use serde_json::Value;

use super::plugins::ALL;
use super::unused::collection_note;
use super::{AlertRule, GlobalConfig, Kind, Route, did_you_mean};

/// The collections that belong to no plugin, one line each.
static CORE: &[Kind] = &[Kind::of::<AlertRule>(), Kind::of::<Route>(), Kind::of::<GlobalConfig>()];

/// Every collection: those of plugins, then the others.
pub static KINDS: LazyLock<Vec<Kind>> =
    LazyLock::new(|| ALL.iter().flat_map(|plugin| plugin.kinds).chain(CORE).copied().collect());

/// Every collection but those of examples, for pages of the documentation.
pub fn documented() -> impl Iterator<Item = &'static Kind> {
    let is_example = |kind: &Kind| {
        let own =
            |plugin: &&kit::Plugin| plugin.example && plugin.kinds.iter().any(|own| own.collection == kind.collection);
        ALL.iter().any(own)
    };
    KINDS.iter().filter(move |kind| !is_example(kind))
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

/// The schemas of [`KINDS`], in their order: reads check their parameters against them, and making one takes longer than an answer.
static SCHEMAS: LazyLock<Vec<Value>> =
    LazyLock::new(|| KINDS.iter().map(|kind| kind.schema(collection_note(kind.collection).as_deref())).collect());

/// The JSON Schema of a collection's documents, see [`Kind::schema`]; it says so where nothing in this release uses them. `null` for
/// a collection that is not among [`KINDS`].
#[must_use]
pub fn schema(kind: &Kind) -> &'static Value {
    let mut schemas = KINDS.iter().zip(SCHEMAS.iter());
    schemas.find(|(own, _)| own.collection == kind.collection).map_or(&Value::Null, |(_, schema)| schema)
}
