//! Stored events: time to write, bytes of each, searches, the bound, memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::clock;
use palisade_bench::console::Console;
use palisade_tests::figures::{Figures, Target};
use palisade_tests::process::{resident_mib, wait_for};
use serde_json::{Value, json};
use store::events::{EventFile, EventLimits, NewEvent};
use store::{EventStore, StoreError};
use store_redis::SharedEvents;
use tokio::runtime::Runtime;

use crate::subject::{Subject, said, seconds, size, timed};

/// A search takes no longer, in milliseconds.
const SEARCH: f64 = 200.0;
/// Events that are appended at a time, as the control plane does when many come.
const BATCH: u64 = 1000;
/// What is kept: more than the tool makes.
const LIMITS: EventLimits = EventLimits { age_millis: 30 * 86_400_000, bytes: 8 << 30, events: 100_000_000 };
/// How far back the first event is, in milliseconds.
const SPAN: u64 = 23 * 3_600_000;
/// How long a copy may take to have all.
const COPY: Duration = Duration::from_secs(1800);

pub(crate) fn measure(
    runtime: &Runtime,
    store: &str,
    count: u64,
    calls: u64,
    figures: &mut Figures,
) -> Result<(), String> {
    let title = |what: &str| format!("{count} stored events, {store}: {what}");
    let subject = Subject::new(store)?;
    let arguments = ["--events-store-mib", "4096", "--events-store-max", "50000000", "--events-store-days", "30"];
    let arguments = arguments.map(str::to_owned);
    let (mut control, empty_start) = subject.start(&arguments)?;
    let empty_memory = resident_mib(control.process().id())?;
    control.kill();

    let now = clock::now_millis();
    let made = Made { count, first: now - SPAN };
    let length = (0..1000).map(|number| made.line(number * count / 1000).len()).sum::<usize>() as f64 / 1000.0;
    figures.add(&title("length of an event"), length, "bytes", Target::None);
    runtime.block_on(write(&subject, &made, now, &title, figures))?;

    let (mut control, start) = subject.start(&arguments)?;
    figures.add(&title("start, beyond that of an empty one"), start - empty_start, "s", Target::None);
    let mut operator = Console::login(&control)?;
    let since = Instant::now();
    wait_for("the control plane has all events", COPY, || {
        let status = operator.show("events/_status").ok()?.json();
        (status["events"].as_u64()? >= count).then_some(())
    })?;
    figures.add(&title("until all are found, after the start"), since.elapsed().as_secs_f64(), "s", Target::None);
    let memory = resident_mib(control.process().id())? - empty_memory;
    figures.add(&title("memory after that, beyond an empty one"), memory, "MiB", Target::None);
    searches(&mut operator, &made, calls, &title, figures)?;
    let memory = resident_mib(control.process().id())? - empty_memory;
    figures.add(&title("memory after the searches, beyond an empty one"), memory, "MiB", Target::None);
    if store != "file" {
        figures.add(
            &title("bytes of the copy on the disk, of each"),
            size(&subject.data(), "events.db")? / count as f64,
            "bytes",
            Target::None,
        );
    }
    // Its file is read by no other from here on.
    control.kill();
    drop(control);
    runtime.block_on(retention(&subject, &made, &title, figures))
}

/// The event store, opened by this process.
async fn open(subject: &Subject, limits: EventLimits) -> Result<Arc<dyn EventStore>, String> {
    Ok(match subject.server()? {
        None => Arc::new(EventFile::new(&subject.data(), limits)),
        Some(options) => {
            Arc::new(SharedEvents::open(options, &subject.data().join("copy"), limits).await.map_err(said)?)
        }
    })
}

async fn write(
    subject: &Subject,
    made: &Made,
    now: u64,
    title: &impl Fn(&str) -> String,
    figures: &mut Figures,
) -> Result<(), String> {
    let before = subject.bytes("events.db")?;
    let stored = open(subject, LIMITS).await?;
    let (appending, slowest) = appended(&*stored, made, 0..made.count, now).await?;
    figures.add(&title("written"), made.count as f64 / appending, "per s", Target::None);
    figures.add(&title("the slowest batch of 1000"), slowest * 1000.0, "ms", Target::None);
    stored.close().await.map_err(said)?;
    let bytes = (subject.bytes("events.db")? - before) / made.count as f64;
    figures.add(&title("bytes in the store, of each"), bytes, "bytes", Target::None);
    Ok(())
}

