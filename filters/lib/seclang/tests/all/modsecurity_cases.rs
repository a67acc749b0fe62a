//! Runs regression cases in the format of ModSecurity v3: rules, one exchange, and the status it must end with.
//!
//! `tests/cases` holds cases of our own, which always run. The variable `PALISADE_MODSECURITY_CASES` names a folder with
//! the cases of ModSecurity itself; those that cannot pass here stand in `tests/modsecurity.ignore`, each with the reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use seclang::{Engine, InterventionKind, Program, Source, Transaction, TransactionStart};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::core_rules::Folder;

const FOLDER: &str = "PALISADE_MODSECURITY_CASES";

#[derive(Default)]
struct Case {
    disabled: bool,
    title: String,
    client: Peer,
    server: Peer,
    request: Request,
    response: Response,
    rules: Vec<String>,
    expected: Expected,
}

struct CaseVisitor;

impl<'de> Visitor<'de> for CaseVisitor {
    type Value = Case;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a case")
    }

    // By hand: some cases have a member twice, and what both say counts.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Case, A::Error> {
        let mut case = Case::default();
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "enabled" => case.disabled = map.next_value::<u8>()? == 0,
                "title" => case.title = map.next_value()?,
                "client" => case.client = map.next_value()?,
                "server" => case.server = map.next_value()?,
                "request" => case.request = map.next_value()?,
                "response" => case.response = map.next_value()?,
                "rules" => case.rules = map.next_value()?,
                "expected" => {
                    let more: Expected = map.next_value()?;
                    let expected = &mut case.expected;
                    expected.http_code = more.http_code.or(expected.http_code);
                    expected.parser_error = more.parser_error.or(expected.parser_error.take());
                    expected.redirect_url = more.redirect_url.or(expected.redirect_url.take());
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(case)
    }
}

impl<'de> Deserialize<'de> for Case {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CaseVisitor)
    }
}

#[derive(Deserialize)]
struct Peer {
    ip: String,
    port: u16,
}

