//! An older release beside this one, as docs/upgrading.md describes it: on one Redis, with a gateway that follows now one, now the other.
//!
//! `make upgrade-check OLD_BIN=... OLD_FILTERS=...` gives the program and the modules of the older release; without them nothing is tested.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::shipped;
use palisade_tests::console::Console;
use palisade_tests::control_plane::{ControlPlane, ENTITIES};
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT, preset, route, threat_policy, waf_config};
use palisade_tests::http::{Request, percent};
use palisade_tests::process::wait_for;
use palisade_tests::redis::Redis;
use palisade_tests::{parts, ports};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

struct Release {
    program: PathBuf,
    filters: PathBuf,
}

impl Release {
    fn older() -> Option<Self> {
        let given = |name: &str| std::env::var_os(name).map(PathBuf::from);
        Some(Self { program: given("PALISADE_OLD_BIN")?, filters: given("PALISADE_OLD_FILTERS")? })
    }

    fn this() -> Self {
        Self { program: parts::palisade(), filters: parts::filters() }
    }

    /// A control plane of this release for gateways that have `filters`.
    fn serve(
        &self,
        filters: &Path,
        data: &Path,
        at: (SocketAddr, SocketAddr),
        store: &str,
    ) -> Result<ControlPlane, String> {
        ControlPlane::start_release(&self.program, filters, data, at, &["--store".to_owned(), store.to_owned()])
    }

    fn migrate(&self, from: &str, to: &str, data: &Path) {
        let arguments = ["migrate-store", "--from", from, "--to", to, "--data"];
        let status = Command::new(&self.program).args(arguments).arg(data).status().unwrap();
        assert!(status.success(), "{from} is not copied to {to}");
    }
}

