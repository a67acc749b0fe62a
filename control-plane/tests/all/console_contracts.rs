//! Endpoints of API contracts: a document is compiled, and one is fetched from a server, over real connections.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::cli_support::{Server, exchange, palisade, request, run_with, text};
use serde_json::{Value, json};

const SECURITY: &str = "/extensions/svc/extensions/waf/security";
const LOGIN: &str = "/extensions/svc/extensions/waf/session/_login";
const CONTRACTS: &str = "/apis/palisade.svc/v1/api-contracts";
const PASSWORD: &str = "correct horse battery";
/// What is fetched, at most, in bytes.
const MOST: usize = 5_000_000;

/// A control plane and an operator's session.
struct Console {
    server: Server,
    cookie: String,
    csrf: String,
}

impl Console {
    fn start(data: &Path, options: &[&str]) -> Console {
        let server = Server::start_with(data, options);
        let folder = data.to_str().unwrap();
        let arguments = ["operator", "add", "alice", "--email", "alice@example.com", "--data", folder];
        let added = run_with(&arguments, &format!("{PASSWORD}\n"));
        assert!(added.status.success(), "{}", text(&added.stderr));
        let login = json!({ "name": "alice", "password": PASSWORD }).to_string();
        let (status, head, body) = exchange(&server.rest, &[], "POST", LOGIN, &login).unwrap();
        assert_eq!(status, 200, "{body}");
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let csrf = serde_json::from_str::<Value>(&body).unwrap()["csrf_token"].as_str().unwrap().to_owned();
        Console { server, cookie, csrf }
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let headers = [("cookie", self.cookie.as_str()), ("x-csrf-token", self.csrf.as_str())];
        let (status, _, answer) =
            exchange(&self.server.rest, &headers, "POST", &format!("{SECURITY}/{path}"), &body.to_string()).unwrap();
        (status, serde_json::from_str(&answer).unwrap())
    }

    fn check(&self, body: &Value) -> Value {
        let (status, answer) = self.post("_contract_check", body);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Fetches a document: its text, or why there is none.
    fn fetch(&self, url: &str) -> Result<String, String> {
        let (status, answer) = self.post("_contract_fetch", &json!({ "url": url }));
        assert_eq!(status, 200, "{answer}");
        match answer["done"].as_bool() {
            Some(true) => Ok(answer["spec"].as_str().unwrap().to_owned()),
            _ => Err(answer["error"].as_str().unwrap().to_owned()),
        }
    }
}

#[test]
fn a_contract_is_checked_as_text_and_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let console = Console::start(&folder.path().join("data"), &[]);
    let spec = r##"{"openapi": "3.0.3", "servers": [{"url": "https://shop.example/api"}], "paths": {"/items/{id}": {
        "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
        "put": {"operationId": "store", "parameters": [{"name": "dry", "in": "query"}, {"name": "c", "in": "cookie"}],
          "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "https://away.example/item.json"}}}},
          "responses": {"204": {"description": "stored"}, "4XX": {"description": "not"}}}}}}"##;
    let answer = console.check(&json!({ "spec": spec }));
    assert_eq!(
        (&answer["done"], &answer["version"], &answer["base_path"]),
        (&json!(true), &json!("3.0.3"), &json!("/api"))
    );
    let operation = json!({
        "method": "PUT", "path": "/items/{id}", "operation_id": "store",
        "parameters": [{ "in": "query", "name": "dry" }, { "in": "cookie", "name": "c" }, { "in": "path", "name": "id" }],
        "body": { "required": true, "media": ["application/json"] }, "responses": ["204", "4XX"],
    });
    assert_eq!(answer["operations"], json!([operation]));
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.contains("https://away.example/item.json") && warning.contains("not fetched"), "{warning}");
    assert_eq!(console.check(&json!({ "spec": spec, "base_path": "/v2" }))["base_path"], "/v2");

    let entity = json!({ "id": "shop", "name": "Shop", "spec": spec }).to_string();
    let (status, body) =
        request(&console.server.rest, &console.server.authorization, "POST", CONTRACTS, &entity).unwrap();
    assert_eq!(status, 201, "{body}");
    assert_eq!(console.check(&json!({ "id": "shop" }))["operations"], json!([operation]));
    for (body, says) in [
        (json!({ "id": "none" }), "there is no API contract `none`"),
        (json!({}), "either `spec` or `id`"),
        (json!({ "id": "shop", "spec": spec }), "either `spec` or `id`"),
        (json!({ "spec": "swagger: '2.0'" }), "/swagger: a Swagger 2 document; convert it to OpenAPI 3.0 or 3.1 first"),
        (json!({ "spec": "openapi: 3.1.0\npaths: []" }), "/paths: an object of paths is expected"),
        (json!({ "spec": "a: *b" }), "the document is no YAML"),
        (json!({ "specification": spec }), "specification"),
    ] {
        let answer = console.check(&body);
        assert_eq!(answer["done"], false, "{answer}");
        assert!(answer["error"].as_str().unwrap().contains(says), "{says}: {answer}");
    }
}

