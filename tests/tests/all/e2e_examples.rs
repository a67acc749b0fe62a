//! The examples of `envoy/` that run on one machine, run as their first lines say.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::examples::{NODE_TOKEN, of_envoy_gateway, of_istio};
use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::{Static, shipped};
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT};
use palisade_tests::http::{Request, percent};
use palisade_tests::process::wait_for;
use palisade_tests::{parts, ports};
use serde_json::{Value, json};

const SQL: &str = "1' UNION SELECT password FROM users-- -";
const PATIENCE: Duration = Duration::from_secs(60);
/// The ports that the examples have.
const WRITTEN_PORT: u16 = 10000;
const WRITTEN_BACKEND_PORT: u16 = 18081;

/// Runs `palisade` in the repository's folder, and returns what it printed.
fn palisade(arguments: &[&str]) -> String {
    let output = Command::new(parts::palisade())
        .args(arguments)
        .current_dir(parts::root())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", parts::palisade().display()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn apply(control: &ControlPlane, entities: &Path) {
    let key = control.data().join("admin-key.json");
    let url = format!("http://{}", control.rest());
    palisade(&["apply", path(entities), "--url", &url, "--key-file", path(&key)]);
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Waits until a gateway serves; then a harmless request and an attack, in the URL and in a form.
fn protects(to: SocketAddr, envoy: &Envoy) {
    let status = |request: &Request| request.send(to).map_or(0, |answer| answer.status);
    let form = |text: &str| Request::post("/echo", "application/x-www-form-urlencoded", text);
    let attack = Request::get(format!("/search?q={}", percent(SQL)));
    wait_for("the gateway serves and refuses", PATIENCE, || {
        (status(&Request::get("/")) == 200 && status(&attack) == 403).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", envoy.log_tail(40)));
    assert_eq!(status(&form("name=garden+chairs")), 200, "{}", envoy.log_tail(40));
    assert_eq!(status(&form(&format!("name={}", percent(SQL)))), 403, "{}", envoy.log_tail(40));
    let failures = envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

/// A listener of somebody else's with the filter from the control plane, which follows its policies.
fn filter_by_ecds(example: &str) {
    let backend = Backend::start();
    let control = ControlPlane::start();
    apply(&control, &parts::root().join("envoy/entities"));
    let port = ports::free();
    let bootstrap = shipped(
        example,
        &[
            (WRITTEN_PORT, port),
            (WRITTEN_BACKEND_PORT, backend.address().port()),
            (WRITTEN_ADMIN_PORT, 0),
            (WRITTEN_XDS_PORT, control.xds().port()),
        ],
    );
    let envoy = Envoy::start(&bootstrap.replace("/dev/stdout", "ACCESS_LOG"));
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    protects(to, &envoy);

    let probe = Request::get("/?probe=1");
    assert_eq!(probe.send(to).unwrap().status, 200);
    let rule = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,deny,status:403,msg:'probe'""#;
    control.patch("waf-configs", "demo", &json!({"rules": ["@import_preset crs", rule]}));
    wait_for("the change is in force", PATIENCE, || (probe.send(to).ok()?.status == 403).then_some(()))
        .unwrap_or_else(|why| panic!("{why}\n{}", envoy.log_tail(40)));
    // The filter's own link to the control plane.
    let _ = control.event("the refusal", |event| event["event"]["outcome"] == "blocked");
}

#[test]
fn ecds_over_ads() {
    filter_by_ecds("ecds.yaml");
}

#[test]
fn ecds_by_a_source_of_its_own() {
    filter_by_ecds("ecds-own-source.yaml");
}

#[test]
fn everything_over_ads() {
    let backend = Backend::start();
    let control = ControlPlane::start();
    let port = ports::free();
    control.configure(&json!({"gateway": {"address": "127.0.0.1", "port": port, "access_log": ""}}));
    apply(&control, &parts::root().join("envoy/entities"));
    let to = json!({"address": "127.0.0.1", "port": backend.address().port()});
    control.patch("routes", "demo", &json!({"backend": to}));
    let bootstrap = shipped("xds.yaml", &[(WRITTEN_XDS_PORT, control.xds().port()), (WRITTEN_ADMIN_PORT, 0)]);
    let envoy = Envoy::start(&bootstrap);
    protects(SocketAddr::from(([127, 0, 0, 1], port)), &envoy);
}

#[test]
fn separate_filters() {
    let folder = tempfile::tempdir().unwrap();
    // The commands at the top of the file, with another folder in the place of `target`.
    let text = shipped("separate-filters.yaml", &[]);
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#   ")).collect();
    let [commands @ .., _] = commands.as_slice() else { panic!("separate-filters.yaml names no commands") };
    let script = commands
        .join("\n")
        .replace("palisade compile", &format!("{} compile", path(&parts::palisade())))
        .replace("--filters-dir target/filters", &format!("--filters-dir {}", path(&parts::filters())))
        .replace(" target/", &format!(" {}/", path(folder.path())));
    let done = Command::new("sh").args(["-ec", &script]).current_dir(parts::root()).status().unwrap();
    assert!(done.success(), "{script}");

    let backend = Backend::start();
    let port = ports::free();
    let bootstrap = shipped(
        "separate-filters.yaml",
        &[(WRITTEN_PORT, port), (WRITTEN_BACKEND_PORT, backend.address().port()), (WRITTEN_ADMIN_PORT, 0)],
    );
    let bootstrap = bootstrap.replace("path: target/", &format!("path: {}/", path(folder.path())));
    let envoy = Envoy::start(&bootstrap.replace("/dev/stdout", "ACCESS_LOG"));
    protects(SocketAddr::from(([127, 0, 0, 1], port)), &envoy);
}

/// A gateway in Kubernetes beside `kubernetes.yaml`, which demands a token: made for the ids that the file names, printed as
/// its first lines say, and read by the pod of a gateway of such an id.
fn in_kubernetes(ids: &str, bootstrap: impl FnOnce(SocketAddr) -> Value) {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("node-tokens");
    let arguments = ["--node-token-file", path(&tokens), "--node-token-create", ids].map(str::to_owned);
    let control = ControlPlane::start_with(&arguments);
    control.configure(&json!({"gateway": {"delivery": "ecds"}}));
    apply(&control, &parts::root().join("envoy/entities"));
    let secret = folder.path().join("node-token.yaml");
    std::fs::write(&secret, palisade(&["node-token", "secret", "--file", path(&tokens), "--node", ids])).unwrap();
    let backend = Backend::start();
    let text = bootstrap(backend.address()).to_string();
    let (service, port) = ("palisade.palisade.svc.cluster.local", format!("\"port_value\":{WRITTEN_XDS_PORT}"));
    assert!(text.contains(service) && text.contains(&port) && text.contains(NODE_TOKEN), "{text}");
    let text = text.replace(service, "127.0.0.1").replace(&port, &format!("\"port_value\":{}", control.xds().port()));
    let envoy = Envoy::start(&text.replace(NODE_TOKEN, path(&secret)));
    protects(envoy.listener(Static::LISTENER), &envoy);
    // The filter's own link brings the token as well.
    let _ = control.event("the refusal", |event| event["event"]["outcome"] == "blocked");
}

#[test]
fn istio_beside_the_control_plane_of_kubernetes() {
    let id = "router~10.0.0.7~istio-ingress-5c8d~istio-ingress.svc.cluster.local";
    let files = ["envoy/istio/envoyfilter.yaml"];
    in_kubernetes("*~istio-ingress.svc.cluster.local", |backend| of_istio(id, backend, &files).0);
}

#[test]
fn envoy_gateway_beside_the_control_plane_of_kubernetes() {
    in_kubernetes("envoy-default-eg-*", |backend| of_envoy_gateway("envoy-default-eg-e41e7b31-6b8c9", backend));
}

/// What a gateway makes of a resource that the policy was put into: the name of the filter and its configuration.
fn filled(template: &str) -> Value {
    let text = palisade(&["compile", "--entities", "envoy/entities-global", "--template", template, "--out", "-"]);
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{template}: {error}"))
}

/// Runs the filter as such gateways do: its configuration is the text of a JSON object.
fn runs(filter: &Value, configuration: &Value) {
    let filter = filter.as_str().unwrap();
    let backend = Backend::start();
    let envoy = Envoy::start(
        &Static::to(backend.address())
            .filter(json!({
                "name": filter,
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
                    "config": {
                        "root_id": filter,
                        "vm_config": {
                            "runtime": "envoy.wasm.runtime.v8",
                            "code": {"local": {"filename": parts::filter(filter)}},
                        },
                        "configuration": {
                            "@type": "type.googleapis.com/google.protobuf.StringValue",
                            "value": configuration.to_string(),
                        },
                    },
                },
            }))
            .render(),
    );
    protects(envoy.listener(Static::LISTENER), &envoy);
}

#[test]
fn istios_wasm_plugin() {
    let plugin = filled("envoy/istio/wasmplugin.yaml");
    runs(&plugin["spec"]["pluginName"], &plugin["spec"]["pluginConfig"]);
    // What Kubernetes takes as one object, with room for more rules.
    let size = plugin.to_string().len();
    assert!(size < 768 << 10, "{size} bytes");
}

#[test]
fn envoy_gateways_extension_policy() {
    let policy = filled("envoy/envoy-gateway/extension-policy.yaml");
    let wasm = &policy["spec"]["wasm"][0];
    runs(&wasm["rootID"], &wasm["config"]);
}

#[test]
fn the_images_health_check() {
    let file = std::fs::read_to_string(parts::root().join("Dockerfile")).unwrap();
    let line = file.lines().find(|line| line.starts_with("HEALTHCHECK ")).unwrap();
    let command: Vec<String> = serde_json::from_str(line.split_once(" CMD ").unwrap().1).unwrap();
    assert_eq!(command[0], "/usr/bin/palisade");
    // With the variables that the control plane of the image has.
    let healthy = |port: u16, certificate: Option<&Path>| {
        let mut check = Command::new(parts::palisade());
        check.args(&command[1..]).env("PALISADE_LISTEN", format!("0.0.0.0:{port}"));
        certificate.map(|file| check.env("PALISADE_TLS_CERT", file));
        check.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    };
    let mut control = ControlPlane::start();
    let port = control.rest().port();
    assert!(healthy(port, None));
    assert!(!healthy(port, Some(Path::new("/certificate"))), "it speaks no TLS");
    control.kill();
    assert!(!healthy(port, None));
}
