//! Requests, and how they change with a redirect.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};

use super::error::{OutboundError, OutboundFault};
use super::target::Target;
use super::{Answer, Call};

/// Who else than the first origin may see them: they hold no secrets.
const FOR_ALL: [HeaderName; 7] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_TYPE,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::USER_AGENT,
];

/// What is sent next.
pub(super) struct Step {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) max_answer_bytes: usize,
    redirects_left: u8,
    redirects: u8,
}

impl Step {
    pub(super) fn first(call: Call) -> Step {
        let Call { method, headers, body, max_answer_bytes, redirects, .. } = call;
        Step { method, headers, body, max_answer_bytes, redirects_left: redirects, redirects }
    }

    /// Where to go after `answer` from `target`; none where it is the last.
    pub(super) fn after(&mut self, target: &Target, answer: &Answer) -> Result<Option<Target>, OutboundError> {
        if self.redirects == 0 || !is_redirect(answer.status) {
            return Ok(None);
        }
        let fail = |what: String| OutboundError::new(OutboundFault::Redirect, target.origin(), what);
        self.redirects_left = self
            .redirects_left
            .checked_sub(1)
            .ok_or_else(|| fail(format!("there are more than {} redirects", self.redirects)))?;
        let location = answer.headers.get(header::LOCATION).and_then(|location| location.to_str().ok());
        let location = location.ok_or_else(|| fail("the redirect names no URL".to_owned()))?;
        let next = follow(target, location)?;
        if target.tls() && !next.tls() {
            return Err(fail(format!("the redirect leads to {}, which is without TLS", next.origin())));
        }
        let becomes_get = match answer.status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.headers.remove(header::CONTENT_TYPE);
        }
        if next.origin() != target.origin() {
            if !self.body.is_empty() {
                let what = format!("the redirect leads to {}, to which the body is not sent", next.origin());
                return Err(fail(what));
            }
            let kept = self.headers.iter().filter(|(name, _)| FOR_ALL.contains(name));
            self.headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        Ok(Some(next))
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// A URL or a relative reference, resolved against `base`.
fn follow(base: &Target, location: &str) -> Result<Target, OutboundError> {
    let location = location.split('#').next().unwrap_or_default();
    let has_scheme = location.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    let path = base.path().path();
    let whole = if has_scheme {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{}:{location}", base.scheme())
    } else {
        let at = format!("{}://{}", base.scheme(), base.authority());
        if location.is_empty() {
            format!("{at}{}", base.path())
        } else if location.starts_with('/') {
            format!("{at}{location}")
        } else if location.starts_with('?') {
            format!("{at}{path}{location}")
        } else {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{at}{folder}/{location}")
        }
    };
    let fail = |what: &str| OutboundError::new(OutboundFault::Redirect, base.origin(), what);
    let uri: Uri = whole.parse().map_err(|_| fail("the redirect leads to something that is not a URL"))?;
    Target::of(&uri).map_err(|error| fail(&format!("the redirect cannot be followed: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_may_be_short() {
        let base = Target::parse("https://h:8443/a/b?c").unwrap();
        for (location, whole) in [
            ("https://x/y", "https://x:443/y"),
            ("//x/y", "https://x:443/y"),
            ("/y?z#f", "https://h:8443/y?z"),
            ("y", "https://h:8443/a/y"),
            ("?z", "https://h:8443/a/b?z"),
            ("", "https://h:8443/a/b?c"),
        ] {
            let next = follow(&base, location).unwrap();
            assert_eq!(format!("{}{}", next.origin(), next.path()), whole, "{location}");
        }
        for wrong in ["ftp://x/s3cret", "https://s3cret@x/", "javascript:s3cret", "https://x/s3cret y"] {
            let error = follow(&base, wrong).err().unwrap();
            let text = error.to_string();
            assert!(error.fault() == OutboundFault::Redirect && !text.contains("s3cret"), "{text}");
            assert!(text.starts_with("https://h:8443: the redirect"), "{text}");
        }
    }
}
