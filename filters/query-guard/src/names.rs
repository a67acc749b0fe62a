//! Names of the envelope of a request, and those that a server may take for them.
//!
//! Go's `encoding/json` matches names in any case, where U+017F is an `s` and U+212A a `k`, and takes the last one; webonyx/graphql-php
//! puts names into lower case. A second name that differs in its case alone would be what the backend executes.

/// The known name that this one equals but for its case.
pub(crate) fn lookalike(name: &str, known: &[&'static str]) -> Option<&'static str> {
    known.iter().copied().find(|one| *one != name && folds_to(name.as_bytes(), one.as_bytes()))
}

/// Whether a name is a known one, which is ASCII, in any case.
pub(crate) fn folds_to(name: &[u8], known: &[u8]) -> bool {
    let mut rest = name;
    for wanted in known {
        let (byte, behind) = match rest {
            [0xc5, 0xbf, behind @ ..] => (b's', behind),
            [0xe2, 0x84, 0xaa, behind @ ..] => (b'k', behind),
            [byte, behind @ ..] => (*byte, behind),
            [] => return false,
        };
        if !byte.eq_ignore_ascii_case(wanted) {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_go_does() {
        let known = ["extensions", "token", "id"];
        for name in ["Extensions", "EXTENSIONS", "exten\u{17f}ions", "extension\u{17f}"] {
            assert_eq!(lookalike(name, &known), Some("extensions"), "{name}");
        }
        assert_eq!(lookalike("to\u{212a}en", &known), Some("token"));
        for name in ["extensions", "token", "id", "extension", "extensionss", "extension\u{e9}", "i", "", "idx"] {
            assert_eq!(lookalike(name, &known), None, "{name}");
        }
    }
}
