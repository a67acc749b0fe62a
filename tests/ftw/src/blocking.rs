//! Whether a blocking rule set denies what its scores say, and nothing else.
//!
//! The suite itself runs with detection only: an engine can pass it and deny everything, or nothing. Here the verdict of
//! every stage is held against the scores, and the scores against the rules that matched.

use std::collections::BTreeSet;

use super::case::Log;
use super::judge::Found;
use super::scoring::{Direction, Scoring};
use proxy_host::traffic::Outcome;

/// The default thresholds of the core rule set.
const INBOUND_THRESHOLD: i64 = 5;
const OUTBOUND_THRESHOLD: i64 = 4;
/// The rules that deny by a sum: at the end of its phases, or early.
const INBOUND_RULES: [u64; 2] = [949_110, 949_111];
const OUTBOUND_RULES: [u64; 2] = [959_100, 959_101];

/// The engine's own rules against bodies that cannot be read. They deny without a score, before the sums are looked at.
const UNREADABLE_BODY: std::ops::RangeInclusive<u64> = 200_002..=200_007;

/// What denied an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Denial {
    /// A sum that reached its threshold.
    Score(Direction),
    /// A rule that needs no score.
    Unreadable,
}

/// A judge for one paranoia level.
#[derive(Debug, Clone)]
pub struct Verdicts<'a> {
    scoring: &'a Scoring,
    paranoia: u8,
}

/// Verdicts, counted. Both must be there for a run to say anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Denied by the request's score.
    pub inbound: usize,
    /// Denied by the response's score.
    pub outbound: usize,
    /// Denied because the body cannot be read.
    pub unreadable: usize,
    /// Passed, although some rule that scores matched.
    pub below: usize,
    /// Passed, and no rule that scores matched.
    pub clean: usize,
}

impl<'a> Verdicts<'a> {
    /// Judges by what rules up to a paranoia level add.
    #[must_use]
    pub fn new(scoring: &'a Scoring, paranoia: u8) -> Self {
        Self { scoring, paranoia }
    }

    /// What is wrong with a verdict, in one line; `None` where nothing is.
    #[must_use]
    pub fn judge(&self, expected: &Log, outcome: &Outcome) -> Option<String> {
        if let Some(fault) = &outcome.fault {
            return Some(format!("the filter died in {}: {}", fault.callback, fault.message));
        }
        let found = Found::read(outcome);
        let mut complaints = self.scores(&found);
        let denied = denial(&found);
        complaints.extend(self.verdict(&found, denied, outcome));
        for direction in [Direction::Inbound, Direction::Outbound] {
            let wanted = self.rules(expected.expect_ids.iter(), direction);
            // Rules that come after a denial do not run.
            let late = match denied {
                Some(Denial::Score(Direction::Inbound)) => direction == Direction::Outbound,
                Some(Denial::Unreadable) => true,
                _ => false,
            };
            if late {
                continue;
            }
            for id in wanted.iter().filter(|id| !found.ids.contains(id)) {
                complaints.push(format!("{id} did not match"));
            }
            let sum = self.sum(&wanted);
            if sum >= threshold(direction) && denied.is_none() {
                complaints.push(format!("the expected rules add up to {sum}, and nothing was denied"));
            }
        }
        (!complaints.is_empty()).then(|| complaints.join("; "))
    }

    /// The sums that the engine has against the rules that matched.
    fn scores(&self, found: &Found) -> Vec<String> {
        let mut complaints = Vec::new();
        for id in &found.ids {
            if let Some(score) = self.scoring.of(*id).filter(|score| score.level > self.paranoia) {
                complaints.push(format!("{id} is a rule of level {} and matched at {}", score.level, self.paranoia));
            }
        }
        for direction in [Direction::Inbound, Direction::Outbound] {
            let rules = self.rules(found.ids.iter(), direction);
            let (least, score) = (self.sum(&rules), score(found, direction));
            // A rule scores once for every value that it matches.
            let points = rules.iter().filter_map(|id| self.scoring.of(*id)).map(|score| score.points).collect();
            if !is_sum(score - least, &points) {
                complaints.push(format!("the {direction:?} score is {score}, and {rules:?} add up to {least}"));
            }
        }
        complaints
    }

