//! GraphQL requests: what they ask for, their sizes, and whether they fit a schema.

pub(crate) mod document;
pub(crate) mod lexer;
mod measure;
pub(crate) mod persisted;
pub(crate) mod schema;
#[cfg(feature = "control")]
pub(crate) mod sdl;
mod uses;
mod validate;

use std::collections::HashSet;

use crate::json::Json;
use crate::messages::{Limits, Persisted};
use crate::pairs::{PARTS, given, pairs};
use crate::rpc::shown;
use crate::violation::{Mismatch, Violation};

use document::{Document, MAX_NESTING, Operation, OperationKind, Selection};
use measure::{Measure, Unmeasured};
use persisted::Reference;
use schema::Schema;
use validate::Validator;

/// The root fields that name an operation without a name.
const NAMING_FIELDS: usize = 3;

/// A request.
#[derive(Debug, Default)]
pub(crate) struct GraphqlRequest {
    pub(crate) query: Option<String>,
    pub(crate) operation: Option<String>,
    pub(crate) variables: Option<Json>,
    pub(crate) extensions: Option<Json>,
    pub(crate) reference: Option<Reference>,
}

/// What an endpoint takes.
pub(crate) struct Rules<'r> {
    pub(crate) limits: Limits,
    pub(crate) introspection: bool,
    pub(crate) persisted: Persisted,
    pub(crate) schema: Option<&'r Schema>,
}

/// The operation of a request, for the inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

impl GraphqlRequest {
    /// Reads a member of a JSON body.
    pub(crate) fn of_json(value: &Json) -> Result<Self, Violation> {
        let wrong = |what: &str| Err(Violation::new(Mismatch::InvalidRequest, what));
        if !matches!(value, Json::Object(_)) {
            return wrong("expected an object with `query`");
        }
        if let Some(name) = value.lookalike(PARTS) {
            return wrong(&format!("expected `{name}` in this spelling"));
        }
        let text = |name: &str| match value.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Violation::new(Mismatch::InvalidRequest, format!("expected a text as `{name}`"))),
        };
        let object = |name: &str| match value.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(object @ Json::Object(_)) => Ok(Some(object.clone())),
            Some(array) if array.is_empty_array() => Ok(None),
            Some(_) => Err(Violation::new(Mismatch::InvalidRequest, format!("expected an object as `{name}`"))),
        };
        let reference = Reference::of_members(value.members());
        Ok(Self {
            // Clients write an empty document beside a reference.
            query: text("query")?.filter(|text| !(reference.is_some() && text.is_empty())),
            operation: text("operationName")?,
            variables: object("variables")?,
            extensions: object("extensions")?,
            reference,
        })
    }

    /// Reads a query or a form.
    pub(crate) fn of_pairs(encoded: &[u8]) -> Result<Self, Violation> {
        let pairs = pairs(encoded);
        let wrong = |what: String| Violation::new(Mismatch::InvalidRequest, what);
        let text = |name: &str| {
            let mut found = pairs.iter().filter(|(own, _)| own == name.as_bytes()).map(|(_, value)| value);
            let first = found.next();
            if found.next().is_some() {
                return Err(wrong(format!("`{name}` comes twice")));
            }
            let utf8 =
                |value: &Vec<u8>| String::from_utf8(value.clone()).map_err(|_| wrong(format!("`{name}` is not UTF-8")));
            first.filter(|value| !value.is_empty()).map(utf8).transpose()
        };
        let object = |name: &str| {
            let Some(text) = text(name)? else { return Ok(None) };
            match crate::json::read(text.as_bytes()) {
                Ok(object @ Json::Object(_)) => Ok(Some(object)),
                Ok(Json::Null) => Ok(None),
                Ok(array) if array.is_empty_array() => Ok(None),
                Ok(_) => Err(wrong(format!("expected an object as `{name}`"))),
                Err(error) => Err(wrong(format!("`{name}`: {error}"))),
            }
        };
        Ok(Self {
            query: text("query")?,
            operation: text("operationName")?,
            variables: object("variables")?,
            extensions: object("extensions")?,
            reference: Reference::of_parameters(&given(encoded)),
        })
    }

    /// Judges the request: its operation as far as it is known, and what does not match.
    pub(crate) fn judge(&self, rules: &Rules<'_>, over_get: bool) -> (Named, Vec<Violation>) {
        let persisted = Named { kind: "persisted", name: "(by reference)".to_owned() };
        let unknown = Named { kind: "query", name: "(unread)".to_owned() };
        let one = |kind: Mismatch, detail: &str| vec![Violation::new(kind, detail)];
        let Some(text) = &self.query else { return (persisted, self.without_document(rules.persisted)) };
        if rules.persisted == Persisted::Only {
            return (unknown, one(Mismatch::Persisted, "only persisted queries are allowed"));
        }
        if u64::try_from(text.len()).is_ok_and(|length| length > rules.limits.document_bytes) {
            let detail = format!("the document has more than {} bytes", rules.limits.document_bytes);
            return (unknown, vec![Violation::new(Mismatch::DocumentTooLarge, detail)]);
        }
        let document = match document::read(text) {
            Ok(document) => document,
            Err(error) => {
                let deep = error.what.contains("nested too deeply");
                let kind = if deep { Mismatch::Depth } else { Mismatch::Syntax };
                return (
                    unknown,
                    vec![Violation::new(kind, format!("byte {} of the document: {}", error.at, error.what))],
                );
            }
        };
        let mut found = self.beside_document(text, rules.persisted);
        let selected = match select(&document, self.operation.as_deref()) {
            Ok(selected) => selected,
            Err(detail) => {
                found.push(Violation::new(Mismatch::InvalidRequest, detail));
                0
            }
        };
        let named = document.operations.get(selected).map_or(unknown, name);
        if over_get && document.operations.get(selected).is_some_and(|one| one.kind != OperationKind::Query) {
            found.push(Violation::new(Mismatch::MutationOverGet, "expected POST for anything but queries"));
        }
        if let Err(detail) = unique(&document) {
            found.push(Violation::new(Mismatch::Syntax, detail));
        }
        if !rules.introspection && introspects(&document) {
            found.push(Violation::new(Mismatch::Introspection, "introspection is not allowed"));
        }
        let is_within = measure(&document, &rules.limits, &mut found);
        if let Some(schema) = rules.schema.filter(|_| is_within) {
            let validator = Validator::new(schema, &document);
            if let Err(detail) = validator.check(selected, self.variables.as_ref()) {
                found.push(Violation::new(Mismatch::Schema, detail));
            }
        }
        (named, found)
    }
}

