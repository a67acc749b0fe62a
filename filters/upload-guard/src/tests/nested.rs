//! Multipart bodies within others, which are read as strictly.

use super::*;

/// A part of a body whose boundary is `cut`, and the end of that.
fn part(head: &str, content: &str) -> Vec<u8> {
    format!("--cut\r\n{head}\r\n\r\n{content}\r\n--cut--\r\n").into_bytes()
}

/// A body in a part: `kind` without its boundary.
fn within(kind: &str, inner: &str) -> Vec<u8> {
    part(&format!("content-disposition: form-data; name=\"f\"\r\ncontent-type: {kind}; boundary=in"), inner)
}

#[test]
fn forms_within_others_are_read_as_forms_are() {
    let field = |head: &str| format!("--in\r\n{head}\r\n\r\nx\r\n--in--\r\n");
    for outer in [FORM, "multipart/mixed; boundary=cut"] {
        let ask = |inner: &str| post(&step(), outer, &within("multipart/form-data", inner)).verdict();
        assert_eq!(ask(&field("Content-Disposition: form-data; name=\"a\"")), passed(), "{outer}");
        let file = field("Content-Disposition: form-data; name=\"a\"; filename=\"a.php\"");
        assert_eq!(ask(&file), refused(415, "denied_extension"), "{outer}");
        for ambiguous in [
            "Content-Disposition: form-data; name=\"a\"; filename=\"b\"; filename=\"c.txt\"",
            "Content-Disposition : form-data; name=\"a\"; filename=\"a.txt\"",
            "Content-Disposition: form-data; filename=\"a.txt\"",
            "Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"b\"; filename=\"a.txt\"",
            "Content-Type: text/plain",
        ] {
            assert_eq!(ask(&field(ambiguous)), refused(400, "malformed_multipart"), "{outer} {ambiguous}");
        }
        // A boundary within a line, and one that does not end.
        assert_eq!(
            ask("--in\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx--in--\r\n"),
            refused(400, "malformed_multipart")
        );
        assert_eq!(
            ask("--in\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n"),
            refused(400, "malformed_multipart")
        );
        // Another body in that.
        let deeper = |file: &str| {
            let mixed = format!("--deep\r\nContent-Disposition: file; {file}\r\n\r\n#!/bin/sh\nid\r\n--deep--\r\n");
            format!(
                "--in\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Type: multipart/mixed; boundary=deep\r\n\r\n{mixed}\r\n--in--\r\n"
            )
        };
        assert_eq!(ask(&deeper("filename=\"a.php\"")), refused(415, "denied_extension"), "{outer}");
        assert_eq!(ask(&deeper("filename=\"a.txt\"")), refused(415, "denied_type"), "{outer}");
        assert_eq!(ask(&deeper("x=y")), refused(415, "denied_type"), "{outer}");
    }
    let deep = (0..5).fold("x".to_owned(), |body, at| {
        format!("--in{at}\r\ncontent-disposition: form-data; name=\"a\"\r\ncontent-type: multipart/form-data; boundary=in{}\r\n\r\n{body}\r\n--in{at}--\r\n", at - 1)
    });
    assert_eq!(
        post(&step(), "multipart/form-data; boundary=in4", deep.as_bytes()).verdict(),
        refused(400, "malformed_multipart")
    );
}

#[test]
fn parts_that_are_no_fields_are_files_where_their_content_is_one() {
    for (head, content, expected) in [
        ("A: b", "#!/bin/sh\nid", refused(415, "denied_type")),
        ("Content-Type: text/plain", "<?php system('id');", refused(415, "denied_type")),
        ("Content-Type: application/json", "\u{7f}ELF\u{2}\u{1}\u{1}\0\0\0", refused(415, "denied_type")),
        ("Content-Disposition: attachment", "text <?php system('id'); ?>", refused(415, "denied_type")),
        ("Content-Disposition: File", "text <?php system('id'); ?>", refused(415, "denied_type")),
        ("Content-Type: application/json", "{\"a\": \"<script>\"}", passed()),
        ("Content-Type: text/xml", "<?xml version=\"1.0\"?><a/>", passed()),
        ("A: b", "text", passed()),
        ("Content-Disposition: attachment", "text", passed()),
    ] {
        let mixed = post(&step(), "multipart/mixed; boundary=cut", &part(head, content)).verdict();
        assert_eq!(mixed, expected, "{head} {content}");
        let inner = String::from_utf8(part(head, content)).unwrap().replace("cut", "in");
        assert_eq!(post(&step(), FORM, &within("multipart/mixed", &inner)).verdict(), expected, "{head} {content}");
    }
    let field = part("content-disposition: form-data; name=\"a\"", "#!/bin/sh\nid");
    assert_eq!(post(&step(), FORM, &field).verdict(), passed(), "a field is no file");
}

