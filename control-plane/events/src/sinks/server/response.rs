//! What an answer means for the batch.

use std::time::{Duration, UNIX_EPOCH};

use axum::http::{HeaderMap, StatusCode, header};

use super::super::{Failure, Then};

/// The longest that a server may make us wait.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// 2xx is taken; 408, 429 and 5xx are tried again; anything else would be answered the same again.
pub(super) fn judge(status: StatusCode, headers: &HeaderMap, now_millis: u64) -> Result<(), Failure> {
    if status.is_success() {
        return Ok(());
    }
    let passing = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    let then = match passing || status.is_server_error() {
        true => Then::Retry(retry_after(headers, now_millis)),
        false => Then::Drop,
    };
    let hint = if status.is_redirection() { " (redirects are not followed)" } else { "" };
    Err(Failure { written: 0, refused: 0, reason: format!("the server answers {status}{hint}"), then })
}

/// `Retry-After` as a number of seconds or as a date.
pub fn retry_after(headers: &HeaderMap, now_millis: u64) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let at = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
            at.saturating_sub(Duration::from_millis(now_millis))
        }
    };
    Some(wait.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn then(status: u16, after: &str) -> Option<Then> {
        let headers = HeaderMap::from_iter([(header::RETRY_AFTER, after.parse().unwrap())]);
        // 2026-11-21T00:00:00Z.
        judge(StatusCode::from_u16(status).unwrap(), &headers, 1_795_219_200_000).err().map(|failure| failure.then)
    }

    #[test]
    fn a_status_says_what_to_do() {
        for status in [200, 202, 204] {
            assert_eq!(then(status, "5"), None);
        }
        for status in [301, 307, 400, 401, 403, 404, 410, 413, 422] {
            assert_eq!(then(status, "5"), Some(Then::Drop), "{status}");
        }
        let seconds = |seconds| Some(Then::Retry(Some(Duration::from_secs(seconds))));
        for status in [408, 429, 500, 502, 503, 504] {
            assert_eq!(then(status, "5"), seconds(5));
            assert_eq!(then(status, "Sat, 21 Nov 2026 00:02:00 GMT"), seconds(120));
            assert_eq!(then(status, "Sat, 21 Nov 2020 00:02:00 GMT"), seconds(0), "in the past");
            assert_eq!(then(status, "99999999"), seconds(3600));
            assert_eq!(then(status, "soon"), Some(Then::Retry(None)));
        }
    }
}
