//! ZIP files that readers of streams and readers of directories do not read alike, and methods of compression.

use std::io::Write as _;

use lzma_rust2::{LzmaOptions, LzmaWriter, XzOptions, XzWriter};

use super::make::{Entry, build, crc, noise, tar, zip_of};
use super::*;

fn plain(content: &[u8]) -> &'static str {
    verdict("a.zip", content, &Policy::default())
}

fn detail(content: &[u8]) -> String {
    findings("a.zip", content, &Policy::default()).first().map(|found| found.detail.clone()).unwrap_or_default()
}

/// LZMA as an entry has it: a version, the length of the properties, the properties, the data.
fn lzma(content: &[u8], mark: bool) -> Vec<u8> {
    let options = LzmaOptions { lc: 3, lp: 0, pb: 2, dict_size: 1 << 16, ..LzmaOptions::with_preset(6) };
    let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, mark).unwrap();
    writer.write_all(content).unwrap();
    [b"\x09\x14\x05\0\x5d\0\0\x01\0".as_slice(), &writer.finish().unwrap()].concat()
}

fn packed(method: u16, flags: u16, content: &[u8], data: Vec<u8>) -> Entry {
    let length = u32::try_from(data.len()).unwrap();
    let entry = Entry::stored("a.tar", content);
    Entry { method, local_method: method, flags, local_flags: flags, packed: length, data, ..entry }
}

#[test]
fn lzma_is_opened_with_and_without_a_mark() {
    let slip = tar(&[("../x", &noise(3000))]);
    for (flags, mark) in [(2, true), (0, false)] {
        let file = |content: &[u8], data: Vec<u8>| zip_of(&[packed(14, flags, content, data)]);
        assert_eq!(plain(&file(&slip, lzma(&slip, mark))), "zip_slip", "{mark}");
        assert_eq!(plain(&file(b"text", lzma(b"text", mark))), "ok", "{mark}");
        let cut = file(&slip, lzma(&slip, mark));
        assert_eq!(
            first(&inspect_as("a.zip", &cut[..cut.len() - 60], &Policy::default(), false)),
            "zip_slip",
            "{mark}"
        );
        assert_eq!(plain(&file(b"text", lzma(b"other", mark))), "unreadable_archive", "{mark}");
        let more = [lzma(b"text", mark), b"more".to_vec()].concat();
        assert_eq!(plain(&file(b"text", more)), "unreadable_archive", "{mark}");
    }
    let mut damaged = lzma(b"text", true);
    damaged[2] = 4;
    assert_eq!(plain(&zip_of(&[packed(14, 2, b"text", damaged)])), "unreadable_archive");
    let bomb = vec![0; 9 << 20];
    assert_eq!(plain(&zip_of(&[packed(14, 2, &bomb, lzma(&bomb, true))])), "archive_bomb");
}

#[test]
fn the_tables_of_lzma_belong_to_the_work_of_a_request() {
    let entry = |name: &str| {
        let mut data = lzma(b"x", false);
        // Eight bits of context and four of the place: 6 MiB. The first byte is the same for all.
        data[4] = 0x86;
        let entry = packed(14, 0, b"x", data);
        Entry { name: name.as_bytes().to_vec(), local_name: name.as_bytes().to_vec(), ..entry }
    };
    assert_eq!(plain(&zip_of(&["a", "b"].map(entry))), "ok");
    assert_eq!(plain(&zip_of(&["a", "b", "c"].map(entry))), "unreadable_archive");
}

