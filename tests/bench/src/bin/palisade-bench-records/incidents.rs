//! Incidents: memory, bytes in the store, start, lists.

use std::time::Instant;

use base::clock;
use events::EventHub;
use palisade_bench::console::Console;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::figures::{Figures, Target};
use palisade_tests::process::{resident_kib, resident_mib};
use serde_json::{Value, json};
use store::Store as _;
use store::fabric::{Ban, FabricStore as _, Note};
use tokio::runtime::Runtime;

use crate::subject::{Subject, said, seconds, timed};

/// A search and a filter of a list take no longer, in milliseconds.
const LIST: f64 = 200.0;
/// Bans of callers of incidents, and of networks.
const BANS: (u64, u64) = (20_000, 1000);

pub(crate) fn measure(
    runtime: &Runtime,
    store: &str,
    (incidents, each): (u64, u64),
    calls: u64,
    figures: &mut Figures,
) -> Result<(), String> {
    let title = |what: &str| format!("{incidents} incidents, {store}: {what}");
    let subject = Subject::new(store)?;
    // Made and stopped first, so that the store has all that a control plane puts there at its first start.
    let (mut control, empty_start) = subject.start(&[])?;
    let empty_memory = kib(control.process().id())?;
    control.kill();
    runtime.block_on(fill(&subject, (incidents, each), &title, figures))?;
    let (mut control, start) = subject.start(&[])?;
    figures.add(&title("start, beyond that of an empty one"), start - empty_start, "s", Target::None);
    let memory = kib(control.process().id())? - empty_memory;
    figures.add(&title("memory after the start, of each"), memory / incidents as f64, "KiB", Target::None);
    lists(&control, (incidents, calls), &title, figures)?;
    let memory = resident_mib(control.process().id())?;
    figures.add(&title("memory of the control plane after the lists"), memory, "MiB", Target::None);
    Ok(())
}

/// The resident memory of a process, which may become less.
fn kib(pid: u32) -> Result<f64, String> {
    resident_kib(pid).map(|kib| kib as f64)
}

/// Makes the incidents of events, keeps them in the store, and bans some callers.
async fn fill(
    subject: &Subject,
    (incidents, each): (u64, u64),
    title: &impl Fn(&str) -> String,
    figures: &mut Figures,
) -> Result<(), String> {
    let hub = EventHub::new(Vec::new(), clock::now_millis);
    let before = kib(std::process::id())?;
    let since = Instant::now();
    for number in 0..each {
        for caller in 0..incidents {
            let event = event(caller, number).to_string();
            hub.publish_of("edge-1", event.as_bytes()).map_err(said)?;
        }
    }
    let taken = since.elapsed().as_secs_f64() * 1e6 / (incidents * each) as f64;
    figures.add(&title("an event, made and counted"), taken, "us", Target::None);
    // Each is there twice now, as a whole and as what the store does not have: the second one goes when it is kept.
    let held = hub.incidents_count() as u64;
    if held != incidents {
        return Err(format!("there are {held} incidents"));
    }
    let store = subject.open().await?;
    let bytes = subject.bytes("palisade.db")?;
    let ((), taken) = seconds(events::save_incidents(&store, &hub)).await?;
    figures.add(&title("kept in the store, all"), taken, "s", Target::None);
    figures.add(
        &title("bytes in the store, of each"),
        (subject.bytes("palisade.db")? - bytes) / incidents as f64,
        "bytes",
        Target::None,
    );
    let memory = kib(std::process::id())? - before;
    figures.add(&title("memory with signals, of each, of the tool"), memory / incidents as f64, "KiB", Target::None);
    let (_, taken) = seconds(async { Ok(hub.incidents_since(0)) }).await?;
    figures.add(&title("a list of all, while events wait"), taken * 1000.0, "ms", Target::None);
    let now = clock::now_millis();
    let ban = |key: String| Ban {
        key,
        reason: "a decoy path".into(),
        issued_at: now,
        until: now + 3_600_000,
        issued_by: "alice".into(),
        by_hand: true,
        ..Ban::default()
    };
    let exact = (0..BANS.0).map(|number| ban(format!("ip:{}", address(number * 2))));
    let ranges = (0..BANS.1).map(|number| ban(format!("ip:172.{}.{}.0/24", number / 256, number % 256)));
    let bans: Vec<Ban> = exact.chain(ranges).collect();
    for part in bans.chunks(1000) {
        store.bans_issue(part.to_vec(), now, Note::none()).await.map_err(said)?;
    }
    store.close().await.map_err(said)
}

fn address(caller: u64) -> String {
    format!("10.{}.{}.{}", caller >> 16, caller >> 8 & 255, caller & 255)
}

