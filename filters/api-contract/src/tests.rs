use contract::compile::{Options, compile};
use exchange::fake::FakeHost;
use exchange::{Category, Refusal, ReplyBody, Request, Response};
use serde_json::{Value, json};
use snapshot::content_hash;

use super::*;

mod preflights;

const SHOP: &str = r#"
openapi: 3.0.3
paths:
  /items:
    get:
      parameters: [{name: limit, in: query, schema: {type: integer}}]
      responses: {"200": {description: ok, content: {application/json: {schema: {type: array}}}}}
    post:
      requestBody: {required: true, content: {application/json: {schema: {type: object, required: [name], properties: {name: {type: string}, tags: {type: array, items: {type: string}}}}}}}
      responses: {"201": {description: ok}}
    put:
      requestBody: {content: {application/json: {schema: {type: object}}}}
"#;

fn plugin(change: impl FnOnce(&mut ApiContractStep)) -> Box<dyn Plugin> {
    let image = compile(SHOP, "/api", Options { responses: true }).unwrap().image;
    let hash = content_hash(&image);
    let mut step = ApiContractStep {
        contract: hash.to_vec(),
        name: "shop".to_owned(),
        enforce: true,
        max_body_bytes: 1024,
        unknown_path_weight: 20.0,
        violation_weight: 30.0,
        ..ApiContractStep::default()
    };
    change(&mut step);
    let parts = [(hash.as_slice(), image.as_slice())];
    build(&step.encode_to_vec(), &mut Build::new(parts.into_iter())).unwrap()
}

fn exchange(method: &str, path: &str, headers: &[(&str, &str)]) -> Exchange {
    let mut all = vec![(":method", method), (":path", path)];
    all.extend(headers);
    let (request, _) = Request::read(Headers::new(&all), b"HTTP/1.1".to_vec(), false);
    Exchange { request, ..Exchange::default() }
}

