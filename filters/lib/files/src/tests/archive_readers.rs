//! Archives that readers do not read alike, and what finding out about them takes.

use super::make::{Entry, crc, gzip, noise, octal, tar, tar_entry, tar_header, zip, zip_of, zip64};
use super::*;

fn plain(name: &str, content: &[u8]) -> &'static str {
    verdict(name, content, &Policy::default())
}

fn lenient(name: &str, content: &[u8]) -> &'static str {
    verdict(name, content, &Policy { reject_unreadable: false, ..Policy::default() })
}

fn checked(name: &str, content: &[u8]) -> &'static str {
    verdict(name, content, &Policy { check_entries: true, ..Policy::default() })
}

/// A field of an extra field.
fn field(id: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap();
    [&id.to_le_bytes(), &length.to_le_bytes(), content].concat()
}

fn unicode(name: &str) -> Vec<u8> {
    field(0x7075, &[&[1, 0, 0, 0, 0], name.as_bytes()].concat())
}

/// A stored entry whose two headers have different extra fields and lengths.
#[derive(Clone, Default)]
struct Raw {
    name: &'static str,
    content: &'static [u8],
    extra: Vec<u8>,
    local_extra: Vec<u8>,
    /// The lengths in front of the entry, packed and not.
    local: Option<(u32, u32)>,
    flags: u16,
    host: u8,
    mode: u32,
}

fn raw(name: &'static str, content: &'static [u8]) -> Raw {
    Raw { name, content, ..Raw::default() }
}

fn raw_zip(entries: &[Raw]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    let short = |number: usize| u16::try_from(number).unwrap().to_le_bytes();
    let long = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    for entry in entries {
        let (length, sum) = (entry.content.len(), crc(entry.content).to_le_bytes());
        directory.extend([b'P', b'K', 1, 2, 20, entry.host, 20, 0]);
        directory.extend(entry.flags.to_le_bytes());
        directory.extend([0; 6]);
        directory.extend(sum);
        directory.extend([long(length), long(length)].concat());
        directory.extend([short(entry.name.len()), short(entry.extra.len())].concat());
        directory.extend([0; 6]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend(long(bytes.len()));
        directory.extend(entry.name.as_bytes());
        directory.extend(&entry.extra);
        let (packed, size) = entry.local.unwrap_or((u32::try_from(length).unwrap(), u32::try_from(length).unwrap()));
        bytes.extend(b"PK\x03\x04\x14\0");
        bytes.extend(entry.flags.to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(if entry.flags & 8 != 0 { [0; 4] } else { sum });
        bytes.extend([packed.to_le_bytes(), size.to_le_bytes()].concat());
        bytes.extend([short(entry.name.len()), short(entry.local_extra.len())].concat());
        bytes.extend(entry.name.as_bytes());
        bytes.extend(&entry.local_extra);
        bytes.extend(entry.content);
        if entry.flags & 8 != 0 {
            bytes.extend(b"PK\x07\x08");
            bytes.extend(sum);
            bytes.extend([long(length), long(length)].concat());
        }
    }
    let (start, length) = (bytes.len(), directory.len());
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([short(entries.len()), short(entries.len())].concat());
    bytes.extend([long(length), long(start)].concat());
    bytes.extend([0; 2]);
    bytes
}

/// A record of a pax header. Its length counts its own digits.
fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let length = (1..).map(|digits| rest + digits).find(|length| length.to_string().len() + rest == *length).unwrap();
    [format!("{length} {key}=").as_bytes(), value, b"\n"].concat()
}

fn tar_of(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), vec![0; 1024]].concat()
}

fn pax(kind: u8, records: &[Vec<u8>]) -> Vec<u8> {
    tar_entry(b"pax", &records.concat(), kind, b"")
}

fn file(name: &str) -> Vec<u8> {
    tar_entry(name.as_bytes(), b"x", b'0', b"")
}

fn symlink(name: &str, target: &str) -> Vec<u8> {
    tar_entry(name.as_bytes(), b"", b'2', target.as_bytes())
}