#[test]
fn behind_what_is_not_read_a_file_that_is_cut_off_goes_on() {
    let slip = Entry::stored("../x", b"x");
    let secret = Entry { flags: 1, local_flags: 1, ..Entry::deflated("a", b"text") };
    let damaged = packed(14, 0, b"text", b"no LZMA".to_vec());
    for (what, entry) in [
        ("another method", packed(98, 0, b"text", b"xxxx".to_vec())),
        ("a patch", Entry { flags: 1 << 5, local_flags: 1 << 5, ..Entry::deflated("a", b"text") }),
        ("encrypted", secret),
        ("damaged", damaged),
    ] {
        let cut = |entry: Entry| {
            let file = zip_of(&[entry, slip.clone()]);
            inspect_as("a.zip", &file[..file.len() - 60], &Policy::default(), false)
        };
        let found = cut(entry.clone());
        assert_eq!(first(&found), "zip_slip", "{what}");
        assert!(found.iter().any(|found| found.reason == Reason::UnreadableArchive), "{what}");
        // Without lengths, the next header is not found.
        assert_eq!(first(&cut(Entry { described: true, ..entry })), "unreadable_archive", "{what}");
    }
}

/// Of a file that is cut off, too, what is held is memory: of two archives in each other, the inner one has no room.
#[test]
fn what_is_unpacked_from_a_file_that_is_cut_off_is_held() {
    let inner = make::gzip(&tar(&[("../x", &vec![0; 5 << 20])]));
    let outer = tar(&[("a", &noise(4 << 20)), ("b.tar.gz", &inner)]);
    let file = zip_of(&[Entry::deflated("a.tar", &outer), Entry::stored("b", b"x")]);
    let found = inspect_as("a.zip", &file[..file.len() - 60], &Policy::default(), false);
    assert_eq!(first(&found), "unreadable_archive", "{found:?}");
}

#[test]
fn methods_that_are_not_opened_are_named() {
    for (method, name) in
        [(1, "shrunk"), (6, "imploded"), (9, "deflate64"), (97, "WavPack"), (98, "PPMd"), (77, "unknown")]
    {
        let file = zip_of(&[packed(method, 0, b"text", b"xxxx".to_vec())]);
        assert!(detail(&file).contains(&format!("the method {method} ({name})")), "{}", detail(&file));
        let cut = inspect_as("a.zip", &file[..50], &Policy::default(), false);
        assert_eq!(first(&cut), "unreadable_archive", "{name}");
        let allowed = Policy { reject_unreadable: false, ..Policy::default() };
        assert_eq!(verdict("a.zip", &file, &allowed), "ok");
    }
    let patch = Entry { flags: 1 << 5, local_flags: 1 << 5, ..Entry::deflated("a", b"text") };
    assert_eq!(plain(&zip_of(&[patch])), "unreadable_archive");
    for flag in [1 << 6, 1 << 13] {
        let hidden = Entry { flags: flag, local_flags: flag, ..Entry::deflated("a", b"text") };
        assert!(detail(&zip_of(&[hidden])).contains("encrypted"));
    }
}

#[test]
fn descriptors_say_what_the_directory_says() {
    let entry = Entry { described: true, ..Entry::deflated("a", b"text text text text") };
    let file = zip_of(&[entry.clone(), Entry::stored("b", b"x")]);
    assert_eq!(plain(&file), "ok");
    let at = memchr::memmem::find(&file, b"PK\x07\x08").unwrap();
    for (what, place) in [("the sum", 4), ("the packed length", 8), ("the length", 12)] {
        let mut wrong = file.clone();
        wrong[at + place] ^= 1;
        assert_eq!(plain(&wrong), "unreadable_archive", "{what}");
    }
    // Without its signature.
    let mut plain_one = zip_of(&[entry]);
    assert_eq!(plain(&plain_one), "ok");
    let at = memchr::memmem::find(&plain_one, b"PK\x07\x08").unwrap();
    plain_one[at] = b'x';
    assert_eq!(plain(&plain_one), "unreadable_archive");
    // The flag, and no descriptor.
    let none = Entry { flags: 8, local_flags: 8, crc: crc(b"text"), ..Entry::stored("a", b"text") };
    assert_eq!(plain(&zip_of(std::slice::from_ref(&none))), "ok", "its lengths are in front of it");
    let mut wrong = zip_of(&[none]);
    wrong[14] ^= 1;
    assert_eq!(plain(&wrong), "unreadable_archive");
}

