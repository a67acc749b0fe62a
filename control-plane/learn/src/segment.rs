//! Whether a segment of a path is a word of the API or a value.

/// The longest word.
const MAX_WORD: usize = 40;

/// Whether a segment is a value by its shape alone: a number, an identifier, a date, a token, anything with other characters than words
/// have. Words of APIs (`users`, `v2`, `findByStatus`, `.well-known`) are not; a slug (`red-shoes`) may be either.
pub(crate) fn is_value(segment: &[u8]) -> bool {
    if segment.is_empty() {
        return false;
    }
    let word = segment.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    !word || segment.len() > MAX_WORD || is_number(segment) || has_long_number(segment) || is_token(segment)
}

/// Digits, with a sign and a fraction.
fn is_number(segment: &[u8]) -> bool {
    segment.iter().any(u8::is_ascii_digit)
        && segment.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'_'))
}

/// Four digits in a row, as orders, years and dates have.
fn has_long_number(segment: &[u8]) -> bool {
    segment.windows(4).any(|window| window.iter().all(u8::is_ascii_digit))
}

/// UUIDs, ObjectIds, ULIDs, hashes, and random texts: long, and digits between letters.
pub(crate) fn is_token(text: &[u8]) -> bool {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let upper = text.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let lower = text.iter().filter(|byte| byte.is_ascii_lowercase()).count();
    let hex = text.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let mixed = digits >= 2 && upper >= 2 && lower >= 2;
    (hex && text.len() >= 8 && digits >= 2)
        || (hex && text.len() >= 16)
        || (mixed && text.len() >= 8)
        || (digits >= 4 && text.len() >= 12)
}

/// Whether a word looks like one that people chose for a thing: several parts, digits, capitals, or a dot. `findByStatus` does not.
pub(crate) fn is_slug(word: &str) -> bool {
    let digits = word.bytes().any(|byte| byte.is_ascii_digit()) && !is_version(word);
    let parts = word.split(['-', '_']).filter(|part| !part.is_empty()).count();
    let capital = word.starts_with(|first: char| first.is_ascii_uppercase());
    let odd = word.starts_with(['-', '_', '.']) || word.ends_with(['-', '_', '.']) || word.len() == 1;
    digits || parts >= 2 || capital || odd
}

/// `v1`, `v2.1`, `v1beta1`.
pub(crate) fn is_version(word: &str) -> bool {
    word.strip_prefix(['v', 'V'])
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()) && rest.len() <= 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_known_by_their_shape() {
        for value in [
            "1",
            "-17",
            "3.5",
            "550e8400-e29b-41d4-a716-446655440000",
            "507f1f77bcf86cd799439011",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "2024-01-31",
            "order-12345",
            "a%20b",
            "bob@example.com",
            "aB3xY9kLm2",
        ] {
            assert!(is_value(value.as_bytes()), "{value}");
        }
        for word in
            ["", "users", "v1", "v2.1", "oauth2", "findByStatus", ".well-known", "red-shoes", "s3", "api", "deadline"]
        {
            assert!(!is_value(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn slugs_are_told_from_words() {
        assert!(["red-shoes", "Alice", "shoe_9", "x"].into_iter().all(is_slug));
        assert!(!["users", "findByStatus", "v1beta1", "search"].into_iter().any(is_slug));
    }
}
