//! A load of requests and responses that wait for answers with their bodies in hand, in a real gateway.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::{Static, http2_cluster, wasm_filter};
use palisade_tests::envoy::Envoy;
use palisade_tests::http::Request;
use palisade_tests::load::{Load, Plan, Report};
use prost::Message as _;
use serde_json::json;
use snapshot::{LinkSettings, Snapshot, Step, seal};

use super::{ControlPlane, Scripted};

/// What is asked of the gateway.
#[derive(Debug, Clone)]
pub struct AskLoad {
    /// The module of probe plugins.
    pub module: PathBuf,
    /// How long it takes.
    pub time: Duration,
    /// Clients at a time, each with one request under way.
    pub clients: usize,
    /// The pause of each client after each answer.
    pub pause: Duration,
    /// How long the control plane takes for an answer, in milliseconds.
    pub answer_millis: u64,
    /// The length of each request's body, in bytes.
    pub body: usize,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct AskReport {
    /// The clients' view.
    pub clients: Report,
    /// Questions that the control plane got: one for each request.
    pub questions: u64,
    /// Questions that had no answer.
    pub unanswered: u64,
    /// Bytes that the gateway has allocated, after the first request and after the last.
    pub memory: (u64, u64),
    /// What the gateway logged of filters that died.
    pub failures: Vec<String>,
}

impl AskLoad {
    /// Runs it on a gateway with one worker, whose control plane answers every question.
    ///
    /// # Errors
    ///
    /// A gateway or a control plane that does not start, or does not answer the first request.
    pub fn run(&self) -> Result<AskReport, String> {
        let millis = self.answer_millis;
        let control = ControlPlane::start(Arc::new(move |_| Scripted::After(millis, Vec::new())));
        let (control, backend) = (control.map_err(|error| error.to_string())?, Backend::start());
        let config =
            json!({ "at": "request-body", "ask": "say yes", "on": { "unavailable": { "refuse": { "status": 503 } } } });
        let step = Step { plugin: "probe-ask".into(), config: config.to_string().into_bytes(), ..Step::default() };
        let link = LinkSettings { cluster: "control".into(), flush_millis: 50, max_queued: 1000 };
        let snapshot = Snapshot {
            filter: "probe".into(),
            composite: true,
            global: vec![step],
            link: Some(link),
            ..Snapshot::default()
        };
        let filter = wasm_filter("probe", &self.module, &seal(&snapshot).encode_to_vec());
        let gateway = Static::to(backend.address()).filter(filter).cluster(http2_cluster("control", control.address()));
        let envoy = Envoy::start_with(&gateway.render(), 1, None)?;
        let to = envoy.listener(Static::LISTENER);
        let request = Request::post("/echo", "application/octet-stream", vec![b'x'; self.body]);
        let first = request.send(to).map_err(|error| format!("{error}\n{}", envoy.log_tail(40)))?;
        if first.status != 200 {
            return Err(format!("the first answer has the status {}\n{}", first.status, envoy.log_tail(40)));
        }
        let stat = |name: &str| envoy.stats(name).values().sum();
        let (asked, before) = (control.seen().questions(), stat("^server.memory_allocated$"));
        let (connections, requests) = (self.clients, vec![request.encode()]);
        let plan = Plan { to, connections, requests, pause: self.pause, cpu: None };
        let clients = Load::during(plan, self.time);
        Ok(AskReport {
            clients,
            questions: control.seen().questions() - asked,
            unanswered: stat(r"palisade\.questions_unanswered$"),
            memory: (before, stat("^server.memory_allocated$")),
            failures: envoy.vm_failures(),
        })
    }
}