    /// Denied exactly where a sum reaches its threshold.
    fn verdict(&self, found: &Found, denied: Option<Denial>, outcome: &Outcome) -> Option<String> {
        let reached = |direction: &Direction| score(found, *direction) >= threshold(*direction);
        let unreadable = found.ids.iter().any(|id| UNREADABLE_BODY.contains(id));
        let by_score = [Direction::Inbound, Direction::Outbound].into_iter().find(reached).map(Denial::Score);
        let due = if unreadable { Some(Denial::Unreadable) } else { by_score };
        let seen = match &outcome.local_reply {
            Some(reply) => format!("{} by rule {:?}", reply.status, found.denied_by),
            None => format!("{} of the backend", outcome.status),
        };
        let status = match due {
            Some(Denial::Score(_)) => outcome.status == 403,
            Some(Denial::Unreadable) => (400..500).contains(&outcome.status),
            None => true,
        };
        if denied != due || !status || due.is_some() != outcome.local_reply.is_some() {
            return Some(format!("{due:?} is due at scores {}, and the answer was {seen}", found.scores));
        }
        (denied.is_some_and(|denied| denied != Denial::Score(Direction::Outbound)) && outcome.reached_backend)
            .then(|| "the request was denied and reached the backend".to_owned())
    }

    /// The rules among these that add to a sum at this level, each once.
    fn rules<'b>(&self, ids: impl Iterator<Item = &'b u64>, direction: Direction) -> BTreeSet<u64> {
        let counts = |id: &u64| {
            self.scoring.of(*id).is_some_and(|score| score.direction == direction && score.level <= self.paranoia)
        };
        ids.copied().filter(counts).collect()
    }

    fn sum(&self, rules: &BTreeSet<u64>) -> i64 {
        rules.iter().filter_map(|id| self.scoring.of(*id)).map(|score| score.points).sum()
    }
}

impl Counts {
    /// Counts what the stages of a run came to.
    pub fn of<'b>(found: impl IntoIterator<Item = &'b Found>) -> Self {
        let mut counts = Self::default();
        for found in found {
            let scored = score(found, Direction::Inbound) + score(found, Direction::Outbound) > 0;
            *match denial(found) {
                Some(Denial::Score(Direction::Inbound)) => &mut counts.inbound,
                Some(Denial::Score(Direction::Outbound)) => &mut counts.outbound,
                Some(Denial::Unreadable) => &mut counts.unreadable,
                None if scored => &mut counts.below,
                None => &mut counts.clean,
            } += 1;
        }
        counts
    }
}

fn denial(found: &Found) -> Option<Denial> {
    let rule = found.denied_by?;
    if UNREADABLE_BODY.contains(&rule) {
        return Some(Denial::Unreadable);
    }
    let of = |rules: [u64; 2], direction| rules.contains(&rule).then_some(Denial::Score(direction));
    of(INBOUND_RULES, Direction::Inbound).or_else(|| of(OUTBOUND_RULES, Direction::Outbound))
}

fn score(found: &Found, direction: Direction) -> i64 {
    let name = if direction == Direction::Inbound { "inbound" } else { "outbound" };
    found.scores[name].as_i64().unwrap_or(0)
}

fn threshold(direction: Direction) -> i64 {
    if direction == Direction::Inbound { INBOUND_THRESHOLD } else { OUTBOUND_THRESHOLD }
}

/// Whether a number is a sum of these, each as often as one likes.
fn is_sum(number: i64, of: &BTreeSet<i64>) -> bool {
    let Ok(number) = usize::try_from(number) else { return false };
    let mut reachable = vec![false; number + 1];
    reachable[0] = true;
    for at in 1..=number {
        let parts = of.iter().filter_map(|part| usize::try_from(*part).ok());
        reachable[at] = parts.filter(|part| (1..=at).contains(part)).any(|part| reachable[at - part]);
    }
    reachable[number]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_made_of_their_parts() {
        let parts = BTreeSet::from([3, 5]);
        assert_eq!([0, 3, 5, 8, 10].map(|sum| is_sum(sum, &parts)), [true; 5]);
        assert_eq!([-5, 1, 4, 7].map(|sum| is_sum(sum, &parts)), [false; 4]);
        assert!(!is_sum(1, &BTreeSet::new()) && is_sum(0, &BTreeSet::new()));
    }
}
