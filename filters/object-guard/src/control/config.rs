//! The plugin's configuration.

use std::ops::RangeInclusive;

use kit::{FieldProblem, checks, typed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ObjectSettings;
use crate::budget::MAX_BUDGET;
use crate::messages::{EnumerationLimits, ObjectGuardStep, ObjectPath, SurgeLimits, WalkLimits};
use crate::record::MAX_NUMBERS;
use crate::template::Template;

/// The most entries of `paths`.
const MAX_PATHS: usize = 256;
/// The longest name of a kind, in bytes.
const MAX_NAME: usize = 128;
/// The most methods of a path.
const MAX_METHODS: usize = 16;
/// The most denied statuses.
const MAX_STATUSES: usize = 64;
/// The bounds of windows, in seconds. That of budgets may be a week.
const WINDOW: RangeInclusive<u32> = 1..=86_400;
const BUDGET_WINDOW: RangeInclusive<u32> = 1..=604_800;

/// What is done beyond a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BudgetAction {
    /// The request is refused with 429.
    #[default]
    Block,
    /// It is only reported.
    Log,
}

/// The configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectGuardConfig {
    /// Templates, or objects `{path, name, methods, budget}`; at most 256.
    pub paths: Vec<Value>,
    /// Identifiers are detected by their shape.
    pub auto_detect: bool,
    /// Patterns add to the score.
    pub contribute: bool,
    /// The most distinct objects of a kind that a consumer may read in a window: 0 to 5120, 0 for no limit.
    pub budget: u32,
    /// That window: 1 to 604,800 seconds.
    pub budget_window_seconds: u32,
    /// What is done beyond it.
    pub budget_action: BudgetAction,
    /// How many times the usual pace is a surge: 1.1 to 100.
    pub surge_factor: f64,
    /// No surge up to so many objects in a bucket: 1 to 100,000.
    pub surge_floor: u32,
    /// The same while the pace is not learned yet: 1 to 100,000.
    pub warmup_ceiling: u32,
    /// The length of a bucket: 1 to 3600.
    pub bucket_seconds: u32,
    /// Over how many buckets the usual pace is averaged: 2 to 10,000.
    pub learning_buckets: u32,
    /// After how many buckets the pace is learned: 1 to `learning_buckets`.
    pub warmup_buckets: u32,
    /// How many numbered objects are a walk: 2 to 64.
    pub sequential_min: u32,
    /// Within how many seconds: 1 to 86,400.
    pub sequential_window_seconds: u32,
    /// The largest median of the gaps between their numbers: 0 to 1,000,000.
    pub sequential_max_gap: u64,
    /// How many requests are an enumeration, at least: 1 to 10,000.
    pub enumeration_min: u32,
    /// The share of them that is denied: 0.01 to 1.
    pub enumeration_ratio: f64,
    /// Within how many seconds: 5 to 86,400.
    pub enumeration_window_seconds: u32,
    /// The statuses of denials, at most 64.
    pub denied_statuses: Vec<u16>,
    /// What a surge adds to the score: 0 to 100.
    pub surge_weight: f64,
    /// The same of a walk.
    pub sequential_weight: f64,
    /// The same of an enumeration.
    pub enumeration_weight: f64,
}

/// An entry of `paths` that says more than a template.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathConfig {
    path: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    methods: Vec<String>,
    #[serde(default)]
    budget: Option<u32>,
}

impl Default for ObjectGuardConfig {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            auto_detect: true,
            contribute: false,
            budget: 0,
            budget_window_seconds: 3600,
            budget_action: BudgetAction::Block,
            surge_factor: 5.0,
            surge_floor: 30,
            warmup_ceiling: 150,
            bucket_seconds: 60,
            learning_buckets: 60,
            warmup_buckets: 10,
            sequential_min: 30,
            sequential_window_seconds: 600,
            sequential_max_gap: 3,
            enumeration_min: 20,
            enumeration_ratio: 0.5,
            enumeration_window_seconds: 300,
            denied_statuses: vec![401, 403, 404],
            surge_weight: 40.0,
            sequential_weight: 50.0,
            enumeration_weight: 50.0,
        }
    }
}

