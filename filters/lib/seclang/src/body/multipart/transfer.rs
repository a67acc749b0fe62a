//! `Content-Transfer-Encoding` (RFC 2045, section 6): abolished for forms, and still undone by some applications.

use memchr::{memchr, memchr2};

use crate::transform::sextet;

/// How much white space behind a `=` is kept, in bytes, until it shows whether the line ends there.
const LONGEST_BLANK: usize = 8192;

/// One way in which applications undo an encoding, of a text that arrives in pieces.
#[derive(Debug)]
pub(crate) enum Decoder {
    Base64(Base64),
    Quoted(Quoted),
}

/// The ways in which applications undo the encoding that a header names, in any case; none where it leaves a text as it
/// is. Applications read the header as one with parameters. `digits` says how many digits of base64 are in front of the
/// text: those of one alphabet, and those of both.
pub(crate) fn decoders(encoding: &[u8], digits: [usize; 2]) -> Vec<Decoder> {
    let name = encoding.get(..memchr(b';', encoding).unwrap_or(encoding.len())).unwrap_or_default().trim_ascii();
    if name.eq_ignore_ascii_case(b"base64") {
        let [one, both] = digits;
        vec![
            Decoder::Base64(Base64::behind(one, false, false)),
            Decoder::Base64(Base64::behind(both, true, one != both)),
        ]
    } else if name.eq_ignore_ascii_case(b"quoted-printable") {
        let readings = [Breaks::Strict, Breaks::Php, Breaks::Python];
        Vec::from(readings.map(|breaks| Decoder::Quoted(Quoted::new(breaks))))
    } else {
        Vec::new()
    }
}

/// The texts that a value stands for, in each way that applications decode it, each text once; none where the encoding
/// leaves it as it is.
pub(super) fn decoded(encoding: &[u8], value: &[u8]) -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    for mut decoder in decoders(encoding, [0; 2]) {
        let mut text = Vec::with_capacity(value.len());
        decoder.feed(value, &mut text);
        decoder.end(&mut text);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

impl Decoder {
    /// Appends what the next bytes stand for. Returns whether the first of the [`decoders`] may make another text of
    /// them.
    pub(crate) fn feed(&mut self, bytes: &[u8], output: &mut Vec<u8>) -> bool {
        match self {
            Self::Base64(base64) => base64.feed(bytes, output),
            Self::Quoted(quoted) => quoted.feed(bytes, output),
        }
    }

    /// Nothing follows.
    fn end(&mut self, output: &mut Vec<u8>) {
        if let Self::Quoted(quoted) = self {
            quoted.end(output);
        }
    }
}

/// Undoes base64. Whatever is no digit is skipped, `=` included: decoders differ in where they stop, and what they have
/// up to there is the same.
#[derive(Debug)]
pub(crate) struct Base64 {
    /// Whether `-` and `_` are digits (RFC 4648, section 5). Some applications skip them.
    both_alphabets: bool,
    /// Digits of the second alphabet were read: from there on the groups are others.
    differs: bool,
    /// The bits of an incomplete group, and how many digits there are of it.
    bits: u32,
    count: usize,
}

impl Base64 {
    /// Begins behind so many digits.
    fn behind(digits: usize, both_alphabets: bool, differs: bool) -> Self {
        Self { both_alphabets, differs, bits: 0, count: digits % 4 }
    }

    fn feed(&mut self, bytes: &[u8], output: &mut Vec<u8>) -> bool {
        self.differs |= self.both_alphabets && memchr2(b'-', b'_', bytes).is_some();
        for digit in bytes.iter().filter_map(|byte| base64_digit(*byte, self.both_alphabets)) {
            self.bits = self.bits << 6 | u32::from(digit);
            self.count += 1;
            // Each digit but the first of a group completes a byte.
            let left = match self.count {
                2 => 4,
                3 => 2,
                4 => 0,
                _ => continue,
            };
            output.push(u8::try_from(self.bits >> left & 0xff).unwrap_or_default());
            self.count %= 4;
        }
        self.differs
    }
}

/// The value of a digit of base64.
pub(crate) fn base64_digit(byte: u8, both_alphabets: bool) -> Option<u8> {
    match byte {
        b'-' if both_alphabets => Some(62),
        b'_' if both_alphabets => Some(63),
        _ => sextet(byte),
    }
}

/// Which soft line breaks an application knows, besides a `=` in front of `\n` or `\r\n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breaks {
    /// No others. A `=` at the end of the text stays.
    Strict,
    /// White space may stand behind the `=` (RFC 2045, section 6.7), and `\r` alone ends a line, as the text does.
    Php,
    /// Behind `=\r` all is passed over up to the next `\n`, or the end of the text.
    Python,
}

