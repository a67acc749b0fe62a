use super::super::scanner::Scanner;
use super::*;
use crate::operator::{ByteSet, Prefilter};

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
fn a_long_value_passes_the_prefilters_of_one_with_other_capitals() {
    let prefilter = |literal: &str| Prefilter { literals: vec![literal.as_bytes().to_vec()], ..Prefilter::default() };
    let prefilters = [prefilter("needle"), prefilter("missing")];
    let (mut scanner, numbers) = Scanner::new(prefilters.iter().map(Some));
    let upper = Some(ByteSet::of_bytes(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
    scanner.set_triggers([(&upper, false)].into_iter());
    let [needle, missing] = [numbers[0].unwrap(), numbers[1].unwrap()];
    let text = |needle: &str| [b"hay ".repeat(SHORT), needle.as_bytes().to_vec()].concat();
    let mut arena = Arena::new();
    let (capitals, small, other) = (arena.push(text("NEEDLE")), arena.push(text("needle")), arena.push(text("nadele")));
    arena.passed_prefilters(&scanner, capitals);
    assert!(arena.scanned_ignoring_case(small).is_some() && arena.scanned_ignoring_case(other).is_none());
    arena.passed_prefilters(&scanner, small);
    assert!(!arena.is_rejected(small, needle) && arena.is_rejected(small, missing));
    // What changes a value depends on its capitals.
    assert_eq!((arena.triggers(capitals), arena.triggers(small)), (1, 0));
    // A prefilter that is cleared for one value still passes for the next.
    arena.reject(capitals, needle);
    arena.reject(small, needle);
    let again = arena.push(text("nEEdle"));
    arena.passed_prefilters(&scanner, again);
    assert!(!arena.is_rejected(again, needle));
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
