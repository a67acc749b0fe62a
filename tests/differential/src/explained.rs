//! The list of disagreements that are understood.

use std::collections::BTreeSet;
use std::path::Path;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde::{Deserialize, Deserializer};

use super::case::Case;
use super::compare::Side;
use super::reading::Reading;
use super::{STANDARD_COUNT, STANDARD_SEED};

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
    /// Rules that both report of the same exchange.
    #[serde(default)]
    pub with: Vec<u64>,
    /// The difference is gone when our engine is given the exchange read in all these ways; none if there is nothing to test.
    #[serde(default)]
    pub readings: Vec<Reading>,
    /// What the target matches.
    pub uri: Option<Pattern>,
    /// What the headers match, as lines of `name: value`, names in lower case.
    pub headers: Option<Pattern>,
    /// What the body matches.
    pub body: Option<Pattern>,
    /// What the target or the body matches.
    pub sent: Option<Pattern>,
    /// What the body of the response matches.
    pub response: Option<Pattern>,
    /// What the headers of the response match.
    pub response_headers: Option<Pattern>,
    /// The run that needs the entry.
    #[serde(default)]
    pub seen: Run,
    /// Who is right, and why.
    pub reason: String,
}

/// A run whose exchanges are always the same ones, [`STANDARD_COUNT`] of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// Whether exchanges begin as tests of the rule set's suite.
    #[serde(default)]
    pub tests: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self { seed: STANDARD_SEED, tests: false }
    }
}

impl Run {
    /// The run with these exchanges, if there are enough of them.
    #[must_use]
    pub fn of(seed: u64, tests: bool, count: usize) -> Option<Self> {
        (count >= STANDARD_COUNT).then_some(Self { seed, tests })
    }
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

    /// The entry that explains why one side reports a rule and the other does not. `agrees` tells whether the difference is
    /// gone when the exchange is read in some ways.
    pub fn find(
        &self,
        case: &Case,
        both: &BTreeSet<u64>,
        (rule, side): (u64, Side),
        mut agrees: impl FnMut(&[Reading]) -> bool,
    ) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|entry| {
            entry.with.iter().all(|rule| both.contains(rule))
                && entry.fits(case, rule, side)
                && (entry.readings.is_empty() || agrees(&entry.readings))
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
            && self.sent.as_ref().is_none_or(|sent| sent.is_in(&case.uri) || sent.is_in(&case.body))
            && holds(&self.response, &|| case.response_body.clone())
            && holds(&self.response_headers, &|| lines(&case.response_headers))
    }
}

fn lines(headers: &proxy_host::traffic::Headers) -> Vec<u8> {
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
        let find = |case: &Case, rule, side| list.find(case, &none, (rule, side), |_| false);
        assert_eq!(find(&case, 1, Side::Ours), Some(0));
        assert_eq!(find(&case, 2, Side::Ours), None);
        assert_eq!(find(&case, 1, Side::Peer), None);
        assert_eq!(find(&Case::default(), 1, Side::Ours), None);
    }

    #[test]
    fn a_reading_has_to_make_the_engines_agree() {
        let list = Explained::parse("- {cause: a, readings: [without-fragment], sent: 'x', reason: because}").unwrap();
        let case = Case { body: b"x".to_vec(), ..Case::default() };
        let find = |case, agrees| list.find(case, &BTreeSet::new(), (1, Side::Ours), |_| agrees);
        assert_eq!((find(&case, true), find(&case, false)), (Some(0), None));
        assert_eq!(find(&Case::default(), true), None);
    }

    #[test]
    fn a_run_has_the_standard_count_of_exchanges() {
        assert_eq!(Run::of(STANDARD_SEED, false, STANDARD_COUNT), Some(Run::default()));
        assert_eq!(Run::of(STANDARD_SEED, false, STANDARD_COUNT - 1), None);
        let list = Explained::parse("- {cause: a, seen: {seed: 3, tests: true}, reason: because}").unwrap();
        assert_eq!(list.entries[0].seen, Run { seed: 3, tests: true });
    }

    #[test]
    fn a_list_with_mistakes_is_refused() {
        for text in [
            "- {cause: a}",
            "- {cause: a, reason: ''}",
            "- {cause: a, reason: b, uri: '('}",
            "- {cause: a, reason: b, x: 1}",
            "- {cause: a, reason: b, readings: [aloud]}",
        ] {
            assert!(Explained::parse(text).is_err(), "{text}");
        }
    }
}
