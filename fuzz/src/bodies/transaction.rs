//! A whole exchange through the engine, with gates and, now and then, without: both must come to the same.
//!
//! A byte of choices, then the request as text; after the byte 0x1e the response. A line that ends in LF or CRLF is a
//! header, an empty one ends them. The rules are the core rule set at paranoia level 4 where `PALISADE_CRS_DIR` names
//! it, otherwise `fuzz/rules.conf`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use seclang::body::decode::decode;
use seclang::{BudgetLimits, ENGINE_CONF, Engine, Intervention, MatchedRule, Source, Transaction, TransactionStart};

use super::{Files, split_byte};

/// An exchange that touches every collection.
pub const SAMPLE: &[u8] =
    b"POST /a/../b.php?q=%27+or+1%3D1--&x=<script>alert(1)</script> HTTP/1.1\r\nHost: shop.example\r\n\
    Cookie: s=1; t=aaaaaaaaaaaaaaaaaaaa!\r\nUser-Agent: test\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n\
    p=../../etc/passwd&c=;cat%20x&n=12345\x1eHTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<h1>ORA-00933</h1>";

/// Rules of our own, for where there is no core rule set: one of each kind.
const RULES: &str = include_str!("../../rules.conf");

/// Makes every rule of the core rule set run.
const STRICT: &str = "SecAction \"id:1,phase:1,nolog,pass,ctl:ruleEngine=DetectionOnly,\
    setvar:tx.blocking_paranoia_level=4,setvar:tx.detection_paranoia_level=4,setvar:tx.crs_validate_utf8_encoding=1\"";

/// The rules with gates, and without.
struct Engines {
    gated: Arc<Engine>,
    plain: Arc<Engine>,
}

struct Directory(PathBuf);

impl seclang::DataFiles for Directory {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(name)).ok()
    }
}

static OWN: OnceLock<Engines> = OnceLock::new();
static CRS: OnceLock<Option<Engines>> = OnceLock::new();

/// Compiles the rules, which takes longer than a fuzzer allows an input to take.
pub fn prepare() {
    let (_, _) = (own(), CRS.get_or_init(core_rule_set));
}

fn own() -> &'static Engines {
    OWN.get_or_init(|| engines(&[Source::new("engine.conf", ENGINE_CONF), Source::new("own", RULES)], &Files))
}

pub fn run(data: &[u8]) {
    let Some((choice, exchanged)) = split_byte(data) else { return };
    let engines = match choice & 1 {
        0 => CRS.get_or_init(core_rule_set).as_ref().unwrap_or_else(own),
        _ => own(),
    };
    let gated = exchange(&engines.gated, exchanged, choice);
    // Without gates every operator runs on every value, which takes ten times as long.
    if choice & 2 != 0 {
        let plain = exchange(&engines.plain, exchanged, choice);
        assert_eq!(gated, plain, "with gates, and without");
    }
}

fn engines(sources: &[Source], files: &dyn seclang::DataFiles) -> Engines {
    let program = seclang::compile(sources, files).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let gated = Arc::new(Engine::new(program.clone()).expect("built"));
    let plain = Arc::new(Engine::without_prefilter(program).expect("built"));
    Engines { gated, plain }
}

fn core_rule_set() -> Option<Engines> {
    let folder = PathBuf::from(std::env::var_os("PALISADE_CRS_DIR")?);
    let read = |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut rules: Vec<PathBuf> =
        std::fs::read_dir(folder.join("rules")).ok()?.flatten().map(|entry| entry.path()).collect();
    rules.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
    rules.sort();
    let mut sources = vec![
        Source::new("engine.conf", ENGINE_CONF),
        Source::new("crs-setup.conf", read(&folder.join("crs-setup.conf.example"))),
        Source::new("strict.conf", STRICT),
    ];
    sources.extend(rules.iter().map(|path| Source::new(name(path), read(path))));
    Some(engines(&sources, &Directory(folder.join("rules"))))
}

/// How an exchange ended.
pub type Outcome = (Vec<MatchedRule>, Vec<Option<Intervention>>, Option<Intervention>);

/// Takes one exchange through the five phases. The choice says what becomes of the bodies.
pub fn exchange(engine: &Arc<Engine>, exchanged: &[u8], choice: u8) -> Outcome {
    let start = TransactionStart { client_addr: b"192.0.2.7".to_vec(), now_millis: 1, ..TransactionStart::default() };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    if choice & 2 != 0 {
        // What both come to does not depend on what it costs, which is much more without gates.
        transaction.set_budget(BudgetLimits::NONE);
    }
    let (request, response) = super::split_at(exchanged, 0x1e);
    let message = Message::of(request);
    let mut words = message.first.splitn(3, |&byte| byte == b' ');
    let mut word = || words.next().unwrap_or_default();
    transaction.request_line(word(), word(), word());
    let mut encoding = &b""[..];
    for (name, value) in &message.headers {
        transaction.request_header(name, value);
        if name.eq_ignore_ascii_case(b"content-encoding") {
            encoding = value;
        }
    }
    let mut interventions = vec![transaction.request_headers()];
    let decoded = decode(encoding, message.body, 1 << 20, 100).ok();
    let (body, complete) = shaped(decoded.as_deref().unwrap_or(message.body), choice);
    let wanted = transaction.wants_request_body();
    interventions.push(transaction.request_body(if wanted { &body } else { &[] }, complete));

    let message = Message::of(response);
    let status = message.first.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    let status = std::str::from_utf8(status).ok().and_then(|status| status.parse().ok()).unwrap_or(200);
    transaction.response_line(status, b"HTTP/1.1");
    for (name, value) in &message.headers {
        transaction.response_header(name, value);
    }
    interventions.push(transaction.response_headers());
    let (body, complete) = shaped(message.body, choice);
    let wanted = transaction.wants_response_body();
    interventions.push(transaction.response_body(if wanted { &body } else { &[] }, complete));
    transaction.logging();
    (transaction.matched_rules().to_vec(), interventions, transaction.would_block().cloned())
}

/// A body that ends before its end, or one that goes on and on, if the choice says so; and whether it is complete.
fn shaped(body: &[u8], choice: u8) -> (Cow<'_, [u8]>, bool) {
    match choice & 12 {
        4 | 12 => (Cow::Borrowed(&body[..body.len() * usize::from(choice >> 3) / 32]), false),
        8 => (Cow::Owned(super::repeated(body)), true),
        _ => (Cow::Borrowed(body), true),
    }
}

/// A request or a response.
struct Message<'a> {
    first: &'a [u8],
    headers: Vec<(&'a [u8], &'a [u8])>,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    fn of(text: &'a [u8]) -> Self {
        let (first, mut rest) = line(text);
        let mut headers = Vec::new();
        while !rest.is_empty() {
            let (header, after) = line(rest);
            rest = after;
            if header.is_empty() {
                break;
            }
            let (name, value) = super::split_at(header, b':');
            headers.push((name, value.trim_ascii()));
        }
        Self { first, headers, body: rest }
    }
}

/// The first line without its end, and what follows.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = super::split_at(text, b'\n');
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}
