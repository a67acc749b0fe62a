//! The totals as text.

use std::io::{self, Write};

use super::heading;
use super::layout::{Grid, Screen, Tone, bar, paint, spark};
use crate::about::About;
use crate::row::Effect;
use crate::text::{commas, counted, escaped, instant, micros, share, span};
use crate::totals::{Effects, Scores, Summary, Timeline, Top};

/// Columns of a bar.
const BAR: usize = 24;
/// Files of the recording that are named.
const FILES: usize = 5;
/// Entries of each list of what comes up most.
const TOP: usize = 10;

/// Writes what was replayed and its totals.
pub(crate) fn totals(out: &mut impl Write, summary: &Summary, about: &About, screen: &Screen) -> io::Result<()> {
    head(out, summary, about, screen)?;
    effects(out, &summary.effects, screen)?;
    answers(out, summary, screen)?;
    timeline(out, &summary.timeline, screen)?;
    scores(out, &summary.scores, screen)?;
    top(out, "Rules", "RULE", "~MESSAGE", &summary.rules, screen)?;
    top(out, "Paths", "", "~PATH", &summary.paths, screen)?;
    top(out, "Callers", "", "~CALLER", &summary.callers, screen)?;
    top(out, "Signals", "", "~SIGNAL", &summary.signals, screen)
}

/// Two totals beside each other.
pub(crate) fn side(out: &mut impl Write, a: &Summary, b: &Summary, screen: &Screen) -> io::Result<()> {
    let mut grid = Grid::new(&["", ">A", ">B", ">CHANGE"]);
    for (name, a, b) in figures_of(a, b) {
        let change = match b.cmp(&a) {
            std::cmp::Ordering::Less => format!("-{}", commas(a - b)),
            std::cmp::Ordering::Equal => String::new(),
            std::cmp::Ordering::Greater => format!("+{}", commas(b - a)),
        };
        let tone = if a == b { Tone::Dim } else { Tone::Plain };
        grid.row([(name, tone), (commas(a), tone), (commas(b), tone), (change, Tone::Bold)]);
    }
    grid.write(out, screen)
}

/// The figures that two runs are held against each other by, with their names.
pub(crate) fn figures_of(a: &Summary, b: &Summary) -> Vec<(String, u64, u64)> {
    let mut figures = vec![("requests".to_owned(), a.requests, b.requests)];
    for effect in Effect::ALL {
        figures.push((effect.word().to_owned(), a.effects.of(effect), b.effects.of(effect)));
    }
    let mut statuses: Vec<_> = a.statuses.keys().chain(b.statuses.keys()).copied().collect();
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses {
        let of = |summary: &Summary| summary.statuses.get(&status).copied().unwrap_or(0);
        figures.push((format!("status {status}"), of(a), of(b)));
    }
    figures.push(("newly refused".to_owned(), a.changed.newly_refused, b.changed.newly_refused));
    figures.push(("no longer refused".to_owned(), a.changed.no_longer_refused, b.changed.no_longer_refused));
    figures.push(("held".to_owned(), a.held.requests, b.held.requests));
    figures.push(("faults".to_owned(), a.faults.count, b.faults.count));
    if a.timer_faults.count > 0 || b.timer_faults.count > 0 {
        figures.push(("timers that died".to_owned(), a.timer_faults.count, b.timer_faults.count));
    }
    figures.push(("bad entries".to_owned(), a.bad_entries.count, b.bad_entries.count));
    figures
}

fn head(out: &mut impl Write, summary: &Summary, about: &About, screen: &Screen) -> io::Result<()> {
    let title = if about.title.is_empty() { "Replay" } else { &about.title };
    writeln!(out, "{}", paint(&escaped(title), Tone::Bold, screen))?;
    let mut grid = Grid::new(&["", "~"]);
    for (place, file) in about.recordings.iter().take(FILES).enumerate() {
        let name = if place == 0 { "recording" } else { "" };
        grid.row([(name.to_owned(), Tone::Dim), (file.clone(), Tone::Plain)]);
    }
    if about.recordings.len() > FILES {
        let more = counted((about.recordings.len() - FILES) as u64, "more file", "more files");
        grid.row([(String::new(), Tone::Dim), (format!("and {more}"), Tone::Dim)]);
    }
    for fact in &about.facts {
        grid.row([(fact.name.clone(), Tone::Dim), (fact.value.clone(), Tone::Plain)]);
    }
    figures(&mut grid, summary);
    grid.write(out, screen)
}

fn figures(grid: &mut Grid, summary: &Summary) {
    let mut row = |name: &str, value: String| grid.row([(name.to_owned(), Tone::Dim), (value, Tone::Plain)]);
    row("requests", commas(summary.requests));
    let timeline = &summary.timeline;
    if !timeline.buckets.is_empty() {
        row("time", format!("{} to {}", instant(timeline.start), instant(timeline.end())));
    }
    if summary.held.requests > 0 {
        let held = &summary.held;
        let (total, longest) = (span(held.total_millis), span(held.longest_millis));
        row("held", format!("{}, together {total}, at most {longest}", counted(held.requests, "request", "requests")));
    }
    if let Some(timing) = &summary.timing {
        if timing.elapsed_millis > 0 {
            let rate = commas(timing.rate.round() as u64);
            row("took", format!("{}, {rate} requests/s", span(timing.elapsed_millis)));
        }
        if let Some(latency) = &timing.latency {
            let [p50, p90, p99, longest] = [latency.p50, latency.p90, latency.p99, latency.longest].map(micros);
            row("per request", format!("p50 {p50}, p90 {p90}, p99 {p99}, at most {longest}"));
        }
    }
}

