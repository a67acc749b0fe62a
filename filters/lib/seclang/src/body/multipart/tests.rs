//! Bodies as clients and attackers send them.

use super::*;

const TYPE: &str = "multipart/form-data; boundary=0000";
const BODY: &str = "--0000\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nv1\r\n\
    --0000\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\nX-A: b\r\n\r\n\
    file\r\n--0000--\r\n";

fn with(content_type: &str, body: &str) -> Multipart {
    parse(content_type.as_bytes(), body.as_bytes(), &Limits::default())
}

fn changed(from: &str, to: &str) -> Multipart {
    assert!(BODY.contains(from), "{from}");
    with(TYPE, &BODY.replace(from, to))
}

#[test]
fn reads_fields_and_files() {
    let multipart = with(TYPE, BODY);
    assert_eq!(multipart.error, None);
    assert_eq!(multipart.flags, Flags::default());
    assert!(!multipart.strict_error());
    assert_eq!(multipart.unmatched_boundary(), 0);
    let [field, file] = multipart.parts.as_slice() else { panic!("{:?}", multipart.parts) };
    assert_eq!((field.name.as_slice(), field.value.as_slice(), field.is_file()), (&b"a"[..], &b"v1"[..], false));
    assert_eq!((file.name.as_slice(), file.value.as_slice(), file.is_file()), (&b"f"[..], &b"file"[..], true));
    assert_eq!(file.filename.as_deref(), Some(&b"x.txt"[..]));
    let headers: [&[u8]; 3] =
        [b"Content-Disposition: form-data; name=\"f\"; filename=\"x.txt\"", b"Content-Type: text/plain", b"X-A: b"];
    assert_eq!(file.headers, headers);
}

#[test]
fn values_keep_their_bytes() {
    for value in ["", "\r\n", "a\r\nb", "--", "a--b", "\0\u{e9}", "\r\n\r\n", "--test", "-", "\n"] {
        let multipart = changed("v1", value);
        assert_eq!(multipart.error, None, "{value:?}");
        assert_eq!(multipart.parts[0].value, value.as_bytes(), "{value:?}");
    }
    assert!(changed("--0000--\r\n", "--0000--").error.is_none(), "the last line may lack its end");
    assert!(with(TYPE, "").error.is_none());
}

#[test]
fn flags_what_others_read_differently() {
    let quoted = with("multipart/form-data; boundary=\"0000\"", BODY);
    assert!(quoted.flags.boundary_quoted && quoted.strict_error() && quoted.error.is_none());
    let spaced = with("multipart/form-data; boundary =0000", BODY);
    assert!(spaced.flags.boundary_whitespace && spaced.strict_error() && spaced.error.is_none());
    let unseparated = with("multipart/form-data boundary=0000", BODY);
    assert!(unseparated.flags.missing_semicolon && unseparated.strict_error() && unseparated.error.is_none());
    let lines = with(TYPE, &BODY.replace("\r\n", "\n"));
    assert!(lines.flags.lf_line && !lines.flags.crlf_lf_lines && lines.strict_error());
    assert_eq!(lines.parts[1].value, b"file");
    let mixed = changed("X-A: b\r\n", "X-A: b\n");
    assert!(mixed.flags.lf_line && mixed.flags.crlf_lf_lines && mixed.strict_error());
    let mixed = changed("v1\r\n", "v1\n");
    assert!(mixed.flags.lf_line && mixed.flags.crlf_lf_lines && mixed.strict_error() && mixed.error.is_none());
    let before = with(TYPE, &format!("x\r\n{BODY}"));
    assert!(before.flags.data_before && before.strict_error());
    for after in ["x", "\r\n"] {
        let after = with(TYPE, &format!("{BODY}{after}"));
        assert!(after.flags.data_after && after.strict_error() && after.parts.len() == 2);
    }
    let folded = changed("X-A: b", "X-A: b\r\n\t c");
    assert!(folded.flags.header_folding && !folded.flags.invalid_header_folding && folded.strict_error());
    assert_eq!(folded.parts[1].headers[2], b"X-A: b c");
    let folded = changed("; filename", ";\r\n filename");
    assert_eq!(folded.parts[1].filename.as_deref(), Some(&b"x.txt"[..]));
    let folded = changed("X-A: b", "X-A: b\r\n\x0bc");
    assert!(folded.flags.header_folding && folded.flags.invalid_header_folding);
    for single in ["'a'", "a'"] {
        let single = changed("\"a\"", single);
        assert!(single.flags.invalid_quoting && single.strict_error() && single.error.is_none());
    }
    assert!(!changed("\"a\"", "\"a'\"").strict_error(), "within double quotes a single quote is text");
}

