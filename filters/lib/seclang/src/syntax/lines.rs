//! Lines, continuations, comments, and the arguments of a directive.

use nom::IResult;
use nom::Parser;
use nom::bytes::complete::{take_till1, take_while, take_while1};

use super::offset_in;
use crate::compile::MAX_DIAGNOSTICS;
use crate::source::{Diagnostic, Source};

/// A directive and its arguments.
#[derive(Debug)]
pub(crate) struct Directive {
    /// The name as written.
    pub(crate) name: String,
    /// The byte of the source where the name begins.
    pub(crate) offset: usize,
    /// The arguments, unquoted.
    pub(crate) arguments: Vec<Argument>,
}

/// An argument without its quotes, and where its bytes come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Argument {
    /// The bytes: quotes removed, `\"` within quotes turned into `"`.
    pub(crate) text: Vec<u8>,
    /// For each run of bytes that lie side by side in the source: its start in `text`, its start in the source.
    runs: Vec<(usize, usize)>,
}

impl Argument {
    /// The byte of the source that became byte `offset` of the text.
    pub(crate) fn source_offset(&self, offset: usize) -> usize {
        source_offset(&self.runs, offset)
    }

    fn push(&mut self, byte: u8, at: usize) {
        let contiguous = (self.runs.last()).is_some_and(|(start, from)| from + (self.text.len() - start) == at);
        if !contiguous {
            self.runs.push((self.text.len(), at));
        }
        self.text.push(byte);
    }
}

/// A logical line: physical lines joined where they end in a backslash.
#[derive(Default)]
struct Line {
    text: Vec<u8>,
    /// As in [`Argument`]: start in `text`, start in the source.
    runs: Vec<(usize, usize)>,
}

impl Line {
    fn source_offset(&self, offset: usize) -> usize {
        source_offset(&self.runs, offset)
    }

    fn push(&mut self, text: &[u8], at: usize) {
        self.runs.push((self.text.len(), at));
        self.text.extend_from_slice(text);
    }
}

/// The byte of the source that became byte `offset` of a text of these runs, which ascend: a line may have as many as bytes.
fn source_offset(runs: &[(usize, usize)], offset: usize) -> usize {
    let behind = runs.partition_point(|(start, _)| *start <= offset);
    let run = behind.checked_sub(1).and_then(|last| runs.get(last));
    run.map_or(0, |(start, at)| at + (offset - start))
}

/// All directives of a source. Lines that cannot be split into arguments become diagnostics and are left out.
pub(crate) fn directives(source: &Source, diagnostics: &mut Vec<Diagnostic>) -> Vec<Directive> {
    let mut found = Vec::new();
    for line in logical_lines(&source.text) {
        match directive(&line) {
            Ok(Some(directive)) => found.push(directive),
            Ok(None) => {}
            Err(_) if diagnostics.len() >= MAX_DIAGNOSTICS => {}
            Err((offset, message)) => {
                diagnostics.push(Diagnostic::at(source, line.source_offset(offset), message).with_help(
                    "close the quote, write \\\" for a quote within quotes, and end every line but the last with a backslash",
                ));
            }
        }
    }
    found
}

