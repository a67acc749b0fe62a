//! Reading a document's text.

use serde_json::Value;

use super::CompileError;

/// The largest document, in bytes: 64 MiB.
const MAX_DOCUMENT: usize = 64 << 20;

/// The stack of a reader of YAML, in bytes: 16 MiB.
const STACK: usize = 16 << 20;

/// Reads JSON, or YAML where it is none.
pub(super) fn read(text: &str) -> Result<Value, CompileError> {
    let failed = |message: String| CompileError { pointer: String::new(), message };
    if text.len() > MAX_DOCUMENT {
        return Err(failed(format!("the document has more than {MAX_DOCUMENT} bytes")));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let json = match serde_json::from_str::<Value>(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    read_yaml(text).map_err(|yaml| {
        if text.trim_start().starts_with('{') {
            failed(format!("the document is no JSON: {json}"))
        } else {
            let first = yaml.lines().next().unwrap_or_default();
            failed(format!("the document is no YAML: {first}"))
        }
    })
}

/// Reads YAML on a stack of its own: its reader takes much of it for each level of nesting.
fn read_yaml(text: &str) -> Result<Value, String> {
    let read = || serde_saphyr::from_str_with_options::<Value>(text, options()).map_err(|error| error.to_string());
    std::thread::scope(|scope| {
        let reader =
            std::thread::Builder::new().name("contract".to_owned()).stack_size(STACK).spawn_scoped(scope, read);
        let reader = reader.map_err(|error| format!("no thread to read it: {error}"))?;
        reader.join().unwrap_or_else(|_| Err("its reader has failed".to_owned()))
    })
}

/// `yes` and `off` are texts, as in YAML 1.2. Anchors and merges are expanded up to a budget.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(MAX_DOCUMENT),
            max_nodes: 2_000_000,
            max_events: 6_000_000,
            // As JSON is read.
            max_depth: 128,
        },
    }
}
