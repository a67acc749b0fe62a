//! The peer's answers, kept: a line for each case of a seed.

use std::fmt::Write as _;

use super::case::Case;
use super::ours::Answer;

/// What was answered to the cases of one seed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Golden {
    /// Who answered.
    pub engine: String,
    /// The release of the rule set.
    pub release: String,
    /// The seed; every case is of our own making.
    pub seed: u64,
    /// A case's digest, and the answer.
    pub answers: Vec<(String, Answer)>,
}

impl Golden {
    /// Adds an answer.
    pub fn add(&mut self, case: &Case, answer: &Answer) {
        self.answers.push((case.digest(), answer.clone()));
    }

    /// The file: a line on top, then a line for each case with its digest, the scores and the rules.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("seed {} rules {} engine {}\n", self.seed, self.release, self.engine);
        for (digest, answer) in &self.answers {
            let _ = write!(text, "{digest} {}", if answer.scores.is_empty() { "-" } else { &answer.scores });
            for id in &answer.ids {
                let _ = write!(text, " {id}");
            }
            text.push('\n');
        }
        text
    }

    /// Reads such a file.
    ///
    /// # Errors
    ///
    /// The line that is no such line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let words: Vec<&str> = head.splitn(6, ' ').collect();
        let ["seed", seed, "rules", release, "engine", engine] = words[..] else {
            return Err(format!("not `seed N rules RELEASE engine NAME`: {head}"));
        };
        let seed = seed.parse().map_err(|_| format!("no seed: {head}"))?;
        let mut golden = Self { engine: engine.to_owned(), release: release.to_owned(), seed, answers: Vec::new() };
        for line in lines {
            let mut words = line.split(' ');
            let (Some(digest), Some(scores)) = (words.next(), words.next()) else {
                return Err(format!("not `DIGEST SCORES RULE...`: {line}"));
            };
            let ids = words.map(str::parse).collect::<Result<_, _>>().map_err(|_| format!("no rules: {line}"))?;
            let scores = if scores == "-" { String::new() } else { scores.to_owned() };
            golden.answers.push((digest.to_owned(), Answer { ids, scores }));
        }
        Ok(golden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let mut golden = Golden { engine: "A B".into(), release: "4.28.0".into(), seed: 1, answers: Vec::new() };
        golden.add(&Case::default(), &Answer { ids: [1, 22].into(), scores: "5,0".into() });
        golden.add(&Case { body: b"x".to_vec(), ..Case::default() }, &Answer::default());
        assert_eq!(Golden::parse(&golden.text()).unwrap(), golden);
        assert_ne!(golden.answers[0].0, golden.answers[1].0);
        assert!(Golden::parse("x").is_err());
        assert!(Golden::parse("seed 1 rules 4 engine e\nabc 1 x").is_err());
    }
}