#[test]
fn reads_extended_filenames() {
    let both = changed("filename=\"x.txt\"", "filename=\"x.txt\"; filename*=UTF-8'en'%78%c3%bc.php");
    assert!(both.error.is_none() && !both.strict_error(), "{:?}", both.error);
    assert_eq!(both.parts[1].filename.as_deref(), Some(&b"x.txt"[..]));
    assert_eq!(both.parts[1].extended_filename.as_deref(), Some("x\u{fc}.php".as_bytes()));
    for wrong in ["''x", "UTF-8'x", "UTF-8''%4G", "UTF-8''a'b", "UTF-8''a; filename*=UTF-8''b", "UTF-8''a b"] {
        assert!(changed("x.txt\"", &format!("x.txt\"; filename*={wrong}")).malformed, "{wrong}");
    }
    assert!(changed("filename=\"x.txt\"", "filename*=UTF-8''x.txt").malformed, "a field to some, a file to others");
}

#[test]
fn distinguishes_foreign_boundaries() {
    assert_eq!(changed("v1", "--foo\r\nv1").unmatched_boundary(), 2);
    assert_eq!(changed("--0000--", "--0001--").unmatched_boundary(), 1);
    assert_eq!(with(TYPE, "--1111\r\n").unmatched_boundary(), 1);
    let nested = changed("\r\n\r\nfile", "\r\n\r\n--1111\r\nx\r\n--1111--");
    assert!(!nested.strict_error() && nested.error.is_none() && nested.unmatched_boundary() == 2);
}

/// What some parsers of JavaScript take for a field is inspected as one.
#[test]
fn a_file_name_that_some_do_not_find_makes_a_field_as_well() {
    let is_field = |to: &str| {
        let multipart = changed("filename=\"x.txt\"", to);
        assert!(multipart.error.is_none(), "{to}: {:?}", multipart.error);
        multipart.parts.iter().any(|part| part.also_field)
    };
    for odd in ["filename=\"x\";filename*=ISO-8859-1''y", "filename=\"x\u{2028}y\"", "filename=\"x\u{2029}\""] {
        assert!(is_field(odd), "{odd}");
    }
    for plain in ["filename=\"x.txt\"", "filename=\"x\"; filename*=UTF-8''y", "filename=\"\u{2027}\""] {
        assert!(!is_field(plain), "{plain}");
    }
}

