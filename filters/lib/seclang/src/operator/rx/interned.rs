//! The patterns of the process, each once: rule sets share most of their patterns with others, and with the version of
//! themselves that they replace. Automata take most of the memory of a rule set, and most of the time to build it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::Compiled;
use super::shape::Shape;

/// The number of entries from which those of dropped patterns are removed, at each doubling.
const SWEPT: usize = 1024;

/// A pattern that is compiled when the first value is searched.
#[derive(Debug)]
pub(super) struct SharedPattern {
    pub(super) text: Arc<str>,
    pub(super) backtracking: bool,
    /// What answers for most values without the pattern.
    shape: OnceLock<Shape>,
    compiled: OnceLock<Option<Compiled>>,
}

/// All patterns that are in use.
#[derive(Default)]
struct Patterns {
    linear: HashMap<Arc<str>, Weak<SharedPattern>>,
    backtracking: HashMap<Arc<str>, Weak<SharedPattern>>,
    /// The number of entries at which the next sweep is due.
    sweep: usize,
}

static PATTERNS: OnceLock<Mutex<Patterns>> = OnceLock::new();

impl SharedPattern {
    /// The pattern with this text, in the dialect of its engine.
    pub(super) fn of(text: &str, backtracking: bool) -> Arc<Self> {
        let mut patterns = PATTERNS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let Patterns { linear, backtracking: others, sweep } = &mut *patterns;
        if linear.len() + others.len() >= (*sweep).max(SWEPT) {
            [&mut *linear, &mut *others].into_iter().for_each(|of| of.retain(|_, known| known.strong_count() > 0));
            *sweep = 2 * (linear.len() + others.len());
        }
        let known = if backtracking { others } else { linear };
        if let Some(pattern) = known.get(text).and_then(Weak::upgrade) {
            return pattern;
        }
        let text: Arc<str> = text.into();
        let (shape, compiled) = (OnceLock::new(), OnceLock::new());
        let pattern = Arc::new(Self { text: Arc::clone(&text), backtracking, shape, compiled });
        known.insert(text, Arc::downgrade(&pattern));
        pattern
    }

    pub(super) fn shape(&self) -> &Shape {
        self.shape.get_or_init(|| if self.backtracking { Shape::Pattern } else { Shape::of(&self.text) })
    }

    /// `None` if it cannot be compiled.
    pub(super) fn compiled(&self) -> Option<&Compiled> {
        self.compiled.get_or_init(|| Compiled::new(&self.text, self.backtracking).ok()).as_ref()
    }

    /// Whether it is compiled, or known not to be.
    pub(super) fn is_compiled(&self) -> bool {
        self.compiled.get().is_some()
    }

    /// The compiled form, if a value was searched before.
    pub(super) fn compiled_before(&self) -> Option<&Compiled> {
        self.compiled.get()?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn a_pattern_is_there_once_while_it_is_in_use() {
        let one = SharedPattern::of("only_here_[0-9]{3}", false);
        let other = SharedPattern::of("only_here_[0-9]{3}", false);
        assert!(Arc::ptr_eq(&one, &other));
        assert!(one.compiled().is_some() && other.is_compiled());
        assert!(!SharedPattern::of("only_here_[0-9]{3}", true).is_compiled(), "another engine");
        drop((one, other));
        assert!(!SharedPattern::of("only_here_[0-9]{3}", false).is_compiled(), "nothing keeps it");
        assert!(SharedPattern::of("only_here_[", false).compiled().is_none());
    }

    #[test]
    fn dropped_patterns_do_not_pile_up() {
        (0..5 * SWEPT).for_each(|number| drop(SharedPattern::of(&format!("dropped{number}"), false)));
        let known = PATTERNS.get().unwrap().lock().unwrap().linear.len();
        assert!(known <= 2 * SWEPT, "{known}");
    }
}
