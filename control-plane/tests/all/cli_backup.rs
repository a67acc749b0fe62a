//! `palisade backup` and `palisade restore`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::cli_support::{Server, palisade, request, text};
use serde_json::{Value, json};

const RULESETS: &str = "/apis/palisade.svc/v1/waf-rulesets";

fn run(data: &Path, arguments: &[&str]) -> (i32, String, String) {
    let out = palisade(arguments).arg("--data").arg(data).output().unwrap();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

fn create(server: &Server, id: &str) -> u16 {
    let body = json!({ "id": id, "description": "x".repeat(5000) }).to_string();
    request(&server.rest, &server.authorization, "POST", RULESETS, &body).unwrap().0
}

fn ids(server: &Server) -> Vec<String> {
    let (_, body) = request(&server.rest, &server.authorization, "GET", RULESETS, "").unwrap();
    let list: Vec<Value> = serde_json::from_str(&body).unwrap();
    list.iter().map(|entity| entity["id"].as_str().unwrap().to_owned()).collect()
}

fn stop(mut server: Server) {
    server.signal("TERM");
    assert!(server.child.wait().unwrap().success());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.collect()
}

#[test]
fn a_backup_of_a_running_store_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("backups/one.db"));
    fs::create_dir(folder.path().join("backups")).unwrap();
    let name = file.to_str().unwrap();
    let server = Server::start(&data);
    for id in ["a", "b"] {
        assert_eq!(create(&server, id), 201);
    }
    let (code, out, err) = run(&data, &["backup", name]);
    assert!(code == 0 && out.starts_with(&format!("{name}: ")), "{out}{err}");
    assert_eq!(names(file.parent().unwrap()), ["one.db"], "one file, and nothing beside it");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, _, err) = run(&data, &["backup", name]);
    assert!(code == 1 && err.contains("exists already"), "{err}");
    assert_eq!(create(&server, "c"), 201);

    let (code, _, err) = run(&data, &["restore", name]);
    assert!(code == 1 && err.contains("another palisade process"), "{err}");
    assert_eq!(ids(&server), ["a", "b", "c"]);
    stop(server);
    let (code, out, err) = run(&data, &["restore", name]);
    assert!(code == 0 && out.contains("the old store is kept as "), "{out}{err}");
    // Beyond what either has seen: no ETag stands for two states.
    assert!(out.ends_with("revision 4\n"), "{out}");
    let kept = names(&data).into_iter().find(|name| name.contains("before-restore")).unwrap();
    let server = Server::start(&data);
    assert_eq!(ids(&server), ["a", "b"]);
    let (status, body) =
        request(&server.rest, &server.authorization, "GET", &format!("{RULESETS}/b/_history/2"), "").unwrap();
    assert!(status == 200 && body.contains("xxxxx"), "the history as well: {body}");
    assert_eq!(create(&server, "d"), 201);
    stop(server);

    // The old store is whole, and can itself be restored: into another folder, which need not exist.
    let other = folder.path().join("other");
    assert_eq!(run(&other, &["restore", data.join(kept).to_str().unwrap()]).0, 0);
    fs::copy(data.join("admin-key.json"), other.join("admin-key.json")).unwrap();
    let server = Server::start(&other);
    assert_eq!(ids(&server), ["a", "b", "c"]);
}

#[test]
fn what_the_log_holds_after_a_crash_is_backed_up_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("one.db"));
    let mut server = Server::start(&data);
    assert_eq!(create(&server, "a"), 201);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    assert!(data.join("palisade.db-wal").exists());
    assert_eq!(run(&data, &["backup", file.to_str().unwrap()]).0, 0);
    let (code, out, err) = run(&data, &["restore", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{out}{err}");
    let server = Server::start(&data);
    assert_eq!(ids(&server), ["a"]);
}

#[test]
fn what_is_no_backup_is_refused_and_the_store_stays() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    assert_eq!(create(&server, "a"), 201);
    let good = folder.path().join("good.db");
    assert_eq!(run(&data, &["backup", good.to_str().unwrap()]).0, 0);
    stop(server);
    let bytes = fs::read(&good).unwrap();
    let damaged = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        let file = folder.path().join(name);
        fs::write(&file, bytes).unwrap();
        file
    };
    let newer = folder.path().join("newer.db");
    fs::copy(&good, &newer).unwrap();
    let db = rusqlite::Connection::open(&newer).unwrap();
    db.execute("INSERT INTO schema_version VALUES (99)", []).unwrap();
    db.close().unwrap();
    let cases = [
        (damaged("empty", &|bytes| bytes.clear()), "the file is empty"),
        (damaged("text", &|bytes| *bytes = b"no database".repeat(1000)), "is not a backup"),
        (damaged("cut", &|bytes| bytes.truncate(5000)), "is not a backup"),
        (damaged("pages", &|bytes| bytes[4096..].fill(0xaa)), "is not a backup"),
        (damaged("another", &|bytes| bytes[68..72].copy_from_slice(b"GPKG")), "not one of Palisade"),
        (newer, "schema version 99"),
        (folder.path().join("missing"), "No such file"),
    ];
    let before = fs::read(data.join("palisade.db")).unwrap();
    let names_before = names(&data).len();
    for (file, part) in &cases {
        let (code, _, err) = run(&data, &["restore", file.to_str().unwrap()]);
        assert!(code == 1 && err.contains(part) && err.contains(file.to_str().unwrap()), "{}: {err}", file.display());
        assert!(fs::read(data.join("palisade.db")).unwrap() == before, "{}", file.display());
        assert_eq!(names(&data).len(), names_before, "{}: {:?}", file.display(), names(&data));
    }

    // A damaged store stops the start and a backup of it, and is replaced by a good backup.
    fs::write(data.join("palisade.db"), "rubbish").unwrap();
    for command in ["backup", "serve"] {
        let out = folder.path().join("out.db");
        let mut arguments = vec![command];
        match command {
            "backup" => arguments.push(out.to_str().unwrap()),
            _ => arguments.extend(["--listen", "127.0.0.1:0", "--xds-listen", "127.0.0.1:0"]),
        }
        let (code, _, err) = run(&data, &arguments);
        assert!(code == 1 && err.contains("is damaged") && err.contains("palisade restore"), "{command}: {err}");
        assert!(!out.exists());
    }
    assert_eq!(run(&data, &["restore", good.to_str().unwrap()]).0, 0);
    let kept = names(&data).into_iter().find(|name| name.contains("before-restore")).unwrap();
    assert_eq!(fs::read_to_string(data.join(kept)).unwrap(), "rubbish");
    assert_eq!(ids(&Server::start(&data)), ["a"]);
    let nowhere = folder.path().join("nowhere");
    let (code, _, err) = run(&nowhere, &["backup", folder.path().join("x.db").to_str().unwrap()]);
    assert!(code == 1 && err.contains("there is no store") && !nowhere.exists(), "{err}");
}
