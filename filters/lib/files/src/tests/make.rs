//! Archives made by hand.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

pub(super) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// An entry of a ZIP file; every field can be wrong, in the directory and in front of the entry.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) local_name: Vec<u8>,
    pub(super) data: Vec<u8>,
    pub(super) method: u16,
    pub(super) local_method: u16,
    pub(super) flags: u16,
    pub(super) local_flags: u16,
    pub(super) crc: u32,
    pub(super) size: u32,
    pub(super) packed: u32,
    pub(super) attributes: u32,
    pub(super) extra: Vec<u8>,
    /// The header of an earlier entry is this one's.
    pub(super) shares: Option<usize>,
    /// It has a header and no place in the directory.
    pub(super) hidden: bool,
    /// Lengths and the sum are behind the content.
    pub(super) described: bool,
}

impl Entry {
    pub(super) fn stored(name: &str, content: &[u8]) -> Self {
        let length = u32::try_from(content.len()).unwrap();
        Self {
            name: name.as_bytes().to_vec(),
            local_name: name.as_bytes().to_vec(),
            data: content.to_vec(),
            method: 0,
            local_method: 0,
            flags: 0,
            local_flags: 0,
            crc: crc(content),
            size: length,
            packed: length,
            attributes: 0,
            extra: Vec::new(),
            shares: None,
            hidden: false,
            described: false,
        }
    }

    pub(super) fn deflated(name: &str, content: &[u8]) -> Self {
        let data = deflate(content);
        let packed = u32::try_from(data.len()).unwrap();
        Self { data, packed, method: 8, local_method: 8, ..Self::stored(name, content) }
    }
}

/// A ZIP file and where its parts are.
pub(super) struct Zip {
    pub(super) bytes: Vec<u8>,
    pub(super) end: usize,
}

pub(super) fn build(entries: &[Entry], front: &[u8], comment: &[u8]) -> Zip {
    let mut bytes = front.to_vec();
    let mut offsets: Vec<u32> = Vec::new();
    for entry in entries {
        if let Some(other) = entry.shares {
            offsets.push(offsets[other]);
            continue;
        }
        offsets.push(u32::try_from(bytes.len() - front.len()).unwrap());
        bytes.extend(b"PK\x03\x04\x14\0");
        bytes.extend((entry.local_flags | if entry.described { 8 } else { 0 }).to_le_bytes());
        bytes.extend(entry.local_method.to_le_bytes());
        bytes.extend([0; 4]);
        for number in [entry.crc, entry.packed, entry.size] {
            bytes.extend(if entry.described { 0_u32 } else { number }.to_le_bytes());
        }
        bytes.extend(u16::try_from(entry.local_name.len()).unwrap().to_le_bytes());
        bytes.extend([0; 2]);
        bytes.extend(&entry.local_name);
        bytes.extend(&entry.data);
        if entry.described {
            bytes.extend(b"PK\x07\x08");
            [entry.crc, entry.packed, entry.size].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        }
    }
    let start = bytes.len();
    let listed: Vec<_> = entries.iter().zip(&offsets).filter(|(entry, _)| !entry.hidden).collect();
    for (entry, offset) in &listed {
        bytes.extend(b"PK\x01\x02\x14\x03\x14\0");
        bytes.extend((entry.flags | if entry.described { 8 } else { 0 }).to_le_bytes());
        bytes.extend(entry.method.to_le_bytes());
        bytes.extend([0; 4]);
        [entry.crc, entry.packed, entry.size].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes.extend(u16::try_from(entry.name.len()).unwrap().to_le_bytes());
        bytes.extend(u16::try_from(entry.extra.len()).unwrap().to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(entry.attributes.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        bytes.extend(&entry.name);
        bytes.extend(&entry.extra);
    }
    let (length, count) = (bytes.len() - start, u16::try_from(listed.len()).unwrap());
    let end = bytes.len();
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend(count.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(u32::try_from(length).unwrap().to_le_bytes());
    bytes.extend(u32::try_from(start - front.len()).unwrap().to_le_bytes());
    bytes.extend(u16::try_from(comment.len()).unwrap().to_le_bytes());
    bytes.extend(comment);
    Zip { bytes, end }
}

pub(super) fn zip_of(entries: &[Entry]) -> Vec<u8> {
    build(entries, b"", b"").bytes
}

/// A ZIP file of compressed entries.
pub(super) fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    zip_of(&entries.iter().map(|(name, content)| Entry::deflated(name, content)).collect::<Vec<_>>())
}

/// The same with ZIP64 records at the end.
pub(super) fn zip64(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let list: Vec<_> = entries.iter().map(|(name, content)| Entry::deflated(name, content)).collect();
    let Zip { mut bytes, end } = build(&list, b"", b"");
    let record = bytes.split_off(end);
    let number = |at: usize| u64::from(u32::from_le_bytes(record[at..at + 4].try_into().unwrap()));
    let (length, start, count) = (number(12), number(16), entries.len() as u64);
    bytes.extend(b"PK\x06\x06");
    bytes.extend(44_u64.to_le_bytes());
    bytes.extend([45, 0, 45, 0]);
    bytes.extend([0; 8]);
    [count, count, length, start].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes.extend(b"PK\x06\x07\0\0\0\0");
    bytes.extend(u64::try_from(end).unwrap().to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0");
    bytes
}

/// A header of tar.
pub(super) fn tar_header(name: &[u8], size: &[u8; 12], kind: u8, link: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name);
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(size);
    header[136..148].copy_from_slice(b"00000000000\0");
    header[156] = kind;
    header[157..157 + link.len()].copy_from_slice(link);
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

pub(super) fn octal(size: usize) -> [u8; 12] {
    format!("{size:011o}\0").as_bytes().try_into().unwrap()
}

/// An entry of tar with its content.
pub(super) fn tar_entry(name: &[u8], content: &[u8], kind: u8, link: &[u8]) -> Vec<u8> {
    let mut entry = tar_header(name, &octal(content.len()), kind, link);
    entry.extend(content);
    entry.resize(entry.len().div_ceil(512) * 512, 0);
    entry
}

pub(super) fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        entries.iter().flat_map(|(name, content)| tar_entry(name.as_bytes(), content, b'0', b"")).collect();
    bytes.extend([0; 1024]);
    bytes
}

/// A compound file with these names in its directory.
pub(super) fn compound(names: &[&str], class: Option<&[u8; 16]>) -> Vec<u8> {
    let mut bytes = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    bytes.resize(512, 0);
    for (at, name) in ["Root Entry"].iter().chain(names).enumerate() {
        let mut entry = vec![0; 128];
        let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        entry[..units.len()].copy_from_slice(&units);
        entry[64] = u8::try_from(units.len() + 2).unwrap();
        entry[66] = if at == 0 { 5 } else { 1 };
        if let Some(class) = class.filter(|_| at == 0) {
            entry[80..96].copy_from_slice(class);
        }
        bytes.extend(entry);
    }
    bytes
}

/// Bytes that do not compress.
pub(super) fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}
