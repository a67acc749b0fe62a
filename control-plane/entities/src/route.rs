//! `routes`: which requests, to which backend, through which plugins.

use credentials::Credentials;
use exchange::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::plugins::PRESET_CLASSES;
use super::{
    Entity, FieldProblem, Head, References, backend_address, groups, host_pattern, number, path_prefix, plugin_refs,
    unused,
};
use kit::reference;

/// The longest time for an answer, in milliseconds: a year. Envoy refuses what is beyond the years of its clock.
const MAX_TIMEOUT_MILLIS: u64 = 31_536_000_000;

/// A route of the gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// False: it is not served. Default true.
    pub enabled: bool,
    /// The groups of gateways that have it (`groups` of `global-config`, `default` for the others); default `[]`, which means
    /// all gateways.
    pub groups: Vec<String>,
    /// Its host names, without ports, case ignored: names, names with one `*` at their beginning (`*.example`,
    /// `*-shop.example`) or end (`shop.*`) for at least one character, IPv6 addresses in brackets, `*` for every host. The
    /// most specific applies: the name itself, the longest with `*` at its beginning, the longest with `*` at its end, `*`.
    /// A trailing dot is removed, and an IPv6 address is kept in its shortest form. Default `["*"]`.
    #[serde(deserialize_with = "hosts")]
    pub hosts: Vec<String>,
    /// Its path prefixes, in the form that requests have behind the listener: characters beyond ASCII are
    /// kept as escapes, escapes of unreserved characters as the characters. Default `["/"]`.
    #[serde(deserialize_with = "paths")]
    pub paths: Vec<String>,
    /// The name of the Envoy route; empty means the entity's id.
    pub envoy_route: String,
    /// The destination of requests; null if another control plane owns the Envoy routes.
    pub backend: Option<Backend>,
    /// The plugins of its chain.
    pub plugins: Vec<RoutePlugin>,
    /// What checks credentials on it beside its plugins, none of which does: for the audit of credentials alone.
    pub credentials: Credentials,
}

/// The destination of a route's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// A host name (RFC 1123, underscores are taken as well) or an IP address, without port.
    pub address: String,
    /// The TCP port.
    pub port: u16,
    /// Whether the gateway connects with TLS. Default false.
    #[serde(default)]
    pub tls: bool,
    /// The protocol it speaks. Default http1.
    #[serde(default)]
    pub protocol: Protocol,
    /// The timeout of a whole response in milliseconds, at most 31536000000; 0 means none. Default 15000.
    #[serde(default = "default_timeout_millis")]
    #[schemars(range(max = 31_536_000_000_u64))]
    pub timeout_millis: u64,
}

/// The protocol of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2.
    Http2,
}

/// A plugin in a route's chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutePlugin {
    /// The plugin's class, such as `SvcWaf`.
    pub plugin: String,
    /// Whether it runs. Default true.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Regular expressions on the path; if not empty, only paths that match one are handled.
    #[serde(default)]
    pub include: Vec<String>,
    /// Regular expressions on the path; paths that match one are not handled.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Its position in the chain; plugins with one run before those without.
    #[serde(default, with = "number::option")]
    #[schemars(with = "Option<f64>")]
    pub plugin_index: Option<f64>,
    /// The plugin's own configuration.
    #[serde(default)]
    pub config: Map<String, Value>,
}

// === impl Route ===

impl Route {
    /// The name of the Envoy route of an entity with this head.
    pub fn envoy_route_name<'a>(&'a self, head: &'a Head) -> &'a str {
        if self.envoy_route.is_empty() { &head.id } else { &self.envoy_route }
    }

    /// Whether the gateways of a group have it.
    #[must_use]
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|named| named == group)
    }
}

impl Default for Route {
    fn default() -> Route {
        Route {
            enabled: true,
            groups: Vec::new(),
            hosts: vec!["*".to_owned()],
            paths: vec!["/".to_owned()],
            envoy_route: String::new(),
            backend: None,
            plugins: Vec::new(),
            credentials: Credentials::default(),
        }
    }
}

impl Entity for Route {
    const COLLECTION: &'static str = "routes";
    const KIND: &'static str = "route";

