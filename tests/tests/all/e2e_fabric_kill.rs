//! `kill -9` of the control plane and of Envoys under load: what was acknowledged holds, on every node.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::shipped;
use palisade_tests::challenge;
use palisade_tests::console::Console;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT, preset, route, threat_policy, waf_config};
use palisade_tests::http::{Request, Response};
use palisade_tests::load::{Load, Plan};
use palisade_tests::ports;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

/// Blows, unless `PALISADE_FABRIC_KILL_ROUNDS` names another number.
const ROUNDS: u32 = 4;
const PATIENCE: Duration = Duration::from_secs(60);
/// What asks for work, and what bans.
const SUSPECT: &str = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,pass,log,msg:'suspect'""#;
const ATTACK: &str = r#"SecRule ARGS:attack "@streq 1" "id:10002,phase:1,deny,status:403,msg:'attack'""#;
/// Little work: many puzzles are wanted.
const BITS: u32 = 6;
/// How long a puzzle can be submitted, in seconds; afterwards its refusal says nothing.
const PUZZLE_LIFE: u64 = 3600;

/// What somebody was told.
#[derive(Debug, Clone)]
enum Told {
    /// An address is banned by hand.
    Banned(Ipv4Addr),
    /// A tier has banned an address, and the control plane lists it.
    Caught(Ipv4Addr),
    /// An address of the banned range is on the allowlist.
    Allowed(Ipv4Addr),
    /// The incident of an address is acknowledged.
    State(Ipv4Addr),
    /// A solution was handed in at both nodes, and so many of them took it.
    Puzzle(Ipv4Addr, Request, usize),
}

