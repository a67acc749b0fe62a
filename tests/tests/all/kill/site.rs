//! Two nodes with one control plane, or with one each that share a Redis.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::shipped;
use palisade_tests::console::Console;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::fleet;
use palisade_tests::gateway::{WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT, preset, route, threat_policy, waf_config};
use palisade_tests::http::Request;
use palisade_tests::ports;
use palisade_tests::process::wait_for;
use palisade_tests::redis::Redis;
use serde_json::{Value, json};

use super::budgets::{self, BUDGET, Counters};
use super::{Acknowledged, PATIENCE};

/// What asks for work, and what bans.
const SUSPECT: &str = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,pass,log,msg:'suspect'""#;
const ATTACK: &str = r#"SecRule ARGS:attack "@streq 1" "id:10002,phase:1,deny,status:403,msg:'attack'""#;
/// Little work: many puzzles are wanted.
const BITS: u32 = 6;
/// How long a puzzle can be submitted, in seconds; afterwards its refusal says nothing.
const PUZZLE_LIFE: u64 = 3600;
/// Both nodes, and their groups: each has its port.
const NAMES: [(&str, &str); 2] = [("node-0", "palisade"), ("node-1", "other")];

/// Where the control planes keep their state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SiteStore {
    /// One control plane with a file.
    File,
    /// Two control planes on one Redis; each node prefers one of them.
    Redis,
}

/// Two nodes and what they depend on.
pub(crate) struct Site {
    pub(crate) nodes: [Node; 2],
    /// The operator's session at each control plane.
    pub(crate) consoles: Vec<Console>,
    pub(crate) controls: Vec<ControlPlane>,
    pub(crate) redis: Option<Redis>,
    pub(crate) counters: Counters,
    _backend: Backend,
}

impl Site {
    pub(crate) fn start(store: SiteStore) -> Site {
        let backend = Backend::start();
        let redis = (store == SiteStore::Redis).then(Redis::start);
        let arguments = redis.as_ref().map(|redis| ["--store".to_owned(), redis.url()]);
        let control = ControlPlane::start_with(arguments.as_ref().map_or(&[], |arguments| arguments.as_slice()));
        let ports = [ports::free(), ports::free()];
        configure(&control, &ports, backend.address());
        let console = Console::login(&control);
        let mut controls = vec![control];
        if redis.is_some() {
            controls.push(ControlPlane::start_beside(&controls[0]));
        }
        let consoles: Vec<Console> = controls.iter().map(|control| console.at(control)).collect();
        assert_eq!(console.post("_ban", &json!({"ref": "ip:127.64.0.0/12", "duration_seconds": 86_400}))["done"], true);
        let xds: Vec<u16> = controls.iter().map(|control| control.xds().port()).collect();
        let node = |number: usize| {
            let (name, cluster) = NAMES[number];
            let bootstrap = match xds.as_slice() {
                [only] => single(name, cluster, *only),
                _ => fleet::bootstrap(name, cluster, &[xds[number], xds[1 - number]]),
            };
            let address = SocketAddr::from(([127, 0, 0, 1], ports[number]));
            let mut node = Node { name, bootstrap, address, envoy: None };
            node.start();
            node
        };
        let nodes = [node(0), node(1)];
        let site = Site { nodes, consoles, controls, redis, counters: Counters::default(), _backend: backend };
        (0..2).for_each(|node| site.count_at(node));
        site
    }

    /// Reads the counters of this node from now on.
    pub(crate) fn count_at(&self, node: usize) {
        self.counters.set(node, self.nodes[node].envoy.as_ref().map(Envoy::admin));
    }

    /// Waits until an address is answered with a status on both nodes.
    pub(crate) fn on_both(&self, source: Ipv4Addr, status: u16, why: impl std::fmt::Debug) {
        self.status_on_both(source, "/", status, why);
    }

