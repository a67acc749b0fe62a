//! The Helm chart, rendered by Helm itself for many values: schemas accept what comes out, and the plain manifests are the same.

use std::io::Write as _;
use std::process::{Command, Stdio};

use palisade_tests::parts;
use serde_json::{Value, json};

use crate::examples::{documents, read};
use crate::schemas::{Kubernetes, custom_resources};

pub(crate) const CHART: &str = "control-plane/deploy/helm/palisade";
const PLAIN: &str = "control-plane/deploy/kubernetes/palisade.yaml";
const PLAIN_VALUES: &str = "control-plane/deploy/kubernetes/values.yaml";
/// What a resource says that Helm manages, and `kubectl apply` does not.
const MANAGED: &str = "app.kubernetes.io/managed-by: Helm";

/// What Helm made of a run: the manifests, or why it refused.
pub(crate) type Rendered = Result<String, String>;

/// Runs Helm: see `helm_render.py`. `None` on a platform that it is not there for.
pub(crate) fn helm(renders: &[Value]) -> Option<Vec<Rendered>> {
    let helm = parts::helm();
    if helm.join("MISSING").exists() {
        println!("skipped: there is no Helm for this platform");
        return None;
    }
    let mut python = Command::new("python3")
        .arg(parts::root().join("tests/scripts/helm_render.py"))
        .env("PALISADE_HELM", helm)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("python3 cannot be run: {error}"));
    let wanted = json!({"chart": parts::root().join(CHART), "renders": renders});
    python.stdin.take().unwrap().write_all(wanted.to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{failed}");
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers.len(), renders.len());
    let rendered = |answer: &Value| match (answer["text"].as_str(), answer["error"].as_str()) {
        (Some(text), None) => Ok(text.to_owned()),
        (None, Some(why)) => Err(why.to_owned()),
        _ => panic!("{answer}"),
    };
    Some(answers.iter().map(rendered).collect())
}

/// The objects of a text of manifests.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    all.into_iter().filter(Value::is_object).collect()
}

/// A set of values, with the Secrets that the operator makes for it.
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) values: Value,
    pub(crate) given: &'static [&'static str],
}

pub(crate) fn variants() -> Vec<Variant> {
    let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    let variant = |name, given: &'static [&'static str], values| Variant { name, values, given };
    let gateways = json!([
        {"name": "istio", "nodes": "*~istio-ingress.svc.cluster.local", "namespace": "istio-ingress", "kind": "istio",
         "selector": {"istio": "ingress"}},
        {"name": "eg", "nodes": "envoy-default-eg-*", "namespace": "envoy-gateway-system", "kind": "envoy-gateway",
         "gateway": {"namespace": "default", "name": "eg", "listeners": ["http"]}, "replicas": 3},
        {"name": "edge", "nodes": "edge-*", "namespace": "edge", "kind": "other", "derive": true},
    ]);
    vec![
        variant("the defaults", &[], json!({})),
        variant(
            "a file",
            &[],
            json!({"replicas": 1, "store": {"type": "embedded", "embedded": {"storageClass": "fast"}}}),
        ),
        variant(
            "a server of the operator's",
            &["redis-password", "redis-ca"],
            json!({"replicas": 3, "store": {"type": "external", "external": {
                "url": "rediss://palisade@redis.example:6380/2?timeout_millis=3000", "passwordSecret": {"name": "redis-password", "key": "password"},
                "caSecret": {"name": "redis-ca", "key": "ca.crt"}, "peers": [{"ipBlock": {"cidr": "10.20.0.0/16"}}], "ports": [6380]}}}),
        ),
        variant(
            "a URL in a Secret",
            &["store"],
            json!({"store": {"type": "external", "external": {
                "urlSecret": {"name": "store", "key": "url"}, "peers": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]}}}),
        ),
        variant(
            "TLS everywhere",
            &["redis-tls", "admin-tls", "xds-tls", "gateways-ca"],
            json!({"redis": {"tls": {"secretName": "redis-tls"}}, "tls": {"admin": {"secretName": "admin-tls"},
                "xds": {"secretName": "xds-tls", "clientCaSecret": "gateways-ca"},
                "certManager": {"enabled": true, "issuer": {"name": "internal", "kind": "ClusterIssuer"}}},
                "metrics": {"serviceMonitor": {"enabled": true}}}),
        ),
        variant("a fleet", &[], json!({"gateways": gateways})),
        variant(
            "a fleet with TLS",
            &["xds-tls"],
            json!({"gateways": gateways, "tls": {"xds": {"secretName": "xds-tls", "ca": certificate}}}),
        ),
        variant(
            "everything else",
            &["pull", "hooks"],
            json!({
                "namespace": {"create": true}, "image": {"tag": "0.2.0", "pullSecrets": ["pull"]}, "admin": {"hosts": ["a.example", "b.example"],
                "from": [{"namespaceSelector": {"matchLabels": {"team": "security"}}}]}, "redis": {"programs": "redis", "image": "redis:8.2", "storageClass": "fast"},
                "events": {"webhook": "https://events.example/in", "webhookHeadersSecret": {"name": "hooks", "key": "headers"}},
                "outboundAllow": ["10.20.0.0/16"], "extraEnv": [{"name": "RUST_LOG", "value": "debug"}],
                "networkPolicy": {"internet": false, "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "collector"}}}], "ports": [{"port": 443}]}]},
                "metrics": {"serviceMonitor": {"enabled": true}}, "nodeSelector": {"disk": "ssd"}, "priorityClassName": "important",
                "tolerations": [{"key": "a", "operator": "Exists"}], "affinity": {"nodeAffinity": {}}, "podAnnotations": {"a": "b"},
            }),
        ),
        variant(
            "while the store is copied",
            &[],
            json!({"replicas": 0, "store": {"prefix": "palisade-2", "previousPrefix": "palisade"}}),
        ),
        variant("no policies", &[], json!({"networkPolicy": {"enabled": false}})),
        variant(
            "secrets of the operator's",
            &["palisade-redis", "palisade-admin-key", "palisade-node-tokens"],
            json!({"secrets": {"create": false}}),
        ),
    ]
}

