//! The character set of a body, as a media type or a form names it.
//!
//! Rules look for ASCII. An application that reads a body in EBCDIC, UTF-7 or UTF-16 finds words in it that no rule has
//! seen. What counts is the name that any parser may find: names of parameters are of any case, values may be quoted, and
//! some parsers look for `charset=` wherever it is.

use memchr::memmem;

const PARAMETER: &[u8] = b"charset";

/// The longest name that is compared, in bytes: no known one is as long.
const LONGEST_NAME: usize = 64;

/// The character set that a message says it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Charset {
    /// It names none.
    #[default]
    Unnamed,
    /// One in which the bytes of ASCII are ASCII, and nothing else is.
    Ascii,
    /// Another one, one that is not known, or several.
    Foreign,
}

impl Charset {
    /// The character set that a media type names, the value of a `Content-Type` header.
    #[must_use]
    pub fn of_media_type(media_type: &[u8]) -> Self {
        Self::of_all(parameters(&media_type.to_ascii_lowercase()))
    }

    /// The character set that several parameters name together. Reads none behind one that is foreign: with what follows it
    /// is foreign, too.
    fn of_all(mut named: impl Iterator<Item = Self>) -> Self {
        let all =
            named.try_fold(Self::Unnamed, |found, named| Some(found.and(named)).filter(|all| *all != Self::Foreign));
        all.unwrap_or(Self::Foreign)
    }

    /// The character set of this name, in any case; an empty name is none.
    #[must_use]
    pub fn named(name: &[u8]) -> Self {
        let name = name.trim_ascii();
        match name.is_empty() {
            true => Self::Unnamed,
            false if name.len() <= LONGEST_NAME && is_ascii(name) => Self::Ascii,
            false => Self::Foreign,
        }
    }

    /// The character set that two places of a message name together. Applications differ in which one they use.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unnamed, named) | (named, Self::Unnamed) => named,
            _ => Self::Foreign,
        }
    }
}

/// What each occurrence of the word in a media type names; the media type is in lower case.
fn parameters(media_type: &[u8]) -> impl Iterator<Item = Charset> {
    memmem::find_iter(media_type, PARAMETER)
        .map(|at| parameter(media_type.get(at + PARAMETER.len()..).unwrap_or_default()))
}

/// What follows the word, in lower case: the value if it is the name of a parameter.
fn parameter(after: &[u8]) -> Charset {
    let is_quote = |byte: u8| matches!(byte, b'"' | b'\'');
    let blank = after.iter().take_while(|byte| byte.is_ascii_whitespace() || is_quote(**byte)).count();
    match after.get(blank..).and_then(<[u8]>::split_first) {
        // An extended or a continued parameter (RFC 2231).
        Some((b'*', _)) => Charset::Foreign,
        Some((b'=', value)) => {
            let value = value.trim_ascii_start();
            let Some((quote, inside)) = value.split_first().filter(|(first, _)| is_quote(**first)) else {
                let end = value.iter().position(|byte| matches!(byte, b';' | b','));
                return Charset::named(value.get(..end.unwrap_or(value.len())).unwrap_or_default());
            };
            match inside.iter().position(|byte| byte == quote) {
                Some(end) => Charset::named(inside.get(..end).unwrap_or_default()),
                None => Charset::Foreign,
            }
        }
        _ => Charset::Unnamed,
    }
}

/// Names without their marks, as these are left out or changed.
const ASCII: &[&str] = &[
    "utf8",
    "unicode11utf8",
    "xunicode20utf8",
    "usascii",
    "ascii",
    "ansix341968",
    "iso646us",
    "us",
    "latin1",
    "latin2",
    "latin3",
    "latin4",
    "latin5",
    "latin6",
    "latin9",
    "l1",
    "l2",
    "l3",
    "l4",
    "l5",
    "l6",
    "l9",
    "iso885911987",
    "iso885921987",
    "iso885931988",
    "iso885941988",
    "iso885951988",
    "iso885961987",
    "iso885971987",
    "iso885981988",
    "iso885991989",
    "iso88596e",
    "iso88596i",
    "iso88598e",
    "iso88598i",
    "arabic",
    "cyrillic",
    "greek",
    "hebrew",
    "windows874",
    "dos874",
    "cp874",
    "tis620",
    "koi8r",
    "koi8u",
    "koi8ru",
    "koi8",
    "koi",
    "macintosh",
    "xmacroman",
    "xmaccyrillic",
    "ibm866",
    "cp866",
    "gb2312",
    "gbk",
    "gb18030",
    "xgbk",
    "cp936",
    "windows936",
    "big5",
    "big5hkscs",
    "xxbig5",
    "cp950",
    "windows950",
    "eucjp",
    "xeucjp",
    "euckr",
    "cp949",
    "windows949",
    "ksc56011987",
    "shiftjis",
    "sjis",
    "xsjis",
    "windows31j",
    "cp932",
    "ms932",
];

