//! Every example of a deployment, against the schemas and tools of those who read it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use palisade_tests::bootstrap::Static;
use palisade_tests::{envoy, parts};
use serde_json::{Value, json};

use crate::schemas::{Kubernetes, check, custom_resources};

/// Envoy configurations that are no bootstrap (`envoy_accepts_the_access_log` has the first), and one that needs the files it
/// names: the tests of the control plane run it, with certificates and a token.
const OTHERS: [&str; 4] = ["access-log.yaml", "node-token.yaml", "xds-tls.yaml", "xds-token.yaml"];
/// How exposed the service may be by systemd's own measure, from 0 to 10, in tenths.
const MOST_EXPOSED: &str = "15";

pub(crate) fn read(path: &str) -> String {
    let path = parts::root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn documents(path: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn document(path: &str) -> Value {
    let [one] = documents(path).try_into().unwrap_or_else(|_| panic!("{path} has more than one document"));
    one
}

/// The files of a folder that end so, relative to the root, sorted.
fn files(folder: &str, end: &str) -> Vec<String> {
    let names = std::fs::read_dir(parts::root().join(folder)).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<String> =
        names.filter(|name| name.ends_with(end)).map(|name| format!("{folder}/{name}")).collect();
    found.sort();
    assert!(!found.is_empty(), "{folder} has no {end}");
    found
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a tool to its end; `None` where this machine does not have it.
fn run(command: &mut Command) -> Option<Output> {
    match command.stdin(Stdio::null()).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{command:?}: {error}"),
    }
}

/// Envoy on a bootstrap, where the files that a filter's configuration comes from have no filter in them.
fn envoy_accepts(what: &str, bootstrap: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("target")).unwrap();
    for name in ["preset", "threat-gate", "waf", "threat-response"] {
        let file = folder.path().join(format!("target/{name}.json"));
        std::fs::write(file, r#"{"version_info": "0", "resources": []}"#).unwrap();
    }
    envoy::validate(bootstrap, folder.path()).unwrap_or_else(|why| panic!("{what}: {why}"));
}

#[test]
fn envoy_accepts_every_bootstrap() {
    for file in files("envoy", ".yaml") {
        if !OTHERS.iter().any(|other| file.ends_with(other)) {
            envoy_accepts(&file, &read(&file));
            let dynamic = ["xds.yaml", "ecds"].iter().any(|name| file.contains(name));
            assert_eq!(asks_static_clusters(&file, &document(&file)), usize::from(dynamic), "{file}");
        }
    }
}

#[test]
fn envoy_accepts_the_access_log() {
    let mut bootstrap = document("envoy/standalone.yaml");
    *manager(&mut bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]) = {
        let mut manager = manager(&mut bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]).clone();
        manager["access_log"] = document("envoy/access-log.yaml")["access_log"].clone();
        manager
    };
    envoy_accepts("access-log.yaml", &bootstrap.to_string());
}

/// What every bootstrap says, so that filters and backend see one request and nobody holds the gateway up.
#[test]
fn every_bootstrap_is_an_edge() {
    let expected = json!({
        "use_remote_address": true, "normalize_path": true, "merge_slashes": true,
        "strip_trailing_host_dot": true,
        "path_with_escaped_slashes_action": "REJECT_REQUEST", "request_timeout": "120s",
        "request_headers_timeout": "10s", "stream_idle_timeout": "300s", "max_request_headers_kb": 96,
        "common_http_protocol_options":
            {"idle_timeout": "600s", "max_headers_count": 1000, "headers_with_underscores_action": "REJECT_REQUEST"},
        "http2_protocol_options": {
            "max_concurrent_streams": 100, "initial_stream_window_size": 262_144, "initial_connection_window_size": 1_048_576
        },
    });
    let limits = document("envoy/xds.yaml");
    let (mut managers, mut bootstraps, mut links) = (0, 0, 0);
    for file in files("envoy", ".yaml")
        .iter()
        .filter(|file| !file.ends_with("access-log.yaml") && !file.ends_with("node-token.yaml"))
    {
        let mut bootstrap = document(file);
        bootstraps += 1;
        for key in ["layered_runtime", "overload_manager"] {
            assert!(limits[key].is_object() && bootstrap[key] == limits[key], "{file}: {key}");
        }
        for cluster in bootstrap["static_resources"]["clusters"].as_array().into_iter().flatten() {
            let is_ours = cluster["name"] == "palisade-control-plane";
            assert!(!is_ours || cluster["per_connection_buffer_limit_bytes"] == 32_768, "{file}");
            links += usize::from(is_ours);
        }
        let Some(listeners) = bootstrap["static_resources"]["listeners"].as_array_mut() else { continue };
        for listener in listeners {
            assert!(listener["per_connection_buffer_limit_bytes"].is_u64(), "{file}");
            let manager = manager(&mut listener["filter_chains"][0]);
            for (key, value) in expected.as_object().unwrap() {
                assert_eq!(manager[key], *value, "{file}: {key}");
            }
            managers += 1;
        }
    }
    assert_eq!((bootstraps, managers, links), (8, 5, 5));
    let runtime = &limits["layered_runtime"]["layers"][0]["static_layer"];
    assert_eq!(runtime["http.max_requests_per_io_cycle"], 1);
    assert_eq!(runtime["overload.premature_reset_total_stream_count"], 500);
}

