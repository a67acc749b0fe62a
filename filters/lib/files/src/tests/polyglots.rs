//! Files of two formats.

use super::make::{Entry, build, zip};
use super::*;

fn plain(name: &str, content: &[u8]) -> &'static str {
    first(&findings(name, content, &Policy::default()))
}

#[test]
fn files_of_two_formats_are_found() {
    let archive = zip(&[("a.txt", b"x")]);
    let sample = formats::sample;
    let with = |format: Format, tail: &[u8]| [sample(format).as_slice(), tail].concat();
    for (what, name, content) in [
        ("GIF and ZIP", "a.gif", with(Format::Gif, &archive)),
        ("PNG and ZIP", "a.png", with(Format::Png, &archive)),
        ("JPEG and ZIP", "a.jpg", with(Format::Jpeg, &archive)),
        ("PDF and ZIP", "a.pdf", with(Format::Pdf, &archive)),
        ("text and ZIP", "a.txt", [b"hello ".as_slice(), &archive].concat()),
        ("tar and ZIP", "a.tar", [super::make::tar(&[("a", b"x")]), archive.clone()].concat()),
        ("GIF and PHP", "a.gif", with(Format::Gif, b"<?php system('id');")),
        ("JPEG with PHP in a comment", "a.jpg", b"\xff\xd8\xff\xfe\x00\x12<?=`$_GET[0]`?>\xff\xd9".to_vec()),
        ("PNG and a page", "a.png", with(Format::Png, b"<html><script>alert(1)</script>")),
        ("GIF and JavaScript", "a.gif", b"GIF89a/*\0\0\0\0\0*/=1;alert(1);".to_vec()),
        ("GIF and an assignment", "a.gif", b"GIF89a=1;alert(1);//\0\x01".to_vec()),
        ("BMP and JavaScript", "a.bmp", [b"BM/*\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".as_slice(), &[0; 40]].concat()),
        ("JPEG and JavaScript", "a.jpg", [b"\xff\xd8\xff\xe0/*".as_slice(), &[0; 60]].concat()),
        ("PNG and a program", "a.png", with(Format::Png, &sample(Format::Pe))),
        ("JPEG and a shell script", "a.jpg", with(Format::Jpeg, b"#!/bin/sh\nid")),
        ("PNG and RAR", "a.png", with(Format::Png, b"Rar!\x1a\x07\x01\0")),
        ("WEBP and 7z", "a.webp", with(Format::Webp, b"7z\xbc\xaf\x27\x1c\0\x04")),
        ("GIF and PDF", "a.gif", with(Format::Gif, b"%PDF-1.4")),
        ("PNG and a phar", "a.png", with(Format::Png, b"__HALT_COMPILER(); ?>")),
        ("bytes and PDF", "a.pdf", [b"\x01\x02\0\0".as_slice(), &sample(Format::Pdf)].concat()),
        ("data in front of ZIP", "a.bin", build(&[Entry::stored("a", b"x")], b"\x01\0\x02data", b"").bytes),
        ("an entry in front of ZIP", "a.zip", build(&[Entry::stored("a", b"x")], &archive, b"").bytes),
        ("data behind ZIP", "a.zip", [archive.as_slice(), b"tail"].concat()),
        ("data behind tar", "a.tar", [super::make::tar(&[("a", b"x")]), b"tail".to_vec()].concat()),
        ("data behind gzip", "a.gz", [super::make::gzip(b"x"), b"tail".to_vec()].concat()),
        ("MP3 and PHP", "a.mp3", with(Format::Mp3, b"<?php 1;")),
        ("GIF and a short tag", "a.gif", b"GIF89a<?eval($_GET[0]);?>".to_vec()),
        ("JPEG and a short tag", "a.jpg", b"\xff\xd8\xff\xfe\x00\x1a<?eval($_GET[0]);?>\xff\xd9".to_vec()),
        ("GIF and a comment", "a.gif", with(Format::Gif, b"<?/**/eval($_GET[0]);?>")),
        ("GIF and a variable", "a.gif", with(Format::Gif, b"<?$_GET[0]($_GET[1]);?>")),
        ("GIF and a hidden call", "a.gif", with(Format::Gif, b"<?@eval($_GET[0]);?>")),
        ("GIF and a command", "a.gif", with(Format::Gif, b"<?`$_GET[0]`?>")),
        ("GIF and an output", "a.gif", with(Format::Gif, b"<?echo `$_GET[0]`?>")),
        ("GIF and a file", "a.gif", with(Format::Gif, b"<?include'/tmp/a.txt'?>")),
        ("GIF and a block", "a.gif", with(Format::Gif, b"<?{system($_GET[0]);}?>")),
        ("GIF and a name in quotes", "a.gif", with(Format::Gif, b"<?'system'($_GET[0])?>")),
        ("GIF and a path", "a.gif", with(Format::Gif, b"<?\\system($_GET[0])?>")),
        ("GIF and a tag that is not closed", "a.gif", with(Format::Gif, b"<?eval(base64_decode($_POST['command']));")),
        ("bytes around ZIP", "a.bin", [b"\x01".as_slice(), &archive, b"\0"].concat()),
        ("bytes around ZIP, and more behind it", "a.bin", [b"\x01\0".as_slice(), &archive, &[7; 900]].concat()),
        ("font and ASP", "a.ttf", with(Format::TrueType, b"<%eval request(\"a\")%>")),
    ] {
        let found = findings(name, &content, &Policy::default());
        let polyglot = found.iter().any(|finding| finding.reason == Reason::Polyglot);
        assert!(polyglot, "{what}: {found:?}");
    }
}

