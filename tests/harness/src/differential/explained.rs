//! The list of disagreements that are understood.

use std::collections::BTreeSet;
use std::path::Path;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde::{Deserialize, Deserializer};

use super::case::Case;
use super::compare::Side;

/// Why engines disagree, one entry per cause.
#[derive(Debug, Clone, Default)]
pub struct Explained {
    /// In the order of the file: the first that fits counts.
    pub entries: Vec<Entry>,
}

/// One cause. Everything that is given has to hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// A short name.
    pub cause: String,
    /// The rules; none for any.
    #[serde(default)]
    pub rules: Vec<u64>,
    /// Who reports the rule; missing for either.
    pub side: Option<Side>,
    /// The difference is what other, explained differences of the same exchange bring along: sums and their limits.
    #[serde(default)]
    pub follows: bool,
    /// Rules that both report of the same exchange.
    #[serde(default)]
    pub with: Vec<u64>,
    /// What the target matches.
    pub uri: Option<Pattern>,
    /// What the headers match, as lines of `name: value`, names in lower case.
    pub headers: Option<Pattern>,
    /// What the body matches.
    pub body: Option<Pattern>,
    /// What the body of the response matches.
    pub response: Option<Pattern>,
    /// What the headers of the response match.
    pub response_headers: Option<Pattern>,
    /// Seen only in exchanges that begin as tests of the rule set's suite: without these it explains nothing, and is not
    /// stale for that.
    #[serde(default)]
    pub seeded: bool,
    /// Who is right, and why.
    pub reason: String,
}

/// A regular expression over bytes; `.` is any byte, `^` and `$` are the ends of lines.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let options = syntax::Config::new().unicode(false).utf8(false).multi_line(true).dot_matches_new_line(true);
        let options = options.case_insensitive(true);
        let regex = Regex::builder().syntax(options).build(&text);
        regex.map(Self).map_err(|error| serde::de::Error::custom(format!("{text}: {error}")))
    }
}

impl Pattern {
    fn is_in(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }
}

impl Explained {
    /// Reads a list.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not such a list.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: String| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&text).map_err(failed)
    }

    /// Takes a list as text.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entries: Vec<Entry> = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        match entries.iter().find(|entry| entry.reason.trim().is_empty()) {
            Some(entry) => Err(format!("{} has no reason", entry.cause)),
            None => Ok(Self { entries }),
        }
    }

    /// The entry that explains why one side reports a rule and the other does not.
    #[must_use]
    pub fn find(&self, case: &Case, both: &BTreeSet<u64>, rule: u64, side: Side, follows: bool) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|entry| {
            entry.follows == follows
                && entry.with.iter().all(|rule| both.contains(rule))
                && entry.fits(case, rule, side)
        })
    }
}

impl Entry {
    fn fits(&self, case: &Case, rule: u64, side: Side) -> bool {
        let holds = |pattern: &Option<Pattern>, text: &dyn Fn() -> Vec<u8>| {
            pattern.as_ref().is_none_or(|pattern| pattern.is_in(&text()))
        };
        (self.rules.is_empty() || self.rules.contains(&rule))
            && self.side.is_none_or(|wanted| wanted == side)
            && holds(&self.uri, &|| case.uri.clone())
            && holds(&self.headers, &|| lines(&case.headers))
            && holds(&self.body, &|| case.body.clone())
            && holds(&self.response, &|| case.response_body.clone())
            && holds(&self.response_headers, &|| lines(&case.response_headers))
    }
}

fn lines(headers: &crate::traffic::Headers) -> Vec<u8> {
    let line = |(name, value): &(Vec<u8>, Vec<u8>)| [&name.to_ascii_lowercase(), &b": "[..], value, b"\n"].concat();
    headers.iter().flat_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_explains_what_it_describes_and_nothing_else() {
        let text = "- {cause: a, rules: [1], side: ours, headers: '^x-a: b$', reason: because}";
        let list = Explained::parse(text).unwrap();
        let none = BTreeSet::new();
        let case = Case { headers: vec![(b"X-A".to_vec(), b"b".to_vec())], ..Case::default() };
        assert_eq!(list.find(&case, &none, 1, Side::Ours, false), Some(0));
        assert_eq!(list.find(&case, &none, 2, Side::Ours, false), None);
        assert_eq!(list.find(&case, &none, 1, Side::Peer, false), None);
        assert_eq!(list.find(&case, &none, 1, Side::Ours, true), None);
        assert_eq!(list.find(&Case::default(), &none, 1, Side::Ours, false), None);
    }

    #[test]
    fn a_list_with_mistakes_is_refused() {
        for text in [
            "- {cause: a}",
            "- {cause: a, reason: ''}",
            "- {cause: a, reason: b, uri: '('}",
            "- {cause: a, reason: b, x: 1}",
        ] {
            assert!(Explained::parse(text).is_err(), "{text}");
        }
    }
}
