//! The negative cache: chains that did not match, noted once for each value in the cross-request cache.
//!
//! The CRS looks for forbidden headers with a chain: the first test matches every name of a header and records it in a
//! name of TX of its own, the second test looks the recorded names up in a list. If no other rule reads or writes these
//! names of TX, the chain alone depends on them. A value for which the chain did not match once is then skipped as long
//! as the list is the same: see [`super::hot_cache`].

use std::sync::OnceLock;

use super::arena::Value;
use super::build::Engine;
use super::collect::selects;
use super::rules::{BuiltOperator, KeySelector, Link, Macro, MacroPiece, Rule, SetOperation};
use super::transaction::Transaction;
use crate::program::wire;
use crate::vocabulary::Variable;

/// A rule whose chain can be skipped for values for which it did not match before.
pub(super) struct NegativeChain {
    /// The number under which the hot cache keeps the result of the whole chain, as if it were a test.
    test: u32,
    /// The prefix of the names of TX that the first test assigns.
    prefix: Box<[u8]>,
    /// The other targets that select names of TX by a pattern: a name that one of them selects is always assigned.
    readers: Vec<TargetPosition>,
    /// The slot of the name of TX that is the argument of the second test, if it is one, and the constant it held
    /// first.
    list: Option<(u32, OnceLock<Value>)>,
}

/// The position of a target: its rule, link, and index among the targets of the link.
#[derive(Clone, Copy)]
struct TargetPosition {
    rule: usize,
    link: usize,
    target: usize,
}

/// Finds these chains in the rules; the numbers of their results begin with `first_test`.
pub(super) fn find_chains(rules: &mut [Rule], operators: &[BuiltOperator], wire: &wire::Program, first_test: u32) {
    let found: Vec<(usize, NegativeChain)> = rules
        .iter()
        .enumerate()
        .zip(first_test..)
        .filter_map(|((at, rule), test)| {
            let prefix = prefix_of(rule, operators)?;
            let list = list_of(rule, operators)?;
            let wire = wire.rules.get(at)?.links.get(1)?.targets.first()?;
            if !selects_all_of(&wire.key, prefix) || is_written(prefix, rules, at) {
                return None;
            }
            let readers = readers(rules, operators, at)?;
            let list = list.map(|slot| (slot, OnceLock::new()));
            Some((at, NegativeChain { test, prefix: prefix.into(), readers, list }))
        })
        .collect();
    for (at, chain) in found {
        if let Some(rule) = rules.get_mut(at) {
            rule.negative_chain = Some(chain);
        }
    }
}

/// The prefix of the names that the first test of a chain assigns, if it does nothing else.
fn prefix_of<'r>(rule: &'r Rule, operators: &[BuiltOperator]) -> Option<&'r [u8]> {
    let [first, second] = rule.links.as_slice() else { return None };
    let [set] = first.sets.as_slice() else { return None };
    let [MacroPiece::Text(prefix), MacroPiece::Slot(0)] = set.key.0.as_slice() else { return None };
    let of_capture = |piece: &MacroPiece| matches!(piece, MacroPiece::Text(_) | MacroPiece::Slot(0));
    let assigns = set.variable == Variable::Tx
        && set.is_dynamic
        && set.operation == SetOperation::To
        && set.value.0.iter().all(of_capture)
        && prefix.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let plain = first.test_number.is_some()
        && first.capture
        && !first.negated
        && !first.multi_match
        && first.controls.is_empty()
        && !first.targets.iter().any(|target| target.count);
    let steady = |link: &Link| {
        let built = link.operator.and_then(|at| operators.get(at as usize));
        built.is_some_and(|built| !built.operator.is_backtracking() && !built.operator.looks_up())
    };
    (assigns && plain && steady(second)).then_some(prefix)
}

