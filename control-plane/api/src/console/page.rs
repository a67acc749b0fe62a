//! The console as a page: the built files below `/console/`, for everyone. Without a session they show the login alone.

mod choices;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use console_files::{Coding, File, PAGE, Representation};
use serde_json::json;

use self::choices::Choices;
use crate::error::ApiError;
use crate::openapi::{Group, Operation, Routes};

/// Nothing but the console's own files; no inline script or style, and no HTML made of texts (Content Security Policy Level 3, Trusted
/// Types).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types 'none'";
const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS: HeaderName = HeaderName::from_static("permissions-policy");

type Files = Arc<BTreeMap<String, File>>;

/// `/console/` and what is below it, and the way there from `/` and `/console`.
pub fn page_router() -> Routes {
    let below = describe("/console/{path}", "console.path", "A file of the console, or its page for any other path")
        .in_path("path", json!({ "type": "string" }), "The name of a file, or a path that the page shows.")
        .fails(StatusCode::NOT_FOUND, "not_found", "there is no such file.");
    Routes::new()
        .on(lead("/", "console.root"), there)
        .on(lead("/console", "console.bare"), there)
        .on(describe("/console/", "console.page", "The console's page"), page)
        .on_each(&Method::GET, "/console/{*path}", vec![below], file)
        .with_state(Arc::new(console_files::files()))
}

fn group() -> Group {
    let about = "The web console, and its files. They have no secrets; everything that the page shows needs a session.";
    Group { name: "console: page".to_owned(), about: about.to_owned() }
}

fn describe(path: &str, id: &str, summary: &str) -> Operation {
    let text = json!({ "type": "string" });
    Operation::new(Method::GET, path, id, group(), summary)
        .takes_any_query()
        .answers_as(StatusCode::OK, "The page or the file.", "text/html", text)
        .answers_nothing(StatusCode::NOT_MODIFIED, "The caller has it already.")
}

fn lead(path: &str, id: &str) -> Operation {
    Operation::new(Method::GET, path, id, group(), "The way to the console")
        .takes_any_query()
        .answers_nothing(StatusCode::TEMPORARY_REDIRECT, "The console is at `/console/`.")
}

async fn there() -> Response {
    let to = [(header::LOCATION, HeaderValue::from_static("/console/"))];
    (StatusCode::TEMPORARY_REDIRECT, to).into_response()
}

async fn page(State(files): State<Files>, headers: HeaderMap) -> Response {
    answer(&files, PAGE, &headers)
}

async fn file(State(files): State<Files>, uri: Uri, headers: HeaderMap) -> Response {
    // As it is sent: no name of a file has anything to decode, and any bytes may be in the path of a page.
    let path = uri.path().strip_prefix("/console/").unwrap_or_default();
    // Names of files have a dot. Paths of pages may have one in an id, which is below a page (`incidents/ip:192.0.2.1`).
    let is_file = !path.contains('/') && path.contains('.');
    answer(&files, if is_file { path } else { PAGE }, &headers)
}

