//! Lists: filtered, sorted, cut into pages, reduced to the fields asked for.

use std::cmp::Ordering;

use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::ApiError;

/// The query of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ListQuery {
    page: Option<usize>,
    page_size: Option<usize>,
    fields: Vec<String>,
    filters: Vec<(String, String)>,
    sorted: Vec<(String, bool)>,
    pub(super) envelope: bool,
    pub(super) pretty: bool,
}

/// What a list answers.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    pub(super) items: Vec<Value>,
    pub(super) pages: usize,
}

impl ListQuery {
    /// Reads the query's parameters. Unknown ones are left to others (a proxy may add its own).
    pub(super) fn read(parameters: &[(String, String)]) -> Result<ListQuery, ApiError> {
        let mut query = ListQuery::default();
        for (name, value) in parameters {
            match name.as_str() {
                "page" => query.page = Some(positive(name, value)?),
                "pageSize" => query.page_size = Some(positive(name, value)?),
                "fields" => query.fields.extend(words(value)),
                "sorted" => query.sorted.extend(words(value).map(|field| match field.rsplit_once(':') {
                    Some((field, direction)) => (field.to_owned(), direction == "desc"),
                    None => (field, false),
                })),
                "envelope" => query.envelope = switch(name, value)?,
                "pretty" => query.pretty = switch(name, value)?,
                _ => {
                    if let Some(field) = name.strip_prefix("filter.") {
                        query.filters.push((field.to_owned(), value.clone()));
                    }
                }
            }
        }
        Ok(query)
    }

    /// Applies the query to all entities of a collection.
    pub(super) fn apply(&self, mut items: Vec<Value>) -> Page {
        items.retain(|item| self.filters.iter().all(|(field, wanted)| matches(at(item, field), wanted)));
        items.sort_by(|left, right| {
            let orders = self.sorted.iter().map(|(field, descending)| {
                let order = compare(at(left, field), at(right, field));
                if *descending { order.reverse() } else { order }
            });
            orders.fold(Ordering::Equal, Ordering::then)
        });
        let mut pages = 1;
        if self.page.is_some() || self.page_size.is_some() {
            let size = self.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
            pages = items.len().div_ceil(size).max(1);
            let skipped = self.page.unwrap_or(1).saturating_sub(1).saturating_mul(size);
            items = items.into_iter().skip(skipped).take(size).collect();
        }
        Page { items: items.into_iter().map(|item| self.project(item)).collect(), pages }
    }

    /// Leaves only the fields that were asked for.
    pub(super) fn project(&self, item: Value) -> Value {
        if self.fields.is_empty() {
            return item;
        }
        let mut projected = Map::new();
        for field in &self.fields {
            if let Some(value) = at(&item, field) {
                projected.insert(field.clone(), value.clone());
            }
        }
        Value::Object(projected)
    }
}

/// Entities on a page when only `page` was given.
pub(super) const DEFAULT_PAGE_SIZE: usize = 50;

/// The value at a field; a dot goes one object deeper.
fn at<'a>(item: &'a Value, field: &str) -> Option<&'a Value> {
    item.get(field).or_else(|| field.split('.').try_fold(item, |value, step| value.get(step)))
}

/// Whether a field has the wanted value; a list has it when one of its entries is it.
fn matches(value: Option<&Value>, wanted: &str) -> bool {
    match value {
        Some(Value::String(text)) => text == wanted,
        Some(Value::Array(entries)) => entries.iter().any(|entry| matches(Some(entry), wanted)),
        Some(Value::Bool(flag)) => wanted == if *flag { "true" } else { "false" },
        Some(Value::Number(number)) => wanted.parse::<f64>().is_ok_and(|wanted| number.as_f64() == Some(wanted)),
        Some(Value::Null) => wanted == "null",
        Some(Value::Object(_)) | None => false,
    }
}

