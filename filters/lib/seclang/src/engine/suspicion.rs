//! Which windows of the rest of a body a rule may match that would not match letters and digits.
//!
//! The prefilters tell it of the window as it is. Where rules look at it after a transformation, any byte that the
//! transformation minds makes the window suspicious: to undo it here would cost as much as to run the rules. A rule
//! without a prefilter, with one that letters and digits pass, or with a transformation that minds these makes none
//! suspicious: rules would see every window, and long honest bodies would meet the budget.

use super::build::Engine;
use super::collect::selects;
use super::const_prop::Prediction;
use super::oversize::REST_OF_BODY;
use super::prefilter::LinkPrefilter;
use super::rest::WINDOW;
use super::rules::Link;
use super::scanner::{Scanner, is_passed};
use crate::operator::{Captures, Operator, OperatorKind};
use crate::vocabulary::Variable;

/// What makes a window suspicious. Found once for an engine.
pub(super) struct Suspicion {
    /// The row of prefilters that letters and digits pass.
    harmless: Box<[u64]>,
    /// The bits of the pipelines after which a rule looks at a window; letters and digits have none of them.
    triggers: u64,
}

impl Engine {
    /// What makes a window suspicious.
    pub(super) fn suspicion(&self) -> &Suspicion {
        self.suspicion.get_or_init(|| Suspicion::of_engine(self))
    }

    /// The tests of phase 2 that look for something in a window, of the rules that may run.
    fn tests_of_windows(&self) -> impl Iterator<Item = &Link> {
        let may_run = |at: u32| !matches!(self.const_prop.of(at), Prediction::NeverMatches | Prediction::Applied);
        let rules = self.rules.iter().zip(0..).filter(move |(rule, at)| rule.phase == 2 && may_run(*at));
        rules.flat_map(|(rule, _)| &rule.links).filter(|link| {
            let operator = link.operator.and_then(|at| self.operators.get(at as usize));
            operator.is_some_and(|built| reads_text(&built.operator)) && reads_windows(link)
        })
    }
}

impl Suspicion {
    fn of_engine(engine: &Engine) -> Self {
        let mut harmless = vec![0; engine.scanner.words()];
        let letters: Vec<u8> = (b'a'..=b'z').chain(b'0'..=b'9').cycle().take(WINDOW).collect();
        let (of_letters, _) = engine.scanner.scan(&letters, &mut harmless);
        let tells = |it: &&LinkPrefilter| !is_passed(&harmless, it.prefilter) && it.bit & of_letters == 0;
        let told = engine.tests_of_windows().filter_map(|test| test.prefilter.as_ref().filter(tells));
        let triggers = told.fold(0, |triggers, it| triggers | it.bit);
        Self { harmless: harmless.into(), triggers }
    }

    /// Whether a rule may match the window.
    pub(super) fn of(&self, scanner: &Scanner, window: &[u8]) -> bool {
        if self.harmless.is_empty() {
            return true;
        }
        let mut open = vec![0; self.harmless.len()];
        let (triggers, _) = scanner.scan(window, &mut open);
        triggers & self.triggers != 0 || open.iter().zip(&self.harmless).any(|(open, harmless)| open & !harmless != 0)
    }
}

/// Whether windows are among the values of the test.
fn reads_windows(link: &Link) -> bool {
    let mut scratch = Captures::new();
    link.targets.iter().any(|target| {
        matches!(target.variable, Variable::Args | Variable::ArgsPost)
            && !target.count
            && selects(&target.key, REST_OF_BODY, &mut scratch)
    })
}

/// Whether the operator looks for something in a text. Numbers and addresses are whole values, and no window is one.
fn reads_text(operator: &Operator) -> bool {
    use OperatorKind as Kind;
    !operator.compares_numbers()
        && !matches!(
            operator.kind(),
            Kind::NoMatch | Kind::GeoLookup | Kind::Rbl | Kind::IpMatch | Kind::IpMatchFromFile
        )
}
