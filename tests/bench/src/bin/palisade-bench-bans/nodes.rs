//! Two real Envoys on one control plane or two, and connections of which it is known which worker has them.

use std::net::SocketAddr;
use std::time::Duration;

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::shipped;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT, preset, route, threat_policy, waf_config};
use palisade_tests::http::{Connection, Request, percent};
use palisade_tests::ports;
use palisade_tests::process::wait_for;
use palisade_tests::redis::Redis;
use serde_json::json;

/// Workers of each Envoy.
pub(crate) const WORKERS: usize = 2;
/// Both Envoys, by the groups that tell their ports apart.
pub(crate) const NAMES: [&str; 2] = ["east", "west"];
/// No change takes this long on any machine; it bounds a run that fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Enough connections that no worker stays out of it.
const MAX_TRIES: usize = 200;
const ATTACK: &str = "1' UNION SELECT password FROM users-- -";

/// The control plane, and what it protects.
pub(crate) struct Site {
    pub(crate) control: ControlPlane,
    /// Another one on the same Redis.
    pub(crate) other: Option<(ControlPlane, Redis)>,
    _backend: Backend,
    ports: [u16; 2],
}

/// An Envoy, and a connection to each of its workers.
pub(crate) struct Node {
    // First, so that it ends before what it depends on.
    pub(crate) envoy: Envoy,
    pub(crate) workers: Vec<Connection>,
    pub(crate) address: SocketAddr,
}

impl Site {
    /// A control plane whose one policy bans whoever attacks. Callers are told apart by a header, so that many can be on one
    /// connection.
    pub(crate) fn start() -> Self {
        Self::with(ControlPlane::start(), None)
    }

    /// The same with two control planes on one Redis; each Envoy knows both.
    pub(crate) fn start_shared() -> Self {
        let redis = Redis::start();
        let control = ControlPlane::start_with(&["--store".to_owned(), redis.url()]);
        let other = ControlPlane::start_beside(&control);
        Self::with(control, Some((other, redis)))
    }

    fn with(control: ControlPlane, other: Option<(ControlPlane, Redis)>) -> Self {
        let backend = Backend::start();
        let ports = [ports::free(), ports::free()];
        control.configure(&json!({
            "gateway": {"address": "127.0.0.1", "port": ports::free(), "access_log": ""},
            "groups": {NAMES[0]: {"port": ports[0]}, NAMES[1]: {"port": ports[1]}},
            "identity": {
                "trusted_hops": 1, "verified_by": [{"kind": "trusted_header", "header": "x-caller", "set_by": "proxy"}],
            },
            // Every ban is to come from where it is measured.
            "security": {"ledger": {"enabled": false}},
        }));
        let tiers = json!([{"min_score": 20, "action": "ban", "status": 403, "ban_for_seconds": 86_400}]);
        control.create("waf-configs", &waf_config("main", json!({"block": false})));
        control.create("threat-policies", &threat_policy("main", json!({"tiers": tiers})));
        control.create("routes", &route("main", backend.address(), preset("main", "main")));
        Self { control, other, _backend: backend, ports }
    }

    /// Starts the Envoy of that number; it may not be listening yet.
    pub(crate) fn launch(&self, number: usize) -> Result<(Envoy, SocketAddr), String> {
        let name = NAMES[number];
        let written = shipped("xds.yaml", &[(WRITTEN_XDS_PORT, self.control.xds().port()), (WRITTEN_ADMIN_PORT, 0)]);
        let bootstrap = written
            .replace("  id: gateway-1\n", &format!("  id: {name}\n"))
            .replace("  cluster: palisade\n", &format!("  cluster: {name}\n"));
        let bootstrap = match &self.other {
            Some((other, _)) => with_endpoint(&bootstrap, other.xds().port())?,
            None => bootstrap,
        };
        if bootstrap.matches(name).count() < 2 {
            return Err("envoy/xds.yaml has no `id: gateway-1` and `cluster: palisade`".to_owned());
        }
        let envoy = Envoy::start_with(&bootstrap, WORKERS, None)?;
        Ok((envoy, SocketAddr::from(([127, 0, 0, 1], self.ports[number]))))
    }

    /// Starts the Envoy of that number and waits until each of its workers has answered.
    pub(crate) fn node(&self, number: usize) -> Result<Node, String> {
        let (envoy, address) = self.launch(number)?;
        wait_for(&format!("{} answers", NAMES[number]), PATIENCE, || {
            let answer = harmless("nobody").send(address).ok()?;
            (answer.status == 200).then_some(())
        })
        .map_err(|why| format!("{why}\n{}", envoy.log_tail(40)))?;
        let workers = each_worker(&envoy, address)?;
        Ok(Node { envoy, workers, address })
    }
}

/// The bootstrap with another control plane beside the one that it names.
fn with_endpoint(bootstrap: &str, port: u16) -> Result<String, String> {
    let is_endpoint = |line: &&str| line.trim_start().starts_with("- endpoint: ");
    let line = bootstrap.lines().find(is_endpoint).ok_or("envoy/xds.yaml has no endpoint of its control plane")?;
    let (before, after) = line.split_once("port_value: ").ok_or("the endpoint in envoy/xds.yaml has no port")?;
    let rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
    Ok(bootstrap.replacen(line, &format!("{line}\n{before}port_value: {port}{rest}"), 1))
}

/// A connection to every worker. Envoy counts connections by worker: one is opened at a time, and the counter that moves says
/// whose it is.
pub(crate) fn each_worker(envoy: &Envoy, address: SocketAddr) -> Result<Vec<Connection>, String> {
    let mut found: Vec<(String, Connection)> = Vec::new();
    for _ in 0..MAX_TRIES {
        let before = envoy.worker_connections();
        let mut connection = Connection::open(address).map_err(|error| format!("{address}: {error}"))?;
        let status = ask(&mut connection, &harmless("nobody"))?;
        if status != 200 {
            return Err(format!("a harmless request is answered with {status}"));
        }
        let after = envoy.worker_connections();
        let mut moved = after.iter().filter(|(name, count)| before.get(*name).is_none_or(|known| known < *count));
        let (Some((worker, _)), None) = (moved.next(), moved.next()) else {
            continue;
        };
        if !found.iter().any(|(known, _)| known == worker) {
            found.push((worker.clone(), connection));
        }
        if found.len() == WORKERS {
            return Ok(found.into_iter().map(|(_, connection)| connection).collect());
        }
    }
    Err(format!("{} of {WORKERS} workers took a connection: {:?}", found.len(), envoy.worker_connections()))
}

/// A request that nobody objects to but for its caller.
pub(crate) fn harmless(caller: &str) -> Request {
    Request::get("/").header("x-caller", caller)
}

/// A request that the policy bans for.
pub(crate) fn attack(caller: &str) -> Request {
    Request::get(format!("/search?q={}", percent(ATTACK))).header("x-caller", caller)
}

/// The status of a request.
pub(crate) fn ask(connection: &mut Connection, request: &Request) -> Result<u16, String> {
    connection.exchange(request).map(|answer| answer.status).map_err(|error| format!("no answer: {error}"))
}