/// The slot of the name of TX that is the argument of the second test; `Some(None)` if its argument is a constant,
/// `None` if the argument holds other macros.
fn list_of(rule: &Rule, operators: &[BuiltOperator]) -> Option<Option<u32>> {
    let second = rule.links.get(1)?;
    let [target] = second.targets.as_slice() else { return None };
    if target.variable != Variable::Tx || target.count || !second.exclusions.is_empty() {
        return None;
    }
    let operator = second.operator.and_then(|at| operators.get(at as usize))?;
    match operator.argument.as_ref().map(|argument| argument.0.as_slice()) {
        None => Some(None),
        // Slots below 10 are captures, which change with every match.
        Some([MacroPiece::Slot(slot)]) if *slot >= 10 => Some(Some(*slot)),
        Some(_) => None,
    }
}

/// The targets that select names of TX by a pattern, except the second link of rule `own`; `None` if a rule reads all
/// names.
fn readers(rules: &[Rule], operators: &[BuiltOperator], own: usize) -> Option<Vec<TargetPosition>> {
    let by_macro = |text: &Macro| {
        let of_tx = |piece: &MacroPiece| {
            matches!(piece, MacroPiece::Selected(Variable::Tx, _) | MacroPiece::Value(Variable::Tx, _))
        };
        text.0.iter().any(of_tx)
    };
    let sets = rules.iter().flat_map(|rule| &rule.links).flat_map(|link| &link.sets);
    if operators.iter().filter_map(|built| built.argument.as_ref()).any(by_macro)
        || rules.iter().any(|rule| [&rule.msg, &rule.logdata, &rule.redirect].into_iter().any(by_macro))
        || sets.flat_map(|set| [&set.key, &set.value]).any(by_macro)
    {
        return None;
    }
    let mut readers = Vec::new();
    for (rule, at) in rules.iter().zip(0..) {
        for (link, number) in rule.links.iter().zip(0..) {
            for (target, position) in link.targets.iter().zip(0..) {
                match &target.key {
                    _ if target.variable != Variable::Tx || (at, number) == (own, 1) => {}
                    // A name in a rule has a slot; names with this prefix have none.
                    KeySelector::Slot(_) => {}
                    KeySelector::Pattern(_) => {
                        readers.push(TargetPosition { rule: at, link: number, target: position })
                    }
                    _ => return None,
                }
            }
        }
    }
    Some(readers)
}

/// Whether a link other than the first one of rule `own` may assign a name of TX with this prefix.
fn is_written(prefix: &[u8], rules: &[Rule], own: usize) -> bool {
    let others = rules.iter().enumerate().filter(|(at, _)| *at != own).map(|(_, rule)| rule);
    let second = rules.get(own).and_then(|rule| rule.links.get(1));
    let links = others.flat_map(|rule| &rule.links).chain(second);
    links.flat_map(|link| &link.sets).any(|set| {
        set.variable == Variable::Tx
            && set.slot.is_none()
            && match set.key.0.first() {
                Some(MacroPiece::Text(other)) => !differ(other, prefix),
                _ => true,
            }
    })
}

/// Whether a pattern selects exactly the names with this prefix.
fn selects_all_of(pattern: &[u8], prefix: &[u8]) -> bool {
    pattern.strip_prefix(b"(?i)").unwrap_or(pattern).strip_prefix(b"^") == Some(prefix)
}

/// Whether neither text is a prefix of the other, ignoring case.
fn differ(one: &[u8], other: &[u8]) -> bool {
    one.iter().zip(other).any(|(one, other)| !one.eq_ignore_ascii_case(other))
}

impl NegativeChain {
    /// Whether the list is the one for which results were cached.
    fn holds(&self, transaction: &Transaction, engine: &Engine) -> bool {
        self.list.as_ref().is_none_or(|(slot, first)| {
            let now = transaction.tx.get(*slot).filter(|value| *value as usize <= engine.constants.len());
            now.is_some_and(|now| *first.get_or_init(|| now) == now)
        })
    }
}

impl Transaction {
    /// The chain of a rule, if cached results are valid in this transaction.
    pub(super) fn usable_negative_chain<'e>(&self, engine: &'e Engine, rule: &'e Rule) -> Option<&'e NegativeChain> {
        rule.negative_chain.as_ref().filter(|chain| chain.holds(self, engine))
    }