    fn check(&self, head: &Head, refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = groups::check_named(&self.groups, refs);
        for (index, host) in self.hosts.iter().enumerate() {
            if let Some(reason) = host_pattern::problem(host) {
                let message = format!("`{}` is not a host: {reason}", host.escape_debug());
                let problem = FieldProblem::new(format!("/hosts/{index}"), message);
                problems.push(problem.expected(host_pattern::EXPECTED));
            }
        }
        for (index, path) in self.paths.iter().enumerate() {
            if let Some(reason) = path_prefix::problem(path) {
                let message = format!("`{}` is not a path prefix: {reason}", path.escape_debug());
                let problem = FieldProblem::new(format!("/paths/{index}"), message);
                problems.push(problem.expected(path_prefix::EXPECTED));
            }
        }
        for (field, list) in [("/hosts", &self.hosts), ("/paths", &self.paths)] {
            if list.is_empty() {
                let problem = FieldProblem::new(field, "the route would match nothing");
                problems.push(problem.expected("at least one entry, or `enabled: false`"));
            }
        }
        if let Some(backend) = &self.backend {
            problems.extend(backend.check().into_iter().map(|problem| problem.under("/backend")));
        }
        for (index, plugin) in self.plugins.iter().enumerate() {
            let found = plugin.check().into_iter().chain(plugin_refs::missing(&plugin.plugin, &plugin.config, refs));
            problems.extend(found.map(|problem| problem.under(&format!("/plugins/{index}"))));
        }
        problems.extend(self.credentials.check().into_iter().map(|problem| problem.under("/credentials")));
        for (key, value) in &head.metadata {
            // They become Envoy route metadata, which filters read as strings.
            if !value.is_string() {
                let pointer = format!("/metadata/{}", kit::token(key));
                problems.push(
                    FieldProblem::new(pointer, "the metadata of a route is passed to Envoy").expected("a string"),
                );
            }
        }
        for (key, collection) in plugin_refs::route_metadata() {
            if let Some(id) = head.metadata.get(key).and_then(Value::as_str) {
                problems.extend(reference(refs, collection, id, format!("/metadata/{}", kit::token(key))));
            }
        }
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }

    fn longest_ban(&self) -> Option<u64> {
        self.plugins.iter().filter_map(|plugin| plugin_refs::longest_ban(&plugin.plugin, &plugin.config)).max()
    }

    fn unused(&self, head: &Head) -> Vec<FieldProblem> {
        let plugins = self.plugins.iter().enumerate().filter(|(_, plugin)| plugin.enabled);
        let found = plugins.flat_map(|(index, plugin)| {
            let found = unused::in_plugin(&plugin.plugin, &plugin.config).into_iter();
            found.map(move |problem| problem.under(&format!("/plugins/{index}")))
        });
        let named = plugin_refs::route_metadata()
            .filter(|(key, _)| head.metadata.get(*key).is_some_and(Value::is_string))
            .filter_map(|(key, _)| unused::of_metadata(key, format!("/metadata/{}", kit::token(key))));
        found.chain(named).collect()
    }
}

// === impl Backend ===

impl Backend {
    fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        if let Some(reason) = backend_address::problem(&self.address) {
            let message = format!("`{}` is not an address: {reason}", self.address.escape_debug());
            problems.push(FieldProblem::new("/address", message).expected(backend_address::EXPECTED));
        }
        if self.timeout_millis > MAX_TIMEOUT_MILLIS {
            let problem = FieldProblem::new("/timeout_millis", "out of range");
            problems.push(problem.expected(format!("0 to {MAX_TIMEOUT_MILLIS}, which is a year")));
        }
        if self.port == 0 {
            problems.push(FieldProblem::new("/port", "nothing listens on port 0").expected("1 to 65535"));
        }
        problems
    }
}

// === impl RoutePlugin ===

impl RoutePlugin {
    fn check(&self) -> Vec<FieldProblem> {
        let mut problems: Vec<FieldProblem> = plugin_problem(&self.plugin).into_iter().collect();
        problems.extend(path_patterns("/include", &self.include));
        problems.extend(path_patterns("/exclude", &self.exclude));
        problems
    }
}

/// Why a text cannot be a plugin's class. Which classes exist is the compiler's to say.
pub(super) fn plugin_problem(plugin: &str) -> Option<FieldProblem> {
    let sane = (1..=128).contains(&plugin.len())
        && plugin.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    (!sane).then(|| {
        let message = format!("`{}` is not a plugin", plugin.escape_debug());
        FieldProblem::new("/plugin", message)
            .expected(format!("the class of a plugin, such as `{}`", PRESET_CLASSES[0]))
    })
}

