//! Parameters of every style: a line of method and target, and behind it the value of a header. What is told of is in bounds.

use std::borrow::Cow;

use contract::compile::{Options, compile};
use contract::{Contract, Forms, Found, Head};

const DOCUMENT: &str = r#"
openapi: 3.1.0
paths:
  /q:
    get:
      parameters:
        - {name: int, in: query, schema: {type: integer, maximum: 100}}
        - {name: form, in: query, schema: {type: array, items: {type: integer}}}
        - {name: comma, in: query, explode: false, schema: {type: array, items: {enum: [a, b]}, uniqueItems: true}}
        - {name: space, in: query, style: spaceDelimited, explode: false, schema: {type: array, items: {type: number}}}
        - {name: pipe, in: query, style: pipeDelimited, explode: false, schema: {type: array, items: {type: string, pattern: "^[a-z]+$"}}}
        - {name: deep, in: query, style: deepObject, schema: {type: object, properties: {a: {type: integer}, b: {type: array, items: {type: boolean}}}}}
        - {name: free, in: query, schema: {type: object, additionalProperties: {type: string}, properties: {k: {type: integer}}}}
        - {name: json, in: query, content: {application/json: {schema: {type: object, required: [x]}}}}
        - {name: flag, in: query, allowEmptyValue: true, schema: {type: boolean}}
        - {name: any, in: query, schema: {anyOf: [{type: integer}, {type: string, format: date-time}, {type: "null"}]}}
        - {name: X-List, in: header, schema: {type: array, items: {type: integer}}}
        - {name: X-Object, in: header, explode: true, schema: {type: object, properties: {a: {type: integer}}}}
  /m/{p}: {get: {parameters: [{name: p, in: path, style: matrix, explode: true, schema: {type: array, items: {type: integer}}}]}}
  /l/{p}: {get: {parameters: [{name: p, in: path, style: label, explode: true, schema: {type: object, properties: {a: {type: string}}}}]}}
  /s/{a}.{b}: {get: {parameters: [{name: a, in: path, schema: {type: string, minLength: 2}}, {name: b, in: path, schema: {type: integer}}]}}
  /s/{a}:run: {post: {}}
  /{any}/{thing}: {delete: {}}
"#;

thread_local! {
    static CONTRACT: Contract = {
        let compiled = compile(DOCUMENT, "", Options::default()).expect("the document compiles");
        Contract::open(&compiled.image).expect("what was compiled opens")
    };
}

pub fn run(data: &[u8]) {
    CONTRACT.with(|contract| {
        let mut lines = data.splitn(2, |byte| *byte == b'\n');
        let (first, value) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let (method, target) = match first.iter().position(|byte| *byte == b' ') {
            Some(at) => (&first[..at], &first[at + 1..]),
            None => (b"GET".as_slice(), first),
        };
        let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
        let query = target.get(path.len() + 1..).unwrap_or_default();
        match contract.find(method, path, method == b"OPTIONS") {
            Found::Operation(matched) => {
                assert!(!contract.label(matched.operation).is_empty());
                let head = Head { query, header: &|_| Some(Cow::Borrowed(value)), reject_unknown: true };
                let found = contract.check_parameters(&matched, &head);
                assert!(found.len() <= 16, "{} mismatches", found.len());
                for one in &found {
                    assert!(one.place.len() <= 300 && one.detail.len() <= 1000, "{one:?}");
                }
                let again = contract.check_parameters(&matched, &head);
                assert_eq!(found, again, "the same request is judged alike");
                for kind in ["", "multipart/form-data", "application/json"] {
                    let others = contract.named_in_body(matched.operation, path, Forms::of(kind.as_bytes()), value);
                    assert!(!others.operations.contains(&matched.operation), "its own is no other one");
                }
            }
            Found::MethodNotAllowed(allow) => assert!(!allow.is_empty()),
            Found::UnknownPath | Found::Preflight => {}
        }
    });
}
