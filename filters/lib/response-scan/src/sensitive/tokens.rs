//! Keys and tokens, by what they begin with.

use super::{Detector, DetectorSet, Finding, byte, byte_before, is_inside_word, is_word};
use crate::escapes::{escape_at, quote_at};
use crate::literals::Literals;

/// The characters behind the beginning of a token.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// `A-Z0-9`.
    Capital,
    /// `0-9a-f`.
    Hex,
    /// `A-Za-z0-9`.
    Alphanumeric,
    /// The same and `-_`: base64url and what services make of it.
    Url,
    /// The same and `.`.
    Dotted,
    /// Base64 with `+/=`, each of which may be escaped.
    Base64,
}

struct Beginning {
    literal: &'static [u8],
    detector: Detector,
    kind: Kind,
    /// The fewest and the most characters behind the literal.
    length: (usize, usize),
}

const fn beginning(literal: &'static str, detector: Detector, kind: Kind, least: usize, most: usize) -> Beginning {
    Beginning { literal: literal.as_bytes(), detector, kind, length: (least, most) }
}

/// No beginning is the beginning of another.
const BEGINNINGS: &[Beginning] = &[
    beginning("AKIA", Detector::CloudKey, Kind::Capital, 16, 16),
    beginning("ASIA", Detector::CloudKey, Kind::Capital, 16, 16),
    beginning("AIza", Detector::CloudKey, Kind::Url, 35, 35),
    beginning("GOCSPX-", Detector::CloudKey, Kind::Url, 28, 28),
    // Values that are known by their names alone: of Azure Storage, and the secret halves of keys of AWS.
    beginning("AccountKey", Detector::CloudKey, Kind::Base64, 86, 88),
    beginning("ecret_access_key", Detector::CloudKey, Kind::Base64, SECRET, SECRET),
    beginning("ECRET_ACCESS_KEY", Detector::CloudKey, Kind::Base64, SECRET, SECRET),
    beginning("ecretAccessKey", Detector::CloudKey, Kind::Base64, SECRET, SECRET),
    // Session tokens of AWS, of today and of before.
    beginning("IQoJb3JpZ2lu", Detector::CloudKey, Kind::Base64, 100, MAX_SESSION),
    beginning("FwoGZXIvYXdz", Detector::CloudKey, Kind::Base64, 100, MAX_SESSION),
    beginning("FQoGZXIvYXdz", Detector::CloudKey, Kind::Base64, 100, MAX_SESSION),
    beginning("dop_v1_", Detector::CloudKey, Kind::Hex, 64, 64),
    beginning("ghp_", Detector::ServiceToken, Kind::Alphanumeric, 36, 36),
    beginning("gho_", Detector::ServiceToken, Kind::Alphanumeric, 36, 36),
    beginning("ghu_", Detector::ServiceToken, Kind::Alphanumeric, 36, 36),
    beginning("ghs_", Detector::ServiceToken, Kind::Alphanumeric, 36, 36),
    beginning("ghr_", Detector::ServiceToken, Kind::Alphanumeric, 36, 76),
    beginning("github_pat_", Detector::ServiceToken, Kind::Url, 60, 90),
    beginning("glpat-", Detector::ServiceToken, Kind::Url, 20, 64),
    beginning("xoxb-", Detector::ServiceToken, Kind::Url, 30, 200),
    beginning("xoxp-", Detector::ServiceToken, Kind::Url, 30, 200),
    beginning("xoxa-", Detector::ServiceToken, Kind::Url, 30, 200),
    beginning("xoxs-", Detector::ServiceToken, Kind::Url, 30, 200),
    beginning("sk_live_", Detector::ServiceToken, Kind::Alphanumeric, 16, 128),
    beginning("rk_live_", Detector::ServiceToken, Kind::Alphanumeric, 16, 128),
    beginning("npm_", Detector::ServiceToken, Kind::Alphanumeric, 36, 36),
    beginning("pypi-AgEI", Detector::ServiceToken, Kind::Url, 50, 512),
    beginning("SG.", Detector::ServiceToken, Kind::Dotted, 66, 66),
    beginning("shpat_", Detector::ServiceToken, Kind::Hex, 32, 32),
    beginning("sk-ant-", Detector::LlmKey, Kind::Url, 32, 200),
    beginning("sk-proj-", Detector::LlmKey, Kind::Url, 32, 200),
    beginning("sk-svcacct-", Detector::LlmKey, Kind::Url, 32, 200),
    beginning("sk-or-v1-", Detector::LlmKey, Kind::Hex, 64, 64),
    beginning("gsk_", Detector::LlmKey, Kind::Alphanumeric, 52, 52),
    beginning("xai-", Detector::LlmKey, Kind::Alphanumeric, 80, 80),
    beginning("pplx-", Detector::LlmKey, Kind::Alphanumeric, 48, 48),
    beginning("r8_", Detector::LlmKey, Kind::Alphanumeric, 37, 37),
    beginning("hf_", Detector::LlmKey, Kind::Alphanumeric, 34, 34),
    // The middle of an older key: `sk-`, 20 characters, this, 20 characters.
    beginning("T3BlbkFJ", Detector::LlmKey, Kind::Alphanumeric, 20, 20),
    beginning("eyJ", Detector::Jwt, Kind::Dotted, 0, 0),
    beginning("-----BEGIN ", Detector::PrivateKey, Kind::Base64, 0, 0),
];

