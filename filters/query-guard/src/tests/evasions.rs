//! Requests that a server may read in another way than the guard, and ordinary ones that look alike.

use super::*;

/// The status that a request is refused with; 0 where it passes.
fn status(plugin: &dyn Plugin, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> u16 {
    let body = body.map(|body| (body.as_bytes(), true));
    let verdict = send(plugin, &mut exchange(method, path, headers), body, &FakeHost::at(1000));
    refusal(verdict).map_or(0, |refusal| refusal.status)
}

fn typed(plugin: &dyn Plugin, path: &str, kind: &str, body: &str) -> u16 {
    status(plugin, "POST", path, &[("content-type", kind)], Some(body))
}

#[test]
fn paths_below_and_beside_an_endpoint_are_judged_where_they_carry_a_request() {
    let plugin = plugin(|_| {}, &[]);
    for path in ["/graphql/x", "/graphql.json", "/GraphQL/x", "/graphql/x/y?a=b", "/graphql;a=b/x", "/%67raphql.json"] {
        assert_eq!(post(&*plugin, path, r#"{"query":"{a}"}"#), 0, "{path}");
        assert_eq!(post(&*plugin, path, r#"{"query":"{__schema{types{name}}}"}"#), 403, "{path}");
        assert_eq!(status(&*plugin, "PUT", path, &[], Some(r#"{"query":"{a}"}"#)), 405, "{path}");
        assert_eq!(status(&*plugin, "GET", path, &[], Some(r#"{"query":"{a}"}"#)), 400, "{path}");
        assert_eq!(post(&*plugin, path, r#"{"\u0071uery":"{__schema{types{name}}}"}"#), 403, "{path}");
        // What has nothing of a request of the endpoint is for something else.
        for method in ["PUT", "GET", "POST"] {
            assert_eq!(status(&*plugin, method, path, &[], Some(r#"{"file":1}"#)), 0, "{method} {path}");
        }
    }
    assert_eq!(post(&*plugin, "/mcp/oauth/token", "grant_type=client_credentials&client_id=a"), 0);
    for path in ["/rpc.php/x", "/rpc/x", "/rpc.json"] {
        assert_eq!(post(&*plugin, path, r#"{"jsonrpc":"2.0","id":1,"method":"admin.drop"}"#), 403, "{path}");
    }
    for (target, expected) in [
        ("/graphql/x?query=mutation%7Ba%7D", 405),
        ("/graphql.json?query=%7Ba%7D", 0),
        ("/graphql.json?variables=%7B%7D", 400),
        ("/graphql/x?Query=%7Ba%7D", 400),
        ("/graphql/playground", 0),
        ("/graphql/playground/app.js?v=2", 0),
        ("/graphql/schema.json", 0),
        ("/rpc/status?query=x", 0),
        ("/mcp/x", 0),
    ] {
        assert_eq!(get(&*plugin, target), expected, "{target}");
    }
    for (method, body) in [("HEAD", None), ("POST", None), ("PUT", None), ("DELETE", None), ("POST", Some(""))] {
        assert_eq!(status(&*plugin, method, "/graphql/x", &[], body), 0, "{method}");
    }
    assert_eq!(status(&*plugin, "POST", "/graphql/x?query=%7Ba%7D", &[], None), 400);
    for path in ["/graphqlx", "/graphql-ui", "/graphql_x", "/x/graphql/y"] {
        assert_eq!(post(&*plugin, path, r#"{"query":"{__schema{types{name}}}"}"#), 0, "{path}");
    }
}

#[test]
fn what_cannot_be_read_below_an_endpoint_is_judged() {
    let plugin = plugin(|_| {}, &[]);
    let send = |headers: &[(&str, &str)], body: &[u8], complete: bool| {
        let mut exchange = exchange("POST", "/graphql/x", headers);
        refusal(send(&*plugin, &mut exchange, Some((body, complete)), &FakeHost::at(1)))
            .map_or(0, |refusal| refusal.status)
    };
    // Compressed: a request for the schema, and `a file`.
    let hidden = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x2a\x2c\x4d\x2d\xaa\x54\xb2\x52\xaa\x8e\x8f\x2f\x4e\xce\x48\xcd\x4d\xac\x2e\xa9\x2c\x48\x2d\xae\xce\x4b\xcc\x4d\xad\xad\xad\x55\xaa\x05\x00\x62\xfa\xbb\x99\x23\x00\x00\x00";
    let file =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\x54\x48\xcb\xcc\x49\x05\x00\x54\xbb\x70\x1e\x06\x00\x00\x00";
    let gzip = ("content-encoding", "gzip");
    assert_eq!(send(&[gzip], hidden, true), 403);
    assert_eq!(send(&[gzip, ("content-type", "text/plain")], file, true), 0);
    assert_eq!(send(&[("content-encoding", "zstd")], b"x", true), 413);
    assert_eq!(send(&[gzip], b"x", false), 413);
    // What comes behind the limit may be the query.
    let json = ("content-type", "application/json");
    for (headers, body) in [
        (&[json][..], &br#"{"a":"#[..]),
        (&[], b" "),
        (&[("content-type", "application/x-www-form-urlencoded")], b"a=b"),
        (&[("content-type", "text/plain")], b" [{"),
    ] {
        assert_eq!(send(headers, body, false), 413, "{headers:?}");
    }
    for kind in ["multipart/form-data; boundary=b", "application/octet-stream", "image/png"] {
        assert_eq!(send(&[("content-type", kind)], b"--b", false), 0, "{kind}");
    }
    assert_eq!(send(&[json], br#"{"a":1}"#, true), 0);
}

#[test]
fn a_request_without_a_name_that_can_be_found_is_judged_below_an_endpoint() {
    let plugin = plugin(|_| {}, &[]);
    // A document alone has none of the names of a request.
    for (body, expected) in [("{__schema{types{name}}}", 403), ("{a}", 0), ("a file", 400)] {
        assert_eq!(typed(&*plugin, "/graphql/x", "application/graphql", body), expected, "{body}");
        assert_eq!(typed(&*plugin, "/graphql.json", "Application/GraphQL; charset=utf-8", body), expected, "{body}");
    }
    // `query` and `__schema` in UTF-7; `{"method":"admin.drop"}` in EBCDIC.
    let utf7 = r#"{"+AHEAdQBlAHIAeQ-":"{+AF8AXw-schema{types{name}}}"}"#;
    let ebcdic = b"\xc0\x7f\x94\x85\xa3\x88\x96\x84\x7f\x7a\x7f\x81\x84\x94\x89\x95\x4b\x84\x99\x96\x97\x7f\xd0";
    for (path, charset, body) in [
        ("/graphql/x", "utf-7", utf7.as_bytes()),
        ("/rpc/x", "utf-7", br#"{"+AG0-ethod":"admin.drop"}"#),
        ("/rpc/x", "ibm037", ebcdic),
        ("/mcp/x", "ibm037", ebcdic),
    ] {
        let kind = format!("application/json; charset={charset}");
        let mut exchange = exchange("POST", path, &[("content-type", &kind)]);
        let verdict = send(&*plugin, &mut exchange, Some((body, true)), &FakeHost::at(1));
        assert_eq!(refusal(verdict).map_or(0, |refusal| refusal.status), 400, "{path} {charset}");
    }
    let two = "multipart/form-data; boundary=b, application/json";
    assert_eq!(typed(&*plugin, "/graphql/x", two, "--b"), 400);
    for (kind, body) in [
        ("multipart/form-data; boundary=b", "--b\r\n\r\na file\r\n--b--"),
        ("application/octet-stream", "\u{fffd}"),
        ("text/csv; charset=utf-8", "a,b"),
        ("application/json; charset=utf-8", r#"{"file":1}"#),
    ] {
        for path in ["/graphql/x", "/rpc/x", "/mcp/x"] {
            assert_eq!(typed(&*plugin, path, kind, body), 0, "{path} {kind}");
        }
    }
    assert_eq!(typed(&*plugin, "/rpc/x", "application/graphql", "{a}"), 0, "it is of another protocol");
}

#[test]
fn references_to_stored_documents_are_refused_below_an_endpoint_that_denies_them() {
    let deny = plugin(|step| step.endpoints[0].persisted = Persisted::Deny.into(), &[]);
    let allow = plugin(|_| {}, &[]);
    for (target, body) in [
        ("/graphql/x", r#"{"documentId":"abc"}"#),
        ("/graphql/x", r#"{"DOC_ID":"abc"}"#),
        ("/graphql/x", r#"{"doc_id":7}"#),
        ("/graphql/x", "{\"document\u{131}d\":\"abc\"}"),
        ("/graphql.json", r#"[{"queryId":"abc"}]"#),
    ] {
        assert_eq!((post(&*deny, target, body), post(&*allow, target, body)), (400, 0), "{body}");
    }
    for target in ["/graphql/x?documentId=abc", "/graphql/x?a=b;doc_id=1", "/graphql?documentId=abc"] {
        assert_eq!((get(&*deny, target), get(&*allow, target)), (400, 0), "{target}");
    }
    let twice = |plugin: &dyn Plugin| post(plugin, "/graphql?documentId=abc", r#"{"query":"{a}"}"#);
    assert_eq!((twice(&*deny), twice(&*allow)), (400, 0));
    let form = "application/x-www-form-urlencoded";
    for body in ["documentId=abc", "D%6Fcument%C4%B1d=abc", "a=b&+doc_id=1", "a=b;doc_id=1"] {
        for path in ["/graphql", "/graphql/x"] {
            assert_eq!((typed(&*deny, path, form, body), typed(&*allow, path, form, body)), (400, 0), "{path} {body}");
        }
    }
    // Anything has an `id`, and that of JSON-RPC is no reference.
    assert_eq!(post(&*deny, "/graphql/x", r#"{"id":"abc"}"#), 0);
    assert_eq!(get(&*deny, "/graphql/playground?id=5"), 0);
    assert_eq!(post(&*deny, "/rpc", r#"{"jsonrpc":"2.0","id":"abc","method":"ping"}"#), 0);
    assert_eq!(post(&*deny, "/graphql", r#"[{"query":"{a}"},{"id":"abc"}]"#), 400);
}

#[test]
fn references_to_stored_documents_are_refused_without_a_body() {
    let deny = plugin(|step| step.endpoints[0].persisted = Persisted::Deny.into(), &[]);
    let allow = plugin(|_| {}, &[]);
    let upgrade = [("upgrade", "websocket")].as_slice();
    let none = &upgrade[1..];
    for query in ["documentId=abc", "x=1;documentId=abc", "D%6Fcument%C4%B1d=abc", "+doc_id=1", "queryId[]=1"] {
        for path in ["/graphql", "/graphql/x"] {
            let target = format!("{path}?{query}");
            for (method, headers) in [("GET", none), ("HEAD", none), ("OPTIONS", none), ("GET", upgrade)] {
                let of = |plugin: &dyn Plugin| status(plugin, method, &target, headers, None);
                assert_eq!((of(&*deny), of(&*allow)), (400, 0), "{method} {target} {headers:?}");
            }
        }
    }
    // The stream of WebSockets hides no reference; below the endpoint anything has an `id`.
    let upgraded = |plugin: &dyn Plugin, target: &str| status(plugin, "GET", target, upgrade, Some(""));
    assert_eq!((upgraded(&*deny, "/graphql?id=5"), upgraded(&*allow, "/graphql?id=5")), (400, 0));
    assert_eq!((upgraded(&*deny, "/graphql/x?id=5"), upgraded(&*deny, "/graphql?token=5")), (0, 0));
    assert_eq!(upgraded(&*deny, "/mcp?id=5"), 0);
    // Before a POST with such a number.
    assert_eq!(status(&*deny, "OPTIONS", "/graphql?id=5", &[], None), 0);
}

#[test]
fn the_root_has_nothing_below_it() {
    let plugin = plugin(|step| step.endpoints = vec![endpoint("/", EndpointKind::Graphql)], &[]);
    let body = r#"{"query":"{__schema{types{name}}}"}"#;
    assert_eq!((post(&*plugin, "/", body), post(&*plugin, "/x", body), post(&*plugin, "/.x", body)), (403, 0, 0));
}

#[test]
fn an_endpoint_of_its_own_counts_before_the_one_above_it() {
    let set = |step: &mut QueryGuardStep| {
        step.endpoints = vec![
            endpoint("/api", EndpointKind::Graphql),
            endpoint("/api/rpc/", EndpointKind::JsonRpc),
            endpoint("/api/rpc/mcp", EndpointKind::Mcp),
        ];
    };
    let plugin = plugin(set, &[]);
    let (graphql, rpc) = (r#"{"query":"{a}"}"#, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
    for (path, expected) in [
        ("/api", (0, 400)),
        ("/api/x", (0, 0)),
        ("/api/rpc", (400, 0)),
        ("/api/rpc/x", (0, 0)),
        ("/api/rpc/mcp", (400, 403)),
        ("/api/rpc/mcp/x", (0, 403)),
    ] {
        assert_eq!((post(&*plugin, path, graphql), post(&*plugin, path, rpc)), expected, "{path}");
    }
}

#[test]
fn an_ambiguous_path_is_judged_where_it_may_lead_to_an_endpoint() {
    let plugin = plugin(|_| {}, &[]);
    let (graphql, rpc) =
        (r#"{"query":"{__schema{types{name}}}"}"#, r#"{"jsonrpc":"2.0","id":1,"method":"admin.drop"}"#);
    for path in [
        "/static//x.js",
        "/a%2fb",
        "/docs//graphql/intro.html",
        "/x/../y",
        "/a%252fb",
        "/img\\x.png",
        "/100%25%25",
        "/./",
        "/caf%e9-graphql",
        "/produits/caf%e9/rpc",
        "/prix/\u{bd}/mcp-rapide",
    ] {
        assert_eq!(
            (get(&*plugin, path), post(&*plugin, path, graphql), post(&*plugin, path, rpc)),
            (0, 0, 0),
            "{path}"
        );
        assert_eq!(get(&*plugin, &format!("{path}?query=mutation%7Ba%7D")), 0, "{path}");
        assert_eq!(status(&*plugin, "PUT", path, &[], Some(graphql)), 0, "{path}");
    }
    for path in [
        "//graphql",
        "/x/../graphql",
        "/x/..%2fgraphql",
        "/%2567raphql",
        "/graphql%00.js",
        "/graphql/..;/graphql/",
        "/x/..\u{2215}graphql",
    ] {
        assert_eq!((get(&*plugin, path), post(&*plugin, path, graphql)), (400, 403), "{path}");
        assert_eq!(post(&*plugin, path, r#"{"query":"{a}"}"#), 0, "{path}");
    }
    for path in ["//rpc", "/x/../rpc/", "/rp%2563"] {
        assert_eq!((get(&*plugin, path), post(&*plugin, path, rpc)), (405, 403), "{path}");
    }
    // Below an endpoint.
    for path in ["/graphql//x.js", "//graphql/x", "/graphql/a%2fb"] {
        assert_eq!((get(&*plugin, path), post(&*plugin, path, graphql)), (0, 403), "{path}");
    }
    // What is right for both protocols must not pass as a request of one and be executed as one of the other.
    let both = r#"{"jsonrpc":"2.0","id":1,"method":"ping","query":"{__schema{types{name}}}"}"#;
    for path in ["/rpc/../graphql", "/graphql/..%2frpc", "/x/../graphql/../rpc/x", "//rpc/graphql"] {
        assert_eq!((get(&*plugin, path), post(&*plugin, path, both)), (400, 400), "{path}");
        assert_eq!(status(&*plugin, "OPTIONS", path, &[], None), 0, "{path}");
    }
    let set = |step: &mut QueryGuardStep| {
        step.endpoints = vec![endpoint("/api", EndpointKind::Graphql), endpoint("/api/rpc", EndpointKind::JsonRpc)];
    };
    let nested = super::plugin(set, &[]);
    for (path, expected) in
        [("//api", 403), ("/api//rpc", 400), ("/api/rpc//", 400), ("//api/x", 403), ("/api/rpc/../x", 400)]
    {
        assert_eq!(post(&*nested, path, graphql), expected, "{path}");
    }
    assert_eq!(post(&*nested, "/api//rpc", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), 0);
}

#[test]
fn names_that_differ_in_their_case_are_refused() {
    let plugin = plugin(|_| {}, &[]);
    for (path, body, expected) in [
        ("/graphql", r#"{"query":"{a}","Query":"{__schema{types{name}}}"}"#, 400),
        ("/graphql", r#"[{"query":"{a}","QUERY":"{b}"}]"#, 400),
        ("/graphql", r#"{"query":"{a}","variable\u017f":{}}"#, 400),
        ("/graphql", "{\"query\":\"{a}\",\"exten\u{17f}ions\":{}}", 400),
        ("/graphql", r#"{"query":"query A{a} mutation B{b}","operationName":"A","operationname":"B"}"#, 400),
        ("/graphql", r#"{"query":"{a}","variables":{"Query":1,"query":2,"Variables":3},"extensions":{"Query":1}}"#, 0),
        ("/graphql", r#"{"query":"{a}","queries":1,"Id":2}"#, 0),
        ("/rpc", r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"admin.drop"}"#, 400),
        ("/rpc", r#"[{"jsonrpc":"2.0","id":1,"method":"ping","PARAMS":{}}]"#, 400),
        ("/rpc", r#"{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{}}"#, 400),
        ("/rpc", r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"Method":1,"Name":"x"}}"#, 0),
        ("/mcp", r#"{"jsonrpc":"2.0","id":1,"result":{},"Method":"tools/call","params":{"name":"x"}}"#, 400),
        ("/mcp", r#"{"jsonrpc":"2.0","id":1,"result":{"Method":1}}"#, 0),
        ("/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}"#, 400),
        ("/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","argument\u017f":{}}}"#, 400),
        (
            "/mcp",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"Name":1,"Arguments":2},"_meta":{"Name":1}}}"#,
            0,
        ),
    ] {
        assert_eq!(post(&*plugin, path, body), expected, "{body}");
    }
    assert_eq!(get(&*plugin, "/graphql?query=%7Ba%7D&Query=%7Bb%7D"), 400);
    assert_eq!(typed(&*plugin, "/graphql", "application/x-www-form-urlencoded", "query=%7Ba%7D&QUERY=%7Bb%7D"), 400);
}

#[test]
fn a_body_is_of_one_type() {
    let plugin = plugin(|_| {}, &[]);
    let form = "application/x-www-form-urlencoded";
    let both = r#"{"x":"&query={a}&","query":"{__schema{types{name}}}"}"#;
    for (kind, body, expected) in [
        (form, "query=%7Ba%7D", 0),
        (form, both, 400),
        (form, " \n[&query={a}&", 400),
        (form, "\u{feff}{&query={a}&", 400),
        ("application/x-www-form-urlencoded; x=application/json", "query=%7Ba%7D", 400),
        ("application/x-www-form-urlencoded, application/json", "query=%7Ba%7D", 400),
        ("application/x-www-form-urlencoded; charset=utf-8", "query=%7Ba%7D", 0),
        ("application/json, application/x-www-form-urlencoded", r#"{"query":"{a}"}"#, 400),
        ("application/json x", r#"{"query":"{a}"}"#, 400),
        ("application/json; x=application/x-www-form-urlencoded", r#"{"query":"{a}"}"#, 400),
        ("application/json; charset=utf-8", r#"{"query":"{a}"}"#, 0),
        ("application/json; profile=\"a, b\"", r#"{"query":"{a}"}"#, 0),
        ("application/graphql+json", r#"{"query":"{a}"}"#, 0),
        ("", r#"{"query":"{a}"}"#, 0),
    ] {
        assert_eq!(typed(&*plugin, "/graphql", kind, body), expected, "{kind}: {body}");
    }
    let twice = [("content-type", "application/json"), ("content-type", form)];
    assert_eq!(status(&*plugin, "POST", "/graphql", &twice, Some(r#"{"query":"{a}"}"#)), 400);
    // What `curl -d` calls JSON.
    assert_eq!(typed(&*plugin, "/rpc", form, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), 0);
}

#[test]
fn a_body_in_another_character_set_is_refused() {
    let plugin = plugin(|_| {}, &[]);
    let (graphql, rpc) = (r#"{"query":"{a}","+AHE-uery":"{b}"}"#, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    for (charset, expected) in [
        ("utf-8", 0),
        ("\"UTF-8\"", 0),
        ("utf8", 0),
        ("us-ascii", 0),
        ("iso-8859-1", 0),
        ("utf-7", 400),
        ("\"UTF-7\"", 400),
        ("utf-16le", 400),
        ("shift_jis", 400),
        ("utf-8; charset=utf-7", 400),
    ] {
        let kind = format!("application/json; charset={charset}");
        assert_eq!(typed(&*plugin, "/graphql", &kind, graphql), expected, "{charset}");
        assert_eq!(typed(&*plugin, "/rpc", &kind, rpc), expected, "{charset}");
        assert_eq!(typed(&*plugin, "/mcp", &kind, rpc), expected, "{charset}");
    }
}

#[test]
fn a_get_has_no_body() {
    let plugin = plugin(|_| {}, &[]);
    let target = "/graphql?query=%7Ba%7D";
    let body = Some(r#"{"query":"mutation{a}"}"#);
    for method in ["GET", "HEAD"] {
        assert_eq!(status(&*plugin, method, target, &[], body), 400, "{method}");
        assert_eq!(status(&*plugin, method, target, &[("content-length", "23")], body), 400, "{method}");
        assert_eq!(status(&*plugin, method, target, &[], None), 0, "{method}");
        // One that tells at its end that it is empty, as HTTP/2 has it.
        assert_eq!(status(&*plugin, method, target, &[], Some("")), 0, "{method}");
        assert_eq!(status(&*plugin, method, "/mcp", &[], body), 400, "{method}");
    }
    assert_eq!(status(&*plugin, "GET", "/graphql?query=mutation%7Ba%7D", &[], Some("")), 405);
    assert_eq!(status(&*plugin, "DELETE", "/mcp", &[], body), 400);
    let stream = [("accept", "text/event-stream")];
    assert_eq!(status(&*plugin, "GET", "/mcp", &stream, None), 0, "the stream of the server");
    assert_eq!(status(&*plugin, "DELETE", "/mcp", &[], None), 0, "the end of a session");
    let cut = send(&*plugin, &mut exchange("GET", target, &[]), Some((b"", false)), &FakeHost::at(1));
    assert_eq!(refusal(cut).unwrap().status, 400);
    for path in ["/graphql", "/graphql/subscriptions", "/mcp"] {
        let asks = |headers: &[(&str, &str)]| status(&*plugin, "GET", path, headers, Some(""));
        // Gateways tell no end of a request that asks for an upgrade.
        assert_eq!(asks(&[("upgrade", "websocket")]), 0, "{path}");
        assert_eq!(asks(&[("upgrade", "WebSocket"), ("content-length", "0")]), 0, "{path}");
        assert_eq!(asks(&[("upgrade", "websocket"), ("content-length", "23")]), 400, "{path}");
        assert_eq!(asks(&[("upgrade", "websocket"), ("transfer-encoding", "chunked")]), 400, "{path}");
        assert_eq!(asks(&[("upgrade", "x")]), 400, "{path}");
        assert_eq!(status(&*plugin, "CONNECT", path, &[(":protocol", "websocket")], Some("")), 0, "{path}");
    }
    let upgrade = [("upgrade", "websocket")];
    assert_eq!(status(&*plugin, "GET", "/graphql?token=x", &upgrade, Some("")), 0);
    assert_eq!(status(&*plugin, "GET", "/graphql?query=%7Ba%7D", &upgrade, Some("")), 0, "judged by its query");
    assert_eq!(status(&*plugin, "GET", "/graphql?query=mutation%7Ba%7D", &upgrade, Some("")), 405);
    assert_eq!(status(&*plugin, "GET", "/graphql?Query=mutation%7Ba%7D", &upgrade, Some("")), 400);
}

#[test]
fn a_preflight_has_no_body() {
    let plugin = plugin(|_| {}, &[]);
    for (path, body) in
        [("/graphql", r#"{"query":"{a}"}"#), ("/rpc", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), ("/mcp", "{}")]
    {
        assert_eq!(status(&*plugin, "OPTIONS", path, &[], None), 0, "{path}");
        assert_eq!(status(&*plugin, "OPTIONS", path, &[], Some("")), 0, "{path}: it tells at its end that it is empty");
        assert_eq!(status(&*plugin, "OPTIONS", path, &[], Some(body)), 405, "{path}");
        assert_eq!(status(&*plugin, "OPTIONS", path, &[("content-length", "2")], Some(body)), 405, "{path}");
        assert_eq!(status(&*plugin, "OPTIONS", &format!("{path}/x"), &[], Some("file")), 0, "{path}");
    }
    // One that comes before a GET has its query.
    for (query, expected) in
        [("query=%7Ba%7D", 0), ("query=mutation%7Ba%7D", 405), ("query=%7B__schema%7Ba%7D%7D", 403)]
    {
        assert_eq!(status(&*plugin, "OPTIONS", &format!("/graphql?{query}"), &[], None), expected, "{query}");
        assert_eq!(status(&*plugin, "OPTIONS", &format!("/rpc?{query}"), &[], None), 0, "{query}");
    }
}

#[test]
fn parameters_in_other_spellings_are_refused() {
    let plugin = plugin(|_| {}, &[]);
    let form = "application/x-www-form-urlencoded";
    for odd in [
        "Query=mutation{a}",
        "+query=mutation{a}",
        "%20query=mutation{a}",
        "[query=mutation{a}",
        "query[]=mutation{a}",
        "query%00x=mutation{a}",
        "x=1;query=mutation{a}",
        ";query=mutation{a}",
        "Variables[a]=1",
    ] {
        assert_eq!(get(&*plugin, &format!("/graphql?{odd}")), 400, "{odd}");
        assert_eq!(get(&*plugin, &format!("/graphql?query=%7Ba%7D&{odd}")), 400, "{odd}");
        assert_eq!(typed(&*plugin, "/graphql", form, &format!("query=%7Ba%7D&{odd}")), 400, "{odd}");
        assert_eq!(post(&*plugin, &format!("/graphql?{odd}"), r#"{"query":"{a}"}"#), 400, "{odd}");
    }
    for usual in ["a=b;c=d", "a=b%3Bquery=1", "note=some;+words", "queries=1", "a[query]=1", "_query=1"] {
        assert_eq!(get(&*plugin, &format!("/graphql?query=%7Ba%7D&{usual}")), 0, "{usual}");
        assert_eq!(typed(&*plugin, "/graphql", form, &format!("query=%7Ba%7D&{usual}")), 0, "{usual}");
        assert_eq!(post(&*plugin, &format!("/graphql?{usual}"), r#"{"query":"{a}"}"#), 0, "{usual}");
    }
    assert_eq!(get(&*plugin, "/graphql?query={a(b:\"c;d\")}"), 0);
}

#[test]
fn an_empty_array_stands_for_no_variables() {
    let plugin = plugin(|_| {}, &[]);
    assert_eq!(post(&*plugin, "/graphql", r#"{"query":"{a}","variables":[],"extensions":[]}"#), 0);
    assert_eq!(post(&*plugin, "/graphql", r#"{"query":"{a}","variables":[1]}"#), 400);
    assert_eq!(get(&*plugin, "/graphql?query=%7Ba%7D&variables=%5B%5D"), 0);
    assert_eq!(get(&*plugin, "/graphql?query=%7Ba%7D&variables=%5B1%5D"), 400);
}
