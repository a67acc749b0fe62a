use exchange::fake::FakeHost;
use exchange::{Category, Refusal, ReplyBody, Request};
use prost::Message as _;
use serde_json::{Value, json};
use snapshot::content_hash;

use super::*;

mod evasions;

fn limits() -> Limits {
    Limits { body_bytes: 4096, batch: 2, document_bytes: 1024, depth: 4, fields: 50, aliases: 3, directives: 5 }
}

fn endpoint(path: &str, kind: EndpointKind) -> Endpoint {
    Endpoint { path: path.to_owned(), kind: kind.into(), limits: Some(limits()), ..Endpoint::default() }
}

fn plugin(change: impl FnOnce(&mut QueryGuardStep), parts: &[Vec<u8>]) -> Box<dyn Plugin> {
    let mut step = QueryGuardStep {
        endpoints: vec![
            endpoint("/graphql", EndpointKind::Graphql),
            Endpoint {
                allowed: vec!["shop.*".to_owned(), "ping".to_owned()],
                ..endpoint("/rpc/", EndpointKind::JsonRpc)
            },
            endpoint("/mcp", EndpointKind::Mcp),
        ],
        enforce: true,
        violation_weight: 30.0,
        inventory: true,
        ..QueryGuardStep::default()
    };
    change(&mut step);
    let hashes: Vec<_> = parts.iter().map(|part| (content_hash(part), part)).collect();
    let parts = hashes.iter().map(|(hash, part)| (hash.as_slice(), part.as_slice()));
    build(&step.encode_to_vec(), &mut Build::new(parts)).unwrap()
}

fn exchange(method: &str, path: &str, headers: &[(&str, &str)]) -> Exchange {
    let mut all = vec![(":method", method), (":path", path)];
    all.extend(headers);
    let (request, _) = Request::read(Headers::new(&all), b"HTTP/1.1".to_vec(), false);
    Exchange { request, ..Exchange::default() }
}

fn send(plugin: &dyn Plugin, exchange: &mut Exchange, body: Option<(&[u8], bool)>, host: &FakeHost) -> Verdict {
    let mut slot = Slot::default();
    match plugin.request(exchange, body.is_some(), &mut slot, host) {
        Verdict::NeedBody(need) => {
            assert_eq!(need.limit, 4096);
            let (bytes, complete) = body.unwrap();
            plugin.request_body(exchange, Body { bytes, complete }, &mut slot, host)
        }
        other => other,
    }
}

fn refusal(verdict: Verdict) -> Option<Refusal> {
    match verdict {
        Verdict::Refuse(refusal) => Some(refusal),
        Verdict::Pass => None,
        other => panic!("{other:?}"),
    }
}

/// The status that a request to an endpoint is refused with; 0 where it passes.
fn post(plugin: &dyn Plugin, path: &str, body: &str) -> u16 {
    let mut exchange = exchange("POST", path, &[("content-type", "application/json")]);
    let verdict = send(plugin, &mut exchange, Some((body.as_bytes(), true)), &FakeHost::at(1000));
    refusal(verdict).map_or(0, |refusal| refusal.status)
}

fn get(plugin: &dyn Plugin, path: &str) -> u16 {
    let verdict = send(plugin, &mut exchange("GET", path, &[]), None, &FakeHost::at(1000));
    refusal(verdict).map_or(0, |refusal| refusal.status)
}

