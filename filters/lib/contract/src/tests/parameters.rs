//! Escapes in parameters: of lists, of objects and of headers.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::compile::{Options, compile};
use crate::{Contract, Found, Head};

fn opened(parameters: &Value) -> Contract {
    let paths = json!({ "/a": { "get": { "parameters": parameters } } });
    let document = json!({ "openapi": "3.1.0", "paths": paths });
    Contract::open(&compile(&document.to_string(), "", Options::default()).unwrap().image).unwrap()
}

/// The places of a request that are told of; `headers` in lower case.
fn places(contract: &Contract, query: &str, headers: &[(&str, &str)]) -> Vec<String> {
    let Found::Operation(matched) = contract.find(b"GET", b"/a", false) else { panic!() };
    let header = |name: &str| {
        headers.iter().find(|(own, _)| *own == name).map(|(_, value)| Cow::Owned(value.as_bytes().to_vec()))
    };
    let head = Head { query: query.as_bytes(), header: &header, reject_unknown: true };
    contract.check_parameters(&matched, &head).into_iter().map(|one| one.place).collect()
}

#[test]
fn an_escaped_comma_parts_a_list() {
    let query = |name: &str, schema: Value| json!({ "name": name, "in": "query", "explode": false, "schema": schema });
    let texts = json!({ "type": "string" });
    let contract = opened(&json!([
        query("ids", json!({ "type": "array", "items": { "type": "integer" } })),
        query("two", json!({ "type": "array", "items": texts, "maxItems": 2 })),
        query("once", json!({ "type": "array", "items": texts, "uniqueItems": true })),
        query("either", json!({ "oneOf": [{ "type": "integer" }, { "type": "array", "items": { "type": "integer" }, "maxItems": 2 }] })),
        query("box", json!({ "type": "object", "properties": { "x": { "type": "integer" }, "y": { "type": "integer" } },
            "additionalProperties": false })),
        { "name": "each", "in": "query", "schema": { "type": "array", "items": { "enum": ["a,b", "c"] } } },
    ]));
    for (query, wrong) in [
        // As URLSearchParams, axios and requests of Python write it.
        ("ids=1%2C2%2c3", None),
        ("ids=1,2%2C3", None),
        ("ids=1%2Cx", Some("query:ids")),
        ("two=a%2Cb", None),
        ("two=a%2Cb%2Ca", Some("query:two")),
        ("two=a,b%2ca", Some("query:two")),
        ("once=a%2Cb", None),
        ("once=a%2Ca", Some("query:once")),
        ("either=1%2C2", None),
        ("either=1%2C2%2C3", Some("query:either")),
        ("box=x,1,y,2", None),
        ("box=x%2C1%2cy%2C2", None),
        ("box=x%2C1%2Cy%2Cz", Some("query:box")),
        ("box=x%2C1%2Cz%2C2", Some("query:box")),
        // Each item of an exploded list is a parameter of its own.
        ("each=a%2Cb&each=c", None),
        ("each=a%2Cc", Some("query:each")),
    ] {
        assert_eq!(places(&contract, query, &[]), wrong.into_iter().collect::<Vec<_>>(), "{query}");
    }
}

#[test]
fn the_value_of_a_header_has_no_escapes() {
    let header = |name: &str, schema: Value| json!({ "name": name, "in": "header", "schema": schema });
    let contract = opened(&json!([
        header("X-Callback", json!({ "type": "string", "format": "uri" })),
        header("X-Limit", json!({ "type": "integer" })),
        header("X-Tenant", json!({ "type": "string", "pattern": "^[a-z]+$" })),
        header("X-Short", json!({ "type": "string", "maxLength": 3 })),
        header("X-List", json!({ "type": "array", "items": { "enum": ["a", "b", "a%2Cb"] } })),
        header("X-Pair", json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "additionalProperties": false })),
        { "name": "X-Pairs", "in": "header", "explode": true,
            "schema": { "type": "object", "properties": { "a": { "type": "integer" } }, "additionalProperties": false } },
        { "name": "X-Json", "in": "header", "content": { "application/json": { "schema": { "enum": ["%41"] } } } },
    ]));
    for (name, value, valid) in [
        ("x-callback", "https://a.example/b%20c", true),
        ("x-callback", "https%3A%2F%2Fa.example%2Fb", false),
        ("x-callback", "https://a.example/b c", false),
        ("x-limit", "10", true),
        ("x-limit", "%31%30", false),
        ("x-tenant", "ab", true),
        ("x-tenant", "%61%62", false),
        ("x-short", "100", true),
        ("x-short", "%41", true),
        ("x-short", "%41%41%41", false),
        ("x-list", "a, b", true),
        ("x-list", "a%2Cb", true),
        ("x-list", "%61", false),
        ("x-pair", "a,1", true),
        ("x-pair", "%61,1", false),
        ("x-pair", "a,%31", false),
        ("x-pairs", "a=1", true),
        ("x-pairs", "%61=1", false),
        ("x-pairs", "a=%31", false),
        ("x-json", "\"%41\"", true),
        ("x-json", "%22%41%22", false),
    ] {
        let wrong: Vec<String> = if valid { Vec::new() } else { vec![format!("header:{name}")] };
        assert_eq!(places(&contract, "", &[(name, value)]), wrong, "{name}: {value}");
    }
}
