//! Questions to the control plane in a real gateway, where clients leave, streams break and configurations change meanwhile.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use double::{AskLoad, ControlPlane, ScriptedClusters};
use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::{Static, http2_cluster, wasm_filter};
use palisade_tests::envoy::Envoy;
use palisade_tests::h2_frames;
use palisade_tests::http::{Connection, Request};
use palisade_tests::process::wait_for;
use prost::Message as _;
use proxy_host::{Module, Node, Options, Vm};
use serde_json::{Value, json};
use snapshot::{LinkSettings, Snapshot, Step, Trailers, configuration_json, seal};

use crate::frame::script;
use crate::kit::{NOW_MILLIS, filter, own};

/// It bounds a test that fails. Questions wait for 10 s.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What the gateway buffers, in bytes, and a body that is shorter.
const BUFFERS: usize = 8 << 20;
const LONG: usize = 6 << 20;

/// A gateway with one worker, its backend and its control plane.
pub(crate) struct Gateway {
    pub(crate) envoy: Envoy,
    pub(crate) to: SocketAddr,
    pub(crate) control: ControlPlane,
    _backend: Backend,
}

/// A step on the paths that begin with `/NAME`.
fn step(name: &str, config: &Value) -> Step {
    let include = vec![format!("^/{name}")];
    let plugin = if config.get("ask").is_some() { "probe-ask" } else { "probe-change" };
    Step { plugin: plugin.into(), config: serde_json::to_vec(config).unwrap(), include, ..Step::default() }
}

pub(crate) fn configuration(steps: &[(&str, Value)]) -> Vec<u8> {
    let global = steps.iter().map(|(name, config)| step(name, config)).collect();
    let link = LinkSettings { cluster: "control".into(), flush_millis: 50, max_queued: 1000 };
    let (filter, trailers) = ("probe".into(), Trailers::Pass.into());
    let snapshot = Snapshot { filter, composite: true, global, link: Some(link), trailers, ..Snapshot::default() };
    seal(&snapshot).encode_to_vec()
}

pub(crate) fn module() -> PathBuf {
    let folder = std::env::var_os("PALISADE_FILTERS").map_or_else(|| own("../../target/filters"), PathBuf::from);
    folder.join("probe.wasm").canonicalize().unwrap()
}

impl Gateway {
    pub(crate) fn start(steps: &[(&str, Value)]) -> Self {
        Self::with(wasm_filter("probe", &module(), &configuration(steps)))
    }

    pub(crate) fn with(filter: Value) -> Self {
        Self::with_buffers(filter, BUFFERS)
    }

    /// The same with buffers of so many bytes for each message.
    pub(crate) fn with_buffers(filter: Value, bytes: usize) -> Self {
        let (backend, control) = (Backend::start(), ControlPlane::start(script()).unwrap());
        let gateway = Static::to(backend.address()).filter(filter).cluster(http2_cluster("control", control.address()));
        let mut gateway: Value = serde_json::from_str(&gateway.render()).unwrap();
        gateway["node"] = json!({ "id": "gateway-1", "cluster": "test" });
        gateway["static_resources"]["listeners"][0]["per_connection_buffer_limit_bytes"] = json!(bytes);
        let cluster = &mut gateway["static_resources"]["clusters"][0];
        cluster["per_connection_buffer_limit_bytes"] = json!(bytes);
        cluster["typed_extension_protocol_options"] = json!({
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": { "http_protocol_options": { "enable_trailers": true } },
            },
        });
        let envoy = Envoy::start_with(&gateway.to_string(), 1, None).unwrap_or_else(|why| panic!("{why}"));
        let to = envoy.listener(Static::LISTENER);
        Self { envoy, to, control, _backend: backend }
    }

    pub(crate) fn status(&self, request: &Request) -> u16 {
        let answer = request.send(self.to);
        answer.unwrap_or_else(|error| panic!("{error}\n{}", self.envoy.log_tail(40))).status
    }

    /// Waits until so many questions came.
    pub(crate) fn questions(&self, count: u64) {
        let came = || (self.control.seen().questions() >= count).then_some(());
        let why = |why| panic!("{why}: {}\n{}", self.control.seen().questions(), self.envoy.log_tail(40));
        wait_for("a question", PATIENCE, came).unwrap_or_else(why);
    }

    pub(crate) fn unanswered(&self) -> u64 {
        self.envoy.stats(r"palisade\.questions_unanswered$").values().sum()
    }

    /// Nothing has died.
    pub(crate) fn is_well(&self) {
        assert!(self.envoy.vm_failures().is_empty(), "{:?}", self.envoy.vm_failures());
    }
}

