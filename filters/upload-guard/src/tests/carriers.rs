//! Requests that an application may read in another way than their type says.

use super::*;

/// A request to a path, with a content type unless it is empty.
fn to(step: &UploadStep, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    send_to(step, method, path, headers, body, true).verdict()
}

fn put(path: &str, kind: &str, body: &str) -> (u16, String) {
    to(&step(), "PUT", path, &[("content-type", kind)], body.as_bytes())
}

fn with_fields() -> UploadStep {
    let field = |path: &str, name: &str| JsonField { path: path.into(), name: name.into() };
    UploadStep { json_fields: vec![field("avatar", "fileName")], ..step() }
}

#[test]
fn parts_with_a_multipart_type_are_files_too() {
    let part = |head: &str, content: &str| {
        let head =
            format!("content-disposition: form-data; name=\"f\"{head}\r\ncontent-type: multipart/related; boundary=zz");
        format!("--cut\r\n{head}\r\n\r\n{content}\r\n--zz\r\n\r\nx\r\n--zz--\r\n--cut--\r\n")
    };
    let script = "<?php system('id');";
    for kind in [FORM, "multipart/mixed; boundary=cut"] {
        let ask = |body: String| post(&step(), kind, body.as_bytes()).verdict();
        assert_eq!(ask(part("; filename=\"shell.php\"", script)), refused(415, "denied_extension"), "{kind}");
        assert_eq!(ask(part("; filename=\"a.txt\"", script)), refused(415, "denied_type"), "{kind}");
        assert_eq!(ask(part("; filename=\"a.txt\"", "text")), passed(), "{kind}");
        assert_eq!(ask(part("", "text")), passed(), "{kind}");
    }
    let inner = STANDARD.encode("--zz\r\n\r\nx\r\n--zz--");
    let encoded = format!(
        "--cut\r\ncontent-disposition: form-data; name=\"f\"\r\ncontent-type: multipart/mixed; boundary=zz\r\n\
         content-transfer-encoding: base64\r\n\r\n{inner}\r\n--cut--\r\n"
    );
    assert_eq!(post(&step(), FORM, encoded.as_bytes()).verdict(), refused(400, "malformed_multipart"));
}

#[test]
fn multipart_types_that_applications_read_in_two_ways_are_malformed() {
    let hidden =
        "--a\r\ncontent-disposition: form-data; name=\"f\"; filename=\"shell.php\"\r\n\r\n<?php 1;\r\n--a--\r\n";
    let shown = format!("--a,b\r\n\r\nx\r\n--a,b--\r\n{hidden}--zz\r\n\r\nx\r\n--zz--\r\n");
    for kind in [
        "multipart/form-data,; boundary=a,b",
        "multipart/form-data boundary=\"a,b\"; boundary=a",
        "multipart/mixed; boundary=zz; boundary=a",
        "multipart/mixed; boundary=\"zz\"; Boundary*=a",
        "multipart/mixed; boundary=zz",
        "text/plain; multipart; boundary=a",
        "text/plain,multipart/form-data; boundary=a",
    ] {
        assert_eq!(post(&step(), kind, shown.as_bytes()).verdict(), refused(400, "malformed_multipart"), "{kind}");
    }
    let behind = format!("--zz\r\n\r\nx\r\n--zz--\r\n{hidden}");
    let kind = "multipart/mixed; boundary=zz";
    assert_eq!(post(&step(), kind, behind.as_bytes()).verdict(), refused(400, "malformed_multipart"));
    let many =
        format!("--zz\r\n{}content-disposition: form-data; filename=a.php\r\n\r\nx\r\n--zz--", "A: b\r\n".repeat(64));
    assert_eq!(post(&step(), kind, many.as_bytes()).verdict(), refused(400, "malformed_multipart"));
}

