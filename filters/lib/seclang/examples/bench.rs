//! What one transaction costs, natively, on the engine alone: medians over all five phases, and what was evaluated.
//!
//! ```text
//! cargo run --release -p seclang --example bench [-- NAME [COUNT]]
//! ```
//!
//! The rules are those of `PALISADE_CRS_DIR`, or of `.cache/crs` at the root of the repository, at paranoia level 1.
//! With a name only that transaction runs; with a count it runs so often in [`counted`], after a warm-up, for tools that
//! count instructions (`valgrind --tool=callgrind --toggle-collect='bench::counted'`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use seclang::{Engine, Program, Transaction, TransactionStart};

/// How long one case is measured.
const BUDGET: Duration = Duration::from_millis(1500);

#[path = "../tests/all/core_rules.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod core_rules;

struct Case {
    name: &'static str,
    method: &'static str,
    uri: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
}

fn main() {
    let only = std::env::args().nth(1);
    let count: Option<u32> = std::env::args().nth(2).and_then(|count| count.parse().ok());
    let program = seclang::compile(&core_rules::sources(""), &core_rules::files());
    let bytes = program.unwrap_or_else(|errors| panic!("{}", errors[0])).encode();
    let loads = (0..9).map(|_| {
        let began = Instant::now();
        let engine = Engine::new(Program::decode(&bytes).unwrap()).unwrap();
        (began.elapsed(), engine)
    });
    let mut loads: Vec<_> = loads.collect();
    loads.sort_by_key(|(took, _)| *took);
    println!("{} bytes encoded, decoded and built in {:?}", bytes.len(), loads[4].0);
    println!("{:?}", loads[4].1);
    let engine = Arc::new(loads.swap_remove(4).1);
    println!(
        "{:14} {:>12} {:>12} {:>8} {:>10} {:>9} {:>9}",
        "transaction", "median", "best", "rules", "operators", "patterns", "matched"
    );
    for case in cases() {
        if only.as_ref().is_some_and(|only| only != case.name) {
            continue;
        }
        let last = run(&engine, &case);
        if let Some(count) = count {
            (0..20).for_each(|_| drop(run(&engine, &case)));
            counted(&engine, &case, count);
            continue;
        }
        let mut times = Vec::new();
        let began = Instant::now();
        while (began.elapsed() < BUDGET && times.len() < 20_000) || times.len() < 5 {
            let one = Instant::now();
            run(&engine, &case);
            times.push(one.elapsed());
        }
        times.sort();
        let work = last.work();
        println!(
            "{:14} {:>12} {:>12} {:>8} {:>10} {:>9} {:>9}",
            case.name,
            format!("{:.1?}", times[times.len() / 2]),
            format!("{:.1?}", times[0]),
            work.rules,
            work.operators,
            work.patterns,
            last.matched_rules().iter().filter(|rule| rule.logged).count(),
        );
    }
}

#[inline(never)]
fn counted(engine: &Arc<Engine>, case: &Case, count: u32) {
    for _ in 0..count {
        run(engine, case);
    }
}

fn cases() -> Vec<Case> {
    let get = |name, uri| Case { name, method: "GET", uri, content_type: "", body: Vec::new() };
    let post = |name, content_type, body| Case { name, method: "POST", uri: "/api/orders", content_type, body };
    vec![
        get("get", "/shop/items/list?page=2&sort=price&colour=dark+red"),
        post("form-1k", "application/x-www-form-urlencoded", form(1024)),
        post("json-3k", "application/json", json(160)),
        get("sqli", "/shop/items?id=1%27%20UNION%20SELECT%20name,password%20FROM%20users--%20-"),
        post("form-10k", "application/x-www-form-urlencoded", form(10 * 1024)),
        post("form-100k", "application/x-www-form-urlencoded", form(100 * 1024)),
        post("json-10k", "application/json", json(530)),
        post("json-100k", "application/json", json(5300)),
        post("text-10k", "application/x-www-form-urlencoded", text(10 * 1024)),
        post("text-100k", "application/x-www-form-urlencoded", text(100 * 1024)),
        post("text-1m", "application/x-www-form-urlencoded", text(1024 * 1024)),
    ]
}

/// Words that harmless values are made of.
const WORDS: [&str; 24] = [
    "garden",
    "Anna",
    "delivery",
    "42",
    "north",
    "street",
    "quantity",
    "blue",
    "Meyer",
    "2026-05-17",
    "note",
    "please",
    "between",
    "morning",
    "and",
    "noon",
    "order",
    "1999",
    "small",
    "gift",
    "box",
    "ring",
    "the",
    "bell",
];

fn form(length: usize) -> Vec<u8> {
    let mut out = String::new();
    let mut number = 0;
    while out.len() < length {
        let word = |at: usize| WORDS[(number * 7 + at * 5) % WORDS.len()];
        out += &format!("field{number}={}+{}+{}&", word(0), word(1), word(2));
        number += 1;
    }
    out.truncate(length);
    out.into_bytes()
}

/// One long value of one parameter.
fn text(length: usize) -> Vec<u8> {
    let mut out = String::from("text=");
    let mut number = 0;
    while out.len() < length {
        out += WORDS[(number * 7) % WORDS.len()];
        out += if number % 12 == 11 { ".%0A" } else { "+" };
        number += 1;
    }
    out.truncate(length);
    out.into_bytes()
}

fn json(values: usize) -> Vec<u8> {
    let items: Vec<String> = (0..values)
        .map(|at| match at % 4 {
            0 => format!("\"k{at}\":{}", at * 37),
            1 => format!("\"k{at}\":\"{} {}\"", WORDS[at % WORDS.len()], WORDS[(at * 7) % WORDS.len()]),
            2 => format!("\"k{at}\":\"{}\"", WORDS[(at * 11) % WORDS.len()]),
            _ => format!("\"k{at}\":true"),
        })
        .collect();
    format!("{{{}}}", items.join(",")).into_bytes()
}

fn run(engine: &Arc<Engine>, case: &Case) -> Transaction {
    let start = TransactionStart {
        unique_id: b"bench".to_vec(),
        now_millis: 1_750_000_000_000,
        random: 7,
        client_addr: b"192.0.2.7".to_vec(),
        client_port: 40_000,
        server_addr: b"198.51.100.1".to_vec(),
        server_port: 443,
    };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    transaction.request_line(case.method.as_bytes(), case.uri.as_bytes(), b"HTTP/1.1");
    let length = case.body.len().to_string();
    for (name, value) in [
        ("Host", "shop.example"),
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
        ("Accept-Language", "en-US,en;q=0.5"),
        ("Accept-Encoding", "gzip, deflate, br"),
        ("Referer", "https://shop.example/shop/items"),
        ("Cookie", "session=5f2d8a90c4e14b7f; theme=dark; consent=1"),
        ("Sec-Fetch-Dest", "document"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Site", "same-origin"),
        ("Upgrade-Insecure-Requests", "1"),
    ] {
        transaction.request_header(name.as_bytes(), value.as_bytes());
    }
    if !case.content_type.is_empty() {
        transaction.request_header(b"Content-Type", case.content_type.as_bytes());
        transaction.request_header(b"Content-Length", length.as_bytes());
    }
    transaction.request_headers();
    transaction.request_body(&case.body, true);
    transaction.response_line(200, b"HTTP/1.1");
    transaction.response_header(b"Content-Type", b"text/html; charset=utf-8");
    transaction.response_header(b"Server", b"shop");
    transaction.response_headers();
    transaction.response_body(b"<!doctype html><title>Shop</title><p>Everything for the garden.</p>", true);
    transaction.logging();
    transaction
}
