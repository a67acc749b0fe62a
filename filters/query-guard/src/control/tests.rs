use prost::Message as _;
use serde_json::{Value, json};

use super::*;
use crate::{OperationSeen, OperationsSeen, Persisted};

fn read(config: &Value) -> Result<QueryGuardConfig, Vec<kit::FieldProblem>> {
    QueryGuardConfig::read(config.as_object().unwrap())
}

#[test]
fn the_defaults_are_those_of_the_documentation() {
    let config = read(&json!({ "endpoints": [{ "path": "/graphql", "kind": "graphql" }] })).unwrap();
    let expected = json!({
        "mode": "monitor", "expose_errors": false, "contribute": false, "violation_weight": 30, "inventory": true,
        "endpoints": [{
            "path": "/graphql", "kind": "graphql", "schema": null, "max_body_bytes": 262_144, "max_batch": 10,
            "max_document_bytes": 65_536, "max_depth": 15, "max_fields": 1000, "max_aliases": 30, "max_directives": 50,
            "introspection": false, "persisted_queries": "allow", "allow": [],
        }],
    });
    assert_eq!(read(&expected).unwrap(), config);
}

#[test]
fn wrong_fields_are_named() {
    for (change, pointer) in [
        (json!({ "path": "graphql" }), "/endpoints/0/path"),
        (json!({ "path": "/a?b" }), "/endpoints/0/path"),
        (json!({ "max_depth": 101 }), "/endpoints/0/max_depth"),
        (json!({ "max_body_bytes": 1 }), "/endpoints/0/max_body_bytes"),
        (json!({ "max_batch": 1001 }), "/endpoints/0/max_batch"),
        (json!({ "allow": ["a"] }), "/endpoints/0/allow"),
    ] {
        let mut endpoint = json!({ "path": "/graphql", "kind": "graphql" });
        endpoint.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let wrong = read(&json!({ "endpoints": [endpoint] })).unwrap_err();
        assert_eq!(wrong[0].pointer, pointer);
    }
    assert_eq!(read(&json!({ "violation_weight": 101 })).unwrap_err()[0].pointer, "/violation_weight");
}

fn endpoint(kind: &str, schema: Value) -> EndpointConfig {
    let config =
        json!({ "endpoints": [{ "path": "/x", "kind": kind, "schema": schema, "persisted_queries": "only" }] });
    read(&config).unwrap().endpoints.remove(0)
}

#[test]
fn schemas_that_do_not_compile_are_refused_with_their_place() {
    let wrong = |kind: &str, schema: Value| endpoint(kind, schema).compile("/endpoints/0").unwrap_err().remove(0);
    for (kind, schema, said) in [
        ("graphql", json!("type Query { a: Missing }"), "`Missing`"),
        ("graphql", json!("type Query {\n a Int }"), "line 2"),
        ("graphql", json!("type Other { a: Int }"), "no type for queries"),
        ("graphql", json!({}), "no text"),
        ("mcp", json!({ "tools": [{ "name": "a" }] }), "inputSchema"),
        ("mcp", json!({ "tools": [{ "name": "a", "inputSchema": {} }, { "name": "a", "inputSchema": {} }] }), "twice"),
        ("json_rpc", json!({ "add": 1 }), "`add`"),
    ] {
        let problem = wrong(kind, schema);
        assert_eq!(problem.pointer, "/endpoints/0/schema");
        assert!(problem.message.contains(said), "{}", problem.message);
    }
}

#[test]
fn an_endpoint_has_its_schema_and_its_names() {
    let schema = json!({ "tools": [{ "name": "read", "inputSchema": { "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } },
        "$defs": { "a": { "type": "integer" } } } }] });
    let CompiledEndpoint { endpoint: compiled, schema: image, warnings } = endpoint("mcp", schema).compile("").unwrap();
    assert_eq!((compiled.names, compiled.closed, warnings), (vec!["read".to_owned()], true, Vec::new()));
    assert_eq!(Persisted::try_from(compiled.persisted), Ok(Persisted::Only));
    let contract = contract::Contract::open(&image.unwrap()).unwrap();
    assert_eq!(contract.operations(), 1);
    let query = endpoint("graphql", json!("type Query { a: Int }"));
    let CompiledEndpoint { endpoint: compiled, schema: image, .. } = query.compile("").unwrap();
    assert!(image.is_some() && compiled.names.is_empty() && !compiled.closed);
}

fn report(name: &str, count: u64) -> Vec<u8> {
    let seen = OperationSeen {
        route: "app".to_owned(),
        path: "/graphql".to_owned(),
        kind: "query".to_owned(),
        name: name.to_owned(),
        count,
        mismatches: 1,
    };
    OperationsSeen { operations: vec![seen] }.encode_to_vec()
}

#[test]
fn reports_are_merged_bounded_and_kept() {
    let seen = seen::Seen::default();
    seen.take(&report("First", 2), 1000);
    seen.take(&report("First", 3), 2000);
    seen.take(b"\xff\xff", 2000);
    seen.take(&report(&"x".repeat(2000), 1), 2000);
    let key = |name: &str| ("app".to_owned(), "/graphql".to_owned(), "query".to_owned(), name.to_owned());
    let expected = seen::Counted { count: 5, mismatches: 2, first: 1000, last: 2000 };
    assert_eq!(seen.operations().iter().collect::<Vec<_>>(), [(&key("First"), &expected)]);
    for number in 0..seen::MAX_OPERATIONS {
        seen.take(&report(&format!("Other{number}"), 1), 3000);
    }
    assert_eq!(seen.operations().len(), seen::MAX_OPERATIONS);
    assert!(!seen.operations().contains_key(&key("First")), "the oldest gave way");
    let again = seen::Seen::default();
    again.restore(&seen.document());
    assert_eq!(*again.operations(), *seen.operations());
}