#[test]
fn multipart_bodies_of_ordinary_clients_pass() {
    let parts = |boundary: &str, image: &str| {
        format!(
            "--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{{\"name\": \"a.png\"}}\r\n--{boundary}\r\n\
             Content-Type: image/png\r\n{image}\r\n--{boundary}--\r\n"
        )
    };
    let base64 = format!("Content-Transfer-Encoding: base64\r\n\r\n{}", STANDARD.encode(PNG));
    for (kind, boundary) in [
        ("multipart/related; boundary=\"===============7330==\"", "===============7330=="),
        ("multipart/related; boundary=foo_bar_baz", "foo_bar_baz"),
        (
            "multipart/related; type=\"application/xop+xml\"; boundary=\"uuid:6e-1+id=2\"; start=\"<a@b>\"",
            "uuid:6e-1+id=2",
        ),
        ("multipart/mixed; boundary=----=_Part_1_2.3", "----=_Part_1_2.3"),
    ] {
        assert_eq!(post(&step(), kind, parts(boundary, &base64).as_bytes()).verdict(), passed(), "{kind}");
    }
    let images = UploadStep { allowed_types: vec!["image".into(), "json".into()], ..step() };
    assert_eq!(post(&images, "multipart/related; boundary=b", parts("b", &base64).as_bytes()).verdict(), passed());
    // The bytes of a batch (OData): requests, and a set of changes.
    let batch = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n--changeset_2\r\n\
        Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 1\r\n\r\n\
        POST /People HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{}\r\n--changeset_2--\r\n--batch_1--\r\n";
    assert_eq!(post(&step(), "multipart/mixed; boundary=batch_1", batch.as_bytes()).verdict(), passed());
}

#[test]
fn encoded_parts_are_looked_at_as_they_were_sent() {
    let ask = |kind: &str, encoding: &str, content: &str| {
        let body = format!(
            "--cut\r\ncontent-disposition: form-data; name=\"f\"; filename=\"a.bin\"\r\n\
             content-transfer-encoding: {encoding}\r\n\r\n{content}\r\n--cut--\r\n"
        );
        post(&step(), kind, body.as_bytes()).verdict()
    };
    for kind in [FORM, "multipart/mixed; boundary=cut"] {
        assert_eq!(ask(kind, "base64", "QUFB=<?php system('id');"), refused(415, "denied_type"), "{kind}");
        assert_eq!(ask(kind, "base64", "QUE=QUE="), refused(415, "undecodable_body"), "{kind}");
        assert_eq!(ask(kind, "quoted-printable", "#!=\r\nx=41/bin/sh"), ask(kind, "8bit", "#!xA/bin/sh"), "{kind}");
        // What is sent is a script, what it stands for is none.
        assert_eq!(ask(kind, "quoted-printable", "=3D\r\n<?=41 system('id');"), refused(415, "denied_type"), "{kind}");
        assert_eq!(ask(kind, "quoted-printable", "caf=C3=A9"), passed(), "{kind}");
    }
    // An image in base64 is no text with the name of an image.
    let image = format!(
        "--cut\r\ncontent-disposition: form-data; name=\"f\"; filename=\"a.png\"\r\ncontent-type: image/png\r\n\
         content-transfer-encoding: base64\r\n\r\n{}\r\n--cut--\r\n",
        STANDARD.encode(PNG)
    );
    assert_eq!(post(&step(), FORM, image.as_bytes()).verdict(), passed());
}

#[test]
fn coded_bodies_hide_no_parts_from_applications_that_do_not_undo_the_coding() {
    let ask = |kind: &str, coded: &[u8]| {
        send(&step(), "POST", &[("content-type", kind), ("content-encoding", "gzip")], coded, true).verdict()
    };
    let coded = |level: u32, name: &[u8], body: &[u8]| {
        let builder = flate2::GzBuilder::new().filename(name);
        let mut encoder = builder.write(Vec::new(), flate2::Compression::new(level));
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    };
    let honest = form("a.txt", b"text");
    let name = [b"\r\n".as_slice(), &form("shell.php", b"<?php 1;")].concat();
    for kind in [FORM, "multipart/mixed; boundary=cut"] {
        for level in [0, 6] {
            assert_eq!(ask(kind, &coded(level, &name, &honest)), refused(415, "undecodable_body"), "{kind} {level}");
            assert_eq!(ask(kind, &coded(level, b"a.txt", &honest)), passed(), "{kind} {level}");
        }
    }
    let text = form("a.txt", b"<?php system('id');");
    let name = [b"\r\n".as_slice(), &text].concat();
    assert_eq!(ask(FORM, &coded(0, &name, &honest)), refused(415, "undecodable_body"), "another content");
}

