//! Runs the regression suite of the OWASP Core Rule Set natively, on the engine alone.
//!
//! ```text
//! cargo run --release -p seclang --example ftw -- --crs DIR --tests DIR [--only ID] [--verbose]
//! ```
//!
//! `--crs` names a directory with `rules/` and `crs-setup.conf.example`; `--tests` one with the YAML files of the suite.
//! Stages that ask for `/reflect` describe the response in their JSON body; every other response is an empty 200.
//! The exit code is 1 if less than 97 of 100 tests pass.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::indexing_slicing, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use regex_automata::meta::Regex;
use seclang::{DataFiles, ENGINE_CONF, Engine, Program, Source, Transaction, TransactionStart};
use serde::Deserialize;
use serde_yaml_ng::Value;

/// The configuration the suite asks for.
const TEST_SETUP: &str = r#"
SecAction "id:900005,phase:1,nolog,pass,ctl:ruleEngine=DetectionOnly,ctl:ruleRemoveById=910000,\
  setvar:tx.blocking_paranoia_level=4,setvar:tx.crs_validate_utf8_encoding=1,setvar:tx.arg_name_length=100,\
  setvar:tx.arg_length=400,setvar:tx.total_arg_length=64000,setvar:tx.max_num_args=255,\
  setvar:tx.max_file_size=64100,setvar:tx.combined_file_sizes=65535"
"#;

struct Directory(PathBuf);

impl DataFiles for Directory {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(name)).ok()
    }
}

#[derive(Deserialize)]
struct File {
    rule_id: u64,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    test_id: u64,
    stages: Vec<Stage>,
}

#[derive(Deserialize)]
struct Stage {
    input: Input,
    #[serde(default)]
    output: Output,
}

#[derive(Deserialize, Default)]
struct Input {
    method: Option<String>,
    uri: Option<String>,
    version: Option<String>,
    #[serde(default)]
    headers: serde_yaml_ng::Mapping,
    data: Option<Value>,
    autocomplete_headers: Option<bool>,
    encoded_request: Option<String>,
}

#[derive(Deserialize, Default)]
struct Output {
    #[serde(default)]
    log: Log,
    status: Option<u16>,
}

#[derive(Deserialize, Default)]
struct Log {
    #[serde(default)]
    expect_ids: Vec<u64>,
    #[serde(default)]
    no_expect_ids: Vec<u64>,
    match_regex: Option<String>,
    no_match_regex: Option<String>,
}

struct Request {
    method: Vec<u8>,
    uri: Vec<u8>,
    version: Vec<u8>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
}

struct Response {
    status: u16,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
}

#[derive(Default)]
struct Options {
    crs: PathBuf,
    tests: PathBuf,
    only: Option<u64>,
    verbose: bool,
}

