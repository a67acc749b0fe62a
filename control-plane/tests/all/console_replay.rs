//! Replays in the console, with the real `palisade-replay`: recordings, a changed policy, and everything that can go wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::cli_support::Server;
use crate::console_support::{BEGINNING, ConsoleApi};
use crate::replay_support::{
    Desk, all_text, config, files, gone, gzipped, holding, kill, line, pause, pid, start, told, traffic,
};
use serde_json::{Value, json};
use store::events::NewEvent;

#[test]
fn a_changed_policy_is_compared_on_an_uploaded_recording() {
    let folder = tempfile::tempdir().unwrap();
    let (server, alice) = start(folder.path(), &[]);
    let (status, body) = alice.upload("Montag%20fr%C3%BCh.jsonl", traffic().as_bytes());
    assert_eq!(status, 200, "{body}");
    let recording = &body["recording"];
    assert_eq!(
        (&recording["name"], &recording["requests"], &recording["unrouted"]),
        (&json!("Montag früh.jsonl"), &json!(3), &json!(3))
    );
    assert_eq!((&recording["first_at"], &recording["by"]), (&json!("1970-01-01T00:00:01.000Z"), &json!("alice")));
    let id = recording["id"].as_str().unwrap();

    // What a save would refuse is refused with pointers, and nothing runs.
    let (status, body) =
        alice.start(id, &json!({ "id": "shop", "name": "Shop", "rules": ["SecRule ARGX \"@rx a\" \"id:1\""] }));
    assert_eq!((status, &body["error"]), (400, &json!("invalid_entity")), "{body}");
    assert_eq!(body["errors"][0]["pointer"], "/rules/0", "{body}");
    assert_eq!(alice.get("/replay/_jobs")["jobs"], json!([]));
    let two = json!([
        { "collection": "waf-configs", "id": "shop", "document": config("evil") },
        { "collection": "threat-policies", "id": "shop", "document": { "id": "shop", "name": "Shop", "tiers": [{ "min_score": 400, "action": "deny" }] } },
    ]);
    let (status, body) = alice.post("/replay/_start", &json!({ "recording": id, "changes": two }));
    assert_eq!(status, 400, "{body}");
    assert!(body["errors"][0]["pointer"].as_str().unwrap().starts_with("/changes/1/document/tiers/0"), "{body}");

    let (status, body) = alice.start(id, &config("evil"));
    assert_eq!(status, 200, "{body}");
    let job = body["job"]["id"].as_str().unwrap();
    let found = alice.until(job, &["done", "failed"]);
    assert_eq!(found["job"]["state"], "done", "{found}");
    let diff = &found["diff"];
    assert_eq!(
        (&diff["counts"]["compared"], &diff["counts"]["blocked"], &diff["counts"]["same"]),
        (&json!(3), &json!(1), &json!(2)),
        "{diff}"
    );
    let changed = &diff["changed"][0];
    assert_eq!((&changed["before"]["status"], &changed["after"]["status"]), (&json!(200), &json!(403)));
    assert_eq!((&changed["route"], &changed["rules_added"]), (&json!("shop"), &json!([7])));
    assert!(changed["request"].as_str().unwrap().starts_with("GET /?q=evil&token="), "{changed}");
    assert_eq!(
        diff["routes"],
        json!([{ "name": "shop", "changed": 1, "failed": 0, "blocked": 1, "unblocked": 0, "answer": 0, "score": 0, "rules": 0 }])
    );
    assert_eq!(diff["plugins"][0]["changed"], 1, "{diff}");
    assert_eq!(found["job"]["progress"]["parts"], 2);
    // The policy in force is as it was.
    assert_eq!(alice.get("/entities/waf-configs/shop")["rules"], config("nothing")["rules"]);

    // Nothing of the secrets is kept, nor the snapshots.
    let kept = folder.path().join("data/replay");
    assert!(!all_text(&kept).contains("sesame"));
    let all = all_text(&folder.path().join("data/contents"));
    assert!(all.contains("q=evil") && !all.contains("sesame"), "{all}");
    assert_eq!(files(&kept.join("jobs")), Vec::<String>::new());
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o700);
    told(&server, &["recording-add", id]);
}

