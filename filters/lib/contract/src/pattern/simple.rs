//! Patterns that are a row of classes, such as `^[0-9a-f]{40}$`: most of those in contracts. They need no engine, neither the time to
//! build one nor its memory.

/// The most parts of such a pattern.
const MAX_PARTS: usize = 32;

/// A row of classes from the beginning of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    parts: Box<[Part]>,
    /// The text ends behind the last one.
    ends: bool,
}

/// Bytes of a class, so many times.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    class: Class,
    least: u32,
    most: u32,
}

/// A set of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Class([u64; 4]);

impl Class {
    fn add(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    #[inline]
    fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte >> 6)).is_some_and(|word| word >> (byte & 63) & 1 == 1)
    }

    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(one, two)| one & two != 0)
    }
}

impl Row {
    /// Reads a pattern in the syntax of the engine; `None` where it is not that simple.
    pub(crate) fn of(pattern: &str) -> Option<Self> {
        if !pattern.is_ascii() {
            return None;
        }
        let mut reader = Reader { rest: pattern.strip_prefix('^')?.as_bytes() };
        let mut parts = Vec::new();
        let mut ends = false;
        while !reader.rest.is_empty() {
            if reader.rest == b"$" {
                ends = true;
                break;
            }
            if parts.len() >= MAX_PARTS {
                return None;
            }
            let (class, one_byte) = reader.class()?;
            let (least, most) = reader.times()?;
            // A character may have several bytes: then only "any number of them" means the same for bytes.
            let any_number = least <= 1 && most == u32::MAX;
            if !one_byte && !any_number {
                return None;
            }
            parts.push(Part { class, least, most });
        }
        let row = Self { parts: parts.into(), ends };
        row.is_greedy().then_some(row)
    }

    /// Whether each part may take all that it can: what comes behind it takes none of the same bytes.
    fn is_greedy(&self) -> bool {
        self.parts.iter().enumerate().all(|(place, part)| {
            if part.least == part.most {
                return true;
            }
            for behind in self.parts.iter().skip(place + 1) {
                if behind.class.meets(&part.class) {
                    return false;
                }
                if behind.least > 0 {
                    return true;
                }
            }
            true
        })
    }

    /// Whether a text has it.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        let mut rest = text;
        for part in &self.parts {
            let most = usize::try_from(part.most).unwrap_or(usize::MAX);
            let taken = rest.iter().take(most).take_while(|byte| part.class.has(**byte)).count();
            if taken < usize::try_from(part.least).unwrap_or(usize::MAX) {
                return false;
            }
            rest = rest.get(taken..).unwrap_or_default();
        }
        !self.ends || rest.is_empty()
    }

    /// Its memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.parts.len() * size_of::<Part>() + size_of::<Self>()
    }
}

struct Reader<'p> {
    rest: &'p [u8],
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// A class, and whether all of its characters are one byte.
    fn class(&mut self) -> Option<(Class, bool)> {
        let mut class = Class::default();
        match self.next()? {
            b'[' => return self.set(),
            b'\\' => class.add(self.escape()?),
            b'(' | b')' | b'|' | b'.' | b'^' | b'$' | b'*' | b'+' | b'?' | b'{' | b'}' | b']' => return None,
            byte => class.add(byte),
        }
        Some((class, true))
    }

    /// An escaped character that stands for itself.
    fn escape(&mut self) -> Option<u8> {
        match self.next()? {
            b't' => Some(b'\t'),
            b'n' => Some(b'\n'),
            b'r' => Some(b'\r'),
            byte if byte.is_ascii_punctuation() => Some(byte),
            _ => None,
        }
    }

    fn set(&mut self) -> Option<(Class, bool)> {
        let mut class = Class::default();
        let negated = self.rest.first() == Some(&b'^');
        if negated {
            self.next();
        }
        loop {
            let low = match self.next()? {
                b']' => break,
                b'[' => return None,
                b'\\' => self.escape()?,
                byte => byte,
            };
            let high = match self.rest {
                [b'-', b']', ..] | [b'-', b'\\', ..] | [b'-', b'['] => return None,
                [b'-', high, rest @ ..] => {
                    self.rest = rest;
                    *high
                }
                _ => low,
            };
            (low..=high).for_each(|byte| class.add(byte));
        }
        if negated {
            class.0 = class.0.map(|word| !word);
        }
        Some((class, !negated))
    }

    /// How often: `+`, `*`, `?`, `{2}`, `{2,}`, `{2,5}`, or once.
    fn times(&mut self) -> Option<(u32, u32)> {
        let times = match self.rest.first() {
            Some(b'+') => (1, u32::MAX),
            Some(b'*') => (0, u32::MAX),
            Some(b'?') => (0, 1),
            Some(b'{') => {
                let end = self.rest.iter().position(|byte| *byte == b'}')?;
                let inside = std::str::from_utf8(self.rest.get(1..end)?).ok()?;
                self.rest = self.rest.get(end..)?;
                match inside.split_once(',') {
                    None => {
                        let times = inside.parse().ok()?;
                        (times, times)
                    }
                    Some((least, "")) => (least.parse().ok()?, u32::MAX),
                    Some((least, most)) => (least.parse().ok()?, most.parse().ok()?),
                }
            }
            _ => return Some((1, 1)),
        };
        self.next();
        // Lazy repetitions match the same texts, and possessive ones are none of the syntax: both are left to the engine.
        if matches!(self.rest.first(), Some(b'?' | b'+' | b'*' | b'{')) || times.0 > times.1 {
            return None;
        }
        Some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_agree_with_the_engine() {
        let patterns = [
            "^[0-9a-f]{4}$",
            "^[a-z]+-[0-9]+$",
            "^[a-z][0-9a-z_]*$",
            "^[^/]+$",
            "^[^/]*/[a-z]{1,3}$",
            "^a?b{2,}c",
            "^x\\.[0-9]{1,3}\\.?y?$",
            "^[a\\-c]+$",
            "^[a-]?$",
            "^abc",
            "^$",
            "^",
            "^[a-c]{2,3}[c-e]$",
            "^[0-9]*[0-9]$",
            "^(a|b)$",
            "a+",
            "^.$",
            "^[^a]{2}$",
        ];
        let texts = [
            "", "a", "b", "ab", "abc", "abcd", "bb", "bbc", "abbbc", "0af9", "0aF9", "ab-12", "ab-", "x.1", "x.123.y",
            "x.1234", "a/b", "/abc", "é/ab", "éé", "é", "a-c", "-", "12", "ccc", "cce", "abe", "a\n", "x_1", "_x",
            "a_",
        ];
        let mut simple = 0;
        for pattern in patterns {
            let engine = crate::pattern::build(pattern).unwrap();
            let Some(row) = Row::of(pattern) else { continue };
            simple += 1;
            for text in texts {
                assert_eq!(row.is_match(text.as_bytes()), engine.is_match(text.as_bytes()), "{pattern} {text:?}");
            }
        }
        assert_eq!(simple, 11);
    }
}
