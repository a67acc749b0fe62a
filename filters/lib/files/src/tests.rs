//! Files are made by hand here, so that no tool is needed: [`make`] has archives whose every field can be wrong.

mod archive_readers;
mod archives;
mod compressed;
mod entry_names;
mod finding_files;
mod formats;
mod kinds;
mod make;
mod names;
mod other_archives;
mod polyglots;
mod readings;
mod seven_zip;
mod zip_readers;

use super::*;

/// The findings on a file of this name.
fn findings(name: &str, content: &[u8], policy: &Policy) -> Vec<Finding> {
    inspect_as(name, content, policy, true)
}

fn inspect_as(name: &str, content: &[u8], policy: &Policy, complete: bool) -> Vec<Finding> {
    let names = if name.is_empty() { Vec::new() } else { vec![name.as_bytes().to_vec()] };
    let file = File { names: &names, media_type: None, content, complete, length: None };
    let mut findings = Findings::default();
    inspect(&file, policy, &mut Work::default(), &mut findings);
    findings.list().to_vec()
}

/// The word of the finding that decides; `ok` if there is none.
fn verdict(name: &str, content: &[u8], policy: &Policy) -> &'static str {
    first(&findings(name, content, policy))
}

fn first(findings: &[Finding]) -> &'static str {
    findings.iter().map(|finding| finding.reason).min().map_or("ok", Reason::word)
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    let policy = Policy::default();
    assert_eq!(
        (policy.denied_extensions.len(), policy.denied_types.as_slice()),
        (46, &words(&["executable", "script", "html"])[..])
    );
    assert_eq!(policy.limits, Limits { depth: 3, entries: 10_000, expanded: 268_435_456, ratio: 100 });
    let mut unique = policy.denied_extensions.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 46);
    assert!(policy.check_mismatch && policy.reject_unreadable && !policy.check_entries && policy.max_file_size == 0);
}

#[test]
fn each_reason_has_a_word_and_the_status_of_the_reference() {
    let of = |status: u16| {
        let mut words: Vec<_> =
            Reason::ALL.iter().filter(|reason| reason.status() == status).map(|reason| reason.word()).collect();
        words.sort_unstable();
        words
    };
    assert_eq!(of(400), ["malformed_multipart", "null_byte", "zip_slip"]);
    assert_eq!(of(403), ["malware"]);
    assert_eq!(of(413), ["archive_bomb", "archive_depth", "archive_entries", "file_too_large", "too_many_files"]);
    let unsupported = [
        "denied_extension",
        "denied_type",
        "double_extension",
        "extension_not_allowed",
        "polyglot",
        "type_mismatch",
        "type_not_allowed",
        "undecodable_body",
        "unreadable_archive",
    ];
    assert_eq!(of(415), unsupported);
    assert_eq!(of(503), ["scan_failed"]);
    assert_eq!(Reason::ALL.len(), 19);
}

#[test]
fn words_of_types_are_unique_and_each_format_has_a_family() {
    let mut words: Vec<_> = type_words().collect();
    let count = words.len();
    words.sort_unstable();
    words.dedup();
    // `html` and `svg` are both a family and a format of it.
    let both: Vec<_> =
        Family::ALL.iter().filter(|family| Format::ALL.iter().any(|format| format.word() == family.word())).collect();
    assert_eq!((count - words.len(), both.len()), (both.len(), 3), "{both:?}");
    for format in Format::ALL.iter().filter(|format| Family::ALL.iter().any(|family| family.word() == format.word())) {
        assert_eq!(format.word(), format.family().word(), "a word means one thing");
    }
}

