//! Names, types and texts in the readings that applications, servers and browsers have of them.

use super::make::{self, noise, zip};
use super::*;

/// All findings' reasons on a harmless file with a header.
fn of_header(value: &str) -> Vec<&'static str> {
    of_names(&disposition::names(value.as_bytes(), "filename"))
}

fn of_names(names: &[Vec<u8>]) -> Vec<&'static str> {
    let file = File { names, media_type: None, content: b"hello", complete: true, length: None };
    let policy = Policy { check_mismatch: false, ..Policy::default() };
    let mut findings = Findings::default();
    inspect(&file, &policy, &mut Work::default(), &mut findings);
    findings.list().iter().map(|finding| finding.reason.word()).collect()
}

fn of_name(name: &str) -> &'static str {
    verdict(name, b"hello", &Policy { check_mismatch: false, ..Policy::default() })
}

fn plain(name: &str, content: &[u8]) -> &'static str {
    verdict(name, content, &Policy::default())
}

fn typed(media: &[u8], name: &str, content: &[u8]) -> &'static str {
    let names = if name.is_empty() { Vec::new() } else { vec![name.as_bytes().to_vec()] };
    let file = File { names: &names, media_type: Some(media), content, complete: true, length: None };
    let mut found = Findings::default();
    inspect(&file, &Policy::default(), &mut Work::default(), &mut found);
    first(found.list())
}

#[test]
fn names_count_as_applications_store_them() {
    for (name, expected) in [
        ("a.ht!ml", "denied_extension"),
        ("a.ht\u{4e2d}ml", "denied_extension"),
        ("a.ht;ml", "denied_extension"),
        ("a.(php)", "denied_extension"),
        ("a.ph\u{1e55}", "denied_extension"),
        ("a.\u{e9}xe", "denied_extension"),
        ("a.\u{24df}\u{24d7}\u{24df}", "denied_extension"),
        ("a.\u{1d429}\u{1d421}\u{1d429}", "denied_extension"),
        (".ht!access", "denied_extension"),
        ("a.p!hp.jpg", "double_extension"),
        ("ab:shell.php", "denied_extension"),
        ("a:b:shell.php", "denied_extension"),
        ("a.txt:shell.php", "denied_extension"),
        (":shell.php", "denied_extension"),
        ("shell.php.jpg:a.txt", "double_extension"),
        ("ab:report.pdf", "ok"),
        ("Guide (setup.exe).pdf", "ok"),
        ("r\u{e9}sum\u{e9} (final) v1.2.pdf", "ok"),
        ("\u{5831}\u{544a}.\u{30d7}\u{30ed}.txt", "ok"),
        ("na\u{ef}ve.t\u{e9}xt", "ok"),
        ("a.pdf (1)", "ok"),
    ] {
        assert_eq!(of_name(name), expected, "{}", name.escape_debug());
    }
    // A colon does not hide an extension from a list of those that are allowed.
    let policy = Policy { allowed_extensions: words(&["txt"]), check_mismatch: false, ..Policy::default() };
    assert_eq!(verdict("a.txt:b.xyz", b"x", &policy), "extension_not_allowed");
    assert_eq!(verdict("a.txt", b"x", &policy), "ok");
}

#[test]
fn long_names_are_read_to_their_end() {
    for (name, expected) in [
        (format!("{}shell.php", "x/".repeat(2100)), "denied_extension"),
        (format!("{}shell.php", "x/".repeat(100_000)), "denied_extension"),
        (format!("{}/../a.txt", "x/".repeat(3000)), "zip_slip"),
        (format!("shell.php{}", ".a".repeat(17)), "double_extension"),
        (format!("shell.php{}", ".a".repeat(120)), "double_extension"),
        (format!("a{}.php{}", ".a".repeat(60), ".a".repeat(60)), "double_extension"),
        (format!("a{}", ".a".repeat(120)), "ok"),
        (format!("{}a.txt", "x/".repeat(3000)), "ok"),
    ] {
        assert_eq!(of_name(&name), expected, "{} bytes", name.len());
    }
    let name = Name::read(format!("/{}a.txt", "x/".repeat(100_000)).as_bytes());
    assert!(name.absolute);
    let name = Name::read(".a".repeat(200_000).as_bytes());
    assert!(name.extensions.len() <= 256);
}

