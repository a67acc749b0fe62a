//! In step as long as both have the same order; what comes in another one waits for its other half.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::BufRead;
use std::rc::Rc;

use super::groups::Groups;
use super::{Changed, Counts, Diff, Error, Kind, Options, Outcome, Reader, Rest, Side, Single};
use crate::row::{Effect, Row};
use crate::text::head;
use crate::totals::{Sketch, Summary, Top};

/// Requests that wait whose id and path are kept, for the list of those that only one has.
const NAMED: usize = 10_000;
/// Bytes of an id or a path.
const TEXT: usize = 2_048;
/// Different rules that are counted exactly.
const COUNTERS: usize = 4_096;
/// Of these, how many are listed.
const LISTED: usize = 50;
/// A hold that differs by this or less is the same, in milliseconds: what is held goes on at the next tick of its filter.
const TICK_MILLIS: u64 = 200;
/// A score that differs by less is the same.
const NOTHING: f64 = 1e-9;

/// Compares two documents request by request, by their ids. Takes little memory where both are in the same order; each
/// request that is out of order takes some hundred bytes until the other half of it comes.
///
/// # Errors
/// One of them is cut off or is not as a replay writes it, or has an id twice where the orders differ.
pub fn diff<A: BufRead, B: BufRead>(mut a: Reader<A>, mut b: Reader<B>, options: &Options) -> Result<Diff, Error> {
    let names = [a.name().to_owned(), b.name().to_owned()];
    let mut run = Run::new(options);
    loop {
        match (a.next_row()?, b.next_row()?) {
            (Some(before), Some(after)) if before.id == after.id => {
                let (before, after) = (run.verdict(&before), (run.verdict(&after), &after));
                run.pair(&before, &after.0, after.1);
            }
            (None, None) => break,
            (before, after) => {
                if let Some(before) = before {
                    run.single(&before, Which::A).map_err(|what| a.error(what))?;
                }
                if let Some(after) = after {
                    run.single(&after, Which::B).map_err(|what| b.error(what))?;
                }
            }
        }
    }
    Ok(run.end(names, a.rest()?, b.rest()?))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    A,
    B,
}

struct Run<'a> {
    options: &'a Options,
    counts: Counts,
    changed: [Vec<Changed>; Kind::ALL.len()],
    added: Sketch<u64>,
    removed: Sketch<u64>,
    routes: Groups,
    plugins: Groups,
    waiting_a: Waiting,
    waiting_b: Waiting,
    /// Words that many verdicts share.
    words: HashSet<Rc<str>>,
}

/// What is compared, and no more.
struct Verdict {
    effect: Effect,
    status: u16,
    action: Rc<str>,
    held_millis: u64,
    score: f64,
    plugin: Rc<str>,
    reason: Box<str>,
    /// Sorted, each once.
    rules: Box<[u64]>,
}

/// Requests whose other half has not come, by a hash of their id.
#[derive(Default)]
struct Waiting {
    requests: HashMap<u64, Waits>,
    came: u64,
    named: usize,
}

struct Waits {
    verdict: Verdict,
    /// In which order it came.
    came: u64,
    /// Its id and its request, where there was room.
    name: Option<Box<(String, String)>>,
}

impl<'a> Run<'a> {
    fn new(options: &'a Options) -> Self {
        Self {
            options,
            counts: Counts::default(),
            changed: Default::default(),
            added: Sketch::new(COUNTERS),
            removed: Sketch::new(COUNTERS),
            routes: Groups::default(),
            plugins: Groups::default(),
            waiting_a: Waiting::default(),
            waiting_b: Waiting::default(),
            words: HashSet::new(),
        }
    }

    fn verdict(&mut self, row: &Row) -> Verdict {
        let mut rules: Vec<_> = row.rules.iter().map(|rule| rule.id).collect();
        rules.sort_unstable();
        rules.dedup();
        Verdict {
            effect: row.effect,
            status: row.status,
            action: self.word(&row.action),
            held_millis: row.held_millis,
            score: row.score,
            plugin: self.word(&row.plugin),
            reason: row.reason.as_str().into(),
            rules: rules.into(),
        }
    }

