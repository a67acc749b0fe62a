//! The attacks: YAML files, one family each, in the format that `README.md` describes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::template::{Variables, evaluate};
use crate::wire::{Sending, Slow, h2};

/// The files that are built in.
const FILES: &[(&str, &str)] = &[
    ("encodings.yaml", include_str!("../cases/encodings.yaml")),
    ("separators.yaml", include_str!("../cases/separators.yaml")),
    ("limits.yaml", include_str!("../cases/limits.yaml")),
    ("content-types.yaml", include_str!("../cases/content-types.yaml")),
    ("lenient.yaml", include_str!("../cases/lenient.yaml")),
    ("multipart.yaml", include_str!("../cases/multipart.yaml")),
    ("json.yaml", include_str!("../cases/json.yaml")),
    ("xml.yaml", include_str!("../cases/xml.yaml")),
    ("content-encoding.yaml", include_str!("../cases/content-encoding.yaml")),
    ("http2.yaml", include_str!("../cases/http2.yaml")),
    ("smuggling.yaml", include_str!("../cases/smuggling.yaml")),
    ("paths.yaml", include_str!("../cases/paths.yaml")),
    ("controls.yaml", include_str!("../cases/controls.yaml")),
    ("stalls.yaml", include_str!("../cases/stalls.yaml")),
];

/// What a file's cases are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An attack in disguise: it must not reach the backend.
    Evasion,
    /// Costly requests: a clean client beside them must not notice.
    Stall,
    /// Harmless requests, near the limits or alike to attacks: they must be answered with 200.
    Control,
}

/// What must happen to a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    /// A status of 400 or more, or the end of the connection.
    Refused,
    /// 200.
    Allowed,
    /// Refused, or answered without the text of `absent`: what is dangerous has been taken out.
    Harmless,
    /// Whatever, as long as a clean client beside it does not notice.
    Survived,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    family: String,
    kind: Kind,
    #[serde(default)]
    payloads: BTreeMap<String, String>,
    cases: Vec<Text>,
}

/// A case as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    id: String,
    shows: String,
    expect: Option<Expect>,
    why: Option<String>,
    absent: Option<String>,
    #[serde(default)]
    each: BTreeMap<String, Vec<Scalar>>,
    host: Option<String>,
    needs: Option<Needs>,
    request: Option<RequestText>,
    raw: Option<String>,
    h2: Option<H2Text>,
    #[serde(default)]
    harmless_answers: usize,
    wait_millis: Option<u64>,
    #[serde(default)]
    heavy: bool,
    connections: Option<usize>,
    rounds: Option<usize>,
    slow: Option<SlowText>,
}

/// What a case needs of the gateway beyond a WAF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Needs {
    /// The host `scoped.adversary.test`, where the WAF leaves out what begins with `/public/`, and a backend that answers every
    /// path.
    Scoped,
    /// The host `compressed.adversary.test`, whose policy allows a Content-Encoding of requests.
    Compressed,
    /// The host `prefix.adversary.test`, where 64 KiB of a body are parsed and the rest is scanned.
    Prefix,
    /// The host `untyped.adversary.test`, whose policy allows types of bodies that no parser reads.
    Untyped,
    /// A backend that shows in its answer to `/echo` what has reached it.
    Echo,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Number(u64),
    Text(String),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestText {
    method: Option<String>,
    target: Option<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// The content type, for short.
    r#type: Option<String>,
    body: Option<String>,
    /// The body goes out in chunks of so many bytes.
    chunked: Option<usize>,
    /// Only the headers that are given, and the host.
    #[serde(default)]
    bare: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct H2Text {
    method: Option<String>,
    path: Option<String>,
    /// All fields, in the place of the usual pseudo-headers and the browser's.
    fields: Option<Vec<(String, String)>>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Option<String>,
    #[serde(default)]
    trailers: Vec<(String, String)>,
    #[serde(default)]
    split: usize,
    repeat: Option<usize>,
    #[serde(default)]
    reset: bool,
    #[serde(default)]
    unfinished: bool,
    raw: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlowText {
    piece: usize,
    pause_millis: u64,
    most_millis: u64,
}

/// One attack, or one harmless request.
#[derive(Debug, Clone)]
pub struct Case {
    /// Unique over all files: letters, digits, hyphens.
    pub id: String,
    /// The family of its file.
    pub family: String,
    /// What its file holds.
    pub kind: Kind,
    /// What it shows, in a sentence.
    pub shows: String,
    /// What must happen.
    pub expect: Expect,
    /// Why it is expected, for what is allowed.
    pub why: Option<String>,
    /// The text that must not be in the answer, for [`Expect::Harmless`].
    pub absent: Option<String>,
    /// What it needs of the gateway.
    pub needs: Option<Needs>,
    /// The host, if it has to be a certain one.
    pub host: Option<String>,
    /// So many good answers are harmless: those to good requests in front of the attack.
    pub harmless_answers: usize,
    /// How long the first answer is waited for, if not as long as usual.
    pub wait: Option<Duration>,
    /// It takes seconds or megabytes.
    pub heavy: bool,
    /// A stall is sent on so many connections at once.
    pub connections: usize,
    /// And so often on each.
    pub rounds: usize,
    text: Text,
    variables: Variables,
}

/// Names with their values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A request of HTTP as an engine is given it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Vec<u8>,
    /// Path and query.
    pub target: Vec<u8>,
    /// Headers, names as written.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

/// Reads the files that are built in, or those of a folder.
///
/// # Errors
///
/// A file that cannot be read or is wrong, with its name.
pub fn all(folder: Option<&Path>) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    match folder {
        None => {
            for (name, text) in FILES {
                cases.extend(read(text).map_err(|why| format!("{name}: {why}"))?);
            }
        }
        Some(folder) => {
            let listed = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            let mut paths: Vec<_> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
            paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
            paths.sort();
            for path in paths {
                let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                cases.extend(read(&text).map_err(|why| format!("{}: {why}", path.display()))?);
            }
        }
    }
    let mut ids = BTreeSet::new();
    match cases.iter().find(|case| !ids.insert(&case.id)) {
        Some(twice) => Err(format!("two cases are named {}", twice.id)),
        None => Ok(cases),
    }
}

/// Reads a file.
///
/// # Errors
///
/// What is wrong with it.
pub fn read(text: &str) -> Result<Vec<Case>, String> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let payloads = payloads(&file.payloads)?;
    let mut cases = Vec::new();
    for text in &file.cases {
        let mut variants = vec![(text.id.clone(), payloads.clone())];
        for (name, values) in &text.each {
            variants = variants
                .iter()
                .flat_map(|so_far| {
                    values.iter().enumerate().map(move |(place, value)| variant(so_far, name, place, value))
                })
                .collect::<Result<_, String>>()
                .map_err(|why| format!("{}: {why}", text.id))?;
        }
        for (id, variables) in variants {
            cases.push(case(&file, text, id, variables).map_err(|why| format!("{}: {why}", text.id))?);
        }
    }
    Ok(cases)
}

