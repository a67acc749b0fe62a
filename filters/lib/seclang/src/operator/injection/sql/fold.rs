//! Folds the tokens of a value to the five of its fingerprint, as libinjection does.
//!
//! Folding removes what an attacker may add without changing the meaning: white space, comments, double parentheses,
//! signs, `1+1` for `1`, `a, b` for `a`, `x.y` for `x`. The order of the rules, the tokens at which folding resumes,
//! and its end are those of libinjection: at the end of the value nothing more is folded.

use super::token::{FoldedTokens, Kind, TEXT_LENGTH, Token};
use super::tokens::Tokens;
use super::words;

/// How many tokens a fingerprint has at most.
pub(super) const MAX_TOKENS: usize = 5;

/// The result of folding two tokens.
enum Pair {
    /// They were folded: look again.
    Folded,
    /// They stay: look at three.
    Stay,
    /// The second of them is an attack, whatever follows.
    Evil,
}

/// All that the rest of a reading depends on, besides its dialect.
pub(super) struct State<'s> {
    /// The folded tokens so far.
    pub(super) folded: &'s [Token],
    /// How many of them are done with.
    pub(super) left: usize,
    /// The position of the next token, and the number of tokens so far.
    pub(super) at: usize,
    pub(super) read: usize,
    /// Whether a comment was read last.
    pub(super) after_comment: bool,
}

/// Folds tokens.
pub(super) struct Fold<'t, 'v, 'm, F> {
    tokens: &'t mut Tokens<'v, 'm>,
    /// The tokens so far.
    folded: FoldedTokens,
    /// How many of them are done with.
    left: usize,
    /// At how many places from the first on neither two nor three tokens fold, as they are now.
    settled: usize,
    last_comment: Option<Token>,
    more: bool,
    /// Returns whether another reading was in the same state.
    was_here: F,
}