impl Default for Peer {
    fn default() -> Self {
        Self { ip: "127.0.0.1".to_owned(), port: 80 }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Request {
    uri: String,
    method: String,
    http_version: Option<f32>,
    headers: Headers,
    body: Text,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Response {
    headers: Headers,
    body: Text,
    protocol: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Expected {
    http_code: Option<u16>,
    parser_error: Option<String>,
    redirect_url: Option<String>,
}

/// An object whose names may come twice, or an empty text.
#[derive(Default)]
struct Headers(Vec<(String, String)>);

/// A text, or a list of lines, each without its line feed.
#[derive(Default)]
struct Text(String);

struct HeadersVisitor;

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = Headers;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object of headers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
        let mut headers = Headers::default();
        while let Some((name, value)) = map.next_entry::<String, serde_json::Value>()? {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            headers.0.push((name, value));
        }
        Ok(headers)
    }

    fn visit_str<E>(self, _: &str) -> Result<Headers, E> {
        Ok(Headers::default())
    }
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HeadersVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Text, A::Error> {
        let mut text = Text::default();
        while let Some(piece) = list.next_element::<String>()? {
            text.0.push_str(&piece);
            text.0.push('\n');
        }
        Ok(text)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

/// What a case came to.
enum Seen {
    /// The status, and where a redirection led.
    Status(u16, Option<String>),
    /// The rules do not compile.
    Refused(String),
}

fn run(case: &Case, file: &str, folder: &Path) -> Seen {
    let mut text = case.rules.join("\n");
    text.push('\n');
    // Rules may name files beside them.
    let files = Folder(folder.to_owned());
    let mut compiled = seclang::compile(&[Source::new(file, text.as_str())], &files);
    // ModSecurity takes a chain without an end, which then never matches; here it is an error. So that the rest of such
    // a case is checked, the chain gets an end that never matches.
    if compiled.as_ref().is_err_and(|found| found.len() == 1 && found[0].message.contains("has no end")) {
        text.push_str("SecRule ARGS \"@noMatch\"\n");
        compiled = seclang::compile(&[Source::new(file, text)], &files);
    }
    let program = match compiled {
        Ok(program) => program,
        Err(diagnostics) => return Seen::Refused(diagnostics[0].to_string()),
    };
    let program = Program::decode(&program.encode()).expect("a program survives its encoding");
    let engine = match Engine::new(program) {
        Ok(engine) => Arc::new(engine),
        Err(error) => return Seen::Refused(error.to_string()),
    };
    let start = TransactionStart {
        unique_id: b"case".to_vec(),
        now_millis: 1_750_000_000_000,
        random: 7,
        client_addr: case.client.ip.clone().into_bytes(),
        client_port: case.client.port,
        server_addr: case.server.ip.clone().into_bytes(),
        server_port: case.server.port,
    };
    let request = &case.request;
    let mut transaction = Transaction::new(engine, start);
    let version = format!("HTTP/{:.1}", request.http_version.unwrap_or(1.1));
    transaction.request_line(request.method.as_bytes(), request.uri.as_bytes(), version.as_bytes());
    for (name, value) in &request.headers.0 {
        transaction.request_header(name.as_bytes(), value.as_bytes());
    }
    let mut intervention = transaction.request_headers();
    intervention = intervention.or_else(|| transaction.request_body(request.body.0.as_bytes(), true));
    if intervention.is_none() {
        let protocol = case.response.protocol.as_deref().unwrap_or("HTTP/1.1");
        transaction.response_line(200, protocol.as_bytes());
        for (name, value) in &case.response.headers.0 {
            transaction.response_header(name.as_bytes(), value.as_bytes());
        }
        intervention = transaction.response_headers();
    }
    intervention = intervention.or_else(|| transaction.response_body(case.response.body.0.as_bytes(), true));
    transaction.logging();
    match intervention {
        None => Seen::Status(200, None),
        Some(found) => {
            let url = match found.kind {
                InterventionKind::Redirect(url) => Some(String::from_utf8_lossy(&url).into_owned()),
                _ => None,
            };
            Seen::Status(found.status, url)
        }
    }
}

/// What is wrong with what was seen.
fn complaint(expected: &Expected, seen: &Seen) -> Option<String> {
    let refusal = expected.parser_error.as_deref().filter(|text| !text.is_empty());
    // A case that names no status means the one of an answer that nothing stopped.
    let wanted = expected.http_code.unwrap_or(200);
    match (refusal, seen) {
        (Some(_), Seen::Refused(_)) => None,
        (Some(error), Seen::Status(..)) => Some(format!("expected a refusal ({error}), but the rules compile")),
        (None, Seen::Refused(error)) => {
            Some(format!("expected status {wanted}, but the rules do not compile: {error}"))
        }
        (None, Seen::Status(status, _)) if *status != wanted => {
            Some(format!("expected status {wanted}, seen {status}"))
        }
        (None, Seen::Status(_, url)) => match &expected.redirect_url {
            Some(wanted) if url.as_ref() != Some(wanted) => Some(format!("expected to lead to {wanted}, seen {url:?}")),
            _ => None,
        },
    }
}

/// The reasons of the cases that are left out, by file and number (from 1).
fn ignored(text: &str) -> BTreeMap<(String, usize), String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry = |line: &str| {
        let mut words = line.splitn(3, char::is_whitespace);
        let file = words.next()?.to_owned();
        let number = words.next()?.parse().ok()?;
        let reason = words.next()?.trim().to_owned();
        Some(((file, number), reason))
    };
    lines.map(|line| entry(line).unwrap_or_else(|| panic!("not 'file number reason': {line}"))).collect()
}

struct Tally {
    run: usize,
    passed: usize,
    disabled: usize,
    left_out: usize,
}

/// Runs every case of a folder. Fails for a case that fails and is not left out, and for one that is left out and passes.
fn check(folder: &Path, ignored: &BTreeMap<(String, usize), String>) -> Tally {
    let mut tally = Tally { run: 0, passed: 0, disabled: 0, left_out: 0 };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    let mut complaints = Vec::new();
    let mut unused: Vec<&(String, usize)> = ignored.keys().collect();
    for path in &paths {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read(path).unwrap();
        let cases: Vec<Case> = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        for (case, number) in cases.iter().zip(1..) {
            let key = (file.clone(), number);
            unused.retain(|known| **known != key);
            if case.disabled {
                tally.disabled += 1;
                continue;
            }
            tally.run += 1;
            let found = complaint(&case.expected, &run(case, &file, folder));
            match (found, ignored.get(&key)) {
                (None, None) => tally.passed += 1,
                (Some(_), Some(_)) => tally.left_out += 1,
                (Some(found), None) => {
                    let rules = case.rules.join("\n    ");
                    complaints.push(format!("{file} {number} ({}): {found}\n    {rules}", case.title));
                }
                (None, Some(reason)) => {
                    complaints
                        .push(format!("{file} {number} passes: take it off the list of ignored cases ({reason})"));
                }
            }
        }
    }
    for (file, number) in unused {
        complaints.push(format!("{file} {number} is ignored, but there is no such case"));
    }
    eprintln!(
        "{}: {} cases run, {} passed, {} left out, {} disabled",
        folder.display(),
        tally.run,
        tally.passed,
        tally.left_out,
        tally.disabled
    );
    assert!(complaints.is_empty(), "{} complaints\n{}", complaints.len(), complaints.join("\n"));
    tally
}

#[test]
fn cases_of_our_own_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let tally = check(&folder, &BTreeMap::new());
    assert!(tally.passed >= 20, "only {} cases: is the folder complete?", tally.passed);
}

#[test]
fn cases_of_modsecurity_pass() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        eprintln!("{FOLDER} names no folder: the cases of ModSecurity are not at hand, and none of them ran");
        // What can be said without them: the list is well formed.
        assert!(!ignored(include_str!("../modsecurity.ignore")).is_empty());
        return;
    };
    let tally = check(Path::new(&folder), &ignored(include_str!("../modsecurity.ignore")));
    assert!(tally.passed >= 100, "only {} cases: is the folder complete?", tally.passed);
}
