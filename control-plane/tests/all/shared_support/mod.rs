//! Two control planes on one Redis, over networks that can fail.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use palisade_tests::proxy::Proxy;
use palisade_tests::redis::Redis;
use serde_json::Value;
use snapshot::BanChange;

use crate::alerts_support::{LONG, World};
use crate::cli_support::request;

/// Two control planes, each with a gateway's link and a way of its own to the server. The first one leads.
pub(crate) struct Pair {
    pub(crate) one: World,
    pub(crate) other: World,
    pub(crate) data: [PathBuf; 2],
    pub(crate) networks: [Proxy; 2],
    pub(crate) redis: Redis,
    _folder: tempfile::TempDir,
}

impl Pair {
    pub(crate) async fn start() -> Pair {
        Pair::start_with("").await
    }

    /// The same with options of the store's URL.
    pub(crate) async fn start_with(options: &str) -> Pair {
        let redis = Redis::start();
        let folder = tempfile::tempdir().unwrap();
        let data = ["one", "other"].map(|name| folder.path().join(name));
        let networks = [(); 2].map(|()| Proxy::start(redis.address()));
        let [first, second] = networks.each_ref().map(|network| format!("redis://{}{options}", network.address()));
        let one = World::start_on(&data[0], &["--store", &first]).await;
        until("the first one leads", async || leads(&one)).await;
        let other = World::beside(&data[0], &data[1], &["--store", &second]).await;
        Pair { one, other, data, networks, redis, _folder: folder }
    }

    pub(crate) fn both(&self) -> [&World; 2] {
        [&self.one, &self.other]
    }
}

pub(crate) fn leads(world: &World) -> bool {
    metric(world, "palisade_control_plane_leads") == 1.0
}

/// The next word on the ban of a key that the gateway of a control plane is told; `wanted` says which.
pub(crate) async fn told(world: &mut World, key: &str, wanted: impl Fn(&BanChange) -> bool) -> BanChange {
    let heard = async {
        loop {
            let down = world.down.message().await.unwrap().expect("the stream has ended");
            if let Some(ban) = down.bans.into_iter().find(|ban| ban.key == key && wanted(ban)) {
                return ban;
            }
        }
    };
    tokio::time::timeout(LONG, heard).await.unwrap_or_else(|_| panic!("the gateway is told nothing of {key}"))
}

/// What a list of the console has in a field.
pub(crate) fn keys(world: &World, path: &str, list: &str, field: &str) -> BTreeSet<String> {
    let answer = world.console("GET", path, &Value::Null);
    answer[list].as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
}

/// The value of a metric, with its labels.
pub(crate) fn metric(world: &World, name: &str) -> f64 {
    let (_, metrics) = request(&world.server.rest, "", "GET", "/metrics", "").unwrap();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    line.unwrap_or_else(|| panic!("there is no {name}"))
}

pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let ends = tokio::time::Instant::now() + LONG;
    while !holds().await {
        assert!(tokio::time::Instant::now() < ends, "{what}: never");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The incidents of a control plane by key: id, events, state.
pub(crate) fn incidents(world: &World) -> Vec<(String, Value, Value, Value)> {
    let answer = world.console("GET", "_incidents", &Value::Null);
    let mut all: Vec<_> = answer["incidents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (one["key"].as_str().unwrap().to_owned(), one["id"].clone(), one["count"].clone(), one["state"].clone())
        })
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}
