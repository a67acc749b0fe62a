//! Which tags, attributes and addresses run scripts.

use std::borrow::Cow;
use std::sync::LazyLock;

/// What the value of an attribute may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribute {
    Harmless,
    /// Runs a script, whatever its value.
    Dangerous,
    /// Takes an address, which may be a script.
    Address,
    /// Takes the name of an attribute.
    Name,
}

const TAGS: [&str; 20] = [
    "APPLET", "BASE", "COMMENT", "EMBED", "FRAME", "FRAMESET", "HANDLER", "IFRAME", "IMPORT", "ISINDEX", "LINK",
    "LISTENER", "META", "NOSCRIPT", "OBJECT", "SCRIPT", "STYLE", "VMLFRAME", "XML", "XSS",
];

/// The listed attributes that begin with this capital.
fn listed(first: u8) -> &'static [(&'static str, Attribute)] {
    use Attribute::{Address, Dangerous, Name};
    match first {
        b'A' => &[("ACTION", Address), ("ATTRIBUTENAME", Name)],
        b'B' => &[("BACKGROUND", Address), ("BY", Address)],
        b'D' => &[("DATAFORMATAS", Dangerous), ("DATASRC", Dangerous), ("DYNSRC", Address)],
        b'F' => &[("FILTER", Dangerous), ("FOLDER", Address), ("FORMACTION", Address), ("FROM", Address)],
        b'H' => &[("HANDLER", Address), ("HREF", Address)],
        b'L' => &[("LOWSRC", Address)],
        b'P' => &[("POSTER", Address)],
        b'S' => &[("SRC", Address), ("STYLE", Dangerous)],
        b'T' => &[("TO", Address)],
        b'V' => &[("VALUES", Address)],
        b'X' => &[("XLINK:HREF", Address)],
        _ => &[],
    }
}

/// The beginnings of the names of events, in the order of their bytes. None of them begins with another one.
static EVENTS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| include_str!("events.txt").split_ascii_whitespace().collect());

/// How long the name of a handler is at least: `on` and three letters.
const SHORTEST_HANDLER: usize = 5;

/// The longest name of an event.
const LONGEST_EVENT: usize = 48;

/// The longest name on a list.
const LONGEST: usize = 13;

/// The beginnings of addresses that are scripts or hold them. `JAVA` stands for `javascript:`, too.
const ADDRESSES: [&[u8]; 4] = [b"DATA", b"VIEW-SOURCE", b"JAVA", b"VBSCRIPT"];

/// The longest of them.
const LONGEST_ADDRESS: usize = 11;

/// Browsers ignore NUL in names.
fn without_nul(name: &[u8]) -> Cow<'_, [u8]> {
    match memchr::memchr(0, name) {
        None => Cow::Borrowed(name),
        Some(_) => Cow::Owned(name.iter().copied().filter(|byte| *byte != 0).take(LONGEST + 1).collect()),
    }
}

fn starts_with(name: &[u8], start: &[u8]) -> bool {
    name.get(..start.len()).is_some_and(|name| name.eq_ignore_ascii_case(start))
}

/// Whether a tag of this name runs scripts, or changes what others do.
pub(super) fn is_dangerous_tag(name: &[u8]) -> bool {
    if name.len() < 3 {
        return false;
    }
    if starts_with(name, b"svg") || starts_with(name, b"xsl") {
        return true;
    }
    let name = without_nul(name);
    name.len() <= LONGEST && TAGS.iter().any(|tag| name.eq_ignore_ascii_case(tag.as_bytes()))
}

/// Whether an attribute of this name is the handler of an event: any name that may be one, if `any`.
fn is_handler(name: &[u8], any: bool) -> bool {
    let Some(event) = name.get(2..).filter(|_| name.len() >= SHORTEST_HANDLER && starts_with(name, b"on")) else {
        return false;
    };
    if any {
        return true;
    }
    let event = event.get(..LONGEST_EVENT).unwrap_or(event).to_ascii_lowercase();
    let after = EVENTS.partition_point(|known| known.as_bytes() <= event.as_slice());
    let before = after.checked_sub(1).and_then(|at| EVENTS.get(at));
    before.is_some_and(|known| event.starts_with(known.as_bytes()))
}

