//! `@within`, `@contains`, `@containsWord`, `@beginsWith`, `@endsWith`, `@streq`, `@strmatch`: plain bytes, in their case.

use memchr::memmem;

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
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

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
