//! From what is known of values to a JSON Schema.

use serde_json::{Map, Value, json};

use crate::names::is_sensitive;
use crate::number::number;
use crate::shape::{Lists, Objects, Property, Shape, flat};
use crate::tally::piles_up;
use crate::{Room, names};

/// The objects that have a property, at least, for its name to be written.
pub(crate) const NAMED: u64 = 3;

/// The probability that the next observation agrees, after `count` that did: Laplace's rule of succession.
pub(crate) fn confidence(count: u64) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "shown with four digits")]
    let share = (count as f64 + 1.0) / (count as f64 + 2.0);
    json!((share * 10_000.0).round() / 10_000.0)
}

/// Adds how much was seen.
pub(crate) fn mark(schema: &mut Map<String, Value>, count: u64) {
    schema.insert("x-evidence".to_owned(), json!(count));
    schema.insert("x-confidence".to_owned(), confidence(count));
}

/// The schema of values.
pub(crate) fn schema(shape: &Shape, evidence: u64, sensitive: bool) -> Value {
    let mut kinds: Vec<&str> = Vec::new();
    let mut out = Map::new();
    let mut parts = Map::new();
    if shape.booleans > 0 {
        kinds.push("boolean");
    }
    if let Some(numbers) = &shape.numbers {
        kinds.push(if numbers.are_integers() { "integer" } else { "number" });
        numbers.describe(&mut parts, evidence, sensitive);
    }
    if let Some(texts) = &shape.texts {
        kinds.push("string");
        texts.describe(&mut parts, evidence, sensitive);
    }
    if let Some(lists) = &shape.lists {
        kinds.push("array");
        describe_list(lists, &mut parts, evidence, sensitive);
    }
    if let Some(objects) = &shape.objects {
        kinds.push("object");
        describe_object(objects, &mut parts, evidence);
    }
    let several = kinds.len() > 1;
    if shape.nulls > 0 {
        kinds.push("null");
    }
    // Too little, or a bit of everything: anything.
    if !kinds.is_empty() && kinds.len() < 5 {
        out.insert("type".to_owned(), if kinds.len() == 1 { json!(kinds.first()) } else { json!(kinds) });
    }
    if several {
        // What holds for one kind only must not bind the others: lists of values and formats of numbers and texts would.
        for key in ["enum", "x-enum-evidence", "format"] {
            parts.remove(key);
        }
    } else if shape.nulls > 0
        && let Some(Value::Array(values)) = parts.get_mut("enum")
    {
        values.push(Value::Null);
        if let Some(Value::Array(counts)) = parts.get_mut("x-enum-evidence") {
            counts.push(json!(shape.nulls));
        }
    }
    out.extend(parts);
    mark(&mut out, shape.count);
    Value::Object(out)
}

fn describe_list(lists: &Lists, out: &mut Map<String, Value>, evidence: u64, sensitive: bool) {
    if lists.any {
        return;
    }
    if lists.items.count > 0 {
        out.insert("items".to_owned(), schema(&lists.items, evidence, sensitive));
    }
    let Some(lengths) = lists.lengths.filter(|_| lists.count >= evidence) else { return };
    if lengths.low >= 1.0 {
        let low = if piles_up(lengths.low_seen, lists.count) { lengths.low } else { 1.0 };
        out.insert("minItems".to_owned(), number(low));
    }
    if lengths.high >= 1.0 && piles_up(lengths.high_seen, lists.count) && lists.count >= evidence.saturating_mul(5) {
        out.insert("maxItems".to_owned(), number(lengths.high));
    }
}

/// Properties that have a name, and the shape of all others.
struct Split<'o> {
    named: Vec<(&'o String, &'o Property)>,
    others: Shape,
    other_count: u64,
}

fn split(objects: &Objects) -> Split<'_> {
    let mut room = Room { left: 0, full: false };
    let mut found = Split { named: Vec::new(), others: objects.rest.clone(), other_count: objects.gone };
    // With many keys of which each is rare, the keys are values.
    let distinct = u64::try_from(objects.properties.len()).unwrap_or(u64::MAX);
    let common = objects.properties.values().map(|property| property.count).max().unwrap_or_default();
    let is_map = distinct >= 16 && common.saturating_mul(4) < objects.count && alike(objects);
    for (name, property) in &objects.properties {
        let rare = property.count < NAMED || (objects.gone > 0 && property.count.saturating_mul(50) < objects.count);
        if is_map || rare || !names::is_name(name) {
            found.other_count += property.count;
            found.others.merge(flat(property.shape.clone()), &mut room);
        } else {
            found.named.push((name, property));
        }
    }
    found
}

/// Whether the values of all properties are of one kind.
fn alike(objects: &Objects) -> bool {
    let mut room = Room { left: 0, full: false };
    let mut all = Shape::default();
    for property in objects.properties.values() {
        all.merge(flat(property.shape.clone()), &mut room);
    }
    all.kinds() == 1
}

fn describe_object(objects: &Objects, out: &mut Map<String, Value>, evidence: u64) {
    if objects.any {
        return;
    }
    let split = split(objects);
    let mut properties = Map::new();
    let mut required: Vec<&String> = Vec::new();
    for (name, property) in &split.named {
        properties.insert((*name).clone(), schema(&property.shape, evidence, is_sensitive(name)));
        if property.count == objects.count && objects.count >= evidence {
            required.push(name);
        }
    }
    if !properties.is_empty() {
        out.insert("properties".to_owned(), Value::Object(properties));
    }
    if !required.is_empty() {
        out.insert("required".to_owned(), json!(required));
    }
    let others = &split.others;
    if split.other_count == 0 {
        // Every name came several times, and none was new for long: there are no others.
        let settled = split.named.iter().all(|(_, property)| property.count >= NAMED);
        if settled && objects.count >= evidence.saturating_mul(2) {
            out.insert("additionalProperties".to_owned(), json!(false));
        }
    } else if others.count >= evidence && others.kinds() == 1 && others.nulls == 0 {
        let flat = flat(others.clone());
        out.insert("additionalProperties".to_owned(), schema(&flat, evidence, true));
    }
}
