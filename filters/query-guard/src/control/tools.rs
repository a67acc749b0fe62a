//! Schemas of parameters and arguments: a contract with an operation for each method or tool, which filters check as any other.

use contract::compile::{Options, compile as compile_document};
use serde_json::{Map, Value, json};

/// The most methods or tools of an endpoint.
const MAX_NAMES: usize = 2000;

/// Compiled schemas.
pub(super) struct CompiledTools {
    /// The names, in the order of the operations.
    pub(super) names: Vec<String>,
    /// The contract.
    pub(super) image: Vec<u8>,
    /// What checks nothing.
    pub(super) warnings: Vec<String>,
}

/// Compiles the answer of `tools/list`, or an object of methods.
///
/// # Errors
/// What is wrong.
pub(super) fn compile(schema: &Value, mcp: bool) -> Result<CompiledTools, String> {
    let named = if mcp { tools(schema)? } else { methods(schema)? };
    if named.len() > MAX_NAMES {
        return Err(format!("{} names, and at most {MAX_NAMES} are read", named.len()));
    }
    let mut paths = Map::new();
    let mut names = Vec::new();
    for (place, (name, mut schema)) in named.into_iter().enumerate() {
        if names.contains(&name) {
            return Err(format!("`{}` comes twice", name.escape_debug()));
        }
        relocate(&mut schema, &format!("#/paths/~1{place}/post/requestBody/content/application~1json/schema"));
        let content = json!({ "application/json": { "schema": schema } });
        let operation = json!({ "requestBody": { "content": content }, "responses": {} });
        paths.insert(format!("/{place}"), json!({ "post": operation }));
        names.push(name);
    }
    let document = json!({ "openapi": "3.1.0", "info": { "title": "", "version": "" }, "paths": paths });
    let compiled =
        compile_document(&document.to_string(), "/", Options::default()).map_err(|error| error.to_string())?;
    Ok(CompiledTools { names, image: compiled.image, warnings: compiled.warnings })
}

fn tools(schema: &Value) -> Result<Vec<(String, Value)>, String> {
    let listed = schema.get("tools").or(Some(schema)).and_then(Value::as_array).ok_or("there is no list `tools`")?;
    let tool = |tool: &Value| {
        let name = tool.get("name").and_then(Value::as_str).ok_or("a tool has no `name`")?;
        let schema = tool.get("inputSchema").filter(|schema| schema.is_object());
        let schema = schema.ok_or_else(|| format!("the tool `{}` has no `inputSchema`", name.escape_debug()))?;
        Ok((name.to_owned(), schema.clone()))
    };
    listed.iter().map(tool).collect()
}

fn methods(schema: &Value) -> Result<Vec<(String, Value)>, String> {
    let methods = schema.as_object().ok_or("this is no object of methods")?;
    let method = |(name, schema): (&String, &Value)| match schema {
        Value::Object(_) | Value::Bool(_) => Ok((name.clone(), schema.clone())),
        _ => Err(format!("the schema of `{}` is none", name.escape_debug())),
    };
    methods.iter().map(method).collect()
}

/// References within a schema go to its own root, which is a part of the document here. Values that only look like references are left
/// alone.
fn relocate(schema: &mut Value, root: &str) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                if matches!(name.as_str(), "enum" | "const" | "default" | "examples" | "example") {
                    continue;
                }
                match value {
                    Value::String(text) if name == "$ref" && text == "#" => root.clone_into(text),
                    Value::String(text) if name == "$ref" => {
                        if let Some(inner) = text.strip_prefix("#/") {
                            *text = format!("{root}/{inner}");
                        }
                    }
                    other => relocate(other, root),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| relocate(element, root)),
        _ => {}
    }
}
