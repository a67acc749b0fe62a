//! The document as a page to read: one file of HTML, without a script and without anything to load.

mod operation;
mod reading;
mod schema;
mod text;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest, Sha256};

use reading::{Entry, Told, at, list, object, string};

/// The looks of the page; its digest stands in the policy.
const STYLE: &str = include_str!("style.css");

/// Answers that at least so many operations have stand in one place.
const COMMON: usize = 30;

/// A page, and what browsers are told about it.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The HTML.
    pub html: String,
    /// The value of `content-security-policy`: nothing but its own style.
    pub content_security_policy: String,
}

/// The page of a document.
#[must_use]
pub fn page(document: &Value) -> Page {
    let digest = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Page { html: whole(document).into_string(), content_security_policy: policy }
}

fn whole(document: &Value) -> Markup {
    let info = at(document, "/info");
    let entries = entries(document);
    let common = common(&entries);
    let groups = list(document, "/tags");
    let title = string(info, "title");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "To the content" }
                header {
                    h1 { (title) " " span.version { (string(info, "version")) } }
                    p { a href="openapi.json" { "openapi.json" } " is the same for programs." }
                }
                nav aria-label="Contents" {
                    ul {
                        li { a href="#about" { "What holds for all of it" } }
                        @for group in groups {
                            li { a href={ "#" (text::slug(string(group, "name"))) } { (string(group, "name")) } }
                        }
                        li { a href="#common" { "Common answers" } }
                        li { a href="#schemas" { "Schemas" } }
                    }
                }
                main id="content" {
                    section id="about" {
                        h2 { "What holds for all of it" }
                        (text::rendered(string(info, "description")))
                        (schemes(document))
                    }
                    @for group in groups {
                        section id=(text::slug(string(group, "name"))) {
                            h2 { (string(group, "name")) }
                            (text::rendered(string(group, "description")))
                            @for entry in entries.iter().filter(|entry| in_group(entry, string(group, "name"))) {
                                (operation::shown(document, entry, &common))
                            }
                        }
                    }
                    (common_answers(&common))
                    section id="schemas" {
                        h2 { "Schemas" }
                        @for (name, schema) in object(document, "/components/schemas") {
                            (schema::component(name, schema))
                        }
                    }
                }
            }
        }
    }
}

fn schemes(document: &Value) -> Markup {
    html! {
        dl {
            @for (name, scheme) in object(document, "/components/securitySchemes") {
                dt { code { (name) } }
                dd { (text::inline(string(scheme, "description"))) }
            }
        }
    }
}

fn common_answers(common: &BTreeMap<Told<'_>, usize>) -> Markup {
    html! {
        section id="common" {
            h2 { "Common answers" }
            p { "What operations list as “also” and do not explain again. The body is an " a href="#schema-Error" { "Error" } "." }
            table {
                thead { tr { th scope="col" { "Status" } th scope="col" { "When" } } }
                tbody {
                    @for (status, told) in common.keys() {
                        tr id={ "common-" (status) } { td { code { (status) } } td { (text::inline(told)) } }
                    }
                }
            }
        }
    }
}

/// Error answers that many operations have in the same words.
fn common<'a>(entries: &[Entry<'a>]) -> BTreeMap<Told<'a>, usize> {
    let mut counts = BTreeMap::new();
    for entry in entries {
        for (status, answer) in object(entry.operation, "/responses").filter(|(status, _)| *status >= "400") {
            *counts.entry((status, string(answer, "description"))).or_insert(0) += 1;
        }
    }
    counts.retain(|_, count| *count >= COMMON);
    counts
}

fn entries(document: &Value) -> Vec<Entry<'_>> {
    let paths = object(document, "/paths");
    paths
        .flat_map(|(path, methods)| {
            object(methods, "").map(move |(method, operation)| Entry { path, method, operation })
        })
        .collect()
}

fn in_group(entry: &Entry<'_>, name: &str) -> bool {
    list(entry.operation, "/tags").iter().any(|tag| tag == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_document_says_cannot_become_markup() {
        let document = json!({
            "info": { "title": "<b>", "version": "1", "description": "<script>alert(1)</script> `<i>`" },
            "tags": [{ "name": "<g>", "description": "- <li>" }],
            "paths": { "/<p>": { "get": { "tags": ["<g>"], "summary": "<s>", "operationId": "\"><x>" } } },
            "components": { "schemas": { "<n>": { "description": "<d>", "default": "<v>" } } },
        });
        let page = page(&document);
        for tag in ["<b>", "<script", "<i>", "<g>", "<p>/", "<s>", "<x>", "<n>", "<d>", "<v>"] {
            assert!(!page.html.contains(tag), "{tag}: {}", page.html);
        }
        assert!(page.html.contains("&lt;script&gt;alert(1)"), "{}", page.html);
        assert!(page.content_security_policy.starts_with("default-src 'none'; style-src 'sha256-"));
    }
}
