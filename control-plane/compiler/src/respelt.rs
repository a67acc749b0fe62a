//! Paths that are protected as they are written, and not in other spellings.
//!
//! Prefixes of routes are compared as text. A backend may read `/ADMIN` or `/;/admin` as `/admin`; such a request has the chain of
//! the wider route that takes it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use entities::{Item, Route};

/// The routes that a warning names; of the rest it gives the number.
const NAMED: usize = 3;

/// By path the route that has it.
type Paths<'a> = HashMap<&'a str, &'a str>;

/// What is said of routes without plugins that get the other spellings of what routes with plugins protect, for the same backend. All
/// routes are enabled and served by one gateway.
pub(super) fn warnings(routes: &[&Item<Route>]) -> Vec<String> {
    let is_open = |route: &Route| route.plugins.iter().all(|plugin| !plugin.enabled);
    let mut open: HashMap<(&str, u16, String), Paths<'_>> = HashMap::new();
    for route in routes.iter().filter(|route| is_open(route)) {
        let Some(backend) = &route.backend else { continue };
        for host in &route.hosts {
            let paths = open.entry((&backend.address, backend.port, host.to_ascii_lowercase())).or_default();
            for path in &route.paths {
                paths.entry(path).or_insert(&route.head.id);
            }
        }
    }
    let mut found: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for route in routes.iter().filter(|route| !is_open(route) && !open.is_empty()) {
        let Some(backend) = &route.backend else { continue };
        let wider = route.hosts.iter().flat_map(|host| wider(&host.to_ascii_lowercase()));
        for host in wider.collect::<BTreeSet<_>>() {
            let Some(paths) = open.get(&(backend.address.as_str(), backend.port, host)) else { continue };
            for path in &route.paths {
                // The longest one gets them.
                let shorter = path.char_indices().rev().filter_map(|(end, _)| path.get(..end));
                let taker = shorter.filter_map(|prefix| paths.get(prefix)).next();
                if let Some(id) = taker {
                    found.entry(id).or_default().insert((&route.head.id, path));
                }
            }
        }
    }
    found.into_iter().map(|(open, protected)| told(open, &protected)).collect()
}

fn told(open: &str, protected: &BTreeSet<(&str, &str)>) -> String {
    let named: Vec<String> =
        protected.iter().take(NAMED).map(|(id, path)| format!("`{path}` (route `{id}`)")).collect();
    let more = protected.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "route `{open}` has no plugins and gets what a client spells otherwise of {}{more}, such as capitals or `/;/`: the backend is \
         the same and may take it for the protected path; give `{open}` plugins as well",
        named.join(", ")
    )
}

/// The hosts of routes that a request of this host may be left to: itself, and those with a `*` in the place of a part of it.
fn wider(host: &str) -> Vec<String> {
    let cuts = || host.char_indices().map(|(at, _)| at).filter(|at| *at > 0);
    let ends = cuts().filter_map(|at| host.get(at..)).map(|end| format!("*{end}"));
    let beginnings = cuts().filter_map(|at| host.get(..at)).map(|beginning| format!("{beginning}*"));
    [host.to_owned(), "*".to_owned()].into_iter().chain(ends).chain(beginnings).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use entities::EntitySet;

    fn route(id: &str, host: &str, path: &str, plugins: &[Value]) -> Value {
        let backend = json!({"address": "127.0.0.1", "port": 1});
        json!({"kind": "route", "id": id, "hosts": [host], "paths": [path], "backend": backend, "plugins": plugins})
    }

    fn told_of(documents: &[Value]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (number, document) in documents.iter().enumerate() {
            std::fs::write(folder.path().join(format!("{number}.json")), document.to_string()).unwrap();
        }
        let set = EntitySet::from_dir(folder.path()).unwrap_or_else(|problems| panic!("{problems:?}"));
        let compiled = crate::Compiler::new(crate::Settings::default()).compile(&set).unwrap();
        compiled.warnings.into_iter().filter(|warning| warning.contains("spells otherwise")).collect()
    }

    fn gate() -> [Value; 1] {
        [json!({"plugin": "SvcThreatGate"})]
    }

    #[test]
    fn an_open_route_around_a_protected_one_is_told() {
        for (host, open_host, open_path) in [
            ("shop.test", "shop.test", "/"),
            ("shop.test", "Shop.Test", "/adm"),
            ("shop.test", "*", "/"),
            ("shop.test", "*.test", "/"),
            ("shop.test", "shop.*", "/"),
            ("*.shop.test", "*.test", "/"),
            ("*", "*", "/"),
        ] {
            let found = told_of(&[route("in", host, "/admin", &gate()), route("out", open_host, open_path, &[])]);
            let [only] = &found[..] else { panic!("{host} {open_host}: {found:?}") };
            let start =
                "route `out` has no plugins and gets what a client spells otherwise of `/admin` (route `in`), such as";
            assert!(only.starts_with(start), "{only}");
        }
        // One that is switched off protects nothing.
        let off = json!({"plugin": "SvcThreatGate", "enabled": false});
        assert_eq!(told_of(&[route("in", "*", "/admin", &gate()), route("out", "*", "/", &[off])]).len(), 1);
        let mut many: Vec<Value> =
            (0..5).map(|number| route(&format!("in{number}"), "*", &format!("/{number}"), &gate())).collect();
        many.push(route("out", "*", "/", &[]));
        let found = told_of(&many);
        assert!(found.len() == 1 && found[0].contains("`/2` (route `in2`) and 2 more, such as"), "{found:?}");
    }

    #[test]
    fn routes_that_do_not_meet_are_not() {
        let with = |mut document: Value, field: &str, value: Value| {
            document[field] = value;
            document
        };
        let open = |host: &str, path: &str| route("out", host, path, &[]);
        let other = json!({"address": "127.0.0.1", "port": 2});
        for second in [
            route("out", "*", "/", &gate()),
            open("other.test", "/"),
            open("*.shop.test", "/"),
            open("shop.test", "/shop"),
            open("shop.test", "/admin/public"),
            with(open("*", "/"), "backend", other),
            with(open("*", "/"), "enabled", json!(false)),
        ] {
            let found = told_of(&[route("in", "shop.test", "/admin", &gate()), second.clone()]);
            assert_eq!(found, Vec::<String>::new(), "{second}");
        }
        // Of what the longer one leaves open nothing is expected.
        assert!(told_of(&[route("out", "*", "/static", &[]), route("in", "*", "/", &gate())]).is_empty());
    }
}
