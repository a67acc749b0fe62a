//! JSON, with fields at any depth.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Credentials, Fields, MAX_TAKEN};

/// The most names that are looked at.
const MAX_NAMES: usize = 4096;
/// The most digits of an integer that is made of a number in another spelling.
const MAX_DIGITS: usize = 64;

/// Takes the values of all fields of a text in UTF-8. Names that occur twice in an object count twice: parsers differ in which they take.
pub(super) fn read(body: &[u8], fields: &Fields, found: &mut Credentials) {
    // What is no JSON may be read in another way by the backend, or by a lenient parser in this one.
    found.odd |= serde_json::from_slice::<Value>(body).is_err();
    let (mut rest, mut names) = (body, 0);
    // Where a field is: the names and brackets in front of it.
    let mut path = Sha256::new();
    while let Some((before, token, behind)) = string(rest) {
        rest = behind;
        path.update(before.iter().copied().filter(|byte| b"{}[]".contains(byte)).collect::<Vec<u8>>());
        let Some(value) = behind.trim_ascii_start().strip_prefix(b":") else { continue };
        names += 1;
        if names > MAX_NAMES {
            (found.odd, found.hides) = (true, true);
            return;
        }
        path.update(token);
        let (Ok(name), value) = (serde_json::from_slice::<String>(token), value.trim_ascii_start()) else { continue };
        let Some(kind) = fields.kind(name.as_bytes()) else { continue };
        if !found.has_room() {
            return;
        }
        let mut take = |value: &[u8]| {
            found.take(kind, (b"json", path.clone().finalize().as_slice()), name.as_bytes(), value);
        };
        match value.first() {
            Some(b'"') => {
                let text = string(value).and_then(|(_, token, _)| serde_json::from_slice::<String>(token).ok());
                take(text.unwrap_or_default().as_bytes());
            }
            Some(b'-' | b'0'..=b'9') => {
                let end = value.iter().position(|byte| b",}] \t\r\n".contains(byte)).unwrap_or(value.len());
                let number = value.get(..end).unwrap_or_default();
                take(number);
                numbers(number).iter().for_each(|same| take(same));
            }
            // A backend may make a user of a list or an object.
            Some(b'[') => {
                texts(value).take(usize::from(MAX_TAKEN)).for_each(|text| take(text.as_bytes()));
                found.odd = true;
            }
            Some(b'{') => found.odd = true,
            _ => {}
        }
    }
}

/// The other texts that backends make of a number, which has many spellings: the integer that it is, exactly, and that of the nearest
/// double. Of an integer that is written as one there are none.
fn numbers(number: &[u8]) -> Vec<Vec<u8>> {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let is_plain = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || digits.first() != Some(&b'0'));
    if is_plain && number != b"-0" {
        return Vec::new();
    }
    let double = std::str::from_utf8(number).ok().and_then(|text| text.parse::<f64>().ok());
    // Without the sign of -0.
    let double = double.filter(|double| double.is_finite()).map(|double| (double + 0.0).to_string().into_bytes());
    integer(number).into_iter().chain(double).collect()
}

/// The integer of up to [`MAX_DIGITS`] digits that a number in JSON is.
fn integer(number: &[u8]) -> Option<Vec<u8>> {
    let (sign, number) = match number.strip_prefix(b"-") {
        Some(digits) => (&b"-"[..], digits),
        None => (&b""[..], number),
    };
    let mut halves = number.splitn(2, |byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = (halves.next()?, halves.next().unwrap_or(b"0"));
    let exponent: i64 = std::str::from_utf8(exponent).ok()?.parse().ok()?;
    let mut halves = mantissa.splitn(2, |byte| *byte == b'.');
    let (whole, fraction) = (halves.next()?, halves.next().unwrap_or_default());
    let mut digits = [whole, fraction].concat();
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // How many digits are in front of the point.
    let places = i64::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let Some(first) = digits.iter().position(|digit| *digit != b'0') else { return Some(b"0".to_vec()) };
    let places = usize::try_from(places).ok().filter(|places| *places <= first.saturating_add(MAX_DIGITS))?;
    if digits.iter().skip(places).any(|digit| *digit != b'0') {
        return None;
    }
    digits.resize(places, b'0');
    Some([sign, digits.get(first..)?].concat())
}

/// The texts at the beginning of a list.
fn texts(list: &[u8]) -> impl Iterator<Item = String> {
    let mut rest = list.get(1..).unwrap_or_default();
    std::iter::from_fn(move || {
        let start = rest.trim_ascii_start();
        let (_, token, behind) = string(start.starts_with(b"\"").then_some(start)?)?;
        let behind = behind.trim_ascii_start();
        rest = behind.strip_prefix(b",").unwrap_or(behind);
        Some(serde_json::from_slice::<String>(token).unwrap_or_default())
    })
}

/// What is in front of the first string, the string with its quotes, and what is behind it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (before, text) = text.split_at_checked(text.iter().position(|byte| *byte == b'"')?)?;
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                let (token, behind) = text.split_at_checked(at.saturating_add(1))?;
                return Some((before, token, behind));
            }
            _ => {}
        }
    }
    None
}
