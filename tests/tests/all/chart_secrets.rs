//! The secrets of an installation in Kubernetes: made once, kept, and enough for a real Redis and real control planes.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade_tests::control_plane::{ControlPlane, ENTITIES};
use palisade_tests::parts;
use palisade_tests::process::wait_for;
use palisade_tests::redis::Redis;
use serde_json::{Value, json};

use crate::chart::{helm, objects};
use crate::examples::{documents, read};

const PATIENCE: Duration = Duration::from_secs(30);

/// The Secrets of these objects, by their names.
fn secrets(objects: &[Value]) -> BTreeMap<String, Value> {
    let all = objects.iter().filter(|object| object["kind"] == "Secret");
    all.map(|secret| (secret["metadata"]["name"].as_str().unwrap().to_owned(), secret["stringData"].clone())).collect()
}

/// The secrets of one rendering with the defaults; in `given` what a cluster has.
fn made(given: Option<Value>) -> Option<BTreeMap<String, Value>> {
    let render = match given {
        Some(given) => json!({"values": {}, "secrets": given}),
        None => json!({"values": {}}),
    };
    let text = helm(&[render])?.remove(0).unwrap_or_else(|why| panic!("{why}"));
    Some(secrets(&objects(&text)))
}

#[test]
fn secrets_are_made_at_the_installation_and_kept_afterwards() {
    let (Some(first), Some(second)) = (made(None), made(None)) else { return };
    let names: Vec<&str> = first.keys().map(String::as_str).collect();
    assert_eq!(names, ["palisade-admin-key", "palisade-node-token-default", "palisade-node-tokens", "palisade-redis"]);
    for (name, key) in [("palisade-redis", "password"), ("palisade-node-tokens", "token-default")] {
        let value = first[name][key].as_str().unwrap();
        assert!(value.len() == 43 && first[name] != second[name], "{name}: {value}");
    }
    let key: Value = serde_json::from_str(first["palisade-admin-key"]["admin-key.json"].as_str().unwrap()).unwrap();
    assert_eq!(key["secret"].as_str().unwrap().len(), 43);
    let token = first["palisade-node-tokens"]["token-default"].as_str().unwrap();
    assert_eq!(first["palisade-node-tokens"]["node-tokens"], format!("node=gateway-* {token}\n"));
    assert!(first["palisade-node-token-default"]["node-token.yaml"].as_str().unwrap().contains(token));
    // An upgrade: Helm asks the cluster what it has.
    let encoded = |name: &str| {
        let fields = first[name].as_object().unwrap().iter();
        fields
            .map(|(key, value)| (key.clone(), json!(STANDARD.encode(value.as_str().unwrap()))))
            .collect::<serde_json::Map<_, _>>()
    };
    let given: serde_json::Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!(encoded(name)))).collect();
    assert_eq!(made(Some(json!(given))).unwrap(), first);
    // A new gateway gets a token, the others keep theirs.
    let values = json!({"gateways": [{"name": "default", "nodes": "gateway-*", "kind": "other"}, {"name": "new", "nodes": "n-*", "kind": "other"}]});
    let text = helm(&[json!({"values": values, "secrets": given})]).unwrap().remove(0).unwrap();
    let lines = secrets(&objects(&text))["palisade-node-tokens"]["node-tokens"].as_str().unwrap().to_owned();
    assert!(lines.starts_with(&format!("node=gateway-* {token}\nnode=n-* ")) && lines.lines().count() == 2, "{lines}");
}

/// The commands that an access list has to give, as the page of the shared store has them.
fn documented_commands() -> Vec<String> {
    let page = read("docs/shared-store.md");
    let from = page.find("```\n+evalsha").expect("the page lists the commands") + 4;
    page[from..].split("```").next().unwrap().split_whitespace().map(str::to_owned).collect()
}

/// The rules of the user `palisade`, without the password.
fn rules_of(acl: &str) -> Vec<String> {
    let line = acl.lines().find(|line| line.starts_with("user palisade ")).expect("there is a user");
    line.split_whitespace().skip(2).filter(|word| !word.starts_with('#')).map(str::to_owned).collect()
}

fn expected_rules(prefix: &str) -> Vec<String> {
    let head = ["on", "resetkeys", "resetchannels", &format!("~{{{prefix}}}:*"), "-@all"].map(str::to_owned);
    head.into_iter().chain(documented_commands()).collect()
}

#[test]
fn the_access_list_gives_what_the_page_says_and_no_more() {
    let Some(made) = made(None) else { return };
    assert_eq!(rules_of(made["palisade-redis"]["users.acl"].as_str().unwrap()), expected_rules("palisade"));
    let values =
        [json!({"store": {"prefix": "other"}}), json!({"store": {"prefix": "other", "previousPrefix": "palisade"}})];
    let texts = helm(&values.map(|values| json!({"values": values}))).unwrap();
    let rules = texts.into_iter().map(|text| secrets(&objects(&text.unwrap()))["palisade-redis"]["users.acl"].clone());
    let [other, both] = rules.map(|acl| rules_of(acl.as_str().unwrap())).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(other, expected_rules("other"));
    let both: Vec<String> = both.into_iter().filter(|rule| rule != "~{palisade}:*").collect();
    assert_eq!(both, expected_rules("other"));
}

