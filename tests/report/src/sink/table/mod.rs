//! For people at a terminal.

mod layout;
mod overview;

use std::io::{self, BufWriter, Write};

pub use layout::Screen;
pub(crate) use layout::{Grid, Tone, paint};
pub(crate) use overview::{figures_of, side, totals};

use super::Sink;
use crate::about::{About, BadEntryText};
use crate::row::{Effect, Row, Rule};
use crate::text::{commas, counted, head, score, span};
use crate::totals::{Change, Summary, Top, Totals};

/// Bytes of a text that a listed request keeps.
const KEPT: usize = 512;
/// Rules that a listed request names.
const RULES: usize = 4;

/// Writes all at the end: totals, what comes up most, the first requests that changed or were blocked, and what to do
/// about faults and bad entries. Keeps at most [`Screen::rows`] requests for each list.
#[derive(Debug)]
pub struct Table<W: Write> {
    out: BufWriter<W>,
    screen: Screen,
    changed: Vec<Listed>,
    blocked: Vec<Listed>,
}

/// A request as it is listed.
#[derive(Debug)]
struct Listed {
    id: String,
    request: String,
    caller: String,
    effect: Effect,
    status: u16,
    was: Option<u16>,
    score: f64,
    why: String,
}

impl<W: Write> Table<W> {
    /// Writes to `out` at the end.
    pub fn new(out: W, screen: Screen) -> Self {
        Self { out: BufWriter::new(out), screen, changed: Vec::new(), blocked: Vec::new() }
    }

    /// How many requests are held.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.changed.len() + self.blocked.len()
    }
}

impl<W: Write> Sink for Table<W> {
    fn row(&mut self, row: &Row) -> io::Result<()> {
        if Change::of(row).is_some() && self.changed.len() < self.screen.rows {
            self.changed.push(Listed::of(row));
        }
        if matches!(row.effect, Effect::Blocked | Effect::Failed) && self.blocked.len() < self.screen.rows {
            self.blocked.push(Listed::of(row));
        }
        Ok(())
    }

    fn bad(&mut self, _bad: &BadEntryText) -> io::Result<()> {
        Ok(())
    }

    fn end(mut self: Box<Self>, all: &Totals, about: &About) -> io::Result<()> {
        let (out, screen, summary) = (&mut self.out, &self.screen, all.summary());
        totals(out, &summary, about, screen)?;
        changed(out, &summary, &self.changed, screen)?;
        blocked(out, &summary, &self.blocked, screen)?;
        faults(out, &summary, screen)?;
        timers(out, &summary, screen)?;
        bad_entries(out, &summary, screen)?;
        notes(out, &summary.notes.texts, summary.notes.requests, screen)?;
        verdict(out, &summary, screen)?;
        out.flush()
    }
}

impl Listed {
    fn of(row: &Row) -> Self {
        Self {
            id: head(&row.id, KEPT).into_owned(),
            request: head(&format!("{} {}", row.method, row.path), KEPT).into_owned(),
            caller: head(&row.caller, KEPT).into_owned(),
            effect: row.effect,
            status: row.status,
            was: row.recorded_status,
            score: row.score,
            why: head(&why(row), KEPT).into_owned(),
        }
    }
}

