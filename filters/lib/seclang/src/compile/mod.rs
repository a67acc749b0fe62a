//! From text to a [`Program`]: reads the document, checks every name and value, applies removals and updates, and
//! resolves defaults and jumps. All errors are reported, not only the first.

mod actions;
mod collections;
mod control;
mod directives;
mod finish;
mod ids;
mod line_starts;
mod rules;
mod select;
mod targets;
mod words;

pub use words::{Words, words};

use crate::operator::DataFiles;
use crate::program::{Program, Settings, wire};
use crate::source::{Diagnostic, Source};
use crate::syntax::{self, Argument, Directive, SyntaxError};

use actions::ActionSet;
use ids::IdRanges;
use line_starts::LineStarts;
use rules::{Draft, OpenChain};
use select::Selection;

/// How many diagnostics are collected before compiling stops: a wrong file must not fill the memory with complaints.
pub const MAX_DIAGNOSTICS: usize = 200;

/// Compiles rule text. Sources are taken in order, as if they were one file.
///
/// # Errors
/// Everything that is wrong with the text, at most [`MAX_DIAGNOSTICS`], in the order of the text.
pub fn compile(sources: &[Source], files: &dyn DataFiles) -> Result<Program, Vec<Diagnostic>> {
    let mut compiler = Compiler::new(sources, files);
    for (index, source) in sources.iter().enumerate() {
        for directive in syntax::directives(source, &mut compiler.diagnostics) {
            compiler.directive(index, &directive);
        }
    }
    compiler.close_chain();
    compiler.finish()
}

/// Where something is: a source and a byte of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    source: usize,
    offset: usize,
}

/// `SecRuleUpdateTarget*`.
struct TargetUpdate {
    selection: Selection,
    /// Each with whether it is an exclusion.
    targets: Vec<(wire::Target, bool)>,
    place: Place,
}

/// `SecDefaultAction`.
struct Defaults {
    /// How many rules stand before it.
    rules_before: usize,
    source: usize,
    actions: ActionSet,
}

/// What is collected on the way through the text.
struct Compiler<'a> {
    sources: &'a [Source],
    /// Of each source.
    line_starts: Vec<LineStarts>,
    files: &'a dyn DataFiles,
    diagnostics: Vec<Diagnostic>,
    warnings: Vec<wire::Warning>,
    settings: Settings,
    rules: Vec<Draft>,
    operators: Vec<wire::Operator>,
    operator_index: std::collections::HashMap<wire::Operator, u32>,
    /// Markers, each with the number of rules before it.
    markers: Vec<(Vec<u8>, usize)>,
    defaults: Vec<Defaults>,
    removals: Vec<Selection>,
    target_updates: Vec<TargetUpdate>,
    action_updates: Vec<(IdRanges, ActionSet, Place)>,
    chain: OpenChain,
    /// The prefixes that the rule at hand declares.
    prefixes: Vec<Vec<u8>>,
}

impl<'a> Compiler<'a> {
    fn new(sources: &'a [Source], files: &'a dyn DataFiles) -> Self {
        Self {
            sources,
            line_starts: sources.iter().map(|source| LineStarts::of(&source.text)).collect(),
            files,
            diagnostics: Vec::new(),
            warnings: Vec::new(),
            settings: Settings::default(),
            rules: Vec::new(),
            operators: Vec::new(),
            operator_index: std::collections::HashMap::new(),
            markers: Vec::new(),
            defaults: Vec::new(),
            removals: Vec::new(),
            target_updates: Vec::new(),
            action_updates: Vec::new(),
            chain: OpenChain::Closed,
            prefixes: Vec::new(),
        }
    }

    fn error(&mut self, place: Place, message: impl Into<String>, help: Option<String>, id: Option<u64>) {
        if self.diagnostics.len() >= MAX_DIAGNOSTICS {
            return;
        }
        if let Some(source) = self.sources.get(place.source) {
            let mut diagnostic = Diagnostic::at(source, place.offset, message).with_rule(id);
            diagnostic.help = help;
            self.diagnostics.push(diagnostic);
        }
    }

    fn syntax_error(&mut self, source: usize, argument: &Argument, error: SyntaxError, id: Option<u64>) {
        let place = Place { source, offset: argument.source_offset(error.offset) };
        self.error(place, error.message, error.help, id);
    }

    fn warn(&mut self, place: Place, message: impl Into<String>) {
        let Some(source) = self.sources.get(place.source) else { return };
        let (origin, line) = (source.origin.clone(), self.line(place));
        self.warnings.push(wire::Warning { origin, line, message: message.into() });
    }

    /// The line of a place, from 1; 0 where there is no such source.
    fn line(&self, place: Place) -> u32 {
        self.line_starts.get(place.source).map_or(0, |starts| starts.line(place.offset))
    }

    fn directive(&mut self, source: usize, directive: &Directive) {
        let place = Place { source, offset: directive.offset };
        match directive.name.to_ascii_lowercase().as_str() {
            "secrule" => self.rule(place, directive, true),
            "secaction" => self.rule(place, directive, false),
            name => {
                self.close_chain();
                self.other_directive(name, place, directive);
            }
        }
    }

    /// The index of an operator, added if it is new: rules share what is equal.
    fn intern_operator(&mut self, operator: wire::Operator) -> u32 {
        let next = u32::try_from(self.operators.len()).unwrap_or(u32::MAX);
        if let Some(known) = self.operator_index.get(&operator) {
            return *known;
        }
        self.operators.push(operator.clone());
        self.operator_index.insert(operator, next);
        next
    }
}

#[cfg(test)]
mod tests;
