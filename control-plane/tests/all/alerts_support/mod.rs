//! A control plane with an operator, a gateway's link to it, and servers that take its alerts.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use snapshot::{Down, Up};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use crate::cli_support::{Server, exchange, request, run_with, text};

pub(crate) const NS: &str = "/extensions/svc/extensions/waf";
pub(crate) const RULES: &str = "/apis/palisade.svc/v1/alert-rules";
pub(crate) const PASSWORD: &str = "correct horse battery";
/// Only keeps a failure from hanging the test.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What a receiver does with a request.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    /// The connection ends without an answer.
    Nothing,
    /// This status, with these headers and this body.
    Answer(&'static str, &'static str),
}

pub(crate) const TAKEN: Then = Then::Answer("200 OK", "ok");

/// A server that does what it was told to, then takes everything.
pub(crate) struct Channels {
    pub(crate) url: String,
    pub(crate) requests: UnboundedReceiver<(String, Value)>,
}

impl Channels {
    pub(crate) async fn start(then: &[Then]) -> Channels {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook/s3cret", listener.local_addr().unwrap());
        let (sender, requests) = unbounded_channel();
        let mut then: VecDeque<Then> = then.iter().copied().collect();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // One after the other: what comes first is answered first.
                serve(stream, then.pop_front().unwrap_or(TAKEN), &sender).await;
            }
        });
        Channels { url, requests }
    }

    pub(crate) async fn next(&mut self) -> (String, Value) {
        tokio::time::timeout(LONG, self.requests.recv()).await.expect("no message has come").unwrap()
    }
}

async fn serve(mut stream: TcpStream, then: Then, seen: &UnboundedSender<(String, Value)>) {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n") {
            let length =
                head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break (head.to_owned(), body.to_owned());
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
            return;
        }
    };
    seen.send((head, serde_json::from_str(&body).unwrap())).unwrap();
    if let Then::Answer(status, body) = then {
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
        // Who asked may have gone.
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

/// A new link of a gateway: what it sends, and what it is told.
pub(crate) async fn link(server: &Server) -> (Sender<Up>, tonic::Streaming<Down>) {
    let (up, receiver): (Sender<Up>, Receiver<Up>) = channel(8);
    let link = Channel::from_shared(format!("http://{}", server.xds)).unwrap().connect().await.unwrap();
    let mut grpc = tonic::client::Grpc::new(link);
    grpc.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<Up, Down>::default();
    let path = "/palisade.v1.NodeLink/Stream".parse().unwrap();
    let request = tonic::Request::new(ReceiverStream::new(receiver));
    (up, grpc.streaming(request, path, codec).await.unwrap().into_inner())
}

/// A control plane with an operator, and a gateway's link to it.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
    pub(crate) up: Sender<Up>,
    pub(crate) down: tonic::Streaming<Down>,
}

impl World {
    pub(crate) async fn start(data: &Path) -> World {
        World::start_on(data, &[]).await
    }

    /// [`World::start`] with further options, such as those of a shared store.
    pub(crate) async fn start_on(data: &Path, options: &[&str]) -> World {
        let server = Server::start_with(data, &[&["--outbound-allow", "127.0.0.0/8"], options].concat());
        let folder = data.to_str().unwrap();
        let add = ["operator", "add", "alice", "--email", "alice@example.com", "--data", folder];
        let added = run_with(&[&add, options].concat(), &format!("{PASSWORD}\n"));
        assert!(added.status.success(), "{}", text(&added.stderr));
        World::with(server).await
    }

    /// Another control plane with the same store, and the same operator.
    pub(crate) async fn beside(other: &Path, data: &Path, options: &[&str]) -> World {
        let key = "admin-key.json";
        std::fs::create_dir_all(data).unwrap();
        std::fs::copy(other.join(key), data.join(key)).unwrap();
        World::with(Server::start_with(data, &[&["--outbound-allow", "127.0.0.0/8"], options].concat())).await
    }

