//! Properties that are for one side alone: `readOnly` and `writeOnly`.

use serde_json::Value;

use super::references::{Target, join};
use super::schema::Compiler;

/// The most steps from a schema to a property.
const MAX_DEPTH: usize = 6;
/// The most schemas of one `allOf` that are looked through.
const MAX_BRANCHES: usize = 32;
/// The most schemas that are looked through for one property.
const MAX_SCHEMAS: usize = 1000;

impl Compiler<'_> {
    /// Whether a property that a schema requires is for responses alone (`readOnly`), for requests alone (`writeOnly`): by the schema, or
    /// by those that are in one `allOf` with it.
    pub(super) fn sides(&self, pointer: &str, name: &str) -> (bool, bool) {
        let (mut place, mut left) = (pointer, MAX_SCHEMAS);
        for _ in 0..MAX_DEPTH {
            if let Some(found) = self.sides_below(place, name, 0, &mut left) {
                return found;
            }
            let parent = place.rsplit_once('/').filter(|(_, branch)| branch.bytes().all(|byte| byte.is_ascii_digit()));
            let Some(parent) = parent.and_then(|(list, _)| list.strip_suffix("/allOf")) else { break };
            place = parent;
        }
        (false, false)
    }

    /// The same of a schema and what it is made of, `left` schemas at most; `None` where none of it has the property.
    fn sides_below(&self, pointer: &str, name: &str, depth: usize, left: &mut usize) -> Option<(bool, bool)> {
        *left = left.checked_sub(1)?;
        let schema = self.at(pointer).and_then(Value::as_object).filter(|_| depth < MAX_DEPTH)?;
        if let Some(property) = schema.get("properties").and_then(|all| all.get(name)) {
            let place = join(&join(pointer, "properties"), name);
            return Some(self.flags(property, &place, 0));
        }
        if let Some(Target::Inside(target, _)) =
            schema.get("$ref").and_then(Value::as_str).map(|reference| self.target(reference, pointer))
            && let Some(found) = self.sides_below(&target, name, depth + 1, left)
        {
            return Some(found);
        }
        let branches = schema.get("allOf").and_then(Value::as_array).map_or(0, Vec::len).min(MAX_BRANCHES);
        let mut declared = None;
        for branch in 0..branches {
            match self.sides_below(&format!("{pointer}/allOf/{branch}"), name, depth + 1, left) {
                Some((false, false)) => declared = Some((false, false)),
                Some(found) => return Some(found),
                None => {}
            }
        }
        declared
    }

    fn flags(&self, schema: &Value, pointer: &str, depth: usize) -> (bool, bool) {
        let is = |key: &str| schema.get(key) == Some(&Value::Bool(true));
        let own = (is("readOnly"), is("writeOnly"));
        let reference =
            schema.get("$ref").and_then(Value::as_str).filter(|_| own == (false, false) && depth < MAX_DEPTH);
        match reference.map(|reference| self.target(reference, pointer)) {
            Some(Target::Inside(target, _)) => {
                self.at(&target).map_or((false, false), |schema| self.flags(schema, &target, depth + 1))
            }
            _ => own,
        }
    }
}
