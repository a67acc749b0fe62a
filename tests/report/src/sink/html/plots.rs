//! Plots as inline SVG. Colours come from the page's classes, so that they follow its scheme.

use maud::{Markup, html};

use crate::row::Effect;
use crate::text::{commas, counted, cut, escaped, instant, span};
use crate::totals::{Effects, Scores, Timeline, Top};

/// What is not nothing is this high or long at least.
const SEEN: f64 = 1.5;
/// Rules in the plot.
const RULES: usize = 15;

/// Where the bars of a plot stand in its view box.
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    /// What the whole height stands for.
    most: u64,
}

impl Frame {
    fn high(&self, count: u64) -> f64 {
        if count == 0 { 0.0 } else { (count as f64 / self.most as f64 * self.height).max(SEEN) }
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Lines at nothing, at the half and at the whole.
    fn lines(&self) -> Markup {
        let marks: Vec<u64> = if self.most < 2 { vec![0, self.most] } else { vec![0, self.most / 2, self.most] };
        html! {
            @for mark in marks {
                @let y = place(self.bottom() - mark as f64 / self.most as f64 * self.height);
                line x1=(place(self.left)) x2=(place(self.left + self.width)) y1=(y) y2=(y) {}
                text x=(place(self.left - 6.0)) y=(y) dy="4" text-anchor="end" { (commas(mark)) }
            }
        }
    }
}

/// Requests over time, stacked: what matters most stands on the ground, where it can be compared.
pub(super) fn timeline(timeline: &Timeline) -> Markup {
    let most = even(timeline.buckets.iter().map(Effects::all).max().unwrap_or(0));
    let frame = Frame { left: 60.0, top: 10.0, width: 1_090.0, height: 170.0, most };
    let step = frame.width / timeline.buckets.len().max(1) as f64;
    let wide = (step * 0.86).min(40.0);
    let long = timeline.end().saturating_sub(timeline.start) >= 86_400_000;
    let counts = timeline.buckets.iter().fold(Effects::default(), |mut all, bucket| {
        all.join(bucket);
        all
    });
    html! {
        div.scroll tabindex="0" role="region" aria-label="Requests over time" { svg.wide viewBox="0 0 1160 215" role="img" aria-labelledby="timeline-title timeline-text" {
            title #timeline-title { "Requests over time" }
            desc #timeline-text {
                (counted(counts.all(), "request", "requests")) " from " (instant(timeline.start)) " to " (instant(timeline.end()))
                ", " (commas(counts.blocked)) " of them blocked; a bar is " (span(timeline.width_millis)) "."
            }
            (frame.lines())
            @for (number, bucket) in timeline.buckets.iter().enumerate() {
                @let at = timeline.start + timeline.width_millis * number as u64;
                @let x = frame.left + step * (number as f64 + 0.5) - wide / 2.0;
                g.bar { title { (moment(at, true)) ": " (in_words(bucket)) } (stack(bucket, x, wide, &frame)) }
            }
            @for (part, anchor) in [(0.0, "start"), (0.5, "middle"), (1.0, "end")] {
                @let at = timeline.start + ((timeline.end() - timeline.start) as f64 * part) as u64;
                text x=(place(frame.left + frame.width * part)) y="200" text-anchor=(anchor) { (moment(at, long)) }
            }
        } }
        p.soft { "A bar is " (span(timeline.width_millis)) "." }
    }
}

fn stack(bucket: &Effects, x: f64, wide: f64, frame: &Frame) -> Markup {
    let mut ground = frame.bottom();
    let parts = Effect::ALL.into_iter().rev().filter(|effect| bucket.of(*effect) > 0);
    let parts: Vec<_> = parts
        .map(|effect| {
            let high = frame.high(bucket.of(effect));
            ground -= high;
            (effect.word(), ground, high)
        })
        .collect();
    html! {
        @for (word, y, high) in parts {
            rect class=(word) x=(place(x)) y=(place(y)) width=(place(wide)) height=(place(high)) {}
        }
    }
}

