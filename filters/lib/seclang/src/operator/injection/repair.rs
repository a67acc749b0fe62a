//! What the port of libinjection reads otherwise than the original, written so that it reads it the same way.

use std::borrow::Cow;
use std::ops::Range;

use super::ends_word;

/// The value with two things replaced, at the same length; most values have neither.
///
/// - A number whose exponent has no digits (`1.e`) becomes blanks. MySQL takes `1.e(1)` for `(1)`, and the original skips
///   such numbers; the port takes them for names, and sees no injection in `' or 1.e(1)=1.e(1)`.
/// - `into` becomes `INTO`: the port knows `INTO OUTFILE` in capitals only.
pub(super) fn repaired(mut value: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let mut from = 0;
    while let Some(found) = value.get(from..).and_then(|rest| memchr::memchr2(b'e', b'E', rest)) {
        let exponent = from + found;
        from = exponent + 1;
        if let Some(number) = number_without_exponent(&value, exponent)
            && let Some(number) = value.to_mut().get_mut(number)
        {
            number.fill(b' ');
        }
    }
    from = 0;
    while let Some(found) = value.get(from..).and_then(|rest| memchr::memchr2(b'i', b'I', rest)) {
        let word = from + found..from + found + 4;
        from += found + 1;
        if value.get(word.clone()).is_some_and(|word| word.eq_ignore_ascii_case(b"into") && word != b"INTO")
            && let Some(word) = value.to_mut().get_mut(word)
        {
            word.make_ascii_uppercase();
        }
    }
    value
}

/// The number with this `e`, if that is all there is of its exponent; with a suffix of its type.
fn number_without_exponent(value: &[u8], exponent: usize) -> Option<Range<usize>> {
    let at = |at: usize| value.get(at).copied();
    let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
    if !exponent.checked_sub(1).and_then(at).is_some_and(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let digits_from = |end: usize| {
        let digits = value.get(..end).unwrap_or_default().iter().rev().take_while(|byte| byte.is_ascii_digit());
        end - digits.count()
    };
    let mut start = digits_from(exponent);
    if let Some(dot) = start.checked_sub(1).filter(|dot| at(*dot) == Some(b'.')) {
        start = digits_from(dot);
    }
    let before = start.checked_sub(1).and_then(at);
    if !value.get(start..exponent)?.iter().any(u8::is_ascii_digit)
        || before.is_some_and(|before| !ends_word(before) || before == b'@')
    {
        return None;
    }
    let mut end = exponent + 1;
    end += usize::from(matches!(at(end), Some(b'+' | b'-')));
    if is_digit(at(end)) {
        return None;
    }
    let is_suffix = matches!(at(end), Some(b'd' | b'D' | b'f' | b'F'))
        && at(end + 1).is_none_or(|after| matches!(after, b'\t'..=b'\r' | b' ' | 0 | 0xa0 | b';' | b'u' | b'U'));
    Some(start..end + usize::from(is_suffix))
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    fn repair(text: &str) -> String {
        String::from_utf8(repaired(Cow::Borrowed(text.as_bytes())).into_owned()).unwrap()
    }

    #[test]
    fn numbers_without_their_exponent_are_blanked() {
        for (text, wanted) in [
            ("1.e(1)", "   (1)"),
            ("' or 1e=.5E+", "' or   =    "),
            ("1e.2e x", "      x"),
            ("1efunion 1edx", "   union   dx"),
            ("1ef 1ed", "       "),
        ] {
            assert_eq!(repair(text), wanted, "{text}");
        }
        for text in ["1e5", "1.5E-3", "0x1e", "a1e", "a.1e", "@1e", "$1e", ".e", "the one", "1 e", "\u{e9}1e"] {
            assert!(matches!(repaired(Cow::Borrowed(text.as_bytes())), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn into_is_put_in_capitals() {
        assert_eq!(repair("' into outfile 'Into"), "' INTO outfile 'INTO");
        assert_eq!(repair("inlet INTO in"), "inlet INTO in");
    }
}
