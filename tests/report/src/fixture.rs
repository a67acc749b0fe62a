//! What tests share.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

use crate::sink::Sink;
use crate::{About, BadEntryText, Effect, Row, Rule, Signal, Totals};

/// Numbers that look random and are the same in every run (xorshift).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }
}

/// Rows of every kind, with the sort of thing that attackers put into requests.
pub(crate) fn rows() -> Vec<Row> {
    let rule = |id, msg: &str| Rule { id, msg: msg.to_owned() };
    let signal = |name: &str, weight| Signal { name: name.to_owned(), weight };
    let get = |number: u64, path: &str| Row {
        id: format!("shop.har#{number}"),
        at: 1_750_000_000_000 + number * 1_000,
        method: "GET".to_owned(),
        host: "shop.example".to_owned(),
        path: path.to_owned(),
        caller: "192.0.2.1".to_owned(),
        status: 200,
        recorded_status: Some(200),
        action: "none".to_owned(),
        ..Row::default()
    };
    vec![
        get(1, "/"),
        Row {
            effect: Effect::Observed,
            score: 3.0,
            rules: vec![rule(920_350, "Host header is a numeric IP address")],
            ..get(2, "/search?q=shoes")
        },
        Row {
            effect: Effect::Blocked,
            status: 403,
            action: "deny".to_owned(),
            score: 15.0,
            signals: vec![signal("waf:block", 15.0)],
            rules: vec![
                rule(941_110, "XSS Filter - Category 1: Script Tag Vector"),
                rule(949_110, "Inbound Anomaly Score Exceeded (Total Score: 15)"),
            ],
            reason: "waf: rule 949110".to_owned(),
            caller: "203.0.113.9".to_owned(),
            ..get(3, "/search?q=<script>alert(\"1\")</script>&amp;x='y'")
        },
        Row {
            effect: Effect::Slowed,
            status: 429,
            action: "throttle".to_owned(),
            score: 7.25,
            signals: vec![signal("rate", 7.25)],
            held_millis: 1_500,
            recorded_status: None,
            notes: vec!["The recorder has cut the body.".to_owned()],
            ..get(5, "/login")
        },
        Row {
            method: "POST".to_owned(),
            effect: Effect::Blocked,
            status: 403,
            recorded_status: Some(404),
            action: "ban".to_owned(),
            score: 120.0,
            caller: "mallory\x1b[2J\u{202e}".to_owned(),
            reason: "banned".to_owned(),
            signals: vec![signal("ban", 100.0), signal("waf:block", 20.0)],
            ..get(9, "/\x1b]0;owned\x07/\u{202e}fdp.exe\r\nX: y")
        },
        Row {
            effect: Effect::Failed,
            status: 503,
            fault: Some("wasm trap: out of bounds memory access\n  0: <waf>::run\n  1: proxy_on_request".to_owned()),
            recorded_status: None,
            ..get(10, "/broken]]>")
        },
        Row { recorded_status: Some(403), id: "more/api.json#1".to_owned(), ..get(12, "/api/v1/items?id=7") },
    ]
}

/// An entry that could not be read.
pub(crate) fn bad() -> BadEntryText {
    BadEntryText { id: "shop.har#4".to_owned(), why: "line 120: <request> has no method; record it again".to_owned() }
}

/// What was replayed.
pub(crate) fn about() -> About {
    let recordings = vec!["shop.har".to_owned(), "more/api.json".to_owned()];
    let mut about = About { title: "Shop & API, June".to_owned(), recordings, facts: Vec::new() };
    about.fact("filter", "preset.wasm 1f2e3d4c");
    about.fact("snapshot", "staging.pb, version 42");
    about
}

/// What a sink makes of the rows.
pub(crate) fn written(sink: impl FnOnce(SharedOut) -> Box<dyn Sink>) -> String {
    let out = SharedOut::default();
    let mut sink = sink(out.clone());
    let mut totals = Totals::new();
    for (place, row) in rows().iter().enumerate() {
        if place == 3 {
            totals.bad(&bad());
            sink.bad(&bad()).unwrap();
        }
        totals.add(row);
        sink.row(row).unwrap();
    }
    sink.end(&totals, &about()).unwrap();
    String::from_utf8(out.0.take()).unwrap()
}

/// A file in memory that is still there when its writer is gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedOut(pub(crate) Rc<RefCell<Vec<u8>>>);

impl Write for SharedOut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Holds a text against the file of that name in `tests/report/golden`. With `PALISADE_BLESS` set, writes the file.
pub(crate) fn golden(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    if std::env::var_os("PALISADE_BLESS").is_some() {
        fs::write(&file, text).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let line = text.lines().zip(expected.lines()).position(|(found, expected)| found != expected);
    assert!(
        text == expected,
        "{} differs from line {} on (PALISADE_BLESS=1 writes it anew):\n{text}",
        file.display(),
        line.unwrap_or_else(|| expected.lines().count().min(text.lines().count())) + 1,
    );
}