/// Why a request came out as it did: its rules, else the filters' reason, else what weighed.
fn why(row: &Row) -> String {
    if !row.rules.is_empty() {
        return rules(&row.rules);
    }
    if !row.reason.is_empty() {
        return row.reason.clone();
    }
    row.signals.iter().map(|signal| signal.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The ids of the first rules and how many there are beside them. The last of a rule set sum up the others, so it is
/// the first ones that tell.
fn rules(rules: &[Rule]) -> String {
    let named: Vec<_> = rules.iter().take(RULES).map(|rule| rule.id.to_string()).collect();
    let more = rules.len() - named.len();
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}

fn changed(out: &mut impl Write, summary: &Summary, listed: &[Listed], screen: &Screen) -> io::Result<()> {
    let changed = &summary.changed;
    if changed.compared == 0 {
        return Ok(());
    }
    heading(out, "Against the recording", screen)?;
    let compared = counted(changed.compared, "request has", "requests have");
    writeln!(out, "  {compared} a recorded status; {} otherwise now:", counted(changed.all(), "is", "are"))?;
    let mut counts = Grid::new(&[">", ""]);
    for (count, change, tone) in [
        (changed.newly_refused, Change::NewlyRefused, Tone::Bad),
        (changed.no_longer_refused, Change::NoLongerRefused, Tone::Warn),
        (changed.other, Change::Other, Tone::Plain),
    ] {
        let tone = if count == 0 { Tone::Dim } else { tone };
        counts.row([(commas(count), tone), (change.words().to_owned(), tone)]);
    }
    counts.write(out, screen)?;
    if listed.is_empty() {
        return Ok(());
    }
    let title = format!("Changed requests{}", first_of(listed.len(), changed.all()));
    heading(out, &title, screen)?;
    let mut grid = Grid::new(&["STATUS", "EFFECT", ">SCORE", "~REQUEST", "~ENTRY", "~RULES OR REASON"]);
    for row in listed {
        let status = format!("{} {} {}", row.was.unwrap_or_default(), screen.arrow(), row.status);
        let tone = Tone::of(row.effect);
        grid.row([
            (status, tone),
            (row.effect.word().to_owned(), tone),
            (score(row.score), Tone::Plain),
            (row.request.clone(), Tone::Plain),
            (row.id.clone(), Tone::Dim),
            (row.why.clone(), Tone::Plain),
        ]);
    }
    grid.write(out, screen)
}

fn blocked(out: &mut impl Write, summary: &Summary, listed: &[Listed], screen: &Screen) -> io::Result<()> {
    let refused = summary.effects.blocked + summary.effects.failed;
    if listed.is_empty() {
        return Ok(());
    }
    let what = if summary.effects.failed > 0 { "Blocked and failed requests" } else { "Blocked requests" };
    heading(out, &format!("{what}{}", first_of(listed.len(), refused)), screen)?;
    let mut grid = Grid::new(&["STATUS", ">SCORE", "~REQUEST", "~CALLER", "~ENTRY", "~RULES OR REASON"]);
    for row in listed {
        let status = match row.effect {
            Effect::Failed => format!("{} failed", row.status),
            _ => row.status.to_string(),
        };
        grid.row([
            (status, Tone::of(row.effect)),
            (score(row.score), Tone::Plain),
            (row.request.clone(), Tone::Plain),
            (row.caller.clone(), Tone::Plain),
            (row.id.clone(), Tone::Dim),
            (row.why.clone(), Tone::Plain),
        ]);
    }
    grid.write(out, screen)
}

fn faults(out: &mut impl Write, summary: &Summary, screen: &Screen) -> io::Result<()> {
    let faults = &summary.faults;
    if faults.count == 0 {
        return Ok(());
    }
    let shown = faults.first.len().min(screen.rows);
    heading(out, &format!("Faults{}", first_of(shown, faults.count)), screen)?;
    let mut grid = Grid::new(&["~ENTRY", "~WHAT"]);
    for fault in faults.first.iter().take(shown) {
        let line = fault.what.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        grid.row([(fault.id.clone(), Tone::Bad), (line.trim().to_owned(), Tone::Plain)]);
    }
    grid.write(out, screen)?;
    advice(
        out,
        "The filter died of these. Replay one alone to see whether it is its own doing, and report it with the backtrace in the JSON document.",
        screen,
    )
}

/// Faults that were no request's.
fn timers(out: &mut impl Write, summary: &Summary, screen: &Screen) -> io::Result<()> {
    let faults = &summary.timer_faults;
    if faults.is_empty() {
        return Ok(());
    }
    let shown = faults.first.len().min(screen.rows);
    heading(out, &format!("Timers that died{}", first_of(shown, faults.count)), screen)?;
    let mut grid = Grid::new(&["~CALLBACK", "~WHAT"]);
    for fault in faults.first.iter().take(shown) {
        let line = fault.what.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        grid.row([(fault.id.clone(), Tone::Bad), (line.trim().to_owned(), Tone::Plain)]);
    }
    grid.write(out, screen)
}

fn bad_entries(out: &mut impl Write, summary: &Summary, screen: &Screen) -> io::Result<()> {
    let bad = &summary.bad_entries;
    if bad.count == 0 {
        return Ok(());
    }
    let shown = bad.first.len().min(screen.rows);
    heading(out, &format!("Entries that could not be read{}", first_of(shown, bad.count)), screen)?;
    let mut grid = Grid::new(&["~"]);
    bad.first.iter().take(shown).for_each(|text| grid.row([(text.clone(), Tone::Warn)]));
    grid.write(out, screen)?;
    advice(
        out,
        "They were not replayed and are in no other figure. Record them again, or mend them in the file.",
        screen,
    )
}

fn notes(out: &mut impl Write, notes: &Top, requests: u64, screen: &Screen) -> io::Result<()> {
    if notes.entries.is_empty() {
        return Ok(());
    }
    let title = format!("What the recording did not tell ({})", counted(requests, "request", "requests"));
    heading(out, &title, screen)?;
    let mut grid = Grid::new(&[">", "~"]);
    for note in notes.entries.iter().take(screen.rows) {
        grid.row([(commas(note.count), Tone::Plain), (note.name.clone(), Tone::Plain)]);
    }
    grid.write(out, screen)?;
    advice(out, "A gateway that sees the whole request may decide otherwise on these.", screen)
}

/// The last line: what to take home.
fn verdict(out: &mut impl Write, summary: &Summary, screen: &Screen) -> io::Result<()> {
    let effects = &summary.effects;
    let mut parts = vec![format!("{} blocked", commas(effects.blocked))];
    if effects.slowed > 0 {
        parts.push(format!("{} slowed", commas(effects.slowed)));
    }
    if summary.held.requests > 0 {
        parts.push(format!("{} held (up to {})", commas(summary.held.requests), span(summary.held.longest_millis)));
    }
    if effects.failed > 0 {
        parts.push(format!("{} failed", commas(effects.failed)));
    }
    if summary.changed.compared > 0 {
        parts.push(format!("{} newly refused", commas(summary.changed.newly_refused)));
    }
    if summary.bad_entries.count > 0 {
        parts.push(format!("{} not readable", counted(summary.bad_entries.count, "entry", "entries")));
    }
    let line = format!("{}: {}", counted(summary.requests, "request", "requests"), parts.join(", "));
    writeln!(out)?;
    wrapped(out, &line, "", Tone::Bold, screen)
}

fn advice(out: &mut impl Write, text: &str, screen: &Screen) -> io::Result<()> {
    wrapped(out, text, "  ", Tone::Dim, screen)
}

fn wrapped(out: &mut impl Write, text: &str, indent: &str, tone: Tone, screen: &Screen) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && indent.len() + line.len() + word.len() >= screen.columns() {
            writeln!(out, "{indent}{}", paint(&line, tone, screen))?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{indent}{}", paint(&line, tone, screen))
}

pub(crate) fn heading(out: &mut impl Write, title: &str, screen: &Screen) -> io::Result<()> {
    writeln!(out, "\n{}", paint(title, Tone::Bold, screen))
}

/// ` (12)`, or ` (the first 20 of 1,234)`.
pub(crate) fn first_of(shown: usize, all: u64) -> String {
    if shown as u64 >= all { format!(" ({})", commas(all)) } else { format!(" (the first {shown} of {})", commas(all)) }
}
