//! The fuzz target of uploaded files without a fuzzer: pieces of formats, cut, joined and changed at random places. Seeded.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

#[allow(unreachable_pub, reason = "it is shared with the fuzz target")]
#[path = "../../../../fuzz/src/bodies/files.rs"]
mod files_body;

const PIECES: [&[u8]; 43] = [
    b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\x83\x16\xdc\x8c\x01\0\0\0\x01\0\0\0\x01\0\0\0ax",
    b"PK\x01\x02\x14\x03\x14\0\0\0\0\0\0\0\0\0\x83\x16\xdc\x8c\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0a",
    b"PK\x05\x06\0\0\0\0\x01\0\x01\0\x2f\0\0\0\x20\0\0\0\0\0",
    b"PK\x06\x06\x2c\0\0\0\0\0\0\0",
    b"PK\x06\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0",
    b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x04\0\x43\xbe\xb7\xe8\x01\0\0\0",
    b"\x1f\x8b\x08\x1f\0\0\0\0\0\x03\x02\0\0\0a\0b\0",
    b"Rar!\x1a\x07\x01\0",
    b"Rar!\x1a\x07\0",
    b"7z\xbc\xaf\x27\x1c\0\x04",
    b"\x37\x7a\xbc\xaf\x27\x1c\x00\x04\x29\xeb\x04\x2e\x01\x00\x00\x00\x00\x00\x00\x00\x26\x00\x00\x00\x00\x00\x00\x00\xe5\xf4\x82\x06\x78\x01\x04\
      \x06\x00\x01\x09\x01\x00\x07\x0b\x01\x00\x01\x01\x00\x0c\x01\x00\x08\x0a\x01\x83\x16\xdc\x8c\x00\x00\x05\x01\x11\x05\x00\x61\x00\x00\x00\x00\x00",
    b"PK\x07\x08\x83\x16\xdc\x8c\x01\0\0\0\x01\0\0\0",
    b"[Content_Types].xml",
    b"\xfd7zXZ\0\0\x04",
    b"\0\x04YZ",
    b"\x28\xb5\x2f\xfd\xc0\0",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"%PDF-1.4",
    b"GIF89a\x01\0\x01\0\x80\0\0",
    b"\x89PNG\r\n\x1a\n\0\0\0\0IEND\xae\x42\x60\x82",
    b"\xff\xd8\xff\xe0\0\x10JFIF",
    b"RIFF\x0c\0\0\0WEBP",
    b"ustar\x0000",
    b"MZ\x90\0",
    b"<?xml version=\"1.0\"?>",
    b"<!DOCTYPE a [",
    b"<svg onload=\"1\">",
    b"<?php",
    b"<%@ page",
    b"--b\r\nContent-Disposition: attachment; filename=\"a\"\r\n\r\n",
    b"\r\n--b--\r\n",
    b"; filename=\"a\\\"b\"",
    b"; filename*0*=UTF-8''%41",
    b"=?utf-8?B?YQ==?=",
    b"{\"a\":[{\"b\":\"AAAA\",\"n\":\"x\"}],\"c\":\"",
    b"\\ud83d\\ude00",
    b"../",
    b"..%2f",
    b"\0",
    b"\xff\xff\xff\xff",
    b"\n",
    b".php",
    b"a",
];

#[test]
fn files_made_of_pieces_are_inspected() {
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..4000 {
        let mut file = vec![u8::try_from(random(8)).unwrap()];
        for _ in 0..random(12) {
            let piece = PIECES[random(PIECES.len())];
            let cut = if random(4) == 0 { random(piece.len()) } else { piece.len() };
            file.extend_from_slice(&piece[..cut]);
            if random(5) == 0 {
                file.resize(file.len().div_ceil(512) * 512, 0);
            }
        }
        for _ in 0..random(3) {
            let at = random(file.len());
            file[at] = u8::try_from(random(256)).unwrap();
        }
        files_body::run(&file);
    }
}
