//! From the bytes of a file to a value, within limits.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::ImportError;

/// The bytes of a file, at most.
pub const MAX_BYTES: usize = 50 << 20;
/// Values in a file, at most: objects, lists and what is in them.
const MAX_NODES: usize = 3_000_000;
/// Objects and lists within each other, at most.
const MAX_DEPTH: usize = 120;

/// Reads JSON, or YAML where the file does not begin with a bracket. A key that is twice in an object is an error: which of both
/// holds depends on the reader. Errors have no part of the text, which may be a secret.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, ImportError> {
    if bytes.len() > MAX_BYTES {
        return Err(ImportError::whole(format!("the file has more than {MAX_BYTES} bytes")));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ImportError::whole(format!("the file is not UTF-8: see byte {}", error.valid_up_to())))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match text.trim_start().bytes().next() {
        None => Err(ImportError::whole("the file is empty")),
        Some(b'{' | b'[') => json(text),
        Some(_) => yaml(text),
    }
}

fn json(text: &str) -> Result<Value, ImportError> {
    let mut nodes = MAX_NODES;
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Bounded { nodes: &mut nodes, depth: MAX_DEPTH }.deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| ImportError::whole(format!("the file is no JSON that can be used: {error}")))
}

fn yaml(text: &str) -> Result<Value, ImportError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(MAX_BYTES),
            max_nodes: MAX_NODES,
            max_events: 3 * MAX_NODES,
            max_depth: MAX_DEPTH,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let message = error.without_snippet().to_string();
        let first: String = message.lines().next().unwrap_or_default().chars().take(200).collect();
        ImportError::whole(format!("the file is no YAML that can be used: {first}"))
    })
}

/// Reads a value while there is room.
struct Bounded<'a> {
    nodes: &'a mut usize,
    depth: usize,
}

impl Bounded<'_> {
    fn inner<E: serde::de::Error>(&mut self) -> Result<Bounded<'_>, E> {
        let depth =
            self.depth.checked_sub(1).ok_or_else(|| E::custom(format_args!("it is nested deeper than {MAX_DEPTH}")))?;
        Ok(Bounded { nodes: self.nodes, depth })
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        *self.nodes = self
            .nodes
            .checked_sub(1)
            .ok_or_else(|| D::Error::custom(format_args!("it has more than {MAX_NODES} values")))?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = access.next_element_seed(self.inner()?)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(self.inner()?)?;
            if fields.insert(key, value).is_some() {
                return Err(A::Error::custom("a key is twice in an object"));
            }
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8]) -> String {
        parse(bytes).unwrap_err().message
    }

    #[test]
    fn json_and_yaml_are_read() {
        let value = serde_json::json!({"a": [1, -2, 1.5, "x", true, null]});
        assert_eq!(parse(br#"{"a": [1, -2, 1.5, "x", true, null]}"#).unwrap(), value);
        assert_eq!(parse("\u{feff}# text\na: [1, -2, 1.5, x, true, null]\n".as_bytes()).unwrap(), value);
        assert_eq!(parse(b"a: &x {b: 1}\nc: *x\n").unwrap()["c"]["b"], 1);
    }

    #[test]
    fn hostile_text_is_refused_without_quoting_it() {
        assert!(refused(b" \n").contains("empty"));
        assert!(refused(b"{\"a\": \"\xff\"}").contains("not UTF-8: see byte 7"));
        assert!(refused(br#"{"secret": 1, "secret": 2}"#).contains("twice"));
        let twice = refused(b"key: hunter2\nkey: hunter3\n");
        assert!(twice.contains("duplicate") && !twice.contains("hunter"), "{twice}");
        assert!(refused(br#"{"a": 1} x"#).contains("no JSON"));
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
            assert!(refused(deep.as_bytes()).contains("no JSON"), "{open}");
        }
        let deep = format!("x: {}1{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(refused(deep.as_bytes()).contains("no YAML"));
        assert!(refused(format!("[{}1]", "1,".repeat(MAX_NODES)).as_bytes()).contains("values"));
        assert!(refused(&vec![b' '; MAX_BYTES + 1]).contains("bytes"));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", ")));
        }
        assert!(refused(bomb.as_bytes()).contains("no YAML"));
    }
}
