//! Where files are found in requests.

use super::*;

#[test]
fn files_of_forms_are_inspected() {
    let step = step();
    assert_eq!(upload(&step, "a.png", PNG), passed());
    assert_eq!(upload(&step, "a.exe", b"harmless"), refused(415, "denied_extension"));
    assert_eq!(upload(&step, "a.png.exe", b"harmless"), refused(415, "denied_extension"));
    assert_eq!(upload(&step, "a.php.png", PNG), refused(415, "double_extension"));
    assert_eq!(upload(&step, "a.png", b"#!/bin/sh\nid"), refused(415, "denied_type"));
    assert_eq!(upload(&step, "a.pdf", PNG), refused(415, "type_mismatch"));
    assert_eq!(upload(&step, "a.gif", b"GIF89a/*\0\0\0\0*/=1;"), refused(415, "polyglot"));
    assert_eq!(upload(&step, "a%00.png", PNG), refused(400, "null_byte"));
    assert_eq!(upload(&step, "../a.png", PNG), refused(400, "zip_slip"));
    assert_eq!(upload(&step, "a.gz", &gzip(&vec![0; 9 << 20])), refused(413, "archive_bomb"));
    assert_eq!(upload(&step, "a.7z", b"7z\xbc\xaf\x27\x1c\0\x04\0\0"), refused(415, "unreadable_archive"));
    let fields = b"--cut\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n<?php not a file\r\n--cut--\r\n";
    assert_eq!(post(&step, FORM, fields).verdict(), passed(), "a field is no file");
    let typed = b"--cut\r\ncontent-disposition: form-data; name=\"a\"\r\ncontent-type: image/png\r\n\r\n<?php file\r\n--cut--\r\n";
    assert_eq!(post(&step, FORM, typed).verdict().0, 415, "a part with the type of a file is one");
}

#[test]
fn the_transfer_encoding_of_a_part_is_undone_as_well() {
    let part = |encoding: &str, content: &str| {
        format!(
            "--cut\r\ncontent-disposition: form-data; name=\"f\"; filename=\"a.bin\"\r\ncontent-type: x/y\r\n\
             content-transfer-encoding: {encoding}\r\n\r\n{content}\r\n--cut--\r\n"
        )
    };
    let script = STANDARD.encode(b"#!/bin/sh\nid");
    for (encoding, content, expected) in [
        ("base64", script.as_str(), refused(415, "denied_type")),
        ("Base64", &script, refused(415, "denied_type")),
        ("quoted-printable", "=23=21/bin/sh", refused(415, "denied_type")),
        ("base64", "%%%", refused(415, "undecodable_body")),
        ("8bit", "hello", passed()),
    ] {
        assert_eq!(post(&step(), FORM, part(encoding, content).as_bytes()).verdict(), expected, "{encoding} {content}");
    }
}

#[test]
fn forms_that_cannot_be_read_are_malformed() {
    let step = step();
    for body in [
        b"no boundary".as_slice(),
        b"--cut\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx",
        b"--cut\r\ncontent-disposition: form-data; name=\"a\"; filename=\"b\"; filename=\"c.php\"\r\n\r\nx\r\n--cut--\r\n",
        b"--cut\r\nno colon\r\n\r\nx\r\n--cut--\r\n",
    ] {
        assert_eq!(post(&step, FORM, body).verdict(), refused(400, "malformed_multipart"), "{}", body.escape_ascii());
    }
    assert_eq!(post(&step, "multipart/form-data", b"x").verdict(), refused(400, "malformed_multipart"));
    assert_eq!(post(&step, "multipart/mixed; boundary=b", b"x").verdict(), refused(400, "malformed_multipart"));
}

#[test]
fn other_multipart_bodies_are_inspected_and_those_in_forms() {
    let inner = "--in\r\ncontent-disposition: attachment; filename=\"a.php\"\r\n\r\nx\r\n--in--\r\n";
    let mixed = post(&step(), "multipart/mixed; boundary=in", inner.as_bytes());
    assert_eq!(mixed.verdict(), refused(415, "denied_extension"));
    let nested = format!(
        "--cut\r\ncontent-disposition: form-data; name=\"f\"\r\ncontent-type: multipart/mixed; boundary=in\r\n\r\n{inner}\r\n--cut--\r\n"
    );
    assert_eq!(post(&step(), FORM, nested.as_bytes()).verdict(), refused(415, "denied_extension"));
    let related = "--in\r\ncontent-type: application/json\r\n\r\n{}\r\n--in\r\ncontent-type: image/png\r\n\r\n#!/bin/sh\r\n--in--\r\n";
    assert_eq!(
        post(&step(), "multipart/related; boundary=in", related.as_bytes()).verdict(),
        refused(415, "denied_type")
    );
    let deep = (0..5).fold("x".to_owned(), |body, _| {
        format!("--in\r\ncontent-type: multipart/mixed; boundary=in\r\n\r\n{body}\r\n--in--\r\n")
    });
    assert_eq!(
        post(&step(), "multipart/mixed; boundary=in", deep.as_bytes()).verdict(),
        refused(400, "malformed_multipart")
    );
}

