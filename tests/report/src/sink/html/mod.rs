//! One HTML file that shows a replay.

mod parts;
mod plots;

use std::io::{self, Write};

use maud::{Markup, PreEscaped, html};

use super::{FILTERED, Sink, grid, page};
use crate::about::{About, BadEntryText};
use crate::row::{Effect, Row};
use crate::text::{commas, counted, escaped, instant, micros, share, span};
use crate::totals::{Change, Counted, Summary, Top, Totals};

pub(crate) use parts::facts;
use parts::tag;

/// Requests of each list.
const LISTED: usize = 2_000;
/// Bad entries and faults that are named; the totals hold no more.
const FIRST: usize = 100;
/// Of what comes up most, how much is open to view at once.
const OPEN: usize = 12;

/// Writes one HTML file without anything from outside: figures, plots, what comes up most, and the first 2,000 requests
/// each that changed and that were blocked. Everything from the recording is escaped.
#[derive(Debug)]
pub struct Html<W> {
    out: W,
    changed: Vec<String>,
    refused: Vec<String>,
}

impl<W: Write> Html<W> {
    /// Writes to `out` at the end.
    pub fn new(out: W) -> Self {
        Self { out, changed: Vec::new(), refused: Vec::new() }
    }
}

impl<W: Write> Sink for Html<W> {
    fn row(&mut self, row: &Row) -> io::Result<()> {
        if Change::of(row).is_some() && self.changed.len() < LISTED {
            self.changed.push(parts::request(row).into_string());
        }
        if matches!(row.effect, Effect::Blocked | Effect::Failed) && self.refused.len() < LISTED {
            self.refused.push(parts::request(row).into_string());
        }
        Ok(())
    }

    fn bad(&mut self, _bad: &BadEntryText) -> io::Result<()> {
        Ok(())
    }