/// Requests to a gateway without an end: harmless ones, and attacks that have to be refused.
struct Callers {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl Callers {
    fn start(to: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let attack = Request::get(format!("/search?q={}", percent("1' UNION SELECT password FROM users-- -")));
        let thread = std::thread::spawn(move || {
            let mut sent = 0;
            while !stopping.load(Ordering::Relaxed) {
                for (request, wanted) in [(Request::get("/"), 200), (attack.clone(), 403)] {
                    let answer =
                        request.send(to).map_err(|error| format!("no answer after {sent} requests: {error}"))?;
                    if answer.status != wanted {
                        return Err(format!("{} in place of {wanted} after {sent} requests", answer.status));
                    }
                    sent += 1;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(sent)
        });
        Self { stop, thread }
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap().unwrap_or_else(|why| panic!("{why}"))
    }
}

struct Fleet {
    envoy: Envoy,
    address: SocketAddr,
    banned: u8,
}

impl Fleet {
    /// A ban at a control plane is in force at the gateway, whichever control plane that follows.
    fn bans(&mut self, console: &Console, at: &ControlPlane) {
        self.banned += 1;
        let client = Ipv4Addr::new(127, 0, 41, self.banned);
        let status = || Some(Request::get("/").send_from(client, self.address).ok()?.status);
        let done = || {
            let answer = console.at(at).try_answer("security/_ban", &json!({"ref": format!("ip:{client}")})).ok()?;
            (answer.status == 200).then_some(())
        };
        wait_for("a ban is taken", PATIENCE, done).unwrap();
        wait_for("a ban is in force", PATIENCE, || (status()? == 403).then_some(()))
            .unwrap_or_else(|why| panic!("{why}\n{}\n{}", self.envoy.log_tail(40), at.log()));
    }

    /// A change of a rule at a control plane is in force at the gateway.
    fn changes(&self, at: &ControlPlane, word: &str) {
        let rule = format!(r#"SecRule ARGS:probe "@streq {word}" "id:10001,phase:1,deny,status:403,msg:'probe'""#);
        at.patch("waf-configs", "demo", &json!({"rules": ["@import_preset crs", rule]}));
        let probe = Request::get(format!("/?probe={word}"));
        wait_for("a change is in force", PATIENCE, || (probe.send(self.address).ok()?.status == 403).then_some(()))
            .unwrap_or_else(|why| panic!("{word}: {why}\n{}\n{}", self.envoy.log_tail(40), at.log()));
    }
}

#[test]
fn an_older_release_beside_this_one() {
    let Some(old) = Release::older() else {
        println!("skipped: PALISADE_OLD_BIN and PALISADE_OLD_FILTERS name no older release (`make upgrade-check`)");
        return;
    };
    let new = Release::this();
    let (redis, backend, folder) = (Redis::start(), Backend::start(), tempfile::tempdir().unwrap());
    let free = || SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()));
    let (at, beside, address) = ((free(), free()), (free(), free()), free());
    let data = |name: &str| folder.path().join(name);
    let store = redis.url();

    let mut one = old.serve(&old.filters, &data("one"), at, &store).unwrap_or_else(|why| panic!("{why}"));
    let log = folder.path().join("access.log");
    one.configure(&json!({"gateway": {"address": "127.0.0.1", "port": address.port(), "access_log": log}}));
    one.create("waf-configs", &waf_config("demo", json!({})));
    one.create("threat-policies", &threat_policy("demo", json!({})));
    one.create("routes", &route("demo", backend.address(), preset("demo", "demo")));
    let console = Console::login(&one);
    let ports = [(WRITTEN_XDS_PORT, one.xds().port()), (WRITTEN_ADMIN_PORT, 0)];
    let mut fleet = Fleet { envoy: Envoy::start(&shipped("xds.yaml", &ports)), address, banned: 0 };
    fleet.changes(&one, "old");
    let callers = Callers::start(address);

    // The control planes, while the gateway has the older modules.
    std::fs::create_dir(data("two")).unwrap();
    std::fs::copy(data("one").join("admin-key.json"), data("two").join("admin-key.json")).unwrap();
    let two = new.serve(&old.filters, &data("two"), beside, &store);
    let shared = match &two {
        Ok(two) => {
            fleet.bans(&console, two);
            fleet.changes(two, "new-beside-old");
            let answer = one.call("GET", &format!("{ENTITIES}/waf-configs/demo"), None);
            assert!(answer.text().contains("new-beside-old"), "{}", answer.text());
            fleet.bans(&console, &one);
            store.clone()
        }
        Err(why) => {
            // Other tables: it touches nothing, and the older one goes on. The store is copied while none runs.
            assert!(why.contains("an older release has written it"), "{why}");
            println!("the tables of the store differ: the two releases cannot run beside each other");
            fleet.bans(&console, &one);
            one.kill();
            let (file, other) = (data("file"), format!("{store}?prefix=upgraded"));
            old.migrate(&store, file.to_str().unwrap(), &data("copy"));
            new.migrate(file.to_str().unwrap(), &other, &data("copy"));
            other
        }
    };
    drop(two);
    one.kill();
    let mut one = new.serve(&old.filters, &data("one"), at, &shared).unwrap_or_else(|why| panic!("{why}"));
    fleet.bans(&console, &one);
    fleet.changes(&one, "new-with-old-filters");

    // The modules of the gateway, which takes them from where its control plane says.
    one.kill();
    let mut one = new.serve(&new.filters, &data("one"), at, &shared).unwrap_or_else(|why| panic!("{why}"));
    fleet.bans(&console, &one);
    fleet.changes(&one, "new");

    // Back, while the gateway has the newer modules, and then those, too.
    if shared == store {
        for filters in [&new.filters, &old.filters] {
            one.kill();
            one = old.serve(filters, &data("one"), at, &shared).unwrap_or_else(|why| panic!("{why}"));
            fleet.bans(&console, &one);
            fleet.changes(&one, if filters == &new.filters { "old-with-new-filters" } else { "old-again" });
        }
    }
    let sent = callers.end();
    let failures = fleet.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
    println!(
        "{sent} requests meanwhile, none lost and no attack passed; the releases share a store: {}",
        shared == store
    );
}
