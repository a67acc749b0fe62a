//! What one decision, and a change of entities, costs on each store. Nothing is asserted of the figures: `--no-capture` shows them.

use std::time::{Duration, Instant};

use base::identity::Identity;
use base::search::Search;
use serde_json::json;
use store::counts::{BudgetTake, Counted};
use store::fabric::{Ban, BanQuery, Note};
use store::{EntityChange, Origin, SqliteOptions, SqliteStore, Store};

use crate::server::RedisServer;

const CALLS: u64 = 300;

async fn measure(name: &str, store: &dyn Store) {
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..CALLS {
        let of = Counted { scope: "s".into(), key: number, slice: 9, first: 3, until_millis: 9, node: "n".into() };
        let since = now();
        store.budget_take(BudgetTake { of, amount: 1, limit: 10 }).await.unwrap();
        times[0].push(since.elapsed());
        let since = now();
        store.puzzle_spend(&number.to_string(), 9).await.unwrap();
        times[1].push(since.elapsed());
    }
    for (what, mut times) in ["budget admission", "spent puzzle"].into_iter().zip(times) {
        times.sort();
        let at = |share: usize| times[times.len() * share / 100];
        println!("{name}: one {what}: median {:?}, 99% {:?}", at(50), at(99));
    }
}

/// Many at once share commits.
async fn measure_many(name: &str, store: std::sync::Arc<dyn Store>) {
    let since = now();
    let calls: Vec<_> = (0..5000_u64)
        .map(|number| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move { store.puzzle_spend(&format!("m{number}"), 9).await.unwrap() })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let per_second = 5000.0 / since.elapsed().max(Duration::from_micros(1)).as_secs_f64();
    println!("{name}: 5000 puzzles at once: {per_second:.0} each second");
}

/// 10,000 entities of 4 KiB, as one change and one by one.
async fn measure_entities(name: &str, store: &dyn Store) {
    let change = |number: u64, expected: u64| EntityChange {
        collection: "c".into(),
        id: format!("{number:05}"),
        expected,
        body: Some(format!("{expected}{}", "x".repeat(4096))),
        origin: Origin::default(),
    };
    for (what, expected) in [("created", 0), ("replaced", 1), ("replaced again", 2)] {
        let changes = (0..10_000).map(|number| change(number, expected)).collect();
        let since = now();
        store.entities_write(changes, None).await.unwrap();
        println!("{name}: 10000 entities {what}: {:?}", since.elapsed());
    }
    let mut times = Vec::new();
    for number in 0..CALLS {
        let since = now();
        store.entities_write(vec![change(number, 3)], None).await.unwrap();
        times.push(since.elapsed());
    }
    times.sort();
    println!(
        "{name}: one entity replaced: median {:?}, 99% {:?}",
        times[times.len() / 2],
        times[times.len() * 99 / 100]
    );
}

/// Searches in as many bans as `PALISADE_BANS` says, as gateways make them: with a signal, a tag and a timeline.
async fn measure_searches(name: &str, store: &dyn Store, count: u64) {
    const NOW: u64 = 1_800_000_000_000;
    const REASONS: [&str; 4] = [
        "rule 949110: Inbound Anomaly Score Exceeded",
        "the address is on a feed",
        "password spraying",
        "a decoy path",
    ];
    let ban = |number: u64| Ban {
        key: format!("ip:{}.{}.{}.7", 10 + (number >> 16), number >> 8 & 255, number & 255),
        reason: format!("score {} reaches tier 3 of policy `Standard`: {}", number % 90, REASONS[number as usize % 4]),
        tags: vec!["waf:match".into(), format!("route-{}", number % 40)],
        until: NOW + 3_600_000,
        issued_at: NOW,
        issued_by: format!("gateway-{}", number % 7),
        by_hand: true,
        signals: vec![
            json!({ "source": "waf.seclang", "kind": "waf", "weight": 50, "tag": "waf:match", "detail": "rule 942100" }),
        ],
        ..Ban::default()
    };
    for first in (0..count).step_by(1000) {
        let bans = (first..count.min(first + 1000)).map(ban).collect();
        store.bans_issue(bans, NOW, Note::none()).await.unwrap();
    }
    println!("{name}: {} bans", store.bans_count(NOW).await.unwrap());
    for text in ["", "10.200.", "11.1", "949110", "spraying", "gateway-3", "route-17", "nothing like it"] {
        let search = Search::of(text, Identity::parse);
        let query = BanQuery { search, take: 1000, ..BanQuery::default() };
        let (mut times, mut total) = (Vec::new(), 0);
        for _ in 0..10 {
            let since = now();
            total = store.bans_page(NOW, query.clone()).await.unwrap().total;
            times.push(since.elapsed());
        }
        times.sort();
        println!("{name}: `{text}`, {total} found: median {:?}, slowest {:?}", times[5], times[9]);
    }
}

/// `PALISADE_BANS` is the number of bans.
#[tokio::test(flavor = "multi_thread")]
async fn costs_of_searches_in_bans() {
    let count = std::env::var("PALISADE_BANS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000_u64);
    let folder = tempfile::tempdir().unwrap();
    measure_searches("embedded", &SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap(), count).await;
    let Some(server) = RedisServer::start().await else { return };
    measure_searches("redis", &server.open().await, count).await;
}

#[allow(clippy::disallowed_methods, reason = "a measurement")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test(flavor = "multi_thread")]
async fn costs_of_one_decision() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::sync::Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
    measure("embedded", &*file).await;
    measure_entities("embedded", &*file).await;
    measure_many("embedded", file).await;
    let Some(server) = RedisServer::start().await else { return };
    let redis = std::sync::Arc::new(server.open().await);
    measure("redis, appendfsync always", &*redis).await;
    measure_entities("redis, appendfsync always", &*redis).await;
    measure_many("redis, appendfsync always", redis).await;
    server.ask("CONFIG SET appendfsync everysec");
    measure_many(
        "redis, appendfsync everysec",
        std::sync::Arc::new(server.open_at(&format!("{}?prefix=x", server.url())).await.unwrap()),
    )
    .await;
}
