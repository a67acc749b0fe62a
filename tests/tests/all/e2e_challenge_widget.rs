//! A vendor's widget in front of a backend: shown, passed, verified by the vendor, and worth a clearance once.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::{Request, Response};
use palisade_tests::process::{Process, wait_for};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);
/// What a match weighs, and the tier below asks for.
const SUSPECT: &str = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,pass,log,msg:'suspect'""#;
/// No submission would get past this one.
const NO_POST: &str = r#"SecRule REQUEST_METHOD "@streq POST" "id:10002,phase:1,deny,status:406""#;

/// Its script asks its own server, shows a frame, and writes the token that the frame sends to the form's field.
const SCRIPT: &str = r#"(async function () {
  var place = document.querySelector(".widget"), home = new URL(document.currentScript.src).origin;
  await fetch(home + "/settings?key=" + place.dataset.key);
  var frame = document.createElement("iframe");
  frame.title = "check";
  frame.src = home + "/frame?host=" + location.hostname;
  addEventListener("message", function (e) {
    if (e.origin !== home) return;
    var field = document.createElement("input");
    field.type = "hidden"; field.name = "w-response"; field.value = e.data;
    place.appendChild(field);
  });
  place.appendChild(frame);
})();"#;

/// A vendor: script, frame and verification. It ends with the test's process.
struct Vendor {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

/// What the frame's page gives out; every one is good once.
type Issued = Arc<Mutex<BTreeSet<String>>>;

impl Vendor {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (lines, issued) = (Arc::clone(&seen), Issued::default());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (lines, issued) = (Arc::clone(&lines), Arc::clone(&issued));
                // A browser opens connections ahead that it does not use.
                std::thread::spawn(move || serve(stream, &lines, &issued));
            }
        });
        Self { address, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it was asked for: request lines, and bodies behind them.
    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>, issued: &Issued) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).unwrap_or(0) == 0 || header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let body = String::from_utf8_lossy(&body).into_owned();
    seen.lock().unwrap().push(format!("{} {body}", line.trim()));
    let (kind, body) = match line.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default() {
        "/api.js" => ("text/javascript", SCRIPT.to_owned()),
        "/settings" => ("application/json", "{}".to_owned()),
        "/frame" => {
            let mut issued = issued.lock().unwrap();
            let token = format!("0.frame-{}", issued.len());
            issued.insert(token.clone());
            ("text/html", format!("<script>parent.postMessage('{token}', '*')</script>"))
        }
        "/siteverify" => {
            let token = body.split('&').find_map(|pair| pair.strip_prefix("response=")).unwrap_or_default();
            // The browser's own; and those of programs, which ask for the host of the request.
            let host = match token.split('-').next() {
                Some("0.frame") if issued.lock().unwrap().contains(token) => "127.0.0.1",
                Some("good") => "demo.test",
                Some("elsewhere") => "other.test",
                _ => "",
            };
            let secret = body.contains("secret=hunter2") && body.contains("remoteip=127.0.0.1");
            ("application/json", json!({"success": !host.is_empty() && secret, "hostname": host}).to_string())
        }
        _ => ("text/plain", String::new()),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\naccess-control-allow-origin: *\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
}