/// The characters of a secret access key of AWS.
const SECRET: usize = 40;
/// The most characters of a session token of AWS.
const MAX_SESSION: usize = 4096;
/// The most quotation marks, signs and blanks between the name of a value and the value.
const MAX_ASSIGNMENT: usize = 8;
/// The longest token that is read as one, in bytes.
const MAX_JWT: usize = 16 << 10;
/// The longest key with its lines, in bytes.
const MAX_KEY: usize = 32 << 10;

/// The tokens of a set of detectors.
#[derive(Debug)]
pub(super) struct Tokens {
    literals: Literals,
    /// The places in [`BEGINNINGS`] of the literals.
    places: Vec<usize>,
}

impl Tokens {
    /// `None` where the set has no detector of tokens.
    pub(super) fn new(set: DetectorSet) -> Option<Self> {
        let wanted = BEGINNINGS.iter().enumerate().filter(|(_, beginning)| set.has(beginning.detector));
        let (places, literals): (Vec<_>, Vec<_>) = wanted.map(|(place, beginning)| (place, beginning.literal)).unzip();
        (!places.is_empty()).then(|| Self { literals: Literals::new(&literals), places })
    }

    pub(super) fn scan(&self, text: &[u8], found: &mut Vec<Finding>) {
        self.literals.each(text, |literal, at| {
            let beginning = self.places.get(literal).and_then(|place| BEGINNINGS.get(*place));
            let Some(beginning) = beginning else { return at };
            let outcome = match beginning.detector {
                Detector::Jwt => jwt(text, at),
                Detector::PrivateKey => private_key(text, at),
                _ if beginning.literal == b"T3BlbkFJ" => older_key(text, at),
                _ if beginning.literal == b"AccountKey" || beginning.length == (SECRET, SECRET) => {
                    named(text, at, beginning)
                }
                _ if beginning.kind == Kind::Base64 => session(text, at, beginning),
                _ => token(text, at, beginning),
            };
            let (found_one, next) = match outcome {
                Ok((start, end)) => (Some(Finding { detector: beginning.detector, start, end }), end),
                Err(next) => (None, next),
            };
            found.extend(found_one);
            next
        });
    }
}

/// Where a token begins and ends, or the place to go on.
type Outcome = Result<(usize, usize), usize>;

