//! The authorization code flow: what is sent to the provider by way of the browser, and what comes back.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use form_urlencoded::Serializer;
use sha2::{Digest, Sha256};

use super::error::OidcError;
use super::metadata::Metadata;
use super::person::Person;
use super::settings::Settings;

/// A login that was begun, for the one who keeps it until the browser comes back.
#[derive(Clone, PartialEq, Eq)]
pub struct Begun {
    /// Where the browser is sent to.
    pub url: String,
    /// The ID token has to repeat it.
    pub nonce: String,
    /// Shows that the exchange is by the same client (RFC 7636). Secret.
    pub verifier: String,
}

/// The longest code, in bytes. Some providers put an encrypted token of more than 2 KiB there.
const MAX_CODE: usize = 8192;

/// What the browser brings back.
#[derive(Clone, Copy)]
pub struct Returned<'a> {
    /// The code.
    pub code: &'a str,
    /// The issuer (RFC 9207), if the answer names one.
    pub issuer: Option<&'a str>,
    /// Of [`Begun`].
    pub nonce: &'a str,
    /// Of [`Begun`].
    pub verifier: &'a str,
    /// The redirect URI of the request.
    pub redirect_uri: &'a str,
}

/// A login that has ended well.
#[derive(Clone, PartialEq, Eq)]
pub struct Finished {
    /// Who has logged in.
    pub person: Person,
    /// The ID token, for a logout at the provider later; `None` where there is none to be, or the token is too long to be kept.
    pub id_token: Option<String>,
}

// === impl Returned ===

impl Returned<'_> {
    /// Refuses what no provider gives for a code: empty, over 8 KiB, or with characters that are not printable ASCII (RFC 6749, appendix
    /// A.11). Anyone can send it, and providers answer it each in their own way.
    pub(super) fn check(&self) -> Result<(), OidcError> {
        let is_printable = |byte: u8| matches!(byte, b' '..=b'~');
        if (1..=MAX_CODE).contains(&self.code.len()) && self.code.bytes().all(is_printable) {
            Ok(())
        } else {
            Err(OidcError::refused("the code is empty, too long, or has characters that no code has"))
        }
    }
}

impl std::fmt::Debug for Returned<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The code and the verifier together are a login.
        f.debug_struct("Returned").finish_non_exhaustive()
    }
}

// === impl Finished ===

impl std::fmt::Debug for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither the token nor the claims of the person are for a log.
        f.debug_struct("Finished").finish_non_exhaustive()
    }
}

// === impl Begun ===

impl Begun {
    pub(super) fn new(settings: &Settings, metadata: &Metadata, state: &str) -> Result<Begun, std::io::Error> {
        let (nonce, verifier) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let query = Serializer::new(String::new())
            .append_pair("response_type", "code")
            .append_pair("client_id", &settings.client_id)
            .append_pair("redirect_uri", &settings.redirect_uri)
            .append_pair("scope", &settings.scopes.join(" "))
            .append_pair("state", state)
            .append_pair("nonce", &nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .finish();
        let join = if metadata.authorization.contains('?') { '&' } else { '?' };
        Ok(Begun { url: format!("{}{join}{query}", metadata.authorization), nonce, verifier })
    }
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The verifier must not reach a log by way of a derived Debug.
        f.debug_struct("Begun").finish_non_exhaustive()
    }
}

/// Why the token endpoint gives no tokens for a code, by its status and the error in its answer; empty where there is none. The code is all
/// that the request has from the browser, so a request that is called wrong (400, 422) is one with a wrong code, and says nothing about
/// the provider. It does where the client itself is not accepted (RFC 6749, section 5.2).
pub(super) fn not_exchanged(status: StatusCode, error: &str) -> OidcError {
    let what = format!("the token endpoint has answered {status} `{error}`");
    let is_of_request = matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY);
    match error {
        "invalid_grant" => OidcError::refused(what),
        "invalid_client" | "unauthorized_client" | "unsupported_grant_type" | "invalid_scope" => {
            OidcError::provider(what)
        }
        _ if is_of_request => OidcError::refused(what),
        _ => OidcError::provider(what),
    }
}

/// 256 random bits in base64url: 43 characters, the least that RFC 7636 takes for a verifier.
pub(super) fn random() -> Result<String, std::io::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OidcFault;

    fn is_taken(code: &str) -> bool {
        let returned = Returned { code, issuer: None, nonce: "n", verifier: "v", redirect_uri: "u" };
        match returned.check() {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.fault(), OidcFault::Refused);
                false
            }
        }
    }

    #[test]
    fn what_can_be_no_code_is_refused() {
        assert!(is_taken("SplxlOBeZQQYbYS6WxSbIA") && is_taken(" ~") && is_taken(&"c".repeat(MAX_CODE)));
        for code in ["", "a\n", "a\0", "\u{7f}", "é"] {
            assert!(!is_taken(code), "{code:?}");
        }
        assert!(!is_taken(&"c".repeat(MAX_CODE + 1)));
    }

    #[test]
    fn no_log_shows_a_code_or_its_verifier() {
        let returned = Returned { code: "s3cret-1", issuer: None, nonce: "n", verifier: "s3cret-2", redirect_uri: "u" };
        assert!(!format!("{returned:?}").contains("s3cret"), "{returned:?}");
    }

    #[test]
    fn a_code_that_is_not_taken_says_nothing_about_the_provider() {
        for (status, error, fault) in [
            (400, "invalid_grant", OidcFault::Refused),
            (403, "invalid_grant", OidcFault::Refused),
            (400, "invalid_request", OidcFault::Refused),
            (422, "", OidcFault::Refused),
            (401, "invalid_client", OidcFault::Provider),
            (400, "invalid_client", OidcFault::Provider),
            (400, "unauthorized_client", OidcFault::Provider),
            (404, "", OidcFault::Provider),
            (429, "", OidcFault::Provider),
            (500, "invalid_request", OidcFault::Provider),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(not_exchanged(status, error).fault(), fault, "{status} {error}");
        }
    }
}
