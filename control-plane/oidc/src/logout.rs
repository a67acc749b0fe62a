//! The end of the session at the provider (OpenID Connect RP-Initiated Logout 1.0): where the browser is sent to once its session here has
//! ended.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use form_urlencoded::Serializer;
use serde_json::Value;

use super::settings::Settings;
use super::token::{Claims, audiences};

/// The bytes of an ID token that is kept as a hint, at most: it is the value of a cookie, for which browsers have 4096 bytes with its name.
pub(super) const MAX_HINT: usize = 3584;

/// Where the browser goes. `hint` is the ID token of the login that the browser has kept; another text is left out. The address to come
/// back to is the configured one, and never a client's.
pub(super) fn url(end_session: &str, settings: &Settings, state: &str, hint: Option<&str>) -> String {
    let mut query = Serializer::new(String::new());
    query
        .append_pair("client_id", &settings.client_id)
        .append_pair("post_logout_redirect_uri", &settings.post_logout_redirect_uri)
        .append_pair("state", state);
    if let Some(hint) = hint.filter(|hint| is_own(hint, settings)) {
        query.append_pair("id_token_hint", hint);
    }
    let join = if end_session.contains('?') { '&' } else { '?' };
    format!("{end_session}{join}{}", query.finish())
}

/// Whether a text says that it is an ID token of this provider for this client. The signature is for the provider to check: nothing here
/// depends on it, but a token of a provider that was configured before must not reach another one.
fn is_own(token: &str, settings: &Settings) -> bool {
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let mut parts = token.split('.');
    let (Some(header), Some(payload), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    if token.len() > MAX_HINT || ![header, payload, signature].into_iter().all(is_plain) {
        return false;
    }
    let claims = URL_SAFE_NO_PAD.decode(payload).ok().and_then(|bytes| serde_json::from_slice::<Claims>(&bytes).ok());
    claims.is_some_and(|claims| {
        let is_issuer = claims.get("iss").and_then(Value::as_str) == Some(settings.issuer.as_str());
        is_issuer && audiences(&claims).contains(&settings.client_id.as_str())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::tests::settings;

    fn token(claims: &Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn the_address_has_the_client_where_to_come_back_to_and_the_state() {
        let plain = "https://id.example/end?client_id=palisade&post_logout_redirect_uri=https%3A%2F%2Fpalisade.example%2Fconsole%2Flogin&state=s%26t";
        assert_eq!(url("https://id.example/end", &settings(), "s&t", None), plain);
        let with_query = url("https://id.example/end?p=staff", &settings(), "s", None);
        assert!(with_query.starts_with("https://id.example/end?p=staff&client_id=palisade&"), "{with_query}");
    }

    #[test]
    fn a_hint_is_an_id_token_of_this_provider_for_this_client() {
        let claims = json!({ "iss": "https://id.example", "aud": ["other", "palisade"], "sub": "1" });
        let own = token(&claims);
        let hinted = url("https://id.example/end", &settings(), "s", Some(&own));
        assert!(hinted.ends_with(&format!("&state=s&id_token_hint={own}")), "{hinted}");
        let long = token(&json!({ "iss": "https://id.example", "aud": "palisade", "groups": "x".repeat(MAX_HINT) }));
        for other in [
            token(&json!({ "iss": "https://evil.example", "aud": "palisade" })),
            token(&json!({ "iss": "https://id.example", "aud": "other" })),
            token(&json!({ "iss": "https://id.example" })),
            own.replace("c2ln", "c2ln&state=x"),
            format!("{own}.x"),
            long,
            "e30.e30".to_owned(),
            String::new(),
        ] {
            let without = url("https://id.example/end", &settings(), "s", Some(&other));
            assert!(!without.contains("id_token_hint"), "{without}");
        }
    }
}