fn token(text: &[u8], at: usize, beginning: &Beginning) -> Outcome {
    let from = at + beginning.literal.len();
    if is_inside_word(text, at) || byte_before(text, at) == b'-' {
        return Err(from);
    }
    let (least, most) = beginning.length;
    let mut count = count(text, from, most + 1, beginning.kind);
    // A dot behind it ends a sentence.
    if byte_before(text, from + count) == b'.' {
        count = count.saturating_sub(1);
    }
    let end = from + count;
    let value = text.get(from..end).unwrap_or_default();
    let fits = (least..=most).contains(&count) && is_random(value) && extra(beginning, value);
    if fits && !is_word(byte(text, end)) { Ok((at, end)) } else { Err(from) }
}

/// A value behind its name, in a file of settings, JSON, XML or source code. The name of an account's key is a part of the match,
/// as in a connection string.
fn named(text: &[u8], at: usize, beginning: &Beginning) -> Outcome {
    let from = at + beginning.literal.len();
    let account = beginning.literal == b"AccountKey";
    let Some((start, plain)) = assignment(text, from).filter(|_| !(account && is_inside_word(text, at))) else {
        return Err(from);
    };
    let (least, most) = beginning.length;
    let (value, end) = base64(text, start, most + 1);
    let padded = value.ends_with(b"==") == account && (account || !value.contains(&b'='));
    let fits = (least..=most).contains(&value.len()) && padded && is_random(&value);
    if fits && !is_word(byte(text, end)) { Ok((if account && plain { at } else { start }, end)) } else { Err(from) }
}

/// A session token. In an address that was signed for a client it is none of the application's: the client needs it.
fn session(text: &[u8], at: usize, beginning: &Beginning) -> Outcome {
    let from = at + beginning.literal.len();
    let (least, most) = beginning.length;
    let front = text.get(at.saturating_sub(32)..at).unwrap_or_default();
    let signed = front.windows(14).any(|name| name.eq_ignore_ascii_case(b"security-token"));
    let (value, end) = base64(text, from, most + 1);
    let fits = (least..=most).contains(&value.len()) && is_random(&value);
    match fits && !signed && !is_inside_word(text, at) {
        true => Ok((at, end)),
        // Nothing begins within what was read.
        false => Err(end),
    }
}

/// Where a value begins whose name ends at a place, and whether nothing but `=` is between them. Something has to be.
fn assignment(text: &[u8], from: usize) -> Option<(usize, bool)> {
    let (mut at, mut plain) = (from, true);
    for _ in 0..MAX_ASSIGNMENT {
        let quote = quote_at(text, at);
        let escape = escape_at(text, at).and_then(|escape| Some((escape.length, escape.ascii()?)));
        let (length, sign) = match (quote, escape) {
            (Some(length), _) => (length, b'"'),
            (None, Some(escape)) => escape,
            (None, None) => (1, byte(text, at)),
        };
        if !matches!(sign, b'"' | b'=' | b':' | b'>' | b' ' | b'\t') {
            break;
        }
        plain &= sign == b'=';
        at += length;
    }
    (at > from).then_some((at, plain))
}

/// The characters of Base64 from a place on, and where they end.
fn base64(text: &[u8], from: usize, most: usize) -> (Vec<u8>, usize) {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let (mut value, mut at) = (Vec::new(), from);
    while value.len() < most {
        let this = Some((1, byte(text, at))).filter(|(_, byte)| is_base64(byte));
        let escaped =
            || escape_at(text, at).and_then(|escape| Some((escape.length, escape.ascii().filter(is_base64)?)));
        let Some((length, character)) = this.or_else(escaped) else { break };
        value.push(character);
        at += length;
    }
    (value, at)
}

/// What some tokens have beyond their alphabet.
fn extra(beginning: &Beginning, value: &[u8]) -> bool {
    match beginning.literal {
        b"SG." => value.get(22) == Some(&b'.') && value.iter().filter(|byte| **byte == b'.').count() == 1,
        b"xoxb-" | b"xoxp-" | b"xoxa-" | b"xoxs-" => {
            value.iter().take(10).all(|byte| byte.is_ascii_digit() || *byte == b'-')
        }
        _ => true,
    }
}

