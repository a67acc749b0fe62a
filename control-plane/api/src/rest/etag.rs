//! Entity tags: the revision that wrote the entity, and the conditions on it (RFC 9110, section 13).

use std::sync::Arc;

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName};

use entities::Precondition;

/// The tag of a revision, as the `ETag` header has it.
pub(super) fn tag(revision: u64) -> String {
    format!("\"{revision}\"")
}

/// The revision that a tag stands for; `None` for what is no tag of an entity.
pub(super) fn revision(tag: &str) -> Option<u64> {
    let revision = tag.strip_prefix('"')?.strip_suffix('"')?.parse().ok()?;
    (self::tag(revision) == tag).then_some(revision)
}

/// The condition of `If-Match`, when there is one.
pub(super) fn if_match(headers: &HeaderMap) -> Option<Precondition> {
    let tags = tags(headers, &IF_MATCH)?;
    Some(Arc::new(move |revision| {
        let own = tag(revision);
        // The comparison is strong: a weak tag never matches.
        tags.iter().any(|tag| tag == "*" || *tag == own)
    }))
}

/// Whether the caller has this revision already.
pub(super) fn is_cached(headers: &HeaderMap, revision: u64) -> bool {
    let own = tag(revision);
    let weak = |tag: &String| tag.strip_prefix("W/").unwrap_or(tag) == own || tag == "*";
    tags(headers, &IF_NONE_MATCH).is_some_and(|tags| tags.iter().any(weak))
}

fn tags(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<String>> {
    headers.contains_key(name).then(|| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(|tag| tag.trim().to_owned()).collect()
    })
}
