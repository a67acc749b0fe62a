//! Patterns of the configuration.

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::syntax;

use super::{Checksum, Detector, Finding};

/// The longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 512;
/// The largest program of a pattern, in bytes.
const MAX_PROGRAM: usize = 256 << 10;

/// A pattern, and the checksum that its matches must have.
#[derive(Debug)]
pub struct CustomPattern {
    pattern: Regex,
    checksum: Checksum,
}

impl CustomPattern {
    /// A pattern in the syntax of the `regex` crate, on bytes. Matches have no limit here: the check of the configuration
    /// requires one for their length, so that a search is linear.
    ///
    /// # Errors
    /// The pattern is no regular expression, or its program is too large.
    pub fn new(pattern: &str, checksum: Checksum) -> Result<Self, Box<BuildError>> {
        let config = Config::new().nfa_size_limit(Some(MAX_PROGRAM)).hybrid_cache_capacity(MAX_PROGRAM);
        let syntax = syntax::Config::new().utf8(false).unicode(false);
        let pattern = Regex::builder().configure(config).syntax(syntax).build(pattern).map_err(Box::new)?;
        Ok(Self { pattern, checksum })
    }

    pub(super) fn scan(&self, text: &[u8], detector: Detector, found: &mut Vec<Finding>) {
        for matched in self.pattern.find_iter(text).filter(|matched| !matched.is_empty()) {
            let (start, end) = (matched.start(), matched.end());
            if self.checksum.holds(text.get(start..end).unwrap_or_default()) {
                found.push(Finding { detector, start, end });
            }
        }
    }
}
