//! Undoes the escapes of a text that arrives in pieces.

use memchr::{memchr, memchr2, memchr3};

/// The syntax of escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Escapes {
    /// `%HH` and `+`, of forms.
    Percent,
    /// `\uHHHH`, `\xHH`, `\n` and the like, of strings in JSON and what resembles it.
    Json,
    /// `&#N;`, `&#xH;`, `&lt;` and the like, and the marks of CDATA sections, of XML.
    References,
}

/// The most bytes of an escape that are held until its end arrives.
const LONGEST: usize = 256;

const NAMED: &[(&[u8], u8)] =
    &[(b"lt", b'<'), (b"gt", b'>'), (b"amp", b'&'), (b"quot", b'"'), (b"apos", b'\''), (b"nbsp", b' ')];
const CDATA: &[u8] = b"<![CDATA[";
const CDATA_END: &[u8] = b"]]>";

/// The result of looking for an escape at a position.
enum Found {
    /// An escape of this length for a character, or for nothing.
    Character(Option<char>, usize),
    /// An escape for a byte.
    Byte(u8, usize),
    None,
    /// Undecided: more bytes are needed.
    Open,
}

/// Undoes the escapes of a text.
pub(in crate::engine) struct Undo {
    escapes: Escapes,
    /// The beginning of an incomplete escape.
    held: Vec<u8>,
}

impl Undo {
    pub(in crate::engine) fn new(escapes: Escapes) -> Self {
        Self { escapes, held: Vec::new() }
    }

    /// Whether the next bytes have no escape.
    pub(in crate::engine) fn is_idle(&self, bytes: &[u8]) -> bool {
        self.held.is_empty() && self.next(bytes).is_none()
    }

