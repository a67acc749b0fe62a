//! From a JSON document to a typed entity, with errors that say which field and what it should be.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};

use crate::entity::{AnyEntity, Entity, Head, Item, References};
use crate::problem::token;
use crate::{FieldProblem, did_you_mean};

/// The fields of [`Head`], which all collections share.
const HEAD_FIELDS: [&str; 5] = ["id", "name", "description", "tags", "metadata"];

/// Around the place of an error in a part of a document; no place has this character.
const NESTED: char = '\u{1}';

/// Reads a document as an entity of type `T`.
pub(crate) fn read<T: Entity>(document: Value) -> Result<Arc<dyn AnyEntity>, Vec<FieldProblem>> {
    let (head, fields) = split::<T>(document)?;
    match (typed::<Head>(head), typed::<T>(fields)) {
        (Ok(head), Ok(body)) => Ok(Arc::new(Item { head, body })),
        (head, body) => Err(head.err().into_iter().chain(body.err()).collect()),
    }
}

/// Reads a document as an item that is not stored, and checks it beside the entities there are; the first thing that is wrong.
pub fn unsaved<T: Entity>(document: Value, refs: &dyn References) -> Result<Item<T>, FieldProblem> {
    let first = |problems: Vec<FieldProblem>| {
        problems.into_iter().next().unwrap_or_else(|| FieldProblem::new("", "the document cannot be read"))
    };
    let (head, fields) = split::<T>(document).map_err(first)?;
    let item = Item { head: typed::<Head>(head)?, body: typed::<T>(fields)? };
    match item.body.check(&item.head, refs).into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(item),
    }
}

/// Takes the head's fields, and the `kind`, off the document.
fn split<T: Entity>(document: Value) -> Result<(Value, Value), Vec<FieldProblem>> {
    let mut fields = match document {
        Value::Object(fields) => fields,
        other => {
            let message = format!("a {} is an object, this is {}", T::KIND, name_of(&other));
            return Err(vec![FieldProblem::new("", message).expected("a JSON object")]);
        }
    };
    let is_own = |kind: &Value| !T::OWN_KINDS.is_empty() && kind.as_str() != Some(T::KIND);
    let kind = if fields.get("kind").is_some_and(is_own) { None } else { fields.shift_remove("kind") };
    if let Some(kind) = kind
        && kind.as_str() != Some(T::KIND)
    {
        let message = format!("documents of {} are of another kind", T::COLLECTION);
        return Err(vec![FieldProblem::new("/kind", message).expected(format!("`{}`, or no `kind` at all", T::KIND))]);
    }
    let mut head = Map::new();
    for name in HEAD_FIELDS {
        if let Some(value) = fields.shift_remove(name) {
            head.insert(name.to_owned(), value);
        }
    }
    Ok((Value::Object(head), Value::Object(fields)))
}

/// Reads a document as a type; the problem names the field.
///
/// # Errors
/// The first field that is not what the type has.
pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T, FieldProblem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let pointer = pointer(error.path());
        explain(pointer, &error.into_inner().to_string())
    })
}

/// Reads a field of an object whose type only its owner knows, within the `Deserialize` of the object: the error keeps its place.
///
/// # Errors
/// As of [`typed`], in a form that [`typed`] of the whole document understands.
pub(crate) fn nested<T: DeserializeOwned, E: serde::de::Error>(field: &str, value: Value) -> Result<T, E> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let pointer = pointer(error.path());
        E::custom(format!("{NESTED}/{}{pointer}{NESTED}{}", token(field), error.into_inner()))
    })
}

/// The problem of an unknown field; `known` are the fields that exist.
#[must_use]
pub fn unknown_field(pointer: String, field: &str, known: &[&str]) -> FieldProblem {
    let hint = match did_you_mean(field, known.iter().copied()) {
        Some(near) => format!(", did you mean `{near}`?"),
        None => String::new(),
    };
    FieldProblem::new(pointer, format!("unknown field `{}`{hint}", field.escape_debug())).expected(one_of(known))
}

fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => pointer.push_str(&format!("/{}", token(key))),
            // Variants are no step of the document, and an unknown segment comes after the last known one.
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

/// Turns serde's sentence into ours. Its form is part of serde's public behaviour for derived types; a sentence of
/// another form is passed on as it is.
fn explain(mut pointer: String, sentence: &str) -> FieldProblem {
    // A document within the document was read by itself: its error brings its own place, see [`nested`].
    let sentence = match sentence.strip_prefix(NESTED).and_then(|rest| rest.split_once(NESTED)) {
        Some((inner, sentence)) => {
            pointer.push_str(inner);
            sentence
        }
        None => sentence,
    };
    if let Some((field, known)) = quoted(sentence, "unknown field `", "`, expected ", "`, there are no fields") {
        let own = format!("/{}", token(field));
        if !pointer.ends_with(&own) {
            pointer.push_str(&own);
        }
        // At the top of a document the head's fields are known as well, though serde does not list them.
        let top = pointer.matches('/').count() == 1;
        let mut words = words(known);
        if top {
            words.extend(HEAD_FIELDS);
        }
        return unknown_field(pointer, field, &words);
    }
    if let Some((word, known)) = quoted(sentence, "unknown variant `", "`, expected ", "`, there are no variants") {
        let words = words(known);
        let hint = match did_you_mean(word, words.iter().copied()) {
            Some(near) => format!(", did you mean `{near}`?"),
            None => String::new(),
        };
        let message = format!("unknown value `{}`{hint}", word.escape_debug());
        return FieldProblem::new(pointer, message).expected(one_of(&words));
    }
    if let Some(field) = sentence.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return FieldProblem::new(format!("{pointer}/{}", token(field)), format!("the field `{field}` is required"));
    }
    match sentence.rsplit_once(", expected ") {
        // A text where an object belongs may be a secret, and to repeat it helps nobody.
        Some((message, expected)) if plain(expected) == "an object" && message.contains(": string ") => {
            FieldProblem::new(pointer, "invalid type: string").expected("an object")
        }
        Some((message, expected)) => FieldProblem::new(pointer, message).expected(plain(expected)),
        None => FieldProblem::new(pointer, sentence),
    }
}

/// Rust's names for numbers mean nothing to the reader of an error.
fn plain(expected: &str) -> String {
    let plain = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 on",
        "i32" | "i64" => "a whole number",
        "f64" => "a number",
        "a map" => "an object",
        other => other.strip_prefix("struct ").map_or(other, |_| "an object"),
    };
    plain.to_owned()
}

/// The word between `start` and `middle`, and what follows.
fn quoted<'a>(sentence: &'a str, start: &str, middle: &str, end: &str) -> Option<(&'a str, &'a str)> {
    let rest = sentence.strip_prefix(start)?;
    // From the right: the word is the sender's and may hold anything, the list of known ones is ours.
    rest.rsplit_once(middle).or_else(|| rest.strip_suffix(end).map(|word| (word, "")))
}

/// The words in a list such as "one of `a`, `b`" or "`a` or `b`".
fn words(list: &str) -> Vec<&str> {
    list.split('`').skip(1).step_by(2).collect()
}

fn one_of(words: &[&str]) -> String {
    match words {
        [] => "no fields at all".to_owned(),
        [only] => format!("`{only}`"),
        several => format!("one of `{}`", several.join("`, `")),
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
