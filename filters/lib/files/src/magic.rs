//! Formats by their first bytes.

use crate::bytes::{be16, be32, le16, le32, place, slice};
use crate::{Family, Format, archive};

/// Signatures at the beginning of a file that decide alone. The longest of those that match decides.
const SIGNATURES: &[(&[u8], Format)] = &[
    (b"\x7fELF", Format::Elf),
    (b"\xfe\xed\xfa\xce", Format::MachO),
    (b"\xfe\xed\xfa\xcf", Format::MachO),
    (b"\xce\xfa\xed\xfe", Format::MachO),
    (b"\xcf\xfa\xed\xfe", Format::MachO),
    (b"dex\n03", Format::Dex),
    (b"dex\n04", Format::Dex),
    (b"cdex00", Format::Dex),
    (b"\0asm\x01\0\0\0", Format::Wasm),
    (b"\x4c\0\0\0\x01\x14\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46", Format::Lnk),
    (b"ITSF\x03\0\0\0", Format::Chm),
    (b"!<arch>\ndebian", Format::Deb),
    (b"!<arch>\n", Format::Ar),
    (b"\xed\xab\xee\xdb", Format::Rpm),
    (b"Cr24", Format::Crx),
    (b"\x89PNG\r\n\x1a\n", Format::Png),
    (b"\xff\xd8\xff", Format::Jpeg),
    (b"GIF87a", Format::Gif),
    (b"GIF89a", Format::Gif),
    (b"II*\0", Format::Tiff),
    (b"MM\0*", Format::Tiff),
    (b"II+\0", Format::Tiff),
    (b"MM\0+", Format::Tiff),
    (b"8BPS\0\x01", Format::Psd),
    (b"8BPS\0\x02", Format::Psd),
    (b"\0\0\0\x0cjP  \r\n\x87\n", Format::Jpeg2000),
    (b"\xff\x4f\xff\x51", Format::Jpeg2000),
    (b"\0\0\0\x0cJXL \r\n\x87\n", Format::JpegXl),
    (b"\xff\x0a", Format::JpegXl),
    (b"DDS \x7c\0\0\0", Format::Dds),
    (b"\x76\x2f\x31\x01", Format::Exr),
    (b"qoif", Format::Qoi),
    (b"\xd7\xcd\xc6\x9a", Format::Wmf),
    (b"gimp xcf ", Format::Xcf),
    (b"ID3", Format::Mp3),
    (b"fLaC", Format::Flac),
    (b"OggS\0", Format::Ogg),
    (b"#!AMR", Format::Amr),
    (b"MThd\0\0\0\x06", Format::Midi),
    (b"\x1a\x45\xdf\xa3", Format::Matroska),
    (b"FLV\x01", Format::Flv),
    (b"\0\0\x01\xba", Format::Mpeg),
    (b"\0\0\x01\xb3", Format::Mpeg),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c", Format::Asf),
    (b"%PDF-", Format::Pdf),
    (b"%!PS", Format::PostScript),
    (b"\xc5\xd0\xd3\xc6", Format::PostScript),
    (b"{\\rt", Format::Rtf),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Format::Ole),
    (b"AT&TFORM", Format::DjVu),
    (b"PK\x03\x04", Format::Zip),
    (b"PK\x05\x06", Format::Zip),
    (b"PK00PK\x03\x04", Format::Zip),
    (b"PK\x07\x08PK\x03\x04", Format::Zip),
    (b"\x1f\x8b", Format::Gzip),
    (b"\xfd7zXZ\0", Format::Xz),
    (b"\x28\xb5\x2f\xfd", Format::Zstd),
    (b"7z\xbc\xaf\x27\x1c", Format::SevenZip),
    (b"Rar!\x1a\x07", Format::Rar),
    (b"RE~^", Format::Rar),
    (b"LZIP\x01", Format::Lzip),
    (b"\x04\x22\x4d\x18", Format::Lz4),
    (b"MSCF\0\0\0\0", Format::Cab),
    (b"\x1f\x9d", Format::Compress),
    (b"\x1f\xa0", Format::Compress),
    (b"\x60\xea", Format::Arj),
    (b"070701", Format::Cpio),
    (b"070702", Format::Cpio),
    (b"070707", Format::Cpio),
    (b"\xc7\x71", Format::Cpio),
    (b"\0\x01\0\0\0", Format::TrueType),
    (b"OTTO\0", Format::TrueType),
    (b"ttcf\0", Format::TrueType),
    (b"true\0", Format::TrueType),
    (b"wOFF", Format::Woff),
    (b"wOF2", Format::Woff),
    (b"SQLite format 3\0", Format::Sqlite),
    (b"PAR1", Format::Parquet),
    (b"\xd4\xc3\xb2\xa1", Format::Pcap),
    (b"\xa1\xb2\xc3\xd4", Format::Pcap),
    (b"\x0a\x0d\x0d\x0a", Format::Pcap),
];

