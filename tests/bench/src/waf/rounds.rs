//! The engines take turns.

use std::time::{Duration, Instant};

use seclang::Work;

use super::cases::Case;
use super::{Engine, Verdict};

/// How long is measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How often every engine gets its turn with every case.
    pub rounds: usize,
    /// How long one turn is. A transaction that takes longer is run once.
    pub turn: Duration,
    /// The most that one engine may spend on one case in all rounds; then it is left out, once it had three turns.
    pub most: Duration,
}

/// The most transactions in one turn.
const MAX_IN_TURN: usize = 2000;
/// The fewest turns of an engine with a case.
const FEWEST_TURNS: usize = 3;

/// What was found out about one case.
#[derive(Debug, Clone)]
pub struct Row {
    /// The case's name.
    pub name: String,
    /// What it is.
    pub what: String,
    /// Length of the request's body in bytes.
    pub body: usize,
    /// An attack, whose rules have to match.
    pub attack: bool,
    /// What the engine evaluates.
    pub work: Work,
    /// What each engine makes of it, in the engines' order.
    pub verdicts: Vec<Verdict>,
    /// Every single time of each engine in nanoseconds.
    pub times: Vec<Vec<u64>>,
}

impl Row {
    /// Whether all engines match the same attack rules and refuse or pass alike.
    #[must_use]
    pub fn agreed(&self) -> bool {
        let same = |pair: &[Verdict]| match pair {
            [one, other] => one.attacks() == other.attacks() && one.refused == other.refused,
            _ => true,
        };
        self.verdicts.windows(2).all(same)
    }

    /// Whether the rules say of it what it is.
    #[must_use]
    pub fn as_meant(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.attacks().is_empty() != self.attack)
    }
}

/// Runs all cases through all engines: first once, to see what they make of them and to warm up, then in rounds.
/// `work` is what the engine evaluates in each; `progress` is told what is going on.
///
/// # Errors
///
/// An engine died.
pub fn run(
    cases: &[Case],
    work: &[Work],
    engines: &mut [&mut dyn Engine],
    plan: Plan,
    mut progress: impl FnMut(&str),
) -> Result<Vec<Row>, String> {
    let mut rows = Vec::with_capacity(cases.len());
    for (at, case) in cases.iter().enumerate() {
        let mut verdicts = Vec::new();
        for engine in &mut *engines {
            progress(&format!("what {} makes of {}", engine.name(), case.name));
            verdicts.push(engine.judge(at)?);
            engine.measure(at, MAX_IN_TURN, plan.turn / 2)?;
        }
        rows.push(Row {
            name: case.name.clone(),
            what: case.what.clone(),
            body: case.exchange.request.body.len(),
            attack: case.attack,
            work: work.get(at).copied().unwrap_or_default(),
            verdicts,
            times: vec![Vec::new(); engines.len()],
        });
    }
    let mut spent = vec![vec![Duration::ZERO; engines.len()]; cases.len()];
    for round in 0..plan.rounds {
        for (at, row) in rows.iter_mut().enumerate() {
            for turn in 0..engines.len() {
                // Nobody always follows the same neighbour.
                let who = (turn + round) % engines.len();
                if round >= FEWEST_TURNS && spent[at][who] > plan.most {
                    continue;
                }
                let engine = &mut engines[who];
                progress(&format!("round {} of {}: {}, {}", round + 1, plan.rounds, row.name, engine.name()));
                let began = Instant::now();
                row.times[who].extend(engine.measure(at, MAX_IN_TURN, plan.turn)?);
                spent[at][who] += began.elapsed();
            }
        }
    }
    Ok(rows)
}
