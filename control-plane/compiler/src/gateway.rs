//! From chains to the gateways of every group.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use snapshot::{
    ApiKeyDigest, IdentitySource, LinkSettings, Message as _, Part, RouteChain, Snapshot, Step, Trailers, Verifier,
    seal,
};

use super::compiled::{CompileProblem, Compiled};
use super::protection;
use super::respelt;
use super::settings::Settings;
use super::steps::{Chain, Chains, Steps};
use entities::plugins;
use entities::{
    self, ApiKey, DEFAULT_GROUP, Delivery, Entity as _, EntitySet, EscapedSlashes, Gives, GlobalConfig, Item, Protocol,
    RequestTrailers, Route, UnderscoreHeaders, path_prefix,
};
use kit::Acts;
use xds::bootstrap::CONTROL_PLANE_CLUSTER;
use xds::resources::{
    BackendInput, BackendTls, FilterInput, Gateway, ListenerSettings, RouteInput, SYSTEM_AUTHORITIES,
};

/// The filter that runs all plugins.
const PRESET: &str = "preset";
/// How often a worker sends what it has queued, in milliseconds.
const FLUSH_MILLIS: u32 = 200;
/// The most events that a worker keeps for a lost link.
const MAX_QUEUED: u32 = 1000;
/// What the gateway may hold beyond the largest inspected body: bodies arrive in pieces, and the piece that reaches the
/// limit must not exceed the gateway's own.
const BUFFER_SLACK: u64 = 1 << 20;

/// The gateways of all groups. Nothing is left that could be wrong with them. `seals` is false for callers that only want
/// the warnings: snapshots are empty then.
pub(super) fn compile(
    set: &EntitySet,
    global: &Item<GlobalConfig>,
    chains: &Chains,
    settings: &Settings,
    seals: bool,
) -> Compiled {
    let mut gateways = Gateways::new(set, global, chains, settings, seals);
    let gateway = gateways.group(DEFAULT_GROUP, &global.gateway);
    let groups = global.groups.iter().map(|(name, group)| {
        let gateway = gateways.group(name, &group.over(&global.gateway));
        (name.clone(), gateway)
    });
    let groups = groups.collect();
    Compiled { gateway, groups, warnings: gateways.into_warnings().all }
}

/// By the name of a group its gateway, or why there is none.
pub(super) type GroupGateways = BTreeMap<String, Result<Gateway, Vec<String>>>;

/// Things that are allowed and probably not meant.
pub(super) struct Warnings {
    /// All of them.
    pub(super) all: Vec<String>,
    /// Those of protection that is off, see [`protection::gaps`].
    pub(super) gaps: Vec<String>,
}

/// The gateway of every group, or why there is none, and the warnings. What is broken for one group is left to it.
pub(super) fn compile_each(
    set: &EntitySet,
    global: &Item<GlobalConfig>,
    chains: &Chains,
    broken: &[CompileProblem],
    settings: &Settings,
) -> (GroupGateways, Warnings) {
    let mut gateways = Gateways::new(set, global, chains, settings, true);
    let compiled = global.gateways().map(|(name, gateway)| {
        let problems: Vec<String> =
            broken.iter().filter(|problem| concerns(problem, set, name)).map(ToString::to_string).collect();
        if !problems.is_empty() {
            return (name.to_owned(), Err(problems));
        }
        // A defect that one group's settings bring to light is not to stop the others.
        let compiled = catch_unwind(AssertUnwindSafe(|| gateways.group(name, &gateway)));
        let failed = || vec!["compiling it failed inside the control plane; see its log".to_owned()];
        (name.to_owned(), compiled.map_err(|_| failed()))
    });
    let compiled = compiled.collect();
    (compiled, gateways.into_warnings())
}

/// Whether a group has what is broken: a route of its own, or what all groups have.
fn concerns(problem: &CompileProblem, set: &EntitySet, group: &str) -> bool {
    let route = (problem.collection == Route::COLLECTION).then(|| set.get::<Route>(&problem.id)).flatten();
    route.is_none_or(|route| route.is_in(group))
}

