//! What schemas cannot know of the chart's objects: that they fit each other, the program, and the rules of Pod Security.

use std::collections::BTreeSet;
use std::process::Command;

use palisade_tests::parts;
use serde_json::{Value, json};

use crate::chart::rendered;
use crate::examples::{documents, of_envoy_gateway, of_istio};
use crate::schemas::Kubernetes;

/// A pod's labels and its specification.
struct Pod<'a> {
    owner: &'a Value,
    labels: &'a Value,
    spec: &'a Value,
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn pods(objects: &[Value]) -> Vec<Pod<'_>> {
    let workload = |object: &&Value| object["kind"] == "Deployment" || object["kind"] == "StatefulSet";
    let pod = |owner| {
        let template: &Value = &Value::get(owner, "spec").unwrap()["template"];
        Pod { owner, labels: &template["metadata"]["labels"], spec: &template["spec"] }
    };
    objects.iter().filter(workload).map(pod).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |object| object["kind"] == kind)
}

fn matches(selector: &Value, labels: &Value) -> bool {
    let wanted = selector.as_object().unwrap();
    !wanted.is_empty() && wanted.iter().all(|(name, value)| labels[name] == *value)
}

fn selected<'a, 'b>(selector: &'a Value, pods: &'b [Pod<'a>]) -> Vec<&'b Pod<'a>> {
    pods.iter().filter(|pod| matches(selector, pod.labels)).collect()
}

/// Whether each container port of this name or number is there.
fn listens(pod: &Pod<'_>, port: &Value) -> bool {
    let ports = || list(&pod.spec["containers"]).flat_map(|container| list(&container["ports"]));
    ports().any(|known| known["name"] == *port || known["containerPort"] == *port)
}

#[test]
fn selectors_and_ports_fit() {
    for (variant, objects) in rendered() {
        let (pods, name) = (pods(&objects), variant.name);
        assert!(!pods.is_empty(), "{name}");
        for pod in &pods {
            assert!(
                matches(&pod.owner["spec"]["selector"]["matchLabels"], pod.labels),
                "{name}: {}",
                pod.owner["metadata"]
            );
            for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
                let container = &pod.spec["containers"][0];
                let is_server = pod.labels["app.kubernetes.io/component"] == "control-plane";
                assert!(!is_server || listens(pod, &container[probe]["httpGet"]["port"]), "{name}: {probe}");
                assert!(container[probe].is_object() || probe == "readinessProbe", "{name}: {probe}");
            }
        }
        let mut names = BTreeSet::new();
        for service in of_kind(&objects, "Service") {
            let found = selected(&service["spec"]["selector"], &pods);
            assert_eq!(found.len(), 1, "{name}: {}", service["metadata"]["name"]);
            for port in list(&service["spec"]["ports"]) {
                assert!(listens(found[0], &port["targetPort"]), "{name}: {port}");
                names.insert(port["name"].to_string());
            }
        }
        for monitor in of_kind(&objects, "ServiceMonitor") {
            for endpoint in list(&monitor["spec"]["endpoints"]) {
                assert!(names.contains(&endpoint["port"].to_string()), "{name}: {endpoint}");
            }
        }
        for budget in of_kind(&objects, "PodDisruptionBudget") {
            let found = selected(&budget["spec"]["selector"]["matchLabels"], &pods);
            let [pod] = found.as_slice() else { panic!("{name}: the budget is of {} workloads", found.len()) };
            let most = budget["spec"]["maxUnavailable"].as_u64().unwrap();
            let replicas = pod.owner["spec"]["replicas"].as_u64().unwrap();
            assert!(most >= 1 && most < replicas, "{name}: a drain is blocked, or takes all: {most} of {replicas}");
        }
    }
}

