//! Differences, for people at a terminal.

use std::io::{self, BufWriter, Write};

use super::{Changed, Diff, Kind, Outcome, SAME, Side, Single, rules};
use crate::sink::{Grid, Screen, Tone, first_of, heading, paint, side};
use crate::text::{commas, counted, escaped, score, span};
use crate::totals::Top;

/// Rules in a row.
const RULES: usize = 4;

impl Diff {
    /// Writes the differences as text: totals beside each other, counts, and the first requests of each kind.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn table(&self, out: impl Write, screen: &Screen) -> io::Result<()> {
        let out = &mut BufWriter::new(out);
        writeln!(out, "{}", paint("Two replays compared", Tone::Bold, screen))?;
        let mut sides = Grid::new(&["", "~"]);
        for (name, side) in [("A", &self.a), ("B", &self.b)] {
            about(&mut sides, name, side);
        }
        sides.write(out, screen)?;
        heading(out, "Totals", screen)?;
        side(out, &self.a.totals, &self.b.totals, screen)?;
        self.counts(out, screen)?;
        for kind in Kind::ALL {
            self.changed(out, kind, screen)?;
        }
        rule_list(out, "Rules that match more", &self.rules_added, screen)?;
        rule_list(out, "Rules that match no longer", &self.rules_removed, screen)?;
        only(out, "Only in A", &self.only_a, self.counts.only_a, screen)?;
        only(out, "Only in B", &self.only_b, self.counts.only_b, screen)?;
        if !self.differs() {
            writeln!(out, "\n{}", paint(SAME, Tone::Good, screen))?;
        }
        out.flush()
    }

    fn counts(&self, out: &mut impl Write, screen: &Screen) -> io::Result<()> {
        let counts = &self.counts;
        heading(out, &format!("Differences ({} in both)", counted(counts.compared, "request", "requests")), screen)?;
        let mut grid = Grid::new(&[">", ""]);
        let kinds = Kind::ALL.map(|kind| (counts.of(kind), kind.words(), tone(kind)));
        let only = [(counts.only_a, "only in A", Tone::Warn), (counts.only_b, "only in B", Tone::Warn)];
        for (count, words, tone) in [(counts.same, "the same", Tone::Plain)].into_iter().chain(kinds).chain(only) {
            let tone = if count == 0 { Tone::Dim } else { tone };
            grid.row([(commas(count), tone), (words.to_owned(), tone)]);
        }
        grid.write(out, screen)
    }

    fn changed(&self, out: &mut impl Write, kind: Kind, screen: &Screen) -> io::Result<()> {
        let shown: Vec<_> = self.changed.iter().filter(|changed| changed.kind == kind).take(screen.rows).collect();
        if shown.is_empty() {
            return Ok(());
        }
        let mut title = kind.words().to_owned();
        title[..1].make_ascii_uppercase();
        heading(out, &format!("{title}{}", first_of(shown.len(), self.counts.of(kind))), screen)?;
        let mut grid = Grid::new(&["A", "B", ">SCORE", "~REQUEST", "~ENTRY", "~RULES"]);
        shown.into_iter().for_each(|changed| row(&mut grid, changed, screen));
        grid.write(out, screen)
    }
}

fn about(grid: &mut Grid, name: &str, side: &Side) {
    grid.row([(name.to_owned(), Tone::Bold), (side.name.clone(), Tone::Plain)]);
    if !side.about.title.is_empty() {
        grid.row([(String::new(), Tone::Plain), (side.about.title.clone(), Tone::Dim)]);
    }
    for fact in &side.about.facts {
        grid.row([(String::new(), Tone::Plain), (format!("{}: {}", fact.name, fact.value), Tone::Dim)]);
    }
}

fn row(grid: &mut Grid, changed: &Changed, screen: &Screen) {
    let (before, after) = (&changed.before, &changed.after);
    let scores = if (before.score - after.score).abs() > f64::EPSILON {
        format!("{} {} {}", score(before.score), screen.arrow(), score(after.score))
    } else {
        score(after.score)
    };
    grid.row([
        (words(before, after), Tone::of(before.effect)),
        (words(after, before), Tone::of(after.effect)),
        (scores, Tone::Plain),
        (changed.request.clone(), Tone::Plain),
        (changed.id.clone(), Tone::Dim),
        (rules(changed, RULES), Tone::Plain),
    ]);
}

/// `blocked 403`, and the action, how long it was held or the plugin where nothing else differs.
pub(super) fn words(one: &Outcome, other: &Outcome) -> String {
    let words = format!("{} {}", one.effect.word(), one.status);
    if one.effect != other.effect || one.status != other.status {
        words
    } else if one.action != other.action {
        format!("{words} {}", one.action)
    } else if one.held_millis != other.held_millis {
        format!("{words} held {}", span(one.held_millis))
    } else if one.plugin != other.plugin {
        format!("{words} {}", one.plugin).trim_end().to_owned()
    } else {
        words
    }
}

fn rule_list(out: &mut impl Write, title: &str, rules: &Top, screen: &Screen) -> io::Result<()> {
    if rules.entries.is_empty() {
        return Ok(());
    }
    let over = if rules.exact { "" } else { "over " };
    heading(out, &format!("{title} ({over}{})", commas(rules.distinct)), screen)?;
    let mut grid = Grid::new(&[">REQUESTS", ">BLOCKED", "RULE", "~MESSAGE"]);
    for rule in rules.entries.iter().take(screen.rows) {
        grid.row([
            (commas(rule.count), Tone::Plain),
            (commas(rule.blocked), if rule.blocked == 0 { Tone::Dim } else { Tone::Bad }),
            (rule.name.clone(), Tone::Info),
            (rule.label.clone(), Tone::Plain),
        ]);
    }
    grid.write(out, screen)
}

fn only(out: &mut impl Write, title: &str, only: &[Single], all: u64, screen: &Screen) -> io::Result<()> {
    if all == 0 {
        return Ok(());
    }
    let shown = only.len().min(screen.rows);
    heading(out, &format!("{}{}", escaped(title), first_of(shown, all)), screen)?;
    let mut grid = Grid::new(&["EFFECT", ">SCORE", "~REQUEST", "~ENTRY"]);
    for single in only.iter().take(shown) {
        let outcome = &single.outcome;
        grid.row([
            (words(outcome, outcome), Tone::of(outcome.effect)),
            (score(outcome.score), Tone::Plain),
            (single.request.clone(), Tone::Plain),
            (single.id.clone(), Tone::Dim),
        ]);
    }
    grid.write(out, screen)
}

fn tone(kind: Kind) -> Tone {
    match kind {
        Kind::Failed | Kind::Blocked => Tone::Bad,
        Kind::Unblocked => Tone::Warn,
        Kind::Answer => Tone::Info,
        Kind::Score | Kind::Rules => Tone::Plain,
    }
}