#[test]
fn what_was_acknowledged_holds_after_kill_9_of_any_part() {
    let rounds = std::env::var("PALISADE_FABRIC_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let mut site = Site::start();
    let loads = [0, 1].map(|node| Load::start(clean_requests(site.nodes[node].address)));
    let mut all = Vec::new();
    for round in 0..rounds {
        let fresh = strike(&mut site, round);
        let start = Instant::now();
        verify(&site, &fresh);
        let counts = count(&fresh);
        println!("round {round}: {} killed, {counts:?}, all in force after {:?}", victim(round), start.elapsed());
        all.extend(fresh);
        listed(&site, &all);
    }
    // Whatever came of the earlier rounds still holds after all the later ones.
    verify(&site, &all);
    let reports = loads.map(Load::stop);
    for (node, report) in reports.iter().enumerate() {
        println!("node {node}: clean requests {:?}, {} without an answer", report.statuses, report.dropped);
        assert_eq!(report.statuses.keys().collect::<Vec<_>>(), [&200], "{:?}", report.statuses);
    }
    println!("{rounds} rounds: {:?}", count(&all));
    let failures: Vec<String> = site.nodes.iter().flat_map(|node| node.envoy().vm_failures()).collect();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

/// A node that nothing happens on has nothing to tell the control plane, and must learn of its bans all the same.
#[test]
fn a_quiet_node_is_told_of_bans_after_the_control_plane_has_come_back() {
    let mut site = Site::start();
    let mut banned = Ipv4Addr::new(127, 64, 0, 1);
    site.on_both(banned, 403, "the range that is banned from the beginning");
    for round in 1..=3 {
        // What waits to be told would be a reason to open a link.
        for node in &site.nodes {
            let _ = site.control.event("the refusal", |event| {
                event["source"]["ip"] == banned.to_string() && event["route"]["node"] == node.name
            });
        }
        site.control.kill();
        for node in &site.nodes {
            node.until_it_is_alone();
        }
        site.control.restart();
        banned = Ipv4Addr::new(127, 32, 0, round);
        assert_eq!(site.console.post("_ban", &json!({"ref": format!("ip:{banned}")}))["done"], true);
        site.on_both(banned, 403, "a ban by hand");
    }
}

fn victim(round: u32) -> &'static str {
    ["the control plane", "node 0", "the control plane", "node 1"][round as usize % 4]
}

/// One round: calls of all kinds, a blow in the midst of them, and more calls while the victim is away and is back.
fn strike(site: &mut Site, round: u32) -> Vec<Told> {
    let stop = AtomicBool::new(false);
    let (tell, told) = channel();
    let mut all = Vec::new();
    let (console, addresses) = (site.console.clone(), [0, 1].map(|node| site.nodes[node].address));
    thread::scope(|scope| {
        let (stop, console) = (&stop, &console);
        let (for_operator, for_callers) = (tell.clone(), tell);
        scope.spawn(move || operate(console, addresses, round, stop, &for_operator));
        scope.spawn(move || solve(addresses, round, stop, &for_callers));
        // Another number in each round, so that the blow falls on other moments.
        take(&told, 6 + round as usize * 7 % 29, &mut all);
        match victim(round) {
            "node 0" => site.nodes[0].kill(),
            "node 1" => site.nodes[1].kill(),
            _ => site.control.kill(),
        }
        take_puzzles(&told, 4, &mut all);
        match victim(round) {
            "node 0" => site.nodes[0].start(),
            "node 1" => site.nodes[1].start(),
            _ => site.control.restart(),
        }
        take(&told, 8, &mut all);
        stop.store(true, Ordering::Relaxed);
        all.extend(&told);
    });
    all
}

fn take(told: &Receiver<Told>, count: usize, all: &mut Vec<Told>) {
    for _ in 0..count {
        all.push(told.recv_timeout(PATIENCE).expect("the callers go on"));
    }
}

/// Until so many more puzzles were submitted: an operator may have nobody to talk to.
fn take_puzzles(told: &Receiver<Told>, count: usize, all: &mut Vec<Told>) {
    let mut puzzles = 0;
    while puzzles < count {
        take(told, 1, all);
        puzzles += usize::from(matches!(all.last(), Some(Told::Puzzle(..))));
    }
}

/// The operator's calls, one after the other; those without an answer are not told of.
fn operate(console: &Console, nodes: [SocketAddr; 2], round: u32, stop: &AtomicBool, tell: &Sender<Told>) {
    let mut caught: Vec<Ipv4Addr> = Vec::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let banned = address(32, round, number);
        let key = format!("ip:{banned}");
        let call = |path: &str, body: Value| {
            console.try_post(path, &body).ok().inspect(|it| assert_eq!(it["done"], true, "{it}"))
        };
        if number % 5 == 4 {
            // A tier's ban is acknowledged once it is on the list.
            let attack = Request::get("/?attack=1").send_from(banned, nodes[number as usize % 2]);
            caught.extend(attack.is_ok_and(|answer| answer.status == 403).then_some(banned));
            if let Some(bans) = bans(console) {
                caught.retain(|banned| {
                    let listed = bans.contains(&format!("ip:{banned}"));
                    if listed {
                        let _ = tell.send(Told::Caught(*banned));
                    }
                    !listed
                });
            }
            continue;
        }
        if call("_ban", json!({"ref": key, "duration_seconds": 86_400, "reason": "by hand"})).is_none() {
            // Nobody is there: asking again at once would only spin.
            thread::sleep(Duration::from_millis(10));
            continue;
        }
        let _ = tell.send(Told::Banned(banned));
        if call("_incident_state", json!({"key": key, "state": "acknowledged"})).is_some() {
            let _ = tell.send(Told::State(banned));
        }
        let allowed = address(64, round, number);
        if call("_allow", json!({"ref": format!("ip:{allowed}"), "reason": "ours"})).is_some() {
            let _ = tell.send(Told::Allowed(allowed));
        }
    }
}

/// Callers who get a puzzle at one node and hand its solution in at both, at the same time or one after the other.
fn solve(nodes: [SocketAddr; 2], round: u32, stop: &AtomicBool, tell: &Sender<Told>) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let source = address(96, round, number);
        let first = number as usize % 2;
        let Ok(asked) = program().send_from(source, nodes[first]) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        assert_eq!(asked.status, 429, "{}", asked.text());
        let solution = submission(&challenge::solve(&asked).unwrap());
        let submit = |node: usize| taken(solution.send_from(source, nodes[node]));
        let times = if number % 3 == 0 {
            submit(first) + submit(1 - first)
        } else {
            thread::scope(|scope| {
                let other = scope.spawn(|| submit(1 - first));
                submit(first) + other.join().unwrap()
            })
        };
        let _ = tell.send(Told::Puzzle(source, solution, times));
    }
}

