//! The authorization code flow: what is sent to the provider by way of the browser, and what comes back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use form_urlencoded::Serializer;
use sha2::{Digest, Sha256};

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

/// What the browser brings back.
#[derive(Clone, Copy, Debug)]
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

/// 256 random bits in base64url: 43 characters, the least that RFC 7636 takes for a verifier.
pub(super) fn random() -> Result<String, std::io::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
