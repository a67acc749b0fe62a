//! A run of the suite.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use super::case::{self, Log, Stage};
use super::judge::{self, Found};
use super::{Ignore, Ignored, request};
use crate::Engine;
use proxy_host::traffic::{Exchange, Outcome};

/// The tests to run.
#[derive(Debug, Clone, Default)]
pub struct Suite {
    /// In the order of their files.
    pub tests: Vec<Test>,
    /// Files that could not be read, by name, and why. Each counts as a test that failed.
    pub unreadable: Vec<(String, String)>,
}

/// One test.
#[derive(Debug, Clone)]
pub struct Test {
    /// `RULE-NUMBER`.
    pub name: String,
    /// Its stages.
    pub stages: Vec<Stage>,
}

/// Which tests to take.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Those of one rule.
    pub only: Option<u64>,
    /// The i-th of n parts, i from 1.
    pub shard: Option<(usize, usize)>,
}

/// What became of a run on one engine.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// The engine.
    pub engine: String,
    /// How many tests ran.
    pub ran: usize,
    /// How many were right.
    pub passed: usize,
    /// How many were left out, because they ask something of a server and nothing of the rules.
    pub skipped: usize,
    /// Tests that went wrong and are not on the list of known failures.
    pub failures: Vec<Failure>,
    /// Tests that went wrong and are on that list.
    pub ignored: Vec<Ignored>,
    /// Tests on that list that are right by now.
    pub stale: Vec<String>,
    /// What the rules said, by test and stage (from 1).
    pub found: BTreeMap<(String, usize), Found>,
    /// How many exchanges there were.
    pub transactions: usize,
    /// How long the engine took for them.
    pub spent: Duration,
}

/// What is wrong with an outcome, in one line; `None` where nothing is.
pub type Judge<'a> = dyn Fn(&Log, &Outcome) -> Option<String> + 'a;

/// One thing that went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// `RULE-NUMBER`, or a file that cannot be read.
    pub test: String,
    /// From 1; 0 for a file.
    pub stage: usize,
    /// What is wrong.
    pub reason: String,
}

impl Suite {
    /// Reads all files under a folder and takes the selected tests.
    ///
    /// # Errors
    ///
    /// A folder that cannot be listed, or has no tests.
    pub fn read(folder: &Path, selection: &Selection) -> Result<Self, String> {
        let mut suite = Self::default();
        for path in case::find(folder)? {
            match case::read(&path) {
                Ok(file) if selection.only.is_some_and(|only| only != file.rule_id) => {}
                Ok(file) => suite.tests.extend(
                    file.tests
                        .into_iter()
                        .map(|test| Test { name: format!("{}-{}", file.rule_id, test.test_id), stages: test.stages }),
                ),
                Err(error) => suite.unreadable.push((path.display().to_string(), error)),
            }
        }
        if suite.tests.is_empty() && suite.unreadable.is_empty() {
            return Err(format!("there are no tests to run under {}", folder.display()));
        }
        if let Some((part, parts)) = selection.shard {
            let mut number = 0;
            suite.tests.retain(|_| {
                number += 1;
                (number - 1) % parts.max(1) == part - 1
            });
        }
        Ok(suite)
    }

    /// Runs every test on an engine; `progress` hears how many are done.
    pub fn run(&self, engine: &mut dyn Engine, ignore: &Ignore, progress: impl FnMut(usize)) -> Results {
        self.run_judged(engine, ignore, progress, &judge::judge)
    }

    /// [`Suite::run`] with a judge of one's own.
    pub fn run_judged(
        &self,
        engine: &mut dyn Engine,
        ignore: &Ignore,
        mut progress: impl FnMut(usize),
        judge: &Judge<'_>,
    ) -> Results {
        let mut results = Results { engine: engine.name().to_owned(), ..Results::default() };
        let mut passed = BTreeSet::new();
        for (file, error) in &self.unreadable {
            results.ran += 1;
            results.failures.push(Failure { test: file.clone(), stage: 0, reason: error.clone() });
        }
        for (number, test) in self.tests.iter().enumerate() {
            progress(number);
            if test.stages.iter().any(|stage| judge::is_left_to_the_server(&stage.output)) {
                results.skipped += 1;
                continue;
            }
            results.ran += 1;
            match (results.run_test(test, engine, judge), ignore.reason(&test.name)) {
                (None, _) => {
                    results.passed += 1;
                    passed.insert(test.name.clone());
                }
                (Some(_), Some(reason)) => {
                    results.ignored.push(Ignored { test: test.name.clone(), reason: reason.to_owned() });
                }
                (Some(failure), None) => results.failures.push(failure),
            }
        }
        results.stale = ignore.stale(&passed);
        results
    }
}

impl Results {
    /// Every test that ran was right, or is known to fail.
    #[must_use]
    pub fn all_passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Exchanges per second of the engine's time.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let count = u32::try_from(self.transactions).unwrap_or(u32::MAX);
        f64::from(count) / self.spent.as_secs_f64().max(1e-9)
    }

    /// Every stage on which two engines differ, and how.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Failure> {
        let names: BTreeSet<_> = self.found.keys().chain(other.found.keys()).collect();
        let differing = names.into_iter().filter(|name| self.found.get(name) != other.found.get(name));
        let describe = |results: &Self, name| match results.found.get(name) {
            Some(found) => format!("{} {} {:?} {}", results.engine, found.status, found.ids, found.scores),
            None => format!("{} nothing", results.engine),
        };
        differing
            .map(|name| Failure {
                test: name.0.clone(),
                stage: name.1,
                reason: format!("{}; {}", describe(self, name), describe(other, name)),
            })
            .collect()
    }

    /// All stages run, whatever comes of them: later ones may need what earlier ones left behind.
    fn run_test(&mut self, test: &Test, engine: &mut dyn Engine, judge: &Judge<'_>) -> Option<Failure> {
        let mut failure = None;
        for (number, stage) in test.stages.iter().enumerate() {
            let stage_number = number + 1;
            let complaint = match request::exchange(&stage.input) {
                Err(error) => Some(error),
                Ok(exchange) => {
                    let outcome = self.time(&exchange, engine);
                    self.found.insert((test.name.clone(), stage_number), Found::read(&outcome));
                    judge(&stage.output.log, &outcome).map(|reason| match answered_first(&outcome) {
                        Some(answer) => format!("{reason}; {answer}"),
                        None => reason,
                    })
                }
            };
            if let (None, Some(reason)) = (&failure, complaint) {
                failure = Some(Failure { test: test.name.clone(), stage: stage_number, reason });
            }
        }
        failure
    }

    fn time(&mut self, exchange: &Exchange, engine: &mut dyn Engine) -> Outcome {
        let began = Instant::now();
        let outcome = engine.exchange(exchange);
        self.spent += began.elapsed();
        self.transactions += 1;
        outcome
    }
}

/// Who answered in the backend's place, where the rules alone do not explain an outcome.
fn answered_first(outcome: &Outcome) -> Option<String> {
    let reply = outcome.local_reply.as_ref()?;
    Some(format!("answered with {} ({})", reply.status, reply.details))
}