/// Appends the events of these numbers; the seconds of all, and of the slowest batch. Reading them is part of it.
async fn appended(
    stored: &dyn EventStore,
    made: &Made,
    numbers: std::ops::Range<u64>,
    now: u64,
) -> Result<(f64, f64), String> {
    let (mut appending, mut slowest) = (0.0, 0.0_f64);
    for first in numbers.clone().step_by(BATCH as usize) {
        let lines = (first..numbers.end.min(first + BATCH)).map(|number| made.line(number).into());
        let lines: Vec<Arc<[u8]>> = lines.collect();
        let append = async {
            let events = lines.iter().filter_map(|line| NewEvent::read(line, now)).collect();
            stored.append(events).await
        };
        let ((), taken) = seconds(append).await?;
        appending += taken;
        slowest = slowest.max(taken);
    }
    Ok((appending, slowest))
}

fn searches(
    operator: &mut Console,
    made: &Made,
    calls: u64,
    title: &impl Fn(&str) -> String,
    figures: &mut Figures,
) -> Result<(), String> {
    let mut search = |what: &str, expected: Option<u64>, query: &dyn Fn(u64) -> String| {
        let mut examined = 0;
        timed(&title(what), calls, Some(SEARCH), figures, |call| {
            // Anywhere among the events, another one each time.
            let number = mixed(call) % made.count;
            let answer = operator.show(&format!("events/_search?{}", query(number)))?.json();
            let found = answer["events"].as_array().map_or(0, Vec::len) as u64;
            examined = examined.max(answer["examined"].as_u64().unwrap_or_default());
            match expected {
                Some(expected) if found != expected => Err(format!("{} found {found}", query(number))),
                _ => Ok(()),
            }
        })?;
        println!("    {examined} examined at most");
        Ok::<(), String>(())
    };
    search("by reference", Some(1), &|number| format!("filter.reference={}", reference(number)))?;
    search("by identity", None, &|number| format!("filter.ref=ip:{}", address(number)))?;
    search("by route", None, &|number| format!("filter.route=route-{}", route(number)))?;
    search("by rule", None, &|number| format!("filter.rule={}", rule(number)))?;
    search("a minute", None, &|number| format!("from={}&until={}", made.at(number), made.at(number) + 60_000))?;
    search("a rule of a route in an hour", None, &|number| {
        let at = made.at(number);
        format!("filter.rule={}&filter.route=route-{}&from={at}&until={}", rule(number), route(number), at + 3_600_000)
    })?;
    search("refused ones of a route", None, &|number| {
        format!("filter.outcome=blocked&filter.route=route-{}", route(number))
    })?;
    search("the newest 500", Some(500.min(made.count)), &|_| "limit=500".to_owned())?;
    search("observed ones, of a node", None, &|_| "filter.outcome=observed&filter.node=edge-1".to_owned())?;
    search("what no event has together", Some(0), &|number| {
        format!("filter.route=route-{}&filter.category=traffic&filter.type=trail", route(number))
    })?;
    timed(&title("all of one reference"), calls, Some(SEARCH), figures, |call| {
        let path = format!("events/_reference?reference={}", reference(mixed(call) % made.count));
        operator.show(&path).map(drop)
    })?;
    timed(&title("the status"), calls, Some(SEARCH), figures, |_| operator.show("events/_status").map(drop))
}

