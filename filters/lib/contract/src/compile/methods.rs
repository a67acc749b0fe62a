//! The field `_method` of request bodies: what a document says of it.

use serde_json::{Map, Value};

use super::references::join;
use super::schema::Compiler;
use crate::method::{METHODS, names_method};

/// The most schemas of one media type that are looked through for the field.
const MAX_SCHEMAS: usize = 100;

impl Compiler<'_> {
    /// The methods that a field `_method` of a body may name, where a schema of one of its media types declares that field.
    pub(super) fn declared_methods(&mut self, pointer: &str, body: &Map<String, Value>) -> Vec<u32> {
        let content = body.get("content").and_then(Value::as_object).into_iter().flatten();
        let mut methods = Vec::new();
        for (range, _) in content {
            let schema = join(&join(&join(pointer, "content"), range), "schema");
            let Some(field) = self.method_field(schema) else { continue };
            let values = self.followed(&field).and_then(|(_, field)| {
                let listed = field.get("enum").and_then(Value::as_array).map(Vec::as_slice);
                listed.or_else(|| field.get("const").map(std::slice::from_ref))
            });
            let takes = |method: &&[u8]| {
                let is = |value: &Value| value.as_str().is_some_and(|own| own.as_bytes().eq_ignore_ascii_case(method));
                values.is_none_or(|values| values.iter().any(is))
            };
            methods.extend(METHODS.into_iter().filter(takes).map(|method| self.text(method)));
        }
        methods.sort_unstable();
        methods.dedup();
        methods
    }

    /// The place of a schema's field `_method`, also of one of the schemas that it is made of.
    fn method_field(&self, schema: String) -> Option<String> {
        let mut due = vec![schema];
        for _ in 0..MAX_SCHEMAS {
            let Some((place, schema)) = self.followed(&due.pop()?) else { continue };
            let own = schema.get("properties").and_then(Value::as_object);
            if let Some(name) = own.and_then(|own| own.keys().find(|name| names_method(name.as_bytes()))) {
                return Some(join(&join(&place, "properties"), name));
            }
            for key in ["allOf", "anyOf", "oneOf"] {
                let parts = schema.get(key).and_then(Value::as_array).map_or(0, Vec::len);
                due.extend((0..parts.min(MAX_SCHEMAS)).map(|part| format!("{place}/{key}/{part}")));
            }
        }
        None
    }
}