fn refused(verdict: Verdict) -> Refusal {
    match verdict {
        Verdict::Refuse(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn headers(plugin: &dyn Plugin, exchange: &mut Exchange, has_body: bool, host: &FakeHost) -> Verdict {
    plugin.request(exchange, has_body, &mut Slot::default(), host)
}

const JSON: (&str, &str) = ("content-type", "application/json");

fn post(plugin: &dyn Plugin, kind: &[(&str, &str)], body: &[u8], complete: bool, host: &FakeHost) -> Verdict {
    let mut exchange = exchange("POST", "/api/items", kind);
    let mut slot = Slot::default();
    match plugin.request(&mut exchange, true, &mut slot, host) {
        Verdict::NeedBody(need) => {
            assert_eq!(need.limit, 1024);
            plugin.request_body(&mut exchange, Body { bytes: body, complete }, &mut slot, host)
        }
        other => other,
    }
}

#[test]
fn the_body_of_an_upgrade_does_not_match() {
    let (plugin, host) = (plugin(|_| {}), FakeHost::at(1000));
    assert_eq!(refused(post(&*plugin, &[JSON], b"", false, &host)).status, 400);
    assert_eq!(refused(post(&*plugin, &[JSON], b"{", false, &host)).status, 413);
}

#[test]
fn each_mismatch_has_its_status() {
    let (plugin, host) = (plugin(|step| step.reject_unknown_query_params = true), FakeHost::at(1000));
    for (method, path, has_body, status) in [
        ("GET", "/api/other", false, 404),
        ("GET", "/items", false, 404),
        ("DELETE", "/api/items", false, 405),
        ("OPTIONS", "/api/items", false, 405),
        ("GET", "/api/items?limit=x", false, 400),
        ("GET", "/api/items?more=1", false, 400),
        ("POST", "/api/items", false, 400),
        ("POST", "/api/items", true, 415),
    ] {
        let mut exchange = exchange(method, path, &[]);
        let refusal = refused(headers(&*plugin, &mut exchange, has_body, &host));
        assert_eq!((refusal.status, refusal.category), (status, Category::Api), "{method} {path}");
        let allow = refusal.headers.iter().find(|(name, _)| name == "allow").map(|(_, value)| value.as_slice());
        assert_eq!(allow, (status == 405).then_some(b"GET, HEAD, POST, PUT".as_slice()));
        assert_eq!(refusal.body, ReplyBody::Text);
        assert!(!refusal.scored && exchange.score.total() == 0.0);
    }
    assert_eq!(headers(&*plugin, &mut exchange("HEAD", "/api/items?limit=5", &[]), false, &host), Verdict::Pass);
    let cors = [("origin", "https://a.example"), ("access-control-request-method", "PUT")];
    assert_eq!(headers(&*plugin, &mut exchange("OPTIONS", "/api/items", &cors), false, &host), Verdict::Pass);
}

#[test]
fn bodies_are_checked() {
    let (plugin, host) = (plugin(|_| {}), FakeHost::at(1000));
    assert_eq!(post(&*plugin, &[JSON], br#"{"name":"a"}"#, true, &host), Verdict::Pass);
    for (body, complete, status) in [
        (b"".as_slice(), true, 400),
        (b"{\"name\":1}", true, 400),
        (b"{}", true, 400),
        (b"{", true, 400),
        (b"{\"name\":", false, 413),
    ] {
        assert_eq!(refused(post(&*plugin, &[JSON], body, complete, &host)).status, status, "{body:?}");
    }
    let long = [JSON, ("content-length", "1025")];
    assert_eq!(refused(post(&*plugin, &long, b"", true, &host)).status, 413);
    let coded = [JSON, ("content-encoding", "zstd")];
    assert_eq!(refused(post(&*plugin, &coded, b"{}", true, &host)).status, 415);
    let gzip = [JSON, ("content-encoding", "gzip")];
    assert_eq!(refused(post(&*plugin, &gzip, b"{}", true, &host)).status, 400);
}

#[test]
fn a_method_beside_the_method_is_refused_as_that_method() {
    for enforce in [true, false] {
        let (plugin, host) = (plugin(|step| step.enforce = enforce), FakeHost::at(1000));
        for (path, headers) in
            [("/api/items", &[JSON, ("x-http-method-override", "Delete")][..]), ("/api/items?_method=DELETE", &[JSON])]
        {
            let verdict = plugin.request(&mut exchange("POST", path, headers), true, &mut Slot::default(), &host);
            if enforce {
                let refusal = refused(verdict);
                assert_eq!(refusal.status, 405);
                assert!(
                    refusal.headers.iter().any(|(name, value)| name == "allow" && value == b"GET, HEAD, POST, PUT")
                );
            } else {
                assert!(matches!(verdict, Verdict::NeedBody(_)));
                assert_eq!(host.events_json()[0]["threat"]["tags"], json!(["api:method_not_allowed"]));
            }
        }
        let declared = [JSON, ("x-http-method-override", "GET")];
        assert_eq!(post(&*plugin, &declared, br#"{"name":"a"}"#, true, &host), Verdict::Pass);
    }
}

#[test]
fn json_in_a_character_set_that_is_not_read_is_refused() {
    let (enforced, host) = (plugin(|_| {}), FakeHost::at(1000));
    let foreign = [("content-type", "application/json; charset=utf-7")];
    let body = br#"{"name":"a","+AG4-ame":1}"#;
    assert_eq!(refused(post(&*enforced, &foreign, body, true, &host)).status, 415);
    let plain = [("content-type", "application/json; charset=UTF-8")];
    assert_eq!(post(&*enforced, &plain, br#"{"name":"a"}"#, true, &host), Verdict::Pass);
    let monitoring = plugin(|step| step.enforce = false);
    assert_eq!(post(&*monitoring, &foreign, body, true, &host), Verdict::Pass);
    assert_eq!(host.events_json()[0]["threat"]["tags"], json!(["api:unsupported_media_type"]));
}

#[test]
fn an_optional_body_that_turns_out_empty_is_none() {
    let (plugin, host) = (plugin(|_| {}), FakeHost::at(1000));
    let send = |headers: &[(&str, &str)], body: &[u8], complete: bool| {
        let (mut exchange, mut slot) = (exchange("PUT", "/api/items", headers), Slot::default());
        match plugin.request(&mut exchange, true, &mut slot, &host) {
            Verdict::NeedBody(need) => {
                assert_eq!(need.limit, 1);
                plugin.request_body(&mut exchange, Body { bytes: body, complete }, &mut slot, &host)
            }
            other => other,
        }
    };
    assert_eq!(send(&[], b"", true), Verdict::Pass);
    assert_eq!(send(&[("content-type", "text/plain")], b"", true), Verdict::Pass);
    for (headers, body, complete) in [
        (&[][..], b"x".as_slice(), true),
        (&[], b"x", false),
        // The body of an upgrade.
        (&[], b"", false),
        (&[("content-type", "application/json; charset=utf-7")], b"{", false),
    ] {
        assert_eq!(refused(send(headers, body, complete)).status, 415, "{headers:?} {body:?}");
    }
    // An announced one is refused at once, and so is one that streams.
    let announced = exchange("PUT", "/api/items", &[("content-length", "5")]);
    let mut streaming = exchange("PUT", "/api/items", &[]);
    streaming.request.streaming = true;
    for mut exchange in [announced, streaming] {
        assert_eq!(refused(headers(&*plugin, &mut exchange, true, &host)).status, 415);
    }
}

#[test]
fn errors_are_exposed_and_scored_where_asked() {
    let step = |step: &mut ApiContractStep| (step.expose_errors, step.contribute) = (true, true);
    let (plugin, host) = (plugin(step), FakeHost::at(1000));
    let mut wrong = exchange("GET", "/api/items?limit=x", &[]);
    let refusal = refused(headers(&*plugin, &mut wrong, false, &host));
    assert!(refusal.scored && wrong.score.total() == 30.0);
    let ReplyBody::Bytes { content_type: "application/json", bytes } = refusal.body else { panic!() };
    let violations =
        json!([{ "kind": "invalid_parameter", "where": "query:limit", "detail": "expected the type integer" }]);
    let expected = json!({ "error": "contract_violation", "violations": violations });
    assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), expected);
    assert_eq!(wrong.score.tags(), ["api:invalid_parameter"]);
    let mut unknown = exchange("GET", "/x", &[]);
    refused(headers(&*plugin, &mut unknown, false, &host));
    assert_eq!(unknown.score.total(), 20.0);
}

#[test]
fn a_body_counts_once_in_however_many_places_it_is_wrong() {
    let change = |step: &mut ApiContractStep| (step.enforce, step.contribute) = (false, true);
    let (plugin, host) = (plugin(change), FakeHost::at(1000));
    let (mut wrong, mut slot) = (exchange("POST", "/api/items", &[JSON]), Slot::default());
    assert!(matches!(plugin.request(&mut wrong, true, &mut slot, &host), Verdict::NeedBody(_)));
    let body = Body { bytes: br#"{"tags":[1,"a",2],"name":7}"#, complete: true };
    assert_eq!(plugin.request_body(&mut wrong, body, &mut slot, &host), Verdict::Pass);
    assert_eq!(wrong.score.total(), 30.0);
    let events = host.events_json();
    assert_eq!(events.len(), 1);
    let signals = events[0]["threat"]["signals"].as_array().unwrap();
    let details: Vec<&str> = signals.iter().map(|signal| signal["detail"].as_str().unwrap()).collect();
    assert_eq!(
        details,
        [
            "body:/tags/0: expected the type string",
            "body:/tags/2: expected the type string",
            "body:/name: expected the type string",
        ]
    );
    let message = events[0]["message"].as_str().unwrap();
    assert!(details.iter().all(|detail| message.contains(detail)), "{message}");
}

#[test]
fn bodies_up_to_the_limit_are_checked() {
    let (plugin, host) = (plugin(|_| {}), FakeHost::at(1000));
    let padded = |length: usize| {
        let body = br#"{"name":"a"}"#.to_vec();
        [vec![b' '; length - body.len()], body].concat()
    };
    let announced = |length: &'static str| [JSON, ("content-length", length)];
    assert_eq!(post(&*plugin, &announced("1024"), &padded(1024), true, &host), Verdict::Pass);
    assert_eq!(refused(post(&*plugin, &announced("1025"), &padded(1025), true, &host)).status, 413);
    // Without a length, what the gateway holds of a longer body is not all of it.
    assert_eq!(refused(post(&*plugin, &[JSON], &padded(1024), false, &host)).status, 413);
}

#[test]
fn monitoring_tells_once_a_minute_and_refuses_nothing() {
    let (plugin, host) = (plugin(|step| step.enforce = false), FakeHost::at(1_000_000));
    let send = |path: &str| assert_eq!(headers(&*plugin, &mut exchange("GET", path, &[]), false, &host), Verdict::Pass);
    send("/api/items?limit=x");
    send("/api/items?limit=y");
    assert_eq!(host.events_json().len(), 1);
    let event = &host.events_json()[0];
    assert_eq!(event["event"]["category"], "api");
    assert_eq!(event["event"]["outcome"], "observed");
    assert_eq!(event["threat"]["tags"], json!(["api:invalid_parameter"]));
    assert_eq!((&event["decision"]["action"], &event["decision"]["dry_run"]), (&json!("deny"), &json!(true)));
    assert!(event["message"].as_str().unwrap().contains("would have been refused with 400"), "{event}");
    assert!(!event.to_string().contains("limit=y"));
    send("/api/none");
    assert_eq!(host.events_json().len(), 2);
    host.advance(60_001);
    send("/api/items?limit=x");
    assert_eq!(host.events_json().len(), 3);
    assert_eq!(post(&*plugin, &[JSON], b"{}", true, &host), Verdict::Pass);
    assert_eq!(host.events_json()[3]["threat"]["tags"], json!(["api:invalid_body"]));
}

fn answer(plugin: &dyn Plugin, status: &str, kind: Option<&str>, body: &[u8], host: &FakeHost) -> Verdict {
    let (mut exchange, mut slot) = (exchange("GET", "/api/items", &[]), Slot::default());
    assert_eq!(plugin.request(&mut exchange, false, &mut slot, host), Verdict::Pass);
    let mut headers = vec![(":status", status)];
    headers.extend(kind.map(|kind| ("content-type", kind)));
    exchange.response = Some(Response::read(Headers::new(&headers), exchange::Opening::default()));
    match plugin.response(&mut exchange, true, &mut slot, host) {
        Verdict::NeedBody(_) => {
            plugin.response_body(&mut exchange, Body { bytes: body, complete: true }, &mut slot, host)
        }
        other => other,
    }
}

#[test]
fn responses_are_reported_and_never_refused() {
    let (checks, host) = (plugin(|step| step.validate_responses = true), FakeHost::at(1000));
    let json = Some("application/json");
    for (status, kind, body, tag) in [
        ("200", json, b"[]".as_slice(), None),
        ("500", json, b"[]", Some("api:undeclared_status")),
        ("200", Some("text/html"), b"", Some("api:undeclared_media_type")),
        ("200", json, b"{}", Some("api:invalid_response")),
    ] {
        let before = host.events_json().len();
        assert_eq!(answer(&*checks, status, kind, body, &host), Verdict::Pass);
        let events = host.events_json();
        let told = events.get(before).map(|event| event["threat"]["tags"][0].as_str().unwrap().to_owned());
        assert_eq!(told.as_deref(), tag);
        // Nothing is kept back in either mode.
        let decision = |event: &Value| (event["decision"]["action"].clone(), event["decision"]["dry_run"].clone());
        assert!(events.get(before).is_none_or(|event| decision(event) == (json!("log"), json!(false))));
    }
    let (off, host) = (plugin(|_| {}), FakeHost::at(1000));
    assert_eq!(answer(&*off, "500", None, b"", &host), Verdict::Pass);
    assert_eq!(host.events_json().len(), 0);
}

#[test]
fn a_broken_contract_is_logged_once_an_hour_and_checks_nothing() {
    let step =
        |step: &mut ApiContractStep| (step.contract, step.broken) = (Vec::new(), "/openapi: no version".to_owned());
    let (plugin, host) = (plugin(step), FakeHost::at(1000));
    for wait in [0, 3_599_000, 2_000] {
        host.advance(wait);
        assert_eq!(headers(&*plugin, &mut exchange("GET", "/x", &[]), false, &host), Verdict::Pass);
    }
    assert_eq!(host.logged.borrow().len(), 2);
    assert!(host.logged.borrow()[0].contains("`shop` does not compile"), "{:?}", host.logged.borrow());
}

#[test]
fn a_method_in_a_body_is_refused_as_that_method() {
    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
    const PARTS: (&str, &str) = ("content-type", "multipart/form-data; boundary=b");
    let image = compile(
        r#"{"openapi": "3.1.0", "paths": {
            "/form": {"post": {"requestBody": {"required": true, "content": {"application/x-www-form-urlencoded": {}}}}},
            "/upload": {"post": {"requestBody": {"content": {"multipart/form-data": {}}}}},
            "/range": {"post": {"requestBody": {"content": {"*/*": {}}}}},
            "/any": {"post": {}, "put": {}}, "/json": {"post": {"requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object"}}}}}}}}"#,
        "",
        Options { responses: true },
    )
    .unwrap()
    .image;
    let hash = content_hash(&image);
    let with = |enforce: bool| {
        let step =
            ApiContractStep { contract: hash.to_vec(), enforce, max_body_bytes: 1024, ..ApiContractStep::default() };
        build(&step.encode_to_vec(), &mut Build::new([(hash.as_slice(), image.as_slice())].into_iter())).unwrap()
    };
    let (enforced, host) = (with(true), FakeHost::at(1000));
    let send = |plugin: &dyn Plugin, path: &str, headers: &[(&str, &str)], body: &[u8], complete: bool| {
        let (mut exchange, mut slot) = (exchange("POST", path, headers), Slot::default());
        match plugin.request(&mut exchange, true, &mut slot, &host) {
            Verdict::NeedBody(need) => {
                assert_eq!(need.limit, 1024, "{path} {headers:?}");
                plugin.request_body(&mut exchange, Body { bytes: body, complete }, &mut slot, &host)
            }
            other => other,
        }
    };
    let status = |path: &str, headers: &[(&str, &str)], body: &[u8], complete: bool| match send(
        &*enforced, path, headers, body, complete,
    ) {
        Verdict::Pass => 0,
        verdict => refused(verdict).status,
    };
    let (form, parts) = (
        b"a=1&_method=DELETE".as_slice(),
        b"--b\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--b--".as_slice(),
    );
    let json = br#"{"_method":"DELETE"}"#.as_slice();
    let naming = |body: &[u8], method: &str| String::from_utf8_lossy(body).replace("DELETE", method).into_bytes();
    for (path, kind, body) in [("/form", FORM, form), ("/upload", PARTS, parts), ("/json", JSON, json)] {
        assert_eq!(status(path, &[kind], body, true), 405, "{path}");
        assert_eq!(status(path, &[kind], &naming(body, "POST"), true), 0, "{path}");
    }
    for (kind, body) in [(FORM, form), (PARTS, parts), (JSON, json)] {
        assert_eq!(status("/any", &[kind], body, true), 405);
        assert_eq!(status("/any", &[kind], &naming(body, "PUT"), true), 0);
        // What is longer than the limit, of an operation that declares no body.
        assert_eq!(status("/any", &[kind], b"x", false), 413);
        assert_eq!(status("/any", &[kind, ("content-length", "1025")], b"", true), 413);
        // The body of an upgrade.
        assert_eq!(status("/any", &[kind], b"", false), 400);
        assert_eq!(status("/any", &[kind], b"", true), 0);
    }
    assert_eq!(status("/any", &[], form, true), 405);
    assert_eq!(status("/any", &[("content-type", "text/plain")], form, true), 0);
    assert_eq!(status("/form", &[FORM], b"x", false), 413);
    assert_eq!(status("/form", &[FORM], b"", true), 400, "it is required");
    // Of an upload that is declared, the beginning is read.
    assert_eq!((status("/upload", &[PARTS], b"x", false), status("/upload", &[PARTS], parts, false)), (0, 405));
    assert_eq!(status("/upload", &[PARTS, ("content-length", "99999")], b"x", false), 0);
    // So it is where a range of types is declared, and what is uploaded says that it is a form.
    assert_eq!((status("/range", &[FORM], b"x", false), status("/range", &[FORM], form, false)), (0, 405));
    assert_eq!(status("/range", &[FORM, ("content-length", "99999")], b"x", false), 0);
    let ebcdic = ("content-type", "application/x-www-form-urlencoded; charset=ibm037");
    assert_eq!(status("/any", &[ebcdic, ("content-length", "1")], b"\x6d", true), 415);
    let coded = |coding: &'static str| [FORM, ("content-encoding", coding)];
    assert_eq!((status("/form", &coded("zstd"), form, true), status("/form", &coded("gzip"), form, true)), (415, 400));
    // A body of another type is refused for that, and one that breaks its schema for both.
    assert_eq!(status("/json", &[FORM], form, true), 415);
    let refusal = refused(send(&*enforced, "/any", &[FORM], form, true));
    assert!(refusal.headers.contains(&("allow".to_owned(), b"POST, PUT".to_vec())), "{:?}", refusal.headers);
    let monitoring = with(false);
    assert_eq!(send(&*monitoring, "/form", &[FORM], form, true), Verdict::Pass);
    assert_eq!(host.events_json().last().unwrap()["threat"]["tags"], json!(["api:method_not_allowed"]));
}

#[test]
fn a_request_that_names_another_method_is_checked_as_that_one_too() {
    let object =
        |schema: &str| format!(r#"{{"required": true, "content": {{"application/json": {{"schema": {schema}}}}}}}"#);
    let parameter = r#"[{"name": "v", "in": "query", "schema": {"type": "integer"}}]"#;
    let document = format!(
        r#"{{"openapi": "3.1.0", "paths": {{"/a": {{
            "post": {{"requestBody": {}}}, "put": {{"parameters": {parameter}, "requestBody": {}}}, "get": {{}}}}}}}}"#,
        object(r#"{"type": "object"}"#),
        object(r#"{"type": "object", "properties": {"n": {"type": "integer"}}}"#)
    );
    let image = compile(&document, "", Options { responses: true }).unwrap().image;
    let hash = content_hash(&image);
    let step =
        ApiContractStep { contract: hash.to_vec(), enforce: true, max_body_bytes: 64, ..ApiContractStep::default() };
    let plugin =
        build(&step.encode_to_vec(), &mut Build::new([(hash.as_slice(), image.as_slice())].into_iter())).unwrap();
    let host = FakeHost::at(1000);
    let long = format!(r#"{{"n":1,"x":"{}"}}"#, "x".repeat(64));
    for (path, method, body, status) in [
        ("/a?v=x", "", r#"{"n":"x"}"#, 0),
        ("/a?v=1", "PUT", r#"{"n":1}"#, 0),
        ("/a", "put", r#"{"n":"x"}"#, 400),
        ("/a", "GET, Put", r#"{"n":"x"}"#, 400),
        ("/a?v=x", "PUT", r#"{"n":1}"#, 400),
        ("/a", "GET", r#"{"n":"x"}"#, 0),
        ("/a?_method=PUT", "", r#"{"n":"x"}"#, 400),
        ("/a?_method=PUT", "", r#"{"n":1}"#, 0),
        ("/a", "", r#"{"_method":"PUT","n":1}"#, 0),
        ("/a", "", r#"{"_method":"PUT","n":"x"}"#, 400),
        ("/a?v=x", "", r#"{"_method":"PUT","n":1}"#, 400),
        ("/a?v=x", "", r#"{"_method":"GET","n":"x"}"#, 0),
        ("/a", "DELETE", r#"{"n":"x"}"#, 405),
        ("/a", "PUT", &long, 413),
    ] {
        let headers = [JSON, ("x-http-method-override", method)];
        let (mut exchange, mut slot) = (exchange("POST", path, &headers), Slot::default());
        let verdict = match plugin.request(&mut exchange, true, &mut slot, &host) {
            Verdict::NeedBody(need) => {
                let bytes = body.as_bytes();
                let body =
                    Body { bytes: bytes.get(..need.limit).unwrap_or(bytes), complete: bytes.len() <= need.limit };
                plugin.request_body(&mut exchange, body, &mut slot, &host)
            }
            other => other,
        };
        let found = if verdict == Verdict::Pass { 0 } else { refused(verdict).status };
        assert_eq!(found, status, "{path} {method} {body}");
    }
    // Some take the headers whatever the method is.
    for (method, status) in [("PUT", 400), ("DELETE", 405)] {
        let mut exchange = exchange("GET", "/a", &[("x-http-method-override", method)]);
        assert_eq!(refused(headers(&*plugin, &mut exchange, false, &host)).status, status, "{method}");
    }
    assert_eq!(headers(&*plugin, &mut exchange("GET", "/a", &[]), false, &host), Verdict::Pass);
}

#[test]
fn a_get_has_no_body_unless_it_is_declared() {
    let (plugin, host) = (plugin(|_| {}), FakeHost::at(1000));
    let send = |method: &str, headers: &[(&str, &str)], body: &[u8]| {
        let (mut exchange, mut slot) = (exchange(method, "/api/items", headers), Slot::default());
        let verdict = match plugin.request(&mut exchange, true, &mut slot, &host) {
            Verdict::NeedBody(need) => {
                assert_eq!(need.limit, 1);
                plugin.request_body(&mut exchange, Body { bytes: body, complete: true }, &mut slot, &host)
            }
            other => other,
        };
        if verdict == Verdict::Pass { 0 } else { refused(verdict).status }
    };
    let upgrade = ("upgrade", "websocket");
    for method in ["GET", "HEAD"] {
        assert_eq!(send(method, &[JSON], b"{"), 400, "{method}");
        assert_eq!(send(method, &[], b""), 0, "{method}: HTTP/2 may say at its end that it is empty");
        assert_eq!(send(method, &[("content-length", "1")], b"{"), 400, "{method}");
    }
    assert_eq!(send("GET", &[upgrade], b""), 0);
    assert_eq!(send("GET", &[upgrade, ("content-length", "1")], b""), 400);
}