/// What it costs that the oldest give way.
async fn retention(
    subject: &Subject,
    made: &Made,
    title: &impl Fn(&str) -> String,
    figures: &mut Figures,
) -> Result<(), String> {
    let left = made.count - made.count / 10;
    let stored = open(subject, EventLimits { events: left, ..LIMITS }).await?;
    let all = async {
        // At a server, the copy of this process removes whole blocks while it reads.
        while stored.status().await?.events + BATCH < left {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok::<_, StoreError>(())
    };
    seconds(all).await?;
    let before = stored.status().await.map_err(said)?.events;
    let ((), taken) = seconds(stored.sweep(clock::now_millis())).await?;
    let after = stored.status().await.map_err(said)?.events;
    if after > left {
        return Err(format!("{after} events are left of {before}, not {left}"));
    }
    if before > after {
        let each = taken * 1e6 / (before - after) as f64;
        figures.add(&title("removed by a sweep"), (before - after) as f64, "events", Target::None);
        figures.add(&title("for each of them"), each, "us", Target::None);
    }
    let now = clock::now_millis();
    let more = Made { count: made.count / 20, first: now - SPAN / 2 };
    let (appending, slowest) = appended(&*stored, &more, made.count..made.count + more.count, now).await?;
    figures.add(&title("written where the oldest give way"), more.count as f64 / appending, "per s", Target::None);
    figures.add(&title("the slowest batch of 1000 there"), slowest * 1000.0, "ms", Target::None);
    stored.close().await.map_err(said)
}

/// Events over a span of time.
struct Made {
    count: u64,
    first: u64,
}

impl Made {
    fn at(&self, number: u64) -> u64 {
        self.first + number % self.count.max(1) * (SPAN / 2) / self.count.max(1)
    }

    /// Two of three are about a decision, the others have the matches of the WAF.
    fn line(&self, number: u64) -> Vec<u8> {
        let (at, route) = (self.at(number), route(number));
        let is_refused = number % 5 < 2;
        let mut event: Value = json!({
            "@type": "SvcSecurityEvent", "@id": format!("event_{number:016x}"), "@timestamp": clock::rfc3339(at),
            "source": { "ip": address(number), "apikey": null, "user": null },
            "route": { "id": format!("route-{route}"), "name": format!("Shop {route}"), "node": format!("edge-{}", number % 4) },
            "http": { "request_id": reference(number), "method": "GET", "host": "shop.example",
                "path": format!("/items/{}", mixed(number) % 5000), "status": if is_refused { 403 } else { 200 } },
        });
        let score = 40 + mixed(number) % 60;
        let reason = format!("score {score} reaches tier 1 of policy `Standard`");
        let rest = if number.is_multiple_of(3) {
            let found = |rule: u64| {
                json!({ "rule_id": rule, "phase": 2, "msg": "SQL Injection Attack Detected via libinjection", "logdata":
                    format!("Matched Data: s&1c found within ARGS:id: {number}' or 1=1"), "severity": "CRITICAL",
                    "tags": ["attack-sqli", "paranoia-level/1"], "variable": "ARGS:id", "value": format!("{number}' or 1=1") })
            };
            let (one, other) = (rule(number), 949_110);
            let refusal =
                json!({ "status": 403, "rule_id": one, "msg": "SQL Injection Attack Detected via libinjection" });
            json!({
                "@type": "SvcWafTrailEvent", "config": { "id": "shop", "name": "Shop" }, "blocking": is_refused,
                "block": if is_refused { refusal } else { Value::Null }, "would_block": null,
                "matches": [found(one), found(other)], "rule_ids": [one, other], "matched": 2, "limits": [],
                "uninspected": [], "scores": { "inbound": 5, "outbound": null },
            })
        } else {
            json!({
                "event": { "kind": "alert", "category": if number.is_multiple_of(7) { "traffic" } else { "threat" },
                    "action": if is_refused { "deny" } else { "log" },
                    "outcome": if is_refused { "blocked" } else { "observed" }, "severity": 3, "module": "threat-response",
                    "dataset": "svc.threat" },
                "threat": { "score": score, "tags": ["waf:match"], "signals": [{ "source": "waf.seclang", "kind": "waf",
                    "weight": score, "effective_weight": score, "tag": "waf:match", "confidence": 1,
                    "detail": format!("rule {}", rule(number)), "at": at }] },
                "incident": { "id": format!("incident_{:016x}", mixed(number) % 20_000), "count": number / 20_000 + 1 },
                "message": reason,
                "decision": { "action": "deny", "score": score, "tier": 1, "dry_run": false, "enforced": is_refused,
                    "policy": "threat-policies/standard", "reason": reason, "held_ms": 0 },
            })
        };
        if let (Some(event), Value::Object(rest)) = (event.as_object_mut(), rest) {
            event.extend(rest);
        }
        event.to_string().into_bytes()
    }
}

/// A number that looks random and is the same each time.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn reference(number: u64) -> String {
    let random = mixed(number);
    format!("{:08x}-{:04x}-4{:03x}-9a3e-{number:012x}", random >> 32, random >> 16 & 0xffff, random & 0xfff)
}

/// One of 20,000 callers.
fn address(number: u64) -> String {
    let caller = mixed(number) % 20_000;
    format!("10.1.{}.{}", caller >> 8 & 255, caller & 255)
}

/// One of 40 routes, the first of which have most requests.
fn route(number: u64) -> u64 {
    let random = mixed(number.wrapping_mul(3));
    random % 40 * (random >> 32) % 40 % (random % 39 + 1)
}

/// One of 300 rules.
fn rule(number: u64) -> u64 {
    942_100 + mixed(number.wrapping_mul(7)) % 300
}
