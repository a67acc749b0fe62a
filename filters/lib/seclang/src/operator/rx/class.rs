//! Character classes of PCRE, read into a set of bytes.
//!
//! A set of 256 bits has no syntax left to disagree about: what PCRE reads leniently (`[[]`, `[\_]`, `[a-\d]`) is
//! written again as plain ranges of `\xHH`.

use std::fmt::Write;

/// A set of bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ByteSet {
    words: [u64; 4],
}

impl ByteSet {
    /// Adds one byte.
    pub(crate) fn insert(&mut self, byte: u8) {
        if let Some(word) = self.words.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    /// Adds every byte from `first` to `last`.
    pub(crate) fn insert_range(&mut self, first: u8, last: u8) {
        for byte in first..=last {
            self.insert(byte);
        }
    }

    /// Whether the byte is in the set.
    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.words.get(usize::from(byte >> 6)).is_some_and(|word| word >> (byte & 63) & 1 == 1)
    }

    fn of(predicate: impl Fn(u8) -> bool) -> Self {
        let mut set = Self::default();
        (0..=255).filter(|&byte| predicate(byte)).for_each(|byte| set.insert(byte));
        set
    }

    /// Whether the two have a byte in common.
    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(one, other)| one & other != 0)
    }

    /// The bytes of a value.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        if bytes.len() >= 512 {
            let mut seen = [false; 256];
            for byte in bytes {
                if let Some(seen) = seen.get_mut(usize::from(*byte)) {
                    *seen = true;
                }
            }
            let mut set = Self::default();
            (0..=255u8).zip(seen).filter(|(_, seen)| *seen).for_each(|(byte, _)| set.insert(byte));
            return set;
        }
        // Four sums in registers: a word in memory would have to be read back for every byte.
        let (mut first, mut second, mut third, mut fourth) = (0u64, 0u64, 0u64, 0u64);
        for &byte in bytes {
            let bit = 1u64 << (byte & 63);
            let word = byte >> 6;
            first |= if word == 0 { bit } else { 0 };
            second |= if word == 1 { bit } else { 0 };
            third |= if word == 2 { bit } else { 0 };
            fourth |= if word == 3 { bit } else { 0 };
        }
        Self { words: [first, second, third, fourth] }
    }

    /// The bytes, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let words = self.words;
        words.into_iter().zip([0u8, 64, 128, 192]).flat_map(|(word, base)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = u8::try_from(left.trailing_zeros()).ok().filter(|bit| *bit < 64)?;
                left &= left - 1;
                Some(base + bit)
            })
        })
    }

    /// The four words of the set, to store.
    pub(crate) fn words(&self) -> [u64; 4] {
        self.words
    }

    /// The set of four words.
    pub(crate) fn from_words(words: [u64; 4]) -> Self {
        Self { words }
    }

    /// Adds every byte of another set.
    pub(crate) fn add(&mut self, other: Self) {
        for (word, more) in self.words.iter_mut().zip(other.words) {
            *word |= more;
        }
    }

    /// The set with both cases of every letter in it.
    pub(crate) fn folded(self) -> Self {
        // Of the second word bits 1 to 26 are the upper case letters, bits 33 to 58 the lower case ones.
        const LETTERS: u64 = 0x7ff_fffe;
        let mut set = self;
        if let Some(word) = set.words.get_mut(1) {
            *word |= (*word & LETTERS) << 32 | (*word >> 32 & LETTERS);
        }
        set
    }

    /// The set without a byte.
    pub(crate) fn without(self, byte: u8) -> Self {
        let mut set = self;
        if let Some(word) = set.words.get_mut(usize::from(byte >> 6)) {
            *word &= !(1 << (byte & 63));
        }
        set
    }

    /// Every other byte.
    pub(crate) fn complement(self) -> Self {
        Self { words: self.words.map(|word| !word) }
    }

    /// Writes the set as the inside of a bracket expression.
    fn write(&self, output: &mut String) {
        let mut next = 0u16;
        while next < 256 {
            let first = next;
            while next < 256 && self.contains(next as u8) {
                next += 1;
            }
            match next - first {
                0 => next += 1,
                1 => write_byte(first as u8, output),
                2 => {
                    write_byte(first as u8, output);
                    write_byte((next - 1) as u8, output);
                }
                _ => {
                    write_byte(first as u8, output);
                    output.push('-');
                    write_byte((next - 1) as u8, output);
                }
            }
        }
    }
}

