//! Backend, control plane and Envoy together.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::backend::Backend;
use crate::bootstrap::shipped;
use crate::control_plane::ControlPlane;
use crate::envoy::Envoy;
use crate::http::{Request, Response};
use crate::ports;
use crate::process::wait_for;

/// The port that `envoy/xds.yaml` has for the control plane.
pub const WRITTEN_XDS_PORT: u16 = 18000;
/// The port that `envoy/xds.yaml` has for Envoy's admin interface.
pub const WRITTEN_ADMIN_PORT: u16 = 9901;

/// A gateway configured over xDS, with two workers. Dropping it stops all three parts.
#[derive(Debug)]
pub struct Gateway {
    /// The real Envoy. First, so that it stops before what it depends on.
    pub envoy: Envoy,
    /// The control plane.
    pub control: ControlPlane,
    /// What it protects.
    pub backend: Backend,
    /// Where clients connect.
    pub address: SocketAddr,
}

impl Gateway {
    /// Starts the control plane, has `configure` create the entities, then starts Envoy and waits until it listens.
    ///
    /// # Panics
    ///
    /// When a part does not come up; with its log.
    #[must_use]
    pub fn start(configure: impl FnOnce(&ControlPlane, SocketAddr)) -> Self {
        Self::start_with(&[], configure)
    }

    /// [`Self::start`] with further arguments for the control plane.
    ///
    /// # Panics
    ///
    /// When a part does not come up; with its log.
    #[must_use]
    pub fn start_with(arguments: &[String], configure: impl FnOnce(&ControlPlane, SocketAddr)) -> Self {
        Self::start_workers(2, arguments, configure)
    }

    /// [`Self::start_with`] with another number of workers.
    ///
    /// # Panics
    ///
    /// When a part does not come up; with its log.
    #[must_use]
    pub fn start_workers(
        workers: usize,
        arguments: &[String],
        configure: impl FnOnce(&ControlPlane, SocketAddr),
    ) -> Self {
        let backend = Backend::start();
        let control = ControlPlane::start_with(arguments);
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let access_log = control.data().join("access.log");
        control.configure(&json!({"gateway": {
            "address": address.ip().to_string(),
            "port": address.port(),
            "access_log": access_log,
        }}));
        configure(&control, backend.address());
        let bootstrap = shipped("xds.yaml", &[(WRITTEN_XDS_PORT, control.xds().port()), (WRITTEN_ADMIN_PORT, 0)]);
        let envoy = Envoy::start_with(&bootstrap, workers, None).unwrap_or_else(|why| panic!("{why}"));
        let mut gateway = Self { envoy, control, backend, address };
        gateway.wait_until_open();
        gateway
    }

    /// Waits until the gateway's port takes connections.
    ///
    /// # Panics
    ///
    /// When it does not in time; with the logs.
    pub fn wait_until_open(&mut self) {
        let address = self.address;
        if let Err(why) =
            wait_for(&format!("the gateway on {address}"), Duration::from_secs(90), || TcpStream::connect(address).ok())
        {
            panic!("{why}\n{}\n{}", self.envoy.log_tail(40), self.control.process().log_tail(40));
        }
    }

    /// Sends a request to the gateway.
    ///
    /// # Panics
    ///
    /// When there is no answer; with Envoy's log.
    #[must_use]
    pub fn send(&self, request: &Request) -> Response {
        request.send(self.address).unwrap_or_else(|error| panic!("no answer: {error}\n{}", self.envoy.log_tail(40)))
    }

    /// The status that a request gets.
    ///
    /// # Panics
    ///
    /// When there is no answer; with Envoy's log.
    #[must_use]
    pub fn status(&self, request: &Request) -> u16 {
        self.send(request).status
    }

    /// Sends a request again and again until it gets a status; returns how long that took.
    ///
    /// # Panics
    ///
    /// When it never does within `patience`; with the logs.
    pub fn until(&mut self, request: &Request, status: u16, patience: Duration) -> Duration {
        let start = Instant::now();
        let mut last = 0;
        let outcome = wait_for(&format!("status {status}"), patience, || {
            last = request.send(self.address).map_or(0, |answer| answer.status);
            (last == status).then_some(())
        });
        if let Err(why) = outcome {
            panic!("{why}; the last was {last}\n{}\n{}", self.envoy.log_tail(40), self.control.process().log_tail(40));
        }
        start.elapsed()
    }

    /// Sends a request on fresh connections until every worker has taken some of them, and returns the statuses.
    ///
    /// # Panics
    ///
    /// When a worker stays out of it, or there is no answer; with Envoy's log.
    #[must_use]
    pub fn statuses_of_all_workers(&self, request: &Request) -> Vec<u16> {
        self.statuses_of_all_workers_from(Ipv4Addr::LOCALHOST, request)
    }

    /// [`Self::statuses_of_all_workers`] for a caller with an address of its own.
    ///
    /// # Panics
    ///
    /// When a worker stays out of it, or there is no answer; with Envoy's log.
    #[must_use]
    pub fn statuses_of_all_workers_from(&self, source: Ipv4Addr, request: &Request) -> Vec<u16> {
        self.envoy
            .every_worker(|| request.send_from(source, self.address).map(|answer| answer.status))
            .unwrap_or_else(|why| panic!("{why}\n{}", self.envoy.log_tail(40)))
    }

    /// The gateway's access log so far.
    #[must_use]
    pub fn access_log(&self) -> String {
        let path = self.control.data().join("access.log");
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    }
}

/// A waf-config that runs the Core Rule Set, with more fields or other values.
#[must_use]
pub fn waf_config(id: &str, more: Value) -> Value {
    merged(json!({"id": id, "name": id, "rules": ["@import_preset crs"]}), more)
}

/// A threat policy that is enforced, with more fields or other values.
#[must_use]
pub fn threat_policy(id: &str, more: Value) -> Value {
    let tiers = json!([{"min_score": 40, "action": "deny", "status": 403}]);
    merged(json!({"id": id, "name": id, "dry_run": false, "tiers": tiers}), more)
}

/// A route of every path to a backend, with its plugins.
#[must_use]
pub fn route(id: &str, backend: SocketAddr, plugins: Value) -> Value {
    json!({
        "id": id,
        "name": id,
        "backend": {"address": backend.ip().to_string(), "port": backend.port()},
        "plugins": plugins,
    })
}

/// The preset with its threat policy and its waf-config.
#[must_use]
pub fn preset(policy: &str, waf: &str) -> Value {
    json!([{"plugin": "SecuritySuitePreset", "config": {"threat_policy": policy, "waf_config": waf}}])
}

fn merged(mut base: Value, more: Value) -> Value {
    if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
        base.extend(more);
    }
    base
}
