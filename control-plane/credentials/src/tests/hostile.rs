//! Files that are made to harm.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use regex_automata::meta::Regex;
use serde_json::{Value, json};

use crate::envoy::{self, Imported, MAX_ROUTES};

const FILES: [&str; 2] =
    [include_str!("../../tests/data/gateway.yaml"), include_str!("../../tests/data/mutual-tls.yaml")];

#[test]
fn a_hundred_thousand_routes_are_refused_with_the_limit() {
    let file = |count: usize| {
        let mut text = String::from(
            r#"{"name": "l", "filter_chains": [{"filters": [{"name": "http", "typed_config": {
            "@type": "x/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": ["#,
        );
        for number in 0..count {
            let comma = if number == 0 { "" } else { "," };
            write!(text, r#"{comma}{{"name":"r{number}","match":{{"prefix":"/{number}"}},"route":{{"cluster":"c"}}}}"#)
                .unwrap();
        }
        text.push_str("]}]}}}]}]}");
        envoy::read(text.as_bytes(), None)
    };
    let error = file(100_000).unwrap_err().to_string();
    assert!(error.contains(&format!("more than {MAX_ROUTES} routes")) && error.contains("/routes/20000: "), "{error}");
    assert_eq!(file(MAX_ROUTES).unwrap().routes.len(), MAX_ROUTES);
}

/// Visits each place of a document.
fn each_place(place: &mut Vec<String>, at: &Value, visit: &mut impl FnMut(&[String])) {
    visit(place);
    let mut below = |key: String, value: &Value| {
        place.push(key);
        each_place(place, value, visit);
        place.pop();
    };
    match at {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key.clone(), value)),
        Value::Array(list) => list.iter().enumerate().for_each(|(index, value)| below(index.to_string(), value)),
        _ => {}
    }
}

/// What a request without a credential may ask for.
const PATHS: [&str; 20] = [
    "/orders",
    "/orders/health",
    "/orders/1",
    "/admin",
    "/docs/a",
    "/version",
    "/internal/orders",
    "/again",
    "/keyed",
    "/query",
    "/people",
    "/other-people",
    "/split",
    "/public",
    "/asked",
    "/unasked",
    "/peers",
    "/peers/open",
    "/closed",
    "/closed/1",
];

/// The requests that some place lets pass without a credential: route, listener, virtual host, method and path.
fn open(imported: &Imported, regexes: &mut HashMap<String, Regex>) -> BTreeSet<[String; 5]> {
    let mut matches = |pattern: &String, path: &str| {
        regexes.entry(pattern.clone()).or_insert_with(|| Regex::new(pattern).unwrap()).is_match(path)
    };
    let mut open = BTreeSet::new();
    for route in &imported.routes {
        for place in &route.places {
            for path in
                PATHS.iter().filter(|path| place.path.is_empty() || matches(&place.path, path)).collect::<Vec<_>>()
            {
                for method in ["GET", "POST", "OPTIONS"] {
                    let checked = place.checks.iter().any(|check| {
                        (check.methods.is_empty() || check.methods.iter().any(|own| own == method))
                            && (check.include.is_empty() || check.include.iter().any(|one| matches(one, path)))
                            && !check.exclude.iter().any(|one| matches(one, path))
                    });
                    let host = place.virtual_hosts.join(",");
                    if !checked {
                        open.insert([&route.name, &place.listener, &host, method, path].map(ToString::to_string));
                    }
                }
            }
        }
    }
    open
}

/// In how many places a route is, by its listener and virtual host.
fn places(imported: &Imported) -> HashMap<[String; 3], usize> {
    let mut places = HashMap::new();
    for route in &imported.routes {
        for place in &route.places {
            let key = [route.name.clone(), place.listener.clone(), place.virtual_hosts.join(",")];
            *places.entry(key).or_default() += 1;
        }
    }
    places
}

