//! Bodies of responses that are encoded, or longer than what is inspected.

use super::*;

/// A gzip member of one stored block; a checksum is not looked at where the body is cut.
fn gzip(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap();
    let (low, high) = (length.to_le_bytes(), (!length).to_le_bytes());
    [b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01", low.as_slice(), &high, content].concat()
}

/// What comes of an answer: the status of its refusal, the limits that the trail names, and the score.
fn answer(step: WafStep, encodings: &[&str], body: Body<'_>) -> (Option<u16>, Vec<String>, f64) {
    let (host, plugin, mut slot) = (FakeHost::at(0), plugin(step), Slot::default());
    let mut exchange = exchange("/", Headers::default());
    let _ = plugin.request(&mut exchange, false, &mut slot, &host);
    let headers: Vec<(&str, &str)> = encodings.iter().map(|encoding| ("content-encoding", *encoding)).collect();
    let headers = Headers::new(&[vec![("content-type", "text/plain")], headers].concat());
    exchange.response = Some(Response { status: 200, headers, streaming: false });
    let _ = plugin.response(&mut exchange, true, &mut slot, &host);
    let verdict = plugin.response_body(&mut exchange, body, &mut slot, &host);
    plugin.finish(&mut exchange, &mut slot, &host);
    let trail = host.events_json().into_iter().next().unwrap_or_default();
    let limits = trail["uninspected"].as_array().into_iter().flatten();
    let limits = limits.map(|limit| format!("{} {} {}", limit["collection"], limit["limit"], limit["most"]));
    (status(&verdict), limits.collect(), exchange.score.total())
}

#[test]
fn an_encoded_answer_is_inspected_as_far_as_it_can_be_decoded() {
    let secret = gzip(&[b"a secret".as_slice(), &[b'x'; 5000]].concat());
    let cut = Body { bytes: &secret[..1000], complete: false };
    assert_eq!(answer(step(), &["gzip"], cut).0, Some(500), "the beginning of a compressed body");
    assert_eq!(answer(step(), &["identity", "gzip"], cut).0, Some(500), "several headers are one list");
    let small = WafStep { decompressed_input_body_limit: 100, ..step() };
    assert_eq!(answer(small, &["gzip"], Body { bytes: &secret, complete: true }).0, Some(500), "and of a large one");
}

#[test]
fn a_client_gets_no_answer_in_a_coding_that_cannot_be_undone() {
    let asks = |step: WafStep| {
        let mut exchange = exchange("/", Headers::from([("accept-encoding", "gzip, zstd")]));
        let _ = plugin(step).request(&mut exchange, false, &mut Slot::default(), &FakeHost::at(0));
        exchange.accept_encoding
    };
    assert_eq!(asks(step()).as_deref(), Some(&b"gzip"[..]));
    assert_eq!(asks(WafStep { inspect_output_body: false, ..step() }), None);
}

#[test]
fn what_is_not_inspected_of_an_answer_is_told_and_weighs_nothing() {
    let told = |limit: &str| (None, vec![format!("\"RESPONSE_BODY\" {limit}")], 0.0);
    let body = |bytes: &'static [u8], complete| Body { bytes, complete };
    assert_eq!(answer(step(), &["zstd"], body(b"(\xb5/\xfd", true)), told("\"bytes that can be decoded\" 0"));
    assert_eq!(answer(step(), &[], body(b"a long text", false)), told("\"bytes\" 11"));
    assert_eq!(answer(step(), &["identity"], body(b"a text", true)), (None, Vec::new(), 0.0));
}

#[test]
fn a_gateway_that_fails_open_refuses_nothing_for_a_limit() {
    let open = || WafStep { fail_open: true, ..step() };
    let ask = |step: WafStep, headers: Headers, body: Body<'_>| {
        let (host, plugin, mut slot) = (FakeHost::at(0), plugin(step), Slot::default());
        let mut exchange = exchange("/", headers);
        let verdict = send(&*plugin, &mut exchange, body, &mut slot, &host);
        plugin.finish(&mut exchange, &mut slot, &host);
        (
            status(&verdict),
            exchange.score.tags().contains(&"waf:limit") || exchange.score.tags().contains(&"waf:body_error"),
        )
    };
    let long = [b"a=".as_slice(), &[b'x'; 2000]].concat();
    let encoded = || Headers::from([("content-type", "text/plain"), ("content-encoding", "made-up")]);
    let upgrade = || Headers::from([("upgrade", "websocket"), ("content-length", "5")]);
    for (expected, headers, body) in [
        (413, form(), Body { bytes: &long, complete: true }),
        (413, form(), Body { bytes: b"a=1", complete: false }),
        (415, encoded(), Body { bytes: b"a=1", complete: true }),
    ] {
        assert_eq!(ask(step(), headers.clone(), body).0, Some(expected));
        assert_eq!(ask(open(), headers, body), (None, true), "{expected}");
    }
    let evil = [b"q=evil&a=".as_slice(), &[b'x'; 2000]].concat();
    assert_eq!(ask(open(), form(), Body { bytes: &evil, complete: true }).0, Some(403), "rules refuse all the same");
    let (host, mut slot) = (FakeHost::at(0), Slot::default());
    let mut exchange = exchange("/", upgrade());
    exchange.request.streaming = true;
    assert_eq!(status(&plugin(open()).request(&mut exchange, true, &mut slot, &host)), None);
}
