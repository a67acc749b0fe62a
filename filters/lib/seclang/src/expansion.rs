//! Macros: text with `%{VARIABLE.key}` in it.

use crate::operator::{self, OperatorArgument};
use crate::vocabulary::{IMPOSSIBLE, Shape, Variable, nearest};

/// Text with macros, parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text as it is.
    Text(Box<[u8]>),
    /// The value of a variable; of a collection, of its first value with the key.
    Value(Variable, Option<Box<[u8]>>),
    /// The first value of a collection whose name the pattern finds.
    Pattern(Variable, OperatorArgument),
}

/// Why a macro is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TemplateError {
    /// The byte of the text.
    pub(crate) offset: usize,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Template {
    /// Parses the text. `%{` without an end is text.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut literal: Vec<u8> = Vec::new();
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            let inner = rest.strip_prefix(b"%{").and_then(|inner| {
                let end = inner.iter().position(|&byte| byte == b'}')?;
                Some((inner.get(..end)?, inner.get(end + 1..)?))
            });
            match inner {
                Some((name, after)) => {
                    let value = value(name, text.len() - rest.len())?;
                    if !literal.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
                    }
                    pieces.push(value);
                    rest = after;
                }
                None => {
                    literal.push(byte);
                    rest = after;
                }
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal.into()));
        }
        Ok(Self { pieces })
    }

    /// The text, if there is no macro in it.
    pub(crate) fn as_text(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            [] => Some(&[]),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}

fn value(name: &[u8], offset: usize) -> Result<Piece, TemplateError> {
    let split = name.iter().position(|byte| matches!(byte, b'.' | b':'));
    let (head, key) = match split.and_then(|at| Some((name.get(..at)?, name.get(at + 1..)?))) {
        Some((head, key)) => (head, Some(key)),
        None => (name, None),
    };
    let head = String::from_utf8_lossy(head);
    let Some(variable) = Variable::from_name(&head) else {
        let reason = IMPOSSIBLE.iter().find(|(known, _)| known.eq_ignore_ascii_case(&head));
        return Err(TemplateError {
            offset,
            message: format!("unknown variable '{head}' in a macro"),
            help: match reason {
                Some((_, reason)) => Some((*reason).to_owned()),
                None => nearest(&head, Variable::names()).map(|name| format!("did you mean '{name}'?")),
            },
        });
    };
    if variable.shape() == Shape::Scalar && key.is_some() {
        return Err(TemplateError {
            offset,
            message: format!("{} has one value: no key selects from it", variable.name()),
            help: Some(format!("write %{{{}}}", variable.name())),
        });
    }
    match key.and_then(|key| key.strip_prefix(b"/")?.strip_suffix(b"/")) {
        Some(pattern) => {
            let checked = operator::check_key(pattern);
            let checked =
                checked.map_err(|error| TemplateError { offset, message: error.message, help: error.help })?;
            Ok(Piece::Pattern(variable, checked))
        }
        None => Ok(Piece::Value(variable, key.map(Into::into))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_text_and_macros() {
        let found = Template::parse(b"a %{tx.Score}%{MATCHED_VAR} 100%{").unwrap();
        assert_eq!(found.pieces.len(), 4);
        assert_eq!(found.pieces[1], Piece::Value(Variable::Tx, Some((*b"Score").into())));
        assert_eq!(found.pieces[3], Piece::Text((*b" 100%{").into()));
        assert_eq!(Template::parse(b"plain").unwrap().as_text(), Some(&b"plain"[..]));
    }

    #[test]
    fn refuses_what_does_not_exist() {
        let error = Template::parse(b"x %{MATCHED_VARZ}").unwrap_err();
        assert_eq!(error.offset, 2);
        assert!(error.help.unwrap().contains("MATCHED_VAR"));
        assert!(Template::parse(b"%{REQUEST_URI.a}").is_err());
        assert!(Template::parse(b"%{TX:/(/}").is_err());
    }
}
