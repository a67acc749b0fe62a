//! Regular expressions: ECMA-262 in the syntax of a linear engine, whose time is bounded by the text.

mod simple;

use std::rc::{Rc, Weak};

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;

use simple::Row;

/// The memory of a compiled pattern, in bytes.
const MAX_SIZE: usize = 1 << 20;
/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 4096;

/// A pattern that is ready to match; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Matcher(Rc<Way>);

/// A matcher as long as something else keeps it.
#[derive(Debug, Default)]
pub(crate) struct KnownMatcher(Weak<Way>);

/// How a pattern is matched.
#[derive(Debug)]
enum Way {
    /// A row of classes.
    Row(Row),
    /// Anything else.
    Engine(Regex),
}

impl Matcher {
    /// Makes one of a pattern in the syntax of the engine.
    pub(crate) fn build(pattern: &str) -> Result<Self, String> {
        let way = match Row::of(pattern) {
            Some(row) => Way::Row(row),
            None => Way::Engine(build(pattern)?),
        };
        Ok(Self(Rc::new(way)))
    }

    /// Whether a text, which is UTF-8, has a match.
    #[inline]
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        match self.0.as_ref() {
            Way::Row(row) => row.is_match(text),
            Way::Engine(regex) => regex.is_match(text),
        }
    }

    /// Its memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        match self.0.as_ref() {
            Way::Row(row) => row.memory(),
            Way::Engine(regex) => regex.memory_usage(),
        }
    }

    /// The same without keeping it.
    pub(crate) fn known(&self) -> KnownMatcher {
        KnownMatcher(Rc::downgrade(&self.0))
    }
}

impl KnownMatcher {
    /// The matcher, if it is kept.
    #[inline]
    pub(crate) fn matcher(&self) -> Option<Matcher> {
        self.0.upgrade().map(Matcher)
    }
}

/// Builds a pattern in the syntax of the engine.
pub(crate) fn build(pattern: &str) -> Result<Regex, String> {
    // The engine is linear in the text: what repeats a lot is large, and refused.
    let config = Config::new()
        .nfa_size_limit(Some(MAX_SIZE))
        .onepass_size_limit(Some(64 << 10))
        .hybrid_cache_capacity(64 << 10)
        .dfa(false)
        .which_captures(regex_automata::nfa::thompson::WhichCaptures::None)
        .utf8_empty(false);
    let syntax = syntax::Config::new().utf8(false).nest_limit(100);
    Regex::builder().configure(config).syntax(syntax).build(pattern).map_err(|error| error.to_string())
}

/// Whether a text is a pattern, as far as this can be told without building it.
pub(crate) fn is_pattern(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    // Groups of other languages, which the engine takes.
    if text.contains("(?P") || text.match_indices("(?").any(|(at, _)| !text.get(at + 2..).is_some_and(is_group)) {
        return false;
    }
    match translate(text) {
        Ok(translated) => text.len() > MAX_PATTERN || syntax::parse(&translated).is_ok(),
        // The pattern has what the engine lacks, which is no error of the pattern.
        Err(Untranslated::Unsupported(_)) => true,
        Err(Untranslated::Wrong(_)) => false,
    }
}

/// Whether this is what ECMA-262 has behind `(?`; flags are those of a group (`(?i:`).
fn is_group(rest: &str) -> bool {
    let flags = rest.trim_start_matches(['i', 'm', 's', '-']);
    rest.starts_with(['=', '!', '<']) || flags.starts_with(':')
}