/// 1 for a submission that earned a clearance.
fn taken(answer: std::io::Result<Response>) -> usize {
    let Ok(answer) = answer else { return 0 };
    assert!(matches!(answer.status, 204 | 403), "{} {}", answer.status, answer.text());
    usize::from(answer.status == 204)
}

fn verify(site: &Site, told: &[Told]) {
    let states: Vec<Ipv4Addr> =
        told.iter().filter_map(|one| if let Told::State(source) = one { Some(*source) } else { None }).collect();
    for one in told {
        match one {
            Told::Banned(source) | Told::Caught(source) => site.on_both(*source, 403, one),
            Told::Allowed(source) => site.on_both(*source, 200, one),
            // All at once, below.
            Told::State(_) => {}
            Told::Puzzle(source, solution, times) => {
                assert!(*times <= 1, "one puzzle earned {times} clearances: {solution:?}");
                for node in &site.nodes {
                    let answer = solution.send_from(*source, node.address).unwrap();
                    assert!(
                        *times == 0 || (answer.status == 403 && answer.text().contains("challenge_failed")),
                        "a spent puzzle was answered with {} on {}: {}",
                        answer.status,
                        node.name,
                        answer.text()
                    );
                }
            }
        }
    }
    site.acknowledged(&states);
}

/// Everything that was acknowledged is on the control plane's lists.
fn listed(site: &Site, told: &[Told]) {
    let bans = bans(&site.console).unwrap();
    let entries = site.console.get("_allowlist?pageSize=10000");
    let entries = keys(&entries["entries"]);
    for one in told {
        let (list, address) = match one {
            Told::Banned(address) | Told::Caught(address) => (&bans, address),
            Told::Allowed(address) => (&entries, address),
            _ => continue,
        };
        assert!(list.contains(&format!("ip:{address}")), "{one:?} was acknowledged and is gone");
    }
}

fn bans(console: &Console) -> Option<Vec<String>> {
    Some(keys(&console.try_get("_bans?pageSize=10000").ok()?["bans"]))
}

fn keys(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|one| Some(one["key"].as_str()?.to_owned())).collect()
}