/// A ZIP file of stored entries.
fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in entries {
        let mut sum = flate2::Crc::new();
        sum.update(content.as_bytes());
        let [length, offset] = [content.len(), bytes.len()].map(|number| u32::try_from(number).unwrap().to_le_bytes());
        let name_length = u32::try_from(name.len()).unwrap().to_le_bytes();
        // Version, flags, method, time; the sum, two lengths, the length of the name and no extra field.
        let head =
            [b"\x14\0\0\0\0\0\0\0\0\0".as_slice(), &sum.sum().to_le_bytes(), &length, &length, &name_length].concat();
        directory.extend([b"PK\x01\x02\x14\0".as_slice(), &head, &[0; 10], &offset, name.as_bytes()].concat());
        bytes.extend([b"PK\x03\x04".as_slice(), &head, name.as_bytes(), content.as_bytes()].concat());
    }
    let [length, start] = [directory.len(), bytes.len()].map(|number| u32::try_from(number).unwrap().to_le_bytes());
    let count = [u8::try_from(entries.len()).unwrap(), 0];
    bytes.extend(directory);
    bytes.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count, &length, &start, &[0; 2]].concat());
    bytes
}

#[test]
fn documents_are_files_whatever_their_type_says() {
    let document = |kind: &str| {
        let types =
            format!("<Types><Override ContentType=\"application/vnd.ms-word.document.{kind}.main+xml\"/></Types>");
        zip(&[("[Content_Types].xml", &types), ("word/document.xml", "<d/>")])
    };
    let mut compound = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    compound.resize(512, 0);
    compound.extend(b"V\0B\0A\0");
    compound.resize(512 + 64, 0);
    compound.extend([8, 0, 1]);
    compound.resize(1024, 0);
    for (content, expected) in [
        (document("plain"), passed()),
        (document("macroEnabled"), refused(415, "denied_type")),
        (compound, refused(415, "denied_type")),
    ] {
        for kind in ["application/json", "text/plain", "application/x-www-form-urlencoded"] {
            assert_eq!(post(&step(), kind, &content).verdict(), expected, "{kind}");
            let mixed = [
                b"--cut\r\nContent-Type: ".as_slice(),
                kind.as_bytes(),
                b"\r\nContent-Transfer-Encoding: base64\r\n\r\n",
                STANDARD.encode(&content).as_bytes(),
                b"\r\n--cut--\r\n",
            ]
            .concat();
            assert_eq!(post(&step(), "multipart/mixed; boundary=cut", &mixed).verdict(), expected, "{kind}");
        }
    }
}

#[test]
fn encodings_and_codings_of_parts_are_undone_or_refused() {
    let file = "content-disposition: form-data; name=\"f\"; filename=\"a.txt\"";
    for kind in [FORM, "multipart/mixed; boundary=cut"] {
        let ask = |header: &str| post(&step(), kind, &part(&format!("{file}\r\n{header}"), "text")).verdict();
        for header in [
            "content-transfer-encoding: x-uuencode",
            "content-transfer-encoding: base64;",
            "content-transfer-encoding: gzip",
            "content-encoding: gzip",
            "content-encoding: br",
            "content-encoding: identity, zstd",
        ] {
            assert_eq!(ask(header), refused(415, "undecodable_body"), "{kind} {header}");
        }
        for header in
            ["content-transfer-encoding: binary", "content-transfer-encoding: 7BIT", "content-encoding: identity"]
        {
            assert_eq!(ask(header), passed(), "{kind} {header}");
        }
        // A type that some search for the word.
        let loose = part(
            "content-disposition: form-data; name=\"f\"\r\ncontent-type: text/plain; multipart/mixed; boundary=in",
            "x",
        );
        assert_eq!(post(&step(), kind, &loose).verdict(), refused(400, "malformed_multipart"), "{kind}");
    }
}
