//! Virtual hosts and their routes: what is checked at each.

use std::collections::{BTreeMap, BTreeSet};

use super::filters::{HttpFilter, Levels};
use super::matching::Reach;
use super::node::{Node, Notes, short};
use super::{ImportError, ImportedRoute, MAX_ROUTES};
use crate::facts::{CredentialCheck, CredentialKind, EnvoyRoute, MAX_CHECKS, MAX_HOSTS, MAX_PLACES};

/// Bytes of all patterns that are kept, at most.
const MAX_PATTERN_BYTES: usize = 64 << 20;
/// Hosts or paths of a route, at most; beyond it the route has all.
const MAX_NAMES: usize = 100;
/// Clusters of a route that have settings of their own, at most.
const MAX_CLUSTERS: usize = 100;
/// The characters of a route's name, at most.
const MAX_NAME: usize = 256;

/// The fields of a `WeightedCluster.ClusterWeight` in Envoy 1.40.
const CLUSTER_FIELDS: [&str; 10] = [
    "name",
    "cluster_header",
    "weight",
    "metadata_match",
    "request_headers_to_add",
    "request_headers_to_remove",
    "response_headers_to_add",
    "response_headers_to_remove",
    "typed_per_filter_config",
    "host_rewrite_literal",
];

/// A chain of filters that routes are behind.
pub(super) struct Chain<'c, 'a> {
    pub(super) listener: &'c str,
    /// What TLS and network filters check.
    pub(super) before: &'c [CredentialCheck],
    pub(super) filters: &'c [HttpFilter<'a>],
}

/// The routes that were found.
#[derive(Default)]
pub(super) struct Collected {
    routes: BTreeMap<String, Building>,
    count: usize,
    pattern_bytes: usize,
}

#[derive(Default)]
struct Building {
    hosts: BTreeSet<String>,
    paths: BTreeSet<String>,
    places: Vec<EnvoyRoute>,
    /// The index of each place, by all of it but its virtual hosts.
    known: BTreeMap<String, usize>,
}

// === impl Collected ===

impl Collected {
    /// Adds the routes of a route configuration.
    ///
    /// # Errors
    /// There are more than the limit.
    pub(super) fn add(&mut self, config: &Node<'_>, chain: &Chain<'_, '_>, notes: &Notes) -> Result<(), ImportError> {
        if let Some(vhds) = config.get("vhds") {
            notes.warn(&vhds, "virtual hosts from elsewhere (VHDS) are not read");
        }
        for host in config.objects("virtual_hosts", notes) {
            if let Some(matcher) = host.get("matcher") {
                notes.warn(&matcher, "routes of a `matcher` are not read, so that they are not imported");
            }
            for route in host.objects("routes", notes) {
                self.count += 1;
                if self.count > MAX_ROUTES {
                    let message =
                        format!("there are more than {MAX_ROUTES} routes; import single listeners by `--listener`");
                    return Err(ImportError { pointer: route.pointer(), message });
                }
                self.route(&route, &host, config, chain, notes)?;
            }
        }
        Ok(())
    }