/// Calls go out by name and over HTTPS, and nowhere inside.
#[test]
fn the_network_policy_lets_the_control_plane_call_out() {
    let all = documents("control-plane/deploy/kubernetes.yaml");
    let policy = all.iter().find(|document| document["kind"] == "NetworkPolicy").unwrap();
    let egress = policy["spec"]["egress"].as_array().unwrap();
    let rule = |port: u64, protocol: &str| {
        let wanted = json!({"port": port, "protocol": protocol});
        egress.iter().find(|rule| rule["ports"].as_array().is_some_and(|ports| ports.contains(&wanted)))
    };
    assert!(rule(53, "UDP").is_some() && rule(53, "TCP").is_some(), "names are not resolved");
    let https = rule(443, "TCP").expect("webhooks are not reached");
    let block = &https["to"][0]["ipBlock"];
    assert_eq!(block["cidr"], "0.0.0.0/0");
    for inside in ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "127.0.0.0/8", "100.64.0.0/10"] {
        assert!(block["except"].as_array().unwrap().contains(&json!(inside)), "{inside} is reached");
    }
    assert!(!read("control-plane/deploy/kubernetes.yaml").contains("xDS has no TLS"));
}

/// The connection manager of a filter chain.
fn manager(chain: &mut Value) -> &mut Value {
    &mut chain["filters"][0]["typed_config"]
}

#[test]
fn kubernetes_accepts_its_manifests() {
    let schemas = Kubernetes::read();
    let mut seen = Vec::new();
    for file in files("control-plane/deploy", ".yaml") {
        for document in documents(&file) {
            let kind = document["kind"].as_str().unwrap_or_default().to_owned();
            schemas.check(&file, &schemas.definition(&document), &document);
            seen.push(kind);
        }
    }
    for kind in ["StatefulSet", "Service", "Secret", "NetworkPolicy", "Job"] {
        assert!(seen.iter().any(|seen| seen == kind), "no example has a {kind}");
    }
    // What Envoy Gateway hands on to Kubernetes as it is.
    let file = "envoy/envoy-gateway/patch-policy.yaml";
    let proxy = documents(file).into_iter().find(|document| document["kind"] == "EnvoyProxy").unwrap();
    let deployment = &proxy["spec"]["provider"]["kubernetes"]["envoyDeployment"];
    for (parts, definition) in [
        (&deployment["pod"]["volumes"], "Volume"),
        (&deployment["container"]["volumeMounts"], "VolumeMount"),
        (&deployment["initContainers"], "Container"),
    ] {
        for part in parts.as_array().unwrap_or_else(|| panic!("{file} has no {definition}")) {
            schemas.check(file, &format!("io.k8s.api.core.v1.{definition}"), part);
        }
    }
}

#[test]
fn istio_and_envoy_gateway_accept_their_resources() {
    let folders = ["envoy/istio", "envoy/envoy-gateway"];
    // One is a part of a Deployment.
    let files = folders
        .into_iter()
        .flat_map(|folder| files(folder, ".yaml"))
        .filter(|file| !file.ends_with("gateway-patch.yaml"));
    let all: Vec<Value> = files.flat_map(|file| documents(&file)).collect();
    assert!(all.len() >= 7, "{} resources", all.len());
    custom_resources(&all);
}

