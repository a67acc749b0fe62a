//! The document: what the text says, before anything is known to make sense.
//!
//! [`directives`] splits a source into directives with their arguments; [`targets`], [`operator`] and [`actions`] read
//! the three arguments of a rule. Everything carries the byte it came from, for error messages.

mod actions;
mod lines;
mod operator;
mod targets;

pub(crate) use actions::{Action, actions};
pub(crate) use lines::{Argument, Directive, directives};
pub(crate) use operator::operator;
pub(crate) use targets::{Key, Target, targets};

/// A piece of an argument that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// The byte of the argument's text.
    pub(crate) offset: usize,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

impl SyntaxError {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// How far `rest` is into `whole`, of which it is the end.
fn offset_in(whole: &[u8], rest: &[u8]) -> usize {
    whole.len().saturating_sub(rest.len())
}