/// Each variant with its objects.
pub(crate) fn rendered() -> Vec<(Variant, Vec<Value>)> {
    let variants = variants();
    let renders: Vec<Value> = variants.iter().map(|variant| json!({"values": variant.values})).collect();
    let texts = helm(&renders).unwrap_or_default();
    let objects = |(variant, text): (Variant, Rendered)| {
        let text = text.unwrap_or_else(|why| panic!("{}: {why}", variant.name));
        let found = objects(&text);
        (variant, found)
    };
    variants.into_iter().zip(texts).map(objects).collect()
}

#[test]
fn schemas_accept_what_the_chart_makes() {
    let schemas = Kubernetes::read();
    let own = ["v1", "apps/v1", "policy/v1", "networking.k8s.io/v1"];
    let mut custom = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut checked = std::collections::BTreeSet::new();
    for (variant, objects) in rendered() {
        let mut names = std::collections::BTreeSet::new();
        for object in objects {
            let kind = object["kind"].as_str().unwrap().to_owned();
            let id = format!("{kind} {} {}", object["metadata"]["namespace"], object["metadata"]["name"]);
            assert!(names.insert(id.clone()), "{}: {id} is there twice", variant.name);
            seen.insert(kind);
            // Most objects are the same for many values.
            if checked.insert(object.to_string()) {
                match own.contains(&object["apiVersion"].as_str().unwrap()) {
                    true => schemas.check(variant.name, &schemas.definition(&object), &object),
                    false => custom.push(object),
                }
            }
        }
    }
    if seen.is_empty() {
        return;
    }
    custom_resources(&custom);
    for kind in [
        "Namespace",
        "ServiceAccount",
        "Secret",
        "ConfigMap",
        "Service",
        "Deployment",
        "StatefulSet",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "Certificate",
        "ServiceMonitor",
        "EnvoyFilter",
        "EnvoyProxy",
        "EnvoyPatchPolicy",
    ] {
        assert!(seen.contains(kind), "no values make a {kind}");
    }
}

#[test]
fn helm_finds_nothing_to_improve() {
    let renders: Vec<Value> =
        variants().iter().map(|variant| json!({"values": variant.values, "lint": true})).collect();
    for (variant, found) in variants().iter().zip(helm(&renders).unwrap_or_default()) {
        assert_eq!(found, Ok(String::new()), "{}", variant.name);
    }
}

