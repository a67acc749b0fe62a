//! Operators (`@rx`, `@pm`, `@eq`, ...): each decides whether one value matches its argument.
//!
//! An operator lives twice: [`check`] runs where rules are written and explains what is wrong with an argument;
//! [`Operator::build`] runs where rules are enforced, on an argument that was checked, and defers every costly step
//! (compiling a pattern, building an automaton) to the first value it sees.

mod address;
mod captures;
mod check;
mod encoding;
mod identifier;
pub mod injection;
mod kind;
mod macros;
mod number;
mod phrases;
mod prefilter;
mod rx;
#[cfg(test)]
mod tests;
mod text;

pub use captures::{Captures, MAX_CAPTURE_LENGTH, MAX_CAPTURES};
pub use check::{check, check_key};
pub use injection::SQL_STEPS_PER_BYTE;
pub use kind::OperatorKind;
pub use phrases::MAX_PHRASES;
pub(crate) use prefilter::{Prefilter, frequency};
pub(crate) use rx::ByteSet;
pub(crate) use rx::shortest_match;
pub use rx::{
    BACKTRACK_BUDGET, BACKTRACK_INPUT_LIMIT, BACKTRACK_LIMIT, BACKTRACK_SCAN_LIMIT, PATTERN_CACHE_LIMIT,
    PATTERN_SIZE_LIMIT,
};

use address::Networks;
pub(crate) use number::integer;
use phrases::Phrases;
use rx::Pattern;

/// Units of work for each run of an operator.
pub(crate) const RUN: u64 = 160;

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

/// An operator ready to evaluate values. Shared by reference between requests; nothing in it changes but caches.
#[derive(Debug)]
pub struct Operator {
    kind: OperatorKind,
    argument: Vec<u8>,
    expands: bool,
    matcher: Matcher,
}

/// What an operator keeps besides its argument.
#[derive(Debug)]
enum Matcher {
    /// Nothing: the argument is all it needs.
    Argument,
    Pattern(Box<Pattern>),
    Phrases(Phrases),
    Networks(Networks),
    Bytes(ByteSet),
}

impl Operator {
    /// In how many pieces an operator is prepared.
    pub(crate) const PIECES: usize = rx::PIECES;

    /// Builds the operator of a checked argument. Cheap: patterns are compiled when first needed.
    ///
    /// The error says which part of a stored argument is not what [`check`] would have written.
    pub fn build(kind: OperatorKind, argument: &OperatorArgument) -> Result<Operator, String> {
        use OperatorKind as Kind;
        let expands = kind.expands_macros() && macros::present(&argument.text);
        let matcher = match kind {
            Kind::Rx | Kind::RxGlobal | Kind::VerifyCc | Kind::VerifyCpf | Kind::VerifySsn | Kind::VerifySvnr => {
                Matcher::Pattern(Box::new(Pattern::build(argument, expands)?))
            }
            Kind::Pm if argument.phrases.is_empty() => Matcher::Phrases(Phrases::new(phrases::split(&argument.text))),
            Kind::Pm | Kind::PmFromFile => Matcher::Phrases(Phrases::new(argument.phrases.clone())),
            Kind::IpMatch if argument.phrases.is_empty() => {
                let pieces: Vec<_> = address::split(&argument.text).map(|(_, piece)| piece.to_vec()).collect();
                Matcher::Networks(Networks::new(&pieces)?)
            }
            Kind::IpMatch | Kind::IpMatchFromFile => Matcher::Networks(Networks::new(&argument.phrases)?),
            Kind::ValidateByteRange => {
                Matcher::Bytes(encoding::byte_ranges(&argument.text).map_err(|error| error.message)?)
            }
            _ => Matcher::Argument,
        };
        Ok(Operator { kind, argument: argument.text.clone(), expands, matcher })
    }

    /// The argument of a comparison of numbers that does not change.
    pub(crate) fn constant(&self) -> Option<i64> {
        (self.compares_numbers() && !self.expands).then(|| number::integer(&self.argument))
    }

    /// Whether the operator compares a number with another one.
    pub(crate) fn compares_numbers(&self) -> bool {
        use OperatorKind as Kind;
        matches!(self.kind, Kind::Eq | Kind::Ge | Kind::Gt | Kind::Le | Kind::Lt)
    }

    /// Whether a number compares with the argument as a comparison of numbers asks.
    pub(crate) fn compares(kind: OperatorKind, value: i64, argument: i64) -> bool {
        use OperatorKind as Kind;
        match kind {
            Kind::Eq => value == argument,
            Kind::Ge => value >= argument,
            Kind::Gt => value > argument,
            Kind::Le => value <= argument,
            Kind::Lt => value < argument,
            _ => false,
        }
    }

    /// The operator's kind.
    pub fn kind(&self) -> OperatorKind {
        self.kind
    }

    /// Whether the argument holds `%{...}` macros that this operator expands: the caller then passes `expanded`.
    ///
    /// `@pm`, `@ipMatch`, `@validateByteRange`, the operators with data files and `@verify...` never expand.
    pub fn needs_expansion(&self) -> bool {
        self.expands
    }

    /// Whether the operator asks what the node knows of addresses ([`crate::Lookups`]). [`Operator::evaluate`] answers `false` then.
    pub(crate) fn looks_up(&self) -> bool {
        matches!(self.kind, OperatorKind::GeoLookup | OperatorKind::Rbl)
    }

