//! What limits leave out is refused, or told where nothing is denied.

use exchange::Headers;
use exchange::fake::FakeHost;
use serde_json::{Value, json};

use super::*;
use crate::tests::{exchange, form, plugin_of, send, status, step};

const RULES: &str = "SecRuleEngine On\nSecRequestBodyAccess On\nSecArgumentsLimit 5\nSecRequestBodyJsonDepthLimit 4\n\
    SecRule REQUEST_HEADERS:Content-Type \"@contains json\" \"id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n\
    SecRule REQUEST_HEADERS:Content-Type \"@contains xml\" \"id:2,phase:1,pass,nolog,ctl:requestBodyProcessor=XML\"\n\
    SecRule REQUEST_COOKIES|ARGS|REQUEST_HEADERS|XML:/*|XML://@* \"@contains evil\" \"id:9,phase:2,deny,status:403,log,msg:'evil'\"\n";

/// What comes of a request: the status of its refusal and the trail.
fn ask(rules: &str, step: WafStep, path: &str, headers: Headers, body: &[u8]) -> (Option<u16>, Value) {
    let (host, plugin, mut slot) = (FakeHost::at(0), plugin_of(rules, step), Slot::default());
    let mut exchange = exchange(path, headers);
    let verdict = send(&*plugin, &mut exchange, Body { bytes: body, complete: true }, &mut slot, &host);
    plugin.finish(&mut exchange, &mut slot, &host);
    (status(&verdict), host.events_json().into_iter().next().unwrap_or_default())
}

fn large(step: WafStep) -> WafStep {
    WafStep { input_body_limit: 1 << 20, ..step }
}

fn left_out(collection: &str, limit: &str, most: u64) -> Value {
    json!([{ "collection": collection, "limit": limit, "most": most }])
}

#[test]
fn what_a_limit_leaves_out_is_refused_in_every_collection() {
    let cookies = (0..1001).map(|at| format!("c{at}=v")).collect::<Vec<_>>().join("; ");
    let many_headers: Vec<(String, String)> = (0..1001).map(|at| (format!("x-{at}"), "v".to_owned())).collect();
    let many_headers: Vec<(&str, &str)> = many_headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let of_type = |kind: &str| Headers::from([("content-type", kind)]);
    let part = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n";
    let parts = format!("{}--b--\r\n", format!("{part}\r\nv\r\n").repeat(6));
    let part_headers: String = (0..40).map(|at| format!("X-{at}: v\r\n")).collect();
    let part_headers = format!("{part}{part_headers}\r\nv\r\n--b--\r\n");
    let long_header = format!("{part}X-A: {}\r\n\r\nv\r\n--b--\r\n", "v".repeat(9000));
    let nested = format!("{}{}", "[".repeat(5), "]".repeat(5));
    let elements = format!("{}{}", "<a>".repeat(300), "</a>".repeat(300));
    let cases: Vec<(&str, Headers, &[u8], Value)> = vec![
        ("/", Headers::from([("cookie", cookies.as_str())]), b"", left_out("REQUEST_COOKIES", "cookies", 1000)),
        ("/", Headers::new(&many_headers), b"", left_out("REQUEST_HEADERS", "headers", 1000)),
        ("/?a&b&c&d&e&f=evil", Headers::default(), b"", left_out("ARGS_GET", "SecArgumentsLimit", 5)),
        ("/", form(), b"a&b&c&d&e&f=evil", left_out("ARGS_POST", "SecArgumentsLimit", 5)),
        ("/?a&b&c", form(), b"d&e&f=evil", left_out("ARGS_POST", "SecArgumentsLimit", 5)),
        ("/", of_type("application/json"), b"[1,2,3,4,5,\"evil\"]", left_out("ARGS", "SecArgumentsLimit", 5)),
        ("/", of_type("application/json"), b"[1,2,3,4,5,6,", left_out("ARGS", "SecArgumentsLimit", 5)),
        ("/", of_type("application/json"), nested.as_bytes(), left_out("ARGS", "SecRequestBodyJsonDepthLimit", 4)),
        ("/", of_type("text/xml"), elements.as_bytes(), left_out("XML", "depth of elements", 256)),
        (
            "/",
            of_type("multipart/form-data; boundary=b"),
            parts.as_bytes(),
            left_out("ARGS_POST", "SecArgumentsLimit", 5),
        ),
        (
            "/",
            of_type("multipart/form-data; boundary=b"),
            part_headers.as_bytes(),
            left_out("MULTIPART_PART_HEADERS", "headers of a part", 32),
        ),
        (
            "/",
            of_type("multipart/form-data; boundary=b"),
            long_header.as_bytes(),
            left_out("MULTIPART_PART_HEADERS", "bytes of a part header", 8192),
        ),
    ];
    for (path, headers, body, expected) in cases {
        let asked = |step| ask(RULES, step, path, headers.clone(), body);
        let (refused, trail) = asked(large(step()));
        assert_eq!((refused, &trail["uninspected"]), (Some(400), &expected), "{trail}");
        let (collection, limit) = (expected[0]["collection"].as_str().unwrap(), expected[0]["limit"].as_str().unwrap());
        let reason = trail["block"]["msg"].as_str().unwrap();
        assert!(reason.contains(collection) && reason.contains(limit), "{reason}");
        // Where nothing is denied, the request passes and is told.
        for watching in [WafStep { block: false, ..step() }, WafStep { fail_open: true, ..step() }] {
            let (refused, trail) = asked(large(watching));
            assert_eq!((refused, &trail["uninspected"], &trail["block"]), (None, &expected, &Value::Null), "{trail}");
        }
        let only_detects = format!("{RULES}SecRuleEngine DetectionOnly\n");
        let (refused, trail) = ask(&only_detects, large(step()), path, headers.clone(), body);
        assert_eq!((refused, &trail["uninspected"]), (None, &expected), "{trail}");
    }
}

