//! Names of entries, which are read in the ways that names of files are.

use super::make::{Entry, gzip, tar, tar_entry, zip, zip_of};
use super::*;

/// The verdicts on an entry of this name, in a ZIP file and in tar files.
fn of_entry(name: &[u8], policy: &Policy) -> [&'static str; 3] {
    let entry = Entry { name: name.to_vec(), local_name: name.to_vec(), ..Entry::stored("a", b"x") };
    let packed = [tar_entry(name, b"x", b'0', b""), vec![0; 1024]].concat();
    [
        verdict("a.zip", &zip_of(&[entry]), policy),
        verdict("a.tar", &packed, policy),
        verdict("a.tgz", &gzip(&packed), policy),
    ]
}

#[test]
fn names_of_entries_are_read_in_every_way() {
    let checked = Policy { check_entries: true, ..Policy::default() };
    for (name, expected) in [
        ("docs/a.php", "denied_extension"),
        ("a.php.", "denied_extension"),
        ("a.php ", "denied_extension"),
        ("a.php. .", "denied_extension"),
        ("a.php::$DATA", "denied_extension"),
        ("a.php:stream.txt", "denied_extension"),
        ("a.txt:b.php", "denied_extension"),
        ("a%2ephp", "denied_extension"),
        ("a%252ephp", "denied_extension"),
        ("a.php%20", "denied_extension"),
        ("a.ph\u{200b}p", "denied_extension"),
        ("a\u{ff0e}php", "denied_extension"),
        ("a\u{2025}php", "denied_extension"),
        ("a\u{2026}php", "denied_extension"),
        ("a\u{2488}php", "denied_extension"),
        ("a.ht!ml", "denied_extension"),
        (".htaccess", "denied_extension"),
        ("conf/web.config", "denied_extension"),
        ("a.php5", "denied_extension"),
        ("a.php.txt", "double_extension"),
        ("a.php;.txt", "double_extension"),
        ("a.exe.pdf", "double_extension"),
        ("invoice_\u{202e}fdp.txt", "double_extension"),
        ("docs/report.pdf", "ok"),
        ("Guide (setup.exe).pdf", "ok"),
        ("page.html.gz", "ok"),
        ("README", "ok"),
        ("\u{5e9}\u{5dc}\u{5d5}\u{5dd}.txt", "ok"),
        ("100%.txt", "ok"),
    ] {
        assert_eq!(of_entry(name.as_bytes(), &checked), [expected; 3], "{}", name.escape_debug());
        assert_eq!(of_entry(name.as_bytes(), &Policy::default()), ["ok"; 3], "{}", name.escape_debug());
    }
    // A dot in two bytes and in three.
    for name in [b"a\xc0\xaephp".as_slice(), b"a\xe0\x80\xaephp", b"a\xf0\x80\x80\xaephp"] {
        assert_eq!(of_entry(name, &checked), ["denied_extension"; 3], "{}", name.escape_ascii());
    }
    let parts = zip(&[("[Content_Types].xml", b"<Types/>"), ("word/a.js", b"x")]);
    assert_eq!(verdict("a.docx", &parts, &checked), "ok", "parts of a document are no files");
}

#[test]
fn paths_of_entries_lead_out_in_every_reading() {
    for name in [
        b"\xc0\xae\xc0\xae/a".as_slice(),
        b"..\xc0\xafa",
        b"..\xe0\x80\xafa",
        "\u{2025}/a".as_bytes(),
        "a/\u{fe30}/../b".as_bytes(),
        b"%2fetc/passwd",
        b"%252fetc/passwd",
        b"%63:/a",
        b"%c0%ae%c0%ae/a",
        b"%25c0%25ae./a",
        b"%e2%80%a5/a",
        b"..%ef%bc%8fa",
        "\u{ff0f}etc/passwd".as_bytes(),
        b"a/..%5c..%5cb",
    ] {
        assert_eq!(of_entry(name, &Policy::default()), ["zip_slip"; 3], "{}", name.escape_ascii());
    }
    for name in [b"a.php%00.txt".as_slice(), b"a%2500.txt"] {
        let found = of_entry(name, &Policy::default());
        assert!(found.iter().all(|found| matches!(*found, "null_byte" | "ok")), "{found:?}");
    }
    for target in ["\u{ff0e}\u{ff0e}/x", "%2e%2e/x", "\u{2025}/x"] {
        let link = [tar_entry(b"l", b"", b'2', target.as_bytes()), vec![0; 1024]].concat();
        assert_eq!(verdict("a.tar", &link, &Policy::default()), "zip_slip", "{target}");
    }
    let inside = [tar_entry(b"d/l", b"", b'2', "\u{2026}/x".as_bytes()), vec![0; 1024]].concat();
    assert_eq!(verdict("a.tar", &inside, &Policy::default()), "ok");
}

