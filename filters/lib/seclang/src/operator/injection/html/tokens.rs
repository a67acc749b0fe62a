//! Cuts a value into the tokens of HTML, as the tokenizer of libinjection does: as old browsers read it, too.

use memchr::memchr;

use super::Effort;
use crate::short_mark;

/// A token of HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'v> {
    Text(&'v [u8]),
    /// `<name`
    TagOpen(&'v [u8]),
    /// `>` or `/>`
    TagEnd(&'v [u8]),
    /// `</name>`
    TagClose(&'v [u8]),
    AttributeName(&'v [u8]),
    AttributeValue(&'v [u8]),
    Comment(&'v [u8]),
    Doctype(&'v [u8]),
}

/// Where a value begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Context {
    /// In the text of a page.
    Text,
    /// In a tag, before an attribute.
    Tag,
    /// In an attribute's value with this quote.
    Quoted(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    TagOpen,
    /// Before the `>` of a tag.
    TagEnd,
    /// After a `/` in a tag.
    Slash,
    BeforeName,
    AfterName,
    BeforeValue,
    Value(u8),
    AfterValue,
    End,
}

/// The tokens of a value.
pub(super) struct Tokens<'v> {
    value: &'v [u8],
    at: usize,
    state: State,
    /// Whether the name that follows is that of a closing tag.
    closes: bool,
    /// What it took so far.
    pub(super) effort: Effort,
}

impl<'v> Tokens<'v> {
    pub(super) fn new(value: &'v [u8], context: Context) -> Self {
        let state = match context {
            Context::Text => State::Text,
            Context::Tag => State::BeforeName,
            Context::Quoted(quote) => State::Value(quote),
        };
        Self { value, at: 0, state, closes: false, effort: Effort::default() }
    }

    /// Where the next token is read.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Whether all tokens from here on are the same.
    pub(super) fn goes_on_as(&self, other: &Self) -> bool {
        self.at == other.at && self.state == other.state && self.closes == other.closes
    }

    fn rest(&self) -> &'v [u8] {
        self.value.get(self.at..).unwrap_or_default()
    }

    /// The next `length` bytes; `skipped` more are passed over.
    fn take(&mut self, length: usize, skipped: usize) -> &'v [u8] {
        let taken = self.rest().get(..length).unwrap_or(self.rest());
        self.at = self.at.saturating_add(length).saturating_add(skipped).min(self.value.len());
        taken
    }

    /// All that is left.
    fn take_rest(&mut self) -> &'v [u8] {
        self.state = State::End;
        self.take(self.value.len(), 0)
    }

    /// The first byte of that kind.
    fn position(&mut self, bytes: &[u8], is_meant: impl Fn(&u8) -> bool) -> Option<usize> {
        let place = bytes.iter().position(is_meant);
        self.effort.looked_at += place.map_or(bytes.len(), |place| place + 1);
        place
    }

    /// What is before `mark`, which is passed over; all that is left if it does not occur.
    fn take_until(&mut self, mark: &[u8], next: State) -> &'v [u8] {
        let end = match mark {
            [byte] => memchr(*byte, self.rest()),
            _ => short_mark::find(self.rest(), mark),
        };
        self.effort.searched += end.unwrap_or(self.rest().len());
        match end {
            Some(end) => {
                self.state = next;
                self.take(end, mark.len())
            }
            None => self.take_rest(),
        }
    }

    fn text(&mut self) -> Option<Token<'v>> {
        let text = self.take_until(b"<", State::TagOpen);
        match (text, self.state) {
            ([], State::TagOpen) => self.tag_open(),
            ([], _) => None,
            _ => Some(Token::Text(text)),
        }
    }

    fn tag_open(&mut self) -> Option<Token<'v>> {
        match *self.rest().first()? {
            b'!' => {
                self.at += 1;
                Some(self.declaration())
            }
            b'/' => {
                self.at += 1;
                self.closes = true;
                self.closing_tag()
            }
            b'?' => {
                self.at += 1;
                Some(Token::Comment(self.take_until(b">", State::Text)))
            }
            // Old versions of Internet Explorer and Safari.
            b'%' => {
                self.at += 1;
                Some(Token::Comment(self.take_until(b"%>", State::Text)))
            }
            0 | b'a'..=b'z' | b'A'..=b'Z' => Some(self.tag_name()),
            _ => {
                self.state = State::Text;
                Some(Token::Text(b"<"))
            }
        }
    }

    fn closing_tag(&mut self) -> Option<Token<'v>> {
        match *self.rest().first()? {
            b'>' => self.text(),
            b'a'..=b'z' | b'A'..=b'Z' => Some(self.tag_name()),
            _ => {
                self.closes = false;
                Some(Token::Comment(self.take_until(b">", State::Text)))
            }
        }
    }

    fn tag_name(&mut self) -> Token<'v> {
        let rest = self.rest();
        // Some old browsers ignore NUL in names.
        let ends = |byte: &u8| is_space(*byte) && *byte != 0 || matches!(byte, b'/' | b'>');
        let Some(end) = self.position(rest, ends) else { return Token::TagOpen(self.take_rest()) };
        match rest.get(end) {
            Some(b'/') => self.state = State::Slash,
            Some(b'>') if self.closes => {
                self.closes = false;
                self.state = State::Text;
                return Token::TagClose(self.take(end, 1));
            }
            Some(b'>') => {
                self.state = State::TagEnd;
                return Token::TagOpen(self.take(end, 0));
            }
            _ => self.state = State::BeforeName,
        }
        Token::TagOpen(self.take(end, 1))
    }

    fn tag_end(&mut self) -> Token<'v> {
        self.closes = false;
        let end = self.take(1, 0);
        self.state = if self.at < self.value.len() { State::Text } else { State::End };
        Token::TagEnd(end)
    }

    /// After a `/`.
    fn slash(&mut self) -> Option<Token<'v>> {
        self.before_attribute(true)
    }

    fn skip_space(&mut self) -> Option<u8> {
        let rest = self.rest();
        let spaces = self.position(rest, |byte| !is_space(*byte)).unwrap_or(rest.len());
        self.at += spaces;
        rest.get(spaces).copied()
    }

    fn before_name(&mut self) -> Option<Token<'v>> {
        self.before_attribute(false)
    }

    /// The next token in a tag, with slashes and spaces before it passed over; directly behind a slash if `slash`.
    fn before_attribute(&mut self, mut slash: bool) -> Option<Token<'v>> {
        loop {
            if slash && *self.rest().first()? == b'>' {
                self.state = State::Text;
                self.take(1, 0);
                return Some(Token::TagEnd(b"/>"));
            }
            match self.skip_space()? {
                b'/' => {
                    self.at += 1;
                    slash = true;
                }
                b'>' => {
                    self.state = State::Text;
                    return Some(Token::TagEnd(self.take(1, 0)));
                }
                _ => return Some(self.name()),
            }
        }
    }

    fn name(&mut self) -> Token<'v> {
        let rest = self.rest();
        let ends = |byte: &u8| is_space(*byte) || matches!(byte, b'/' | b'=' | b'>');
        let after_first = rest.get(1..).unwrap_or_default();
        let Some(end) = self.position(after_first, ends).map(|end| end + 1) else {
            return Token::AttributeName(self.take_rest());
        };
        let (state, skipped) = match rest.get(end) {
            Some(b'/') => (State::Slash, 1),
            Some(b'=') => (State::BeforeValue, 1),
            Some(b'>') => (State::TagEnd, 0),
            _ => (State::AfterName, 1),
        };
        self.state = state;
        Token::AttributeName(self.take(end, skipped))
    }

    fn after_name(&mut self) -> Option<Token<'v>> {
        match self.skip_space()? {
            b'/' => {
                self.at += 1;
                self.slash()
            }
            b'=' => {
                self.at += 1;
                self.before_value()
            }
            b'>' => Some(self.tag_end()),
            _ => Some(self.name()),
        }
    }

    fn before_value(&mut self) -> Option<Token<'v>> {
        match self.skip_space()? {
            // Internet Explorer takes a backtick for a quote.
            quote @ (b'"' | b'\'' | b'`') => {
                self.at += 1;
                Some(self.quoted(quote))
            }
            _ => {
                let rest = self.rest();
                let Some(end) = self.position(rest, |byte| is_space(*byte) || *byte == b'>') else {
                    return Some(Token::AttributeValue(self.take_rest()));
                };
                let closes = rest.get(end) == Some(&b'>');
                self.state = if closes { State::TagEnd } else { State::BeforeName };
                Some(Token::AttributeValue(self.take(end, usize::from(!closes))))
            }
        }
    }

    fn quoted(&mut self, quote: u8) -> Token<'v> {
        Token::AttributeValue(self.take_until(&[quote], State::AfterValue))
    }

    fn after_value(&mut self) -> Option<Token<'v>> {
        match *self.rest().first()? {
            b'/' => {
                self.at += 1;
                self.slash()
            }
            b'>' => {
                self.state = State::Text;
                Some(Token::TagEnd(self.take(1, 0)))
            }
            _ => self.before_name(),
        }
    }

    /// What follows `<!`.
    fn declaration(&mut self) -> Token<'v> {
        let rest = self.rest();
        if rest.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"doctype")) {
            Token::Doctype(self.take_until(b">", State::Text))
        } else if rest.starts_with(b"[CDATA[") {
            self.at += 7;
            Token::Text(self.take_until(b"]]>", State::Text))
        } else if rest.starts_with(b"--") {
            self.at += 2;
            Token::Comment(self.comment())
        } else {
            Token::Comment(self.take_until(b">", State::Text))
        }
    }

    /// A comment ends with `-->` or `-!>`; there may be NUL after its first dash.
    fn comment(&mut self) -> &'v [u8] {
        let rest = self.rest();
        let mut from = 0;
        while let Some(found) = rest.get(from..).and_then(|rest| memchr(b'-', rest)) {
            let dash = from + found;
            self.effort.searched += found;
            // As much as a few bytes that are looked at.
            self.effort.looked_at += 4;
            if dash + 3 > rest.len() {
                break;
            }
            let after = rest.get(dash + 1..).unwrap_or_default();
            let nuls = self.position(after, |byte| *byte != 0).unwrap_or(after.len());
            match after.get(nuls..) {
                Some([b'-' | b'!', b'>', ..]) => {
                    self.state = State::Text;
                    return self.take(dash, nuls + 3);
                }
                Some([] | [b'-' | b'!']) | None => break,
                _ => from = dash + 1,
            }
        }
        self.take_rest()
    }
}

impl<'v> Iterator for Tokens<'v> {
    type Item = Token<'v>;

    fn next(&mut self) -> Option<Token<'v>> {
        self.effort.tokens += 1;
        match self.state {
            State::Text => self.text(),
            State::TagOpen => self.tag_open(),
            State::TagEnd => Some(self.tag_end()),
            State::Slash => self.slash(),
            State::BeforeName => self.before_name(),
            State::AfterName => self.after_name(),
            State::BeforeValue => self.before_value(),
            State::Value(quote) => Some(self.quoted(quote)),
            State::AfterValue => self.after_value(),
            State::End => None,
        }
    }
}

/// White space in tags: as to Internet Explorer, NUL is some, too.
fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0)
}
