//! Files of compressed streams, and what they hold.

use std::io::{Read as _, Write as _};

use bzip2::read::BzEncoder;
use lzma_rust2::{LzmaOptions, LzmaWriter, XzOptions, XzWriter};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::make::{Entry, crc, gzip, noise, tar, zip, zip_of};
use super::*;

fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut made = Vec::new();
    BzEncoder::new(content, bzip2::Compression::fast()).read_to_end(&mut made).unwrap();
    made
}

fn xz(content: &[u8]) -> Vec<u8> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(6)).unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn lzma(content: &[u8]) -> Vec<u8> {
    let options = LzmaOptions::with_preset(6);
    let mut writer = LzmaWriter::new_use_header(Vec::new(), &options, Some(content.len() as u64)).unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

/// A member of lzip: LZMA with an end mark, between a header and a trailer.
fn lzip(content: &[u8]) -> Vec<u8> {
    let options = LzmaOptions { lc: 3, lp: 0, pb: 2, dict_size: 1 << 20, ..LzmaOptions::with_preset(6) };
    let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, true).unwrap();
    writer.write_all(content).unwrap();
    let data = writer.finish().unwrap();
    let mut made = b"LZIP\x01\x14".to_vec();
    made.extend(&data);
    made.extend(crc(content).to_le_bytes());
    made.extend((content.len() as u64).to_le_bytes());
    made.extend((data.len() as u64 + 26).to_le_bytes());
    made
}

fn zstd(content: &[u8]) -> Vec<u8> {
    compress_to_vec(content, CompressionLevel::Fastest)
}

/// A frame of zstd whose blocks are as they are given.
fn frame(blocks: &[&[u8]]) -> Vec<u8> {
    let mut made = b"\x28\xb5\x2f\xfd\0\x58".to_vec();
    for (at, block) in blocks.iter().enumerate() {
        let last = usize::from(at + 1 == blocks.len());
        made.extend(&u32::try_from(block.len() << 3 | last).unwrap().to_le_bytes()[..3]);
        made.extend(*block);
    }
    made
}

type Pack = fn(&[u8]) -> Vec<u8>;
const ALL: [(&str, Pack); 5] = [("bz2", bzip2), ("xz", xz), ("lz", lzip), ("lzma", lzma), ("zst", zstd)];

fn default(name: &str, content: &[u8]) -> &'static str {
    verdict(name, content, &Policy::default())
}

#[test]
fn archives_in_compressed_files_are_opened() {
    let slip = tar(&[("a.txt", b"text"), ("../../etc/cron.d/x", b"* * * * * root sh")]);
    let script = tar(&[("a/shell.php", b"<?php system($_GET[0]);")]);
    let fine = tar(&[("a.txt", b"text"), ("b.txt", &noise(100_000))]);
    for (extension, pack) in ALL {
        let name = format!("a.tar.{extension}");
        assert_eq!(default(&name, &pack(&slip)), "zip_slip", "{name}");
        let entries = Policy { check_entries: true, ..Policy::default() };
        assert_eq!(verdict(&name, &pack(&script), &entries), "denied_extension", "{name}");
        assert_eq!(default(&name, &pack(&fine)), "ok", "{name}");
        assert_eq!(default(&format!("a.txt.{extension}"), &pack(b"a text")), "ok", "{extension}");
        assert_eq!(default(&format!("a.{extension}"), &pack(b"")), "ok", "{extension}");
        // In each other, and in a ZIP file.
        assert_eq!(default(&name, &pack(&zip(&[("b.tar.gz", &gzip(&slip))]))), "zip_slip", "{name}");
        assert_eq!(default("a.zip", &zip(&[(&name, &pack(&slip))])), "zip_slip", "{name}");
    }
    let nested = ALL.iter().fold(slip, |inner, (_, pack)| pack(&inner));
    assert_eq!(default("a.zst", &nested), "archive_depth");
}

#[test]
fn content_over_several_streams_is_one_file() {
    let slip = tar(&[("a.txt", &noise(90_000)), ("../x", b"text")]);
    let fine = tar(&[("a.txt", b"text")]);
    let (one, two) = slip.split_at(50_000);
    // LZMA has no second stream.
    for (extension, pack) in ALL.into_iter().filter(|(extension, _)| *extension != "lzma") {
        let name = format!("a.tar.{extension}");
        assert_eq!(default(&name, &[pack(one), pack(two)].concat()), "zip_slip", "{name}");
        assert_eq!(default(&name, &[pack(&fine), b"GIF89a".to_vec()].concat()), "polyglot", "{name}");
    }
    let skipped = b"\x5e\x2a\x4d\x18\x03\0\0\0abc";
    assert_eq!(default("a.tar.zst", &[&skipped[..], &zstd(one), skipped, &zstd(two)].concat()), "zip_slip");
    assert_eq!(default("a.tar.xz", &[xz(&slip), vec![0; 8]].concat()), "zip_slip", "padding");
    assert_eq!(default("a.tar.gz", &[gzip(one), gzip(two)].concat()), "zip_slip");
}