/// Signatures of only two or three bytes: they count where the rest is not text.
const SHORT: &[Format] =
    &[Format::Arj, Format::JpegXl, Format::Compress, Format::Cpio, Format::Mp3, Format::Qoi, Format::Parquet];

/// The format of bytes that are not text, by their signature; [`Format::Unknown`] if they have none.
pub(crate) fn binary(bytes: &[u8]) -> Format {
    let format = beginning(bytes);
    // A tar file begins with a name, and that with any signature. Its sum is no chance, but a program is one all the same.
    let is_program = match format {
        // Names begin with these letters as well.
        Format::Crx | Format::Flash => false,
        Format::Pe => has_program_header(bytes),
        format => format.family() == Family::Executable,
    };
    if !is_program && archive::is_tar(bytes) { Format::Tar } else { format }
}

/// The format of bytes by their beginning, which may be the name of the first entry of a tar file.
fn beginning(bytes: &[u8]) -> Format {
    if let Some((_, format)) = signature(bytes) {
        let doubtful = SHORT.contains(&format) && looks_like_text(bytes);
        if !doubtful {
            return format;
        }
    }
    structured(bytes).unwrap_or(Format::Unknown)
}

fn signature(bytes: &[u8]) -> Option<(&'static [u8], Format)> {
    let matching = SIGNATURES.iter().filter(|(signature, _)| bytes.starts_with(signature));
    matching.max_by_key(|(signature, _)| signature.len()).copied()
}

/// The format whose signature a tar file begins with, if names of files do not begin so by chance: `true` and `ID3` are names.
pub(crate) fn marked(bytes: &[u8]) -> Option<Format> {
    let is_named = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | 0);
    let (signature, format) = signature(bytes)?;
    (format == Format::Gif || !signature.iter().all(is_named)).then_some(format)
}

/// Formats that a few bytes at the beginning do not decide alone.
fn structured(bytes: &[u8]) -> Option<Format> {
    if is_pe(bytes) {
        return Some(Format::Pe);
    }
    if bytes.starts_with(b"\xca\xfe\xba\xbe") {
        // A fat Mach-O has the number of its architectures where a class has its version, which is 45 or more.
        return Some(if be32(bytes, 4)? < 45 { Format::MachO } else { Format::JavaClass });
    }
    if matches!(bytes.get(..3), Some(b"FWS" | b"CWS" | b"ZWS")) && bytes.get(3).is_some_and(|version| *version <= 50) {
        return Some(Format::Flash);
    }
    if bytes.starts_with(b"RIFF") {
        return match slice(bytes, 8, 4)? {
            b"WEBP" => Some(Format::Webp),
            b"WAVE" => Some(Format::Wav),
            b"AVI " => Some(Format::Avi),
            b"ACON" => Some(Format::Icon),
            _ => None,
        };
    }
    if bytes.starts_with(b"FORM") && matches!(slice(bytes, 8, 4), Some(b"AIFF" | b"AIFC")) {
        return Some(Format::Aiff);
    }
    // What follows is told by bytes that are not the first ones, which may begin a page: `<!--ftyp`.
    if crate::text::begins_as_code(bytes) {
        return None;
    }
    if slice(bytes, 4, 4) == Some(b"ftyp") {
        return Some(by_brands(bytes));
    }
    if matches!(slice(bytes, 4, 4), Some(b"moov" | b"mdat" | b"wide" | b"free" | b"skip" | b"pnot")) {
        return Some(Format::Mp4);
    }
    // The header of a bitmap has its length and two fields of zero.
    if bytes.starts_with(b"BM") && le32(bytes, 6) == Some(0) && le32(bytes, 14).is_some_and(|size| size <= 128) {
        return Some(Format::Bmp);
    }
    if matches!(bytes.get(..4), Some(b"\0\0\x01\0" | b"\0\0\x02\0")) && is_icon(bytes) {
        return Some(Format::Icon);
    }
    if bytes.starts_with(b"\x01\0\0\0") && slice(bytes, 40, 4) == Some(b" EMF") {
        return Some(Format::Emf);
    }
    if bytes.starts_with(b"BZh") && slice(bytes, 4, 6).is_some_and(is_bzip2_block) {
        return Some(Format::Bzip2);
    }
    // Some readers skip a header whose sum is wrong.
    if slice(bytes, 257, 5) == Some(b"ustar") {
        return Some(Format::Tar);
    }
    if matches!(slice(bytes, 2, 3), Some(b"-lh" | b"-lz")) && bytes.get(6) == Some(&b'-') {
        return Some(Format::Lha);
    }
    if slice(bytes, 7, 7) == Some(b"**ACE**") {
        return Some(Format::Ace);
    }
    if slice(bytes, 32_769, 5) == Some(b"CD001") {
        return Some(Format::Iso);
    }
    if bytes.starts_with(b"\x5d\0\0") && bytes.get(12).is_some_and(|byte| matches!(byte, 0 | 0xff)) {
        return Some(Format::Lzma);
    }
    // A frame of zstd may come behind frames to skip, and so may one of LZ4.
    if le32(bytes, 0).is_some_and(|magic| (0x184d_2a50..=0x184d_2a5f).contains(&magic)) {
        return Some(Format::Zstd);
    }
    mpeg_audio(bytes)
}

