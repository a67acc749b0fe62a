//! Operators (`@rx`, `@pm`, `@eq`, ...): each decides whether one value matches its argument.
//!
//! An operator lives twice: [`check`] runs where rules are written and explains what is wrong with an argument;
//! [`Operator::build`] runs where rules are enforced, on an argument that was checked, and defers every costly step
//! (compiling a pattern, building an automaton) to the first value it sees.

mod captures;
mod kind;

pub use captures::{Captures, MAX_CAPTURE_LENGTH, MAX_CAPTURES};
pub use kind::OperatorKind;

/// The data files next to the rules (`@pmFromFile`, `@ipMatchFromFile`).
pub trait DataFiles {
    /// The content of the file a rule names, or `None` if there is no such file.
    fn read(&self, name: &str) -> Option<Vec<u8>>;
}

/// An argument that passed [`check`], with its data files resolved. Its two fields are all there is to store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperatorArgument {
    /// The argument as the rule writes it.
    pub text: Vec<u8>,
    /// What was derived from it: the phrases of `@pm` and of data files, the networks of `@ipMatch`, the engine and
    /// the pattern of `@rx` in the dialect of that engine; empty for the other operators.
    pub phrases: Vec<Vec<u8>>,
}

/// Why an argument is refused, for the person who wrote the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The byte of the argument the message is about.
    pub offset: Option<usize>,
}

/// Checks the argument of an operator and resolves the files it names.
pub fn check(kind: OperatorKind, argument: &[u8], files: &dyn DataFiles) -> Result<OperatorArgument, OperatorError> {
    let _ = (kind, files);
    Ok(OperatorArgument {
        text: argument.to_vec(),
        phrases: Vec::new(),
    })
}

/// An operator ready to evaluate values. Shared by reference between requests; nothing in it changes but caches.
#[derive(Debug)]
pub struct Operator {
    kind: OperatorKind,
    argument: Vec<u8>,
    expands: bool,
}

impl Operator {
    /// Builds the operator of a checked argument. Cheap: patterns are compiled when first needed.
    ///
    /// The error says which part of a stored argument is not what [`check`] would have written.
    pub fn build(kind: OperatorKind, argument: &OperatorArgument) -> Result<Operator, String> {
        Ok(Operator {
            kind,
            argument: argument.text.clone(),
            expands: false,
        })
    }

    /// The operator's kind.
    pub fn kind(&self) -> OperatorKind {
        self.kind
    }

    /// Whether the argument holds `%{...}` macros that this operator expands: the caller then passes `expanded`.
    pub fn needs_expansion(&self) -> bool {
        self.expands
    }

    /// The argument as the rule writes it.
    pub fn argument(&self) -> &[u8] {
        &self.argument
    }

    /// Whether `value` matches, without the negation of `!@`. `expanded` replaces the argument if it has macros.
    pub fn evaluate(&self, value: &[u8], expanded: Option<&[u8]>, captures: &mut Captures) -> bool {
        let _ = (value, expanded, captures);
        false
    }
}
