//! The differences of two documents, field by field.

use serde::Serialize;
use serde_json::Value;

/// The characters of a value that are shown, at most.
const MAX_SHOWN: usize = 120;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where: a JSON pointer.
    pub pointer: String,
    /// What was there, in JSON; `None` where nothing was.
    pub before: Option<String>,
    /// What is there now.
    pub after: Option<String>,
}

/// The differences of two documents, in the order of the fields.
#[must_use]
pub fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(pointer: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                let step = name.replace('~', "~0").replace('/', "~1");
                compare(format!("{pointer}/{step}"), old.get(name), new.get(name), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                compare(format!("{pointer}/{index}"), old.get(index), new.get(index), found);
            }
        }
        _ => found.push(Difference { pointer, before: before.map(shown), after: after.map(shown) }),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_name_the_field() {
        let before = json!({"a": 1, "same": [1], "list": [1, {"x": 1}, 3], "gone": "g", "o": {"k/1": true}});
        let after = json!({"a": 2, "same": [1], "list": [1, {"x": 2}], "new": null, "o": {"k/1": false}});
        let shown: Vec<_> = differences(&before, &after)
            .into_iter()
            .map(|one| format!("{} {:?} {:?}", one.pointer, one.before, one.after).replace(['"', '\\'], ""))
            .collect();
        let expected = [
            "/a Some(1) Some(2)",
            "/list/1/x Some(1) Some(2)",
            "/list/2 Some(3) None",
            "/gone Some(g) None",
            "/o/k~11 Some(true) Some(false)",
            "/new None Some(null)",
        ];
        assert_eq!(shown, expected);
        assert!(differences(&before, &before).is_empty());
        let long = differences(&json!(0), &json!("ä".repeat(500)));
        assert_eq!(long[0].after.as_ref().unwrap().chars().count(), MAX_SHOWN + 1);
    }
}
