//! What requests are charged on the core rule set, at paranoia levels 1 and 4: hostile ones stay below a bound, whatever
//! they repeat, and honest ones far below the ceilings.

use std::sync::{Arc, LazyLock};

use seclang::{BudgetLimits, Engine, Transaction, TransactionStart, Work};

use crate::core_rules::{detection, engine};

static ENGINES: LazyLock<[Arc<Engine>; 2]> = LazyLock::new(|| [1, 4].map(|level| engine(&detection(level))));

fn run(engine: &Arc<Engine>, content_type: &str, body: &str, limits: BudgetLimits) -> Transaction {
    let start = TransactionStart { client_addr: b"192.0.2.7".to_vec(), now_millis: 1, ..TransactionStart::default() };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    transaction.set_budget(limits);
    transaction.request_line(b"POST", b"/api/orders", b"HTTP/1.1");
    let length = body.len().to_string();
    for (name, value) in [
        ("Host", "shop.example"),
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
        ("Accept", "text/html,application/json"),
        ("Content-Type", content_type),
        ("Content-Length", &length),
    ] {
        transaction.request_header(name.as_bytes(), value.as_bytes());
    }
    transaction.request_headers();
    transaction.request_body(body.as_bytes(), true);
    transaction.logging();
    transaction
}

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

fn values(count: usize) -> String {
    (0..count).map(|at| format!("\"v{at}\"")).collect::<Vec<_>>().join(",")
}

/// Requests that repeat something long, or many small things.
fn hostile() -> Vec<(&'static str, &'static str, String)> {
    let mut nested = format!("[{}]", values(900));
    for at in 0..30 {
        nested = format!("{{\"{}{at}\":{nested}}}", "n".repeat(250));
    }
    let members = |count: usize| (0..count).map(|at| format!("\"m{at}\":{at}")).collect::<Vec<_>>().join(",");
    let odd = "a' or <b> ../ $(c) `d`; ".repeat(330);
    let fields =
        |name: &dyn Fn(usize) -> String| (0..900).map(|at| format!("{}=1", name(at))).collect::<Vec<_>>().join("&");
    let elements = (0..900).map(|at| format!("<e{at}>{at}</e{at}>")).collect::<String>();
    let empty = |count: usize| vec!["{}"; count].join(",");
    let long_empty = |count| format!("[{}{{\"{}\":[{}]}}]", "1,".repeat(1000), "k".repeat(8100), empty(count));
    vec![
        ("empty values below a long key", JSON, format!("{{\"{}\":[{}]}}", "k".repeat(8000), empty(100_000))),
        ("empty values behind the limit", JSON, long_empty(100_000)),
        ("empty values behind the limit, in a form", FORM, long_empty(20_000)),
        ("empty values behind the limit, in a text", "text/plain", long_empty(20_000)),
        ("a long key above an array", JSON, format!("{{\"{}\":[{}]}}", "k".repeat(8000), values(998))),
        ("a long key above an object", JSON, format!("{{\"{}\":{{{}}}}}", "k".repeat(8000), members(998))),
        ("an odd key above an array", JSON, format!("{{\"{odd}\":[{}]}}", values(998))),
        ("long keys in each other", JSON, nested),
        ("the same long name", FORM, fields(&|_| "n".repeat(60))),
        ("long names that begin alike", FORM, fields(&|at| format!("{}{at}", "n".repeat(300)))),
        ("nothing but names", FORM, fields(&|at| format!("n{at}"))),
        ("elements", "text/xml", format!("<r>{elements}</r>")),
        ("values of a quote", JSON, format!("[{}]", vec!["\"'\""; 998].join(","))),
        ("values of a plus", JSON, format!("[{}]", vec!["\"+\""; 998].join(","))),
        ("too many values of a plus", JSON, format!("[{}]", vec!["\"+\""; 16_000].join(","))),
        ("too many names", FORM, (0..11_000).map(|at| format!("a{at}")).collect::<Vec<_>>().join("&")),
        ("values of a parenthesis", JSON, format!("[{}]", vec!["\"(\""; 998].join(","))),
    ]
}

/// What a request is charged with no ceiling.
fn charged(engine: &Arc<Engine>, content_type: &str, body: &str) -> Work {
    let transaction = run(engine, content_type, body, BudgetLimits::NONE);
    assert!(transaction.exceeded_limits().is_empty());
    transaction.work()
}

#[test]
fn what_is_repeated_is_paid_for_once() {
    for (engine, most) in ENGINES.iter().zip(CHARGED) {
        for (what, content_type, body) in hostile() {
            let work = charged(engine, content_type, &body);
            println!("{what}: {} bytes, {work:?}", body.len());
            assert!(work.spent.work < most, "{what}: {} units", work.spent.work);
            assert!(work.spent.memory < 12 << 20, "{what}: {} bytes", work.spent.memory);
            // At most 256 bytes and a mark of each name, and what names are cut once more.
            assert!(work.name_bytes <= 900 * 700, "{what}: {} bytes of names", work.name_bytes);
        }
    }
}

