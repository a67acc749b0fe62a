//! Which windows of the rest of a body rules look at: those of which a prefilter says that a rule may match them, where
//! letters and digits do not pass it.
//!
//! The prefilters are asked about the window as it is. Where rules look at it after a transformation, any byte that the
//! transformation minds makes the window suspicious: to undo it here would cost as much as to run the rules. A rule
//! without a prefilter, with one that letters and digits pass, or with a transformation that minds these makes none
//! suspicious beside others that have prefilters: rules would see every window, and long honest bodies would meet the
//! budget. Where no rule has a prefilter, every window is suspicious.

use super::build::Engine;
use super::collect::selects;
use super::oversize::REST_OF_BODY;
use super::prefilter::LinkPrefilter;
use super::rest::WINDOW;
use super::rules::Link;
use super::scanner::{Scanner, is_passed, minds_spacing};
use crate::operator::{ByteSet, Captures};
use crate::vocabulary::Variable;

/// What makes a window suspicious. Found once for an engine.
pub(super) struct Suspicion {
    /// The row of prefilters that letters and digits pass; empty without prefilters.
    harmless: Box<[u64]>,
    /// The bytes that the transformations mind after which a rule looks at a window; no letters and digits.
    triggers: ByteSet,
    /// Whether such a transformation minds how words are spaced.
    spacing: bool,
}

impl Engine {
    /// What makes a window suspicious.
    pub(super) fn suspicion(&self) -> &Suspicion {
        self.suspicion.get_or_init(|| Suspicion::of_engine(self))
    }

    /// The prefilters of the tests of phase 2 that look at windows.
    fn prefilters_of_windows(&self) -> impl Iterator<Item = &LinkPrefilter> {
        let links = self.rules.iter().filter(|rule| rule.phase == 2).flat_map(|rule| &rule.links);
        links.filter(|link| reads_windows(link)).filter_map(|link| link.prefilter.as_ref())
    }
}

impl Suspicion {
    fn of_engine(engine: &Engine) -> Self {
        let mut harmless = vec![0; engine.scanner.words()];
        let letters: Vec<u8> = (b'a'..=b'z').chain(b'0'..=b'9').cycle().take(WINDOW).collect();
        engine.scanner.scan(&letters, &mut harmless);
        let letters = ByteSet::of_bytes(&letters);
        let (mut triggers, mut spacing) = (ByteSet::default(), false);
        for test in engine.prefilters_of_windows().filter(|test| !is_passed(&harmless, test.prefilter)) {
            let Some((bytes, spaced)) = engine.target_table.triggers_of(test.pipeline) else { continue };
            if !bytes.intersects(&letters) {
                triggers.add(bytes);
                spacing |= spaced;
            }
        }
        Self { harmless: harmless.into(), triggers, spacing }
    }

    /// Whether rules look at the window.
    pub(super) fn of(&self, scanner: &Scanner, window: &[u8]) -> bool {
        if self.harmless.is_empty()
            || ByteSet::of_bytes(window).intersects(&self.triggers)
            || self.spacing && minds_spacing(window)
        {
            return true;
        }
        let mut open = vec![0; self.harmless.len()];
        scanner.scan(window, &mut open);
        open.iter().zip(&self.harmless).any(|(open, harmless)| open & !harmless != 0)
    }
}

/// Whether windows are among the values of the test.
fn reads_windows(link: &Link) -> bool {
    let mut scratch = Captures::new();
    link.targets.iter().any(|target| {
        matches!(target.variable, Variable::Args | Variable::ArgsPost)
            && selects(&target.key, REST_OF_BODY, &mut scratch)
    })
}