/// How many requests have which score.
pub(super) fn scores(scores: &Scores) -> Markup {
    let last = scores.buckets.iter().rposition(|count| *count > 0);
    let zero = counted(scores.zero, "request has", "requests have");
    let Some(last) = last else { return html! { p.soft { (zero) " a score of 0, none has another." } } };
    // Never so few bars that they look like blocks, never bars for what is far above all.
    let shown = (last + 1).clamp(8, Scores::BUCKETS);
    let most = even(scores.buckets.iter().copied().max().unwrap_or(0));
    let frame = Frame { left: 50.0, top: 20.0, width: 500.0, height: 190.0, most };
    let step = frame.width / shown as f64;
    html! {
        svg viewBox="0 0 560 250" role="img" aria-labelledby="scores-title scores-text" {
            title #scores-title { "Requests by score" }
            desc #scores-text {
                @for (number, count) in scores.buckets.iter().enumerate() {
                    @if *count > 0 { (Scores::label(number)) ": " (commas(*count)) ". " }
                }
            }
            (frame.lines())
            @for (number, count) in scores.buckets.iter().take(shown).enumerate() {
                @let high = frame.high(*count);
                @let x = frame.left + step * number as f64;
                g.bar {
                    title { (Scores::label(number)) ": " (commas(*count)) }
                    rect.observed x=(place(x + step * 0.08)) y=(place(frame.bottom() - high)) width=(place(step * 0.84)) height=(place(high)) {}
                }
                @if number % 2 == 0 {
                    text x=(place(x)) y=(place(frame.bottom() + 18.0)) text-anchor="middle" { (number * Scores::WIDTH as usize) }
                }
            }
        }
        p.soft { "A bar is " (Scores::WIDTH) " wide. " (zero) " a score of 0 and no bar." }
    }
}

/// Requests by rule; the blocked ones in a colour of their own.
pub(super) fn rules(rules: &Top) -> Markup {
    let shown = &rules.entries[..rules.entries.len().min(RULES)];
    let most = shown.iter().map(|rule| rule.count).max().unwrap_or(0).max(1) as f64;
    let (left, wide, line) = (520.0, 560.0, 26.0);
    let length = |count: u64| if count == 0 { 0.0 } else { (count as f64 / most * wide).max(SEEN) };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Requests by rule" { svg.wide viewBox={ "0 0 1160 " (place(shown.len() as f64 * line + 4.0)) } role="img" aria-labelledby="rules-title rules-text" {
            title #rules-title { "Requests by rule" }
            desc #rules-text {
                @for rule in shown {
                    (rule.name) ": " (commas(rule.count)) " requests, " (commas(rule.blocked)) " blocked. "
                }
            }
            @for (number, rule) in shown.iter().enumerate() {
                @let y = number as f64 * line + 2.0;
                @let blocked = length(rule.blocked);
                @let rest = (length(rule.count) - blocked).max(0.0);
                g.bar {
                    title { (rule.name) " " (escaped(&rule.label)) ": " (commas(rule.count)) " requests, " (commas(rule.blocked)) " blocked" }
                    text.ink x="0" y=(place(y + 16.0)) { (rule.name) }
                    text x="66" y=(place(y + 16.0)) { (cut(&escaped(&rule.label), 66, "\u{2026}")) }
                    rect.blocked x=(place(left)) y=(place(y + 3.0)) width=(place(blocked)) height="17" {}
                    rect.observed x=(place(left + blocked)) y=(place(y + 3.0)) width=(place(rest)) height="17" {}
                    text.ink x=(place(left + blocked + rest + 8.0)) y=(place(y + 16.0)) { (commas(rule.count)) }
                }
            }
        } }
    }
}

/// Zero and its halves are marked: the next even number, so that the half is one.
fn even(most: u64) -> u64 {
    if most < 2 { 1 } else { most.next_multiple_of(2) }
}

/// A coordinate.
fn place(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `12:30:00`, with the date before it where asked for.
fn moment(at: u64, date: bool) -> String {
    let text = instant(at);
    match (text.get(..10), text.get(11..19)) {
        (Some(day), Some(time)) if date => format!("{day} {time}"),
        (Some(_), Some(time)) => time.to_owned(),
        _ => text,
    }
}

/// `12 passed, 3 blocked`.
fn in_words(bucket: &Effects) -> String {
    let parts = Effect::ALL.into_iter().filter(|effect| bucket.of(*effect) > 0);
    let parts: Vec<_> = parts.map(|effect| format!("{} {}", commas(bucket.of(effect)), effect.word())).collect();
    if parts.is_empty() { "no requests".to_owned() } else { parts.join(", ") }
}
