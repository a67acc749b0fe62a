//! Operators other than patterns: a byte of the kind, a byte of choices, the argument up to the first NUL, the value.

use seclang::operator::{self, Captures, Operator, OperatorKind};

use super::{Files, split_at, split_byte};

/// How long a value is made by repetition, in bytes.
const LONG: usize = 50_000;

pub fn run(data: &[u8]) {
    let Some((code, rest)) = split_byte(data) else { return };
    let Some((choice, rest)) = split_byte(rest) else { return };
    let kinds = (0..=u8::MAX).filter_map(OperatorKind::from_code).count();
    let kind = OperatorKind::from_code(code % u8::try_from(kinds).unwrap_or(u8::MAX));
    let Some(kind) = kind.filter(|kind| !matches!(kind, OperatorKind::Rx | OperatorKind::RxGlobal)) else { return };
    let (argument, value) = split_at(rest, 0);
    let checked = match operator::check(kind, argument, &Files) {
        Ok(checked) => checked,
        Err(error) => {
            assert!(error.offset.is_none_or(|at| at <= argument.len()), "{error:?} in {} bytes", argument.len());
            return;
        }
    };
    let operator = Operator::build(kind, &checked).expect("what was checked can be built");
    let mut captures = Captures::new();
    captures.wanted(choice & 1 != 0);
    let long = if choice & 2 != 0 && !value.is_empty() { value.repeat(LONG / value.len() + 1) } else { value.to_vec() };
    let matched = operator.evaluate(&long, None, &mut captures);
    captures.clear();
    assert_eq!(operator.evaluate(&long, None, &mut captures), matched, "the answer changed");
}
