//! `gateway` of `global-config`: the listener that xDS serves.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FieldProblem, ListenerConfig, ServerTls, did_you_mean, plugins};

/// The listener that xDS serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gateway {
    /// The address it listens on. Default `0.0.0.0`.
    pub address: String,
    /// The port it listens on. Default 10000.
    pub port: u16,
    /// The filters in its chain: `["preset"]` (the default, all plugins in one VM), or single ones such as
    /// `["threat-gate", "waf", "threat-response"]`. At least one.
    pub filters: Vec<String>,
    /// The file of the access log; empty for none. Default `/dev/stdout`.
    pub access_log: String,
    /// The maximum size of a buffered body in bytes. Default 2097152.
    pub max_body_bytes: u32,
    /// What gateways get from the control plane: `full` (the default) for everything, `ecds` for the configurations of
    /// filters only, if another control plane owns listeners, routes and clusters.
    pub delivery: Delivery,
    /// Limits and timeouts for requests.
    pub listener: ListenerConfig,
    /// TLS of the listener; null (the default) for none: then something in front of the gateway ends it.
    pub tls: Option<ServerTls>,
}

impl Default for Gateway {
    fn default() -> Gateway {
        Gateway {
            address: "0.0.0.0".to_owned(),
            port: 10_000,
            filters: vec!["preset".to_owned()],
            access_log: "/dev/stdout".to_owned(),
            max_body_bytes: 2_097_152,
            delivery: Delivery::Full,
            listener: ListenerConfig::default(),
            tls: None,
        }
    }
}

impl Gateway {
    pub(super) fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        if self.address.parse::<IpAddr>().is_err() {
            let message = format!("`{}` is not an address", self.address.escape_debug());
            problems.push(FieldProblem::new("/address", message).expected("an address such as `0.0.0.0` or `::`"));
        }
        if self.port == 0 {
            problems.push(FieldProblem::new("/port", "Envoy would listen on a random port").expected("1 to 65535"));
        }
        let log = &self.access_log;
        if !log.is_empty() && (!log.starts_with('/') || log.contains(char::is_control)) {
            let message = format!("no gateway can open `{}` as its access log", log.escape_debug());
            problems.push(
                FieldProblem::new("/access_log", message)
                    .expected("the whole path of a file, such as `/dev/stdout`, or empty for none"),
            );
        }
        problems.extend(self.listener.check().into_iter().map(|problem| problem.under("/listener")));
        let tls = self.tls.iter().flat_map(ServerTls::check);
        problems.extend(tls.map(|problem| problem.under("/tls")));
        if self.filters.is_empty() {
            let message = "without a filter nothing is protected, and no ban holds";
            problems.push(FieldProblem::new("/filters", message).expected("at least one filter, such as `preset`"));
        }
        for (index, filter) in self.filters.iter().enumerate() {
            // A gateway refuses a listener whose module it does not have.
            if !plugins::filters().any(|known| known == filter) {
                let near = did_you_mean(filter, plugins::filters()).map(|near| format!(", did you mean `{near}`?"));
                let message = format!("there is no filter `{}`{}", filter.escape_debug(), near.unwrap_or_default());
                let all: Vec<String> = plugins::filters().map(|name| format!("`{name}`")).collect();
                problems.push(
                    FieldProblem::new(format!("/filters/{index}"), message)
                        .expected(format!("one of {}", all.join(", "))),
                );
            } else if self.filters.iter().take(index).any(|earlier| earlier == filter) {
                problems
                    .push(FieldProblem::new(format!("/filters/{index}"), format!("`{filter}` is in the chain twice")));
            }
        }
        problems
    }
}

impl Gateway {
    /// Whether its filters can know the TLS fingerprints of clients: the listener that xDS serves computes them if it has TLS, and others
    /// may.
    #[must_use]
    pub fn may_have_fingerprints(&self) -> bool {
        self.tls.is_some() || self.delivery == Delivery::Ecds
    }
}

/// What a gateway gets from the control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// Everything: listener, routes, clusters and filters.
    #[default]
    Full,
    /// Only the configurations of filters (ECDS): another control plane owns listeners, routes and clusters.
    Ecds,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_has_filters_of_this_release() {
        let problems = |filters: &[&str]| -> Vec<(String, String)> {
            let filters = filters.iter().map(|&name| name.to_owned()).collect();
            let problems = Gateway { filters, ..Gateway::default() }.check();
            problems.into_iter().map(|problem| (problem.pointer, problem.message)).collect()
        };
        assert_eq!(problems(&["preset"]), []);
        assert_eq!(problems(&["threat-gate", "waf", "threat-response"]), []);
        assert_eq!(problems(&[])[0].0, "/filters");
        let expected = ("/filters/1".to_owned(), "there is no filter `presett`, did you mean `preset`?".to_owned());
        assert_eq!(problems(&["waf", "presett"]), [expected]);
        for wrong in ["Preset", "preset ", "../preset", "noop", ""] {
            assert_eq!(problems(&[wrong]).len(), 1, "{wrong}");
        }
        assert_eq!(problems(&["waf", "waf"])[0].0, "/filters/1", "twice");
        for (access_log, is_path) in
            [("", true), ("/dev/stdout", true), ("log.txt", false), ("/a\0", false), ("/a\nb", false)]
        {
            let found = Gateway { access_log: access_log.to_owned(), ..Gateway::default() }.check();
            assert_eq!(found.is_empty(), is_path, "{access_log:?}: {found:?}");
        }
    }
}