fn logical_lines(text: &[u8]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut open = Line::default();
    let mut at = 0;
    for physical in text.split_inclusive(|&byte| byte == b'\n') {
        let start = at;
        at += physical.len();
        let body = physical.strip_suffix(b"\n").unwrap_or(physical);
        let body = body.strip_suffix(b"\r").unwrap_or(body);
        // A comment ends with its line even where that ends in a backslash: swallowing the next line would silently
        // drop a rule.
        if open.text.is_empty() && body.trim_ascii_start().starts_with(b"#") {
            continue;
        }
        match body.strip_suffix(b"\\") {
            Some(body) => open.push(body, start),
            None => {
                open.push(body, start);
                lines.push(std::mem::take(&mut open));
            }
        }
    }
    if !open.text.is_empty() {
        lines.push(open);
    }
    lines
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn spaces(input: &[u8]) -> IResult<&[u8], &[u8]> {
    take_while(is_space).parse(input)
}

fn name(input: &[u8]) -> IResult<&[u8], &[u8]> {
    take_while1(|byte: u8| byte.is_ascii_alphanumeric() || byte == b'_').parse(input)
}

fn word(input: &[u8]) -> IResult<&[u8], &[u8]> {
    take_till1(is_space).parse(input)
}

fn directive(line: &Line) -> Result<Option<Directive>, (usize, String)> {
    let whole = line.text.as_slice();
    let Ok((rest, _)) = spaces(whole) else {
        return Ok(None);
    };
    if rest.is_empty() {
        return Ok(None);
    }
    let start = offset_in(whole, rest);
    let Ok((mut rest, found)) = name(rest) else {
        return Err((start, "a directive was expected here".to_owned()));
    };
    let mut directive = Directive {
        name: String::from_utf8_lossy(found).into_owned(),
        offset: line.source_offset(start),
        arguments: Vec::new(),
    };
    while let Ok((after, _)) = spaces(rest) {
        if after.is_empty() {
            break;
        }
        let (after, argument) = argument(line, after)?;
        directive.arguments.push(argument);
        rest = after;
    }
    Ok(Some(directive))
}

fn argument<'a>(line: &'a Line, input: &'a [u8]) -> Result<(&'a [u8], Argument), (usize, String)> {
    let start = offset_in(&line.text, input);
    let mut argument = Argument::default();
    let quote = match input.first() {
        Some(&quote) if quote == b'"' || quote == b'\'' => quote,
        _ => {
            let Ok((rest, word)) = word(input) else {
                return Err((start, "an argument was expected here".to_owned()));
            };
            for (at, &byte) in word.iter().enumerate() {
                argument.push(byte, line.source_offset(start + at));
            }
            return Ok((rest, argument));
        }
    };
    let mut bytes = input.iter().copied().enumerate().skip(1).peekable();
    while let Some((at, byte)) = bytes.next() {
        if byte == quote {
            if argument.text.is_empty() {
                argument.runs.push((0, line.source_offset(start + at)));
            }
            let rest = input.get(at + 1..).unwrap_or_default();
            if rest.first().is_some_and(|&next| !is_space(next)) {
                return Err((start + at + 1, "white space was expected after the closing quote".to_owned()));
            }
            return Ok((rest, argument));
        }
        // Only the quote itself is unescaped: every other backslash belongs to the pattern.
        match bytes.peek() {
            Some(&(next_at, next)) if byte == b'\\' && next == quote => {
                argument.push(next, line.source_offset(start + next_at));
                bytes.next();
            }
            Some(&(next_at, next)) if byte == b'\\' && next == b'\\' => {
                argument.push(byte, line.source_offset(start + at));
                argument.push(next, line.source_offset(start + next_at));
                bytes.next();
            }
            _ => argument.push(byte, line.source_offset(start + at)),
        }
    }
    Err((start, "this quote is never closed".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<Directive>, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let found = directives(&Source::new("x", text), &mut diagnostics);
        (found, diagnostics)
    }

    fn arguments(directive: &Directive) -> Vec<String> {
        let texts = directive.arguments.iter();
        texts.map(|argument| String::from_utf8(argument.text.clone()).unwrap()).collect()
    }

    #[test]
    fn joins_lines_and_remembers_where_they_were() {
        let text = "# note \\\nSecRule ARGS \"@rx a\\\"b\" \\\r\n    \"id:1,\\\n    pass\"\n\nSecRuleEngine On";
        let (found, errors) = read(text);
        assert!(errors.is_empty());
        assert_eq!(found.len(), 2);
        assert_eq!(arguments(&found[0]), ["ARGS", "@rx a\"b", "id:1,    pass"]);
        let actions = &found[0].arguments[2];
        let at = actions.text.windows(4).position(|w| w == b"pass").unwrap();
        assert_eq!(actions.source_offset(at), text.find("pass").unwrap());
        assert_eq!(found[1].offset, text.find("SecRuleEngine").unwrap());
    }

    #[test]
    fn reads_single_quotes_and_bare_words() {
        let (found, _) = read("SecRule ARGS 'a b' id:1\nSecMarker END");
        assert_eq!(arguments(&found[0]), ["ARGS", "a b", "id:1"]);
        assert_eq!(arguments(&found[1]), ["END"]);
    }

    #[test]
    fn names_the_open_quote_and_goes_on() {
        let (found, errors) = read("SecRule ARGS \"@rx a\nSecRuleEngine On\n");
        assert_eq!(found.len(), 1);
        assert_eq!((errors[0].line, errors[0].column), (1, 14));
    }

    #[test]
    fn an_escaped_backslash_does_not_escape_the_quote() {
        let (found, errors) = read("SecRule ARGS \"a\\\\\" \"id:1\"");
        assert!(errors.is_empty());
        assert_eq!(arguments(&found[0])[1], "a\\\\");
    }
}