/// Where the shipped clusters read the node token from.
pub(crate) const NODE_TOKEN: &str = "/etc/palisade/node-token.yaml";

/// The bootstrap of a gateway of this id that another controller configures, with its listener in it, in front of a backend.
fn gateway(id: &str, backend: SocketAddr) -> Value {
    let mut bootstrap: Value = serde_json::from_str(&Static::to(backend).render()).unwrap();
    bootstrap["node"] = json!({"id": id, "cluster": "gateways"});
    bootstrap
}

/// A backend that no test calls.
fn nowhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1))
}

/// A gateway of Istio's into which the patches of these files have been put, as Istio puts them, and where.
pub(crate) fn of_istio(id: &str, backend: SocketAddr, files: &[&str]) -> (Value, Vec<String>) {
    let mut bootstrap = gateway(id, backend);
    let mut applied = Vec::new();
    for file in files {
        for patch in document(file)["spec"]["configPatches"].as_array().unwrap() {
            let value = &patch["patch"]["value"];
            let listener = &mut bootstrap["static_resources"]["listeners"][0];
            let place = patch["applyTo"].as_str().unwrap();
            match place {
                "BOOTSTRAP" => merge(&mut bootstrap, value),
                "LISTENER" => merge(listener, value),
                "NETWORK_FILTER" => merge(&mut listener["filter_chains"][0]["filters"][0], value),
                "HTTP_FILTER" => {
                    let filters = &mut manager(&mut listener["filter_chains"][0])["http_filters"];
                    filters.as_array_mut().unwrap().insert(0, value.clone());
                }
                other => panic!("{file}: nobody knows how {other} is applied"),
            }
            applied.push(place.to_owned());
        }
    }
    (bootstrap, applied)
}

/// The same for Envoy Gateway: its bootstrap and its listener, with what its resources change in both.
pub(crate) fn of_envoy_gateway(id: &str, backend: SocketAddr) -> Value {
    let file = "envoy/envoy-gateway/patch-policy.yaml";
    let all = documents(file);
    let kind = |kind: &str| all.iter().find(|document| document["kind"] == kind).unwrap();
    let mut bootstrap = gateway(id, backend);
    let ours = kind("EnvoyProxy")["spec"]["bootstrap"]["value"].as_str().unwrap();
    merge(&mut bootstrap, &serde_saphyr::from_str(ours).unwrap_or_else(|error| panic!("{file}: {error}")));
    let listener = &mut bootstrap["static_resources"]["listeners"][0];
    // This is where Envoy Gateway has the filters of a listener without TLS.
    let chain = listener["filter_chains"].as_array_mut().unwrap().remove(0);
    listener["default_filter_chain"] = chain;
    for patch in kind("EnvoyPatchPolicy")["spec"]["jsonPatches"].as_array().unwrap() {
        assert_eq!(patch["type"], "type.googleapis.com/envoy.config.listener.v3.Listener");
        let operation: json_patch::Patch = serde_json::from_value(json!([patch["operation"]])).unwrap();
        json_patch::patch(listener, &operation).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    bootstrap
}

/// Envoy on a bootstrap that reads a node token: the file has to be there.
fn envoy_accepts_with_token(what: &str, bootstrap: &Value) {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("node-token.yaml");
    std::fs::write(&token, read("envoy/node-token.yaml")).unwrap();
    envoy_accepts(what, &bootstrap.to_string().replace(NODE_TOKEN, token.to_str().unwrap()));
}

/// The filters of the cluster by which a gateway reaches its control plane: they put the token on every request.
fn token_filters(bootstrap: &Value) -> Value {
    let clusters = bootstrap["static_resources"]["clusters"].as_array().unwrap();
    let cluster = clusters.iter().find(|cluster| cluster["name"] == "palisade-control-plane").unwrap();
    let options = &cluster["typed_extension_protocol_options"];
    options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]["http_filters"].clone()
}

