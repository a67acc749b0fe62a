//! Signals and the score that they add up to.

use std::borrow::Cow;

/// The highest score.
pub const MAX_SCORE: f64 = 100.0;

/// The most signals that one exchange keeps; later ones still count towards the score of those kept.
const MAX_SIGNALS: usize = 64;

/// The longest detail that is kept, in bytes.
const MAX_TEXT: usize = 512;

/// The most rules that one signal names; it counts the others.
const MAX_RULES: usize = 16;

/// The longest message of a rule that is kept, in bytes.
const MAX_MESSAGE: usize = 160;

/// What a detector noticed.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// The detector (`waf.seclang`, `reputation.feed`, ...).
    pub source: Cow<'static, str>,
    /// What kind of thing was noticed (`waf`, `reputation`, ...).
    pub kind: Cow<'static, str>,
    /// How much it counts: 0 to 100.
    pub weight: f64,
    /// How sure the detector is: 0 to 1.
    pub confidence: f64,
    /// `<detector>:<detail>`.
    pub tag: Cow<'static, str>,
    /// What was seen, for people.
    pub detail: String,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
}

impl Signal {
    /// What it adds to the score: weight times confidence, rounded.
    #[must_use]
    pub fn effective_weight(&self) -> f64 {
        let product = self.weight * self.confidence.clamp(0.0, 1.0);
        if product.is_finite() { product.round().clamp(0.0, MAX_SCORE) } else { 0.0 }
    }

    /// Whether both say the same of a request.
    fn is_of_same(&self, other: &Self) -> bool {
        self.source == other.source && self.tag == other.tag && self.detail == other.detail
    }
}

/// A rule that a signal is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignalRule {
    /// The id.
    pub id: u64,
    /// Its message; empty where it has none, or one that may not be shown.
    pub message: String,
}

/// What is kept of a signal beside what its detector says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Note {
    /// The plugin that has added it; empty for one that no plugin has.
    pub(crate) module: Cow<'static, str>,
    /// The rules that it is about.
    pub(crate) rules: Vec<SignalRule>,
    /// How many more there are.
    pub(crate) more_rules: u32,
}

/// The signals of one exchange.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score {
    signals: Vec<Signal>,
    /// A note of each of them.
    notes: Vec<Note>,
    /// The plugin whose turn it is; empty between turns.
    turn: &'static str,
    overflow: f64,
}

impl Score {
    /// Adds a signal of the plugin whose turn it is.
    pub fn add(&mut self, signal: Signal) {
        self.add_about(signal, std::iter::empty());
    }

    /// The same with the rules that the signal is about: the first 16 are kept, with messages of at most 160 bytes, and the others are
    /// counted.
    pub fn add_about(&mut self, signal: Signal, mut rules: impl Iterator<Item = SignalRule>) {
        let kept = rules.by_ref().take(MAX_RULES).collect();
        let more_rules = u32::try_from(rules.count()).unwrap_or(u32::MAX);
        self.add_noted(Note { module: self.turn.into(), rules: kept, more_rules }, signal);
    }

    /// Adds a signal of what several steps find alike, such as the same plugin in the global chain and in that of the route. What has the
    /// same source, tag and detail counts once, by the highest weight that a step gives it: a further signal has only what the ones before
    /// it lack, and none is added where they lack nothing.
    pub fn add_once(&mut self, mut signal: Signal) {
        truncate(&mut signal.detail, MAX_TEXT);
        let mut known = self.signals.iter().filter(|known| known.is_of_same(&signal)).peekable();
        if known.peek().is_some() {
            let missing = signal.effective_weight() - known.map(Signal::effective_weight).sum::<f64>();
            if missing <= 0.0 {
                return;
            }
            (signal.weight, signal.confidence) = (missing, 1.0);
        }
        self.add(signal);
    }

    /// Adds a signal with its note.
    pub(crate) fn add_noted(&mut self, mut note: Note, mut signal: Signal) {
        if self.signals.len() >= MAX_SIGNALS {
            self.add_overflow(signal.effective_weight());
            return;
        }
        truncate(&mut signal.detail, MAX_TEXT);
        note.rules.truncate(MAX_RULES);
        note.rules.iter_mut().for_each(|rule| truncate(&mut rule.message, MAX_MESSAGE));
        self.signals.push(signal);
        self.notes.push(note);
    }

    /// What is added from now on is of this plugin.
    pub(crate) fn turn_of(&mut self, plugin: &'static str) {
        self.turn = plugin;
    }

    /// The signals, each with its note.
    pub(crate) fn noted(&self) -> impl Iterator<Item = (&Note, &Signal)> {
        self.notes.iter().zip(&self.signals)
    }

    /// What signals add that were too many to be kept.
    pub(crate) fn overflow(&self) -> f64 {
        self.overflow
    }

    /// Adds to that; what is no positive number adds nothing.
    pub(crate) fn add_overflow(&mut self, weight: f64) {
        self.overflow = (self.overflow + weight.max(0.0)).min(MAX_SCORE);
    }

