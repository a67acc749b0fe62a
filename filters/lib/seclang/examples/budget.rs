//! The charges of requests, beside the time that they take: how well they predict the cost of a request, and how far
//! honest requests stay below the ceilings.
//!
//! ```text
//! cargo run --release -p seclang --example budget [-- PARANOIA [NAME]]
//! ```
//!
//! The rules are those of `PALISADE_CRS_DIR`, or of `.cache/crs` at the root of the repository.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;

use seclang::{BudgetLimits, Engine, Program, Transaction, TransactionStart};

#[path = "../tests/all/core_rules.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod core_rules;

struct Case {
    name: String,
    content_type: String,
    body: Vec<u8>,
}

fn main() {
    let level = std::env::args().nth(1).map_or(1, |level| level.parse().expect("a paranoia level, 1 to 4"));
    let only = std::env::args().nth(2);
    let program = seclang::compile(&core_rules::sources(&core_rules::detection(level)), &core_rules::files());
    let bytes = program.unwrap_or_else(|errors| panic!("{}", errors[0])).encode();
    let engine = Arc::new(Engine::new(Program::decode(&bytes).unwrap()).unwrap());
    println!(
        "{:34} {:>9} {:>8} {:>12} {:>9} {:>7} {:>6} {:>9} {:>9} {:>8} {:>8}",
        "request", "bytes", "ms", "units", "u/byte", "ns/unit", "of max", "memory", "operators", "values", "exceeded"
    );
    for case in cases() {
        if only.as_ref().is_some_and(|only| !case.name.contains(only.as_str())) {
            continue;
        }
        let free = run(&engine, &case, BudgetLimits::NONE);
        let (began, mut runs) = (cpu(), 0);
        while runs < 3 || cpu() - began < 100_000_000 {
            run(&engine, &case, BudgetLimits::NONE);
            runs += 1;
        }
        let best = (cpu() - began) as f64 / f64::from(runs);
        let work = free.work();
        let bounded = run(&engine, &case, BudgetLimits::default());
        let ceiling = bounded.work().spent.work_ceiling;
        println!(
            "{:34} {:>9} {:>8.2} {:>12} {:>9} {:>7.3} {:>6.2} {:>9} {:>9} {:>8} {:>8}",
            case.name,
            case.body.len(),
            best / 1e6,
            work.spent.work,
            work.spent.work / (case.body.len().max(1) as u64),
            best / work.spent.work as f64,
            work.spent.work as f64 / ceiling as f64,
            work.spent.memory,
            work.operators,
            work.values,
            bounded.exceeded_limits().iter().map(|limit| limit.rule_id.to_string()).collect::<Vec<_>>().join(","),
        );
    }
}

/// Nanoseconds that this thread has run.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

fn run(engine: &Arc<Engine>, case: &Case, limits: BudgetLimits) -> Transaction {
    let start = TransactionStart { client_addr: b"192.0.2.7".to_vec(), now_millis: 1, ..TransactionStart::default() };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    transaction.set_budget(limits);
    transaction.request_line(b"POST", b"/api/orders", b"HTTP/1.1");
    let length = case.body.len().to_string();
    for (name, value) in [
        ("Host", "shop.example"),
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
        ("Accept", "text/html,application/json"),
        ("Content-Type", &case.content_type),
        ("Content-Length", &length),
    ] {
        transaction.request_header(name.as_bytes(), value.as_bytes());
    }
    transaction.request_headers();
    transaction.request_body(&case.body, true);
    transaction.response_line(200, b"HTTP/1.1");
    transaction.response_header(b"Content-Type", b"text/html");
    transaction.response_headers();
    transaction.response_body(b"", true);
    transaction.logging();
    transaction
}

const TEXT: &str = "Dear team, <b>please</b> select the items from the list where price = 10 and (a or b); \
    see https://shop.example/a.php?id=1&x='y' -- ${name} {{thanks}}, O'Neill $(id) ../notes `ls` 1=1 union of ";
const PLAIN: &str = "The weather in the north has been fine since Monday, and everybody enjoys the long evenings. ";

fn text(of: &str, length: usize) -> String {
    of.chars().cycle().take(length).collect()
}

fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    value.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn cases() -> Vec<Case> {
    const FORM: &str = "application/x-www-form-urlencoded";
    const JSON: &str = "application/json";
    let mut cases = Vec::new();
    let mut add = |name: String, content_type: &str, body: String| {
        cases.push(Case { name, content_type: content_type.to_owned(), body: body.into_bytes() });
    };
    let form = |fields: usize, value: &str| {
        (0..fields).map(|field| format!("field{field}={value}")).collect::<Vec<_>>().join("&")
    };
    add("a small form".into(), FORM, form(5, "hello"));
    for (size, name) in [(64usize << 10, "64K"), (1 << 20, "1M")] {
        for (kind, of) in [("plain", PLAIN), ("odd", TEXT)] {
            for fields in [1, 30, 900] {
                let value = escaped(&text(of, size * 3 / 4 / fields));
                add(format!("honest {name} form {kind} {fields}"), FORM, form(fields, &value));
            }
            let rows: Vec<String> = (0..90)
                .map(|row| {
                    let fields = (0..10).map(|at| format!("\"name{at}\":{:?}", text(of, size / 1000)));
                    format!("{{\"id\":{row},{}}}", fields.collect::<Vec<_>>().join(","))
                })
                .collect();
            add(format!("honest {name} JSON {kind}"), JSON, format!("[{}]", rows.join(",")));
            let parts: String = (0..60)
                .map(|part| {
                    format!(
                        "--XyZ\r\nContent-Disposition: form-data; name=\"f{part}\"\r\n\r\n{}\r\n",
                        text(of, size / 60)
                    )
                })
                .collect();
            add(
                format!("honest {name} multipart {kind}"),
                "multipart/form-data; boundary=XyZ",
                format!("{parts}--XyZ--\r\n"),
            );
            let items: String = (0..200)
                .map(|at| format!("<item id=\"{at}\"><name>{}</name></item>", text(PLAIN, size / 250)))
                .collect();
            add(format!("honest {name} XML {kind}"), "text/xml", format!("<order>{items}</order>"));
        }
    }
    add(
        "honest numbers 998".into(),
        JSON,
        format!("[{}]", (0..998).map(|n| n.to_string()).collect::<Vec<_>>().join(",")),
    );
    add(
        "honest words 998".into(),
        JSON,
        format!("[{}]", (0..998).map(|n| format!("\"word{n}\"")).collect::<Vec<_>>().join(",")),
    );
    let values = |count: usize| (0..count).map(|at| format!("\"v{at}\"")).collect::<Vec<_>>().join(",");
    add("long key 8K x 998".into(), JSON, format!("{{\"{}\":[{}]}}", "k".repeat(8000), values(998)));
    add("long odd key x 998".into(), JSON, format!("{{{:?}:[{}]}}", text(TEXT, 8000), values(998)));
    let mut nested = format!("[{}]", values(900));
    for at in 0..30 {
        nested = format!("{{\"{}{at}\":{nested}}}", "n".repeat(250));
    }
    add("30 nested keys x 900".into(), JSON, nested);
    add(
        "900 names of 2K".into(),
        FORM,
        (0..900).map(|at| format!("{at}{}=1", "n".repeat(2000))).collect::<Vec<_>>().join("&"),
    );
    add(
        "900 odd names of 70".into(),
        FORM,
        (0..900).map(|at| format!("{at}{}=1", escaped(&text(TEXT, 40)))).collect::<Vec<_>>().join("&"),
    );
    let hyphens = "-".repeat(2_000_000);
    add("boundary of 900".into(), &format!("multipart/form-data; boundary={}", "-".repeat(900)), hyphens.clone());
    add("boundary of 70".into(), &format!("multipart/form-data; boundary={}", "-".repeat(70)), hyphens);
    let pieces = [
        "+",
        "'",
        "\"",
        "(",
        "' or 1=1 -- ",
        "<script>alert(1)</script>",
        "select ",
        "union all select ",
        "../",
        "\\",
        "/*",
        "$(",
        "`",
        "${",
        "{{",
        "&lt;",
        "%25",
        "%u003c",
        "\\x3c",
        ";cat ",
        "<",
        "=",
        "0x41",
        "@@",
        "system(",
        "A",
        "a",
        "1",
        " ",
        ".",
        "-",
        "javascript:",
        "onerror=",
        "http://",
        "file:",
        "wget ",
        "\n",
        ")",
        "|",
        "!",
        "~",
        "php:",
        "<?",
        "eval(",
        "/bin/sh ",
        "0",
        "a.b",
        "a,",
        "#",
        "1e1",
        "\u{e9}",
        "x'y",
        "or ",
        "and ",
        "'+'",
        "a'b'",
        "\\u0041",
        "&#x41;",
        "QUJD",
    ];
    for piece in pieces {
        let quoted = serde_like(piece);
        add(format!("hostile array {piece:?}"), JSON, format!("[{}]", vec![quoted.as_str(); 998].join(",")));
        let value = piece.repeat(65_000 / piece.len());
        add(format!("hostile value {piece:?}"), FORM, format!("a={}", escaped(&value)));
        let value = piece.repeat(70 / piece.len() + 1);
        add(format!("hostile fields {piece:?}"), FORM, form(700, &escaped(&value)));
    }
    let soup: String = (0..60_000).map(|at: usize| pieces[(at * 7919 + at / 13 * 31) % pieces.len()]).collect();
    add("hostile soup 1".into(), FORM, format!("a={}", escaped(&soup[..soup.char_indices().nth(30_000).unwrap().0])));
    let chunks: Vec<String> =
        soup.chars().collect::<Vec<_>>().chunks(40).take(900).map(|c| escaped(&c.iter().collect::<String>())).collect();
    add(
        "hostile soup 900".into(),
        FORM,
        chunks.iter().enumerate().map(|(n, c)| format!("a{n}={c}")).collect::<Vec<_>>().join("&"),
    );
    add(
        "hostile soup names".into(),
        FORM,
        chunks.iter().enumerate().map(|(n, c)| format!("{c}{n}=1")).collect::<Vec<_>>().join("&"),
    );
    add(
        "hostile attributes".into(),
        "text/xml",
        format!("<r>{}</r>", (0..6000).map(|n| format!("<a b=\"'{n}\"/>")).collect::<String>()),
    );
    add("hostile parts".into(), "multipart/form-data; boundary=b", {
        let part = |n| {
            format!(
                "--b\r\nContent-Disposition: form-data; name=\"{n}\"; filename=\"a.php{n}\"\r\nX-A: '\r\nX-B: <\r\n\r\nv\r\n"
            )
        };
        format!("{}--b--\r\n", (0..500).map(part).collect::<String>())
    });
    cases
}

fn serde_like(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\n' => "\\n".to_owned(),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}