pub(crate) fn refuse(status: u16) -> Value {
    json!({ "refuse": { "status": status } })
}

pub(crate) fn upload(path: &str, length: usize) -> Request {
    Request::post(path, "application/octet-stream", vec![b'x'; length])
}

#[test]
fn a_client_that_leaves_takes_its_question_along() {
    let no = json!({ "no": refuse(403) });
    let gateway = Gateway::start(&[
        ("request", json!({ "at": "request-body", "ask": "hold yes", "millis": 10_000 })),
        ("response", json!({ "at": "response-body", "ask": "hold yes", "millis": 10_000 })),
        ("now", json!({ "at": "access", "ask": "say no", "on": no })),
    ]);
    // More than a worker may have under way: the last ones find room only if those before them have left it.
    let most = u64::try_from(exchange::MAX_QUESTIONS).unwrap() + 20;
    for number in 1..=most {
        let path = if number % 2 == 0 { "/request" } else { "/response" };
        let mut connection = Connection::open(gateway.to).unwrap();
        connection.write(&upload(path, 100).encode()).unwrap();
        gateway.questions(number);
        drop(connection);
    }
    assert_eq!(gateway.status(&Request::get("/now")), 403);
    assert_eq!(gateway.unanswered(), 0);
    // Answers to those who have left disturb no one.
    gateway.control.release();
    assert_eq!(gateway.status(&upload("/request", 100)), 200);
    assert_eq!(gateway.status(&upload("/response", 100)), 200);
    gateway.is_well();
}

#[test]
fn a_link_that_is_lost_leaves_messages_without_an_answer_and_comes_back() {
    let unavailable = json!({ "unavailable": refuse(503) });
    let steps = [
        ("open", json!({ "at": "request-body", "ask": "lose" })),
        ("closed", json!({ "at": "response-body", "ask": "lose", "on": unavailable })),
        ("held", json!({ "at": "response", "ask": "hold yes", "on": unavailable, "millis": 10_000 })),
        ("now", json!({ "at": "access", "ask": "say no", "on": { "no": refuse(403) } })),
    ];
    let gateway = Gateway::start(&steps);
    let is_back = || (gateway.status(&Request::get("/now")) == 403).then_some(());
    wait_for("the link", PATIENCE, is_back).unwrap();
    assert_eq!(gateway.unanswered(), 0);
    assert_eq!(gateway.status(&upload("/open", 1000)), 200);
    assert_eq!(gateway.unanswered(), 1);
    // Until the next link it has no answers, and holds up no request.
    wait_for("the link", PATIENCE, is_back).unwrap();
    assert_eq!(gateway.status(&upload("/closed", 1000)), 503);
    wait_for("the link", PATIENCE, is_back).unwrap();
    // A question beside the one that loses the link goes without an answer as well.
    let asked = gateway.control.seen().questions();
    let to = gateway.to;
    let held = std::thread::spawn(move || upload("/held", 10).send(to).unwrap().status);
    gateway.questions(asked + 1);
    assert_eq!(gateway.status(&upload("/open", 10)), 200);
    assert_eq!(held.join().unwrap(), 503);
    gateway.is_well();

    // In the harness as well.
    let module = Module::compile(&filter("probe")).unwrap();
    let (node, clusters) = (Node::new("gateway-1", NOW_MILLIS, 7), Box::new(ScriptedClusters::new(script())));
    let mut vm = Vm::with_clusters(&module, &configuration(&steps), &node, Options::default(), clusters).unwrap();
    vm.advance(1000).unwrap();
    let exchange = |path: &str| {
        let request = proxy_host::traffic::Request { body: b"x".to_vec(), ..proxy_host::traffic::Request::get(path) };
        let response = proxy_host::traffic::Response { status: 200, body: b"y".to_vec(), ..Default::default() };
        proxy_host::traffic::Exchange { request, response }
    };
    for (path, lost) in [("/open", 200), ("/closed", 503)] {
        assert_eq!(vm.exchange(&exchange("/now")).status, 403);
        assert_eq!(vm.exchange(&exchange(path)).status, lost);
        vm.advance(60_000).unwrap();
    }
    let unanswered = node.metrics().get("palisade.questions_unanswered").map(|metric| metric.value);
    assert_eq!(unanswered, Some(2));
}