/// Why a pattern checks nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untranslated {
    /// The engine has no such thing.
    Unsupported(&'static str),
    /// It is no pattern.
    Wrong(&'static str),
}

/// What `.` matches.
const ANY: &str = "[^\\n\\r\\x{2028}\\x{2029}]";
/// What `\s` matches, as in a class.
const SPACES: &str =
    "\\t\\n\\x0B\\x0C\\r \\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}\\x{FEFF}";

/// A pattern of ECMA-262 (22.2.1, with annex B) in the syntax of the engine.
pub(crate) fn translate(pattern: &str) -> Result<String, Untranslated> {
    if pattern.len() > MAX_PATTERN {
        return Err(Untranslated::Unsupported("it has more than 4096 bytes"));
    }
    let mut translator = Translator { rest: pattern, out: String::with_capacity(pattern.len() + 16) };
    while let Some(character) = translator.next() {
        translator.outside(character)?;
    }
    Ok(translator.out)
}

/// The letters of escapes that stand for sets.
const SETS: [char; 8] = ['d', 'D', 's', 'S', 'w', 'W', 'p', 'P'];

/// What is in front of a character of a class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing that could begin a range.
    Nothing,
    /// A character.
    Single,
    /// A set.
    Set,
    /// The hyphen of a range, or one beside a set.
    Range,
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next();
        self.rest = characters.as_str();
        character
    }

    fn outside(&mut self, character: char) -> Result<(), Untranslated> {
        match character {
            '.' => self.out.push_str(ANY),
            '[' => return self.class(),
            '\\' => return self.escape(false),
            '(' => {
                if self.rest.starts_with("?=") || self.rest.starts_with("?!") {
                    return Err(Untranslated::Unsupported("it looks ahead"));
                }
                if self.rest.starts_with("?<=") || self.rest.starts_with("?<!") {
                    return Err(Untranslated::Unsupported("it looks behind"));
                }
                if self.rest.starts_with("?>") {
                    return Err(Untranslated::Unsupported("it has an atomic group"));
                }
                self.out.push('(');
            }
            '{' if !is_repetition(self.rest) => self.out.push_str("\\{"),
            '}' if !ends_repetition(&self.out) => self.out.push_str("\\}"),
            ']' => self.out.push_str("\\]"),
            other => self.out.push(other),
        }
        Ok(())
    }

    fn class(&mut self) -> Result<(), Untranslated> {
        let negated = self.rest.strip_prefix('^');
        self.rest = negated.unwrap_or(self.rest);
        if let Some(rest) = self.rest.strip_prefix(']') {
            self.rest = rest;
            self.out.push_str(if negated.is_some() { "(?s:.)" } else { "[^\\x00-\\x{10FFFF}]" });
            return Ok(());
        }
        self.out.push_str(if negated.is_some() { "[^" } else { "[" });
        // The engine has operators that begin with a hyphen (`--`): only the one of a range stays bare.
        let mut before = Before::Nothing;
        loop {
            let Some(character) = self.next() else { return Err(Untranslated::Wrong("a class does not end")) };
            let is_set = character == '\\' && self.rest.starts_with(SETS);
            let begins_range = before == Before::Single && !self.rest.starts_with(']') && !self.begins_set();
            match character {
                ']' => break,
                '-' if begins_range => {
                    self.out.push('-');
                    before = Before::Range;
                    continue;
                }
                '\\' => self.escape(true)?,
                '[' | '&' | '~' | '^' | '#' | '-' => {
                    self.out.push('\\');
                    self.out.push(character);
                }
                other => self.out.push(other),
            }
            before = match before {
                Before::Range => Before::Nothing,
                // A hyphen beside a set (`[\w-.]`) is itself, and what is behind it begins no range.
                Before::Set if character == '-' => Before::Range,
                _ if is_set => Before::Set,
                _ => Before::Single,
            };
        }
        self.out.push(']');
        Ok(())
    }

    /// Whether a set is next, such as `\d`.
    fn begins_set(&self) -> bool {
        self.rest.strip_prefix('\\').is_some_and(|rest| rest.starts_with(SETS))
    }

    fn escape(&mut self, class: bool) -> Result<(), Untranslated> {
        let Some(character) = self.next() else { return Err(Untranslated::Wrong("it ends with a backslash")) };
        match character {
            'd' => self.out.push_str(if class { "0-9" } else { "[0-9]" }),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str(if class { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            's' if class => self.out.push_str(SPACES),
            's' => self.out.push_str(&format!("[{SPACES}]")),
            'S' => self.out.push_str(&format!("[^{SPACES}]")),
            'b' if class => self.out.push_str("\\x08"),
            'b' => self.out.push_str("(?-u:\\b)"),
            'B' if !class => self.out.push_str("(?-u:\\B)"),
            'n' | 'r' | 't' | 'f' | 'v' => {
                self.out.push('\\');
                self.out.push(character);
            }
            // Not of ECMA-262, and written all the same.
            'A' if !class => self.out.push('^'),
            'z' | 'Z' if !class => self.out.push('$'),
            '0' if !self.rest.starts_with(|next: char| next.is_ascii_digit()) => self.out.push_str("\\x00"),
            '1'..='9' if !class => return Err(Untranslated::Unsupported("it refers to a group")),
            'k' if self.rest.starts_with('<') => return Err(Untranslated::Unsupported("it refers to a group")),
            'c' => match self.next() {
                Some(letter) if letter.is_ascii_alphabetic() => self.code(u32::from(letter) % 32)?,
                _ => return Err(Untranslated::Wrong("`\\c` has no letter behind it")),
            },
            'x' => {
                let code = self.hex(2).ok_or(Untranslated::Wrong("`\\x` has no two digits behind it"))?;
                self.code(code)?;
            }
            'u' => self.unicode()?,
            'p' | 'P' => {
                let end = self.rest.find('}').filter(|_| self.rest.starts_with('{'));
                let Some(end) = end else { return Err(Untranslated::Wrong("`\\p` has no name behind it")) };
                let (name, rest) = self.rest.split_at_checked(end + 1).unwrap_or((self.rest, ""));
                self.rest = rest;
                self.out.push('\\');
                self.out.push(character);
                self.out.push_str(name);
            }
            letter if letter.is_ascii_alphanumeric() => return Err(Untranslated::Wrong("it has an unknown escape")),
            special if "\\.+*?()|[]{}^$#&-~".contains(special) => {
                self.out.push('\\');
                self.out.push(special);
            }
            // To the engine `\<` is the beginning of a word.
            other => self.out.push(other),
        }
        Ok(())
    }

    fn unicode(&mut self) -> Result<(), Untranslated> {
        const WRONG: Untranslated = Untranslated::Wrong("`\\u` has no four digits behind it");
        if let Some(rest) = self.rest.strip_prefix('{') {
            let (digits, rest) = rest.split_once('}').ok_or(WRONG)?;
            self.rest = rest;
            return self.code(u32::from_str_radix(digits, 16).map_err(|_| WRONG)?);
        }
        let mut code = self.hex(4).ok_or(WRONG)?;
        if (0xd800..0xdc00).contains(&code)
            && let Some(rest) = self.rest.strip_prefix("\\u")
        {
            self.rest = rest;
            let low = self.hex(4).filter(|low| (0xdc00..0xe000).contains(low)).ok_or(WRONG)?;
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        self.code(code)
    }

    fn hex(&mut self, length: usize) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(length)?;
        let code = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?;
        self.rest = rest;
        code
    }

    fn code(&mut self, code: u32) -> Result<(), Untranslated> {
        if char::from_u32(code).is_none() {
            return Err(Untranslated::Unsupported("it has half of a surrogate pair"));
        }
        self.out.push_str(&format!("\\x{{{code:X}}}"));
        Ok(())
    }
}

/// Whether what is behind `{` makes it a repetition.
fn is_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else { return false };
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

/// Whether `}` behind this ends a repetition.
fn ends_repetition(out: &str) -> bool {
    let Some((before, inside)) = out.rsplit_once('{') else { return false };
    !before.ends_with('\\') && inside.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The characters of ASCII that a class has.
    fn class(class: &str) -> String {
        let matcher = Matcher::build(&translate(&format!("^(?:{class})$")).unwrap()).unwrap();
        (0..128_u8).filter(|byte| matcher.is_match(&[*byte])).map(char::from).collect()
    }

    #[test]
    fn hyphens_in_classes_are_those_of_ranges_or_themselves() {
        for (text, expected) in [
            ("[+--/]", "+,-/"),
            ("[+--]", "+,-"),
            ("[--/]", "-./"),
            ("[---]", "-"),
            ("[-]", "-"),
            ("[--]", "-"),
            ("[a-c--/]", "-./abc"),
            ("[a-c-9]", "-9abc"),
            ("[a-c-e-g]", "-abcefg"),
            ("[a-]", "-a"),
            ("[-a]", "-a"),
            ("[a\\-c]", "-ac"),
            ("[\\--/]", "-./"),
            ("[+-\\-]", "+,-"),
            ("[+\\--/]", "+-./"),
            ("[\\d-/]", "-/0123456789"),
            ("[\\d--]", "-0123456789"),
            ("[\\d--/]", "-/0123456789"),
            ("[a-\\d]", "-0123456789a"),
            ("[\\d-\\d]", "-0123456789"),
            ("[\\d-a-c]", "-0123456789ac"),
            ("[ab&&b]", "&ab"),
            ("[ab~~b]", "ab~"),
            ("[^\\x00-*--\\x7f]", "+,"),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
        assert_eq!(class("[1-\\D]").len(), 119, "all but the other digits");
    }
}
