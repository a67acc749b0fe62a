//! 7z: headers, packed or not, and content.

use std::io::Write as _;

use lzma_rust2::{Lzma2Options, Lzma2Writer, LzmaOptions, LzmaWriter};

use super::make::{crc, deflate, noise, tar};
use super::*;

fn number(value: usize) -> Vec<u8> {
    match u8::try_from(value) {
        Ok(byte) if byte < 0x80 => vec![byte],
        _ => [&[0xff], (value as u64).to_le_bytes().as_slice()].concat(),
    }
}

fn lzma(content: &[u8]) -> Vec<u8> {
    let options = LzmaOptions { lc: 3, lp: 0, pb: 2, dict_size: 1 << 16, ..LzmaOptions::with_preset(6) };
    let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, false).unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn lzma2(content: &[u8]) -> Vec<u8> {
    let mut writer = Lzma2Writer::new(Vec::new(), Lzma2Options::with_preset(1));
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

const COPY: &[u8] = b"\x01\x01\0";
const LZMA: &[u8] = b"\x01\x23\x03\x01\x01\x05\x5d\0\0\x01\0";
const LZMA2: &[u8] = b"\x01\x21\x21\x01\x18";
const DEFLATE: &[u8] = b"\x01\x03\x04\x01\x08";

/// The streams of one folder at a place, with these coders, its sum if there is one, and the files in it.
fn streams(place: usize, packed: usize, coders: &[u8], size: usize, (sum, parts): (&[u8], &[u8])) -> Vec<u8> {
    [
        b"\x06".as_slice(),
        &number(place),
        b"\x01\x09",
        &number(packed),
        b"\0\x07\x0b\x01\0",
        coders,
        b"\x0c",
        &number(size),
        sum,
        b"\0",
        parts,
        b"\0",
    ]
    .concat()
}

/// The sums of files.
fn sums(files: &[(&str, &[u8])]) -> Vec<u8> {
    files.iter().fold(b"\x0a\x01".to_vec(), |sums, (_, content)| [sums, crc(content).to_le_bytes().to_vec()].concat())
}

/// The number of files in a folder, their lengths and their sums.
fn parts(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut parts = [b"\x08\x0d".as_slice(), &number(files.len()), b"\x09"].concat();
    files[..files.len() - 1].iter().for_each(|(_, content)| parts.extend(number(content.len())));
    [parts, sums(files), b"\0".to_vec()].concat()
}

/// The header of files in one folder.
fn header(files: &[(&str, &[u8])], packed: usize, coders: &[u8]) -> Vec<u8> {
    header_with(files, packed, coders, &parts(files))
}

fn header_with(files: &[(&str, &[u8])], packed: usize, coders: &[u8], parts: &[u8]) -> Vec<u8> {
    let total = files.iter().map(|(_, content)| content.len()).sum();
    let names: Vec<u8> =
        files.iter().flat_map(|(name, _)| name.encode_utf16().chain([0])).flat_map(u16::to_le_bytes).collect();
    [
        b"\x01\x04".as_slice(),
        &streams(0, packed, coders, total, (b"", parts)),
        b"\x05",
        &number(files.len()),
        b"\x11",
        &number(names.len() + 1),
        b"\0",
        &names,
        b"\0\0",
    ]
    .concat()
}

/// A file of packed content and a header.
fn file(content: &[u8], header: &[u8]) -> Vec<u8> {
    let mut start = (content.len() as u64).to_le_bytes().to_vec();
    start.extend((header.len() as u64).to_le_bytes());
    start.extend(crc(header).to_le_bytes());
    [b"7z\xbc\xaf\x27\x1c\0\x04".as_slice(), &crc(&start).to_le_bytes(), &start, content, header].concat()
}

fn archive(files: &[(&str, &[u8])], coders: &[u8], pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let packed = pack(&files.iter().flat_map(|(_, content)| content.to_vec()).collect::<Vec<_>>());
    file(&packed, &header(files, packed.len(), coders))
}

/// The same with a header that is packed, and has the sum that `sum` makes of it.
fn with_packed_header(files: &[(&str, &[u8])], sum: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let content: Vec<u8> = files.iter().flat_map(|(_, content)| content.to_vec()).collect();
    let inner = header(files, content.len(), COPY);
    let packed = lzma(&inner);
    let streams = streams(content.len(), packed.len(), LZMA, inner.len(), (&sum(&inner), b""));
    let outer = [b"\x17".as_slice(), &streams].concat();
    file(&[content, packed].concat(), &outer)
}

fn plain(content: &[u8]) -> &'static str {
    verdict("a.7z", content, &Policy::default())
}