fn answer(files: &Files, name: &str, headers: &HeaderMap) -> Response {
    let Some(file) = files.get(name) else {
        return ApiError::not_found(format!("the console has no file `{}`", name.escape_debug())).into_response();
    };
    let Some(form) = preferred(file, headers) else {
        return ApiError::not_found("the file has no form that the caller accepts".to_owned()).into_response();
    };
    let choices = if name == PAGE { Choices::of(headers) } else { Choices::default() };
    let form = choices.apply(file, form);
    let mut response = if has_already(&form, headers) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, HeaderValue::from_static(file.media_type))], form.bytes.clone()).into_response()
    };
    let varies = if name == PAGE { "accept-encoding, accept-language, cookie" } else { "accept-encoding" };
    let caching = if file.is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let fixed = [
        (header::CACHE_CONTROL, caching),
        (header::VARY, varies),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (OPENER, "same-origin"),
        (RESOURCE, "same-origin"),
        (PERMISSIONS, "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ];
    let coding = match form.coding {
        Coding::Brotli => Some((header::CONTENT_ENCODING, "br")),
        Coding::Gzip => Some((header::CONTENT_ENCODING, "gzip")),
        Coding::Identity => None,
    };
    let sent = response.headers_mut();
    for (name, value) in fixed.into_iter().chain(coding) {
        sent.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(etag) = HeaderValue::from_str(&form.etag) {
        sent.insert(header::ETAG, etag);
    }
    response
}

/// Whether `if-none-match` has the tag (RFC 9110, 13.1.2: compared weakly).
fn has_already(form: &Representation, headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    let mut tags = lines.flat_map(|line| line.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
    tags.any(|tag| tag == form.etag || tag == "*")
}

/// The first form, the smallest ones before, whose coding the caller accepts (RFC 9110, 12.5.3).
fn preferred<'a>(file: &'a File, headers: &HeaderMap) -> Option<&'a Representation> {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let accepted: Vec<&str> = lines.flat_map(|line| line.split(',')).filter_map(accepted_name).collect();
    let takes = |name: &str| accepted.iter().any(|accepted| accepted.eq_ignore_ascii_case(name));
    file.representations.iter().find(|form| match form.coding {
        Coding::Brotli => takes("br"),
        Coding::Gzip => takes("gzip"),
        Coding::Identity => true,
    })
}

/// The name in an element of `accept-encoding`, unless its weight is zero.
fn accepted_name(element: &str) -> Option<&str> {
    let (name, parameters) = element.split_once(';').unwrap_or((element, ""));
    let weight = parameters.trim().strip_prefix("q=").map_or(Some(1.0), |weight| weight.trim().parse::<f32>().ok());
    weight.is_some_and(|weight| weight > 0.0).then_some(name.trim())
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt as _;

    use super::*;

    async fn call(path: &str, headers: &[(&str, &str)]) -> Response {
        let request =
            headers.iter().fold(Request::builder().uri(path), |request, (name, value)| request.header(*name, *value));
        page_router().into_router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    fn header_of<'a>(response: &'a Response, name: &str) -> &'a str {
        response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[tokio::test]
    async fn every_path_below_the_console_is_its_page_with_a_strict_policy() {
        for path in ["/console/", "/console/incidents", "/console/incidents/ip:192.0.2.1", "/console/bans?q=a%2Fb&x=1"]
        {
            let response = call(path, &[]).await;
            assert_eq!(response.status(), 200, "{path}");
            assert_eq!(header_of(&response, "content-type"), "text/html; charset=utf-8");
            assert_eq!(header_of(&response, "cache-control"), "no-cache");
            let policy = header_of(&response, "content-security-policy");
            for part in ["default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "base-uri 'none'"] {
                assert!(policy.contains(part), "{policy}");
            }
            assert!(!policy.contains("unsafe"), "{policy}");
            assert_eq!(header_of(&response, "x-frame-options"), "DENY");
            assert_eq!(header_of(&response, "cross-origin-opener-policy"), "same-origin");
            assert!(header_of(&response, "set-cookie").is_empty());
        }
        for path in ["/console/no-such-file.js", "/console/..%2f..%2fetc%2fpasswd", "/console/.", "/console/%ff.js"] {
            assert_eq!(call(path, &[]).await.status(), 404, "{path}: never the page in the place of a file");
        }
        assert_eq!(call("/console/%ff%00/x", &[]).await.status(), 200, "a page whose path is no UTF-8");
    }

    #[tokio::test]
    async fn the_ways_to_the_console() {
        for path in ["/", "/console", "/?next=//evil.example"] {
            let response = call(path, &[]).await;
            assert_eq!((response.status().as_u16(), header_of(&response, "location")), (307, "/console/"), "{path}");
        }
    }

    #[tokio::test]
    async fn the_page_has_the_choices_of_its_caller() {
        let mut tags = std::collections::BTreeSet::new();
        for (cookie, language, opening) in [
            ("", "", r#"<html lang="en">"#),
            ("", "de-AT,en;q=0.5", r#"<html lang="de">"#),
            ("palisade_theme=dark", "fr", r#"<html lang="en" data-theme="dark">"#),
            ("a=b; palisade_language=en;palisade_theme=light", "DE", r#"<html lang="en" data-theme="light">"#),
            ("palisade_language=de; palisade_theme=dark", "en", r#"<html lang="de" data-theme="dark">"#),
        ] {
            let headers = [("cookie", cookie), ("accept-language", language), ("accept-encoding", "br, gzip")];
            let response = call("/console/bans", &headers).await;
            assert_eq!(header_of(&response, "vary"), "accept-encoding, accept-language, cookie");
            let etag = header_of(&response, "etag").to_owned();
            let is_plain = header_of(&response, "content-encoding").is_empty();
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            if is_plain {
                assert!(
                    String::from_utf8(body.to_vec()).unwrap().starts_with(&format!("<!doctype html>\n{opening}\n"))
                );
            }
            assert_eq!(is_plain, opening != r#"<html lang="en">"#, "{opening}");
            let again = call("/console/", &[headers.as_slice(), &[("if-none-match", &etag)]].concat()).await;
            assert_eq!(again.status(), 304, "{opening}");
            assert!(tags.insert(etag), "{opening}: a tag of its own");
        }
        for cookie in ["palisade_theme=\"><script>", "palisade_theme=", "xpalisade_theme=dark", "palisade_language=fr"]
        {
            let response = call("/console/", &[("cookie", cookie)]).await;
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            assert_eq!(body, console_files::files()[PAGE].representations[2].bytes.as_ref(), "{cookie}");
        }
    }

    #[tokio::test]
    async fn files_are_compressed_as_the_caller_accepts_and_kept_for_good() {
        let files = console_files::files();
        let (name, file) = files.iter().find(|(name, _)| name.starts_with("main-") && name.ends_with(".js")).unwrap();
        let path = format!("/console/{name}");
        for (accepts, coding, form) in [
            ("gzip, deflate, br, zstd", "br", 0),
            ("gzip;q=0.5", "gzip", 1),
            ("br;q=0, gzip", "gzip", 1),
            ("br;q=x", "", 2),
            ("", "", 2),
        ] {
            let response = call(&path, &[("accept-encoding", accepts)]).await;
            assert_eq!(header_of(&response, "content-encoding"), coding, "{accepts}");
            assert_eq!(header_of(&response, "cache-control"), "public, max-age=31536000, immutable");
            let etag = header_of(&response, "etag").to_owned();
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            assert_eq!(body, file.representations[form].bytes.as_ref(), "{accepts}");
            let again =
                call(&path, &[("accept-encoding", accepts), ("if-none-match", &format!("\"x\", W/{etag}"))]).await;
            assert_eq!(again.status(), 304, "{accepts}");
            assert_eq!(header_of(&again, "etag"), etag);
        }
    }
}
