//! What kind of ZIP file a file is, and what is hidden from finding it out.

use super::make::{Entry, zip, zip_of};
use super::*;

const MACRO: &str = "<Override PartName=\"/word/v.bin\" ContentType=\"application/vnd.ms-office.vbaProject\"/>";

/// An office document with this list of types.
fn document(types: &[u8]) -> Vec<u8> {
    zip(&[("[Content_Types].xml", types), ("word/document.xml", b"<?xml version=\"1.0\"?><d/>"), ("word/v.bin", b"x")])
}

#[test]
fn types_are_read_to_their_end_in_every_form() {
    let policy = Policy { limits: Limits { ratio: 10_000, ..Limits::default() }, ..Policy::default() };
    let filler = " ".repeat(300 << 10);
    let wide = |text: &str, order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<_>>();
    for (what, types) in [
        ("in front", format!("<Types>{MACRO}{filler}</Types>").into_bytes()),
        ("behind filler", format!("<Types>{filler}{MACRO}</Types>").into_bytes()),
        ("over two chunks", format!("<Types>{}{MACRO}</Types>", " ".repeat((32 << 10) - 80)).into_bytes()),
        ("in UTF-16", wide(&format!("\u{feff}<Types>{filler}{MACRO}</Types>"), u16::to_le_bytes)),
        ("in UTF-16, big endian", wide(&format!("\u{feff}<Types>{MACRO}</Types>"), u16::to_be_bytes)),
        ("with a reference", format!("<Types>{}</Types>", MACRO.replace("vbaP", "vba&#x50;")).into_bytes()),
        ("with an entity", b"<!DOCTYPE a [<!ENTITY m \"vba\">]><Types/>".to_vec()),
        ("in upper case", MACRO.to_uppercase().into_bytes()),
        ("longer than any", " ".repeat(5 << 20).into_bytes()),
    ] {
        assert_eq!(identify(&document(&types)), Format::Macro, "{what}");
        assert_eq!(verdict("a.docx", &document(&types), &policy), "denied_type", "{what}");
    }
    let honest = document(format!("<Types>{filler}</Types>").as_bytes());
    assert_eq!((identify(&honest), verdict("a.docx", &honest, &policy)), (Format::Docx, "ok"));
    // Office programs write no other methods, and some read more.
    let other = Entry { method: 9, local_method: 9, ..Entry::stored("[Content_Types].xml", b"x") };
    assert_eq!(identify(&zip_of(&[other, Entry::stored("word/document.xml", b"x")])), Format::Macro);
    let piece =
        zip(&[("[Content_Types].xml/[0].piece", b"<Types>"), ("[content_types].xml/[1].last.piece", MACRO.as_bytes())]);
    assert_eq!(identify(&piece), Format::Macro);
    let names: Vec<String> = (0..70).map(|at| format!("[Content_Types].xml/[{at}].piece")).collect();
    let pieces: Vec<_> = names.iter().map(|name| (name.as_str(), b"x".as_slice())).collect();
    assert_eq!((identify(&zip(&pieces)), identify(&zip(&pieces[..60]))), (Format::Macro, Format::Zip));
}

