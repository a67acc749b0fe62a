//! The tables against one comparison for each decoy.

use super::*;
use crate::control::{Canary, CanaryPlace};

/// Numbers that are the same in every run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    /// Text of few letters, so that beginnings are shared.
    fn text(&mut self, letters: &[u8], longest: usize) -> Vec<u8> {
        let length = self.below(longest + 1);
        (0..length).map(|_| letters[self.below(letters.len())]).collect()
    }
}

fn is_decoy(paths: &[String], path: &[u8]) -> bool {
    let readings: Vec<Vec<u8>> = std::iter::once(path.to_vec()).chain(spelling::decoded(path)).collect();
    // A folder that is led up to is one with a slash at its end.
    let is_led_up_to = |path: &&Vec<u8>| {
        let last = path.rsplit(|byte| b"/\\".contains(byte)).next().unwrap();
        last == b".." || last.starts_with(b"..;")
    };
    let folders = readings.iter().filter(is_led_up_to).map(|path| spelling::canonical(path));
    let folders: Vec<Vec<u8>> =
        folders.filter(|path| path != b"/").map(|path| [path.as_slice(), b"/"].concat()).collect();
    let readings: Vec<Vec<u8>> = readings.into_iter().flat_map(|path| [spelling::canonical(&path), path]).collect();
    let pages: Vec<Vec<u8>> =
        readings.iter().step_by(2).filter_map(|path| Some(path.strip_suffix(b"/")?.to_vec())).collect();
    paths.iter().any(|decoy| {
        let decoy = decoy.to_ascii_lowercase();
        // With a slash at its end or without, it is the same.
        let page = decoy.trim_end_matches('/');
        readings.iter().chain(&folders).map(|reading| reading.to_ascii_lowercase()).any(|reading| {
            match decoy.strip_suffix('*') {
                Some(prefix) => reading.starts_with(prefix.as_bytes()),
                None => reading == decoy.as_bytes() || !page.is_empty() && reading == page.as_bytes(),
            }
        }) || (!decoy.ends_with('*')
            && pages.iter().any(|served| {
                served.eq_ignore_ascii_case(decoy.as_bytes())
                    || !page.is_empty() && served.eq_ignore_ascii_case(page.as_bytes())
            }))
    })
}

fn has(text: &[u8], value: &[u8]) -> bool {
    text.windows(value.len()).any(|window| window == value)
}

#[test]
fn paths_are_found_as_by_one_comparison_each() {
    let mut numbers = Numbers(1);
    let (mut decoys, mut others) = (0, 0);
    for _ in 0..300 {
        let count = numbers.below(12);
        let mut paths: Vec<String> = (0..count)
            .map(|_| {
                let end = String::from_utf8(numbers.text(b"aAb/.;-", 6)).unwrap();
                let star = if numbers.below(2) == 0 { "*" } else { "" };
                format!("/{end}{star}")
            })
            .collect();
        paths.retain(|path| path != "/" && path != "/*");
        let chain = chain(policy(&json!({ "paths": paths })));
        for _ in 0..60 {
            let mut path = b"/".to_vec();
            for _ in 0..numbers.below(8) {
                let piece: &[u8] = match numbers.below(8) {
                    0 => b"%61",
                    1 => b"%2f",
                    2 => b"%2561",
                    3 => b"..",
                    4 => b"/",
                    _ => &numbers.text(b"aAb/.;-\\", 3),
                };
                path.extend_from_slice(piece);
            }
            let expected = is_decoy(&paths, &path);
            *(if expected { &mut decoys } else { &mut others }) += 1;
            assert_eq!(caught(&chain, &path), expected, "{} in {paths:?}", path.escape_ascii());
        }
    }
    assert!(decoys > 2_000 && others > 2_000, "{decoys} {others}");
}

#[test]
fn canaries_are_found_as_by_one_search_each() {
    let mut numbers = Numbers(2);
    let (mut found, mut missed) = (0, 0);
    for _ in 0..200 {
        let count = numbers.below(12);
        let canaries: Vec<Canary> = (0..count)
            .map(|_| {
                // Some are longer than what the automaton has of them.
                let mut value = if numbers.below(2) == 0 { b"ab".repeat(15) } else { b"a".to_vec() };
                value.extend(numbers.text(b"ab", 6));
                value.resize(value.len().max(4), b'a');
                let place = [CanaryPlace::Any, CanaryPlace::Header, CanaryPlace::Path, CanaryPlace::Query];
                let place = place[numbers.below(place.len())];
                Canary { value: String::from_utf8(value).unwrap(), description: String::new(), place }
            })
            .collect();
        let chain =
            chain(HoneypotPolicy { paths: Vec::new(), canaries: canaries.clone(), ..HoneypotPolicy::default() });
        for _ in 0..60 {
            let text = |numbers: &mut Numbers| match numbers.below(3) {
                0 => b"ab".repeat(numbers.below(20)),
                1 => [b"ab".repeat(15), numbers.text(b"ab", 6)].concat(),
                _ => numbers.text(b"ab", 12),
            };
            let (path, query, header) = (text(&mut numbers), text(&mut numbers), text(&mut numbers));
            let expected = canaries.iter().any(|canary| {
                let places: &[&[u8]] = match canary.place {
                    CanaryPlace::Any => &[&path, &query, &header],
                    CanaryPlace::Header => &[&header],
                    CanaryPlace::Path => &[&path],
                    CanaryPlace::Query => &[&query],
                };
                places.iter().any(|text| has(text, canary.value.as_bytes()))
            });
            *(if expected { &mut found } else { &mut missed }) += 1;
            let target = [b"/", path.as_slice(), b"?", &query].concat();
            let request = get(&target, &[("x-a", &header)]);
            assert_eq!(!tags(&chain, request).is_empty(), expected, "{canaries:?} {}", target.escape_ascii());
        }
    }
    assert!(found > 1_000 && missed > 1_000, "{found} {missed}");
}