fn count(told: &[Told]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for one in told {
        let name = match one {
            Told::Banned(_) => "bans by hand",
            Told::Caught(_) => "bans of tiers",
            Told::Allowed(_) => "allowlist entries",
            Told::State(_) => "incident states",
            Told::Puzzle(_, _, 0) => "puzzles refused",
            Told::Puzzle(..) => "puzzles spent",
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// Nobody has the same address twice.
fn address(net: u8, round: u32, number: u32) -> Ipv4Addr {
    let serial = (round << 10 | number & 0x3ff).to_be_bytes();
    Ipv4Addr::new(127, net + serial[1], serial[2], serial[3])
}

fn program() -> Request {
    Request::new("GET", "/?probe=1").header("accept", "application/json").header("user-agent", "program/1")
}

fn submission(solution: &str) -> Request {
    Request::new("POST", "/?probe=1").header("user-agent", "program/1").header("x-svc-challenge", solution).body("")
}

fn clean_requests(to: SocketAddr) -> Plan {
    let requests = vec![
        Request::get("/search?q=garden+chairs").encode(),
        Request::post("/echo", "application/x-www-form-urlencoded", "name=Ada&city=London").encode(),
    ];
    Plan { to, connections: 4, requests, pause: Duration::from_millis(5), cpu: None }
}

/// Two nodes under one control plane, in groups of their own: each has its port.
struct Site {
    nodes: [Node; 2],
    console: Console,
    control: ControlPlane,
    _backend: Backend,
}

impl Site {
    fn start() -> Site {
        let backend = Backend::start();
        let control = ControlPlane::start();
        let ports = [ports::free(), ports::free()];
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
        let policy = threat_policy("demo", json!({"tiers": tiers, "challenge_provider": "work"}));
        control.create("threat-policies", &policy);
        control.create("routes", &route("demo", backend.address(), preset("demo", "demo")));
        let console = Console::login(&control);
        assert_eq!(console.post("_ban", &json!({"ref": "ip:127.64.0.0/12", "duration_seconds": 86_400}))["done"], true);
        let node = |name: &'static str, cluster: &str, port: u16| {
            let written = shipped("xds.yaml", &[(WRITTEN_XDS_PORT, control.xds().port()), (WRITTEN_ADMIN_PORT, 0)]);
            let said = "  id: gateway-1\n  cluster: palisade\n";
            assert!(written.contains(said), "xds.yaml says something else of its node");
            let bootstrap = written.replace(said, &format!("  id: {name}\n  cluster: {cluster}\n"));
            let mut node = Node { name, bootstrap, address: SocketAddr::from(([127, 0, 0, 1], port)), envoy: None };
            node.start();
            node
        };
        let nodes = [node("node-0", "palisade", ports[0]), node("node-1", "other", ports[1])];
        Site { nodes, console, control, _backend: backend }
    }

    /// Waits until an address is answered with a status on both nodes.
    fn on_both(&self, source: Ipv4Addr, status: u16, why: impl std::fmt::Debug) {
        for node in &self.nodes {
            let mut last = 0;
            wait_for("the change is in force", PATIENCE, || {
                last = Request::get("/").send_from(source, node.address).map_or(0, |answer| answer.status);
                (last == status).then_some(())
            })
            .unwrap_or_else(|_| {
                panic!("{why:?} is answered with {last} by {}\n{}", node.name, node.envoy().log_tail(40))
            });
        }
    }

    /// Waits until the incidents of banned addresses show their state. Each is made by its address' next refusal.
    fn acknowledged(&self, sources: &[Ipv4Addr]) {
        let mut missing: BTreeMap<String, Ipv4Addr> = sources.iter().map(|it| (format!("ip:{it}"), *it)).collect();
        let outcome = wait_for("the incidents", PATIENCE, || {
            for source in missing.values() {
                let _ = Request::get("/").send_from(*source, self.nodes[0].address);
            }
            let list = self.console.get("_incidents");
            for incident in list["incidents"].as_array().into_iter().flatten() {
                if missing.remove(incident["key"].as_str()?).is_some() {
                    assert_eq!(incident["state"], "acknowledged", "{incident}");
                }
            }
            missing.is_empty().then_some(())
        });
        outcome.unwrap_or_else(|why| panic!("{why}: {missing:?}"));
    }
}

struct Node {
    name: &'static str,
    bootstrap: String,
    address: SocketAddr,
    envoy: Option<Envoy>,
}

impl Node {
    fn start(&mut self) {
        let envoy = Envoy::start(&self.bootstrap);
        wait_for("the node serves", PATIENCE, || TcpStream::connect(self.address).ok())
            .unwrap_or_else(|why| panic!("{}: {why}\n{}", self.name, envoy.log_tail(40)));
        self.envoy = Some(envoy);
    }

    fn kill(&mut self) {
        let failures = self.envoy().vm_failures();
        assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
        // Dropped is killed.
        self.envoy = None;
    }

    /// Waits until the node has noticed that there is no control plane.
    fn until_it_is_alone(&self) {
        let links =
            || self.envoy().stats(r"^cluster\.palisade-control-plane\.upstream_cx_active$").values().sum::<u64>();
        wait_for("the end of the link", PATIENCE, || (links() == 0).then_some(()))
            .unwrap_or_else(|why| panic!("{}: {why}\n{}", self.name, self.envoy().log_tail(40)));
    }

    fn envoy(&self) -> &Envoy {
        self.envoy.as_ref().expect("the node runs")
    }
}
