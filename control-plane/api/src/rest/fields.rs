//! The fields of a collection's documents, as queries name them: with dots for those within.

use axum::http::StatusCode;
use serde_json::Value;

use crate::error::ApiError;
use entities::{Kind, did_you_mean};

/// The characters of a name that are repeated in an error, at most.
const MAX_CHARS: usize = 64;

/// The fields that documents of a schema can have.
pub(super) struct Fields<'a> {
    schema: &'a Value,
}

impl Fields<'static> {
    /// Those of a collection.
    pub(super) fn of_kind(kind: &Kind) -> Fields<'static> {
        Fields { schema: entities::registry::schema(kind) }
    }
}

impl<'a> Fields<'a> {
    /// Those of a schema.
    #[cfg(test)]
    pub(super) fn of(schema: &'a Value) -> Fields<'a> {
        Fields { schema }
    }

    /// Refuses a field that no document has; `parameter` names it.
    pub(super) fn known(&self, parameter: &str, field: &str) -> Result<(), ApiError> {
        let steps: Vec<&str> = field.split('.').collect();
        if self.has(self.schema, &steps) {
            return Ok(());
        }
        let cut = |text: &str| text.chars().take(MAX_CHARS).collect::<String>().escape_debug().to_string();
        let near = did_you_mean(field, self.names());
        let near = near.map(|near| format!(", did you mean `{near}`? Its")).unwrap_or("; its".to_owned());
        let names: Vec<String> = self.names().map(|name| format!("`{name}`")).collect();
        let message = format!(
            "`{}`: no entity of this collection has a field `{}`{near} fields are: {}, with dots for nested ones",
            cut(parameter),
            cut(field),
            names.join(", ")
        );
        Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message))
    }

    /// The names of the outermost fields.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str))
    }

    /// A regular expression of one field, for the API's description: the outermost ones, and what is in objects.
    pub(super) fn pattern(&self) -> String {
        let names: Vec<String> = self
            .names()
            .map(|name| match self.has(self.schema, &[name, "x"]) {
                true => format!("{name}(\\.[^.,: ]+)*"),
                false => name.to_owned(),
            })
            .collect();
        format!("({})", names.join("|"))
    }

    fn has(&self, schema: &Value, steps: &[&str]) -> bool {
        let Some((step, rest)) = steps.split_first() else { return true };
        if step.is_empty() {
            return false;
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.schema.pointer(target.trim_start_matches('#'));
            return target.is_some_and(|target| self.has(target, steps));
        }
        let any = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
        if any.into_iter().any(|one| self.has(one, steps)) {
            return true;
        }
        match schema.get("properties").and_then(|properties| properties.get(step)) {
            Some(property) => self.has(property, rest),
            None => match schema.get("additionalProperties") {
                Some(Value::Bool(true)) => true,
                Some(further @ Value::Object(_)) => rest.is_empty() || self.has(further, rest),
                _ => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use entities::registry;

    use super::*;

    #[test]
    fn fields_are_found_as_deep_as_they_are() {
        let of = |collection: &str| Fields::of_kind(registry::by_collection(collection).unwrap());
        for (collection, field, is_known) in [
            ("waf-configs", "enabled", true),
            ("waf-configs", "crs.paranoia_level", true),
            ("waf-configs", "crs.paranoia", false),
            ("waf-configs", "budget.work", true),
            ("waf-configs", "kind", true),
            ("waf-configs", "metadata.team.lead", true),
            ("waf-configs", "metadata.", false),
            ("waf-configs", "metdata.team", false),
            ("waf-configs", "", false),
            ("routes", "backend.address", true),
            ("routes", "backend.adress", false),
            ("threat-feeds", "headers.accept", true),
            ("challenge-providers", "kind", true),
            ("global-config", "security.ledger.enabled", true),
            ("global-config", "groups.eu.port", true),
            ("global-config", "groups.eu.prt", false),
        ] {
            assert_eq!(of(collection).known("sorted", field).is_ok(), is_known, "{collection} {field}");
        }
        let pattern = of("waf-rulesets").pattern();
        assert!(pattern.contains("|enabled|") || pattern.contains("|enabled)"), "{pattern}");
        assert!(pattern.contains("metadata(\\.[^.,: ]+)*") && !pattern.contains("rules("), "{pattern}");
    }
}
