//! Attacks by ZIP, tar and gzip files.

use super::make::{self, Entry, build, deflate, gzip, octal, tar, tar_entry, tar_header, zip, zip_of, zip64};
use super::*;

fn plain(name: &str, content: &[u8]) -> &'static str {
    verdict(name, content, &Policy::default())
}

fn limited(limits: Limits, name: &str, content: &[u8]) -> &'static str {
    verdict(name, content, &Policy { limits, ..Policy::default() })
}

fn detail(name: &str, content: &[u8]) -> String {
    findings(name, content, &Policy::default()).first().map(|finding| finding.detail.clone()).unwrap_or_default()
}

#[test]
fn ordinary_archives_pass() {
    let files: [(&str, &[u8]); 3] = [("a.txt", b"hello"), ("dir/", b""), ("dir/b.bin", &make::noise(3000))];
    let inner = zip(&files);
    let described = zip_of(&[
        Entry { described: true, ..Entry::deflated("a.txt", b"hello hello hello") },
        Entry::stored("b", b"x"),
    ]);
    for (name, content) in [
        ("a.zip", zip(&files)),
        ("a.zip", zip64(&files)),
        ("a.zip", described),
        ("a.zip", build(&[Entry::stored("a", b"b")], b"", b"a comment").bytes),
        ("a.zip", zip(&[])),
        ("a.zip", zip(&[("inner.zip", &inner), ("inner.tar", &tar(&files))])),
        ("a.tar", tar(&[("a.txt", b"hello"), ("b.txt", &[7; 600])])),
        ("a.tar.gz", gzip(&tar(&[("a.txt", b"hello")]))),
        ("a.txt.gz", gzip(b"hello")),
        ("a.gz", [gzip(b"one"), gzip(b"two")].concat()),
    ] {
        assert_eq!(findings(name, &content, &Policy::default()), [], "{name}");
    }
}

#[test]
fn names_that_leave_the_folder_are_found_in_every_syntax() {
    for name in [
        "../a",
        "a/../../b",
        "..\\a",
        "a\\..\\..\\b",
        "/etc/passwd",
        "\\windows\\a",
        "C:\\a",
        "c:a",
        "//host/share/a",
        "\\\\host\\a",
        "a/..",
        "..",
        "%2e%2e/a",
        "%252e%252e%252fa",
        "..%2fa",
        "a/..;/b",
        "\u{ff0e}\u{ff0e}/a",
        "..\u{2215}a",
        "..\u{ff3c}a",
        ".. /a",
        "a/ ../b",
        "..\u{200b}/a",
    ] {
        assert_eq!(plain("a.zip", &zip(&[(name, b"x")])), "zip_slip", "{name} in a ZIP file");
        assert_eq!(plain("a.tar", &tar(&[(name, b"x")])), "zip_slip", "{name} in a tar file");
        let inner = zip(&[(name, b"x")]);
        assert_eq!(plain("a.zip", &zip(&[("b.zip", &inner)])), "zip_slip", "{name} deeper");
    }
    for name in ["a..b/c", "...", "a/.../b", "a/.hidden", "x..", "dir/file..txt"] {
        assert_eq!(plain("a.zip", &zip(&[(name, b"x")])), "ok", "{name}");
    }
    assert_eq!(plain("a.zip", &zip(&[("a.php\0.jpg", b"x")])), "null_byte");
}

