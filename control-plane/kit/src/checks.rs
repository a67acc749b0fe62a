//! Checks that collections and settings share: numbers within limits, URLs, names of headers, hosts, tags. Each answers with the
//! problem, at the pointer that it is given, or with `None`.

use std::fmt::Display;
use std::ops::RangeInclusive;

use axum::http::{HeaderName, Uri};

use crate::{FieldProblem, Secret, did_you_mean};

/// The headers of a call to elsewhere, by name. Their values may be credentials, so that none is shown.
pub type Headers = std::collections::BTreeMap<String, Secret>;

/// The bytes of a URL, at most.
const MAX_URL: usize = 2048;
/// Headers of a call, at most.
const MAX_HEADERS: usize = 64;

/// A number that is not within its limits, both of them included.
#[must_use]
pub fn within<T: PartialOrd + Display>(pointer: &str, value: T, limits: RangeInclusive<T>) -> Option<FieldProblem> {
    (!limits.contains(&value)).then(|| {
        let problem = FieldProblem::new(pointer, format!("{value} is not within the limits"));
        problem.expected(format!("{} to {}", limits.start(), limits.end()))
    })
}

/// A weight: what something adds to a score that ends at 100.
#[must_use]
pub fn weight(pointer: &str, value: f64) -> Option<FieldProblem> {
    within(pointer, value, 0.0..=100.0)
}

/// The status of a refusal.
#[must_use]
pub fn status(pointer: &str, value: u16) -> Option<FieldProblem> {
    (!(200..=599).contains(&value)).then(|| {
        FieldProblem::new(pointer, format!("{value} is not a status of a final answer")).expected("200 to 599")
    })
}

/// A text that is too long.
#[must_use]
pub fn text(pointer: &str, text: &str, max_bytes: usize) -> Option<FieldProblem> {
    (text.len() > max_bytes).then(|| {
        let message = format!("the text has {} bytes", text.len());
        FieldProblem::new(pointer, message).expected(format!("at most {max_bytes} bytes"))
    })
}

/// A list with too many entries.
#[must_use]
pub fn count(pointer: &str, entries: usize, max: usize) -> Option<FieldProblem> {
    (entries > max).then(|| {
        FieldProblem::new(pointer, format!("the list has {entries} entries")).expected(format!("at most {max}"))
    })
}

/// What is wrong with a URL that is fetched or called. The URL is shown to every reader of the entity, so that
/// it must not have credentials in front of its host.
#[must_use]
pub fn url(pointer: &str, text: &str) -> Option<FieldProblem> {
    url_fault(text).map(|fault| {
        let problem = FieldProblem::new(pointer, format!("`{}` {fault}", shown(text)));
        problem.expected("a URL such as `https://example.com/list.txt`")
    })
}

/// [`url`] where the URL is a secret: the problem does not repeat it.
#[must_use]
pub fn secret_url(pointer: &str, secret: &Secret) -> Option<FieldProblem> {
    if secret.is_mask() {
        return None;
    }
    let fault = url_fault(secret.reveal())?;
    Some(FieldProblem::new(pointer, format!("this {fault}")).expected("a URL such as `https://example.com/hook`"))
}

/// What is wrong with the names of headers; values are secrets, which are checked where they are read.
#[must_use]
pub fn headers(pointer: &str, headers: &Headers) -> Vec<FieldProblem> {
    let wrong = headers.keys().filter(|name| HeaderName::from_bytes(name.as_bytes()).is_err());
    let wrong = wrong.map(|name| {
        let place = format!("{pointer}/{}", crate::problem::token(name));
        FieldProblem::new(place, format!("`{}` is not a header name", name.escape_debug()))
            .expected("such as `X-Api-Key`")
    });
    wrong.chain(count(pointer, headers.len(), MAX_HEADERS)).collect()
}

/// What is wrong with the tag of a signal.
#[must_use]
pub fn tag(pointer: &str, tag: &str) -> Option<FieldProblem> {
    let sane = tag.len() <= 128 && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":._-".contains(&byte));
    (!sane).then(|| {
        FieldProblem::new(pointer, format!("`{}` is not a tag", tag.escape_debug()))
            .expected("at most 128 characters of A-Z a-z 0-9 : . _ -")
    })
}