#[test]
fn parts_with_macros_are_known_by_their_names() {
    for (name, expected) in [
        ("word/vbaProject.bin", Format::Macro),
        ("word\\VBAPROJECT.BIN", Format::Macro),
        ("./word/vbaData.xml", Format::Macro),
        ("XL/MacroSheets/sheet1.xml", Format::Macro),
        ("word/media/image1.png", Format::Docx),
    ] {
        let file = zip(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", b"x"), (name, b"x")]);
        assert_eq!(identify(&file), expected, "{name}");
    }
    // The type of an open document is the first entry for most, and anywhere for others.
    let odf = b"application/vnd.oasis.opendocument.text".as_slice();
    assert_eq!(
        identify(&zip(&[("content.xml", b"x"), ("mimetype", odf), ("basic/Standard/a.xml", b"x")])),
        Format::Macro
    );
    assert_eq!(identify(&zip(&[("content.xml", b"x"), ("mimetype", odf)])), Format::Zip);
}

#[test]
fn a_document_that_is_cut_off_is_what_it_begins_as() {
    let noise = make::noise(4000);
    let with = |name: &str| {
        zip(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", b"x"), (name, b"x"), ("word/i.png", &noise)])
    };
    for (name, format, expected) in
        [("word/i.xml", Format::Docx, "ok"), ("word/vbaProject.bin", Format::Macro, "denied_type")]
    {
        let file = with(name);
        let cut = &file[..1000];
        assert_eq!(identify(cut), format, "{name}");
        assert_eq!(first(&inspect_as("a.docx", cut, &Policy::default(), false)), expected, "{name}");
    }
    let described = |name: &str| Entry { described: true, ..Entry::deflated(name, b"text text text") };
    let parts = ["[Content_Types].xml", "word/document.xml", "word/vbaProject.bin", "z"].map(described);
    let file = zip_of(&parts);
    assert_eq!(identify(&file[..file.len() - 250]), Format::Macro);
}

#[test]
fn finding_out_what_documents_are_belongs_to_the_work_of_a_request() {
    let file = document(" ".repeat(3 << 20).as_bytes());
    let names = [b"a.docx".to_vec()];
    let limits = Limits { ratio: 10_000, ..Limits::default() };
    let policy = Policy { limits, ..Policy::default() };
    let (mut work, mut found) = (Work::default(), Findings::default());
    for _ in 0..4 {
        let file = File { names: &names, media_type: None, content: &file, complete: true, length: None };
        inspect(&file, &policy, &mut work, &mut found);
    }
    assert_eq!(found.first().map(|finding| finding.reason), Some(Reason::UnreadableArchive), "{found:?}");
    assert!(work.done() <= WORK_BYTES);
}

#[test]
fn which_kind_of_zip_file_it_is_is_found_out_within_the_work_alone() {
    let file = document(format!("<Types>{}{MACRO}</Types>", " ".repeat(1 << 20)).as_bytes());
    assert_eq!((identify(&file), identify_plain(&file)), (Format::Macro, Format::Zip));
    for format in Format::ALL {
        let sample = formats::sample(*format);
        let expected = if magic::binary(&sample) == Format::Zip { Format::Zip } else { identify(&sample) };
        assert_eq!(identify_plain(&sample), expected, "{format}");
    }
    let (mut work, mut found) = (Work::default(), Findings::default());
    inspect_coded(&file, &Policy::default(), &mut work, &mut found);
    assert_eq!(found.first().map(|finding| finding.reason), Some(Reason::DeniedType));
    assert!(work.done() > 1 << 20);
}

#[test]
fn macros_of_old_presentations_and_workbooks_are_found() {
    let with = |stream: &[u8]| {
        let mut file = make::compound(&["Workbook"], None);
        file.resize(2048, 0);
        file.extend(stream);
        file.resize(4096, 0);
        identify(&file)
    };
    let says = |macros: u8| {
        [b"\x1f\0\xff\x03\x14\0\0\0\x02\0\0\x04\x0c\0\0\0\x07\0\0\0".as_slice(), &[macros, 0, 0, 0, 2, 0, 0, 0]]
            .concat()
    };
    assert_eq!((with(&says(1)), with(&says(0))), (Format::Macro, Format::Ole));
    let sheet = |kind: u8, name: &[u8]| {
        let length = u8::try_from(6 + name.len()).unwrap();
        [[0x85, 0, length, 0, 9, 9, 0, 0, 0, kind].as_slice(), name].concat()
    };
    assert_eq!(with(&sheet(1, b"\x06\0Macro1")), Format::Macro);
    assert_eq!(with(&sheet(1, b"\x02\x01M\x001\0")), Format::Macro);
    assert_eq!(with(&sheet(1, b"\x06Macro1")), Format::Macro, "Excel 95");
    assert_eq!(with(&sheet(0, b"\x06\0Sheet1")), Format::Ole);
    assert_eq!(with(&sheet(1, b"\x09\0Macro1")), Format::Ole, "another length");
}

#[test]
fn formats_that_begin_as_a_page_are_pages() {
    for (text, expected) in [
        ("<!--ftypisom--><script>alert(1)</script>", Format::Html),
        ("<!--mdat--><script>alert(1)</script>", Format::Html),
        ("\u{feff}<!--free--><script>alert(1)</script>", Format::Html),
        ("<html> **ACE**<script>alert(1)</script>", Format::Html),
    ] {
        assert_eq!(identify(text.as_bytes()), expected, "{text}");
    }
    let mut page = b"<html><script>alert(1)</script>".to_vec();
    page.resize(257, b' ');
    page.extend(b"ustar  ");
    assert_eq!(identify(&page), Format::Html);
    let flat = |kind: &str| {
        format!(
            "<?xml version=\"1.0\"?><pkg:package xmlns:pkg=\"http://schemas.microsoft.com/office/2006/xmlPackage\">{}<pkg:part pkg:contentType=\"{kind}\"/></pkg:package>",
            " ".repeat(10)
        )
    };
    assert_eq!(identify(flat("application/vnd.ms-office.vbaProject").as_bytes()), Format::Macro);
    assert_eq!(identify(flat("application/xml").as_bytes()), Format::Xml);
    assert_eq!(
        identify(b"<?mso-application progid='Word.Document'?><w:wordDocument w:macrosPresent='yes'/>"),
        Format::Macro
    );
    for (name, expected) in [("editdata.mso", Format::Macro), ("oledata.mso", Format::Xml)] {
        let text = format!("<?xml version=\"1.0\"?><w:wordDocument><w:binData w:name=\"{name}\"/></w:wordDocument>");
        assert_eq!(identify(text.as_bytes()), expected, "{name}");
    }
}
