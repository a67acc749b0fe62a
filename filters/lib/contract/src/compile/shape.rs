//! What types the value of a parameter may have, so that its text can be read as one of them.

use serde_json::Value;

use super::schema::Compiler;
use crate::record::{FieldTypes, types};

/// The deepest combination of schemas that is looked into.
const MAX_DEPTH: usize = 8;

/// The shape of a parameter's value.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// All types that it may have.
    pub(super) types: u32,
    /// The types of its items.
    pub(super) items: u32,
    /// The types of its properties.
    pub(super) fields: Vec<FieldTypes>,
    /// It takes other properties as well.
    pub(super) open: bool,
}

/// The shape of the schema at a place.
pub(super) fn shape(compiler: &mut Compiler<'_>, pointer: &str) -> Shape {
    let types = mask(compiler, pointer, 0);
    let items = find(compiler, pointer, "items", 0).map_or(types::ANY, |items| mask(compiler, &items, 0));
    let mut shape = Shape { types, items, ..Shape::default() };
    let mut names = Vec::new();
    shape.open = properties(compiler, pointer, 0, &mut names);
    for (name, place) in names {
        let own = mask(compiler, &place, 0);
        let list = own & types::ARRAY != 0;
        let own = if list {
            find(compiler, &place, "items", 0).map_or(types::ANY, |items| mask(compiler, &items, 0))
        } else {
            own
        };
        let name = compiler.text(name.as_bytes());
        shape.fields.push(FieldTypes { name, types: own, list });
    }
    shape
}

fn branches(compiler: &Compiler<'_>, pointer: &str, keys: &[&str]) -> Vec<String> {
    let schema = compiler.at(pointer).and_then(Value::as_object);
    let all = keys.iter().flat_map(|key| {
        let count = schema.and_then(|schema| schema.get(*key)?.as_array()).map_or(0, Vec::len).min(32);
        (0..count).map(move |place| format!("{pointer}/{key}/{place}"))
    });
    all.collect()
}

fn mask(compiler: &Compiler<'_>, pointer: &str, depth: usize) -> u32 {
    let Some((place, schema)) = compiler.followed(pointer).filter(|_| depth < MAX_DEPTH) else { return types::ANY };
    let null = if schema.get("nullable") == Some(&Value::Bool(true)) { types::NULL } else { 0 };
    let named = compiler.types(schema);
    if named != 0 {
        return named | null;
    }
    let alternatives = branches(compiler, &place, &["oneOf", "anyOf"]);
    if !alternatives.is_empty() {
        return alternatives.iter().fold(null, |all, branch| all | mask(compiler, branch, depth + 1));
    }
    let parts = branches(compiler, &place, &["allOf"]);
    if !parts.is_empty() {
        return parts
            .iter()
            .fold(types::ANY, |all, part| all & (mask(compiler, part, depth + 1) | types::STRICT_INTEGER))
            | null;
    }
    let of = |value: &Value| match value {
        Value::Null => types::NULL,
        Value::Bool(_) => types::BOOLEAN,
        Value::Number(_) => types::NUMBER,
        Value::String(_) => types::STRING,
        Value::Array(_) => types::ARRAY,
        Value::Object(_) => types::OBJECT,
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().fold(null, |all, value| all | of(value));
    }
    if let Some(constant) = schema.get("const") {
        return of(constant);
    }
    if schema.contains_key("properties") {
        return types::OBJECT | null;
    }
    if schema.contains_key("items") {
        return types::ARRAY | null;
    }
    types::ANY
}

/// The first place of a keyword in a schema and those that it combines.
fn find(compiler: &Compiler<'_>, pointer: &str, key: &str, depth: usize) -> Option<String> {
    let (place, schema) = compiler.followed(pointer).filter(|_| depth < MAX_DEPTH)?;
    if schema.get(key).is_some_and(Value::is_object) {
        return Some(format!("{place}/{key}"));
    }
    let parts = branches(compiler, &place, &["allOf", "oneOf", "anyOf"]);
    parts.iter().find_map(|part| find(compiler, part, key, depth + 1))
}

/// Collects properties; whether others are taken.
fn properties(compiler: &Compiler<'_>, pointer: &str, depth: usize, names: &mut Vec<(String, String)>) -> bool {
    let Some((place, schema)) = compiler.followed(pointer).filter(|_| depth < MAX_DEPTH) else { return true };
    for (name, _) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if !names.iter().any(|(known, _)| known == name) {
            names.push((name.clone(), super::references::join(&format!("{place}/properties"), name)));
        }
    }
    for part in branches(compiler, &place, &["allOf", "oneOf", "anyOf"]) {
        properties(compiler, &part, depth + 1, names);
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(open)) => *open,
        Some(_) => true,
        // Said of nothing, it is open; a parameter that lists its properties means those.
        None => names.is_empty(),
    }
}
