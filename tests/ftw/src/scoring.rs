//! What each rule of a core rule set adds to the anomaly scores, read from the rules' text.

use std::collections::BTreeMap;
use std::path::Path;

use regex_automata::meta::Regex;

use super::rules::{CrsFiles, read};

/// Which of the two sums a rule adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// The request's.
    Inbound,
    /// The response's.
    Outbound,
}

/// What one value that a rule matches adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score {
    /// The sum.
    pub direction: Direction,
    /// The paranoia level from which on the rule runs, 1 to 4.
    pub level: u8,
    /// The points: 5 for critical, 4 for error, 3 for warning, 2 for notice.
    pub points: i64,
}

/// The scores of all rules that have one.
#[derive(Debug, Clone, Default)]
pub struct Scoring {
    rules: BTreeMap<u64, Score>,
}

impl Scoring {
    /// Reads the rules of a core rule set; the folder has `rules/`.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or a folder without a rule that scores.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let mut scoring = Self::default();
        for path in CrsFiles::find(folder)?.rules {
            scoring.take(&String::from_utf8_lossy(&read(&path)?))?;
        }
        if scoring.rules.is_empty() {
            return Err(format!("{} has no rule that adds to an anomaly score", folder.display()));
        }
        Ok(scoring)
    }

    /// What a rule adds.
    #[must_use]
    pub fn of(&self, rule: u64) -> Option<Score> {
        self.rules.get(&rule).copied()
    }

    /// How many rules score.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether no rule does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// A directive begins a line that is not indented; its actions may go on over many lines, and a chain's links have
    /// no id of their own.
    fn take(&mut self, text: &str) -> Result<(), String> {
        let id = regex(r#"(?:^|[ \t,"])id:'?([0-9]+)"#)?;
        let setvar = regex(r"tx\.(inbound_|outbound_)?anomaly_score_pl([1-4])=\+%\{tx\.([a-z]+)_anomaly_score\}")?;
        let mut rule = 0;
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            if let Some(number) = group(&id, line, 1) {
                rule = number.parse().map_err(|error| format!("rule id {number}: {error}"))?;
            }
            if let (Some(level), Some(severity)) = (group(&setvar, line, 2), group(&setvar, line, 3)) {
                let points = match severity {
                    "critical" => 5,
                    "error" => 4,
                    "warning" => 3,
                    "notice" => 2,
                    other => return Err(format!("rule {rule} adds the score of an unknown severity, `{other}`")),
                };
                let direction = match group(&setvar, line, 1) {
                    Some("outbound_") => Direction::Outbound,
                    _ => Direction::Inbound,
                };
                let level = level.parse().map_err(|error| format!("rule {rule}: level {level}: {error}"))?;
                self.rules.insert(rule, Score { direction, level, points });
            }
        }
        Ok(())
    }
}

fn regex(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| format!("{pattern}: {error}"))
}

fn group<'a>(regex: &Regex, line: &'a str, group: usize) -> Option<&'a str> {
    let mut captures = regex.create_captures();
    regex.captures(line, &mut captures);
    captures.get_group(group).map(|span| &line[span.range()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_a_chain_scores_for_its_rule() {
        let text = r#"
# SecRule ARGS "@rx x" "id:1,setvar:'tx.inbound_anomaly_score_pl1=+%{tx.critical_anomaly_score}'"
SecRule ARGS "@rx x" \
    "id:2,\
    chain"
    SecRule ARGS "@rx y" \
        "setvar:'tx.inbound_anomaly_score_pl3=+%{tx.warning_anomaly_score}'"
SecRule RESPONSE_BODY "@rx x" "id:'3',setvar:'tx.outbound_anomaly_score_pl1=+%{tx.error_anomaly_score}'"
SecAction "id:4,nolog,setvar:'tx.inbound_anomaly_score_pl1=0'"
"#;
        let mut scoring = Scoring::default();
        scoring.take(text).unwrap();
        assert_eq!(scoring.of(1), None);
        assert_eq!(scoring.of(2), Some(Score { direction: Direction::Inbound, level: 3, points: 3 }));
        assert_eq!(scoring.of(3), Some(Score { direction: Direction::Outbound, level: 1, points: 4 }));
        assert_eq!((scoring.of(4), scoring.len()), (None, 2));
    }
}