#[test]
fn a_wait_ends_before_the_gateway_buffers_too_much() {
    // Questions that are never answered, and end only because more of a body comes than may wait.
    let never = |at: &str| json!({ "at": at, "ask": "never", "millis": 10_000 });
    let began = Instant::now();
    let gateway = Gateway::start(&[
        ("open", never("request")),
        ("closed", json!({ "at": "access", "ask": "never", "millis": 10_000, "on": { "overrun": refuse(503) } })),
    ]);
    let echo = upload("/open", LONG).send(gateway.to).unwrap();
    assert_eq!((echo.status, &echo.json()["body_length"]), (200, &json!(LONG)));
    // The client gets its answer although the rest of the body never comes.
    let mut connection = Connection::open(gateway.to).unwrap();
    let mut part = upload("/closed", LONG).encode();
    part.truncate(LONG / 2);
    connection.write(&part).unwrap();
    assert_eq!(connection.read(false).unwrap().status, 503);
    assert_eq!(gateway.unanswered(), 2);
    gateway.is_well();
    for at in ["response", "response-body"] {
        let gateway = Gateway::start(&[("reflect", never(at))]);
        let wish = json!({ "status": 200, "headers": {}, "body": "y".repeat(LONG) });
        assert_eq!(Request::json("/reflect", &wish).send(gateway.to).unwrap().body.len(), LONG, "{at}");
        assert_eq!(gateway.unanswered(), 1);
        gateway.is_well();
    }
    assert!(began.elapsed() < Duration::from_secs(40), "all four questions waited for 10 s");
}

#[test]
fn a_delay_ends_before_the_gateway_buffers_too_much() {
    let delayed = json!({ "hold": 20_000 });
    let refused = json!({ "hold": 2000, "refuse": { "status": 403 } });
    // Much of the body may be there before the answer is.
    let access = |then: Value| json!({ "at": "access", "ask": "say yes", "on": { "yes": then, "overrun": then } });
    let filter = |steps: &[(&str, Value)]| wasm_filter("probe", &module(), &configuration(steps));
    let steps = [("delayed", access(delayed)), ("refused", access(refused))];
    let gateway = Gateway::with_buffers(filter(&steps), 2 << 20);
    let began = Instant::now();
    let echo = upload("/delayed", LONG).send(gateway.to).unwrap();
    assert_eq!((echo.status, &echo.json()["body_length"]), (200, &json!(LONG)));
    assert!(began.elapsed() < Duration::from_secs(15), "it went on when more came than may wait");
    // A body is no way around the delay of a refused request.
    let began = Instant::now();
    let mut connection = Connection::open(gateway.to).unwrap();
    let _ = connection.write(&upload("/refused", LONG).encode());
    assert_eq!(connection.read(false).unwrap().status, 403);
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    gateway.is_well();
}

/// The answer to a request whose body never comes.
fn withheld(gateway: &Gateway, path: &str) -> u16 {
    let mut connection = Connection::open(gateway.to).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nhost: shop.example\r\ncontent-length: 5\r\n\r\n");
    connection.write(head.as_bytes()).unwrap();
    connection.read(false).unwrap_or_else(|error| panic!("{path}: {error}\n{}", gateway.envoy.log_tail(40))).status
}

