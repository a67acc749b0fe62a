//! Routes with their descriptions.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware;
use axum::routing::{MethodFilter, on};
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::Operation;
use super::components::{self, Schemas};
use super::known_query::{KnownQuery, refuse};

/// An axum router whose every route is described. See the module for how to add one.
#[derive(Clone, Debug)]
pub struct Routes<S = ()> {
    router: Router<S>,
    operations: Vec<Operation>,
    schemas: Schemas,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// None yet.
    #[must_use]
    pub fn new() -> Routes<S> {
        Routes { router: Router::new(), operations: Vec::new(), schemas: Map::new() }
    }

    /// A route: the method and the path are those of its description. GET answers HEAD as well.
    ///
    /// # Panics
    /// As axum does, where there is such a route already or the path cannot be one: a mistake that the first start shows.
    #[must_use]
    pub fn on<H, T>(self, operation: Operation, handler: H) -> Routes<S>
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let (method, path) = (operation.method().clone(), operation.path().to_owned());
        self.on_each(&method, &path, vec![operation], handler)
    }

    /// A route that has several paths to its callers; a query parameter that none of them describes is refused. `path` is the pattern for axum, `operations` are those callers see,
    /// all of the same method.
    ///
    /// # Panics
    /// As [`Routes::on`].
    #[must_use]
    pub fn on_each<H, T>(mut self, method: &Method, path: &str, operations: Vec<Operation>, handler: H) -> Routes<S>
    where
        H: Handler<T, S>,
        T: 'static,
    {
        if let Ok(filter) = MethodFilter::try_from(method.clone()) {
            let mut route = on(filter, handler);
            let mut operations = operations;
            if let Some(known) = KnownQuery::of(&operations) {
                let known = Arc::new(known);
                route =
                    route.route_layer(middleware::from_fn(move |request, next| refuse(known.clone(), request, next)));
                operations = operations.into_iter().map(KnownQuery::describe).collect();
            }
            self.router = self.router.route(path, route);
            self.operations.extend(operations);
        }
        self
    }

    /// Adds the schema of a type, and of what it is made of, under schemars' names for them: as it is read.
    #[must_use]
    pub fn schema<T: JsonSchema>(mut self) -> Routes<S> {
        components::add(&mut self.schemas, &T::schema_name(), components::read_schema::<T>());
        self
    }

    /// [`Routes::schema`] of a type as it is written: fields that are always there are required.
    #[must_use]
    pub fn answer_schema<T: JsonSchema>(mut self) -> Routes<S> {
        components::add(&mut self.schemas, &T::schema_name(), components::written_schema::<T>());
        self
    }

    /// Adds a schema under a unique name. Its `$defs` become components too.
    #[must_use]
    pub fn schema_as(mut self, name: &str, schema: Value) -> Routes<S> {
        components::add(&mut self.schemas, name, schema);
        self
    }

    /// These routes and the others.
    ///
    /// # Panics
    /// As [`Routes::on`].
    #[must_use]
    pub fn merge(mut self, other: Routes<S>) -> Routes<S> {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        for (name, schema) in other.schemas {
            components::add(&mut self.schemas, &name, schema);
        }
        self
    }

    /// Gives the handlers their state.
    #[must_use]
    pub fn with_state<S2>(self, state: S) -> Routes<S2> {
        let Routes { router, operations, schemas } = self;
        Routes { router: router.with_state(state), operations, schemas }
    }

    /// Puts layers around the routes so far. `wrap` adds no routes of its own: they would have no description.
    #[must_use]
    pub fn layered(mut self, wrap: impl FnOnce(Router<S>) -> Router<S>) -> Routes<S> {
        self.router = wrap(self.router);
        self
    }

    /// Adds to every description what a layer demands and answers.
    #[must_use]
    pub fn described(mut self, more: impl Fn(Operation) -> Operation) -> Routes<S> {
        self.operations = self.operations.into_iter().map(more).collect();
        self
    }

    /// What is described, in the order in which it was added.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The schemas of the bodies, by name.
    pub(super) fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// The router alone.
    pub fn into_router(self) -> Router<S> {
        self.router
    }
}

impl<S: Clone + Send + Sync + 'static> Default for Routes<S> {
    fn default() -> Routes<S> {
        Routes::new()
    }
}