    fn route(
        &mut self,
        route: &Node<'_>,
        host: &Node<'_>,
        config: &Node<'_>,
        chain: &Chain<'_, '_>,
        notes: &Notes,
    ) -> Result<(), ImportError> {
        // It leads no request to a backend.
        if route.get("redirect").is_some() {
            return Ok(());
        }
        let matching = route.object("match", notes);
        let reach = matching.as_ref().map_or_else(
            || Reach { conditional: true, ..Reach::everything() },
            |matching| Reach::of_route_match(matching, notes),
        );
        let mut before = chain.before.to_vec();
        let validated =
            matching.as_ref().and_then(|matching| matching.object("tls_context", notes)?.flag("validated", notes));
        if validated == Some(true) {
            before.push(CredentialCheck::new(vec![CredentialKind::ClientCertificate], "tls_context"));
        }
        let virtual_host: String = host.text("name", notes).unwrap_or_default().chars().take(MAX_NAME).collect();
        let name = route_name(route, &virtual_host, &reach, notes);
        let faults = notes.faults();
        let own = [route, host, config].into_iter().filter_map(|level| level.object("typed_per_filter_config", notes));
        let own: Vec<Node<'_>> = own.collect();
        let clusters = clusters(route, notes);
        clusters.iter().for_each(|cluster| cluster.only(&CLUSTER_FIELDS, notes));
        let of_clusters =
            clusters.iter().take(MAX_CLUSTERS).map(|cluster| cluster.object("typed_per_filter_config", notes));
        // Some cluster without settings has those of the route; without clusters there are those alone.
        let mut variants: Vec<Option<Node<'_>>> = of_clusters.collect();
        if variants.is_empty() || clusters.len() > MAX_CLUSTERS {
            variants.push(None);
        }
        for (_, settings) in own.iter().chain(variants.iter().flatten()).flat_map(Node::each) {
            if settings.get("@type").is_none() {
                notes.fault(&settings, "an object with its `@type` is expected");
            }
        }
        let readable = notes.faults() == faults;
        let building = self.routes.entry(name).or_default();
        building.hosts.extend(
            host.list("domains", notes).iter().filter_map(|domain| domain.own_text(notes)).filter_map(host_pattern),
        );
        building.paths.insert(path_prefix(&reach));
        for variant in variants {
            let levels: Vec<Node<'_>> = variant.into_iter().chain(own.iter().cloned()).collect();
            let levels = Levels { levels: &levels };
            let mut checks = before.clone();
            if readable {
                checks.extend(chain.filters.iter().flat_map(|filter| filter.checks(&levels, &reach, notes)));
            }
            if checks.len() > MAX_CHECKS {
                notes.warn(
                    route,
                    format!("there are more than {MAX_CHECKS} different checks; those beyond count as none"),
                );
                checks.truncate(MAX_CHECKS);
            }
            let patterns = checks.iter().flat_map(|check| check.include.iter().chain(&check.exclude));
            self.pattern_bytes += patterns.map(String::len).sum::<usize>();
            if self.pattern_bytes > MAX_PATTERN_BYTES {
                let message = "the rules have too many patterns in all; import single listeners by `--listener`";
                return Err(ImportError { pointer: route.pointer(), message: message.to_owned() });
            }
            building.place(EnvoyRoute {
                listener: chain.listener.to_owned(),
                virtual_hosts: vec![virtual_host.clone()],
                path: reach.path.as_ref().map(|path| path.regex.clone()).unwrap_or_default(),
                methods: reach.methods.iter().flatten().map(|method| (*method).to_owned()).collect(),
                checks,
            });
        }
        Ok(())
    }

    /// The routes.
    ///
    /// # Errors
    /// One is in more different places than a route can have.
    pub(super) fn finish(self) -> Result<Vec<ImportedRoute>, ImportError> {
        let routes = self.routes.into_iter().map(|(name, building)| {
            let Building { hosts, paths, mut places, .. } = building;
            if places.len() > MAX_PLACES {
                places = widened(places);
            }
            if places.len() > MAX_PLACES {
                let message =
                    format!("the route `{}` is in more than {MAX_PLACES} places that check differently", short(&name));
                return Err(ImportError { pointer: String::new(), message });
            }
            Ok(ImportedRoute { name, hosts: names(hosts, "*"), paths: names(paths, "/"), places })
        });
        routes.collect()
    }
}

// === impl Building ===

impl Building {
    fn place(&mut self, place: EnvoyRoute) {
        let key = EnvoyRoute { virtual_hosts: Vec::new(), ..place.clone() };
        // Places are plain data: writing one as JSON has no way to fail.
        let key = serde_json::to_string(&key).unwrap_or_default();
        match self.known.get(&key).and_then(|index| self.places.get_mut(*index)) {
            Some(known) => merge_hosts(known, place.virtual_hosts),
            None => {
                self.known.insert(key, self.places.len());
                self.places.push(place);
            }
        }
    }
}