#[test]
fn a_contract_that_is_longer_than_other_documents_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let console = Console::start(&folder.path().join("data"), &[]);
    let post = |collection: &str, document: Value| {
        let path = format!("/apis/palisade.svc/v1/{collection}");
        request(&console.server.rest, &console.server.authorization, "POST", &path, &document.to_string())
    };
    let spec =
        format!("{{\"openapi\":\"3.1.0\",\"paths\":{{\"/a\":{{\"get\":{{}}}}}},\"x\":\"{}\"}}", "a".repeat(9 << 20));
    let (status, body) = post("api-contracts", json!({ "id": "long", "name": "Long", "spec": spec })).unwrap();
    assert_eq!(status, 201, "{}", &body[..200.min(body.len())]);
    assert_eq!(console.check(&json!({ "id": "long" }))["operations"].as_array().unwrap().len(), 1);
    // The connection may end before all of the body was written, so that no answer is seen.
    let other = post("threat-policies", json!({ "id": "long", "name": "a".repeat(9 << 20) }));
    assert!(other.as_ref().map_or(true, |(status, _)| *status == 413), "{other:?}");
    let (status, body) =
        post("api-contracts", json!({ "id": "longer", "name": "Longer", "spec": "a".repeat((64 << 20) + 1) })).unwrap();
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("/spec"), "{body}");
}

/// A server on the loopback address.
fn peer() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream));
        }
    });
    format!("http://{address}")
}

/// Answers a request by its path. Who asked may have gone: what cannot be written is dropped.
fn serve(mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let accepts = lines
        .take_while(|line| !line.is_empty())
        .any(|line| line.to_lowercase().starts_with("accept: application/json"));
    let path = first.split(' ').nth(1).unwrap_or_default();
    let redirect = |to: &str| (302, format!("location: {to}\r\n"), Vec::new());
    let (status, headers, body): (u16, String, Vec<u8>) = match path {
        "/ok" if accepts => (200, String::new(), b"openapi: 3.1.0".to_vec()),
        "/moved" => redirect("/ok"),
        "/3" => redirect("/2"),
        "/2" => redirect("/1"),
        "/1" => redirect("/ok"),
        "/loop" => redirect("/loop"),
        "/private" => redirect("http://10.0.0.5/openapi.json"),
        "/metadata" => redirect("http://169.254.169.254/latest"),
        "/file" => redirect("file:///etc/passwd"),
        "/most" => (200, String::new(), vec![b'a'; MOST]),
        "/more" => (200, String::new(), vec![b'a'; MOST + 1]),
        "/latin" => (200, String::new(), b"caf\xe9".to_vec()),
        "/slow" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
            // A byte a second is no progress that counts.
            while stream.write_all(b"a").is_ok() {
                #[allow(clippy::disallowed_methods, reason = "a slow peer, in no filter")]
                std::thread::sleep(Duration::from_secs(1));
            }
            return;
        }
        "/endless" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
            let chunk = [b"10000\r\n".as_slice(), &[b'a'; 0x10000], b"\r\n"].concat();
            while stream.write_all(&chunk).is_ok() {}
            return;
        }
        _ => (404, String::new(), b"none".to_vec()),
    };
    let head =
        format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}