impl<'t, 'v, 'm, F: FnMut(State<'_>) -> bool> Fold<'t, 'v, 'm, F> {
    /// The tokens of the fingerprint, at most [`MAX_TOKENS`]. `first` replaces everything before the first byte.
    pub(super) fn run(tokens: &'t mut Tokens<'v, 'm>, first: Option<Token>, was_here: F) -> FoldedTokens {
        let folded = first.map_or_else(FoldedTokens::new, FoldedTokens::of);
        let mut fold = Self { tokens, folded, left: 0, settled: 0, last_comment: None, more: true, was_here };
        fold.all();
        let Self { mut folded, last_comment, .. } = fold;
        if folded.len() < MAX_TOKENS {
            last_comment.into_iter().for_each(|comment| folded.push(comment));
        }
        folded.truncate(MAX_TOKENS);
        folded
    }

    fn all(&mut self) {
        // Comments, parentheses, casts and signs at the beginning mean nothing.
        while self.folded.len() == 0 {
            let Some(token) = self.tokens.next() else { return };
            if !token.is_any(&[Kind::Comment, Kind::LeftParenthesis, Kind::SqlType]) && !token.is_unary() {
                self.folded.push(token);
            }
        }
        let mut asked_at = 0;
        loop {
            // Until the next token is read, all that follows from a state is the same.
            let read = self.tokens.hints().tokens;
            if read != asked_at {
                asked_at = read;
                let state = State {
                    folded: self.folded.as_slice(),
                    left: self.left,
                    at: self.tokens.at(),
                    read,
                    after_comment: self.last_comment.is_some(),
                };
                if (self.was_here)(state) {
                    self.folded.truncate(0);
                    self.last_comment = None;
                    return;
                }
            }
            if !self.tokens.charge_fold() {
                return;
            }
            self.reduce_operand();
            if !self.more || self.left >= MAX_TOKENS {
                return;
            }
            if !self.fill(2) {
                self.left = self.folded.len();
                continue;
            }
            match self.pair() {
                Pair::Folded => continue,
                Pair::Evil => {
                    self.folded = FoldedTokens::of(Token::new(Kind::Evil, b"X"));
                    return;
                }
                Pair::Stay => {}
            }
            if !self.fill(3) {
                self.left = self.folded.len();
                continue;
            }
            if !self.triple() {
                self.settled += usize::from(self.settled == self.left);
                self.left += 1;
            }
        }
    }

    /// Reads on until there are `count` tokens that are not done with; `false` if there are not that many.
    fn fill(&mut self, count: usize) -> bool {
        while self.more && self.folded.len() <= MAX_TOKENS && self.folded.len() < self.left + count {
            match self.tokens.next() {
                Some(token) if token.kind == Kind::Comment => self.last_comment = Some(token),
                Some(token) => {
                    self.last_comment = None;
                    self.folded.push(token);
                }
                None => self.more = false,
            }
        }
        self.folded.len() >= self.left + count
    }

    /// An operand in parentheses after an operator (`1 + (1)`, `x = (y)`) makes five tokens one, so that there is room.
    fn reduce_operand(&mut self) {
        use Kind::{Bareword as N, Comma, LeftParenthesis as L, Number as D, Operator as O, RightParenthesis as R};
        let mut kinds = [Kind::Unknown; MAX_TOKENS];
        if self.folded.len() < MAX_TOKENS {
            return;
        }
        for (kind, token) in kinds.iter_mut().zip(self.folded.as_slice()) {
            *kind = token.kind;
        }
        if matches!(kinds, [D, O | Comma, L, D, R] | [N, O, L, N | D, R] | [D, R, Comma, L, D] | [N, R, O, L, N]) {
            let sixth = self.folded.get(MAX_TOKENS).copied();
            self.folded.truncate(1);
            sixth.into_iter().for_each(|token| self.folded.push(token));
            (self.left, self.settled) = (0, 0);
        }
    }

    fn kind(&self, offset: usize) -> Option<Kind> {
        self.folded.get(self.left + offset).map(|token| token.kind)
    }

    /// The token at a place, and those behind it, are not what they were: up to three are looked at together.
    fn unsettle(&mut self, at: usize) {
        self.settled = self.settled.min(at.saturating_sub(2));
    }

    /// Begins anew, at the first place where something may fold.
    fn again(&mut self) {
        self.left = self.settled;
    }

    fn set_kind(&mut self, offset: usize, kind: Kind) {
        self.unsettle(self.left + offset);
        if let Some(token) = self.folded.get_mut(self.left + offset) {
            token.kind = kind;
        }
    }

    /// Takes the last tokens away.
    fn drop(&mut self, count: usize) {
        self.folded.truncate(self.folded.len().saturating_sub(count));
        self.unsettle(self.folded.len());
    }

    /// Puts the token at `offset + 1` in the place of the one at `offset`, and takes the last token away.
    fn replace(&mut self, offset: usize) {
        self.unsettle(self.left + offset);
        if let Some(next) = self.folded.get(self.left + offset + 1).copied()
            && let Some(token) = self.folded.get_mut(self.left + offset)
        {
            *token = next;
        }
        self.drop(1);
    }

    fn back(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    fn pair(&mut self) -> Pair {
        use Kind as K;
        let (Some(first), Some(other)) = (self.kind(0), self.folded.get(self.left + 1)) else { return Pair::Stay };
        let (second, unary) = (other.kind, other.is_unary());
        match (first, second) {
            // Strings in a row are one string; repeated semicolons are one.
            (K::String, K::String) | (K::Semicolon, K::Semicolon) => {
                self.drop(1);
                return Pair::Folded;
            }
            (K::Operator | K::LogicOperator, kind) if unary || kind == K::SqlType => {
                self.drop(1);
                self.again();
                return Pair::Folded;
            }
            (K::LeftParenthesis, _) if unary => {
                self.drop(1);
                self.back();
                return Pair::Folded;
            }
            _ => {}
        }
        if first.is_word() && (second.is_word() || second == K::LogicOperator) && self.merge() {
            self.drop(1);
            self.back();
            return Pair::Folded;
        }
        let (Some(one), Some(other)) = (self.folded.get(self.left), self.folded.get(self.left + 1)) else {
            return Pair::Stay;
        };
        match (first, second) {
            // Transact-SQL: `; IF 1=1 ...`
            (K::Semicolon, K::Function) if starts_with_if(other) => self.set_kind(1, K::Tsql),
            // Names that are functions where they are called.
            (K::Bareword | K::Variable, K::LeftParenthesis) if is_callable(one) => self.set_kind(0, K::Function),
            (K::Keyword, kind) if one.is("IN") || one.is("NOT IN") => {
                self.set_kind(0, if kind == K::LeftParenthesis { K::Operator } else { K::Bareword });
            }
            (K::Operator, kind) if one.is("LIKE") || one.is("NOT LIKE") => {
                if kind == K::LeftParenthesis {
                    self.set_kind(0, K::Function);
                }
                return Pair::Stay;
            }
            (
                K::SqlType,
                K::Bareword | K::Number | K::SqlType | K::LeftParenthesis | K::Function | K::Variable | K::String,
            ) => {
                self.replace(0);
                self.again();
            }
            (K::Collate, K::Bareword) => {
                // There are too many names of collations to list: they have an underscore.
                let name = other.text().split(|byte| *byte == 0).next().unwrap_or_default();
                if name.contains(&b'_') {
                    self.set_kind(1, K::SqlType);
                    self.left = 0;
                }
                return Pair::Stay;
            }
            (K::Backslash, _) => {
                // Transact-SQL: `\%1` is `0 % 1`; else it means nothing.
                if other.is_arithmetic() {
                    self.set_kind(0, K::Number)
                } else {
                    self.replace(0)
                }
                self.again();
            }
            (K::LeftParenthesis, K::LeftParenthesis) | (K::RightParenthesis, K::RightParenthesis) => {
                self.drop(1);
                self.again();
            }
            (K::LeftBrace, K::Bareword) => {
                // MySQL: `` {`` `` is a name that no two databases read alike; `{name value}` is the value.
                if other.text().is_empty() {
                    return Pair::Evil;
                }
                self.drop(2);
                self.again();
            }
            (_, K::RightBrace) => {
                self.drop(1);
                self.again();
            }
            _ => return Pair::Stay,
        }
        Pair::Folded
    }

    /// Makes a phrase of two words that SQL knows as one (`UNION` and `ALL`) out of the first of them.
    fn merge(&mut self) -> bool {
        let (Some(one), Some(other)) = (self.folded.get(self.left), self.folded.get(self.left + 1)) else {
            return false;
        };
        if !words::may_be_phrase(one.text(), other.text()) {
            return false;
        }
        let phrase = Phrase::of(one.text(), other.text());
        let Some(phrase) = phrase.as_ref().map(Phrase::text) else { return false };
        let (Some(kind), Some(token)) = (words::meaning(phrase), self.folded.get_mut(self.left)) else { return false };
        *token = token.into_phrase(kind, phrase);
        self.unsettle(self.left);
        true
    }

    /// Folds three tokens; `false` if they stay.
    fn triple(&mut self) -> bool {
        use Kind as K;
        let (Some(first), Some(middle), Some(last)) = (self.kind(0), self.kind(1), self.kind(2)) else { return false };
        let unary = self.folded.get(self.left + 1).is_some_and(Token::is_unary);
        let cast = self.folded.get(self.left + 1).is_some_and(|token| token.text() == b"::");
        match (first, middle, last) {
            // Operations and lists are their first operand.
            (K::Number, K::Operator, K::Number)
            | (K::LogicOperator, _, K::LogicOperator)
            | (K::Variable, K::Operator, K::Variable | K::Number | K::Bareword)
            | (K::Bareword | K::Number, K::Operator, K::Number | K::Bareword)
            | (
                K::Bareword | K::Number | K::String | K::Variable,
                K::Comma,
                K::Number | K::Bareword | K::String | K::Variable,
            )
            | (K::Bareword, K::Dot, K::Bareword) => self.drop(2),
            (K::Operator, middle, K::Operator) if middle != K::LeftParenthesis => self.drop(2),
            (K::Bareword | K::Number | K::Variable | K::String, K::Operator, K::SqlType) if cast => self.drop(2),
            // A sign before an operand.
            (K::Expression | K::Group | K::Comma, _, K::LeftParenthesis) if unary => self.replace(1),
            (
                K::Keyword | K::Expression | K::Group,
                _,
                K::Number | K::Bareword | K::Variable | K::String | K::Function,
            ) if unary => self.replace(1),
            // `1,-1` is what is before the comma.
            (K::Comma, _, K::Number | K::Bareword | K::Variable | K::String) if unary => self.drop(3),
            (K::Comma, _, K::Function) if unary => self.replace(1),
            (K::Expression, K::Dot, K::Bareword) => self.replace(1),
            (K::Function, K::LeftParenthesis, last) if last != K::RightParenthesis => {
                // `USER()` is a function, `USER(name)` is not.
                if self.folded.get(self.left).is_some_and(|token| token.is("USER")) {
                    self.set_kind(0, K::Bareword);
                }
                return false;
            }
            _ => return false,
        }
        self.again();
        true
    }
}

/// Two words with a blank between them, if they are short enough to be on the list.
struct Phrase {
    text: [u8; TEXT_LENGTH],
    length: usize,
}

impl Phrase {
    fn of(one: &[u8], other: &[u8]) -> Option<Self> {
        let length = one.len() + other.len() + 1;
        let mut phrase = Self { text: [0; TEXT_LENGTH], length };
        if length > TEXT_LENGTH {
            return None;
        }
        let bytes = one.iter().chain(b" ").chain(other);
        phrase.text.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
        Some(phrase)
    }

    fn text(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }
}

fn starts_with_if(token: &Token) -> bool {
    token.text().get(..2).is_some_and(|start| start.eq_ignore_ascii_case(b"if"))
}

/// Words that are functions if a parenthesis follows, and else names or variables.
fn is_callable(token: &Token) -> bool {
    const CALLABLE: [&str; 11] = [
        "USER_ID",
        "USER_NAME",
        "DATABASE",
        "PASSWORD",
        "USER",
        "CURRENT_USER",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "LOCALTIME",
        "LOCALTIMESTAMP",
    ];
    CALLABLE.iter().any(|name| token.is(name))
}
