//! A small sample of each format, and what they are found to be.

use super::make::{self, compound, gzip, tar, zip};
use super::*;

const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\0IEND\xae\x42\x60\x82";
const GIF: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
const JPEG: &[u8] =
    b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xda\0\x08\x01\x01\0\0\x3f\0\x55\xff\xd9";
const ODF: &[u8] = b"application/vnd.oasis.opendocument.text";

fn office(folder: &str, types: &[u8], more: &[(&str, &[u8])]) -> Vec<u8> {
    let part = format!("{folder}document.xml");
    let first: [(&str, &[u8]); 2] = [("[Content_Types].xml", types), (&part, b"<?xml version=\"1.0\"?><d/>")];
    zip(&[first.as_slice(), more].concat())
}

fn padded(start: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = start.to_vec();
    bytes.resize(length, 0);
    bytes
}

fn at(place: usize, signature: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[place..place + signature.len()].copy_from_slice(signature);
    bytes
}

fn program() -> Vec<u8> {
    let mut bytes = padded(b"MZ\x90\0", 64);
    bytes[60] = 64;
    bytes.extend(b"PE\0\0\x4c\x01");
    bytes
}

fn icon() -> Vec<u8> {
    let mut bytes = b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\x04\0\0\0\x16\0\0\0".to_vec();
    bytes.extend([0; 4]);
    bytes
}