/// The payloads of a file: one may use others, wherever they stand.
fn payloads(texts: &BTreeMap<String, String>) -> Result<Variables, String> {
    let mut values = Variables::new();
    loop {
        let mut last = None;
        let before = values.len();
        for (name, text) in texts.iter().filter(|(name, _)| !values.contains_key(*name)).collect::<Vec<_>>() {
            match evaluate(text, &values) {
                Ok(value) => _ = values.insert(name.clone(), value),
                Err(why) => last = Some(format!("payload {name}: {why}")),
            }
        }
        match last {
            None => return Ok(values),
            Some(why) if values.len() == before => return Err(why),
            Some(_) => {}
        }
    }
}

/// A case with one more variable: a number, the payload of that name, or a text. What is no short word is named `vN` by its
/// place in the list, from 1.
fn variant(
    (id, variables): &(String, Variables),
    name: &str,
    place: usize,
    value: &Scalar,
) -> Result<(String, Variables), String> {
    let (label, value) = match value {
        Scalar::Number(number) => (number.to_string(), number.to_string().into_bytes()),
        Scalar::Text(text) => {
            let value = variables.get(text).cloned().map_or_else(|| evaluate(text, variables), Ok)?;
            let word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
            let word = word && text.bytes().any(|byte| byte.is_ascii_alphanumeric());
            (if word { text.clone() } else { format!("v{}", place + 1) }, value)
        }
    };
    let mut variables = variables.clone();
    variables.insert(name.to_owned(), value);
    Ok((format!("{id}-{label}"), variables))
}

fn case(file: &File, text: &Text, id: String, variables: Variables) -> Result<Case, String> {
    if [text.request.is_some(), text.raw.is_some(), text.h2.is_some()].iter().filter(|given| **given).count() != 1 {
        return Err("wants one of request, raw and h2".to_owned());
    }
    let expect = text.expect.unwrap_or(match file.kind {
        Kind::Evasion => Expect::Refused,
        Kind::Stall => Expect::Survived,
        Kind::Control => Expect::Allowed,
    });
    if expect == Expect::Allowed && text.why.is_none() {
        return Err("what is allowed wants a reason (why)".to_owned());
    }
    if (expect == Expect::Harmless) != text.absent.is_some() {
        return Err("absent and harmless belong together".to_owned());
    }
    let absent = text.absent.as_deref().map(|absent| evaluate(absent, &variables)).transpose()?;
    Ok(Case {
        id,
        family: file.family.clone(),
        kind: file.kind,
        shows: text.shows.clone(),
        expect,
        why: text.why.clone(),
        absent: absent.map(|absent| String::from_utf8_lossy(&absent).into_owned()),
        needs: text.needs,
        host: text.host.clone(),
        harmless_answers: text.harmless_answers,
        wait: text.wait_millis.map(Duration::from_millis),
        heavy: text.heavy,
        connections: text.connections.unwrap_or(1),
        rounds: text.rounds.unwrap_or(1),
        text: text.clone(),
        variables,
    })
}

