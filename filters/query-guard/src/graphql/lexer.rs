//! Tokens of GraphQL (specification of October 2021, section 2.1): one pass, nothing copied.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// One of `! $ & ( ) : = @ [ ] { | }`.
    Mark(u8),
    /// `...`
    Spread,
    Name(&'a str),
    Int(&'a str),
    Float(&'a str),
    /// A string or a block string; its text is not needed.
    String,
    End,
}

/// What is wrong with a document, and at which byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

/// Reads tokens one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn byte(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at.saturating_add(offset)).copied()
    }

    fn wrong<T>(&self, what: &'static str) -> Result<T, SyntaxError> {
        Err(SyntaxError { at: self.at, what })
    }

    /// The next token, and where it begins.
    pub(crate) fn next(&mut self) -> Result<(Token<'a>, usize), SyntaxError> {
        self.skip()?;
        let start = self.at;
        let Some(first) = self.byte(0) else { return Ok((Token::End, start)) };
        let token = match first {
            b'!' | b'$' | b'&' | b'(' | b')' | b':' | b'=' | b'@' | b'[' | b']' | b'{' | b'|' | b'}' => {
                self.at += 1;
                Token::Mark(first)
            }
            b'.' if self.byte(1) == Some(b'.') && self.byte(2) == Some(b'.') => {
                self.at += 3;
                Token::Spread
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                self.run(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
                Token::Name(self.since(start))
            }
            b'-' | b'0'..=b'9' => self.number(start)?,
            b'"' => self.string()?,
            _ => return self.wrong("a character that GraphQL does not know"),
        };
        Ok((token, start))
    }

    /// White space, commas, comments, and a byte order mark.
    fn skip(&mut self) -> Result<(), SyntaxError> {
        while let Some(byte) = self.byte(0) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b',' => self.at += 1,
                b'#' => self.comment()?,
                0xef if self.byte(1) == Some(0xbb) && self.byte(2) == Some(0xbf) => self.at += 3,
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// A comment. graphql-java ends it at U+2028 and U+2029, other servers do not.
    fn comment(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        self.run(|byte| byte != b'\n' && byte != b'\r');
        if self.since(start).contains(['\u{2028}', '\u{2029}']) {
            return self.wrong("a separator of lines or paragraphs in a comment");
        }
        Ok(())
    }

    fn run(&mut self, fits: impl Fn(u8) -> bool) {
        while self.byte(0).is_some_and(&fits) {
            self.at += 1;
        }
    }

    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn number(&mut self, start: usize) -> Result<Token<'a>, SyntaxError> {
        let digit = |byte: u8| byte.is_ascii_digit();
        if self.byte(0) == Some(b'-') {
            self.at += 1;
        }
        let whole = self.at;
        self.run(digit);
        let length = self.at - whole;
        if length == 0 || (length > 1 && self.text.as_bytes().get(whole) == Some(&b'0')) {
            return self.wrong("a number that is none");
        }
        let mut float = false;
        if self.byte(0) == Some(b'.') {
            self.at += 1;
            let fraction = self.at;
            self.run(digit);
            if self.at == fraction {
                return self.wrong("a number that ends with a point");
            }
            float = true;
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(0), Some(b'+' | b'-')) {
                self.at += 1;
            }
            let exponent = self.at;
            self.run(digit);
            if self.at == exponent {
                return self.wrong("a number without an exponent");
            }
            float = true;
        }
        if self.byte(0).is_some_and(|byte| byte == b'.' || byte == b'_' || byte.is_ascii_alphabetic()) {
            return self.wrong("a number that goes on as a name");
        }
        let text = self.since(start);
        Ok(if float { Token::Float(text) } else { Token::Int(text) })
    }

    fn string(&mut self) -> Result<Token<'a>, SyntaxError> {
        if self.byte(1) == Some(b'"') && self.byte(2) == Some(b'"') {
            self.at += 3;
            loop {
                match self.byte(0) {
                    None => return self.wrong("a block string that does not end"),
                    Some(b'\\') if self.is(b"\\\"\"\"") => self.at += 4,
                    Some(b'"') if self.is(b"\"\"\"") => {
                        self.at += 3;
                        return Ok(Token::String);
                    }
                    Some(_) => self.at += 1,
                }
            }
        }
        self.at += 1;
        loop {
            match self.byte(0) {
                None | Some(b'\n' | b'\r') => return self.wrong("a string that does not end"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Token::String);
                }
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
    }

    fn is(&self, text: &[u8]) -> bool {
        self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(text))
    }
}
