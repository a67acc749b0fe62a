//! What bans are measured on: two gateways whose one policy bans every attack.

use std::net::SocketAddr;

use palisade_tests::control_plane::ControlPlane;
use palisade_tests::gateway::{preset, route, threat_policy, waf_config};
use palisade_tests::ports;
use serde_json::json;

/// Both Envoys, by the groups that tell their ports apart.
pub const NAMES: [&str; 2] = ["east", "west"];

/// Has the control plane protect a backend, and returns the ports of the Envoys. Callers are told apart by a header, so that many can be on
/// one connection.
///
/// # Panics
///
/// When the control plane refuses it.
#[must_use]
pub fn protect(control: &ControlPlane, backend: SocketAddr) -> [u16; 2] {
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
    control.create("routes", &route("main", backend, preset("main", "main")));
    ports
}