fn is_bzip2_block(magic: &[u8]) -> bool {
    matches!(magic, b"1AY&SY" | b"\x17\x72\x45\x38\x50\x90")
}

/// A program of DOS or Windows. `MZ` alone may begin a text.
pub(crate) fn is_pe(bytes: &[u8]) -> bool {
    if !matches!(bytes.get(..2), Some(b"MZ" | b"ZM")) {
        return false;
    }
    has_program_header(bytes) || !looks_like_text(bytes)
}

/// Whether the header of a program is where the one of DOS says.
fn has_program_header(bytes: &[u8]) -> bool {
    let header = le32(bytes, 60).map(place);
    header.and_then(|at| slice(bytes, at, 2)).is_some_and(|word| matches!(word, b"PE" | b"NE" | b"LE" | b"LX"))
}

fn is_icon(bytes: &[u8]) -> bool {
    let count = le16(bytes, 4).unwrap_or(0);
    let first = le32(bytes, 18).map_or(0, place);
    // The first image is behind the list of all.
    (1..=1024).contains(&count) && first >= 6 + usize::from(count) * 16
}

fn by_brands(bytes: &[u8]) -> Format {
    let length = be32(bytes, 0).map_or(0, place).clamp(12, 256);
    let list = bytes.get(8..length.min(bytes.len())).unwrap_or_default();
    let brands = || list.as_chunks::<4>().0.iter();
    if brands().any(|brand| matches!(brand, b"avif" | b"avis")) {
        return Format::Avif;
    }
    if brands().any(|brand| matches!(brand, b"heic" | b"heix" | b"hevc" | b"heim" | b"heis" | b"mif1" | b"msf1")) {
        return Format::Heif;
    }
    match brands().next() {
        Some(b"M4A " | b"M4B " | b"F4A ") => Format::M4a,
        Some(b"jp2 " | b"jpx ") => Format::Jpeg2000,
        _ => Format::Mp4,
    }
}

/// Two frames of MPEG audio or of AAC behind each other.
fn mpeg_audio(bytes: &[u8]) -> Option<Format> {
    let word = be16(bytes, 0)?;
    // The mark of UTF-16 in front of a text is no frame.
    if word == 0xfffe {
        return None;
    }
    if word & 0xfff6 == 0xfff0 {
        let length = usize::from(be16(bytes, 3)?) << 3 | usize::from(bytes.get(5)? >> 5);
        let length = length & 0x1fff;
        let next = be16(bytes, length);
        return (length > 7 && next.is_none_or(|next| next & 0xfff6 == 0xfff0)).then_some(Format::Aac);
    }
    (word & 0xffe0 == 0xffe0 && word & 0x18 != 0x08 && word & 0x06 != 0 && bytes.get(2)? & 0xf0 != 0xf0)
        .then_some(Format::Mp3)
}

/// Whether bytes are text in UTF-8 or in a character set of one byte: no control characters but those of texts, at their beginning.
pub(crate) fn looks_like_text(bytes: &[u8]) -> bool {
    let start = bytes.get(..1024).unwrap_or(bytes);
    !start.is_empty() && !start.iter().any(|byte| is_control(*byte))
}

/// Whether a byte is a control character that texts do not have.
pub(crate) fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)
}