#[test]
fn what_is_within_the_limits_passes() {
    let cookies = (0..1000).map(|at| format!("c{at}=v")).collect::<Vec<_>>().join("; ");
    for (path, headers, body) in [
        ("/", Headers::from([("cookie", cookies.as_str())]), &b""[..]),
        ("/?a&b&c&d&e", Headers::default(), b""),
        ("/?a&b", form(), b"c&d&e"),
    ] {
        let (refused, trail) = ask(RULES, large(step()), path, headers, body);
        assert_eq!((refused, trail), (None, Value::Null));
    }
}

#[test]
fn a_rule_that_refuses_tells_what_it_has_not_seen() {
    let rules = format!("{RULES}SecRule REQBODY_ERROR \"@eq 1\" \"id:10,phase:2,deny,status:400,log,msg:'error'\"\n");
    let (host, plugin, mut slot) = (FakeHost::at(0), plugin_of(&rules, large(step())), Slot::default());
    let mut exchange = exchange("/", form());
    let body = Body { bytes: b"a&b&c&d&e&f", complete: true };
    let Verdict::Refuse(refusal) = send(&*plugin, &mut exchange, body, &mut slot, &host) else { panic!() };
    assert_eq!(refusal.reason, "rule 10: error; ARGS_POST is not inspected beyond SecArgumentsLimit 5");
}