fn effects(out: &mut impl Write, effects: &Effects, screen: &Screen) -> io::Result<()> {
    heading(out, "Effects", screen)?;
    let all = effects.all();
    let most = Effect::ALL.into_iter().map(|effect| effects.of(effect)).max().unwrap_or(0);
    let mut grid = Grid::new(&["", ">", ">", ""]);
    for effect in Effect::ALL {
        let count = effects.of(effect);
        let tone = if count == 0 { Tone::Dim } else { Tone::of(effect) };
        let bar = bar(count, most, BAR, screen);
        grid.row([(effect.word().to_owned(), tone), (commas(count), tone), (share(count, all), tone), (bar, tone)]);
    }
    grid.write(out, screen)
}

/// Statuses and actions, a line each.
fn answers(out: &mut impl Write, summary: &Summary, screen: &Screen) -> io::Result<()> {
    let statuses = summary.statuses.iter().map(|(status, count)| (status.to_string(), *count));
    let actions = summary.actions.iter().map(|(action, count)| (action.clone(), *count));
    for (title, counts) in [("Statuses", statuses.collect::<Vec<_>>()), ("Actions", actions.collect())] {
        if counts.is_empty() {
            continue;
        }
        heading(out, title, screen)?;
        let mut grid = Grid::new(&["~", ">", ">"]);
        for (name, count) in counts {
            grid.row([(name, Tone::Plain), (commas(count), Tone::Plain), (share(count, summary.requests), Tone::Dim)]);
        }
        grid.write(out, screen)?;
    }
    Ok(())
}

fn timeline(out: &mut impl Write, timeline: &Timeline, screen: &Screen) -> io::Result<()> {
    if timeline.buckets.len() < 2 {
        return Ok(());
    }
    // Neighbours join where the screen is too narrow for all.
    let room = screen.columns().saturating_sub(14).max(20);
    let joined = timeline.buckets.len().div_ceil(room);
    let buckets: Vec<_> = timeline
        .buckets
        .chunks(joined)
        .map(|buckets| {
            let mut all = Effects::default();
            buckets.iter().for_each(|bucket| all.join(bucket));
            all
        })
        .collect();
    let width = span(timeline.width_millis.saturating_mul(joined as u64));
    heading(out, &format!("Over time (a mark is {width})"), screen)?;
    let requests: Vec<_> = buckets.iter().map(Effects::all).collect();
    writeln!(out, "  requests  {}", spark(&requests, screen).trim_end())?;
    let refused: Vec<_> = buckets.iter().map(|bucket| bucket.blocked + bucket.failed).collect();
    if refused.iter().any(|count| *count > 0) {
        writeln!(out, "  blocked   {}", paint(spark(&refused, screen).trim_end(), Tone::Bad, screen))?;
    }
    Ok(())
}

fn scores(out: &mut impl Write, scores: &Scores, screen: &Screen) -> io::Result<()> {
    if scores.buckets.iter().all(|count| *count == 0) {
        return Ok(());
    }
    heading(out, "Scores", screen)?;
    // Most requests score nothing; a bar for them would leave no room for the others.
    let most = scores.buckets.iter().copied().max().unwrap_or(0);
    let mut grid = Grid::new(&[">", ">", ""]);
    grid.row([("0".to_owned(), Tone::Dim), (commas(scores.zero), Tone::Dim), (String::new(), Tone::Plain)]);
    let last = scores.buckets.iter().rposition(|count| *count > 0).unwrap_or(0);
    let mut buckets = scores.buckets[..=last].iter().copied().enumerate().peekable();
    while let Some((place, count)) = buckets.next() {
        let empty = scores.buckets[place..last].iter().take_while(|count| **count == 0).count();
        if empty > 2 {
            // A long gap is a line.
            grid.row([("...".to_owned(), Tone::Dim), ("0".to_owned(), Tone::Dim), (String::new(), Tone::Plain)]);
            while buckets.next_if(|(place, _)| scores.buckets[*place] == 0).is_some() {}
            continue;
        }
        let bar = bar(count, most, BAR * 2, screen);
        grid.row([(Scores::label(place), Tone::Plain), (commas(count), Tone::Plain), (bar, Tone::Info)]);
    }
    grid.write(out, screen)
}

fn top(
    out: &mut impl Write,
    title: &str,
    name: &'static str,
    label: &'static str,
    top: &Top,
    screen: &Screen,
) -> io::Result<()> {
    if top.entries.is_empty() {
        return Ok(());
    }
    let doubt = if top.exact { "" } else { "; more than can be counted exactly, counts are at least these" };
    let distinct = commas(top.distinct);
    let distinct = if top.exact { distinct } else { format!("over {distinct}") };
    heading(out, &format!("{title} ({distinct}{doubt})"), screen)?;
    let named = !name.is_empty();
    let mut grid = if named {
        Grid::new(&[">REQUESTS", ">BLOCKED", name, label])
    } else {
        Grid::new(&[">REQUESTS", ">BLOCKED", label])
    };
    for entry in top.entries.iter().take(TOP) {
        let blocked = if entry.blocked == 0 { Tone::Dim } else { Tone::Bad };
        let mut cells = vec![(commas(entry.count), Tone::Plain), (commas(entry.blocked), blocked)];
        if named {
            cells.push((entry.name.clone(), Tone::Info));
            cells.push((entry.label.clone(), Tone::Plain));
        } else {
            cells.push((entry.name.clone(), Tone::Plain));
        }
        grid.row(cells);
    }
    grid.write(out, screen)
}