fn main() {
    let options = options();
    let sources = sources(&options.crs, TEST_SETUP);
    let files = Directory(options.crs.join("rules"));
    let started = Instant::now();
    let program = match seclang::compile(&sources, &files) {
        Ok(program) => program,
        Err(diagnostics) => {
            for diagnostic in &diagnostics {
                eprintln!("{diagnostic}\n");
            }
            eprintln!("{} errors", diagnostics.len());
            std::process::exit(2);
        }
    };
    let bytes = program.encode();
    println!(
        "{} rules compiled in {:?}, {} bytes encoded, {} warnings",
        program.rule_count(),
        started.elapsed(),
        bytes.len(),
        program.warnings().count()
    );
    let started = Instant::now();
    let engine = Arc::new(Engine::new(Program::decode(&bytes).unwrap()).unwrap());
    println!("decoded and built in {:?}; patterns are compiled when a value first needs them", started.elapsed());
    blocking_check(&options, &files);

    let mut paths = Vec::new();
    collect(&options.tests, &mut paths);
    paths.sort();
    let (mut ran, mut passed, mut skipped) = (0, 0, 0);
    let mut failed: BTreeMap<String, String> = BTreeMap::new();
    let mut transactions = 0u32;
    let mut spent = std::time::Duration::ZERO;
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let file: File = match serde_yaml_ng::from_str(&text) {
            Ok(file) => file,
            Err(error) => {
                failed.insert(path.display().to_string(), format!("cannot read: {error}"));
                continue;
            }
        };
        if options.only.is_some_and(|only| only != file.rule_id) {
            continue;
        }
        for test in &file.tests {
            if test.stages.iter().any(|stage| is_left_to_the_server(&stage.output)) {
                skipped += 1;
                continue;
            }
            ran += 1;
            let mut complaint = None;
            for stage in &test.stages {
                let began = Instant::now();
                let found = run(&engine, &stage.input);
                spent += began.elapsed();
                transactions += 1;
                complaint = complaint.or_else(|| judge(&stage.output.log, &found, options.verbose));
            }
            match complaint {
                None => passed += 1,
                Some(complaint) => {
                    failed.insert(format!("{}-{}", file.rule_id, test.test_id), complaint);
                }
            }
        }
    }
    for (test, complaint) in &failed {
        println!("FAIL {test}: {complaint}");
    }
    let share = 100.0 * f64::from(passed) / f64::from(ran.max(1));
    println!("ran {ran}, passed {passed} ({share:.2} %), failed {}, left to the server {skipped}", ran - passed);
    println!("{transactions} transactions, {:?} each", spent / transactions.max(1));
    if share < 97.0 {
        std::process::exit(1);
    }
}

fn options() -> Options {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
        match argument.as_str() {
            "--crs" => options.crs = value().into(),
            "--tests" => options.tests = value().into(),
            "--only" => options.only = value().parse().ok(),
            "--verbose" => options.verbose = true,
            other => panic!("unknown option {other}"),
        }
    }
    options
}

fn sources(crs: &Path, extra: &str) -> Vec<Source> {
    let read = |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let setup = ["crs-setup.conf.example", "crs-setup.conf"].map(|name| crs.join(name));
    let setup = setup.iter().find(|path| path.exists()).expect("a crs-setup.conf");
    let mut sources = vec![
        Source::new("engine.conf", ENGINE_CONF),
        Source::new("crs-setup.conf", read(setup)),
        Source::new("test-setup.conf", extra),
    ];
    let mut rules: Vec<PathBuf> =
        std::fs::read_dir(crs.join("rules")).unwrap().map(|entry| entry.unwrap().path()).collect();
    rules.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
    rules.sort();
    for path in rules {
        sources.push(Source::new(path.file_name().unwrap().to_string_lossy(), read(&path)));
    }
    sources
}

/// The suite only detects: that a blocking engine blocks, and lets through what is harmless, is checked here.
fn blocking_check(options: &Options, files: &Directory) {
    let program = seclang::compile(&sources(&options.crs, ""), files).unwrap();
    let engine = Arc::new(Engine::new(program).unwrap());
    let get = |uri: &str| {
        let mut transaction = Transaction::new(engine.clone(), start());
        transaction.request_line(b"GET", uri.as_bytes(), b"HTTP/1.1");
        for (name, value) in [
            ("Host", "shop.example"),
            ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"),
            ("Accept", "text/html"),
        ] {
            transaction.request_header(name.as_bytes(), value.as_bytes());
        }
        transaction.request_headers().or_else(|| transaction.request_body(b"", true))
    };
    let attack = get("/items?id=1%27%20UNION%20SELECT%20password%20FROM%20users--%20");
    let harmless = get("/items?id=17&colour=dark+red");
    println!(
        "blocking: attack {:?}, harmless {:?}",
        attack.as_ref().map(|found| (found.status, found.rule_id)),
        harmless
    );
    assert!(attack.is_some_and(|found| found.status == 403 && found.rule_id == 949_110));
    assert!(harmless.is_none());
    let began = Instant::now();
    for number in 0..1000 {
        assert!(get(&format!("/items?id={number}&colour=dark+red")).is_none());
    }
    println!("a harmless GET, paranoia 1, phases 1 and 2: {:?}", began.elapsed() / 1000);
}

