//! Cuts a value into tokens, as the tokenizer of libinjection does: by the dialects of several databases at once.
//!
//! Where that tokenizer has oddities (NUL bytes belong to every run of digits), they are kept: the lists of fingerprints were
//! made with them.

use memchr::{memchr, memchr2_iter};

use super::marks::Marks;
use super::meter::Meter;
use super::token::{Kind, TEXT_LENGTH, Token};
use super::words;
use crate::short_mark;

/// How a value is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Dialect {
    /// As MySQL does: `#` begins a comment, and `--` only before white space.
    pub(in super::super) mysql: bool,
    /// As version 3 of libinjection: a number whose exponent has no digits (`1.e`) is a name. Version 4 skips it, as MySQL does.
    pub(in super::super) version_3: bool,
}

/// Findings that are reasons to read the value in another dialect, too.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DialectHints {
    /// How many tokens there were, comments among them.
    pub(super) tokens: usize,
    /// `--` before something other than white space, or `#`.
    pub(super) mysql_comment: bool,
    /// Text that versions 3 and 4 of libinjection tokenize differently.
    pub(super) version_matters: bool,
}

/// The tokens of a value.
pub(super) struct Tokens<'v, 'm> {
    value: &'v [u8],
    at: usize,
    last_at: usize,
    dialect: Dialect,
    /// The delimiter of the string that the value begins in.
    inside: Option<u8>,
    hints: DialectHints,
    meter: &'m mut Meter,
    /// Where long tokens end, if that is known.
    marks: Option<&'m Marks>,
    /// The end of the token was searched for although there are marks.
    searched: bool,
}

/// What a token costs at most whose end was known.
const KNOWN_LENGTH: usize = 64;

impl<'v, 'm> Tokens<'v, 'm> {
    /// The tokens from byte `at` on. `inside` is the delimiter of a string that has begun before.
    pub(super) fn new(
        value: &'v [u8],
        at: usize,
        inside: Option<u8>,
        dialect: Dialect,
        meter: &'m mut Meter,
        marks: Option<&'m Marks>,
    ) -> Self {
        Self { value, at, last_at: at, dialect, inside, hints: DialectHints::default(), meter, marks, searched: false }
    }

    /// The findings so far.
    pub(super) fn hints(&self) -> DialectHints {
        self.hints
    }

    /// Where the next token is looked for.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Where the last token began.
    pub(super) fn last_at(&self) -> usize {
        self.last_at
    }

    /// The next token; `None` at the end of the value, and once the meter has run out.
    pub(super) fn next(&mut self) -> Option<Token> {
        if let Some(delimiter) = self.inside.take().filter(|_| !self.value.is_empty()) {
            let before = self.at;
            let mut token = self.rest_of_string(self.at, 0, delimiter);
            token.at = before;
            self.hints.tokens += 1;
            return self.charge(&token, before).then_some(token);
        }
        loop {
            let byte = self.byte(self.at)?;
            let before = self.at;
            match self.token(byte) {
                Some(mut token) => {
                    self.hints.tokens += 1;
                    self.last_at = before;
                    token.at = before;
                    return self.charge(&token, before).then_some(token);
                }
                None if self.meter.charge(self.at.saturating_sub(before)) => {}
                None => return None,
            }
        }
    }

    /// Charges for a token that began at `before`; `false` if the limit is reached.
    fn charge(&mut self, token: &Token, before: usize) -> bool {
        let length = self.at.saturating_sub(before);
        let searched = std::mem::take(&mut self.searched);
        let known = self.marks.is_some()
            && !searched
            && (token.is_any(&[Kind::String, Kind::Comment, Kind::Evil]) || token.first() == b'[');
        let length = if known { length.min(KNOWN_LENGTH) } else { length };
        self.meter.charge(length) && self.meter.charge_token()
    }