#[test]
fn a_wrong_type_in_any_place_closes_nothing() {
    let mut regexes = HashMap::new();
    for file in FILES {
        let root: Value = serde_saphyr::from_str(file).unwrap();
        let right = envoy::read(root.to_string().as_bytes(), None).unwrap();
        let (before, places_before) = (open(&right, &mut regexes), places(&right));
        let mut all = Vec::new();
        each_place(&mut Vec::new(), &root, &mut |place| all.push(place.to_vec()));
        assert!(all.len() > 100 && before.len() > 5, "{} {}", all.len(), before.len());
        for place in all {
            let pointer: String = place.iter().map(|key| format!("/{}", kit::token(key))).collect();
            for wrong in [json!(7), json!([7]), json!({"x": 7})] {
                let mut changed = root.clone();
                *changed.pointer_mut(&pointer).unwrap() = wrong.clone();
                let Ok(imported) = envoy::read(changed.to_string().as_bytes(), None) else { continue };
                let (after, places_after) = (open(&imported, &mut regexes), places(&imported));
                // A place that cannot be read at all is gone, with a warning.
                let is_there = |[name, listener, host, ..]: &&[String; 5]| {
                    let key = [name.clone(), listener.clone(), host.clone()];
                    places_after.get(&key) >= places_before.get(&key)
                };
                let closed: Vec<_> = before.difference(&after).filter(is_there).collect();
                assert!(closed.is_empty(), "{pointer} {wrong}: {closed:?}");
            }
        }
    }
}

#[test]
fn a_name_in_thousands_of_places_stays_bounded() {
    let routes: Vec<Value> = (0..3_000)
        .map(|number| json!({"name": "default", "match": {"path": format!("/{number}")}, "route": {"cluster": "c"}}))
        .collect();
    let hosts: Vec<Value> = (0..500).map(|number| json!({"name": format!("v{number}"), "domains": [format!("h{number}.example")], "routes": [{"name": "many", "match": {"prefix": "/"}}]})).collect();
    let mut hosts = hosts;
    hosts.push(json!({"name": "v", "domains": ["x.example"], "routes": routes}));
    let manager = json!({"@type": "x/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "route_config": {"virtual_hosts": hosts}, "http_filters": []});
    let listener = json!({"name": "l", "filter_chains": [{"filters": [{"typed_config": manager}]}]});
    let imported = envoy::read(listener.to_string().as_bytes(), None).unwrap();
    let [default, many] = &imported.routes[..] else { panic!("{}", imported.routes.len()) };
    assert_eq!(
        (default.places.len(), default.places[0].path.as_str(), &default.paths[..]),
        (1, "", &["/".to_owned()][..])
    );
    assert_eq!(
        (many.places.len(), many.places[0].virtual_hosts.len(), &many.hosts[..]),
        (1, 16, &["*".to_owned()][..])
    );
}

#[test]
fn warnings_are_bounded() {
    let routes: Vec<Value> = (0..5_000).map(|_| json!({"match": {"prefix": 7}})).collect();
    let manager = json!({"@type": "x/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "route_config": {"virtual_hosts": [{"name": "v", "routes": routes}]}, "http_filters": []});
    let listener = json!({"name": "l", "filter_chains": [{"filters": [{"typed_config": manager}]}]});
    let imported = envoy::read(listener.to_string().as_bytes(), None).unwrap();
    assert_eq!(imported.warnings.len(), 200);
    assert!(imported.more_warnings >= 4_800, "{}", imported.more_warnings);
}

#[test]
fn damaged_files_are_refused_or_read() {
    // A generator that gives the same bytes in each run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
    };
    let json: Vec<String> =
        FILES.iter().map(|file| serde_saphyr::from_str::<Value>(file).unwrap().to_string()).collect();
    let mut read = 0;
    for round in 0..400 {
        let text = if round % 4 == 0 { FILES[round / 4 % 2] } else { json[round % 2].as_str() };
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = u8::try_from(random(256)).unwrap(),
                1 => bytes.truncate(at.max(1)),
                _ => {
                    let end = (at + random(200)).min(bytes.len());
                    let copy = bytes.get(at..end).unwrap().to_vec();
                    let to = random(bytes.len());
                    bytes.splice(to..to, copy);
                }
            }
        }
        read += usize::from(envoy::read(&bytes, None).is_ok());
    }
    assert!(read > 0);
}