fn merge_hosts(place: &mut EnvoyRoute, hosts: Vec<String>) {
    for host in hosts {
        if place.virtual_hosts.len() < MAX_HOSTS && !place.virtual_hosts.contains(&host) {
            place.virtual_hosts.push(host);
        }
    }
}

/// Places without their paths and methods: each may have any request then, which makes more findings and hides none.
fn widened(places: Vec<EnvoyRoute>) -> Vec<EnvoyRoute> {
    let mut building = Building::default();
    for place in places {
        building.place(EnvoyRoute { path: String::new(), methods: Vec::new(), ..place });
    }
    building.places
}

fn names(names: BTreeSet<String>, all: &str) -> Vec<String> {
    if names.is_empty() || names.len() > MAX_NAMES || names.contains(all) {
        return vec![all.to_owned()];
    }
    names.into_iter().collect()
}

/// The weighted clusters that a route leads to; a fault where its action is not known, because each may have settings of its own.
fn clusters<'a>(route: &Node<'a>, notes: &Notes) -> Vec<Node<'a>> {
    let Some(action) = route.object("route", notes) else { return Vec::new() };
    let Some(weighted) = action.object("weighted_clusters", notes) else {
        let known = ["cluster", "cluster_header", "cluster_specifier_plugin", "inline_cluster_specifier_plugin"];
        if !known.iter().any(|field| action.get(field).is_some()) {
            notes.fault(&action, "where the route leads is not known to this release");
        }
        return Vec::new();
    };
    let clusters = weighted.list("clusters", notes);
    if clusters.is_empty() {
        notes.fault(&weighted, "there are no clusters");
    }
    clusters
}

/// The name of a route. Filters find routes by it, so that one without a name gets a name to give it.
fn route_name(route: &Node<'_>, virtual_host: &str, reach: &Reach, notes: &Notes) -> String {
    if let Some(name) = route.text("name", notes).filter(|name| !name.is_empty()) {
        return name.chars().take(MAX_NAME).collect();
    }
    let text = format!("{virtual_host}{}", path_prefix(reach));
    let words = text.split(|character: char| !character.is_ascii_alphanumeric() && !"._".contains(character));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(100).collect();
    let name = if name.is_empty() { "route".to_owned() } else { name };
    notes.warn(
        route,
        format!("the route has no name, so that filters cannot find it and its requests get the global chain alone; it is imported as `{name}`: give it this name in Envoy"),
    );
    name
}

/// The domain of a virtual host as the host of a route, if a route can have it.
fn host_pattern(domain: &str) -> Option<String> {
    let host = match domain.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && (port == "*" || port.bytes().all(|byte| byte.is_ascii_digit())) => {
            host
        }
        _ => domain,
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let name = host.strip_prefix('*').or_else(|| host.strip_suffix('*')).unwrap_or(&host);
    let fits = host == "*"
        || (host.len() <= 253
            && name.bytes().any(|byte| byte.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
            && !name.contains("..")
            && !host.starts_with('.'));
    fits.then_some(host)
}

/// The longest prefix of the paths of a route that a route can have.
fn path_prefix(reach: &Reach) -> String {
    let text = reach.path.as_ref().map_or("/", |path| path.route_prefix());
    let plain: String = text
        .chars()
        .take_while(|character| character.is_ascii_alphanumeric() || "/-_.~".contains(*character))
        .collect();
    let odd = plain.contains("//") || plain.split('/').any(|segment| matches!(segment, "." | ".."));
    if odd || !plain.starts_with('/') { "/".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_hosts() {
        for (domain, host) in [
            ("*", Some("*")),
            ("Shop.example:8443", Some("shop.example")),
            ("shop.example.", Some("shop.example")),
            ("*.example", Some("*.example")),
            ("shop.*:*", Some("shop.*")),
            ("[::1]:80", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(host_pattern(domain).as_deref(), host, "{domain}");
        }
    }
}