/// The units that these requests may be charged at paranoia levels 1 and 4.
const CHARGED: [u64; 2] = [40_000_000, 80_000_000];

#[test]
fn one_name_for_many_values_is_looked_at_once() {
    let [engine, _] = &*ENGINES;
    let body = |key: usize, count: usize| format!("{{\"{}\":[{}]}}", "k".repeat(key), values(count));
    let [few, many] = [10, 998].map(|count| charged(engine, JSON, &body(8000, count)));
    let [short, _] = [10, 998].map(|count| charged(engine, JSON, &body(300, count)));
    // The long key is transformed as often for ten values as for a thousand.
    let of_values = charged(engine, JSON, &body(300, 998));
    assert!(many.transformed - few.transformed <= of_values.transformed - short.transformed + 100_000);
    assert!(many.scanned - few.scanned <= of_values.scanned - short.scanned + 100_000, "{many:?} {few:?}");
}

#[test]
fn an_attack_in_a_long_name_is_found() {
    let [engine, _] = &*ENGINES;
    let attack = "<script>alert(1)</script>";
    let found = |content_type: &str, body: &str| {
        let transaction = run(engine, content_type, body, BudgetLimits::default());
        transaction.matched_ids().any(|id| id == 941_110)
    };
    let long = "k".repeat(300);
    for body in [
        format!("{{\"{long}{attack}\":[{}]}}", values(10)),
        format!("{{\"{long}\":{{\"a\":1,\"{attack}\":[[2]]}}}}"),
        format!("{{\"{long}\":[{{\"a\":{{\"b\":1}}}},{{\"{attack}\":1}}]}}"),
        format!("{{\"{}{attack}\":1}}", "k".repeat(245)),
    ] {
        assert!(found(JSON, &body), "{body}");
        assert!(!found(JSON, &body.replace(attack, "harmless")));
    }
    assert!(found(FORM, &format!("a=1&{long}{attack}=2&b=3")));
    assert!(found(FORM, &format!("{long}=1&{long}{attack}=2")));
    let part = |name: &str| format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\nv\r\n--b--\r\n");
    assert!(found("multipart/form-data; boundary=b", &part(&format!("{long}{attack}"))));
}

#[test]
fn honest_bodies_stay_far_below_the_ceilings() {
    const TEXT: &str = "Dear team, please select the items from the list where price = 10 and (a or b); \
        see https://shop.example/a.php?id=1&x=y, O'Neill -- thanks. ";
    let text = |length: usize| TEXT.chars().cycle().take(length).collect::<String>();
    let escaped = |value: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric();
        let escape = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        value.bytes().map(escape).collect::<String>()
    };
    let form = |fields: usize, length: usize| {
        (0..fields).map(|at| format!("field{at}={}", escaped(&text(length)))).collect::<Vec<_>>().join("&")
    };
    let rows = |count: usize, length: usize| {
        let row = |at: usize| format!("{{\"id\":{at},\"name\":{:?},\"price\":1.5}}", text(length));
        format!("[{}]", (0..count).map(row).collect::<Vec<_>>().join(","))
    };
    // At level 4 every quote and parenthesis of a text is a match: documents of many such texts need more than there is.
    let known = ["JSON of 100 KB", "JSON of 1 MB"];
    for (level, engine) in [1, 4].into_iter().zip(ENGINES.iter()) {
        for (what, content_type, body) in [
            ("a small form", FORM, form(5, 20)),
            ("a form of many fields", FORM, form(900, 20)),
            ("a form of 100 KB", FORM, form(20, 3500)),
            ("a form of 1 MB", FORM, form(100, 7000)),
            ("JSON of 100 KB", JSON, rows(300, 250)),
            ("JSON of 1 MB", JSON, rows(300, 3000)),
        ] {
            let spent = run(engine, content_type, &body, BudgetLimits::NONE).work().spent;
            let BudgetLimits { work, work_per_byte, memory, memory_per_byte } = BudgetLimits::default();
            // What the response has besides is not for the request.
            let of = |used: u64, fixed: u64, each: u64| used * 100 / (fixed + each * body.len() as u64);
            let (work, memory) = (of(spent.work, work, work_per_byte), of(spent.memory, memory, memory_per_byte));
            println!(
                "level {level}, {what}, {} bytes: {} units, {work} %, {memory} % of the memory",
                body.len(),
                spent.work
            );
            let most = match level {
                1 => 64,
                _ if known.contains(&what) => 130,
                _ => 90,
            };
            assert!(
                work < most && memory < 90,
                "level {level}, {what}: {work} % of the work, {memory} % of the memory"
            );
        }
    }
}