fn detail(content: &[u8]) -> String {
    findings("a.7z", content, &Policy::default()).last().map(|found| found.detail.clone()).unwrap_or_default()
}

type Pack = fn(&[u8]) -> Vec<u8>;
const ALL: [(&str, &[u8], Pack); 4] = [
    ("copy", COPY, |content| content.to_vec()),
    ("LZMA", LZMA, lzma),
    ("LZMA2", LZMA2, lzma2),
    ("deflate", DEFLATE, deflate),
];

#[test]
fn content_is_opened() {
    let slip = tar(&[("../../etc/cron.d/x", &noise(2000))]);
    let text = noise(70_000);
    for (what, coders, pack) in ALL {
        let of = |files: &[(&str, &[u8])]| archive(files, coders, pack);
        assert_eq!(plain(&of(&[("a.txt", b"hello"), ("b/c.bin", &text)])), "ok", "{what}");
        assert_eq!(plain(&of(&[("a.txt", b"hello"), ("b.tar", &slip), ("c", b"x")])), "zip_slip", "{what}");
        assert_eq!(plain(&of(&[("a.txt", b"hello"), ("../b", b"x")])), "zip_slip", "{what}");
        let checked = Policy { check_entries: true, ..Policy::default() };
        assert_eq!(verdict("a.7z", &of(&[("a.php::$DATA", b"x")]), &checked), "denied_extension", "{what}");
        assert_eq!(verdict("a.7z", &of(&[("a", b"#!/bin/sh\nid")]), &checked), "denied_type", "{what}");
        // In other archives, and with others in it.
        let inner = of(&[("../b", b"x")]);
        assert_eq!(plain(&of(&[("a.7z", &inner)])), "zip_slip", "{what}");
        assert_eq!(verdict("a.zip", &make::zip(&[("a.7z", &inner)]), &Policy::default()), "zip_slip", "{what}");
    }
}

#[test]
fn headers_that_are_packed_are_read() {
    let of = |files: &[(&str, &[u8])]| plain(&with_packed_header(files, |header| sums(&[("", header)])));
    assert_eq!(of(&[("a.txt", b"hello"), ("b", b"x")]), "ok");
    assert_eq!(of(&[("a.txt", b"hello"), ("b\\..\\..\\c", b"x")]), "zip_slip");
    let slip = tar(&[("../x", b"x")]);
    assert_eq!(of(&[("a.tar", &slip)]), "zip_slip");
    let files: [(&str, &[u8]); 1] = [("a.txt", b"hello")];
    assert_eq!(plain(&with_packed_header(&files, |_| Vec::new())), "ok", "without a sum");
    assert_eq!(plain(&with_packed_header(&files, |_| sums(&[("", b"another")]))), "unreadable_archive");
}