/// Whether every byte of ASCII is itself in the character set, and no other byte stands for a character of ASCII.
fn is_ascii(name: &[u8]) -> bool {
    let marks = |byte: &u8| matches!(byte, b'-' | b'_' | b':' | b'.');
    let plain: Vec<u8> = name.iter().filter(|byte| !marks(byte)).map(u8::to_ascii_lowercase).collect();
    let numbered = |prefix: &[u8], most: std::ops::RangeInclusive<u8>| {
        let number = plain.strip_prefix(prefix).and_then(|number| std::str::from_utf8(number).ok());
        number
            .filter(|number| !number.starts_with('+'))
            .and_then(|number| number.parse().ok())
            .is_some_and(|n| most.contains(&n))
    };
    ASCII.iter().any(|known| known.as_bytes() == plain)
        || numbered(b"iso8859", 1..=16)
        || numbered(b"windows125", 0..=8)
        || numbered(b"cp125", 0..=8)
        || numbered(b"xcp125", 0..=8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_sets_are_known_by_all_their_names() {
        for name in [
            "utf-8",
            "UTF8",
            "us-ascii",
            "ISO-8859-1",
            "iso8859_15",
            "ISO_8859-1:1987",
            "windows-1252",
            "cp1251",
            "Shift_JIS",
        ] {
            for value in [
                name.to_owned(),
                format!("\"{name}\""),
                format!("'{name}'"),
                format!(" {name} ;a=b"),
                format!("{name}, x/y"),
            ] {
                for parameter in ["charset", "Charset", "CHARSET ", "a=b; charset"] {
                    let media_type = format!("text/plain; {parameter}={value}");
                    assert_eq!(Charset::of_media_type(media_type.as_bytes()), Charset::Ascii, "{media_type}");
                }
            }
        }
        for none in [
            "",
            "text/plain",
            "text/plain; charset=",
            "text/plain; charset=\"\"",
            "a/charset; b=c",
            "a/b; c=\"charset\"; d=e",
        ] {
            assert_eq!(Charset::of_media_type(none.as_bytes()), Charset::Unnamed, "{none}");
        }
    }

    #[test]
    fn every_other_set_is_foreign_however_it_is_named() {
        for name in [
            "ibm037",
            "IBM037",
            "cp500",
            "utf-7",
            "utf-16",
            "utf-16le",
            "UTF-32",
            "iso-2022-jp",
            "hz-gb-2312",
            "iso-8859-17",
            "windows-1259",
            "windows-125+2",
            "x-user-defined",
        ] {
            for parameter in [
                format!("charset={name}"),
                format!("Charset={name}"),
                format!("cHARSET=\"{name}\""),
                format!("charset = '{name}'"),
                format!("xcharset=utf-8; charset={name}"),
                format!("a=\"charset=utf-8\"; charset={name}"),
                format!("charset=\"\\{name}\""),
                format!("charset=utf-8{name}"),
                format!("charset=utf-8 {name}"),
                format!(";charset\t={name}"),
                format!("a=\"; charset={name}"),
            ] {
                let media_type = format!("application/x-www-form-urlencoded; {parameter}");
                assert_eq!(Charset::of_media_type(media_type.as_bytes()), Charset::Foreign, "{media_type}");
            }
        }
        for parameter in [
            "charset=utf-8; charset=utf-8",
            "charset=utf-8; Charset=latin1",
            "charset*=utf-8''utf-8",
            "charset*0=utf; charset*1=-8",
            "charset=\"utf-8",
        ] {
            assert_eq!(Charset::of_media_type(format!("a/b; {parameter}").as_bytes()), Charset::Foreign, "{parameter}");
        }
    }

    #[test]
    fn parameters_are_read_up_to_a_foreign_one() {
        let read = |media_type: &str| {
            let mut read = 0;
            let charset = Charset::of_all(parameters(media_type.as_bytes()).inspect(|_| read += 1));
            assert_eq!(Charset::of_media_type(media_type.as_bytes()), charset);
            (charset, read)
        };
        // Every one of them is followed by all the others, up to a mark that does not come.
        assert_eq!(read(&"charset=".repeat(12_000)), (Charset::Foreign, 1));
        assert_eq!(read(&"charset=utf-8;".repeat(7000)), (Charset::Foreign, 2));
        assert_eq!(read(&format!("charset={}8", "utf-".repeat(20_000))), (Charset::Foreign, 1));
        // What names nothing ends where it stands.
        assert_eq!(read(&"charset;".repeat(12_000)), (Charset::Unnamed, 12_000));
        assert_eq!(read(&"charset=;".repeat(11_000)), (Charset::Unnamed, 11_000));
        assert_eq!(Charset::named(&[b"utf".as_slice(), &[b'-'; 60], b"8"].concat()), Charset::Ascii);
        assert_eq!(Charset::named(&[b"utf".as_slice(), &[b'-'; 61], b"8"].concat()), Charset::Foreign);
    }
}
