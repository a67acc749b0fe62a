use envoy_types::pb::envoy::config::listener::v3::{Listener, filter};
use envoy_types::pb::envoy::config::route::v3::{RouteConfiguration, route, route_action, route_match};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use prost::Message;

use std::collections::BTreeMap;

use super::*;

fn route(id: &str, hosts: &[&str], paths: &[&str]) -> RouteInput {
    RouteInput {
        id: id.into(),
        envoy_route: id.into(),
        hosts: hosts.iter().map(|&host| host.into()).collect(),
        paths: paths.iter().map(|&path| path.into()).collect(),
        backend: Some(BackendInput { address: "127.0.0.1".into(), port: 80, ..BackendInput::default() }),
        metadata: BTreeMap::new(),
    }
}

/// Each virtual host as (domains, [route name + prefix]).
fn table(routes: Vec<RouteInput>) -> Vec<(Vec<String>, Vec<String>)> {
    let set = build(&Gateway { routes, ..Gateway::default() }).unwrap();
    let body = &set.get(Kind::Route, NAME).unwrap().body;
    let decoded = RouteConfiguration::decode(body.value.as_slice()).unwrap();
    decoded
        .virtual_hosts
        .into_iter()
        .filter(|host| host.name != routes::DOTTED)
        .map(|host| {
            let routes = host.routes.into_iter().map(|route| {
                let Some(route_match::PathSpecifier::Prefix(prefix)) = route.r#match.unwrap().path_specifier else {
                    panic!("a route without a prefix")
                };
                format!("{} {prefix}", route.name)
            });
            (host.domains, routes.collect())
        })
        .collect()
}

#[test]
fn a_host_that_ends_with_a_dot_is_nobodys() {
    let set = build(&Gateway { routes: vec![route("any", &[], &["/"])], ..Gateway::default() }).unwrap();
    let body = &set.get(Kind::Route, NAME).unwrap().body;
    let decoded = RouteConfiguration::decode(body.value.as_slice()).unwrap();
    let dotted: Vec<_> = decoded.virtual_hosts.iter().filter(|host| host.domains == ["*."]).collect();
    let [only] = &dotted[..] else { panic!("{dotted:?}") };
    let Some(route::Action::DirectResponse(answer)) = &only.routes[0].action else { panic!("{only:?}") };
    assert_eq!(answer.status, 400);
}

#[test]
fn an_address_of_ipv6_is_found_in_full_as_well() {
    let hosts = table(vec![route("six", &["[::1]", "[::ffff:192.0.2.1]"], &["/"])]);
    let expected = [
        "[0000:0000:0000:0000:0000:0000:0000:0001]",
        "[0000:0000:0000:0000:0000:ffff:c000:0201]",
        "[0:0:0:0:0:0:0:1]",
        "[0:0:0:0:0:ffff:c000:201]",
        "[::1]",
        "[::ffff:192.0.2.1]",
        "[::ffff:c000:201]",
    ];
    assert_eq!(hosts, [(expected.map(str::to_owned).to_vec(), vec!["six /".to_owned()])]);
}

#[test]
fn a_domain_stands_once_with_its_longest_prefix_first() {
    let hosts =
        table(vec![route("short", &["a.test", "b.test"], &["/", "/v1"]), route("long", &["B.TEST"], &["/v1/items"])]);
    assert_eq!(
        hosts,
        [
            (vec!["a.test".into()], vec!["short /v1".into(), "short /".into()]),
            (vec!["b.test".into()], vec!["long /v1/items".into(), "short /v1".into(), "short /".into()]),
        ]
    );
}

#[test]
fn routes_of_wider_domains_follow_those_of_the_host() {
    let hosts = table(vec![
        route("any", &[], &["/health"]),
        route("below", &["*.example.com"], &["/x"]),
        route("exact", &["api.example.com"], &["/y"]),
    ]);
    let api = hosts.iter().find(|(domains, _)| domains.contains(&"api.example.com".to_owned())).unwrap();
    assert_eq!(api.1, ["exact /y", "below /x", "any /health"]);
    let any = hosts.iter().find(|(domains, _)| domains.contains(&"*".to_owned())).unwrap();
    assert_eq!(any.1, ["any /health"]);
}