#[test]
fn a_document_type_is_an_error_of_the_body_unless_it_is_allowed() {
    let rules = format!("{RULES}SecRule REQBODY_ERROR \"@eq 1\" \"id:10,phase:2,deny,status:400,log,msg:'error'\"\n");
    let xml = |step, document: &str| {
        ask(&rules, large(step), "/", Headers::from([("content-type", "application/soap+xml")]), document.as_bytes()).0
    };
    let allows = || WafStep { allow_xml_doctype: true, ..step() };
    for document in [
        "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///evil'>]><a>&x;</a>",
        "<!-- c --><!DOCTYPE a SYSTEM 'http://evil/x.dtd'><a/>",
        "<!DOCTYPE a [<!ENTITY x '&#101;vil'>]><a/>",
        "<!DOCTYPE a [<!ENTITY x 'ev'><!ENTITY y 'il'>]><a b='&x;&y;'/>",
        "<!DOCTYPE a [<!ENTITY % x SYSTEM 'evil'>]><a/>",
    ] {
        assert_eq!(xml(step(), document), Some(403), "rules see its literals: {document}");
        assert_eq!(xml(allows(), document), Some(403), "{document}");
    }
    let harmless = "<!DOCTYPE a [<!ENTITY x 'fine'>]><a>&x;</a>";
    assert_eq!((xml(step(), harmless), xml(allows(), harmless)), (Some(400), None));
    assert_eq!(xml(step(), "<!DOCTYPE a><a/>"), None);
}

const FORM_DATA: &str = "multipart/form-data; boundary=b";

