//! Chains that come to nothing, found out once for each value that comes again.
//!
//! The CRS looks for forbidden headers by a chain: its first test matches every name of a header and notes it in a name of
//! TX of its own, its second one looks these up in a list. Where nobody else reads or writes such names, nothing but the
//! chain tells that they were there. So a value for which the chain did not match once need not be looked at again, as
//! long as the list is the same: see [`super::familiar`].

use std::sync::OnceLock;

use super::arena::Value;
use super::build::{BuiltOperator, Engine, KeySelector, Link, Macro, MacroPiece, Rule, SetOperation};
use super::collect::selects;
use super::transaction::Transaction;
use crate::program::wire;
use crate::vocabulary::Variable;

/// What is known of a rule whose chain may come to nothing.
pub(super) struct VainChain {
    /// The number of the chain among the tests.
    test: u32,
    /// What the names begin with that its first test notes.
    prefix: Box<[u8]>,
    /// Where else names of TX are selected by a pattern: what one of them selects is not left out.
    readers: Vec<Place>,
    /// The name of TX that the argument of the second test stands for, if it does, and the constant that it held first.
    list: Option<(u32, OnceLock<Value>)>,
}

/// A target: the rule, its link, and the place among the link's targets.
#[derive(Clone, Copy)]
struct Place {
    rule: usize,
    link: usize,
    target: usize,
}

/// Finds such chains; the numbers of their tests begin with `first_test`.
pub(super) fn find(rules: &mut [Rule], operators: &[BuiltOperator], wire: &wire::Program, first_test: u32) {
    let found: Vec<(usize, VainChain)> = rules
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
            Some((at, VainChain { test, prefix: prefix.into(), readers, list }))
        })
        .collect();
    for (at, vain) in found {
        if let Some(rule) = rules.get_mut(at) {
            rule.vain = Some(vain);
        }
    }
}

/// What the names begin with that the first test of a chain notes, if it does nothing else.
fn prefix_of<'r>(rule: &'r Rule, operators: &[BuiltOperator]) -> Option<&'r [u8]> {
    let [first, second] = rule.links.as_slice() else { return None };
    let [set] = first.sets.as_slice() else { return None };
    let [MacroPiece::Text(prefix), MacroPiece::Slot(0)] = set.key.0.as_slice() else { return None };
    let of_capture = |piece: &MacroPiece| matches!(piece, MacroPiece::Text(_) | MacroPiece::Slot(0));
    let notes = set.variable == Variable::Tx
        && set.is_dynamic
        && set.operation == SetOperation::To
        && set.value.0.iter().all(of_capture)
        && prefix.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let plain = first.lasting.is_some()
        && first.capture
        && !first.negated
        && !first.multi_match
        && first.controls.is_empty()
        && !first.targets.iter().any(|target| target.count);
    let steady = |link: &Link| {
        link.operator.and_then(|at| operators.get(at as usize)).is_some_and(|built| !built.operator.is_backtracking())
    };
    (notes && plain && steady(second)).then_some(prefix)
}

/// The name of TX that is the argument of the second test, if it has one that holds macros; `None` if it is more than that.
fn list_of(rule: &Rule, operators: &[BuiltOperator]) -> Option<Option<u32>> {
    let second = rule.links.get(1)?;
    let [target] = second.targets.as_slice() else { return None };
    if target.variable != Variable::Tx || target.count || !second.exclusions.is_empty() {
        return None;
    }
    let operator = second.operator.and_then(|at| operators.get(at as usize))?;
    match operator.argument.as_ref().map(|argument| argument.0.as_slice()) {
        None => Some(None),
        // Captures change with every match.
        Some([MacroPiece::Slot(slot)]) if *slot >= 10 => Some(Some(*slot)),
        Some(_) => None,
    }
}

/// Where names of TX are selected by a pattern, but for the second link of one rule; `None` if anything reads them all.
fn readers(rules: &[Rule], operators: &[BuiltOperator], own: usize) -> Option<Vec<Place>> {
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
                    // A name that rules mention: none of those begins so.
                    KeySelector::Slot(_) => {}
                    KeySelector::Pattern(_) => readers.push(Place { rule: at, link: number, target: position }),
                    _ => return None,
                }
            }
        }
    }
    Some(readers)
}

/// Whether any assignment but that of one rule may be to a name of TX with this beginning.
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

/// Whether a pattern selects the names that begin so, and nothing else.
fn selects_all_of(pattern: &[u8], prefix: &[u8]) -> bool {
    pattern.strip_prefix(b"(?i)").unwrap_or(pattern).strip_prefix(b"^") == Some(prefix)
}

/// Whether two texts differ before either of them ends, whatever their case.
fn differ(one: &[u8], other: &[u8]) -> bool {
    one.iter().zip(other).any(|(one, other)| !one.eq_ignore_ascii_case(other))
}

impl VainChain {
    /// Whether the chain is what it was when values were first found to come to nothing.
    fn holds(&self, transaction: &Transaction, engine: &Engine) -> bool {
        self.list.as_ref().is_none_or(|(slot, first)| {
            let now = transaction.tx.get(*slot).filter(|value| *value as usize <= engine.constants.len());
            now.is_some_and(|now| *first.get_or_init(|| now) == now)
        })
    }
}

impl Transaction {
    /// The chain of a rule, if what is known of it may be used.
    pub(super) fn vain_chain<'e>(&self, engine: &'e Engine, rule: &'e Rule) -> Option<&'e VainChain> {
        rule.vain.as_ref().filter(|vain| vain.holds(self, engine))
    }