#[test]
fn a_wildcard_may_stand_at_either_end_and_envoys_order_holds() {
    let hosts = table(vec![
        route("any", &[], &["/any"]),
        route("begin", &["shop.*"], &["/begin"]),
        route("shorter-begin", &["sh*"], &["/sh"]),
        route("end", &["*.example"], &["/end"]),
        route("longer-end", &["*-shop.example"], &["/longer"]),
        route("exact", &["shop.example"], &["/exact"]),
        route("exact2", &["my-shop.example"], &["/exact2"]),
    ]);
    let of = |domain: &str| {
        let found = hosts.iter().find(|(domains, _)| domains.contains(&domain.to_owned()));
        found.map(|(_, routes)| routes.join(", ")).unwrap()
    };
    assert_eq!(of("shop.example"), "exact /exact, end /end, begin /begin, shorter-begin /sh, any /any");
    assert_eq!(of("my-shop.example"), "exact2 /exact2, longer-end /longer, end /end, any /any");
    // Hosts that begin so as well are told apart by a matcher.
    assert_eq!(of("*-shop.example"), "longer-end /longer, end /end, begin /begin, shorter-begin /sh, any /any");
    assert_eq!(of("*.example"), "end /end, begin /begin, shorter-begin /sh, any /any");
    assert_eq!(of("shop.*"), "begin /begin, shorter-begin /sh, any /any");
    assert_eq!(of("sh*"), "shorter-begin /sh, any /any");
    assert_eq!(of("*"), "any /any");
}