#[test]
fn stored_content_does_not_end_where_a_descriptor_in_it_says() {
    let ends =
        [b"text".as_slice(), b"PK\x07\x08", &crc(b"text").to_le_bytes(), &[4, 0, 0, 0, 4, 0, 0, 0], b"more"].concat();
    let other =
        [b"text".as_slice(), b"PK\x07\x08", &crc(b"text").to_le_bytes(), &[9, 0, 0, 0, 9, 0, 0, 0], b"more"].concat();
    let file = |content: &[u8]| zip_of(&[Entry { described: true, ..Entry::stored("a", content) }]);
    assert!(detail(&file(&ends)).contains("may end earlier"), "{}", detail(&file(&ends)));
    assert_eq!(plain(&file(&other)), "ok", "a descriptor of an archive within");
    assert_eq!(plain(&zip_of(&[Entry::stored("a", &ends)])), "ok", "it has no descriptor itself");
    // Of a file that is cut off, content ends there.
    let inner = zip_of(&[Entry::stored("../x", b"x")]);
    let two = zip_of(&[Entry { described: true, ..Entry::stored("a", &inner) }, Entry::stored("b", &noise(500))]);
    assert_eq!(first(&inspect_as("a.zip", &two[..two.len() - 200], &Policy::default(), false)), "zip_slip");
}

#[test]
fn a_file_has_one_end() {
    let good = [Entry::stored("a", b"x"), Entry::stored("b", b"y")];
    let end = build(&good, b"", b"").bytes.split_off(build(&good, b"", b"").end);
    for (what, comment) in [
        ("another end in the comment", [b"x".as_slice(), &end].concat()),
        ("one that is cut off there", [b"x".as_slice(), &end, b"tail"].concat()),
    ] {
        let file = build(&good, b"", &comment).bytes;
        assert!(detail(&file).contains("two ends") || plain(&file) == "polyglot", "{what}: {}", detail(&file));
    }
    assert_eq!(plain(&build(&good, b"", b"PK is how this comment begins").bytes), "ok");
    let volume = {
        let mut file = build(&good, b"", b"").bytes;
        let at = memchr::memmem::find(&file, b"PK\x01\x02").unwrap();
        file[at + 34] = 1;
        file
    };
    assert_eq!(plain(&volume), "unreadable_archive");
}

#[test]
fn the_index_of_pixz_is_no_other_file() {
    let files: [(&str, &[u8]); 2] = [("a.txt", b"hello"), ("b.txt", b"world")];
    let xz = |content: &[u8]| {
        let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(6)).unwrap();
        writer.write_all(content).unwrap();
        writer.finish().unwrap()
    };
    let index = |names: &[(&str, u64)]| {
        let entries = names.iter().flat_map(|(name, at)| [name.as_bytes(), b"\0", &at.to_le_bytes()].concat());
        b"\xa6\x4c\x32\x2e\xd6\x14\xae\xdb".iter().copied().chain(entries).collect::<Vec<u8>>()
    };
    let of = |index: &[u8]| verdict("a.tpxz", &xz(&[tar(&files).as_slice(), index].concat()), &Policy::default());
    assert_eq!(of(&index(&[("a.txt", 0), ("b.txt", 1024), ("", 2048)])), "ok");
    assert_eq!(of(&index(&[("", 0)])), "ok");
    for (what, wrong) in [
        ("another beginning", b"\xa6\x4c\x32\x2e\xd6\x14\xae\xdcx".to_vec()),
        ("no end", index(&[("a.txt", 0)])),
        ("places that go back", index(&[("a.txt", 1024), ("b.txt", 0), ("", 2048)])),
        ("a place behind the file", index(&[("a.txt", 0), ("", 1 << 40)])),
        ("more behind it", [index(&[("", 0)]), b"more".to_vec()].concat()),
        ("cut off", index(&[("a.txt", 0), ("", 9)])[..20].to_vec()),
    ] {
        assert_eq!(of(&wrong), "polyglot", "{what}");
    }
}