    /// Whether a chain is known to come to nothing for a value. Its first test would leave the capture of it behind.
    pub(super) fn is_vain(&mut self, vain: &VainChain, link: &Link, value: Value) -> bool {
        let known = self.arena.fails(value, vain.test);
        if known {
            let captured = self.after(link, value);
            self.tx.set(0, Some(captured));
        }
        known
    }

    /// Whether the first test captured a value as it is after its transformations, and nothing else.
    pub(super) fn captured_whole(&mut self, link: &Link, value: Value) -> bool {
        let after = self.after(link, value);
        let captured = self.tx.get(0).map(|captured| self.arena.get(captured));
        self.captures.len() == 1 && captured == Some(self.arena.get(after))
    }

    fn after(&mut self, link: &Link, value: Value) -> Value {
        link.transforms.iter().fold(value, |value, transform| self.arena.transformed(value, *transform))
    }

    /// The chain came to nothing for all that matched its first test.
    pub(super) fn keep_vain(&mut self, engine: &Engine, vain: &VainChain, first: &Link) {
        for at in 0..self.matched.list.len() {
            let Some(value) = self.matched.list.get(at).map(|matched| matched.item.value) else { continue };
            if self.arena.is_familiar(value) && !self.is_read(engine, vain, first, value) {
                self.arena.keep_failed(value, vain.test);
            }
        }
    }

    /// Whether anything else selects the name of TX that the first test notes for a value.
    fn is_read(&mut self, engine: &Engine, vain: &VainChain, first: &Link, value: Value) -> bool {
        let after = self.after(first, value);
        let name = [&*vain.prefix, self.arena.get(after)].concat();
        vain.readers.iter().any(|place| {
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
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

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
    fn a_chain_that_came_to_nothing_is_not_run_again_for_the_same_name() {
        let engine = engine(FORBIDDEN);
        let (_, matched, first) = run(&engine, &["Host", "Accept"]);
        assert_eq!((matched.as_slice(), first), (&[1][..], 4));
        let (mut transaction, matched, again) = run(&engine, &["Host", "Accept"]);
        assert_eq!((matched.as_slice(), again), (&[1][..], 0));
        assert_eq!(tx(&mut transaction, "0").as_deref(), Some("accept"), "the capture is as if it had run");
        // A name that is forbidden is found beside them, and every time.
        for _ in 0..3 {
            let (mut transaction, matched, _) = run(&engine, &["Host", "Proxy", "Accept"]);
            assert_eq!((matched.as_slice(), tx(&mut transaction, "forbidden").as_deref()), (&[1, 2][..], Some("1")));
            assert_eq!(tx(&mut transaction, "0").as_deref(), Some("accept"));
        }
        // So is one that came together with harmless names before anything was known of them.
        let fresh = self::engine(FORBIDDEN);
        assert_eq!(run(&fresh, &["Proxy", "Host"]).1, [1, 2]);
        assert_eq!(run(&fresh, &["Host", "Proxy"]).1, [1, 2]);
    }

    #[test]
    fn another_list_is_another_matter() {
        let engine = engine(&format!(
            "{}\nSecRule REQUEST_HEADERS:X-Strict \"@streq v\" \"id:3,phase:1,pass,nolog,setvar:'tx.list=/host/'\"\n{}",
            FORBIDDEN.split_once('\n').unwrap().1.lines().next().unwrap(),
            FORBIDDEN.lines().skip(2).collect::<Vec<_>>().join("\n"),
        ));
        for _ in 0..2 {
            assert_eq!(run(&engine, &["Host"]).1, [1]);
            assert_eq!(run(&engine, &["Host", "X-Strict"]).1, [1, 3, 2]);
        }
        // Neither is what holds with one list kept for the other.
        assert_eq!(run(&engine, &["Proxy", "X-Strict"]).1, [1, 3]);
        assert_eq!(run(&engine, &["Proxy"]).1, [1, 2]);
    }

    #[test]
    fn names_that_others_read_are_always_noted() {
        let reads = |target: &str| {
            let rule = format!("SecRule {target} \"@streq /host/\" \"id:9,phase:1,pass,log,msg:'%{{tx.list}}'\"");
            let engine = engine(&format!("{FORBIDDEN}\n{rule}"));
            (0..2).map(|_| run(&engine, &["Host"]).1).collect::<Vec<_>>()
        };
        for target in ["TX:/seen_/", "TX:/^SEEN_2_h/", "TX:seen_2_host", "TX"] {
            assert_eq!(reads(target), [[1, 9], [1, 9]], "{target}");
        }
        assert_eq!(reads("TX:/^other_/"), [[1], [1]]);
        // What others write there is found by the chain.
        let writes =
            format!("SecAction \"id:4,phase:1,pass,nolog,setvar:'tx.seen_2_%{{request_method}}=/if/'\"\n{FORBIDDEN}");
        let engine = engine(&writes);
        assert_eq!((0..2).map(|_| run(&engine, &["Host"]).1).collect::<Vec<_>>(), [[4, 1, 2], [4, 1, 2]]);
    }

    #[test]
    fn what_one_transaction_leaves_out_is_not_left_out_in_others() {
        let remove =
            "SecRule REQUEST_HEADERS:X-Off \"@streq v\" \"id:5,phase:1,pass,nolog,ctl:ruleRemoveTargetById=2;TX\"";
        let engine = engine(&format!("{remove}\n{FORBIDDEN}"));
        assert_eq!(run(&engine, &["Proxy", "X-Off"]).1, [5, 1]);
        assert_eq!(run(&engine, &["Proxy"]).1, [1, 2]);
    }
}
