//! Operations of the API report: paths, methods and statuses, without schemas.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::Learned;
use crate::operation::method;
use crate::schema::{NAMED, confidence};

/// What a report adds to a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FromInventory {
    /// Operations that were added.
    pub added: usize,
    /// Operations that the document has already.
    pub known: usize,
    /// Operations that are left out: the backend answered too few calls with a success, or nothing says that the path exists.
    pub left_out: usize,
}

/// Adds to a document what an API report has beyond it: operations of contracts that are used, and confirmed paths outside of them.
///
/// # Errors
/// The value is no API report.
pub fn add_inventory(learned: &mut Learned, report: &Value) -> Result<FromInventory, String> {
    let routes = report
        .get("routes")
        .and_then(Value::as_array)
        .ok_or("there is no list `routes`: expected the API report as JSON")?;
    let mut outcome = FromInventory::default();
    let paths =
        learned.document.get_mut("paths").and_then(Value::as_object_mut).ok_or("the document has no `paths`")?;
    let mut by_shape: BTreeMap<String, String> = paths.keys().map(|path| (shape(path), path.clone())).collect();
    for route in routes {
        let listed = |name: &str| route.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let shadows = listed("shadows").iter().map(|shadow| (shadow, shadow.get("confirmed") == Some(&json!(true))));
        for (operation, exists) in listed("operations").iter().map(|operation| (operation, true)).chain(shadows) {
            let text = |name: &str| operation.get(name).and_then(Value::as_str).unwrap_or_default();
            let class = |name: &str| {
                operation.pointer(&format!("/statuses/{name}")).and_then(Value::as_u64).unwrap_or_default()
            };
            let accepted = class("2xx").saturating_add(class("3xx"));
            let Some(key) = method(text("method").as_bytes())
                .filter(|_| exists && accepted >= NAMED && text("path").starts_with('/'))
            else {
                outcome.left_out += 1;
                continue;
            };
            let (template, names) = template(text("path"));
            let path = by_shape.entry(shape(&template)).or_insert_with(|| template.clone()).clone();
            let item = paths.entry(path).or_insert_with(|| path_item(&names));
            let Some(item) = item.as_object_mut() else { continue };
            if item.contains_key(key) {
                outcome.known += 1;
                continue;
            }
            let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().filter(|name| class(name) > 0);
            let responses: Map<String, Value> = classes
                .map(|name| (name.to_uppercase(), json!({ "description": "Observed", "x-evidence": class(name) })))
                .collect();
            item.insert(
                key.to_owned(),
                json!({
                    "operationId": crate::document::operation_id(key, &template),
                    "x-evidence": accepted,
                    "x-confidence": confidence(accepted),
                    "x-source": "inventory",
                    "responses": responses,
                }),
            );
            outcome.added += 1;
        }
    }
    learned.paths = paths.len();
    learned.operations += outcome.added;
    Ok(outcome)
}

fn path_item(names: &[String]) -> Value {
    let parameters: Vec<Value> = names
        .iter()
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if parameters.is_empty() { json!({}) } else { json!({ "parameters": parameters }) }
}

/// A template without the names of its parameters.
fn shape(path: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for character in path.chars() {
        match character {
            '{' => {
                inside = true;
                out.push_str("{}");
            }
            '}' => inside = false,
            other if !inside => out.push(other),
            _ => {}
        }
    }
    out
}

/// A template with names that are unique in it, and these names.
fn template(path: &str) -> (String, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    let mut out = String::new();
    let mut rest = path;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, after)) = behind.split_once('}') else { break };
        let mut unique = name.to_owned();
        let mut number = 2;
        while names.contains(&unique) {
            unique = format!("{name}{number}");
            number += 1;
        }
        out.push_str(&format!("{before}{{{unique}}}"));
        names.push(unique);
        rest = after;
    }
    out.push_str(rest);
    (out, names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Learner, Options};

    #[test]
    fn what_is_used_and_confirmed_is_added_once() {
        let mut learned = Learner::new(Options::default()).finish();
        let operation = |method: &str, path: &str, ok: u64, confirmed: bool| {
            let statuses = json!({ "refused": 1, "1xx": 0, "2xx": ok, "3xx": 0, "4xx": 2, "5xx": 0 });
            json!({ "method": method, "path": path, "statuses": statuses, "confirmed": confirmed, "hits": ok })
        };
        let report = json!({ "routes": [{
            "operations": [operation("GET", "/users/{userId}", 9, false), operation("GET", "/never", 0, false)],
            "shadows": [
                operation("DELETE", "/users/{id}", 5, true), operation("GET", "/users/{id}", 5, true), operation("GET", "/a", 5, false),
                operation("GET", "/x/{id}/y/{id}", 5, true), operation("*", "(other paths)", 50, true),
            ],
        }] });
        let outcome = add_inventory(&mut learned, &report).unwrap();
        assert_eq!(outcome, FromInventory { added: 3, known: 1, left_out: 3 });
        let paths = learned.document["paths"].as_object().unwrap();
        assert_eq!(paths.keys().collect::<Vec<_>>(), ["/users/{userId}", "/x/{id}/y/{id2}"]);
        assert_eq!(paths["/users/{userId}"]["delete"]["responses"]["4XX"]["x-evidence"], 2);
        let compiled = contract::compile::compile(
            &learned.document.to_string(),
            "",
            contract::compile::Options { responses: true },
        );
        assert_eq!(compiled.unwrap().operations.len(), 3);
        assert!(add_inventory(&mut learned, &json!([])).is_err());
    }
}