/// A gateway that asks whoever asks for `?probe=1` for a token of this vendor.
fn gateway(vendor: &Vendor, filters: Value) -> Gateway {
    let allow = ["--outbound-allow", "127.0.0.0/8"].map(String::from);
    let mut gateway = Gateway::start_with(&allow, |control, backend| {
        control.configure(&json!({"gateway": {"filters": filters}}));
        control.create(
            "challenge-providers",
            &json!({
                "id": "widget", "kind": "vendor", "site_key": "public", "secret_key": "hunter2",
                "widget_script_url": vendor.url("/api.js"), "verify_url": vendor.url("/siteverify"),
                "widget_html": "<div class=widget data-key=\"{site_key}\"></div>", "response_field": "w-response",
                "title": "Who goes there?",
            }),
        );
        control.create("waf-configs", &waf_config("demo", json!({"rules": [SUSPECT, NO_POST]})));
        let tiers = json!([{"min_score": 20, "action": "challenge", "status": 429}]);
        let policy = threat_policy("demo", json!({"tiers": tiers, "challenge_provider": "widget"}));
        control.create("threat-policies", &policy);
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    gateway
}

fn program() -> Request {
    Request::new("GET", "/?probe=1").header("accept", "application/json").header("user-agent", "program/1")
}

fn submission(token: &str) -> Request {
    let header = json!({"token": token}).to_string();
    Request::new("POST", "/?probe=1").header("user-agent", "program/1").header("x-svc-challenge", &header).body("")
}

fn is_failed(answer: &Response) {
    assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{}", answer.text());
    assert_eq!(answer.json(), json!({"error": "challenge_failed"}));
}

fn tagged(event: &Value, outcome: &str, tag: &str) -> bool {
    event["event"]["category"] == "challenge"
        && event["event"]["outcome"] == outcome
        && event["threat"]["tags"].as_array().is_some_and(|tags| tags.iter().any(|known| known == tag))
}

#[test]
fn a_token_is_worth_a_clearance_once() {
    let vendor = Vendor::start();
    let gateway = gateway(&vendor, json!(["preset"]));
    let asked = gateway.send(&program());
    assert_eq!(asked.status, 429);
    let body = asked.json();
    assert_eq!((&body["error"], &body["kind"]), (&json!("challenge_required"), &json!("vendor")), "{body}");
    assert_eq!((&body["site_key"], &body["header"]), (&json!("public"), &json!("x-svc-challenge")));
    let german = Request::new("GET", "/?probe=1").header("accept", "text/html").header("accept-language", "de");
    let page = gateway.send(&german);
    assert!(page.text().contains("<h1>Who goes there?</h1>"), "{}", page.text());
    assert!(page.text().contains("Bitte bestehen Sie"), "{}", page.text());
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains(&format!("frame-src http://{};", vendor.address)), "{policy}");

    let earned = gateway.send(&submission("good-1"));
    assert_eq!(earned.status, 204, "{}", earned.text());
    let cookie = earned.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let statuses = gateway.statuses_of_all_workers(&program().header("cookie", &cookie));
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    for wrong in ["good-1", "bad", "elsewhere-1", &"x".repeat(5000)] {
        is_failed(&gateway.send(&submission(wrong)));
    }
    assert_eq!(gateway.status(&program()), 429, "without the cookie");
    assert_eq!(gateway.status(&Request::new("POST", "/?probe=1").body("")), 406, "the rules are still there");
    let calls: Vec<_> = vendor.seen().into_iter().filter(|line| line.contains("siteverify")).collect();
    assert_eq!(calls.len(), 4, "what is too long is not asked about: {calls:?}");
    let _passed = gateway.control.event("passed", |event| tagged(event, "observed", "challenge:passed"));
    let _failed = gateway.control.event("failed", |event| tagged(event, "blocked", "challenge:failed"));
    let told = gateway.control.events();
    assert!(!told.iter().any(|event| event["event"]["category"] == "dependency"), "{told:?}");
    assert!(!told.iter().any(|event| event.to_string().contains("hunter2")));
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

#[test]
fn nobody_is_let_in_on_the_word_of_a_vendor_that_is_down() {
    let vendor = Vendor::start();
    let mut gateway = gateway(&vendor, json!(["preset"]));
    // A port that nobody listens on.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let verify_url = format!("http://{}/siteverify", free.local_addr().unwrap());
    drop(free);
    gateway.control.patch("challenge-providers", "widget", &json!({"verify_url": verify_url}));
    is_failed(&gateway.send(&submission("good-1")));
    let of = |module: &'static str, message: &'static str| {
        gateway.control.event(message, move |event| {
            event["event"]["category"] == "dependency"
                && event["event"]["module"] == module
                && event["message"].as_str().is_some_and(|text| text.contains(message))
        })
    };
    let _of_the_node = of("threat-gate", "`widget` could not be verified");
    let _of_the_control_plane = of("challenge", "`widget` cannot be verified, so clients get no clearance by it");
    let _refused = gateway.control.event("refused", |event| tagged(event, "blocked", "challenge:failed"));

    // Nor without a control plane; and once both are back, whoever has a token passes.
    gateway.control.patch("challenge-providers", "widget", &json!({"verify_url": vendor.url("/siteverify")}));
    gateway.control.kill();
    is_failed(&gateway.send(&submission("good-1")));
    gateway.control.restart();
    wait_for("a clearance", PATIENCE, || (gateway.status(&submission("good-1")) == 204).then_some(()))
        .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

/// A real browser: `PALISADE_CHROMIUM`, or `chromium` where there is one.
fn chromium() -> Option<PathBuf> {
    let found = std::env::var_os("PALISADE_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = || std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|file| file.is_file());
    let chromium = found.or_else(installed);
    if chromium.is_none() {
        println!("there is no chromium: nothing was tested");
    }
    chromium
}

#[test]
fn a_browser_is_told_that_it_was_refused_and_can_try_again() {
    let Some(chromium) = chromium() else { return };
    let vendor = Vendor::start();
    let gateway = gateway(&vendor, json!(["preset"]));
    // The vendor does not know this key, and vouches for nothing.
    gateway.control.patch("challenge-providers", "widget", &json!({"secret_key": "another"}));
    // What the page has become once nothing more happens on it.
    let shown = || {
        let folder = tempfile::tempdir().unwrap();
        let profile = format!("--user-data-dir={}", folder.path().display());
        let url = format!("http://{}/?probe=1", gateway.address);
        let output = std::process::Command::new(&chromium)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--lang=en"])
            .args(["--virtual-time-budget=20000", "--dump-dom", &profile, &url])
            .output()
            .unwrap();
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(dom.contains("<button id=\"t\" type=\"button\">Try again</button>"), "{dom}");
        assert!(dom.contains("<form id=\"w\" aria-label=\"Check\" hidden=\"\">"), "the widget is in the way: {dom}");
        dom
    };
    let refused = shown();
    assert!(refused.contains(">The check did not succeed. Please try again.</p>"), "{refused}");
    let _refused = gateway.control.event("refused", |event| tagged(event, "blocked", "challenge:failed"));

    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!("http://{}/api.js", free.local_addr().unwrap());
    drop(free);
    gateway.control.patch("challenge-providers", "widget", &json!({"widget_script_url": script}));
    wait_for("the page with the other script", PATIENCE, || {
        gateway.send(&Request::get("/?probe=1")).text().contains(&script).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    let unavailable = shown();
    assert!(unavailable.contains(">The check could not be loaded."), "{unavailable}");
}

#[test]
fn a_browser_gets_to_the_page_behind() {
    let Some(chromium) = chromium() else { return };
    let vendor = Vendor::start();
    let gateway = gateway(&vendor, json!(["threat-gate", "waf", "threat-response"]));
    let folder = tempfile::tempdir().unwrap();
    let profile = format!("--user-data-dir={}", folder.path().display());
    let url = format!("http://{}/?probe=1", gateway.address);
    let mut arguments: Vec<String> =
        ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--enable-logging=stderr"]
            .map(String::from)
            .into();
    arguments.extend(["--remote-debugging-port=0".to_owned(), profile, url]);
    let log = folder.path().join("chromium.log");
    let mut browser = Process::start("chromium", &chromium, &arguments, &log).unwrap();
    for method in ["POST", "GET"] {
        let event = wait_for(&format!("the browser's {method}"), Duration::from_secs(60), || {
            let events = gateway.control.events();
            let passed =
                |event: &Value| event["http"]["method"] == method && tagged(event, "observed", "challenge:passed");
            events.into_iter().find(passed)
        })
        .unwrap_or_else(|why| panic!("{why}\n{:#?}\n{}", vendor.seen(), browser.log_tail(40)));
        println!("{}: {}", event["@timestamp"], event["message"]);
    }
    let said = browser.log_tail(400);
    browser.kill();
    assert!(!said.contains("Content Security Policy"), "something was kept out: {said}");
    let asked = gateway.control.events().iter().filter(|event| event["event"]["outcome"] == "blocked").count();
    assert_eq!(asked, 1, "it was asked once");
    let seen = vendor.seen();
    assert!(seen.iter().any(|line| line.starts_with("GET /settings?key=public ")), "{seen:?}");
    assert!(seen.iter().any(|line| line.starts_with("GET /frame?host=127.0.0.1 ")), "{seen:?}");
}