    fn word(&mut self, text: &str) -> Rc<str> {
        if let Some(known) = self.words.get(text) {
            return Rc::clone(known);
        }
        let word = Rc::<str>::from(text);
        self.words.insert(Rc::clone(&word));
        word
    }

    /// Takes a request that the other side does not have at this place.
    fn single(&mut self, row: &Row, which: Which) -> Result<(), String> {
        let mut hasher = DefaultHasher::new();
        row.id.hash(&mut hasher);
        let hash = hasher.finish();
        let verdict = self.verdict(row);
        let (own, other) = match which {
            Which::A => (&mut self.waiting_a, &mut self.waiting_b),
            Which::B => (&mut self.waiting_b, &mut self.waiting_a),
        };
        if let Some(found) = other.take(hash) {
            match which {
                Which::A => self.pair(&verdict, &found.verdict, row),
                Which::B => self.pair(&found.verdict, &verdict, row),
            }
            return Ok(());
        }
        own.put(hash, verdict, row)
    }

    /// Compares the two halves of a request; `row` is one of them.
    fn pair(&mut self, before: &Verdict, after: &Verdict, row: &Row) {
        let kind = self.kind(before, after);
        self.counts.add(kind);
        let Some(kind) = kind else { return };
        self.routes.add(&row.route, kind);
        self.plugins.add(if after.plugin.is_empty() { &before.plugin } else { &after.plugin }, kind);
        let added: Vec<_> = after.rules.iter().filter(|id| before.rules.binary_search(id).is_err()).copied().collect();
        let removed: Vec<_> =
            before.rules.iter().filter(|id| after.rules.binary_search(id).is_err()).copied().collect();
        added.iter().for_each(|id| self.added.add(id, "", after.effect == Effect::Blocked));
        removed.iter().for_each(|id| self.removed.add(id, "", before.effect == Effect::Blocked));
        let list = &mut self.changed[kind as usize];
        if list.len() < self.options.listed {
            let (id, request) = name(row);
            let text = |text: &str| head(text, TEXT).into_owned();
            list.push(Changed {
                kind,
                id,
                at: row.at,
                request,
                host: text(&row.host),
                caller: text(&row.caller),
                route: text(&row.route),
                before: before.outcome(),
                after: after.outcome(),
                rules_added: added,
                rules_removed: removed,
            });
        }
    }

    fn kind(&self, before: &Verdict, after: &Verdict) -> Option<Kind> {
        let is = |effect| (before.effect == effect, after.effect == effect);
        let answer = |verdict: &Verdict| (verdict.effect, verdict.status, Rc::clone(&verdict.action));
        if is(Effect::Failed) == (false, true) {
            Some(Kind::Failed)
        } else if is(Effect::Blocked) == (false, true) {
            Some(Kind::Blocked)
        } else if is(Effect::Blocked) == (true, false) {
            Some(Kind::Unblocked)
        } else if answer(before) != answer(after) || before.held_millis.abs_diff(after.held_millis) > TICK_MILLIS {
            Some(Kind::Answer)
        } else if (before.score - after.score).abs() > self.options.score.max(NOTHING) {
            Some(Kind::Score)
        } else if before.rules != after.rules || before.plugin != after.plugin {
            Some(Kind::Rules)
        } else {
            None
        }
    }

