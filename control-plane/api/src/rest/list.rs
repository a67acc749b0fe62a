//! Lists: filtered, sorted, cut into pages, reduced to the fields asked for.

use std::cmp::Ordering;

use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::fields::Fields;
use crate::error::ApiError;
use crate::query::positive;
use entities::Slot;

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

/// Something that a list shows.
pub(super) trait Listed {
    /// The value of a field that needs no document: `Some(None)` where it is certain that there is none.
    fn of_head(&self, field: &str) -> Option<Option<Value>>;
    /// The whole document.
    fn document(&self) -> Value;
}

/// An item of a list with what it is judged by.
struct Entry<T> {
    item: T,
    keys: Vec<Option<Value>>,
    document: Option<Value>,
}

impl Listed for &Slot {
    fn of_head(&self, field: &str) -> Option<Option<Value>> {
        let head = self.entity.head();
        let text = |text: &str| Some(Some(Value::from(text)));
        match field {
            "id" => text(&head.id),
            "name" => text(&head.name),
            "description" => text(&head.description),
            "tags" => Some(Some(head.tags.iter().map(String::as_str).collect())),
            field => {
                let key = field.strip_prefix("metadata.").filter(|key| !key.contains('.'))?;
                Some(head.metadata.get(key).cloned())
            }
        }
    }

    fn document(&self) -> Value {
        self.entity.shown()
    }
}

impl ListQuery {
    /// Reads the query's parameters; their names are known. `fields` are those of the documents.
    pub(super) fn read(parameters: &[(String, String)], fields: &Fields) -> Result<ListQuery, ApiError> {
        let mut query = ListQuery::default();
        for (name, value) in parameters {
            match name.as_str() {
                "page" => query.page = Some(positive(name, value)?),
                "pageSize" => query.page_size = Some(positive(name, value)?),
                "fields" => {
                    for field in words(value) {
                        fields.known(name, field)?;
                        query.fields.push(field.to_owned());
                    }
                }
                "sorted" => {
                    for word in words(value) {
                        let (field, descending) = order(word)?;
                        fields.known(name, field)?;
                        query.sorted.push((field.to_owned(), descending));
                    }
                }
                "envelope" => query.envelope = switch(name, value)?,
                "pretty" => query.pretty = switch(name, value)?,
                _ => {
                    if let Some(field) = name.strip_prefix("filter.") {
                        fields.known(name, field)?;
                        query.filters.push((field.to_owned(), value.clone()));
                    }
                }
            }
        }
        Ok(query)
    }

    /// Applies the query to all entities of a collection. Documents are written out for the page alone, and for all only
    /// where a filter or an order looks at fields of the collection's own.
    pub(super) fn apply<T: Listed>(&self, items: impl Iterator<Item = T>) -> Page {
        let mut entries: Vec<Entry<T>> = items.map(|item| self.entry(item)).collect();
        let (filters, orders) = (self.filters.iter(), self.sorted.iter());
        entries.retain(|entry| {
            filters.clone().zip(&entry.keys).all(|((_, wanted), value)| matches(value.as_ref(), wanted))
        });
        let filters = filters.len();
        entries.sort_by(|left, right| {
            let keys = left.keys.iter().zip(&right.keys).skip(filters);
            let orders = orders.clone().zip(keys).map(|((_, descending), (left, right))| {
                let order = compare(left.as_ref(), right.as_ref());
                if *descending { order.reverse() } else { order }
            });
            orders.fold(Ordering::Equal, Ordering::then)
        });
        let mut pages = 1;
        if self.page.is_some() || self.page_size.is_some() {
            let size = self.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
            pages = entries.len().div_ceil(size).max(1);
            let skipped = self.page.unwrap_or(1).saturating_sub(1).saturating_mul(size);
            entries = entries.into_iter().skip(skipped).take(size).collect();
        }
        let items =
            entries.into_iter().map(|entry| self.project(entry.document.unwrap_or_else(|| entry.item.document())));
        Page { items: items.collect(), pages }
    }

    /// The values of an item that filters and orders look at, in their order.
    fn entry<T: Listed>(&self, item: T) -> Entry<T> {
        let fields = self.filters.iter().map(|(field, _)| field).chain(self.sorted.iter().map(|(field, _)| field));
        let mut document = None;
        let keys = fields.map(|field| match item.of_head(field) {
            Some(value) => value,
            None => at(document.get_or_insert_with(|| item.document()), field).cloned(),
        });
        let keys = keys.collect();
        Entry { item, keys, document }
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

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(|word| word.trim_matches([' ', '\n'])).filter(|word| !word.is_empty())
}

/// A field to sort by, and whether it is the other way round.
fn order(word: &str) -> Result<(&str, bool), ApiError> {
    match word.rsplit_once(':') {
        None => Ok((word, false)),
        Some((field, "asc")) => Ok((field, false)),
        Some((field, "desc")) => Ok((field, true)),
        Some((_, direction)) => {
            let message = format!("`sorted` has `:asc` or `:desc` behind a field, not `:{}`", direction.escape_debug());
            Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message))
        }
    }
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

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;

    use super::*;

    impl Listed for Value {
        fn of_head(&self, field: &str) -> Option<Option<Value>> {
            (field == "id").then(|| self.get("id").cloned())
        }

        fn document(&self) -> Value {
            self.clone()
        }
    }

    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        json!({ "properties": {
            "id": {}, "n": {}, "tags": { "type": "array" }, "metadata": { "additionalProperties": true }, "on": {},
        } })
    });

    fn known() -> Fields<'static> {
        Fields::of(&SCHEMA)
    }

    fn refused(name: &str, value: &str) -> String {
        let error = ListQuery::read(&[(name.to_owned(), value.to_owned())], &known()).unwrap_err();
        format!("{error:?}")
    }

    fn ids(query: &[(&str, &str)]) -> (Vec<String>, usize) {
        let items = vec![
            json!({"id": "a", "n": 2, "tags": ["x"], "metadata": {"team": "red"}, "on": true}),
            json!({"id": "b", "n": 10, "tags": ["x", "y"], "metadata": {}, "on": false}),
            json!({"id": "c", "n": 1, "tags": [], "metadata": {"team": "blue"}, "on": true}),
        ];
        let parameters: Vec<_> = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let page = ListQuery::read(&parameters, &known()).unwrap().apply(items.into_iter());
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
        assert_eq!(ids(&[("filter.metadata.other", "")]).0, Vec::<String>::new());
        assert_eq!(ids(&[("sorted", " , on:desc ,n"), ("fields", "")]).0, ["c", "a", "b"]);
        for bad in ["0", "-1", "x", "", "4294967296"] {
            assert!(refused("page", bad).contains("invalid_query"));
        }
        assert!(refused("filter.tgas", "x").contains("did you mean `tags`?"), "{}", refused("filter.tgas", "x"));
        for (name, value) in
            [("filter.", ""), ("filter.on.x", ""), ("sorted", "m:desc"), ("sorted", "n:down"), ("fields", "n,no")]
        {
            assert!(refused(name, value).contains("invalid_query"), "{name}={value}");
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
