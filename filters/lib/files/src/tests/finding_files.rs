//! Files in JSON, in base64, in multipart bodies.

use super::json::Field;
use super::*;

fn texts(document: &str, path: &str, name: &str) -> Vec<(String, Vec<String>)> {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let fields = [Field::parse(path, name).unwrap()];
    let found = json::find(document.as_bytes(), &fields, 100);
    found.iter().map(|found| (text(&found.text), found.names.iter().map(text).collect())).collect()
}

#[test]
fn fields_are_found_by_their_path() {
    let document = r#"{"a": "1", "files": [{"name": "x.png", "content": "AA=="}, {"content": "BB==", "n": {"content": "no"}, "name": "y"}],
        "content": "top", "list": ["p", "q"], "e": {"co\u006etent": "esc\n\ud83d\ude00"}}"#;
    assert_eq!(
        texts(document, "files[].content", "name"),
        [("AA==".into(), vec!["x.png".into()]), ("BB==".into(), vec!["y".into()])]
    );
    assert_eq!(texts(document, "content", ""), [("top".into(), Vec::<String>::new())]);
    assert_eq!(texts(document, "list[]", "name").len(), 2);
    assert_eq!(texts(document, "e.content", "")[0].0, "esc\n\u{1f600}");
    assert_eq!(texts(document, "nowhere", ""), []);
    assert_eq!(texts(r#"[{"c": "1"}, {"c": "2"}]"#, "[].c", "").len(), 2);
    assert_eq!(
        texts(r#"{"c": "1", "c": "2", "n": "a", "n": "b"}"#, "c", "n")[1].1,
        ["a", "b"],
        "each of two equal keys"
    );
    for path in ["", "a..b", "a[0]", "a[", "[]x", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q"] {
        assert!(Field::parse(path, "").is_err(), "{path}");
    }
}

#[test]
fn documents_of_any_form_are_read() {
    let fields = [Field::parse("a[].b", "c").unwrap()];
    let whole = r#"{"a":[{"b":"AAAA","c":"x\"y"}]}"#;
    for length in 0..whole.len() {
        let found = json::find(&whole.as_bytes()[..length], &fields, 10);
        assert!(found.len() <= 1 && found.iter().all(|found| found.complete == (length > 16)), "{length} {found:?}");
    }
    for document in ["\"", "\"\\", "{\"a\":", "}}]]", "[[[[", "{\"\\u\":\"\\ud800\"}"] {
        assert!(json::find(document.as_bytes(), &fields, 10).is_empty(), "{document}");
    }
    let deep = "[".repeat(100_000);
    assert!(json::find(deep.as_bytes(), &fields, 10).is_empty());
    let many = format!("{{\"a\":[{}]}}", vec!["{\"b\":\"AA\"}"; 1000].join(","));
    assert_eq!(json::find(many.as_bytes(), &fields, 10).len(), 10);
    for empty in ["", "data:,", "data:image/png;base64,"] {
        let empties = vec![format!("{{\"b\":\"{empty}\"}}"); 20].join(",");
        let last = json::find(format!("{{\"a\":[{empties},{{\"b\":\"AA\"}}]}}").as_bytes(), &fields, 10);
        assert_eq!(last.iter().map(|found| found.text.as_slice()).collect::<Vec<_>>(), [b"AA"], "{empty}");
    }
    // What is deeper than any path is passed over.
    for depth in [100, 127, 128, 129, 1000, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[\"]\",", "]")] {
            let deep = format!("{{\"x\":{}1{},\"a\":[{{\"b\":\"AA\"}}]}}", open.repeat(depth), close.repeat(depth));
            assert_eq!(json::find(deep.as_bytes(), &fields, 10).len(), 1, "{depth} {open}");
        }
    }
}

#[test]
fn base64_and_data_urls_are_decoded() {
    for (text, expected) in [
        ("aGVsbG8=", Some(b"hello".as_slice())),
        ("aGVsbG8", Some(b"hello")),
        ("aGVs\r\nbG8=\n", Some(b"hello")),
        ("-_-_", Some(b"\xfb\xff\xbf")),
        ("+/+/", Some(b"\xfb\xff\xbf")),
        ("", Some(b"")),
        ("a", None),
        ("a*b=", None),
    ] {
        assert_eq!(base64(text.as_bytes()).as_deref(), expected, "{text}");
    }
    assert_eq!(data_url(b"data:image/png;base64,AAAA"), (Some(b"image/png".as_slice()), b"AAAA".as_slice()));
    assert_eq!(data_url(b"DATA:;base64,AAAA"), (None, b"AAAA".as_slice()));
    assert_eq!(data_url(b"AAAA"), (None, b"AAAA".as_slice()));
    assert_eq!(quoted_printable(b"a=2Eb=\r\nc=zz=\nd="), b"a.bc=zzd=");
}

#[test]
fn multipart_bodies_are_taken_apart() {
    let body = b"preamble\r\n--b\r\nContent-Disposition: attachment;\r\n filename=\"a.php\"\r\n\r\nhello\r\n--b\r\n\
        Content-Type: image/png; name=b.png\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--b\r\n\r\nplain\r\n--b--\r\nend";
    let parts = mime::parts(b"multipart/mixed; boundary=\"b\"", body, true).unwrap();
    assert_eq!(parts.len(), 3);
    assert_eq!((parts[0].names[0].as_slice(), parts[0].content.as_slice()), (b"a.php".as_slice(), b"hello".as_slice()));
    assert_eq!((parts[1].names[0].as_slice(), parts[1].content.as_slice()), (b"b.png".as_slice(), b"hello".as_slice()));
    assert_eq!((parts[2].names.len(), parts[2].content.as_slice()), (0, b"plain".as_slice()));
    let kind = b"multipart/mixed; boundary=b".as_slice();
    assert!(mime::parts(b"multipart/mixed", body, true).is_err());
    assert!(mime::parts(kind, b"no part", true).is_err());
    assert!(mime::parts(kind, b"--b\r\n\r\nopen", true).is_err());
    assert!(!mime::parts(kind, b"--b\r\n\r\nopen", false).unwrap()[0].complete);
    assert!(mime::parts(kind, &b"--b\r\n\r\n".repeat(1001), false).is_err());
    for length in 0..body.len() {
        let _ = mime::parts(kind, &body[..length], false).unwrap();
    }
}
