//! Schemas: in a few words where they are named, in a table where they stand.

use maud::{Markup, html};
use serde_json::Value;

use super::reading::{at, list, object, string};
use super::text;

/// A component.
pub(super) fn component(name: &str, schema: &Value) -> Markup {
    html! {
        details.schema {
            summary { code { (name) } }
            div.inside id={ "schema-" (text::slug(name)) } {
                (text::rendered(string(schema, "description")))
                @match has_fields(schema) {
                    true => { (fields(schema)) }
                    false => { p { (kind(schema)) } }
                }
                @if let Some(example) = schema.get("example") { pre tabindex="0" { code { (format!("{example:#}")) } } }
            }
        }
    }
}

/// What a value can be.
pub(super) fn kind(schema: &Value) -> Markup {
    let several = ["/anyOf", "/oneOf"].iter().map(|pointer| list(schema, pointer)).find(|found| !found.is_empty());
    let bounds = bounds(schema);
    html! {
        @if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            @let name = target.rsplit('/').next().unwrap_or_default();
            a href={ "#schema-" (text::slug(name)) } { (name) }
            @let words = list(schema, "/properties/error/enum");
            @if !words.is_empty() { " with " (words_of(words)) }
        } @else if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
            @for (index, one) in all.iter().filter(|one| one.get("$ref").is_some()).enumerate() {
                @if index > 0 { " and " }
                (kind(one))
            }
        } @else if let Some(several) = several {
            @for (index, one) in several.iter().enumerate() {
                @if index > 0 { " or " }
                (kind(one))
            }
        } @else if !list(schema, "/enum").is_empty() {
            (words_of(list(schema, "/enum")))
        } @else if let Some(only) = schema.get("const") {
            code { (only) }
        } @else if string(schema, "type") == "array" {
            "array of " (kind(at(schema, "/items")))
        } @else if has_fields(schema) {
            "object " (fields(schema))
        } @else {
            (types(schema))
        }
        @if !bounds.is_empty() { span.bounds { " " (bounds) } }
        @if let Some(example) = list(schema, "/examples").first() { " such as " code { (plain(example)) } }
        @if let Some(default) = schema.get("default") { span.bounds { ", default " } code { (plain(default)) } }
    }
}

fn has_fields(schema: &Value) -> bool {
    object(schema, "/properties").next().is_some()
}

fn fields(schema: &Value) -> Markup {
    let required = list(schema, "/required");
    html! {
        table.fields {
            thead { tr { th scope="col" { "Field" } th scope="col" { "Value" } th scope="col" { "Meaning" } } }
            tbody {
                @for (name, field) in object(schema, "/properties") {
                    tr {
                        td {
                            code { (name) }
                            @if required.iter().any(|other| other == name) { " " abbr.required title="always there" { "required" } }
                        }
                        td { (kind(field)) }
                        td { (text::inline(string(field, "description"))) }
                    }
                }
            }
        }
    }
}

fn words_of(words: &[Value]) -> Markup {
    html! {
        @for (index, word) in words.iter().enumerate() {
            @if index > 0 { " | " }
            code { (plain(word)) }
        }
    }
}

fn types(schema: &Value) -> String {
    match schema.get("type") {
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(several)) => several.iter().map(plain).collect::<Vec<_>>().join(" or "),
        _ => "anything".to_owned(),
    }
}

/// Limits in words.
fn bounds(schema: &Value) -> String {
    let limit = |name: &str, words: &str| schema.get(name).map(|value| format!("{words} {}", plain(value)));
    let all = [
        limit("minimum", "from"),
        limit("maximum", "to"),
        limit("minLength", "at least this long:"),
        limit("maxLength", "at most this long:"),
        limit("minItems", "entries from"),
        limit("maxItems", "entries to"),
        limit("pattern", "like"),
        limit("format", "as"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A value as it is read: a text without quotes, but for an empty one.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    }
}
