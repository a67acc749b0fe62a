//! Reading a document's text.

use serde_json::Value;

use super::CompileError;

/// The largest document, in bytes: 64 MiB.
const MAX_DOCUMENT: usize = 64 << 20;

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
    let read = serde_saphyr::from_str_with_options::<Value>(text, options());
    read.map_err(|yaml| {
        if text.trim_start().starts_with('{') {
            failed(format!("the document is no JSON: {json}"))
        } else {
            let message = yaml.to_string();
            let first = message.lines().next().unwrap_or_default();
            failed(format!("the document is no YAML: {first}"))
        }
    })
}

/// `yes` and `off` are texts, as in YAML 1.2. Anchors and merges are expanded up to a budget.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(MAX_DOCUMENT),
            max_nodes: 8_000_000,
            max_events: 24_000_000,
            max_depth: 200,
        },
    }
}
