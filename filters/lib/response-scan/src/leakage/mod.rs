//! Errors of applications in a text: stack traces, errors of databases, error pages, source code, web shells.
//!
//! One search finds the anchors of all rules, short words that ordinary texts rarely have. Each rule then checks what stands around
//! its anchor, within [`REACH`] bytes.

mod checks;
mod rules;

use crate::literals::Literals;
use checks::Place;
use rules::{RULES, Rule};

/// How far around an anchor a rule looks, in bytes.
pub const REACH: usize = 512;

/// The most paranoid level.
pub const MAX_LEVEL: u8 = 4;

/// The software that an error comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Java and what runs on its machine.
    Java,
    /// PHP: errors and source code.
    Php,
    /// IIS and .NET.
    Iis,
    /// Ruby and Rails.
    Ruby,
    /// Databases.
    Sql,
    /// Python and its frameworks.
    Python,
    /// Node.js.
    Node,
    /// Go.
    Go,
    /// Laravel and Symfony.
    Laravel,
    /// The pages of web shells.
    WebShell,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 10] = [
        Self::Java,
        Self::Php,
        Self::Iis,
        Self::Ruby,
        Self::Sql,
        Self::Python,
        Self::Node,
        Self::Go,
        Self::Laravel,
        Self::WebShell,
    ];

    /// The name in tags and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Java => "java",
            Self::Php => "php",
            Self::Iis => "iis",
            Self::Ruby => "ruby",
            Self::Sql => "sql",
            Self::Python => "python",
            Self::Node => "node",
            Self::Go => "go",
            Self::Laravel => "laravel",
            Self::WebShell => "web_shell",
        }
    }
}

/// A match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leak {
    /// The family of the rule.
    pub family: Family,
    /// The name of the rule.
    pub rule: &'static str,
    /// Where its anchor is.
    pub at: usize,
}

/// The scanner of one paranoia level. It is the same for all configurations of the level.
#[derive(Debug)]
pub struct Scanner {
    anchors: Literals,
    /// The rules of each anchor.
    rules: Vec<Vec<&'static Rule>>,
}

impl Scanner {
    /// The rules up to a level: 1 to 4.
    #[must_use]
    pub fn new(level: u8) -> Self {
        let mut anchors: Vec<&'static [u8]> = Vec::new();
        let mut rules: Vec<Vec<&'static Rule>> = Vec::new();
        for rule in RULES.iter().filter(|rule| rule.level <= level) {
            let anchor = rule.anchor.as_bytes();
            match anchors.iter().position(|known| *known == anchor) {
                Some(place) => rules.iter_mut().skip(place).take(1).for_each(|list| list.push(rule)),
                None => {
                    anchors.push(anchor);
                    rules.push(vec![rule]);
                }
            }
        }
        Self { anchors: Literals::new(&anchors), rules }
    }

    /// The first match of each family in a text, in the order of their places.
    #[must_use]
    pub fn scan(&self, text: &[u8]) -> Vec<Leak> {
        let mut found: Vec<Leak> = Vec::new();
        self.anchors.each(text, |anchor, at| {
            for rule in self.rules.get(anchor).into_iter().flatten() {
                let known = found.iter().any(|leak| leak.family == rule.family);
                if !known && rule.check.holds(&Place { text, at, length: rule.anchor.len() }) {
                    found.push(Leak { family: rule.family, rule: rule.name, at });
                }
            }
            if found.len() == Family::ALL.len() { text.len() } else { at }
        });
        found
    }
}

#[cfg(test)]
mod tests;