/// A decoder may yield a single byte at first, which says nothing of what follows.
#[test]
fn what_is_opened_is_not_decided_by_the_first_byte_alone() {
    let slip = tar(&[("../x", b"text")]);
    let (first, rest) = slip.split_at(1);
    assert_eq!(default("a.tar.zst", &frame(&[first, rest])), "zip_slip");
    assert_eq!(default("a.tar.zst", &frame(&[b"", first, b"", rest])), "zip_slip");
    for (extension, pack) in [("bz2", bzip2 as Pack), ("xz", xz), ("lz", lzip), ("zst", zstd), ("gz", gzip)] {
        let split = default(&format!("a.tar.{extension}"), &[pack(first), pack(rest)].concat());
        assert!(["zip_slip", "unreadable_archive"].contains(&split), "{extension}: {split}");
    }
    // The signature of an image of a disk is far behind the beginning.
    let mut image = vec![0; 40_000];
    image[32_769..32_774].copy_from_slice(b"CD001");
    for (extension, pack) in ALL.into_iter().chain([("gz", gzip as Pack)]) {
        assert_eq!(default(&format!("a.{extension}"), &pack(&image)), "unreadable_archive", "{extension}");
    }
}

#[test]
fn what_is_damaged_or_lies_is_unreadable() {
    let content = tar(&[("a.txt", &noise(20_000))]);
    for (extension, pack) in ALL {
        let (name, whole) = (format!("a.tar.{extension}"), pack(&content));
        assert_eq!(default(&name, &whole[..whole.len() - 30]), "unreadable_archive", "{name}");
        assert_eq!(default(&name, &whole[..whole.len() / 2]), "unreadable_archive", "{name}");
        // The end of the upload may be missing.
        let part = inspect_as(&name, &whole[..whole.len() / 2], &Policy::default(), false);
        assert_eq!(first(&part), "ok", "{name}");
    }
    let mut lies = lzip(&content);
    let at = lies.len() - 20;
    lies[at] ^= 1;
    assert_eq!(default("a.lz", &lies), "unreadable_archive");
    // A frame that says another length than it has.
    let mut lies = b"\x28\xb5\x2f\xfd\x20\x63".to_vec();
    lies.extend(b"\x21\0\0text");
    assert_eq!(default("a.zst", &lies), "unreadable_archive");
    lies[5] = 4;
    assert_eq!(default("a.zst", &lies), "ok");
    // A length of two bytes counts from 256 on.
    let mut middle = b"\x28\xb5\x2f\xfd\x60\x2c\x01\x61\x11\0".to_vec();
    middle.extend([b'x'; 556]);
    assert_eq!(default("a.zst", &middle), "ok");
}

#[test]
fn bombs_and_costly_streams_are_refused() {
    for (extension, pack) in ALL {
        let name = format!("a.{extension}");
        assert_eq!(default(&name, &pack(&vec![0; 10 << 20])), "archive_bomb", "{name}");
    }
    // Blocks that hold nothing, each of which costs as much as one that does.
    let empty = frame(&vec![&b""[..]; 200_000]);
    assert_eq!(default("a.zst", &empty), "unreadable_archive");
    for (extension, pack) in [("bz2", bzip2 as Pack), ("xz", xz), ("lz", lzip), ("zst", zstd)] {
        let many = pack(b"").repeat(900);
        assert_eq!(default(&format!("a.{extension}"), &many), "unreadable_archive", "{extension}");
    }
}

#[test]
fn entries_of_zip_files_are_opened_by_their_method() {
    let slip = tar(&[("../x", &noise(3_000))]);
    for (method, pack) in [(12, bzip2 as Pack), (93, zstd), (95, xz)] {
        let entry = |content: &[u8], packed: Vec<u8>| {
            let entry = Entry::stored("a.tar", content);
            let length = u32::try_from(packed.len()).unwrap();
            Entry { method, local_method: method, packed: length, data: packed, ..entry }
        };
        assert_eq!(default("a.zip", &zip_of(&[entry(&slip, pack(&slip))])), "zip_slip", "{method}");
        assert_eq!(default("a.zip", &zip_of(&[entry(b"text", pack(b"text"))])), "ok", "{method}");
        let other = default("a.zip", &zip_of(&[entry(b"text", pack(b"texts"))]));
        assert_eq!(other, "unreadable_archive", "{method}: not what the directory says");
        let more = [pack(b"text"), b"more".to_vec()].concat();
        assert_eq!(default("a.zip", &zip_of(&[entry(b"text", more)])), "unreadable_archive", "{method}");
    }
}
