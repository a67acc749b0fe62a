//! `@within`, `@contains`, `@containsWord`, `@beginsWith`, `@endsWith`, `@streq`, `@strmatch`: plain bytes, in their case.

use memchr::{memchr_iter, memmem};

/// How long a text may be that is searched without preparation, which would take longer than the search.
const SHORT: usize = 512;

/// Whether `part` occurs in `text`.
pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    // What is in the middle of a list's element sets it apart sooner than what is around it.
    let middle = part.len() / 2;
    let Some(wanted) = part.get(middle).filter(|_| text.len() <= SHORT) else {
        return memmem::find(text, part).is_some();
    };
    let starts = memchr_iter(*wanted, text).filter_map(|at| at.checked_sub(middle));
    starts.filter_map(|start| text.get(start..)).any(|rest| rest.starts_with(part))
}

/// Whether `word` occurs in `value` without a letter next to it.
pub(super) fn contains_word(value: &[u8], word: &[u8]) -> bool {
    if word.is_empty() {
        return true;
    }
    let letter = |at: Option<usize>| at.and_then(|at| value.get(at)).is_some_and(u8::is_ascii_alphabetic);
    memmem::find_iter(value, word).any(|start| !letter(start.checked_sub(1)) && !letter(Some(start + word.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_parts_of_short_and_long_texts() {
        let long = [&b"ab".repeat(SHORT)[..], b"aac"].concat();
        for (text, part, expected) in [
            (&b"abcabd"[..], &b"abd"[..], true),
            (b"abcabd", b"abe", false),
            (b"abc", b"", true),
            (b"", b"", true),
            (b"", b"a", false),
            (b"ab", b"abc", false),
            (&long, b"aac", true),
            (&long, b"aad", false),
        ] {
            assert_eq!(contains(text, part), expected, "{part:?}");
        }
    }

    #[test]
    fn finds_whole_words() {
        for (value, word, expected) in [
            ("select", "select", true),
            ("a select b", "select", true),
            ("selected", "select", false),
            ("preselect", "select", false),
            ("1select2", "select", true),
            ("selected select", "select", true),
            ("", "select", false),
            ("x", "", true),
        ] {
            assert_eq!(contains_word(value.as_bytes(), word.as_bytes()), expected, "{value}");
        }
    }
}