fn compare(left: Option<&Value>, right: Option<&Value>) -> Ordering {
    let rank = |value: Option<&Value>| match value {
        None | Some(Value::Null) => 0,
        Some(Value::Bool(_)) => 1,
        Some(Value::Number(_)) => 2,
        Some(Value::String(_)) => 3,
        Some(_) => 4,
    };
    match (left, right) {
        (Some(Value::String(left)), Some(Value::String(right))) => left.cmp(right),
        (Some(Value::Bool(left)), Some(Value::Bool(right))) => left.cmp(right),
        (Some(Value::Number(left)), Some(Value::Number(right))) => {
            left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal)
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn words(list: &str) -> impl Iterator<Item = String> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty()).map(ToOwned::to_owned)
}

/// Whether the switch of this name is on: the last one counts, and one that is not there is off.
pub(super) fn on(parameters: &[(String, String)], name: &str) -> Result<bool, ApiError> {
    let given = parameters.iter().filter(|(given, _)| given == name);
    given.map(|(_, value)| switch(name, value)).try_fold(false, |_, value| value)
}

/// Whether a switch is on; one without a value is. A slip is refused: `force=flase` must not delete anything.
fn switch(name: &str, value: &str) -> Result<bool, ApiError> {
    match value {
        "" | "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => {
            let message = format!("`{name}` is true or false, not `{}`", value.escape_debug());
            Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message))
        }
    }
}

fn positive(name: &str, value: &str) -> Result<usize, ApiError> {
    let number = value.parse::<u32>().ok().and_then(|number| usize::try_from(number).ok());
    number.filter(|number| *number > 0).ok_or_else(|| {
        let message = format!("`{name}` is a whole number from 1 to {}, not `{}`", u32::MAX, value.escape_debug());
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ids(query: &[(&str, &str)]) -> (Vec<String>, usize) {
        let items = vec![
            json!({"id": "a", "n": 2, "tags": ["x"], "metadata": {"team": "red"}, "on": true}),
            json!({"id": "b", "n": 10, "tags": ["x", "y"], "metadata": {}, "on": false}),
            json!({"id": "c", "n": 1, "tags": [], "metadata": {"team": "blue"}, "on": true}),
        ];
        let parameters: Vec<_> = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let page = ListQuery::read(&parameters).unwrap().apply(items);
        (page.items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect(), page.pages)
    }

    #[test]
    fn filters_sorts_and_pages() {
        assert_eq!(ids(&[]), (vec!["a".into(), "b".into(), "c".into()], 1));
        assert_eq!(ids(&[("page", "2"), ("pageSize", "2")]), (vec!["c".into()], 2));
        assert_eq!(ids(&[("page", "9"), ("pageSize", "2")]), (vec![], 2));
        assert_eq!(ids(&[("sorted", "n:desc")]).0, ["b", "a", "c"]);
        assert_eq!(ids(&[("sorted", "on,n:asc")]).0, ["b", "c", "a"]);
        assert_eq!(ids(&[("filter.tags", "x"), ("filter.on", "true")]).0, ["a"]);
        assert_eq!(ids(&[("filter.metadata.team", "blue")]).0, ["c"]);
        assert_eq!(ids(&[("filter.nothing", "")]).0, Vec::<String>::new());
        for bad in ["0", "-1", "x", "", "4294967296"] {
            assert!(ListQuery::read(&[("page".to_owned(), bad.to_owned())]).is_err());
        }
    }

    #[test]
    fn a_switch_is_on_off_or_refused() {
        let given = |values: &[&str]| {
            let parameters: Vec<_> = values.iter().map(|value| ("force".to_owned(), (*value).to_owned())).collect();
            on(&parameters, "force").ok()
        };
        assert_eq!(given(&[]), Some(false));
        assert_eq!(given(&[""]), Some(true));
        assert_eq!((given(&["true"]), given(&["1"]), given(&["yes"])), (Some(true), Some(true), Some(true)));
        assert_eq!((given(&["false"]), given(&["0"]), given(&["no"])), (Some(false), Some(false), Some(false)));
        assert_eq!(given(&["true", "false"]), Some(false));
        for slip in ["flase", "TRUE", "2"] {
            assert_eq!((given(&[slip]), given(&["true", slip]), given(&[slip, "true"])), (None, None, None), "{slip}");
        }
    }
}
