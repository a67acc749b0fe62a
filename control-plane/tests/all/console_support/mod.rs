//! The console beside the admin API, on a clock that stands still until it is moved.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use accounts::{Operator, Role, Scope, hash_password};
use alerts::Alerts;
use api::access::guard;
use api::console::{self, Console, LoginRules, Replaying, StoredEvents};
use api::names::NAMESPACE;
use api::rest;
use api::rest::report::{self, Reports};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use events::{LiveEvents, Outbox};
use fabric::{Bans, Fabric};
use kit::Runtimes;
use link::{LinkHub, NodePort};
use outbound::Outbound;
use replays::{Limits, Replays, Settings};
use serde_json::{Value, json};
use store::EventStore;
use store::events::{EventFile, EventLimits};
use tokio::sync::watch;
use xds::Hub;

use crate::entities_support::{Answer, Api};
use crate::link_support::{Worker, plain};

/// The password of every operator here.
pub(crate) const PASSWORD: &str = "correct horse battery";
/// Where the clock begins, in milliseconds since 1970.
pub(crate) const BEGINNING: u64 = 1_800_000_000_000;

/// The program that replays, beside the control plane's: `cargo build -p harness` makes it, and so does a run of all tests.
pub(crate) fn replay_program() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_palisade")).with_file_name("palisade-replay")
}

/// An admin API with a console.
pub(crate) struct ConsoleApi {
    pub(crate) api: Api,
    pub(crate) clock: Arc<AtomicU64>,
    pub(crate) fabric: Fabric,
    pub(crate) link: LinkHub,
    /// What gateways are served; nothing is published.
    pub(crate) hub: Hub,
    /// What plugins have at work; no gatherer runs unless a test starts it.
    pub(crate) runtimes: Runtimes,
    /// Stored events; those of the hub do not go there.
    pub(crate) stored: Arc<dyn EventStore>,
    /// Says that the control plane stops.
    pub(crate) stop: watch::Sender<bool>,
    outbox: Outbox,
}

