//! The JSON Schema of a collection, derived from its type.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::entity::{Entity, Head};

/// The schema of the documents of `T`: the fields of its type with those that all entities share. `note` is said of the collection as
/// a whole.
pub(crate) fn of<T: Entity>(note: Option<&str>) -> Value {
    let mut schema = root::<T>();
    let mut shared = fields(root::<Head>(), "properties");
    // An id, where there is one, is never empty: a document without one leaves the field out.
    if let Some(id) = shared.get_mut("id").and_then(Value::as_object_mut) {
        id.shift_remove("default");
    }
    let own = schema.shift_remove("properties");
    let definitions = schema.shift_remove("$defs");
    let mut properties = Map::new();
    // Where the collection has a field of this name for itself, that is the one.
    if T::OWN_KINDS.is_empty() {
        let kind = json!({ "const": T::KIND, "description": "The kind of the entity; may be left out." });
        properties.insert("kind".to_owned(), kind);
    }
    properties.extend(shared);
    if let Some(Value::Object(own)) = own {
        properties.extend(own);
    }
    schema.insert("title".to_owned(), Value::from(T::KIND));
    if let Some(note) = note {
        let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        schema.insert("description".to_owned(), Value::from(format!("{text} **{}.**", capital(note)).trim()));
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    if let Some(definitions) = definitions {
        schema.insert("$defs".to_owned(), definitions);
    }
    let mut schema = Value::Object(schema);
    for (place, note) in T::unused_fields() {
        if let Some(Value::String(text)) = schema.pointer_mut(&place).and_then(|field| field.get_mut("description")) {
            text.push_str(&format!(" **{}.**", capital(&note)));
        }
    }
    schema
}

/// A sentence that begins with a capital.
fn capital(text: &str) -> String {
    text.split_at_checked(1).map_or(String::new(), |(first, rest)| first.to_ascii_uppercase() + rest)
}

/// The schema of a type as it is read.
pub(crate) fn plain<T: schemars::JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().into()
}

fn root<T: schemars::JsonSchema>() -> Map<String, Value> {
    match plain::<T>() {
        Value::Object(schema) => schema,
        // A schema of `true` or `false` says nothing about fields.
        _ => Map::new(),
    }
}

fn fields(mut schema: Map<String, Value>, name: &str) -> Map<String, Value> {
    match schema.shift_remove(name) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
