//! Documents as a whole: paths, parameters, bodies.

use std::borrow::Cow;

use crate::compile::{Options, compile};
use crate::{BodyCheck, BodyResult, Contract, Found, Head, Mismatch};

const SHOP: &str = r##"
openapi: 3.1.0
servers: [{url: "https://shop.example/api/{version}", variables: {version: {default: v1, enum: [v1, v2]}}}]
paths:
  /items:
    get:
      operationId: list
      parameters:
        - {name: limit, in: query, schema: {type: integer, maximum: 100}}
        - {name: tags, in: query, explode: false, schema: {type: array, items: {type: string, enum: [a, b]}}}
        - {name: ids, in: query, schema: {type: array, items: {type: integer}}}
        - {name: piped, in: query, style: pipeDelimited, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: spaced, in: query, style: spaceDelimited, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: filter, in: query, style: deepObject, schema: {type: object, properties: {age: {type: integer}}, additionalProperties: false}}
        - {name: json, in: query, content: {application/json: {schema: {type: object, required: [x]}}}}
        - {name: flag, in: query, allowEmptyValue: true, schema: {type: boolean}}
        - {name: either, in: query, schema: {oneOf: [{type: integer}, {type: string, pattern: "^x"}]}}
        - {name: when, in: query, schema: {type: string, format: date-time}}
        - {name: X-Mode, in: header, required: true, schema: {type: array, items: {enum: [on, off]}}}
      responses: {"200": {content: {application/json: {schema: {type: array}}}}, 4XX: {}, default: {}}
    post:
      requestBody:
        required: true
        content:
          application/json: {schema: {$ref: "#/components/schemas/Item"}}
          application/*+json: {schema: {type: object}}
          text/*: {}
  /items/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
    get: {}
  /items/mine: {get: {}}
  /files/{name}.{kind}:
    parameters: [{name: name, in: path, schema: {type: string}}, {name: kind, in: path, schema: {enum: [png, gif]}}]
    get: {}
  /m/{p}: {parameters: [{name: p, in: path, style: matrix, explode: true, schema: {type: array, items: {type: integer}}}], get: {}}
  /l/{p}: {parameters: [{name: p, in: path, style: label, schema: {type: array, items: {type: integer}}}], get: {}}
  /o/{p}: {parameters: [{name: p, in: path, explode: true, schema: {type: object, properties: {a: {type: integer}}}}], get: {}}
  /jobs/{id}:run: {post: {}}
  /deep/{a}/x: {get: {}}
  /deep/y/{b}: {get: {}}
components:
  schemas:
    Item:
      type: object
      required: [name, id]
      properties: {name: {type: string, minLength: 1}, id: {type: integer, readOnly: true}, price: {type: number, minimum: 0}, parent: {$ref: "#/components/schemas/Item"}}
      additionalProperties: false
"##;

fn shop() -> Contract {
    let compiled = compile(SHOP, "", Options { responses: true }).unwrap();
    assert_eq!((compiled.warnings.as_slice(), compiled.base_path.as_str()), ([].as_slice(), "/api/v1"));
    Contract::open(&compiled.image).unwrap()
}

fn label(contract: &Contract, method: &str, path: &str) -> String {
    match contract.find(method.as_bytes(), path.as_bytes(), false) {
        Found::Operation(matched) => contract.label(matched.operation),
        Found::UnknownPath => "unknown".to_owned(),
        Found::MethodNotAllowed(allow) => format!("only {allow}"),
        Found::Preflight => "preflight".to_owned(),
    }
}

#[test]
fn paths_lead_to_operations() {
    let contract = shop();
    for (method, path, expected) in [
        ("GET", "/api/v1/items", "GET /items"),
        ("HEAD", "/api/v2/items", "GET /items"),
        ("GET", "/api/v3/items", "unknown"),
        ("GET", "/items", "unknown"),
        ("GET", "/api/v1/items/", "unknown"),
        ("GET", "/api/v1/items/7", "GET /items/{id}"),
        ("GET", "/api/v1/items/mine", "GET /items/mine"),
        ("GET", "/api/v1/items/%6dine", "GET /items/mine"),
        ("GET", "/api/v1/items/..", "unknown"),
        ("GET", "/api/v1/items/.", "unknown"),
        ("GET", "/api/v1/items/%2e%2E", "unknown"),
        ("GET", "/api/v1/items/..;x", "unknown"),
        ("GET", "/api/v1/items/..%2fadmin", "unknown"),
        ("GET", "/api/v1/items/a%2F..%2Fb", "unknown"),
        ("GET", "/api/v1/items/..%5cadmin", "unknown"),
        ("GET", "/api/v1/items/%252e%252e%252fadmin", "unknown"),
        ("GET", "/api/v1/items/mine%00", "unknown"),
        ("GET", "/api/v1/files/..%2Fa.png", "unknown"),
        ("GET", "/api/v1/items/...", "GET /items/{id}"),
        ("GET", "/api/v1/items/a%2Fb", "GET /items/{id}"),
        ("GET", "/api/v1/items/..a", "GET /items/{id}"),
        ("GET", "/api/v1/items/100%25", "GET /items/{id}"),
        ("GET", "/api/v1/items/mine;x=1", "GET /items/mine"),
        ("GET", "/api/v1/items;x/7;y", "GET /items/{id}"),
        ("POST", "/api/v1/items/mine;", "only GET, HEAD"),
        ("DELETE", "/api/v1/items", "only GET, HEAD, POST"),
        ("OPTIONS", "/api/v1/items", "only GET, HEAD, POST"),
        ("GET", "/api/v1/files/a.b.png", "GET /files/{name}.{kind}"),
        ("GET", "/api/v1/files/png", "unknown"),
        ("POST", "/api/v1/jobs/7:run", "POST /jobs/{id}:run"),
        ("POST", "/api/v1/jobs/7%3Arun", "POST /jobs/{id}:run"),
        ("POST", "/api/v1/jobs/:run", "unknown"),
        ("GET", "/api/v1/deep/y/x", "GET /deep/y/{b}"),
        ("GET", "/api/v1/deep/z/x", "GET /deep/{a}/x"),
        ("GET", "/api/v1/deep/z/y", "unknown"),
    ] {
        assert_eq!(label(&contract, method, path), expected, "{method} {path}");
    }
    assert_eq!(contract.find(b"OPTIONS", b"/api/v1/items", true), Found::Preflight);
}

fn violations(contract: &Contract, target: &str, mode: Option<&'static str>, strict: bool) -> Vec<String> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = format!("/api/v1{path}");
    let Found::Operation(matched) = contract.find(b"GET", path.as_bytes(), false) else { panic!("{target}") };
    let header = |name: &str| mode.filter(|_| name == "x-mode").map(|mode| Cow::Borrowed(mode.as_bytes()));
    let head = Head { query: query.as_bytes(), header: &header, reject_unknown: strict };
    let found = contract.check_parameters(&matched, &head);
    found.iter().map(|one| format!("{} {}", one.kind.word(), one.place)).collect()
}

#[test]
fn parameters_are_read_by_style() {
    let contract = shop();
    let invalid = |place: &str| vec![format!("invalid_parameter {place}")];
    for (target, wrong) in [
        ("/items", None),
        ("/items?limit=10", None),
        ("/items?limit=101", Some("query:limit")),
        ("/items?limit=ten", Some("query:limit")),
        ("/items?limit=1&limit=x", Some("query:limit")),
        ("/items?tags=a,b", None),
        ("/items?tags=a,c", Some("query:tags")),
        ("/items?tags=a%2Cb%2ca", None),
        ("/items?tags=a%2Cc", Some("query:tags")),
        ("/items?ids=1&ids=2", None),
        ("/items?ids=1,2", Some("query:ids")),
        ("/items?piped=1|2%7C3", None),
        ("/items?piped=1|x", Some("query:piped")),
        ("/items?spaced=1%202+3", None),
        ("/items?spaced=1%20x", Some("query:spaced")),
        ("/items?filter[age]=3", None),
        ("/items?filter%5Bage%5D=x", Some("query:filter")),
        ("/items?filter[size]=3", Some("query:filter")),
        ("/items?json=%7B%22x%22:1%7D", None),
        ("/items?json=%7B%7D", Some("query:json")),
        ("/items?json=%7B", Some("query:json")),
        ("/items?flag", None),
        ("/items?flag=maybe", Some("query:flag")),
        ("/items?either=7", None),
        ("/items?either=x7", None),
        ("/items?either=y", Some("query:either")),
        ("/items?when=2024-01-01T00:00:00+01:00", None),
        ("/items?when=2024-13-01T00:00:00Z", Some("query:when")),
        ("/items/7", None),
        ("/items/%37", None),
        ("/items/x", Some("path:id")),
        ("/files/a.b.png", Some("path:kind")),
        ("/files/a.png", None),
        ("/m/;p=1;p=2", None),
        ("/m/;p=1;p=x", Some("path:p")),
        ("/l/.1,2", None),
        ("/l/.1,x", Some("path:p")),
        ("/l/.1%2C2", None),
        ("/l/.1%2cx", Some("path:p")),
        ("/o/a=1,b=x", None),
        ("/o/a=x", Some("path:p")),
    ] {
        assert_eq!(
            violations(&contract, target, Some("on, off"), false),
            wrong.map(invalid).unwrap_or_default(),
            "{target}"
        );
    }
    assert_eq!(violations(&contract, "/items", None, false), ["missing_parameter header:x-mode"]);
    assert_eq!(violations(&contract, "/items", Some("up"), false), ["invalid_parameter header:x-mode"]);
    assert_eq!(
        violations(&contract, "/items?filter[age]=1&more=1", Some("on"), true),
        ["unknown_parameter query:more"]
    );
}

#[test]
fn bodies_are_checked_by_media_type() {
    let contract = shop();
    let Found::Operation(matched) = contract.find(b"POST", b"/api/v1/items", false) else { panic!() };
    let need = |kind: Option<&str>, has| contract.request_body(matched.operation, kind.map(str::as_bytes), has);
    let wrong = |check: BodyCheck| match check {
        BodyCheck::Wrong(violation) => violation.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(wrong(need(Some("application/json"), false)), Mismatch::MissingBody);
    assert_eq!(wrong(need(Some("application/xml"), true)), Mismatch::UnsupportedMediaType);
    assert_eq!(wrong(need(None, true)), Mismatch::UnsupportedMediaType);
    assert_eq!(need(Some("text/plain; charset=utf-8"), true), BodyCheck::Required(None));
    assert!(matches!(need(Some("application/merge-patch+json"), true), BodyCheck::Required(Some(_))));
    let BodyCheck::Required(Some(schema)) = need(Some("Application/JSON; charset=utf-8"), true) else { panic!() };
    for (body, wrong) in [
        (r#"{"name":"a"}"#, None),
        (r#"{"name":"a","price":1,"parent":{"name":"b"}}"#, None),
        (r#"{"name":"a","parent":{"name":""}}"#, Some("body:/parent/name")),
        (r#"{"name":"a","price":-1}"#, Some("body:/price")),
        (r#"{"name":"a","more":1}"#, Some("body:/more")),
        (r#"{"name":1,"name":"a"}"#, Some("body:/name")),
        (r#"{"price":1}"#, Some("body")),
        (r#"{"name":"a""#, Some("body")),
        ("", Some("body")),
    ] {
        let place = match contract.check_body(schema, body.as_bytes(), false) {
            BodyResult::Valid => None,
            BodyResult::Invalid(found) => Some(found[0].place.clone()),
            BodyResult::Unjudged => panic!("{body}"),
        };
        assert_eq!(place.as_deref(), wrong, "{body}");
    }
}

/// The places of a body that are told of.
fn places(contract: &Contract, schema: u32, body: &str, response: bool) -> Vec<String> {
    match contract.check_body(schema, body.as_bytes(), response) {
        BodyResult::Valid => Vec::new(),
        BodyResult::Invalid(found) => found.into_iter().map(|one| one.place).collect(),
        BodyResult::Unjudged => panic!("{body}"),
    }
}

#[test]
fn all_that_is_wrong_with_a_body_is_told_up_to_a_limit() {
    let contract = shop();
    let Found::Operation(matched) = contract.find(b"POST", b"/api/v1/items", false) else { panic!() };
    let body = contract.request_body(matched.operation, Some(b"application/json"), true);
    let BodyCheck::Required(Some(schema)) = body else { panic!() };
    let places = |body: &str| places(&contract, schema, body, false);
    assert_eq!(places(r#"{"name":"","price":-1,"more":1}"#), ["body:/name", "body:/price", "body:/more"]);
    assert_eq!(places(r#"{"price":"x","parent":{"name":"b","id":"x"}}"#), ["body:/price", "body:/parent/id", "body"]);
    assert_eq!(places(r#"{"name":1,"name":2}"#), ["body:/name"]);
    let many: Vec<String> = (0..30).map(|place| format!("\"a~/{place}\":1")).collect();
    let told = places(&format!("{{\"name\":\"a\",{}}}", many.join(",")));
    assert_eq!((told.len(), told[0].as_str()), (8, "body:/a~0~10"));
}

#[test]
fn alternatives_are_told_apart_by_a_property() {
    let kind = |kind: &str, more: &str| {
        format!(
            r#"{{"type":"object","required":["kind"],"properties":{{"kind":{{"enum":["{kind}"]}},"size":{more}}}}}"#
        )
    };
    let branches = [
        kind("a", r#"{"type":"integer"}"#),
        kind("b", r#"{"type":"string"}"#),
        kind("c", r#"{"type":"boolean"}"#),
        r#"{"type":"object","required":["free"]}"#.to_owned(),
        r#"{"type":"integer"}"#.to_owned(),
    ];
    let document = format!(
        r#"{{"openapi":"3.1.0","paths":{{"/a":{{"post":{{"requestBody":{{"content":{{"application/json":{{"schema":{{"oneOf":[{}]}}}}}}}}}}}}}}}}"#,
        branches.join(",")
    );
    let contract = Contract::open(&compile(&document, "", Options::default()).unwrap().image).unwrap();
    let Found::Operation(matched) = contract.find(b"POST", b"/a", false) else { panic!() };
    let body = contract.request_body(matched.operation, Some(b"application/json"), true);
    let BodyCheck::Json(schema) = body else { panic!() };
    for (body, wrong) in [
        (r#"{"kind":"a","size":1}"#, [].as_slice()),
        (r#"{"kind":"b","size":"x"}"#, &[]),
        (r#"{"kind":"b","size":1}"#, &["body"]),
        (r#"{"kind":"\u0063","size":true}"#, &[]),
        (r#"{"kind":"d","free":1}"#, &[]),
        (r#"{"free":1}"#, &[]),
        (r#"{"kind":1}"#, &["body"]),
        // Two alternatives match.
        (r#"{"kind":"a","free":1}"#, &["body"]),
        // The backend may read either of them.
        (r#"{"kind":"a","kind":"b"}"#, &["body:/kind"]),
        ("7", &[]),
        ("\"a\"", &["body"]),
    ] {
        assert_eq!(places(&contract, schema, body, false), wrong, "{body}");
    }
}

#[test]
fn what_is_read_only_may_be_sent_and_what_is_write_only_may_be_answered() {
    // OpenAPI 3.0.4 (schema object) and 3.1 (JSON Schema 2020-12 validation, section 9.4) say SHOULD NOT of both: neither is a
    // mismatch, but what is there has to match its schema. What is required is so on the side that it is for.
    let document = r##"{"openapi":"3.0.3","paths":{"/a":{"post":{
        "requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}},
        "responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}}}},
        "components":{"schemas":{"A":{"type":"object","required":["id","password","name"],"properties":{
            "id":{"type":"integer","readOnly":true},"password":{"type":"string","writeOnly":true},"name":{"type":"string"}}}}}}"##;
    let contract = Contract::open(&compile(document, "", Options { responses: true }).unwrap().image).unwrap();
    let Found::Operation(matched) = contract.find(b"POST", b"/a", false) else { panic!() };
    let json = Some(b"application/json".as_slice());
    let BodyCheck::Json(sent) = contract.request_body(matched.operation, json, true) else { panic!() };
    let BodyCheck::Json(answered) = contract.response_body(matched.operation, 200, json, true) else { panic!() };
    let all = r#"{"id":1,"password":"x","name":"n"}"#;
    for (body, of_request, of_response) in [
        (all, [].as_slice(), [].as_slice()),
        (r#"{"password":"x","name":"n"}"#, &[], &["body"]),
        (r#"{"id":1,"name":"n"}"#, &["body"], &[]),
        (r#"{"id":"x","password":1,"name":"n"}"#, &["body:/id", "body:/password"], &["body:/id", "body:/password"]),
    ] {
        assert_eq!(places(&contract, sent, body, false), of_request, "{body}");
        assert_eq!(places(&contract, answered, body, true), of_response, "{body}");
    }
}

#[test]
fn what_is_read_only_need_not_be_sent_wherever_it_is_required() {
    let components = r##"
    Base: {type: object, properties: {id: {type: integer, readOnly: true}, secret: {type: string, writeOnly: true}, total: {type: integer}}}
    Order: {allOf: [{$ref: "#/components/schemas/Base"}, {properties: {note: {type: string}}}]}
    Same: {allOf: [{$ref: "#/components/schemas/Base"}, {required: [id, secret, total]}]}
    First: {allOf: [{required: [id, secret, total]}, {$ref: "#/components/schemas/Order"}]}
    Deep: {allOf: [{$ref: "#/components/schemas/Order"}, {allOf: [{type: object}, {required: [id, secret, total]}]}]}
    Beside: {$ref: "#/components/schemas/Base", required: [id, secret, total]}
    Own: {allOf: [{$ref: "#/components/schemas/Base"}, {required: [id, secret, total], properties: {id: {readOnly: false}, secret: {}}}]}
    Choice: {properties: {id: {type: integer, readOnly: true}}, anyOf: [{required: [id]}, {required: [total]}]}
"##;
    let places = |name: &str, body: &str, response: bool| {
        let content =
            format!(r##"{{content: {{application/json: {{schema: {{$ref: "#/components/schemas/{name}"}}}}}}}}"##);
        let document = format!(
            "openapi: 3.1.0\npaths: {{/a: {{post: {{requestBody: {content}, responses: {{'200': {content}}}}}}}}}\ncomponents:\n  schemas:{components}"
        );
        let contract = Contract::open(&compile(&document, "", Options { responses: true }).unwrap().image).unwrap();
        let Found::Operation(matched) = contract.find(b"POST", b"/a", false) else { panic!() };
        let json = Some(b"application/json".as_slice());
        let check = match response {
            true => contract.response_body(matched.operation, 200, json, true),
            false => contract.request_body(matched.operation, json, true),
        };
        let BodyCheck::Json(schema) = check else { panic!("{check:?}") };
        places(&contract, schema, body, response)
    };
    for name in ["Same", "First", "Deep", "Beside"] {
        for (body, of_request, of_response) in [
            (r#"{"id":1,"secret":"x","total":1}"#, true, true),
            (r#"{"secret":"x","total":1}"#, true, false),
            (r#"{"id":1,"total":1}"#, false, true),
            (r#"{"id":1,"secret":"x"}"#, false, false),
        ] {
            assert_eq!(places(name, body, false).is_empty(), of_request, "{name} {body}");
            assert_eq!(places(name, body, true).is_empty(), of_response, "{name} {body}");
        }
    }
    // What a schema says of its own property counts, and what is required of an alternative tells it apart.
    assert_eq!(places("Own", r#"{"secret":"x","total":1}"#, false), ["body"]);
    assert_eq!(places("Own", r#"{"id":1,"total":1}"#, true), ["body"]);
    assert_eq!(places("Choice", r#"{"a":1}"#, false), ["body"]);
}

#[test]
fn keys_of_security_schemes_are_declared_query_parameters() {
    let document = r#"
openapi: 3.0.3
security: [{key: []}]
paths:
  /a: {get: {}}
  /b: {get: {security: [{other: []}, {header: []}]}}
  /c: {get: {security: []}}
components:
  securitySchemes:
    key: {type: apiKey, in: query, name: api_key}
    other: {type: apiKey, in: query, name: token}
    header: {type: apiKey, in: header, name: X-Key}
"#;
    let contract = Contract::open(&compile(document, "", Options::default()).unwrap().image).unwrap();
    for (path, query, unknown) in [
        ("/a", "api_key=1", None),
        ("/a", "token=1", Some("query:token")),
        ("/b", "token=", None),
        ("/b", "X-Key=1", Some("query:X-Key")),
        ("/c", "api_key=1", Some("query:api_key")),
        ("/a", "=1", Some("query:")),
        ("/a", "&", None),
    ] {
        let Found::Operation(matched) = contract.find(b"GET", path.as_bytes(), false) else { panic!() };
        let head = Head { query: query.as_bytes(), header: &|_| None, reject_unknown: true };
        let found = contract.check_parameters(&matched, &head);
        assert_eq!(found.first().map(|one| one.place.as_str()), unknown, "{path}?{query}");
    }
}

#[test]
fn lists_of_mismatches_and_paths_end_at_their_limits() {
    let contract = shop();
    let query: Vec<String> = (0..40).map(|place| format!("unknown{place}=1")).collect();
    assert_eq!(violations(&contract, &format!("/items?{}", query.join("&")), Some("on"), true).len(), 16);
    let repeated = vec!["limit=x"; 5000].join("&");
    assert_eq!(
        violations(&contract, &format!("/items?{repeated}"), Some("on"), false),
        ["invalid_parameter query:limit"]
    );
    let paths: Vec<String> = [127, 128].iter().map(|segments| vec!["a"; *segments].join("/")).collect();
    let document = format!("{{\"openapi\":\"3.1.0\",\"paths\":{{\"/{}/{{id}}\":{{\"get\":{{}}}}}}}}", paths[0]);
    let deep = Contract::open(&compile(&document, "", Options::default()).unwrap().image).unwrap();
    assert!(label(&deep, "GET", &format!("/{}/7", paths[0])).starts_with("GET /a/a/"));
    assert_eq!(label(&deep, "GET", &format!("/{}/7", paths[1])), "unknown");
}

#[test]
fn hostile_documents_are_bounded() {
    let failed = |text: &str| compile(text, "", Options::default()).unwrap_err().to_string();
    assert!(failed("").contains("no object"), "{}", failed(""));
    assert!(failed("{").contains("no JSON"), "{}", failed("{"));
    assert_eq!(failed("swagger: '2.0'"), "/swagger: a Swagger 2 document; convert it to OpenAPI 3.0 or 3.1 first");
    assert!(failed("openapi: 4.0.0").starts_with("/openapi: version `4.0.0`"));
    let circle = r##"{"openapi":"3.1.0","paths":{"/a":{"post":{"requestBody":{"$ref":"#/components/requestBodies/A"}}}},
        "components":{"requestBodies":{"A":{"$ref":"#/components/requestBodies/B"},"B":{"$ref":"#/components/requestBodies/A"}}}}"##;
    let compiled = compile(circle, "", Options::default()).unwrap();
    assert!(compiled.warnings[0].contains("in a circle"), "{:?}", compiled.warnings);
    // A schema that refers to itself checks nothing, and ends.
    let own = r##"{"openapi":"3.1.0","paths":{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}}},
        "components":{"schemas":{"A":{"allOf":[{"$ref":"#/components/schemas/A"},{"$ref":"#/components/schemas/A"}]}}}}"##;
    let contract = Contract::open(&compile(own, "", Options::default()).unwrap().image).unwrap();
    let Found::Operation(matched) = contract.find(b"POST", b"/a", false) else { panic!() };
    let BodyCheck::Json(schema) = contract.request_body(matched.operation, Some(b"application/json"), true) else {
        panic!()
    };
    assert_eq!(contract.check_body(schema, b"{}", false), BodyResult::Unjudged);
}

#[test]
fn a_body_that_takes_too_much_work_does_not_match() {
    // Each level of the value is looked at by two alternatives.
    let document = r##"{"openapi":"3.1.0","paths":{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}}},
        "components":{"schemas":{"A":{"type":"object","anyOf":[
            {"properties":{"a":{"$ref":"#/components/schemas/A"}}},
            {"properties":{"a":{"$ref":"#/components/schemas/A"}}}]}}}}"##;
    let contract = Contract::open(&compile(document, "", Options::default()).unwrap().image).unwrap();
    let Found::Operation(matched) = contract.find(b"POST", b"/a", false) else { panic!() };
    let BodyCheck::Json(schema) = contract.request_body(matched.operation, Some(b"application/json"), true) else {
        panic!()
    };
    let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)).into_bytes();
    let BodyResult::Invalid(found) = contract.check_body(schema, &nested(3), false) else { panic!() };
    assert_eq!(found[0].detail, "expected a value that matches one of the alternatives");
    let BodyResult::Invalid(found) = contract.check_body(schema, &nested(60), false) else { panic!() };
    assert_eq!((found[0].kind, found[0].detail.as_str()), (Mismatch::InvalidBody, "checking it takes too much work"));
}

#[test]
fn damaged_images_are_refused_or_check_nothing() {
    let image = compile(SHOP, "", Options { responses: true }).unwrap().image;
    assert!(Contract::open(b"PCT9").is_err());
    for length in 0..image.len().min(400) {
        assert!(Contract::open(&image[..length]).is_err());
    }
    for place in (0..image.len()).step_by(7) {
        let mut damaged = image.clone();
        damaged[place] ^= 0x55;
        if let Ok(contract) = Contract::open(&damaged) {
            for path in ["/api/v1/items/7", "/api/v1/items?x=1"] {
                if let Found::Operation(matched) = contract.find(b"GET", path.as_bytes(), false) {
                    let head = Head { query: b"limit=1&filter[age]=x", header: &|_| None, reject_unknown: true };
                    let _ = contract.check_parameters(&matched, &head);
                }
            }
        }
    }
}

/// A document of `PALISADE_CONTRACT`, such as GitHub's: its compact form is small, and each operation's own path leads to it.
#[test]
fn a_large_document_is_compact_and_its_paths_lead_to_themselves() {
    let Some(file) = std::env::var_os("PALISADE_CONTRACT") else {
        println!("skipped: PALISADE_CONTRACT names no document");
        return;
    };
    let text = std::fs::read_to_string(file).unwrap();
    let compiled = compile(&text, "/", Options::default()).unwrap();
    println!(
        "{} operations, {} bytes of requests, {} warnings",
        compiled.operations.len(),
        compiled.image.len(),
        compiled.warnings.len()
    );
    compiled.warnings.iter().take(5).for_each(|warning| println!("{warning}"));
    let with_responses = compile(&text, "/", Options { responses: true }).unwrap();
    println!("{} bytes with responses", with_responses.image.len());
    assert!(compiled.image.len() <= 1 << 20, "{}", compiled.image.len());
    let contract = Contract::open(&compiled.image).unwrap();
    let mut others = Vec::new();
    for operation in &compiled.operations {
        let own = format!("{} {}", operation.method, operation.path);
        let found = label(&contract, &operation.method, &operation.path);
        if found != own {
            others.push(format!("{own} leads to {found}"));
        }
    }
    assert!(others.is_empty(), "{others:?}");
}
