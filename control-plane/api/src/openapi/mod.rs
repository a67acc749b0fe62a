//! The admin API described: the OpenAPI 3.1 document, and a page that people read it on.
//!
//! A route and its description are one thing here. [`Routes`] takes both at once, and the admin listener serves nothing
//! but [`Routes`], so that there is no route without a description and no description without a route.
//!
//! To add a route:
//!
//! 1. Describe it beside its handler with an [`Operation`]: method and path, what it is for, its parameters, its body,
//!    and every status that it answers with. A query with a parameter that it does not describe is answered with 400. `rest::describe` and `console::describe` have examples.
//! 2. Put both into the router: `Routes::new().on(describe::thing(), thing)`. A route that is one for axum and several
//!    for its callers, as those of the collections are, goes in with [`Routes::on_each`].
//! 3. Give the types that its bodies have with [`Routes::schema`] (they derive `schemars::JsonSchema`) or
//!    [`Routes::schema_as`], and name them in the description with [`reference()`].
//! 4. Have it guarded as a whole: `access::guard` and `console::protect` take [`Routes`] and describe by themselves what
//!    they demand and answer (401, 403, 429, 500, 503).
//! 5. Merge it where the others are (`rest::router_with`, `console::router`, `cli::serve`).
//!
//! An endpoint that a plugin has in the console is data in its folder instead: `kit::Operation`, mounted by `console::operations`.
//!
//! The header `x-request-id` is added to every answer. The tests here and `tests/all/openapi.rs` report what is missing.

mod components;
mod document;
mod known_query;
mod operation;
mod page;
mod routes;
mod serve;

pub use components::{FIELDS, component_name, entity_schema, part_schema};
pub use document::document;
pub use operation::{Group, JSON, NDJSON, Operation, Security, reference};
pub use page::{Page, page};
pub use routes::Routes;

pub(crate) use components::with_components;
pub(crate) use serve::publish;

#[cfg(test)]
mod tests;