#[test]
fn network_policies_name_pods_and_ports_that_are_there() {
    for (variant, objects) in rendered() {
        let (pods, name) = (pods(&objects), variant.name);
        let policies: Vec<&Value> = of_kind(&objects, "NetworkPolicy").collect();
        if variant.values["networkPolicy"]["enabled"] == false {
            assert!(policies.is_empty());
            continue;
        }
        // Nothing passes by default, to or from any pod.
        let none = policies
            .iter()
            .find(|policy| policy["spec"].get("ingress").is_none() && policy["spec"].get("egress").is_none());
        let none = none.unwrap_or_else(|| panic!("{name}: no policy refuses by default"));
        assert_eq!(none["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
        assert_eq!(selected(&none["spec"]["podSelector"]["matchLabels"], &pods).len(), pods.len(), "{name}");
        let mut reached = BTreeSet::new();
        for policy in &policies {
            let of = selected(&policy["spec"]["podSelector"]["matchLabels"], &pods);
            assert!(!of.is_empty(), "{name}: {}", policy["metadata"]["name"]);
            for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
                for rule in list(&policy["spec"][rules]) {
                    assert!(
                        list(&rule[peers]).next().is_some() && list(&rule["ports"]).next().is_some(),
                        "{name}: {rule} is for all"
                    );
                    let targets: Vec<&Pod<'_>> = match rules {
                        "ingress" => selected(&policy["spec"]["podSelector"]["matchLabels"], &pods),
                        _ => list(&rule["to"])
                            .flat_map(|peer| {
                                let labels = &peer["podSelector"]["matchLabels"];
                                let own = peer.get("namespaceSelector").is_none() && labels.is_object();
                                if own { selected(labels, &pods) } else { Vec::new() }
                            })
                            .collect(),
                    };
                    for port in list(&rule["ports"]) {
                        assert!(targets.iter().all(|pod| listens(pod, &port["port"])), "{name}: {port}");
                        assert!(!port["port"].is_string() || !targets.is_empty(), "{name}: {port} is a name of no pod");
                        if rules == "ingress" {
                            reached.insert(text(&port["port"]).to_owned());
                        }
                    }
                }
            }
        }
        let all =
            pods.iter().flat_map(|pod| list(&pod.spec["containers"])).flat_map(|container| list(&container["ports"]));
        let all: BTreeSet<String> = all.map(|port| text(&port["name"]).to_owned()).collect();
        assert_eq!(reached, all, "{name}: each port is let through, and no other");
        // The gateways' namespaces and those alone.
        let control = policies.iter().find(|policy| policy["metadata"]["name"] == "palisade").unwrap();
        let xds = list(&control["spec"]["ingress"]).find(|rule| rule["ports"][0]["port"] == "xds").unwrap();
        let namespaces: BTreeSet<&str> = list(&xds["from"])
            .map(|peer| text(&peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]))
            .collect();
        let wanted = variant.values["gateways"].as_array().map_or_else(
            || BTreeSet::from(["palisade"]),
            |gateways| gateways.iter().map(|gateway| text(&gateway["namespace"])).collect(),
        );
        assert_eq!(namespaces, wanted, "{name}");
    }
}

#[test]
fn what_pods_mount_is_there() {
    for (variant, objects) in rendered() {
        let name = variant.name;
        let has = |kind: &str, wanted: &Value| {
            of_kind(&objects, kind).find(|object| object["metadata"]["name"] == *wanted).cloned()
        };
        let secret = |wanted: &Value, keys: &[&Value]| match has("Secret", wanted) {
            Some(made) => keys
                .iter()
                .for_each(|key| assert!(made["stringData"].get(text(key)).is_some(), "{name}: {wanted} has no {key}")),
            None => assert!(variant.given.contains(&text(wanted)), "{name}: there is no Secret {wanted}"),
        };
        for pod in pods(&objects) {
            let claims = list(&pod.owner["spec"]["volumeClaimTemplates"]).map(|claim| &claim["metadata"]["name"]);
            let volumes: BTreeSet<&str> =
                list(&pod.spec["volumes"]).map(|volume| &volume["name"]).chain(claims).map(text).collect();
            let mut mounted = BTreeSet::new();
            for container in list(&pod.spec["containers"]) {
                mounted.extend(list(&container["volumeMounts"]).map(|mount| text(&mount["name"])));
                let folders: Vec<&str> =
                    list(&container["volumeMounts"]).map(|mount| text(&mount["mountPath"])).collect();
                for variable in list(&container["env"]) {
                    let from = &variable["valueFrom"]["secretKeyRef"];
                    if from.is_object() {
                        secret(&from["name"], &[&from["key"]]);
                    }
                    let value = variable["value"].as_str().unwrap_or_default();
                    for path in value.split(['=', '&']).filter(|part| part.starts_with("/etc/")) {
                        let folder = path.rsplit_once('/').unwrap().0;
                        assert!(folders.contains(&folder), "{name}: {path} is not mounted");
                    }
                }
            }
            assert_eq!(volumes, mounted, "{name}");
            for volume in list(&pod.spec["volumes"]) {
                if volume["secret"].is_object() {
                    let keys: Vec<&Value> = list(&volume["secret"]["items"]).map(|item| &item["key"]).collect();
                    secret(&volume["secret"]["secretName"], &keys);
                }
                if volume["configMap"].is_object() {
                    assert!(has("ConfigMap", &volume["configMap"]["name"]).is_some(), "{name}");
                }
            }
            list(&pod.spec["imagePullSecrets"]).for_each(|pull| secret(&pull["name"], &[]));
            assert!(has("ServiceAccount", &pod.spec["serviceAccountName"]).is_some(), "{name}");
        }
    }
}