/// Writes one byte so that no regular expression syntax reads anything else.
pub(super) fn write_byte(byte: u8, output: &mut String) {
    if byte.is_ascii_alphanumeric() {
        output.push(char::from(byte));
    } else {
        // Writing to a String does not fail.
        let _ = write!(output, "\\x{byte:02x}");
    }
}

/// Writes a set as a bracket expression. A negated class is written negated, not complemented: with `(?i)` a letter
/// is outside of `[^a]` in both cases.
pub(super) fn write_class(set: ByteSet, negated: bool, output: &mut String) {
    output.push_str(if negated { "[^" } else { "[" });
    set.write(output);
    output.push(']');
}

/// The bytes of a one-letter class: `\d`, `\W`, `\h`, ...
pub(super) fn shorthand(letter: u8) -> Option<ByteSet> {
    let set = match letter.to_ascii_lowercase() {
        b'd' => ByteSet::of(|byte| byte.is_ascii_digit()),
        b'w' => ByteSet::of(|byte| byte == b'_' || byte.is_ascii_alphanumeric()),
        b's' => ByteSet::of(|byte| matches!(byte, b' ' | b'\t'..=b'\r')),
        b'h' => ByteSet::of(|byte| matches!(byte, b' ' | b'\t' | 0xa0)),
        b'v' => ByteSet::of(|byte| matches!(byte, b'\n'..=b'\r' | 0x85)),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { set.complement() } else { set })
}

/// The bytes of a POSIX class.
fn posix(name: &[u8]) -> Option<ByteSet> {
    Some(match name {
        b"alpha" => ByteSet::of(|byte| byte.is_ascii_alphabetic()),
        b"digit" => ByteSet::of(|byte| byte.is_ascii_digit()),
        b"alnum" => ByteSet::of(|byte| byte.is_ascii_alphanumeric()),
        b"upper" => ByteSet::of(|byte| byte.is_ascii_uppercase()),
        b"lower" => ByteSet::of(|byte| byte.is_ascii_lowercase()),
        b"space" => ByteSet::of(|byte| matches!(byte, b' ' | b'\t'..=b'\r')),
        b"blank" => ByteSet::of(|byte| matches!(byte, b' ' | b'\t')),
        b"punct" => ByteSet::of(|byte| byte.is_ascii_punctuation()),
        b"cntrl" => ByteSet::of(|byte| byte.is_ascii_control()),
        b"graph" => ByteSet::of(|byte| byte.is_ascii_graphic()),
        b"print" => ByteSet::of(|byte| byte == b' ' || byte.is_ascii_graphic()),
        b"xdigit" => ByteSet::of(|byte| byte.is_ascii_hexdigit()),
        b"word" => ByteSet::of(|byte| byte == b'_' || byte.is_ascii_alphanumeric()),
        b"ascii" => ByteSet::of(|byte| byte.is_ascii()),
        _ => return None,
    })
}

/// One item of a bracket expression.
enum Item {
    Byte(u8),
    Set(ByteSet),
}

/// Reads the bracket expression whose `[` is at `at`: the set, whether it is negated, and where it ends.
pub(super) fn read(pattern: &[u8], at: usize) -> Result<(ByteSet, bool, usize), (&'static str, usize)> {
    let open = at;
    let mut at = at + 1;
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut set = ByteSet::default();
    let mut first = true;
    let mut quoted = false;
    loop {
        let rest = pattern.get(at..).unwrap_or_default();
        if rest.starts_with(b"\\Q") && !quoted {
            quoted = true;
            at += 2;
            continue;
        }
        if rest.starts_with(b"\\E") {
            quoted = false;
            at += 2;
            continue;
        }
        match rest.first() {
            None => return Err(("this character class is not closed", open)),
            Some(b']') if !first && !quoted => return Ok((set, negated, at + 1)),
            Some(_) => {}
        }
        first = false;
        let (item, next) = read_item(pattern, at, quoted)?;
        at = next;
        match item {
            Item::Set(more) => set.add(more),
            Item::Byte(low) => {
                let range =
                    !quoted && pattern.get(at) == Some(&b'-') && !matches!(pattern.get(at + 1), None | Some(b']'));
                if !range {
                    set.insert(low);
                    continue;
                }
                match read_item(pattern, at + 1, false)? {
                    (Item::Byte(high), next) if low <= high => {
                        set.insert_range(low, high);
                        at = next;
                    }
                    (Item::Byte(_), _) => return Err(("the end of this range is before its start", at)),
                    // `[a-\d]`: the hyphen stands for itself.
                    (Item::Set(more), next) => {
                        set.insert(low);
                        set.insert(b'-');
                        set.add(more);
                        at = next;
                    }
                }
            }
        }
    }
}

