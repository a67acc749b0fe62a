//! One fetch of a key directory.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderValue, Method, StatusCode, header};
use lists::{Failure, Validators, asks_for_changes, unpacked, validators, wish};
use outbound::{Answer, Call, Outbound};

use super::WantedDirectory;
use super::jwks::{Card, KeySet, card, key_set};
use crate::DirectoryKind;

/// The bytes of an answer, and of one that came compressed, at most: 64 keys have some 20,000.
const MAX_ANSWER: usize = 256 << 10;
const MAX_UNPACKED: usize = 512 << 10;
/// How long a call takes at most.
const TIMEOUT: Duration = Duration::from_secs(15);
/// What is asked for.
const ACCEPT: &str = "application/http-message-signatures-directory+json, application/jwk-set+json, application/json";

/// What a fetch that did not fail has brought.
#[derive(Debug)]
pub(super) enum FetchedKeys {
    /// The directory is the one that was fetched last.
    Unchanged,
    /// Its keys.
    Keys(KeySet, Validators),
}

/// Fetches a directory. No redirect is followed: who can lay one could name any keys.
///
/// # Errors
/// No keys that can be used; for people.
pub(super) async fn fetch(
    wanted: WantedDirectory,
    known: Validators,
    outbound: Outbound,
) -> Result<FetchedKeys, Failure> {
    // Of a card only the keys that it leads to would tell whether anything has changed.
    let known = if wanted.kind == DirectoryKind::Cimd { Validators::default() } else { known };
    let answer = call(&wanted.url, &known, &outbound).await?;
    if answer.status == StatusCode::NOT_MODIFIED && known != Validators::default() {
        return Ok(FetchedKeys::Unchanged);
    }
    let body = document(&answer)?;
    let keys = match wanted.kind {
        DirectoryKind::Directory | DirectoryKind::JwksUri => key_set(&body),
        DirectoryKind::Cimd => match card(&body, &wanted.url).map_err(Failure::new)? {
            Card::Keys(keys) => Ok(keys),
            Card::Elsewhere(url) if wanted.url.starts_with("https://") && !url.starts_with("https://") => {
                Err("the `jwks_uri` of the card does not begin with https://".to_owned())
            }
            Card::Elsewhere(url) => key_set(&document(&call(&url, &Validators::default(), &outbound).await?)?),
        },
    };
    Ok(FetchedKeys::Keys(keys.map_err(Failure::new)?, validators(&answer.headers)))
}

async fn call(url: &str, known: &Validators, outbound: &Outbound) -> Result<Answer, Failure> {
    let mut headers = asks_for_changes(known);
    headers.insert(header::ACCEPT, HeaderValue::from_static(ACCEPT));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    let call = Call {
        method: Method::GET,
        url: url.to_owned(),
        headers,
        body: Bytes::new(),
        timeout: TIMEOUT,
        max_answer_bytes: MAX_ANSWER,
        redirects: 0,
    };
    outbound.call(call).await.map_err(|error| Failure::new(error.to_string()))
}

/// The document that a server answers with.
fn document(answer: &Answer) -> Result<Vec<u8>, Failure> {
    if answer.status != StatusCode::OK {
        let why = format!("the server answers {}", answer.status.as_u16());
        return Err(Failure { why, wait_millis: wish(&answer.headers) });
    }
    let content_type =
        answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence != "application/json" && !(essence.starts_with("application/") && essence.ends_with("+json")) {
        let shown: String = content_type.chars().take(100).collect::<String>().escape_debug().to_string();
        return Err(Failure::new(format!("the server answers with the content type `{shown}`, and not with JSON")));
    }
    let unpacked = unpacked(&answer.body, MAX_UNPACKED).map_err(Failure::new)?;
    Ok(unpacked.unwrap_or_else(|| answer.body.to_vec()))
}
