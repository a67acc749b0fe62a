//! Large uploads through a real gateway to Debian's clamd, several at once; and what becomes of them when it is killed.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests; figures are those of real time"
)]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);
/// Uploads at once.
const AT_ONCE: usize = 8;
/// The bytes of each file: a body may have 32 MiB on its way to a scanner.
const LENGTH: usize = 20_000_000;

struct Clamd(Child);

impl Drop for Clamd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// clamd with a database of one signature; `None` where it is not on this machine.
fn clamd(folder: &Path) -> Option<(Clamd, u16)> {
    let given = std::env::var_os("PALISADE_CLAMD").map(PathBuf::from);
    let place = given.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.cache/clamd"));
    if !place.join("bin/clamd").exists() {
        eprintln!("LEFT OUT: clamd is not on this machine: run `make clamd`");
        return None;
    }
    std::fs::create_dir(folder.join("database")).unwrap();
    let hash = "44d88612fea8a8f36de82e1278abb02f:68:Eicar-Test-Signature\n";
    std::fs::write(folder.join("database/test.hdb"), hash).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let database = folder.join("database");
    let config = format!(
        "Foreground yes\nDatabaseDirectory {}\nTCPSocket {port}\nTCPAddr 127.0.0.1\nStreamMaxLength 64M\nMaxThreads 16\n",
        database.display()
    );
    std::fs::write(folder.join("clamd.conf"), config).unwrap();
    let log = std::fs::File::create(folder.join("clamd.log")).unwrap();
    let mut command = Command::new(place.join("bin/clamd"));
    command.arg("-c").arg(folder.join("clamd.conf")).env("LD_LIBRARY_PATH", place.join("lib"));
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    Some((Clamd(command.spawn().unwrap()), port))
}

/// A file that no other is: verdicts on the same content are kept.
fn upload(path: &str, number: u64, length: usize) -> Request {
    let mut content = b"a file of a test\n".to_vec();
    let mut state = number.wrapping_add(1);
    while content.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        content.extend_from_slice(format!("{state:x}\n").as_bytes());
    }
    content.truncate(length);
    let head =
        "--cut\r\ncontent-disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\ncontent-type: text/plain\r\n\r\n";
    let body = [head.as_bytes(), &content, b"\r\n--cut--\r\n"].concat();
    Request::post(path, "multipart/form-data; boundary=cut", body)
}

/// The resident memory of a process, in MiB.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The highest memory of two processes while something is done.
fn highest<T>(processes: [u32; 2], deed: impl FnOnce() -> T) -> (T, [u64; 2]) {
    let (done, most) = (AtomicBool::new(false), [AtomicU64::new(0), AtomicU64::new(0)]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                for (process, most) in processes.iter().zip(&most) {
                    most.fetch_max(resident(*process), Ordering::SeqCst);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let outcome = deed();
        done.store(true, Ordering::SeqCst);
        (outcome, [most[0].load(Ordering::SeqCst), most[1].load(Ordering::SeqCst)])
    })
}

/// The statuses of uploads at once, and how long they took.
fn at_once(gateway: &Gateway, path: &str, first: u64, length: usize) -> (Vec<u16>, Duration) {
    let requests: Vec<Request> = (0..AT_ONCE as u64).map(|number| upload(path, first + number, length)).collect();
    let began = Instant::now();
    let statuses = std::thread::scope(|scope| {
        let sent: Vec<_> = requests.iter().map(|request| scope.spawn(|| gateway.send(request).status)).collect();
        sent.into_iter().map(|sent| sent.join().unwrap()).collect()
    });
    (statuses, began.elapsed())
}

#[test]
fn large_uploads_at_once_are_scanned_and_a_scanner_that_is_killed_lets_pass_what_may() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut scanner, port)) = clamd(folder.path()) else { return };
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.create("malware-scanners", &json!({ "id": "clam", "port": port, "timeout_millis": 9000 }));
        for (id, path, action, scanner) in [
            ("app", "/", "reject", json!("clam")),
            ("open", "/open", "allow", json!("clam")),
            ("plain", "/plain", "reject", Value::Null),
        ] {
            let config = json!({ "scanner": scanner, "scan_failure_action": action, "body_limit": 32 << 20 });
            let plugins = json!([
                { "plugin": "SvcUploadGuard", "config": config },
                { "plugin": "SvcThreatResponse", "config": { "policy": "demo" } },
            ]);
            let mut route = route(id, backend, plugins);
            route["paths"] = json!([path]);
            control.create("routes", &route);
        }
    });
    gateway.until(&upload("/anything", 0, 100), 200, PATIENCE);
    let processes = [gateway.envoy.process().id(), gateway.control.process().id()];
    let before = processes.map(resident);
    let megabytes = (AT_ONCE * LENGTH) as f64 / 1e6;
    let tell = |what: &str, path: &str, first: u64| {
        let ((statuses, time), most) = highest(processes, || at_once(&gateway, path, first, LENGTH));
        let speed = megabytes / time.as_secs_f64();
        println!(
            "{what}: {AT_ONCE} x {} MB in {time:.2?}, {speed:.0} MB/s; gateway {} to {} MiB, control plane {} to {} MiB: {statuses:?}",
            LENGTH / 1_000_000,
            before[0],
            most[0],
            before[1],
            most[1]
        );
        statuses
    };
    assert_eq!(tell("inspected", "/plain/anything", 100), [200; AT_ONCE]);
    assert_eq!(tell("scanned", "/anything", 200), [200; AT_ONCE]);
    assert_eq!(tell("scanned again", "/anything", 300), [200; AT_ONCE]);

    // In the middle of scans of both routes.
    let (refused, passed) = std::thread::scope(|scope| {
        let reject = scope.spawn(|| at_once(&gateway, "/anything", 400, LENGTH).0);
        let open = scope.spawn(|| at_once(&gateway, "/open/anything", 500, LENGTH).0);
        std::thread::sleep(Duration::from_millis(700));
        scanner.0.kill().unwrap();
        (reject.join().unwrap(), open.join().unwrap())
    });
    println!("killed in the middle: reject {refused:?}, allow {passed:?}");
    assert!(refused.iter().all(|status| matches!(status, 200 | 503)) && refused.contains(&503), "{refused:?}");
    assert_eq!(passed, [200; AT_ONCE]);
    let _ = gateway.control.event("an open failure", |event| {
        event["threat"]["tags"] == json!(["upload:scan_failed"]) && event["event"]["category"] == "dependency"
    });
    assert!(gateway.envoy.vm_failures().is_empty());
}