#[test]
fn names_in_other_character_sets_are_refused() {
    for value in [
        "form-data; filename=\"=?IBM037?B?gUuXiJc=?=\"",
        "form-data; filename=\"=?ibm-037*en?Q?=81=4B=97=88=97?=\"",
        "form-data; filename=\"=?utf-7?Q?a.+AHAAaABw-?=\"",
        "form-data; filename*=IBM037''%81%4B%97%88%97",
        "form-data; filename*=utf-16le''%81K%97%88%97",
        "form-data; filename*0*=IBM037''%81%4B; filename*1*=%97%88%97",
    ] {
        assert_eq!(of_header(value), ["undecodable_body"], "{value}");
    }
    for value in [
        "form-data; filename=\"=?UTF-8?B?YS50eHQ=?=\"",
        "form-data; filename=\"=?iso-8859-1*de?Q?a=FC.txt?=\"",
        "form-data; filename=\"=?ISO-2022-JP?B?GyRCJCIbKEIudHh0?=\"",
        "form-data; filename*=UTF-8''a%20b.txt",
        "form-data; filename*=windows-1252''a%FC.txt",
        "form-data; filename*=GB18030''a.txt",
        "form-data; filename*=x-sjis''a.txt",
        "form-data; filename*=''a.txt",
        "form-data; filename=\"what=?a?x?c?=.txt\"",
    ] {
        assert_eq!(of_header(value), [""; 0], "{value}");
    }
    for value in [
        "form-data; filename=\"=?ISO-2022-JP?Q?a=2E=1B=28Bphp?=\"",
        "form-data; filename*=iso-2022-jp''a.%1B%28Bphp",
        "form-data; filename=\"=?utf-8?B?!YS5waHA=?=\"",
    ] {
        assert!(of_header(value).contains(&"denied_extension"), "{value}");
    }
}

#[test]
fn no_reading_of_a_header_is_dropped_in_silence() {
    let many: String = (0..40).map(|number| format!("; filename=a{number}.txt")).collect();
    assert_eq!(of_header(&format!("form-data{many}; filename=a.php")), ["undecodable_body"]);
    let others = "; a=b".repeat(100);
    assert_eq!(of_header(&format!("form-data{others}; filename=a.php")), ["denied_extension"]);
    let long = "x".repeat(17 << 10);
    assert_eq!(of_header(&format!("form-data; a={long}; filename=a.php")), ["denied_extension"]);
    assert_eq!(of_header(&format!("form-data; filename={long}.php")), ["denied_extension"]);
    assert_eq!(of_header(&format!("form-data; filename*=IBM037''{long}")), ["undecodable_body"]);
}

#[test]
fn tags_of_servers_are_found_in_texts() {
    for (text, expected) in [
        ("a <?=/*\u{e9}*/system($_GET[0])?>", Format::Php),
        ("a <?=`$x`", Format::Php),
        ("a <?=1?>", Format::Php),
        ("a <? system($_GET[0]);", Format::Php),
        ("a <?\nsystem($_GET[0]);", Format::Php),
        ("a <?system($_GET[0])?>", Format::Php),
        ("a <?/**/system($_GET[0])?>", Format::Php),
        ("a <? super /**/ ($x); function super($x) {}", Format::Php),
        ("a <?@eval($_GET[0])?>", Format::Php),
        ("a <?`id`?>", Format::Php),
        ("a <?echo `id`?>", Format::Php),
        ("a <?` id`?>", Format::Php),
        ("a <?`'id'`;", Format::Php),
        ("a `<?`$_GET[0]`.'`'", Format::Php),
        ("// It is between `<?` and `?>` (`<?`), and `<?` is a part of `<?xml`, as is `?>`.", Format::Text),
        ("a <?ECHO\t$x;", Format::Php),
        ("a <?print\"x\".`id`;", Format::Php),
        ("a <?include $_GET[0];", Format::Php),
        ("a <?require_once'/tmp/a';", Format::Php),
        ("a <?system ('id')?>", Format::Php),
        ("a <?system/**/('id')?>", Format::Php),
        ("a <?\\system('id')?>", Format::Php),
        ("a <?a\\b::c('id')?>", Format::Php),
        ("a <?;system('id')?>", Format::Php),
        ("a <?{ system('id'); }?>", Format::Php),
        ("a <?!system('id')?>", Format::Php),
        ("a <?('sys'.'tem')('id')?>", Format::Php),
        ("a <?'system'('id')?>", Format::Php),
        ("a <?[$a]=[`id`];", Format::Php),
        ("if (text.startsWith(\"<?xml\")) { list(\"<?\", '<?', `x`); }", Format::Text),
        ("/<?\\w+(a|b)>?/ /<?\\s*(a)/ /<?(https?:.*)>?/ /<?([a-z]+)>?/ /<?[\"'](a)/", Format::Text),
        ("what >_<?! that is (almost) all, return it", Format::Text),
        ("a <?include file=\"b\"?> <?print ?> <?xml-stylesheet href=\"a\"?> <?b.c-d e?>", Format::Text),
        ("a <% java.lang.Runtime.getRuntime().exec(\"id\"); %>", Format::Asp),
        ("a <%/*\u{e9}*/Object x=null;%>", Format::Asp),
        ("a <%d: run(); %>", Format::Asp),
        ("List<? extends Item> a; Map<? super Item, ? > b; List<? > c; Class<?> d;", Format::Text),
        ("printf(\"<%s>\", a); printf(\"<%5.2f>%d%>\", b);", Format::Text),
        ("5 <% of all", Format::Text),
        ("a %>% filter(b) <%", Format::Text),
        ("a <?xml version=\"1.0\"?> b", Format::Text),
    ] {
        assert_eq!(identify(text.as_bytes()), expected, "{text}");
    }
    assert_eq!(identify(b"<?xml version=\"1.0\"?><?pi a?><a/>"), Format::Xml);
    let far = [vec![b'a'; 2 << 20], b"<?php system('id');".to_vec()].concat();
    assert_eq!(identify(&far), Format::Php, "the whole text is read");
    // Data may mention them, and is refused only where it begins with one.
    assert_eq!(plain("a.txt", b"write <? echo 1 ?> or <%= x %>"), "ok");
    assert_eq!(plain("a.txt", b"<? system('id');"), "denied_type");
    assert_eq!(plain("a.java", b"class A { List<? extends B> list; }"), "ok");
}

