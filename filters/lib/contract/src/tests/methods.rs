//! Methods that the body of a request names beside its own.

use serde_json::{Value, json};

use crate::compile::{Options, compile};
use crate::{Contract, Forms, Found};

fn opened(bodies: &Value) -> Contract {
    let document = json!({ "openapi": "3.1.0", "paths": { "/orders/{id}": {
        "get": {}, "put": {}, "post": { "requestBody": bodies } } } });
    Contract::open(&compile(&document.to_string(), "", Options { responses: true }).unwrap().image).unwrap()
}

/// The methods of the path, if the body names another one.
fn other(contract: &Contract, kind: &str, body: &[u8]) -> Option<String> {
    let path = b"/orders/7";
    let Found::Operation(matched) = contract.find(b"POST", path, false) else { panic!() };
    let others = contract.named_in_body(matched.operation, path, Forms::of(kind.as_bytes()), body);
    let Found::Operation(put) = contract.find(b"PUT", path, false) else { panic!() };
    let has_put = body.windows(3).any(|text| text.eq_ignore_ascii_case(b"put"));
    let names_put = has_put && !Forms::of(kind.as_bytes()).is_none();
    assert_eq!(others.operations, if names_put { vec![put.operation] } else { vec![] }, "{:?}", body.escape_ascii());
    others.allow
}

const FORM: &str = "application/x-www-form-urlencoded";
const PARTS: &str = "multipart/form-data; boundary=b";
const ALLOW: Option<&str> = Some("GET, HEAD, POST, PUT");

#[test]
fn a_form_names_a_method() {
    let contract = opened(&json!({}));
    for (body, expected) in [
        ("_method=DELETE", ALLOW),
        ("a=1&_method=delete&b=2", ALLOW),
        ("_method=PUT&_method=+patch%20", ALLOW),
        ("%5fm%65thod=D%45LETE", ALLOW),
        ("a=1;_method=DELETE", ALLOW),
        ("_method=DELETE;x", ALLOW),
        ("_METHOD=DELETE", ALLOW),
        ("+%20.method=DELETE", ALLOW),
        ("_method%00=DELETE", ALLOW),
        // Rack leaves out brackets around a name.
        ("[_method]=DELETE", ALLOW),
        ("]_method=DELETE", ALLOW),
        ("_method]=DELETE", ALLOW),
        ("%5B%5b.method%5D=DELETE", ALLOW),
        ("_method[]=DELETE&[a][_method]=DELETE&]=DELETE&[=DELETE", None),
        ("", None),
        ("_method", None),
        ("_method=", None),
        ("_method=PUT&_method=post", None),
        ("_method=card", None),
        ("method=DELETE&a[_method]=DELETE&x_method=DELETE", None),
        ("note=_method=DELETE", None),
    ] {
        assert_eq!(other(&contract, FORM, body.as_bytes()).as_deref(), expected, "{body}");
        // Rack reads a body without a type as a form.
        assert_eq!(other(&contract, "", body.as_bytes()).as_deref(), expected, "{body}");
        assert_eq!(other(&contract, "text/plain", body.as_bytes()), None, "{body}");
        // PHP cuts the type at a `,` or a blank.
        assert_eq!(other(&contract, &format!("{}, x", FORM.to_uppercase()), body.as_bytes()).as_deref(), expected);
    }
}

