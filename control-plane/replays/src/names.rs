//! Names of recordings, and ids.

use crate::ReplayError;

/// The characters of a name, at most.
const MAX_NAME: usize = 120;
/// The bytes of an id, before they are written in hexadecimal.
const ID_BYTES: usize = 8;
/// What a name may end with that says what is in the file, where its content does not.
const ENDINGS: [&str; 8] = [".har", ".pb", ".pb_length_delimited", ".jsonl", ".ndjson", ".http", ".raw", ".req"];

/// A name as it is kept. It is shown and never a path; what could be taken for one is refused all the same.
pub(crate) fn checked(name: &str) -> Result<String, ReplayError> {
    let name = name.trim();
    let problem = if name.is_empty() {
        "the name is empty".to_owned()
    } else if name.chars().count() > MAX_NAME {
        format!("the name is longer than {MAX_NAME} characters")
    } else if name.starts_with('.') {
        "the name begins with a dot".to_owned()
    } else if let Some(wrong) = name.chars().find(|character| is_wrong(*character)) {
        format!("the name has the character `{}`", wrong.escape_unicode())
    } else {
        return Ok(name.to_owned());
    };
    Err(ReplayError::Name(format!("{problem}; give the recording a plain name, such as `shop-june.har`")))
}

/// Separators of paths, and what cannot be seen or turns the direction of writing.
fn is_wrong(character: char) -> bool {
    character.is_control()
        || matches!(character, '/' | '\\' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The ending of a name that says what is in the file; one of a fixed list.
pub(crate) fn ending(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    ENDINGS.into_iter().find(|ending| name.ends_with(ending)).unwrap_or("")
}

/// A new id.
pub(crate) fn fresh_id(kind: &str) -> Result<String, ReplayError> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| ReplayError::Io("random bytes".to_owned(), std::io::Error::other(error.to_string())))?;
    Ok(format!("{kind}_{:016x}", u64::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        for fine in ["shop.har", "Montag früh.jsonl.gz", " a ", "a..b", &"ä".repeat(MAX_NAME)] {
            assert_eq!(checked(fine).unwrap(), fine.trim());
        }
        for wrong in [
            "",
            "  ",
            ".",
            "..",
            "../a",
            "/etc/passwd",
            "a/b",
            "a\\b",
            ".hidden",
            "a\0b",
            "a\nb",
            "a\u{202e}b",
            "a\u{200b}",
            &"a".repeat(MAX_NAME + 1),
        ] {
            let refused = checked(wrong).unwrap_err().to_string();
            assert!(refused.contains("plain name"), "{wrong:?}: {refused}");
            assert!(!refused.contains('\u{202e}') && !refused.contains('\n'), "{refused:?}");
        }
        assert_eq!(
            (ending("A.HAR.gz"), ending("a.pb_length_delimited"), ending("a.exe")),
            (".har", ".pb_length_delimited", "")
        );
    }
}