fn start() -> TransactionStart {
    TransactionStart {
        unique_id: b"test".to_vec(),
        now_millis: 1_750_000_000_000,
        random: 7,
        client_addr: b"127.0.0.1".to_vec(),
        client_port: 40_000,
        server_addr: b"127.0.0.1".to_vec(),
        server_port: 80,
    }
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, paths),
            false if path.extension().is_some_and(|extension| extension == "yaml") => paths.push(path),
            false => {}
        }
    }
}

/// A test that only looks at the status of a malformed request says something about the server, not about the rules.
fn is_left_to_the_server(output: &Output) -> bool {
    output.status == Some(400) && output.log.expect_ids.is_empty() && output.log.match_regex.is_none()
}

/// The ids of what was logged, and the log.
struct Found {
    ids: BTreeSet<u64>,
    log: String,
}

fn run(engine: &Arc<Engine>, input: &Input) -> Found {
    let request = request(input);
    let response = response(&request);
    let mut transaction = Transaction::new(engine.clone(), start());
    transaction.request_line(&request.method, &request.uri, &request.version);
    for (name, value) in &request.headers {
        transaction.request_header(name, value);
    }
    transaction.request_headers();
    let body = if transaction.wants_request_body() { &request.body[..] } else { b"" };
    transaction.request_body(body, true);
    transaction.response_line(response.status, b"HTTP/1.1");
    for (name, value) in &response.headers {
        transaction.response_header(name, value);
    }
    transaction.response_headers();
    let body = if transaction.wants_response_body() { &response.body[..] } else { b"" };
    transaction.response_body(body, true);
    transaction.logging();
    let logged = transaction.matched_rules().iter().filter(|rule| rule.logged);
    let mut found = Found { ids: BTreeSet::new(), log: String::new() };
    for rule in logged {
        found.ids.insert(rule.rule_id);
        found.log.push_str(&format!(
            "[id \"{}\"] [msg \"{}\"] [data \"{}\"] [{}={}]\n",
            rule.rule_id,
            escaped(&rule.msg),
            escaped(&rule.logdata),
            escaped(&rule.variable),
            escaped(&rule.value),
        ));
    }
    found
}

/// The text on one line.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    for part in String::from_utf8_lossy(bytes).chars() {
        match part.is_control() {
            true => out.push_str(&format!("\\x{:02x}", u32::from(part))),
            false => out.push(part),
        }
    }
    out
}

fn judge(log: &Log, found: &Found, verbose: bool) -> Option<String> {
    let mut complaints = Vec::new();
    for id in log.expect_ids.iter().filter(|id| !found.ids.contains(id)) {
        complaints.push(format!("{id} did not match"));
    }
    for id in log.no_expect_ids.iter().filter(|id| found.ids.contains(id)) {
        complaints.push(format!("{id} matched"));
    }
    let matches = |pattern: &str| Regex::new(pattern).unwrap().is_match(&found.log);
    if let Some(pattern) = log.match_regex.as_ref().filter(|pattern| !matches(pattern)) {
        complaints.push(format!("the log lacks {pattern}"));
    }
    if let Some(pattern) = log.no_match_regex.as_ref().filter(|pattern| matches(pattern)) {
        complaints.push(format!("the log has {pattern}"));
    }
    if complaints.is_empty() {
        return None;
    }
    if verbose {
        complaints.push(format!("the log:\n{}", found.log));
    }
    Some(complaints.join("; "))
}

