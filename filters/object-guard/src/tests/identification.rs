//! Which object a request names.

use super::*;
use crate::object::Object;

fn naming(paths: &[ObjectPath], detects: bool) -> Naming {
    Naming::new(paths, detects).unwrap()
}

fn declared(template: &str) -> ObjectPath {
    ObjectPath { template: template.to_owned(), ..ObjectPath::default() }
}

/// The kind and the identifiers of an object.
fn named(naming: &Naming, exchange: &Exchange) -> Option<String> {
    let text = |object: Object<'_>| {
        let ids = object.identifiers.iter().map(|id| String::from_utf8_lossy(&id.bytes).into_owned());
        format!("{} {}", object.kind.shown(), ids.collect::<Vec<_>>().join("/"))
    };
    naming.with_object(exchange, text)
}

fn detected(path: &str) -> Option<String> {
    named(&naming(&[], true), &exchange("", path))
}

/// The key of the kind and what stands for the object in sets.
fn keys(naming: &Naming, exchange: &Exchange) -> Option<(Vec<u8>, Vec<u8>)> {
    naming.with_object(exchange, |object| (object.kind.key.clone(), object.member()))
}

#[test]
fn identifiers_are_detected_by_their_shape() {
    for (path, expected) in [
        ("/users/42/orders/7", "/users/{id}/orders/{id} 42/7"),
        ("/users/42?page=3", "/users/{id} 42"),
        ("/v1/files/f47ac10b-58cc-4372-a567-0e02b2c3d479", "/v1/files/{id} f47ac10b58cc4372a5670e02b2c3d479"),
        ("/docs/507f1f77bcf86cd799439011/edit", "/docs/{id}/edit 507f1f77bcf86cd799439011"),
        ("/t/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/t/{id} 01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("/invoices/17.pdf", "/invoices/{id} 17"),
        ("/orders/0x2A", "/orders/{id} 42"),
        ("/orders/%232a", "/orders/{id} 42"),
        ("/orders/4%202", "/orders/{id} 42"),
    ] {
        assert_eq!(detected(path).as_deref(), Some(expected), "{path}");
    }
    for path in ["/", "/users", "/users/me", "/users?id=42", "/img/42.png", "/app.js", ""] {
        assert_eq!(detected(path), None, "{path}");
    }
    assert_eq!(named(&naming(&[], false), &exchange("", "/users/42")), None);
}

#[test]
fn a_declared_object_is_one_however_much_is_behind_it() {
    let orders = naming(&[declared("/api/orders/{id}")], false);
    let tail = "%252Fa".repeat(100);
    let found = named(&orders, &exchange("", &format!("/api/orders/42;{tail}")));
    assert_eq!(found.as_deref(), Some("/api/orders/{id} 42"));
    // A path with more segments than are looked at is an object of its own, where objects are declared.
    let long = "/a".repeat(100);
    assert!(named(&orders, &exchange("", &long)).is_some_and(|object| object.starts_with("(other paths)")));
    assert_eq!(named(&naming(&[], false), &exchange("", &long)), None);
}

#[test]
fn one_object_is_one_however_it_is_spelt() {
    let naming = naming(&[], true);
    let one = keys(&naming, &exchange("", "/users/42/orders/7")).unwrap();
    for path in [
        "/users/42/orders/7/",
        "//users///42/orders/7",
        "/Users/42/ORDERS/7",
        "/users/%34%32/orders/7",
        "/users/%2534%32/orders/7",
        "/users/042/orders/7.0",
        "/users/42;v=1/orders/7;x",
        "/users/42/./orders/7",
        "/users/42/x/../orders/7",
        "/users%2F42%2forders/7",
        "/users/42/orders/7.json",
        "/users/42/orders/%207%20",
        "/users/42/orders/7?a=b",
        "/%75sers/42/orders/%EF%BC%97",
    ] {
        assert_eq!(keys(&naming, &exchange("", path)).as_ref(), Some(&one), "{path}");
    }
    assert_ne!(keys(&naming, &exchange("", "/users/4/orders/27")).unwrap().1, one.1);
    assert_ne!(keys(&naming, &exchange("", "/users/7/orders/42")).unwrap().1, one.1);
}

#[test]
fn declared_paths_come_first_in_their_order_with_their_methods() {
    let own = [
        ObjectPath { name: "orders".to_owned(), budget: Some(5), ..declared("/api/orders/{id}") },
        ObjectPath { methods: vec!["POST".to_owned(), "GET".to_owned()], ..declared("/api/{kind}/{name}") },
        declared("/files/*"),
    ];
    let naming = naming(&own, true);
    let of = |method: &str, path: &str| {
        let mut exchange = exchange("", path);
        exchange.request.method = method.as_bytes().to_vec();
        named(&naming, &exchange)
    };
    assert_eq!(of("GET", "/api/orders/A-7").as_deref(), Some("orders A-7"));
    assert_eq!(of("GET", "/API/Orders/042").as_deref(), Some("orders 42"));
    assert_eq!(of("HEAD", "/api/users/ada").as_deref(), Some("/api/{kind}/{name} users/ada"));
    assert_eq!(of("DELETE", "/api/users/ada"), None);
    assert_eq!(of("DELETE", "/api/users/7").as_deref(), Some("/api/users/{id} 7"), "detected");
    assert_eq!(of("GET", "/files/a%2Fb/c").as_deref(), Some("/files/* a/b/c"));
    assert_eq!(of("GET", "/other/7").as_deref(), Some("/other/{id} 7"));
    let budget = |path: &str| naming.with_object(&exchange("", path), |object| object.budget).unwrap();
    assert_eq!((budget("/api/orders/1"), budget("/other/7")), (Some(5), None));
}

#[test]
fn a_name_is_one_kind_on_all_routes_and_other_kinds_are_of_their_route() {
    let own = [ObjectPath { name: "orders".to_owned(), ..declared("/api/orders/{id}") }, declared("/u/{id}")];
    let naming = naming(&own, true);
    let key = |route: &str, path: &str| {
        let mut exchange = exchange("", path);
        exchange.route.id = route.into();
        keys(&naming, &exchange).unwrap().0
    };
    assert_eq!(key("a", "/api/orders/1"), key("b", "/api/orders/1"));
    for path in ["/u/1", "/x/1"] {
        assert_ne!(key("a", path), key("b", path));
        assert_eq!(key("a", path), key("a", &path.to_uppercase()));
    }
    // A kind of a route cannot have the key of a name.
    assert_ne!(key("", "/name\0orders/1"), key("", "/api/orders/1"));
}

#[test]
fn a_matched_contract_says_which_segments_name_an_object() {
    let naming = naming(&[declared("/api/special/{id}")], true);
    let of = |path: &str, template: &str, values: &[(&str, &str)]| {
        let mut exchange = exchange("", path);
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        exchange.operation = Some(MatchedOperation::new(template.to_owned(), values));
        exchange
    };
    let item = of("/api/items/042", "/items/{itemId}", &[("itemId", "042")]);
    assert_eq!(named(&naming, &item).as_deref(), Some("/api/items/{itemId} 42"));
    // The same kind and the same object as one that is detected, such as in another spelling.
    assert_eq!(keys(&naming, &item), keys(&naming, &exchange("", "/API/Items/42")));
    let word = of("/api/items/ada", "/items/{itemId}", &[("itemId", "ada")]);
    assert_eq!(named(&naming, &word).as_deref(), Some("/api/items/{itemId} ada"));
    let two = of("/a/1.2", "/a/{x}.{y}", &[("x", "1"), ("y", "2")]);
    assert_eq!(named(&naming, &two).as_deref(), Some("/a/{x}.{y} 1/2"));
    assert_eq!(named(&naming, &of("/api/reports/2024", "/reports/2024", &[])), None, "a literal segment");
    let special = of("/api/special/7", "/special/{x}", &[("x", "7")]);
    assert_eq!(named(&naming, &special).as_deref(), Some("/api/special/{id} 7"), "declared paths come first");
    // With nothing declared or detected.
    assert!(named(&super::identification::naming(&[], false), &item).is_some());
}

#[test]
fn preflights_are_never_objects() {
    let naming = naming(&[declared("/u/{id}")], true);
    let mut preflight = exchange("", "/u/7");
    preflight.request.method = b"OPTIONS".to_vec();
    assert!(named(&naming, &preflight).is_some(), "an OPTIONS of another kind");
    let cors = [("origin", "https://a.example"), ("access-control-request-method", "GET")];
    preflight.request.headers = Headers::new(&cors);
    assert_eq!(named(&naming, &preflight), None);
    preflight.request.method = b"GET".to_vec();
    assert!(named(&naming, &preflight).is_some(), "headers that a client adds hide nothing");
}

#[test]
fn a_method_beside_the_method_names_an_object_as_well() {
    let orders = ObjectPath {
        name: "orders".to_owned(),
        methods: vec!["GET".to_owned()],
        budget: Some(100),
        ..declared("/api/orders/{id}")
    };
    let naming = naming(&[orders], false);
    let of = |method: &str, path: &str, headers: &[(&str, &str)]| {
        let mut exchange = exchange("", path);
        exchange.request.method = method.as_bytes().to_vec();
        exchange.request.headers = Headers::new(headers);
        let budget = naming.with_object(&exchange, |object| object.budget);
        named(&naming, &exchange).zip(budget)
    };
    let order = Some(("orders 42".to_owned(), Some(100)));
    let cors = [("origin", "https://a.example"), ("access-control-request-method", "GET")];
    let path = "/api/orders/42";
    for name in ["x-http-method-override", "x-http-method", "x-method-override"] {
        for value in ["GET", " get ", "HEAD", "PATCH, Get"] {
            assert_eq!(of("POST", path, &[(name, value)]), order, "{name}: {value}");
            assert_eq!(of("OPTIONS", path, &[cors[0], cors[1], (name, value)]), order, "{name}: {value}");
        }
        assert_eq!(of("POST", path, &[(name, "")]), None, "{name}");
        assert_eq!(of("POST", path, &[(name, "PUT")]), None, "{name}");
        // The method of the request counts as before.
        assert_eq!(of("GET", path, &[(name, "PUT")]), order, "{name}");
        let many = format!("{}GET", "M,".repeat(1000));
        assert_eq!(of("POST", path, &[(name, "PUT"), (name, &many)]), order, "{name}");
    }
    for query in ["_method=GET", "a=1&_METHOD=get", "a=1;+.method=%47ET", "[_method]=GET", "_method=PUT&_method=HEAD"] {
        assert_eq!(of("POST", &format!("{path}?{query}"), &[]), order, "{query}");
        assert_eq!(of("PUT", &format!("{path}?{query}"), &[]), None, "{query}");
    }
    for query in ["_method=PUT", "method=GET", "a[_method]=GET"] {
        assert_eq!(of("POST", &format!("{path}?{query}"), &[]), None, "{query}");
    }
    assert_eq!(of("OPTIONS", path, &cors), None);
    assert_eq!(of("POST", path, &[]), None);
}

#[test]
fn long_paths_and_keys_are_bounded_and_stay_different() {
    let naming = naming(&[declared("/o/{id}")], true);
    let long = |last: char| format!("/o/{}{last}", "x".repeat(60_000));
    let [one, other] = ['a', 'b'].map(|last| keys(&naming, &exchange("", &long(last))).unwrap());
    assert_eq!((one.0 == other.0, one.1 == other.1, one.1.len()), (true, false, 32));
    let wordy = |word: &str| format!("/{}/{word}/7", "w".repeat(300));
    let [one, other] = ["a", "b"].map(|word| keys(&naming, &exchange("", &wordy(word))).unwrap());
    assert_eq!((one.0 == other.0, one.1 == other.1), (true, false), "one kind, two objects");
    assert_eq!(one.0, b"app\0(other paths)");
    let deep = |id: u32| keys(&naming, &exchange("", &format!("{}/{id}", "/a".repeat(100)))).unwrap();
    assert_eq!((deep(1).0, deep(1).1 == deep(2).1), (b"app\0(other paths)".to_vec(), false));
}
