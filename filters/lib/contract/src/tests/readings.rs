//! Requests that backends read in another way than a schema does: names that come twice, names in another spelling, character sets,
//! and methods beside the method.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::compile::{Options, compile};
use crate::{BodyCheck, BodyResult, Contract, Found, Head, Matched, Mismatch};

fn opened(document: &Value) -> Contract {
    Contract::open(&compile(&document.to_string(), "", Options { responses: true }).unwrap().image).unwrap()
}

fn matched<'p>(contract: &Contract, method: &str, path: &'p str) -> Matched<'p> {
    match contract.find(method.as_bytes(), path.as_bytes(), false) {
        Found::Operation(matched) => matched,
        other => panic!("{method} {path}: {other:?}"),
    }
}

/// A contract with one body, and components.
fn with_body(schema: &Value, components: &Value) -> Contract {
    let content = json!({ "content": { "application/json": { "schema": schema } } });
    opened(&json!({
        "openapi": "3.1.0",
        "paths": { "/a": { "post": { "requestBody": content, "responses": { "200": content } } } },
        "components": { "schemas": components },
    }))
}

/// The places of a body that are told of.
fn places(contract: &Contract, body: &str, response: bool) -> Vec<String> {
    let operation = matched(contract, "POST", "/a").operation;
    let kind = Some(b"application/json".as_slice());
    let check = if response {
        contract.response_body(operation, 200, kind, true)
    } else {
        contract.request_body(operation, kind, true)
    };
    let BodyCheck::Json(schema) = check else { panic!("{check:?}") };
    match contract.check_body(schema, body.as_bytes(), response) {
        BodyResult::Valid => Vec::new(),
        BodyResult::Invalid(found) => found.into_iter().map(|one| one.place).collect(),
        BodyResult::Unjudged => panic!("{body}"),
    }
}