#[test]
fn links_and_other_names_count_as_paths() {
    let link = |target: &str| Entry { attributes: 0o120_777 << 16, ..Entry::stored("link", target.as_bytes()) };
    assert_eq!(plain("a.zip", &zip_of(&[link("/etc/passwd")])), "zip_slip");
    assert_eq!(
        plain("a.zip", &zip_of(&[Entry { attributes: 0o120_777 << 16, ..Entry::deflated("l", b"../../x") }])),
        "zip_slip"
    );
    assert_eq!(plain("a.zip", &zip_of(&[link("b.txt"), Entry::stored("b.txt", b"x")])), "ok");
    let unicode = [b"\x75\x70\x09\0\x01\0\0\0\0".as_slice(), b"../x"].concat();
    assert_eq!(plain("a.zip", &zip_of(&[Entry { extra: unicode, ..Entry::stored("a", b"x") }])), "zip_slip");
    let tar_of = |entries: &[Vec<u8>]| [entries.concat(), vec![0; 1024]].concat();
    for (name, target, kind, expected) in [
        ("link", "../../etc", b'1', "zip_slip"),
        ("link", "../../etc", b'2', "zip_slip"),
        ("a/b/link", "../c", b'2', "ok"),
        ("a/b/link", "../../c", b'2', "ok"),
        ("a/b/link", "../../../c", b'2', "zip_slip"),
        ("a/b/link", "c/../../../../d", b'2', "zip_slip"),
        ("./a//link", "../../c", b'2', "zip_slip"),
        ("a/b/link", "../c", b'1', "zip_slip"),
        ("a/b/link", "a/c", b'1', "ok"),
        ("a/link", "/etc", b'2', "zip_slip"),
        ("a/link", "C:\\x", b'2', "zip_slip"),
    ] {
        let bytes = tar_of(&[tar_entry(name.as_bytes(), b"", kind, target.as_bytes())]);
        assert_eq!(plain("a.tar", &bytes), expected, "{name} to {target}");
    }
    // Each of these links stays inside; what is written through the first one does not.
    let through = [
        tar_entry(b"dir/up", b"", b'2', b".."),
        tar_entry(b"dir/up/up", b"", b'2', b".."),
        tar_entry(b"dir/up/up/x", b"x", b'0', b""),
    ];
    assert_eq!((plain("a.tar", &tar_of(&through[..1])), plain("a.tar", &tar_of(&through[..2]))), ("ok", "zip_slip"));
    let within = zip_of(&[link("."), Entry::stored("./link/x", b"x")]);
    assert_eq!(plain("a.zip", &within), "zip_slip");
    let beside = zip_of(&[link("."), Entry::stored("link2/x", b"x"), Entry::stored("y/link/x", b"x")]);
    assert_eq!(plain("a.zip", &beside), "ok");
    let target =
        [tar_entry(b"k", b"../../x\0", b'K', b""), tar_entry(b"a/link", b"", b'2', b"ok"), vec![0; 1024]].concat();
    assert_eq!(plain("a.tar", &target), "zip_slip");
    let long = [tar_entry(b"././@LongLink", b"../../long\0", b'L', b""), tar(&[("short", b"x")])].concat();
    assert_eq!(plain("a.tar", &long), "zip_slip");
    let pax = [tar_entry(b"pax", b"18 path=../../long\n", b'x', b""), tar(&[("short", b"x")])].concat();
    assert_eq!(plain("a.tar", &pax), "zip_slip");
    let named =
        flate2::GzBuilder::new().filename("../a").write(Vec::new(), flate2::Compression::best()).finish().unwrap();
    assert_eq!(plain("a.gz", &named), "zip_slip");
}

#[test]
fn bombs_are_found_by_ratio_and_by_length() {
    let zeros = vec![0; 8 << 20];
    for (name, content) in [
        ("a.zip", zip(&[("a", &zeros)])),
        ("a.gz", gzip(&zeros)),
        ("a.tar.gz", gzip(&tar(&[("a", &zeros)]))),
        ("a.zip", zip(&[("a.zip", &zip(&[("a", &zeros)]))])),
        ("a.gz", gzip(&gzip(&zeros))),
        ("a.tar", tar(&[("a.gz", &gzip(&zeros))])),
    ] {
        assert_eq!(plain(name, &content), "archive_bomb", "{name} of {} bytes", content.len());
    }
    // What the directory says counts before anything is opened.
    let lying = Entry { size: u32::MAX - 1, ..Entry::deflated("a", b"x") };
    assert_eq!(plain("a.zip", &zip_of(&[lying])), "archive_bomb");
    // Few bytes are never a bomb by their ratio.
    assert_eq!(plain("a.zip", &zip(&[("a", &vec![0; 60_000])])), "ok");
    let small = Limits { expanded: 10_000, ..Limits::default() };
    assert_eq!(limited(small, "a.zip", &zip(&[("a", &vec![0; 6000]), ("b", &vec![0; 6000])])), "archive_bomb");
    assert_eq!(limited(small, "a.zip", &zip(&[("a", &vec![0; 6000])])), "ok");
    let strict = Limits { ratio: 2, ..Limits::default() };
    let text = make::noise(40_000).repeat(4);
    assert_eq!(limited(strict, "a.zip", &zip(&[("a", &text)])), "ok", "it does not compress over the window");
    assert_eq!(limited(strict, "a.zip", &zip(&[("a", &vec![7; 70_000])])), "archive_bomb");
    assert_eq!(limited(Limits { ratio: 2000, ..strict }, "a.zip", &zip(&[("a", &vec![7; 70_000])])), "ok");
}

