//! The `Content-Disposition` header of a part.

/// Why other parsers may read a part with a filename as a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doubt {
    /// Some clients send it so: the filename is not in quotes (.NET), or the part has no `Content-Type` (Python).
    Loose,
    /// No client sends it so: white space around `=`, something behind the last parameter, a filename of slashes alone.
    Odd,
}

/// The parameters of a `Content-Disposition`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Disposition {
    pub(super) name: Option<Vec<u8>>,
    pub(super) filename: Option<Vec<u8>>,
    /// `filename*` (RFC 5987), decoded.
    pub(super) extended_filename: Option<Vec<u8>>,
    /// Where there is a filename: whether others may not see it.
    pub(super) doubt: Option<Doubt>,
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Skips blanks; tells whether there were any.
    fn blanks(&mut self) -> bool {
        !self.take_while(|byte| matches!(byte, b' ' | b'\t')).is_empty()
    }

    fn take_while(&mut self, predicate: impl Fn(u8) -> bool) -> &'a [u8] {
        let length = self.rest.iter().take_while(|&&byte| predicate(byte)).count();
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, b""));
        self.rest = rest;
        taken
    }

    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }
}

const MALFORMED: &str = "Multipart: Invalid Content-Disposition header.";
const DUPLICATE: &str = "Multipart: Invalid Content-Disposition header (duplicate parameter).";
const EXTENDED: &str = "Multipart: Invalid Content-Disposition header (filename*).";

impl Disposition {
    /// Parses a value: `form-data` with the parameters `name`, `filename` and `filename*`, each at most once, and no other.
    ///
    /// `invalid_quoting` is set for single quotes around or inside of a parameter (within double quotes they are text),
    /// and for text after a closing quote.
    pub(super) fn parse(value: &[u8], invalid_quoting: &mut bool) -> Result<Self, &'static str> {
        let mut disposition = Self::default();
        let mut cursor = Cursor { rest: value.strip_prefix(b"form-data").ok_or(MALFORMED)? };
        cursor.blanks();
        match cursor.next() {
            None => return Ok(disposition),
            Some(b';') => {}
            Some(_) => return Err(MALFORMED),
        }
        let mut doubt = None;
        while !cursor.rest.is_empty() {
            cursor.blanks();
            let name = cursor.take_while(|byte| !matches!(byte, b'=' | b' ' | b'\t'));
            let mut blanks = cursor.blanks();
            if cursor.next() != Some(b'=') {
                return Err(MALFORMED);
            }
            blanks |= cursor.blanks();
            doubt = doubt.max(blanks.then_some(Doubt::Odd));
            if name == b"filename*" {
                let value = extended(cursor.take_while(|byte| !matches!(byte, b';' | b' ' | b'\t')))?;
                if disposition.extended_filename.replace(value).is_some() {
                    return Err(DUPLICATE);
                }
                cursor.blanks();
                match cursor.next() {
                    None | Some(b';') => continue,
                    Some(_) => return Err(MALFORMED),
                }
            }
            let within_double_quotes = cursor.rest.first() == Some(&b'"');
            let (value, quoted) = match cursor.rest.first() {
                Some(&quote @ (b'"' | b'\'')) => {
                    *invalid_quoting |= quote == b'\'';
                    (quoted(&mut cursor)?, true)
                }
                Some(_) => (cursor.take_while(is_token).to_vec(), false),
                None => return Err(MALFORMED),
            };
            *invalid_quoting |= !within_double_quotes && value.contains(&b'\'');
            let target = match name {
                b"name" => &mut disposition.name,
                b"filename" => &mut disposition.filename,
                _ => return Err("Multipart: Invalid Content-Disposition header (unknown parameter)."),
            };
            let is_filename = name == b"filename";
            if is_filename {
                // JavaScript's `.` matches no separator of lines: a pattern of it finds no file name then.
                let separators =
                    [b"\xe2\x80\xa8", b"\xe2\x80\xa9"].iter().any(|line| memchr::memmem::find(&value, *line).is_some());
                doubt = doubt.max(separators.then_some(Doubt::Odd));
                let slashes = !value.is_empty() && value.iter().all(|byte| matches!(byte, b'/' | b'\\'));
                doubt = doubt.max(slashes.then_some(Doubt::Odd)).max((!within_double_quotes).then_some(Doubt::Loose));
            }
            if target.replace(value).is_some() {
                return Err(DUPLICATE);
            }
            let blanks = cursor.blanks();
            match cursor.next() {
                None => doubt = doubt.max(blanks.then_some(Doubt::Odd)),
                // Behind a file name some parsers want a space, and take the part for a field without it.
                Some(b';') => {
                    let bare = cursor.rest.is_empty() || is_filename && cursor.rest.first() != Some(&b' ');
                    doubt = doubt.max((blanks || bare).then_some(Doubt::Odd));
                }
                Some(_) => {
                    *invalid_quoting |= quoted;
                    return Err(MALFORMED);
                }
            }
        }
        // Parsers that do not know `filename*` see a field, others a file.
        if disposition.extended_filename.is_some() && disposition.filename.is_none() {
            return Err("Multipart: Invalid Content-Disposition header (filename* without filename).");
        }
        // Some parsers only look for this text: what they would not find must not be a file here.
        if disposition.filename.as_ref().is_some_and(|filename| !filename.is_empty())
            && memchr::memmem::find(value, b"filename=").is_none()
        {
            return Err("Multipart: Invalid Content-Disposition header (filename).");
        }
        disposition.doubt = doubt.filter(|_| disposition.filename.is_some());
        Ok(disposition)
    }
}

/// A quoted value; a backslash escapes the quote and itself, before anything else it stands for itself.
fn quoted(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, &'static str> {
    let quote = cursor.next().ok_or(MALFORMED)?;
    let mut value = Vec::new();
    loop {
        match cursor.next().ok_or(MALFORMED)? {
            byte if byte == quote => return Ok(value),
            b'\\' => match cursor.rest.first() {
                None => return Err(MALFORMED),
                Some(&escaped) if escaped == quote || escaped == b'\\' => value.extend(cursor.next()),
                Some(_) => value.push(b'\\'),
            },
            byte => value.push(byte),
        }
    }
}

/// An extended value (RFC 5987, section 3.2): `UTF-8'en'%e2%82%ac.txt`. The bytes are in the character set it names.
fn extended(value: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut pieces = value.splitn(3, |&byte| byte == b'\'');
    let (Some(charset), Some(_language), Some(text)) = (pieces.next(), pieces.next(), pieces.next()) else {
        return Err(EXTENDED);
    };
    if charset.is_empty() || !charset.iter().copied().all(is_token) {
        return Err(EXTENDED);
    }
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(text.len());
    let mut cursor = Cursor { rest: text };
    while let Some(byte) = cursor.next() {
        if byte == b'%' {
            let (Some(high), Some(low)) = (digit(cursor.next()), digit(cursor.next())) else {
                return Err(EXTENDED);
            };
            decoded.push(high << 4 | low);
        } else if is_token(byte) && byte != b'\'' {
            decoded.push(byte);
        } else {
            return Err(EXTENDED);
        }
    }
    Ok(decoded)
}

/// A character of a token (RFC 2045, section 5.1).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !matches!(
            byte,
            b'(' | b')' | b'<' | b'>' | b'@' | b',' | b';' | b':' | b'\\' | b'"' | b'/' | b'[' | b']' | b'?' | b'='
        )
}