    /// Appends the next bytes to `output` with their escapes undone. Returns whether an escape was used for ASCII
    /// without need (a quote within quotes needs one).
    pub(in crate::engine) fn feed(&mut self, bytes: &[u8], output: &mut Vec<u8>) -> bool {
        let joined;
        let mut rest = match self.held.is_empty() {
            true => bytes,
            false => {
                self.held.extend_from_slice(bytes);
                joined = std::mem::take(&mut self.held);
                &joined
            }
        };
        let mut changed = false;
        while !rest.is_empty() {
            let plain = self.next(rest).unwrap_or(rest.len());
            output.extend_from_slice(rest.get(..plain).unwrap_or_default());
            rest = rest.get(plain..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            let length = match self.escape(rest) {
                Found::Open if rest.len() < LONGEST => {
                    self.held = rest.to_vec();
                    break;
                }
                Found::Open | Found::None => {
                    output.extend(rest.first());
                    1
                }
                Found::Character(character, length) => {
                    let mut buffer = [0; 4];
                    output.extend_from_slice(
                        character.map(|it| it.encode_utf8(&mut buffer)).unwrap_or_default().as_bytes(),
                    );
                    changed |= length > 2 && character.is_none_or(|it| it.is_ascii());
                    length
                }
                Found::Byte(byte, length) => {
                    output.push(byte);
                    changed |= length > 2;
                    length
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        changed
    }

    /// Where the next escape may begin.
    fn next(&self, text: &[u8]) -> Option<usize> {
        match self.escapes {
            Escapes::Percent => memchr2(b'%', b'+', text),
            Escapes::Json => memchr(b'\\', text),
            Escapes::References => memchr3(b'&', b'<', b']', text),
        }
    }

    fn escape(&self, text: &[u8]) -> Found {
        match self.escapes {
            Escapes::Percent if text.first() == Some(&b'+') => Found::Byte(b' ', 1),
            Escapes::Percent => hex(text, 1, 2).map_byte(3),
            Escapes::Json => json(text),
            Escapes::References => match text.first() {
                Some(b'&') => reference(text),
                Some(b'<') => mark(text, CDATA),
                _ => mark(text, CDATA_END),
            },
        }
    }
}

/// A text with its escapes undone; `None` if none changes what rules see.
pub(in crate::engine) fn undone(text: &[u8], escapes: Escapes) -> Option<Vec<u8>> {
    let (mut undo, mut output) = (Undo::new(escapes), Vec::with_capacity(text.len()));
    let changed = undo.feed(text, &mut output);
    output.append(&mut undo.held);
    changed.then_some(output)
}

/// A number of `digits` hexadecimal digits.
enum Number {
    Of(u32),
    None,
    Open,
}

impl Number {
    fn map_byte(self, length: usize) -> Found {
        match self {
            Self::Of(number) => Found::Byte(u8::try_from(number & 0xff).unwrap_or_default(), length),
            Self::None => Found::None,
            Self::Open => Found::Open,
        }
    }
}

fn hex(text: &[u8], at: usize, digits: usize) -> Number {
    let mut number = 0;
    for place in at..at + digits {
        let Some(byte) = text.get(place) else { return Number::Open };
        let Some(digit) = char::from(*byte).to_digit(16) else { return Number::None };
        number = number << 4 | digit;
    }
    Number::Of(number)
}

fn json(text: &[u8]) -> Found {
    let Some(escaped) = text.get(1).copied() else { return Found::Open };
    match escaped {
        b'u' => match hex(text, 2, 4) {
            // Half of a surrogate pair is no character.
            Number::Of(code) => Found::Character(Some(char::from_u32(code).unwrap_or('?')), 6),
            Number::None => Found::Byte(escaped, 2),
            Number::Open => Found::Open,
        },
        b'x' => match hex(text, 2, 2) {
            Number::None => Found::Byte(escaped, 2),
            number => number.map_byte(4),
        },
        b'b' => Found::Byte(0x08, 2),
        b'f' => Found::Byte(0x0c, 2),
        b'n' => Found::Byte(b'\n', 2),
        b'r' => Found::Byte(b'\r', 2),
        b't' => Found::Byte(b'\t', 2),
        b'v' => Found::Byte(0x0b, 2),
        _ => Found::Byte(escaped, 2),
    }
}

fn reference(text: &[u8]) -> Found {
    let inside = text.get(1..).unwrap_or_default();
    if let Some(number) = inside.strip_prefix(b"#") {
        let (radix, digits) = match number.split_first() {
            Some((b'x' | b'X', digits)) => (16, digits),
            _ => (10, number),
        };
        let count = digits.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
        if count == digits.len() {
            return Found::Open;
        }
        let number = digits.iter().take(count).filter_map(|byte| char::from(*byte).to_digit(radix));
        let code = number.fold(0u32, |code, digit| code.saturating_mul(radix).saturating_add(digit));
        let end = text.len() - digits.len() + count;
        return match count {
            0 => Found::None,
            _ => Found::Character(
                Some(char::from_u32(code).unwrap_or('?')),
                end + usize::from(text.get(end) == Some(&b';')),
            ),
        };
    }
    let count = inside.iter().take(5).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let name = inside.get(..count).unwrap_or_default();
    match (inside.get(count), NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))) {
        (None, _) if count < 5 => Found::Open,
        (Some(b';'), Some((_, byte))) => Found::Byte(*byte, count + 2),
        _ => Found::None,
    }
}

/// A mark without content.
fn mark(text: &[u8], mark: &[u8]) -> Found {
    let length = text.len().min(mark.len());
    match text.get(..length) == mark.get(..length) {
        true if length == mark.len() => Found::Character(None, length),
        true => Found::Open,
        false => Found::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_wherever_pieces_end() {
        let cases: &[(Escapes, &str, &str)] = &[
            (Escapes::Percent, "a%27+b%2", "a' b"),
            (Escapes::Percent, "100%25 %zz", "100% %zz"),
            (Escapes::Json, r#"\u0055\x4eION \"\\\n\u00e9 \q\uzz"#, "UNION \"\\\n\u{e9} quzz"),
            (
                Escapes::References,
                "&#49;&#x27;&#0000039&lt;&AMP;&nope; &b<![CDATA[x]]y]]>]<b>",
                "1''<&&nope; &bx]]y]<b>",
            ),
        ];
        for (escapes, text, expected) in cases {
            for piece in [1, 2, 3, 5, 100] {
                let (mut undo, mut output) = (Undo::new(*escapes), Vec::new());
                text.as_bytes().chunks(piece).for_each(|piece| _ = undo.feed(piece, &mut output));
                assert_eq!(String::from_utf8_lossy(&output), *expected, "{text} {piece}");
            }
        }
        let long = format!("&#{}65;", "0".repeat(200));
        assert_eq!(undone(long.as_bytes(), Escapes::References).as_deref(), Some(&b"A"[..]));
        assert_eq!(undone(br#"a \"b\" \u00e9"#, Escapes::Json), None, "what is not ASCII hides nothing");
        assert_eq!(undone(b"x\\u0027", Escapes::Json).as_deref(), Some(&b"x'"[..]));
    }
}