    fn status_on_both(&self, source: Ipv4Addr, path: &str, status: u16, why: impl std::fmt::Debug) {
        for node in &self.nodes {
            let mut last = 0;
            wait_for("the change is in force", PATIENCE, || {
                last = Request::get(path).send_from(source, node.address).map_or(0, |answer| answer.status);
                (last == status).then_some(())
            })
            .unwrap_or_else(|_| {
                panic!("{why:?}: {path} is answered with {last} by {}\n{}", node.name, node.envoy().log_tail(40))
            });
        }
    }

    /// Everything that was acknowledged is in force on both nodes.
    pub(crate) fn verify(&self, all: &[Acknowledged]) {
        let mut states = Vec::new();
        for one in all {
            match one {
                Acknowledged::Banned(source) | Acknowledged::Caught(source) => self.on_both(*source, 403, one),
                Acknowledged::Allowed(source) => self.on_both(*source, 200, one),
                // All at once, below.
                Acknowledged::State(source) => states.push(*source),
                Acknowledged::Puzzle(source, solution, times) => self.spent(*source, solution, *times),
                Acknowledged::Budget(source, objects) => self.budget_kept(*source, objects),
                Acknowledged::Uncounted => {}
            }
        }
        self.acknowledged(&states);
    }

    fn spent(&self, source: Ipv4Addr, solution: &Request, times: usize) {
        assert!(times <= 1, "one puzzle was accepted {times} times: {solution:?}");
        for node in &self.nodes {
            let answer = solution.send_from(source, node.address).unwrap();
            assert!(
                times == 0 || (answer.status == 403 && answer.text().contains("challenge_failed")),
                "a spent puzzle was answered with {} on {}: {}",
                answer.status,
                node.name,
                answer.text()
            );
        }
    }

    /// What is new is refused, which it would not be if an object that was read had been forgotten; what was read may be
    /// read again.
    fn budget_kept(&self, source: Ipv4Addr, objects: &[u32]) {
        assert_eq!(objects.len(), BUDGET);
        let path = |object: u32| format!("/objects/{}", object + 1);
        self.status_on_both(source, &path(budgets::OTHER), 429, "an object beyond the budget");
        for object in objects {
            self.status_on_both(source, &path(*object), 200, "an object that was read before");
        }
    }

    /// Everything that was acknowledged is on the lists of every control plane.
    pub(crate) fn listed(&self, all: &[Acknowledged]) {
        for console in &self.consoles {
            let bans = listed_bans(console).unwrap();
            let entries = console.get("_allowlist?pageSize=10000");
            let entries = keys(&entries["entries"]);
            for one in all {
                let (list, address) = match one {
                    Acknowledged::Banned(address) | Acknowledged::Caught(address) => (&bans, address),
                    Acknowledged::Allowed(address) => (&entries, address),
                    _ => continue,
                };
                assert!(list.contains(&format!("ip:{address}")), "{one:?} was acknowledged and is gone");
            }
        }
    }

    /// Waits until the incidents of banned addresses show their state. Each is made by its address' next refusal, at the
    /// control plane of the node that refuses.
    fn acknowledged(&self, sources: &[Ipv4Addr]) {
        let mut missing: BTreeMap<String, Ipv4Addr> = sources.iter().map(|it| (format!("ip:{it}"), *it)).collect();
        let outcome = wait_for("the incidents", PATIENCE, || {
            for source in missing.values() {
                let _ = Request::get("/").send_from(*source, self.nodes[0].address);
            }
            for console in &self.consoles {
                let list = console.get("_incidents");
                for incident in list["incidents"].as_array().into_iter().flatten() {
                    if missing.remove(incident["key"].as_str()?).is_some() {
                        assert_eq!(incident["state"], "acknowledged", "{incident}");
                    }
                }
            }
            missing.is_empty().then_some(())
        });
        outcome.unwrap_or_else(|why| panic!("{why}: {missing:?}"));
    }
}

