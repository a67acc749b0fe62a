//! JSON as values and attributes of OTLP.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::proto::{AnyValue, ArrayValue, KeyValue, KeyValueList, Typed};

/// How deep arrays and the objects in them may be nested; below that a value is its JSON text. Decoders of protobuf refuse more than 100
/// messages in each other, and with the one value all events of the request.
const MAX_DEPTH: u32 = 8;

/// Attributes with unique names, as OTLP demands.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    pub(super) list: Vec<KeyValue>,
    names: HashSet<String>,
    /// The number of attributes that are left out: they have no name, or one that another attribute has already.
    pub(super) dropped: u32,
}

impl Attributes {
    /// Adds the fields of an object: those of objects in it under dotted names, without those that are null.
    pub(super) fn flatten(&mut self, prefix: &str, fields: &Map<String, Value>) {
        for (name, value) in fields {
            let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match value {
                Value::Null => {}
                Value::Object(fields) => self.flatten(&name, fields),
                value if !name.is_empty() && self.names.insert(name.clone()) => {
                    self.list.push(KeyValue { key: name, value: Some(any(value, MAX_DEPTH)) });
                }
                _ => self.dropped = self.dropped.saturating_add(1),
            }
        }
    }
}

/// Text as a value.
pub(super) fn text(text: impl Into<String>) -> AnyValue {
    AnyValue { value: Some(Typed::String(text.into())) }
}

fn any(value: &Value, depth: u32) -> AnyValue {
    let typed = match value {
        Value::Null => return AnyValue { value: None },
        Value::Bool(bool) => Typed::Bool(*bool),
        Value::Number(number) => typed(number),
        Value::String(text) => Typed::String(text.clone()),
        nested if depth == 0 => Typed::String(nested.to_string()),
        Value::Array(items) => {
            Typed::Array(ArrayValue { values: items.iter().map(|item| any(item, depth - 1)).collect() })
        }
        Value::Object(fields) => {
            let field =
                |(name, value): (&String, &Value)| KeyValue { key: name.clone(), value: Some(any(value, depth - 1)) };
            Typed::Map(KeyValueList { values: fields.iter().map(field).collect() })
        }
    };
    AnyValue { value: Some(typed) }
}

/// An integer where it fits into 64 bits with a sign.
fn typed(number: &Number) -> Typed {
    number.as_i64().map_or_else(|| Typed::Double(number.as_f64().unwrap_or_default()), Typed::Int)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attributes(event: &Value) -> Attributes {
        let mut attributes = Attributes::default();
        attributes.flatten("", event.as_object().unwrap());
        attributes
    }

    #[test]
    fn objects_become_dotted_names_and_values_keep_their_types() {
        let event = json!({
            "a": { "b": { "text": "x", "int": -3, "whole": 2.0, "big": u64::MAX }, "none": null, "empty": {} },
            "yes": true,
            "list": ["x", 1, null, { "y": 0.5 }],
        });
        let found = attributes(&event);
        let names: Vec<&str> = found.list.iter().map(|attribute| attribute.key.as_str()).collect();
        assert_eq!(names, ["a.b.text", "a.b.int", "a.b.whole", "a.b.big", "yes", "list"]);
        let value = |at: usize| found.list[at].value.clone().unwrap().value.unwrap();
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
        let names: Vec<&str> = found.list.iter().map(|attribute| attribute.key.as_str()).collect();
        assert_eq!((names.as_slice(), found.dropped), (["a.b", "a."].as_slice(), 2));
    }

    #[test]
    fn what_is_nested_too_deep_is_text() {
        let mut deep = json!("bottom");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let found = attributes(&json!({ "deep": deep }));
        let bytes = prost::Message::encode_to_vec(&found.list[0]);
        let read: KeyValue = prost::Message::decode(bytes.as_slice()).unwrap();
        let mut value = read.value.unwrap();
        let mut depth = 0;
        while let Some(Typed::Array(list)) = value.value {
            value = list.values[0].clone();
            depth += 1;
        }
        let Some(Typed::String(text)) = value.value else { panic!("{depth}") };
        assert_eq!((depth, text.matches('[').count()), (MAX_DEPTH, 92));
    }
}