#[test]
fn names_count_whatever_the_type_says() {
    let fields = "--cut\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n--cut--\r\n";
    for (kind, body) in [
        ("text/plain", "x"),
        ("application/json", "{}"),
        ("application/x-www-form-urlencoded", "a=b"),
        ("application/xml", "<order/>"),
        (FORM, fields),
        ("multipart/mixed; boundary=cut", fields),
    ] {
        let named = |header: &str, value: &str| {
            to(&step(), "POST", "/files", &[("content-type", kind), (header, value)], body.as_bytes())
        };
        let disposition = |name: &str| named("content-disposition", &format!("attachment; filename=\"{name}\""));
        assert_eq!(disposition("shell.php"), refused(415, "denied_extension"), "{kind}");
        assert_eq!(named("x-file-name", "shell%2ephp"), refused(415, "denied_extension"), "{kind}");
        assert_eq!(named("x-filename", "a.php.png"), refused(415, "double_extension"), "{kind}");
        for header in ["x-file-name", "x-filename"] {
            assert_eq!(named(header, ".htaccess/"), refused(415, "denied_extension"), "{kind}");
            assert_eq!(named(header, "shell.phtml/."), refused(415, "denied_extension"), "{kind}");
            for path in ["../../a.txt", "../../app/config.json", "..%2f..%2fa.txt", "..%252fa.txt"] {
                assert_eq!(named(header, path), refused(400, "zip_slip"), "{kind} {path}");
            }
            for path in ["photos/2024/a.png", "C:\\Users\\a\\a.png", "/tmp/a.png"] {
                assert_eq!(named(header, path), passed(), "{kind} {path}");
            }
        }
        // Metadata of a file is not its content, and the title of an entry is no name.
        assert_eq!((disposition("a.png"), named("x-file-name", "a.png")), (passed(), passed()), "{kind}");
        assert_eq!(named("slug", "How to use node.js"), passed(), "{kind}");
    }
    let few = UploadStep { denied_types: vec!["data".into()], ..step() };
    let headers = [("content-type", "application/json"), ("x-file-name", "a.png")];
    assert_eq!(to(&few, "POST", "/files", &headers, b"{}"), passed(), "only the name is looked at");
}

#[test]
fn the_path_of_a_put_counts_where_the_body_may_be_stored() {
    for (path, kind, body, reason) in [
        ("/shell.php", "text/plain", "x<?php system('id');", "denied_extension"),
        ("/shell.php", "text/plain", "x", "denied_extension"),
        ("/shell%2Ephp", "application/xml", "<a/>", "denied_extension"),
        ("/run.bat", "text/plain", "del x", "denied_extension"),
        ("/shell.php", "application/json", "x<?php system('id');", "denied_extension"),
        ("/shell.jsp/", "text/plain", "x", "denied_extension"),
        ("/shell.jsp//", "text/plain", "x", "denied_extension"),
        ("/shell.phtml/.", "text/plain", "x", "denied_extension"),
        ("/shell.jsp/%2e", "text/plain", "x", "denied_extension"),
        ("/shell.jsp/;a=b", "text/plain", "x", "denied_extension"),
        ("/shell.jsp;a.b=c", "text/plain", "x", "denied_extension"),
        ("/shell.jsp/", "application/octet-stream", "x", "denied_extension"),
        ("/shell.jsp", "application/json", "{\"a\": \"<% out.print(1); %>\"}", "denied_extension"),
        ("/shell.php", "application/x-www-form-urlencoded", "a=<?php system('id');", "denied_extension"),
        (
            "/shell.php",
            FORM,
            "--cut\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n<?php 1;\r\n--cut--\r\n",
            "denied_extension",
        ),
    ] {
        assert_eq!(put(path, kind, body), refused(415, reason), "{path} {kind}");
    }
    for (path, kind, body) in [
        ("/api/users/1.json", "application/json", "{\"a\": 1}"),
        ("/api/users.php", "application/json", "{\"a\": 1}"),
        ("/api/users.php", "text/plain;charset=UTF-8", "{\"a\": 1}"),
        ("/api/users.php", "application/x-www-form-urlencoded", "a=1"),
        ("/api/users.php", FORM, "--cut\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n--cut--\r\n"),
        ("/pages/index.html", "application/json", "{\"html\": \"<script>1</script>\"}"),
        ("/pages/index.html", "text/plain", "hello"),
        ("/pages/index.html/", "text/plain", "hello"),
        ("/api/users.php/", "application/json", "{\"a\": 1}"),
        ("/users/bob@example.com", "application/xml", "<user/>"),
        ("/users/bob@example.com", "text/plain", "hello"),
    ] {
        assert_eq!(put(path, kind, body), passed(), "{path} {kind}");
        let pdf = UploadStep { allowed_extensions: vec!["pdf".into()], ..step() };
        assert_eq!(to(&pdf, "PUT", path, &[("content-type", kind)], body.as_bytes()), passed(), "{path} {kind}");
    }
    assert_eq!(to(&step(), "POST", "/shell.php", &[("content-type", "text/plain")], b"x"), passed());
}