#[test]
fn the_kind_of_a_zip_file_is_charged_for_once_and_only_where_it_matters() {
    let types = noise(100_000);
    let inner = zip(&[("[Content_Types].xml", &types), ("word/document.xml", b"x")]);
    let outer = zip(&[("a.docx", &inner), ("b.docx", &inner), ("c.docx", &inner)]);
    let done = |check_entries: bool| {
        let policy = Policy { check_entries, ..Policy::default() };
        let file = File { names: &[], media_type: None, content: &outer, complete: true, length: None };
        let (mut work, mut found) = (Work::default(), Findings::default());
        inspect(&file, &policy, &mut work, &mut found);
        assert_eq!(found.first(), None);
        work.done()
    };
    let opened = 3 * (inner.len() + types.len() + 1) as u64;
    assert_eq!((done(false), done(true)), (opened, opened + 3 * types.len() as u64));
    // Types that are larger than what is left of the budget are too much work.
    let large = zip(&[("[Content_Types].xml", &noise(250 << 10))]);
    let names: Vec<String> = (0..40).map(|at| format!("{at}.docx")).collect();
    let many: Vec<_> = names.iter().map(|name| Entry::stored(name, &large)).collect();
    assert_eq!((plain("a.zip", &zip_of(&many)), checked("a.zip", &zip_of(&many))), ("ok", "unreadable_archive"));
}

#[test]
fn documents_with_macros_are_opened_within_archives() {
    let types = b"<Override ContentType=\"application/vnd.ms-word.document.macroEnabled.main+xml\"/>";
    let office = |name: &str| zip(&[("[Content_Types].xml", types), ("word/document.xml", b"x"), (name, b"x")]);
    let odf = |name: &str| {
        zip_of(&[
            Entry::stored("mimetype", b"application/vnd.oasis.opendocument.text"),
            Entry::deflated("Basic/script.xml", b"x"),
            Entry::deflated(name, b"x"),
        ])
    };
    for (bad, good) in [(office("../x"), office("x")), (odf("../x"), odf("x"))] {
        assert_eq!(Format::Macro, identify(&good));
        for (inner, expected, type_of) in [(&bad, "zip_slip", "zip_slip"), (&good, "ok", "denied_type")] {
            for (name, outer) in [
                ("a.zip", zip(&[("a", inner)])),
                ("a.zip", zip_of(&[Entry::stored("a", inner)])),
                ("a.gz", gzip(inner)),
                ("a.tar", tar(&[("a", inner)])),
                ("a.tgz", gzip(&tar(&[("a", inner)]))),
            ] {
                assert_eq!((plain(name, &outer), checked(name, &outer)), (expected, type_of), "{name}");
            }
        }
    }
    let secret = zip_of(&[
        Entry::deflated("[Content_Types].xml", types),
        Entry { flags: 1, local_flags: 1, ..Entry::stored("a", b"x") },
    ]);
    assert_eq!(plain("a.zip", &zip(&[("a.docm", &secret)])), "unreadable_archive");
    let bomb = zip(&[("[Content_Types].xml", types), ("word/a", &vec![0; 9 << 20])]);
    assert_eq!(plain("a.zip", &zip(&[("a.docm", &bomb)])), "archive_bomb");
}

#[test]
fn the_two_ends_of_a_zip_file_agree_but_for_markers() {
    let good = zip64(&[("a", b"x"), ("b", b"y")]);
    let end = good.len() - 22;
    let record = end - 76;
    let fields = |file: &mut Vec<u8>| {
        for (at, from, length) in [(8, 24, 2), (10, 32, 2), (12, 40, 4), (16, 48, 4)] {
            let long = file[record + from..record + from + length].to_vec();
            file[end + at..end + at + length].copy_from_slice(&long);
        }
    };
    let mut filled = good.clone();
    fields(&mut filled);
    assert_eq!((plain("a.zip", &good), plain("a.zip", &filled)), ("ok", "ok"));
    for (what, at) in [("count here", 8), ("count", 10), ("size", 12), ("offset", 16)] {
        for base in [&good, &filled] {
            let mut wrong = base.clone();
            wrong[end + at] ^= 1;
            assert_eq!(plain("a.zip", &wrong), "unreadable_archive", "{what}");
        }
    }
    let mut disk = good.clone();
    disk[end + 4..end + 6].copy_from_slice(b"\xff\xff");
    assert_eq!(plain("a.zip", &disk), "ok");
    let mut longer = good.clone();
    longer[record + 4] += 4;
    assert_eq!(plain("a.zip", &longer), "unreadable_archive", "the record does not end at its locator");
    // Data of other programs may be a part of the record.
    longer.splice(record + 56..record + 56, *b"\0\0\0\0");
    assert_eq!(plain("a.zip", &longer), "ok");
}

