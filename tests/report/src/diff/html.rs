//! Differences as one HTML file.

use std::io::{self, Write};

use maud::{Markup, html};

use super::table::words;
use super::{Changed, Diff, Kind, SAME, Side, Single, rules};
use crate::sink::{FILTERED, facts, figures_of, grid, page};
use crate::text::{commas, counted, escaped, score};
use crate::totals::Top;

/// Rules in a row.
const RULES: usize = 12;
/// Rules of a list.
const LISTED: usize = 12;

impl Diff {
    /// Writes the differences as one HTML file that needs nothing else, as [`Html`](crate::sink::Html) does.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn html(&self, mut out: impl Write) -> io::Result<()> {
        let body = html! {
            header {
                h1 { "Two replays compared" }
                div.columns { (side("A", &self.a)) (side("B", &self.b)) }
            }
            (self.tiles())
            @if !self.differs() { section { p { (SAME) } } }
            div.columns {
                (self.totals())
                @if !self.rules_added.entries.is_empty() || !self.rules_removed.entries.is_empty() {
                    div {
                        (rule_list("Rules that match more", &self.rules_added))
                        (rule_list("Rules that match no longer", &self.rules_removed))
                    }
                }
            }
            @for kind in Kind::ALL { (self.list(kind)) }
            (only("Only in A", "only-a", &self.only_a, self.counts.only_a))
            (only("Only in B", "only-b", &self.only_b, self.counts.only_b))
        };
        let title = format!("{} and {} compared", self.a.name, self.b.name);
        out.write_all(page(&title, &body).into_string().as_bytes())?;
        out.write_all(b"\n")?;
        out.flush()
    }

    fn tiles(&self) -> Markup {
        let counts = &self.counts;
        html! {
            ul.tiles {
                li { span { "in both" } b { (commas(counts.compared)) } span { (commas(counts.same)) " the same" } }
                @for kind in Kind::ALL { li class=(class(kind)) { span { (kind.words()) } b { (commas(counts.of(kind))) } } }
                li { span { "only in A" } b { (commas(counts.only_a)) } }
                li { span { "only in B" } b { (commas(counts.only_b)) } }
            }
        }
    }

    fn totals(&self) -> Markup {
        let rows = figures_of(&self.a.totals, &self.b.totals).into_iter().map(|(name, a, b)| {
            let change = match b.cmp(&a) {
                std::cmp::Ordering::Less => format!("\u{2212}{}", commas(a - b)),
                std::cmp::Ordering::Equal => String::new(),
                std::cmp::Ordering::Greater => format!("+{}", commas(b - a)),
            };
            vec![html! { (name) }, html! { (commas(a)) }, html! { (commas(b)) }, html! { b { (change) } }]
        });
        html! { section { h2 { "Totals" } (grid(None, "Totals", &["Requests", ">A", ">B", ">Change"], rows)) } }
    }

    fn list(&self, kind: Kind) -> Markup {
        let changed: Vec<_> = self.changed.iter().filter(|changed| changed.kind == kind).collect();
        if changed.is_empty() {
            return html! {};
        }
        let mut title = kind.words().to_owned();
        title[..1].make_ascii_uppercase();
        let id = format!("list-{}", kind as usize);
        let heads = ["A", "B", ">Score in A", ">in B", "~Request", "Entry", "Rules"];
        html! {
            section {
                h2 { (title) }
                p.soft { (missing(changed.len(), self.counts.of(kind))) }
                (grid((changed.len() > FILTERED).then_some(&id), &title, &heads, changed.into_iter().map(row)))
            }
        }
    }
}

fn row(changed: &Changed) -> Vec<Markup> {
    let (before, after) = (&changed.before, &changed.after);
    vec![
        html! { span.tag.(before.effect.word()) { (escaped(&words(before, after))) } },
        html! { span.tag.(after.effect.word()) { (escaped(&words(after, before))) } },
        html! { (score(before.score)) },
        html! { (score(after.score)) },
        html! { code { (escaped(&changed.request)) } },
        html! { code { (escaped(&changed.id)) } },
        html! { code { (rules(changed, RULES)) } },
    ]
}

fn side(name: &str, side: &Side) -> Markup {
    html! {
        section {
            h2 { (name) ": " code { (escaped(&side.name)) } }
            @if !side.about.title.is_empty() { p { (escaped(&side.about.title)) } }
            (facts(&side.about, &[]))
        }
    }
}

fn rule_list(title: &str, rules: &Top) -> Markup {
    if rules.entries.is_empty() {
        return html! {};
    }
    let rows = rules.entries.iter().take(LISTED).map(|rule| {
        let (count, blocked) = (commas(rule.count), commas(rule.blocked));
        vec![
            html! { (count) },
            html! { (blocked) },
            html! { code.keep { (rule.name) } },
            html! { (escaped(&rule.label)) },
        ]
    });
    html! {
        section {
            h2 { (title) }
            @if !rules.exact { p.soft { "More than can be counted exactly: the counts are at least these." } }
            @if rules.entries.len() > LISTED { p.soft { "The first " (LISTED) ", the others are in the JSON document." } }
            (grid(None, title, &[">Requests", ">Blocked", "Rule", "~Message"], rows))
        }
    }
}

fn only(title: &str, id: &str, only: &[Single], all: u64) -> Markup {
    if all == 0 {
        return html! {};
    }
    let rows = only.iter().map(|single| {
        let outcome = &single.outcome;
        vec![
            html! { span.tag.(outcome.effect.word()) { (escaped(&words(outcome, outcome))) } },
            html! { (score(outcome.score)) },
            html! { code { (escaped(&single.request)) } },
            html! { code { (escaped(&single.id)) } },
        ]
    });
    html! {
        section {
            h2 { (title) }
            p.soft { (missing(only.len(), all)) }
            (grid((only.len() > FILTERED).then_some(id), title, &["Effect", ">Score", "~Request", "Entry"], rows))
        }
    }
}

fn missing(shown: usize, all: u64) -> String {
    let left_out = all.saturating_sub(shown as u64);
    let all = counted(all, "request", "requests");
    if left_out == 0 { format!("{all}.") } else { format!("{all}; {} are not listed.", commas(left_out)) }
}

/// The colour of a kind.
fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Failed => "failed",
        Kind::Blocked => "blocked",
        Kind::Unblocked => "good",
        Kind::Answer => "slowed",
        Kind::Score | Kind::Rules => "observed",
    }
}
