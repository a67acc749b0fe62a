//! Rewrites a pattern of PCRE into the dialect of the engines that run it.
//!
//! One pass over the bytes. What PCRE reads leniently is made explicit; what only a backtracking engine can do
//! (lookaround, backreferences, atomic groups, possessive quantifiers) is recognised, so that every other pattern runs
//! on an engine that takes linear time.

use super::class::{self, write_byte, write_class};
use super::escape;

/// A pattern in the dialect of its engine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated {
    /// The rewritten pattern.
    pub(super) pattern: String,
    /// Whether it needs the backtracking engine.
    pub(super) backtracking: bool,
    /// For each byte of the rewritten pattern, the byte of the original it comes from.
    pub(super) origins: Vec<usize>,
}

struct Translator<'a> {
    pattern: &'a [u8],
    at: usize,
    output: String,
    origins: Vec<usize>,
    backtracking: bool,
    groups: usize,
    /// For each open group, whether white space was ignored outside of it.
    outer: Vec<bool>,
    /// Whether white space and comments are ignored: `(?x)`.
    extended: bool,
    /// Whether the last thing written can be repeated, and whether it already is.
    repeatable: bool,
    repeated: bool,
}

type Failure = (&'static str, usize);

/// Rewrites `pattern`. The error is a message and the byte of the pattern it is about.
pub(super) fn translate(pattern: &[u8]) -> Result<Translated, Failure> {
    let mut translator = Translator {
        pattern,
        at: 0,
        output: String::with_capacity(pattern.len() + 16),
        origins: Vec::with_capacity(pattern.len() + 16),
        backtracking: false,
        groups: count_groups(pattern),
        outer: Vec::new(),
        extended: false,
        repeatable: false,
        repeated: false,
    };
    while let Some(&byte) = pattern.get(translator.at) {
        let start = translator.at;
        translator.step(byte)?;
        let length = translator.output.len();
        translator.origins.resize(length, start);
    }
    Ok(Translated { pattern: translator.output, backtracking: translator.backtracking, origins: translator.origins })
}

impl Translator<'_> {
    fn step(&mut self, byte: u8) -> Result<(), Failure> {
        let repeated = std::mem::take(&mut self.repeated);
        let repeatable = std::mem::replace(&mut self.repeatable, true);
        match byte {
            b'\\' => self.escape()?,
            b'[' => {
                let (set, negated, end) = class::read(self.pattern, self.at)?;
                write_class(set, negated, &mut self.output);
                self.at = end;
            }
            b'(' => self.group()?,
            b')' => {
                if let Some(extended) = self.outer.pop() {
                    self.extended = extended;
                }
                self.copy(byte);
            }
            b'|' | b'^' => {
                self.copy(byte);
                self.repeatable = byte == b'^';
            }
            b'$' | b'.' => self.copy(byte),
            b'*' | b'+' | b'?' => self.quantifier(byte, repeatable, repeated)?,
            b'{' => match counted(self.pattern, self.at) {
                Some(end) if repeatable => {
                    let text = self.pattern.get(self.at..end).unwrap_or_default();
                    self.output.extend(text.iter().map(|&byte| char::from(byte)));
                    self.at = end;
                    self.repeated = true;
                }
                _ => self.literal(byte),
            },
            b' ' | b'\t'..=b'\r' if self.extended => {
                self.at += 1;
                (self.repeatable, self.repeated) = (repeatable, repeated);
            }
            b'#' if self.extended => {
                let rest = self.pattern.get(self.at..).unwrap_or_default();
                self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                (self.repeatable, self.repeated) = (repeatable, repeated);
            }
            _ => self.literal(byte),
        }
        Ok(())
    }

    fn copy(&mut self, byte: u8) {
        self.output.push(char::from(byte));
        self.at += 1;
    }

    fn literal(&mut self, byte: u8) {
        write_byte(byte, &mut self.output);
        self.at += 1;
    }

    fn quantifier(&mut self, byte: u8, repeatable: bool, repeated: bool) -> Result<(), Failure> {
        if repeated {
            // After a quantifier, `?` makes it lazy and `+` possessive; the latter only the backtracking engine knows.
            match byte {
                b'?' => {}
                b'+' => self.backtracking = true,
                _ => return Err(("this quantifier follows a quantifier", self.at)),
            }
            self.copy(byte);
            self.repeatable = false;
            return Ok(());
        }
        if !repeatable {
            return Err(("there is nothing here for this quantifier to repeat", self.at));
        }
        self.copy(byte);
        self.repeated = true;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Failure> {
        let Some(&letter) = self.pattern.get(self.at + 1) else {
            return Err(("a backslash ends this pattern", self.at));
        };
        match letter {
            b'Q' => {
                let rest = self.pattern.get(self.at + 2..).unwrap_or_default();
                let length = memchr::memmem::find(rest, b"\\E").unwrap_or(rest.len());
                for &byte in rest.get(..length).unwrap_or_default() {
                    write_byte(byte, &mut self.output);
                }
                self.at = (self.at + 2 + length + 2).min(self.pattern.len());
                return Ok(());
            }
            b'E' => {
                self.at += 2;
                return Ok(());
            }
            b'A' | b'z' | b'b' | b'B' | b'd' | b'D' | b'w' | b'W' | b's' | b'S' => {
                self.output.push('\\');
                self.output.push(char::from(letter));
            }
            b'h' | b'H' | b'v' | b'V' => {
                write_class(class::shorthand(letter).unwrap_or_default(), false, &mut self.output);
            }
            b'R' => self.output.push_str("(?:\\x0d\\x0a|[\\x0a-\\x0d\\x85])"),
            b'N' => self.output.push_str("[^\\x0a]"),
            b'C' => self.output.push_str("(?s:.)"),
            b'Z' => self.output.push_str("(?:\\x0a?\\z)"),
            b'G' | b'K' => {
                self.backtracking = true;
                self.output.push('\\');
                self.output.push(char::from(letter));
            }
            b'g' | b'k' => return self.named_reference(letter),
            b'1'..=b'9' => {
                let rest = self.pattern.get(self.at + 1..).unwrap_or_default();
                let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count().min(3);
                let number = rest
                    .get(..length)
                    .unwrap_or_default()
                    .iter()
                    .fold(0usize, |number, digit| number * 10 + usize::from(digit - b'0'));
                if number >= 10 && number > self.groups {
                    let (byte, end) = escape::byte(self.pattern, self.at, true)?;
                    write_byte(byte, &mut self.output);
                    self.at = end;
                    return Ok(());
                }
                self.reference(number)?;
                self.at += 1 + length;
                return Ok(());
            }
            _ => {
                let (byte, end) = escape::byte(self.pattern, self.at, false)?;
                write_byte(byte, &mut self.output);
                self.at = end;
                return Ok(());
            }
        }
        self.at += 2;
        Ok(())
    }

    fn reference(&mut self, number: usize) -> Result<(), Failure> {
        if number == 0 || number > self.groups {
            return Err(("there is no such group", self.at));
        }
        self.backtracking = true;
        // In a group of its own, or the digits that follow would belong to the number.
        self.output.push_str(&format!("(?:\\{number})"));
        Ok(())
    }

    /// `\g1`, `\g{1}`, `\g{-1}`, `\k<name>`, `\k'name'`, `\k{name}`, `\g{name}`.
    fn named_reference(&mut self, letter: u8) -> Result<(), Failure> {
        let rest = self.pattern.get(self.at + 2..).unwrap_or_default();
        let close = match rest.first() {
            Some(b'{') => b'}',
            Some(b'<') => b'>',
            Some(b'\'') => b'\'',
            Some(digit) if letter == b'g' && digit.is_ascii_digit() => {
                let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count().min(3);
                let number = rest.get(..length).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
                self.reference(number.unwrap_or(0))?;
                self.at += 2 + length;
                return Ok(());
            }
            _ => return Err(("this reference is malformed", self.at)),
        };
        let inside = rest.get(1..).unwrap_or_default();
        let length = memchr::memchr(close, inside).ok_or(("this reference is not closed", self.at))?;
        let name = inside.get(..length).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
        if let Ok(number) = name.parse::<i64>() {
            let opened = count_groups(self.pattern.get(..self.at).unwrap_or_default());
            let number = if number < 0 { opened as i64 + 1 + number } else { number };
            self.reference(usize::try_from(number).unwrap_or(0))?;
        } else if !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
            self.backtracking = true;
            self.output.push_str(&format!("\\k<{name}>"));
        } else {
            return Err(("this reference is malformed", self.at));
        }
        self.at += 2 + 1 + length + 1;
        Ok(())
    }

    fn group(&mut self) -> Result<(), Failure> {
        self.repeatable = false;
        let rest = self.pattern.get(self.at + 1..).unwrap_or_default();
        if rest.first() == Some(&b'*') && rest.get(1).is_some_and(u8::is_ascii_uppercase) {
            return Err(("backtracking verbs are not supported", self.at));
        }
        let Some(inside) = rest.strip_prefix(b"?") else {
            self.outer.push(self.extended);
            self.copy(b'(');
            return Ok(());
        };
        let opening: &[(&[u8], &str, bool)] = &[
            (b":", "(?:", false),
            (b"<=", "(?<=", true),
            (b"<!", "(?<!", true),
            (b"=", "(?=", true),
            (b"!", "(?!", true),
            (b">", "(?>", true),
            (b"(", "(?(", true),
        ];
        if let Some(&(prefix, written, backtracking)) = opening.iter().find(|(prefix, ..)| inside.starts_with(prefix)) {
            self.outer.push(self.extended);
            self.backtracking |= backtracking;
            self.output.push_str(written);
            self.at += 2 + prefix.len();
            return Ok(());
        }
        let named =
            [&b"P<"[..], b"<", b"'"].into_iter().find_map(|prefix| Some((prefix, inside.strip_prefix(prefix)?)));
        if let Some((prefix, name)) = named {
            let close = if prefix == b"'" { b'\'' } else { b'>' };
            let length = memchr::memchr(close, name).ok_or(("the name of this group is not closed", self.at))?;
            let name = name.get(..length).unwrap_or_default();
            if !name.iter().all(|&byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
                return Err(("the name of this group has other characters than letters, digits and _", self.at));
            }
            self.outer.push(self.extended);
            self.output.push_str("(?P<");
            self.output.extend(name.iter().map(|&byte| char::from(byte)));
            self.output.push('>');
            self.at += 2 + prefix.len() + length + 1;
            return Ok(());
        }
        match inside.first() {
            Some(b'#') => {
                let length = memchr::memchr(b')', inside).ok_or(("this comment is not closed", self.at))?;
                self.at += 2 + length + 1;
                Ok(())
            }
            Some(b'|') => Err(("branch reset groups are not supported", self.at)),
            Some(b'R' | b'&' | b'0'..=b'9' | b'+') => Err(("recursion is not supported", self.at)),
            _ => self.flags(inside),
        }
    }

    /// `(?i)`, `(?i-s:...)`.
    fn flags(&mut self, inside: &[u8]) -> Result<(), Failure> {
        let length = inside.iter().position(|byte| matches!(byte, b':' | b')'));
        let length = length.ok_or(("this group is not closed", self.at))?;
        let (mut on, mut off) = (String::new(), String::new());
        let mut positive = true;
        let mut extended = self.extended;
        for &flag in inside.get(..length).unwrap_or_default() {
            match flag {
                b'-' if positive => positive = false,
                b'i' | b'm' | b's' | b'U' => if positive { &mut on } else { &mut off }.push(char::from(flag)),
                // White space is dropped here: the engines would drop it in character classes too.
                b'x' => extended = positive,
                // Duplicate names and automatic captures change nothing here.
                b'J' | b'n' => {}
                _ => return Err(("there is no such flag", self.at)),
            }
        }
        let scoped = inside.get(length) == Some(&b':');
        if scoped {
            self.outer.push(self.extended);
        }
        self.extended = extended;
        self.at += 2 + length + 1;
        if !scoped && on.is_empty() && off.is_empty() {
            return Ok(());
        }
        self.output.push_str("(?");
        self.output.push_str(&on);
        if !off.is_empty() {
            self.output.push('-');
            self.output.push_str(&off);
        }
        self.output.push(if scoped { ':' } else { ')' });
        Ok(())
    }
}

