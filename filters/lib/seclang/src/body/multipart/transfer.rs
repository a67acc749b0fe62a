//! `Content-Transfer-Encoding` (RFC 2045, section 6): abolished for forms, and still undone by some applications.

use memchr::{memchr, memchr2};

/// What undoes an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransferEncoding {
    Base64,
    QuotedPrintable,
}

impl TransferEncoding {
    /// The encoding that a header names, in any case; `None` where it leaves a value as it is. Applications read the header
    /// as one with parameters.
    pub(crate) fn of(value: &[u8]) -> Option<Self> {
        let name = value.get(..memchr(b';', value).unwrap_or(value.len())).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"base64") {
            Some(Self::Base64)
        } else if name.eq_ignore_ascii_case(b"quoted-printable") {
            Some(Self::QuotedPrintable)
        } else {
            None
        }
    }
}

/// Undoes base64 that arrives in pieces. Whatever is no digit is skipped, `=` included: decoders differ in where they stop,
/// and what they have up to there is the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base64 {
    /// Whether `-` and `_` are digits (RFC 4648, section 5). Some applications skip them.
    both_alphabets: bool,
    /// The bits of an incomplete group, and how many digits there are of it.
    bits: u32,
    count: usize,
}

impl Base64 {
    /// Begins behind so many digits.
    pub(crate) fn behind(digits: usize, both_alphabets: bool) -> Self {
        Self { both_alphabets, bits: 0, count: digits % 4 }
    }

    /// The bytes that the next digits complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], output: &mut Vec<u8>) {
        for digit in bytes.iter().filter_map(|byte| base64_digit(*byte, self.both_alphabets)) {
            self.bits = self.bits << 6 | digit;
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
    }
}

/// The value of a digit of base64.
pub(crate) fn base64_digit(byte: u8, both_alphabets: bool) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        b'-' if both_alphabets => 62,
        b'_' if both_alphabets => 63,
        _ => return None,
    }))
}

/// Whether text in base64 is another one to applications that know both alphabets.
pub(crate) fn has_second_alphabet(encoded: &[u8]) -> bool {
    memchr2(b'-', b'_', encoded).is_some()
}

/// The bytes that a value stands for, in each way that applications decode it; none where the encoding leaves it as it is.
pub(super) fn decoded(encoding: &[u8], value: &[u8]) -> Vec<Vec<u8>> {
    match TransferEncoding::of(encoding) {
        None => Vec::new(),
        Some(TransferEncoding::QuotedPrintable) => vec![quoted_printable(value)],
        Some(TransferEncoding::Base64) => {
            let decode = |both_alphabets: bool| {
                let mut output = Vec::with_capacity(value.len() / 4 * 3 + 3);
                Base64::behind(0, both_alphabets).feed(value, &mut output);
                output
            };
            let second = has_second_alphabet(value).then(|| decode(true));
            [decode(false)].into_iter().chain(second).collect()
        }
    }
}

/// The length of a soft line break at the beginning of a text: `=`, and the end of its line. White space between them is
/// none of the text (RFC 2045, section 6.7), and behind a carriage return alone Python passes over the rest of the line.
pub(crate) fn soft_break(text: &[u8]) -> Option<usize> {
    let after = text.strip_prefix(b"=")?;
    let blank = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let end = match after.get(blank)? {
        b'\n' => 0,
        b'\r' => memchr(b'\n', after.get(blank..)?)?,
        _ => return None,
    };
    Some(1 + blank + end + 1)
}

/// `=XX` is a byte, `=` at the end of a line joins it with the next one; everything else stays.
fn quoted_printable(value: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(value.len());
    // Behind the last line there is nothing to join with: its end is not searched again for each `=`.
    let last_line = memchr::memrchr(b'\n', value).map_or(0, |end| end + 1);
    let mut rest = value;
    while let Some((&byte, after)) = rest.split_first() {
        let at = value.len() - rest.len();
        if byte != b'=' {
            decoded.push(byte);
            rest = after;
        } else if let (Some(high), Some(low)) = (digit(after.first()), digit(after.get(1))) {
            decoded.push(high << 4 | low);
            rest = after.get(2..).unwrap_or_default();
        } else if let Some(joined) = Some(rest).filter(|_| at < last_line).and_then(soft_break) {
            rest = rest.get(joined..).unwrap_or_default();
        } else {
            decoded.push(byte);
            rest = after;
        }
    }
    decoded
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
            ("quoted-printable", "=3Cscr=\r\nipt=3e =zz =", &["<script> =zz ="]),
            ("Quoted-Printable; a=b", "=3Cscr= \t\nipt=3e =", &["<script> ="]),
            ("quoted-printable", "<scr=\rxyz\nipt> =\rx", &["<script> =\rx"]),
            ("8bit", "PHNj", &[]),
            ("x; base64", "PHNj", &[]),
        ] {
            assert_eq!(texts(encoding, value), expected, "{encoding}: {value}");
        }
        assert_eq!(texts("base64", "PHN-jcm_lwdD4=").first().map(String::as_str), Some("<script>"));
    }
}