    /// The control plane is killed, and another one starts on its data.
    pub(crate) async fn again(mut self, data: &Path) -> World {
        self.server.child.kill().unwrap();
        self.server.child.wait().unwrap();
        World::with(Server::start_with(data, &["--outbound-allow", "127.0.0.0/8"])).await
    }

    pub(crate) async fn with(server: Server) -> World {
        let login = json!({ "name": "alice", "password": PASSWORD }).to_string();
        let path = format!("{NS}/session/_login");
        let (status, head, body) = exchange(&server.rest, &[], "POST", &path, &login).unwrap();
        assert_eq!(status, 200, "{body}");
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let csrf = serde_json::from_str::<Value>(&body).unwrap()["csrf_token"].as_str().unwrap().to_owned();
        let (up, down) = link(&server).await;
        World { server, cookie, csrf, up, down }
    }

    pub(crate) fn rule(&self, id: &str, rule: Value) {
        let mut document = json!({ "id": id, "name": format!("Rule {id}") });
        document.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
        let (status, body) =
            request(&self.server.rest, &self.server.authorization, "POST", RULES, &document.to_string()).unwrap();
        assert_eq!(status, 201, "{body}");
    }

    pub(crate) fn patch(&self, id: &str, patch: Value) {
        let path = format!("{RULES}/{id}");
        let (status, body) =
            request(&self.server.rest, &self.server.authorization, "PATCH", &path, &patch.to_string()).unwrap();
        assert_eq!(status, 200, "{body}");
    }

    pub(crate) fn console(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.answer(method, path, body);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// The answer to a call to `security/{path}`; `../other/path` is beside it.
    pub(crate) fn answer(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let headers = [("cookie", self.cookie.as_str()), ("x-csrf-token", self.csrf.as_str())];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let path = match path.strip_prefix("../") {
            Some(path) => format!("{NS}/{path}"),
            None => format!("{NS}/security/{path}"),
        };
        let (status, _, answer) = exchange(&self.server.rest, &headers, method, &path, &body).unwrap();
        (status, serde_json::from_str(&answer).unwrap_or(Value::String(answer)))
    }

    pub(crate) async fn event(&self, ip: &str, score: f64) {
        let event = json!({
            "@type": "SvcSecurityEvent", "@timestamp": base::clock::rfc3339(base::clock::now_millis()),
            "event": { "category": "threat", "action": "deny", "outcome": "blocked" },
            "source": { "ip": ip }, "threat": { "score": score, "tags": ["waf:blocked"] },
            "incident": { "id": format!("inc-{ip}"), "count": 1 }, "decision": { "enforced": true },
            "route": { "id": "shop", "name": "<!channel>", "node": "edge-1" }, "message": "refused /a?<b>",
        });
        let up = Up { node: "edge-1".into(), events: vec![event.to_string().into_bytes()], ..Up::default() };
        self.up.send(up).await.unwrap();
    }

    /// The events that the control plane has exported, once one is as `wanted`.
    pub(crate) async fn exported(&self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let ends = tokio::time::Instant::now() + LONG;
        loop {
            let lines = std::fs::read_to_string(&self.server.events).unwrap_or_default();
            // The last line may be half written.
            let events: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            if events.iter().any(&wanted) {
                return events;
            }
            assert!(tokio::time::Instant::now() < ends, "no such event: {lines}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The value of a metric, once it is as `wanted`.
    pub(crate) async fn metric(&self, name: &str, wanted: impl Fn(u64) -> bool) -> u64 {
        let ends = tokio::time::Instant::now() + LONG;
        loop {
            let (_, metrics) = request(&self.server.rest, "", "GET", "/metrics", "").unwrap();
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            match line {
                Some(value) if wanted(value) => return value,
                _ => assert!(tokio::time::Instant::now() < ends, "{name} is {line:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn idle(&self) {
        self.metric("palisade_alerts_waiting_messages", |waiting| waiting == 0).await;
    }
}
