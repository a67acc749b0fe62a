//! Recordings and replays of several control planes on one Redis, and uploads that are cut off by `kill -9`.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use palisade_tests::proxy::{Network, Proxy};
use palisade_tests::redis::Redis;
use serde_json::{Value, json};

use crate::cli_support::Server;
use crate::replay_support::{Desk, config, files, gone, holding, line, pid, start, start_on_store, traffic};

/// Another control plane on the store of one with this data.
fn beside(first: &Path, folder: &Path, options: &[&str]) -> Server {
    let data = folder.join("other");
    fs::create_dir(&data).unwrap();
    fs::copy(first.join("admin-key.json"), data.join("admin-key.json")).unwrap();
    Server::start_with(&data, options)
}

fn ids(desk: &Desk) -> Vec<String> {
    let kept = desk.get("/replay/_recordings");
    let ids = kept["recordings"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
    ids.collect()
}

fn state(desk: &Desk, job: &str) -> Value {
    desk.get(&format!("/replay/_job?id={job}"))["job"]["state"].clone()
}

#[test]
fn what_is_uploaded_at_one_is_replayed_and_deleted_at_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Redis::start();
    let program = holding(folder.path());
    let url = redis.url();
    let options = ["--store", &*url, "--replay-program", program.to_str().unwrap()];
    let (first, alice) = start_on_store(folder.path(), &options);
    let second = beside(&folder.path().join("data"), folder.path(), &options);
    let other = Desk::login(&second, "alice");
    assert_eq!(alice.get("/replay/_recordings")["limits"]["total_bytes"], 256 << 20);

    let recording = alice.recording("shop.jsonl", traffic().as_bytes());
    assert_eq!(ids(&other), [&*recording]);
    let (status, body) = other.start(&recording, &config("evil"));
    assert_eq!(status, 200, "{body}");
    let job = body["job"]["id"].as_str().unwrap().to_owned();
    let child = pid(folder.path());
    alice.until(&job, &["running"]);
    assert_eq!(alice.post("/replay/_delete", &json!({ "id": recording })).1["error"], "in_use");
    // Its snapshots are there alone.
    assert_eq!(files(&folder.path().join("data/replay/jobs")), Vec::<String>::new());
    assert_eq!(files(&folder.path().join("other/replay/jobs")), [&*job]);
    // One that runs at the other is ended here.
    assert_eq!(alice.post("/replay/_cancel", &json!({ "id": job })).1["job"]["state"], "cancelled");
    gone(&child);
    fs::remove_file(folder.path().join("hold")).unwrap();
    let (status, body) = other.start(&recording, &config("evil"));
    assert_eq!(status, 200, "{body}");
    let job = body["job"]["id"].as_str().unwrap().to_owned();
    let found = alice.until(&job, &["done", "failed"]);
    assert_eq!(found["diff"]["counts"]["blocked"], 1, "{found}");

    // The control plane of one that runs is killed: the other says so, and the recording can be deleted.
    fs::write(folder.path().join("hold"), "").unwrap();
    let _ = fs::remove_file(folder.path().join("pid"));
    let cut_off = other.start(&recording, &config("evil")).1["job"]["id"].as_str().unwrap().to_owned();
    let child = pid(folder.path());
    alice.until(&cut_off, &["running"]);
    second.signal("KILL");
    fs::remove_file(folder.path().join("hold")).unwrap();
    gone(&child);
    assert_eq!(state(&alice, &cut_off), "running", "that takes longer than its beat");
    let failed = alice.until(&cut_off, &["failed", "done"]);
    assert!(failed["job"]["error"].as_str().unwrap().contains("its control plane has stopped"), "{failed}");
    assert_eq!(state(&alice, &job), "done", "results stay");
    assert_eq!(alice.post("/replay/_delete", &json!({ "id": recording })).0, 200);
    drop(second);
    // What is kept outlives the process.
    let recording = alice.recording("again.jsonl", traffic().as_bytes());
    first.signal("KILL");
    drop(first);
    let first = Server::start_with(&folder.path().join("data"), &options);
    let alice = Desk::login(&first, "alice");
    assert_eq!(ids(&alice), [recording]);
    let result = alice.get(&format!("/replay/_job?id={job}"));
    assert_eq!(result["diff"], found["diff"]);
}

/// A recording of several chunks: what is in it cannot be compressed well.
fn large() -> Vec<u8> {
    let mut random = 7_u64;
    let mut next = || {
        // As of a linear congruential generator; its low bits are not used.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[(random >> 58) as usize])
    };
    let lines = (0..2_000).map(|number| line(number, &format!("/{}", (0..6_000).map(|_| next()).collect::<String>())));
    lines.collect::<String>().into_bytes()
}

