//! The report for people.

use std::fmt::Write as _;

use serde_json::Value;

use crate::samples::target::is_unseen;

/// The entries that are shown; the document has all.
const SHOWN: usize = 50;

/// The report as text: the verdict first, then the figures.
pub(super) fn text(report: &Value) -> String {
    let mut out = format!("{}\n\n", word(report, "/verdict"));
    figures(&mut out, report);
    entries(&mut out, report);
    exclusions(&mut out, report);
    trade_offs(&mut out, report);
    profile(&mut out, report);
    for (title, figure) in [("Paranoia level", "/paranoia"), ("Threshold", "/threshold")] {
        let at = |field: &str| format!("{figure}/{field}");
        let change = match report.pointer(&at("recommended")).and_then(Value::as_u64) {
            Some(recommended) => format!(", recommended {recommended}"),
            None => String::new(),
        };
        line(
            &mut out,
            &format!("\n{title}: now {}{change}. {}", number(report, &at("current")), word(report, &at("rationale"))),
        );
    }
    for step in list(report, "/threshold/curve") {
        line(
            &mut out,
            &format!("  at {:>3}: {} requests denied", number(step, "/threshold"), number(step, "/still_denied")),
        );
    }
    out.trim_end().to_owned()
}

fn figures(out: &mut String, report: &Value) {
    let requests = number(report, "/run/requests");
    let rate = report.pointer("/run/would_block_rate").and_then(Value::as_f64).unwrap_or_default();
    let refused = number(report, "/proof/refused_before");
    let after = match report.pointer("/proof/refused_after").and_then(Value::as_u64) {
        Some(after) => format!("{after} with the verified exclusions"),
        None => "with the verified exclusions not known".to_owned(),
    };
    line(out, &format!("Requests: {requests}, {} with a match.", number(report, "/run/matched")));
    line(out, &format!("Would be refused: {refused} ({:.2} %); {after}.", rate * 100.0));
    let attacks = number(report, "/proof/attacks");
    let caught = |field: &str| attacks.saturating_sub(number(report, field));
    let (before, after) = (caught("/proof/attacks_missed_before"), caught("/proof/attacks_missed_after"));
    line(out, &format!("Known attacks caught: {before} of {attacks} before, {after} after."));
    if let Some(measured) = report.get("measured") {
        let of = |field| number(measured, field);
        line(
            out,
            &format!(
                "Measured on another recording: of {} requests {} pass before, {} after.",
                of("/requests"),
                of("/passed_before"),
                of("/passed_after")
            ),
        );
    }
    if number(report, "/left_out") > 0 {
        line(out, &format!("Matches for which there was no room: {}.", number(report, "/left_out")));
    }
}

fn entries(out: &mut String, report: &Value) {
    let all = list(report, "/entries");
    if all.is_empty() {
        return line(out, "\nNo rule matched an input.");
    }
    line(out, "\nMatches, the most frequent first:");
    line(out, "   count  refused  callers     rule  input, path");
    for entry in all.iter().take(SHOWN) {
        let of = |field| number(entry, field);
        line(
            out,
            &format!(
                "{:>8} {:>8} {:>8} {:>8}  {} on {}",
                of("/count"),
                of("/would_block"),
                callers(entry),
                of("/rule_id"),
                word(entry, "/target/full"),
                word(entry, "/path")
            ),
        );
    }
    if let Some(more) = all.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        line(out, &format!("{more} more are in the report as JSON (--json)."));
    }
}

/// The distinct callers; beyond 64 they are not told apart.
fn callers(entry: &Value) -> String {
    match number(entry, "/callers") {
        64.. => "64+".to_owned(),
        few => few.to_string(),
    }
}

fn exclusions(out: &mut String, report: &Value) {
    let (verified, others): (Vec<&Value>, Vec<&Value>) = list(report, "/exclusions")
        .iter()
        .partition(|one| one.get("accepted").and_then(Value::as_bool).unwrap_or_default());
    line(out, &format!("\nVerified exclusions: {}", verified.len()));
    for one in verified {
        line(out, &format!("- {}: {}", word(one, "/proposal/title"), word(one, "/note")));
        for rule in word(one, "/proposal/seclang").lines() {
            line(out, &format!("    {rule}"));
        }
    }
    if others.is_empty() {
        return;
    }
    line(out, &format!("\nWithout a verified exclusion: {}", others.len()));
    for one in others.iter().take(SHOWN) {
        line(out, &format!("- {}: {}", word(one, "/key"), word(one, "/note")));
    }
    if let Some(more) = others.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        line(out, &format!("{more} more are in the report as JSON (--json)."));
    }
}

/// What is refused for what attacks look like: a person decides.
fn trade_offs(out: &mut String, report: &Value) {
    let all = list(report, "/trade_offs");
    if all.is_empty() {
        return;
    }
    line(
        out,
        "\nTrade-offs: inputs that need what attacks look like. `--accept \"INPUT on PATH\"` takes one, `--accept all` all of them:",
    );
    line(out, " refused  attacks that pass  rules  input on path");
    for one in all.iter().take(SHOWN) {
        let of = |field| number(one, field);
        let passing = format!("{} of {}", of("/attacks_passing"), of("/attacks_caught"));
        let accepted = one.get("accepted").and_then(Value::as_bool).unwrap_or_default();
        line(
            out,
            &format!(
                "{:>8} {passing:>18} {:>6}  {} on {}{}",
                of("/would_block"),
                list(one, "/rule_ids").len(),
                word(one, "/target"),
                word(one, "/path"),
                if accepted { ", accepted" } else { "" }
            ),
        );
    }
    if let Some(more) = all.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        line(out, &format!("{more} more are in the report as JSON (--json)."));
    }
}

/// Inputs whose values look alike: a person decides which of them get a rule.
fn profile(out: &mut String, report: &Value) {
    let all = list(report, "/profile/parameters");
    let alike: Vec<&Value> = all.iter().filter(|one| one.get("seclang").is_some_and(Value::is_string)).collect();
    if alike.is_empty() {
        return;
    }
    line(
        out,
        &format!(
            "\nInputs whose values look alike: {} of {}. `--profile \"INPUT on PATH\"` writes a rule that reports other values, `--profile all` \
             all of them:",
            number(report, "/profile/with_rule"),
            number(report, "/profile/known")
        ),
    );
    line(out, "requests  callers  input on path: values");
    let written = list(report, "/profile_rules");
    for one in alike.iter().take(SHOWN) {
        let is_written = one.get("key").is_some_and(|key| written.contains(key));
        line(
            out,
            &format!(
                "{:>8} {:>8}  {} on {}: {}{}",
                number(one, "/requests"),
                number(one, "/callers"),
                word(one, "/target/full"),
                word(one, "/path"),
                word(one, "/values"),
                if is_written { ", written" } else { "" }
            ),
        );
    }
    if let Some(more) = alike.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        line(out, &format!("{more} more are in the report as JSON (--json)."));
    }
}

/// A line in which no byte of a client has a meaning for a terminal.
fn line(out: &mut String, text: &str) {
    let shown = text.chars().map(|letter| if is_unseen(letter) && letter != '\n' { '\u{fffd}' } else { letter });
    let _ = writeln!(out, "{}", shown.collect::<String>());
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

fn word<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