#[test]
fn lengths_of_zip64_in_front_of_an_entry_are_compared() {
    let marked = (u32::MAX, u32::MAX);
    let long = |size: u64, packed: u64| field(1, &[size.to_le_bytes(), packed.to_le_bytes()].concat());
    let with = |local: (u32, u32), local_extra: Vec<u8>, flags: u16| {
        raw_zip(&[Raw { local: Some(local), local_extra, flags, ..raw("a", b"hello") }, raw("b", b"x")])
    };
    for (what, file, expected) in [
        ("as Python writes it", with(marked, long(5, 5), 0), "ok"),
        ("one marker", with((5, u32::MAX), field(1, &5_u64.to_le_bytes()), 0), "ok"),
        ("no marker: the field is not read", with((5, 5), long(7, 7), 0), "ok"),
        ("another size", with(marked, long(6, 5), 0), "unreadable_archive"),
        ("another packed length", with(marked, long(5, 400), 0), "unreadable_archive"),
        ("no field", with(marked, Vec::new(), 0), "unreadable_archive"),
        ("a descriptor", with(marked, long(0, 0), 8), "ok"),
        ("a descriptor and no field", with(marked, Vec::new(), 8), "ok"),
        ("a descriptor and another length", with(marked, long(5, 400), 8), "unreadable_archive"),
    ] {
        assert_eq!(plain("a.zip", &file), expected, "{what}");
    }
    // Of a file that is cut off, the lengths lead to the next entry.
    let bytes =
        raw_zip(&[Raw { local: Some(marked), local_extra: long(5, 5), ..raw("a", b"hello") }, raw("../b", b"x")]);
    assert_eq!(first(&inspect_as("a.zip", &bytes[..95], &Policy::default(), false)), "zip_slip");
}

#[test]
fn other_names_of_both_headers_are_checked_in_every_way() {
    let central = |name: &str| Raw { extra: unicode(name), ..raw("a", b"x") };
    let local = |name: &str| Raw { local_extra: unicode(name), ..raw("a", b"x") };
    let link = Raw { host: 3, mode: 0o120_777, ..raw("l", b".") };
    for (what, made) in [("central", central as fn(&str) -> Raw), ("local", local)] {
        assert_eq!(plain("a.zip", &raw_zip(&[made("\u{e4}.txt")])), "ok", "{what}");
        assert_eq!(plain("a.zip", &raw_zip(&[made("../x")])), "zip_slip", "{what}");
        let program = raw_zip(&[made("a.exe")]);
        assert_eq!((plain("a.zip", &program), checked("a.zip", &program)), ("ok", "denied_extension"), "{what}");
        assert_eq!(plain("a.zip", &raw_zip(&[link.clone(), made("l/x")])), "zip_slip", "{what}");
        let renamed = Raw { host: 3, mode: 0o120_777, content: b".", ..made("l") };
        assert_eq!(plain("a.zip", &raw_zip(&[renamed, raw("l/x", b"x")])), "zip_slip", "{what}");
    }
    let cut = raw_zip(&[local("../x")]);
    assert_eq!(first(&inspect_as("a.zip", &cut[..cut.len() - 30], &Policy::default(), false)), "zip_slip");
}

#[test]
fn links_of_zip_files_are_links_whatever_the_system() {
    for host in [0, 3, 10, 19] {
        let link = |mode: u32| raw_zip(&[Raw { host, mode, ..raw("l", b"../../etc") }]);
        assert_eq!((plain("a.zip", &link(0o120_777)), plain("a.zip", &link(0o100_644))), ("zip_slip", "ok"), "{host}");
    }
}