/// Whether a value looks drawn at random: six different characters at least, and not `xxxx` or `****` for most of it.
fn is_random(value: &[u8]) -> bool {
    let mut known = [false; 256];
    value.iter().for_each(|byte| {
        known.iter_mut().skip(usize::from(*byte)).take(1).for_each(|known| *known = true);
    });
    let different = known.iter().filter(|known| **known).count();
    let most = value.first().is_none_or(|first| value.iter().filter(|byte| *byte == first).count() * 2 < value.len());
    different >= 6 && most
}

fn count(text: &[u8], from: usize, most: usize, kind: Kind) -> usize {
    let fits = |byte: &&u8| match kind {
        Kind::Capital => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        Kind::Hex => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
        Kind::Alphanumeric => byte.is_ascii_alphanumeric(),
        Kind::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
        Kind::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
        Kind::Base64 => false,
    };
    text.get(from..).unwrap_or_default().iter().take(most).take_while(fits).count()
}

/// `sk-` and 20 characters in front of the mark, 20 behind it.
fn older_key(text: &[u8], at: usize) -> Outcome {
    let next = at + 8;
    let start = at.checked_sub(23).ok_or(next)?;
    let front = text.get(start..at).unwrap_or_default();
    let named = front.strip_prefix(b"sk-").is_some_and(|front| front.iter().all(u8::is_ascii_alphanumeric));
    let behind = count(text, next, 21, Kind::Alphanumeric);
    if named && behind == 20 && !is_inside_word(text, start) { Ok((start, next + 20)) } else { Err(next) }
}

/// Three parts of base64url; the first two are JSON objects and the third is a signature (RFC 7515, section 3.1).
fn jwt(text: &[u8], at: usize) -> Outcome {
    if is_inside_word(text, at) {
        return Err(at + 3);
    }
    let length = count(text, at, MAX_JWT, Kind::Dotted);
    let end = at + length;
    let mut parts = text.get(at..end).unwrap_or_default().split(|byte| *byte == b'.');
    let (header, payload, signature) = (parts.next(), parts.next(), parts.next());
    let object = |part: Option<&[u8]>, least| part.is_some_and(|part| part.starts_with(b"eyJ") && part.len() >= least);
    let signed = signature.is_some_and(|signature| signature.len() >= 16);
    // A dot behind it ends a sentence.
    let rest = parts.next().map_or(0, <[u8]>::len);
    let trailing = parts.next().is_none() && rest == 0;
    if object(header, 16) && object(payload, 8) && signed && trailing {
        Ok((at, end - usize::from(byte_before(text, end) == b'.')))
    } else {
        Err(end.max(at + 3))
    }
}

/// The lines between the marks of a private key, as far as they are there: what cuts a key off leaves a part of it.
fn private_key(text: &[u8], at: usize) -> Outcome {
    const MARK: &[u8] = b"-----";
    let name = at + 11;
    let rest = text.get(name..text.len().min(name + 40)).unwrap_or_default();
    let Some(length) = memchr::memmem::find(rest, MARK) else { return Err(name) };
    let label = rest.get(..length).unwrap_or_default();
    if !label.ends_with(b"PRIVATE KEY") && label != b"PGP PRIVATE KEY BLOCK" {
        return Err(name + length);
    }
    let from = name + length + MARK.len();
    let lines = text.get(from..text.len().min(from + MAX_KEY)).unwrap_or_default();
    let length = memchr::memmem::find(lines, MARK).unwrap_or(lines.len());
    let content = lines.get(..length).unwrap_or_default();
    // An example in a page has dots or words between its marks.
    let encoded = content.iter().filter(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte)).count();
    let dots = memchr::memmem::find(content, b"...").is_some();
    if encoded >= 48 && !dots && is_random(content) { Ok((from, from + length)) } else { Err(from) }
}