/// A file of a format.
pub(crate) fn sample(format: Format) -> Vec<u8> {
    let types = b"<Types><Override ContentType=\"application/vnd.x.main+xml\"/></Types>";
    let tail = |start: &[u8]| padded(start, start.len() + 32);
    match format {
        Format::Pe => program(),
        Format::Elf => tail(b"\x7fELF\x02\x01\x01"),
        Format::MachO => tail(b"\xca\xfe\xba\xbe\0\0\0\x02"),
        Format::JavaClass => tail(b"\xca\xfe\xba\xbe\0\0\0\x34"),
        Format::Jar => {
            zip(&[("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0"), ("A.class", b"\xca\xfe\xba\xbe\0\0\0\x34")])
        }
        Format::Dex => tail(b"dex\n035\0"),
        Format::Apk => zip(&[("AndroidManifest.xml", b"\x03\0\x08\0"), ("classes.dex", b"dex\n035\0")]),
        Format::Wasm => tail(b"\0asm\x01\0\0\0"),
        Format::Lnk => tail(b"\x4c\0\0\0\x01\x14\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46"),
        Format::Msi => compound(&["SummaryInformation"], Some(b"\x84\x10\x0c\0\0\0\0\0\xc0\0\0\0\0\0\0\x46")),
        Format::Chm => tail(b"ITSF\x03\0\0\0"),
        Format::Deb => b"!<arch>\ndebian-binary   1 0 0 100644 4         `\n2.0\n".to_vec(),
        Format::Rpm => tail(b"\xed\xab\xee\xdb\x03\0"),
        Format::Crx => tail(b"Cr24\x03\0\0\0"),
        Format::Flash => tail(b"CWS\x0a\x10\0\0\0"),
        Format::Shell => b"#!/bin/sh\nid\n".to_vec(),
        Format::Php => b"hello <?php system($_GET['c']); ?>".to_vec(),
        Format::Asp => b"<%@ page import=\"java.io.*\" %><% out.print(1); %>".to_vec(),
        Format::Batch => b"@echo off\r\ndel *.*\r\n".to_vec(),
        Format::WindowsScript => b"Set s = CreateObject(\"WScript.Shell\")\r\ns.Run \"calc\"".to_vec(),
        Format::PowerShell => b"#Requires -Version 5\nGet-Process".to_vec(),
        Format::Registry => b"Windows Registry Editor Version 5.00\r\n\r\n[HKEY_LOCAL_MACHINE]".to_vec(),
        Format::Macro => office("word/", types, &[("word/vbaProject.bin", b"x")]),
        Format::ActiveSvg => b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>".to_vec(),
        Format::Html => b"  <!DOCTYPE html><html><body>x</body></html>".to_vec(),
        Format::Svg => {
            b"<?xml version=\"1.0\"?><!-- a --><svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0\"/></svg>"
                .to_vec()
        }
        Format::Png => PNG.to_vec(),
        Format::Jpeg => JPEG.to_vec(),
        Format::Gif => GIF.to_vec(),
        Format::Webp => b"RIFF\x0c\0\0\0WEBPVP8L\0\0\0\0".to_vec(),
        Format::Bmp => padded(b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", 58),
        Format::Tiff => tail(b"II*\0\x08\0\0\0"),
        Format::Icon => icon(),
        Format::Psd => tail(b"8BPS\0\x01\0\0"),
        Format::Heif => tail(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
        Format::Avif => tail(b"\0\0\0\x1cftypavif\0\0\0\0mif1avifmiaf"),
        Format::Jpeg2000 => tail(b"\0\0\0\x0cjP  \r\n\x87\n"),
        Format::JpegXl => tail(b"\0\0\0\x0cJXL \r\n\x87\n"),
        Format::Dds => tail(b"DDS \x7c\0\0\0"),
        Format::Exr => tail(b"\x76\x2f\x31\x01\x02\0\0\0"),
        Format::Qoi => tail(b"qoif\0\0\0\x01"),
        Format::Emf => {
            at(40, b" EMF", 120).iter().enumerate().map(|(place, byte)| if place == 0 { 1 } else { *byte }).collect()
        }
        Format::Wmf => tail(b"\xd7\xcd\xc6\x9a\0\0"),
        Format::Xcf => tail(b"gimp xcf v011\0"),
        Format::Mp3 => tail(b"ID3\x04\0\0\0\0\0\0"),
        Format::Wav => tail(b"RIFF\x24\0\0\0WAVEfmt "),
        Format::Flac => tail(b"fLaC\0\0\0\x22"),
        Format::Ogg => tail(b"OggS\0\x02"),
        Format::Aac => b"\xff\xf1\x50\x80\x01\x1f\xfc\0\xff\xf1\x50\x80".to_vec(),
        Format::M4a => tail(b"\0\0\0\x14ftypM4A \0\0\0\0mp42"),
        Format::Aiff => tail(b"FORM\0\0\0\x20AIFF"),
        Format::Amr => tail(b"#!AMR\n\x3c"),
        Format::Midi => tail(b"MThd\0\0\0\x06\0\0"),
        Format::Mp4 => tail(b"\0\0\0\x18ftypisom\0\0\0\0isommp42"),
        Format::Matroska => tail(b"\x1a\x45\xdf\xa3\x93\x42\x82\x88matroska"),
        Format::Avi => tail(b"RIFF\x24\0\0\0AVI LIST"),
        Format::Flv => tail(b"FLV\x01\x05\0\0\0\x09"),
        Format::Mpeg => tail(b"\0\0\x01\xba\x44\0"),
        Format::Asf => tail(b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c"),
        Format::Pdf => b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n".to_vec(),
        Format::ActivePdf => {
            b"%PDF-1.4\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj\n%%EOF\n".to_vec()
        }
        Format::PostScript => b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n".to_vec(),
        Format::Rtf => b"{\\rtf1\\ansi hello}".to_vec(),
        Format::Ole => compound(&["WordDocument"], None),
        Format::Docx => office("word/", types, &[]),
        Format::Xlsx => office("xl/", types, &[]),
        Format::Pptx => office("ppt/", types, &[]),
        Format::Visio => office("visio/", types, &[]),
        Format::Xps => office("Documents/", types, &[]),
        Format::OpenDocument => {
            make::zip_of(&[make::Entry::stored("mimetype", ODF), make::Entry::deflated("content.xml", b"<?xml?><a/>")])
        }
        Format::Epub => make::zip_of(&[
            make::Entry::stored("mimetype", b"application/epub+zip"),
            make::Entry::deflated("META-INF/container.xml", b"<?xml?><a/>"),
        ]),
        Format::DjVu => tail(b"AT&TFORM\0\0\0\x20DJVU"),
        Format::Zip => zip(&[("a.txt", b"hello"), ("b/c.txt", b"world")]),
        Format::Gzip => gzip(b"hello"),
        Format::Bzip2 => tail(b"BZh91AY&SY\x01\x02\x03\x04"),
        Format::Xz => tail(b"\xfd7zXZ\0\0\x04"),
        Format::Zstd => b"\x28\xb5\x2f\xfd\x20\x05\x29\0\0hello".to_vec(),
        Format::SevenZip => tail(b"7z\xbc\xaf\x27\x1c\0\x04"),
        Format::Rar => tail(b"Rar!\x1a\x07\x01\0"),
        Format::Tar => tar(&[("a.txt", b"hello")]),
        Format::Lzip => tail(b"LZIP\x01\x0c"),
        Format::Lz4 => tail(b"\x04\x22\x4d\x18\x64\x40"),
        Format::Lzma => tail(b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0"),
        Format::Cab => tail(b"MSCF\0\0\0\0\x2c\0\0\0"),
        Format::Compress => tail(b"\x1f\x9d\x90\x68"),
        Format::Arj => tail(b"\x60\xea\x2a\0\x22\x0b\0"),
        Format::Lha => tail(b"\x21\xf0-lh5-\0\0\0"),
        Format::Cpio => tail(b"070701\0"),
        Format::Ar => b"!<arch>\na.o/            0           0     0     644     4         `\nabcd".to_vec(),
        Format::Iso => at(32_769, b"CD001", 34_000),
        Format::Ace => at(7, b"**ACE**", 60),
        Format::TrueType => tail(b"\0\x01\0\0\0\x0c\0\x80"),
        Format::Woff => tail(b"wOF2\0\x01\0\0"),
        Format::Xml => b"<?xml version=\"1.0\"?><order><id>1</id></order>".to_vec(),
        Format::Json => b"{\"a\": [1, 2]}".to_vec(),
        Format::Text => b"a,b,c\n1,2,3\n".to_vec(),
        Format::Sqlite => tail(b"SQLite format 3\0"),
        Format::Parquet => tail(b"PAR1\x15\0"),
        Format::Pcap => tail(b"\xd4\xc3\xb2\xa1\x02\0\x04\0"),
        Format::Empty => Vec::new(),
        Format::Unknown => vec![1, 2, 3, 0, 200, 201, 202, 203, 5, 6],
    }
}

#[test]
fn each_format_is_found_by_its_content() {
    for format in Format::ALL {
        assert_eq!(identify(&sample(*format)), *format);
    }
    assert!(Format::ALL.len() > 100, "{}", Format::ALL.len());
}

#[test]
fn each_sample_passes_by_its_own_name_unless_its_kind_is_refused() {
    let everything = Policy { denied_extensions: Vec::new(), denied_types: Vec::new(), ..Policy::default() };
    for format in Format::ALL {
        let content = sample(*format);
        // The samples of other compressed formats are damaged.
        let sound = matches!(format, Format::Zip | Format::Gzip | Format::Tar | Format::Zstd);
        let opaque = format.family() == Family::Archive && !sound;
        let expected = if opaque { "unreadable_archive" } else { "ok" };
        for extension in format.extensions() {
            assert_eq!(verdict(&format!("a.{extension}"), &content, &everything), expected, "{format} .{extension}");
        }
        let allowed = Policy { reject_unreadable: false, ..everything.clone() };
        assert_eq!(verdict("", &content, &allowed), "ok", "{format}");
    }
}

#[test]
fn by_default_programs_scripts_and_pages_are_refused_whatever_they_are_called() {
    for format in Format::ALL {
        let refused = matches!(format.family(), Family::Executable | Family::Script | Family::Html);
        let found = findings("file", &sample(*format), &Policy::default());
        assert_eq!(found.iter().any(|finding| finding.reason == Reason::DeniedType), refused, "{format}: {found:?}");
    }
}

#[test]
fn files_that_are_cut_off_anywhere_are_read_without_a_finding_that_needs_their_end() {
    let policy =
        Policy { reject_unreadable: false, check_mismatch: false, denied_types: Vec::new(), ..Policy::default() };
    for format in Format::ALL {
        let content = sample(*format);
        for length in 0..content.len().min(700) {
            let found = inspect_as("", &content[..length], &policy, false);
            let bad = found.iter().find(|finding| finding.reason != Reason::Polyglot);
            assert!(bad.is_none(), "{format} at {length}: {found:?}");
        }
    }
}

#[test]
fn texts_are_told_apart() {
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain("<html>".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let big: Vec<u8> = "<svg onload=x>".encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (text, expected) in [
        (wide.as_slice(), Format::Html),
        (&big, Format::ActiveSvg),
        (b"\xef\xbb\xbf<script>1</script>", Format::Html),
        (b"<!-- x --><html>", Format::Html),
        (b"<!--#exec cmd=\"id\" -->", Format::Html),
        (b"<h1>x</h1>", Format::Html),
        (b"<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"/>", Format::Html),
        (
            b"<?xml version=\"1.0\"?><a xmlns:x=\"http://www.w3.org/1999/xhtml\"><x:script>1</x:script></a>",
            Format::Html,
        ),
        (b"<?xml version=\"1.0\"?><!DOCTYPE svg PUBLIC \"a\" \"b\"><svg/>", Format::Svg),
        (b"<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"b\">]><s:svg xmlns:s=\"a\"/>", Format::ActiveSvg),
        (b"<svg><a href=\"javascript:alert(1)\"/></svg>", Format::ActiveSvg),
        (b"<svg><a xlink:href=\"j&#97;vascript:1\"/></svg>", Format::ActiveSvg),
        (b"<svg\nONLOAD = '1'/>", Format::ActiveSvg),
        (b"<svg><foreignObject/></svg>", Format::ActiveSvg),
        (b"<svg><text>one=1</text></svg>", Format::Svg),
        (b"MIME-Version: 1.0\r\nContent-Type: multipart/related; type=\"text/html\"\r\n\r\n", Format::Html),
        (b"text <?= `id` ?> more text", Format::Php),
        (b"GIF <script language=\"php\">", Format::Php),
        (b"<jsp:root/>", Format::Asp),
        (b"<?mso-application progid=\"Word.Document\"?><w:wordDocument w:macrosPresent=\"yes\"/>", Format::Macro),
        (b"<job id=\"1\"><script language=\"JScript\">1</script></job>", Format::WindowsScript),
        (b"MZ is how this text begins", Format::Text),
        (b"BMW and other cars", Format::Text),
        (b"ID3 tags are explained here", Format::Text),
        (b"5 < 6 and <b is a tag", Format::Text),
        (b"[1, 2", Format::Text),
        (b"caf\xe9 in Latin-1", Format::Text),
    ] {
        assert_eq!(identify(text), expected, "{}", text.escape_ascii());
    }
}
