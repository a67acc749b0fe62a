//! What a pattern for the backtracking engine matches at most, as a pattern for the linear one.

/// The pattern without what only the backtracking engine knows: lookaround holds anywhere, a backreference matches
/// anything, atomic groups and possessive quantifiers give back. Whatever the pattern matches, this matches too.
///
/// Takes a rewritten pattern, where characters that are no letters or digits and stand for themselves are escaped. `None`
/// for a pattern with a condition.
pub(super) fn outline(pattern: &str) -> Option<String> {
    let mut output = String::with_capacity(pattern.len());
    let mut rest = pattern;
    // Whether a quantifier came last: a `+` after it makes it possessive.
    let mut quantified = false;
    while let Some(next) = rest.chars().next() {
        let was_quantified = std::mem::take(&mut quantified);
        let length = match next {
            '\\' => {
                let length = escape(rest);
                let reference = matches!(rest.as_bytes().get(1), Some(b'1'..=b'9' | b'k'));
                output.push_str(if reference { "(?s:.*)" } else { rest.get(..length)? });
                length
            }
            '[' => {
                let length = class(rest);
                output.push_str(rest.get(..length)?);
                length
            }
            '(' if rest.starts_with("(?(") => return None,
            '(' if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|opening| rest.starts_with(opening)) => {
                output.push_str("(?:)");
                group(rest)?
            }
            '(' if rest.starts_with("(?>") => {
                output.push_str("(?:");
                3
            }
            '(' if rest.starts_with("(?") => {
                output.push_str("(?");
                2
            }
            '+' if was_quantified => 1,
            '*' | '+' | '?' | '{' => {
                let length = if next == '{' { rest.find('}')? + 1 } else { 1 };
                output.push_str(rest.get(..length)?);
                quantified = !was_quantified;
                length
            }
            other => {
                output.push(other);
                other.len_utf8()
            }
        };
        rest = rest.get(length..)?;
    }
    Some(output)
}

/// How long the escape at the start is. The digits of `\xHH` need no place in it: they stand for themselves.
fn escape(text: &str) -> usize {
    let digits = text.bytes().skip(1).take_while(u8::is_ascii_digit).count();
    match text.as_bytes().get(1) {
        Some(b'1'..=b'9') => 1 + digits,
        Some(b'k') => text.find('>').map_or(text.len(), |at| at + 1),
        _ => text.len().min(2),
    }
}

/// How long the bracket expression at the start is.
fn class(text: &str) -> usize {
    text.find(']').map_or(text.len(), |at| at + 1)
}

/// How long the group at the start is.
fn group(text: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0usize);
    loop {
        let rest = text.get(at..)?;
        at += match rest.chars().next()? {
            '\\' => escape(rest),
            '[' => class(rest),
            '(' => {
                depth += 1;
                1
            }
            ')' => {
                depth -= 1;
                1
            }
            other => other.len_utf8(),
        };
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_what_the_linear_engine_knows() {
        for (pattern, expected) in [
            ("a(?=b(?:c|[)])d)e", Some("a(?:)e")),
            ("(?<!\\x29[^)])(a+)(?:\\1)x", Some("(?:)(a+)(?:(?s:.*))x")),
            ("(?P<n>a)\\k<n>b", Some("(?P<n>a)(?s:.*)b")),
            ("(?>a++b?+c{2,}+)d+?e", Some("(?:a+b?c{2,})d+?e")),
            ("\\x2b+[\\x2b]*", Some("\\x2b+[\\x2b]*")),
            ("(?i:a)(?-i)\\b\\12", Some("(?i:a)(?-i)\\b(?s:.*)")),
            ("(a)?(?(1)b|c)", None),
        ] {
            assert_eq!(outline(pattern).as_deref(), expected, "{pattern}");
        }
    }
}
