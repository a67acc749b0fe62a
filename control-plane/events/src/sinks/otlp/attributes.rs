//! The attributes of a record, in bounds that follow from the length of its event.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::proto::{AnyValue, KeyValue};
use super::value::{text, typed};

/// The longest name of an attribute, in bytes.
const MAX_NAME: usize = 256;
/// The most attributes of a record.
const MAX_ATTRIBUTES: usize = 1024;
/// The names of all attributes together have so many bytes for each byte of the event: the name of an object is in those of all its
/// fields, so that without a bound they grow with the square of the event.
const NAMES_PER_BYTE: usize = 4;
/// What they may have in addition, for the fields that the exporter adds.
const NAMES_BEYOND: usize = 1024;

/// Attributes with unique names, as OTLP demands.
#[derive(Debug)]
pub(super) struct Attributes {
    pub(super) list: Vec<KeyValue>,
    /// The number of attributes that are left out: they have no name, one that another attribute has already, or one that is too long,
    /// or there are too many.
    pub(super) dropped: u32,
    names: HashSet<String>,
    /// The bytes that further names may have.
    room: usize,
}

/// A bound is exceeded.
struct Full;

/// What there was before a field.
struct Mark {
    attributes: usize,
    dropped: u32,
    room: usize,
}

impl Attributes {
    /// The fields of an event of `bytes` bytes: those of objects in it under dotted names, without those that are null. An object whose
    /// fields exceed a bound is one attribute, its JSON.
    pub(super) fn of(event: &Map<String, Value>, bytes: usize) -> Attributes {
        let room = bytes.saturating_mul(NAMES_PER_BYTE).saturating_add(NAMES_BEYOND);
        let mut attributes = Attributes { list: Vec::new(), dropped: 0, names: HashSet::new(), room };
        for (name, value) in event {
            let mark = Mark { attributes: attributes.list.len(), dropped: attributes.dropped, room: attributes.room };
            if attributes.add(name.clone(), value).is_err() {
                attributes.take_back(&mark);
                attributes.add_whole(name, value);
            }
        }
        attributes
    }

    fn add(&mut self, name: String, value: &Value) -> Result<(), Full> {
        match value {
            Value::Null => {}
            Value::Object(_) if name.len() > MAX_NAME => return Err(Full),
            Value::Object(fields) => {
                for (inner, value) in fields {
                    let name = self.below(&name, inner)?;
                    self.add(name, value)?;
                }
            }
            value => self.put(name, || typed(value))?,
        }
        Ok(())
    }

    /// The name of a field of an object. Every name takes its bytes of the room, also that of a field without a value: making it is work.
    fn below(&mut self, prefix: &str, name: &str) -> Result<String, Full> {
        let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        self.room = self.room.checked_sub(name.len()).ok_or(Full)?;
        Ok(name)
    }

    fn put(&mut self, name: String, value: impl FnOnce() -> AnyValue) -> Result<(), Full> {
        if name.len() > MAX_NAME || self.list.len() >= MAX_ATTRIBUTES {
            return Err(Full);
        }
        if !name.is_empty() && self.names.insert(name.clone()) {
            self.list.push(KeyValue { key: name, value: Some(value()) });
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
        Ok(())
    }

    /// Adds an object that has too much for attributes of its own.
    fn add_whole(&mut self, name: &str, value: &Value) {
        let fits = value.is_object() && self.put(name.to_owned(), || text(value.to_string())).is_ok();
        if !fits {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    fn take_back(&mut self, mark: &Mark) {
        for attribute in self.list.drain(mark.attributes..) {
            self.names.remove(&attribute.key);
        }
        (self.dropped, self.room) = (mark.dropped, mark.room);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::proto::{KeyValueList, Typed};
    use super::*;

    fn attributes(event: &Value) -> Attributes {
        Attributes::of(event.as_object().unwrap(), event.to_string().len())
    }

    fn names(found: &Attributes) -> Vec<&str> {
        found.list.iter().map(|attribute| attribute.key.as_str()).collect()
    }

    fn value(found: &Attributes, at: usize) -> Typed {
        found.list[at].value.clone().unwrap().value.unwrap()
    }

    #[test]
    fn objects_become_dotted_names_and_values_keep_their_types() {
        let event = json!({
            "a": { "b": { "text": "x", "int": -3, "whole": 2.0, "big": u64::MAX }, "none": null, "empty": {} },
            "yes": true,
            "list": ["x", 1, null, { "y": 0.5 }],
        });
        let found = attributes(&event);
        assert_eq!(names(&found), ["a.b.text", "a.b.int", "a.b.whole", "a.b.big", "yes", "list"]);
        let value = |at| value(&found, at);
        assert_eq!(value(0), Typed::String("x".to_owned()));
        assert_eq!((value(1), value(2), value(4)), (Typed::Int(-3), Typed::Double(2.0), Typed::Bool(true)));
        assert_eq!(value(3), Typed::Double(18_446_744_073_709_551_615.0));
        let Typed::Array(list) = value(5) else { panic!("{found:?}") };
        let half = KeyValue { key: "y".to_owned(), value: Some(AnyValue { value: Some(Typed::Double(0.5)) }) };
        let map = AnyValue { value: Some(Typed::Map(KeyValueList { values: vec![half] })) };
        let one = AnyValue { value: Some(Typed::Int(1)) };
        assert_eq!(list.values, [text("x"), one, AnyValue { value: None }, map]);
    }

    #[test]
    fn a_name_is_there_once() {
        let found = attributes(&json!({ "a.b": 1, "a": { "b": 2, "": 3 }, "": 4 }));
        assert_eq!((names(&found), found.dropped), (vec!["a.b", "a."], 2));
    }

    #[test]
    fn an_object_that_exceeds_a_bound_is_text_and_the_others_are_not_touched() {
        let many: Map<String, Value> = (0..=MAX_ATTRIBUTES).map(|number| (format!("{number}"), json!(1))).collect();
        // Each name is short enough, and all of them together are four times as long as the event.
        let wide: Map<String, Value> = (0..600).map(|number| (format!("{number}"), json!(1))).collect();
        let wide = json!({ "x".repeat(MAX_NAME / 2): wide });
        let long = "n".repeat(MAX_NAME + 1);
        let event =
            json!({ "first": 1, "many": many, "wide": wide, long.clone(): 2, "o": { long: 3 }, "last": { "a": 4 } });
        let found = attributes(&event);
        assert_eq!((names(&found), found.dropped), (vec!["first", "many", "wide", "o", "last.a"], 1));
        for (at, name) in [(1, "many"), (2, "wide"), (3, "o")] {
            assert_eq!(value(&found, at), Typed::String(event[name].to_string()), "{name}");
        }
    }

    #[test]
    fn what_is_beyond_the_number_of_attributes_is_counted() {
        let event: Map<String, Value> = (0..MAX_ATTRIBUTES + 7).map(|number| (format!("{number}"), json!(1))).collect();
        let found = Attributes::of(&event, 100_000);
        assert_eq!((found.list.len(), found.dropped), (MAX_ATTRIBUTES, 7));
    }
}