#[test]
fn wrong_values_are_refused_with_the_reason() {
    let gateway = |more: Value| {
        let mut gateway = json!({"name": "a", "nodes": "a-*", "kind": "other"});
        gateway.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"gateways": [gateway]})
    };
    let cases = [
        (json!({"replica": 3}), "'replica'"),
        (json!({"replicas": -1}), "/replicas"),
        (json!({"replicas": "2"}), "/replicas"),
        (json!({"store": {"type": "redis"}}), "/store/type"),
        (json!({"store": {"type": "embedded"}}), "set replicas to 1"),
        (json!({"store": {"type": "external"}}), "needs store.external.url"),
        (json!({"store": {"type": "external", "external": {"url": "redis://a"}}}), "store.external.peers"),
        (json!({"store": {"type": "external", "external": {"url": "redis://a:secret@b"}}}), "/store/external/url"),
        (json!({"store": {"type": "external", "external": {"url": "http://a"}}}), "/store/external/url"),
        (json!({"store": {"external": {"passwordSecret": {"name": "a"}}}}), "/store/external/passwordSecret"),
        (json!({"store": {"external": {"urlSecret": {"name": "a", "key": "url"}}}}), "store.type is bundled"),
        (
            json!({"replicas": 1, "store": {"type": "embedded", "external": {"url": "redis://a"}}}),
            "store.type is embedded",
        ),
        (json!({"replay": {"maxMemoryMib": 1}}), "/replay/maxMemoryMib"),
        (json!({"store": {"prefix": "{a}"}}), "/store/prefix"),
        (json!({"redis": {"size": "4"}}), "/redis/size"),
        (json!({"redis": {"maxMemory": "unlimited"}}), "/redis/maxMemory"),
        (json!({"gateways": []}), "/gateways"),
        (gateway(json!({"kind": "nginx"})), "/gateways/0/kind"),
        (gateway(json!({"nodes": "a b"})), "/gateways/0/nodes"),
        (gateway(json!({"nodes": "a-*-b"})), "/gateways/0/nodes"),
        (gateway(json!({"name": "A"})), "/gateways/0/name"),
        (gateway(json!({"kind": "istio"})), "needs selector"),
        (gateway(json!({"kind": "envoy-gateway"})), "needs gateway"),
        (gateway(json!({"kind": "istio", "selector": {"a": "b"}, "derive": true})), "derived tokens"),
        (json!({"tls": {"xds": {"clientCaSecret": "a"}}}), "needs tls.xds.secretName"),
        (json!({"tls": {"certManager": {"enabled": true}}}), "/tls/certManager/issuer/name"),
        (json!({"tls": {"certManager": {"enabled": true, "issuer": {"name": "a"}}}}), "tls.admin.secretName or"),
        (json!({"extraEnv": [{"name": "a b"}]}), "/extraEnv/0/name"),
        (json!({"networkPolicy": {"dns": {"labels": {}}}}), "/networkPolicy/dns"),
    ];
    let renders: Vec<Value> = cases.iter().map(|(values, _)| json!({"values": values})).collect();
    for ((values, reason), rendered) in cases.iter().zip(helm(&renders).unwrap_or_default()) {
        let why = rendered.expect_err(&values.to_string());
        assert!(why.contains(reason), "{values}: {why}");
    }
}

/// `PALISADE_BLESS=1` writes the file anew, except for its first comment.
#[test]
fn the_plain_manifests_are_what_the_chart_renders() {
    let [values] = documents(PLAIN_VALUES).try_into().unwrap();
    let Some(rendered) = helm(&[json!({"values": Value::clone(&values)})]) else { return };
    let text = rendered.into_iter().next().unwrap().unwrap();
    let kept = |line: &&str| !line.contains(MANAGED) && !line.is_empty();
    let body = text.lines().filter(kept).collect::<Vec<_>>().join("\n") + "\n";
    // The namespace has to be there before what is in it.
    let mut parts: Vec<&str> = body.split("---\n").filter(|part| !part.trim().is_empty()).collect();
    parts.sort_by_key(|part| !part.contains("kind: Namespace"));
    let body = parts.join("---\n");
    let written = std::fs::read_to_string(parts::root().join(PLAIN)).unwrap_or_default();
    let head = written.lines().take_while(|line| line.starts_with('#') || line.is_empty());
    let head = head.map(|line| format!("{line}\n")).collect::<String>();
    let whole = format!("{head}{body}");
    if std::env::var_os("PALISADE_BLESS").is_some() {
        std::fs::write(parts::root().join(PLAIN), &whole).unwrap();
    } else {
        assert!(written == whole, "{PLAIN} is not what the chart renders: PALISADE_BLESS=1 writes it anew");
    }
}

#[test]
fn the_plain_manifests_have_no_secret_and_fit_the_schemas() {
    let schemas = Kubernetes::read();
    let all = documents(PLAIN);
    for object in &all {
        schemas.check(PLAIN, &schemas.definition(object), object);
        assert_ne!(object["kind"], "Secret");
    }
    for object in documents("control-plane/deploy/kubernetes/migrate-store.yaml") {
        schemas.check("migrate-store.yaml", &schemas.definition(&object), &object);
        let labels = &object["spec"]["template"]["metadata"]["labels"];
        let redis = all
            .iter()
            .find(|object| object["kind"] == "NetworkPolicy" && object["metadata"]["name"] == "palisade-redis")
            .unwrap();
        let admitted = redis["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"].as_object().unwrap();
        assert!(admitted.iter().all(|(name, value)| labels[name] == *value), "the server is not reached");
    }
    let text = read(PLAIN);
    assert!(!text.contains("inline_string") && !text.contains("BEGIN ") && !text.contains(MANAGED));
    assert_eq!(all[0]["kind"], "Namespace");
    assert_eq!(all[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    let deployment = all.iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert!(deployment["spec"]["replicas"].as_u64().unwrap() > 1);
}
