//! The schemas that resources of Kubernetes and of its extensions are checked with.

use std::io::Write as _;
use std::process::{Command, Stdio};

use palisade_tests::parts;
use serde_json::{Value, json};

/// The schemas of Kubernetes' own resources; unknown fields are refused.
pub(crate) struct Kubernetes(Value);

impl Kubernetes {
    pub(crate) fn read() -> Self {
        let path = parts::schema("kubernetes.json");
        let mut all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        // References are within the document: a base of its own would only have to be known elsewhere.
        all.as_object_mut().unwrap().remove("$id");
        Self(all)
    }

    /// The name of the definition of a resource.
    pub(crate) fn definition(&self, document: &Value) -> String {
        let (group, version) = match document["apiVersion"].as_str().unwrap().split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", document["apiVersion"].as_str().unwrap()),
        };
        let wanted = json!({"group": group, "version": version, "kind": document["kind"]});
        let definitions = self.0["$defs"].as_object().unwrap();
        let found = definitions.iter().find(|(_, definition)| {
            definition["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.contains(&wanted))
        });
        found.unwrap_or_else(|| panic!("Kubernetes has no {wanted}")).0.clone()
    }

    pub(crate) fn check(&self, file: &str, definition: &str, document: &Value) {
        let mut schema = self.0.clone();
        schema["$ref"] = json!(format!("#/$defs/{definition}"));
        check(file, definition, &schema, document);
    }
}

pub(crate) fn check(file: &str, what: &str, schema: &Value, document: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{what}: {error}"));
    let problems: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(problems.is_empty(), "{file}, {what}:\n{}", problems.join("\n"));
}

/// Checks resources of Istio, Envoy Gateway, cert-manager and the Prometheus operator; unknown fields are refused.
pub(crate) fn custom_resources(all: &[Value]) {
    let mut node = Command::new("node")
        .arg("check.mjs")
        .current_dir(parts::schema("models"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("node cannot be run ({error}): install Debian's package nodejs"));
    node.stdin.take().unwrap().write_all(json!(all).to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
