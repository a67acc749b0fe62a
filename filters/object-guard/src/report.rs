//! Signals and events.

use std::borrow::Cow;

use exchange::{About, Action, Category, Decision, Exchange, Host, Outcome, SecurityEvent, Signal, Table};

use crate::budget::Uncounted;
use crate::object::Kind;
use crate::record::{Enumeration, Patterns, Steps, Surge};
use crate::{ObjectGuard, PLUGIN};

/// What was reported within the last minute, beside patterns: those are noted in their records.
const REPORTED: Table = Table { name: "objects.reported", shards: 32, entries_per_shard: 64 };
/// How long it is not reported again, in milliseconds.
const REPORT_AFTER: u64 = 60_000;
/// The tag of objects beyond a budget.
const BUDGET_TAG: &str = "objects:budget";
/// The tag of objects that were not counted, because the control plane did not answer.
const UNCOUNTED_TAG: &str = "objects:budget_uncounted";
/// Why the control plane was not waited for.
const OVERRUN: &str = "more of a body came than may wait for the control plane, or too many requests wait for it";

impl ObjectGuard {
    /// Adds the patterns to the score that are not in `signalled`, and reports those that are due.
    pub(crate) fn tell(
        &self,
        patterns: &Patterns,
        kind: &Kind,
        signalled: &mut Vec<&'static str>,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) {
        if (patterns.surge, patterns.walk, patterns.enumeration) == (None, None, None) {
            return;
        }
        let shown = shown(kind, exchange);
        let limits = &self.limits;
        let quoted = format!("`{shown}`");
        let surge = patterns.surge.map(|surge| {
            let text = surge_text(&surge, &quoted, limits.surge.bucket_seconds);
            ("objects:surge", limits.surge.weight, text)
        });
        let walk = patterns.walk.map(|steps| {
            let text = walk_text(&steps, &quoted, limits.walk.window_seconds);
            ("objects:sequential", limits.walk.weight, text)
        });
        let enumeration = patterns.enumeration.map(|found| {
            let text = enumeration_text(&found, &quoted, limits.enumeration.window_seconds);
            ("objects:enumeration", limits.enumeration.weight, text)
        });
        let findings = [surge, walk, enumeration];
        for (tag, weight, text) in findings.iter().flatten() {
            if !signalled.contains(tag) {
                signalled.push(tag);
                // Without `contribute` the tag alone is left.
                signal(tag, if self.contribute { *weight } else { 0.0 }, text, exchange, host);
            }
        }
        let due = findings.iter().zip(patterns.due).filter_map(|(finding, due)| finding.as_ref().filter(|_| due));
        for (tag, _, text) in due {
            emit(Category::Objects, text, About::pattern(tag, shown.clone()), exchange, host);
        }
    }

    /// Notes an object beyond a budget: the sentence for a refusal, and what it is about.
    pub(crate) fn beyond(
        &self,
        kind: &Kind,
        (limit, ends_in): (u32, u64),
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> (String, About) {
        let (shown, seconds) = (shown(kind, exchange), self.budget_window_seconds);
        let text = format!(
            "budget of objects: one more than {limit} distinct objects of `{shown}` in the window of {seconds} s, which ends in {ends_in} s"
        );
        signal(BUDGET_TAG, 0.0, &text, exchange, host);
        (text, About::pattern(BUDGET_TAG, shown))
    }

    /// Reports an object beyond a budget that is let through, once a minute for each consumer and kind.
    pub(crate) fn report_beyond(
        &self,
        (text, about): (&str, About),
        key: &[u8],
        exchange: &mut Exchange,
        host: &dyn Host,
    ) {
        if REPORTED.is_due(host.shared(), &[b"budget\0", key].concat(), host.now(), REPORT_AFTER) {
            let text = format!("{text}; the request went on, as `budget_action` says");
            emit(Category::Objects, &text, about, exchange, host);
        }
    }

    /// Notes an object whose count was not waited for: the sentence for a refusal, and what it is about.
    pub(crate) fn uncounted(&self, kind: &Kind, exchange: &mut Exchange, host: &dyn Host) -> (String, About) {
        let shown = shown(kind, exchange);
        let text = format!("budget of objects: it is not known whether one more of `{shown}` is within it: {OVERRUN}");
        signal(UNCOUNTED_TAG, 0.0, &text, exchange, host);
        (text, About::pattern(UNCOUNTED_TAG, shown))
    }

    /// Reports that an object was not counted, once a minute on the node.
    pub(crate) fn report_uncounted(&self, why: Uncounted, exchange: &mut Exchange, host: &dyn Host) {
        if !REPORTED.is_due(host.shared(), b"uncounted", host.now(), REPORT_AFTER) {
            return;
        }
        let why = match why {
            Uncounted::NoControlPlane => "this gateway has no control plane",
            Uncounted::NoAnswer => "the control plane did not answer in time",
            Uncounted::Overrun => OVERRUN,
        };
        let text = format!("budgets of objects are not counted: {why}; requests go on");
        signal(UNCOUNTED_TAG, 0.0, &text, exchange, host);
        emit(Category::Dependency, &text, About::pattern(UNCOUNTED_TAG, String::new()), exchange, host);
    }
}

fn surge_text(surge: &Surge, kind: &str, seconds: u32) -> String {
    let Surge { count, usual, threshold } = surge;
    let usual = match usual {
        Some(usual) => format!("{usual:.1} are usual"),
        None => "what is usual is not learned yet".to_owned(),
    };
    format!(
        "surge of objects: {count} of {kind} in {seconds} s that were not read lately; {usual}, and more than {threshold:.0} a surge"
    )
}

fn walk_text(steps: &Steps, kind: &str, seconds: u32) -> String {
    let Steps { count, from, to, gap } = steps;
    format!(
        "sequential walk: {count} numbered objects of {kind} between {from} and {to} in {seconds} s with a median gap of {gap}"
    )
}

fn enumeration_text(found: &Enumeration, kind: &str, seconds: u32) -> String {
    let Enumeration { requests, denied } = found;
    format!("enumeration of objects: {denied} of {requests} requests for {kind} in {seconds} s were denied")
}

/// A kind as it may be shown; nothing of a path that holds a secret.
fn shown(kind: &Kind, exchange: &Exchange) -> String {
    let clean = |char: char| if char.is_control() { '?' } else { char };
    let kind = if exchange.target_is_secret { Cow::Borrowed("(hidden)") } else { kind.shown() };
    kind.chars().take(200).map(clean).collect()
}

fn signal(tag: &'static str, weight: f64, detail: &str, exchange: &mut Exchange, host: &dyn Host) {
    exchange.score.add(Signal {
        source: "objects".into(),
        kind: "objects".into(),
        weight,
        confidence: 1.0,
        tag: tag.into(),
        detail: detail.to_owned(),
        at: host.now(),
    });
}

fn emit(category: Category, text: &str, about: About, exchange: &mut Exchange, host: &dyn Host) {
    let decision = Decision::new(Action::Log, exchange.score.total(), text).about(about);
    let event = SecurityEvent {
        category,
        outcome: Outcome::Observed,
        module: PLUGIN.name,
        message: &decision.reason,
        decision: &decision,
    };
    exchange.emit(&event, host);
}