#[test]
fn pax_records_are_read_by_their_lengths_all_of_them() {
    let with = |kind: u8, records: &[Vec<u8>]| tar_of(&[pax(kind, records), file("a")]);
    let up = record("path", b"../x");
    for kind in *b"xXg" {
        assert_eq!(plain("a.tar", &with(kind, std::slice::from_ref(&up))), "zip_slip", "{}", char::from(kind));
    }
    let mut many = vec![record("comment", b"x"); 100];
    assert_eq!(plain("a.tar", &with(b'x', &many)), "ok");
    many.push(up);
    assert_eq!(plain("a.tar", &with(b'x', &many)), "zip_slip");
    assert_eq!(plain("a.tar", &with(b'x', &[record("path", b"a\nb/../../../x")])), "zip_slip");
    let value = [b"one\n", record("path", b"../x").as_slice(), b"two"].concat();
    assert_eq!(plain("a.tar", &with(b'x', &[record("SCHILY.xattr.user.note", &value), record("mtime", b"1.5")])), "ok");
    for damaged in [
        b"99 path=a\n".as_slice(),
        b"path=a\n",
        b"5\n",
        b"10 path=abc",
        b"0 path=a\n",
        b"99999999999999999999999 path=a\n",
    ] {
        assert_eq!(
            plain("a.tar", &with(b'x', &[damaged.to_vec()])),
            "unreadable_archive",
            "{}",
            damaged.escape_ascii()
        );
    }
    assert_eq!(lenient("a.tar", &with(b'x', &[b"99 path=../x\n".to_vec()])), "zip_slip");
}

#[test]
fn every_name_of_an_entry_of_tar_is_checked() {
    let long = |name: &str| tar_entry(b"././@LongLink", &[name.as_bytes(), b"\0"].concat(), b'L', b"");
    let path = |kind: u8, name: &str| pax(kind, &[record("path", name.as_bytes())]);
    for (what, parts) in [
        ("L and x", vec![long("../../evil"), path(b'x', "ok"), file("a")]),
        ("x and L", vec![path(b'x', "../../evil"), long("ok"), file("a")]),
        ("x and x", vec![path(b'x', "../../evil"), path(b'x', "ok"), file("a")]),
        ("g and g", vec![path(b'g', "../../evil"), path(b'g', "ok"), file("a")]),
        ("a global one of a later entry", vec![path(b'g', "l/x"), file("a"), symlink("l", "."), file("b")]),
        ("through a link", vec![symlink("l", "."), long("l/x"), path(b'x', "ok"), file("a")]),
        ("no entry", vec![file("a"), path(b'x', "../../evil")]),
    ] {
        assert_eq!(plain("a.tar", &tar_of(&parts)), "zip_slip", "{what}");
    }
    assert_eq!(plain("a.tar", &tar_of(&[path(b'g', "l/x"), file("a"), file("b"), symlink("m", "."), file("c")])), "ok");
    // Both targets of a link count, and the one that is cut in its header belongs to the long name.
    let target = |kind: u8, name: &str| pax(kind, &[record("linkpath", name.as_bytes())]);
    assert_eq!(plain("a.tar", &tar_of(&[target(b'x', "/etc"), target(b'x', "ok"), symlink("a", "ok")])), "zip_slip");
    assert_eq!(plain("a.tar", &tar_of(&[target(b'x', "ok"), symlink("a", "/etc")])), "zip_slip");
    assert_eq!(plain("a.tar", &tar_of(&[target(b'g', "/etc"), file("b"), symlink("a", "ok")])), "zip_slip");
    assert_eq!(plain("a.tar", &tar_of(&[long("d/e/f/a"), target(b'x', "../../x"), symlink("d/e", "../../x")])), "ok");
    // An entry with a long name is one entry.
    let many: Vec<_> = (0..15).flat_map(|at| [long(&format!("long{at}")), file(&format!("long{at}"))]).collect();
    let limits = Limits { entries: 15, ..Limits::default() };
    assert_eq!(verdict("a.tar", &tar_of(&many), &Policy { limits, ..Policy::default() }), "ok");
}

