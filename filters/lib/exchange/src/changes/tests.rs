use super::*;
use crate::fake::FakeHost;
use crate::{Request, Response};

fn exchange(request: Headers) -> Exchange {
    Exchange { request: Request { headers: request, ..Request::default() }, ..Exchange::default() }
}

fn with_response(status: u16, headers: Headers) -> Exchange {
    Exchange { response: Some(Response { status, headers, streaming: false }), ..Exchange::default() }
}

fn logged(host: &FakeHost) -> usize {
    host.logged.borrow().len()
}

#[test]
fn a_change_is_seen_at_once_and_carried_out_once() {
    let host = FakeHost::at(0);
    let mut exchange = exchange(Headers::from([("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")]));
    let changes = [
        HeaderChange::set("A", "5"),
        HeaderChange::remove("b"),
        HeaderChange::add("c", "6"),
        HeaderChange::set("d", "7"),
        HeaderChange::remove("never-there"),
    ];
    assert!(changes.iter().all(|change| exchange.change_request(change.clone(), &host)));
    assert_eq!(exchange.request.headers, Headers::from([("a", "5"), ("c", "4"), ("c", "6"), ("d", "7")]));
    assert_eq!(exchange.changes.take(Half::Request), changes);
    assert!(exchange.changes.take(Half::Request).is_empty());
    assert!(!exchange.change_request(HeaderChange::set("a", "8"), &host), "the headers have gone");
    assert_eq!((exchange.request.headers.get("a"), logged(&host)), (Some(&b"5"[..]), 1));
}

#[test]
fn headers_that_are_not_a_plugins_are_refused() {
    let host = FakeHost::at(0);
    let both = [
        ":path",
        "host",
        "content-length",
        "Transfer-Encoding",
        "connection",
        "upgrade",
        "te",
        "content-encoding",
        "content-range",
        "",
        "a b",
        "a\r\nb",
    ];
    let of_request = ["accept-encoding", "expect", "x-request-id", "X-Envoy-Retry-On"];
    let change_both = |name: &str| {
        let (mut request, mut response) = (exchange(Headers::default()), with_response(200, Headers::default()));
        let of = [HeaderChange::set(name, "1"), HeaderChange::add(name, "1"), HeaderChange::remove(name)];
        let made = |change: &dyn Fn(HeaderChange) -> bool| of.clone().map(change);
        let request = std::cell::RefCell::new(&mut request);
        let response = std::cell::RefCell::new(&mut response);
        let first = made(&|change| request.borrow_mut().change_request(change, &host));
        let second = made(&|change| response.borrow_mut().change_response(change, &host));
        (first, second)
    };
    for name in both {
        assert_eq!(change_both(name), ([false; 3], [false; 3]), "{name}");
    }
    for name in of_request {
        assert_eq!(change_both(name), ([false; 3], [true; 3]), "{name}");
    }
    assert_eq!(change_both("x-tier"), ([true; 3], [true; 3]));
    assert_eq!(logged(&host), both.len() * 6 + of_request.len() * 3);
}

#[test]
fn values_are_made_safe() {
    let host = FakeHost::at(0);
    let mut exchange = with_response(200, Headers::default());
    assert!(!exchange.change_response(HeaderChange::set("x-a", "b\r\nx-evil: 1"), &host));
    assert!(exchange.change_response(HeaderChange::set("location", "/a\r\nx-evil: 1"), &host));
    assert!(exchange.change_response(HeaderChange::set("x-b", " \tc d\t "), &host));
    let headers = &exchange.response.as_ref().unwrap().headers;
    assert_eq!((headers.get("x-a"), headers.get("x-b")), (None, Some(&b"c d"[..])));
    assert_eq!(headers.get("location"), Some(&b"/a%0D%0Ax-evil:%201"[..]));
}

#[test]
fn changes_are_bounded_in_number_and_bytes() {
    let host = FakeHost::at(0);
    let mut many = exchange(Headers::default());
    let made = (0..2 * MAX_CHANGES).filter(|_| many.change_request(HeaderChange::add("x-a", "1"), &host)).count();
    assert_eq!((made, many.request.headers.all("x-a").count()), (MAX_CHANGES, MAX_CHANGES));
    let mut long = exchange(Headers::default());
    assert!(!long.change_request(HeaderChange::set("x-a", vec![b'x'; MAX_CHANGE_BYTES - 2]), &host));
    assert!(long.change_request(HeaderChange::set("x-a", vec![b'x'; MAX_CHANGE_BYTES - 3]), &host));
    assert!(!long.change_request(HeaderChange::remove("x-b"), &host));
    // Each message has its own bounds.
    long.response = Some(Response::default());
    assert!(long.change_response(HeaderChange::remove("x-b"), &host));
}

#[test]
fn a_message_does_not_become_a_stream_by_its_type() {
    let host = FakeHost::at(0);
    for (from, to, allowed) in [
        ("text/html", "text/plain", true),
        ("text/html", "text/event-stream", false),
        ("text/html", "application/grpc+proto", false),
        ("text/event-stream", "text/plain", false),
        ("application/grpc", "application/grpc+proto", true),
    ] {
        let mut exchange = with_response(200, Headers::from([("content-type", from)]));
        assert_eq!(exchange.change_response(HeaderChange::set("content-type", to), &host), allowed, "{from} to {to}");
    }
    let mut stream = with_response(200, Headers::from([("content-type", "application/grpc")]));
    assert!(!stream.change_response(HeaderChange::remove("content-type"), &host));
}

