//! Schemas as components of the document: each once, under a name.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use entities::Kind;

/// Schemas by name.
pub(super) type Schemas = Map<String, Value>;

/// The name of the schema of an object with some of an entity's fields: what `fields=` leaves.
pub const FIELDS: &str = "SomeFields";

/// The name of a collection's documents among the schemas: `waf-config` is `WafConfig`.
#[must_use]
pub fn component_name(kind: &Kind) -> String {
    kind.kind
        .split('-')
        .map(|word| word.split_at_checked(1).map_or(String::new(), |(first, rest)| first.to_ascii_uppercase() + rest))
        .collect()
}

/// The schema of a collection's documents as the API reads and writes them: a new one may have no id as well.
#[must_use]
pub fn entity_schema(kind: &Kind) -> Value {
    let mut schema = entities::registry::schema(kind).clone();
    if let Some(id) = schema.pointer_mut("/properties/id").and_then(Value::as_object_mut)
        && let Some(pattern) = id.get("pattern").and_then(Value::as_str)
    {
        let pattern = format!("^$|{pattern}");
        id.insert("type".to_owned(), json!(["string", "null"]));
        id.insert("pattern".to_owned(), pattern.into());
        if let Some(Value::String(text)) = id.get_mut("description") {
            text.push_str(" A new entity without one, or with an empty one, gets one.");
        }
    }
    schema
}

/// An object with the fields that were asked for.
#[must_use]
pub fn part_schema() -> Value {
    json!({
        "type": "object",
        "description": "The fields that `fields` names, those that the entity has; a field of an object within by its whole \
                        name, as in `metadata.team`.",
        "additionalProperties": true,
    })
}

/// The schema of a type as it is read.
pub(super) fn read_schema<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().into()
}

/// The schema of a type as it is written.
pub(super) fn written_schema<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().into()
}

/// Adds a root schema under `name`, and its definitions under theirs. A definition whose name another schema has gets
/// `name` in front.
pub(super) fn add(schemas: &mut Schemas, name: &str, mut schema: Value) {
    let mut definitions = Map::new();
    if let Some(root) = schema.as_object_mut() {
        root.shift_remove("$schema");
        if let Some(Value::Object(found)) = root.shift_remove("$defs") {
            definitions = found;
        }
    }
    let names: Vec<String> = definitions.keys().cloned().collect();
    let plain = |definition: &Value| rewritten(definition.clone(), &|found| found.to_owned());
    let taken = |found: &str| {
        found == name
            || schemas.get(found).is_some_and(|known| definitions.get(found).is_some_and(|own| plain(own) != *known))
    };
    let renamed: Vec<String> = names.iter().filter(|found| taken(found)).cloned().collect();
    let rename = |found: &str| {
        if renamed.iter().any(|other| other == found) { format!("{name}{found}") } else { found.to_owned() }
    };
    for (found, definition) in &definitions {
        schemas.insert(rename(found), rewritten(definition.clone(), &rename));
    }
    schemas.insert(name.to_owned(), rewritten(schema, &rename));
}

/// A schema of a plugin's with its references to named schemas ([`kit::NamedSchema::reference`]) turned into those to components.
pub(crate) fn with_components(schema: Value) -> Value {
    rewritten(schema, &|name| name.to_owned())
}

/// A schema with its references to `$defs` turned into those to components.
fn rewritten(schema: Value, rename: &dyn Fn(&str) -> String) -> Value {
    match schema {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| match (key.as_str(), &value) {
                ("$ref", Value::String(target)) => {
                    let target = target
                        .strip_prefix("#/$defs/")
                        .map_or_else(|| target.clone(), |found| format!("#/components/schemas/{}", rename(found)));
                    (key, Value::from(target))
                }
                // What is shown masked is in answers all the same, and that is what the word would deny.
                ("writeOnly", Value::Bool(true)) => ("format".to_owned(), "password".into()),
                _ => (key, rewritten(value, rename)),
            });
            Value::Object(fields.collect())
        }
        Value::Array(entries) => Value::Array(entries.into_iter().map(|entry| rewritten(entry, rename)).collect()),
        other => other,
    }
}
