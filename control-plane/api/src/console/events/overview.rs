//! `_overview`: what happened in the last hour, day or week, from rollups.
#![allow(clippy::indexing_slicing, reason = "fields of JSON objects that are made here")]

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Query, State};
use serde_json::{Value, json};

use super::{Events, query, state};
use crate::error::ApiError;
use crate::query::Parameters;
use base::clock;
use store::rollups::{NamedTallies, Rollup, RollupCounts, RollupStep, Tally};

/// The names of a list that are shown by themselves.
const MAX_NAMES: usize = 10;

/// What is shown.
struct Span {
    name: &'static str,
    /// The steps that are read, and how many of them are one that is shown.
    step: RollupStep,
    joined: u64,
    /// The steps that are shown.
    steps: u64,
}

const SPANS: [Span; 3] = [
    Span { name: "hour", step: RollupStep::Minute, joined: 1, steps: 60 },
    Span { name: "day", step: RollupStep::Minute, joined: 10, steps: 144 },
    Span { name: "week", step: RollupStep::Hour, joined: 1, steps: 168 },
];

pub(super) async fn overview(
    State((console, events)): Events,
    Query(parameters): Parameters,
) -> Result<Json<Value>, ApiError> {
    let name = match parameters.as_slice() {
        [] => "hour",
        [(_, name)] => name.as_str(),
        _ => return Err(query::wrong("`span` comes twice".to_owned())),
    };
    let span = SPANS.iter().find(|span| span.name == name);
    let span = span.ok_or_else(|| query::wrong("`span` is `hour`, `day` or `week`".to_owned()))?;
    let range = Range::of(span, console.now());
    let before = range.from.saturating_sub(span.steps * range.length);
    let rollups = console.inner.store.rollups(span.step, before, range.until).await?;
    let health = json!({
        "troubles": console.inner.events.troubles(),
        "exporters": console.inner.events.exporters(),
        "event_store": state(&console, &events).await,
    });
    Ok(Json(shown(span, &range, &rollups, health)))
}

/// The time that is shown, in milliseconds since 1970, and the length of a step.
struct Range {
    from: u64,
    until: u64,
    length: u64,
    steps: usize,
}

impl Range {
    /// The last step is the one that `now` is in.
    fn of(span: &Span, now: u64) -> Range {
        let length = span.step.millis() * span.joined;
        let until = now - now % length + length;
        let steps = usize::try_from(span.steps).unwrap_or(0);
        Range { from: until.saturating_sub(span.steps * length), until, length, steps }
    }

    /// Which step a time is in.
    fn step(&self, at: u64) -> Option<usize> {
        usize::try_from(at.checked_sub(self.from)? / self.length).ok().filter(|step| *step < self.steps)
    }
}

/// The figures of a name in the whole time and in each step.
#[derive(Clone)]
struct Row {
    total: Tally,
    steps: Vec<u64>,
}

impl Row {
    fn empty(range: &Range) -> Row {
        Row { total: Tally::default(), steps: vec![0; range.steps] }
    }

    fn add(&mut self, step: usize, tally: Tally) {
        self.total.add(tally);
        if let Some(count) = self.steps.get_mut(step) {
            *count = count.saturating_add(tally.events());
        }
    }

    fn add_row(&mut self, more: &Row) {
        self.total.add(more.total);
        self.steps.iter_mut().zip(&more.steps).for_each(|(count, more)| *count = count.saturating_add(*more));
    }
}

fn shown(span: &Span, range: &Range, rollups: &[Rollup], health: Value) -> Value {
    let mut steps = vec![Tally::default(); range.steps];
    let (mut total, mut before) = (Tally::default(), Tally::default());
    for rollup in rollups {
        match range.step(rollup.at_millis).and_then(|step| steps.get_mut(step)) {
            Some(step) => {
                step.add(rollup.counts.total);
                total.add(rollup.counts.total);
            }
            None => before.add(rollup.counts.total),
        }
    }
    let steps = steps.iter().zip(0_u64..).map(|(tally, number)| {
        let mut step = figures(*tally);
        step["at"] = clock::rfc3339(range.from + number * range.length).into();
        step
    });
    let list = |label: &str, of: fn(&RollupCounts) -> &NamedTallies| list(label, range, rollups, of);
    json!({
        "span": span.name,
        "step_seconds": range.length / 1000,
        "from": clock::rfc3339(range.from),
        "until": clock::rfc3339(range.until),
        "steps": steps.collect::<Vec<_>>(),
        "totals": figures(total),
        "before": figures(before),
        "by_plugin": list("name", |counts| &counts.plugins),
        "by_route": list("id", |counts| &counts.routes),
        "by_action": list("name", |counts| &counts.actions),
        "by_category": list("name", |counts| &counts.categories),
        "health": health,
    })
}

fn figures(tally: Tally) -> Value {
    json!({ "requests": tally.requests, "refused": tally.refused, "observed": tally.observed, "dry_run": tally.dry_run })
}

/// The largest names, and the rest together.
fn list(label: &str, range: &Range, rollups: &[Rollup], of: fn(&RollupCounts) -> &NamedTallies) -> Vec<Value> {
    let (mut rows, mut other) = (BTreeMap::<&str, Row>::new(), Row::empty(range));
    for rollup in rollups {
        let (Some(step), tallies) = (range.step(rollup.at_millis), of(&rollup.counts)) else { continue };
        other.add(step, tallies.other);
        for (name, tally) in &tallies.names {
            rows.entry(name).or_insert_with(|| Row::empty(range)).add(step, *tally);
        }
    }
    let mut rows: Vec<(&str, Row)> = rows.into_iter().collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse((row.total.events(), row.total.requests)));
    for (_, row) in rows.iter().skip(MAX_NAMES) {
        other.add_row(row);
    }
    rows.truncate(MAX_NAMES);
    let entry = |name: Option<&str>, row: &Row| {
        let mut entry = figures(row.total);
        entry[label] = name.filter(|name| !name.is_empty()).into();
        entry["steps"] = row.steps.clone().into();
        entry
    };
    let mut all: Vec<Value> = rows.iter().map(|(name, row)| entry(Some(name), row)).collect();
    if other.total.events() > 0 || other.total.requests > 0 {
        let mut rest = entry(None, &other);
        rest["other"] = true.into();
        all.push(rest);
    }
    all
}
