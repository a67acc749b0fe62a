//! JSON bodies against schemas of every keyword: a byte chooses the schema, the rest is the body. serde_json says what is JSON.

use contract::compile::{Options, compile};
use contract::{BodyCheck, BodyResult, Contract, Found};

/// serde_json refuses deeper texts; the contract's limit is lower.
const DEPTH: usize = 96;

const DOCUMENT: &str = r##"
openapi: 3.1.0
paths:
  /0: {post: {requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Tree"}}}}}}
  /1: {post: {requestBody: {content: {application/json: {schema: {type: array, uniqueItems: true, contains: {type: integer}, maxContains: 3, prefixItems: [{type: string}], items: {type: [integer, string, object, array]}}}}}}}
  /2: {post: {requestBody: {content: {application/json: {schema: {oneOf: [{type: integer, multipleOf: 3}, {type: number, minimum: 5}, {type: string, format: email}, {type: string, pattern: "^(a|b)*$"}]}}}}}}
  /3: {post: {requestBody: {content: {application/json: {schema: {patternProperties: {"^x-": {type: integer}}, propertyNames: {maxLength: 8}, dependentRequired: {a: [b]}, dependentSchemas: {c: {required: [d]}}, minProperties: 1, unevaluatedProperties: {type: "null"}, allOf: [{properties: {a: true}}]}}}}}}
  /4: {post: {requestBody: {content: {application/json: {schema: {if: {type: object}, then: {required: [k], properties: {k: {enum: [1, "1", null, [1], {a: 1}]}}}, else: {not: {type: array, minItems: 2}}}}}}}}
  /5: {post: {requestBody: {content: {application/json: {schema: {type: object, additionalProperties: false, required: [when], properties: {when: {type: string, format: date-time}, at: {format: uri}, ip: {format: ipv6}, id: {format: uuid}, n: {type: integer, format: int32}, t: {type: string, minLength: 2, maxLength: 3}}}}}}}}
  /6: {post: {requestBody: {content: {application/json: {schema: true}}}}}
  /7: {post: {requestBody: {content: {application/json: {schema: {discriminator: {propertyName: kind}, oneOf: [{$ref: "#/components/schemas/Cat"}, {$ref: "#/components/schemas/Dog"}]}}}}}}
components:
  schemas:
    Tree: {type: object, required: [name], properties: {name: {type: string, minLength: 1}, children: {type: array, items: {$ref: "#/components/schemas/Tree"}}}, additionalProperties: false}
    Cat: {type: object, properties: {kind: {const: Cat}, lives: {type: integer, exclusiveMaximum: 10}}}
    Dog: {type: object, properties: {kind: {const: Dog}, age: {type: number, exclusiveMinimum: 0}}}
"##;

thread_local! {
    static CONTRACT: (Contract, Vec<u32>) = {
        let compiled = compile(DOCUMENT, "", Options::default()).expect("the document compiles");
        let contract = Contract::open(&compiled.image).expect("what was compiled opens");
        let schemas = (0..8).map(|place| {
            let path = format!("/{place}");
            let Found::Operation(matched) = contract.find(b"POST", path.as_bytes(), false) else {
                panic!("/{place} is there")
            };
            match contract.request_body(matched.operation, Some(b"application/json"), true) {
                BodyCheck::Json(schema) => schema,
                other => panic!("{other:?}"),
            }
        });
        let schemas = schemas.collect();
        (contract, schemas)
    };
}

pub fn run(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    CONTRACT.with(|(contract, schemas)| {
        let schema = schemas[usize::from(*choice) % schemas.len()];
        let result = contract.check_body(schema, body, false);
        if let BodyResult::Invalid(found) = &result {
            assert!((1..=8).contains(&found.len()), "{found:?}");
            assert!(found.iter().all(|one| one.place.len() <= 300 && one.detail.len() <= 1000), "{found:?}");
        }
        let not_json = match &result {
            BodyResult::Invalid(found) => found.iter().any(|one| one.detail.starts_with("the body is no JSON")),
            _ => false,
        };
        let oracle =
            serde_json::from_slice::<serde::de::IgnoredAny>(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body));
        // IgnoredAny does not look at what is inside of strings.
        let is_utf8 = std::str::from_utf8(body).is_ok();
        let deep = body.iter().filter(|byte| b"[{".contains(byte)).count() > DEPTH;
        if !deep && is_utf8 {
            assert_eq!(not_json, oracle.is_err(), "{result:?} {oracle:?} {}", body.escape_ascii());
        }
        assert!(is_utf8 || not_json);
        // Spaces around a value change nothing, and neither does a second look.
        if !not_json && !body.starts_with(b"\xef\xbb\xbf") {
            let spaced = [b" \n".as_slice(), body, b"\t\r "].concat();
            assert_eq!(contract.check_body(schema, &spaced, false), result);
        }
        let _ = contract.check_body(schema, body, true);
    });
}
