//! Parts of the page.

use maud::{Markup, html};

use crate::about::About;
use crate::row::{Effect, Row};
use crate::text::{counted, escaped, head, instant, score, span};

/// The heads of a list of requests.
pub(super) const REQUEST: [&str; 6] = ["Effect", ">Status", ">Score", "~Request", "Caller", "Rules"];

/// Of a request's rules, signals and notes each.
const DETAILS: usize = 32;
/// Bytes of one of them.
const DETAIL: usize = 512;
/// Bytes of a fault.
const FAULT: usize = 4_096;
/// Rules in the row itself.
const RULES: usize = 3;
/// Files of the recording.
const FILES: usize = 8;

/// An effect with its colour.
pub(super) fn tag(effect: Effect) -> Markup {
    html! { span.tag.(effect.word()) { (effect.word()) } }
}

/// What was replayed.
pub(crate) fn facts(about: &About, extra: &[(&str, String)]) -> Markup {
    let more = about.recordings.len().saturating_sub(FILES);
    html! {
        dl.facts {
            @if !about.recordings.is_empty() {
                dt { "recording" }
                dd {
                    @for (place, file) in about.recordings.iter().take(FILES).enumerate() {
                        @if place > 0 { ", " }
                        code { (escaped(file)) }
                    }
                    @if more > 0 { " and " (counted(more as u64, "more file", "more files")) }
                }
            }
            @for fact in &about.facts { dt { (escaped(&fact.name)) } dd { (escaped(&fact.value)) } }
            @for (name, value) in extra { dt { (name) } dd { (value) } }
        }
    }
}

/// A request as a row of a list.
pub(super) fn request(row: &Row) -> Markup {
    html! {
        tr {
            td { (tag(row.effect)) }
            td.number {
                @match row.recorded_status {
                    Some(was) if was != row.status => { (was) " \u{2192} " (row.status) },
                    _ => (row.status),
                }
            }
            td.number { (score(row.score)) }
            td.request { details { summary { code { (escaped(&row.method)) " " (escaped(&row.path)) } } (details(row)) } }
            td { code { (escaped(head(&row.caller, DETAIL).as_ref())) } }
            td {
                @for (place, rule) in row.rules.iter().take(RULES).enumerate() {
                    @if place > 0 { ", " }
                    code.keep { (rule.id) }
                }
                @if row.rules.len() > RULES { " and " (row.rules.len() - RULES) " more" }
            }
        }
    }
}

fn details(row: &Row) -> Markup {
    let text = |text: &str| escaped(head(text, DETAIL).as_ref()).into_owned();
    html! {
        dl.facts {
            dt { "entry" } dd { code { (text(&row.id)) } }
            dt { "at" } dd { (instant(row.at)) }
            dt { "host" } dd { code { (text(&row.host)) } }
            dt { "action" } dd { (text(&row.action)) }
            @if !row.reason.is_empty() { dt { "reason" } dd { (text(&row.reason)) } }
            @if row.held_millis > 0 { dt { "held" } dd { (span(row.held_millis)) } }
            @for signal in row.signals.iter().take(DETAILS) {
                dt { "signal" } dd { (text(&signal.name)) " (" (score(signal.weight)) ")" }
            }
            @for rule in row.rules.iter().take(DETAILS) { dt { "rule" } dd { (rule.id) " " (text(&rule.msg)) } }
            @if row.rules.len() > DETAILS { dt { "rules" } dd { "and " (row.rules.len() - DETAILS) " more" } }
            @for note in row.notes.iter().take(DETAILS) { dt { "note" } dd { (text(note)) } }
            @if let Some(fault) = &row.fault {
                dt { "fault" }
                dd { pre { @for line in head(fault, FAULT).lines() { (escaped(line)) "\n" } } }
            }
        }
    }
}
