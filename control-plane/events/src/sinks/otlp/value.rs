//! JSON as values of OTLP.

use serde_json::{Number, Value};

use super::proto::{AnyValue, ArrayValue, KeyValue, KeyValueList, Typed};

/// How deep arrays and the objects in them may be nested; below that a value is its JSON text. Decoders of protobuf refuse more than 100
/// messages in each other, and with the one value all events of the request.
const MAX_DEPTH: u32 = 8;

/// Text as a value.
pub(super) fn text(text: impl Into<String>) -> AnyValue {
    AnyValue { value: Some(Typed::String(text.into())) }
}

/// Any value with its type.
pub(super) fn typed(value: &Value) -> AnyValue {
    any(value, MAX_DEPTH)
}

fn any(value: &Value, depth: u32) -> AnyValue {
    let typed = match value {
        Value::Null => return AnyValue { value: None },
        Value::Bool(bool) => Typed::Bool(*bool),
        Value::Number(number) => number_of(number),
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
fn number_of(number: &Number) -> Typed {
    number.as_i64().map_or_else(|| Typed::Double(number.as_f64().unwrap_or_default()), Typed::Int)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_nested_too_deep_is_text() {
        let mut deep = json!("bottom");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let bytes = prost::Message::encode_to_vec(&typed(&deep));
        let mut value: AnyValue = prost::Message::decode(bytes.as_slice()).unwrap();
        let mut depth = 0;
        while let Some(Typed::Array(list)) = value.value {
            value = list.values[0].clone();
            depth += 1;
        }
        let Some(Typed::String(text)) = value.value else { panic!("{depth}") };
        assert_eq!((depth, text.matches('[').count()), (MAX_DEPTH, 92));
    }
}
