//! The last trial of what is accepted, as it is written.

use std::collections::BTreeSet;

use super::{Choice, Together, is_same};
use crate::control::operations::trial::Trial;
use crate::control::tuning::exclusion::{Place, reaches};
use crate::control::tuning::preview::attacks::{Outcome, outcome, read, seen};
use crate::control::tuning::preview::parallel::each;
use crate::control::tuning::shape::Shape;
use crate::control::tuning::target::Target;

/// How often what is accepted is tried as it is written, with less each time, before all goes that an attack needs.
const ROUNDS: usize = 6;

impl Together<'_> {
    /// Tries all that are accepted as they are written, each with its choice. Those that do not stand are returned: that do not end their
    /// match, and as few as are needed that no attack passes at an input that is not free.
    ///
    /// # Errors
    /// They do not compile; for people.
    pub(in crate::control::tuning) fn confirm(&self, written: &[(usize, String)]) -> Result<BTreeSet<usize>, String> {
        let mut fallen = BTreeSet::new();
        for round in 1.. {
            let texts = written.iter().filter(|(choice, _)| !fallen.contains(choice));
            let texts: Vec<&str> = texts.map(|(_, text)| text.as_str()).collect();
            let built = self.bench.build((!texts.is_empty()).then(|| texts.join("\n")).as_deref())?;
            let trial = self.bench.trial(&built);
            let needed = self.needed(&trial, &fallen, round >= ROUNDS);
            fallen.extend(&needed);
            if needed.is_empty() || round > ROUNDS {
                let ends = |one: usize| {
                    let choice = self.choices.get(one);
                    choice.is_some_and(|Choice { place, sample, .. }| {
                        seen(&trial, &read(sample), b"").is_some_and(|seen| !seen.has(place))
                    })
                };
                let left = self.accepted.iter().map(|(one, _)| *one).filter(|one| !fallen.contains(one));
                let useless: Vec<usize> = left.filter(|one| !ends(*one)).collect();
                fallen.extend(useless);
                break;
            }
        }
        Ok(fallen)
    }

    /// The exclusions that have to go so that attacks are caught again that pass: of each attack the one that was accepted last, or `all` of them.
    fn needed(&self, trial: &Trial<'_>, fallen: &BTreeSet<usize>, all: bool) -> BTreeSet<usize> {
        let mut needed = BTreeSet::new();
        let strict = self.inputs.iter().enumerate().filter(|(at, _)| !self.lenient.contains(at));
        for (at, input) in strict {
            let here = self.accepted.iter().filter(|(one, kind)| {
                let is_here = kind.is_for_all_paths() || self.is_reached(*one, &input.path);
                !fallen.contains(one)
                    && (is_here && self.is_of_same(*one, &input.target) || self.of_choice.get(*one) == Some(&at))
            });
            let here: Vec<(usize, &Place, Option<Shape>)> =
                here.filter_map(|one| Some((one.0, &self.choices.get(one.0)?.place, self.shape(*one)))).collect();
            let touched = self.touched(input, |hits| here.iter().any(|(_, place, _)| hits.have(place)));
            let paranoia = self.paranoia();
            let passed = each(self.bench.threads, &touched, |(candidate, caught)| {
                let is_by_chance = candidate.is_by_chance(caught, paranoia)
                    && here.iter().any(|(_, _, shape)| shape.is_some_and(|shape| candidate.is_of(shape)));
                !is_by_chance
                    && outcome(trial, candidate.build(&input.carrier, input.at()).as_ref(), b"") == Outcome::Passed
            });
            for ((_, caught), _) in touched.iter().zip(passed).filter(|(_, passed)| *passed) {
                let Outcome::Caught(hits) = caught else { continue };
                let mut those = here.iter().filter(|(_, place, _)| hits.have(place)).map(|(one, _, _)| *one);
                match all {
                    true => needed.extend(those),
                    false => needed.extend(those.next_back()),
                }
            }
        }
        needed
    }

    /// Whether an exclusion of a choice on its path holds on a path.
    fn is_reached(&self, choice: usize, path: &str) -> bool {
        self.choices.get(choice).is_some_and(|choice| reaches(&choice.place.path, path))
    }

    /// Whether an input of a choice is the same on another path.
    fn is_of_same(&self, choice: usize, target: &Target) -> bool {
        self.choices.get(choice).is_some_and(|choice| is_same(&choice.place.target, target))
    }
}