#[test]
fn a_multipart_body_names_a_method() {
    let contract = opened(&json!({}));
    let part = |head: &str, value: &str| format!("--b\r\n{head}\r\n\r\n{value}\r\n--b--\r\n");
    for head in [
        "Content-Disposition: form-data; name=\"_method\"",
        "content-disposition : form-data;name=_method",
        "CONTENT-DISPOSITION: form-data; name='_METHOD'; filename=x",
        "Content-Disposition: form-data; name = \"_met\\hod\"",
        "Content-Disposition: form-data; name*=UTF-8''%5Fmethod",
        "Content-Disposition: form-data; name=\" .method\"",
        "Content-Disposition: form-data;\r\n name=\"_method\"",
        "Content-Type: text/plain\r\nContent-Disposition: form-data; name=\"_method\"\r\nX: y",
    ] {
        for (value, expected) in [("DELETE", ALLOW), (" delete", ALLOW), ("PUT", None), ("card", None), ("", None)] {
            let body = part(head, value);
            assert_eq!(other(&contract, PARTS, body.as_bytes()).as_deref(), expected, "{body}");
            let unix = body.replace('\r', "");
            assert_eq!(other(&contract, PARTS, unix.as_bytes()).as_deref(), expected, "{unix}");
            let behind =
                [part("Content-Disposition: form-data; name=\"file\"; filename=\"x\"", "\0\n\n"), body].concat();
            assert_eq!(other(&contract, PARTS, behind.as_bytes()).as_deref(), expected, "{behind}");
        }
    }
    for head in [
        "Content-Disposition: form-data; name=\"method\"",
        "Content-Disposition: form-data; name=\"a_method\"",
        "Content-Disposition: form-data; name=\"a[_method]\"",
        "X: name=\"_method\"",
    ] {
        assert_eq!(other(&contract, PARTS, part(head, "DELETE").as_bytes()), None, "{head}");
    }
    // What is cut off names nothing.
    assert_eq!(other(&contract, PARTS, b"Content-Disposition: form-data; name=\"_method\"\r\n"), None);
    assert_eq!(other(&contract, PARTS, b"a\n_method\n\nDELETE"), None);
}

#[test]
fn a_json_object_names_a_method() {
    let contract = opened(&json!({}));
    for (body, expected) in [
        (r#"{"a":1,"_method":"DELETE"}"#, ALLOW),
        (r#"{"_METHOD":"delete"}"#, ALLOW),
        (r#"{"\u005fm\u0065thod":"\u0044ELETE"}"#, ALLOW),
        (r#"{"\u005Fmetho\u0064":"DELETE"}"#, ALLOW),
        (r#"{"caf\u00e9":1,"_method":"DELETE"}"#, ALLOW),
        (r#"{"caf\u00e9\u2013":"DELETE"}"#, None),
        (r#"{"_method":"PUT","_method":"DELETE"}"#, ALLOW),
        (r#"{"_method":"PUT"}"#, None),
        (r#"{"_method":["DELETE"]}"#, None),
        (r#"{"a":{"_method":"DELETE"}}"#, None),
        (r#"[{"_method":"DELETE"}]"#, None),
        (r#""_method=DELETE""#, None),
        (r#"{"_method":"DELETE""#, None),
    ] {
        assert_eq!(other(&contract, "application/json", body.as_bytes()).as_deref(), expected, "{body}");
        assert_eq!(other(&contract, "application/vnd.api+JSON; x", body.as_bytes()).as_deref(), expected, "{body}");
    }
}

#[test]
fn a_field_that_is_declared_names_what_it_may() {
    let schema = |own: Value| json!({ "type": "object", "properties": { "_method": own } });
    let of = |kind: &str, schema: Value| opened(&json!({ "content": { kind: { "schema": schema } } }));
    for kind in [FORM, "multipart/form-data", "application/json"] {
        let body: &[u8] = match kind {
            FORM => b"_method=DELETE",
            "application/json" => b"{\"_method\":\"DELETE\"}",
            _ => b"Content-Disposition: form-data; name=_method\n\nDELETE",
        };
        for (own, expected) in [
            (json!({ "type": "string" }), None),
            (json!({ "enum": ["PUT", "delete"] }), None),
            (json!({ "const": "DELETE" }), None),
            (json!({ "enum": ["PUT", 1] }), ALLOW),
        ] {
            assert_eq!(other(&of(kind, schema(own.clone())), kind, body).as_deref(), expected, "{kind} {own}");
            let parts = json!({ "allOf": [{ "type": "object" }, { "oneOf": [schema(own.clone())] }] });
            assert_eq!(other(&of(kind, parts), kind, body).as_deref(), expected, "{kind} {own}");
        }
        assert_eq!(other(&of(kind, json!({ "properties": { "method": {} } })), kind, body).as_deref(), ALLOW);
    }
}

#[test]
fn long_bodies_take_linear_time() {
    let contract = opened(&json!({}));
    for part in
        ["_method=x&", ";", "%", "Content-Disposition: name=_method\n", "_", "\\u", "\\u005f", "\n\n", "{\"_method\":"]
    {
        let body = part.repeat(2_000_000 / part.len());
        for kind in [FORM, PARTS, "application/json"] {
            assert_eq!(other(&contract, kind, body.as_bytes()), None, "{part:?}");
        }
    }
}