#[test]
fn a_name_that_comes_twice_is_refused_in_requests() {
    let pet = |kind: &str, bark: &str| json!({ "type": "object", "properties": { "petType": { "const": kind }, "bark": { "type": bark } } });
    let components = json!({ "Cat": pet("Cat", "object"), "Dog": pet("Dog", "string") });
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let schema =
        json!({ "discriminator": { "propertyName": "petType" }, "oneOf": [reference("Cat"), reference("Dog")] });
    let pets = with_body(&schema, &components);
    for (body, wrong) in [
        (r#"{"petType":"Dog","bark":"x"}"#, [].as_slice()),
        (r#"{"petType":"Dog","bark":{"$gt":""}}"#, &["body:/bark"]),
        (r#"{"petType":"Cat","bark":{"$gt":""},"petType":"Dog"}"#, &["body:/petType"]),
        (r#"{"petType":"Cat","pet\u0054ype":"Dog"}"#, &["body:/petType"]),
        (r#"{"petType":"Dog","more":[1,{"a":{"b":1,"c":2,"b":1}}]}"#, &["body:/more/1/a/b"]),
        // The same name in different objects.
        (r#"{"petType":"Dog","more":[{"a":1},{"a":1,"b":{"a":2}}],"a":3}"#, &[]),
    ] {
        assert_eq!(places(&pets, body, false), wrong, "{body}");
    }
    // A response is checked for what it has, as before.
    assert_eq!(places(&pets, r#"{"petType":"Dog","bark":"x","petType":"Dog"}"#, true), [""; 0]);
    let not = with_body(&json!({ "not": { "required": ["a"], "properties": { "a": { "const": 1 } } } }), &json!({}));
    assert_eq!(places(&not, r#"{"a":2,"a":1}"#, false), ["body:/a"]);
    let condition = json!({ "if": { "properties": { "a": { "const": 1 } } }, "then": { "required": ["b"] } });
    assert_eq!(places(&with_body(&condition, &json!({})), r#"{"a":2,"a":1}"#, false), ["body:/a"]);
    // As many names as a body may have are looked through.
    let names: Vec<String> = (0..100_000).map(|place| format!("\"n{place}\":1")).collect();
    let object = with_body(&json!({ "type": "object" }), &json!({}));
    assert_eq!(places(&object, &format!("{{{}}}", names.join(",")), false), [""; 0]);
    assert_eq!(places(&object, &format!("{{{},\"n7\":1}}", names.join(",")), false), ["body:/n7"]);
}

#[test]
fn a_member_in_another_case_is_checked_as_the_property() {
    let role =
        json!({ "type": "object", "properties": { "role": { "enum": ["user"] }, "desk": { "type": "integer" } } });
    let contract = with_body(&role, &json!({}));
    for (body, wrong) in [
        (r#"{"role":"user"}"#, [].as_slice()),
        (r#"{"Role":"user","DESK":1,"other":"admin"}"#, &[]),
        (r#"{"Role":"admin"}"#, &["body:/Role"]),
        (r#"{"role":"user","ROLE":"admin","rolE":"user"}"#, &["body:/ROLE"]),
        (r#"{"\u0052ole":"admin"}"#, &["body:/Role"]),
        // Go takes the long s and the sign for Kelvin for letters of ASCII.
        ("{\"De\u{17f}\u{212a}\":\"x\"}", &["body:/De\u{17f}\u{212a}"]),
        (r#"{"roles":"admin"}"#, &[]),
    ] {
        assert_eq!(places(&contract, body, false), wrong, "{body}");
        assert_eq!(places(&contract, body, true), [""; 0], "{body}");
    }
    let accents = json!({ "type": "object", "properties": { "\u{e9}tat": { "type": "integer" } } });
    assert_eq!(places(&with_body(&accents, &json!({})), "{\"\u{c9}TAT\":\"x\"}", false), ["body:/\u{c9}TAT"]);
    // Nested, and in alternatives.
    let nested = json!({ "type": "array", "items": { "oneOf": [role, { "type": "integer" }] } });
    assert_eq!(places(&with_body(&nested, &json!({})), r#"[1,{"Role":"user"},{"Role":"admin"}]"#, false).len(), 1);
}

#[test]
fn a_member_that_is_declared_in_its_own_case_is_no_other_one() {
    let number = json!({ "properties": { "id": { "type": "integer" } } });
    let text = json!({ "properties": { "ID": { "type": "string" } } });
    let body = r#"{"ID":"x","id":1}"#;
    let components = json!({ "Text": text });
    for schema in [
        json!({ "properties": { "id": { "type": "integer" }, "ID": { "type": "string" } } }),
        json!({ "allOf": [number, { "$ref": "#/components/schemas/Text" }] }),
        json!({ "anyOf": [text], "properties": { "id": { "type": "integer" } } }),
        json!({ "patternProperties": { "^[A-Z]+$": { "type": "string" } }, "properties": { "id": { "type": "integer" } } }),
    ] {
        let contract = with_body(&schema, &components);
        assert_eq!(places(&contract, body, false), [""; 0], "{schema}");
        assert_eq!(places(&contract, r#"{"Id":"x"}"#, false).len(), 1, "{schema}");
    }
    // What `not` and `if` ask is asked of the exact names.
    let not = json!({ "not": { "properties": { "id": { "const": 1 } } } });
    assert_eq!(places(&with_body(&not, &json!({})), r#"{"ID":2}"#, false), ["body"]);
}

fn with_parameters(parameters: &Value) -> Contract {
    opened(&json!({ "openapi": "3.1.0", "paths": { "/a": { "get": { "parameters": parameters } } } }))
}

fn of_query(contract: &Contract, query: &str, reject_unknown: bool) -> Vec<String> {
    let head = Head { query: query.as_bytes(), header: &|_| None, reject_unknown };
    let found = contract.check_parameters(&matched(contract, "GET", "/a"), &head);
    found.iter().map(|one| format!("{} {}", one.kind.word(), one.place)).collect()
}

fn query(name: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "schema": schema })
}

#[test]
fn parameters_in_another_spelling_do_not_match() {
    let contract = with_parameters(&json!([
        query("id", &json!({ "type": "integer" })),
        query("ids", &json!({ "type": "array", "items": { "type": "integer" } })),
        query("rows", &json!({ "type": "array", "items": { "type": "object" } })),
        query("any", &json!({})),
        query("page[size]", &json!({ "type": "integer" })),
        query("page", &json!({ "type": "integer" })),
        query("q", &json!({ "type": "string" })),
        query("user_id", &json!({ "type": "integer" })),
        query("sort.by", &json!({ "type": "string" })),
        query("where", &json!({ "type": "object", "properties": { "age": { "type": "integer" } }, "additionalProperties": false })),
        { "name": "filter", "in": "query", "style": "deepObject", "schema": { "type": "object", "properties": {
            "price": { "type": "integer" }, "tags": { "type": "array", "items": { "type": "integer" } },
            "range": { "type": "object" } } } },
        { "name": "closed", "in": "query", "style": "deepObject",
            "schema": { "type": "object", "additionalProperties": { "type": "integer" } } },
        { "name": "json", "in": "query", "content": { "application/json": { "schema": { "type": "object" } } } },
    ]));
    for (text, wrong) in [
        ("id=1&other=2&utm_source=x&_=7", None),
        ("id[$ne]=1", Some("id")),
        ("id%5B$ne%5D=1", Some("id")),
        ("id[]=1", Some("id")),
        ("%20id=x", Some("id")),
        ("+%09id=x", Some("id")),
        ("ID=x", Some("id")),
        ("ID=1", Some("id")),
        ("id%00x=1", Some("id")),
        ("identity=x&i=1&id.x=1&xid=2&id_=3", None),
        // To PHP a `.`, a blank and a bracket without an end are a `_`.
        ("user_id=1&user.id=x", Some("user_id")),
        ("user%20id=x", Some("user_id")),
        ("user+ID=x", Some("user_id")),
        ("user%5Bid=x", Some("user_id")),
        ("+user[id=x", Some("user_id")),
        ("user.id[]=x", Some("user_id")),
        ("user[id]=x&userid=x&user-id=x&user__id=x&my.user.id=x", None),
        ("sort.by=x&sort=x&sort.by.name=x", None),
        ("sort_by=x", Some("sort.by")),
        ("page.size=x&page_number=x", None),
        // Rack and qs leave out brackets around a name.
        ("[id]=x", Some("id")),
        ("%5Bid%5D=x", Some("id")),
        ("]id=x", Some("id")),
        ("id]=x", Some("id")),
        ("[[id]]=x", Some("id")),
        ("[id]x=1", Some("id")),
        ("[id][$ne]=1", Some("id")),
        ("+[ID=x", Some("id")),
        ("[ids][]=x", Some("ids")),
        ("any]=x", Some("any")),
        ("[page][size]=x", Some("page[size]")),
        ("[filter][price]=x", Some("filter")),
        ("[other]=x&[]=x&]=x&[=x&[x][id]=x&other]=x", None),
        // A list in brackets is one, as axios and PHP write it.
        ("ids[]=1&ids[]=2", None),
        ("ids[0]=1&ids=2", None),
        ("ids[]=1&ids[]=x", Some("ids")),
        ("ids[7]=x", Some("ids")),
        ("ids[$in]=1", Some("ids")),
        ("rows[0][name]=x", None),
        ("rows[$where]=x", Some("rows")),
        ("rows[0].name=x", None),
        ("rows[0]x=1", Some("rows")),
        ("any[x]=1&any[]=x", None),
        ("ANY[x]=1", Some("any")),
        ("page[size]=1&page=2", None),
        ("page[size]=x", Some("page[size]")),
        ("Page[size]=1", Some("page[size]")),
        ("page[size][$gt]=1", Some("page[size]")),
        ("page[number]=1", Some("page")),
        ("age=1", None),
        ("Age=1", Some("age")),
        ("age[$gt]=1", Some("age")),
        ("filter[price]=1&filter[other]=x", None),
        ("filter[price][$gt]=1", Some("filter")),
        ("filter[PRICE][$gt]=1", Some("filter")),
        ("filter[price]x[$gt]=1", Some("filter")),
        ("filter[PRICE]=x", Some("filter")),
        // PHP and qs leave out what is behind the last bracket, and Rack does without that one.
        ("filter[price]x=1", Some("filter")),
        ("filter[price]x=y", Some("filter")),
        ("filter%5Bprice%5Dx=y", Some("filter")),
        ("filter[price].x=y", Some("filter")),
        ("filter[range]x=1", Some("filter")),
        ("filter[other]x=1", Some("filter")),
        ("filter[price=y", Some("filter")),
        ("filter[=y", Some("filter")),
        ("closed[x]y=1", Some("closed")),
        ("a=1;closed[x]y=1", Some("closed")),
        ("filter[tags][]=1&filter[tags][1]=2", None),
        ("filter[tags][]=x", Some("filter")),
        ("filter[tags][$in]=1", Some("filter")),
        ("filter[range][$gt]=1&filter[other][x]=1", None),
        ("Filter[price]=1", Some("filter")),
        ("closed[x]=1", None),
        ("closed[x][$gt]=1", Some("closed")),
        (r#"json={"x":1}"#, None),
        (r#"json={"x":1,"x":2}"#, Some("json")),
        ("json[x]=1", Some("json")),
        // Some backends part a query at `;` as well.
        ("a=1;id=x", Some("id")),
        ("a=1;id=2", None),
        ("a=1;other=x", None),
        ("a=1&amp;id=2", None),
        ("q=x;id", None),
        ("q=see;id=5;mode=x", None),
        ("a=1;id[$ne]=2", Some("id")),
        ("a=1;filter[price][$gt]=2", Some("filter")),
    ] {
        let expected: Vec<String> = wrong.map(|name| format!("invalid_parameter query:{name}")).into_iter().collect();
        assert_eq!(of_query(&contract, text, false), expected, "{text}");
    }
}

#[test]
fn an_unknown_parameter_and_another_spelling_are_told_apart() {
    let contract = with_parameters(&json!([query("id", &json!({ "type": "integer" }))]));
    assert_eq!(
        of_query(&contract, "ID=1&more=2", true),
        ["invalid_parameter query:id", "unknown_parameter query:more"]
    );
    assert_eq!(of_query(&contract, "id=1;more=2", true), ["invalid_parameter query:id"]);
    assert_eq!(of_query(&contract, "ID=1&iD=2&id[]=3", false), ["invalid_parameter query:id"]);
    // A parameter that takes any name takes other spellings of its own fields.
    let open = json!({ "type": "object", "properties": { "age": { "type": "string" } }, "additionalProperties": { "type": "string" } });
    let open = with_parameters(&json!([query("free", &open), query("id", &json!({ "type": "integer" }))]));
    assert_eq!(of_query(&open, "AGE=1&age[x]=2", true), [""; 0]);
    assert_eq!(of_query(&open, "ID=1", true), ["invalid_parameter query:id"]);
    // Where a list may be something else it is a list, if it is written as one.
    let either = json!({ "oneOf": [{ "type": "string", "maxLength": 3 }, { "type": "array", "items": { "type": "string", "enum": ["a"] } }] });
    let either = with_parameters(&json!([query("v", &either)]));
    for (text, valid) in [("v=abc", true), ("v[]=a&v=a", true), ("v=abc&v[]=abc", false), ("v[]=b", false)] {
        assert_eq!(of_query(&either, text, false).is_empty(), valid, "{text}");
    }
}

#[test]
fn json_in_a_character_set_that_is_not_read_is_no_declared_media_type() {
    let content = json!({ "application/json": { "schema": { "type": "object" } }, "text/plain": {} });
    let contract = opened(
        &json!({ "openapi": "3.1.0", "paths": { "/a": { "post": { "requestBody": { "content": content } } } } }),
    );
    let operation = matched(&contract, "POST", "/a").operation;
    for (kind, readable) in [
        ("application/json", true),
        ("application/json; charset=utf-8", true),
        ("application/json;charset=UTF8", true),
        ("application/json; Charset=\"utf-8\"", true),
        ("application/json; charset='US-ASCII' ; a=b", true),
        ("application/json; charset=ISO-8859-1", true),
        ("application/json; charset=latin1", true),
        ("application/json; charset=ascii", true),
        ("application/json; charset=", true),
        ("application/json; charset=utf-8; charset=utf-8", true),
        ("application/json; profile=\"https://a.example/charset\"", true),
        ("application/json; charset=utf-7", false),
        ("application/json; CHARSET=\"UTF-16LE\"", false),
        ("application/json; charset = utf-32", false),
        ("application/json; charset=utf-8; charset=utf-7", false),
        ("application/json; charset=\"utf-8", false),
        ("application/json; charset*=utf-8''utf-7", false),
        ("application/json; charset=ibm037", false),
        // It is not read as JSON.
        ("text/plain; charset=utf-7", true),
    ] {
        let check = contract.request_body(operation, Some(kind.as_bytes()), true);
        let wrong = matches!(&check, BodyCheck::Wrong(violation) if violation.kind == Mismatch::UnsupportedMediaType);
        assert_eq!(!wrong, readable, "{kind}: {check:?}");
    }
    assert_eq!(contract.request_body(operation, Some(b"application/json; charset=utf-7"), false), BodyCheck::None);
}

#[test]
fn a_method_beside_the_method_has_to_be_declared() {
    let overriding = json!([
        { "name": "_method", "in": "query", "schema": { "type": "string" } },
        { "name": "X-HTTP-Method-Override", "in": "header", "schema": { "type": "string" } },
    ]);
    let contract = opened(&json!({ "openapi": "3.1.0", "paths": {
        "/orders/{id}": { "get": {}, "post": {}, "put": {} },
        "/own": { "post": { "parameters": overriding } },
    } }));
    let allow = Some("GET, HEAD, POST, PUT");
    for (method, target, header, expected) in [
        ("POST", "/orders/7", None, None),
        ("POST", "/orders/7", Some(("x-http-method-override", "DELETE")), allow),
        ("POST", "/orders/7", Some(("x-http-method", " delete ")), allow),
        ("POST", "/orders/7", Some(("x-method-override", "post,Delete")), allow),
        ("POST", "/orders/7", Some(("x-http-method-override", "Put")), None),
        ("POST", "/orders/7", Some(("x-http-method-override", "HEAD, post")), None),
        ("POST", "/orders/7", Some(("x-http-method-override", "")), None),
        ("POST", "/orders/7", Some(("x-method", "DELETE")), None),
        ("POST", "/orders/7?_method=DELETE", None, allow),
        ("POST", "/orders/7?_method=put&_method=%20dele%74e", None, allow),
        ("POST", "/orders/7?a=1;_method=DELETE", None, allow),
        ("POST", "/orders/7?_METHOD=DELETE", None, allow),
        ("POST", "/orders/7?+.method=DELETE", None, allow),
        ("POST", "/orders/7?_method%00x=DELETE", None, allow),
        ("POST", "/orders/7?method=DELETE&a_method=DELETE&_method[]=DELETE", None, None),
        ("POST", "/orders/7?_method=PUT", None, None),
        ("POST", "/orders/7?_method=express", None, None),
        // Some take the header whatever the method is, and the parameter with POST alone.
        ("PUT", "/orders/7", Some(("x-http-method-override", "DELETE")), allow),
        ("GET", "/orders/7", Some(("x-http-method", "delete")), allow),
        ("PUT", "/orders/7?_method=DELETE", None, None),
        ("PUT", "/orders/7", Some(("x-http-method-override", "put")), None),
        ("HEAD", "/orders/7", Some(("x-http-method-override", "GET")), None),
        ("POST", "/own?_method=DELETE", Some(("x-http-method-override", "DELETE")), None),
        ("POST", "/own", Some(("x-http-method", "DELETE")), Some("POST")),
    ] {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let own = |name: &str| header.filter(|(own, _)| *own == name).map(|(_, value)| Cow::Borrowed(value.as_bytes()));
        let head = Head { query: query.as_bytes(), header: &own, reject_unknown: false };
        let own = matched(&contract, method, path);
        let found = contract.named_in_head(&own, method.as_bytes(), path.as_bytes(), &head);
        assert_eq!(found.allow.as_deref(), expected, "{method} {target} {header:?}");
        assert!(!found.operations.contains(&own.operation), "{method} {target} {header:?}");
        let put = matched(&contract, "PUT", "/orders/7").operation;
        let names_put = method == "POST"
            && (target.contains("PUT") || target.contains("put") || header.is_some_and(|(_, value)| value == "Put"));
        assert_eq!(found.operations.contains(&put), names_put, "{method} {target} {header:?}");
    }
}

#[test]
fn the_methods_of_one_header_are_bounded() {
    let contract =
        opened(&json!({ "openapi": "3.1.0", "paths": { "/orders/{id}": { "get": {}, "post": {}, "put": {} } } }));
    let path = b"/orders/7";
    let names = |first: &str| {
        let mut names = vec![first.to_owned()];
        names.extend((0..20_000).map(|name| format!("M{name}")));
        names.join(",")
    };
    // Of names of declared methods alone there are never too many.
    let declared = ["put", "get", "head", " PUT ", "post"].join(",").repeat(1_000).replace("postput", "post,put");
    for (value, allowed) in [(names("PUT"), false), (names("DELETE"), false), (declared, true)] {
        let own = |name: &str| (name == "x-http-method").then_some(Cow::Borrowed(value.as_bytes()));
        let head = Head { query: b"", header: &own, reject_unknown: false };
        let found = contract.named_in_head(&matched(&contract, "POST", "/orders/7"), b"POST", path, &head);
        assert_eq!(found.allow.is_none(), allowed, "{}", value.get(..40).unwrap_or_default());
        let put = matched(&contract, "PUT", "/orders/7").operation;
        assert_eq!(found.operations.first() == Some(&put), !value.starts_with("DELETE"));
    }
}

#[test]
fn a_content_type_is_one_type() {
    let content = json!({ "application/json": { "schema": { "type": "object" } }, "application/x-www-form-urlencoded": {},
            "multipart/form-data": {}, "text/*": {} });
    let both = opened(
        &json!({ "openapi": "3.1.0", "paths": { "/a": { "post": { "requestBody": { "content": content } } } } }),
    );
    let any = json!({ "*/*": {} });
    let any =
        opened(&json!({ "openapi": "3.1.0", "paths": { "/a": { "post": { "requestBody": { "content": any } } } } }));
    let check = |contract: &Contract, kind: &str| {
        let operation = matched(contract, "POST", "/a").operation;
        match contract.request_body(operation, Some(kind.as_bytes()), true) {
            BodyCheck::Wrong(wrong) => Some(wrong.kind),
            _ => None,
        }
    };
    let wrong = Some(Mismatch::UnsupportedMediaType);
    for (kind, of_both, of_any) in [
        ("application/json", None, None),
        ("Application/JSON; charset=utf-8; profile=\"a/json\"", None, None),
        ("multipart/form-data; boundary=\"a, b\"", None, None),
        ("text/plain;charset=utf-8", None, None),
        ("", wrong, None),
        ("application/x-www-form-urlencoded; charset=UTF-8", None, None),
        ("application/x-www-form-urlencoded; charset=\"windows-1252\"", None, None),
        ("application/x-www-form-urlencoded; charset=Shift_JIS", None, None),
        ("application/x-www-form-urlencoded; charset=utf-16", wrong, wrong),
        ("application/x-www-form-urlencoded; charset=utf-7", wrong, wrong),
        ("application/x-www-form-urlencoded; charset=ibm037", wrong, wrong),
        ("text/plain; charset=utf-16", None, None),
        // Two headers, and what one parser cuts and another one does not.
        ("text/plain,application/json", wrong, wrong),
        ("text/plain application/json", wrong, wrong),
        ("text/x/json", wrong, wrong),
        ("text/", wrong, wrong),
        ("text/plain\u{a0}", wrong, wrong),
        // Laravel looks for JSON in all of the header.
        ("text/plain; x=application/json", wrong, None),
        ("multipart/form-data; boundary=a/JSON", wrong, None),
        ("multipart/form-data; boundary=a; type=\"a+json\"", wrong, None),
        ("multipart/related; boundary=a; type=\"application/json\"", wrong, None),
    ] {
        assert_eq!((check(&both, kind), check(&any, kind)), (of_both, of_any), "{kind}");
    }
    // What is told of the first part of a multipart body is none of them.
    let content = json!({ "application/json": { "schema": { "type": "object" } }, "multipart/related": {} });
    let related = opened(
        &json!({ "openapi": "3.1.0", "paths": { "/a": { "post": { "requestBody": { "content": content } } } } }),
    );
    for (kind, expected) in [
        ("multipart/related; type=\"application/dicom+json\"; boundary=a", None),
        ("multipart/related; boundary=a; Type = application/fhir+json", None),
        ("multipart/related; boundary=a/json; type=\"application/dicom+json\"", wrong),
        ("multipart/related; subtype=\"application/dicom+json\"", wrong),
        ("multipart/related; start-info=\"application/json\"", wrong),
    ] {
        assert_eq!(check(&related, kind), expected, "{kind}");
    }
}

#[test]
fn a_form_in_a_character_set_that_is_not_read_is_refused_where_no_body_is_declared() {
    let contract = opened(&json!({ "openapi": "3.1.0", "paths": { "/a": {
        "post": {}, "put": { "requestBody": { "content": {} } },
        "patch": { "requestBody": { "required": true, "content": {} } } } } }));
    for (method, readable) in
        [("POST", BodyCheck::None), ("PUT", BodyCheck::None), ("PATCH", BodyCheck::Required(None))]
    {
        let operation = matched(&contract, method, "/a").operation;
        let check = |kind: &str| contract.request_body(operation, Some(kind.as_bytes()), true);
        for kind in ["", "text/plain; charset=ibm037", "application/x-www-form-urlencoded; charset=utf-8"] {
            assert_eq!(check(kind), readable, "{method} {kind}");
        }
        for kind in [
            "application/x-www-form-urlencoded; charset=ibm037",
            "Application/X-WWW-Form-Urlencoded;charset=\"UTF-16\"",
            "application/x-www-form-urlencoded, text/plain; charset=cp500",
        ] {
            let check = check(kind);
            let is_wrong =
                matches!(&check, BodyCheck::Wrong(violation) if violation.kind == Mismatch::UnsupportedMediaType);
            assert!(is_wrong, "{method} {kind}: {check:?}");
        }
        let empty = contract.request_body(operation, Some(b"application/x-www-form-urlencoded; charset=ibm037"), false);
        assert_eq!(matches!(empty, BodyCheck::Wrong(_)), method == "PATCH", "{empty:?}");
    }
}