#[test]
fn a_route_that_is_new_gone_or_renamed_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, alice) = start(folder.path(), &[]);
    let recording = alice.recording("r", line(1_000, "/?q=nothing").as_bytes());
    let chain =
        json!([{ "plugin": "SecuritySuitePreset", "config": { "threat_policy": "shop", "waf_config": "shop" } }]);
    let change = |id: &str, document: Value| json!([{ "collection": "routes", "id": id, "document": document }]);
    let blog = json!({ "id": "blog", "name": "Blog", "plugins": chain });
    let renamed = json!({ "id": "shop", "name": "Shop", "envoy_route": "store", "plugins": chain });
    const NONE: &str = "none: the global chain";
    let cases = [
        (change("blog", blog.clone()), json!("blog"), [0, 1, 0], [NONE, "blog"]),
        (change("shop", Value::Null), json!("shop"), [0, 0, 1], ["shop", NONE]),
        (change("shop", renamed), json!("shop"), [1, 0, 0], ["shop", "store"]),
        // With a second route, and none chosen, neither side puts the request into one.
        (change("blog", blog.clone()), Value::Null, [1, 0, 0], [NONE, NONE]),
    ];
    for (changes, route, counts, routes) in cases {
        let body = json!({ "recording": recording, "changes": changes, "route": route });
        let (status, answer) = alice.post("/replay/_start", &body);
        assert_eq!(status, 200, "{answer}");
        let found = alice.until(answer["job"]["id"].as_str().unwrap(), &["done", "failed"]);
        assert_eq!(found["job"]["state"], "done", "{found}");
        let diff = &found["diff"];
        let of = |name: &str| diff["counts"][name].as_u64().unwrap();
        assert_eq!([of("same"), of("blocked"), of("unblocked")], counts, "{body}: {diff}");
        let told = ["a", "b"].map(|side| {
            let facts = diff[side]["about"]["facts"].as_array().unwrap();
            facts.iter().find(|fact| fact["name"] == "route").unwrap()["value"].as_str().unwrap().to_owned()
        });
        assert_eq!(told, routes, "{body}");
    }
    let body = json!({ "recording": recording, "changes": change("blog", blog), "route": "wiki" });
    let (status, answer) = alice.post("/replay/_start", &body);
    assert_eq!((status, &answer["errors"][0]["pointer"]), (400, &json!("/route")), "{answer}");
}

