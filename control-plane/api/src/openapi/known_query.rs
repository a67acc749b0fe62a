//! Parameters of the query that no description has: a misspelt one would be ignored, and its answer read as another one.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Query, Request};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::Operation;
use crate::error::ApiError;
use entities::did_you_mean;

/// The characters of a name that are repeated in an error, at most.
const MAX_CHARS: usize = 64;

/// The parameters that a route takes.
pub(super) struct KnownQuery {
    names: BTreeSet<String>,
    prefixes: BTreeSet<&'static str>,
}

impl KnownQuery {
    /// Those of a route with these operations; `None` if it takes any.
    pub(super) fn of(operations: &[Operation]) -> Option<KnownQuery> {
        if operations.iter().any(|operation| operation.takes_any_query) {
            return None;
        }
        let names = operations.iter().flat_map(Operation::query_names).map(str::to_owned).collect();
        let prefixes = operations.iter().flat_map(|operation| operation.query_prefixes.iter().copied()).collect();
        Some(KnownQuery { names, prefixes })
    }

    /// Adds the refusal to a description.
    pub(super) fn describe(operation: Operation) -> Operation {
        operation.fails(StatusCode::BAD_REQUEST, "invalid_query", "a query parameter is invalid or unknown.")
    }

    /// What is wrong with a query; `None` if nothing is.
    fn problem(&self, parameters: &[(String, String)]) -> Option<String> {
        let is_known =
            |name: &str| self.names.contains(name) || self.prefixes.iter().any(|prefix| name.starts_with(prefix));
        let (unknown, _) = parameters.iter().find(|(name, _)| !is_known(name))?;
        let shown: String = unknown.chars().take(MAX_CHARS).collect();
        let shown = shown.escape_debug();
        if self.names.is_empty() && self.prefixes.is_empty() {
            return Some(format!("this endpoint has no query parameters, and so no `{shown}`"));
        }
        let near = did_you_mean(unknown, self.names.iter().map(String::as_str));
        let near = near.map(|near| format!(", did you mean `{near}`? There")).unwrap_or("; there".to_owned());
        let own = self.names.iter().filter(|name| !self.prefixes.iter().any(|prefix| name.starts_with(prefix)));
        let families = self.prefixes.iter().map(|prefix| format!("`{prefix}<field>`"));
        let known: Vec<String> = own.map(|name| format!("`{name}`")).chain(families).collect();
        Some(format!("there is no query parameter `{shown}`{near} are: {}", known.join(", ")))
    }
}

/// Refuses a request with a parameter that the route does not take.
pub(super) async fn refuse(known: Arc<KnownQuery>, request: Request, next: Next) -> Response {
    // What cannot be read has no names that could be known.
    let problem = match Query::<Vec<(String, String)>>::try_from_uri(request.uri()) {
        Ok(Query(parameters)) => known.problem(&parameters),
        Err(rejection) => Some(rejection.body_text()),
    };
    match problem {
        None => next.run(request).await,
        Some(problem) => ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", problem).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use serde_json::json;

    use super::super::Group;
    use super::*;

    fn operation() -> Operation {
        let group = Group { name: "g".to_owned(), about: String::new() };
        Operation::new(Method::GET, "/things", "things", group, "List").in_header("if-match", json!({}), "A header.")
    }

    fn problem(operations: &[Operation], name: &str) -> Option<String> {
        KnownQuery::of(operations).unwrap().problem(&[(name.to_owned(), String::new())])
    }

    #[test]
    fn a_name_that_is_not_described_is_refused_with_those_that_are() {
        let list = operation()
            .in_query("page", json!({}), "")
            .in_query("pageSize", json!({}), "")
            .in_query("filter.id", json!({}), "")
            .in_query_from("filter.");
        for known in ["page", "pageSize", "filter.id", "filter.other"] {
            assert_eq!(problem(std::slice::from_ref(&list), known), None, "{known}");
        }
        let slip = problem(std::slice::from_ref(&list), "pagesize").unwrap();
        let expected = "there is no query parameter `pagesize`, did you mean `pageSize`? There are: `page`, `pageSize`, `filter.<field>`";
        assert_eq!(slip, expected);
        let far = problem(std::slice::from_ref(&list), "\u{0}colour").unwrap();
        assert!(far.starts_with("there is no query parameter `\\0colour`; there are: `page`"), "{far}");
        for unknown in ["Page", "", "if-match", "filter"] {
            assert!(problem(std::slice::from_ref(&list), unknown).is_some(), "{unknown}");
        }
        assert!(problem(&[list, operation().in_query("other", json!({}), "")], "other").is_none());
        assert_eq!(problem(&[operation()], "x").unwrap(), "this endpoint has no query parameters, and so no `x`");
        assert!(KnownQuery::of(&[operation().takes_any_query()]).is_none());
    }
}