    /// The argument as the rule writes it; of `@rbl` the zone, in lower case without a dot at its end.
    pub fn argument(&self) -> &[u8] {
        &self.argument
    }

    /// Builds a piece of what the first values would have to wait for, of [`Operator::PIECES`]; `false` if there is nothing to
    /// build.
    pub(crate) fn prepare(&self, piece: usize) -> bool {
        match (&self.matcher, self.kind) {
            (Matcher::Pattern(pattern), _) => return pattern.prepare(piece),
            _ if piece > 0 => return false,
            (Matcher::Phrases(phrases), _) => phrases.prepare(),
            (_, OperatorKind::DetectSqli | OperatorKind::DetectXss) => injection::prepare(),
            _ => return false,
        }
        true
    }

    /// The memory of automata that grows with the values that were searched, in bytes.
    pub(crate) fn cached(&self) -> usize {
        match &self.matcher {
            Matcher::Pattern(pattern) => pattern.cached(),
            _ => 0,
        }
    }

    /// Releases that memory: automata begin anew.
    pub(crate) fn forget(&self) {
        if let Matcher::Pattern(pattern) = &self.matcher {
            pattern.forget();
        }
    }

    /// Whether the operator runs a pattern on the backtracking engine, which is slower and limited.
    pub fn is_backtracking(&self) -> bool {
        matches!(&self.matcher, Matcher::Pattern(pattern) if pattern.is_backtracking())
    }

    /// Whether `value` matches, without the negation of `!@`. `expanded` replaces the argument if it has macros.
    ///
    /// Captures are added to `captures` if they are wanted; the caller clears it between evaluations. An evaluation that
    /// gives up at a limit answers `false` and sets [`Captures::limit_exceeded`].
    pub fn evaluate(&self, value: &[u8], expanded: Option<&[u8]>, captures: &mut Captures) -> bool {
        use OperatorKind as Kind;
        let expanded = expanded.filter(|_| self.expands);
        match &self.matcher {
            // They charge what they cost themselves.
            Matcher::Pattern(_) | Matcher::Phrases(_) => {}
            _ => captures.charge(self.cost(value.len(), expanded.map_or(self.argument.len(), <[u8]>::len))),
        }
        match (&self.matcher, self.kind) {
            (Matcher::Pattern(pattern), Kind::Rx) => pattern.evaluate(value, expanded, false, captures),
            (Matcher::Pattern(pattern), Kind::RxGlobal) => pattern.evaluate(value, expanded, true, captures),
            (Matcher::Pattern(pattern), Kind::VerifyCc) => pattern.confirm(value, identifier::is_card, captures),
            (Matcher::Pattern(pattern), Kind::VerifyCpf) => pattern.confirm(value, identifier::is_cpf, captures),
            (Matcher::Pattern(pattern), Kind::VerifySsn) => pattern.confirm(value, identifier::is_ssn, captures),
            (Matcher::Pattern(pattern), Kind::VerifySvnr) => pattern.confirm(value, identifier::is_svnr, captures),
            (Matcher::Phrases(phrases), _) => phrases.evaluate(value, captures),
            (Matcher::Networks(networks), _) => networks.evaluate(value),
            (Matcher::Bytes(allowed), _) => encoding::outside(allowed, value),
            _ => self.compare(value, expanded.unwrap_or(&self.argument), captures),
        }
    }

    /// Units of work for a value and an argument of these lengths. The detectors of injections charge what they look at themselves.
    fn cost(&self, value: usize, argument: usize) -> u64 {
        use OperatorKind as Kind;
        let (bytes, each) = match (&self.matcher, self.kind) {
            (_, Kind::DetectSqli | Kind::DetectXss) => (0, 0),
            (Matcher::Bytes(_), _) => (value, 6),
            (_, Kind::Within) => (value.saturating_add(argument), 3),
            (_, Kind::BeginsWith | Kind::EndsWith | Kind::StrEq | Kind::UnconditionalMatch) => (value.min(argument), 1),
            _ => (value, 5),
        };
        RUN.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(each))
    }

    /// The operators that need nothing but the two texts.
    fn compare(&self, value: &[u8], argument: &[u8], captures: &mut Captures) -> bool {
        use OperatorKind as Kind;
        match self.kind {
            Kind::DetectSqli => injection::is_sql(value, captures),
            Kind::DetectXss => injection::is_script(value, captures),
            Kind::Within => text::contains(argument, value),
            Kind::Contains | Kind::StrMatch => text::contains(value, argument),
            Kind::ContainsWord => text::contains_word(value, argument),
            Kind::BeginsWith => value.starts_with(argument),
            Kind::EndsWith => value.ends_with(argument),
            Kind::StrEq => value == argument,
            Kind::Eq | Kind::Ge | Kind::Gt | Kind::Le | Kind::Lt => {
                Self::compares(self.kind, number::integer(value), number::integer(argument))
            }
            Kind::ValidateUrlEncoding => encoding::invalid_percent_encoding(value),
            Kind::ValidateUtf8Encoding => encoding::invalid_utf8(value),
            Kind::UnconditionalMatch => true,
            // Lookups, which the engine makes, and everything that `check` refuses.
            _ => false,
        }
    }
}
