//! Which page of a long list is asked for, by the conventions of the entity API.

use axum::extract::Query;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use crate::error::ApiError;
use crate::openapi::Operation;
use crate::query::{PAGES, Parameters, positive};
use base::identity::Identity;
use base::search::Search;

/// The entries of a page where nothing else is said.
pub(super) const DEFAULT_SIZE: usize = 1000;
/// The entries of a page, at most.
pub(super) const MAX_SIZE: usize = 10_000;
/// How many entries there are on all pages.
pub(super) const TOTAL: HeaderName = HeaderName::from_static("x-total");

/// A page, and the filters by name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Paging {
    page: usize,
    size: usize,
    filters: Vec<(&'static str, String)>,
}

impl Paging {
    /// Reads the query. `filters` are the fields that can be filtered by; another one is refused, because a filter that does
    /// nothing would show what was not asked for.
    pub(super) fn read(Query(parameters): Parameters, filters: &[&'static str]) -> Result<Paging, ApiError> {
        let wrong = |message: String| ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message);
        let mut paging = Paging { page: 1, size: DEFAULT_SIZE, filters: Vec::new() };
        for (name, value) in &parameters {
            match name.as_str() {
                "page" => paging.page = positive(name, value)?,
                "pageSize" => paging.size = positive(name, value)?,
                _ => {
                    let Some(field) = name.strip_prefix("filter.") else { continue };
                    let known = filters.iter().find(|known| **known == field).ok_or_else(|| {
                        let field = field.chars().take(64).collect::<String>();
                        let known = filters.join("`, `filter.");
                        wrong(format!("`filter.{}` is none that this list has: `filter.{known}`", field.escape_debug()))
                    })?;
                    paging.filters.push((known, value.clone()));
                }
            }
        }
        if paging.size > MAX_SIZE {
            return Err(wrong(format!("`pageSize` is at most {MAX_SIZE}")));
        }
        Ok(paging)
    }

    /// The value that a field is to have; the last one counts.
    pub(super) fn filter(&self, field: &str) -> Option<&str> {
        self.filters.iter().rev().find(|(known, _)| *known == field).map(|(_, value)| value.as_str())
    }

    /// What is searched for; `None` where nothing is. `identity` reads the identity that the text may be.
    pub(super) fn search(&self, identity: impl Fn(&str) -> Result<Identity, String>) -> Option<Search> {
        Search::of(self.filter("text")?, identity)
    }

    /// How many entries are left out before the page.
    pub(super) fn skip(&self) -> usize {
        (self.page - 1).saturating_mul(self.size)
    }

    /// The entries of the page, at most.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The page of a list that is there as a whole.
    pub(super) fn cut<T>(&self, all: Vec<T>) -> impl Iterator<Item = T> {
        all.into_iter().skip(self.skip()).take(self.size)
    }

    /// An answer of `{field: [items]}`, whose headers say how much there is in all.
    pub(super) fn answer<T: Serialize>(&self, field: &str, items: impl Iterator<Item = T>, total: usize) -> Response {
        // Each by itself: as one tree of values, a full page would take many times its size.
        let mut body = format!("{{{}:[", json!(field)).into_bytes();
        for item in items {
            // One that cannot be written is left out, with its comma.
            let Ok(line) = serde_json::to_vec(&item) else { continue };
            // The first one follows the bracket.
            if !body.ends_with(b"[") {
                body.push(b',');
            }
            body.extend_from_slice(&line);
        }
        body.extend_from_slice(b"]}");
        let number = |number: usize| HeaderValue::from(u64::try_from(number).unwrap_or(u64::MAX));
        let pages = total.div_ceil(self.size).max(1);
        let kind = HeaderValue::from_static("application/json");
        let headers = [(axum::http::header::CONTENT_TYPE, kind), (PAGES, number(pages)), (TOTAL, number(total))];
        (headers, body).into_response()
    }
}

/// Describes the parameters and headers of a list with pages.
pub(super) fn describe(operation: Operation, filters: &[(&str, &str)]) -> Operation {
    let number = |most: usize| json!({ "type": "integer", "minimum": 1, "maximum": most });
    let operation = operation
        .in_query("page", number(u32::MAX as usize), "The page, from 1.")
        .in_query("pageSize", number(MAX_SIZE), &format!("Entries of a page. Default {DEFAULT_SIZE}."))
        .with_header(StatusCode::OK, &PAGES, true)
        .with_header(StatusCode::OK, &TOTAL, true)
        .fails(StatusCode::BAD_REQUEST, "invalid_query", "a query parameter is invalid or unknown.");
    let text = || json!({ "type": "string" });
    filters
        .iter()
        .fold(operation, |operation, (field, about)| operation.in_query(&format!("filter.{field}"), text(), about))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Paging, ApiError> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Paging::read(Query(pairs.collect()), &["ref", "reason"])
    }

    #[test]
    fn pages_have_a_default_and_a_bound() {
        let first = read(&[]).unwrap();
        assert_eq!((first.skip(), first.size(), first.filter("ref")), (0, 1000, None));
        let third = read(&[("page", "3"), ("pageSize", "7"), ("filter.ref", "a"), ("filter.ref", "b")]).unwrap();
        assert_eq!((third.skip(), third.size(), third.filter("ref")), (14, 7, Some("b")));
        assert!(read(&[("page", &u32::MAX.to_string())]).is_ok() && read(&[("other", "x")]).is_ok());
        for wrong in [("page", "0"), ("page", "-1"), ("pageSize", "10001"), ("pageSize", "x"), ("filter.colour", "x")] {
            assert!(read(&[wrong]).is_err(), "{wrong:?}");
        }
    }
}
