//! Bodies with content codings: each is undone within the limits, or refused.

use super::*;

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A stream of Brotli whose content is stored (RFC 7932, section 9.2), at most 64 KiB of it.
fn brotli(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len() - 1).unwrap();
    // A window of 64 KiB; no last block, four digits of four bits of its length, stored.
    let head = length << 4 | 1 << 20;
    [&head.to_le_bytes()[..3], bytes, &[3]].concat()
}

fn coded(step: &UploadStep, kind: &str, coding: &str, bytes: &[u8], complete: bool) -> Outcome {
    send(step, "POST", &[("content-type", kind), ("content-encoding", coding)], bytes, complete)
}

#[test]
fn every_coding_is_undone_or_refused() {
    let (good, bad) = (form("a.txt", b"text"), form("a.php", b"x"));
    type Pack = Box<dyn Fn(&[u8]) -> Vec<u8>>;
    let known: [(&str, Pack); 8] = [
        ("gzip", Box::new(gzip)),
        ("X-GZIP", Box::new(gzip)),
        ("deflate", Box::new(zlib)),
        ("br", Box::new(brotli)),
        ("deflate, gzip", Box::new(|bytes| gzip(&zlib(bytes)))),
        ("br,identity,gzip", Box::new(|bytes| gzip(&brotli(bytes)))),
        ("gzip, gzip, gzip", Box::new(|bytes| gzip(&gzip(&gzip(bytes))))),
        ("identity, ", Box::new(<[u8]>::to_vec)),
    ];
    for (coding, pack) in known {
        assert_eq!(coded(&step(), FORM, coding, &pack(&good), true).verdict(), passed(), "{coding}");
        let verdict = coded(&step(), FORM, coding, &pack(&bad), true).verdict();
        assert_eq!(verdict, refused(415, "denied_extension"), "{coding}");
    }
    for coding in [
        "zstd",
        "zstd, gzip",
        "gzip, zstd",
        "compress",
        "dcb",
        "aws-chunked",
        "gzip;q=1",
        "gzip gzip",
        "gzip,gzip,gzip,gzip",
        "gzip, deflate",
        "deflate",
        "br",
    ] {
        for (kind, body) in
            [(FORM, gzip(&good)), ("application/octet-stream", gzip(PNG)), ("application/json", gzip(b"{}"))]
        {
            let outcome = coded(&step(), kind, coding, &body, true);
            assert_eq!(outcome.verdict(), refused(415, "undecodable_body"), "{coding} {kind}");
            let allowed = UploadStep { reject_unreadable: false, ..step() };
            let verdict = coded(&allowed, kind, coding, &body, true).verdict();
            assert_eq!(verdict, refused(415, "undecodable_body"), "{coding} {kind}");
        }
    }
    let named = coded(&step(), FORM, "zstd", b"x", true);
    assert!(String::from_utf8_lossy(&named.reply().body).contains("`zstd`"));
}

#[test]
fn what_is_wrong_in_an_inner_coding_is_no_short_body() {
    let short = UploadStep { body_limit: 4000, ..step() };
    // The outer coding has more than the limit, and the beginning of that is nothing in the inner one.
    let hidden = [gzip(b"").repeat(1001), form("a.php", b"x")].concat();
    assert_eq!(coded(&short, FORM, "gzip, gzip", &gzip(&hidden), true).verdict(), refused(415, "undecodable_body"));
    let noise = [vec![b'x'; 5000], gzip(&form("a.php", b"x"))].concat();
    assert_eq!(coded(&short, FORM, "gzip, gzip", &gzip(&noise), true).verdict(), refused(415, "undecodable_body"));
    // A name that is longer than what is inspected is in front of the data.
    let named = flate2::GzBuilder::new().filename(vec![b'a'; 5000]).write(Vec::new(), flate2::Compression::best());
    let body = named.finish().unwrap();
    assert_eq!(coded(&short, FORM, "gzip", &body, false).verdict(), refused(415, "undecodable_body"));
    // Of an ordinary body that is longer, the beginning is inspected.
    let text: String = (0..2000).map(|at| format!("{at},")).collect();
    let long = |name: &str| gzip(&form(name, text.as_bytes()));
    let outcome = coded(&short, FORM, "gzip", &long("a.txt"), true);
    assert_eq!((outcome.verdict(), outcome.tags), (passed(), vec!["upload:partly_inspected".to_owned()]));
    assert_eq!(coded(&short, FORM, "gzip", &long("a.php"), true).verdict(), refused(415, "denied_extension"));
}