#[test]
fn stops_at_what_is_malformed() {
    let cases = [
        ("name=\"a\"", "x=\"a\""),
        ("name=\"a\"", "name=\"a\"; name=\"b\""),
        ("name=\"a\"", "name=\"a"),
        ("name=\"a\"", "name=\"a\"b"),
        ("name=\"a\"", "name="),
        ("name=\"a\"", "name=\"\""),
        ("name=\"a\"", "name"),
        ("form-data; name=\"a\"", "form-data"),
        ("form-data; name=\"a\"", "attachment; name=\"a\""),
        ("filename=\"x.txt\"", "filename*=UTF-8''x.txt"),
        ("filename=\"x.txt\"", "filename =\"x.txt\""),
        ("X-A: b", "X-A"),
        ("X-A: b", ": b"),
        ("X-A: b", "X-A: b\r\nx-a: c"),
        ("X-A: b", "X\0A: b"),
        ("X-A: b", "X\x0eA: b"),
        ("Content-Disposition: form-data; name=\"a\"\r\n", ""),
        ("Content-Disposition: form-data; name=\"a\"", " folded"),
        ("v1\r\n", ""),
        ("\r\n\r\nv1", ""),
        ("\r\n\r\nv1", "\r\n\r1: v1"),
        ("v1\r\n--0000", "v1\r\n--0000x"),
        ("v1\r\n--0000", "v1\r\n-- 0000"),
        // The boundary where only other parsers look for it.
        ("v1", "x--0000"),
        ("v1", "v1\r--0000\rContent-Disposition: form-data; name=q\r\r1"),
        ("v1", "--x--0000"),
        ("\r\n\r\nfile", "\r\n\r\nx--0000--"),
        ("X-A: b", "X-A: --0000"),
        // Line ends of other parsers in a header.
        ("X-A: b", "X-A: b\rContent-Disposition: form-data; name=q"),
        ("X-A: b", "X-A: b\x0b"),
        ("X-A: b", "X-A: b\x7f"),
        ("name=\"a\"", "name=\"a\rb\""),
    ];
    for (from, to) in cases {
        let multipart = changed(from, to);
        assert!(multipart.error.is_some() && multipart.malformed && multipart.strict_error(), "{from} -> {to}");
    }
    let types = [
        "",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; Boundary=0000",
        "multipart/form-data; boundary",
        "multipart/form-data; boundary123=0000",
        "multipart/form-data, boundary=0000",
        "multipart/form-data; charset=utf-8; boundary=0000",
        "multipart/form-data; boundary=0000; boundary=1111",
        "multipart/form-data; boundary=\"0000",
        "multipart/form-data; boundary=0000\"",
        "multipart/form-data; boundary=00\"00",
        "multipart/form-data; boundary=0000!",
        "multipart/form-data; boundary=0000,1",
        "multipart/form-data; boundary=0000, text/plain",
        "multipart/form-data; boundary=0000/1",
        "multipart/form-data; boundary=00 00",
        "multipart/form-data; boundary=0000?",
        "multipart/form-data; boundary=(0000)",
        "multipart/form-data; boundary=0000:1",
        "multipart/form-data; boundary=\"0000 \"",
        "multipart/mixed; boundary=0000",
    ];
    for content_type in types {
        let multipart = with(content_type, BODY);
        assert!(multipart.malformed && multipart.parts.is_empty(), "{content_type}");
    }
    assert!(with(&format!("{TYPE};{}", "x".repeat(1024)), BODY).malformed);
}

#[test]
fn an_early_end_is_an_error_of_its_own() {
    for multipart in [changed("--0000--\r\n", ""), changed("\r\n--0000--\r\n", ""), with(TYPE, "--0000\r\n")] {
        assert!(multipart.error.is_some() && !multipart.malformed && !multipart.strict_error());
    }
    assert_eq!(changed("--0000--\r\n", "").parts.len(), 1, "what is complete is kept");
    assert_eq!(with(TYPE, "text").error.as_deref(), Some("Multipart: No boundaries found in payload."));
}

#[test]
fn other_parameters_and_rare_boundaries_are_accepted() {
    assert!(with("multipart/form-data; boundary=0000; charset=UTF-8", BODY).error.is_none());
    assert!(with("Multipart/Form-Data; boundary=0000", BODY).error.is_none());
    for boundary in ["--boundary", "0xKhTmLbOuNdArY", "----=_Part_0_1.2", "Aa'+_-.="] {
        let multipart = with(&format!("multipart/form-data; boundary={boundary}"), &BODY.replace("0000", boundary));
        assert!(multipart.error.is_none() && !multipart.strict_error(), "{boundary}");
    }
    let boundary = "Aa'()+_,-./:=?";
    let multipart = with(&format!("multipart/form-data; boundary=\"{boundary}\""), &BODY.replace("0000", boundary));
    assert!(multipart.error.is_none() && multipart.flags.boundary_quoted);
}

/// In a line that is too long to be held, the boundary is found wherever the pieces end.
#[test]
fn a_boundary_within_a_long_line_is_found_in_any_pieces() {
    let body = BODY.replace("\r\n\r\nfile", &format!("\r\n\r\n{}--0000{}", "x".repeat(9000), "y".repeat(100)));
    for piece in [1, 2, 5, 6, 7, 100, 100_000] {
        let mut reader = Reader::new(TYPE.as_bytes(), Limits::default(), false);
        body.as_bytes().chunks(piece).for_each(|piece| reader.feed(piece));
        assert!(reader.finish().malformed, "{piece}");
    }
}

