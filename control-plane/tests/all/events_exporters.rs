//! Exporters of a control plane as a process: what they do must not hold up anything else, and shows in its status.

use std::process::{Command, Stdio};

use crate::cli_support::{Server, palisade, request, text};
use serde_json::Value;

const BASE: &str = "/apis/palisade.svc/v1/waf-rulesets";

/// Makes so many events.
fn change(server: &Server, times: usize) {
    for time in 0..times {
        let name = "n".repeat(200);
        let body = format!(r#"{{"id": "r{time}", "name": "{name}"}}"#);
        assert_eq!(request(&server.rest, &server.authorization, "POST", BASE, &body).unwrap().0, 201);
    }
}

fn exporters(server: &Server) -> Vec<Value> {
    let path = "/api/extensions/svc/waf/api/_nodes";
    let (status, body) = request(&server.rest, &server.authorization, "GET", path, "").unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str::<Value>(&body).unwrap()["exporters"].as_array().unwrap().clone()
}

/// The status of an exporter once it is as `wanted`.
fn exporter(server: &Server, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    // The bound only keeps a failure from hanging the test.
    for _ in 0..3000 {
        let all = exporters(server);
        let found = all.iter().find(|exporter| exporter["name"].as_str().unwrap().starts_with(name)).unwrap();
        if wanted(found) {
            return found.clone();
        }
        #[allow(clippy::disallowed_methods, reason = "a process is waited for, in no filter")]
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    unreachable!("{:?}", exporters(server))
}

fn ends(mut server: Server) {
    server.signal("TERM");
    assert!(server.child.wait().unwrap().success(), "{}", std::fs::read_to_string(&server.log).unwrap());
}

#[test]
fn standard_output_that_nobody_reads_holds_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_as(&folder.path().join("data"), |mut command| {
        // A pipe takes 64 KiB, then nothing more.
        command.arg("--events-stdout").stdout(Stdio::piped());
        command
    });
    change(&server, 300);
    exporter(&server, "file:", |exporter| exporter["written"] == 300);
    let stuck = exporter(&server, "stdout", |_| true);
    assert!(stuck["waiting"].as_u64().unwrap() > 0, "{stuck}");
    ends(server);
}

#[test]
fn standard_output_that_is_closed_fails_visibly() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_as(&folder.path().join("data"), |mut command| {
        command.arg("--events-stdout").stdout(Stdio::piped());
        command
    });
    drop(server.child.stdout.take());
    change(&server, 1);
    let failing = exporter(&server, "stdout", |exporter| exporter["retries"] != 0);
    assert!(failing["error"].as_str().unwrap().contains("Broken pipe"), "{failing}");
    // The change, and that the other exporter fails.
    exporter(&server, "file:", |exporter| exporter["written"] == 2);
    let events = std::fs::read_to_string(&server.events).unwrap();
    let told: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!((&told["@type"], &told["event"]["category"]), (&"SvcSecurityEvent".into(), &"dependency".into()));
    assert!(told["message"].as_str().unwrap().starts_with("the exporter stdout fails: Broken pipe"), "{told}");
    ends(server);
}

#[test]
fn a_webhook_that_refuses_connections_is_told_without_its_secrets() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{address}/hooks/s3cret?key=s3cret");
    let server = Server::start_as(&folder.path().join("data"), |mut command| {
        command.args(["--events-webhook", &url]);
        command
    });
    change(&server, 1);
    let failing = exporter(&server, "webhook:", |exporter| exporter["retries"] != 0);
    assert_eq!(failing["name"], format!("webhook:http://{address}"));
    exporter(&server, "file:", |exporter| exporter["written"] == 2);
    let (events, log) = (server.events.clone(), server.log.clone());
    ends(server);
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("could not be exported in time and are lost"), "{log}");
    assert!(!format!("{}{log}", std::fs::read_to_string(events).unwrap()).contains("s3cret"));
}

#[test]
fn a_file_is_rotated_and_keeps_every_event() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_as(&folder.path().join("data"), |mut command| {
        command.args(["--events-file-max-mib", "1", "--events-file-keep", "2"]);
        command
    });
    // What an earlier process has left: nearly a MiB, and a half line at its end.
    std::fs::write(&server.events, format!("{}\n{{\"ha", "x".repeat((1 << 20) - 1000))).unwrap();
    change(&server, 3);
    exporter(&server, "file:", |exporter| exporter["written"] == 3);
    let first = std::fs::read_to_string(server.events.with_extension("events.1")).unwrap();
    let second = std::fs::read_to_string(&server.events).unwrap();
    assert!(first.len() <= 1 << 20 && first.ends_with('\n'), "{}", first.len());
    let events = first.lines().chain(second.lines()).filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let told: Vec<_> = events.map(|event| event["ref"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told, ["waf-rulesets/r0", "waf-rulesets/r1", "waf-rulesets/r2"]);
    ends(server);
}

