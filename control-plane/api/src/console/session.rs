//! Sessions: the token in the cookie, the cookie itself, and the token against forged requests.

use std::fmt;
use std::net::IpAddr;

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::names::{COOKIE, CSRF_HEADER, NAMESPACE};

/// Characters of a token: 32 bytes in base64url without padding.
const TOKEN_CHARS: usize = 43;

/// The secret of a session: 256 random bits in base64url, which only the cookie holds.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(String);

// === impl Token ===

impl Token {
    /// A new one.
    pub(super) fn random() -> Result<Token, std::io::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(Token(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The token in the cookies of a request; `None` where there is none, or none that could be one.
    pub(super) fn of_request(headers: &HeaderMap) -> Option<Token> {
        let value = cookie_of(headers, COOKIE)?;
        let sane = value.len() == TOKEN_CHARS
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        sane.then_some(Token(value))
    }

    /// What is kept of it.
    pub(super) fn sha256(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The token against forged requests. It follows from the session's, so that nothing more is kept; the way back is
    /// a preimage of SHA-256.
    pub(super) fn csrf(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::new_with_prefix(b"palisade console csrf\0").chain_update(&self.0).finalize())
    }

    /// Whether a request's header is that token, in constant time.
    pub(super) fn is_csrf(&self, headers: &HeaderMap) -> bool {
        let mut sent = headers.get_all(CSRF_HEADER).iter();
        match (sent.next(), sent.next()) {
            (Some(value), None) => value.as_bytes().ct_eq(self.csrf().as_bytes()).into(),
            _ => false,
        }
    }

    /// The `Set-Cookie` header that gives it to a browser for so many seconds.
    pub(super) fn set_cookie(&self, max_age_seconds: u64, secure: bool) -> String {
        set_cookie(COOKIE, "", &self.0, max_age_seconds, secure)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret must not reach a log by way of a derived Debug.
        f.write_str("Token")
    }
}

/// The first cookie of this name.
pub(super) fn cookie_of(headers: &HeaderMap, wanted: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned())
}

/// The `Set-Cookie` header that takes the cookie away.
pub(super) fn clear_cookie(secure: bool) -> String {
    set_cookie(COOKIE, "", "", 0, secure)
}

/// The `Set-Cookie` header of a cookie for so many seconds, which calls under this path of the console get.
pub(super) fn set_cookie(name: &str, path: &str, value: &str, max_age_seconds: u64, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{name}={value}; Path={NAMESPACE}{path}; Max-Age={max_age_seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// Whether the cookie is to be sent over TLS alone: always, but for development on one machine, where the admin API
/// speaks plain HTTP on `loopback` and was called by a name of loopback. A proxy on the same machine that ends TLS passes the
/// host on, or says `x-forwarded-proto: https`.
pub(super) fn wants_secure(loopback: bool, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let over_tls = headers.get("x-forwarded-proto").is_some_and(|scheme| scheme.as_bytes() != b"http");
    !loopback || over_tls || !is_loopback_name(host)
}

fn is_loopback_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_token_is_read_from_the_cookie_alone() {
        let token = Token::random().unwrap();
        assert_eq!(token.0.len(), TOKEN_CHARS);
        let own = format!("{COOKIE}={}", token.0);
        assert_eq!(Token::of_request(&headers(&[("cookie", &own)])), Some(token.clone()));
        assert_eq!(Token::of_request(&headers(&[("cookie", &format!("a=b; {own}; c=d"))])), Some(token.clone()));
        for bad in [String::new(), COOKIE.to_owned(), format!("{COOKIE}="), format!("{own}x"), format!("x{own}")] {
            assert_eq!(Token::of_request(&headers(&[("cookie", &bad)])), None, "{bad}");
        }
        assert!(!format!("{token:?}").contains(&token.0));
    }

    #[test]
    fn a_forged_request_lacks_the_csrf_token() {
        let (token, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(token.is_csrf(&headers(&[("x-csrf-token", &token.csrf())])));
        assert!(!token.is_csrf(&headers(&[])));
        assert!(!token.is_csrf(&headers(&[("x-csrf-token", &other.csrf())])));
        assert!(!token.is_csrf(&headers(&[("x-csrf-token", "")])));
        assert!(!token.is_csrf(&headers(&[("x-csrf-token", &token.0)])));
        assert_ne!(token.csrf(), token.0);
    }

    #[test]
    fn the_cookie_is_secure_but_for_plain_loopback() {
        for (loopback, pairs, secure) in [
            (true, vec![("host", "127.0.0.1:8900")], false),
            (true, vec![("host", "localhost:8900")], false),
            (true, vec![("host", "[::1]:8900")], false),
            (true, vec![("host", "localhost"), ("x-forwarded-proto", "https")], true),
            (true, vec![("host", "console.example.com")], true),
            (true, vec![], true),
            (false, vec![("host", "localhost")], true),
        ] {
            assert_eq!(wants_secure(loopback, &headers(&pairs)), secure, "{loopback} {pairs:?}");
        }
        let cookie = Token("t".into()).set_cookie(60, true);
        assert_eq!(
            cookie,
            "palisade_session=t; Path=/extensions/svc/extensions/waf; Max-Age=60; HttpOnly; SameSite=Strict; Secure"
        );
    }
}
