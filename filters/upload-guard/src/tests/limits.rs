//! Options, limits, codings, bodies that are cut off.

use super::*;

#[test]
fn every_option_changes_what_passes() {
    let tar_gz = gzip(&[7; 100]);
    let nested = gzip(&gzip(b"x"));
    let base = step();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    for (what, step, name, content, before, after) in [
        (
            "allowed_extensions",
            UploadStep { allowed_extensions: words(&["pdf"]), ..base.clone() },
            "a.png",
            PNG,
            200,
            415,
        ),
        (
            "denied_extensions",
            UploadStep { denied_extensions: words(&["png"]), ..base.clone() },
            "a.png",
            PNG,
            200,
            415,
        ),
        ("allowed_types", UploadStep { allowed_types: words(&["video"]), ..base.clone() }, "a.png", PNG, 200, 415),
        ("denied_types", UploadStep { denied_types: words(&["image"]), ..base.clone() }, "a.png", PNG, 200, 415),
        ("check_mismatch", UploadStep { check_mismatch: false, ..base.clone() }, "a.pdf", PNG, 415, 200),
        ("max_file_size", UploadStep { max_file_size: 10, ..base.clone() }, "a.png", PNG, 200, 413),
        ("archive_max_depth", UploadStep { archive_max_depth: 1, ..base.clone() }, "a.gz", &nested, 200, 413),
        (
            "archive_max_expanded_size",
            UploadStep { archive_max_expanded_size: 50, ..base.clone() },
            "a.gz",
            &tar_gz,
            200,
            413,
        ),
        (
            "reject_unreadable",
            UploadStep { reject_unreadable: false, ..base.clone() },
            "a.rar",
            b"Rar!\x1a\x07\x01\0",
            415,
            200,
        ),
        ("check_entries", UploadStep { check_entries: true, ..base.clone() }, "a.gz", &gzip(b"#!/bin/sh"), 200, 415),
    ] {
        assert_eq!((upload(&base, name, content).0, upload(&step, name, content).0), (before, after), "{what}");
    }
    let long = gzip(&vec![7; 70_000]);
    assert_eq!(upload(&base, "a.gz", &long), refused(413, "archive_bomb"));
    assert_eq!(upload(&UploadStep { archive_max_ratio: 2000, ..base.clone() }, "a.gz", &long), passed());
    let named = flate2::GzBuilder::new().filename("a").write(Vec::new(), flate2::Compression::best()).finish().unwrap();
    assert_eq!(upload(&base, "a.gz", &[named.as_slice(), &named].concat()), passed());
    let few = UploadStep { archive_max_entries: 1, ..base.clone() };
    assert_eq!(upload(&few, "a.gz", &[named.as_slice(), &named].concat()), refused(413, "archive_entries"));
}

#[test]
fn files_are_counted() {
    let part = |at: usize| {
        format!(
            "--cut\r\ncontent-disposition: form-data; name=\"f\"; filename=\"{at}.txt\"\r\ncontent-type: text/plain\r\n\r\nx\r\n"
        )
    };
    let body = format!("{}--cut--\r\n", (0..5).map(part).collect::<String>());
    assert_eq!(post(&step(), FORM, body.as_bytes()).verdict(), passed());
    let few = UploadStep { max_files: 4, ..step() };
    assert_eq!(post(&few, FORM, body.as_bytes()).verdict(), refused(413, "too_many_files"));
}

#[test]
fn content_codings_are_undone() {
    let body = form("a.php", b"x");
    let coded = |coding: &str, bytes: &[u8]| {
        send(&step(), "POST", &[("content-type", FORM), ("content-encoding", coding)], bytes, true).verdict()
    };
    assert_eq!(coded("gzip", &gzip(&body)), refused(415, "denied_extension"));
    assert_eq!(coded("identity", &body), refused(415, "denied_extension"));
    assert_eq!(coded("gzip", &body), refused(415, "undecodable_body"));
    assert_eq!(coded("zstd", &body), refused(415, "undecodable_body"));
    assert_eq!(coded("gzip", &gzip(&form("a.txt", &vec![b'a'; 500_000]))), refused(413, "archive_bomb"));
    assert_eq!(coded("gzip", &gzip(&form("a.png", PNG))), passed());
}

