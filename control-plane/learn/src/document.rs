//! The document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::operation::Operation;
use crate::parameter::Parameter;
use crate::path::Node;
use crate::schema::{NAMED, confidence};
use crate::{Counts, Learned, Options};

/// A parameter of a template.
struct PathParameter<'n> {
    name: String,
    values: &'n Parameter,
}

struct Writer<'o> {
    options: &'o Options,
    paths: BTreeMap<String, Value>,
    operations: usize,
    left_out: usize,
}

/// Writes what is known.
pub(crate) fn write(root: &Node, options: &Options, counts: Counts, full: bool) -> Learned {
    let mut writer = Writer { options, paths: BTreeMap::new(), operations: 0, left_out: 0 };
    writer.node(root, String::new(), "", &mut Vec::new());
    let Writer { paths, operations, left_out, .. } = writer;
    let count = paths.len();
    let paths: Map<String, Value> = paths.into_iter().collect();
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": options.title,
            "version": "learned",
            "description": "Learned from traffic. Each claim has the number of observations behind it (x-evidence) and the \
                            probability that the next one agrees (x-confidence). Review it before you enforce it.",
        },
        "x-learned": {
            "observed": counts.observed,
            "learned": counts.learned,
            "refused": counts.refused,
            "unanswered": counts.unanswered,
            "attacks": counts.attacks,
            "operations-left-out": left_out,
            "min-evidence": options.min_evidence,
        },
        "paths": paths,
    });
    Learned { document, paths: count, operations, left_out, counts, full }
}

impl Writer<'_> {
    fn node<'n>(&mut self, node: &'n Node, path: String, before: &str, parameters: &mut Vec<PathParameter<'n>>) {
        let mut item = Map::new();
        for (method, operation) in &node.operations {
            if operation.requests < NAMED {
                self.left_out += usize::from(operation.requests > 0);
                continue;
            }
            self.operations += 1;
            item.insert((*method).to_owned(), self.operation(method, &path, operation));
        }
        if !item.is_empty() {
            if !parameters.is_empty() {
                let described = parameters.iter().map(|parameter| self.path_parameter(parameter)).collect();
                item.insert("parameters".to_owned(), Value::Array(described));
            }
            self.paths.insert(if path.is_empty() { "/".to_owned() } else { path.clone() }, Value::Object(item));
        }
        for (word, child) in &node.words {
            self.node(child, format!("{path}/{word}"), word, parameters);
        }
        if let Some(slot) = &node.parameter {
            let name = name(before, &slot.values, parameters);
            let path = format!("{path}/{{{name}}}");
            parameters.push(PathParameter { name, values: &slot.values });
            self.node(&slot.node, path, "", parameters);
            parameters.pop();
        }
    }

    fn path_parameter(&self, parameter: &PathParameter<'_>) -> Value {
        // An empty segment is no value: a text has at least one character anyway.
        let sensitive = crate::names::is_sensitive(&parameter.name);
        let (mut schema, commas) = parameter.values.schema(self.options.min_evidence, sensitive);
        if let Some(schema) = schema.as_object_mut() {
            // Which values there are is data, not a part of the contract.
            if schema.remove("enum").is_some() {
                schema.remove("x-enum-evidence");
            }
            if commas {
                schema.remove("items");
                schema.insert("type".to_owned(), json!("string"));
            }
        }
        json!({
            "name": parameter.name,
            "in": "path",
            "required": true,
            "schema": schema,
            "x-evidence": parameter.values.carriers,
        })
    }

    fn operation(&self, method: &str, path: &str, operation: &Operation) -> Value {
        let evidence = self.options.min_evidence;
        let mut out = Map::new();
        out.insert("operationId".to_owned(), json!(operation_id(method, path)));
        out.insert("x-evidence".to_owned(), json!(operation.requests));
        out.insert("x-confidence".to_owned(), confidence(operation.requests));
        let mut parameters = operation.query.describe("query", operation.requests, evidence);
        parameters.extend(operation.headers.describe("header", operation.requests, evidence));
        if !parameters.is_empty() {
            out.insert("parameters".to_owned(), Value::Array(parameters));
        }
        if let Some(body) = operation.body.request(operation.requests, evidence) {
            out.insert("requestBody".to_owned(), body);
        }
        let mut responses = Map::new();
        for (status, answers) in &operation.responses {
            let mut answer = Map::new();
            answer.insert("description".to_owned(), json!("Observed"));
            answer.insert("x-evidence".to_owned(), json!(answers.count));
            if answers.body.count > 0 {
                answer.insert("content".to_owned(), Value::Object(answers.body.content(evidence)));
            }
            responses.insert(status.to_string(), Value::Object(answer));
        }
        for (status, count) in &operation.refused {
            let answer = json!({ "description": "Observed; not learned from", "x-evidence": count });
            responses.entry(status.to_string()).or_insert(answer);
        }
        out.insert("responses".to_owned(), Value::Object(responses));
        Value::Object(out)
    }
}

/// The name of a parameter of a path: by the word in front of it, and unique in its path.
fn name(before: &str, values: &Parameter, parameters: &[PathParameter<'_>]) -> String {
    let word: String = before.chars().filter(char::is_ascii_alphanumeric).collect();
    let single = match word.as_str() {
        "" => String::new(),
        word if word.ends_with("ies") && word.len() > 4 => format!("{}y", word.trim_end_matches("ies")),
        word if word.ends_with("ss") || word.ends_with("us") => word.to_owned(),
        word => word.strip_suffix('s').unwrap_or(word).to_owned(),
    };
    let base = match (single.is_empty(), values.is_identifier()) {
        (true, true) => "id".to_owned(),
        (true, false) => "value".to_owned(),
        (false, true) => format!("{single}Id"),
        (false, false) => single,
    };
    let taken = |name: &str| parameters.iter().any(|parameter| parameter.name == name);
    let mut name = base.clone();
    let mut number = 2;
    while taken(&name) {
        name = format!("{base}{number}");
        number += 1;
    }
    name
}

pub(crate) fn operation_id(method: &str, path: &str) -> String {
    let mut id = method.to_owned();
    let mut upper = true;
    for character in path.chars() {
        if character.is_ascii_alphanumeric() {
            if upper {
                id.extend(character.to_uppercase());
            } else {
                id.push(character);
            }
        }
        upper = !character.is_ascii_alphanumeric();
    }
    id
}
