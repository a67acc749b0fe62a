use super::super::scanner::Scanner;
use super::*;
use crate::operator::{ByteSet, Gate};
#[cfg(target_os = "unknown")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn shares_results() {
    let mut arena = Arena::new();
    let value = arena.push(*b"AbC");
    let lower = arena.transformed(value, Transform::Lowercase);
    assert_eq!(arena.get(lower), b"abc");
    assert_eq!(arena.transformed(value, Transform::Lowercase), lower);
    assert_eq!(arena.transformed(lower, Transform::Lowercase), lower);
    let again = arena.number(5);
    assert_eq!(arena.number(5), again);
}

#[test]
fn a_long_value_has_the_gates_of_one_with_other_capitals() {
    let gate = |literal: &str| Gate { literals: vec![literal.as_bytes().to_vec()], ..Gate::default() };
    let gates = [gate("needle"), gate("missing")];
    let (mut scanner, numbers) = Scanner::new(gates.iter().map(Some));
    let upper = Some(ByteSet::of_bytes(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
    scanner.set_triggers([(&upper, false)].into_iter());
    let [needle, missing] = [numbers[0].unwrap(), numbers[1].unwrap()];
    let text = |needle: &str| [b"hay ".repeat(SHORT), needle.as_bytes().to_vec()].concat();
    let mut arena = Arena::new();
    let (capitals, small, other) = (arena.push(text("NEEDLE")), arena.push(text("needle")), arena.push(text("nadele")));
    arena.open_gates(&scanner, capitals);
    assert!(arena.scanned_alike(small).is_some() && arena.scanned_alike(other).is_none());
    arena.open_gates(&scanner, small);
    assert!(!arena.is_closed(small, needle) && arena.is_closed(small, missing));
    // What changes a value depends on its capitals.
    assert_eq!((arena.triggers(capitals), arena.triggers(small)), (1, 0));
    // A gate that was closed for one value alone is open for the next.
    arena.close(capitals, needle);
    arena.close(small, needle);
    let again = arena.push(text("nEEdle"));
    arena.open_gates(&scanner, again);
    assert!(!arena.is_closed(again, needle));
}

#[test]
fn gives_repeated_values_one_number() {
    let mut arena = Arena::new();
    let (one, other) = (arena.push_once(b"red"), arena.push_once(b"blue"));
    assert_eq!((arena.push_once(b"red"), arena.push_once(b"blue")), (one, other));
    assert_ne!(one, other);
    // Of an earlier transaction only the bytes would count, and they are gone.
    arena.clear();
    assert_eq!(arena.push_once(b""), EMPTY);
    let again = arena.push_once(b"blue");
    assert_eq!(arena.get(again), b"blue");
    let long = [b'x'; REPEATED + 1];
    assert_ne!(arena.push_once(&long), arena.push_once(&long));
}

#[test]
fn does_not_grow_once_full() {
    let mut arena = Arena::new();
    let value = arena.push(vec![b'A'; CACHED_BYTES + 1]);
    let mark = arena.mark();
    let first = arena.transformed(value, Transform::Lowercase);
    assert_eq!(arena.get(first).first(), Some(&b'a'));
    arena.forget_since(mark);
    assert_eq!(arena.mark(), mark);
    let second = arena.transformed(value, Transform::Lowercase);
    assert_eq!(arena.get(second).first(), Some(&b'a'));
}