fn multipart(parts: &[(&str, &str)]) -> Vec<u8> {
    let part = |(name, value): &(&str, &str)| {
        let file = if name.starts_with("file") { "; filename=\"f\"" } else { "" };
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("{parts}--b--\r\n").into_bytes()
}

#[test]
fn the_content_of_files_counts_for_the_limit_with_files_alone() {
    let ask = |step: WafStep, body: &[u8]| ask(RULES, step, "/", Headers::from([("content-type", FORM_DATA)]), body);
    let limits = || WafStep { input_body_limit: 2000, input_files_limit: 10_000, ..step() };
    let long = |length: usize| "x".repeat(length);
    let with_file = multipart(&[("a", "1"), ("file", &long(8000)), ("z", "evil")]);
    assert_eq!(ask(limits(), &with_file).0, Some(403), "what is behind a file is inspected");
    assert_eq!(ask(limits(), &multipart(&[("file", &long(8000)), ("z", "1")])), (None, Value::Null));
    for (body, limit) in [
        (multipart(&[("file", &long(11_000))]), "SecRequestBodyLimit"),
        (multipart(&[("a", &long(3000))]), "SecRequestBodyNoFilesLimit"),
        (multipart(&[("file", "f"), ("a", &long(3000))]), "SecRequestBodyNoFilesLimit"),
    ] {
        let (refused, trail) = ask(limits(), &body);
        assert_eq!(refused, Some(413), "{limit}");
        assert!(trail["block"]["msg"].as_str().unwrap().contains(limit), "{trail}");
        let (passed, trail) = ask(WafStep { block: false, ..limits() }, &body);
        assert_eq!((passed, &trail["uninspected"][0]["collection"]), (None, &json!("REQUEST_BODY")));
    }
}

#[test]
fn the_smaller_one_of_a_directive_and_a_field_holds() {
    let ask = |directives: &str, step: WafStep, kind: &str, body: &[u8]| {
        let rules = format!("{RULES}{directives}\n");
        ask(&rules, step, "/", Headers::from([("content-type", kind)]), body).0
    };
    let limits = || WafStep { input_body_limit: 1000, input_files_limit: 5000, ..step() };
    let kind = "application/x-www-form-urlencoded";
    let form = |length: usize| [b"a=".as_slice(), &vec![b'x'; length - 2]].concat();
    assert_eq!(ask("", limits(), kind, &form(1000)), None);
    assert_eq!(ask("", limits(), kind, &form(1001)), Some(413));
    assert_eq!(ask("SecRequestBodyNoFilesLimit 500", limits(), kind, &form(501)), Some(413));
    assert_eq!(ask("SecRequestBodyNoFilesLimit 500", limits(), kind, &form(500)), None);
    assert_eq!(ask("SecRequestBodyNoFilesLimit 5000", limits(), kind, &form(1001)), Some(413));
    assert_eq!(ask("SecRequestBodyLimit 300", limits(), kind, &form(301)), Some(413));
    let upload = multipart(&[("file", &"x".repeat(2000))]);
    assert_eq!(ask("", limits(), FORM_DATA, &upload), None);
    assert_eq!(ask("SecRequestBodyLimit 1500", limits(), FORM_DATA, &upload), Some(413));
    let of_rule = "SecAction \"id:3,phase:1,pass,nolog,ctl:requestBodyLimit=400\"";
    assert_eq!(ask(of_rule, limits(), kind, &form(401)), Some(413));
    // One of the two that rejects is enough.
    let prefix = || WafStep { reject_oversize: false, ..limits() };
    assert_eq!(ask("", prefix(), kind, &form(1001)), None);
    assert_eq!(ask("SecRequestBodyLimitAction Reject", prefix(), kind, &form(1001)), Some(413));
}

#[test]
fn a_length_over_the_limit_is_refused_before_the_body_comes() {
    let (host, plugin, mut slot) = (FakeHost::at(0), plugin_of(RULES, step()), Slot::default());
    let headers = [("content-type", "application/x-www-form-urlencoded"), ("content-length", "1001")];
    let mut exchange = exchange("/", Headers::from(headers));
    assert_eq!(status(&plugin.request(&mut exchange, true, &mut slot, &host)), Some(413));
    plugin.finish(&mut exchange, &mut slot, &host);
    assert_eq!(host.events_json()[0]["uninspected"], left_out("REQUEST_BODY", "bytes", 1000));
}

#[test]
fn what_cannot_be_decoded_names_its_limit_refused_or_not() {
    let limits = || WafStep { decompressed_input_body_limit: 50, max_input_compression_ratio: 10, ..step() };
    let empty = gzip(b"", b"");
    let members = empty.repeat(1001);
    let long = gzip(b"", &[b'x'; 100]);
    let cases: [(&[u8], &str, u64, u16); 4] = [
        (&long, "bytes of the decoded body", 50, 413),
        (&members, "gzip members", 1000, 413),
        (b"no gzip", "bytes that can be decoded", 0, 400),
        (&long[..30], "bytes that can be decoded", 0, 400),
    ];
    for (body, limit, most, expected) in cases {
        let asked = |step: WafStep| {
            let headers = [("content-type", "application/x-www-form-urlencoded"), ("content-encoding", "gzip")];
            ask(RULES, WafStep { input_body_limit: 100_000, ..step }, "/", Headers::from(headers), body)
        };
        let (refused, trail) = asked(limits());
        assert_eq!(
            (refused, &trail["uninspected"]),
            (Some(expected), &left_out("REQUEST_BODY", limit, most)),
            "{trail}"
        );
        let (refused, trail) = asked(WafStep { block: false, ..limits() });
        assert_eq!((refused, &trail["uninspected"]), (None, &left_out("REQUEST_BODY", limit, most)), "{trail}");
    }
}

#[test]
fn the_rest_of_a_long_body_is_scanned_where_its_beginning_is_enough() {
    let prefix = || WafStep { reject_oversize: false, input_body_limit: 1000, input_files_limit: 50_000, ..step() };
    let rules = "SecRuleEngine On\nSecRequestBodyAccess On\n\
        SecRule ARGS \"@rx union\\s+select\" \"id:9,phase:2,deny,status:403,log,msg:'SQL'\"\n";
    let kind = || Headers::from([("content-type", "application/x-www-form-urlencoded")]);
    let body = |attack: &str| format!("a={}&q={attack}&b={}", "x".repeat(20_000), "y".repeat(9000)).into_bytes();
    assert_eq!(ask(rules, prefix(), "/", kind(), &body("union+%73elect")).0, Some(403));
    let (host, plugin, mut slot) = (FakeHost::at(0), plugin_of(rules, prefix()), Slot::default());
    let mut exchange = exchange("/", kind());
    let verdict = send(&*plugin, &mut exchange, Body { bytes: &body("fine"), complete: true }, &mut slot, &host);
    assert_eq!((status(&verdict), exchange.score.tags()), (None, vec!["waf:limit"]));
    plugin.finish(&mut exchange, &mut slot, &host);
    assert_eq!(host.events_json()[0]["uninspected"], left_out("REQUEST_BODY", "bytes without files", 1000));
}

#[test]
fn rules_that_look_at_files_get_their_content() {
    let rules = format!("{RULES}SecRule FILES_TMP_CONTENT \"@contains php\" \"id:10,phase:2,deny,status:406\"\n");
    let kind = || Headers::from([("content-type", FORM_DATA)]);
    let body = multipart(&[("file", "<?php ?>")]);
    assert_eq!(ask(&rules, large(step()), "/", kind(), &body).0, Some(406));
    let whole = format!("{RULES}SecRule REQUEST_BODY \"@contains php\" \"id:10,phase:2,deny,status:406\"\n");
    assert_eq!(ask(&whole, large(step()), "/", kind(), &body).0, None);
}

#[test]
fn fields_with_a_transfer_encoding_are_seen_decoded() {
    let part = |encoding: &str, value: &str| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{value}\r\n--b--\r\n"
        )
    };
    for (encoding, value) in [("base64", "ZXZp\r\nbA=="), ("Quoted-Printable", "=65vi=\r\nl"), ("binary", "evil")] {
        let headers = Headers::from([("content-type", FORM_DATA)]);
        assert_eq!(
            ask(RULES, large(step()), "/", headers, part(encoding, value).as_bytes()).0,
            Some(403),
            "{encoding}"
        );
    }
}

