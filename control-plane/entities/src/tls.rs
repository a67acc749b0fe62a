//! `gateway.tls` of `global-config`: TLS of the listener that xDS serves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FieldProblem;

/// TLS of the listener that xDS serves. Its files are on the gateway, which reads them when it gets the listener: after a renewal, give
/// them another name here or restart the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTls {
    /// The file of the certificate chain in PEM, the whole path on the gateway.
    pub certificate: String,
    /// The file of its private key in PEM, the whole path on the gateway.
    pub private_key: String,
}

impl ServerTls {
    pub(super) fn check(&self) -> Vec<FieldProblem> {
        let files = [("/certificate", &self.certificate), ("/private_key", &self.private_key)];
        let wrong = files.into_iter().filter(|(_, path)| !path.starts_with('/') || path.contains(char::is_control));
        wrong
            .map(|(field, path)| {
                let message = format!("no gateway can open `{}`", path.escape_debug());
                FieldProblem::new(field, message).expected("the whole path of a file, such as `/etc/palisade/tls.pem`")
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_named_by_their_whole_path() {
        let tls = |certificate: &str, private_key: &str| ServerTls {
            certificate: certificate.to_owned(),
            private_key: private_key.to_owned(),
        };
        assert_eq!(tls("/tls/cert.pem", "/tls/key.pem").check(), []);
        let problems: Vec<String> =
            tls("cert.pem", "/key\n.pem").check().into_iter().map(|problem| problem.pointer).collect();
        assert_eq!(problems, ["/certificate", "/private_key"]);
        assert!(serde_json::from_str::<ServerTls>(r#"{"certificate": "/a"}"#).is_err(), "a key is needed");
    }
}
