//! Preflights of CORS, and requests that only look like one.

use super::*;

const CORS: [(&str, &str); 2] = [("origin", "https://a.example"), ("access-control-request-method", "GET")];

/// The status of the refusal of an `OPTIONS` request; 0 where it passes.
fn status(plugin: &dyn Plugin, headers: &[(&str, &str)], body: Option<&[u8]>, host: &FakeHost) -> u16 {
    let (mut exchange, mut slot) = (exchange("OPTIONS", "/api/items", headers), Slot::default());
    let verdict = match plugin.request(&mut exchange, body.is_some(), &mut slot, host) {
        Verdict::NeedBody(need) => {
            assert_eq!(need.limit, 1, "{headers:?}");
            let bytes = body.unwrap();
            let body = Body { bytes: bytes.get(..1).unwrap_or(bytes), complete: bytes.len() < 2 };
            plugin.request_body(&mut exchange, body, &mut slot, host)
        }
        other => other,
    };
    plugin.finish(&mut exchange, &mut slot, host);
    if verdict == Verdict::Pass {
        return 0;
    }
    let refusal = refused(verdict);
    assert!(refusal.headers.contains(&("allow".to_owned(), b"GET, HEAD, POST, PUT".to_vec())), "{:?}", refusal.headers);
    refusal.status
}

#[test]
fn a_preflight_has_no_method_beside_its_own_and_no_body() {
    let (plugin, host) = (plugin(|step| step.inventory = true), FakeHost::at(1000));
    let with = |more: &[(&'static str, &'static str)]| [&CORS[..], more].concat();
    for headers in [
        with(&[]),
        with(&[("access-control-request-headers", "x-http-method-override")]),
        with(&[("content-length", "0")]),
    ] {
        assert_eq!(status(&*plugin, &headers, None, &host), 0, "{headers:?}");
        // HTTP/2 may say at its end that a body is empty.
        assert_eq!(status(&*plugin, &headers, Some(b""), &host), 0, "{headers:?}");
        for body in ["x", "_method=DELETE"] {
            assert_eq!(status(&*plugin, &headers, Some(body.as_bytes()), &host), 405, "{headers:?} {body}");
        }
    }
    for more in [
        ("x-http-method-override", "DELETE"),
        ("x-http-method-override", "GET"),
        ("x-http-method", "delete"),
        ("x-method-override", "PUT"),
        ("x-method-override", ""),
    ] {
        for body in [None, Some(b"".as_slice()), Some(b"x")] {
            assert_eq!(status(&*plugin, &with(&[more]), body, &host), 405, "{more:?}");
        }
    }
    // An announced body and that of an upgrade are not awaited.
    for more in [("content-length", "5"), ("upgrade", "websocket")] {
        let mut announced = exchange("OPTIONS", "/api/items", &with(&[more]));
        assert_eq!(refused(headers(&*plugin, &mut announced, true, &host)).status, 405, "{more:?}");
    }
}

#[test]
fn a_declared_options_is_an_operation_whatever_its_headers_are() {
    let document = r#"{"openapi": "3.1.0", "paths": {"/a": {"options": {}, "get": {}}}}"#;
    let image = compile(document, "", Options::default()).unwrap().image;
    let hash = content_hash(&image);
    let step = ApiContractStep { contract: hash.to_vec(), enforce: true, ..ApiContractStep::default() };
    let plugin =
        build(&step.encode_to_vec(), &mut Build::new([(hash.as_slice(), image.as_slice())].into_iter())).unwrap();
    let host = FakeHost::at(1000);
    let send = |more: &[(&str, &str)]| {
        let all = [&CORS[..], more].concat();
        headers(&*plugin, &mut exchange("OPTIONS", "/a", &all), false, &host)
    };
    assert_eq!(send(&[]), Verdict::Pass);
    assert_eq!(send(&[("x-http-method-override", "GET")]), Verdict::Pass);
    assert_eq!(refused(send(&[("x-http-method-override", "DELETE")])).status, 405);
}
