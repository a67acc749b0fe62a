//! The reports of plugins, see [`kit::Report`]: for operators in the console, and for admin keys of the scope `report`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{Method, StatusCode, header};
use serde_json::Value;

use super::describe::{self, Common as _};
use super::state::Console;
use super::turns::Turns;
use crate::error::ApiError;
use crate::openapi::{Group, Operation, Routes, with_components};
use crate::query::Parameters;
use entities::plugins;
use kit::{NoReport, OperationContext, Plugin, Report};

/// What the paths of reports begin with.
const REPORTS: &str = "/api/extensions/svc/waf/api";
/// Why a call waits.
const BUSY: &str = "other reports are being made";

/// The reports of all plugins in the console.
pub(super) fn router() -> Routes<Console> {
    all().fold(Routes::new(), |routes, (plugin, report)| {
        let group = Group { name: format!("console: {}", report.group.name), about: report.group.about.to_owned() };
        let operation = describe::operation(Method::GET, report.console_path, report.id, group, report.summary);
        routes.merge(route(plugin, report, operation))
    })
}

/// The reports of all plugins for admin keys; the caller guards them.
pub fn admin_router(console: &Console) -> Routes {
    let routes = all().fold(Routes::new(), |routes, (plugin, report)| {
        let about = "Reports of gateways and of the control plane, for keys with the scope `report`.";
        let group = Group { name: "reports".to_owned(), about: about.to_owned() };
        let path = format!("{REPORTS}{}", report.admin_path);
        routes.merge(route(plugin, report, Operation::new(Method::GET, path, report.id, group, report.summary)))
    });
    routes.with_state(console.clone())
}

fn all() -> impl Iterator<Item = (&'static Plugin, &'static Report)> {
    plugins::active().flat_map(|plugin| plugin.reports.iter().map(move |report| (plugin, report)))
}

fn route(plugin: &'static Plugin, report: &'static Report, operation: Operation) -> Routes<Console> {
    let turns = Turns::default();
    let handler = move |State(console): State<Console>, query: Parameters| {
        let turns = turns.clone();
        async move { make((plugin, report), console, query, &turns).await }
    };
    let described = operation
        .describe(report.description)
        .answers(StatusCode::OK, report.answer_text, with_components((report.answer)()))
        .fails(StatusCode::BAD_REQUEST, "invalid_query", "a query parameter is invalid or unknown.")
        .fails(StatusCode::SERVICE_UNAVAILABLE, "busy", &format!("{BUSY}."))
        .fails(StatusCode::SERVICE_UNAVAILABLE, "too_slow", "there was no answer within 30 seconds.")
        .fails(StatusCode::SERVICE_UNAVAILABLE, "failed", "the work was aborted.")
        .with_header(StatusCode::SERVICE_UNAVAILABLE, &header::RETRY_AFTER, false)
        .may_fail();
    let parameters = report.query.iter();
    let described = parameters.fold(described, |described, parameter| {
        described.in_query(parameter.name, (parameter.schema)(), parameter.about)
    });
    let routes = Routes::new().on(described, handler);
    report.schemas.iter().fold(routes, |routes, schema| routes.schema_as(schema.name, (schema.schema)()))
}

async fn make(
    (plugin, report): (&'static Plugin, &'static Report),
    console: Console,
    Query(query): Parameters,
    turns: &Turns,
) -> Result<Json<Value>, ApiError> {
    let wrong = |message: String| ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message);
    let mut parameters = BTreeMap::new();
    for (name, value) in query {
        if parameters.insert(name.clone(), value).is_some() {
            return Err(wrong(format!("`{}` comes twice", name.escape_debug())));
        }
    }
    let (entities, at_work) = (console.inner.entities.current(), console.inner.runtimes.get(plugin.name));
    let work = move || {
        let (tools, now_millis) = (&console.inner.tools, console.now());
        let context = OperationContext {
            entities: &*entities,
            tools,
            at_work: at_work.as_ref(),
            now_millis,
            writing: None,
            traffic: None,
        };
        (report.make)(&parameters, &context)
    };
    turns.run(BUSY, work).await?.map(Json).map_err(|why| match why {
        NoReport::Query(message) => wrong(message),
        NoReport::NotYet(message) => {
            let message = format!("{message}; try again in a few seconds");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).with_header(header::RETRY_AFTER, "5")
        }
    })
}
