//! Hostile contracts: each is refused with words that say why, or costs a bounded amount of work and memory.

use serde_json::{Value, json};

use crate::compile::{Compiled, Options, compile};
use crate::{BodyCheck, BodyResult, Contract, Found};

fn compiled(document: &Value) -> Compiled {
    compile(&document.to_string(), "", Options::default()).unwrap()
}

/// A document whose only body has a schema, and components.
fn document(schema: &Value, components: &Value) -> Value {
    json!({
        "openapi": "3.1.0",
        "paths": { "/a": { "post": { "requestBody": { "content": { "application/json": { "schema": schema } } } } } },
        "components": { "schemas": components },
    })
}

/// Checks a body of the document above.
fn judged(compiled: &Compiled, body: &str) -> BodyResult {
    let contract = Contract::open(&compiled.image).unwrap();
    let Found::Operation(matched) = contract.find(b"POST", b"/a", false) else { panic!() };
    let BodyCheck::Json(schema) = contract.request_body(matched.operation, Some(b"application/json"), true) else {
        panic!()
    };
    contract.check_body(schema, body.as_bytes(), false)
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

#[test]
fn references_that_double_at_each_step_cost_a_bounded_amount() {
    // 2^30 paths lead from the first schema to the last one.
    let mut components = json!({ "S30": { "type": "integer" } });
    for level in 0..30 {
        let next = reference(&format!("S{}", level + 1));
        components[format!("S{level}")] = json!({ "allOf": [next, next] });
    }
    let document = document(&reference("S0"), &components);
    let compiled = compiled(&document);
    assert!(compiled.image.len() < 4096, "{}", compiled.image.len());
    let BodyResult::Invalid(found) = judged(&compiled, "1") else { panic!() };
    assert_eq!(found[0].detail, "checking it takes too much work");
}

#[test]
fn circles_of_references_end() {
    let circle = json!({ "A": reference("B"), "B": reference("C"), "C": reference("A") });
    assert_eq!(judged(&compiled(&document(&reference("A"), &circle)), "{}"), BodyResult::Unjudged);
    let through_all_of =
        json!({ "A": { "allOf": [reference("B")] }, "B": { "anyOf": [reference("A"), { "type": "object" }] } });
    assert_eq!(judged(&compiled(&document(&reference("A"), &through_all_of)), "{}"), BodyResult::Unjudged);
    let dynamic = json!({ "$id": "https://a.example/s", "$dynamicAnchor": "n", "$dynamicRef": "#n" });
    assert_eq!(judged(&compiled(&document(&dynamic, &json!({}))), "{}"), BodyResult::Unjudged);
    // With a value in between it is no circle.
    let tree =
        json!({ "A": { "type": "object", "properties": { "a": reference("A") }, "additionalProperties": false } });
    let tree = compiled(&document(&reference("A"), &tree));
    assert_eq!(judged(&tree, r#"{"a":{"a":{}}}"#), BodyResult::Valid);
    assert!(matches!(judged(&tree, r#"{"a":{"a":{"b":1}}}"#), BodyResult::Invalid(_)));
}

#[test]
fn schemas_nested_deep_are_no_stack_overflow() {
    let mut schema = json!({ "type": "integer" });
    for _ in 0..100 {
        schema = json!({ "allOf": [schema] });
    }
    // Deeper documents are none that the reader of JSON takes.
    let compiled = compile(&document(&schema, &json!({})).to_string(), "", Options::default());
    let error = compiled.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.is_empty() || error.contains("no JSON"), "{error}");
}

#[test]
fn references_nested_deep_end_the_check() {
    // By reference any depth can be written: the check gives up.
    let mut components = json!({ "S400": { "type": "integer" } });
    for level in 0..400 {
        components[format!("S{level}")] = json!({ "allOf": [reference(&format!("S{}", level + 1)), {}] });
    }
    let deep = self::compiled(&document(&reference("S0"), &components));
    // Frames of a build that is not optimized are larger than the stack of a test allows.
    let judge = move || assert_ne!(judged(&deep, "1"), BodyResult::Valid);
    std::thread::Builder::new().stack_size(16 << 20).spawn(judge).unwrap().join().unwrap();
}

#[test]
fn values_are_nested_as_deep_as_the_limit() {
    let list =
        self::compiled(&document(&reference("L"), &json!({ "L": { "type": "array", "items": reference("L") } })));
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(judged(&list, &nested(96)), BodyResult::Valid);
    let BodyResult::Invalid(found) = judged(&list, &nested(97)) else { panic!() };
    assert!(found[0].detail.contains("nested too deep"), "{found:?}");
}

#[test]
fn documents_over_the_limits_are_refused_with_their_numbers() {
    let failed = |text: &str| compile(text, "", Options::default()).unwrap_err().to_string();
    let long = format!("{{\"openapi\":\"3.1.0\",\"paths\":{{}},\"x\":\"{}\"}}", "a".repeat(64 << 20));
    assert_eq!(failed(&long), "the document has more than 67108864 bytes");
    let paths: serde_json::Map<String, Value> =
        (0..100_000).map(|place| (format!("/p{place}"), json!({ "get": {} }))).collect();
    let many = json!({ "openapi": "3.1.0", "paths": paths }).to_string();
    assert!(failed(&many).ends_with("the document has more than 50000 operations"), "{}", failed(&many));
    // 50 MB that are one enum compile, and are over the size of the compact form.
    let values: Vec<String> = (0..53_000).map(|place| format!("{place:01000}")).collect();
    let enumeration = document(&json!({ "enum": values }), &json!({})).to_string();
    assert!((50 << 20..64 << 20).contains(&enumeration.len()), "{}", enumeration.len());
    assert_eq!(failed(&enumeration), "the compiled contract has more than 33554432 bytes");
}

#[test]
fn large_enums_are_looked_up_and_not_walked_through() {
    let values: Vec<Value> =
        (0..50_000).map(|place| json!(format!("v{place}"))).chain((0..50_000).map(Value::from)).collect();
    let compiled = compiled(&document(&json!({ "type": "array", "items": { "enum": values } }), &json!({})));
    let texts: Vec<String> = (0..5_000).map(|place| format!("\"v{}\"", place * 7 % 50_000)).collect();
    assert_eq!(judged(&compiled, &format!("[{}]", texts.join(","))), BodyResult::Valid);
    // Numbers are walked through, as long as the work lasts.
    let numbers: Vec<String> = (0..5_000).map(|_| "49999".to_owned()).collect();
    let BodyResult::Invalid(found) = judged(&compiled, &format!("[{}]", numbers.join(","))) else { panic!() };
    assert_eq!(found[0].detail, "checking it takes too much work");
}

#[test]
fn evil_patterns_take_linear_time_or_check_nothing() {
    let pattern = |pattern: &str| compiled(&document(&json!({ "type": "string", "pattern": pattern }), &json!({})));
    let evil = pattern("^(a+)+$");
    assert!(evil.warnings.is_empty(), "{:?}", evil.warnings);
    let BodyResult::Invalid(found) = judged(&evil, &format!("\"{}b\"", "a".repeat(500_000))) else { panic!() };
    assert_eq!(found[0].detail, "expected a text that matches the pattern");
    for (huge, why) in [
        ("^(((a{100}){100}){100})$".to_owned(), "the engine does not take it"),
        ("(?=a)b".to_owned(), "it looks ahead"),
        ("(a)\\1".to_owned(), "it refers to a group"),
        ("a".repeat(5000), "it has more than 4096 bytes"),
        ("(".repeat(300) + &")".repeat(300), "the engine does not take it"),
        ("[".to_owned(), "it is no pattern"),
    ] {
        let compiled = pattern(&huge);
        assert!(compiled.warnings[0].contains(why), "{:?}", compiled.warnings);
        assert_eq!(judged(&compiled, "\"x\""), BodyResult::Valid);
    }
    // Hundreds of patterns share the memory of patterns.
    let properties: serde_json::Map<String, Value> = (0..600)
        .map(|place| (format!("p{place}"), json!({ "pattern": format!("(x|y{place}){{1,40}}.*[a-z]{{30,60}}") })))
        .collect();
    let many = compiled(&document(&json!({ "properties": properties }), &json!({})));
    let body: serde_json::Map<String, Value> = (0..600).map(|place| (format!("p{place}"), json!("q"))).collect();
    let BodyResult::Invalid(found) = judged(&many, &Value::Object(body).to_string()) else { panic!() };
    assert!(found.len() <= 8);
}

/// Checks bodies of the document above, one after another.
struct Judge {
    contract: Contract,
    schema: u32,
}

impl Judge {
    fn of(compiled: &Compiled) -> Self {
        let contract = Contract::open(&compiled.image).unwrap();
        let Found::Operation(matched) = contract.find(b"POST", b"/a", false) else { panic!() };
        let body = contract.request_body(matched.operation, Some(b"application/json"), true);
        let BodyCheck::Json(schema) = body else { panic!("{body:?}") };
        Self { contract, schema }
    }

    /// What is wrong with a body.
    fn wrong(&self, body: &Value) -> Option<String> {
        match self.contract.check_body(self.schema, body.to_string().as_bytes(), false) {
            BodyResult::Valid => None,
            BodyResult::Invalid(found) => Some(format!("{} {}", found[0].place, found[0].detail)),
            BodyResult::Unjudged => panic!("{body}"),
        }
    }
}

#[test]
fn patterns_that_find_no_room_are_checked_all_the_same() {
    // Each takes some hundred KiB.
    const PATTERNS: usize = 40;
    let pattern = |place: usize| format!("^(\\p{{L}}{{1,8}}|{place}x)$");
    let mut properties: serde_json::Map<String, Value> =
        (0..PATTERNS).map(|place| (format!("p{place}"), json!({ "pattern": pattern(place) }))).collect();
    properties.insert(
        "tags".to_owned(),
        json!({ "type": "object", "patternProperties": { "^(k_[0-9]+|\\p{Lu})$": { "type": "integer" } }, "additionalProperties": false }),
    );
    let rows = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Row" } });
    let schema = json!({ "anyOf": [{ "$ref": "#/components/schemas/Row" }, rows] });
    let compiled = compiled(&document(&schema, &json!({ "Row": { "type": "object", "properties": properties } })));
    assert!(compiled.warnings.iter().any(|warning| warning.contains("more than 8 MiB")), "{:?}", compiled.warnings);
    let judge = Judge::of(&compiled);
    let wrong = |member: &str, value: Value| judge.wrong(&json!([{ member: value }]));
    let refused = Some("body expected a value that matches one of the alternatives".to_owned());
    for round in 0..2 {
        // Whatever was asked for before: the first is out of memory by the time the last is looked at, and the other way round.
        for place in 0..PATTERNS {
            assert_eq!(wrong(&format!("p{place}"), json!(format!("{place}x"))), None, "{round} {place}");
        }
        for place in (0..PATTERNS).rev() {
            assert_eq!(wrong(&format!("p{place}"), json!("!")), refused, "{round} {place}");
        }
        assert_eq!(wrong("tags", json!({ "k_1": 1 })), None);
        assert_eq!(wrong("tags", json!({ "k_1": "x" })), refused);
        assert_eq!(wrong("tags", json!({ "other": 1 })), refused);
    }
    // To compile them again and again is work.
    let row: serde_json::Map<String, Value> =
        (0..PATTERNS).map(|place| (format!("p{place}"), json!(format!("{place}x")))).collect();
    let many = Value::Array(vec![Value::Object(row); 200]);
    assert_eq!(judge.wrong(&many).as_deref(), Some("body checking it takes too much work"));
    // Patterns that find room together need no warning.
    let few = json!({ "properties": { "a": { "pattern": pattern(1) }, "b": { "pattern": "^[a-z]+$" } } });
    assert!(super::hostile::compiled(&document(&few, &json!({}))).warnings.is_empty());
}

#[test]
fn bombs_of_yaml_are_refused() {
    let failed = |text: &str| compile(text, "", Options::default()).unwrap_err().to_string();
    let mut bomb = "openapi: 3.1.0\nx0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        bomb.push_str(&format!("x{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(", ")));
    }
    assert!(failed(&bomb).starts_with("the document is no YAML"), "{}", failed(&bomb));
    let deep = format!("openapi: 3.1.0\nx: {}{}\n", "[".repeat(5000), "]".repeat(5000));
    assert!(failed(&deep).starts_with("the document is no YAML"), "{}", failed(&deep));
    assert!(failed("openapi: 3.1.0\nopenapi: 3.0.0\n").starts_with("the document is no YAML"));
    assert!(failed("openapi: 3.1.0\na: *nothing\n").starts_with("the document is no YAML"));
}

#[test]
fn servers_and_their_variables_make_a_bounded_number_of_paths() {
    let values: Vec<String> = (0..1000).map(|place| format!("v{place}")).collect();
    let document = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "/{a}/{b}/{c}", "variables": {
            "a": { "enum": values, "default": "v0" }, "b": { "enum": values, "default": "v0" }, "c": { "enum": values, "default": "v0" },
        } }],
        "paths": { "/x": { "get": {} } },
    });
    let compiled = compiled(&document);
    assert!(compiled.image.len() < 64 << 10, "{}", compiled.image.len());
}

#[test]
fn paths_of_many_segments_and_templates_are_walked_once() {
    // Each segment may be a literal, a template or a part of one, and the last one fits none: every node of the tree is visited once.
    let mut paths = serde_json::Map::new();
    for choice in 0..512_u32 {
        let segments: Vec<String> = (0..9)
            .map(|place| if choice >> place & 1 == 0 { "a".to_owned() } else { format!("{{p{place}}}") })
            .collect();
        paths.insert(format!("/{}/end", segments.join("/")), json!({ "get": {} }));
    }
    let contract = Contract::open(&compiled(&json!({ "openapi": "3.1.0", "paths": paths })).image).unwrap();
    assert_eq!(contract.find(b"GET", b"/a/a/a/a/a/a/a/a/a/other", false), Found::UnknownPath);
    assert!(matches!(contract.find(b"GET", b"/a/b/a/b/a/b/a/b/a/end", false), Found::Operation(_)));
    let long = format!("/{}", "a/".repeat(100_000));
    assert_eq!(contract.find(b"GET", long.as_bytes(), false), Found::UnknownPath);
}
