//! An admin API on a store of its own, called without a network.

use std::net::SocketAddr;
use std::sync::Arc;

use accounts::{AdminKey, Scope};
use api::access::Access;
use api::rest::{self, AppState, RestConfig};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode};
use base::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use entities::EntityService;
use events::{EventHub, Exporter};
use serde_json::Value;
use store::{SqliteOptions, SqliteStore, Store};
use telemetry::{Metrics, Readiness};
use tower::ServiceExt as _;

/// Where the entities are.
pub(crate) const BASE: &str = "/apis/palisade.svc/v1";

/// The file of events, in the store's folder.
const EVENTS: &str = "events.jsonl";

/// The API, and a key that may do everything.
pub(crate) struct Api {
    pub(crate) state: AppState,
    pub(crate) router: Router,
    pub(crate) authorization: String,
    folder: tempfile::TempDir,
}

/// What the API answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Api {
    pub(crate) async fn new() -> Api {
        Api::with(SqliteOptions::default(), RestConfig::default()).await
    }

    pub(crate) async fn with(options: SqliteOptions, config: RestConfig) -> Api {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
        let entities = EntityService::open(Arc::clone(&store)).await.unwrap();
        let events = EventHub::new(vec![Exporter::File(folder.path().join(EVENTS))], clock::now_millis);
        let state = AppState {
            access: Access::new(Arc::clone(&store), events.clone()),
            events,
            store,
            entities,
            readiness: Readiness::default(),
            metrics: Metrics::install(),
            config: Arc::new(config),
        };
        let authorization = key(&state, &Scope::ALL, None).await;
        Api { router: rest::router(state.clone()), state, authorization, folder }
    }

    /// Sends a request as it is, from 192.0.2.1.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Answer {
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 1))));
        self.send_as_it_is(request).await
    }

    /// [`Api::send`] of a request that says itself where it comes from.
    pub(crate) async fn send_as_it_is(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status: parts.status, headers: parts.headers, body, text }
    }

    /// The events so far, as they were exported, oldest first.
    pub(crate) async fn events(&self) -> Vec<Value> {
        self.state.events.flush().await;
        let text = std::fs::read_to_string(self.folder().join(EVENTS)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The folder of the store.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Calls the entity API with the key; `path` is below the collections' base.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.call_with(method, path, body, &[]).await
    }

    /// [`Api::call`] with further headers.
    pub(crate) async fn call_with(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{BASE}{path}"));
        request = request.header("authorization", &self.authorization);
        if body.is_some() && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.send(request.body(body).unwrap()).await
    }

    /// [`Api::call`] with a body that need not be JSON.
    pub(crate) async fn raw(&self, method: &str, path: &str, content_type: &str, body: &str) -> Answer {
        let request = Request::builder().method(method).uri(format!("{BASE}{path}"));
        let request = request.header("authorization", &self.authorization).header("content-type", content_type);
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }
}

/// Makes a key and returns the `Authorization` header of its owner.
pub(crate) async fn key(state: &AppState, scopes: &[Scope], expires_at_millis: Option<u64>) -> String {
    let issued = AdminKey::issue("test", scopes, clock::now_millis(), expires_at_millis).unwrap();
    state.store.admin_key_put(issued.key.clone()).await.unwrap();
    basic(&issued.key.id, &issued.secret)
}

/// The `Authorization` header of HTTP basic authentication.
pub(crate) fn basic(id: &str, secret: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
}