#[test]
fn graphql_comes_in_every_form() {
    let plugin = plugin(|_| {}, &[]);
    for (body, status) in [
        (r#"{"query":"{a}"}"#, 0),
        (r#"{"query":"{a}","variables":null,"operationName":null,"extensions":{}}"#, 0),
        (r#"[{"query":"{a}"},{"query":"{b}"}]"#, 0),
        (r#"[{"query":"{a}"},{"query":"{b}"},{"query":"{c}"}]"#, 400),
        (r"[]", 400),
        (r#"{"query":"{a}","query":"{__schema{types{name}}}"}"#, 400),
        (r#"{"query":["{a}"]}"#, 400),
        (r#"{"query":"{a{b{c{d{e}}}}}"}"#, 400),
        (r#"{"query":"{__schema{types{name}}}"}"#, 403),
        (r#"{"query":"{_service{sdl}}"}"#, 403),
        (r#"{"query":"query Q{...F} fragment F on Query{s:_service{sdl}}"}"#, 403),
        (r"{}", 400),
        (r#""{a}""#, 400),
        ("{a}", 400),
        ("", 400),
    ] {
        assert_eq!(post(&*plugin, "/graphql", body), status, "{body}");
    }
    for (target, status) in [
        ("/graphql?query=%7Ba%7D", 0),
        ("/graphql?query=query+A%7Ba%7D&variables=%7B%22x%22:1%7D", 0),
        ("/graphql?query=mutation%7Ba%7D", 405),
        ("/graphql?query=%7Ba%7D&query=%7Bb%7D", 400),
        ("/graphql?variables=1&query=%7Ba%7D", 400),
        ("/graphql", 400),
        ("/GraphQL/?query=mutation%7Ba%7D", 405),
        ("//graphql?query=mutation%7Ba%7D", 405),
        ("/other?query=mutation%7Ba%7D", 0),
        ("/graphqlx?query=mutation%7Ba%7D", 0),
    ] {
        assert_eq!(get(&*plugin, target), status, "{target}");
    }
    assert_eq!(post(&*plugin, "/graphql?query=%7Bb%7D", r#"{"query":"{a}"}"#), 400, "two queries");
    let typed = |kind: &str, body: &str| {
        let mut exchange = exchange("POST", "/graphql", &[("content-type", kind)]);
        refusal(send(&*plugin, &mut exchange, Some((body.as_bytes(), true)), &FakeHost::at(1)))
            .map_or(0, |found| found.status)
    };
    assert_eq!(typed("application/graphql; charset=utf-8", "{a}"), 0);
    assert_eq!(typed("application/graphql", "{a"), 400);
    assert_eq!(typed("application/x-www-form-urlencoded", "query=%7Ba%7D"), 0);
    assert_eq!(typed("multipart/form-data; boundary=x", "--x"), 400);
    assert_eq!(typed("text/plain", r#"{"query":"{a}"}"#), 0);
    let put = send(&*plugin, &mut exchange("PUT", "/graphql", &[]), Some((b"{}", true)), &FakeHost::at(1));
    assert_eq!(refusal(put).unwrap().status, 405);
    assert_eq!(send(&*plugin, &mut exchange("OPTIONS", "/graphql", &[]), None, &FakeHost::at(1)), Verdict::Pass);
    let upgrade = send(&*plugin, &mut exchange("GET", "/graphql", &[("upgrade", "websocket")]), None, &FakeHost::at(1));
    assert_eq!(upgrade, Verdict::Pass);
    // The header alone is no way around the guard.
    for (method, target) in [("POST", "/graphql"), ("GET", "/graphql?query=mutation%7Ba%7D")] {
        let mut exchange = exchange(method, target, &[("upgrade", "websocket")]);
        assert!(refusal(send(&*plugin, &mut exchange, None, &FakeHost::at(1))).is_some(), "{method} {target}");
    }
}

#[test]
fn bodies_that_cannot_be_checked_are_refused() {
    let plugin = plugin(|_| {}, &[]);
    let host = FakeHost::at(1000);
    let long = [("content-length", "5000")];
    assert_eq!(
        refusal(send(&*plugin, &mut exchange("POST", "/mcp", &long), Some((b"", true)), &host)).unwrap().status,
        413
    );
    let cut = send(&*plugin, &mut exchange("POST", "/mcp", &[]), Some((b"{", false)), &host);
    assert_eq!(refusal(cut).unwrap().status, 413);
    let coded = [("content-encoding", "zstd")];
    assert!(refusal(send(&*plugin, &mut exchange("POST", "/mcp", &coded), Some((b"x", true)), &host)).is_some());
    assert!(refusal(send(&*plugin, &mut exchange("POST", "/mcp", &[]), None, &host)).is_some());
}

#[cfg(feature = "control")]
#[test]
fn json_rpc_is_checked_by_method() {
    let parameters = |required: &Value| {
        let schema = json!({ "type": "object", "required": required, "properties": { "n": { "type": "integer" } } });
        let body = json!({ "content": { "application/json": { "schema": schema } } });
        json!({ "post": { "requestBody": body, "responses": {} } })
    };
    let document = json!({ "openapi": "3.1.0", "info": { "title": "", "version": "" },
        "paths": { "/0": parameters(&json!(["n"])), "/1": parameters(&json!([])) } });
    let options = contract_options();
    let image = contract::compile::compile(&document.to_string(), "/", options).unwrap().image;
    let set = |step: &mut QueryGuardStep| {
        step.endpoints[1].schema = content_hash(&image).to_vec();
        step.endpoints[1].names = vec!["shop.add".to_owned(), "shop.get".to_owned()];
    };
    let plugin = plugin(set, std::slice::from_ref(&image));
    for (body, status) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 0),
        (r#"{"jsonrpc":"2.0","method":"shop.list","params":[1]}"#, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.add","params":{"n":1}}"#, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.add","params":{"n":"1"}}"#, 400),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.add"}"#, 400),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.add","params":[]}"#, 400),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.get"}"#, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.get","params":null}"#, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.get","params":[]}"#, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.get","params":{}}"#, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.get","params":[1]}"#, 400),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.get","params":{"n":"x"}}"#, 400),
        // Allowed by `shop.*`, and a name that some servers take for `shop.get`.
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.GET ","params":{"n":"x"}}"#, 400),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shop.GET","params":{"n":1}}"#, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"admin.drop"}"#, 403),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"admin"}]"#, 403),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},1]"#, 400),
        (r#"[{},{},{}]"#, 400),
        (r#"{"id":1,"method":"ping"}"#, 400),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, 400),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, 400),
        (r#"{"jsonrpc":"2.0","id":1,"result":1}"#, 400),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":1}"#, 400),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"admin"}"#, 400),
    ] {
        assert_eq!(post(&*plugin, "/rpc", body), status, "{body}");
    }
    assert_eq!(get(&*plugin, "/rpc"), 405);
}

#[cfg(feature = "control")]
fn contract_options() -> contract::compile::Options {
    contract::compile::Options::default()
}

#[cfg(feature = "control")]
#[test]
fn mcp_is_checked_by_tool() {
    let document = json!({ "openapi": "3.1.0", "info": { "title": "", "version": "" }, "paths": { "/0": { "post": {
        "requestBody": { "content": { "application/json": { "schema": {
            "type": "object", "required": ["path"], "properties": { "path": { "type": "string", "maxLength": 5 } },
            "additionalProperties": false } } } }, "responses": {} } } } });
    let image = contract::compile::compile(&document.to_string(), "/", contract_options()).unwrap().image;
    let set = |step: &mut QueryGuardStep| {
        step.endpoints[2].schema = content_hash(&image).to_vec();
        step.endpoints[2].names = vec!["read".to_owned()];
        step.endpoints[2].closed = true;
    };
    let plugin = plugin(set, std::slice::from_ref(&image));
    let call = |params: &Value| {
        post(
            &*plugin,
            "/mcp",
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string(),
        )
    };
    assert_eq!(call(&json!({ "name": "read", "arguments": { "path": "a" } })), 0);
    assert_eq!(call(&json!({ "name": "read", "arguments": { "path": "a/../../b" } })), 400);
    assert_eq!(call(&json!({ "name": "read", "arguments": { "path": "a", "mode": 1 } })), 400);
    assert_eq!(call(&json!({ "name": "read" })), 400);
    assert_eq!(call(&json!({ "name": "read", "arguments": [1] })), 400);
    assert_eq!(call(&json!({ "name": "read", "arguments": [] })), 400, "`path` is required");
    assert_eq!(call(&json!({ "name": "delete", "arguments": {} })), 403);
    assert_eq!(call(&json!({})), 400);
    for (body, status) in [
        (
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18", "capabilities": {} } }),
            0,
        ),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} }), 400),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "1", "capabilities": [] } }),
            0,
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "1", "capabilities": [1] } }),
            400,
        ),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [] }), 0),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": null }), 0),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1] }), 400),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [] }), 400),
        (json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }), 0),
        (json!({ "jsonrpc": "2.0", "id": "x", "result": {} }), 0),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }), 0),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": "file:///a" } }), 0),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read" }), 400),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "system/exec" }), 403),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": {} } }), 0),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {} }), 0),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": { "taskId": "x" } }), 0),
    ] {
        assert_eq!(post(&*plugin, "/mcp", &body.to_string()), status, "{body}");
    }
    assert_eq!((get(&*plugin, "/mcp"), get(&*plugin, "/mcp/")), (0, 0), "the stream of the server");
}