    fn end(self, [a_name, b_name]: [String; 2], a: Rest, b: Rest) -> Diff {
        let mut counts = self.counts;
        counts.only_a = self.waiting_a.requests.len() as u64;
        counts.only_b = self.waiting_b.requests.len() as u64;
        let (rules_added, rules_removed) =
            (labelled(self.added.top(LISTED), &b.totals), labelled(self.removed.top(LISTED), &a.totals));
        Diff {
            counts,
            changed: self.changed.into_iter().flatten().collect(),
            only_a: self.waiting_a.list(self.options.listed),
            only_b: self.waiting_b.list(self.options.listed),
            rules_added,
            rules_removed,
            routes: self.routes.most(LISTED),
            plugins: self.plugins.most(LISTED),
            a: Side { name: a_name, about: a.about, totals: a.totals },
            b: Side { name: b_name, about: b.about, totals: b.totals },
        }
    }

    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.waiting_a.requests.len() + self.waiting_b.requests.len()
    }
}

impl Verdict {
    fn outcome(&self) -> Outcome {
        Outcome {
            effect: self.effect,
            status: self.status,
            action: self.action.to_string(),
            held_millis: self.held_millis,
            score: self.score,
            plugin: self.plugin.to_string(),
            reason: self.reason.to_string(),
        }
    }
}

impl Waiting {
    fn put(&mut self, hash: u64, verdict: Verdict, row: &Row) -> Result<(), String> {
        self.came += 1;
        let name = (self.named < NAMED).then(|| Box::new(name(row)));
        self.named += usize::from(name.is_some());
        match self.requests.insert(hash, Waits { verdict, came: self.came, name }) {
            None => Ok(()),
            Some(_) => Err(format!(
                "`{}` is there twice, and the documents are in different orders: nobody can tell which is which",
                head(&row.id, TEXT)
            )),
        }
    }

    fn take(&mut self, hash: u64) -> Option<Waits> {
        let found = self.requests.remove(&hash)?;
        self.named -= usize::from(found.name.is_some());
        Some(found)
    }

    /// The first of those that still wait, as far as their names are known.
    fn list(self, most: usize) -> Vec<Single> {
        let mut left: Vec<_> = self.requests.into_values().filter(|waits| waits.name.is_some()).collect();
        left.sort_unstable_by_key(|waits| waits.came);
        left.truncate(most);
        let named = left.into_iter().filter_map(|waits| Some((*waits.name?, waits.verdict.outcome())));
        named.map(|((id, request), outcome)| Single { id, request, outcome }).collect()
    }
}

fn name(row: &Row) -> (String, String) {
    (head(&row.id, TEXT).into_owned(), head(&format!("{} {}", row.method, row.path), TEXT).into_owned())
}

/// The rules with their messages, as far as the totals know them.
fn labelled(mut rules: Top, totals: &Summary) -> Top {
    for rule in &mut rules.entries {
        if let Some(known) = totals.rules.entries.iter().find(|known| known.name == rule.name) {
            rule.label.clone_from(&known.label);
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64) -> Row {
        Row { id: format!("a#{number}"), ..Row::default() }
    }

    #[test]
    fn only_what_is_out_of_order_waits() {
        let options = Options::default();
        let mut run = Run::new(&options);
        // B lacks the first request, so that it is one ahead all the time.
        for number in 0..10_000 {
            run.single(&row(number), Which::A).unwrap();
            run.single(&row(number + 1), Which::B).unwrap();
            assert!(run.waiting() <= 2);
        }
        assert_eq!((run.counts.compared, run.counts.same), (9_999, 9_999));
    }

    #[test]
    fn names_are_kept_for_some_of_those_that_wait() {
        let options = Options { listed: usize::MAX, ..Options::default() };
        let mut run = Run::new(&options);
        (0..15_000).for_each(|number| run.single(&row(number), Which::A).unwrap());
        assert_eq!(run.waiting_a.named, NAMED);
        (0..5_000).for_each(|number| run.single(&row(number), Which::B).unwrap());
        assert_eq!((run.waiting_a.named, run.waiting()), (5_000, 10_000));
        let diff = run.end(Default::default(), Rest::default(), Rest::default());
        assert_eq!((diff.counts.only_a, diff.only_a.len(), diff.only_a[0].id.as_str()), (10_000, 5_000, "a#5000"));
    }
}