#[test]
fn files_are_kept_where_applications_read_them() {
    let read = |from: &str, to: &str| {
        let mut reader = Reader::new(TYPE.as_bytes(), Limits::default(), false);
        reader.feed(BODY.replace(from, to).as_bytes());
        let counted = reader.length() - reader.length_without_files();
        let multipart = reader.finish();
        assert_eq!(multipart.error, None);
        (multipart.parts[1].clone(), counted)
    };
    let (part, files) = read("", "");
    assert_eq!((part.value.as_slice(), part.nested.as_slice(), files), (&b""[..], &b""[..], 6));
    let (part, files) = read("text/plain", "Application/JSON");
    assert_eq!((part.value.as_slice(), part.declared, files), (&b"file"[..], Some(Declared::Json), 0));
    let (part, files) = read("X-A: b", "Content-Transfer-Encoding: base64");
    assert_eq!((part.decoded, files), (Vec::new(), 6));
    let field = "--x\r\nContent-Disposition: form-data; name=q\r\n\r\n1";
    let (part, files) = read("\r\n\r\nfile", &format!("\r\n\r\nfile\r\n{field}"));
    assert_eq!(part.nested, b"Content-Disposition: form-data; name=q\r\n\r\n1");
    assert!((10..60).contains(&files), "{files}");
}

