//! Groups of gateways: those that are not all the same.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gateway::{Delivery, Gateway};
use super::{FieldProblem, ListenerConfig, References, ServerTls, did_you_mean};
use kit::token;

/// The group of every gateway that belongs to no other; its settings are the field `gateway`.
pub const DEFAULT_GROUP: &str = "default";

/// Groups, at most.
const MAX_GROUPS: usize = 100;

/// A group of gateways. Fields that are null have the value of `gateway`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Group {
    /// The address its gateways listen on; null for that of `gateway`.
    pub address: Option<String>,
    /// The port they listen on; null for that of `gateway`.
    pub port: Option<u16>,
    /// The filters in their chain; null for those of `gateway`.
    pub filters: Option<Vec<String>>,
    /// The file of their access log, empty for none; null for that of `gateway`.
    pub access_log: Option<String>,
    /// The bytes of a body that may be buffered; null for those of `gateway`.
    pub max_body_bytes: Option<u32>,
    /// What they get from the control plane; null for that of `gateway`.
    pub delivery: Option<Delivery>,
    /// Limits and timeouts of their listener; null for those of `gateway`.
    pub listener: Option<ListenerConfig>,
    /// TLS of their listener; null for that of `gateway`.
    pub tls: Option<ServerTls>,
}

// === impl Group ===

impl Group {
    /// The settings of a gateway of this group.
    #[must_use]
    pub fn over(&self, gateway: &Gateway) -> Gateway {
        Gateway {
            address: self.address.clone().unwrap_or_else(|| gateway.address.clone()),
            port: self.port.unwrap_or(gateway.port),
            filters: self.filters.clone().unwrap_or_else(|| gateway.filters.clone()),
            access_log: self.access_log.clone().unwrap_or_else(|| gateway.access_log.clone()),
            max_body_bytes: self.max_body_bytes.unwrap_or(gateway.max_body_bytes),
            delivery: self.delivery.unwrap_or(gateway.delivery),
            listener: self.listener.unwrap_or(gateway.listener),
            tls: self.tls.clone().or_else(|| gateway.tls.clone()),
        }
    }
}

/// What is wrong with the groups of the global configuration.
pub(super) fn check(groups: &BTreeMap<String, Group>) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    if groups.len() > MAX_GROUPS {
        let message = format!("there are {} groups", groups.len());
        problems.push(FieldProblem::new("/groups", message).expected(format!("at most {MAX_GROUPS}")));
    }
    for (name, group) in groups {
        let place = format!("/groups/{}", token(name));
        if name == DEFAULT_GROUP {
            let message = "the default group is what `gateway` says";
            problems.push(FieldProblem::new(&place, message).expected("another name"));
        }
        problems.extend(name_problem(&place, name));
        // What is not overridden is judged where it stands.
        problems.extend(group.over(&Gateway::default()).check().into_iter().map(|problem| problem.under(&place)));
    }
    problems
}

/// What is wrong with the groups that something belongs to, at `/groups`.
pub(super) fn check_named(groups: &[String], refs: &dyn References) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    for (index, name) in groups.iter().enumerate() {
        let place = format!("/groups/{index}");
        if groups.iter().take(index).any(|earlier| earlier == name) {
            problems.push(FieldProblem::new(place, format!("`{}` is in the list twice", name.escape_debug())));
        } else if let Some(problem) = name_problem(&place, name) {
            problems.push(problem);
        } else if let Some(known) = refs.groups() {
            problems.extend(missing(index, name, known.iter().map(String::as_str)));
        }
    }
    problems
}

/// The problem of a group that the global configuration does not have; `known` are those that it has.
pub fn missing<'a>(index: usize, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<FieldProblem> {
    if name == DEFAULT_GROUP || known.clone().any(|known| known == name) {
        return None;
    }
    let known = || known.clone().chain([DEFAULT_GROUP]);
    let hint = did_you_mean(name, known()).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
    let message = format!("global-config has no group `{}`{hint}", name.escape_debug());
    let all: Vec<String> = known().map(|name| format!("`{name}`")).collect();
    Some(FieldProblem::new(format!("/groups/{index}"), message).expected(format!("one of {}", all.join(", "))))
}

/// A group is named by Envoy's `node.cluster`, in paths of the command line and in logs.
fn name_problem(place: &str, name: &str) -> Option<FieldProblem> {
    let sane = (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    (!sane).then(|| {
        FieldProblem::new(place, format!("`{}` cannot be the name of a group", name.escape_debug()))
            .expected("1 to 128 characters of A-Z a-z 0-9 . _ -")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    struct Known(&'static [&'static str]);

    impl References for Known {
        fn exists(&self, _collection: &str, _id: &str) -> Option<bool> {
            Some(true)
        }

        fn groups(&self) -> Option<Vec<String>> {
            Some(self.0.iter().map(|&name| name.to_owned()).collect())
        }
    }

    #[test]
    fn a_group_overrides_what_it_names_and_nothing_else() {
        let group: Group = serde_json::from_value(json!({ "port": 8443, "delivery": "ecds" })).unwrap();
        let gateway = Gateway { address: "::".to_owned(), port: 80, ..Gateway::default() };
        let expected = Gateway { port: 8443, delivery: Delivery::Ecds, ..gateway.clone() };
        assert_eq!(group.over(&gateway), expected);
        assert_eq!(Group::default().over(&gateway), gateway);
    }

    #[test]
    fn wrong_groups_are_named() {
        let pointers = |groups| -> Vec<String> {
            let groups: BTreeMap<String, Group> = serde_json::from_value(groups).unwrap();
            check(&groups).into_iter().map(|problem| problem.pointer).collect()
        };
        assert!(pointers(json!({ "eu": {}, "US.west_1-a": { "port": 1 } })).is_empty());
        assert_eq!(pointers(json!({ "default": {} })), ["/groups/default"]);
        assert_eq!(pointers(json!({ "a/b": {}, "": {} })), ["/groups/", "/groups/a~1b"]);
        assert_eq!(pointers(json!({ "eu": { "port": 0, "address": "x", "filters": ["A"] } })).len(), 3);
        let many = |count: usize| Value::Object((0..count).map(|n| (format!("g{n}"), json!({}))).collect());
        assert!(pointers(many(100)).is_empty());
        assert_eq!(pointers(many(101)), ["/groups"]);
    }

    #[test]
    fn a_group_that_does_not_exist_is_named_with_the_one_that_was_meant() {
        let known = Known(&["europe", "asia"]);
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            check_named(&names, &known)
        };
        assert!(named(&["europe", "default"]).is_empty());
        let problems = named(&["asia", "eurpe", "asia", "a b"]);
        let pointers: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(pointers, ["/groups/1", "/groups/2", "/groups/3"]);
        assert_eq!(problems[0].message, "global-config has no group `eurpe`, did you mean `europe`?");
    }
}
