//! The endpoints that plugins have in the console, see [`kit::Operation`].

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::body::{self, Body, BodyProblem};
use super::describe::{self, Common as _};
use super::state::Console;
use super::turns::Turns;
use crate::error::ApiError;
use crate::openapi::{Group, JSON, Operation, Routes, reference, with_components};
use accounts::Operator;
use entities::{
    BatchEntry, BatchOptions, BatchWrite, EntityService, Replacement, WriteError, exactly, plugins, registry,
};
use events::{Audit, AuditAction};
use kit::{
    Edit, EditError, EntityEdit, EntityWriter, FieldProblem, OperationAnswer, OperationContext, OperationMethod,
    TrafficSource, Writing,
};
use serde_json::json;
use store::{Author, StoreError};
use tokio::runtime::Handle;

/// The operations of all plugins of this release.
pub(super) fn router() -> Routes<Console> {
    plugins::active().fold(Routes::new(), |routes, plugin| routes.merge(of_plugin(plugin)))
}

/// Those of one plugin, which share its turns; those that only read, and those that are done at once, have turns of their own, so that
/// none of them waits for work.
fn of_plugin(plugin: &'static kit::Plugin) -> Routes<Console> {
    let (reads, works, at_once) = (Turns::default(), Turns::default(), Turns::default());
    plugin.operations.iter().fold(Routes::new(), |routes, operation| {
        let turns = match operation.method {
            OperationMethod::Get => &reads,
            OperationMethod::Post if operation.at_once => &at_once,
            OperationMethod::Post => &works,
        };
        routes.merge(route(plugin, operation, turns.clone()))
    })
}

/// Who calls.
type Caller = (Extension<Operator>, Option<Extension<ConnectInfo<SocketAddr>>>);

fn route(plugin: &'static kit::Plugin, operation: &'static kit::Operation, turns: Turns) -> Routes<Console> {
    let handler = move |State(console): State<Console>, caller: Caller, headers: HeaderMap, body: Body| {
        let turns = turns.clone();
        async move { call((plugin, operation), &console, caller, &turns, &headers, body).await }
    };
    let has_body = operation.method == OperationMethod::Post;
    let of_body = has_body.then_some(operation.body.schema);
    let refusal = operation.refusal.map(|refusal| refusal.schema);
    let conflict = operation.refusal.and_then(|refusal| refusal.conflict);
    let schemas = of_body.into_iter().chain(refusal).chain(conflict).chain(operation.schemas.iter().copied());
    let routes = Routes::new().on(described(operation), handler);
    let routes = schemas.fold(routes, |routes, schema| routes.schema_as(schema.name, (schema.schema)()));
    routes.layered(|router| router.layer(DefaultBodyLimit::max(operation.max_body)))
}

async fn call(
    (plugin, operation): (&'static kit::Plugin, &'static kit::Operation),
    console: &Console,
    caller: Caller,
    turns: &Turns,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let mut of = None;
    let work = match operation.method {
        OperationMethod::Get => operation.body.read(json!({})).map_err(BodyProblem::from),
        OperationMethod::Post => body::read_as(headers, body, |value| {
            of = operation.audit.and_then(|audit| (audit.of)(&value));
            operation.body.read(value)
        }),
    };
    let work = match work {
        Ok(work) => work,
        Err(problem) => return Ok(unreadable(operation, problem)),
    };
    let (entities, console) = (console.inner.entities.current(), console.clone());
    let at_work = console.inner.runtimes.get(plugin.name);
    let (operator, waiting) = (caller.0.name.clone(), Handle::current());
    let by = Author::operator(&operator);
    let (action, path) = (operation.audit.map_or("", |audit| audit.action), operation.path);
    let writes_as = console.inner.entities.by(by, if action.is_empty() { path } else { action });
    let audit = operation.audit.map(|audit| (begun(audit.action, caller, of), audit.detail));
    let run = move || {
        let (tools, now_millis) = (&console.inner.tools, console.now());
        let traffic = console.inner.traffic.get().map(|latest| latest.blocking(waiting.clone()));
        let traffic = traffic.as_ref().map(|traffic| traffic as &dyn TrafficSource);
        let writer = Writer { entities: &writes_as, waiting };
        let writing = Some(Writing { writer: &writer, operator: &operator });
        let at_work = at_work.as_ref();
        let answer = work(&OperationContext { entities: &*entities, tools, at_work, now_millis, writing, traffic });
        // Here, because a caller that goes away ends nothing that was begun.
        if let OperationAnswer::Done(answer) = &answer
            && let Some((audit, detail)) = audit
            && let Some(detail) = detail(answer)
        {
            console.inner.events.audit(audit.detail(detail));
        }
        answer
    };
    Ok(match turns.run(operation.busy, run).await? {
        OperationAnswer::Done(answer) => Json(answer).into_response(),
        OperationAnswer::Refused(answer) => (StatusCode::BAD_REQUEST, Json(answer)).into_response(),
        OperationAnswer::Conflict(answer) => (StatusCode::CONFLICT, Json(answer)).into_response(),
    })
}