#[test]
fn envoy_accepts_what_istio_makes_of_the_patches() {
    let files = ["envoy/istio/envoyfilter.yaml", "envoy/istio/buffers.yaml", "envoy/istio/edge.yaml"];
    let (mut bootstrap, applied) = of_istio("gateway-1", nowhere(), &files);
    assert_eq!(applied, ["BOOTSTRAP", "HTTP_FILTER", "LISTENER", "NETWORK_FILTER", "BOOTSTRAP"]);
    let manager = manager(&mut bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]);
    assert_eq!(manager["path_with_escaped_slashes_action"], "REJECT_REQUEST");
    assert_eq!(manager["strip_trailing_host_dot"], true);
    assert_eq!(asks_static_clusters("envoy/istio", &bootstrap), 1);
    envoy_accepts_with_token("envoy/istio", &bootstrap);
}

#[test]
fn envoy_accepts_what_envoy_gateway_makes_of_the_patches() {
    let file = "envoy/envoy-gateway/patch-policy.yaml";
    let mut bootstrap = of_envoy_gateway("gateway-1", nowhere());
    let listener = &mut bootstrap["static_resources"]["listeners"][0];
    assert_eq!(manager(&mut listener["default_filter_chain"])["http_filters"][0]["name"], "palisade.preset");
    assert_eq!(asks_static_clusters(file, &bootstrap), 1);
    envoy_accepts_with_token(file, &bootstrap);
}

/// `kubernetes.yaml` demands a token: every gateway that is applied beside it sends one, from a file that its pods have.
#[test]
fn gateways_in_kubernetes_bring_the_token_that_is_demanded() {
    let deployed = read("control-plane/deploy/kubernetes.yaml");
    assert!(deployed.contains("PALISADE_NODE_TOKEN_FILE") && deployed.contains("value: \"gateway-*\""));
    let expected = token_filters(&document("envoy/xds-token.yaml"));
    assert!(expected[0]["name"] == "envoy.filters.http.credential_injector");
    let (istio, _) = of_istio("gateway-1", nowhere(), &["envoy/istio/envoyfilter.yaml"]);
    assert_eq!(token_filters(&istio), expected, "Istio");
    assert_eq!(token_filters(&of_envoy_gateway("gateway-1", nowhere())), expected, "Envoy Gateway");
    let all = documents("envoy/envoy-gateway/patch-policy.yaml");
    let proxy = all.iter().find(|document| document["kind"] == "EnvoyProxy").unwrap();
    let deployment = &proxy["spec"]["provider"]["kubernetes"]["envoyDeployment"];
    let folder = Path::new(NODE_TOKEN).parent().unwrap().to_str().unwrap();
    let mount = deployment["container"]["volumeMounts"].as_array().unwrap();
    let mount = mount.iter().find(|mount| mount["mountPath"] == folder).expect("the token is mounted");
    let volumes = deployment["pod"]["volumes"].as_array().unwrap();
    let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
    assert_eq!(volume["secret"]["secretName"], "palisade-node-token");
    // The ids that the token is for are replaced in the manifest, and are those that the secret is asked for.
    for (file, ids) in [
        ("envoy/istio/envoyfilter.yaml", "*~istio-ingress.svc.cluster.local"),
        ("envoy/envoy-gateway/patch-policy.yaml", "envoy-default-eg-*"),
    ] {
        let text = read(file);
        assert!(text.contains(&format!("sed 's/gateway-\\*/{ids}/' control-plane/deploy/kubernetes.yaml")), "{file}");
        assert!(text.contains(&format!("node-token secret --node \"{ids}\"")), "{file}");
    }
}

/// What Envoy is configured by comes from clusters that are there from the start, which it does not look at here.
/// Returns how many sources there are.
fn asks_static_clusters(what: &str, bootstrap: &Value) -> usize {
    let mut asked = Vec::new();
    walk(bootstrap, &mut |name, value| {
        if name == "envoy_grpc" {
            asked.push(value["cluster_name"].clone());
        }
    });
    let clusters = bootstrap["static_resources"]["clusters"].as_array().unwrap();
    for asked in &asked {
        assert!(clusters.iter().any(|cluster| cluster["name"] == *asked), "{what}: no static cluster is named {asked}");
        // The filters' own link takes this one, whatever the configuration says.
        assert_eq!(*asked, "palisade-control-plane", "{what}");
    }
    asked.len()
}