/// Runs `secrets.sh` with a stand-in for kubectl that keeps the files it is given; what it made by Secret and key.
fn by_the_script(folder: &Path) -> BTreeMap<String, Value> {
    let kubectl = folder.join("kubectl");
    let script = "#!/bin/sh\nset -eu\n[ \"$1\" = get ] && exit\nshift 5\nname=$1\nshift\nmkdir \"$KEPT/$name\"\n\
                  for file in \"$@\"; do pair=${file#--from-file=}; cp \"${pair#*=}\" \"$KEPT/$name/${pair%%=*}\"; done\n";
    std::fs::write(&kubectl, script).unwrap();
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let kept = folder.join("kept");
    std::fs::create_dir(&kept).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let run = || {
        let script = parts::root().join("control-plane/deploy/kubernetes/secrets.sh");
        Command::new(script).env("PATH", &path).env("KEPT", &kept).stderr(Stdio::null()).status().unwrap()
    };
    assert!(run().success());
    let mut all = BTreeMap::new();
    for secret in std::fs::read_dir(&kept).unwrap().map(Result::unwrap) {
        let files = std::fs::read_dir(secret.path()).unwrap().map(Result::unwrap);
        let fields = files.map(|file| {
            (file.file_name().into_string().unwrap(), json!(std::fs::read_to_string(file.path()).unwrap()))
        });
        all.insert(secret.file_name().into_string().unwrap(), Value::Object(fields.collect()));
    }
    assert!(!run().success(), "a second run replaces nothing");
    all
}

#[test]
fn the_script_makes_what_the_plain_manifests_name() {
    let folder = tempfile::tempdir().unwrap();
    let made = by_the_script(folder.path());
    let mut named = 0;
    for object in documents("control-plane/deploy/kubernetes/palisade.yaml") {
        for volume in object["spec"]["template"]["spec"]["volumes"].as_array().into_iter().flatten() {
            let Some(name) = volume["secret"]["secretName"].as_str() else { continue };
            named += 1;
            let secret = made.get(name).unwrap_or_else(|| panic!("the script makes no {name}"));
            for item in volume["secret"]["items"].as_array().into_iter().flatten() {
                assert!(secret[item["key"].as_str().unwrap()].is_string(), "{name}: {item}");
            }
        }
    }
    assert_eq!((named, made.len()), (4, 4));
    assert_eq!(rules_of(made["palisade-redis"]["users.acl"].as_str().unwrap()), expected_rules("palisade"));
}

/// A Redis of the manifests' configuration and the script's access list, and two control planes with the variables of the manifests.
#[test]
fn control_planes_share_the_redis_of_the_manifests() {
    let folder = tempfile::tempdir().unwrap();
    let made = by_the_script(folder.path());
    let all = documents("control-plane/deploy/kubernetes/palisade.yaml");
    let place = |name: &str| folder.path().join(name).display().to_string();
    for (file, secret, key) in [
        ("users.acl", "palisade-redis", "users.acl"),
        ("password", "palisade-redis", "password"),
        ("node-tokens", "palisade-node-tokens", "node-tokens"),
        ("admin-key.json", "palisade-admin-key", "admin-key.json"),
    ] {
        std::fs::write(place(file), made[secret][key].as_str().unwrap()).unwrap();
    }
    let config = all.iter().find(|object| object["kind"] == "ConfigMap").unwrap();
    let config =
        config["data"]["redis.conf"].as_str().unwrap().replace("/etc/redis-acl/users.acl", &place("users.acl"));
    let config = config.replace("dir /data", &format!("dir {}", folder.path().display()));
    let redis = Redis::start_by(Some(&config));
    assert_eq!(redis.cli(&["--user", "probe", "--pass", "probe", "--no-auth-warning", "ping"]), "PONG");
    let password = made["palisade-redis"]["password"].as_str().unwrap();
    assert!(redis.cli(&["get", "a"]).starts_with("NOAUTH"));
    let own = ["--user", "palisade", "--pass", password, "--no-auth-warning"];
    for refused in
        [["flushall"].as_slice(), &["set", "other", "1"], &["config", "set", "appendonly", "no"], &["keys", "*"]]
    {
        let answer = redis.cli(&[own.as_slice(), refused].concat());
        assert!(answer.starts_with("NOPERM"), "{refused:?}: {answer}");
    }

    let deployment = all.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    let variable = |name: &str| variables.iter().find(|one| one["name"] == name).unwrap()["value"].as_str().unwrap();
    let url = variable("PALISADE_STORE").replace("palisade-redis:6379", &redis.address().to_string());
    let url = url.replace("/etc/palisade/redis/password", &place("password"));
    let arguments: Vec<String> = [
        ("--store", url),
        ("--node-token-file", place(variable("PALISADE_NODE_TOKEN_FILE").rsplit('/').next().unwrap())),
        ("--first-admin-key-file", place(variable("PALISADE_FIRST_ADMIN_KEY_FILE").rsplit('/').next().unwrap())),
    ]
    .into_iter()
    .flat_map(|(name, value)| [name.to_owned(), value])
    .collect();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let [one, two] = ["one", "two"].map(|name| {
        let data = folder.path().join(name);
        std::fs::create_dir(&data).unwrap();
        std::fs::copy(place("admin-key.json"), data.join("admin-key.json")).unwrap();
        ControlPlane::start_in(&data, any, any, &arguments).unwrap_or_else(|why| panic!("{why}"))
    });
    one.configure(&json!({"gateway": {"delivery": "ecds"}}));
    wait_for("the change at the other one", PATIENCE, || {
        let answer = two.call("GET", &format!("{ENTITIES}/global-config/global-config"), None);
        (answer.status == 200 && answer.json()["gateway"]["delivery"] == "ecds").then_some(())
    })
    .unwrap();
    for control in [&one, &two] {
        let log = control.log();
        // The secret of the key is in no log, and the server's settings need no remark.
        assert!(!log.contains("secret:") && !log.contains("appendfsync") && !log.contains("maxmemory"), "{log}");
    }
}