/// The profile `restricted` of Pod Security, and what it does not ask for: no token of Kubernetes, a root that is not written to.
#[test]
fn every_pod_is_restricted() {
    let mut seen = 0;
    for (variant, objects) in rendered() {
        let mut specs: Vec<Value> = pods(&objects).iter().map(|pod| pod.spec.clone()).collect();
        for proxy in of_kind(&objects, "EnvoyProxy") {
            let deployment = &proxy["spec"]["provider"]["kubernetes"]["envoyDeployment"];
            specs.push(json!({"containers": deployment["initContainers"], "automountServiceAccountToken": false,
                "volumes": deployment["pod"]["volumes"]}));
        }
        for spec in specs {
            seen += 1;
            let name = variant.name;
            assert_eq!(spec["automountServiceAccountToken"], false, "{name}");
            for forbidden in ["hostNetwork", "hostPID", "hostIPC"] {
                assert!(spec.get(forbidden).is_none(), "{name}");
            }
            for volume in list(&spec["volumes"]) {
                let kinds: Vec<&String> = volume.as_object().unwrap().keys().filter(|key| *key != "name").collect();
                assert!(
                    kinds.iter().all(|kind| ["emptyDir", "secret", "configMap"].contains(&kind.as_str())),
                    "{name}: {volume}"
                );
            }
            for container in list(&spec["containers"]) {
                let security = &container["securityContext"];
                assert_eq!(security["runAsNonRoot"], true, "{name}");
                assert_eq!(security["allowPrivilegeEscalation"], false, "{name}");
                assert_eq!(security["readOnlyRootFilesystem"], true, "{name}");
                assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}), "{name}");
                assert_eq!(security["seccompProfile"], json!({"type": "RuntimeDefault"}), "{name}");
                assert!(container["resources"]["limits"]["memory"].is_string(), "{name}");
                assert!(list(&container["ports"]).all(|port| port.get("hostPort").is_none()), "{name}");
            }
        }
    }
    assert!(seen == 0 || seen > 12, "{seen} pods");
}

#[test]
fn variables_are_options_of_the_program() {
    let help = Command::new(parts::palisade()).args(["serve", "--help"]).output().unwrap();
    // Without the line breaks of its paragraphs.
    let help = String::from_utf8_lossy(&help.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut seen = BTreeSet::new();
    for (_, objects) in rendered() {
        for pod in pods(&objects) {
            let variables = list(&pod.spec["containers"]).flat_map(|container| list(&container["env"]));
            seen.extend(variables.map(|variable| text(&variable["name"]).to_owned()));
        }
    }
    for variable in seen.iter().filter(|name| *name != "RUST_LOG") {
        assert!(help.contains(&format!("[env: {variable}")), "`palisade serve` has no {variable}");
    }
    assert!(seen.is_empty() || seen.contains("PALISADE_STORE"));
}

/// The resources of the chart for gateways do what the examples do, and find the chart's Service.
#[test]
fn gateways_of_the_chart_are_those_of_the_examples() {
    let Some((_, objects)) = rendered().into_iter().find(|(variant, _)| variant.name == "a fleet") else { return };
    let one = |kind: &str| of_kind(&objects, kind).next().unwrap().clone();
    let host = "palisade.palisade.svc.cluster.local";
    let moved = |value: &Value| {
        let text = value.to_string().replace("palisade-xds.palisade.svc.cluster.local", host);
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let service = of_kind(&objects, "Service").find(|service| service["metadata"]["name"] == "palisade-xds").unwrap();
    assert_eq!(
        (&service["metadata"]["namespace"], &service["spec"]["ports"][0]["port"]),
        (&json!("palisade"), &json!(18000))
    );
    assert_eq!(service["spec"]["sessionAffinity"], "ClientIP");

    let [example] = documents("envoy/istio/envoyfilter.yaml").try_into().unwrap();
    let example: Value = example;
    assert_eq!(moved(&one("EnvoyFilter")["spec"]), example["spec"]);
    let all = documents("envoy/envoy-gateway/patch-policy.yaml");
    let example = |kind: &str| all.iter().find(|object| object["kind"] == kind).unwrap();
    assert_eq!(moved(&one("EnvoyPatchPolicy")["spec"]), example("EnvoyPatchPolicy")["spec"]);
    let bootstrap =
        |proxy: &Value| serde_saphyr::from_str::<Value>(text(&proxy["spec"]["bootstrap"]["value"])).unwrap();
    assert_eq!(moved(&bootstrap(&one("EnvoyProxy"))), bootstrap(example("EnvoyProxy")));
    // The Deployment of an Istio gateway brings the modules as Envoy Gateway's pods do, and the token where the cluster reads it.
    let [patch] = documents("envoy/istio/gateway-patch.yaml").try_into().unwrap();
    let pod: &Value = &Value::get(&patch, "spec").unwrap()["template"]["spec"];
    Kubernetes::read().check("gateway-patch.yaml", "io.k8s.api.core.v1.PodSpec", pod);
    let deployment = one("EnvoyProxy")["spec"]["provider"]["kubernetes"]["envoyDeployment"].clone();
    assert_eq!(pod["initContainers"], deployment["initContainers"]);
    assert_eq!(pod["containers"][0]["volumeMounts"], deployment["container"]["volumeMounts"]);
    assert_eq!(pod["volumes"][0], deployment["pod"]["volumes"][0]);
    let secrets: BTreeSet<&str> = of_kind(&objects, "Secret").map(|secret| text(&secret["metadata"]["name"])).collect();
    assert!(secrets.contains(text(&pod["volumes"][1]["secret"]["secretName"])), "{secrets:?}");
    // Which the tests of the examples run.
    let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    assert!(
        of_istio("a", nowhere, &["envoy/istio/envoyfilter.yaml"]).1.len() == 2
            && of_envoy_gateway("a", nowhere).is_object()
    );
}
