//! Small violence to an exchange.

use super::case::Case;
use super::templates::{percent_encoded, value};
use recording::random::Random;

/// Changes one to four places.
pub(super) fn mutate(random: &mut Random, case: &mut Case, other: &Case) {
    for _ in 0..random.range(1, 4) {
        match random.below(20) {
            0..=5 => {
                let at = case.uri.iter().position(|&byte| byte == b'?').map_or(0, |at| at + 1);
                let mut part = case.uri.split_off(at);
                change(random, &mut part, &other.uri);
                case.uri.append(&mut part);
            }
            6 => change(random, &mut case.uri, &other.uri),
            7..=13 if !case.body.is_empty() => change(random, &mut case.body, &other.body),
            14 | 15 if !case.headers.is_empty() => {
                let at = random.below(case.headers.len());
                let (name, value) = &mut case.headers[at];
                if name.eq_ignore_ascii_case(b"content-length") {
                    continue;
                }
                let others = other.headers.get(random.below(other.headers.len()));
                change(random, value, others.map(|(_, value)| value.as_slice()).unwrap_or_default());
            }
            16 if !case.headers.is_empty() => {
                let at = random.below(case.headers.len());
                match random.below(4) {
                    0 => drop(case.headers.remove(at)),
                    1 => case.headers.push(case.headers[at].clone()),
                    2 => case.headers.reverse(),
                    _ => case.headers[at].0.make_ascii_uppercase(),
                }
            }
            17 => case
                .headers
                .extend(other.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"cookie")).cloned()),
            18 => change(random, &mut case.response_body, &other.response_body),
            _ => {
                let value = percent_encoded(&value(random), b"");
                case.uri.push(if case.uri.contains(&b'?') { b'&' } else { b'?' });
                case.uri.extend_from_slice(&[b"m=", value.as_slice()].concat());
            }
        }
    }
}

/// One change to some bytes.
fn change(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(bytes.len() + 1);
    let length = random.range(1, 12).min(bytes.len() - at);
    let range = at..at + length;
    let replace = |bytes: &mut Vec<u8>, with: Vec<u8>| drop(bytes.splice(range.clone(), with));
    let piece = bytes[range.clone()].to_vec();
    match random.below(22) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.byte(),
        2 => replace(bytes, percent_encoded(&piece, b"")),
        3 => replace(bytes, piece.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()).collect()),
        4 => replace(bytes, piece.iter().flat_map(|byte| format!("%25{byte:02x}").into_bytes()).collect()),
        5 => replace(bytes, piece.iter().flat_map(|byte| format!("%u{byte:04X}").into_bytes()).collect()),
        6 => replace(
            bytes,
            piece.iter().flat_map(|byte| format!("%uff{:02x}", byte.wrapping_sub(0x20)).into_bytes()).collect(),
        ),
        7 => replace(bytes, piece.iter().flat_map(|byte| entity(random, *byte)).collect()),
        8 => replace(bytes, piece.iter().flat_map(|byte| format!("\\x{byte:02x}").into_bytes()).collect()),
        9 => replace(bytes, piece.iter().flat_map(|byte| format!("\\u{byte:04x}").into_bytes()).collect()),
        10 => replace(
            bytes,
            piece.iter().map(|byte| if byte.is_ascii_alphabetic() { byte ^ 0x20 } else { *byte }).collect(),
        ),
        11 => insert(
            bytes,
            at,
            random.pick(&[&b" "[..], b"+", b"\t", b"%0a", b"%0d%0a", b"%09", b"\x0b", b"%a0", b"\xa0", b"%20%20"]),
        ),
        12 => insert(bytes, at, random.pick(&[&b"/**/"[..], b"/*x*/", b"--", b"#", b"<!-- -->", b"/*!", b"*/", b"//"])),
        13 => insert(bytes, at, random.pick(&[&b"%00"[..], b"\0", b"\\0", b"%u0000", b"&#0;", b"\\u0000"])),
        14 => insert(
            bytes,
            at,
            random.pick(&[
                &b"%"[..],
                b"%2",
                b"%zz",
                b"%u12",
                b"%uzzzz",
                b"%%41",
                b"%25",
                b"%C0%AF",
                b"%E0%80%AF",
                b"%F8%80%80%80%AF",
                b"\xc0\xaf",
                b"%ED%A0%80",
                b"%ff",
                b"\xff\xfe",
                b"%EF%BB%BF",
            ]),
        ),
        15 => insert(
            bytes,
            at,
            random.pick(&[
                &b"'"[..],
                b"\"",
                b"\\",
                b"`",
                b"\\\\",
                b"$@",
                b"''",
                b"^",
                b";",
                b"&",
                b"=",
                b"{",
                b"[",
                b"(",
                b"<",
                b">",
                b"|",
                b"\n",
                b"\r",
                b"\r\n",
            ]),
        ),
        16 => bytes.truncate(at),
        17 => insert(bytes, at, &piece.repeat(random.range(2, 30))),
        18 => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.below(other.len() + 1)..]);
        }
        19 => insert(bytes, at, &value(random)),
        20 => replace(bytes, Vec::new()),
        _ => {
            let value = value(random);
            insert(bytes, at, &percent_encoded(&value, b""));
        }
    }
    bytes.truncate(20_000);
}

fn entity(random: &mut Random, byte: u8) -> Vec<u8> {
    match random.below(4) {
        0 => format!("&#{byte};"),
        1 => format!("&#x{byte:x};"),
        2 => format!("&#{byte:07}"),
        _ => match byte {
            b'<' => "&lt;".to_owned(),
            b'"' => "&quot;".to_owned(),
            b'a' => "&aacute;".to_owned(),
            _ => format!("&#X{byte:04X};"),
        },
    }
    .into_bytes()
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}