#[test]
fn entries_that_overlap_are_a_bomb() {
    let kernel = Entry::deflated("a", &vec![0; 50_000]);
    let overlapping: Vec<_> = (0..20)
        .map(|at| Entry { name: format!("a{at}").into_bytes(), shares: (at > 0).then_some(0), ..kernel.clone() })
        .collect();
    let mut first = overlapping;
    first[0].local_name = b"a0".to_vec();
    let limits = Limits { ratio: 10_000, ..Limits::default() };
    assert_eq!(limited(limits, "a.zip", &zip_of(&first)), "archive_bomb");
    // Two entries with one header and one name.
    let twice = [Entry::stored("a", b"x"), Entry { shares: Some(0), ..Entry::stored("a", b"x") }];
    assert_eq!(plain("a.zip", &zip_of(&twice)), "archive_bomb");
}

#[test]
fn depth_and_entries_are_bounded() {
    let mut nested = zip(&[("a.txt", b"x")]);
    for depth in 1..=4 {
        assert_eq!(plain("a.zip", &nested), if depth > 3 { "archive_depth" } else { "ok" }, "{depth}");
        nested = zip(&[("a.zip", &nested)]);
    }
    let flat = Limits { depth: 1, ..Limits::default() };
    assert_eq!(limited(flat, "a.tgz", &gzip(&tar(&[("a", b"x")]))), "ok", "a compressed tar file is one archive");
    assert_eq!(limited(flat, "a.zip", &zip(&[("a.tar", &tar(&[("a", b"x")]))])), "archive_depth");
    let names: Vec<String> = (0..30).map(|at| format!("f{at}")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"x".as_slice())).collect();
    let few = Limits { entries: 20, ..Limits::default() };
    for (name, content) in [("a.zip", zip(&many)), ("a.zip", zip64(&many)), ("a.tar", tar(&many))] {
        assert_eq!(limited(few, name, &content), "archive_entries", "{name}");
        assert_eq!(limited(Limits { entries: 30, ..few }, name, &content), "ok", "{name}");
    }
    let two = zip(&[("a.zip", &zip(&many[..15])), ("b.zip", &zip(&many[..15]))]);
    assert_eq!(limited(few, "a.zip", &two), "archive_entries", "all archives count together");
}

#[test]
fn a_file_that_holds_itself_ends_at_the_depth() {
    // Stored, the content of an entry is the whole file again: no finite file is, but one that refers to its own beginning comes close.
    let mut quine = zip(&[("r/r.zip", b"x")]);
    for _ in 0..40 {
        quine = zip_of(&[Entry::stored("r/r.zip", &quine)]);
    }
    assert_eq!(plain("r.zip", &quine), "archive_depth");
    let mut deep = b"x".to_vec();
    for _ in 0..200 {
        deep = gzip(&deep);
    }
    assert_eq!(plain("r.gz", &deep), "archive_depth");
}

#[test]
fn headers_that_contradict_the_directory_are_unreadable() {
    let good = Entry::deflated("a.txt", b"hello hello");
    let cases = [
        ("another name", Entry { local_name: b"b.exe".to_vec(), ..good.clone() }),
        ("another method", Entry { local_method: 0, ..good.clone() }),
        ("encrypted in one place", Entry { local_flags: 1, ..good.clone() }),
        ("a wrong sum", Entry { crc: 1, ..good.clone() }),
        ("too short", Entry { size: 5, ..good.clone() }),
        ("too long", Entry { size: 500, ..good.clone() }),
        ("packed too short", Entry { packed: good.packed - 2, ..good.clone() }),
        ("stored, with two lengths", Entry { size: 4, ..Entry::stored("a", b"hello") }),
        ("encrypted", Entry { flags: 1, local_flags: 1, ..good.clone() }),
        ("AES", Entry { method: 99, local_method: 99, ..good.clone() }),
        ("an unknown method", Entry { method: 12, local_method: 12, ..good.clone() }),
        ("damaged", Entry { data: vec![0xff; usize::try_from(good.packed).unwrap()], ..good.clone() }),
    ];
    for (what, entry) in cases {
        let file = zip_of(&[entry, Entry::stored("other", b"x")]);
        assert_eq!(plain("a.zip", &file), "unreadable_archive", "{what}");
        let allowed = Policy { reject_unreadable: false, ..Policy::default() };
        assert_eq!(verdict("a.zip", &file, &allowed), "ok", "{what}");
    }
    let twice = zip_of(&[Entry::stored("a", b"x"), Entry::stored("a", b"y")]);
    assert!(detail("a.zip", &twice).contains("the same name"));
    let hidden = zip_of(&[Entry::stored("a", b"x"), Entry { hidden: true, ..Entry::stored("evil.exe", b"MZ") }]);
    assert!(detail("a.zip", &hidden).contains("does not name"));
    let last = zip_of(&[Entry { hidden: true, ..Entry::stored("evil.exe", b"MZ") }, Entry::stored("a", b"x")]);
    assert!(detail("a.zip", &last).contains("does not name"));
}