    /// Charges for folding once; `false` if the limit is reached.
    pub(super) fn charge_fold(&mut self) -> bool {
        self.meter.charge_fold()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.value.get(at).copied()
    }

    fn rest(&self, from: usize) -> &'v [u8] {
        self.value.get(from..).unwrap_or_default()
    }

    /// The token at this byte, if there is one; what is next begins after it.
    fn token(&mut self, byte: u8) -> Option<Token> {
        match byte {
            0..=b' ' | 0x7f | 0xa0 => {
                self.at += 1;
                None
            }
            b'\'' | b'"' => {
                let start = self.at + 1;
                Some(self.rest_of_string(start, byte, byte))
            }
            b'`' => Some(self.quoted_name()),
            b'#' => Some(self.hash()),
            b'-' => Some(self.dash()),
            b'/' => Some(self.slash()),
            b'!' | b'&' | b'*' | b':' | b'<'..=b'>' | b'|' => Some(self.operator(byte)),
            b'%' | b'+' | b'^' | b'~' => Some(self.single(Kind::Operator)),
            b'(' => Some(self.single(Kind::LeftParenthesis)),
            b')' => Some(self.single(Kind::RightParenthesis)),
            b'{' => Some(self.single(Kind::LeftBrace)),
            b'}' => Some(self.single(Kind::RightBrace)),
            b',' => Some(self.single(Kind::Comma)),
            b';' => Some(self.single(Kind::Semicolon)),
            b'?' | b']' => Some(self.single(Kind::Unknown)),
            b'\\' if self.byte(self.at + 1) == Some(b'N') => Some(self.take(Kind::Number, 2)),
            b'\\' => Some(self.single(Kind::Backslash)),
            b'[' => Some(self.name_in_brackets()),
            b'@' => Some(self.variable()),
            b'$' => Some(self.money()),
            b'.' | b'0'..=b'9' => self.number(),
            b'b' | b'B' => Some(self.digits_in_quotes(|byte| matches!(byte, b'0' | b'1'))),
            b'x' | b'X' => Some(self.digits_in_quotes(|byte| byte.is_ascii_hexdigit())),
            b'e' | b'E' => Some(self.prefixed_string()),
            b'n' | b'N' if self.opens_string(self.at + 1) => Some(self.prefixed_string()),
            b'n' | b'N' => Some(self.oracle_string(self.at + 1)),
            b'q' | b'Q' => Some(self.oracle_string(self.at)),
            b'u' | b'U' => Some(self.unicode_string()),
            _ => Some(self.word()),
        }
    }

    /// A token of `length` bytes.
    fn take(&mut self, kind: Kind, length: usize) -> Token {
        let end = self.at.saturating_add(length).min(self.value.len());
        let token = Token::new(kind, self.value.get(self.at..end).unwrap_or_default());
        self.at = end;
        token
    }

    fn single(&mut self, kind: Kind) -> Token {
        self.take(kind, 1)
    }

    /// A single quote with at least one byte after it.
    fn opens_string(&self, at: usize) -> bool {
        self.byte(at) == Some(b'\'') && at + 1 < self.value.len()
    }

    fn line_comment(&mut self) -> Token {
        let end = match self.marks {
            Some(marks) => marks.line_end(self.at),
            None => memchr(b'\n', self.rest(self.at)).map(|end| self.at + end),
        };
        let token = self.take(Kind::Comment, end.unwrap_or(self.value.len()) - self.at);
        self.at = (self.at + 1).min(self.value.len());
        token
    }

    fn hash(&mut self) -> Token {
        self.hints.mysql_comment = true;
        if self.dialect.mysql { self.line_comment() } else { self.single(Kind::Operator) }
    }

    fn dash(&mut self) -> Token {
        match (self.byte(self.at + 1), self.byte(self.at + 2)) {
            (Some(b'-'), None) => self.line_comment(),
            (Some(b'-'), Some(after)) if is_white(after) => self.line_comment(),
            (Some(b'-'), Some(_)) if !self.dialect.mysql => {
                self.hints.mysql_comment = true;
                self.line_comment()
            }
            _ => self.single(Kind::Operator),
        }
    }

    /// A comment. PostgreSQL nests them, and MySQL runs what is in `/*! */`: both are evil.
    fn slash(&mut self) -> Token {
        if self.byte(self.at + 1) != Some(b'*') {
            return self.single(Kind::Operator);
        }
        let start = self.at + 2;
        let inside = self.rest(start);
        let runs = inside.first() == Some(&b'!');
        let end = match self.marks {
            Some(marks) => marks.comment_end(start),
            None => short_mark::find(inside, b"*/").map(|end| start + end),
        };
        let Some(end) = end else {
            return self.take(if runs { Kind::Evil } else { Kind::Comment }, inside.len() + 2);
        };
        let nests = match self.marks {
            Some(marks) => marks.comment_start(start).is_some_and(|nested| nested < end),
            None => short_mark::find(self.value.get(start..=end).unwrap_or_default(), b"/*").is_some(),
        };
        self.take(if runs || nests { Kind::Evil } else { Kind::Comment }, end + 2 - self.at)
    }

    /// A name of SQL Server.
    fn name_in_brackets(&mut self) -> Token {
        let end = match self.marks {
            Some(marks) => marks.bracket(self.at),
            None => memchr(b']', self.rest(self.at)).map(|end| self.at + end),
        };
        self.take(Kind::Bareword, end.map_or(self.value.len(), |end| end + 1) - self.at)
    }

    fn operator(&mut self, byte: u8) -> Token {
        let rest = self.rest(self.at);
        if rest.starts_with(b"<=>") {
            return self.take(Kind::Operator, 3);
        }
        if let Some(kind) = rest.get(..2).and_then(words::meaning) {
            return self.take(kind, 2);
        }
        // At the end of a value a colon is an operator, too.
        self.single(if byte == b':' && rest.len() > 1 { Kind::Colon } else { Kind::Operator })
    }

    /// The string whose text begins at `start`, up to a delimiter that is neither escaped nor doubled.
    fn rest_of_string(&mut self, start: usize, open: u8, delimiter: u8) -> Token {
        let text = self.rest(start);
        if let Some(marks) = self.marks {
            let end = marks.string_end(self.value, start, delimiter);
            self.at = end.map_or(self.value.len(), |end| end + 1);
            let text = self.value.get(start..end.unwrap_or(self.value.len())).unwrap_or_default();
            return Token::string(text, open, if end.is_some() { delimiter } else { 0 });
        }
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| memchr(delimiter, rest)) {
            let end = from + found;
            let before = text.get(..end).unwrap_or_default();
            if before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1 {
                from = end + 1;
            } else if text.get(end + 1) == Some(&delimiter) {
                from = end + 2;
            } else {
                self.at = start + end + 1;
                return Token::string(before, open, delimiter);
            }
        }
        self.at = self.value.len();
        Token::string(text, open, 0)
    }

    /// `E'...'`, `N'...'`.
    fn prefixed_string(&mut self) -> Token {
        if self.opens_string(self.at + 1) { self.rest_of_string(self.at + 2, b'\'', b'\'') } else { self.word() }
    }

    /// `U&'...'`.
    fn unicode_string(&mut self) -> Token {
        if !self.rest(self.at + 1).starts_with(b"&'") {
            return self.word();
        }
        let mut token = self.rest_of_string(self.at + 3, b'u', b'\'');
        token.close = if token.close == 0 { 0 } else { b'u' };
        token
    }

    /// `q'(...)'`, with any delimiter; `at` is the place of the `q`.
    fn oracle_string(&mut self, at: usize) -> Token {
        let opened = match (self.byte(at), self.byte(at + 1), self.byte(at + 2)) {
            (Some(b'q' | b'Q'), Some(b'\''), Some(open @ b'!'..=0x7f)) => open,
            _ => return self.word(),
        };
        let closing = match opened {
            b'(' => b')',
            b'[' => b']',
            b'{' => b'}',
            b'<' => b'>',
            other => other,
        };
        let start = at + 3;
        let end = match self.marks {
            Some(marks) => marks.before_quote(closing, start),
            None => self.find_from(start, &[closing, b'\'']),
        };
        self.string_until(start, end, 2, b'q')
    }

    /// The place of the next mark.
    fn find_from(&self, start: usize, mark: &[u8]) -> Option<usize> {
        short_mark::find(self.rest(start), mark).map(|end| start + end)
    }

    /// The string that begins at `start` and ends at a mark of this length, or with the value.
    fn string_until(&mut self, start: usize, end: Option<usize>, mark: usize, delimiter: u8) -> Token {
        let Some(end) = end else {
            self.at = self.value.len();
            return Token::string(self.rest(start), delimiter, 0);
        };
        self.at = end + mark;
        Token::string(self.value.get(start..end).unwrap_or_default(), delimiter, delimiter)
    }

    /// `b'0101'`, `x'1f'`.
    fn digits_in_quotes(&mut self, is_digit: impl Fn(u8) -> bool) -> Token {
        if !self.opens_string(self.at + 1) {
            return self.word();
        }
        let digits = run(self.rest(self.at + 2), is_digit);
        if self.byte(self.at + 2 + digits) == Some(b'\'') { self.take(Kind::Number, digits + 3) } else { self.word() }
    }

    /// A name in backticks.
    fn quoted_name(&mut self) -> Token {
        let mut token = self.rest_of_string(self.at + 1, b'`', b'`');
        token.kind = match words::meaning(token.text()) {
            Some(Kind::Function) => Kind::Function,
            _ => Kind::Bareword,
        };
        token
    }

    fn variable(&mut self) -> Token {
        self.at += if self.byte(self.at + 1) == Some(b'@') { 2 } else { 1 };
        match self.byte(self.at) {
            Some(b'`') => self.quoted_name().into_kind(Kind::Variable),
            Some(quote @ (b'\'' | b'"')) => self.rest_of_string(self.at + 1, quote, quote).into_kind(Kind::Variable),
            _ => {
                let rest = self.rest(self.at);
                let length = rest.iter().position(|byte| ends_variable(*byte)).unwrap_or(rest.len());
                self.take(Kind::Variable, length)
            }
        }
    }

    /// `$1,000.00`, and the strings of PostgreSQL: `$$...$$`, `$tag$...$tag$`.
    fn money(&mut self) -> Token {
        let start = self.at;
        let after = self.rest(start + 1);
        match run(after, |byte| matches!(byte, b'0'..=b'9' | b'.' | b',')) {
            0 => {}
            1 if after.first() == Some(&b'.') => return self.word(),
            digits => return self.take(Kind::Number, digits + 1),
        }
        if after.first() == Some(&b'$') {
            let end = match self.marks {
                Some(marks) => marks.double_dollar(start + 2),
                None => self.find_from(start + 2, b"$$"),
            };
            return self.string_until(start + 2, end, 2, b'$');
        }
        let letters = run(after, |byte| byte.is_ascii_alphabetic());
        if letters == 0 || after.get(letters) != Some(&b'$') {
            return self.single(Kind::Bareword);
        }
        let text_at = start + letters + 2;
        let tag = self.value.get(start..text_at).unwrap_or_default();
        // Tags differ, so their places are not known before: the search is charged for.
        self.searched = true;
        self.string_until(text_at, self.find_from(text_at, tag), tag.len(), b'$')
    }

    fn number(&mut self) -> Option<Token> {
        let rest = self.rest(self.at);
        let prefixed = match rest {
            [b'0', b'x' | b'X', digits @ ..] => Some(run(digits, |byte| byte.is_ascii_hexdigit())),
            [b'0', b'b' | b'B', digits @ ..] => Some(run(digits, |byte| matches!(byte, b'0' | b'1'))),
            _ => None,
        };
        match prefixed {
            Some(0) => return Some(self.take(Kind::Bareword, 2)),
            Some(digits) => return Some(self.take(Kind::Number, digits + 2)),
            None => {}
        }
        let digits_from = |from: usize| {
            let digits = rest.get(from..).unwrap_or_default();
            from + digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len())
        };
        let byte = |at: usize| rest.get(at).copied();
        let mut end = digits_from(0);
        if byte(end) == Some(b'.') {
            end = digits_from(end + 1);
            if end == 1 {
                return Some(self.single(Kind::Dot));
            }
        }
        let mut bare_exponent = false;
        if matches!(byte(end), Some(b'e' | b'E')) {
            end += 1;
            end += usize::from(matches!(byte(end), Some(b'+' | b'-')));
            let exponent = end;
            end = digits_from(end);
            bare_exponent = end == exponent;
        }
        // A suffix of Oracle's, also before `union`.
        if matches!(byte(end), Some(b'd' | b'D' | b'f' | b'F'))
            && byte(end + 1).is_none_or(|after| is_white(after) || matches!(after, b';' | b'u' | b'U'))
        {
            end += 1;
        }
        self.hints.version_matters |= bare_exponent;
        let token = self.take(if bare_exponent { Kind::Bareword } else { Kind::Number }, end);
        (!bare_exponent || self.dialect.version_3).then_some(token)
    }

    fn word(&mut self) -> Token {
        let rest = self.rest(self.at);
        let start = rest.get(..=TEXT_LENGTH).unwrap_or(rest);
        let kept = start.iter().position(|byte| ends_word(*byte)).unwrap_or(start.len()).min(TEXT_LENGTH);
        let kept_text = rest.get(..kept).unwrap_or_default();
        // `SELECT.1`, SELECT`column`
        for at in memchr2_iter(b'.', b'`', kept_text) {
            let meaning = kept_text.get(..at).and_then(words::meaning);
            if let Some(kind) = meaning.filter(|kind| *kind != Kind::Bareword) {
                return self.take(kind, at);
            }
        }
        let beyond = rest.get(kept..).unwrap_or_default();
        let length = kept + beyond.iter().position(|byte| ends_word(*byte)).unwrap_or(beyond.len());
        let kind = if length == kept { words::meaning(kept_text) } else { None };
        self.take(kind.unwrap_or(Kind::Bareword), length)
    }
}