#[test]
fn ordinary_files_with_something_behind_them_pass() {
    let sample = formats::sample;
    for (what, name, content) in [
        ("JPEG with a film behind it, as phones make", "a.jpg", [sample(Format::Jpeg), sample(Format::Mp4)].concat()),
        ("JPEG with padding", "a.jpg", [sample(Format::Jpeg), vec![0; 50]].concat()),
        ("PNG with a line end", "a.png", [sample(Format::Png).as_slice(), b"\r\n"].concat()),
        ("a wide GIF", "a.gif", b"GIF89a\x3d\0\x01\0\0\0\0;".to_vec()),
        ("noise in a PNG", "a.png", {
            let noise = super::make::noise(200_000);
            let mut file =
                b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89".to_vec();
            file.extend(u32::try_from(noise.len()).unwrap().to_be_bytes());
            file.extend(b"IDAT");
            file.extend(noise);
            file.extend(b"\0\0\0\0\0\0\0\0IEND\xae\x42\x60\x82");
            file
        }),
        ("a signed ZIP", "a.zip.p7m", {
            let begin = b"\x30\x82\x05\x00\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02\xa0\x82\x04\xf0\x30\x82\x04\xec\x02\x01\x01";
            let archive = build(&[Entry::stored("a.txt", b"x")], b"", b"").bytes;
            [begin.as_slice(), &archive, &[7; 900]].concat()
        }),
        ("XMP in a JPEG", "a.jpg", b"\xff\xd8\xff\xe1\x00\x22<?xpacket begin='' id='W5M0'?>__\xff\xd9".to_vec()),
        ("XMP in a GIF", "a.gif", {
            let xmp = b"<?xpacket begin='\xef\xbb\xbf' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta/><?xpacket end='w'?>";
            [sample(Format::Gif).as_slice(), b"!\xff\x0bXMP DataXMP", xmp].concat()
        }),
        ("XML in an MP3", "a.mp3", {
            let xml =
                b"<?xml version=\"1.0\"?><?adobe-xap-filters esc=\"CRLF\"?><?mso-application progid=\"a\"?><?a (b)?>";
            [sample(Format::Mp3).as_slice(), &xml[..80]].concat()
        }),
        ("bytes with the end of a ZIP file alone", "a.bin", {
            let end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0\x2f\0\0\0\x20\0\0\0\0\0";
            [b"\x01\0\x02data".as_slice(), &[9; 300], end, b"\0tail"].concat()
        }),
        ("a tar file with a ZIP file in it", "a.tar", super::make::tar(&[("a.zip", &zip(&[("a", b"x")]))])),
    ] {
        assert_eq!(plain(name, &content), "ok", "{what}: {:?}", findings(name, &content, &Policy::default()));
    }
}
