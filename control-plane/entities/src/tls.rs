//! `gateway.tls` of `global-config`: TLS of the listener that xDS serves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FieldProblem;

/// TLS of the listener that xDS serves: with files on the gateway, or with a secret that the gateway fetches by SDS. A gateway reads the
/// files when it gets the listener: after a renewal, give them another name here or restart the gateway. A renewed secret needs neither.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerTls {
    /// The file of the certificate chain in PEM, the whole path on the gateway. Empty with `sds`.
    pub certificate: String,
    /// The file of its private key in PEM, the whole path on the gateway. Empty with `sds`.
    pub private_key: String,
    /// The secret that has both, in place of the files. Default null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sds: Option<TlsSecret>,
}

/// A secret of Envoy (`tls_certificate`), and where gateways fetch it: exactly one of `file` and `cluster`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSecret {
    /// The name of the secret, 1 to 256 bytes.
    pub name: String,
    /// The file of a `DiscoveryResponse` with the secret, the whole path on the gateway. Gateways read it again when another file is moved
    /// to this path. Default empty.
    pub file: String,
    /// The cluster that serves secrets by gRPC, one of `static_resources` in the bootstrap of the gateway. Default empty.
    pub cluster: String,
}

/// The longest name of a secret or of a cluster, in bytes.
const MAX_NAME: usize = 256;

impl ServerTls {
    pub(super) fn check(&self) -> Vec<FieldProblem> {
        let files = [("/certificate", &self.certificate), ("/private_key", &self.private_key)];
        match &self.sds {
            Some(secret) => {
                let named = files.into_iter().filter(|(_, path)| !path.is_empty());
                let both = named.map(|(field, _)| {
                    FieldProblem::new(field, "the secret of `sds` has it").expected("a file or `sds`, not both")
                });
                both.chain(secret.check().into_iter().map(|problem| problem.under("/sds"))).collect()
            }
            None => files.into_iter().filter_map(|(field, path)| path_problem(field, path)).collect(),
        }
    }
}

impl TlsSecret {
    fn check(&self) -> Vec<FieldProblem> {
        let mut problems: Vec<FieldProblem> = name_problem("/name", &self.name).into_iter().collect();
        match (self.file.is_empty(), self.cluster.is_empty()) {
            (false, true) => problems.extend(path_problem("/file", &self.file)),
            (true, false) => problems.extend(name_problem("/cluster", &self.cluster)),
            _ => {
                let problem = FieldProblem::new("", "gateways must know where the secret is");
                problems.push(problem.expected("`file` or `cluster`, one of them"));
            }
        }
        problems
    }
}

fn path_problem(field: &str, path: &str) -> Option<FieldProblem> {
    (!path.starts_with('/') || path.contains(char::is_control)).then(|| {
        let message = format!("no gateway can open `{}`", path.escape_debug());
        FieldProblem::new(field, message).expected("the whole path of a file, such as `/etc/palisade/tls.pem`")
    })
}

fn name_problem(field: &str, name: &str) -> Option<FieldProblem> {
    (name.is_empty() || name.len() > MAX_NAME || name.contains(char::is_control)).then(|| {
        let message = format!("`{}` is no name", name.escape_debug());
        FieldProblem::new(field, message).expected(format!("1 to {MAX_NAME} bytes without control characters"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_named_by_their_whole_path() {
        let tls = |certificate: &str, private_key: &str| ServerTls {
            certificate: certificate.to_owned(),
            private_key: private_key.to_owned(),
            sds: None,
        };
        assert_eq!(tls("/tls/cert.pem", "/tls/key.pem").check(), []);
        let problems: Vec<String> =
            tls("cert.pem", "/key\n.pem").check().into_iter().map(|problem| problem.pointer).collect();
        assert_eq!(problems, ["/certificate", "/private_key"]);
        let of = |text: &str| {
            let tls: ServerTls = serde_json::from_str(text).unwrap();
            tls.check().into_iter().map(|problem| problem.pointer).collect::<Vec<_>>()
        };
        assert_eq!(of(r#"{"certificate": "/a"}"#), ["/private_key"], "a key is needed");
    }

    #[test]
    fn a_secret_has_a_name_and_one_place_and_stands_alone() {
        let of = |sds: serde_json::Value, certificate: &str| {
            let tls = serde_json::json!({ "certificate": certificate, "sds": sds });
            let tls: ServerTls = serde_json::from_value(tls).unwrap();
            tls.check().into_iter().map(|problem| problem.pointer).collect::<Vec<_>>()
        };
        let json = |text: &str| serde_json::from_str(text).unwrap();
        assert!(of(json(r#"{"name": "shop", "file": "/sds.json"}"#), "").is_empty());
        assert!(of(json(r#"{"name": "shop", "cluster": "sds"}"#), "").is_empty());
        assert_eq!(of(json(r#"{"name": "shop", "cluster": "sds"}"#), "/a.pem"), ["/certificate"]);
        assert_eq!(of(json(r#"{"name": "shop"}"#), ""), ["/sds"]);
        assert_eq!(of(json(r#"{"name": "shop", "file": "/a", "cluster": "b"}"#), ""), ["/sds"]);
        assert_eq!(of(json(r#"{"name": "", "file": "a"}"#), ""), ["/sds/name", "/sds/file"]);
        assert_eq!(of(json(r#"{"name": "a\nb", "cluster": "b\u0000"}"#), ""), ["/sds/name", "/sds/cluster"]);
    }
}