#[test]
fn a_full_disk_tears_no_line_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_as(&folder.path().join("data"), |command| {
        // No file may grow beyond 1 MiB, and what would is an error instead of a signal.
        let limited = "ulimit -f $((1048576 / UNIT)); trap '' XFSZ; exec \"$0\" \"$@\"";
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(limited.replace("UNIT", if is_bash() { "1024" } else { "512" }));
        shell.arg(command.get_program()).args(command.get_args()).env_clear().stdin(Stdio::null());
        shell
    });
    // There is room for one event, and for a part of another.
    let old = format!("{}\n", "x".repeat((1 << 20) - 600));
    std::fs::write(&server.events, &old).unwrap();
    change(&server, 3);
    let failing = exporter(&server, "file:", |exporter| exporter["retries"] != 0);
    assert_eq!((&failing["written"], &failing["waiting"], &failing["dropped"]), (&1.into(), &2.into(), &0.into()));
    assert!(failing["error"].as_str().unwrap().contains("File too large"), "{failing}");
    let text = std::fs::read_to_string(&server.events).unwrap();
    assert!(text.ends_with("}\n") && text.lines().count() == 2, "{}", text.trim_start_matches('x'));
    // Room is made as logrotate does that copies and cuts.
    std::fs::File::options().write(true).open(&server.events).unwrap().set_len(0).unwrap();
    exporter(&server, "file:", |exporter| exporter["written"] == 3);
    let left = std::fs::read_to_string(&server.events).unwrap();
    let told = text.lines().skip(1).chain(left.lines()).map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<_> = told.map(|event| event["ref"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told, ["waf-rulesets/r0", "waf-rulesets/r1", "waf-rulesets/r2"]);
    ends(server);
}

/// Whether `sh` is bash, which counts in other blocks.
fn is_bash() -> bool {
    let version = Command::new("sh").args(["-c", "echo $BASH_VERSION"]).output().unwrap();
    !text(&version.stdout).trim().is_empty()
}

#[test]
fn every_exporter_writes_the_format_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_as(&folder.path().join("data"), |mut command| {
        command.args(["--events-format", "ocsf"]);
        command
    });
    change(&server, 1);
    exporter(&server, "file:", |exporter| exporter["written"] == 1);
    let written = std::fs::read_to_string(&server.events).unwrap();
    let event: Value = serde_json::from_str(written.trim_end()).unwrap();
    assert_eq!((&event["type_uid"], &event["entity"]["uid"]), (&300_401.into(), &"waf-rulesets/r0".into()), "{event}");
    ends(server);
    let template = palisade(&["events-template", "--format", "ocsf"]).output().unwrap();
    assert!(text(&template.stdout).contains("logs-palisade.ocsf-*"));
}

#[test]
fn an_otlp_server_that_cannot_work_stops_the_start() {
    let data = tempfile::tempdir().unwrap();
    let mut command = palisade(&["serve", "--events-otlp", "http://127.0.0.1:9/v1/logs", "--listen", "127.0.0.1:0"]);
    let output = command.arg("--data").arg(data.path().join("data")).output().unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("without /v1/logs"), "{said}");
}

#[test]
fn a_webhook_that_cannot_work_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let headers = folder.path().join("headers");
    std::fs::write(&headers, "Bearer s3cret").unwrap();
    let start = |url: &str| {
        let mut command = palisade(&["serve", "--events-webhook", url, "--listen", "127.0.0.1:0"]);
        let output =
            command.arg("--data").arg(&data).arg("--events-webhook-headers-file").arg(&headers).output().unwrap();
        assert!(!output.status.success());
        text(&output.stderr)
    };
    let said = start("http://127.0.0.1:9/");
    assert!(said.contains("headers, line 1: `Name: value` is expected") && !said.contains("s3cret"), "{said}");
    let said = start("http://me:s3cret@127.0.0.1:9/");
    assert!(said.contains("it holds a user or a password"), "{said}");
    assert!(!data.exists(), "nothing was begun");
}

#[test]
fn events_on_disk_are_exported_after_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (data, port) = (folder.path().join("data"), palisade_tests::ports::free());
    let url = format!("tcp://127.0.0.1:{port}");
    let options = ["--events-spill-mib", "16", "--events-syslog", &url];
    let server = Server::start_with(&data, &options);
    change(&server, 20);
    let failing = exporter(&server, "syslog:", |exporter| exporter["retries"] != 0 && exporter["waiting"] == 20);
    assert_eq!((&failing["on_disk"], &failing["disk_error"]), (&0.into(), &Value::Null), "there is room in memory");
    ends(server);
    let spilled = data.join("events").join(format!("syslog_tcp___127.0.0.1_{port}"));
    assert!(spilled.is_dir(), "{}", spilled.display());

    // Killed before it could export anything: they are still there.
    let server = Server::start_with(&data, &options);
    exporter(&server, "syslog:", |exporter| exporter["retries"] != 0 && exporter["waiting"].as_u64() >= Some(20));
    server.signal("KILL");
    drop(server);
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let server = Server::start_with(&data, &options);
    let (mut stream, _) = listener.accept().unwrap();
    let mut received = Vec::new();
    let changes = |received: &[u8]| {
        let text = String::from_utf8_lossy(received).into_owned();
        let names: Vec<String> = text.split("waf-rulesets/").skip(1).map(|rest| rest[..3].to_owned()).collect();
        names
    };
    while changes(&received).len() < 20 {
        let mut part = [0; 4096];
        let length = std::io::Read::read(&mut stream, &mut part).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&part[..length]);
    }
    println!("{:?}", changes(&received));
    let done = exporter(&server, "syslog:", |exporter| exporter["waiting"] == 0);
    assert_eq!(done["dropped"], 0);
    ends(server);
    let left: Vec<_> = std::fs::read_dir(spilled).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
}

#[test]
fn events_are_kept_on_disk_by_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let url = format!("tcp://127.0.0.1:{}", palisade_tests::ports::free());
    let used = data.join("events").join(url.replace([':', '/'], "_").replace("tcp", "syslog_tcp"));
    std::fs::create_dir_all(&used).unwrap();
    let lock = std::fs::File::create(used.join("lock")).unwrap();
    lock.lock().unwrap();
    let address = ["serve", "--listen", "127.0.0.1:0", "--xds-listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    let out = palisade(&address).args(["--events-spill-mib", "16", "--events-syslog", &url]).output().unwrap();
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{error}");
    assert!(error.contains("another process uses it") && error.contains(used.to_str().unwrap()), "{error}");
}
