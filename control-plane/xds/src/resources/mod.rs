//! From a plain description of a gateway to Envoy's resources.
//!
//! [`build`] is pure and deterministic: equal input gives equal bytes, and so equal versions.

mod clusters;
mod common;
mod domains;
mod filters;
mod input;
mod listener;
mod routes;
mod server_tls;

use std::collections::BTreeSet;

use super::set::{Kind, ResourceSet};
use entities::Delivery;
use filters::Extension;

pub use input::{
    BackendInput, BackendTls, FilterInput, Gateway, ListenerSettings, NAME, RouteInput, SYSTEM_AUTHORITIES,
};

/// What is wrong with a gateway's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildProblem {
    /// Id of the route entity that it lies in; `None` where it lies in no route.
    pub route: Option<String>,
    /// What is wrong, for the person who wrote it.
    pub message: String,
}

impl std::error::Error for BuildProblem {}

impl std::fmt::Display for BuildProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.route {
            Some(id) => write!(f, "route {id:?}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Everything for which [`build`] would refuse a gateway, but for the filters' snapshots: the admission of entities asks
/// this of each group, so that what is stored can be served. It costs much less than to build.
#[must_use]
pub fn check(gateway: &Gateway) -> Vec<BuildProblem> {
    let mut problems = check_names(gateway);
    if gateway.ecds_only {
        return problems;
    }
    for route in &gateway.routes {
        let found = route.backend.as_ref().and_then(|backend| clusters::check(backend).err());
        let found = found.into_iter().chain(routes::check(route));
        problems.extend(found.map(|message| BuildProblem { route: Some(route.id.clone()), message }));
    }
    let listener = listener::check(&gateway.listener).err();
    problems.extend(listener.map(|message| BuildProblem { route: None, message }));
    problems
}

/// Builds the resources of a gateway.
///
/// # Errors
///
/// What is wrong with the input, for the person who wrote it: which route or filter, which field.
pub fn build(gateway: &Gateway) -> Result<ResourceSet, BuildProblem> {
    if let Some(problem) = check(gateway).into_iter().next() {
        return Err(problem);
    }
    let mut set = ResourceSet::new(if gateway.ecds_only { Delivery::Ecds } else { Delivery::Full });
    if !gateway.ecds_only {
        insert_own(&mut set, gateway);
    }
    for filter in &gateway.filters {
        let Extension { version, config, parts } = filters::extension(filter, gateway.control_plane_cluster.as_deref())
            .map_err(|message| BuildProblem { route: None, message })?;
        set.insert_filter(&config, parts);
        set.note_snapshot(filter.name.clone(), version);
    }
    Ok(set)
}

/// What only a gateway has whose listener is ours.
fn insert_own(set: &mut ResourceSet, gateway: &Gateway) {
    for backend in gateway.routes.iter().filter_map(|route| route.backend.as_ref()) {
        let cluster = clusters::cluster(backend);
        set.insert_message(Kind::Cluster, cluster.name.clone(), &cluster);
    }
    let listener = listener::listener(&gateway.listener, &gateway.filters);
    set.insert_message(Kind::Listener, listener.name.clone(), &listener);
    let request_buffer = request_buffer_bytes(&gateway.listener);
    set.insert(Kind::Route, NAME, routes::route_configuration(&gateway.routes, request_buffer));
}

/// How many bytes of one request's body may be held. A filter that has seen enough releases the body, but one read from
/// the connection can bring a whole connection's limit at once. With less room than both, Envoy itself answers 413 to some
/// of the bodies that are to pass.
fn request_buffer_bytes(listener: &ListenerSettings) -> u64 {
    let connection = u64::from(listener.buffer_limit_bytes);
    listener.largest_request_bytes.max(connection).saturating_add(connection)
}

fn check_names(gateway: &Gateway) -> Vec<BuildProblem> {
    let mut problems = Vec::new();
    let mut names = BTreeSet::new();
    for route in &gateway.routes {
        let name = &route.envoy_route;
        let message = if name.is_empty() {
            "envoy_route is empty; filters find a route's chain by this name".to_owned()
        } else if !names.insert(name.as_str()) {
            format!("another route already has envoy_route {name:?}; give each its own, filters find their chain by it")
        } else {
            continue;
        };
        problems.push(BuildProblem { route: Some(route.id.clone()), message });
    }
    let mut names = BTreeSet::new();
    for filter in &gateway.filters {
        let name = &filter.name;
        let message = if name.is_empty() || !names.insert(name.as_str()) {
            format!("filter {name:?}: each filter needs a unique name")
        } else if filter.module_path.is_empty() {
            format!("filter {name:?}: module_path is empty; name the .wasm file that Envoy is to load")
        } else {
            continue;
        };
        problems.push(BuildProblem { route: None, message });
    }
    problems
}

#[cfg(test)]
mod tests;