struct Gateways<'a> {
    set: &'a EntitySet,
    global: &'a Item<GlobalConfig>,
    chains: &'a Chains,
    settings: &'a Settings,
    /// How callers are identified, the same in every snapshot; `None` if no snapshot is sealed.
    identity: Option<IdentitySource>,
    /// What was sealed for a group before: by the filter, which of the chains it has, and what it does to trailers.
    snapshots: BTreeMap<(String, Vec<usize>, i32), Vec<u8>>,
    warnings: BTreeSet<String>,
    /// Warnings of protection that is off.
    gaps: BTreeSet<String>,
}

impl<'a> Gateways<'a> {
    fn new(
        set: &'a EntitySet,
        global: &'a Item<GlobalConfig>,
        chains: &'a Chains,
        settings: &'a Settings,
        seals: bool,
    ) -> Self {
        let all = chains.routes.iter().map(|chain| &chain.steps).chain([&chains.global]);
        let warnings = all.flat_map(|steps| steps.warnings.iter().cloned());
        let warnings = warnings.chain(protection::doubled(chains)).collect();
        let identity = seals.then(|| identity(global));
        let gaps = protection::gaps(chains).into_iter().collect();
        Self { set, global, chains, settings, identity, snapshots: BTreeMap::new(), warnings, gaps }
    }

    fn into_warnings(self) -> Warnings {
        let gaps: Vec<String> = self.gaps.into_iter().collect();
        Warnings { all: gaps.iter().cloned().chain(self.warnings).collect(), gaps }
    }