/// An upload in the background; the desk's control plane may be killed meanwhile.
fn uploading(desk: &Desk, bytes: Vec<u8>) -> JoinHandle<()> {
    let desk = Desk { rest: desk.rest.clone(), cookie: desk.cookie.clone(), csrf: desk.csrf.clone() };
    std::thread::spawn(move || desk.send_and_forget("/replay/_upload?name=large", &bytes))
}

/// Waits for contents of a recording, and kills its control plane in the midst of them.
fn strike(server: &mut Server, upload: JoinHandle<()>, mut there: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if there() || upload.is_finished() {
            break;
        }
        #[allow(clippy::disallowed_methods, reason = "a process is waited for, in no filter")]
        std::thread::sleep(Duration::from_millis(1));
    }
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    upload.join().unwrap();
}

fn chunks(contents: &Path) -> Vec<PathBuf> {
    let owners = fs::read_dir(contents).into_iter().flatten().flatten();
    owners.flat_map(|owner| fs::read_dir(owner.path()).into_iter().flatten().flatten()).map(|one| one.path()).collect()
}

#[test]
fn an_upload_that_is_killed_midway_is_not_listed_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, mut alice) = start(folder.path(), &[]);
    let (data, bytes) = (folder.path().join("data"), large());
    let contents = data.join("contents");
    let (mut kept, mut midway) = (Vec::<String>::new(), 0);
    for round in 0..4 {
        let (upload, before) = (uploading(&alice, bytes.clone()), chunks(&contents).len());
        // Another number of chunks in each round.
        strike(&mut server, upload, || chunks(&contents).len() > before + round);
        let owners = if contents.exists() { files(&contents) } else { Vec::new() };
        server = Server::start(&data);
        alice = Desk::login(&server, "alice");
        let now = ids(&alice);
        match now.len() - kept.len() {
            0 => midway += usize::from(owners.len() > kept.len()),
            more => assert_eq!(more, 1, "{now:?}"),
        }
        kept = now;
        let mut expected = kept.clone();
        expected.sort();
        assert_eq!(files(&contents), expected, "contents are those of recordings that are listed");
    }
    assert!(midway > 0, "no upload was cut off");
    // Those that are listed are whole, and so is the next one.
    kept.push(alice.recording("whole", &bytes));
    for recording in kept {
        let of: Vec<Value> = alice.get("/replay/_recordings")["recordings"].as_array().unwrap().clone();
        let about = of.iter().find(|one| one["id"] == *recording).unwrap();
        let own = contents.join(&recording);
        let stored: u64 = files(&own).iter().map(|name| fs::metadata(own.join(name)).unwrap().len()).sum();
        assert_eq!((about["bytes"].as_u64(), about["requests"].as_u64()), (Some(stored), Some(2_000)));
        assert!(files(&own).len() > 4, "{} chunks", files(&own).len());
    }
}

#[test]
fn an_upload_to_a_server_that_is_killed_midway_is_listed_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Redis::start();
    let network = Proxy::start(redis.address());
    let url = redis.url();
    let (first, alice) = start_on_store(folder.path(), &["--store", &url]);
    let slow = format!("redis://{}", network.address());
    let mut second = beside(&folder.path().join("data"), folder.path(), &["--store", &slow]);
    let other = Desk::login(&second, "alice");
    let bytes = large();
    let upload = uploading(&other, bytes.clone());
    let held = || redis.cli(&["--scan", "--pattern", "{palisade}:contents:*"]);
    strike(&mut second, upload, || {
        let there = !held().is_empty();
        if there {
            // No further chunk arrives.
            network.set(Network::BlackHole);
        }
        there
    });
    let half = held();
    assert!(half.starts_with("{palisade}:contents:recording_") && half.lines().count() == 1, "{half}");
    assert_eq!(ids(&alice), Vec::<String>::new());
    let chunks: u64 = redis.cli(&["hlen", &half]).parse().unwrap();
    let whole = alice.recording("whole", &bytes);
    assert_eq!(ids(&alice), [&*whole]);
    let all: u64 = redis.cli(&["hlen", &format!("{{palisade}}:contents:{whole}")]).parse().unwrap();
    assert!((1..all).contains(&chunks), "{chunks} of {all} chunks were there");
    let (status, body) = alice.start(&whole, &config("evil"));
    assert_eq!(status, 200, "{body}");
    let found = alice.until(body["job"]["id"].as_str().unwrap(), &["done", "failed"]);
    assert_eq!(found["diff"]["counts"]["compared"], 2_000, "{}", found["job"]);
    drop(first);
}