/// Where the `{n}`, `{n,}` or `{n,m}` at `at` ends; `None` if the brace stands for itself.
fn counted(pattern: &[u8], at: usize) -> Option<usize> {
    let rest = pattern.get(at + 1..)?;
    let close = memchr::memchr(b'}', rest)?;
    let inside = rest.get(..close)?;
    let (least, most) = match memchr::memchr(b',', inside) {
        Some(comma) => (inside.get(..comma)?, inside.get(comma + 1..)?),
        None => (inside, &b""[..]),
    };
    let number = |digits: &[u8]| digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit);
    (!least.is_empty() && number(least) && number(most)).then_some(at + 1 + close + 1)
}

/// How many capturing groups a pattern opens.
fn count_groups(pattern: &[u8]) -> usize {
    let mut count = 0;
    let mut at = 0;
    while let Some(&byte) = pattern.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => {
                if let Ok((_, _, end)) = class::read(pattern, at) {
                    at = end;
                    continue;
                }
            }
            b'(' => {
                let rest = pattern.get(at + 1..).unwrap_or_default();
                let named = rest.starts_with(b"?P<")
                    || rest.starts_with(b"?'")
                    || (rest.starts_with(b"?<") && !matches!(rest.get(2), Some(b'=' | b'!')));
                count += usize::from(named || rest.first() != Some(&b'?'));
            }
            _ => {}
        }
        at += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_what_pcre_reads_leniently() {
        let cases: &[(&str, &str, bool)] = &[
            ("a.b", "a.b", false),
            ("\\x{bc}", "\\xbc", false),
            ("\\xbc", "\\xbc", false),
            ("\\'\\\"\\_\\<\\-", "\\x27\\x22\\x5f\\x3c\\x2d", false),
            ("a{", "a\\x7b", false),
            ("{a}", "\\x7ba\\x7d", false),
            ("a{2,3}", "a{2,3}", false),
            ("a{,3}", "a\\x7b\\x2c3\\x7d", false),
            ("]", "\\x5d", false),
            ("(?i)k", "(?i)k", false),
            ("(?i:k)", "(?i:k)", false),
            ("(?x) a b # c\n d", "abd", false),
            ("(?x: a [ ] ) b", "(?:a[\\x20])\\x20b", false),
            ("(?#x)a", "a", false),
            ("\\Qa.b\\E+", "a\\x2eb+", false),
            ("a++", "a++", true),
            ("a+?", "a+?", false),
            ("(?>a)", "(?>a)", true),
            ("(?=a)(?!b)(?<=c)(?<!d)", "(?=a)(?!b)(?<=c)(?<!d)", true),
            ("(a)\\1", "(a)(?:\\1)", true),
            ("(a)\\10", "(a)\\x08", false),
            ("(?<n>a)\\k<n>", "(?P<n>a)\\k<n>", true),
            ("(?'n'a)", "(?P<n>a)", false),
            ("(a)\\g{-1}", "(a)(?:\\1)", true),
            ("\\h", "[\\x09\\x20\\xa0]", false),
            ("\\012", "\\x0a", false),
            ("\\cA", "\\x01", false),
        ];
        for &(pattern, expected, backtracking) in cases {
            let translated = translate(pattern.as_bytes());
            let translated = translated.map(|it| (it.pattern, it.backtracking));
            assert_eq!(translated, Ok((expected.to_string(), backtracking)), "{pattern}");
        }
        assert_eq!(translate(b"\xe9+").map(|it| it.pattern), Ok("\\xe9+".to_string()));
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let cases: &[(&str, usize)] = &[
            ("a\\", 1),
            ("x[a", 1),
            ("a**", 2),
            ("(*ACCEPT)", 0),
            ("(?|a)", 0),
            ("(?R)", 0),
            ("\\2(a)", 0),
            ("\\x{100}", 0),
            ("\\p{L}", 0),
            ("(?q)", 0),
            ("+a", 0),
        ];
        for &(pattern, offset) in cases {
            assert_eq!(translate(pattern.as_bytes()).map_err(|(_, at)| at).err(), Some(offset), "{pattern}");
        }
    }

    #[test]
    fn origins_point_into_the_original() {
        let translated = translate(b"\\'[ab]c").expect("valid");
        assert_eq!(translated.pattern, "\\x27[ab]c");
        assert_eq!(translated.origins.len(), translated.pattern.len());
        assert_eq!(translated.origins.last(), Some(&6));
        assert_eq!(translated.origins.get(4), Some(&2));
    }
}
