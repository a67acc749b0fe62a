use super::*;

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
        ("<!DOCTYPE a><a>x</a>", "x", &[]),
        ("<?pi?><!-- c --><!DOCTYPE  html ><a>x&other;</a>", "x&other;", &[]),
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
        (b"<!DOCTYPE a [", 9),
        (b"<!DOCTYPE a", 9),
        (b"<!doctype a><a/>", 1),
        (b"<!DOCTYPE a><!DOCTYPE b><a/>", 13),
        (b"\xef\xbb\xbf<?xml version='1.0' encoding='UTF-7'?><a/>", 20),
        (b"\xfe\xff\0<\0a\0/\0>", 0),
        (b"<\0a\0/\0>\0", 0),
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
fn namespaces_and_instructions_are_literals() {
    let cases: &[(&str, &[&str])] = &[
        ("<a xmlns=\"u' or 1=1\" xmlns:p='v'><p:b xmlns=\"u' or 1=1\"/></a>", &["u' or 1=1", "v"]),
        ("<?x ' or 1=1 -- ?><a/><?y?>", &["x ' or 1=1 -- ", "y"]),
        ("<a xmlns=''><?PHP system('id') ?></a>", &["<?PHP system('id') ?>"]),
        ("<?xml version='1.0'?><a><?b <script>?></a>", &["b <script>"]),
    ];
    for (document, literals) in cases {
        let (_, found, error) = with_doctype(document, false);
        assert_eq!((found.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), error), (*literals, None));
    }
    let many: String = (0..20_001).map(|number| format!("<b xmlns='{number}'/>")).collect();
    let (_, _, error) = with_doctype(&format!("<a>{many}</a>"), false);
    assert!(error.is_some_and(|error| error.limit.is_some()));
    let alike: String = (0..20_001).map(|number| format!("<b xmlns='{}' xmlns:x='y'/>", number % 3)).collect();
    let (_, found, error) = with_doctype(&format!("<a>{alike}</a>"), false);
    assert_eq!((found.len(), error), (4, None));
}

/// The text, the literals and the error's message, where document types are allowed or not.
fn with_doctype(document: &str, doctype: bool) -> (String, Vec<String>, Option<XmlError>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (xml, error) = parse(document.as_bytes(), &Limits { doctype, ..Limits::default() });
    (text(&xml.text), xml.literals.iter().map(|literal| text(literal)).collect(), error)
}

#[test]
fn a_document_type_that_declares_or_refers_is_refused_and_read() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a>x</a>", "x", &["file:///etc/passwd"]),
        ("<!DOCTYPE a PUBLIC 'p' 'http://evil/x.dtd'><a>x</a>", "x", &["p", "http://evil/x.dtd"]),
        (
            "<!-- c --><?pi?>\n<!DOCTYPE\ta\n[<!ENTITY x SYSTEM 'php://filter'>]><a>&x;</a>",
            "&x;",
            &["pi", "php://filter"],
        ),
        ("<!DOCTYPE a[<!ENTITY % p SYSTEM 'http://evil/'>]><a/>", "", &["http://evil/"]),
        ("<!DOCTYPE a [<!ENTITY e \"boom]>\"><!-- > -->]><a>&e;x</a>", "boom]>x", &["boom]>", " > "]),
        ("<!DOCTYPE a [<!ATTLIST a b CDATA '&#x3c;script>' ><?pi d?>]><a/>", "", &["pi d", "<script>"]),
        (
            "<!DOCTYPE a [<!ENTITY e '&f;ipt>'><!ENTITY f '&#38;#60;scr'><!ENTITY f 'other'>]><a>&e;</a>",
            "<script>",
            &["<script>", "&f;ipt>", "<scr", "&#60;scr", "other"],
        ),
        ("<!DOCTYPE a [ ]><a>x</a>", "x", &[]),
    ];
    for (document, text, literals) in cases {
        let (found, found_literals, error) = with_doctype(document, false);
        let message = error.map(|error| (error.message, error.limit));
        let expected = "a document type with declarations or an external identifier is not allowed";
        assert_eq!(message, Some((expected, None)), "{document}");
        assert_eq!(
            (found.as_str(), &found_literals),
            (*text, &literals.iter().map(|text| (*text).to_owned()).collect())
        );
        assert_eq!(with_doctype(document, true), (found, found_literals, None), "{document}");
    }
}

#[test]
fn parameter_entities_are_refused_where_they_are_referred_to() {
    let document = "<!DOCTYPE a [<!ENTITY % p '<!ENTITY x \"y\">'> %p; ]><a>&x;</a>";
    let error = with_doctype(document, true).2.expect("an error");
    assert_eq!(error.message, "references to parameter entities are not resolved");
}

#[test]
fn entities_expand_within_bounds() {
    let bomb = |levels: usize, times: usize| {
        let entities =
            (1..levels).map(|level| format!("<!ENTITY e{level} '{}'>", format!("&e{};", level - 1).repeat(times)));
        let entities: String = entities.collect();
        format!("<!DOCTYPE a [<!ENTITY e0 'aaaaaaaaaa'>{entities}]><a>&e{};</a>", levels - 1)
    };
    assert_eq!(with_doctype(&bomb(3, 5), true).0, "a".repeat(250));
    let exceeded =
        |document: &str| with_doctype(document, true).2.and_then(|error| error.limit).map(|limit| limit.what);
    assert_eq!(exceeded(&bomb(8, 10)), Some("bytes of expanded entities"));
    assert_eq!(exceeded(&bomb(12, 1)), Some("depth of entities"));
    assert_eq!(exceeded("<!DOCTYPE a [<!ENTITY e '&e;'>]><a>&e;</a>"), Some("depth of entities"));
    assert!(exceeded(&format!("<!DOCTYPE a [<!ENTITY e 'x'>]><a>{}</a>", "&e;".repeat(200_000))).is_some());
}

#[test]
fn limits_hold() {
    let limits = Limits::default();
    let expected = (256, 100_000, 10_000, 256, false);
    let Limits { depth, elements, attributes, attributes_per_element, doctype } = limits;
    assert_eq!((depth, elements, attributes, attributes_per_element, doctype), expected);
    let exceeded = |document: &str| parse(document.as_bytes(), &limits).1.and_then(|error| error.limit).is_some();
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(parse(nested(256).as_bytes(), &limits).1.is_none());
    assert!(exceeded(&nested(257)));
    let many = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count));
    assert!(parse(many(99_999).as_bytes(), &limits).1.is_none());
    assert!(exceeded(&many(100_000)));
    let wide = |count: usize| format!("<a {}/>", (0..count).map(|index| format!("x{index}='' ")).collect::<String>());
    assert!(parse(wide(256).as_bytes(), &limits).1.is_none());
    assert!(exceeded(&wide(257)));
    let all = format!("<a>{}</a>", "<b x=''/>".repeat(10_001));
    assert!(exceeded(&all));
}