#[test]
fn a_document_is_fetched_within_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    let console = Console::start(&folder.path().join("data"), &["--outbound-allow", "127.0.0.0/8"]);
    let peer = peer();
    let fetch = |path: &str| console.fetch(&format!("{peer}{path}"));
    assert_eq!(fetch("/ok"), Ok("openapi: 3.1.0".to_owned()));
    assert_eq!(fetch("/moved"), Ok("openapi: 3.1.0".to_owned()));
    assert_eq!(fetch("/3"), Ok("openapi: 3.1.0".to_owned()));
    assert_eq!(fetch("/most").map(|text| text.len()), Ok(MOST));
    for (path, says) in [
        ("/more", "5000000"),
        ("/endless", "5000000"),
        ("/loop", "redirect"),
        ("/latin", "not UTF-8"),
        ("/none", "404"),
        ("/private", "10.0.0.5 is a private address"),
        ("/metadata", "169.254.169.254"),
        ("/file", "not a URL"),
    ] {
        let error = fetch(path).unwrap_err();
        assert!(error.contains(says), "{path}: {says}: {error}");
    }
    // Nothing is saved.
    let (_, list) = request(&console.server.rest, &console.server.authorization, "GET", CONTRACTS, "").unwrap();
    assert_eq!(list, "[]");
    let error = fetch("/slow").unwrap_err();
    assert!(error.contains("15") || error.contains("time"), "{error}");
}

#[test]
fn addresses_that_are_not_of_the_internet_are_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let console = Console::start(&folder.path().join("data"), &[]);
    let peer = peer();
    for (url, says) in [
        (format!("{peer}/ok"), "127.0.0.1 is a loopback address"),
        (peer.replace("127.0.0.1", "localhost"), "loopback address"),
        ("http://169.254.169.254/latest/meta-data".to_owned(), "169.254.169.254"),
        ("http://192.168.1.1/openapi.json".to_owned(), "192.168.1.1 is a private address"),
        ("http://[::1]:1/".to_owned(), "loopback"),
        ("file:///etc/passwd".to_owned(), "not a URL"),
        ("ftp://example.com/a".to_owned(), "neither https:// nor http://"),
        ("openapi.json".to_owned(), "URL"),
    ] {
        let error = console.fetch(&url).unwrap_err();
        assert!(error.to_lowercase().contains(&says.to_lowercase()), "{url}: {says}: {error}");
    }
    let (status, answer) = console.post("_contract_fetch", &json!({ "url": "a".repeat(9000) }));
    assert!(status == 413 || answer["done"] == false, "{status}: {answer}");
    let (status, answer) = console.post("_contract_fetch", &json!({}));
    assert_eq!((status, &answer["done"]), (200, &json!(false)), "{answer}");
}

#[test]
fn documents_are_checked_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let right = file("right.yaml", "openapi: 3.1.0\npaths: {/a: {get: {}, post: {}}}");
    let wrong = file("wrong.json", "{\"swagger\": \"2.0\"}");
    let warned = file(
        "warned.json",
        r#"{"openapi":"3.0.0","paths":{"/a":{"get":{"parameters":[{"name":"a","in":"query","schema":{"pattern":"(?=a)"}}]}}}}"#,
    );
    let check = |files: &[&str]| {
        let mut command = palisade(&["check", "--contract"]);
        let output = command.args(files).output().unwrap();
        let lines: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (output.status.code(), lines)
    };
    let (code, lines) = check(&[&right, &warned]);
    assert_eq!((code, lines.len()), (Some(0), 2), "{lines:?}");
    let line = &lines[0];
    assert_eq!((&line["file"], &line["ok"], &line["version"]), (&json!(right), &json!(true), &json!("3.1.0")));
    assert_eq!((&line["operations"], &line["warnings"], line["millis"].is_u64()), (&json!(2), &json!([]), true));
    assert!(lines[1]["warnings"][0].as_str().unwrap().contains("it looks ahead"), "{lines:?}");
    let missing = folder.path().join("missing.json");
    let (code, lines) = check(&[&wrong, &right, missing.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    let ok: Vec<&Value> = lines.iter().map(|line| &line["ok"]).collect();
    assert_eq!(ok, [&json!(false), &json!(true), &json!(false)]);
    assert!(lines[0]["error"].as_str().unwrap().starts_with("/swagger: "), "{lines:?}");
    assert!(lines[2]["error"].as_str().unwrap().starts_with("cannot read it"), "{lines:?}");
}