#[test]
fn tags_of_servers_in_binary_data_are_more_than_chance() {
    let media = |inside: &[u8]| [formats::sample(Format::Mp3).as_slice(), &[0x80; 64], inside, &[0x80; 64]].concat();
    for inside in [
        b"<?=abcdefgh\x80\x81".as_slice(),
        b"<?=abcdefghijklmnopqrst\x80\x81",
        b"<%=abcdefgh\x80\x81",
        b"<%@abcdefgh\x80\x81",
        b"<?=?>",
        b"<? abcdefgh\x80\x81",
    ] {
        assert_eq!(plain("a.mp3", &media(inside)), "ok", "{}", inside.escape_ascii());
    }
    for inside in [
        b"<?=`id`?>".as_slice(),
        b"<?=/*\xc3\xa9*/system($_GET[0])?>",
        b"<?=system($_GET['command'])",
        b"<? system($_GET['command']);",
        b"<%eval request(\"a\")%>",
        b"<%= new java.util.Scanner(a).next() %>",
    ] {
        assert_eq!(plain("a.mp3", &media(inside)), "polyglot", "{}", inside.escape_ascii());
    }
    // A header of text in front of binary data, as in FITS images.
    let fits = [
        b"SIMPLE  =                    T".to_vec(),
        vec![b' '; 2880],
        noise(1 << 20),
        b"<%\x80\x81<?=\x80%>".to_vec(),
        noise(100),
    ]
    .concat();
    assert_eq!(identify(&fits), Format::Text);
}

#[test]
fn control_characters_do_not_hide_markup_and_scripts() {
    for (content, expected) in [
        (
            b"<?xml version=\"1.0\"?><!--\x7f--><html xmlns=\"http://www.w3.org/1999/xhtml\"><script>1</script></html>"
                .as_slice(),
            Format::Html,
        ),
        (b"#!/bin/sh\nid\nexit\n\x01", Format::Shell),
        (b"<script>alert(1)//\x01</script>", Format::Html),
        (b" \n<script>alert(1)//\0</script>", Format::Html),
        (b"\xef\xbb\xbf<script>alert(1)//\x01</script>", Format::Html),
        (b"<svg onload=\"alert(1)\"><!--\x7f--></svg>", Format::ActiveSvg),
        (b"<?php system('id'); //\x01", Format::Php),
        (b"<order><!--\x7f--></order>", Format::Xml),
        (b"<\x01\x02\x03 binary", Format::Unknown),
        (b"<abc\x01\x02\x03 binary", Format::Unknown),
        (b"#!SILK_V3\x0c\0\x01", Format::Unknown),
        (b"#!AMR\n\x3c\0\x01", Format::Amr),
        (b"<\0\0\0\x01\x02", Format::Unknown),
    ] {
        assert_eq!(identify(content), expected, "{}", content.escape_ascii());
    }
}