#[test]
fn of_a_long_body_the_beginning_is_inspected_and_that_is_said() {
    let short = UploadStep { body_limit: 2000, ..step() };
    let head = |name: &str| {
        format!("--cut\r\ncontent-disposition: form-data; name=\"f\"; filename=\"{name}\"\r\ncontent-type: x/y\r\n\r\n")
    };
    let long = |name: &str, content: &[u8]| [head(name).as_bytes(), content, &[b'a'; 3000]].concat();
    let passing = send(&short, "POST", &[("content-type", FORM)], &long("a.txt", b""), false);
    assert_eq!((passing.verdict(), passing.tags), (passed(), vec!["upload:partly_inspected".to_owned()]));
    assert!(passing.host.events_json().is_empty());
    for (name, content, reason) in
        [("a.php", b"".as_slice(), "denied_extension"), ("a.txt", b"#!/bin/sh\n", "denied_type")]
    {
        let outcome = send(&short, "POST", &[("content-type", FORM)], &long(name, content), false);
        assert_eq!(outcome.verdict(), refused(415, reason));
        let body = String::from_utf8_lossy(&outcome.reply().body).into_owned();
        assert!(body.contains("only the first 2000 bytes of the body were inspected"), "{body}");
        let event = &outcome.host.events_json()[0];
        assert!(
            event["message"].as_str().unwrap().ends_with("only the first 2000 bytes of the body were inspected"),
            "{event}"
        );
    }
    // The second file is where the body is cut off.
    let two = [form("a.txt", b"x").strip_suffix(b"--cut--\r\n").unwrap(), &long("b.php", b"")].concat();
    assert_eq!(
        send(&short, "POST", &[("content-type", FORM)], &two, false).verdict(),
        refused(415, "denied_extension")
    );
    // A body without files says nothing.
    let quiet = send(&short, "POST", &[("content-type", "application/json")], &[b'1'; 3000], false);
    assert_eq!((quiet.verdict(), quiet.tags.len()), (passed(), 0));
    // The length of a raw body is that of its header.
    let sized = UploadStep { max_file_size: 5000, ..short.clone() };
    let headers = [("content-type", "x/y"), ("content-length", "6000")];
    assert_eq!(send(&sized, "POST", &headers, &[b'a'; 3000], false).verdict(), refused(413, "file_too_large"));
    // A coded body that is longer decoded than the limit is inspected up to it.
    let coded = [("content-type", "x/y"), ("content-encoding", "gzip")];
    let noise: Vec<u8> =
        (0..5000_u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[..1].to_vec()).collect();
    let outcome = send(&UploadStep { body_limit: 4000, ..step() }, "POST", &coded, &gzip(&noise), true);
    assert_eq!((outcome.verdict(), outcome.tags), (passed(), vec!["upload:partly_inspected".to_owned()]));
    // A field of JSON that is cut off.
    let field = JsonField { path: "a".into(), name: String::new() };
    let fields = UploadStep { json_fields: vec![field], ..short.clone() };
    let text = format!("{{\"a\": \"{}", STANDARD.encode([b"#!/bin/sh\n".as_slice(), &[b'x'; 3000]].concat()));
    assert_eq!(
        send(&fields, "POST", &[("content-type", "application/json")], text.as_bytes(), false).verdict().1,
        "denied_type"
    );
}

#[test]
fn a_request_for_an_upgrade_is_no_way_around() {
    let upgrade =
        [("upgrade", "websocket"), ("connection", "upgrade"), ("content-length", "500"), ("content-type", FORM)];
    let all: Vec<(&str, &str)> = [(":method", "POST"), (":path", "/files")].into_iter().chain(upgrade).collect();
    let (request, _) = Request::read(Headers::new(&all), b"HTTP/1.1".to_vec(), false);
    let global = vec![Step { plugin: PLUGIN.name.into(), config: step().encode_to_vec(), ..Step::default() }];
    let snapshot = Snapshot { filter: "preset".into(), global, ..Snapshot::default() };
    let chain = Chain::load(&snapshot, &[PLUGIN]).unwrap();
    let host = FakeHost::at(0);
    let start = Start { request, route: b"", peer: b"192.0.2.7:1", node: &"node".into() };
    let mut run = Run::new(&chain, start, &host);
    let Flow::Answer(reply) = run.request_headers(true, &host) else { panic!("it goes on") };
    assert_eq!(reply.status, 415);
    assert_eq!(run.exchange().score.tags(), ["upload:undecodable_body"]);
}