    /// Adds the signals of another score that this one does not have.
    pub(crate) fn merge(&mut self, other: &Self) {
        // The part that both have is in both of them.
        let overflow = other.overflow - self.overflow;
        let count = |score: &Self, signal: &Signal| score.signals.iter().filter(|known| *known == signal).count();
        for (note, signal) in other.noted() {
            if count(self, signal) < count(other, signal) {
                self.add_noted(note.clone(), signal.clone());
            }
        }
        self.add_overflow(overflow);
    }

    /// The signals in the order in which they came.
    #[must_use]
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// The sum of the effective weights, at most 100.
    #[must_use]
    pub fn total(&self) -> f64 {
        (self.signals.iter().map(Signal::effective_weight).sum::<f64>() + self.overflow).min(MAX_SCORE)
    }

    /// Each tag once, in order.
    #[must_use]
    pub fn tags(&self) -> Vec<&str> {
        self.signals.iter().fold(Vec::new(), |mut tags, signal| {
            if !tags.contains(&signal.tag.as_ref()) {
                tags.push(signal.tag.as_ref());
            }
            tags
        })
    }
}

fn truncate(text: &mut String, most: usize) {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(weight: f64, confidence: f64) -> Signal {
        Signal {
            source: "test".into(),
            kind: "test".into(),
            weight,
            confidence,
            tag: "test:x".into(),
            detail: String::new(),
            at: 0,
        }
    }

    #[test]
    fn the_score_is_the_rounded_sum_and_never_over_a_hundred() {
        let mut score = Score::default();
        score.add(signal(25.0, 0.5));
        assert_eq!(score.total(), 13.0);
        score.add(signal(95.0, 1.0));
        assert_eq!(score.total(), 100.0);
        assert_eq!(score.tags(), ["test:x"]);
    }

    #[test]
    fn what_several_steps_find_alike_counts_once_by_its_highest_weight() {
        let mut score = Score::default();
        let long = Signal { detail: "x".repeat(600), ..signal(20.0, 0.5) };
        for same in [&long, &long, &Signal { weight: 5.0, ..long.clone() }] {
            score.add_once(same.clone());
        }
        assert_eq!((score.total(), score.signals().len()), (10.0, 1));
        let silent = Signal { tag: "test:silent".into(), ..signal(0.0, 1.0) };
        for same in [&silent, &silent] {
            score.add_once(same.clone());
        }
        assert_eq!((score.total(), score.signals().len()), (10.0, 2));
        score.add_once(Signal { weight: 30.0, confidence: 1.0, ..long.clone() });
        score.add_once(Signal { weight: 30.0, confidence: 1.0, at: 9, ..long.clone() });
        assert_eq!((score.total(), score.signals().len()), (30.0, 3));
        for other in [
            Signal { source: "other".into(), ..long.clone() },
            Signal { tag: "test:y".into(), ..long.clone() },
            Signal { detail: "y".into(), ..long },
        ] {
            score.add_once(other);
        }
        assert_eq!(score.total(), 60.0);
    }

    #[test]
    fn each_signal_is_of_the_plugin_whose_turn_it_was() {
        let mut score = Score::default();
        score.turn_of("waf");
        score.add(signal(1.0, 1.0));
        score.turn_of("fail2ban");
        score.add(signal(2.0, 1.0));
        score.turn_of("");
        score.add(signal(3.0, 1.0));
        let shown: Vec<_> = score.noted().map(|(note, signal)| (note.module.as_ref(), signal.weight)).collect();
        assert_eq!(shown, [("waf", 1.0), ("fail2ban", 2.0), ("", 3.0)]);
    }

    #[test]
    fn a_signal_names_sixteen_rules_and_counts_the_others() {
        let mut score = Score::default();
        score.add_about(signal(1.0, 1.0), (1..=20).map(|id| SignalRule { id, message: "\u{e9}".repeat(100) }));
        score.add(signal(1.0, 1.0));
        let notes: Vec<&Note> = score.noted().map(|(note, _)| note).collect();
        assert_eq!((notes[0].rules.len(), notes[0].more_rules), (16, 4));
        assert!(notes[0].rules.iter().all(|rule| rule.message.len() == 160));
        assert_eq!((notes[1].rules.len(), notes[1].more_rules), (0, 0));
    }

    #[test]
    fn odd_weights_count_nothing() {
        let mut score = Score::default();
        for weight in [f64::NAN, f64::INFINITY, -5.0] {
            score.add(signal(weight, 1.0));
        }
        score.add(signal(10.0, -3.0));
        assert_eq!(score.total(), 0.0);
    }

    #[test]
    fn signals_beyond_the_cap_still_count() {
        let mut score = Score::default();
        (0..70).for_each(|_| score.add(signal(1.0, 1.0)));
        assert_eq!(score.signals().len(), MAX_SIGNALS);
        assert_eq!(score.total(), 70.0);
    }
}