#[test]
fn fields_of_json_are_read_whatever_the_type_and_the_case() {
    let step = with_fields();
    let script = STANDARD.encode(b"#!/bin/sh\nid");
    let document = format!(" {{\"avatar\": \"{script}\"}}");
    for kind in
        ["text/plain", "application/json", "application/octet-stream", "application/x-www-form-urlencoded", "text/json"]
    {
        assert_eq!(post(&step, kind, document.as_bytes()).verdict(), refused(415, "denied_type"), "{kind}");
    }
    assert_eq!(to(&step, "POST", "/", &[], document.as_bytes()), refused(415, "denied_type"));
    let ask = |body: &str| post(&step, "application/json", body.as_bytes()).verdict();
    assert_eq!(ask(&format!("{{\"AVATAR\": \"{script}\"}}")), refused(415, "denied_type"));
    let png = STANDARD.encode(PNG);
    assert_eq!(ask(&format!("{{\"Avatar\": \"{png}\", \"FILENAME\": \"a.php\"}}")), refused(415, "denied_extension"));
    assert_eq!(ask(&format!("{{\"avatar\": \"{png}\", \"filename\": \"a.png\"}}")), passed());
    let padded = STANDARD.encode([PNG, b"x"].concat());
    assert!(padded.ends_with('='));
    assert_eq!(ask(&format!("{{\"avatar\": \"{padded}{script}\"}}")), refused(415, "undecodable_body"));
    assert_eq!(
        ask(&format!("{{\"avatar\": \"{padded}\\r\\n\"}}")),
        post(&step, FORM, &form("a", &[PNG, b"x"].concat())).verdict()
    );
}

#[test]
fn json_in_utf_16_is_undecodable_where_fields_are_declared() {
    let wide = |order: fn(u16) -> [u8; 2], text: &str| text.encode_utf16().flat_map(order).collect::<Vec<_>>();
    let document = format!("{{\"avatar\": \"{}\"}}", STANDARD.encode(b"#!/bin/sh\nid"));
    for text in [document.clone(), format!("\u{feff}{document}"), format!(" \n[{document}]")] {
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            for kind in ["application/json; charset=utf-16", "text/plain", "application/octet-stream"] {
                let body = wide(order, &text);
                assert_eq!(post(&with_fields(), kind, &body).verdict(), refused(415, "undecodable_body"), "{kind}");
            }
        }
    }
    let table = wide(u16::to_le_bytes, "\u{feff}a\tb\r\n");
    assert_eq!(post(&with_fields(), "text/csv", &table).verdict(), passed());
}

#[test]
fn what_is_in_front_of_a_field_of_json_does_not_hide_it() {
    let script = STANDARD.encode(b"<?php system('id');");
    let png = STANDARD.encode(PNG);
    let field = |path: &str, name: &str| JsonField { path: path.into(), name: name.into() };
    let step = UploadStep { json_fields: vec![field("avatar", "name"), field("files[].content", "name")], ..step() };
    let ask = |body: String| post(&step, "application/json", body.as_bytes()).verdict();
    for depth in [10, 127, 128, 1000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let body = format!("{{\"x\":{open}\"]\"{close},\"avatar\":\"{script}\"}}");
        assert_eq!(ask(body), refused(415, "denied_type"), "{depth}");
    }
    let list =
        |item: &str, count: usize, last: &str| format!("{{\"files\":[{}{last}]}}", format!("{item},").repeat(count));
    let evil = format!("{{\"content\":\"{script}\"}}");
    for empty in ["", "data:,", "data:image/png;base64,"] {
        let item = format!("{{\"content\":\"{empty}\"}}");
        assert_eq!(ask(list(&item, 101, &evil)), refused(415, "denied_type"), "{empty}");
        assert_eq!(ask(list(&item, 101, "{}")), passed(), "{empty}");
    }
    let item = format!("{{\"content\":\"{png}\"}}");
    assert_eq!((ask(list(&item, 99, &item)), ask(list(&item, 100, &evil))), (passed(), refused(413, "too_many_files")));
    // Names of other objects are no names of the file, however many they are.
    let item = "{\"name\":\"a.png\"}";
    let named = |name: &str| format!("{{\"content\":\"{png}\",\"name\":\"{name}\"}}");
    assert_eq!(ask(list(item, 1000, &named("a.php"))), refused(415, "denied_extension"));
    assert_eq!(ask(list(item, 1000, &named("a.png"))), passed());
    let many: String = (0..100).map(|at| format!("\"name\":\"{at}.png\",")).collect();
    let body = format!("{{{many}\"name\":\"a.php\",\"avatar\":\"{png}\"}}");
    assert_eq!(ask(body), refused(415, "undecodable_body"));
}