#[test]
fn lists_of_extensions_and_types_decide() {
    let png = formats::sample(Format::Png);
    let policy = Policy { allowed_extensions: words(&["pdf"]), ..Policy::default() };
    assert_eq!(verdict("a.png", &png, &policy), "extension_not_allowed");
    assert_eq!(verdict("a", &png, &policy), "extension_not_allowed");
    assert_eq!(
        verdict("", &png, &policy),
        "extension_not_allowed",
        "a file without a name has the extensions of its type"
    );
    let policy = Policy { allowed_extensions: words(&["png"]), ..Policy::default() };
    assert_eq!((verdict("a.PNG", &png, &policy), verdict("", &png, &policy)), ("ok", "ok"));
    let policy = Policy { allowed_types: words(&["image"]), ..Policy::default() };
    assert_eq!(verdict("a.png", &png, &policy), "ok");
    assert_eq!(verdict("a.pdf", &formats::sample(Format::Pdf), &policy), "type_not_allowed");
    assert_eq!(verdict("a.txt", b"", &policy), "ok", "an empty file is of no type");
    let policy = Policy { denied_types: words(&["png"]), ..Policy::default() };
    assert_eq!(verdict("a.png", &png, &policy), "denied_type");
    // What is allowed by its own name is not denied by its family.
    let php = b"<?php echo 1;";
    let policy = Policy { denied_extensions: Vec::new(), ..Policy::default() };
    assert_eq!(verdict("a.php", php, &policy), "denied_type");
    let policy = Policy { allowed_types: words(&["php"]), ..policy };
    assert_eq!(verdict("a.php", php, &policy), "ok");
}

#[test]
fn length_and_mismatch_decide() {
    let png = formats::sample(Format::Png);
    let policy = Policy { max_file_size: 10, ..Policy::default() };
    assert_eq!((verdict("a.png", &png, &policy), verdict("a.txt", b"0123456789", &policy)), ("file_too_large", "ok"));
    let names = [b"a.txt".to_vec()];
    let file = File { names: &names, media_type: None, content: b"01", complete: false, length: Some(11) };
    let mut found = Findings::default();
    inspect(&file, &policy, &mut Work::default(), &mut found);
    assert_eq!(found.first().map(|finding| finding.reason), Some(Reason::FileTooLarge));

    let plain = Policy::default();
    for (name, content, expected) in [
        ("a.pdf", png.as_slice(), "type_mismatch"),
        ("a.txt", &png, "type_mismatch"),
        ("a.jpg", &png, "ok"),
        ("a.png", b"just text", "type_mismatch"),
        ("a.png", b"\x01\x02\x03\x04garbage\xff\xfe", "type_mismatch"),
        ("a.unknown", &png, "ok"),
        ("a", &png, "ok"),
        ("a.csv", b"{\"a\":1}", "ok"),
        ("a.docx", &make::zip(&[("a.txt", b"x")]), "type_mismatch"),
        ("a.zip", &formats::sample(Format::Docx), "ok"),
        ("a.docx", &formats::sample(Format::Macro), "denied_type"),
        ("key.key", b"-----BEGIN PRIVATE KEY-----", "ok"),
        ("posts.json", b"[{\"text\": \"write <?php echo 1; ?>\"}]", "ok"),
        ("posts.csv", b"1,<% response.write(1) %>\n", "ok"),
        ("posts.xml", b"<posts><?php echo 1; ?></posts>", "ok"),
        ("posts.txt", b"<?php echo 1;", "denied_type"),
        ("posts.txt", b"\n <% response.write(1) %>", "denied_type"),
        ("posts", b"write <?php echo 1; ?>", "denied_type"),
        ("posts.unknown", b"write <?php echo 1; ?>", "denied_type"),
        ("posts.xml", b"<svg onload=\"1\"><?php echo 1; ?></svg>", "denied_type"),
        ("README.md", b"<p align=\"center\">Hello</p>\n# Title", "ok"),
        ("README.md", b"<p>Hello</p><script>alert(1)</script>", "denied_type"),
    ] {
        assert_eq!(verdict(name, content, &plain), expected, "{name} {}", content.escape_ascii());
    }
    let macros = Policy { denied_types: Vec::new(), ..Policy::default() };
    assert_eq!(verdict("a.docx", &formats::sample(Format::Macro), &macros), "type_mismatch");
    let loose = Policy { check_mismatch: false, ..Policy::default() };
    assert_eq!(verdict("a.pdf", &png, &loose), "ok");
    // The media type counts as well.
    let with_media = |media: &[u8], content: &[u8]| {
        let mut found = Findings::default();
        let file = File { names: &[], media_type: Some(media), content, complete: true, length: None };
        inspect(&file, &plain, &mut Work::default(), &mut found);
        found.first().map_or("ok", |finding| finding.reason.word())
    };
    assert_eq!(with_media(b"Image/PNG; x=y", b"plain text"), "type_mismatch");
    assert_eq!((with_media(b"image/png", &png), with_media(b"application/octet-stream", b"text")), ("ok", "ok"));
}