/// What an operator's browser holds.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl ConsoleApi {
    /// With the operators `alice` and `bob` (admins), `anna` (an analyst) and `victor` (a viewer).
    pub(crate) async fn new() -> ConsoleApi {
        ConsoleApi::with(false).await
    }

    /// The same, where a second factor may be required of everyone.
    pub(crate) async fn with(requires_second_factor: bool) -> ConsoleApi {
        let clock = Arc::new(AtomicU64::new(BEGINNING));
        ConsoleApi::with_rules(LoginRules { requires_second_factor, ..LoginRules::default() }, clock).await
    }

    /// The same with any rules for logins, on a clock that they may share.
    pub(crate) async fn with_rules(rules: LoginRules, clock: Arc<AtomicU64>) -> ConsoleApi {
        let mut api = Api::new().await;
        let now = Arc::clone(&clock);
        let listen = SocketAddr::from(([127, 0, 0, 1], 8900));
        let told = Arc::new(move || now.load(Ordering::Relaxed));
        let (entities, events) = (api.state.entities.clone(), api.state.events.clone());
        let store = Arc::clone(&api.state.store);
        let runtimes = Runtimes::of(entities::plugins::active());
        let (at_work, now) = (runtimes.clone(), told.clone());
        let (from, heard) = (entities.clone(), events.clone());
        let console = Console::new(Arc::clone(&store), from, heard, Some(listen), now, at_work, rules);
        // A link of its own: no gateway is connected.
        let bans = Bans::new(Arc::clone(&store), events.clone(), base::clock::now_millis);
        let hub = Hub::new();
        let link = LinkHub::new(events.clone(), bans, hub.clone(), base::clock::now_millis);
        // Nobody runs them: rules are tried here, and do not act.
        let outbound = Outbound::new(Vec::new());
        let alerts = Alerts::new(Arc::clone(&store), entities.clone(), events.clone(), outbound, told.clone());
        let fabric = Fabric::new(store, entities, events, link.announcer().clone(), told);
        fabric.load().await.unwrap();
        let reports = Reports { events: api.state.events.clone(), nodes: hub.clone() };
        let reports = report::router(reports).merge(console::report_router(&console));
        let reports = guard(reports, api.state.access.clone(), Some(Scope::Report));
        let security = console::security_router(&console, fabric.clone(), hub.clone(), alerts);
        let entities = console::entities_router(&console, &api.state);
        let limits = EventLimits { age_millis: 7 * 86_400_000, bytes: 1 << 30, events: 1_000_000 };
        let stored: Arc<dyn EventStore> = Arc::new(EventFile::new(api.folder(), limits));
        let live = LiveEvents::new(api.state.events.clone(), None);
        let (stop, stopping) = watch::channel(false);
        let of_events = StoredEvents { stored: Some((Arc::clone(&stored), limits)), live, stopping };
        let of_events = console::events_router(&console, of_events);
        let folder = api.folder().join("replay");
        let settings = Settings { folder, program: Some(replay_program()), limits: Limits::default() };
        let replays = Replays::open(settings, Arc::clone(&api.state.store)).await;
        let replaying = Replaying::new(replays, Arc::default(), Some(Arc::clone(&stored)));
        let of_replays = console::replay_router(&console, replaying);
        let routes = console::router(&console).merge(entities).merge(security).merge(reports).merge(of_events);
        let routes = routes.merge(of_replays);
        api.router = rest::router_with(api.state.clone(), routes);
        let hash = hash_password(PASSWORD).unwrap();
        let roles = [("alice", Role::Admin), ("bob", Role::Admin), ("anna", Role::Analyst), ("victor", Role::Viewer)];
        for (name, role) in roles {
            let operator = Operator::new(name, &format!("{name}@example.com"), role, hash.clone(), BEGINNING).unwrap();
            assert!(api.state.store.operator_add(operator).await.unwrap());
        }
        let outbox = Outbox::new(Arc::clone(&api.state.store), api.state.events.clone());
        ConsoleApi { api, clock, fabric, link, hub, runtimes, stored, stop, outbox }
    }

    /// The logins and accounts of another control plane on the same store.
    pub(crate) fn beside(&self, rules: LoginRules) -> axum::Router {
        let (clock, state) = (Arc::clone(&self.clock), &self.api.state);
        let now = Arc::new(move || clock.load(Ordering::Relaxed));
        let (store, entities, events) = (Arc::clone(&state.store), state.entities.clone(), state.events.clone());
        let listen = SocketAddr::from(([127, 0, 0, 1], 8901));
        let console = Console::new(store, entities, events, Some(listen), now, self.runtimes.clone(), rules);
        console::router(&console).into_router()
    }

    /// A gateway that is linked, for as long as the value lives.
    pub(crate) async fn linked(&self) -> Worker {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (hub, link, port) = (self.hub.clone(), self.link.clone(), NodePort::default());
        tokio::spawn(link::serve_with(port, listener, hub, link, std::future::pending()));
        Worker::admitted(plain(address).await, None).await
    }

    /// The events so far, those in the outbox included.
    pub(crate) async fn events(&self) -> Vec<Value> {
        self.outbox.look().await.unwrap();
        self.api.events().await
    }

    pub(crate) fn advance(&self, millis: u64) {
        self.clock.fetch_add(millis, Ordering::Relaxed);
    }

    /// A request to an endpoint of the console with these headers, from `192.0.2.<host>`.
    pub(crate) async fn send_from(
        &self,
        host: u8,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{NAMESPACE}{path}"));
        request = request.header("host", "127.0.0.1:8900");
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = request.body(body).unwrap();
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, host], 1))));
        self.api.send_as_it_is(request).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        self.send_from(1, method, path, headers, body).await
    }

    pub(crate) async fn try_login(&self, host: u8, name: &str, password: &str) -> Answer {
        let body = json!({ "name": name, "password": password });
        self.send_from(host, "POST", "/session/_login", &[], Some(&body)).await
    }

    pub(crate) async fn login(&self, name: &str) -> Login {
        let answer = self.try_login(1, name, PASSWORD).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        Login { cookie, csrf: answer.body["csrf_token"].as_str().unwrap().to_owned() }
    }

    pub(crate) async fn get(&self, login: &Login, path: &str) -> Answer {
        self.send("GET", path, &[("cookie", &login.cookie)], None).await
    }

    pub(crate) async fn post(&self, login: &Login, path: &str, body: &Value) -> Answer {
        let headers = [("cookie", login.cookie.as_str()), ("x-csrf-token", login.csrf.as_str())];
        self.send("POST", path, &headers, Some(body)).await
    }
}

/// A request to an endpoint of the console as the router takes it.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(format!("{NAMESPACE}{path}"));
    request = request.header("host", "127.0.0.1:8900").header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_string())).unwrap()
}
