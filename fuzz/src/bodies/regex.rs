//! Patterns of rules: two bytes of choices, the pattern up to the first NUL, the value.
//!
//! What no bound holds shows as a timeout, what no memory limit holds as running out of memory.

use seclang::operator::{self, Captures, MAX_CAPTURES, Operator, OperatorKind};

use super::{Files, split_at, split_byte};

/// How long a value is made by repetition, in bytes: more than a pattern that needs backtracking looks at.
const LONG: usize = 100_000;

pub fn run(data: &[u8]) {
    let Some((choice, rest)) = split_byte(data) else { return };
    let (pattern, value) = split_at(rest, 0);
    let kind = if choice & 1 == 0 { OperatorKind::Rx } else { OperatorKind::RxGlobal };
    let argument = match operator::check(kind, pattern, &Files) {
        Ok(argument) => argument,
        Err(error) => {
            assert!(error.offset.is_none_or(|at| at <= pattern.len()), "{error:?} in {} bytes", pattern.len());
            return;
        }
    };
    let operator = Operator::build(kind, &argument).expect("what was checked can be built");
    if operator.needs_expansion() {
        return;
    }
    let mut captures = Captures::new();
    captures.wanted(choice & 2 != 0);
    let long;
    let value = if choice & 4 != 0 && !value.is_empty() {
        let mut repeated = value.repeat(LONG.div_ceil(value.len()));
        repeated.truncate(LONG);
        // What follows the repetition decides whether there is a match; a search that fails is the slow one.
        repeated.extend_from_slice(b"\x01!");
        long = repeated;
        long.as_slice()
    } else {
        value
    };
    let matched = operator.evaluate(value, None, &mut captures);
    assert!(captures.len() <= MAX_CAPTURES);
    assert!(!matched || !captures.is_wanted() || captures.get(0).is_some(), "a match without its text");
    if !captures.is_wanted() && kind == OperatorKind::Rx {
        let mut again = Captures::new();
        again.wanted(true);
        let other = operator.evaluate(value, None, &mut again);
        let limited = captures.limit_exceeded() || again.limit_exceeded();
        assert!(limited || matched == other, "the answer depends on whether captures are wanted");
    }
}