#[test]
fn a_length_of_pax_counts_and_contradicts_another_one() {
    let size = |kind: u8, length: &str| pax(kind, &[record("size", length.as_bytes())]);
    let bad = zip(&[("../x", b"x")]);
    let length = bad.len().to_string();
    let mut hidden = tar_header(b"a", &octal(0), b'0', b"");
    hidden.extend(&bad);
    hidden.resize(hidden.len().div_ceil(512) * 512, 0);
    let good = tar_entry(b"a", &[7; 600], b'0', b"");
    for kind in *b"xg" {
        let file = tar_of(&[size(kind, &length), hidden.clone()]);
        assert_eq!((plain("a.tar", &file), lenient("a.tar", &file)), ("zip_slip", "zip_slip"));
        assert_eq!(plain("a.tar", &tar_of(&[size(kind, "600"), good.clone()])), "ok");
        for wrong in ["599", "1", "", "x", "-600"] {
            let file = tar_of(&[size(kind, wrong), good.clone()]);
            assert_eq!(plain("a.tar", &file), "unreadable_archive", "{wrong}");
        }
    }
    assert_eq!(plain("a.tar", &tar_of(&[size(b'x', "5"), size(b'x', "600"), good.clone()])), "unreadable_archive");
    assert_eq!(plain("a.tar", &tar_of(&[size(b'x', "600"), good.clone(), file("b")])), "ok", "it is of one entry");
    let sparse = pax(b'x', &[record("GNU.sparse.realsize", b"1099511627776")]);
    assert_eq!(plain("a.tar", &tar_of(&[sparse, good])), "archive_bomb");
}

#[test]
fn old_tar_files_begin_with_any_name() {
    let old = |name: &[u8], signed: bool| {
        let mut header = tar_header(name, &octal(0), b'0', b"");
        header[257..265].fill(0);
        header[148..156].fill(b' ');
        let sum = |byte: &u8| if signed { i64::from(byte.cast_signed()) } else { i64::from(*byte) };
        let sum: i64 = header.iter().map(sum).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header
    };
    for name in [b"a".as_slice(), b"\xe4.txt", b" a", b"\x01a", b"\xc3\xa4/b"] {
        for signed in [false, true] {
            assert_eq!(identify(&[old(name, signed), vec![0; 1024]].concat()), Format::Tar, "{}", name.escape_ascii());
        }
    }
    let bad = tar_of(&[old(b"\xe4", false), file("../x")]);
    assert_eq!(plain("a", &bad), "zip_slip");
    // A checksum without digits is none, whatever the bytes add up to.
    let mut other = vec![0; 1024];
    other[0] = 0x80;
    other[1] = 0x80;
    assert_ne!(identify(&other), Format::Tar);
}

#[test]
fn targets_that_go_up_behind_a_name_are_refused() {
    let root = symlink("a/b/c/y", "../../..");
    assert_eq!(plain("a.tar", &tar_of(std::slice::from_ref(&root))), "ok");
    for (name, target, expected) in [
        ("z", "a/b/c/y/../../../etc/passwd", "zip_slip"),
        ("d/z", "../a/b/c/y/../x", "zip_slip"),
        ("z", "a/b/c/y", "ok"),
        ("d/z", "../a/b/c/y/x", "ok"),
        ("d/e/z", "./.././../a//b", "ok"),
        ("z", "a..b/..c", "ok"),
    ] {
        assert_eq!(plain("a.tar", &tar_of(&[root.clone(), symlink(name, target)])), expected, "{name} to {target}");
    }
    let link = Raw { host: 3, mode: 0o120_777, ..raw("z", b"a/../b") };
    assert_eq!(plain("a.zip", &raw_zip(&[link])), "zip_slip");
}

