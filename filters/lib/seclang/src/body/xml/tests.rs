use super::*;
#[cfg(target_os = "unknown")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn parsed(document: &[u8]) -> Result<(String, Vec<String>), usize> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (xml, error) = parse(document, &Limits::default());
    if let Some(error) = error {
        return Err(error.offset);
    }
    Ok((text(&xml.text), xml.attributes.iter().map(|value| text(value)).collect()))
}

#[test]
fn reads_text_and_attributes() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("<a/>", "", &[]),
        (
            "<a x=\"1\"><b y='2 &lt; 3'>t1<c/>t2</b><!-- c --><![CDATA[<d>&]]>&#65;&#x42;&amp;</a>",
            "t1t2<d>&AB&",
            &["1", "2 < 3"],
        ),
        ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- c -->\n<a>x</a>\n<!-- d --><?pi?>\n", "x", &[]),
        ("\u{feff}<a>\u{e9}</a>", "\u{e9}", &[]),
        ("<?xml version='1.1'?><a>x</a>", "x", &[]),
        ("<a>  <b>x</b>\n</a>", "  x\n", &[]),
        ("<a xmlns=\"u\" xmlns:p=\"v\" p:q=\"w\"/>", "", &["w"]),
        ("<a x=\"1\n2\"></a >", "", &["1 2"]),
        ("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a>x</a>", "x", &[]),
        (
            "<!DOCTYPE a [<!ENTITY e \"boom]>\"><!-- > --><!ENTITY f SYSTEM 'file:///x'>]><a y='&f;'>&e;x</a>",
            "&e;x",
            &["&f;"],
        ),
    ];
    for (document, text, attributes) in cases {
        let attributes: Vec<_> = attributes.iter().map(|value| value.to_string()).collect();
        assert_eq!(parsed(document.as_bytes()), Ok((text.to_string(), attributes)), "{document}");
    }
    let latin1 = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>";
    assert_eq!(parsed(latin1), Ok(("\u{e9}".to_string(), Vec::new())));
}

#[test]
fn refuses_what_is_not_well_formed() {
    let cases: &[(&[u8], usize)] = &[
        (b"", 0),
        (b"x<a/>", 0),
        (b"<a>", 3),
        (b"<a><b></a>", 9),
        (b"<a/><b/>", 4),
        (b"<a>&foo;</a>", 3),
        (b"<a>&#0;</a>", 3),
        (b"<a>&#xd800;</a>", 3),
        (b"<a>& </a>", 3),
        (b"<a x=\"1\" x=\"2\"/>", 10),
        (b"<a x=1/>", 5),
        (b"<a x=\"<\"/>", 6),
        (b"<a x=\"1\"y=\"2\"/>", 8),
        (b"<a>]]></a>", 3),
        (b"<a>\x01</a>", 3),
        (b"<a><!-- a--b --></a>", 11),
        (b"<a><![CDATA[x</a>", 12),
        (b"<1/>", 1),
        (b"<a>\xe9</a>", 3),
        (b"<!DOCTYPE a [", 13),
        (b"<a/><?xml version='1.0'?>", 9),
        (b"<?xml version='1.0' encoding='UTF-7'?><a/>", 20),
        (b"\xff\xfe<\0a\0/\0>\0", 0),
        (b"<?xml enc='UTF-8'?><a/>", 5),
        (b"<?xml version='1.0' enc='UTF-8'?><a/>", 20),
        (b"<?xml version='1<0'?><a/>", 19),
        (b"<?xml version='2.0'?><a/>", 19),
        (b"<?pi=1?><a/>", 4),
    ];
    for &(document, offset) in cases {
        assert_eq!(parsed(document), Err(offset), "{:?}", String::from_utf8_lossy(document));
    }
}

#[test]
fn keeps_what_was_read_before_an_error() {
    let cases: &[(&[u8], &str, usize)] = &[
        (b"<a x='1'>text<b>more", "textmore", 1),
        (b"<a>text</b>", "text", 0),
        (b"<a>text\xe9</a>", "text", 0),
        (b"<a>text</a><b/>", "text", 0),
        (b"text<a/>", "", 0),
    ];
    for &(document, text, attributes) in cases {
        let (xml, error) = parse(document, &Limits::default());
        assert!(error.is_some());
        let found = (String::from_utf8_lossy(&xml.text).into_owned(), xml.attributes.len());
        assert_eq!(found, (text.to_owned(), attributes), "{}", document.escape_ascii());
    }
}

#[test]
fn entities_are_never_expanded() {
    let bomb = b"<!DOCTYPE a [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;\">]><a>&b;&b;</a>";
    assert_eq!(parsed(bomb), Ok(("&b;&b;".to_string(), Vec::new())));
}

#[test]
fn limits_hold() {
    let limits = Limits::default();
    let expected = Limits { depth: 256, elements: 100_000, attributes: 10_000, attributes_per_element: 256 };
    assert_eq!(limits, expected);
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(parse(nested(256).as_bytes(), &limits).1.is_none());
    assert!(parse(nested(257).as_bytes(), &limits).1.is_some());
    let many = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count));
    assert!(parse(many(99_999).as_bytes(), &limits).1.is_none());
    assert!(parse(many(100_000).as_bytes(), &limits).1.is_some());
    let wide = |count: usize| format!("<a {}/>", (0..count).map(|index| format!("x{index}='' ")).collect::<String>());
    assert!(parse(wide(256).as_bytes(), &limits).1.is_none());
    assert!(parse(wide(257).as_bytes(), &limits).1.is_some());
    let all = format!("<a>{}</a>", "<b x=''/>".repeat(10_001));
    assert!(parse(all.as_bytes(), &limits).1.is_some());
}
