//! What the text of a value is cut into.

/// How many bytes of the text of a token are kept. No word of SQL is longer.
pub(super) const TEXT_LENGTH: usize = 31;

/// What a token is. Its letter stands for it in fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Keyword = b'k',
    Union = b'U',
    /// `GROUP BY`, `LIMIT`, `HAVING`, ...
    Group = b'B',
    /// What begins a statement: `SELECT`, `CASE`, ...
    Expression = b'E',
    /// The name of a type or of a character set.
    SqlType = b't',
    Function = b'f',
    Bareword = b'n',
    Number = b'1',
    Variable = b'v',
    String = b's',
    Operator = b'o',
    LogicOperator = b'&',
    Comment = b'c',
    Collate = b'A',
    LeftParenthesis = b'(',
    RightParenthesis = b')',
    LeftBrace = b'{',
    RightBrace = b'}',
    Dot = b'.',
    Comma = b',',
    Colon = b':',
    Semicolon = b';',
    /// What begins a statement of Transact-SQL.
    Tsql = b'T',
    Unknown = b'?',
    /// What databases read in different ways: taken for an attack.
    Evil = b'X',
    Backslash = b'\\',
}

impl Kind {
    /// Its letter in fingerprints.
    pub(super) fn letter(self) -> u8 {
        self as u8
    }

    /// Whether phrases are made of such words.
    pub(super) fn is_word(self) -> bool {
        matches!(
            self,
            Self::Keyword
                | Self::Bareword
                | Self::Operator
                | Self::Union
                | Self::Function
                | Self::Expression
                | Self::Tsql
                | Self::SqlType
        )
    }

    /// The kind of words with this letter on the list.
    pub(super) fn of(letter: u8) -> Option<Self> {
        Some(match letter {
            b'k' => Self::Keyword,
            b'U' => Self::Union,
            b'B' => Self::Group,
            b'E' => Self::Expression,
            b't' => Self::SqlType,
            b'f' => Self::Function,
            b'n' => Self::Bareword,
            b'1' => Self::Number,
            b'v' => Self::Variable,
            b'o' => Self::Operator,
            b'&' => Self::LogicOperator,
            b'A' => Self::Collate,
            b'T' => Self::Tsql,
            _ => return None,
        })
    }
}

/// A token, with the beginning of its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// The delimiter that opens a string; 0 if the string begins outside of the value, and for all other tokens.
    pub(super) open: u8,
    /// The delimiter that closes a string; 0 if the value ends before it.
    pub(super) close: u8,
    /// Where it begins in the value; 0 if it stands for what is before.
    pub(super) at: usize,
    length: u8,
    text: [u8; TEXT_LENGTH],
}

impl Token {
    /// A token with the first [`TEXT_LENGTH`] bytes of its text.
    pub(super) fn new(kind: Kind, text: &[u8]) -> Self {
        let mut token = Self { kind, open: 0, close: 0, at: 0, length: 0, text: [0; TEXT_LENGTH] };
        let text = text.get(..TEXT_LENGTH).unwrap_or(text);
        if let Some(slots) = token.text.get_mut(..text.len()) {
            slots.copy_from_slice(text);
        }
        token.length = u8::try_from(text.len()).unwrap_or_default();
        token
    }

    /// A string between two delimiters.
    pub(super) fn string(text: &[u8], open: u8, close: u8) -> Self {
        Self { open, close, ..Self::new(Kind::String, text) }
    }

    /// The same token as another kind.
    pub(super) fn into_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The same token with another text.
    pub(super) fn into_phrase(self, kind: Kind, text: &[u8]) -> Self {
        Self { open: self.open, close: self.close, at: self.at, ..Self::new(kind, text) }
    }

    /// The beginning of its text.
    pub(super) fn text(&self) -> &[u8] {
        self.text.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// The first byte of its text; 0 if it has none.
    pub(super) fn first(&self) -> u8 {
        self.text().first().copied().unwrap_or_default()
    }

    /// Whether its text is this one, in any case.
    pub(super) fn is(&self, text: &str) -> bool {
        self.text().eq_ignore_ascii_case(text.as_bytes())
    }

    /// Whether it is one of these kinds.
    pub(super) fn is_any(&self, kinds: &[Kind]) -> bool {
        kinds.contains(&self.kind)
    }

    /// An operator that may stand before an operand: `-`, `NOT`, ...
    pub(super) fn is_unary(&self) -> bool {
        self.kind == Kind::Operator && (matches!(self.text(), b"+" | b"-" | b"!" | b"~" | b"!!") || self.is("NOT"))
    }

    /// An operator between two numbers.
    pub(super) fn is_arithmetic(&self) -> bool {
        self.kind == Kind::Operator && matches!(self.text(), b"*" | b"/" | b"-" | b"+" | b"%")
    }
}

/// How many tokens are looked at together at most: those of a fingerprint, and one more that may decide what the last is.
const CAPACITY: usize = 6;

/// The tokens that remain after folding, without an allocation.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoldedTokens {
    tokens: [Token; CAPACITY],
    length: usize,
}

impl FoldedTokens {
    /// No tokens.
    pub(super) fn new() -> Self {
        let none = Token { kind: Kind::Unknown, open: 0, close: 0, at: 0, length: 0, text: [0; TEXT_LENGTH] };
        Self { tokens: [none; CAPACITY], length: 0 }
    }

    /// A single token.
    pub(super) fn of(token: Token) -> Self {
        let mut folded = Self::new();
        folded.push(token);
        folded
    }

    pub(super) fn as_slice(&self) -> &[Token] {
        self.tokens.get(..self.length).unwrap_or_default()
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [Token] {
        self.tokens.get_mut(..self.length).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Adds a token; one too many is dropped.
    pub(super) fn push(&mut self, token: Token) {
        if let Some(slot) = self.tokens.get_mut(self.length) {
            *slot = token;
            self.length += 1;
        }
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub(super) fn get(&self, at: usize) -> Option<&Token> {
        self.as_slice().get(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Token> {
        self.as_mut_slice().get_mut(at)
    }
}
