//! Attacks by archives whose headers alone are read.

use super::make::crc;
use super::*;

fn reasons(name: &str, content: &[u8]) -> Vec<&'static str> {
    let mut found: Vec<_> =
        findings(name, content, &Policy::default()).iter().map(|finding| finding.reason.word()).collect();
    found.sort_unstable();
    found
}

/// A number of variable length.
fn vint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

fn rar5(name: &str, size: u64, extra: &[u8]) -> Vec<u8> {
    let mut header = vint(2);
    header.extend(vint(if extra.is_empty() { 2 } else { 3 }));
    if !extra.is_empty() {
        header.extend(vint(extra.len() as u64));
    }
    header.extend(vint(4));
    for number in [0, size, 0, 0x80, 0, name.len() as u64] {
        header.extend(vint(number));
    }
    header.extend(name.as_bytes());
    header.extend(extra);
    let mut file = b"Rar!\x1a\x07\x01\0".to_vec();
    file.extend([0; 4]);
    file.extend(vint(header.len() as u64));
    file.extend(header);
    file.extend(b"data");
    file.extend([0; 4]);
    file.extend(b"\x03\x05\0\0");
    file
}

fn rar4(name: &str, size: u32, flags: u16) -> Vec<u8> {
    let mut file = b"Rar!\x1a\x07\0".to_vec();
    file.extend(b"\0\0\x73\0\0\x0d\0\0\0\0\0\0\0");
    let length = u16::try_from(32 + name.len()).unwrap();
    file.extend(b"\0\0\x74");
    file.extend((flags | 0x8000).to_le_bytes());
    file.extend(length.to_le_bytes());
    file.extend(4_u32.to_le_bytes());
    file.extend(size.to_le_bytes());
    file.extend([0; 11]);
    file.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
    file.extend([0; 4]);
    file.extend(name.as_bytes());
    file.extend(b"data\0\0\x7b\0\0\x07\0");
    file
}

fn seven_zip(header: &[u8]) -> Vec<u8> {
    let mut start = 4_u64.to_le_bytes().to_vec();
    start.extend((header.len() as u64).to_le_bytes());
    start.extend(crc(header).to_le_bytes());
    let mut file = b"7z\xbc\xaf\x27\x1c\0\x04".to_vec();
    file.extend(crc(&start).to_le_bytes());
    file.extend(start);
    file.extend(b"data");
    file.extend(header);
    file
}

#[test]
fn headers_of_rar_are_read() {
    let detail =
        |file: &[u8]| findings("a.rar", file, &Policy::default()).last().map(|found| found.detail.clone()).unwrap();
    assert_eq!(reasons("a.rar", &rar5("a.txt", 10, b"")), ["unreadable_archive"]);
    assert_eq!(reasons("a.rar", &rar5("..\\a.txt", 10, b"")), ["unreadable_archive", "zip_slip"]);
    assert_eq!(reasons("a.rar", &rar5("a", 1 << 40, b"")), ["archive_bomb"]);
    assert!(detail(&rar5("a", 10, b"\x02\x01\0")).contains("encrypted"));
    assert!(detail(&rar5("a", 10, b"\x02\x02\0")).contains("cannot be opened"));
    assert!(detail(b"Rar!\x1a\x07\x01\0\0\0\0\0\x02\x04\0").contains("encrypted"), "its headers are");
    assert_eq!(reasons("a.rar", &rar4("a.txt", 10, 0)), ["unreadable_archive"]);
    assert_eq!(reasons("a.rar", &rar4("../a.txt", 10, 0)), ["unreadable_archive", "zip_slip"]);
    assert_eq!(reasons("a.rar", &rar4("a", u32::MAX, 0)), ["archive_bomb"]);
    assert!(detail(&rar4("a", 10, 4)).contains("encrypted"));
    assert_eq!(reasons("a.rar", b"Rar!\x1a\x07\0garbage"), ["unreadable_archive"]);
}

