//! One operation.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use super::reading::{Entry, Told, at, list, object, string};
use super::{schema, text};

pub(super) fn shown(document: &Value, entry: &Entry<'_>, common: &BTreeMap<Told<'_>, usize>) -> Markup {
    let Entry { path, method, operation } = entry;
    html! {
        details.operation {
            summary {
                span.method.(method) { (method.to_ascii_uppercase()) }
                code.path { @for (index, part) in path.split('/').enumerate() { @if index > 0 { "/" wbr; } (part) } }
                span.what { (string(operation, "summary")) }
            }
            // Here and not around it: browsers open what a link leads into.
            div.inside id={ "op-" (text::slug(string(operation, "operationId"))) } {
                (text::rendered(string(operation, "description")))
                p { (needs(operation)) " Operation " code { (string(operation, "operationId")) } "." }
                (parameters(operation))
                (body(operation))
                (answers(document, operation, common))
            }
        }
    }
}

fn needs(operation: &Value) -> Markup {
    let demanded = list(operation, "/security").first();
    let scopes = demanded.map(|demanded| list(demanded, "/adminKey")).unwrap_or_default();
    html! {
        @match (scopes.first().and_then(Value::as_str), demanded) {
            (Some(scope), _) => { "Needs an admin key with the scope " code { (scope) } "." }
            (None, None) => { "Needs no key." }
            (None, Some(session)) => {
                "Needs a session of the console"
                @if session.get("csrf").is_some() { " and its token in " code { "x-csrf-token" } }
                "."
            }
        }
    }
}

fn parameters(operation: &Value) -> Markup {
    let parameters = list(operation, "/parameters");
    html! {
        @if !parameters.is_empty() {
            h3 { "Parameters" }
            table {
                thead { tr { th scope="col" { "Name" } th scope="col" { "In" } th scope="col" { "Value" } th scope="col" { "Meaning" } } }
                tbody {
                    @for parameter in parameters {
                        tr {
                            td { code { (string(parameter, "name")) } }
                            td { (string(parameter, "in")) }
                            td { (schema::kind(at(parameter, "/schema"))) }
                            td { (text::inline(string(parameter, "description"))) }
                        }
                    }
                }
            }
        }
    }
}

fn body(operation: &Value) -> Markup {
    let body = at(operation, "/requestBody");
    html! {
        @if !body.is_null() {
            h3 { "Body" }
            p { (text::inline(string(body, "description"))) }
            @for (media_type, content) in object(body, "/content") {
                p { code { (media_type) } ": " (schema::kind(at(content, "/schema"))) }
                @if let Some(example) = content.get("example") {
                    pre tabindex="0" { code { (format!("{example:#}")) } }
                }
            }
        }
    }
}

fn answers(document: &Value, operation: &Value, common: &BTreeMap<Told<'_>, usize>) -> Markup {
    let is_common = |status: &str, answer: &Value| common.contains_key(&(status, string(answer, "description")));
    let (also, own): (Vec<_>, Vec<_>) =
        object(operation, "/responses").partition(|(status, answer)| is_common(status, answer));
    html! {
        h3 { "Answers" }
        table {
            thead { tr { th scope="col" { "Status" } th scope="col" { "When" } th scope="col" { "Body" } th scope="col" { "Headers" } } }
            tbody {
                @for (status, answer) in own {
                    tr {
                        td { code { (status) } }
                        td { (text::inline(string(answer, "description"))) }
                        td { (content(answer)) }
                        td { (headers(document, answer)) }
                    }
                }
            }
        }
        @if !also.is_empty() {
            p.also {
                "Also "
                @for (index, (status, _)) in also.iter().enumerate() {
                    @if index > 0 { ", " }
                    a href={ "#common-" (status) } { (status) }
                }
                "."
            }
        }
    }
}

fn content(answer: &Value) -> Markup {
    html! {
        @for (media_type, content) in object(answer, "/content") {
            div { @if media_type != "application/json" { code { (media_type) } " " } (schema::kind(at(content, "/schema"))) }
        }
    }
}

fn headers(document: &Value, answer: &Value) -> Markup {
    let named = object(answer, "/headers").filter(|(name, _)| *name != "x-request-id");
    html! {
        @for (name, header) in named {
            @let target = string(header, "$ref").trim_start_matches("#");
            div title=(string(at(document, target), "description")) { code { (name) } }
        }
    }
}
