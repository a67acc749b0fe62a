//! Two real Envoys on one control plane.

use std::net::SocketAddr;

use palisade_bench::site::{NAMES, protect};
use palisade_bench::workers::{Node, PATIENCE, WORKERS, each_worker, harmless};
use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::shipped;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT};
use palisade_tests::process::wait_for;

/// The control plane, and what it protects.
pub(crate) struct Site {
    pub(crate) control: ControlPlane,
    _backend: Backend,
    ports: [u16; 2],
}

impl Site {
    /// A control plane whose one policy bans every attack.
    pub(crate) fn start() -> Self {
        let control = ControlPlane::start();
        let backend = Backend::start();
        let ports = protect(&control, backend.address());
        Self { control, _backend: backend, ports }
    }

    /// Starts the Envoy of that number; it may not be listening yet.
    pub(crate) fn launch(&self, number: usize) -> Result<(Envoy, SocketAddr), String> {
        let name = NAMES[number];
        let written = shipped("xds.yaml", &[(WRITTEN_XDS_PORT, self.control.xds().port()), (WRITTEN_ADMIN_PORT, 0)]);
        let bootstrap = written
            .replace("  id: gateway-1\n", &format!("  id: {name}\n"))
            .replace("  cluster: palisade\n", &format!("  cluster: {name}\n"));
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
