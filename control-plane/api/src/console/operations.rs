//! The endpoints that plugins have in the console, see [`kit::Operation`].

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::body::{self, Body, BodyProblem};
use super::describe::{self, Common as _};
use super::state::Console;
use super::turns::Turns;
use crate::error::ApiError;
use crate::openapi::{Group, JSON, Operation, Routes, reference, with_components};
use entities::plugins;
use kit::{OperationAnswer, OperationContext};

/// The operations of all plugins of this release.
pub(super) fn router() -> Routes<Console> {
    plugins::active().fold(Routes::new(), |routes, plugin| routes.merge(of_plugin(plugin.operations)))
}

/// Those of one plugin, which share its turns.
fn of_plugin(operations: &'static [kit::Operation]) -> Routes<Console> {
    let turns = Turns::default();
    operations.iter().fold(Routes::new(), |routes, operation| routes.merge(route(operation, turns.clone())))
}

fn route(operation: &'static kit::Operation, turns: Turns) -> Routes<Console> {
    let handler = move |State(console): State<Console>, headers: HeaderMap, body: Body| {
        let turns = turns.clone();
        async move { call(operation, &console, &turns, &headers, body).await }
    };
    let refusal = operation.refusal.map(|refusal| refusal.schema);
    let schemas = [operation.body.schema].into_iter().chain(refusal).chain(operation.schemas.iter().copied());
    let routes = Routes::new().on(described(operation), handler);
    let routes = schemas.fold(routes, |routes, schema| routes.schema_as(schema.name, (schema.schema)()));
    routes.layered(|router| router.layer(DefaultBodyLimit::max(operation.max_body)))
}

async fn call(
    operation: &'static kit::Operation,
    console: &Console,
    turns: &Turns,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let work = match body::read_as(headers, body, |value| operation.body.read(value)) {
        Ok(work) => work,
        Err(problem) => return Ok(unreadable(operation, problem)),
    };
    let (entities, console) = (console.inner.entities.current(), console.clone());
    let run = move || {
        let now_millis = console.now();
        work(&OperationContext { entities: &*entities, tools: &console.inner.tools, now_millis })
    };
    Ok(match turns.run(operation.busy, run).await? {
        OperationAnswer::Done(answer) => Json(answer).into_response(),
        OperationAnswer::Refused(answer) => (StatusCode::BAD_REQUEST, Json(answer)).into_response(),
    })
}

/// A body that is not what the operation takes.
fn unreadable(operation: &kit::Operation, problem: BodyProblem) -> Response {
    match operation.refusal {
        Some(refusal) => (problem.status, Json((refusal.answer)(&problem.description))).into_response(),
        None => ApiError::from(problem).into_response(),
    }
}

fn described(operation: &kit::Operation) -> Operation {
    let group = Group { name: format!("console: {}", operation.group.name), about: operation.group.about.to_owned() };
    let described = describe::operation(Method::POST, operation.path, operation.id, group, operation.summary)
        .describe(operation.description)
        .takes(operation.body_text, [(JSON, reference(operation.body.schema.name))])
        .example((operation.example)())
        .answers(StatusCode::OK, operation.answer_text, with_components((operation.answer)()));
    let described = match operation.refusal {
        Some(refusal) => {
            let refused = || reference(refusal.schema.name);
            described
                .answers(StatusCode::BAD_REQUEST, "The body does not fit the endpoint.", refused())
                .answers(StatusCode::REQUEST_TIMEOUT, "The body was not received in time.", refused())
                .answers(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large.", refused())
                .answers(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not declared as JSON.", refused())
        }
        None => described.reads_a_body(),
    };
    described
        .fails(StatusCode::SERVICE_UNAVAILABLE, "busy", &format!("{}.", operation.busy))
        .fails(StatusCode::SERVICE_UNAVAILABLE, "too_slow", "there was no answer within 30 seconds.")
        .fails(StatusCode::SERVICE_UNAVAILABLE, "failed", "the work was aborted.")
        .with_header(StatusCode::SERVICE_UNAVAILABLE, &header::RETRY_AFTER, false)
}
