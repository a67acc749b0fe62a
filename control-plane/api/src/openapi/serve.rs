//! `GET /openapi.json` and `GET /openapi`.
//!
//! Neither wants a key. The document is the same in every installation of a release but for the name of the entity
//! group, and holds nothing that is not in the published sources; what reads it (generators of clients, linters, a browser)
//! often cannot send a key, and the author of a first script against the API has none yet.

use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Group, Operation, Routes, document, page};

/// Adds the document of these routes, and its page, to them. The document describes both.
pub(crate) fn publish(routes: Routes) -> Routes {
    // Described first, answered afterwards: the document has to be there before the handlers that answer it.
    let described = with_handlers(routes.clone(), &Bytes::new(), &page::Page::default());
    let document = document(&described);
    let page = page::page(&document);
    with_handlers(routes, &Bytes::from(document.to_string()), &page)
}

fn with_handlers(routes: Routes, document: &Bytes, page: &page::Page) -> Routes {
    let (document, page) = (document.clone(), page.clone());
    routes
        .on(describe_document(), move || async move { answer("application/json", document, None) })
        .on(describe_page(), move || async move {
            answer("text/html; charset=utf-8", page.html.into(), Some(&page.content_security_policy))
        })
}

fn answer(content_type: &'static str, body: Bytes, policy: Option<&str>) -> Response {
    let mut response = ([(header::CONTENT_TYPE, content_type)], body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(Ok(policy)) = policy.map(HeaderValue::from_str) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
    response
}

fn group() -> Group {
    Group { name: "this document".to_owned(), about: "The API described, for programs and for people. No key is needed: it is the same in every installation of a release, but for the name of the entity group.".to_owned() }
}

fn describe_document() -> Operation {
    let schema: Value = json!({
        "type": "object",
        "required": ["openapi", "info", "paths", "components"],
        "properties": { "openapi": { "const": "3.1.1" } },
    });
    Operation::new(Method::GET, "/openapi.json", "openapi", group(), "This document").answers(
        StatusCode::OK,
        "The document, OpenAPI 3.1.",
        schema,
    )
}

fn describe_page() -> Operation {
    const POLICY: HeaderName = header::CONTENT_SECURITY_POLICY;
    Operation::new(Method::GET, "/openapi", "openapi.page", group(), "This document as a page to read")
        .answers_as(
            StatusCode::OK,
            "HTML, which runs no script and loads nothing.",
            "text/html",
            json!({ "type": "string" }),
        )
        .with_header(StatusCode::OK, &POLICY, true)
}
