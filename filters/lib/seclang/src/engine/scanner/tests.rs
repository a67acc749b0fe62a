//! Compares the scanner with the definition of prefilters of every form.

use super::*;
use crate::operator::Prefilter;

std::thread_local! {
    /// How many literals were compared.
    pub(super) static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn open(prefilters: &[Prefilter], value: &[u8]) -> Vec<bool> {
    let (scanner, numbers) = Scanner::new(prefilters.iter().map(Some));
    let mut row = vec![0; scanner.words()];
    scanner.scan(value, &mut row);
    numbers.into_iter().map(|number| is_passed(&row, number.unwrap())).collect()
}

fn of(literals: &[&str]) -> Prefilter {
    Prefilter { literals: literals.iter().map(|literal| literal.as_bytes().to_vec()).collect(), ..Prefilter::default() }
}

#[test]
fn finds_literals_of_every_length() {
    let prefilters = [of(&["select", "union"]), of(&["or"]), of(&["eval", "exe"]), of(&["<", "q"]), of(&["\0\0\0x"])];
    assert_eq!(open(&prefilters, b"x UNION y"), [true, false, false, false, false]);
    assert_eq!(open(&prefilters, b"for"), [false, true, false, false, false]);
    assert_eq!(open(&prefilters, b"Exe"), [false, false, true, false, false]);
    assert_eq!(open(&prefilters, b"Q"), [false, false, false, true, false]);
    assert_eq!(open(&prefilters, b"x"), [false; 5]);
    assert_eq!(open(&prefilters, b"\0\0\0X"), [false, false, false, false, true]);
    assert_eq!(open(&prefilters, b""), [false; 5]);
}

#[test]
fn tests_what_remains() {
    let rest = Prefilter { min_length: 5, sets: vec![ByteSet::of_bytes(b"({")], literals: vec![b"ab".to_vec()] };
    let long = Prefilter { min_length: 3, ..Prefilter::default() };
    assert_eq!(open(&[rest.clone(), long.clone()], b"ab"), [false, false]);
    assert_eq!(open(&[rest.clone(), long.clone()], b"abcde"), [false, true]);
    assert_eq!(open(&[rest, long], b"abcd{"), [true, true]);
}

#[test]
fn a_full_bucket_passes() {
    let prefilters: Vec<Prefilter> = (0..40).map(|at| of(&[&format!("z{at:02}qqqq")])).collect();
    for (at, _) in prefilters.iter().enumerate() {
        assert!(open(&prefilters, format!("--Z{at:02}QQQQ").as_bytes())[at], "{at}");
    }
    let many: Vec<Prefilter> = (0..200).map(|at| of(&[&format!("\u{1}\u{1}{}", char::from(at as u8 / 2))])).collect();
    assert!(open(&many, &[1, 1, 50])[100]);
}

/// Whether a value passes a prefilter, as its definition says.
fn passes(prefilter: &Prefilter, value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let has = |literal: &Vec<u8>| lower.windows(literal.len()).any(|window| window == literal);
    value.len() >= prefilter.min_length as usize
        && (prefilter.literals.is_empty() || prefilter.literals.iter().any(has))
        && prefilter.sets.iter().all(|set| value.iter().any(|byte| set.folded().contains(*byte)))
}

fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

/// Random bytes, most of them few different ones.
fn random(seed: &mut u64, length: usize) -> Vec<u8> {
    let alphabet: &[u8] = match next(seed) % 4 {
        0 => b"abAB",
        1 => b"abc \0/(5U_xX",
        2 => b"aA\x01\x41\x61\x21\xc1\xe1\0 @`",
        _ => b"selctunioSELCTUNIO<'-=",
    };
    (0..length).map(|_| alphabet[next(seed) % alphabet.len()]).collect()
}

#[test]
fn never_closes_what_passes_and_seldom_opens_what_does_not() {
    let mut seed = 11;
    let (mut open, mut closed, mut needless) = (0, 0, 0);
    for round in 0..60 {
        let prefilter = |seed: &mut u64| {
            let literals = if next(seed).is_multiple_of(4) { 0 } else { next(seed) % 5 };
            let literal = |seed: &mut u64| {
                let length = 1 + next(seed) % 12;
                random(seed, length).to_ascii_lowercase()
            };
            let literals = (0..literals).map(|_| literal(seed)).collect();
            let sets = (0..next(seed) % 3).map(|_| ByteSet::of_bytes(&random(seed, 3))).collect();
            let min_length = if next(seed).is_multiple_of(3) { next(seed) % 90 } else { 0 };
            Prefilter { min_length: min_length as u32, literals, sets }
        };
        let prefilters: Vec<Prefilter> =
            (0..if round % 2 == 0 { 30 } else { 400 }).map(|_| prefilter(&mut seed)).collect();
        let (scanner, numbers) = Scanner::new(prefilters.iter().map(Some));
        let mut row = vec![0; scanner.words()];
        for turn in 0..40 {
            let length = match turn {
                0 => LONG + next(&mut seed) % 100,
                1..10 => next(&mut seed) % 300,
                _ => next(&mut seed) % 30,
            };
            let mut value = random(&mut seed, length);
            // Something that is found, at the very end too.
            let literals = prefilters.iter().flat_map(|prefilter| &prefilter.literals);
            value.extend(literals.skip(next(&mut seed) % prefilters.len()).take(turn % 3).flatten());
            scanner.scan(&value, &mut row);
            for (prefilter, number) in prefilters.iter().zip(&numbers) {
                match (is_passed(&row, number.unwrap()), passes(prefilter, &value)) {
                    (false, true) => panic!("{prefilter:?} is closed to {}", value.escape_ascii()),
                    (true, true) => open += 1,
                    (false, false) => closed += 1,
                    (true, false) => needless += 1,
                }
            }
        }
    }
    assert!(open > 10_000 && closed > 10_000, "{open} {closed}");
    assert!(needless < closed / 50, "{needless} of {closed}");
}

#[test]
fn compares_a_few_literals_for_each_byte_at_most() {
    // A value of literals whose first byte alone is wrong: every other place is a marked piece that fits no literal.
    let literals: Vec<Vec<u8>> = (0..4000).map(|at| format!("se{at:04x}ct").into_bytes()).collect();
    let wrong: Vec<u8> = literals.iter().flat_map(|literal| [b"_", &literal[1..]].concat()).collect();
    // And many literals with the same pieces, in a value of nothing else.
    let same = (0..200).map(|at| format!("{at:03}zqzqzqz").into_bytes());
    let prefilters: Vec<Prefilter> = literals
        .into_iter()
        .chain(same)
        .map(|literal| Prefilter { literals: vec![literal], ..Prefilter::default() })
        .collect();
    let (scanner, _) = Scanner::new(prefilters.iter().map(Some));
    let mut row = vec![0; scanner.words()];
    for (length, wrong) in [100, 10_000, 100_000].into_iter().flat_map(|length| [(length, &wrong[..]), (length, b"zq")])
    {
        let value: Vec<u8> = wrong.iter().copied().cycle().take(length).collect();
        COMPARED.set(0);
        scanner.scan(&value, &mut row);
        let compared = COMPARED.get();
        assert!((length / 16..=length * usize::from(table::BUCKET)).contains(&compared), "{compared} in {length}");
    }
}

#[test]
fn a_scan_ends_where_no_more_may_be_looked_at() {
    let prefilter = of(&["abcdefx"]);
    let (scanner, numbers) = Scanner::new([Some(&prefilter)].into_iter());
    for size in [LONG / 8, 10_000] {
        let mut value = b"abcdefy0".repeat(size);
        value.extend_from_slice(b"abcdefx");
        let scan = |allowed| {
            let mut row = vec![0; scanner.words()];
            let (_, steps) = scanner.scan_within(&value, &mut row, allowed);
            (numbers[0].is_some_and(|prefilter| is_passed(&row, prefilter)), steps)
        };
        let (found, all) = scan(usize::MAX);
        assert!(found && all > 10, "{all}");
        let (found, steps) = scan(all / 2);
        assert!(!found && steps > all / 2 && steps < all / 2 + 100, "{steps} of {all}");
    }
}