#[test]
fn documents_that_browsers_run_are_pages() {
    for (text, expected) in [
        (r#"<doc xmlns:x="http://www.w3.org/1999/xhtml"><x:img src="x" onerror="alert(1)"/></doc>"#, Format::Html),
        (r#"<doc><s xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></s></doc>"#, Format::ActiveSvg),
        (r#"<doc><s xmlns = 'http://www.w3.org/&#x31;999/xhtml'><script>alert(1)</script></s></doc>"#, Format::Html),
        (
            r#"<doc xmlns:x="http://www.w3.org/1999/xhtml"><x:a href="java&#9;script:alert(1)">x</x:a></doc>"#,
            Format::Html,
        ),
        (
            r#"<doc xmlns:x="http://www.w3.org/1999/xhtml"><x:a href=" &#106;avascript&#x3a;alert(1)">x</x:a></doc>"#,
            Format::Html,
        ),
        (
            r#"<!DOCTYPE a [<!ENTITY e "<x:script>1</x:script>">]><doc xmlns:x="http://www.w3.org/1999/xhtml">&e;</doc>"#,
            Format::Html,
        ),
        (
            r#"<!DOCTYPE a [<!ATTLIST script xmlns CDATA #FIXED "http://www.w3.org/1999/xhtml">]><doc><script>1</script></doc>"#,
            Format::Html,
        ),
        (
            r#"<!DOCTYPE x [<!-- ]> -->]><x:svg xmlns:x="http://www.w3.org/2000/svg"><x:script>1</x:script></x:svg>"#,
            Format::ActiveSvg,
        ),
        (
            r#"<!DOCTYPE x [<!ENTITY a "]>">]><x:x xmlns:x="http://www.w3.org/1999/xhtml"><x:script>1</x:script></x:x>"#,
            Format::Html,
        ),
        (
            r#"<!DOCTYPE x [<?a ]> ?><!ENTITY b ']'>]><x:x xmlns:x="http://www.w3.org/1999/xhtml"><x:script/></x:x>"#,
            Format::Html,
        ),
        (
            r#"<!DOCTYPE x SYSTEM ">" [<!-- " -->]><x:x xmlns:x="http://www.w3.org/1999/xhtml"><x:script/></x:x>"#,
            Format::Html,
        ),
        (
            r#"<!DOCTYPE x [<!ENTITY e "]<!-- --><x:script>1</x:script>">]><x:x xmlns:x="http://www.w3.org/1999/xhtml">&e;</x:x>"#,
            Format::Html,
        ),
        (
            r#"<!DOCTYPE x [<!ENTITY ns "http://www.w3.org/1999/xhtml">]><x:x xmlns:x="&ns;"><x:script>1</x:script></x:x>"#,
            Format::Html,
        ),
        (
            r#"<!DOCTYPE x [<!ENTITY a "http://www.w3.org/"><!ENTITY b '2000/svg'>]><x xmlns:y="&a;&b;"><y:script>1</y:script></x>"#,
            Format::ActiveSvg,
        ),
        (
            r#"<!DOCTYPE x [<!ENTITY a "xhtml"><!ENTITY b 'http://www.w3.org/1999/&a;'>]><x xmlns="&b;"><script>1</script></x>"#,
            Format::Html,
        ),
        (r#"<!DOCTYPE x [<!ENTITY a "urn:a"><!ENTITY a "urn:b">]><x xmlns="&a;"><script>1</script></x>"#, Format::Html),
        (
            r#"<!DOCTYPE x [<!ATTLIST x xmlns:y CDATA "http://www.w3.org/1999/x&#104;tml">]><x><y:script>1</y:script></x>"#,
            Format::Html,
        ),
        (
            r#"<!DOCTYPE x [<!ENTITY % p "&#60;!ATTLIST x xmlns:y CDATA 'http://www.w3.org/1999/x&#104;tml'>"> %p;]><x><y:script/></x>"#,
            Format::Html,
        ),
        (
            "<?xml version=\"1.0\" encoding=\"ISO-2022-JP\"?><svg xmlns=\"http://www.w3.org/2000/svg\"><scr\x1b(Bipt>1</script></svg>",
            Format::ActiveSvg,
        ),
        (
            "<?xml version=\"1.0\" encoding=\"ISO-2022-JP\"?><svg xmlns=\"http://www.w3.org/2000/svg\" onl\x1b(Boad=\"1\"/>",
            Format::ActiveSvg,
        ),
        (
            "<?xml version=\"1.0\" encoding=\"ISO-2022-JP\"?><a xml\x1b(Jns:x=\"http://www.w3.org/1999/xhtml\"><x:script/></a>",
            Format::Html,
        ),
        ("\x1b[31mred\x1b[0m <\x1b[1m a", Format::Text),
        (r#"<!DOCTYPE x '><script>1</script>"#, Format::Html),
        (r#"<!-- --><foo></foo><script>alert(1)</script>"#, Format::Html),
        (r#"<!-- --><!-- --><foo/>"#, Format::Html),
        (r#"<!-- --><?xml version="1.0"?><foo/>"#, Format::Xml),
        (r#"<!-- a --><svg xmlns="http://www.w3.org/2000/svg"/>"#, Format::Svg),
        (r#"<svg xmlns="http://www.w3.org/2000/svg"><a href="java&#9;script:alert(1)"/></svg>"#, Format::ActiveSvg),
        (r##"<svg xmlns="http://www.w3.org/2000/svg"><g aria-label="a&#10;b" href="#c"/></svg>"##, Format::Svg),
        (r#"<config><script>build</script><x onclick="1"/></config>"#, Format::Xml),
        (
            r#"<doc xmlns="urn:a" xmlns:x="http://www.w3.org/1999/xhtml"><script/><b onclick="1"/><x:p/></doc>"#,
            Format::Xml,
        ),
    ] {
        assert_eq!(identify(text.as_bytes()), expected, "{text}");
    }
    // More entities than are told apart.
    let many: String = (0..70).map(|at| format!("<!ENTITY e{at} 'x'>")).collect();
    let text = format!(
        "<!DOCTYPE x [<!-- <!ENTITY n 'urn:a'> -->{many}<!ENTITY n '{}'>]><x xmlns='&n;'><script>1</script></x>",
        "http://www.w3.org/1999/xhtml"
    );
    assert_eq!(identify(text.as_bytes()), Format::Html);
    // A comment makes no page of what is XML by its name.
    assert_eq!(plain("pom.xml", b"<!-- licence --><project><name>a</name></project>"), "ok");
    assert_eq!(plain("a.xml", b"<!-- --><html><script>1</script></html>"), "denied_type");
    assert_eq!(plain("a.dat", b"<!-- --><foo></foo><script>1</script>"), "denied_type");
}

#[test]
fn documents_with_the_namespace_of_pages_pass() {
    let atom = r#"<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>JavaScript: a description</title>
        <entry><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p class="b">A <a href="https://a.example/">subscription</a></p>
        </div></content><content type="html"><![CDATA[<p onclick="1"><script>1</script>]]></content></entry></feed>"#;
    let fhir = r#"<Patient xmlns="http://hl7.org/fhir"><text><status value="generated"/>
        <div xmlns="http://www.w3.org/1999/xhtml"><table><tr><td>Prescription</td></tr></table></div></text>
        <script value="not of a page"/><onset value="1"/></Patient>"#;
    let fodt = r#"<?xml version="1.0"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
        xmlns:script="urn:oasis:names:tc:opendocument:xmlns:script:1.0" xmlns:xhtml="http://www.w3.org/1999/xhtml"
        xmlns:svg="http://www.w3.org/2000/svg"><office:scripts><office:script script:language="ooo:Basic"/></office:scripts>
        <office:body><draw:object xmlns:draw="urn:a"/></office:body></office:document>"#;
    let owl = r#"<?xml version="1.0"?><!DOCTYPE rdf:RDF [<!ENTITY owl "http://www.w3.org/2002/07/owl#"><!-- don't -->
        <!ENTITY rdf "http://www.w3.org/1999/02/22-rdf-syntax-ns#">]><rdf:RDF xmlns:rdf="&rdf;" xmlns:owl="&owl;"
        xmlns:a="http://a.example/?b&amp;c"><rdf:Statement><rdf:object rdf:resource="&owl;Thing"/></rdf:Statement></rdf:RDF>"#;
    for (name, text) in [("a.atom", atom), ("a.xml", fhir), ("a.fodt", fodt), ("a.rdf", owl)] {
        assert_eq!(identify(text.as_bytes()), Format::Xml, "{name}");
        assert_eq!(plain(name, text.as_bytes()), "ok", "{name}");
    }
}

#[test]
fn the_declared_type_is_checked_against_those_denied() {
    for (media, name, content, expected) in [
        (b"text/html".as_slice(), "n.txt", b"x<script>1</script>".as_slice(), "denied_type"),
        (b"Text/HTML; charset=utf-8", "", b"x", "denied_type"),
        (b"text/plain, text/html", "n.txt", b"x", "denied_type"),
        (b"application/xhtml+xml", "n", b"x", "denied_type"),
        (b"text/javascript", "n.txt", b"x", "denied_type"),
        (b"application/javascript", "n", b"x", "denied_type"),
        (b"application/x-httpd-php", "n", b"x", "denied_type"),
        (b"text/html", "n.txt", b"", "ok"),
        (b"text/plain", "n.txt", b"x", "ok"),
        (b"application/octet-stream", "n.txt", b"x", "ok"),
        (b"text/markdown", "n.md", b"# x", "ok"),
        (b"image/svg+xml", "", b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "ok"),
    ] {
        assert_eq!(typed(media, name, content), expected, "{}", media.escape_ascii());
    }
    let policy = Policy { denied_types: words(&["svg"]), ..Policy::default() };
    let file = File { names: &[], media_type: Some(b"image/svg+xml"), content: b"x", complete: true, length: None };
    let mut found = Findings::default();
    inspect(&file, &policy, &mut Work::default(), &mut found);
    assert_eq!(first(found.list()), "denied_type");
}

#[test]
fn archives_behind_pdf_are_found_and_those_in_it_pass() {
    let pdf = formats::sample(Format::Pdf);
    let jar = formats::sample(Format::Jar);
    for tail in [b"".as_slice(), b"\n", &[b' '; 900], b"\n%%EOF\n"] {
        let file = [pdf.as_slice(), &jar, tail].concat();
        assert_eq!(plain("a.pdf", &file), "polyglot", "{} bytes", tail.len());
    }
    let embedded = [
        b"%PDF-1.4\n1 0 obj<</Type/EmbeddedFile>>stream\n".as_slice(),
        &zip(&[("a.txt", b"x")]),
        b"\nendstream\nendobj\ntrailer<<>>\n%%EOF\n",
    ];
    assert_eq!(plain("a.pdf", &embedded.concat()), "ok");
    let spaced = [b"\r\n ".as_slice(), &pdf].concat();
    assert_eq!((identify(&spaced), plain("a.pdf", &spaced)), (Format::Pdf, "ok"));
    assert_eq!(plain("a", &[b"hello ".as_slice(), &pdf].concat()), "polyglot");
}

#[test]
fn mails_and_texts_about_scripts_pass() {
    let mail = b"From: a@b.example\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=c\r\n\r\n--c\r\n\
        Content-Type: text/html\r\n\r\n<html><body>Hello</body></html>\r\n--c--\r\n";
    assert_eq!(plain("a.eml", mail), "ok");
    assert_eq!(typed(b"message/rfc822", "", mail), "ok");
    assert_eq!(
        (plain("a.dat", mail), plain("a.eml.dat", mail), plain("", mail)),
        ("denied_type", "denied_type", "denied_type")
    );
    assert_eq!(plain("a.eml", b"<html><script>1</script></html>"), "denied_type");
    let text = b"Create it with CreateObject(\"WScript.Shell\") or Scripting.FileSystemObject.";
    for name in ["a.txt", "a.md", "a.csv", "a.log"] {
        assert_eq!(plain(name, text), "ok", "{name}");
    }
    assert_eq!(plain("a.json", b"{\"a\": \"WScript.Shell\"}"), "ok");
    assert_eq!((plain("a.dat", text), plain("a", text)), ("denied_type", "denied_type"));
    assert_eq!(plain("a.txt:b.dat", text), "denied_type");
}

#[test]
fn markup_of_any_form_is_read_in_linear_time() {
    for unit in
        ["<", "<!--", "<a ", "<a b=\"", "<a b='>", "<?", "<![CDATA[", "<a xmlns=\"&#", "<!ENTITY ", "<% ", "<?a", "&#"]
            .into_iter()
            .chain([
                "<!a ' >",
                "<!a <!-- >",
                "<!ENTITY>",
                "<!ATTLIST a '",
                "<!a [",
                "<?`",
                "<?a/*",
                "<?'",
                "<a xmlns='&a;&b;'>",
            ])
    {
        for start in ["<r xmlns='http://www.w3.org/1999/xhtml'>", "<!DOCTYPE a [", ""] {
            let text = [start, &unit.repeat(200_000)].concat();
            let _ = identify(text.as_bytes());
        }
    }
    let tar = make::tar(&[("a", b"x")]);
    assert_eq!(identify(&tar), Format::Tar);
}