/// Undoes quoted-printable: `=XX` is a byte, a soft line break is nothing, all else stays.
#[derive(Debug)]
pub(crate) struct Quoted {
    breaks: Breaks,
    place: Place,
    /// White space behind the `=`, which may be in front of the end of a line.
    blank: Vec<u8>,
}

/// Where the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Text,
    /// Behind a `=`, and what is in `blank`.
    Sign,
    /// Behind a `=` and this hexadecimal digit.
    Digit(u8),
    /// Behind a `=`, what is in `blank`, and `\r`.
    Return,
    /// In a line that is passed over.
    Skipped,
}

impl Quoted {
    fn new(breaks: Breaks) -> Self {
        Self { breaks, place: Place::Text, blank: Vec::new() }
    }

    fn feed(&mut self, bytes: &[u8], output: &mut Vec<u8>) -> bool {
        bytes.iter().fold(false, |differs, byte| self.take(*byte, output) | differs)
    }

    /// Takes one byte. Returns whether it is, or ends, a break that the strict reading does not know.
    fn take(&mut self, byte: u8, output: &mut Vec<u8>) -> bool {
        match (self.place, byte) {
            (Place::Text, _) => self.text(byte, output),
            (Place::Sign | Place::Return, b'\n') => {
                let differs = !self.blank.is_empty();
                self.blank.clear();
                self.place = Place::Text;
                return differs;
            }
            (Place::Sign, b'\r') => self.place = Place::Return,
            (Place::Sign, b' ' | b'\t') if self.breaks == Breaks::Php => {
                if self.blank.len() < LONGEST_BLANK {
                    self.blank.push(byte);
                }
            }
            (Place::Sign, _) if self.blank.is_empty() && byte.is_ascii_hexdigit() => self.place = Place::Digit(byte),
            (Place::Digit(high), _) if byte.is_ascii_hexdigit() => {
                output.push(hex(high) << 4 | hex(byte));
                self.place = Place::Text;
            }
            (Place::Return, _) if self.breaks == Breaks::Php => {
                self.blank.clear();
                self.text(byte, output);
                return true;
            }
            (Place::Return, _) if self.breaks == Breaks::Python => {
                self.place = Place::Skipped;
                return true;
            }
            (Place::Skipped, _) => {
                if byte == b'\n' {
                    self.place = Place::Text;
                }
                return true;
            }
            (Place::Sign | Place::Digit(_) | Place::Return, _) => {
                self.give_up(output);
                self.text(byte, output);
            }
        }
        false
    }

    /// Takes a byte that belongs to nothing before it.
    fn text(&mut self, byte: u8, output: &mut Vec<u8>) {
        if byte == b'=' {
            self.place = Place::Sign;
        } else {
            output.push(byte);
            self.place = Place::Text;
        }
    }

    /// What began with a `=` is no escape: it stays.
    fn give_up(&mut self, output: &mut Vec<u8>) {
        output.push(b'=');
        output.append(&mut self.blank);
        match self.place {
            Place::Digit(digit) => output.push(digit),
            Place::Return => output.push(b'\r'),
            _ => {}
        }
    }

