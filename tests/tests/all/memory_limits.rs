//! What is shipped leaves the control plane room beside a replay, which is a process of its own within the same limit.

use crate::examples::{document, documents, read};
use serde_json::Value;

/// What the control plane has for itself, in MiB: what the chart asks for it.
const RESERVE: u64 = 256;
const VARIABLE: &str = "PALISADE_REPLAY_MAX_MEMORY_MIB";

/// `512m`, `1Gi`, `1G` in MiB.
fn mib(text: &str) -> u64 {
    let digits = text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    match unit {
        "m" | "M" | "Mi" => number,
        "g" | "G" | "Gi" => number << 10,
        other => panic!("{text}: {other} is no unit"),
    }
}

/// The limit and that of a replay, of the container of the control plane in manifests.
fn of_manifests(file: &str) -> (u64, u64) {
    let all = documents(file);
    let containers = all.iter().filter_map(|object| object.pointer("/spec/template/spec/containers")?.as_array());
    let is_ours = |container: &&Value| container["name"] == "palisade" && container["args"][0] == "serve";
    let ours = containers.flatten().find(is_ours).unwrap_or_else(|| panic!("{file} has no control plane"));
    let variables = ours["env"].as_array().unwrap();
    let replay = variables.iter().find(|variable| variable["name"] == VARIABLE);
    let replay = replay.unwrap_or_else(|| panic!("{file} sets no {VARIABLE}"))["value"].as_str().unwrap();
    (mib(ours["resources"]["limits"]["memory"].as_str().unwrap()), replay.parse().unwrap())
}

#[test]
fn a_replay_leaves_the_control_plane_its_memory() {
    let unit = read("control-plane/deploy/palisade.service");
    let of_unit =
        |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("no {key}"));
    // Where the kernel ends a process of the unit all the same, the unit goes on.
    assert_eq!(of_unit("OOMPolicy="), "continue");
    let replay = of_unit(&format!("Environment={VARIABLE}=")).parse().unwrap();
    let compose = document("compose.yaml");
    let ours = &compose["services"]["palisade"];
    let chart = document("control-plane/deploy/helm/palisade/values.yaml");
    let of_chart = |pointer: &str| chart.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
    let limits = [
        (
            "values.yaml",
            (
                mib(of_chart("/resources/limits/memory").as_str().unwrap()),
                of_chart("/replay/maxMemoryMib").as_u64().unwrap(),
            ),
        ),
        ("palisade.service", (mib(of_unit("MemoryMax=")), replay)),
        ("kubernetes.yaml", of_manifests("control-plane/deploy/kubernetes.yaml")),
        ("kubernetes/palisade.yaml", of_manifests("control-plane/deploy/kubernetes/palisade.yaml")),
        (
            "compose.yaml",
            (
                mib(ours["mem_limit"].as_str().unwrap()),
                ours["environment"][VARIABLE].as_str().unwrap().parse().unwrap(),
            ),
        ),
    ];
    for (file, (limit, replay)) in limits {
        assert!(limit >= replay + RESERVE, "{file}: {replay} MiB of a replay and {RESERVE} of ours exceed {limit}");
    }
}
