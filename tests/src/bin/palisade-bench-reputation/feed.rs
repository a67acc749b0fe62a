//! A large feed, from the order to fetch it until all workers of a gateway refuse by it, beside requests.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use palisade_tests::console::Console;
use palisade_tests::figures::{Figures, Target, quantile};
use palisade_tests::gateway::{Gateway, route};
use palisade_tests::http::Request;
use palisade_tests::load::{Load, Plan};
use palisade_tests::process::wait_for;
use serde_json::json;

use crate::lists::{CATALOGUE, Files, Random, networks};

/// Other feeds that the table is made of.
const OTHERS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(120);
/// The caller by whom a round is seen: each round lists another one.
const SIGN: [u8; 3] = [192, 0, 2];

pub(crate) fn measure(lines: u32, rounds: usize, figures: &mut Figures) -> Result<(), String> {
    let files = Files::start().map_err(|error| error.to_string())?;
    let mut random = Random(5);
    files.put("large", "192.0.2.1\n".to_owned());
    for (id, entries, prefix) in CATALOGUE.iter().take(OTHERS) {
        files.put(id, networks(*entries, *prefix, &mut random));
    }
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({
            "gateway": { "filters": ["preset"] }, "identity": { "trusted_hops": 1 },
            "security": { "ledger": { "enabled": false } },
        }));
        for (id, ..) in CATALOGUE.iter().take(OTHERS) {
            control
                .create("threat-feeds", &json!({ "id": id, "url": files.url(id), "allow_private": true, "weight": 1 }));
        }
        let large = json!({ "id": "large", "url": files.url("large"), "allow_private": true, "action": "block" });
        control.create("threat-feeds", &large);
        let plugins = json!([{ "plugin": "SvcIpReputation", "plugin_index": 3, "config": { "status": 451 } }]);
        control.create("routes", &route("demo", backend, plugins));
    });
    gateway.until(&sign(1), 451, PATIENCE);
    let console = Console::login(&gateway.control);
    // A caller that no list has.
    let clean = Request::get("/").header("x-forwarded-for", "10.1.2.3").encode();
    let plan =
        Plan { to: gateway.address, connections: 4, requests: vec![clean], pause: Duration::from_millis(5), cpu: None };
    let load = Load::start(plan);
    let mut times = Vec::new();
    for round in 0..rounds {
        let last = u8::try_from(round + 2).map_err(|_| "too many rounds".to_owned())?;
        let [one, two, three] = SIGN;
        files.put(
            "large",
            format!("{}{}\n", networks(lines - 1, 32, &mut random), Ipv4Addr::new(one, two, three, last)),
        );
        let began = Instant::now();
        let ordered = {
            let console = console.clone();
            std::thread::spawn(move || console.call("reputation/_refresh", &json!({ "feed": "large", "force": true })))
        };
        wait_for("all workers refuse", PATIENCE, || {
            let statuses = gateway.statuses_of_all_workers(&sign(last));
            statuses.iter().all(|status| *status == 451).then_some(())
        })?;
        times.push(began.elapsed().as_secs_f64());
        let answer = ordered.join().map_err(|_| "the refresh failed".to_owned())?;
        if answer["done"] != true {
            return Err(format!("the list was not taken: {answer}"));
        }
    }
    let report = load.stop();
    let failed: u64 = report.statuses.iter().filter(|(status, _)| **status != 200).map(|(_, count)| count).sum();
    let mut all = times.clone();
    figures.add(
        &format!("{lines} lines in force on two workers, median"),
        quantile(&mut all, 0.5),
        "s",
        Target::AtMost(3.0),
    );
    figures.add("the same, longest", quantile(&mut times, 1.0), "s", Target::None);
    #[allow(clippy::cast_precision_loss, reason = "counts of one run are small")]
    let (answers, lost) = (report.answers() as f64, (report.dropped + failed) as f64);
    figures.add("requests beside it", answers, "", Target::None);
    figures.add("of them dropped or answered with another status", lost, "", Target::AtMost(0.0));
    Ok(())
}

fn sign(last: u8) -> Request {
    let [one, two, three] = SIGN;
    Request::get("/").header("x-forwarded-for", Ipv4Addr::new(one, two, three, last).to_string())
}