    fn end(&mut self, output: &mut Vec<u8>) {
        match (self.place, self.breaks) {
            (Place::Text | Place::Skipped, _) => {}
            (Place::Sign | Place::Return, Breaks::Php | Breaks::Python) => {}
            _ => self.give_up(output),
        }
    }
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(encoding: &str, value: &str) -> Vec<String> {
        let decoded = decoded(encoding.as_bytes(), value.as_bytes());
        decoded.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }

    #[test]
    fn undoes_what_changes_bytes() {
        for (encoding, value, expected) in [
            (" Base64 ", "PHNj\r\ncmlwdD4=", &["<script>"][..]),
            ("base64; x=y", "PHNjcmlwdD4", &["<script>"]),
            ("BASE64 ;", "PHNjcmlwdD4", &["<script>"]),
            // Python passes over a `=` where no group ends.
            ("base64", "J=yBvciAxPTEgLS0g", &["' or 1=1 -- "]),
            ("base64", "=Jy=BvciA*xPTE!gLS0g", &["' or 1=1 -- "]),
            // Some skip the digits of the other alphabet, some read them.
            ("base64", "Pz8-", &["??", "??>"]),
            ("quoted-printable", "=3Cscr=\r\nip=\nt=3e =zz =3", &["<script> =zz =3"]),
            ("quoted-printable", "=3=41 ==41=4", &["=3A =A=4"]),
            ("8bit", "PHNj", &[]),
            ("x; base64", "PHNj", &[]),
        ] {
            assert_eq!(texts(encoding, value), expected, "{encoding}: {value}");
        }
        assert_eq!(texts("base64", "PHN-jcm_lwdD4=").first().map(String::as_str), Some("<script>"));
    }

    /// Each value with its strict reading, that of PHP and that of Python, equal ones once.
    #[test]
    fn quoted_text_is_read_in_each_way_that_applications_do() {
        for (value, expected) in [
            ("=\r=27 or 1=3D1 -- \r\nx", &["=\r' or 1=1 -- \r\nx", "' or 1=1 -- \r\nx", "x"][..]),
            ("=6fnload= \n=61lert(1)", &["onload= \nalert(1)", "onloadalert(1)"]),
            ("<scr=\t\r\nipt> = x", &["<scr=\t\r\nipt> = x", "<script> = x"]),
            ("<scr=\t\ript>", &["<scr=\t\ript>", "<script>"]),
            ("<scr=\rxyz\nipt>", &["<scr=\rxyz\nipt>", "<scrxyz\nipt>", "<script>"]),
            ("1=", &["1=", "1"]),
            ("1= ", &["1= ", "1"]),
            ("1=\r", &["1=\r", "1"]),
        ] {
            assert_eq!(texts("Quoted-Printable; a=b", value), expected, "{value}");
        }
    }

    #[test]
    fn pieces_are_decoded_as_the_whole_and_differences_are_reported() {
        for (value, differ) in [
            ("=3Cscr=\r\nipt=3e =zz a=\nb = x = =", [false; 3]),
            ("<scr= \t\nip=  \r\nt>", [false, true, false]),
            ("a=\rxyz\nb", [false, true, true]),
        ] {
            for piece in [1, 2, 3, 100] {
                let pieces = decoders(b"quoted-printable", [0; 2]).into_iter().map(|mut decoder| {
                    let (mut text, mut differs) = (Vec::new(), false);
                    value.as_bytes().chunks(piece).for_each(|piece| differs |= decoder.feed(piece, &mut text));
                    decoder.end(&mut text);
                    (String::from_utf8(text).unwrap(), differs)
                });
                let (read, reported): (Vec<_>, Vec<_>) = pieces.unzip();
                assert_eq!(reported, differ, "{value} {piece}");
                assert!(texts("quoted-printable", value).iter().all(|text| read.contains(text)), "{value} {piece}");
            }
        }
    }
}
