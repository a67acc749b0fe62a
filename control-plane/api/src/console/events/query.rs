//! What is looked for, as the query says it.

use axum::http::StatusCode;

use crate::error::ApiError;
use crate::query::positive;
use base::clock;
use base::identity::Identity;
use store::events::{EventField, EventQuery, MAX_VALUE_BYTES};

/// The events of a page if the query does not say, and at most.
pub(in crate::console) const PAGE: (u32, u32) = (100, 500);

/// The filters: their names, and what they are about.
pub(super) const FILTERS: [(&str, EventField); 15] = [
    ("filter.reference", EventField::Reference),
    ("filter.ref", EventField::Identity),
    ("filter.route", EventField::Route),
    ("filter.config", EventField::Config),
    ("filter.policy", EventField::Policy),
    ("filter.rule", EventField::Rule),
    ("filter.plugin", EventField::Plugin),
    ("filter.outcome", EventField::Outcome),
    ("filter.action", EventField::Action),
    ("filter.category", EventField::Category),
    ("filter.dry_run", EventField::DryRun),
    ("filter.incident", EventField::Incident),
    ("filter.node", EventField::Node),
    ("filter.type", EventField::Type),
    ("filter.id", EventField::Id),
];

/// Reads the query of a search. A parameter that comes twice is refused: the last one would hide the first.
pub(in crate::console) fn search(parameters: &[(String, String)]) -> Result<EventQuery, ApiError> {
    let mut query = EventQuery { filters: filters(parameters)?, limit: PAGE.0, ..EventQuery::default() };
    for (name, value) in parameters {
        match name.as_str() {
            "from" => query.from_millis = time(name, value)?,
            "until" => query.until_millis = Some(time(name, value)?),
            "limit" => {
                let limit = u32::try_from(positive(name, value)?).unwrap_or(u32::MAX);
                if limit > PAGE.1 {
                    return Err(wrong(format!("`limit` is at most {}", PAGE.1)));
                }
                query.limit = limit;
            }
            "cursor" => query.before = Some(cursor(value)?),
            _ => {}
        }
    }
    Ok(query)
}

/// The filters of a query.
pub(super) fn filters(parameters: &[(String, String)]) -> Result<Vec<(EventField, String)>, ApiError> {
    let mut filters: Vec<(EventField, String)> = Vec::new();
    for (place, (name, value)) in parameters.iter().enumerate() {
        if parameters.iter().take(place).any(|(before, _)| before == name) {
            return Err(wrong(format!("`{}` comes twice", name.escape_debug())));
        }
        let Some((_, field)) = FILTERS.iter().find(|(known, _)| known == name) else { continue };
        filters.push((*field, wanted(name, *field, value)?));
    }
    Ok(filters)
}

fn wanted(name: &str, field: EventField, value: &str) -> Result<String, ApiError> {
    if value.is_empty() || value.len() > MAX_VALUE_BYTES {
        return Err(wrong(format!("`{name}` has 1 to {MAX_VALUE_BYTES} bytes, not {}", value.len())));
    }
    match field {
        EventField::Identity => {
            let identity = Identity::parse(value).map_err(|error| wrong(format!("`{name}`: {error}")))?;
            let key = identity.key();
            if identity.is_range() && key.contains('.') {
                return Err(wrong(format!("`{name}` is one caller; events have no ranges of IPv4")));
            }
            Ok(key)
        }
        EventField::DryRun if value != "true" => Err(wrong(format!("`{name}` is `true`, or left out"))),
        _ => Ok(value.to_owned()),
    }
}

/// A time of RFC 3339 in UTC, or in milliseconds since 1970.
fn time(name: &str, value: &str) -> Result<u64, ApiError> {
    value.parse().ok().or_else(|| clock::rfc3339_millis(value)).ok_or_else(|| {
        let shown: String = value.chars().take(64).collect();
        wrong(format!(
            "`{name}` is a time such as 2026-11-27T07:06:24Z, or milliseconds since 1970, not `{}`",
            shown.escape_debug()
        ))
    })
}

/// A cursor is opaque to callers, so that what it is can change.
pub(super) fn cursor_text(place: u64) -> String {
    format!("{place:016x}")
}

fn cursor(text: &str) -> Result<u64, ApiError> {
    let place = u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16 && !text.starts_with('+'));
    place.ok_or_else(|| wrong("`cursor` is not the `next` of an answer".to_owned()))
}

pub(in crate::console) fn wrong(message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<EventQuery, ApiError> {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        search(&pairs)
    }

    #[test]
    fn a_query_is_read_or_refused_with_what_is_wrong() {
        let query = read(&[
            ("filter.ref", "ip:::ffff:192.0.2.1"),
            ("filter.route", "a*%_b"),
            ("from", "2026-11-27T07:06:24Z"),
            ("until", "1800000000000"),
            ("limit", "7"),
            ("cursor", "00000000000000ff"),
        ])
        .unwrap();
        let expected = [(EventField::Identity, "ip:192.0.2.1"), (EventField::Route, "a*%_b")];
        assert_eq!(query.filters, expected.map(|(field, value)| (field, value.to_owned())));
        assert_eq!((query.until_millis, query.limit, query.before), (Some(1_800_000_000_000), 7, Some(255)));
        assert!(read(&[("filter.ref", "ip:2001:db8::/64")]).is_ok());
        assert!(read(&[("filter.ref", "ip:fd00::/48")]).is_ok());
        for (name, value) in [
            ("filter.ref", "192.0.2.1"),
            ("filter.ref", "ip:192.0.2.0/24"),
            ("filter.ref", "user:"),
            ("filter.route", ""),
            ("filter.route", "x".repeat(1025).as_str()),
            ("filter.dry_run", "false"),
            ("from", "yesterday"),
            ("until", "-1"),
            ("limit", "0"),
            ("limit", "501"),
            ("cursor", "xyz"),
            ("cursor", "+00000000000000f"),
            ("cursor", ""),
        ] {
            let refused = format!("{:?}", read(&[(name, value)]).unwrap_err());
            assert!(refused.contains("invalid_query") && refused.contains(name), "{name}={value}: {refused}");
        }
        assert!(read(&[("filter.route", "a"), ("filter.route", "b")]).is_err());
        assert_eq!(cursor(&cursor_text(u64::MAX)).unwrap(), u64::MAX);
    }
}