#[test]
fn what_lies_or_is_not_known_is_unreadable() {
    let files: [(&str, &[u8]); 2] = [("a", b"hello"), ("b", b"world")];
    let packed = lzma(b"helloworld");
    let good = header(&files, packed.len(), LZMA);
    assert_eq!(plain(&file(&packed, &good)), "ok");
    for (what, bad) in [
        ("a sum", file(b"helloworle", &header(&files, 10, COPY))),
        ("a length", file(&packed, &header(&[("a", b"hello"), ("b", b"worlds")], packed.len(), LZMA))),
        ("shorter than it says", file(b"hello", &header(&files, 10, COPY))),
        ("damaged content", file(&vec![0xff; packed.len()], &good)),
        ("cut off", file(&packed, &good)[..60].to_vec()),
    ] {
        assert_eq!(plain(&bad), "unreadable_archive", "{what}");
    }
    for length in 1..good.len() {
        assert_eq!(plain(&file(&packed, &good[..length])), "unreadable_archive", "{length} bytes of the header");
    }
    let ppmd = archive(&files, b"\x01\x03\x03\x04\x01", |content| content.to_vec());
    assert!(detail(&ppmd).contains("method \\x03\\x04\\x01"), "{}", detail(&ppmd));
    let aes = archive(&files, b"\x01\x04\x06\xf1\x07\x01", |content| content.to_vec());
    assert!(detail(&aes).contains("encrypted"), "{}", detail(&aes));
    let filters = b"\x02\x01\0\x04\x03\x03\x01\x03\0\x01";
    let mut two = header(&files, 10, filters);
    let at = memchr::memmem::find(&two, b"\x0c\x0a").unwrap();
    two.insert(at + 1, 10);
    assert!(detail(&file(b"helloworld", &two)).contains("behind each other"), "{}", detail(&file(b"helloworld", &two)));
    assert_eq!(plain(&[file(&packed, &good), b"more".to_vec()].concat()), "polyglot");
    let bomb = vec![0; 9 << 20];
    assert_eq!(plain(&archive(&[("a", &bomb)], LZMA, lzma)), "archive_bomb");
    // Names that no reader is given content for.
    let mut names = good.clone();
    let count = memchr::memmem::rfind(&names, b"\x05\x02\x11").unwrap();
    names[count + 1] = 3;
    assert_eq!(plain(&file(&packed, &names)), "unreadable_archive");
}

#[test]
fn what_is_said_of_files_is_said_once() {
    let files: [(&str, &[u8]); 2] = [("a", b"hello"), ("b", b"world")];
    let of = |parts: &[u8]| plain(&file(b"helloworld", &header_with(&files, 10, COPY, parts)));
    let once = parts(&files);
    assert_eq!(of(&once), "ok");
    // Each further time would cost as much as there are folders.
    assert_eq!(of(&once.repeat(2)), "unreadable_archive");
    let more_sums = [&once[..once.len() - 1], &sums(&files), b"\0"].concat();
    assert_eq!(of(&more_sums), "unreadable_archive");
    let two_sums = with_packed_header(&files, |header| sums(&[("", header)]).repeat(2));
    assert_eq!(plain(&two_sums), "unreadable_archive");
}

#[test]
fn an_archive_without_files_is_a_whole_one() {
    assert_eq!(plain(&file(b"", b"")), "ok");
    assert_eq!(plain(&[file(b"", b""), b"more".to_vec()].concat()), "polyglot");
    assert_eq!(plain(&file(b"data", b"")), "unreadable_archive");
}

#[test]
fn content_begins_behind_the_first_header() {
    let mut moved = header(&[("a", b"hello")], 5, COPY);
    assert_eq!(plain(&file(b"hello", &moved)), "ok");
    // The place of the first packed stream.
    moved[3] = 4;
    assert_eq!(plain(&file(b"datahello", &moved)), "polyglot");
}

#[test]
fn what_is_stored_takes_no_memory_of_archives() {
    let inner = make::gzip(&tar(&[("../x", &vec![0; 2 << 20])]));
    let large = vec![0; 7 << 20];
    let stored = archive(&[("a", &large), ("b.tar.gz", &inner)], COPY, |content| content.to_vec());
    assert_eq!(plain(&stored), "zip_slip");
}

#[test]
fn headers_of_any_form_are_read() {
    let files: [(&str, &[u8]); 2] = [("a", b"hello"), ("b", b"world")];
    let packed = with_packed_header(&files, |_| Vec::new());
    for good in [header(&files, 10, COPY), packed[32 + 10..].to_vec()] {
        for at in 0..good.len() {
            for byte in [0, 1, 5, 0x7f, 0x80, 0xfe, 0xff] {
                let mut changed = good.clone();
                changed[at] = byte;
                plain(&file(b"helloworld", &changed));
            }
        }
    }
}