/// A gzip member with a comment, of stored blocks.
fn gzip(comment: &[u8], content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap();
    let mut crc = !0u32;
    for byte in content {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    let header = b"\x1f\x8b\x08\x10\0\0\0\0\0\x03";
    let (low, high) = (length.to_le_bytes(), (!length).to_le_bytes());
    let size = u32::from(length).to_le_bytes();
    [header, comment, b"\0\x01", &low, &high, content, &(!crc).to_le_bytes(), &size].concat()
}

#[test]
fn a_compressed_body_is_inspected_in_both_readings() {
    let headers = |kind: &str, encoding: &str| Headers::from([("content-type", kind), ("content-encoding", encoding)]);
    let ask = |kind: &str, encoding: &str, body: &[u8]| ask(RULES, large(step()), "/", headers(kind, encoding), body).0;
    let form = "application/x-www-form-urlencoded";
    for encoding in ["gzip", "x-gzip", "identity, gzip", "GZIP"] {
        assert_eq!(ask(form, encoding, &gzip(b"", b"q=fine")), None, "{encoding}");
        assert_eq!(ask(form, encoding, &gzip(b"", b"q=evil")), Some(403), "{encoding}");
        assert_eq!(ask(form, encoding, &gzip(b"&q=evil&r=evil", b"q=fine")), Some(403), "{encoding}");
        assert_eq!(ask(form, encoding, b"q=evil"), Some(400), "{encoding}");
    }
    let two = [gzip(b"", b"q=fine"), gzip(b"&comment=evil", b"&r=1")].concat();
    assert_eq!(ask(form, "gzip", &two), Some(403));
    let part = "\r\n--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nevil\r\n--b--\r\n";
    let harmless = multipart(&[("a", "1")]);
    assert_eq!(ask(FORM_DATA, "gzip", &gzip(part.as_bytes(), &harmless)), Some(403));
    assert_eq!(ask(FORM_DATA, "gzip", &gzip(b"", &harmless)), None, "what is stored is in the decoded body as well");
    assert_eq!(ask("application/json", "gzip", &gzip(b"file.json", b"{\"a\":1}")), None);
    assert_eq!(ask(form, "gzip", &[gzip(b"", b"q=fine"), b"&q=evil&rest=more".to_vec()].concat()), Some(400));
}