#[test]
fn recordings_and_roles_and_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (server, alice) = start(folder.path(), &[]);
    let (anna, adam) = (Desk::login(&server, "anna"), Desk::login(&server, "adam"));
    let victor = Desk::login(&server, "victor");
    let of_anna = anna.recording("anna", traffic().as_bytes());
    let of_alice = alice.recording("alice", traffic().as_bytes());
    assert_eq!(victor.get("/replay/_recordings")["recordings"].as_array().unwrap().len(), 2);
    assert_eq!(victor.upload("v", traffic().as_bytes()).0, 403);
    let delete = |desk: &Desk, id: &str| desk.post("/replay/_delete", &json!({ "id": id }));
    let (status, body) = delete(&adam, &of_anna);
    assert_eq!((status, &body["error"]), (403, &json!("role")), "{body}");
    let forged = Desk { csrf: "x".to_owned(), ..Desk::login(&server, "anna") };
    for (status, body) in [forged.upload("f", traffic().as_bytes()), delete(&forged, &of_anna)] {
        assert_eq!((status, &body["error"]), (403, &json!("csrf")), "{body}");
    }
    let stranger = Desk { cookie: String::new(), csrf: String::new(), rest: server.rest.clone() };
    assert_eq!(stranger.upload("n", traffic().as_bytes()).0, 401);
    assert_eq!(delete(&anna, &of_anna).0, 200);
    assert_eq!(delete(&anna, &of_anna).1["error"], "unknown_recording");
    told(&server, &["recording-delete", &of_anna]);

    // Killed in the middle of everything: recordings stay, leftovers go.
    let kept = folder.path().join("data/replay");
    server.signal("KILL");
    drop(server);
    for leftover in ["jobs/replay_1", "incoming/upload_1"] {
        fs::create_dir_all(kept.join(leftover)).unwrap();
        fs::write(kept.join(leftover).join("before"), "secret").unwrap();
    }
    fs::create_dir(kept.join("recordings")).unwrap();
    fs::write(kept.join("recordings/recording_9.jsonl.gz"), "half").unwrap();
    fs::write(kept.join("recordings/recording_8.json"), "{").unwrap();
    let server = Server::start(&folder.path().join("data"));
    let alice = Desk::login(&server, "alice");
    let found = alice.get("/replay/_recordings");
    assert_eq!(found["recordings"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["recordings"][0]["id"], of_alice.as_str());
    assert_eq!((files(&kept.join("jobs")), files(&kept.join("incoming"))), (vec![], vec![]));
    assert_eq!(files(&folder.path().join("data/contents")), [&*of_alice]);
    // Recordings of an older release were there: the folder goes once nothing is left to move.
    while kept.join("recordings").exists() {
        pause();
    }
    let (status, body) = alice.start(&of_alice, &config("evil"));
    assert_eq!(status, 200, "{body}");
    assert_eq!(alice.until(body["job"]["id"].as_str().unwrap(), &["done", "failed"])["job"]["state"], "done");
}

