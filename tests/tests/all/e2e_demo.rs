//! `make run`: the demo does what docs/first-steps.md shows of it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade_tests::http::{Request, Response};
use palisade_tests::ports;
use palisade_tests::process::{Process, wait_for};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);
const GOOGLE: &str = "Mozilla/5.0 (compatible; Googlebot/2.1)";

/// The running demo.
struct Demo {
    process: Process,
    gateway: SocketAddr,
    rest: SocketAddr,
    folder: tempfile::TempDir,
}

impl Demo {
    fn start() -> Demo {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ports: Vec<u16> = (0..4).map(|_| ports::free()).collect();
        let mut arguments: Vec<String> = ["--port", "--admin-port", "--xds-port", "--backend-port"]
            .iter()
            .zip(&ports)
            .flat_map(|(name, port)| [(*name).to_owned(), port.to_string()])
            .collect();
        let data = folder.path().join("demo");
        arguments.extend(["--dir".to_owned(), data.to_str().expect("test paths are text").to_owned()]);
        let program = Path::new(env!("CARGO_BIN_EXE_palisade-demo"));
        let process = Process::start("palisade-demo", program, &arguments, &folder.path().join("demo.log"));
        let process = process.unwrap_or_else(|error| panic!("{error}"));
        let loopback = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        Demo { process, gateway: loopback(ports[0]), rest: loopback(ports[1]), folder }
    }

    fn send(&self, from: Option<&str>, agent: &str, path: &str) -> Option<Response> {
        let request = Request::get(path).header("user-agent", agent);
        match from {
            Some(from) => request.header("x-forwarded-for", from),
            None => request,
        }
        .send(self.gateway)
        .ok()
    }

    #[track_caller]
    fn until(&self, what: &str, from: &str, agent: &str, status: u16) {
        let mut last = 0;
        let found = wait_for(what, PATIENCE, || {
            last = self.send(Some(from), agent, "/").map_or(0, |answer| answer.status);
            (last == status).then_some(())
        });
        found.unwrap_or_else(|why| panic!("{why}; the last status was {last}\n{}", self.process.log_tail(60)));
    }

    fn incidents(&self) -> Vec<Value> {
        let key = std::fs::read(self.folder.path().join("demo/admin-key.json")).expect("the admin key");
        let key: Value = serde_json::from_slice(&key).expect("the admin key is JSON");
        let credentials = format!("{}:{}", key["id"].as_str().unwrap(), key["secret"].as_str().unwrap());
        let answer = Request::get("/api/extensions/svc/waf/api/_incidents")
            .header("authorization", format!("Basic {}", STANDARD.encode(credentials)))
            .send(self.rest)
            .expect("the incidents");
        answer.json()["incidents"].as_array().cloned().unwrap_or_default()
    }
}

#[test]
fn the_demo_shows_the_waf_a_decoy_the_reputation_and_bots() {
    let mut demo = Demo::start();
    let page = wait_for("the demo serves", PATIENCE, || {
        if let Some(status) = demo.process.ended() {
            panic!("the demo ended ({status})\n{}", demo.process.log_tail(60));
        }
        demo.send(None, "curl/8.5.0", "/search?q=garden+chairs").filter(|answer| answer.status == 200)
    });
    let page = page.unwrap_or_else(|why| panic!("{why}\n{}", demo.process.log_tail(60)));
    assert!(page.text().contains("Demo shop"), "{}", page.text());
    let attack = "/search?q=1'+UNION+SELECT+password+FROM+users--+-";
    assert_eq!(demo.send(None, "curl/8.5.0", attack).map(|answer| answer.status), Some(403));
    assert_eq!(demo.send(None, "curl/8.5.0", "/.env").map(|answer| answer.status), Some(403));

    demo.until("the threat feed", "203.0.113.7", "curl/8.5.0", 403);
    demo.until("the decision service", "198.51.100.23", "curl/8.5.0", 403);
    demo.until("the impersonator", "203.0.113.50", GOOGLE, 403);
    for (from, agent) in [("203.0.113.50", "curl/8.5.0"), ("66.249.66.1", GOOGLE), ("198.51.100.24", "curl/8.5.0")] {
        assert_eq!(demo.send(Some(from), agent, "/").map(|answer| answer.status), Some(200), "{from} {agent}");
    }
    let tag = |incident: &Value, tag: &str| incident["tags"].as_array().is_some_and(|tags| tags.contains(&json!(tag)));
    for (caller, wanted) in
        [("203.0.113.7", "feed:demo"), ("198.51.100.23", "crowd"), ("203.0.113.50", "bot:impersonator:googlebot")]
    {
        let found = wait_for(wanted, PATIENCE, || {
            demo.incidents().into_iter().find(|incident| incident["ref"]["value"] == caller && tag(incident, wanted))
        });
        found.unwrap_or_else(|why| panic!("{why}: {:?}\n{}", demo.incidents(), demo.process.log_tail(60)));
    }
    let ended = demo.process.terminate(Duration::from_secs(30));
    assert!(ended.as_ref().is_ok_and(std::process::ExitStatus::success), "{ended:?}\n{}", demo.process.log_tail(20));
}
