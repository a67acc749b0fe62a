//! Gateways of a fleet: each has several control planes, which share a store, and uses the first one that answers.

use crate::bootstrap::shipped;
use crate::gateway::{WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT};

/// The part of `envoy/xds.yaml` that names the control plane.
const ENDPOINTS: &str = "          - lb_endpoints:
              - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 18000 } } }
";
/// A control plane that refuses connections is left after one check; docs/fleet.md shows the same text.
const CHECKS: &str = "      health_checks:
        - { timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {} }
      load_assignment:
";

/// The shipped bootstrap with this node id and cluster, and these control planes, the preferred one first.
///
/// # Panics
///
/// When `envoy/xds.yaml` is not as expected.
#[must_use]
pub fn bootstrap(id: &str, cluster: &str, control_planes: &[u16]) -> String {
    let endpoint = |(priority, port): (usize, &u16)| {
        format!(
            "          - priority: {priority}
            lb_endpoints:
              - endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }} }}
"
        )
    };
    let endpoints: String = control_planes.iter().enumerate().map(endpoint).collect();
    let changes = [
        ("  id: gateway-1\n  cluster: palisade\n", format!("  id: {id}\n  cluster: {cluster}\n")),
        ("      load_assignment:\n", CHECKS.to_owned()),
        (ENDPOINTS, endpoints),
    ];
    // The port of the control plane is checked there as well.
    let written = shipped("xds.yaml", &[(WRITTEN_ADMIN_PORT, 0), (WRITTEN_XDS_PORT, WRITTEN_XDS_PORT)]);
    changes.into_iter().fold(written, |text, (from, to)| {
        assert!(text.contains(from), "envoy/xds.yaml has no `{from}`");
        text.replace(from, &to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_shows_the_same() {
        let shown = include_str!("../../docs/fleet.md");
        assert!(shown.contains(CHECKS));
        let named =
            |text: &str| text.replace("127.0.0.1", "HOST").replace("10.0.0.1", "HOST").replace("10.0.0.2", "HOST");
        let endpoints = bootstrap("east", "fleet", &[18_000, 18_000]);
        let start = endpoints.find("          - priority: 0").unwrap();
        let end = endpoints[start..].find("priority: 1").unwrap();
        assert!(named(shown).contains(&named(&endpoints[start..start + end])), "{}", &endpoints[start..start + end]);
    }

    #[test]
    fn control_planes_have_priorities_in_their_order() {
        let text = bootstrap("east", "fleet", &[7001, 7002]);
        let first = text.find("priority: 0").unwrap();
        let second = text.find("priority: 1").unwrap();
        assert!(text[first..second].contains("port_value: 7001 ") && text[second..].contains("port_value: 7002 "));
        assert!(text.contains("  id: east\n  cluster: fleet\n") && !text.contains("port_value: 18000"));
    }
}
