//! Rule text as it comes in, and what there is to say about it.

use std::fmt;

/// One piece of rule text: a rule of a rule set, or a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Where the text comes from, as the person who wrote it would call it: `ruleset 'baseline', rule 3`, or a file name.
    pub origin: String,
    /// The text: SecLang directives, any encoding.
    pub text: Vec<u8>,
}

impl Source {
    /// A source of this origin and text.
    pub fn new(origin: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self { origin: origin.into(), text: text.into() }
    }
}

/// What is wrong with rule text, where, and what to do about it.
///
/// `Display` shows it as a compiler would: the message, the position, the line with a caret, the help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The origin of the source.
    pub origin: String,
    /// The line in the source, from 1.
    pub line: u32,
    /// The byte within the line, from 1.
    pub column: u32,
    /// The id of the rule the message is about, once it is known.
    pub rule_id: Option<u64>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The line of the source, at most [`Diagnostic::EXCERPT_LENGTH`] characters of it around the column.
    pub excerpt: String,
}

impl Diagnostic {
    /// How many characters of a line [`Diagnostic::excerpt`] holds at most: rule files have lines of several kilobytes.
    pub const EXCERPT_LENGTH: usize = 120;

    /// A message about the byte at `offset` of `source`.
    pub fn at(source: &Source, offset: usize, message: impl Into<String>) -> Self {
        let offset = offset.min(source.text.len());
        let before = source.text.get(..offset).unwrap_or_default();
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let rest = source.text.get(start..).unwrap_or_default();
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let text = rest.get(..end).unwrap_or_default().trim_ascii_end();
        let column = (offset - start).min(text.len());
        // The window keeps some text before the caret, so that the reader recognises the place.
        let from = if column > Self::EXCERPT_LENGTH - 40 { column - 40 } else { 0 };
        let excerpt = text.get(from..text.len().min(from + Self::EXCERPT_LENGTH)).unwrap_or_default();
        let mut excerpt: String = excerpt.iter().map(|&byte| printable(byte)).collect();
        if from > 0 {
            excerpt.insert_str(0, "...");
        }
        Self {
            origin: source.origin.clone(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column + 1).unwrap_or(u32::MAX),
            rule_id: None,
            message: message.into(),
            help: None,
            excerpt,
        }
    }

    /// The same with a piece of advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same with the id of the rule it is about.
    #[must_use]
    pub fn with_rule(mut self, id: Option<u64>) -> Self {
        self.rule_id = id;
        self
    }

    fn caret(&self) -> usize {
        let column = self.column as usize - usize::from(self.column > 0);
        if column > Self::EXCERPT_LENGTH - 40 { 43 } else { column }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(id) = self.rule_id {
            write!(f, " (rule {id})")?;
        }
        writeln!(f, "\n  --> {}, line {}, column {}", self.origin, self.line, self.column)?;
        writeln!(f, "   | {}", self.excerpt)?;
        write!(f, "   | {:width$}^", "", width = self.caret())?;
        if let Some(help) = &self.help {
            write!(f, "\n   = help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

fn printable(byte: u8) -> char {
    match byte {
        b'\t' => ' ',
        b' '..=b'~' => char::from(byte),
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_at_the_byte_like_a_compiler() {
        let source = Source::new("custom.conf", "SecRuleEngine On\nSecRule ARGX \"@rx x\" \"id:1\"\n");
        let shown =
            Diagnostic::at(&source, 25, "unknown variable 'ARGX'").with_help("did you mean 'ARGS'?").to_string();
        assert_eq!(
            shown,
            "error: unknown variable 'ARGX'\n  --> custom.conf, line 2, column 9\n   | SecRule ARGX \"@rx x\" \"id:1\"\n   |         ^\n   = help: did you mean 'ARGS'?"
        );
    }

    #[test]
    fn shows_a_window_of_a_long_line() {
        let text = format!("SecRule ARGS \"@rx {}\" \"bad\"", "a".repeat(4000));
        let at = text.find("bad").unwrap();
        let diagnostic = Diagnostic::at(&Source::new("x", text), at, "unknown action");
        assert!(diagnostic.excerpt.len() <= Diagnostic::EXCERPT_LENGTH + 3);
        let shown = diagnostic.to_string();
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[3].find('^').unwrap(), lines[2].find("bad").unwrap());
    }

    #[test]
    fn survives_an_offset_past_the_end() {
        assert_eq!(Diagnostic::at(&Source::new("x", ""), 9, "nothing").line, 1);
    }
}