    fn group(&mut self, group: &str, gateway: &entities::Gateway) -> Gateway {
        let chains: Vec<(usize, &'a Chain)> =
            self.chains.routes.iter().enumerate().filter(|(_, chain)| chain.is_in(group)).collect();
        self.warn_of_plugins(group, &gateway.filters, &chains);
        self.warn_of_fingerprints(group, gateway, &chains);
        let filters = gateway.filters.iter().map(|filter| self.filter(filter, gateway, &chains)).collect();
        let ecds_only = gateway.delivery == Delivery::Ecds;
        self.warn_of_identity(group, gateway);
        let routes = self.served_routes(group, gateway);
        let steps = || chains.iter().map(|(_, chain)| &chain.steps).chain([&self.chains.global]);
        let largest = steps().map(|steps| steps.largest_body).max().unwrap_or_default();
        let largest_request = steps().map(|steps| steps.largest_request).max().unwrap_or_default();
        let largest = largest.max(u64::from(gateway.max_body_bytes)).saturating_add(BUFFER_SLACK);
        let listener = ListenerSettings {
            name: "palisade".to_owned(),
            address: gateway.address.clone(),
            port: gateway.port,
            access_log: Some(gateway.access_log.clone()).filter(|path| !path.is_empty()),
            buffer_limit_bytes: u32::try_from(largest).unwrap_or(u32::MAX),
            largest_request_bytes: largest_request,
            xff_num_trusted_hops: self.global.identity.trusted_hops,
            http: gateway.listener,
            removed_headers: self.global.identity.taken_from_clients(),
            tls: gateway.tls.clone(),
        };
        let control_plane_cluster = self.settings.link.then(|| CONTROL_PLANE_CLUSTER.to_owned());
        Gateway { listener, routes, filters, control_plane_cluster, ecds_only }
    }

    /// What callers say of themselves, and what is believed only of a listener that is as it must be.
    fn warn_of_identity(&mut self, group: &str, gateway: &entities::Gateway) {
        let (identity, delivery) = (&self.global.identity, gateway.delivery);
        if delivery == Delivery::Full && gateway.listener.underscore_headers != UnderscoreHeaders::Allow {
            let names = identity.headers().into_iter().filter(|name| name.contains('_'));
            self.warnings.extend(names.map(|name| {
                format!(
                    "the listener of the group `{group}` takes no header with an underscore (`underscore_headers`): no caller is \
                     identified by `{name}`"
                )
            }));
        }
        if identity.tls_fingerprint && !gateway.may_have_fingerprints() {
            self.warnings.insert(format!(
                "no ban on a TLS fingerprint (`ja4:...`) holds on the gateways of the group `{group}`: their listener has no TLS; set \
                 `gateway.tls`"
            ));
        }
        let labels = identity.labels().into_iter();
        self.warnings.extend(labels.map(|what| {
            format!("unverified names of callers are shown in events only and identify no caller: there is {what}")
        }));
        for (index, verifier) in identity.verified_by.iter().enumerate() {
            if !verifier.can_verify(delivery) {
                let kind = verifier.kind.word();
                self.warnings.insert(format!(
                    "`identity.verified_by[{index}]` (`{kind}`) verifies no client on the gateways of the group `{group}`: the \
                     listener that they are served has no such filter and asks for no certificate; use `delivery: ecds` with a listener of your own, \
                     `api_keys`, or a `trusted_header` that a proxy sets"
                ));
            }
        }
        if delivery == Delivery::Ecds {
            let headers = identity.taken_from_clients().into_iter();
            self.warnings.extend(headers.map(|header| {
                format!(
                    "the listeners of the group `{group}` must take the header `{header}` from clients: it is believed"
                )
            }));
        }
    }

    /// Things that are allowed and probably not meant.
    fn warn_of_plugins(&mut self, group: &str, filters: &[String], chains: &[(usize, &Chain)]) {
        if filters.iter().any(|filter| filter == PRESET) {
            return;
        }
        let of = if group == DEFAULT_GROUP { String::new() } else { format!(" of the group `{group}`") };
        let steps = chains.iter().flat_map(|(_, chain)| &chain.steps.list);
        let place = |name: &str| filters.iter().position(|filter| filter == name);
        for response in plugins::active().filter(|plugin| plugin.acts == Acts::Score) {
            let earlier = plugins::active().filter(|plugin| plugin.acts == Acts::No && plugin.order < response.order);
            let Some(at) = place(response.name) else { continue };
            for detector in earlier.filter(|detector| place(detector.name).is_some_and(|place| place > at)) {
                let (response, name, title) = (response.name, detector.name, detector.title);
                let warning =
                    format!("the filter `{response}` runs before `{name}`: it acts on nothing that the {title} finds");
                self.gaps.insert(format!("`gateway.filters`{of}: {warning}"));
            }
        }
        for step in self.chains.global.list.iter().chain(steps) {
            if !filters.contains(&step.plugin) {
                let warning = format!("no filter of this gateway{of} runs the plugin `{}`", step.plugin);
                self.warnings.insert(warning);
            }
        }
    }

    /// Plugins that judge by TLS fingerprints, behind a listener that computes none.
    fn warn_of_fingerprints(&mut self, group: &str, gateway: &entities::Gateway, chains: &[(usize, &Chain)]) {
        if gateway.may_have_fingerprints() {
            return;
        }
        let own = chains.iter().flat_map(|(_, chain)| &chain.steps.guards);
        let guards = self.chains.global.guards.iter().chain(own).filter(|guard| guard.needs_fingerprints());
        for (collection, id) in guards.filter_map(|guard| guard.entity()) {
            self.warnings.insert(format!(
                "{collection}/{id} /fingerprints/enabled: nothing is judged by TLS fingerprints on the gateways of the group `{group}`: \
                 their listener has no TLS; set `gateway.tls`"
            ));
        }
    }

    fn filter(&mut self, filter: &str, gateway: &entities::Gateway, chains: &[(usize, &'a Chain)]) -> FilterInput {
        let trailers = trailers(filter, gateway);
        let key = (filter.to_owned(), chains.iter().map(|(index, _)| *index).collect(), trailers.into());
        let (global, all, settings) = (self.global, self.chains, self.settings);
        let sealed = |identity: &IdentitySource| {
            let (identity, trailers) = (Some(identity.clone()), trailers.into());
            let snapshot = snapshot(filter, global, all, chains, settings);
            seal(&Snapshot { identity, trailers, ..snapshot }).encode_to_vec()
        };
        let identity = self.identity.as_ref();
        let snapshot = self.snapshots.entry(key).or_insert_with(|| identity.map(sealed).unwrap_or_default());
        FilterInput {
            name: filter.to_owned(),
            module_path: settings.filters_dir.join(format!("{filter}.wasm")).display().to_string(),
            snapshot: snapshot.clone(),
        }
    }

    /// Routes that another one stands in front of: of the same host and path, the first by id has all requests.
    fn warn_of_shadows(&mut self, routes: &[RouteInput]) {
        let mut taken: BTreeMap<(String, &str), &str> = BTreeMap::new();
        for route in routes {
            let hosts: BTreeSet<String> = route.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
            for (host, path) in hosts.iter().flat_map(|host| route.paths.iter().map(move |path| (host, path))) {
                let id = route.id.as_str();
                let first = *taken.entry((host.clone(), path)).or_insert(id);
                if first != id {
                    let warning =
                        format!("route `{id}` gets no requests for `{host}` at `{path}`: route `{first}` gets them");
                    self.warnings.insert(warning);
                }
            }
        }
    }

    /// Prefixes that are not what they look like, and those that no request has with these settings of the listener.
    fn warn_of_paths(&mut self, route: &Item<Route>, gateway: &entities::Gateway) {
        let keeps_slashes = gateway.listener.escaped_slashes == EscapedSlashes::Keep;
        for path in &route.paths {
            if let Some(why) = path_prefix::doubt(path, keeps_slashes) {
                self.warnings.insert(format!("route `{}`, path `{path}`: {why}", route.head.id));
            }
        }
    }

    /// The routes that the gateway itself serves: those with a backend.
    fn served_routes(&mut self, group: &str, gateway: &entities::Gateway) -> Vec<RouteInput> {
        let ecds_only = gateway.delivery == Delivery::Ecds;
        let (mut routes, mut served) = (Vec::new(), Vec::new());
        for route in self.set.all::<Route>().filter(|route| route.enabled && route.is_in(group)) {
            let Some(backend) = &route.backend else { continue };
            if route.plugins.iter().all(|plugin| !plugin.enabled) {
                let warning = format!("route `{}` has no plugins: only the global chain protects it", route.head.id);
                self.warnings.insert(warning);
            }
            if ecds_only {
                // In a group that has no routes of ours, what names the group means the backend; what is everywhere
                // has it for the others.
                if !route.groups.is_empty() {
                    let id = &route.head.id;
                    let warning =
                        format!("the group `{group}` gets no routes: the backend of route `{id}` is not used");
                    self.warnings.insert(warning);
                }
                continue;
            }
            self.warn_of_paths(route, gateway);
            routes.push(route_input(route, backend));
            served.push(route);
        }
        self.warn_of_shadows(&routes);
        self.warnings.extend(respelt::warnings(&served));
        routes
    }
}

/// What a filter does to the trailers of requests: where they are inspected, the one with a plugin that looks at them does it.
fn trailers(filter: &str, gateway: &entities::Gateway) -> Trailers {
    let inspects = |filter: &str| {
        plugins::active().any(|plugin| plugin.inspects_trailers && (filter == PRESET || filter == plugin.name))
    };
    match gateway.listener.request_trailers {
        RequestTrailers::Inspect if inspects(filter) => Trailers::Inspect,
        RequestTrailers::Inspect if gateway.filters.iter().any(|other| inspects(other)) => Trailers::Pass,
        RequestTrailers::Inspect | RequestTrailers::Drop => Trailers::Drop,
    }
}

fn route_input(route: &Item<Route>, backend: &entities::Backend) -> RouteInput {
    let metadata = route.head.metadata.iter();
    let metadata = metadata.filter(|(key, _)| !matches!(key.as_str(), "created_at" | "updated_at"));
    let metadata = metadata.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let tls = || BackendTls { server_name: String::new(), authorities: SYSTEM_AUTHORITIES.to_owned() };
    RouteInput {
        id: route.head.id.clone(),
        envoy_route: route.envoy_route_name(&route.head).to_owned(),
        hosts: route.hosts.clone(),
        paths: route.paths.iter().flat_map(|path| path_prefix::spellings(path)).collect(),
        backend: Some(BackendInput {
            address: backend.address.clone(),
            port: backend.port,
            tls: backend.tls.then(tls),
            http2: backend.protocol == Protocol::Http2,
            timeout_millis: backend.timeout_millis,
        }),
        metadata: metadata.collect(),
    }
}

fn snapshot(
    filter: &str,
    global: &GlobalConfig,
    all: &Chains,
    chains: &[(usize, &Chain)],
    settings: &Settings,
) -> Snapshot {
    let mut parts = BTreeMap::new();
    let mut steps_of = |steps: &Steps| {
        let list = for_filter(&steps.list, filter);
        for (plugin, own) in &steps.parts {
            if list.iter().any(|step| step.plugin == *plugin) {
                parts.extend(own.iter().map(|(hash, data)| (hash.clone(), data.clone())));
            }
        }
        list
    };
    let global_steps = steps_of(&all.global);
    let routes = chains.iter().map(|(_, chain)| RouteChain {
        name: chain.name.clone(),
        id: chain.id.clone(),
        label: chain.label.clone(),
        no_grpc: chain.no_grpc,
        steps: steps_of(&chain.steps),
    });
    let routes = routes.collect();
    Snapshot {
        filter: filter.to_owned(),
        global: global_steps,
        routes,
        parts: parts.into_iter().map(|(hash, data)| Part { hash, data: data.to_vec() }).collect(),
        link: settings.link.then(|| LinkSettings {
            cluster: CONTROL_PLANE_CLUSTER.to_owned(),
            flush_millis: FLUSH_MILLIS,
            max_queued: MAX_QUEUED,
        }),
        max_held: global.security.tarpit.max_held,
        ..Snapshot::default()
    }
}

/// The steps of a chain that one filter runs. A filter that runs only some of them also gets what acts on the score, to
/// answer what it refuses.
fn for_filter(steps: &[Step], filter: &str) -> Vec<Step> {
    if filter == PRESET {
        return steps.to_vec();
    }
    let own = steps.iter().any(|step| step.plugin == filter);
    let steps = steps.iter().filter_map(|step| {
        if step.plugin == filter {
            return Some(step.clone());
        }
        let plugin = plugins::by_name(&step.plugin).filter(|plugin| own && plugin.acts == Acts::Score)?;
        let config = plugin.as_companion.map_or_else(|| step.config.clone(), |narrow| narrow(&step.config));
        Some(Step { on_refusal_only: true, config, ..step.clone() })
    });
    steps.collect()
}

/// How the gateways of a configuration tell callers apart.
#[must_use]
pub fn identity(global: &GlobalConfig) -> IdentitySource {
    let identity = &global.identity;
    let digest = |key: &ApiKey| Some(ApiKeyDigest { id: key.id.clone(), sha256: key.digest()?.to_vec() });
    let mut api_keys: Vec<ApiKeyDigest> = identity.api_keys.iter().filter_map(digest).collect();
    // As filters look for them.
    api_keys.sort_by(|one, other| one.sha256.cmp(&other.sha256));
    let verifiers = identity.verified_by.iter().map(|verifier| Verifier {
        api_key: verifier.gives == Gives::Apikey,
        property: verifier.property(),
        header: verifier.header_name().unwrap_or_default(),
    });
    IdentitySource {
        api_key_header: identity.api_key_header.clone().unwrap_or_default().to_ascii_lowercase(),
        api_key_query: identity.api_key_query.clone().unwrap_or_default(),
        user_header: identity.user_header.clone().unwrap_or_default().to_ascii_lowercase(),
        api_key_is_id: identity.api_key_is_id,
        ipv6_prefix: u32::from(identity.ipv6_prefix),
        api_keys,
        verifiers: verifiers.collect(),
        tls_fingerprint: identity.tls_fingerprint,
    }
}