#[test]
fn what_is_no_recording_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--replay-max-upload-mib", "1", "--replay-max-recordings", "2", "--replay-max-total-mib", "1"];
    let (_server, alice) = start(folder.path(), &options);
    for name in
        ["", "..", "..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "a%00b", "a%0Ab", ".hidden", "a%5Cb", "%E2%80%AEa"]
    {
        let (status, body) = alice.upload(name, traffic().as_bytes());
        assert_eq!((status, &body["error"]), (400, &json!("invalid_name")), "{name}: {body}");
    }
    let half = gzipped(&(0..20_000).map(|number| line(number, &format!("/{number}"))).collect::<String>().into_bytes());
    // One entry of 100 MiB.
    let bomb = gzipped(&[br#"{"request": {"path": "/"#.as_slice(), &vec![b'a'; 100 << 20]].concat());
    assert!(bomb.len() < 1 << 20);
    let unreadable: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("text", b"# Hello\nworld\n"),
        ("binary", &[0xff; 4096]),
        ("gzip.gz", &half[..30]),
        ("bomb.gz", &bomb),
    ];
    for (name, bytes) in unreadable {
        let (status, body) = alice.upload(name, bytes);
        assert_eq!((status, &body["error"]), (400, &json!("unreadable_recording")), "{name}: {body}");
        let why = body["error_description"].as_str().unwrap();
        assert!(why.len() < 10_000 && !why.contains("/replay/incoming"), "{why}");
    }
    // At the limit, over it with a length, and over it without one.
    let mut full = traffic().into_bytes();
    full.resize((1 << 20) - 1, b'\n');
    full.push(b'\n');
    let id = alice.recording("full", &full);
    full.push(b'\n');
    let over = alice.upload("over", &full);
    assert_eq!((over.0, &over.1["error"]), (413, &json!("payload_too_large")), "{over:?}");
    let (status, _, body) = alice.send("POST", "/replay/_upload?name=over", "application/octet-stream", &full, false);
    assert_eq!((status, &body["error"]), (413, &json!("payload_too_large")), "{body}");
    // A truncated one has what can be read.
    let (status, body) = alice.upload("half.jsonl.gz", &half[..half.len() / 2]);
    assert_eq!(status, 200, "{body}");
    assert!(
        body["recording"]["requests"].as_u64().unwrap() > 100 && body["recording"]["unreadable"].as_u64().unwrap() >= 1,
        "{body}"
    );
    let reason = body["recording"]["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("half.jsonl.gz#"), "{reason}");
    let (status, body) = alice.upload("third", traffic().as_bytes());
    assert_eq!((status, &body["error"]), (409, &json!("full")), "{body}");
    assert_eq!(alice.post("/replay/_delete", &json!({ "id": id })).0, 200);
    let kept = folder.path().join("data/replay");
    assert_eq!(files(&kept.join("incoming")), Vec::<String>::new());
    assert!(!folder.path().join("etc").exists());
}

#[test]
fn one_replay_runs_at_a_time_and_each_can_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let program = holding(folder.path());
    let (server, alice) = start(folder.path(), &["--replay-program", program.to_str().unwrap()]);
    let adam = Desk::login(&server, "adam");
    let recording = alice.recording("r", traffic().as_bytes());
    let started: Vec<String> = (0..5)
        .map(|_| {
            let (status, body) = alice.start(&recording, &config("evil"));
            assert_eq!(status, 200, "{body}");
            body["job"]["id"].as_str().unwrap().to_owned()
        })
        .collect();
    let first = pid(folder.path());
    let jobs = alice.get("/replay/_jobs");
    let states: Vec<&str> = jobs["jobs"].as_array().unwrap().iter().map(|job| job["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["waiting", "waiting", "waiting", "waiting", "running"]);
    let (status, head, body) = alice.send(
        "POST",
        "/replay/_start",
        "application/json",
        json!({ "recording": recording, "changes": [{ "collection": "waf-configs", "id": "shop", "document": config("evil") }] })
            .to_string()
            .as_bytes(),
        true,
    );
    assert_eq!((status, &body["error"]), (429, &json!("busy")), "{body}");
    assert!(head.contains("retry-after: "), "{head}");
    assert_eq!(alice.post("/replay/_delete", &json!({ "id": recording })).1["error"], "in_use");
    // The snapshots are its owner's alone.
    let own = folder.path().join("data/replay/jobs").join(&started[0]);
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(own.join("before")).unwrap().permissions().mode() & 0o777, 0o600);
    let cancel = |desk: &Desk, id: &str| desk.post("/replay/_cancel", &json!({ "id": id }));
    assert_eq!(cancel(&adam, &started[0]).0, 403);
    // One that waits, then the one that runs.
    assert_eq!(cancel(&alice, &started[1]).0, 200);
    assert_eq!(cancel(&alice, &started[1]).1["error"], "ended");
    assert_eq!(cancel(&alice, &started[0]).1["job"]["state"], "cancelled");
    let second = pid(folder.path());
    gone(&first);
    while own.exists() {
        pause();
    }
    // The child is killed by another: that one has failed, the next begins.
    kill(&second);
    let failed = alice.until(&started[2], &["failed"]);
    assert!(failed["job"]["error"].as_str().unwrap().contains("was killed"), "{failed}");
    let third = pid(folder.path());

    // The control plane is killed: nothing of the snapshots is left at the next start.
    let jobs = folder.path().join("data/replay/jobs");
    assert!(jobs.join(&started[3]).join("before").is_file());
    server.signal("KILL");
    drop(server);
    fs::remove_file(folder.path().join("hold")).unwrap();
    let server = Server::start_with(&folder.path().join("data"), &["--replay-program", program.to_str().unwrap()]);
    assert_eq!(files(&jobs), Vec::<String>::new());
    let alice = Desk::login(&server, "alice");
    let jobs_now = alice.get("/replay/_jobs");
    let states: Vec<&str> =
        jobs_now["jobs"].as_array().unwrap().iter().map(|job| job["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["failed", "failed", "failed", "cancelled", "cancelled"]);
    assert!(jobs_now["jobs"][0]["error"].as_str().unwrap().contains("control plane has stopped"), "{jobs_now}");
    let (status, body) = alice.start(&recording, &config("evil"));
    assert_eq!(status, 200, "{body}");
    assert_eq!(alice.until(body["job"]["id"].as_str().unwrap(), &["done", "failed"])["job"]["state"], "done");
    // It was released, and has found its input at its end.
    gone(&third);
    // And stopped: the child goes with it.
    fs::write(folder.path().join("hold"), "").unwrap();
    let _ = fs::remove_file(folder.path().join("pid"));
    assert_eq!(alice.start(&recording, &config("evil")).0, 200);
    let last = pid(folder.path());
    server.signal("TERM");
    let mut server = server;
    assert!(server.child.wait().unwrap().success());
    gone(&last);
    assert_eq!(files(&jobs), Vec::<String>::new());
}

#[test]
fn without_the_program_everything_else_works_and_the_answer_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, alice) = start(folder.path(), &["--replay-program", "/nowhere/palisade-replay"]);
    let kept = alice.get("/replay/_recordings");
    assert!(kept["unavailable"].as_str().unwrap().contains("--replay-program"), "{kept}");
    let (status, body) = alice.upload("r", traffic().as_bytes());
    assert_eq!((status, &body["error"]), (503, &json!("replay_unavailable")), "{body}");
    assert_eq!(alice.start("recording_1", &config("evil")).0, 503);
    assert_eq!(alice.get("/replay/_jobs")["jobs"], json!([]));
}

#[tokio::test]
async fn stored_events_become_a_recording_of_what_they_have() {
    let console = ConsoleApi::new().await;
    let anna = console.login("anna").await;
    let (nothing, wrong) = (json!({ "name": "r" }), json!({ "name": "r", "ref": "x" }));
    assert_eq!(console.post(&anna, "/replay/_record_events", &nothing).await.status, 404);
    let event = |number: u64, reference: &str, path: &str| {
        json!({
            "@type": "SvcSecurityEvent", "@id": format!("event_{number}"), "@timestamp": BEGINNING - 1000 + number,
            "event": { "category": "threat", "action": "deny", "outcome": "blocked", "module": "waf" },
            "source": { "ip": "2001:db8::7" }, "route": { "id": if number == 5 { "other" } else { "shop" } },
            "http": { "request_id": reference, "method": "GET", "host": "shop.test", "path": path, "status": 403 },
        })
    };
    // Two events of one request, one with a secret in its path, one of another route.
    let events =
        [event(1, "a", "/a"), event(2, "a", "/a"), event(3, "b", "/b"), event(4, "c", "(hidden)"), event(5, "d", "/d")];
    let new = |event: &Value| NewEvent::read(&event.to_string().into_bytes().into(), BEGINNING).unwrap();
    console.stored.append(events.iter().map(new).collect()).await.unwrap();
    assert_eq!(console.post(&anna, "/replay/_record_events", &wrong).await.body["error"], "invalid_query");
    let answer = console.post(&anna, "/replay/_record_events", &json!({ "name": "yesterday", "route": "shop" })).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let recording = &answer.body["recording"];
    assert_eq!(
        (&recording["source"], &recording["requests"], &recording["unrouted"]),
        (&json!("events"), &json!(2), &json!(0))
    );
    let kept = all_text(&console.api.folder().join("contents"));
    let lines: Vec<Value> = kept
        .lines()
        .filter(|line| line.starts_with("{\"at\""))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines.iter().map(|line| line["request"]["path"].as_str().unwrap()).collect::<Vec<_>>(),
        ["/a", "/b"],
        "{kept}"
    );
    assert_eq!(
        (&lines[0]["peer"], &lines[0]["route"], &lines[0]["status"]),
        (&json!("[2001:db8::7]:40000"), &json!("shop"), &json!(403))
    );
    assert!(lines[0]["notes"][0].as_str().unwrap().contains("headers"), "{kept}");
    let victor = console.login("victor").await;
    assert_eq!(console.post(&victor, "/replay/_record_events", &nothing).await.status, 403);
}