/// What is wrong with the name of a host, or its address.
#[must_use]
pub fn host(pointer: &str, host: &str) -> Option<FieldProblem> {
    let sane = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    (host.is_empty() || host.len() > 253 || !host.bytes().all(sane)).then(|| {
        FieldProblem::new(pointer, format!("`{}` is not a host", host.escape_debug()))
            .expected("a host name or an address, without port and scheme")
    })
}

/// The problem of an unknown word.
#[must_use]
pub fn word(pointer: &str, word: &str, known: &[&str]) -> Option<FieldProblem> {
    (!known.contains(&word)).then(|| {
        let hint = did_you_mean(word, known.iter().copied()).map(|near| format!(", did you mean `{near}`?"));
        let message = format!("unknown value `{}`{}", word.escape_debug(), hint.unwrap_or_default());
        FieldProblem::new(pointer, message).expected(format!("one of `{}`", known.join("`, `")))
    })
}

/// A field that must not be empty, and why.
#[must_use]
pub fn required(pointer: &str, present: bool, why: &str) -> Option<FieldProblem> {
    (!present).then(|| FieldProblem::new(pointer, why).expected("a value, or `enabled: false`"))
}

fn url_fault(text: &str) -> Option<&'static str> {
    if text.len() > MAX_URL {
        return Some("is longer than 2048 bytes");
    }
    let Ok(uri) = text.parse::<Uri>() else { return Some("is not a URL") };
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Some("does not begin with http:// or https://");
    }
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => Some("has credentials: put them into a header"),
        Some(authority) if !authority.host().is_empty() => None,
        _ => Some("names no host"),
    }
}

/// A URL without credentials, cut if it is long.
fn shown(text: &str) -> String {
    let text = match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}***{}", text.get(..scheme + 3).unwrap_or_default(), text.get(at..).unwrap_or_default())
        }
        _ => text.to_owned(),
    };
    text.chars().take(200).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_scheme_a_host_and_no_credentials() {
        for fine in ["http://a", "https://a.example:8443/x?y=z", "http://[::1]:80/", "http://127.0.0.1:1/a%20b"] {
            assert_eq!(url("/url", fine), None, "{fine}");
        }
        for (wrong, says) in [
            ("", "is not a URL"),
            ("a b", "is not a URL"),
            ("/path", "does not begin with http"),
            ("ftp://a/", "does not begin with http"),
            ("http://u:hunter2@a/", "`http://***@a/` has credentials"),
            (&format!("http://a/{}", "x".repeat(2040)), "is longer than 2048 bytes"),
        ] {
            let problem = url("/url", wrong).unwrap().to_string();
            assert!(problem.contains(says) && !problem.contains("hunter2") && problem.len() < 400, "{problem}");
            let hidden = secret_url("/url", &Secret::from(wrong)).unwrap().to_string();
            assert!(wrong.len() < 5 || !hidden.contains(wrong), "{hidden}");
        }
        assert_eq!(url("/url", &format!("http://a/{}", "x".repeat(2039))), None);
    }

    #[test]
    fn limits_are_included() {
        assert_eq!(within("/n", 1, 1..=5), None);
        assert_eq!(within("/n", 5, 1..=5), None);
        assert_eq!(within("/n", 6, 1..=5).unwrap().to_string(), "/n: 6 is not within the limits (expected 1 to 5)");
        assert!(weight("/w", f64::NAN).is_some());
        assert_eq!((text("/t", "ab", 2), count("/l", 2, 2), tag("/t", &"x".repeat(128))), (None, None, None));
        assert!(text("/t", "abc", 2).is_some() && count("/l", 3, 2).is_some() && tag("/t", &"x".repeat(129)).is_some());
        assert!(tag("/t", "a b").is_some() && host("/h", "http://a").is_some() && host("/h", "::1").is_none());
        let problem = word("/w", "seach", &["search", "ai"]).unwrap().to_string();
        assert_eq!(problem, "/w: unknown value `seach`, did you mean `search`? (expected one of `search`, `ai`)");
        let names = Headers::from([("X-Key".to_owned(), Secret::default()), ("a b".to_owned(), Secret::default())]);
        let pointers: Vec<_> = headers("/headers", &names).into_iter().map(|problem| problem.pointer).collect();
        assert_eq!(pointers, ["/headers/a b"]);
    }
}