#[test]
fn a_tool_without_arguments_is_called_by_clients_in_php() {
    let plugin = plugin(|_| {}, &[]);
    for (arguments, status) in [("[]", 0), ("{}", 0), ("null", 0), ("[1]", 400), ("\"\"", 400), ("0", 400)] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"list","arguments":{arguments}}}}}"#
        );
        assert_eq!(post(&*plugin, "/mcp", &body), status, "{arguments}");
    }
}

#[test]
fn headers_name_the_method_and_the_tool_of_the_body() {
    let plugin = plugin(|_| {}, &[]);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}"#;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (headers, body, status) in [
        (&[("mcp-method", "tools/call"), ("mcp-name", " read ")][..], call, 0),
        (&[("mcp-method", "tools/call")], call, 0),
        (&[("mcp-name", "=?base64?cmVhZA==?=")], call, 0),
        (&[("mcp-method", "tools/list")], list, 0),
        (&[("mcp-method", "tools/list")], call, 400),
        (&[("mcp-method", "tools/call"), ("mcp-method", "tools/list")], call, 400),
        (&[("mcp-method", "tools/call"), ("mcp-name", "write")], call, 400),
        (&[("mcp-method", "tools/call")], list, 400),
        (&[("mcp-method", "tools/list")], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 0),
    ] {
        let mut exchange = exchange("POST", "/mcp", headers);
        let verdict = send(&*plugin, &mut exchange, Some((body.as_bytes(), true)), &FakeHost::at(1));
        assert_eq!(refusal(verdict).map_or(0, |refusal| refusal.status), status, "{headers:?} {body}");
    }
}

