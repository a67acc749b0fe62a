//! What a contract asks callers for: the security requirements of its operations.

use serde_json::{Map, Value};

use crate::schemes::Scheme;
use crate::template::Template;

/// The bytes of a contract, at most; as of the entity.
const MAX_BYTES: usize = 64 << 20;
/// The operations that are compared, at most; as of the check of contracts.
const MAX_OPERATIONS: usize = 50_000;
/// References that are followed, one after the other, at most.
const MAX_REFERENCES: usize = 16;

/// The methods of a path item.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// The operations of a contract.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    /// In the order of the document.
    pub(crate) operations: Vec<DeclaredOperation>,
    /// The templates of all paths, base paths among them, each once, sorted.
    pub(crate) templates: Vec<Template>,
}

/// An operation and what it asks for.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredOperation {
    /// In capital letters.
    pub(crate) method: &'static str,
    /// As the document has it, without the base path.
    pub(crate) path: String,
    /// With the base path.
    pub(crate) template: Template,
    /// What it asks for.
    pub(crate) security: Security,
}

/// What an operation asks callers for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// The contract does not say.
    Silent,
    /// Nothing: its list is empty, or has nothing but `{}`.
    Public,
    /// One of these, or nothing: the list has an empty requirement.
    Optional(Vec<Vec<Scheme>>),
    /// One of these; each is a list of schemes that are all needed.
    Required(Vec<Vec<Scheme>>),
}

// === impl Declared ===

impl Declared {
    /// Reads a document, OpenAPI 3.0 or 3.1 as JSON or YAML.
    ///
    /// # Errors
    /// It is no such document.
    pub(crate) fn read(text: &str, base_path: &str) -> Result<Declared, String> {
        let root = parse(text)?;
        let version = match root.get("openapi") {
            Some(Value::String(version)) => version.clone(),
            Some(Value::Number(version)) => version.to_string(),
            _ => return Err("it has no OpenAPI version".to_owned()),
        };
        if !version.starts_with("3.") {
            return Err("its version is not 3.0 or 3.1".to_owned());
        }
        let global = root.get("security");
        let no_paths = Map::new();
        let paths = root.get("paths").and_then(Value::as_object).unwrap_or(&no_paths);
        let mut declared = Declared { operations: Vec::new(), templates: Vec::new() };
        for (path, item) in paths.iter().filter(|(path, _)| path.starts_with('/')) {
            let item = resolved(&root, item);
            let base = if base_path.is_empty() {
                base_of(item.get("servers").or_else(|| root.get("servers")))
            } else {
                base_path.trim_end_matches('/').to_owned()
            };
            let template = Template::of_contract(&format!("{base}{path}"));
            let operations = METHODS.iter().filter_map(|method| Some((*method, item.get(*method)?.as_object()?)));
            for (method, operation) in operations {
                if declared.operations.len() >= MAX_OPERATIONS {
                    return Err(format!("it has more than {MAX_OPERATIONS} operations"));
                }
                declared.operations.push(DeclaredOperation {
                    method: capital(method),
                    path: path.clone(),
                    template: template.clone(),
                    security: security(&root, operation.get("security").or(global)),
                });
            }
            declared.templates.push(template);
        }
        declared.templates.sort();
        declared.templates.dedup();
        Ok(declared)
    }
}

fn parse(text: &str) -> Result<Value, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it has more than {MAX_BYTES} bytes"));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let options = serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(MAX_BYTES),
            max_nodes: 8_000_000,
            max_events: 24_000_000,
            max_depth: 200,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|_| "it is neither JSON nor YAML".to_owned())
}

fn capital(method: &str) -> &'static str {
    crate::facts::METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(method)).unwrap_or("GET")
}

/// Follows references within the document.
fn resolved<'d>(root: &'d Value, mut value: &'d Value) -> &'d Value {
    for _ in 0..MAX_REFERENCES {
        let pointer = value.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        match pointer.and_then(|pointer| root.pointer(pointer)) {
            Some(target) => value = target,
            None => break,
        }
    }
    value
}

fn security(root: &Value, declared: Option<&Value>) -> Security {
    let Some(alternatives) = declared.and_then(Value::as_array) else { return Security::Silent };
    let scheme = |name: &String| {
        let schemes = root.get("components").and_then(|components| components.get("securitySchemes"));
        let scheme = schemes.and_then(|schemes| schemes.get(name)).map(|scheme| resolved(root, scheme));
        Scheme::read(name, scheme)
    };
    let requirements = alternatives.iter().filter_map(Value::as_object);
    let read: Vec<Vec<Scheme>> = requirements.map(|names| names.keys().map(scheme).collect()).collect();
    if read.len() != alternatives.len() {
        // A list of something else says nothing.
        return Security::Silent;
    }
    let (none, asked): (Vec<_>, Vec<_>) = read.into_iter().partition(Vec::is_empty);
    match (asked.is_empty(), none.is_empty()) {
        (true, _) => Security::Public,
        (false, false) => Security::Optional(asked),
        (false, true) => Security::Required(asked),
    }
}

/// The path of the first server as a template: variables have their defaults, those without one stay parameters.
fn base_of(servers: Option<&Value>) -> String {
    let Some(server) = servers.and_then(|servers| servers.get(0)) else { return String::new() };
    let mut url = server.get("url").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (name, variable) in server.get("variables").and_then(Value::as_object).into_iter().flatten() {
        let default = match variable.get("default") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => continue,
        };
        url = url.replace(&format!("{{{name}}}"), &default);
    }
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').and_then(|start| rest.get(start..)).unwrap_or_default(),
        None => url.as_str(),
    };
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    if path.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base(server: Value) -> String {
        base_of(Some(&json!([server])))
    }

    #[test]
    fn the_base_is_the_path_of_the_first_server() {
        assert_eq!(base(json!({"url": "https://x.example/v1/"})), "/v1");
        assert_eq!(base(json!({"url": "https://x.example"})), "");
        assert_eq!(base(json!({"url": "/"})), "");
        assert_eq!(base(json!({"url": "v2"})), "/v2");
        let variables = json!({"url": "https://{host}/{version}/{tenant}", "variables": {"host": {"default": "x"}, "version": {"default": 3}}});
        assert_eq!(base(variables), "/3/{tenant}");
        assert_eq!(base_of(None), "");
    }

    #[test]
    fn requirements_are_read_as_they_are_declared() {
        let root = json!({"components": {"securitySchemes": {"key": {"$ref": "#/x"}}}, "x": {"type": "http", "scheme": "basic"}});
        let read = |value: Value| security(&root, Some(&value));
        assert_eq!(security(&root, None), Security::Silent);
        assert_eq!(read(json!({})), Security::Silent);
        assert_eq!(read(json!(["key"])), Security::Silent);
        assert_eq!(read(json!([])), Security::Public);
        assert_eq!(read(json!([{}])), Security::Public);
        let key = Scheme::read("key", Some(&json!({"type": "http", "scheme": "basic"})));
        assert_eq!(read(json!([{}, {"key": []}])), Security::Optional(vec![vec![key.clone()]]));
        let gone = Scheme::read("gone", None);
        assert_eq!(read(json!([{"key": [], "gone": ["scope"]}])), Security::Required(vec![vec![key, gone]]));
    }
}