/// Checks regular expressions on the path by making of them what filters make: a pattern that is too large for a gateway, or
/// wants Unicode where paths are bytes, would have every gateway refuse its snapshot.
pub fn path_patterns(field: &str, patterns: &[String]) -> Vec<FieldProblem> {
    let problem = |place: String, error: String| {
        let message = format!("the regular expression does not compile: {error}");
        FieldProblem::new(place, message)
            .expected("regular expressions on the bytes of the path, without Unicode classes")
    };
    let alone = patterns.iter().enumerate().filter_map(|(index, pattern)| {
        let error = Scope::new(std::slice::from_ref(pattern), &[]).err()?;
        Some(problem(format!("{field}/{index}"), error))
    });
    let problems: Vec<FieldProblem> = alone.collect();
    match Scope::new(patterns, &[]) {
        Err(error) if problems.is_empty() => vec![problem(field.to_owned(), error)],
        _ => problems,
    }
}

fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<String>::deserialize(deserializer)?.iter().map(|host| host_pattern::normal(host)).collect())
}

fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<String>::deserialize(deserializer)?.iter().map(|path| path_prefix::normal(path)).collect())
}

fn default_timeout_millis() -> u64 {
    15_000
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Anything;

    impl References for Anything {
        fn exists(&self, _collection: &str, _id: &str) -> Option<bool> {
            Some(true)
        }
    }

    #[test]
    fn the_defaults_are_documented_ones() {
        let expected = json!({
            "enabled": true, "groups": [], "hosts": ["*"], "paths": ["/"], "envoy_route": "", "backend": null, "plugins": [],
            "credentials": {"checks": [], "envoy": []}
        });
        assert_eq!(serde_json::to_value(Route::default()).unwrap(), expected);
        let backend: Backend = serde_json::from_value(json!({"address": "b", "port": 80})).unwrap();
        let expected = json!({"address": "b", "port": 80, "tls": false, "protocol": "http1", "timeout_millis": 15000});
        assert_eq!(serde_json::to_value(backend).unwrap(), expected);
        let plugin: RoutePlugin = serde_json::from_value(json!({"plugin": "SvcWaf", "plugin_index": 900})).unwrap();
        let expected = json!({
            "plugin": "SvcWaf", "enabled": true, "include": [], "exclude": [], "plugin_index": 900, "config": {}
        });
        assert_eq!(serde_json::to_value(plugin).unwrap(), expected);
    }

    #[test]
    fn each_wrong_part_is_named() {
        let route: Route = serde_json::from_value(json!({
            "hosts": ["ok.example", "shop.*", "exa mple", "a*b"],
            "paths": ["/fine", "fine"],
            "backend": {"address": "http://b", "port": 0},
            "plugins": [{"plugin": "SvcWaf", "include": ["^/a", "(", "(?-u:\\xff)", "[\u{e9}]", "\\p{L}", "(a{900}){900}"], "exclude": ["[z-a]"]}, {"plugin": ""}],
            "credentials": {
                "checks": [{"kinds": [], "carriers": ["body:x"], "methods": ["get"], "include": ["("]}],
                "envoy": [{"listener": "l", "path": "[", "checks": [{"kinds": ["jwt"], "exclude": ["\\p{L}"]}]}]
            }
        }))
        .unwrap();
        let head = Head { metadata: [("a/b".to_owned(), json!(1))].into(), ..Head::default() };
        let pointers: Vec<_> = route.check(&head, &Anything).into_iter().map(|problem| problem.pointer).collect();
        assert_eq!(
            pointers,
            [
                "/hosts/2",
                "/hosts/3",
                "/paths/1",
                "/backend/address",
                "/backend/port",
                "/plugins/0/include/1",
                "/plugins/0/include/3",
                "/plugins/0/include/4",
                "/plugins/0/include/5",
                "/plugins/0/exclude/0",
                "/plugins/1/plugin",
                "/credentials/checks/0/kinds",
                "/credentials/checks/0/carriers/0",
                "/credentials/checks/0/methods/0",
                "/credentials/checks/0/include/0",
                "/credentials/envoy/0/path",
                "/credentials/envoy/0/checks/0/exclude/0",
                "/metadata/a~1b"
            ]
        );
    }
}