#[test]
fn damaged_ends_are_unreadable() {
    let good = build(&[Entry::stored("a", b"x"), Entry::stored("b", b"y")], b"", b"");
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = good.bytes.clone();
        changed[good.end + at..good.end + at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    for (what, file) in [
        ("several volumes", with(4, b"\x01\0")),
        ("other counts", with(8, b"\x01\0")),
        ("fewer entries", with(8, b"\x01\0\x01\0")),
        ("more entries", with(8, b"\x03\0\x03\0")),
        ("a directory beyond the file", with(12, b"\xff\xff\0\0")),
        ("an offset beyond the file", with(16, b"\xff\xff\0\0")),
        ("ZIP64 without its record", with(16, b"\xff\xff\xff\xff")),
        ("no end", good.bytes[..good.end].to_vec()),
        ("half an end", good.bytes[..good.end + 10].to_vec()),
    ] {
        assert_eq!(plain("a.zip", &file), "unreadable_archive", "{what}");
    }
    let mut other = zip64(&[("a", b"x")]);
    let length = other.len();
    other[length - 22 + 8..length - 22 + 12].copy_from_slice(b"\x05\0\x05\0");
    other[length - 22 + 12..length - 22 + 20].copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(plain("a.zip", &other), "unreadable_archive", "two ends that contradict each other");
}

#[test]
fn damaged_tar_and_gzip_files_are_unreadable() {
    let mut sum = tar(&[("a", b"x"), ("b", b"y")]);
    sum[1024] = b'z';
    assert_eq!(plain("a.tar", &sum), "unreadable_archive");
    let huge = [tar_header(b"a", b"\x80\0\0\0\0\0\0\0\0\x01\x86\xa0", b'0', b""), vec![0; 1024]].concat();
    assert_eq!(plain("a.tar", &huge), "unreadable_archive");
    let bomb = [tar_header(b"a", b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", b'0', b""), vec![0; 1024]].concat();
    assert_eq!(plain("a.tar", &bomb), "archive_bomb", "its length is over the limit by itself");
    let bad = [tar_header(b"a", b"abcdefghijk\0", b'0', b""), vec![0; 1024]].concat();
    assert_eq!(plain("a.tar", &bad), "unreadable_archive");
    let cut = [tar_header(b"a", &octal(5000), b'0', b""), vec![7; 600]].concat();
    assert_eq!(plain("a.tar", &cut), "unreadable_archive");

    let good = gzip(b"hello hello hello");
    let mut crc = good.clone();
    let at = crc.len() - 8;
    crc[at] ^= 1;
    let mut length = good.clone();
    let at = length.len() - 1;
    length[at] ^= 1;
    let mut reserved = good.clone();
    reserved[3] = 0xe0;
    for (what, file) in
        [("sum", crc), ("length", length), ("flags", reserved), ("cut", good[..good.len() - 10].to_vec())]
    {
        assert_eq!(plain("a.gz", &file), "unreadable_archive", "{what}");
    }
}

#[test]
fn what_takes_too_much_work_is_unreadable() {
    // It does not compress well enough to be a bomb, and is longer than the budget.
    let part = [make::noise(1000), vec![0; 40_000]].concat();
    let long = part.repeat(usize::try_from(WORK_BYTES).unwrap() / part.len() + 2);
    assert!(detail("a.gz", &gzip(&long)).contains("more work"), "{}", detail("a.gz", &gzip(&long)));
    let inner = make::zip_of(&[Entry::stored("a", &vec![1; usize::try_from(WORK_MEMORY).unwrap() + 1])]);
    let outer = Limits { ratio: 10_000, ..Limits::default() };
    assert_eq!(
        limited(outer, "a.zip", &zip(&[("inner.zip", &inner)])),
        "unreadable_archive",
        "more memory than there is"
    );
}

#[test]
fn members_of_gzip_are_one_file() {
    let packed = tar(&[("../a", b"x")]);
    let split = |at: usize| [gzip(&packed[..at]), gzip(&packed[at..])].concat();
    // What is split cannot be opened: it is not known before that the parts belong to an archive.
    for at in [1, 100, 300, 600] {
        assert_ne!(plain("a.tgz", &split(at)), "ok", "{at}");
    }
    let inner = zip(&[("../a", b"x")]);
    assert_ne!(plain("a.gz", &[gzip(&inner[..2]), gzip(&inner[2..])].concat()), "ok");
    assert_eq!(plain("a.gz", &gzip(&make::noise(2000)).repeat(900)), "ok");
    assert_eq!(plain("a.gz", &gzip(b"x").repeat(1001)), "polyglot", "more members than are read");
}

#[test]
fn entries_are_checked_where_the_policy_says_so() {
    let checked = Policy { check_entries: true, ..Policy::default() };
    let named = zip(&[("docs/a.exe", b"harmless")]);
    let typed = zip(&[("a.txt", &formats::sample(Format::Elf))]);
    assert_eq!((plain("a.zip", &named), verdict("a.zip", &named, &checked)), ("ok", "denied_extension"));
    assert_eq!((plain("a.zip", &typed), verdict("a.zip", &typed, &checked)), ("ok", "denied_type"));
    let packed = tar(&[("a.sh", b"x")]);
    assert_eq!(verdict("a.tar", &packed, &checked), "denied_extension");
    assert_eq!(verdict("a.tgz", &gzip(&packed), &checked), "denied_extension");
    assert_eq!(verdict("a.gz", &gzip(b"#!/bin/sh\nid"), &checked), "denied_type");
    assert_eq!(verdict("a.zip", &zip(&[("a.zip", &named)]), &checked), "denied_extension");
    assert_eq!(verdict("a.docx", &formats::sample(Format::Docx), &checked), "ok", "parts of a document are no files");
}

#[test]
fn of_a_file_that_is_cut_off_the_beginning_is_opened() {
    let zeros = vec![0; 9 << 20];
    let entries: [(&str, &[u8]); 3] = [("a.txt", b"hello"), ("../b", b"x"), ("c", &zeros)];
    let file = zip(&entries);
    let policy = Policy::default();
    assert_eq!(first(&inspect_as("a.zip", &file[..60], &policy, false)), "ok");
    assert_eq!(first(&inspect_as("a.zip", &file[..90], &policy, false)), "zip_slip");
    let bomb = zip(&[("a", b"x"), ("c", &zeros)]);
    assert_eq!(first(&inspect_as("a.zip", &bomb[..bomb.len() - 150], &policy, false)), "archive_bomb");
    let described =
        zip_of(&[Entry { described: true, ..Entry::deflated("a", b"hello hello") }, Entry::stored("../b", b"x")]);
    assert_eq!(first(&inspect_as("a.zip", &described[..described.len() - 60], &policy, false)), "zip_slip");
    let packed = tar(&[("a", b"x"), ("/b", b"y")]);
    assert_eq!(first(&inspect_as("a.tar", &packed[..1600], &policy, false)), "zip_slip");
    let bomb = gzip(&zeros);
    assert_eq!(first(&inspect_as("a.gz", &bomb[..bomb.len() / 2], &policy, false)), "archive_bomb");
    assert_eq!(first(&inspect_as("a.gz", &gzip(&make::noise(5000))[..2000], &policy, false)), "ok");
}

#[test]
fn archives_that_are_cut_or_changed_anywhere_are_read() {
    let inner = zip(&[("x", b"hello hello hello"), ("y", b"z")]);
    let seeds = [
        zip(&[("a", b"hello hello hello"), ("b.zip", &inner), ("c.gz", &gzip(b"hello"))]),
        zip64(&[("a", b"x")]),
        tar(&[("a", b"hello"), ("b.zip", &inner)]),
        gzip(&tar(&[("a", &inner)])),
        build(&[Entry { described: true, ..Entry::deflated("a", b"hello") }], b"front", b"comment").bytes,
        deflate(b"x"),
    ];
    for seed in &seeds {
        for at in 0..seed.len().min(400) {
            inspect_as("", &seed[..at], &Policy::default(), at % 2 == 0);
            for byte in [0, 0xff, b'P', seed[at] ^ 0x80] {
                let mut changed = seed.clone();
                changed[at] = byte;
                inspect_as("a.zip", &changed, &Policy::default(), true);
            }
        }
    }
}
