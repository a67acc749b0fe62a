//! Signals and the score that they add up to.

use std::borrow::Cow;

/// The highest score.
pub const MAX_SCORE: f64 = 100.0;

/// The most signals that one exchange keeps; later ones still count towards the score of those kept.
const MAX_SIGNALS: usize = 64;

/// The longest detail that is kept, in bytes.
const MAX_TEXT: usize = 512;

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
}

/// The signals of one exchange.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score {
    signals: Vec<Signal>,
    /// The plugin that has added each of them.
    modules: Vec<Cow<'static, str>>,
    /// The plugin whose turn it is; empty between turns.
    turn: &'static str,
    overflow: f64,
}

impl Score {
    /// Adds a signal of the plugin whose turn it is.
    pub fn add(&mut self, signal: Signal) {
        self.add_of(self.turn.into(), signal);
    }

    /// Adds a signal of a plugin, by name.
    pub(crate) fn add_of(&mut self, module: Cow<'static, str>, mut signal: Signal) {
        if self.signals.len() >= MAX_SIGNALS {
            self.add_overflow(signal.effective_weight());
            return;
        }
        truncate(&mut signal.detail);
        self.signals.push(signal);
        self.modules.push(module);
    }

    /// What is added from now on is of this plugin.
    pub(crate) fn turn_of(&mut self, plugin: &'static str) {
        self.turn = plugin;
    }

    /// The signals, each with the name of the plugin that has added it; empty for one that no plugin has.
    pub(crate) fn attributed(&self) -> impl Iterator<Item = (&str, &Signal)> {
        self.modules.iter().map(Cow::as_ref).zip(&self.signals)
    }

    /// What signals add that were too many to be kept.
    pub(crate) fn overflow(&self) -> f64 {
        self.overflow
    }

    /// Adds to that; what is no positive number adds nothing.
    pub(crate) fn add_overflow(&mut self, weight: f64) {
        self.overflow = (self.overflow + weight.max(0.0)).min(MAX_SCORE);
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

fn truncate(text: &mut String) {
    let mut end = text.len().min(MAX_TEXT);
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
    fn each_signal_is_of_the_plugin_whose_turn_it_was() {
        let mut score = Score::default();
        score.turn_of("waf");
        score.add(signal(1.0, 1.0));
        score.turn_of("fail2ban");
        score.add(signal(2.0, 1.0));
        score.turn_of("");
        score.add(signal(3.0, 1.0));
        let shown: Vec<_> = score.attributed().map(|(module, signal)| (module, signal.weight)).collect();
        assert_eq!(shown, [("waf", 1.0), ("fail2ban", 2.0), ("", 3.0)]);
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