#[test]
fn a_coded_body_is_inspected_as_it_was_sent_too() {
    let script = b"<?php system($_GET['c']); ?> and some more text";
    let hidden = [brotli(script), brotli(b"x")].concat();
    let octets = "application/octet-stream";
    assert_eq!(coded(&step(), octets, "br", &hidden, true).verdict(), refused(415, "undecodable_body"));
    // The name of a member is nothing that the decoded body has.
    let carrying = |name: &[u8]| {
        let builder = flate2::GzBuilder::new().filename(name);
        let mut encoder = builder.write(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(PNG).unwrap();
        encoder.finish().unwrap()
    };
    assert_eq!(coded(&step(), octets, "gzip", &carrying(b"a.png"), true).verdict(), passed());
    assert_eq!(coded(&step(), octets, "br", &brotli(PNG), true).verdict(), passed());
    assert_eq!(coded(&step(), octets, "br", &brotli(b"a,b\r\n1,2"), true).verdict(), passed());
    // The decoded text holds it as data may, the coded bytes begin with no name that says so.
    let data = [b"id,text\r\n1,".as_slice(), script].concat();
    let headers = [("content-type", octets), ("content-encoding", "br"), ("x-file-name", "a.csv")];
    assert_eq!(send(&step(), "POST", &headers, &brotli(&data), true).verdict(), refused(415, "polyglot"));
    let field = JsonField { path: "file".into(), name: String::new() };
    let step = UploadStep { json_fields: vec![field], ..step() };
    let json = b"{\"file\": \"\"}";
    assert_eq!(coded(&step, "application/json", "gzip", &gzip(json), true).verdict(), passed());
}

#[test]
fn coded_bytes_are_json_only_where_they_hold_a_field() {
    let field = JsonField { path: "file".into(), name: String::new() };
    let step = UploadStep { json_fields: vec![field], archive_max_ratio: 10_000, ..step() };
    // 70,000 letters as Node.js compresses them: a block of five digits, the last one, begins with `[`.
    let letters = b"\x5b\x6f\x11\x81\x5f\x22\x2c\x1e\x0b\x04\x52\x12\x02\0";
    assert_eq!(coded(&step, "text/plain", "br", letters, true).verdict(), passed());
    // Stored JSON in a stream of another beginning.
    let json = b"{\"file\": \"aGVsbG8=\"}";
    let mut stored = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    stored.write_all(json).unwrap();
    assert_eq!(coded(&step, "application/json", "gzip", &stored.finish().unwrap(), true).verdict(), passed());
    // An empty block of metadata and the head of a stored one of 9,221 bytes, which are white space.
    let both = |json: &[u8]| {
        let mut body = json.to_vec();
        body.resize(9221, b' ');
        [b"\x0c \x20\t".as_slice(), &body, b"\x03"].concat()
    };
    assert_eq!(coded(&step, "application/json", "br", &both(json), true).verdict(), refused(415, "undecodable_body"));
    assert_eq!(coded(&step, "application/json", "br", &both(b"{\"a\": \"aGVsbG8=\"}"), true).verdict(), passed());
}

#[test]
fn the_length_of_a_body_without_a_coding_counts() {
    let step = UploadStep { body_limit: 2000, max_file_size: 3000, ..step() };
    let sent = |coding: &str, length: &str| {
        let headers = [("content-type", "text/csv"), ("content-encoding", coding), ("content-length", length)];
        send(&step, "POST", &headers, &[b'a'; 2000], false).verdict()
    };
    for coding in ["", "identity", "Identity, identity"] {
        assert_eq!(sent(coding, "3001"), refused(413, "file_too_large"), "{coding}");
        assert_eq!(sent(coding, "3000"), passed(), "{coding}");
    }
}

#[test]
fn a_form_that_goes_on_may_hold_files() {
    let short = UploadStep { body_limit: 2000, ..step() };
    let field = format!("--cut\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n{}", "x".repeat(3000));
    for kind in [FORM, "multipart/mixed; boundary=cut"] {
        let outcome = send(&short, "POST", &[("content-type", kind)], field.as_bytes(), false);
        assert_eq!((outcome.verdict(), outcome.tags), (passed(), vec!["upload:partly_inspected".to_owned()]), "{kind}");
    }
    let outcome = send(&short, "POST", &[("content-type", "application/json")], &[b'['; 3000], false);
    assert!(outcome.tags.is_empty());
    let fields = UploadStep { json_fields: vec![JsonField { path: "a".into(), name: String::new() }], ..short };
    let outcome = send(&fields, "POST", &[("content-type", "application/json")], &[b'['; 3000], false);
    assert_eq!(outcome.tags, ["upload:partly_inspected"]);
}
