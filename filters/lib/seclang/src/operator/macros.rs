//! Macros in arguments: `%{TX.name}`.

/// Whether the text has a macro: `%{`, a name that begins with a letter, perhaps a pattern for the key, `}`.
///
/// Anything else between the braces is text, since patterns write `%{` for other reasons.
pub(super) fn present(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b"%{").any(|at| {
        let inside = text.get(at + 2..).unwrap_or_default();
        let length = inside
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-'))
            .count();
        let end = inside.get(length..).unwrap_or_default();
        inside.first().is_some_and(u8::is_ascii_alphabetic) && (end.first() == Some(&b'}') || is_pattern(end))
    })
}

/// Whether a macro goes on with a pattern for a key: `/^score_/}`.
fn is_pattern(text: &[u8]) -> bool {
    let end = text.iter().position(|&byte| byte == b'}').unwrap_or_default();
    let key = text.get(..end).unwrap_or_default();
    key.len() > 2 && key.starts_with(b"/") && key.ends_with(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_macros() {
        for with in ["%{tx.a}", "x%{REQUEST_HEADERS:User-Agent}y", "%{%{tx.1}", "%{tx:/^a/}"] {
            assert!(present(with.as_bytes()), "{with}");
        }
        for without in ["", "%{", "%{}", "%{1,3}", "%{[^}]+}", "%{a/}", "tx.a}", "%{tx.a", "%\\{tx.a}"] {
            assert!(!present(without.as_bytes()), "{without}");
        }
    }
}