/// Compares the sizes with the limits; `false` where they cannot be known or one is exceeded: a schema is too much work then.
fn measure(document: &Document<'_>, limits: &Limits, found: &mut Vec<Violation>) -> bool {
    let (largest, outcome) = Measure::new(document).largest();
    match outcome {
        Ok(()) => {}
        Err(Unmeasured::Cycle) => found.push(Violation::new(Mismatch::Syntax, "a fragment contains itself")),
        Err(Unmeasured::UnknownFragment) => found.push(Violation::new(Mismatch::Syntax, "a fragment is not declared")),
        Err(Unmeasured::TooDeep) => {
            found.push(Violation::new(Mismatch::Depth, format!("fragments are nested more than {MAX_NESTING} deep")));
        }
    }
    let mut within = outcome.is_ok();
    for (kind, size, limit, what) in [
        (Mismatch::Depth, largest.depth, limits.depth, "levels of fields"),
        (Mismatch::Fields, largest.fields, limits.fields, "fields"),
        (Mismatch::Aliases, largest.aliases, limits.aliases, "aliases"),
        (Mismatch::Directives, largest.directives, limits.directives, "directives"),
    ] {
        if size > u64::from(limit) {
            within = false;
            found.push(Violation::new(
                kind,
                format!("an operation or a fragment has {size} {what}, and {limit} are allowed"),
            ));
        }
    }
    within
}

/// The operation that is executed.
fn select(document: &Document<'_>, name: Option<&str>) -> Result<usize, String> {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => document
            .operations
            .iter()
            .position(|operation| operation.name == Some(name))
            .ok_or_else(|| "the document has no operation of the name `operationName`".to_owned()),
        None if document.operations.len() == 1 => Ok(0),
        None => Err("the document has several operations, and `operationName` names none".to_owned()),
    }
}

/// Names that come twice: which of two definitions is taken is not known.
fn unique(document: &Document<'_>) -> Result<(), &'static str> {
    let mut names = HashSet::new();
    if !document.fragments.iter().all(|fragment| names.insert(fragment.name)) {
        return Err("two fragments have the same name");
    }
    let mut names = HashSet::new();
    if !document.operations.iter().filter_map(|operation| operation.name).all(|name| names.insert(name)) {
        return Err("two operations have the same name");
    }
    if document.operations.len() > 1 && document.operations.iter().any(|operation| operation.name.is_none()) {
        return Err("an operation without a name is beside others");
    }
    Ok(())
}

fn introspects(document: &Document<'_>) -> bool {
    fn within(selection: &[Selection<'_>]) -> bool {
        selection.iter().any(|part| match part {
            // `_service` has the schema of a subgraph of a federation.
            Selection::Field(field) => {
                matches!(field.name, "__schema" | "__type" | "_service") || within(&field.selection)
            }
            Selection::Inline { selection, .. } => within(selection),
            Selection::Spread { .. } => false,
        })
    }
    document.operations.iter().any(|operation| within(&operation.selection))
        || document.fragments.iter().any(|fragment| within(&fragment.selection))
}

/// The name of an operation, or what it selects first; as long as names are shown.
fn name(operation: &Operation<'_>) -> Named {
    let fields = operation.selection.iter().filter_map(|part| match part {
        Selection::Field(field) => Some(shown(field.name)),
        _ => None,
    });
    let name = match operation.name {
        Some(name) => shown(name),
        None => format!("{{{}}}", fields.take(NAMING_FIELDS).collect::<Vec<_>>().join(" ")),
    };
    Named { kind: operation.kind.word(), name }
}

#[cfg(test)]
mod tests;
