//! Snapshots as files, for gateways without a control plane.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use xds::resources::FilterInput;

/// Filters as a discovery response in JSON: what Envoy reads through `path_config_source`, from a file of its own for each
/// filter.
#[must_use]
pub fn discovery_response<'a>(filters: impl IntoIterator<Item = &'a FilterInput>) -> Value {
    let resource = |filter: &FilterInput| {
        json!({
            "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
            "name": format!("palisade.{}", filter.name),
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
                "config": {
                    "name": format!("palisade.{}", filter.name),
                    "root_id": filter.name,
                    "failure_policy": "FAIL_RELOAD",
                    "allow_on_headers_stop_iteration": true,
                    "vm_config": {
                        "vm_id": "palisade",
                        "runtime": "envoy.wasm.runtime.v8",
                        "code": { "local": { "filename": filter.module_path } },
                    },
                    "configuration": {
                        "@type": "type.googleapis.com/google.protobuf.BytesValue",
                        "value": STANDARD.encode(&filter.snapshot),
                    },
                },
            },
        })
    };
    json!({ "resources": filters.into_iter().map(resource).collect::<Vec<_>>() })
}

/// The word of a template that a snapshot is put in place of.
const PLACEHOLDER: &str = "SNAPSHOT";

/// A template that has not one place for a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// How many it has.
    pub places: usize,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it must contain {PLACEHOLDER} once, and has it {} times", self.places)
    }
}

impl std::error::Error for TemplateError {}

/// A template with the snapshot of one filter in it, as [`snapshot::configuration_json`] has it.
///
/// # Errors
///
/// The words for a template in which the placeholder does not stand exactly once as a word of its own.
pub fn fill(template: &str, snapshot: &[u8]) -> Result<String, TemplateError> {
    let in_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = template.as_bytes();
    let places: Vec<usize> = template
        .match_indices(PLACEHOLDER)
        .map(|(at, _)| at)
        .filter(|at| {
            let before = at.checked_sub(1).and_then(|at| bytes.get(at));
            !in_word(before) && !in_word(bytes.get(at + PLACEHOLDER.len()))
        })
        .collect();
    let [at] = places.as_slice() else {
        return Err(TemplateError { places: places.len() });
    };
    let configuration = snapshot::configuration_json(snapshot);
    let packed = configuration.get("snapshot").and_then(Value::as_str).unwrap_or_default();
    let (head, tail) = template.split_at(*at);
    Ok(format!("{head}{packed}{}", tail.get(PLACEHOLDER.len()..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_one_place() {
        let filled = fill("config: { snapshot: SNAPSHOT } # as MY_SNAPSHOT", b"x").unwrap();
        assert!(filled.starts_with("config: { snapshot: H4sI"), "{filled}");
        assert!(filled.ends_with(" } # as MY_SNAPSHOT"), "{filled}");
        assert!(fill("config: {}", b"x").unwrap_err().to_string().contains("0 times"));
        assert!(fill("SNAPSHOT SNAPSHOT", b"x").unwrap_err().to_string().contains("2 times"));
    }
}
