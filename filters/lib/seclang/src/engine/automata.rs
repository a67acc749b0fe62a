//! Bounds the memory of the automata of patterns, which grow with the values that are searched.

use std::sync::atomic::{AtomicU64, Ordering};

use super::build::Engine;
use crate::operator::Operator;

/// The bytes that the automata of all operators of an engine may take together after a transaction.
const MOST: usize = 16 << 20;

/// After how many units of work the automata are looked at again. Looking takes some thousand instructions.
const INTERVAL: u64 = 20_000_000;

/// The work since the automata were looked at.
#[derive(Default)]
pub(super) struct Grown(AtomicU64);

impl Engine {
    /// Notes the work of a transaction that has ended. Where the automata have become too large, the largest begin anew.
    pub(super) fn bound_automata(&self, work: u64) {
        if self.grown.0.fetch_add(work, Ordering::Relaxed).saturating_add(work) < INTERVAL {
            return;
        }
        self.grown.0.store(0, Ordering::Relaxed);
        if self.automata_size() > MOST {
            self.shrink_automata(MOST / 2);
        }
    }

    /// Lets the largest automata begin anew until all take at most so many bytes.
    fn shrink_automata(&self, most: usize) {
        let operators = self.operators.iter().map(|built| &built.operator);
        let mut sizes: Vec<(usize, &Operator)> = operators.map(|operator| (operator.cached(), operator)).collect();
        sizes.sort_unstable_by_key(|(size, _)| std::cmp::Reverse(*size));
        let mut left: usize = sizes.iter().map(|(size, _)| size).sum();
        for (size, operator) in sizes {
            if left <= most {
                break;
            }
            operator.forget();
            left -= size;
        }
    }

    /// The bytes that the automata of all operators take for states that values have led to.
    fn automata_size(&self) -> usize {
        self.operators.iter().map(|built| built.operator.cached()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::{BudgetLimits, Transaction, TransactionStart};
    use crate::{DataFiles, Program, Source};
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    struct NoFiles;

    impl DataFiles for NoFiles {
        fn read(&self, _: &str) -> Option<Vec<u8>> {
            None
        }
    }

    fn matches(engine: &Arc<Engine>, value: &str) -> bool {
        let mut transaction = Transaction::new(Arc::clone(engine), TransactionStart::default());
        transaction.set_budget(BudgetLimits::NONE);
        transaction.request_line(b"GET", format!("/?a={value}").as_bytes(), b"HTTP/1.1");
        transaction.request_headers().is_some()
    }

    #[test]
    fn automata_begin_anew_and_find_the_same() {
        let rules = "SecRuleEngine On\n\
            SecRule ARGS \"@rx (?:[a-f]{2,9}x|[0-9b-d]{3,8}y)+[a-d]{4}z\" \"id:1,phase:1,deny,status:403\"\n\
            SecRule ARGS \"@rx ([a-c]+[0-9]){3}q\" \"id:2,phase:1,deny,status:403,capture\"\n";
        let program = crate::compile(&[Source::new("rules.conf", rules)], &NoFiles).unwrap().encode();
        let engine = Arc::new(Engine::new(Program::decode(&program).unwrap()).unwrap());
        let values = ["abcdefx123yabcdz".repeat(3), "abc1ab2c3q".repeat(20), "abcab12abz".repeat(40)];
        let found: Vec<bool> = values.iter().map(|value| matches(&engine, value)).collect();
        assert_eq!(found, [true, true, false]);
        let grown = engine.automata_size();
        engine.shrink_automata(grown);
        assert_eq!(engine.automata_size(), grown, "what is allowed stays");
        engine.shrink_automata(0);
        assert!(engine.automata_size() < grown / 2, "{} of {grown}", engine.automata_size());
        assert_eq!(values.iter().map(|value| matches(&engine, value)).collect::<Vec<_>>(), found);
    }

    #[test]
    fn automata_are_looked_at_after_much_work() {
        let program = crate::compile(&[Source::new("rules.conf", "SecRuleEngine On\n")], &NoFiles).unwrap();
        let engine = Engine::new(Program::decode(&program.encode()).unwrap()).unwrap();
        engine.bound_automata(INTERVAL - 1);
        assert_eq!(engine.grown.0.load(Ordering::Relaxed), INTERVAL - 1);
        engine.bound_automata(1);
        assert_eq!(engine.grown.0.load(Ordering::Relaxed), 0);
    }
}
