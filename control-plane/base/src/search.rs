//! Search in lists: a text that is looked for without regard to case.

use memchr::memchr2_iter;

use crate::identity::Identity;

/// A text that is looked for, and the identity that it is, if it is one. Letters of ASCII are alike in both cases, whatever the other text is;
/// where the text that is looked for has other letters, both are compared in lower case by Unicode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// In lower case, without blanks at its ends; never empty.
    text: String,
    /// The key of the identity.
    key: Option<String>,
}

// === impl Search ===

impl Search {
    /// Looks for a text as an operator types it; `None` if there is nothing but blanks. `identity` reads one with its kind (`ip:192.0.2.1`); an
    /// address or a network is read without it too.
    #[must_use]
    pub fn of<E>(typed: &str, identity: impl Fn(&str) -> Result<Identity, E>) -> Option<Search> {
        let typed = typed.trim();
        if typed.is_empty() {
            return None;
        }
        let read = identity(typed).or_else(|_| identity(&format!("ip:{typed}")));
        Some(Search { text: typed.to_lowercase(), key: read.ok().map(|identity| identity.key()) })
    }

    /// What is looked for, in lower case.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it occurs in a text.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        if !self.text.is_ascii() {
            return text.to_lowercase().contains(&self.text);
        }
        let (wanted, text) = (self.text.as_bytes(), text.as_bytes());
        let Some(first) = wanted.first() else { return true };
        let Some(last) = text.len().checked_sub(wanted.len()) else { return false };
        let starts = text.get(..=last).unwrap_or_default();
        memchr2_iter(*first, first.to_ascii_uppercase(), starts)
            .any(|at| text.get(at..at + wanted.len()).is_some_and(|part| part.eq_ignore_ascii_case(wanted)))
    }

    /// Whether it occurs in the key of an entry, or is the identity of that key.
    #[must_use]
    pub fn is_of(&self, key: &str) -> bool {
        self.key.as_deref() == Some(key) || self.is_in(key)
    }

    /// Whether it occurs in one of these texts.
    #[must_use]
    pub fn is_in_any<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> bool {
        texts.into_iter().any(|text| self.is_in(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_wherever_it_is_and_in_either_case() {
        let of = |typed: &str| Search::of(typed, Identity::parse);
        let found = |wanted: &str, text: &str| of(wanted).unwrap().is_in(text);
        for (wanted, text) in [
            ("ab", "ab"),
            ("ab", "xAB"),
            (" aB ", "aab"),
            ("b", "aab"),
            ("192.0", "ip:192.0.2.1"),
            ("straße", "Die STRAßE"),
            ("äpfel", "rote ÄPFEL"),
            ("apfel", "Äapfel"),
        ] {
            assert!(found(wanted, text), "{wanted} in {text}");
        }
        for (wanted, text) in [("ab", ""), ("ab", "a"), ("ab", "a b"), ("abc", "xab"), ("ä", "a"), ("a", "Ä")] {
            assert!(!found(wanted, text), "{wanted} in {text}");
        }
        assert_eq!((of(""), of(" \t")), (None, None));
        assert_eq!(of(" Ab ").unwrap().text(), "ab");
        assert!(of("x").unwrap().is_in_any(["a", "X"]) && !of("x").unwrap().is_in_any([]));
        for typed in ["2001:DB8::1", "ip:2001:db8:0:0::1", " 2001:db8::1 "] {
            assert!(of(typed).unwrap().is_of("ip:2001:db8::1"), "{typed}");
        }
        assert!(of("db8").unwrap().is_of("ip:2001:db8::1") && !of("2001:db8::2").unwrap().is_of("ip:2001:db8::1"));
    }
}