#[test]
fn a_file_that_others_read_as_a_field_is_one_as_well() {
    let read = |disposition: &str, head: &str, content: &str| {
        let mut reader = Reader::new(b"multipart/form-data; boundary=0000", Limits::default(), false);
        let head = format!("Content-Disposition: form-data; {disposition}\r\n{head}\r\n{content}\r\n");
        reader.feed(format!("--0000\r\n{head}--0000--\r\n").as_bytes());
        let counted = reader.length() - reader.length_without_files();
        let multipart = reader.finish();
        let part = multipart.parts.first().cloned().unwrap_or_default();
        (multipart.error.is_none(), part.is_file(), part.also_field.then_some(part.value), counted > 0)
    };
    let typed = "Content-Type: text/plain\r\n";
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(read(r#"name="a"; filename="f""#, typed, "text"), (true, true, None, true));
    for odd in [
        r#"name="a"; filename= "f""#,
        r#"name= "a"; filename="f""#,
        "name=\"a\"; filename=\t\"f\"",
        r#"name="a"; filename="f";"#,
        r#"name="a"; filename="f" "#,
        r#"filename="f" ; name="a""#,
        r#"name="a"; filename="/""#,
        r#"name="a"; filename="\\/""#,
    ] {
        assert_eq!(read(odd, typed, "x\0y"), (true, true, text("x\0y"), false), "{odd}");
    }
    for (disposition, head) in
        [(r#"name="a"; filename="f""#, ""), (r#"name="a"; filename=f"#, typed), ("name=a; filename=f", "")]
    {
        assert_eq!(read(disposition, head, "text"), (true, true, text("text"), true), "{disposition}");
        assert_eq!(read(disposition, head, "x\0y"), (true, true, None, true), "{disposition}");
        assert_eq!(read(disposition, head, &"x".repeat(200_000)), (true, true, None, true), "{disposition}");
    }
    // A field with something behind its name is a field and nothing else.
    assert_eq!(read(r#"name= "a";"#, "", "text"), (true, false, None, false));
    let encoded = |value: &str| format!("{typed}Content-Encoding: {value}\r\n");
    assert!(
        !read(r#"name="a""#, &encoded("deflate"), "x").0 && !read(r#"name="a"; filename="/""#, &encoded("br"), "x").0
    );
    assert!(
        read(r#"name="a""#, &encoded(" Identity "), "x").0
            && read(r#"name="a"; filename="f""#, &encoded("gzip"), "x").0
    );
}

#[test]
fn quoted_values_are_unescaped() {
    let name = |quoted: &str| changed("\"a\"", quoted).parts[0].name.clone();
    assert_eq!(name("\"a\\\"b\""), b"a\"b");
    assert_eq!(name("\"a\\\\b\""), b"a\\b");
    assert_eq!(name("\"C:\\x\""), b"C:\\x");
    assert_eq!(name("plain"), b"plain");
    let empty = changed("\"x.txt\"", "\"\"");
    assert!(!empty.parts[1].is_file() && empty.parts[1].filename.as_deref() == Some(b""));
}

#[test]
fn limits_hold() {
    let limits = Limits::default();
    assert_eq!(limits, Limits { files: 100, parts: 1000, headers: 32, header_length: 8192 });
    let part = |index: usize, file: &str| {
        format!("--0000\r\nContent-Disposition: form-data; name=\"{index}\"{file}\r\n\r\n\r\n")
    };
    let files: String = (0..101).map(|index| part(index, "; filename=\"f\"")).collect();
    let multipart = with(TYPE, &format!("{files}--0000--\r\n"));
    assert!(multipart.flags.file_limit_exceeded && multipart.strict_error() && multipart.parts.len() == 101);
    let fields: String = (0..1001).map(|index| part(index, "")).collect();
    let multipart = with(TYPE, &format!("{fields}--0000--\r\n"));
    assert!(multipart.malformed && multipart.parts.len() == 1000);
    assert!(changed("X-A: b", &format!("X-A: {}", "b".repeat(8192))).malformed);
    let headers: String = (0..31).map(|index| format!("X-{index}: b\r\n")).collect();
    assert!(changed("X-A: b\r\n", &headers).malformed);
}

#[test]
fn a_part_whose_end_is_missing_can_be_taken() {
    let body = b"--b\r\ncontent-disposition: form-data; name=\"a\"; filename=\"x\"\r\n\r\nhello\r\n--b\r\n\
        content-disposition: form-data; name=\"c\"; filename=\"y\"\r\n\r\nfirst\r\nsecond";
    let mut reader = Reader::new(b"multipart/form-data; boundary=b", Limits::default(), true);
    reader.feed(body);
    let open = reader.take_open_part().unwrap();
    assert_eq!(
        (open.filename.as_deref(), open.value.as_slice()),
        (Some(b"y".as_slice()), b"first\r\nsecond".as_slice())
    );
    assert!(reader.take_open_part().is_none());
    let read = reader.finish();
    assert_eq!((read.parts.len(), read.parts[0].value.as_slice()), (1, b"hello".as_slice()));
    // In the head of a part, and where the body cannot be read, there is none.
    for length in [0, 3, 20, 60] {
        let mut reader = Reader::new(b"multipart/form-data; boundary=b", Limits::default(), true);
        reader.feed(&body[..length]);
        assert!(reader.take_open_part().is_none(), "{length}");
    }
}

#[test]
fn fields_are_decoded_as_applications_do() {
    for (encoding, content, expected) in [
        ("base64", "JyBvciAxPTEgLS0g", &["' or 1=1 -- "][..]),
        ("base64; x=y", "JyBvciAxPTEgLS0g", &["' or 1=1 -- "]),
        ("Base64;", "J=yBvciAxPTEgLS0g", &["' or 1=1 -- "]),
        ("base64", "Pz8-", &["??", "??>"]),
        ("quoted-printable ; a", "=27 or 1=\r\n=3D1", &["' or 1=1"]),
        ("binary", "JyBv", &[]),
        ("", "JyBv", &[]),
    ] {
        let head = "Content-Disposition: form-data; name=\"q\"\r\nContent-Transfer-Encoding: ";
        let multipart = with(TYPE, &format!("--0000\r\n{head}{encoding}\r\n\r\n{content}\r\n--0000--\r\n"));
        let [part] = multipart.parts.as_slice() else { panic!("{encoding}: {:?}", multipart.error) };
        assert_eq!(
            part.decoded.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect::<Vec<_>>(),
            expected
        );
    }
}

#[test]
fn a_type_of_many_character_sets_is_foreign() {
    let kind = "charset=".repeat(1000);
    let part = format!("--0000\r\nContent-Disposition: form-data; name=\"q\"\r\nContent-Type: a/b;{kind}\r\n\r\n1\r\n");
    let multipart = with(TYPE, &format!("{}--0000--\r\n", part.repeat(120)));
    assert!(multipart.error.is_none() && multipart.foreign_charset && multipart.parts.len() == 120);
}

#[test]
fn a_head_that_is_folded_without_end_takes_no_memory() {
    let mut search = super::nested::Search::default();
    assert!(search.find(b"content-disposition: a\n", 8192).is_none());
    for _ in 0..100 {
        assert!(search.find(&b" \n".repeat(1000), 8192).is_none());
    }
    let (head, _) = search.find(b" name=q\n\nx", 9000).unwrap();
    assert!(head.len() < 9000, "{}", head.len());
}