#[test]
fn a_route_for_the_beginning_of_hosts_holds_for_those_alone() {
    let routes =
        vec![route("end", &["*.example"], &["/x"]), route("begin", &["shop.*"], &["/"]), route("any", &[], &["/"])];
    let set = build(&Gateway { routes, ..Gateway::default() }).unwrap();
    let body = &set.get(Kind::Route, NAME).unwrap().body;
    let decoded = RouteConfiguration::decode(body.value.as_slice()).unwrap();
    let host = decoded.virtual_hosts.iter().find(|host| host.domains == ["*.example"]).unwrap();
    let matchers: Vec<usize> = host.routes.iter().map(|route| route.r#match.as_ref().unwrap().headers.len()).collect();
    // `/` of the conditional route does not keep the one for every host out.
    assert_eq!(matchers, [0, 1, 0]);
}

#[test]
fn the_check_finds_whatever_keeps_a_gateway_from_being_built() {
    let fine = Gateway { routes: vec![route("r", &["shop.*", "*-x.test", "[::1]"], &["/"])], ..Gateway::default() };
    assert_eq!(check(&fine), []);
    let routes = vec![route("r", &["a b"], &["x"]), route("s", &["*a*"], &[])];
    let problems = check(&Gateway { routes: routes.clone(), ..Gateway::default() });
    assert_eq!(
        problems.iter().map(|problem| problem.route.as_deref()).collect::<Vec<_>>(),
        [Some("r"), Some("r"), Some("s")]
    );
    // Routes of a gateway that takes filters alone are not served.
    assert_eq!(check(&Gateway { routes, ecds_only: true, ..Gateway::default() }), []);
}

#[test]
fn what_cannot_match_is_left_out() {
    let hosts = table(vec![route("own", &["a.test"], &["/"]), route("any", &["*"], &["/z", "/"])]);
    let own = hosts.iter().find(|(domains, _)| domains.contains(&"a.test".to_owned())).unwrap();
    assert_eq!(own.1, ["own /"]);
}

#[test]
fn equal_input_gives_equal_bytes() {
    let mut one = route("r", &["a.test"], &["/"]);
    for key in 0..40 {
        one.metadata.insert(format!("key-{key}"), key.to_string());
    }
    let gateway = Gateway { routes: vec![one], ..Gateway::default() };
    let first = build(&gateway).unwrap();
    for _ in 0..8 {
        assert_eq!(build(&gateway).unwrap(), first);
    }
    let body = &first.get(Kind::Route, NAME).unwrap().body;
    let decoded = RouteConfiguration::decode(body.value.as_slice()).unwrap();
    let metadata = decoded.virtual_hosts[1].routes[0].metadata.clone().unwrap();
    assert_eq!(metadata.filter_metadata[NAME].fields.len(), 40);
}

#[test]
fn a_backend_is_one_cluster_however_many_routes_share_it() {
    let mut limited = route("b", &["b.test"], &["/"]);
    limited.backend.as_mut().unwrap().timeout_millis = 1500;
    let set = build(&Gateway { routes: vec![route("a", &["a.test"], &["/"]), limited], ..Gateway::default() }).unwrap();
    assert_eq!(set.iter(Kind::Cluster).map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["backend:127.0.0.1:80"]);
    let body = &set.get(Kind::Route, NAME).unwrap().body;
    let decoded = RouteConfiguration::decode(body.value.as_slice()).unwrap();
    let Some(route::Action::Route(action)) = decoded.virtual_hosts[2].routes[0].action.clone() else { panic!() };
    assert_eq!(action.timeout.unwrap(), envoy_types::pb::google::protobuf::Duration { seconds: 1, nanos: 500_000_000 });
    assert_eq!(action.cluster_specifier, Some(route_action::ClusterSpecifier::Cluster("backend:127.0.0.1:80".into())));
}

#[test]
fn a_fault_is_named_with_its_place() {
    let says = |gateway: Gateway, words: &[&str]| {
        let error = build(&gateway).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let of = |route| Gateway { routes: vec![route], ..Gateway::default() };
    says(of(route("r1", &["a b"], &[])), &["r1", "a b"]);
    says(of(route("r1", &["*x*"], &[])), &["r1", "*x*", "one `*`"]);
    says(of(route("r1", &["x.test:80"], &[])), &["r1", "x.test:80", "port"]);
    says(of(route("r2", &[], &["api"])), &["r2", "\"api\"", "/"]);
    says(Gateway { routes: vec![route("r", &[], &[]), route("r", &[], &[])], ..Gateway::default() }, &["already"]);
    let mut portless = route("r3", &[], &[]);
    portless.backend.as_mut().unwrap().port = 0;
    says(of(portless), &["r3", "port 0"]);
    let filter = FilterInput { name: "waf".into(), module_path: "/x.wasm".into(), snapshot: vec![1, 2] };
    says(Gateway { filters: vec![filter.clone()], ..Gateway::default() }, &["waf", "no snapshot"]);
    let sealed = |name: &str, cluster: Option<&str>| {
        let link = cluster.map(|cluster| snapshot::LinkSettings { cluster: cluster.into(), ..Default::default() });
        let snapshot = snapshot::Snapshot { filter: name.into(), link, ..Default::default() };
        FilterInput { snapshot: snapshot::seal(&snapshot).encode_to_vec(), ..filter.clone() }
    };
    says(Gateway { filters: vec![sealed("preset", None)], ..Gateway::default() }, &["waf", "\"preset\""]);
    says(Gateway { filters: vec![sealed("waf", Some("cp"))], ..Gateway::default() }, &["waf", "\"cp\"", "none"]);
    let listener = ListenerSettings { address: "localhost".into(), ..ListenerSettings::default() };
    says(Gateway { listener, ..Gateway::default() }, &["localhost"]);
}

/// A listener: its filters of connections, whether it ends TLS, and the names of its HTTP filters.
fn listens(tls: Option<entities::ServerTls>) -> (Vec<String>, bool, Vec<String>) {
    let snapshot = snapshot::Snapshot { filter: "preset".into(), ..Default::default() };
    let snapshot = snapshot::seal(&snapshot).encode_to_vec();
    let filter = FilterInput { name: "preset".into(), module_path: "/preset.wasm".into(), snapshot };
    let listener = ListenerSettings { tls, ..ListenerSettings::default() };
    let set = build(&Gateway { listener, filters: vec![filter], ..Gateway::default() }).unwrap();
    let body = &set.get(Kind::Listener, NAME).unwrap().body;
    let decoded = Listener::decode(body.value.as_slice()).unwrap();
    let chain = &decoded.filter_chains[0];
    let Some(filter::ConfigType::TypedConfig(config)) = &chain.filters[0].config_type else { panic!("{chain:?}") };
    let manager = HttpConnectionManager::decode(config.value.as_slice()).unwrap();
    let names = manager.http_filters.into_iter().map(|filter| filter.name).collect();
    let connections = decoded.listener_filters.iter().map(|filter| filter.name.clone()).collect();
    (connections, chain.transport_socket.is_some(), names)
}

#[test]
fn a_listener_with_tls_computes_fingerprints_in_front_of_our_filters() {
    let (connections, ends_tls, plain) = listens(None);
    assert_eq!((connections, ends_tls, plain.len()), (Vec::new(), false, 2));
    let tls = entities::ServerTls { certificate: "/tls.pem".into(), private_key: "/tls.key".into(), sds: None };
    let (connections, ends_tls, names) = listens(Some(tls));
    assert_eq!((connections, ends_tls), (vec!["envoy.filters.listener.tls_inspector".to_owned()], true));
    assert_eq!(names, [&["palisade.fingerprints".to_owned()], &plain[..]].concat());
}