const BROWSER: &[(&str, &str)] = &[
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("accept", "text/html,application/json;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-GB,en;q=0.5"),
];

// === impl Case ===

impl Case {
    /// What is sent for it, to a host.
    ///
    /// # Errors
    ///
    /// What is wrong with a text.
    pub fn sending(&self, host: &str) -> Result<Sending, String> {
        let host = self.host.as_deref().unwrap_or(host);
        let mut variables = self.variables.clone();
        variables.insert("host".to_owned(), host.as_bytes().to_vec());
        if let Some(plan) = &self.text.h2 {
            return h2_plan(plan, host, &variables).map(Sending::H2);
        }
        let bytes = match (&self.text.raw, self.request(host)?) {
            (Some(raw), _) => evaluate(raw, &variables)?,
            (None, Some(request)) => encode(&request, self.text.request.as_ref().and_then(|text| text.chunked)),
            (None, None) => Vec::new(),
        };
        let slow = self.text.slow.map(|slow| Slow {
            piece: slow.piece,
            pause: Duration::from_millis(slow.pause_millis),
            most: Duration::from_millis(slow.most_millis),
        });
        Ok(Sending::Http1 { bytes, slow })
    }

    /// The request, for those that are one: what libmodsecurity can be given.
    ///
    /// # Errors
    ///
    /// What is wrong with a text.
    pub fn request(&self, host: &str) -> Result<Option<Request>, String> {
        let Some(text) = &self.text.request else {
            return Ok(None);
        };
        let of = |text: &str| evaluate(text, &self.variables);
        let mut headers = Vec::new();
        let mut given = Pairs::new();
        for (name, value) in &text.headers {
            given.push((of(name)?, of(value)?));
        }
        if let Some(value) = &text.r#type {
            given.push((b"content-type".to_vec(), of(value)?));
        }
        let has = |name: &str| given.iter().any(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
        if !has("host") {
            let host = self.host.as_deref().unwrap_or(host);
            headers.push((b"host".to_vec(), host.as_bytes().to_vec()));
        }
        let usual = if text.bare { &[] } else { BROWSER };
        for (name, value) in usual.iter().filter(|(name, _)| !has(name)) {
            headers.push((name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        }
        headers.extend(given);
        let body = text.body.as_deref().map(of).transpose()?;
        let method = match &text.method {
            Some(method) => of(method)?,
            None => {
                if body.is_some() {
                    b"POST".to_vec()
                } else {
                    b"GET".to_vec()
                }
            }
        };
        let target = text.target.as_deref().map_or_else(|| Ok(b"/echo".to_vec()), of)?;
        Ok(Some(Request { method, target, headers, body }))
    }
}

fn h2_plan(text: &H2Text, host: &str, variables: &Variables) -> Result<h2::Plan, String> {
    let of = |text: &str| evaluate(text, variables);
    let pairs = |texts: &[(String, String)]| -> Result<Pairs, String> {
        texts.iter().map(|(name, value)| Ok((of(name)?, of(value)?))).collect()
    };
    let body = text.body.as_deref().map(of).transpose()?;
    let fields = match &text.fields {
        Some(fields) => pairs(fields)?,
        None => {
            let method = text.method.as_deref().unwrap_or(if body.is_some() { "POST" } else { "GET" });
            let mut fields = vec![
                (b":method".to_vec(), of(method)?),
                (b":scheme".to_vec(), b"http".to_vec()),
                (b":authority".to_vec(), host.as_bytes().to_vec()),
                (b":path".to_vec(), of(text.path.as_deref().unwrap_or("/echo"))?),
            ];
            fields.extend(BROWSER.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())));
            fields.extend(pairs(&text.headers)?);
            fields
        }
    };
    Ok(h2::Plan {
        fields,
        body,
        trailers: pairs(&text.trailers)?,
        split: text.split,
        repeat: text.repeat.unwrap_or(1),
        reset: text.reset,
        unfinished: text.unfinished,
        raw: text.raw.as_deref().map(of).transpose()?.unwrap_or_default(),
    })
}

/// A request on the wire of HTTP/1.1, with a content length unless it has one or is chunked.
fn encode(request: &Request, chunked: Option<usize>) -> Vec<u8> {
    let mut out = [&request.method[..], b" ", &request.target, b" HTTP/1.1\r\n"].concat();
    for (name, value) in &request.headers {
        out.extend_from_slice(&[&name[..], b": ", value, b"\r\n"].concat());
    }
    let has = |wanted: &[u8]| request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let Some(body) = &request.body else {
        out.extend_from_slice(b"\r\n");
        return out;
    };
    match chunked {
        Some(size) => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
            for chunk in body.chunks(size.max(1)) {
                out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                out.extend_from_slice(chunk);
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(b"0\r\n\r\n");
        }
        None => {
            if !has(b"content-length") && !has(b"transfer-encoding") {
                out.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
            }
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(body);
        }
    }
    out
}