#[test]
fn a_body_that_never_comes_is_no_way_around_a_step() {
    let no = json!({ "no": refuse(403) });
    let body = |at: &str| json!({ "at": at, "ask": "later yes" });
    // The backend answers these paths from the headers.
    let gateway = Gateway::with(without_holding(&[
        ("status/200", json!({ "at": "request-body", "ask": "later no", "on": no })),
        ("status/201", json!({ "at": "request-pieces", "ask": "later no", "on": no })),
        ("status/202", body("request-body")),
        ("status/203", body("request-body")),
        ("status/203", json!({ "at": "request", "ask": "later no", "on": no })),
        ("status/206", body("request-pieces")),
        ("status/206", json!({ "at": "response", "ask": "later no", "on": no })),
        ("status/404", body("request-body")),
        ("status/404", json!({ "at": "request", "ask": "later yes", "on": { "yes": { "hold": 500 } } })),
    ]));
    for (path, status) in
        [("/status/200", 403), ("/status/201", 403), ("/status/202", 202), ("/status/203", 403), ("/status/206", 403)]
    {
        assert_eq!(withheld(&gateway, path), status, "{path}");
        // The backend answers as early where the body comes.
        assert_eq!(gateway.status(&upload(path, 5)), status, "{path} with its body");
    }
    let began = Instant::now();
    assert_eq!(withheld(&gateway, "/status/404"), 404);
    assert!(began.elapsed() >= Duration::from_millis(500), "it was not held: {:?}", began.elapsed());
    gateway.is_well();
}

/// A filter whose gateway cannot hold headers while a body comes.
pub(crate) fn without_holding(steps: &[(&str, Value)]) -> Value {
    let configuration = configuration_json(&configuration(steps)).to_string();
    let mut filter = wasm_filter("probe", &module(), b"");
    let config = &mut filter["typed_config"]["config"];
    config.as_object_mut().unwrap().remove("allow_on_headers_stop_iteration");
    config["configuration"] =
        json!({ "@type": "type.googleapis.com/google.protobuf.StringValue", "value": configuration });
    filter
}

#[test]
fn a_filter_that_cannot_hold_headers_asks_as_well() {
    let no = json!({ "no": refuse(403) });
    let steps = [
        ("access", json!({ "at": "access", "ask": "later no", "on": no })),
        ("more", json!({ "at": "request", "ask": "later more", "on": { "more": { "need_body": true } } })),
        ("body", json!({ "at": "request-body", "ask": "length", "on": { "1000": refuse(403) } })),
        ("pieces", json!({ "at": "request-pieces", "ask": "length", "on": { "1000": refuse(403) } })),
        ("response", json!({ "at": "response", "ask": "later no", "on": no })),
        ("page", json!({ "at": "response-body", "ask": "later yes" })),
        ("scan", json!({ "at": "request-body", "ask": "scan", "send": true, "on": { "infected": refuse(403) } })),
    ];
    let gateway = Gateway::with(without_holding(&steps));
    for chunked in [false, true] {
        let sent = |path: &str, length: usize| {
            let request = upload(path, length);
            let request = if chunked { request.chunked(7) } else { request };
            request.send(gateway.to).unwrap_or_else(|error| panic!("{path}: {error}\n{}", gateway.envoy.log_tail(40)))
        };
        for (path, length, status) in [
            ("/access", 10, 403),
            ("/more", 10, 200),
            ("/more", 0, 200),
            ("/body", 1000, 403),
            ("/body", 1001, 200),
            ("/pieces", 1000, 403),
            ("/pieces", 1001, 200),
            ("/response", 10, 403),
            ("/page", 10, 200),
            ("/scan", 1000, 200),
        ] {
            let answer = sent(path, length);
            assert_eq!(answer.status, status, "{path} {length} chunked {chunked}");
            if status == 200 && length > 0 {
                assert_eq!(answer.json()["body_length"], length, "{path}");
            }
        }
    }
    gateway.is_well();
}