impl ObjectGuardConfig {
    /// Reads a configuration and checks it.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn read(config: &Map<String, Value>) -> Result<Self, Vec<FieldProblem>> {
        let config: Self = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn problems(&self) -> Vec<FieldProblem> {
        let statuses = self.denied_statuses.iter().enumerate();
        let statuses =
            statuses.filter_map(|(place, status)| checks::status(&format!("/denied_statuses/{place}"), *status));
        let found = [
            within_budget("/budget", self.budget),
            checks::within("/budget_window_seconds", self.budget_window_seconds, BUDGET_WINDOW),
            checks::within("/surge_factor", self.surge_factor, 1.1..=100.0),
            checks::within("/surge_floor", self.surge_floor, 1..=100_000),
            checks::within("/warmup_ceiling", self.warmup_ceiling, 1..=100_000),
            checks::within("/bucket_seconds", self.bucket_seconds, 1..=3600),
            checks::within("/learning_buckets", self.learning_buckets, 2..=10_000),
            checks::within("/warmup_buckets", self.warmup_buckets, 1..=self.learning_buckets.max(1)),
            checks::within("/sequential_min", self.sequential_min, 2..=MAX_NUMBERS),
            checks::within("/sequential_window_seconds", self.sequential_window_seconds, WINDOW),
            checks::within("/sequential_max_gap", self.sequential_max_gap, 0..=1_000_000),
            checks::within("/enumeration_min", self.enumeration_min, 1..=10_000),
            checks::within("/enumeration_ratio", self.enumeration_ratio, 0.01..=1.0),
            checks::within("/enumeration_window_seconds", self.enumeration_window_seconds, 5..=86_400),
            checks::count("/denied_statuses", self.denied_statuses.len(), MAX_STATUSES),
            checks::weight("/surge_weight", self.surge_weight),
            checks::weight("/sequential_weight", self.sequential_weight),
            checks::weight("/enumeration_weight", self.enumeration_weight),
        ];
        let paths = paths("/paths", &self.paths).err().unwrap_or_default();
        paths.into_iter().chain(found.into_iter().flatten()).chain(statuses).collect()
    }

    /// The step of a configuration.
    ///
    /// # Errors
    /// A path is wrong.
    pub fn step(&self, settings: &ObjectSettings) -> Result<ObjectGuardStep, Vec<FieldProblem>> {
        Ok(ObjectGuardStep {
            paths: paths("/paths", &self.paths)?,
            auto_detect: self.auto_detect,
            contribute: self.contribute,
            budget: self.budget,
            budget_window_seconds: self.budget_window_seconds,
            budget_logs: self.budget_action == BudgetAction::Log,
            surge: Some(SurgeLimits {
                factor: self.surge_factor,
                floor: self.surge_floor,
                ceiling: self.warmup_ceiling,
                bucket_seconds: self.bucket_seconds,
                learning: self.learning_buckets,
                warmup: self.warmup_buckets,
                weight: self.surge_weight,
            }),
            walk: Some(WalkLimits {
                min: self.sequential_min,
                window_seconds: self.sequential_window_seconds,
                max_gap: self.sequential_max_gap,
                weight: self.sequential_weight,
            }),
            enumeration: Some(EnumerationLimits {
                min: self.enumeration_min,
                ratio: self.enumeration_ratio,
                window_seconds: self.enumeration_window_seconds,
                statuses: self.denied_statuses.iter().copied().map(u32::from).collect(),
                weight: self.enumeration_weight,
            }),
            max_keys: settings.max_keys,
        })
    }
}

/// The declared paths.
pub(super) fn paths(pointer: &str, entries: &[Value]) -> Result<Vec<ObjectPath>, Vec<FieldProblem>> {
    let mut problems: Vec<FieldProblem> = checks::count(pointer, entries.len(), MAX_PATHS).into_iter().collect();
    let mut found = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        match path(entry) {
            Ok(path) => found.push(path),
            Err(problem) => problems.push(problem.under(&format!("{pointer}/{place}"))),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

pub(super) fn within_budget(pointer: &str, budget: u32) -> Option<FieldProblem> {
    checks::within(pointer, budget, 0..=MAX_BUDGET)
}

fn path(entry: &Value) -> Result<ObjectPath, FieldProblem> {
    let (PathConfig { path, name, methods, budget }, pointer) = match entry {
        Value::String(path) => {
            (PathConfig { path: path.clone(), name: String::new(), methods: Vec::new(), budget: None }, "")
        }
        entry => (typed(entry.clone())?, "/path"),
    };
    if let Err(why) = Template::parse(&path) {
        return Err(FieldProblem::new(pointer, format!("`{}`: {why}", path.escape_debug()))
            .expected("a path such as `/api/orders/{id}` or `/files/*`"));
    }
    let is_method =
        |method: &String| (1..=32).contains(&method.len()) && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    if let Some(place) = methods.iter().position(|method| !is_method(method)) {
        let problem = FieldProblem::new(format!("/methods/{place}"), "this is not a method");
        return Err(problem.expected("a method such as `GET`"));
    }
    let bounds = [
        checks::text("/name", &name, MAX_NAME),
        checks::count("/methods", methods.len(), MAX_METHODS),
        budget.and_then(|budget| within_budget("/budget", budget)),
    ];
    if let Some(problem) = bounds.into_iter().flatten().next() {
        return Err(problem);
    }
    let methods = methods.iter().map(|method| method.to_ascii_uppercase()).collect();
    Ok(ObjectPath { template: path, name, methods, budget })
}