#[test]
fn bodies_that_are_files_are_inspected() {
    let step = step();
    let raw = |headers: &[(&str, &str)], body: &[u8]| send(&step, "POST", headers, body, true).verdict();
    let octets = ("content-type", "application/octet-stream");
    assert_eq!(raw(&[octets], PNG), passed());
    assert_eq!(raw(&[octets], b"\x7fELF\x02\x01\x01\0\0\0"), refused(415, "denied_type"));
    assert_eq!(raw(&[], b"\x7fELF\x02\x01\x01\0\0\0"), refused(415, "denied_type"));
    assert_eq!(raw(&[("content-type", "image/png")], b"plain text"), refused(415, "type_mismatch"));
    let named = ("content-disposition", "attachment; filename=\"a.php\"");
    assert_eq!(raw(&[octets, named], PNG), refused(415, "denied_extension"));
    assert_eq!(raw(&[octets, ("content-disposition", "attachment; filename*=utf-8''a%2ephp")], PNG).0, 415);
    assert_eq!(raw(&[octets, ("slug", "a.php")], PNG), refused(415, "denied_extension"));
    assert_eq!(raw(&[octets, ("x-file-name", "a%2ephp")], PNG), refused(415, "denied_extension"));
    // The path of a PUT is the file's name, that of a POST is not.
    assert_eq!(send(&step, "PUT", &[octets], PNG, true).verdict(), refused(415, "denied_extension"));
}

#[test]
fn bodies_that_say_they_are_data_are_files_where_their_content_is_one() {
    let step = step();
    for (kind, body, expected) in [
        ("application/json", b"{\"html\": \"<script><?php\"}".as_slice(), 200),
        ("application/json", b"\x7fELF\x02\x01\x01\0\0\0", 415),
        ("application/json", b"<?php system('id');", 415),
        ("application/x-www-form-urlencoded", b"a=%3C%3Fphp&b=<?php", 200),
        ("application/x-www-form-urlencoded", b"<?php system('id');", 415),
        ("application/xml", b"<?xml version=\"1.0\"?><order>1</order>", 200),
        ("application/soap+xml", b"<?xml version=\"1.0\"?><e><![CDATA[<?php ?>]]></e>", 200),
        ("text/xml", b"<svg onload=\"alert(1)\"/>", 415),
        ("text/plain", b"a message", 200),
        ("text/plain", b"#!/bin/sh\nid", 415),
        ("application/grpc-web+proto", b"\0\0\0\0\x05hello", 200),
        ("application/x-protobuf", b"\x08\x96\x01", 200),
    ] {
        assert_eq!(post(&step, kind, body).verdict().0, expected, "{kind} {}", body.escape_ascii());
    }
}

#[test]
fn declared_fields_of_json_are_inspected() {
    let field = |path: &str, name: &str| JsonField { path: path.into(), name: name.into() };
    let step = UploadStep { json_fields: vec![field("files[].content", "name"), field("avatar", "")], ..step() };
    let ask = |body: Value| post(&step, "application/json; charset=utf-8", body.to_string().as_bytes()).verdict();
    let script = STANDARD.encode(b"#!/bin/sh\nid");
    assert_eq!(ask(json!({ "avatar": STANDARD.encode(PNG), "other": script })), passed());
    assert_eq!(ask(json!({ "avatar": script })), refused(415, "denied_type"));
    assert_eq!(ask(json!({ "avatar": format!("data:image/png;base64,{script}") })), refused(415, "denied_type"));
    assert_eq!(
        ask(json!({ "avatar": format!("data:image/png;base64,{}", STANDARD.encode(b"text")) })),
        refused(415, "type_mismatch")
    );
    assert_eq!(ask(json!({ "avatar": "not base64!" })), refused(415, "undecodable_body"));
    assert_eq!(ask(json!({ "avatar": "", "files": [] })), passed());
    assert_eq!(ask(json!({ "files": [{ "name": "a.png", "content": STANDARD.encode(PNG) }] })), passed());
    assert_eq!(
        ask(json!({ "files": [{ "name": "a.php", "content": STANDARD.encode(PNG) }] })),
        refused(415, "denied_extension")
    );
    let few = UploadStep { max_files: 1, ..step.clone() };
    let two = json!({ "files": [{ "content": "AAAA" }, { "content": "AAAA" }] }).to_string();
    assert_eq!(post(&few, "application/json", two.as_bytes()).verdict(), refused(413, "too_many_files"));
}
