//! A real server of blocklists: Debian's rbldnsd, with zones in a folder of the test.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::*;

struct Rbldnsd {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Rbldnsd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Rbldnsd {
    /// `None` where the program is not on this machine.
    fn start(zones: &[(&str, &str, &str)]) -> Option<Rbldnsd> {
        let given = std::env::var_os("PALISADE_RBLDNSD").map(PathBuf::from);
        let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.cache/rbldnsd");
        let program = given.unwrap_or_else(beside).join("bin/rbldnsd");
        if !program.exists() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        command.args(["-n", "-q", "-t", "2147483647", "-b", &format!("127.0.0.1/{port}"), "-w"]).arg(folder.path());
        let user = Command::new("id").arg("-u").output().unwrap().stdout;
        if user.starts_with(b"0\n") {
            command.args(["-u", "nobody"]);
        }
        for (number, (zone, kind, text)) in zones.iter().enumerate() {
            std::fs::write(folder.path().join(format!("zone{number}")), text).unwrap();
            command.arg(format!("{zone}:{kind}:zone{number}"));
        }
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let command = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Some(Rbldnsd { process: command.spawn().unwrap(), port, _folder: folder })
    }
}

#[tokio::test]
async fn the_real_server_is_understood() {
    let all = [
        (
            "ip.test",
            "ip4set",
            ":127.0.0.2:listed\n127.0.0.2\n192.0.2.0/24\n!192.0.2.9\n203.0.113.7 :4:bot\n203.0.113.8 :127.0.0.10:line\n",
        ),
        ("six.test", "ip6trie", ":127.0.0.3:listed\n2001:db8:0:1::/64\n"),
        ("six.test", "ip4set", ":127.0.0.2:listed\n127.0.0.2\n"),
        ("all.test", "ip4set", ":127.0.0.2:listed\n127.0.0.0/8\n192.0.0.0/8\n"),
        ("none.test", "ip4set", ":127.0.0.2:listed\n192.0.2.7\n"),
        ("zen.spamhaus.org", "ip4set", "127.0.0.2 :4:\n192.0.2.7 :10:line\n203.0.113.7 :4:bot\n"),
    ];
    let Some(server) = Rbldnsd::start(&all) else {
        println!("LEFT OUT: rbldnsd is not on this machine: run `make rbldnsd`");
        eprintln!("LEFT OUT: rbldnsd is not on this machine: run `make rbldnsd`");
        return;
    };
    let names = ["ip.test", "six.test", "all.test", "none.test", "zen.spamhaus.org", "gone.test"];
    let zones: Vec<Value> = names.iter().map(|name| json!({ "zone": name })).collect();
    let settings =
        json!({ "zones": zones, "resolvers": [format!("127.0.0.1:{}", server.port)], "timeout_millis": 1_000 });
    // The server loads its zones after it has begun to listen.
    let world = World::start(settings.clone());
    world.checked().await;
    for number in 0..200 {
        if world.error("ip.test").is_none() {
            break;
        }
        let timeout = 1_000 + number;
        let mut again = settings.clone();
        again["resolvers"].as_array_mut().unwrap().extend((0..=number % 2).map(|_| settings["resolvers"][0].clone()));
        again["timeout_millis"] = json!(timeout);
        world.set(again);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let errors = names.map(|name| world.error(name).unwrap_or_default());
    assert_eq!([&*errors[0], &*errors[1], &*errors[4]], [""; 3], "{errors:?}");
    assert!(
        errors[2].starts_with("it lists 127.0.0.1") && errors[3].starts_with("it does not list 127.0.0.2"),
        "{errors:?}"
    );
    assert!(errors[5].contains("REFUSED"), "{errors:?}");

    let keys = |names: &[&str]| {
        let mut keys: Vec<String> = names.iter().map(|name| key_of(name)).collect();
        keys.sort();
        keys.join(",")
    };
    for (address, listed) in [
        ("192.0.2.7", vec!["ip.test"]),
        ("192.0.2.9", vec![]),
        ("203.0.113.7", vec!["ip.test", "zen.spamhaus.org"]),
        ("203.0.113.8", vec!["ip.test"]),
        ("198.51.100.1", vec![]),
        ("2001:db8:0:1::7", vec!["six.test"]),
        ("2001:db8:0:2::7", vec![]),
    ] {
        let found = world.ask(address, 2_000).await.unwrap();
        let found = String::from_utf8(found).unwrap();
        let (unknown, found): (Vec<&str>, Vec<&str>) = found.split(',').partition(|key| key.starts_with('?'));
        assert_eq!(found.join(","), keys(&listed), "{address}");
        // Zones that are at fault are not asked: of them nothing is known.
        let unknown: Vec<&str> = unknown.iter().map(|key| key.trim_start_matches('?')).collect();
        assert_eq!(unknown.join(","), keys(&["all.test", "none.test", "gone.test"]), "{address}");
    }
    // The server wants its answers kept for 68 years.
    let verdict = world.found("192.0.2.7").await;
    assert_eq!(verdict.until, NOW + 900_000);
    // It is gone: zones are not asked any more, and what is known stays.
    drop(server);
    world.report(&["198.51.100.2", "198.51.100.3", "198.51.100.4"]);
    world.until("the failure", || world.error("ip.test")).await;
    assert_eq!(world.found("192.0.2.7").await, verdict);
    let unknown = String::from_utf8(world.found("198.51.100.2").await.keys).unwrap();
    assert!(
        unknown.split(',').count() == names.len() && unknown.split(',').all(|key| key.starts_with('?')),
        "{unknown}"
    );
}