/// Writes entities from a thread that may block.
struct Writer<'a> {
    entities: &'a EntityService,
    waiting: Handle,
}

impl EntityWriter for Writer<'_> {
    fn write(&self, edits: Vec<EntityEdit>) -> Result<(), EditError> {
        let mut entries = Vec::with_capacity(edits.len());
        for EntityEdit { collection, id, edit } in edits {
            let kind = registry::by_collection(collection)
                .ok_or_else(|| EditError::Refused(registry::unknown_collection(collection)))?;
            entries.push(match edit {
                Edit::Create(document) => BatchEntry { kind, write: BatchWrite::Create(document), precondition: None },
                Edit::Merge { patch, seen } => BatchEntry {
                    kind,
                    write: BatchWrite::Update(id, Replacement::Merge(patch)),
                    precondition: Some(exactly(seen)),
                },
            });
        }
        let options = BatchOptions { atomic: true, dry_run: false };
        let outcome = self.waiting.block_on(self.entities.write_all(entries, options));
        let mut failed = outcome.results.into_iter().filter_map(Result::err).map(edit_error).collect::<Vec<_>>();
        // What was not made because of another says nothing about why.
        failed.sort_by_key(|(because_of_another, _)| *because_of_another);
        failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Whether it failed because of another edit, and why.
fn edit_error(error: WriteError) -> (bool, EditError) {
    let sentences =
        |problems: Vec<FieldProblem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let why = match error {
        WriteError::NotApplied => return (true, EditError::Conflict),
        WriteError::NotFound | WriteError::NotKept { .. } | WriteError::Exists | WriteError::Stale { .. } => {
            EditError::Conflict
        }
        WriteError::Invalid(problems) | WriteError::InUse(problems) => EditError::Refused(sentences(problems)),
        WriteError::Patch(message) | WriteError::PatchTest(message) => EditError::Refused(message),
        WriteError::Store(
            StoreError::Conflict { .. } | StoreError::BatchConflict { .. } | StoreError::Moved { .. },
        ) => EditError::Conflict,
        WriteError::Store(error) => EditError::Failed(error.to_string()),
    };
    (false, why)
}

/// The audit of a call as far as it is known when it begins.
fn begun(action: &'static str, (Extension(operator), source): Caller, of: Option<String>) -> Audit {
    let audit = Audit::new(AuditAction::Operation(action)).operator(&operator.name, &operator.email);
    of.into_iter().fold(audit.from(source.map(|Extension(info)| info.0.ip())), Audit::of)
}

/// A body that is not what the operation takes.
fn unreadable(operation: &kit::Operation, problem: BodyProblem) -> Response {
    match operation.refusal {
        Some(refusal) if refusal.as_done => {
            let said = match problem.error {
                "invalid_json" if problem.description == body::EMPTY => "no body",
                "invalid_json" => "invalid json body",
                _ => &problem.description,
            };
            Json((refusal.answer)(said)).into_response()
        }
        Some(refusal) => (problem.status, Json((refusal.answer)(&problem.description))).into_response(),
        None => ApiError::from(problem).into_response(),
    }
}

fn described(operation: &kit::Operation) -> Operation {
    let group = Group { name: format!("console: {}", operation.group.name), about: operation.group.about.to_owned() };
    let method = match operation.method {
        OperationMethod::Get => Method::GET,
        OperationMethod::Post => Method::POST,
    };
    let described = describe::operation(method, operation.path, operation.id, group, operation.summary)
        .describe(operation.description)
        .answers(StatusCode::OK, operation.answer_text, with_components((operation.answer)()));
    let described = match operation.method {
        OperationMethod::Get => described,
        OperationMethod::Post => described
            .takes(operation.body_text, [(JSON, reference(operation.body.schema.name))])
            .example((operation.example)()),
    };
    let described = match operation.refusal {
        _ if operation.method == OperationMethod::Get => described,
        Some(refusal) if refusal.as_done => described,
        Some(refusal) => {
            let refused = || reference(refusal.schema.name);
            let described = described
                .answers(StatusCode::BAD_REQUEST, "The body does not fit the endpoint.", refused())
                .answers(StatusCode::REQUEST_TIMEOUT, "The body was not received in time.", refused())
                .answers(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large.", refused())
                .answers(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not declared as JSON.", refused());
            match refusal.conflict {
                Some(conflict) => described.answers(
                    StatusCode::CONFLICT,
                    "It cannot be done as things are.",
                    reference(conflict.name),
                ),
                None => described,
            }
        }
        None => described.reads_a_body(),
    };
    described
        .fails(StatusCode::SERVICE_UNAVAILABLE, "busy", &format!("{}.", operation.busy))
        .fails(StatusCode::SERVICE_UNAVAILABLE, "too_slow", "there was no answer within 30 seconds.")
        .fails(StatusCode::SERVICE_UNAVAILABLE, "failed", "the work was aborted.")
        .with_header(StatusCode::SERVICE_UNAVAILABLE, &header::RETRY_AFTER, false)
}