    /// Whether the negative cache says that a chain does not match for a value. Then sets the capture, as the first
    /// test would.
    pub(super) fn is_cached_negative(&mut self, chain: &NegativeChain, link: &Link, value: Value) -> bool {
        let cached = self.arena.fails(value, chain.test);
        if cached {
            let captured = self.transformed_by(link, value);
            self.tx.set(0, Some(captured));
        }
        cached
    }

    /// Whether the only capture of the first test is the whole value after its transformations.
    pub(super) fn captured_whole(&mut self, link: &Link, value: Value) -> bool {
        let after = self.transformed_by(link, value);
        let captured = self.tx.get(0).map(|captured| self.arena.get(captured));
        self.captures.len() == 1 && captured == Some(self.arena.get(after))
    }

    fn transformed_by(&mut self, link: &Link, value: Value) -> Value {
        link.transforms.iter().fold(value, |value, transform| self.arena.transformed(value, *transform))
    }

    /// Caches that the chain did not match for the values that its first test matched.
    pub(super) fn cache_negative(&mut self, engine: &Engine, chain: &NegativeChain, first: &Link) {
        for at in 0..self.matched.list.len() {
            let Some(value) = self.matched.list.get(at).map(|matched| matched.item.value) else { continue };
            if self.arena.is_in_hot_cache(value) && !self.is_read(engine, chain, first, value) {
                self.arena.cache_failed_test(value, chain.test);
            }
        }
    }