fn configure(control: &ControlPlane, ports: &[u16; 2], backend: SocketAddr) {
    control.configure(&json!({
        "gateway": {"address": "127.0.0.1", "port": ports[0], "access_log": ""},
        "groups": {"other": {"port": ports[1]}},
        // Callers fail on purpose here; only what the test bans is to be banned.
        "security": {"ledger": {"enabled": false}},
    }));
    let provider = json!({
        "id": "work", "difficulty_floor": BITS, "difficulty_ceiling": BITS, "challenge_ttl_seconds": PUZZLE_LIFE,
    });
    control.create("challenge-providers", &provider);
    control.create("waf-configs", &waf_config("demo", json!({"rules": [SUSPECT, ATTACK]})));
    let tiers = json!([
        {"min_score": 20, "action": "challenge", "status": 429},
        {"min_score": 45, "action": "ban", "status": 403, "ban_for_seconds": 86_400},
    ]);
    control.create("threat-policies", &threat_policy("demo", json!({"tiers": tiers, "challenge_provider": "work"})));
    let mut plugins = preset("demo", "demo");
    // One window, far beyond the end of the test.
    let guard = json!({
        "auto_detect": false, "paths": [{"path": "/objects/{id}", "name": "objects"}],
        "budget": BUDGET, "budget_window_seconds": far_window(),
    });
    plugins.as_array_mut().unwrap().push(json!({"plugin": "SvcObjectGuard", "config": guard}));
    control.create("routes", &route("demo", backend, plugins));
}

fn far_window() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    [604_800, 518_400, 432_000].into_iter().find(|window| window - now % window > 14_400).unwrap()
}

fn single(name: &str, cluster: &str, xds: u16) -> String {
    let written = shipped("xds.yaml", &[(WRITTEN_XDS_PORT, xds), (WRITTEN_ADMIN_PORT, 0)]);
    let identity = "  id: gateway-1\n  cluster: palisade\n";
    assert!(written.contains(identity), "xds.yaml names another node");
    written.replace(identity, &format!("  id: {name}\n  cluster: {cluster}\n"))
}

/// The keys of all bans; `None` if the control plane does not answer, or has no store.
pub(super) fn listed_bans(console: &Console) -> Option<Vec<String>> {
    let answer = console.try_read("_bans?pageSize=10000").ok()?;
    let list: Value = serde_json::from_slice(&answer.body).ok().filter(|_| answer.status == 200)?;
    Some(keys(&list["bans"]))
}

fn keys(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|one| Some(one["key"].as_str()?.to_owned())).collect()
}

pub(super) fn program() -> Request {
    Request::new("GET", "/?probe=1").header("accept", "application/json").header("user-agent", "program/1")
}

/// One gateway.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    bootstrap: String,
    pub(crate) address: SocketAddr,
    envoy: Option<Envoy>,
}

impl Node {
    pub(crate) fn start(&mut self) {
        let envoy = Envoy::start(&self.bootstrap);
        wait_for("the node serves", PATIENCE, || TcpStream::connect(self.address).ok())
            .unwrap_or_else(|why| panic!("{}: {why}\n{}", self.name, envoy.log_tail(40)));
        self.envoy = Some(envoy);
    }

    pub(crate) fn kill(&mut self) {
        let failures = self.envoy().vm_failures();
        assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
        // An Envoy that is dropped is killed.
        self.envoy = None;
    }

    /// Waits until the node has noticed that there is no control plane.
    pub(crate) fn until_it_is_alone(&self) {
        let links =
            || self.envoy().stats(r"^cluster\.palisade-control-plane\.upstream_cx_active$").values().sum::<u64>();
        wait_for("the end of the link", PATIENCE, || (links() == 0).then_some(()))
            .unwrap_or_else(|why| panic!("{}: {why}\n{}", self.name, self.envoy().log_tail(40)));
    }

    pub(crate) fn envoy(&self) -> &Envoy {
        self.envoy.as_ref().expect("the node runs")
    }
}