#[test]
fn refusals_say_what_is_wrong_where_asked() {
    let plugin = plugin(|step| (step.expose_errors, step.contribute) = (true, true), &[]);
    let host = FakeHost::at(1000);
    let mut wrong = exchange("GET", "/graphql?query=mutation%7Ba%7D", &[]);
    let refused = refusal(send(&*plugin, &mut wrong, None, &host)).unwrap();
    assert_eq!((refused.category, refused.scored), (Category::Api, true));
    assert!(refused.headers.contains(&("allow".to_owned(), b"POST".to_vec())));
    assert_eq!((wrong.score.total(), wrong.score.tags()), (30.0, vec!["api:query_mutation_over_get"]));
    let ReplyBody::Bytes { bytes, .. } = refused.body else { panic!() };
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(body["errors"][0]["extensions"]["code"], "query_mutation_over_get");
    let mut wrong = exchange("POST", "/rpc", &[]);
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"admin"}"#;
    let ReplyBody::Bytes { bytes, .. } = refusal(send(&*plugin, &mut wrong, Some((body, true)), &host)).unwrap().body
    else {
        panic!()
    };
    assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap()["error"]["code"], -32_601);
}

#[test]
fn monitoring_tells_once_a_minute_and_refuses_nothing() {
    let plugin = plugin(|step| step.enforce = false, &[]);
    let host = FakeHost::at(1_000_000);
    let ask = |target: &str| {
        assert_eq!(send(&*plugin, &mut exchange("GET", target, &[]), None, &host), Verdict::Pass);
    };
    ask("/graphql?query=mutation%7Bsecret%7D");
    ask("/graphql?query=mutation%7Bb%7D");
    assert_eq!(host.events_json().len(), 1);
    let event = &host.events_json()[0];
    assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&json!("api"), &json!("observed")));
    assert_eq!(event["threat"]["tags"], json!(["api:query_mutation_over_get"]));
    assert_eq!((&event["decision"]["action"], &event["decision"]["dry_run"]), (&json!("deny"), &json!(true)));
    assert!(event["message"].as_str().unwrap().contains("would have been refused with 405"), "{event}");
    ask("/graphql?query=%7B");
    assert_eq!(host.events_json().len(), 2);
    host.advance(60_001);
    ask("/graphql?query=mutation%7Bb%7D");
    assert_eq!(host.events_json().len(), 3);
}