#[test]
fn trailers_resets_and_upgrades_come_while_a_question_waits() {
    let later = |at: &str| json!({ "at": at, "ask": "later yes" });
    let gateway = Gateway::start(&[
        ("access", later("access")),
        ("body", later("request-body")),
        ("pieces", later("request-pieces")),
        ("page", later("response-body")),
        ("ws", later("access")),
        ("ws", later("response")),
        ("reset", json!({ "at": "response", "ask": "hold yes", "millis": 10_000 })),
    ]);
    let mut connection = h2_frames::Connection::open(gateway.to).unwrap();
    for path in ["/access", "/body", "/pieces", "/page"] {
        let (status, seen) = connection.post_with_trailers(path, b"five!", &[("x-checksum", "abc")]).unwrap();
        let seen: Value = serde_json::from_slice(&seen).unwrap_or_default();
        let expected = (200, json!(5), json!([["x-checksum", "abc"]]));
        assert_eq!((status, seen["body_length"].clone(), seen["trailers"].clone()), expected, "{path}");
        assert_eq!(connection.post_with_trailers(path, b"", &[("x-checksum", "abc")]).unwrap().0, 200, "{path}");
    }
    let asked = gateway.control.seen().questions();
    let mut socket = Connection::open(gateway.to).unwrap();
    let upgrade = Request::get("/ws")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    socket.write(&upgrade.encode()).unwrap();
    assert_eq!(socket.read_head().unwrap().status, 101);
    assert_eq!(gateway.control.seen().questions(), asked + 2);
    for text in [b"first".as_slice(), b"second"] {
        socket.write(text).unwrap();
        assert_eq!(socket.read_some().unwrap(), text);
    }
    // Streams that are reset with a question, or before it, leave the connection and the filter alive.
    connection.reset_streams(200, |_| "/reset".to_owned()).unwrap();
    assert_eq!(connection.post_with_trailers("/body", b"five!", &[("x-checksum", "abc")]).unwrap().0, 200);
    gateway.control.release();
    assert_eq!((gateway.status(&upload("/reset", 10)), gateway.unanswered()), (200, 0));
    gateway.is_well();
}

#[test]
fn an_answer_comes_on_the_link_of_the_configuration_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("probe.json");
    let on = json!({ "no": refuse(403), "unavailable": refuse(503) });
    let steps = |status| {
        [
            ("held", json!({ "at": "request-body", "ask": "hold no", "on": on, "millis": 10_000 })),
            ("page", json!({ "at": "response", "ask": "hold no", "on": on, "millis": 10_000 })),
            ("now", json!({ "at": "access", "ask": "say no", "on": { "no": refuse(status) } })),
        ]
    };
    let put = |status| resource(&file, &wasm_filter("probe", &module(), &configuration(&steps(status))));
    put(403);
    let gateway = Gateway::with(json!({
        "name": "probe",
        "config_discovery": {
            "config_source": {
                "resource_api_version": "V3",
                "path_config_source": { "path": file, "watched_directory": { "path": folder.path() } },
            },
            "type_urls": ["type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"],
        },
    }));
    let becomes = |status| {
        let is = || (gateway.status(&Request::get("/now")) == status).then_some(());
        wait_for("the configuration", PATIENCE, is)
            .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    };
    becomes(403);
    let asked = gateway.control.seen().questions();
    let to = gateway.to;
    let held = ["/held", "/page"].map(|path| std::thread::spawn(move || upload(path, 100).send(to).unwrap().status));
    gateway.questions(asked + 2);
    put(418);
    becomes(418);
    gateway.control.release();
    assert_eq!(held.map(|one| one.join().unwrap()), [403, 403]);
    // The link of before ends when its questions are answered: one is left for each VM.
    let links = || (gateway.control.seen().open() <= 2).then_some(());
    wait_for("the end of the earlier link", PATIENCE, links).unwrap();
    assert_eq!((gateway.unanswered(), gateway.status(&Request::get("/now"))), (0, 418));
    gateway.is_well();
}

#[test]
fn no_request_is_lost_where_many_wait_with_their_bodies_in_hand() {
    let load = AskLoad {
        module: module(),
        time: Duration::from_secs(3),
        clients: 60,
        pause: Duration::ZERO,
        answer_millis: 20,
        body: 10_000,
    };
    let report = load.run().unwrap();
    let statuses: Vec<u16> = report.clients.statuses.keys().copied().collect();
    assert_eq!((statuses, report.clients.dropped), (vec![200], 0), "{:?}", report.clients.reasons);
    assert_eq!((report.questions, report.unanswered), (report.clients.answers(), 0));
    assert!(report.failures.is_empty(), "{:?}", report.failures);
}

/// Writes the filter as a file that Envoy watches, in one step.
pub(crate) fn resource(file: &Path, filter: &Value) {
    let mut resource = filter.clone();
    resource["@type"] = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig".into();
    let part = file.with_extension("part");
    fs::write(&part, json!({ "resources": [resource] }).to_string()).unwrap();
    fs::rename(part, file).unwrap();
}