#[test]
fn tar_files_are_tar_files_whatever_their_first_name_is() {
    let with =
        |name: &[u8]| [tar_entry(name, b"x", b'0', b""), tar_entry(b"../x", b"x", b'0', b""), vec![0; 1024]].concat();
    let reasons = |content: &[u8]| {
        let found = findings("a", content, &Policy::default());
        (
            found.iter().any(|found| found.reason == Reason::ZipSlip),
            found.iter().any(|found| found.reason == Reason::Polyglot),
        )
    };
    for name in [
        b"GIF89a".as_slice(),
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff",
        b"%PDF-1.4",
        b"PK\x03\x04",
        b"\x1f\x8b\x08",
        b"{\\rt",
        b"<!--",
        b"<script>",
    ] {
        assert_eq!(identify(&with(name)), Format::Tar, "{}", name.escape_ascii());
        assert_eq!(reasons(&with(name)), (true, true), "{}", name.escape_ascii());
    }
    // These are names.
    for name in [b"true".as_slice(), b"ID3v2.txt", b"OTTO", b"fLaC", b"MZ-notes.txt", b"BM", b"CWS notes", b"RIFF"] {
        assert_eq!(reasons(&with(name)), (true, false), "{}", name.escape_ascii());
        let honest = tar(&[(std::str::from_utf8(name).unwrap(), b"x")]);
        assert_eq!(verdict("a.tar", &honest, &Policy::default()), "ok", "{}", name.escape_ascii());
    }
    // A program stays one.
    let program = with(b"\x7fELF");
    assert_eq!((identify(&program), reasons(&program).1), (Format::Elf, true));
}

#[test]
fn archives_in_files_of_other_formats_are_found() {
    let polyglot = |name: &str, content: &[u8]| {
        findings(name, content, &Policy::default()).iter().any(|found| found.reason == Reason::Polyglot)
    };
    let slip = tar(&[("../x", b"x")]);
    let block = |start: &[u8]| {
        let mut block = start.to_vec();
        block.resize(512, 0);
        block
    };
    let gif = b"GIF89a\x01\0\x01\0\0\0\0";
    assert!(polyglot("a.gif", &[block(gif), slip.clone()].concat()), "readers of tar skip what is no header");
    assert!(!polyglot("a.gif", &[block(gif), vec![0; 20], slip.clone()].concat()), "but no other bytes");
    assert!(polyglot("a.mp3", &[block(b"ID3\x04\0\0\0\0\0\0"), slip].concat()));
    let mut disk = gif.to_vec();
    disk.resize(34_000, 0);
    disk[32_769..32_774].copy_from_slice(b"CD001");
    assert!(polyglot("a.gif", &disk));
    let archive = make::zip64(&[("a", b"x")]);
    assert!(polyglot("a.mp3", &[b"ID3\x04\0\0\0\0\0\0\0\0".as_slice(), &archive].concat()), "with ZIP64");
    for script in [
        "RIFF=1//WAVE\nalert(1)",
        "RIFF=/**WEBPVP8 */1;alert(1)",
        "RIFF/*  AVI */=1;alert(1)",
        "FORM=1//AIFF\nalert(1)",
        "fLaC=1;alert(1)",
    ] {
        assert!(polyglot("a", script.as_bytes()), "{script}");
    }
}