/// How many bytes from the first one on are such digits, or NUL.
fn run(bytes: &[u8], is_digit: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| *byte != 0 && !is_digit(*byte)).unwrap_or(bytes.len())
}

/// White space to databases: with the NUL of Oracle and the no-break space of Latin-1.
const fn is_white(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0 | 0xa0)
}

/// Whether a word ends before this byte.
#[inline(always)]
fn ends_word(byte: u8) -> bool {
    /// A bit for each of 64 bytes.
    const fn ends(first: u8) -> u64 {
        let (mut bits, mut at) = (0, 0);
        while at < 64 {
            let byte = first + at;
            let ends = is_white(byte)
                || matches!(byte, b'!'..=b'#' | b'%'..=b'-' | b'/' | b':'..=b'@' | b'['..=b'^' | b'{'..=b'~');
            bits |= (ends as u64) << at;
            at += 1;
        }
        bits
    }
    const ENDS: [u64; 4] = [ends(0), ends(64), ends(128), ends(192)];
    ENDS.get(usize::from(byte >> 6)).is_some_and(|bits| bits >> (byte & 63) & 1 == 1)
}

/// Whether the name of a variable ends before this byte.
fn ends_variable(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0 | b' '..=b'#' | b'%'..=b'-' | b'/' | b':'..=b'@' | b'\\' | b'^' | b'`' | b'|' | b'~')
}