#[test]
fn names_of_rar_are_read_in_unicode_and_links_by_their_records() {
    // The short name, a NUL byte, the high byte, flags for four characters each.
    let four = |short: &str, coded: &[u8]| {
        let mut file = rar4("", 10, 0x200);
        let name = [short.as_bytes(), b"\0", coded].concat();
        let header = 7 + 13;
        let length = u16::try_from(32 + name.len()).unwrap();
        file[header + 5..header + 7].copy_from_slice(&length.to_le_bytes());
        file[header + 26..header + 28].copy_from_slice(&u16::try_from(name.len()).unwrap().to_le_bytes());
        file.splice(header + 32..header + 32, name);
        file
    };
    assert_eq!(reasons("a.rar", &four("__/x", b"\0\x00../x")), ["unreadable_archive", "zip_slip"]);
    assert_eq!(
        reasons("a.rar", &four("__/x", b"\0\xa0.\0.\0/x")),
        ["unreadable_archive", "zip_slip"],
        "with high bytes"
    );
    assert_eq!(
        reasons("a.rar", &four("../x", b"\0\xc0\x02")),
        ["unreadable_archive", "zip_slip"],
        "as in the short one"
    );
    assert_eq!(
        reasons("a.rar", &four("--/x", b"\0\xc0\x80\x01/x")),
        ["unreadable_archive", "zip_slip"],
        "one above it"
    );
    assert_eq!(reasons("a.rar", &four("ab/x", b"\0\x00ab/x")), ["unreadable_archive"]);
    let checked = Policy { check_entries: true, ..Policy::default() };
    let found = findings("a.rar", &four("a.txt", b"\0\x00a.ex\x00e"), &checked);
    assert_eq!(first(&found), "denied_extension");
    // A record of five fields: a symbolic link to a target.
    let link = |kind: u8, target: &str| {
        let length = u8::try_from(target.len()).unwrap();
        let record = [[5, kind, 0, length].as_slice(), target.as_bytes()].concat();
        rar5("l", 0, &[[u8::try_from(record.len()).unwrap()].as_slice(), &record].concat())
    };
    assert_eq!(reasons("a.rar", &link(1, "../../etc")), ["unreadable_archive", "zip_slip"]);
    assert_eq!(reasons("a.rar", &link(4, "../a")), ["unreadable_archive", "zip_slip"]);
    assert_eq!(reasons("a.rar", &link(1, "a/b")), ["unreadable_archive"]);
    // Several records of an entry, each of which counts; so many of them are too much work.
    let records = |list: &[&[u8]]| rar5("d/l", 0, &list.concat());
    assert_eq!(
        reasons("a.rar", &records(&[b"\x05\x05\x01\0\x01x", b"\x08\x05\x01\0\x04../x"])),
        ["unreadable_archive"]
    );
    assert_eq!(
        reasons("a.rar", &records(&[b"\x05\x05\x01\0\x01x", b"\x08\x05\x04\0\x04../x"])),
        ["unreadable_archive", "zip_slip"]
    );
    let many = findings("a.rar", &records(&[&b"\x01\x02".repeat(250_000)]), &Policy::default());
    assert!(many[0].detail.contains("more work"), "{many:?}");
}

#[test]
fn headers_of_7z_are_read() {
    let name = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let listed = |text: &str| seven_zip(&[b"\x01\x05\x11\0".as_slice(), &name(""), &name(text)].concat());
    assert_eq!(reasons("a.7z", &listed("a.txt")), ["unreadable_archive"]);
    assert_eq!(reasons("a.7z", &listed("../a.txt")), ["unreadable_archive", "zip_slip"]);
    assert_eq!(reasons("a.7z", &listed("b\\..\\a.txt")), ["unreadable_archive", "zip_slip"]);
    let encrypted = seven_zip(b"\x17\x06\x06\xf1\x07\x01");
    assert!(findings("a.7z", &encrypted, &Policy::default())[0].detail.contains("encrypted"));
    let mut damaged = listed("a");
    damaged[12] ^= 1;
    assert!(findings("a.7z", &damaged, &Policy::default())[0].detail.contains("damaged"));
}

#[test]
fn lengths_of_compressed_files_are_read() {
    let zstd = |length: u64| [b"\x28\xb5\x2f\xfd\xc0\0".as_slice(), &length.to_le_bytes(), &[1, 0, 0]].concat();
    assert_eq!(reasons("a.zst", &zstd(1 << 40)), ["archive_bomb"]);
    assert_eq!(reasons("a.zst", &zstd(100)), ["unreadable_archive"]);
    let lzma = |length: u64| [b"\x5d\0\0\x80\0".as_slice(), &length.to_le_bytes(), &[0; 20]].concat();
    assert_eq!(reasons("a.lzma", &lzma(u64::MAX)), ["unreadable_archive"]);
    let mut lzip = b"LZIP\x01\x0c".to_vec();
    lzip.extend([0; 20]);
    lzip.extend((1_u64 << 40).to_le_bytes());
    lzip.extend(42_u64.to_le_bytes());
    assert_eq!(reasons("a.lz", &lzip), ["archive_bomb"]);
    let xz = |length: u64| {
        let mut index = vec![0, 1];
        index.extend(vint(100));
        index.extend(vint(length));
        index.resize(index.len().div_ceil(4) * 4 + 4, 0);
        let size = u32::try_from(index.len() / 4 - 1).unwrap();
        let mut file = b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46".to_vec();
        file.extend([0; 40]);
        file.extend(&index);
        file.extend([0; 4]);
        file.extend(size.to_le_bytes());
        file.extend(b"\0\x04YZ");
        file
    };
    assert_eq!(reasons("a.xz", &xz(1 << 40)), ["archive_bomb"]);
    assert_eq!(reasons("a.xz", &xz(1000)), ["unreadable_archive"]);
}

#[test]
fn what_cannot_be_opened_passes_where_the_policy_says_so() {
    let policy = Policy { reject_unreadable: false, ..Policy::default() };
    for (name, file) in
        [("a.rar", rar5("a", 10, b"")), ("a.7z", seven_zip(b"\x01")), ("a.bz2", formats::sample(Format::Bzip2))]
    {
        assert_eq!(verdict(name, &file, &policy), "ok");
        assert_eq!(
            verdict("a.zip", &make::zip(&[(name, &file)]), &Policy::default()),
            "unreadable_archive",
            "{name} in a ZIP file"
        );
    }
    assert_eq!(verdict("a.rar", &rar5("../a", 10, b""), &policy), "zip_slip", "names count all the same");
    let encrypted = make::compound(&["EncryptedPackage", "EncryptionInfo"], None);
    assert_eq!(verdict("a.docx", &encrypted, &Policy::default()), "unreadable_archive");
    assert_eq!(verdict("a.docx", &encrypted, &policy), "ok");
}