#[test]
fn operations_are_counted_and_reported() {
    let plugin = plugin(|step| step.enforce = false, &[]);
    let host = FakeHost::at(1000);
    assert_eq!(plugin.timer(), Some(Timer { millis: 10_000, on: Workers::All }));
    for _ in 0..3 {
        send(&*plugin, &mut exchange("GET", "/graphql?query=query+Products%7Ba%7D", &[]), None, &host);
    }
    for number in 0..600 {
        let target = format!("/graphql?query=query+Q{number}%7B__schema%7Ba%7D%7D");
        send(&*plugin, &mut exchange("GET", &target, &[]), None, &host);
    }
    plugin.on_timer(&host);
    let reports = host.reports.borrow();
    let seen: Vec<OperationSeen> =
        reports.iter().flat_map(|(_, report)| OperationsSeen::decode(report.as_slice()).unwrap().operations).collect();
    assert!(reports.iter().all(|(kind, _)| *kind == OPERATIONS));
    let of = |name: &str| {
        seen.iter().find(|seen| seen.name == name).map(|seen| (seen.kind.as_str(), seen.count, seen.mismatches))
    };
    assert_eq!(of("Products"), Some(("query", 3, 0)));
    assert_eq!(of("Q7"), Some(("query", 1, 1)));
    assert_eq!(of("(others)"), Some(("query", 101, 101)));
    assert_eq!(seen.len(), 501);
    drop(reports);
    plugin.on_timer(&host);
    assert_eq!(host.reports.borrow().len(), 3, "nothing was counted meanwhile");
}

#[test]
fn reports_are_short_enough_to_be_sent() {
    let path = format!("/{}", "p".repeat(1000));
    let plugin = plugin(|step| step.endpoints = vec![endpoint(&path, EndpointKind::Graphql)], &[]);
    let host = FakeHost::at(1000);
    for number in 0..400 {
        let name = "n".repeat(900);
        let target = format!("{path}?query=query+Q{number}{name}%7Ba%7D");
        send(&*plugin, &mut exchange("GET", &target, &[]), None, &host);
    }
    plugin.on_timer(&host);
    let reports = host.reports.borrow();
    assert!(reports.iter().all(|(_, report)| report.len() <= exchange::MAX_REPORT));
    let seen: Vec<OperationSeen> =
        reports.iter().flat_map(|(_, report)| OperationsSeen::decode(report.as_slice()).unwrap().operations).collect();
    assert_eq!((seen.len(), seen.iter().map(|seen| seen.count).sum::<u64>()), (400, 400));
    assert!(seen.iter().all(|seen| seen.name.len() == 64));
}

#[test]
fn a_query_in_the_url_is_judged_although_a_body_is_withheld() {
    let (allow, deny) = (plugin(|_| {}, &[]), plugin(|step| step.endpoints[0].persisted = Persisted::Deny.into(), &[]));
    let overtaken_at = |plugin: &dyn Plugin, method: &str, path: &str| {
        let (mut exchange, mut slot, host) = (exchange(method, path, &[]), Slot::default(), FakeHost::at(1000));
        assert!(matches!(plugin.request(&mut exchange, true, &mut slot, &host), Verdict::NeedBody(_)));
        refusal(plugin.without_body(&mut exchange, 200, &mut slot, &host)).map_or(0, |refusal| refusal.status)
    };
    let overtaken = |method: &str, path: &str| overtaken_at(&*allow, method, path);
    assert_eq!(overtaken("GET", "/graphql?query=mutation%7Ba%7D"), 405);
    assert_eq!(overtaken("GET", "/graphql?query=%7Ba%7D"), 0);
    assert_eq!(overtaken("POST", "/graphql?query=mutation%7Ba%7D"), 400);
    // An upload that the backend refuses early.
    assert_eq!(overtaken("POST", "/graphql"), 0);
    assert_eq!(overtaken("POST", "/graphql?documentId=abc"), 0, "stored documents are allowed");
    for query in ["documentId=abc", "x=1;doc_id=1"] {
        for path in ["/graphql", "/graphql/x"] {
            assert_eq!(overtaken_at(&*deny, "POST", &format!("{path}?{query}")), 400, "{path} {query}");
        }
    }
    assert_eq!(overtaken_at(&*deny, "POST", "/graphql"), 0);
}