    fn end(mut self: Box<Self>, totals: &Totals, about: &About) -> io::Result<()> {
        let summary = totals.summary();
        let title = if about.title.is_empty() { "Replay" } else { &about.title };
        let body = html! {
            header { h1 { (escaped(title)) } (facts(about, &extra(&summary))) }
            (tiles(&summary))
            (plots(&summary))
            (tops(&summary))
            (problems(&summary))
            (self.lists(&summary))
        };
        self.out.write_all(page(title, &body).into_string().as_bytes())?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

impl<W> Html<W> {
    fn lists(&self, summary: &Summary) -> Markup {
        let changed = &summary.changed;
        let refused = summary.effects.blocked + summary.effects.failed;
        html! {
            @if !self.changed.is_empty() {
                section {
                    h2 { "Changed against the recording" }
                    p.soft {
                        (counted(changed.newly_refused, "request", "requests")) " newly refused, "
                        (commas(changed.no_longer_refused)) " no longer refused, "
                        (commas(changed.other)) " with another status. "
                        (left_out(self.changed.len(), changed.all()))
                    }
                    (list("changed", "Changed requests", &self.changed))
                }
            }
            @if !self.refused.is_empty() {
                section {
                    h2 { "Blocked" @if summary.effects.failed > 0 { " and failed" } }
                    p.soft { (counted(refused, "request", "requests")) ". " (left_out(self.refused.len(), refused)) }
                    (list("refused", "Blocked requests", &self.refused))
                }
            }
        }
    }
}

/// The requests of a list, which are rows already.
fn list(id: &str, label: &str, rows: &[String]) -> Markup {
    let empty = grid((rows.len() > FILTERED).then_some(id), label, &parts::REQUEST, std::iter::empty()).into_string();
    let (before, after) = empty.split_once("<tbody>").unwrap_or((&empty, ""));
    html! { (PreEscaped(before)) (PreEscaped("<tbody>")) @for row in rows { (PreEscaped(row)) } (PreEscaped(after)) }
}

fn left_out(shown: usize, all: u64) -> String {
    let missing = all.saturating_sub(shown as u64);
    if missing == 0 {
        return String::new();
    }
    format!(
        "The first {} are listed, {} are left out here; the JSON document has them all.",
        commas(shown as u64),
        commas(missing)
    )
}

/// What the totals add to the facts.
fn extra(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let timeline = &summary.timeline;
    if !timeline.buckets.is_empty() {
        facts.push(("time", format!("{} to {}", instant(timeline.start), instant(timeline.end()))));
    }
    if let Some(timing) = &summary.timing {
        if timing.elapsed_millis > 0 {
            let rate = commas(timing.rate.round() as u64);
            facts.push(("took", format!("{}, {rate} requests/s", span(timing.elapsed_millis))));
        }
        if let Some(latency) = &timing.latency {
            let [p50, p90, p99, longest] = [latency.p50, latency.p90, latency.p99, latency.longest].map(micros);
            facts.push(("per request", format!("p50 {p50}, p90 {p90}, p99 {p99}, at most {longest}")));
        }
    }
    facts
}

fn tiles(summary: &Summary) -> Markup {
    let effects = &summary.effects;
    let of_all = |count: u64| format!("{} of all", share(count, summary.requests));
    let mut tiles = vec![("", "requests", summary.requests, String::new())];
    for effect in [Effect::Blocked, Effect::Slowed, Effect::Observed, Effect::Failed] {
        if effects.of(effect) > 0 || effect == Effect::Blocked {
            tiles.push((effect.word(), effect.word(), effects.of(effect), of_all(effects.of(effect))));
        }
    }
    if summary.changed.compared > 0 {
        let compared = format!("of {} compared", commas(summary.changed.compared));
        tiles.push(("blocked", "newly refused", summary.changed.newly_refused, compared));
        tiles.push(("good", "no longer refused", summary.changed.no_longer_refused, String::new()));
    }
    if summary.held.requests > 0 {
        let longest = format!("at most {}", span(summary.held.longest_millis));
        tiles.push(("slowed", "held", summary.held.requests, longest));
    }
    if summary.bad_entries.count > 0 {
        tiles.push(("slowed", "entries not readable", summary.bad_entries.count, String::new()));
    }
    html! {
        ul.tiles {
            @for (class, name, count, more) in &tiles {
                li class=(class) { span { (name) } b { (commas(*count)) } span { (more) } }
            }
        }
    }
}

fn plots(summary: &Summary) -> Markup {
    html! {
        @if !summary.timeline.buckets.is_empty() {
            section {
                h2 { "Requests over time" }
                ul.legend {
                    @for effect in Effect::ALL { @if summary.effects.of(effect) > 0 { li { (tag(effect)) } } }
                }
                (plots::timeline(&summary.timeline))
            }
        }
        div.columns {
            section { h2 { "Scores" } (plots::scores(&summary.scores)) }
            section { h2 { "Answers" } (answers(summary)) }
        }
        @if !summary.rules.entries.is_empty() {
            section {
                h2 { "Rules" }
                p.soft { "Requests by rule" (doubt(&summary.rules)) "." }
                ul.legend { li { span.tag.blocked { "blocked" } } li { span.tag.observed { "not blocked" } } }
                (plots::rules(&summary.rules))
                details { summary { "As a table" } (counts("Rules", Some("Rule"), "Message", &summary.rules.entries)) }
            }
        }
    }
}

fn answers(summary: &Summary) -> Markup {
    let row = |name: &str, count: u64| {
        vec![html! { (escaped(name)) }, html! { (commas(count)) }, html! { (share(count, summary.requests)) }]
    };
    let statuses = summary.statuses.iter().map(|(status, count)| row(&status.to_string(), *count));
    let actions = summary.actions.iter().map(|(action, count)| row(action, *count));
    html! {
        (grid(None, "Statuses", &["Status", ">Requests", ">Share"], statuses))
        br;
        (grid(None, "Actions", &["Action", ">Requests", ">Share"], actions))
    }
}

fn tops(summary: &Summary) -> Markup {
    let lists = [
        ("Paths", "Path", &summary.paths),
        ("Callers", "Caller", &summary.callers),
        ("Signals", "Signal", &summary.signals),
    ];
    html! {
        div.columns {
            @for (title, name, entries) in lists {
                @if !entries.entries.is_empty() {
                    section {
                        h2 { (title) }
                        p.soft { "Requests" (doubt(entries)) "." }
                        (top(title, None, name, entries))
                    }
                }
            }
        }
    }
}

/// `, 12 different ones`, or what a sketch can say.
fn doubt(top: &Top) -> String {
    if top.exact {
        return format!(", {}", counted(top.distinct, "one in all", "different ones in all"));
    }
    format!(", over {} different ones in all: the counts are at least these", commas(top.distinct))
}

fn top(title: &str, name: Option<&str>, label: &str, top: &Top) -> Markup {
    let (first, rest) = top.entries.split_at(top.entries.len().min(OPEN));
    html! {
        (counts(title, name, label, first))
        @if !rest.is_empty() {
            details { summary { (rest.len()) " more" } (counts(title, name, label, rest)) }
        }
    }
}

fn counts(title: &str, name: Option<&str>, label: &str, entries: &[Counted]) -> Markup {
    let mut heads = vec![">Requests", ">Blocked"];
    heads.extend(name);
    let label = format!("~{label}");
    heads.push(&label);
    let rows = entries.iter().map(|entry| {
        let mut cells = vec![html! { (commas(entry.count)) }, html! { (commas(entry.blocked)) }];
        cells.push(html! { code.keep[name.is_some()] { (escaped(&entry.name)) } });
        if name.is_some() {
            cells.push(html! { (escaped(&entry.label)) });
        }
        cells
    });
    grid(None, title, &heads, rows)
}

fn problems(summary: &Summary) -> Markup {
    let (faults, bad, notes) = (&summary.faults, &summary.bad_entries, &summary.notes);
    html! {
        @if faults.count > 0 {
            section.warn {
                h2 { "Faults" }
                p {
                    "The filter died of " (counted(faults.count, "request", "requests"))
                    ". Replay one alone to see whether it is its own doing, and report it with its backtrace."
                }
                @for fault in faults.first.iter().take(FIRST) {
                    details {
                        summary { code { (escaped(&fault.id)) } }
                        pre { @for line in fault.what.lines() { (escaped(line)) "\n" } }
                    }
                }
            }
        }
        @if !summary.timer_faults.is_empty() {
            section.warn {
                h2 { "Timers that died" }
                p { "The filter died " (counted(summary.timer_faults.count, "time", "times")) " in a timer, of no request." }
                @for fault in summary.timer_faults.first.iter().take(FIRST) {
                    details {
                        summary { code { (escaped(&fault.id)) } }
                        pre { @for line in fault.what.lines() { (escaped(line)) "\n" } }
                    }
                }
            }
        }
        @if bad.count > 0 {
            section.warn {
                h2 { "Entries that could not be read" }
                p {
                    (counted(bad.count, "entry was", "entries were")) " not replayed and "
                    @if bad.count == 1 { "is" } @else { "are" }
                    " in no other figure. Record them again, or mend them in the file."
                }
                ul.plain { @for text in bad.first.iter().take(FIRST) { li { code { (escaped(text)) } } } }
                @if bad.count > bad.first.len() as u64 { p.soft { "The first " (bad.first.len()) " are listed." } }
            }
        }
        @if !notes.texts.entries.is_empty() {
            section {
                h2 { "What the recording did not tell" }
                p.soft {
                    (counted(notes.requests, "request has", "requests have"))
                    " a note: a gateway that sees the whole request may decide otherwise."
                }
                (grid(None, "Notes", &[">Requests", "Note"], notes.texts.entries.iter().map(|note| {
                    vec![html! { (commas(note.count)) }, html! { (escaped(&note.name)) }]
                })))
            }
        }
    }
}