/// Shows every field of a document, with its name.
fn walk<'a>(value: &'a Value, show: &mut impl FnMut(&str, &'a Value)) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            show(name, value);
            walk(value, show);
        }),
        Value::Array(items) => items.iter().for_each(|item| walk(item, show)),
        _ => {}
    }
}

/// As protobuf messages are merged: lists are joined.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from.iter().cloned()),
        (into, from) => *into = from.clone(),
    }
}

#[test]
fn compose_accepts_the_file_and_what_it_names_is_there() {
    let compose = document("compose.yaml");
    let schema: Value = serde_json::from_slice(&std::fs::read(parts::schema("compose.json")).unwrap()).unwrap();
    check("compose.yaml", "compose", &schema, &compose);
    for (name, service) in compose["services"].as_object().unwrap() {
        assert_eq!(service["read_only"], true, "{name}");
        for port in service["ports"].as_array().into_iter().flatten() {
            assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{name} publishes {port}");
        }
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let source = volume.as_str().unwrap().split(':').next().unwrap();
            match source.strip_prefix("./") {
                Some(path) => assert!(parts::root().join(path).exists(), "{name} mounts {path}, which is missing"),
                None => assert!(compose["volumes"].get(source).is_some(), "{name} mounts {source}, which is no volume"),
            }
        }
    }
    // The Envoy of the tests and that of the containers are of one version.
    let image = compose["services"]["envoy"]["image"].as_str().unwrap();
    let version = image.split(":v").nth(1).unwrap();
    assert!(read("tests/scripts/fetch_envoy.py").contains(&format!("VERSION = \"{version}\"")), "{image}");
}

#[test]
fn hadolint_finds_nothing_in_the_dockerfiles() {
    for file in ["Dockerfile", "Dockerfile.wasm"] {
        let output = run(Command::new(parts::schema("hadolint")).args(["--no-color", file]).current_dir(parts::root()));
        let output = output.expect("hadolint is there");
        assert!(output.status.success(), "{}", text(&output));
    }
    let minor = read("Cargo.toml").lines().find_map(|line| line.strip_prefix("rust-version = ").map(str::to_owned));
    let minor = minor.expect("Cargo.toml names a rust-version");
    let image = format!("ARG RUST_VERSION={}", minor.trim_matches('"'));
    assert!(read("Dockerfile").lines().any(|line| line == image), "the Dockerfile has no line `{image}`");
    // The control plane looks for it beside itself.
    let beside = "install -D -m 0755 -t /out/usr/bin target/release/palisade target/release/palisade-replay ";
    assert!(read("Dockerfile").contains(beside), "the Dockerfile does not install palisade-replay beside palisade");
    // What is built is there: the list of what is not left out names files that exist.
    for kept in read(".dockerignore").lines().filter_map(|line| line.strip_prefix('!')) {
        assert!(parts::root().join(kept).exists(), ".dockerignore keeps {kept}, which is missing");
    }
}

#[test]
fn systemd_accepts_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("palisade.service");
    // It looks for the program as well, which is installed nowhere here.
    let installed = read("control-plane/deploy/palisade.service");
    assert!(installed.contains("ExecStart=/usr/bin/palisade serve"));
    let program = text_of(&parts::palisade());
    std::fs::write(&unit, installed.replace("/usr/bin/palisade", &program)).unwrap();
    let verify = ["verify", "--man=no", "--recursive-errors=no"];
    let security = ["security", "--offline=true", "--no-pager", "--threshold", MOST_EXPOSED];
    for arguments in [verify.as_slice(), security.as_slice()] {
        let Some(output) = run(Command::new("systemd-analyze").args(arguments).arg(&unit)) else {
            println!("skipped: this machine has no systemd-analyze (Debian's package systemd)");
            return;
        };
        let said = text(&output);
        assert!(output.status.success(), "{said}");
        // Unknown keys are warnings, with their line, and an exit status of 0.
        let of_a_line = |at: usize| said[at..].starts_with(|digit: char| digit.is_ascii_digit());
        let mark = "palisade.service:";
        assert!(!said.match_indices(mark).any(|(at, _)| of_a_line(at + mark.len())), "{said}");
    }
}

fn text_of(path: &Path) -> String {
    PathBuf::from(path).into_os_string().into_string().unwrap()
}