    /// Whether another target selects the name of TX that the first test assigns for a value.
    fn is_read(&mut self, engine: &Engine, chain: &NegativeChain, first: &Link, value: Value) -> bool {
        let after = self.transformed_by(first, value);
        let name = [&*chain.prefix, self.arena.get(after)].concat();
        chain.readers.iter().any(|place| {
            let target =
                engine.rules.get(place.rule).and_then(|rule| rule.links.get(place.link)?.targets.get(place.target));
            target.is_none_or(|target| selects(&target.key, &name, &mut self.scratch))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::TransactionStart;
    use crate::operator::DataFiles;
    use crate::source::Source;

    struct NoFiles;

    impl DataFiles for NoFiles {
        fn read(&self, _: &str) -> Option<Vec<u8>> {
            None
        }
    }

    const FORBIDDEN: &str = r#"
        SecAction "id:1,phase:1,pass,nolog,setvar:'tx.list=/proxy/ /if/'"
        SecRule REQUEST_HEADERS_NAMES "@rx ^.*$" "id:2,phase:1,pass,capture,t:lowercase,setvar:'tx.seen_2_%{tx.0}=/%{tx.0}/',chain"
            SecRule TX:/^seen_2_/ "@within %{tx.list}" "setvar:'tx.forbidden=+1'"
    "#;

    fn engine(rules: &str) -> Arc<Engine> {
        let rules = format!("SecRuleEngine On\n{rules}");
        let program =
            crate::compile(&[Source::new("rules", rules)], &NoFiles).unwrap_or_else(|errors| panic!("{}", errors[0]));
        Arc::new(Engine::new(crate::Program::decode(&program.encode()).unwrap()).unwrap())
    }

    /// The rules that matched, and how many operators were run.
    fn run(engine: &Arc<Engine>, headers: &[&str]) -> (Transaction, Vec<u64>, u64) {
        let mut transaction = Transaction::new(Arc::clone(engine), TransactionStart::default());
        transaction.request_line(b"GET", b"/", b"HTTP/1.1");
        headers.iter().for_each(|name| transaction.request_header(name.as_bytes(), b"v"));
        transaction.request_headers();
        let matched = transaction.matched_ids().collect();
        let operators = transaction.work().operators;
        (transaction, matched, operators)
    }

    fn tx(transaction: &mut Transaction, name: &str) -> Option<String> {
        transaction.variable(b"TX", name.as_bytes()).map(|value| String::from_utf8(value).unwrap())
    }

    #[test]
    fn a_chain_that_did_not_match_is_not_run_again_for_the_same_name() {
        let engine = engine(FORBIDDEN);
        let (_, matched, first) = run(&engine, &["Host", "Accept"]);
        assert_eq!((matched.as_slice(), first), (&[1][..], 4));
        let (mut transaction, matched, again) = run(&engine, &["Host", "Accept"]);
        assert_eq!((matched.as_slice(), again), (&[1][..], 0));
        assert_eq!(tx(&mut transaction, "0").as_deref(), Some("accept"), "the capture is as if it had run");
        // A forbidden name is found beside them, every time.
        for _ in 0..3 {
            let (mut transaction, matched, _) = run(&engine, &["Host", "Proxy", "Accept"]);
            assert_eq!((matched.as_slice(), tx(&mut transaction, "forbidden").as_deref()), (&[1, 2][..], Some("1")));
            assert_eq!(tx(&mut transaction, "0").as_deref(), Some("accept"));
        }
        // So is one in the request that fills the cache.
        let fresh = self::engine(FORBIDDEN);
        assert_eq!(run(&fresh, &["Proxy", "Host"]).1, [1, 2]);
        assert_eq!(run(&fresh, &["Host", "Proxy"]).1, [1, 2]);
    }

    #[test]
    fn another_list_runs_the_chain_again() {
        let engine = engine(&format!(
            "{}\nSecRule REQUEST_HEADERS:X-Strict \"@streq v\" \"id:3,phase:1,pass,nolog,setvar:'tx.list=/host/'\"\n{}",
            FORBIDDEN.split_once('\n').unwrap().1.lines().next().unwrap(),
            FORBIDDEN.lines().skip(2).collect::<Vec<_>>().join("\n"),
        ));
        for _ in 0..2 {
            assert_eq!(run(&engine, &["Host"]).1, [1]);
            assert_eq!(run(&engine, &["Host", "X-Strict"]).1, [1, 3, 2]);
        }
        // A result for one list is not used for the other.
        assert_eq!(run(&engine, &["Proxy", "X-Strict"]).1, [1, 3]);
        assert_eq!(run(&engine, &["Proxy"]).1, [1, 2]);
    }

    #[test]
    fn names_that_other_rules_read_are_always_assigned() {
        let reads = |target: &str| {
            let rule = format!("SecRule {target} \"@streq /host/\" \"id:9,phase:1,pass,log,msg:'%{{tx.list}}'\"");
            let engine = engine(&format!("{FORBIDDEN}\n{rule}"));
            (0..2).map(|_| run(&engine, &["Host"]).1).collect::<Vec<_>>()
        };
        for target in ["TX:/seen_/", "TX:/^SEEN_2_h/", "TX:seen_2_host", "TX"] {
            assert_eq!(reads(target), [[1, 9], [1, 9]], "{target}");
        }
        assert_eq!(reads("TX:/^other_/"), [[1], [1]]);
        // The chain finds names that other rules assign.
        let writes =
            format!("SecAction \"id:4,phase:1,pass,nolog,setvar:'tx.seen_2_%{{request_method}}=/if/'\"\n{FORBIDDEN}");
        let engine = engine(&writes);
        assert_eq!((0..2).map(|_| run(&engine, &["Host"]).1).collect::<Vec<_>>(), [[4, 1, 2], [4, 1, 2]]);
    }

    #[test]
    fn a_target_removed_in_one_transaction_is_not_cached_for_others() {
        let remove =
            "SecRule REQUEST_HEADERS:X-Off \"@streq v\" \"id:5,phase:1,pass,nolog,ctl:ruleRemoveTargetById=2;TX\"";
        let engine = engine(&format!("{remove}\n{FORBIDDEN}"));
        assert_eq!(run(&engine, &["Proxy", "X-Off"]).1, [5, 1]);
        assert_eq!(run(&engine, &["Proxy"]).1, [1, 2]);
    }
}