/// A header with other bytes at a place, and the right sum.
fn patched(mut entry: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    entry[at..at + bytes.len()].copy_from_slice(bytes);
    entry[148..156].fill(b' ');
    let sum: u32 = entry[..512].iter().map(|byte| u32::from(*byte)).sum();
    entry[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    entry
}

#[test]
fn tar_files_begin_with_a_header_of_any_name() {
    for first in [b"\0".as_slice(), b"\0\x01\0\0\0", b"\0asm\x01\0\0\0", b"\x7fELF\x02\x01\x01"] {
        for old in [false, true] {
            let header = |entry: Vec<u8>| {
                let entry = patched(entry, 0, first);
                if old { patched(entry, 257, &[0; 8]) } else { entry }
            };
            let long = |name: &str| header(tar_entry(b"", &[name.as_bytes(), b"\0"].concat(), b'L', b""));
            let named = |name: &str| header(tar_entry(b"", &record("path", name.as_bytes()), b'x', b""));
            let entry = header(tar_entry(b"", b"x", b'0', b""));
            for (bad, good) in [(long("../x"), long("x")), (named("../x"), named("x"))] {
                let (bad, good) = (tar_of(&[bad, entry.clone()]), tar_of(&[good, entry.clone()]));
                for (name, file) in [
                    ("a.tar", bad.clone()),
                    ("a.tgz", gzip(&bad)),
                    ("a.zip", zip(&[("a", &bad)])),
                    ("a.gz", gzip(&bad)),
                ] {
                    // A program stays one, and is two formats.
                    let is_program = matches!(first, [0x7f, ..] | [0, b'a', ..]) && name == "a.tar";
                    let expected = if is_program { "denied_type" } else { "zip_slip" };
                    assert_eq!(plain(name, &file), expected, "{name} {} {old}", first.escape_ascii());
                }
                assert_eq!(plain("a.zip", &zip(&[("a", &good)])), "ok", "{} {old}", first.escape_ascii());
            }
        }
    }
    // A block of an image may be such a header.
    let gif = patched(tar_entry(b"", b"x", b'0', b""), 0, b"\0");
    let mut image = b"GIF89a\x01\0\x01\0\0\0\0".to_vec();
    image.resize(512, 0);
    assert_eq!(plain("a.gif", &[image, gif].concat()), "polyglot");
    assert_ne!(identify(&[0; 2048]), Format::Tar);
}

fn hard(name: &str, target: &str) -> Vec<u8> {
    tar_entry(name.as_bytes(), b"", b'1', target.as_bytes())
}

#[test]
fn hard_links_to_links_are_links() {
    let root = symlink("a/b/c/l", "../../..");
    for (what, parts) in [
        ("its target leads out from there", vec![root.clone(), hard("h", "a/b/c/l")]),
        ("less deep", vec![root.clone(), hard("d/e/h", "a/b/c/l")]),
        ("another spelling", vec![root.clone(), hard("h", "./A//b/C./l")]),
        ("a chain", vec![root.clone(), hard("d/e/f/g", "a/b/c/l"), hard("h", "d/e/f/g")]),
        ("through a link", vec![symlink("d/l", "."), hard("h", "d/l/x")]),
        ("an entry behind it", vec![symlink("l", "d"), hard("h", "l"), file("h/evil.txt")]),
        ("an entry behind two", vec![symlink("l", "d"), hard("h", "l"), hard("i", "h"), file("i/evil.txt")]),
        ("a long name", {
            let name = tar_entry(b"././@LongLink", b"h\0", b'L', b"");
            let target = tar_entry(b"././@LongLink", b"a/b/c/l\0", b'K', b"");
            vec![root.clone(), name, target, hard("x/y/z/w", "z"), file("x")]
        }),
    ] {
        assert_eq!(plain("a.tar", &tar_of(&parts)), "zip_slip", "{what}");
    }
    for (what, parts) in [
        ("to a file", vec![file("a"), hard("b", "a"), file("b/c")]),
        ("to a link beside it", vec![symlink("d/l", "x"), hard("d/h", "d/l"), file("d/x")]),
        ("as deep", vec![root, hard("d/e/f/h", "a/b/c/l")]),
    ] {
        assert_eq!(plain("a.tar", &tar_of(&parts)), "ok", "{what}");
    }
}

#[test]
fn paths_through_links_are_compared_as_systems_do() {
    let through = |link: &str, name: &str| plain("a.tar", &tar_of(&[symlink(link, "x/y"), file(name)]));
    for (link, name) in [
        ("Link", "link/a"),
        ("d/link", "D/LINK/a"),
        ("link", "link./a"),
        ("link", "link. /a"),
        ("link ", "link/a"),
        ("link", "link::$INDEX_ALLOCATION/a"),
        ("li\u{e9}", "lie\u{301}/a"),
        ("li\u{c9}n", "lie\u{301}N/a"),
        ("link", "\u{ff4c}ink/a"),
        ("stra\u{df}e", "STRA\u{1e9e}E/a"),
    ] {
        assert_eq!(through(link, name), "zip_slip", "{link} {name}");
    }
    for (link, name) in [("link", "links/a"), ("d/link", "link/a"), ("link", "link.txt"), (":a", "a"), ("...", "a/b")] {
        assert_eq!(through(link, name), "ok", "{link} {name}");
    }
    // On systems that ignore case, such a link leads to itself.
    let parts = [symlink("usr/Doc", "doc"), file("usr/doc/a")];
    assert_eq!(plain("a.tar", &tar_of(&parts)), "ok");
    assert_eq!(plain("a.tar", &tar_of(&[symlink("usr/Doc", "doc"), file("usr/Doc/a")])), "zip_slip");
    // What is too deep to be looked at is not passed over.
    let deep =
        |folders: usize, end: &str| pax(b'x', &[record("path", [&"d/".repeat(folders), end].concat().as_bytes())]);
    for folders in [200, 300, 100_000] {
        let link = [deep(folders, "l"), symlink("l", "x")].concat();
        let bad = [link.clone(), deep(folders, "l/a"), file("a")].concat();
        assert_eq!(plain("a.tar", &tar_of(&[bad])), "zip_slip", "{folders}");
    }
    assert_eq!(plain("a.tar", &tar_of(&[symlink("l", "x"), deep(200, "a"), file("a")])), "ok");
    assert_eq!(plain("a.tar", &tar_of(&[deep(1000, "a"), file("a")])), "ok");
}

#[test]
fn prefixes_of_tar_count_in_every_format() {
    let with = |magic: &[u8; 8], prefix: &[u8], entry: Vec<u8>| patched(patched(entry, 345, prefix), 257, magic);
    for magic in [b"ustar  \0", b"ustar\x0000", b"\0\0\0\0\0\0\0\0", b"ustar\0\0\0"] {
        for prefix in [b"../pfx".as_slice(), b"/etc", b"a/../../b"] {
            let entry = with(magic, prefix, file("evil.txt"));
            assert_eq!(plain("a.tar", &tar_of(&[entry])), "zip_slip", "{}", prefix.escape_ascii());
        }
        let joined = with(magic, b".", file("./x"));
        assert_eq!(plain("a.tar", &tar_of(&[joined])), "zip_slip", "without a slash");
        let named = with(magic, b"d", file("l/x"));
        assert_eq!(plain("a.tar", &tar_of(&[symlink("d/l", "y"), named])), "zip_slip");
        let link = with(magic, b"d", symlink("l", "y"));
        assert_eq!(plain("a.tar", &tar_of(&[link, file("d/l/x")])), "zip_slip");
        let honest =
            with(magic, b"usr/share/doc", symlink("l", if magic.starts_with(b"ustar\0") { "../../x" } else { "x" }));
        assert_eq!(plain("a.tar", &tar_of(&[honest, file("x")])), "ok");
    }
    // The times of GNU are there.
    for times in [b"14571234567\x0014571234567\0".as_slice(), b"\x80\0\0\0\0\0\0\0\x65\x2f\x2e\x2e"] {
        let parts =
            [with(b"ustar  \0", times, file("d/a")), with(b"ustar  \0", times, symlink("d/l", "../a")), file("d/b")];
        assert_eq!(plain("a.tar", &tar_of(&parts)), "ok", "{}", times.escape_ascii());
    }
}

#[test]
fn hard_links_have_no_content_that_some_readers_see() {
    let long = |size: usize| tar_header(b"h", &octal(size), b'1', b"a");
    let attributes = pax(b'x', &[record("mtime", b"1.5")]);
    let hidden = file("../x");
    for parts in [
        vec![attributes.clone(), file("a"), long(512), file("b")],
        vec![pax(b'g', &[record("comment", b"x")]), file("a"), long(512), file("b")],
        vec![file("a"), pax(b'x', &[record("size", b"512")]), long(0), file("b")],
        vec![file("a"), long(1024), patched(file("b"), 257, &[0; 8]), hidden.clone()],
    ] {
        assert_ne!(plain("a.tar", &tar_of(&parts)), "ok");
    }
    assert_eq!(plain("a.tar", &tar_of(&[attributes.clone(), file("a"), long(512), file("b")])), "unreadable_archive");
    for parts in [
        vec![file("a"), long(512), file("b")],
        vec![file("a"), long(512)],
        vec![file("a"), patched(long(512), 257, b"ustar  \0"), patched(file("b"), 257, b"ustar  \0")],
        vec![attributes, file("a"), long(0), file("b")],
    ] {
        assert_eq!(plain("a.tar", &tar_of(&parts)), "ok");
    }
}
