//! The second argument of a rule: `!@rx ^a`.

use super::offset_in;

/// An operator as written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OperatorText {
    /// `!`.
    pub(crate) negated: bool,
    /// The name without `@`; `rx` where none is written.
    pub(crate) name: String,
    /// The byte where the name (or the pattern alone) begins.
    pub(crate) name_offset: usize,
    /// The rest.
    pub(crate) argument: Vec<u8>,
    /// The byte where the rest begins.
    pub(crate) argument_offset: usize,
}

/// Splits the argument into operator and argument.
pub(crate) fn operator(text: &[u8]) -> OperatorText {
    let trimmed = text.trim_ascii_start();
    let after_sign = trimmed.strip_prefix(b"!");
    // A lone `!` in front of a pattern negates it; there is no way to write a pattern that begins with one.
    let (negated, rest) = after_sign.map_or((false, trimmed), |rest| (true, rest.trim_ascii_start()));
    if let Some(named) = rest.strip_prefix(b"@") {
        let end = named.iter().position(u8::is_ascii_whitespace).unwrap_or(named.len());
        let (name, argument) = named.split_at_checked(end).unwrap_or((named, &[]));
        let argument = argument.trim_ascii_start();
        return OperatorText {
            negated,
            name: String::from_utf8_lossy(name).into_owned(),
            name_offset: offset_in(text, rest),
            argument_offset: offset_in(text, argument),
            argument: argument.to_vec(),
        };
    }
    OperatorText {
        negated,
        name: "rx".to_owned(),
        name_offset: offset_in(text, rest),
        argument_offset: offset_in(text, rest),
        argument: rest.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_sign_name_and_argument() {
        let found = operator(b"!@within %{tx.allowed}");
        assert!(found.negated);
        assert_eq!((found.name.as_str(), found.argument.as_slice()), ("within", &b"%{tx.allowed}"[..]));
        assert_eq!(found.argument_offset, 9);
    }

    #[test]
    fn a_bare_pattern_is_rx() {
        assert_eq!(operator(b"^a b ").argument, b"^a b ");
        assert_eq!(operator(b"@detectSQLi").name, "detectSQLi");
        assert!(operator(b"!^a").negated);
    }
}