fn text(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        Value::Number(number) => number.to_string().into_bytes(),
        Value::Bool(value) => value.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

fn request(input: &Input) -> Request {
    if let Some(encoded) = &input.encoded_request {
        let packed: String = encoded.split_whitespace().collect();
        return parse_request(&base64::engine::general_purpose::STANDARD.decode(packed).unwrap());
    }
    let mut body = input.data.as_ref().map(text).unwrap_or_default();
    let mut headers: Vec<(Vec<u8>, Vec<u8>)> =
        input.headers.iter().map(|(name, value)| (text(name), text(value))).collect();
    let has = |headers: &[(Vec<u8>, Vec<u8>)], wanted: &str| {
        headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()))
    };
    if input.autocomplete_headers != Some(false) {
        if !body.is_empty() && !has(&headers, "Content-Type") {
            headers.push((b"Content-Type".to_vec(), b"application/x-www-form-urlencoded".to_vec()));
        }
        if !body.is_empty() && !has(&headers, "Content-Length") {
            headers.push((b"Content-Length".to_vec(), body.len().to_string().into_bytes()));
        }
        if !has(&headers, "Connection") {
            headers.push((b"Connection".to_vec(), b"close".to_vec()));
        }
    } else if !has(&headers, "Content-Length") && !has(&headers, "Transfer-Encoding") {
        // Without a length no server reads a body.
        body.clear();
    }
    Request {
        method: input.method.as_deref().unwrap_or("GET").as_bytes().to_vec(),
        uri: input.uri.as_deref().unwrap_or("/").as_bytes().to_vec(),
        version: input.version.as_deref().unwrap_or("HTTP/1.1").as_bytes().to_vec(),
        headers,
        body,
    }
}

/// A request as it is on the wire.
fn parse_request(raw: &[u8]) -> Request {
    let end = raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(raw.len());
    let mut lines = raw[..end].split(|&byte| byte == b'\n').map(|line| line.trim_ascii_end());
    let line = lines.next().unwrap_or_default();
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let mut word = || words.next().unwrap_or_default().to_vec();
    let (method, uri, version) = (word(), word(), word());
    let headers: Vec<(Vec<u8>, Vec<u8>)> = lines
        .filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            Some((line[..colon].to_vec(), line[colon + 1..].trim_ascii().to_vec()))
        })
        .collect();
    let mut body = raw.get(end + 4..).unwrap_or_default().to_vec();
    if headers.iter().any(|(name, value)| name.eq_ignore_ascii_case(b"transfer-encoding") && value == b"chunked") {
        body = dechunked(&body);
    }
    Request { method, uri, version, headers, body }
}

fn dechunked(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = body;
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        let chunk = rest.get(end + 2..).unwrap_or_default();
        out.extend_from_slice(&chunk[..size.min(chunk.len())]);
        rest = chunk.get(size + 2..).unwrap_or_default();
    }
    out
}

fn response(request: &Request) -> Response {
    let mut response = Response { status: 200, headers: Vec::new(), body: Vec::new() };
    if !request.uri.starts_with(b"/reflect") {
        return response;
    }
    let Ok(spec) = serde_json::from_slice::<serde_json::Value>(&request.body) else { return response };
    if let Some(status) = spec.get("status").and_then(serde_json::Value::as_u64) {
        response.status = u16::try_from(status).unwrap_or(200);
    }
    if let Some(headers) = spec.get("headers").and_then(serde_json::Value::as_object) {
        let headers = headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_bytes().to_vec(), value.as_str()?.as_bytes().to_vec())));
        response.headers = headers.collect();
    }
    if let Some(body) = spec.get("body").and_then(serde_json::Value::as_str) {
        response.body = body.as_bytes().to_vec();
    } else if let Some(body) = spec.get("encodedBody").and_then(serde_json::Value::as_str) {
        response.body = base64::engine::general_purpose::STANDARD.decode(body).unwrap();
    }
    if !response.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"content-type")) {
        response.headers.push((b"Content-Type".to_vec(), b"text/plain; charset=utf-8".to_vec()));
    }
    response
}
