//! `@pm` and `@pmFromFile`: many phrases in one scan.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};

use super::captures::Captures;
use super::{DataFiles, OperatorError, RUN};

/// How many phrases one operator may have: 100 000.
pub const MAX_PHRASES: usize = 100_000;

/// Units of work for each search, and for each byte that it looks at.
const SEARCH: u64 = 600;
const BYTE: u64 = 28;

/// The phrases of an argument: words, with `|48 65|` for bytes in hexadecimal and `\` before `:`, `;`, `\` and `"`.
///
/// An argument that is not valid in this notation is taken as it stands, as ModSecurity does.
pub(super) fn split(argument: &[u8]) -> Vec<Vec<u8>> {
    let phrases =
        decode(argument).unwrap_or_else(|| argument.split(u8::is_ascii_whitespace).map(<[u8]>::to_vec).collect());
    phrases.into_iter().filter(|phrase| !phrase.is_empty()).collect()
}

fn decode(argument: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut phrases = vec![Vec::new()];
    let mut bytes = argument.iter();
    let mut hexadecimal = false;
    let mut high: Option<u32> = None;
    while let Some(&byte) = bytes.next() {
        let phrase = phrases.last_mut()?;
        match byte {
            b'|' if high.is_none() => hexadecimal = !hexadecimal,
            b' ' if hexadecimal => {}
            _ if hexadecimal => {
                let digit = char::from(byte).to_digit(16)?;
                match high.take() {
                    Some(high) => phrase.push((high << 4 | digit) as u8),
                    None => high = Some(digit),
                }
            }
            b'\\' => phrase.push(*bytes.next().filter(|byte| matches!(byte, b':' | b';' | b'\\' | b'"'))?),
            _ if byte.is_ascii_whitespace() => phrases.push(Vec::new()),
            _ => phrase.push(byte),
        }
    }
    (!hexadecimal).then_some(phrases)
}

/// The lines of the data files an argument names, without comments and blank lines.
pub(super) fn lines(argument: &[u8], files: &dyn DataFiles) -> Result<Vec<Vec<u8>>, OperatorError> {
    let names = std::str::from_utf8(argument).map_err(|error| OperatorError {
        message: "the name of the data file is not UTF-8".into(),
        help: None,
        offset: Some(error.valid_up_to()),
    })?;
    let mut lines = Vec::new();
    let mut found = false;
    for name in names.split_ascii_whitespace() {
        let offset = Some(name.as_ptr().addr() - names.as_ptr().addr());
        if name.starts_with("https://") || name.starts_with("http://") {
            return Err(OperatorError {
                message: format!("{name} is an address: data files are not downloaded while rules are loaded"),
                help: Some("Store the file next to the rules and name it.".into()),
                offset,
            });
        }
        let content = files.read(name).ok_or_else(|| OperatorError {
            message: format!("there is no data file {name}"),
            help: Some("Store the file next to the rules, or correct its name.".into()),
            offset,
        })?;
        found = true;
        for line in content.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.trim_ascii().is_empty() && !line.starts_with(b"#") {
                lines.push(line.to_vec());
            }
        }
    }
    if !found {
        return Err(OperatorError {
            message: "the name of a data file is missing".into(),
            help: None,
            offset: Some(0),
        });
    }
    Ok(lines)
}

/// Refuses what no automaton could be built of.
pub(super) fn check(phrases: &[Vec<u8>]) -> Result<(), OperatorError> {
    let refuse = |message: String| Err(OperatorError { message, help: None, offset: None });
    if phrases.is_empty() {
        return refuse("there is no phrase to search for".into());
    }
    if phrases.len() > MAX_PHRASES {
        return refuse(format!("there are {} phrases, the limit is {MAX_PHRASES}", phrases.len()));
    }
    match automaton(phrases) {
        Ok(_) => Ok(()),
        Err(error) => refuse(format!("the phrases cannot be searched for: {error}")),
    }
}

fn automaton(phrases: &[Vec<u8>]) -> Result<AhoCorasick, aho_corasick::BuildError> {
    AhoCorasickBuilder::new().ascii_case_insensitive(true).build(phrases)
}

/// Phrases whose automaton is built when the first value is searched.
#[derive(Debug)]
pub(super) struct Phrases {
    phrases: Vec<Vec<u8>>,
    automaton: OnceLock<Option<AhoCorasick>>,
}

impl Phrases {
    pub(super) fn new(phrases: Vec<Vec<u8>>) -> Self {
        Self { phrases, automaton: OnceLock::new() }
    }

    fn automaton(&self) -> Option<&AhoCorasick> {
        self.automaton.get_or_init(|| automaton(&self.phrases).ok()).as_ref()
    }

    /// Builds what the first value that is searched would have to wait for.
    pub(super) fn prepare(&self) {
        self.automaton();
    }

    /// Whether any phrase occurs, in any ASCII case; captures what was found.
    pub(super) fn evaluate(&self, value: &[u8], captures: &mut Captures) -> bool {
        let Some(automaton) = self.automaton() else {
            captures.set_limit_exceeded();
            return false;
        };
        let found = automaton.find(value);
        let seen = found.map_or(value.len(), |found| found.end());
        captures.charge((RUN + SEARCH).saturating_add(BYTE.saturating_mul(u64::try_from(seen).unwrap_or(u64::MAX))));
        let Some(found) = found else {
            return false;
        };
        captures.set(0, value.get(found.range()).unwrap_or_default());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_phrases() {
        let cases: &[(&str, &[&str])] = &[
            ("a b  c", &["a", "b", "c"]),
            ("A|42 43|D", &["ABCD"]),
            ("a|20|b c", &["a b", "c"]),
            ("|41||42|", &["AB"]),
            ("a\\:b", &["a:b"]),
            ("a|b c", &["a|b", "c"]),
            ("\\x", &["\\x"]),
            ("|4|", &["|4|"]),
            ("|zz|", &["|zz|"]),
            ("", &[]),
        ];
        for (argument, expected) in cases {
            let expected: Vec<Vec<u8>> = expected.iter().map(|phrase| phrase.as_bytes().to_vec()).collect();
            assert_eq!(split(argument.as_bytes()), expected, "{argument}");
        }
    }
}