fn read_item(pattern: &[u8], at: usize, quoted: bool) -> Result<(Item, usize), (&'static str, usize)> {
    let rest = pattern.get(at..).unwrap_or_default();
    let Some((&byte, after)) = rest.split_first() else {
        return Err(("this character class is not closed", at));
    };
    if quoted {
        return Ok((Item::Byte(byte), at + 1));
    }
    match byte {
        b'[' if after.first() == Some(&b':') => {
            let name = after.get(1..).unwrap_or_default();
            let Some(length) = memchr::memmem::find(name, b":]") else {
                return Ok((Item::Byte(byte), at + 1));
            };
            let name = name.get(..length).unwrap_or_default();
            let (inverted, name) = match name.strip_prefix(b"^") {
                Some(name) => (true, name),
                None => (false, name),
            };
            if !name.iter().all(u8::is_ascii_alphabetic) {
                return Ok((Item::Byte(byte), at + 1));
            }
            let set = posix(name).ok_or(("there is no such POSIX character class", at))?;
            let end = at + 2 + length + 2;
            Ok((Item::Set(if inverted { set.complement() } else { set }), end))
        }
        b'\\' => {
            let Some(&letter) = after.first() else {
                return Err(("a backslash ends this pattern", at));
            };
            if let Some(set) = shorthand(letter) {
                return Ok((Item::Set(set), at + 2));
            }
            let (byte, next) = super::escape::byte(pattern, at, true)?;
            Ok((Item::Byte(byte), next))
        }
        _ => Ok((Item::Byte(byte), at + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(class: &str) -> Result<String, (&'static str, usize)> {
        let (set, negated, end) = read(class.as_bytes(), 0)?;
        assert_eq!(end, class.len(), "{class}");
        let mut output = String::new();
        write_class(set, negated, &mut output);
        Ok(output)
    }

    #[test]
    fn lenient_classes_become_plain_ranges() {
        let cases = [
            ("[abc]", "[a-c]"),
            ("[^abc]", "[^a-c]"),
            ("[]a]", "[\\x5da]"),
            ("[^]a]", "[^\\x5da]"),
            ("[[]", "[\\x5b]"),
            ("[a[b]", "[\\x5bab]"),
            ("[a-]", "[\\x2da]"),
            ("[-a]", "[\\x2da]"),
            ("[a-\\d]", "[\\x2d0-9a]"),
            ("[\\d-x]", "[\\x2d0-9x]"),
            ("[\\_\\'\\\"]", "[\\x22\\x27\\x5f]"),
            ("[\\b]", "[\\x08]"),
            ("[\\x{bc}\\xbe]", "[\\xbc\\xbe]"),
            ("[[:digit:]a-c]", "[0-9a-c]"),
            ("[[:^ascii:]]", "[\\x80-\\xff]"),
            ("[a&&b]", "[\\x26ab]"),
            ("[\\n\\r]", "[\\x0a\\x0d]"),
            ("[\\v]", "[\\x0a-\\x0d\\x85]"),
            ("[\\Q]-a\\E]", "[\\x2d\\x5da]"),
            ("[\\0\\12]", "[\\x00\\x0a]"),
            ("[[:x]", "[\\x3a\\x5bx]"),
        ];
        for (class, expected) in cases {
            assert_eq!(rewritten(class).as_deref(), Ok(expected), "{class}");
        }
    }

    #[test]
    fn broken_classes_are_explained() {
        assert_eq!(rewritten("[a"), Err(("this character class is not closed", 0)));
        assert_eq!(rewritten("[z-a]"), Err(("the end of this range is before its start", 2)));
        assert_eq!(rewritten("[[:nope:]]"), Err(("there is no such POSIX character class", 1)));
        assert_eq!(rewritten("[\\"), Err(("a backslash ends this pattern", 1)));
    }
}
