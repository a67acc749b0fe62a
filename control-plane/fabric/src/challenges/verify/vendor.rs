//! How the vendors of widgets are called, and what they answer.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use snapshot::VerifyToken;

use outbound::Call;
use policies::ChallengeProvider;

/// The longest answer, in bytes.
const MAX_ANSWER: usize = 64 * 1024;
/// How much of an error code is repeated, in characters.
const MAX_CODE: usize = 64;

/// What a vendor says of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// It is good; for this host, where the vendor says so.
    Yes { host: Option<String> },
    /// It is not.
    No,
    /// Nothing that counts, and why.
    Nothing(String),
}

/// The call that verifies a token.
pub(super) fn call(provider: &ChallengeProvider, asked: &VerifyToken, timeout: Duration) -> Call {
    let secret = provider.secret_key.reveal();
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let (kind, body) = match provider.preset_ref.as_deref() {
        // docs.captcha.eu, "Integration": the solution as the widget gave it is the body, and the key is in a header.
        Some("captcha-eu") => {
            if let Ok(mut key) = HeaderValue::from_str(secret) {
                key.set_sensitive(true);
                headers.insert("rest-key", key);
            }
            ("application/json", asked.token.clone())
        }
        preset => ("application/x-www-form-urlencoded", form(preset, provider, asked, secret)),
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Call {
        method: Method::POST,
        url: provider.verify_url.clone(),
        headers,
        body: Bytes::from(body),
        timeout,
        max_answer_bytes: MAX_ANSWER,
        // The secret goes to the address that the operator wrote down and to no other.
        redirects: 0,
    }
}

fn form(preset: Option<&str>, provider: &ChallengeProvider, asked: &VerifyToken, secret: &str) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("secret", secret);
    match preset {
        // The first generation of its interface has a word of its own.
        Some("friendly-captcha") => {
            form.append_pair("solution", &asked.token).append_pair("sitekey", &provider.site_key)
        }
        // With the site key a token of another site of the same account does not count.
        Some("hcaptcha") => form.append_pair("response", &asked.token).append_pair("sitekey", &provider.site_key),
        _ => form.append_pair("response", &asked.token),
    };
    // What is not bound to an address is nobody else's to know.
    if provider.bind_ip && preset != Some("friendly-captcha") && asked.ip.parse::<IpAddr>().is_ok() {
        form.append_pair("remoteip", &asked.ip);
    }
    form.finish()
}

/// What an answer says.
pub(super) fn read(status: StatusCode, body: &[u8]) -> Said {
    #[derive(Deserialize)]
    struct Answer {
        success: bool,
        #[serde(default)]
        hostname: Option<serde_json::Value>,
        #[serde(default, rename = "error-codes", alias = "errors")]
        errors: Option<serde_json::Value>,
    }
    if status.is_server_error() || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Said::Nothing(format!("it answers with status {}", status.as_u16()));
    }
    let Ok(answer) = serde_json::from_slice::<Answer>(body) else {
        return Said::Nothing(format!("its answer with status {} is not JSON with `success`", status.as_u16()));
    };
    if answer.success {
        return match status.is_success() {
            true => Said::Yes { host: answer.hostname.and_then(|host| host.as_str().map(str::to_owned)) },
            false => Said::Nothing(format!("it answers with status {}", status.as_u16())),
        };
    }
    let codes = answer.errors.as_ref().and_then(|codes| codes.as_array()).into_iter().flatten();
    let mut codes = codes.filter_map(|code| code.as_str());
    match codes.find(|code| is_ours(code)) {
        Some(code) => {
            let plain = |character: &char| character.is_ascii_alphanumeric() || "-_".contains(*character);
            let code: String = code.chars().filter(plain).take(MAX_CODE).collect();
            Said::Nothing(format!("it refuses our key or fails itself: {code}"))
        }
        None => Said::No,
    }
}

/// Whether a token solved on `solved` is good for a request to `asked`: the host itself, or one below it, because a page of
/// `www.shop.example` may be known to the vendor as `shop.example`. Where one of the two is not known there is nothing to
/// compare, and what the vendor says counts.
pub(super) fn admits(solved: &str, asked: &str) -> bool {
    let plain = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
    let (solved, asked) = (plain(solved), plain(asked));
    if solved.is_empty() || asked.is_empty() || solved == asked {
        return true;
    }
    let below = asked.strip_suffix(&solved).is_some_and(|rest| rest.ends_with('.'));
    // A top-level domain is nobody's site.
    below && solved.contains('.')
}

/// Whether an error is about our key or the vendor itself, and not about the token.
fn is_ours(code: &str) -> bool {
    code.contains("secret") || code == "internal-error"
}

#[cfg(test)]
mod tests;
