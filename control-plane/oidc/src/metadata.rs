//! The provider's metadata (OpenID Connect Discovery 1.0).

use axum::http::Uri;
use serde::Deserialize;

use super::settings::{Settings, check_url};

/// What is used of the metadata, checked.
#[derive(Clone, Debug)]
pub(super) struct Metadata {
    pub(super) authorization: String,
    pub(super) token: Uri,
    pub(super) keys: Uri,
    pub(super) userinfo: Option<Uri>,
    /// Where a browser ends its session at the provider. One that cannot be used fails no login; it is the reason why a logout ends here.
    pub(super) end_session: Result<Option<String>, String>,
    /// How the client shows its secret.
    pub(super) secret_in: SecretIn,
    /// Answers name the issuer (RFC 9207).
    pub(super) names_issuer: bool,
}

/// Where the client secret is in a request for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretIn {
    /// The header `Authorization`.
    Header,
    /// The body.
    Body,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    end_session_endpoint: Option<serde_json::Value>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Where the metadata is.
pub(super) fn address(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

impl Metadata {
    /// Reads the document and checks that it is the issuer's own.
    pub(super) fn read(bytes: &[u8], settings: &Settings) -> Result<Metadata, String> {
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| format!("the metadata cannot be read: {error}"))?;
        if document.issuer != settings.issuer {
            return Err(format!(
                "the metadata is of the issuer `{}`, not of `{}`; --oidc-issuer has to be the same, to the last slash",
                super::error::foreign(&document.issuer),
                settings.issuer
            ));
        }
        let endpoint = |name: &str, text: &str| match check_url(text) {
            // A provider with TLS must not lead the secret elsewhere without.
            Ok(uri) if settings.is_tls() && uri.scheme_str() != Some("https") => Err(format!("{name} is not https://")),
            Ok(uri) => Ok(uri),
            Err(what) => Err(format!("{name}: {what}")),
        };
        endpoint("authorization_endpoint", &document.authorization_endpoint)?;
        let end_session = |value: &serde_json::Value| {
            let text = value.as_str().ok_or("end_session_endpoint is no text")?;
            endpoint("end_session_endpoint", text).map(|_| text.to_owned())
        };
        // Basic is the default (Discovery, section 3) and what every provider has; the body is for those that have nothing else.
        let methods = document.token_endpoint_auth_methods_supported;
        let has = |name: &str| methods.as_ref().is_some_and(|all| all.iter().any(|method| method == name));
        let in_body = !has("client_secret_basic") && has("client_secret_post");
        Ok(Metadata {
            authorization: document.authorization_endpoint,
            token: endpoint("token_endpoint", &document.token_endpoint)?,
            keys: endpoint("jwks_uri", &document.jwks_uri)?,
            userinfo: document.userinfo_endpoint.map(|text| endpoint("userinfo_endpoint", &text)).transpose()?,
            end_session: document.end_session_endpoint.as_ref().map(end_session).transpose(),
            secret_in: if in_body { SecretIn::Body } else { SecretIn::Header },
            names_issuer: document.authorization_response_iss_parameter_supported,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::settings;

    fn read(change: impl FnOnce(&mut serde_json::Value)) -> Result<Metadata, String> {
        let mut document = serde_json::json!({
            "issuer": "https://id.example", "authorization_endpoint": "https://id.example/authorize",
            "token_endpoint": "https://id.example/token", "jwks_uri": "https://keys.example/",
        });
        change(&mut document);
        Metadata::read(document.to_string().as_bytes(), &settings())
    }

    #[test]
    fn metadata_is_that_of_the_issuer_and_names_tls_alone() {
        assert_eq!(read(|_| {}).unwrap().secret_in, SecretIn::Header);
        let post = read(|of| of["token_endpoint_auth_methods_supported"] = serde_json::json!(["client_secret_post"]));
        assert_eq!(post.unwrap().secret_in, SecretIn::Body);
        assert!(read(|of| of["issuer"] = "https://id.example/".into()).unwrap_err().contains("to the last slash"));
        for name in ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"] {
            for bad in ["http://id.example/", "http://127.0.0.1/", "ftp://x/", "javascript:alert(1)", ""] {
                assert!(read(|of| of[name] = bad.into()).unwrap_err().contains(name), "{name} {bad}");
            }
        }
        assert!(read(|of| drop(of.as_object_mut().unwrap().remove("jwks_uri"))).is_err());
    }

    #[test]
    fn an_end_of_sessions_that_cannot_be_used_fails_no_login() {
        let end = |value: serde_json::Value| read(|of| of["end_session_endpoint"] = value).unwrap().end_session;
        assert_eq!(read(|_| {}).unwrap().end_session, Ok(None));
        assert_eq!(end(serde_json::Value::Null), Ok(None));
        assert_eq!(end("https://id.example/end?a=b".into()), Ok(Some("https://id.example/end?a=b".to_owned())));
        for bad in ["http://id.example/".into(), "javascript:alert(1)".into(), "https://id.example/#a".into(), 7.into()]
        {
            assert!(end(bad).unwrap_err().starts_with("end_session_endpoint"));
        }
    }
}
