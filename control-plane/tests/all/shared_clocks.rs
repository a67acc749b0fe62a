//! Two control planes on one Redis, of which the clock of one is some seconds ahead.

use std::collections::BTreeSet;
use std::time::Duration;

use palisade_tests::parts;
use palisade_tests::redis::Redis;
use serde_json::{Value, json};

use crate::alerts_support::{Channels, World};
use crate::cli_support::Server;
use crate::shared_support::{incidents, keys, leads, told, until};

/// By how much it is ahead.
const SKEW: Duration = Duration::from_secs(2);
/// How long the ban lasts: longer than the difference.
const BAN: Duration = Duration::from_secs(4);

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn bans_alerts_incidents_and_leadership_bear_clocks_that_differ() {
    let Some(library) = parts::faketime() else {
        println!("LEFT OUT: there is no libfaketime here: run `make faketime`");
        eprintln!("LEFT OUT: there is no libfaketime here: run `make faketime`");
        return;
    };
    let (redis, folder) = (Redis::start(), tempfile::tempdir().unwrap());
    let [first, second] = ["one", "other"].map(|name| folder.path().join(name));
    let url = redis.url();
    let mut one = World::start_on(&first, &["--store", &url]).await;
    until("the first one leads", async || leads(&one)).await;
    std::fs::create_dir_all(&second).unwrap();
    std::fs::copy(first.join("admin-key.json"), second.join("admin-key.json")).unwrap();
    let mut ahead = World::with(Server::start_as(&second, |mut command| {
        command.args(["--outbound-allow", "127.0.0.0/8", "--store", &url]);
        command.env("LD_PRELOAD", &library).env("FAKETIME", format!("+{}s", SKEW.as_secs()));
        // Only the wall clock differs between machines.
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command
    }))
    .await;
    let mut channel = Channels::start(&[]).await;
    one.rule("r", json!({ "channel": { "kind": "webhook", "url": channel.url }, "min_score": 0, "min_count": 2 }));
    until("the rule is known", async || ahead.console("GET", "_status", &Value::Null)["alerts"]["rules"] == 1).await;

    // Of two bans, one by each clock, the ends are the same moments for both gateways.
    let mut until_millis = Vec::new();
    for (key, hand) in [("ip:192.0.2.1", true), ("ip:192.0.2.2", false)] {
        let before = base::clock::now_millis() + if hand { 0 } else { millis(SKEW) };
        let body = json!({ "ref": key, "duration_seconds": BAN.as_secs() });
        let world = if hand { &one } else { &ahead };
        assert_eq!(world.console("POST", "_ban", &body)["done"], true);
        let ends = told(&mut one, key, |ban| ban.until_millis > 0).await.until_millis;
        assert_eq!(told(&mut ahead, key, |ban| ban.until_millis > 0).await.until_millis, ends);
        assert!(ends >= before + millis(BAN), "{ends} of {before}");
        until_millis.push(ends);
    }
    // Events at both are one incident, and one alert.
    for world in [&one, &ahead] {
        for _ in 0..2 {
            world.event("192.0.2.9", 1.0).await;
        }
    }
    until("one incident", async || [&one, &ahead].iter().all(|world| incidents(world).iter().any(|row| row.2 == 4)))
        .await;
    channel.next().await;
    let bans = |world: &World| keys(world, "_bans", "bans", "key");
    // Each ends its bans by its own clock. Meanwhile one of them leads at every moment.
    let gone = |world: &World, key: &str| !bans(world).contains(key);
    until("the one that is ahead ends the first", async || {
        assert!(leads(&one) && !leads(&ahead));
        gone(&ahead, "ip:192.0.2.1")
    })
    .await;
    assert!(base::clock::now_millis() + millis(SKEW) >= until_millis[0], "not before it has ended by its own clock");
    until("the other one ends it", async || {
        assert!(leads(&one) && !leads(&ahead));
        gone(&one, "ip:192.0.2.1")
    })
    .await;
    assert!(base::clock::now_millis() >= until_millis[0], "not before it has ended by its own clock");
    until("all have ended", async || bans(&one).is_empty() && bans(&ahead) == BTreeSet::new()).await;
    assert!(channel.requests.is_empty(), "the alert came twice");
}