/// What an attribute of this name may do; `any_handler` if any name that begins with `on` is one of a handler.
pub(super) fn attribute(name: &[u8], any_handler: bool) -> Attribute {
    if name.len() < 2 {
        return Attribute::Harmless;
    }
    let first = name.first().map_or(0, u8::to_ascii_uppercase);
    match first {
        b'O' if is_handler(name, any_handler) => return Attribute::Dangerous,
        // `xmlns` makes any tag of one.
        b'X' if starts_with(name, b"xmlns") || starts_with(name, b"xlink") => return Attribute::Dangerous,
        _ => {}
    }
    if first != 0 && listed(first).is_empty() {
        return Attribute::Harmless;
    }
    // NUL is left out, so what is behind it may be the first letter.
    let name = without_nul(name);
    if name.len() > LONGEST {
        return Attribute::Harmless;
    }
    let candidates = listed(name.first().map_or(0, u8::to_ascii_uppercase));
    let found = candidates.iter().find(|(listed, _)| name.eq_ignore_ascii_case(listed.as_bytes()));
    found.map_or(Attribute::Harmless, |(_, attribute)| *attribute)
}

/// Whether an address is a script, or holds one.
pub(super) fn is_dangerous_address(address: &[u8]) -> bool {
    // Opera skips white space of UTF-8, and the high bytes of some character sets are ignored.
    let start = address.iter().position(|byte| matches!(byte, b'!'..=b'~')).unwrap_or(address.len());
    let address = address.get(start..).unwrap_or_default();
    let (capitals, length) = decoded(address);
    let capitals = capitals.get(..length).unwrap_or_default();
    ADDRESSES.iter().any(|scheme| capitals.starts_with(scheme))
}

/// The first characters of a text once its character references are decoded, as capitals and one byte each (as the original
/// compares them), and their number: without the control characters and blanks before them and without NUL and line feeds.
fn decoded(mut text: &[u8]) -> ([u8; LONGEST_ADDRESS], usize) {
    let mut capitals = [0; LONGEST_ADDRESS];
    let mut length = 0;
    while let (Some(capital), false) = (capitals.get_mut(length), text.is_empty()) {
        let (decoded, taken) = decode(text);
        text = text.get(taken..).unwrap_or_default();
        if (length == 0 && decoded <= 32) || matches!(decoded, 0 | 10) {
            continue;
        }
        let upper = if (0x61..=0x7a).contains(&decoded) { decoded - 0x20 } else { decoded };
        *capital = upper.to_le_bytes().first().copied().unwrap_or(0);
        length += 1;
    }
    (capitals, length)
}

/// The character at the beginning of a text, and its length there. References by name stay as they are.
fn decode(text: &[u8]) -> (u32, usize) {
    /// Numbers beyond this are no references.
    const LAST: u32 = 0x10_00ff;
    let (first, radix, digits_at) = match text {
        [b'&', b'#', b'x' | b'X', ..] => (b'&', 16, 3),
        [b'&', b'#', ..] => (b'&', 10, 2),
        [first, ..] => return (u32::from(*first), 1),
        [] => return (0, 1),
    };
    let digits = text.get(digits_at..).unwrap_or_default();
    let digit = |byte: &u8| char::from(*byte).to_digit(radix);
    let Some(mut number) = digits.first().and_then(digit) else { return (u32::from(first), 1) };
    let mut length = digits_at + 1;
    for byte in digits.iter().skip(1) {
        match digit(byte) {
            Some(digit) => number = number * radix + digit,
            None => {
                length += usize::from(*byte == b';');
                break;
            }
        }
        if number > LAST {
            return (u32::from(first), 1);
        }
        length += 1;
    }
    (number, length)
}