#[test]
fn a_status_changes_among_those_of_its_kind() {
    let host = FakeHost::at(0);
    assert!(!exchange(Headers::default()).set_response_status(404, &host), "there is no response");
    for (from, to, allowed) in [
        (200, 404, true),
        (500, 200, true),
        (200, 599, true),
        (200, 199, false),
        (200, 600, false),
        (200, 204, false),
        (200, 205, false),
        (200, 206, false),
        (200, 304, false),
        (204, 200, false),
        (206, 200, false),
        (304, 404, false),
        (101, 200, false),
        (0, 200, false),
    ] {
        let mut exchange = with_response(from, Headers::from([(":status", from.to_string())]));
        assert_eq!(exchange.set_response_status(to, &host), allowed, "{from} to {to}");
        let status = if allowed { to } else { from };
        let response = exchange.response.as_ref().unwrap();
        assert_eq!(response.status, status);
        assert_eq!(response.headers.get(":status"), Some(status.to_string().as_bytes()));
        assert_eq!(exchange.changes.take(Half::Response).len(), usize::from(allowed));
    }
    let mut tunnel = with_response(200, Headers::default());
    tunnel.request.method = b"CONNECT".to_vec();
    assert!(!tunnel.set_response_status(403, &host));
    let mut twice = with_response(200, Headers::from([(":status", "200")]));
    assert!(twice.set_response_status(404, &host) && twice.set_response_status(410, &host));
    assert_eq!(
        twice.changes.take(Half::Response),
        [HeaderChange::Set { name: ":status".into(), value: b"410".into() }]
    );
}

#[test]
fn a_replaced_body_removes_what_it_makes_false() {
    let names: Vec<&str> = FALSE_BY_BODY.into_iter().chain(FALSE_BY_RESPONSE_BODY).collect();
    let mut pairs: Vec<(&str, &str)> = names.iter().map(|name| (*name, "x")).collect();
    pairs.extend([("content-length", "100"), ("content-type", "text/plain")]);
    let mut of_response = with_response(200, Headers::new(&pairs));
    assert_eq!(of_response.replaces_body(Half::Response, 100, 7), Ok(()));
    let expected = Headers::from([("content-length", "7"), ("content-type", "text/plain")]);
    assert_eq!(of_response.response.as_ref().unwrap().headers, expected);
    // In a request the others are the client's own words.
    let mut of_request = exchange(Headers::new(&pairs));
    assert_eq!(of_request.replaces_body(Half::Request, 100, 7), Ok(()));
    assert_eq!(of_request.request.headers.regular().count(), expected.regular().count() + FALSE_BY_RESPONSE_BODY.len());
    // A chunked one stays so, and changes of the frame do not count.
    let mut chunked = exchange(Headers::from([("transfer-encoding", "chunked")]));
    assert_eq!(chunked.replaces_body(Half::Request, 100, 7), Ok(()));
    assert!(chunked.changes.take(Half::Request).is_empty());
    assert_eq!(chunked.replaces_body(Half::Request, 7, 7), Err("a body cannot be replaced where headers are not held"));
}

#[test]
fn a_part_is_replaced_by_one_of_its_length() {
    let part = |headers: &[(&str, &str)]| with_response(206, Headers::new(headers));
    let range = ("content-range", "bytes 0-6/100");
    assert!(part(&[range]).replaces_body(Half::Response, 7, 7).is_ok());
    assert!(part(&[range]).replaces_body(Half::Response, 7, 8).is_err());
    assert!(part(&[]).replaces_body(Half::Response, 7, 8).is_err(), "parts of multipart/byteranges have their own");
    assert!(part(&[range, ("content-encoding", "gzip")]).replaces_body(Half::Response, 7, 7).is_err());
    assert!(exchange(Headers::from([range])).replaces_body(Half::Request, 7, 8).is_err());
}

#[test]
fn a_list_with_the_numbers_of_its_entries_is_no_part() {
    let gzip = ("content-encoding", "gzip");
    for (status, range) in [
        (200, "0-14/*"),
        (200, "posts 0-24/319"),
        (200, "bytes 0-6/100"),
        (416, "bytes */100"),
        (206, "items 0-14/100"),
        (206, "0-14/100"),
    ] {
        let list = |headers: &[(&str, &str)]| with_response(status, Headers::new(headers));
        let range = ("content-range", range);
        assert_eq!(list(&[range]).replaces_body(Half::Response, 7, 8), Ok(()), "{status} {range:?}");
        assert_eq!(list(&[range, gzip]).replaces_body(Half::Response, 7, 7), Ok(()), "{status} {range:?}");
    }
    for ranges in [["BYTES 0-6/100", "items 0-1/2"], ["items 0-1/2", " bytes 0-6/100"]] {
        let both = with_response(206, Headers::new(&ranges.map(|range| ("content-range", range))));
        assert!(both.response.is_some_and(|response| response.is_part()), "{ranges:?}");
    }
}