/// An event as a gateway sends one.
fn event(caller: u64, number: u64) -> Value {
    const REASONS: [&str; 4] = [
        "SQL injection attack detected via libinjection",
        "a decoy path was requested",
        "too many requests",
        "the address is on a feed",
    ];
    const CATEGORIES: [&str; 4] = ["threat", "honeypot", "traffic", "threat"];
    let kind = ((caller + number) % 4) as usize;
    let (score, is_refused) = (40 + (caller + number) % 60, !caller.is_multiple_of(3));
    let now = clock::now_millis();
    let message = format!("score {score} reaches tier {} of policy `Standard`: {}", score / 30, REASONS[kind]);
    let signal = |tag: &str, detail: &str| {
        json!({ "source": "waf.seclang", "kind": "waf", "weight": 25, "effective_weight": 25, "tag": tag, "confidence": 1,
            "detail": detail, "at": now })
    };
    json!({
        "@type": "SvcSecurityEvent", "@id": format!("event_{:016x}", caller << 16 | number), "@timestamp": clock::rfc3339(now),
        "event": { "kind": "alert", "category": CATEGORIES[kind], "action": if is_refused { "deny" } else { "log" },
            "outcome": if is_refused { "blocked" } else { "observed" }, "severity": 3, "module": "threat-response",
            "dataset": "svc.threat" },
        "source": { "ip": address(caller), "apikey": null, "user": null },
        "threat": { "score": score, "tags": ["waf:match", format!("waf:rule-{}", 942_100 + caller % 40)], "signals": [
            signal("waf:match", &format!("rule {}: {}", 942_100 + caller % 40, REASONS[kind])),
            signal("feed:scanner", "listed by `scanners`"), signal("bot:tool", "the client is `curl`") ] },
        "incident": { "id": format!("incident_{caller:016x}"), "count": 1 },
        "route": { "id": format!("route-{}", (caller + number) % 40), "name": format!("Shop {}", (caller + number) % 40),
            "node": "edge-1" },
        "http": { "request_id": format!("0b0e9a3e-6c0b-4a43-9a3e-{:012x}", caller << 16 | number), "method": "GET",
            "host": "shop.example", "path": format!("/items/{number}"), "status": 403 },
        "message": message,
        "decision": { "action": "deny", "score": score, "tier": 1, "dry_run": false, "enforced": is_refused, "reason": message,
            "held_ms": 0 },
    })
}

/// What an operator asks for.
fn lists(
    control: &ControlPlane,
    (incidents, calls): (u64, u64),
    title: &impl Fn(&str) -> String,
    figures: &mut Figures,
) -> Result<(), String> {
    let mut operator = Console::login(control)?;
    let size = 100;
    let last = incidents.div_ceil(size);
    for (what, query) in [
        ("the first page of 100", format!("pageSize={size}")),
        ("the last page of 100", format!("pageSize={size}&page={last}")),
        ("a page of 1000", "pageSize=1000".to_owned()),
        ("one by its key", format!("filter.ref=ip:{}", address(incidents / 2))),
        ("a text that all have", format!("pageSize={size}&filter.text=policy")),
        ("a text that some have", format!("pageSize={size}&filter.text=rule-942117")),
        ("a part of an address", format!("pageSize={size}&filter.text=10.0.77.")),
        ("a text that none has", format!("pageSize={size}&filter.text=nothing%20like%20it")),
        ("a state", format!("pageSize={size}&filter.state=acknowledged")),
        ("enforced", format!("pageSize={size}&filter.outcome=enforced")),
        ("observed", format!("pageSize={size}&filter.outcome=observed")),
        ("banned", format!("pageSize={size}&filter.outcome=banned")),
        ("banned, with a text", format!("pageSize={size}&filter.outcome=banned&filter.text=decoy")),
    ] {
        let path = format!("_incidents?{query}");
        let mut found = String::new();
        timed(&title(what), calls.min(20), Some(LIST), figures, |_| {
            found = operator.get(&path)?.header("x-total").unwrap_or_default();
            Ok(())
        })?;
        println!("    {found} found");
    }
    timed(&title("a state is set"), calls.min(20), None, figures, |number| {
        let body = json!({ "key": format!("ip:{}", address(number)), "state": "acknowledged", "note": "" });
        operator.post("_incident_state", &body).map(drop)
    })?;
    let since = Instant::now();
    let all = control.call("GET", "/api/extensions/svc/waf/api/_incidents", None);
    figures.add(&title("the report of all"), since.elapsed().as_secs_f64(), "s", Target::None);
    figures.add(&title("its size"), all.body.len() as f64 / 1_048_576.0, "MiB", Target::None);
    match all.json()["incidents"].as_array().map(Vec::len) {
        Some(count) if count as u64 == incidents => Ok(()),
        other => Err(format!("the report has {other:?} incidents")),
    }
}
