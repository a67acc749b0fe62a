//! What came of a run, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::suite::{Failure, Results};

/// The report of one engine as JSON: counts, failures, and what was forgiven.
#[must_use]
pub fn json(results: &Results) -> Value {
    let failure = |failure: &Failure| json!({ "test": failure.test, "stage": failure.stage, "reason": failure.reason });
    let ignored = results.ignored.iter().map(|entry| json!({ "test": entry.test, "reason": entry.reason }));
    json!({
        "engine": results.engine,
        "ran": results.ran,
        "passed": results.passed,
        "failed": results.failures.len(),
        "skipped": results.skipped,
        "failures": results.failures.iter().map(failure).collect::<Vec<_>>(),
        "ignored": ignored.collect::<Vec<_>>(),
        "stale": results.stale,
        "transactions": results.transactions,
        "transactions_per_second": results.rate().round(),
    })
}

/// The report of one engine as text.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut out = String::new();
    for failure in &results.failures {
        let _ = writeln!(out, "FAIL {} stage {}: {}", failure.test, failure.stage, failure.reason);
    }
    for entry in &results.ignored {
        let _ = writeln!(out, "ignored {}: {}", entry.test, entry.reason);
    }
    for test in &results.stale {
        let _ = writeln!(out, "stale {test}: it is on the list of known failures, and passes: take it off");
    }
    let share = |part: usize| 100.0 * part as f64 / results.ran.max(1) as f64;
    let _ = writeln!(
        out,
        "{}: ran {}, passed {} ({:.2} %), failed {}, ignored {}, skipped {}",
        results.engine,
        results.ran,
        results.passed,
        share(results.passed),
        results.failures.len(),
        results.ignored.len(),
        results.skipped,
    );
    let _ = writeln!(
        out,
        "{}: {} transactions in {:.2} s, {:.0} per second",
        results.engine,
        results.transactions,
        results.spent.as_secs_f64(),
        results.rate(),
    );
    out
}
