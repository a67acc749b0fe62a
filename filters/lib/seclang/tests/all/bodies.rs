//! Bodies whose type is not what they are, on the core rule set as it comes: the attack is found, or the request refused.

use std::sync::Arc;

use seclang::{Engine, Transaction, TransactionStart};

use crate::core_rules::engine;

/// Whether a request with this body is refused.
fn is_refused(engine: &Arc<Engine>, content_type: Option<&str>, body: &[u8]) -> bool {
    let start = TransactionStart { client_addr: b"192.0.2.7".to_vec(), now_millis: 1, ..TransactionStart::default() };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    transaction.request_line(b"POST", b"/api/orders", b"HTTP/1.1");
    let length = body.len().to_string();
    for (name, value) in
        [("Host", "shop.example"), ("User-Agent", "Mozilla/5.0"), ("Accept", "*/*"), ("Content-Length", &length)]
    {
        transaction.request_header(name.as_bytes(), value.as_bytes());
    }
    if let Some(content_type) = content_type {
        transaction.request_header(b"Content-Type", content_type.as_bytes());
    }
    transaction.request_headers().or_else(|| transaction.request_body(body, true)).is_some()
}

const ATTACKS: [&str; 5] =
    ["' OR 1=1-- -", "1 UNION SELECT 1,2", "$(cat /etc/passwd)", "${jndi:ldap://e/a}", "../../../etc/passwd"];

/// A value as a form, as JSON, as XML, and as a part.
fn documents(value: &str) -> [String; 4] {
    [
        format!("q={value}"),
        format!("{{\"q\": \"{value}\"}}"),
        format!("<a>{value}</a>"),
        format!("--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n{value}\r\n--b--\r\n"),
    ]
}

const PROCESSED: [&str; 5] = [
    "application/x-www-form-urlencoded",
    "application/json",
    "application/xml",
    "text/xml",
    "multipart/form-data; boundary=b",
];

const UNPROCESSED: [&str; 6] = [
    "text/plain",
    "application/octet-stream",
    "text/html",
    "application/vnd.x",
    "multipart/related; boundary=b",
    "multipart/mixed; boundary=b",
];

#[test]
fn an_attack_under_any_type_is_found_or_refused() {
    let engine = engine("");
    let types = PROCESSED.iter().chain(&UNPROCESSED).chain(&["", "*/*"]).map(|of| Some(*of)).chain([None]);
    for content_type in types {
        for document in ATTACKS.iter().flat_map(|attack| documents(attack)) {
            assert!(is_refused(&engine, content_type, document.as_bytes()), "{content_type:?} {document}");
        }
    }
    let [form, json, xml, multipart] = documents("garden");
    for (content_type, document) in PROCESSED.iter().zip([&form, &json, &xml, &xml, &multipart]) {
        assert!(!is_refused(&engine, Some(content_type), document.as_bytes()), "{content_type}");
    }
}

#[test]
fn a_character_set_that_rules_cannot_read_is_refused() {
    let engine = engine("");
    // `q=' OR 1=1-- -` in EBCDIC, and a script in UTF-7.
    let ebcdic = b"\x98\x7e\x7d\x40\xd6\xd9\x40\xf1\x7e\xf1\x60\x60\x40\x60";
    let utf_7 = b"q=+ADw-script+AD4-alert(1)+ADw-/script+AD4-";
    for charset in ["ibm037", "IBM037", "\"ibm037\"", "cp037", "ibm500", "utf-7", "utf-16", "utf-16le", "utf-32"] {
        for content_type in PROCESSED {
            for body in [&ebcdic[..], utf_7] {
                for parameter in [format!("charset={charset}"), format!("x=y; charset={charset}")] {
                    let content_type = format!("{content_type}; {parameter}");
                    assert!(is_refused(&engine, Some(&content_type), body), "{content_type}");
                }
            }
        }
        let part = |header: String| {
            let disposition = "--b\r\nContent-Disposition: form-data; name=\"q\"";
            [format!("{disposition}\r\n{header}\r\n\r\n").as_bytes(), &ebcdic[2..], b"\r\n--b--\r\n"].concat()
        };
        let of_part = part(format!("Content-Type: text/plain; charset={charset}"));
        assert!(is_refused(&engine, Some(PROCESSED[4]), &of_part), "{charset} of a part");
        let name = charset.trim_matches('"');
        let default = format!("--b\r\nContent-Disposition: form-data; name=\"_charset_\"\r\n\r\n{name}\r\n");
        let default = [default.as_bytes(), &part("X-A: b".to_owned())].concat();
        assert!(is_refused(&engine, Some(PROCESSED[4]), &default), "{charset} of all parts");
    }
}

#[test]
fn what_is_a_form_or_a_document_is_read_as_one_where_an_operator_allows_other_types() {
    let types = PROCESSED.iter().chain(&UNPROCESSED).map(|of| of.split(';').next().unwrap());
    let types: String = types.map(|of| format!("|{of}| ")).collect();
    let allow = "SecAction \"id:900220,phase:1,pass,t:none,nolog,setvar:'tx.allowed_request_content_type=";
    let engine = engine(&format!("{allow}{}'\"\n", types.trim_end()));
    for content_type in UNPROCESSED {
        for document in ATTACKS.iter().flat_map(|attack| documents(attack)) {
            assert!(is_refused(&engine, Some(content_type), document.as_bytes()), "{content_type} {document}");
        }
        let harmless = documents("garden");
        let harmless = harmless.iter().map(String::as_bytes);
        // What is neither, and noise that begins as a document does.
        for body in harmless.chain([&b"Dear all, 1 + 1 = 2"[..], b"{\"q\": \xff\x00", b"--", b"<", b"[", b"=", b"{}"]) {
            assert!(!is_refused(&engine, Some(content_type), body), "{content_type} {}", body.escape_ascii());
        }
    }
}
