//! "Did you mean": the name closest to one that does not exist.

/// The candidate within a third of `name`'s length in edits, without regard to case; the nearest of several.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_ascii_lowercase();
    // A name that long is not a slip of the hand, and comparing it with everything would cost.
    if wanted.len() > 64 {
        return None;
    }
    let limit = (wanted.len() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(wanted.as_bytes(), candidate.to_ascii_lowercase().as_bytes()), candidate))
        .filter(|(edits, _)| *edits <= limit)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (y, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let up = *cell;
            left = (diagonal + usize::from(x != y)).min(left + 1).min(up + 1);
            diagonal = up;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_slip_and_leaves_the_rest() {
        let names = ["REQUEST_HEADERS", "REQUEST_LINE", "ARGS"];
        assert_eq!(nearest("REQUEST_HEADER", names), Some("REQUEST_HEADERS"));
        assert_eq!(nearest("args_", names), Some("ARGS"));
        assert_eq!(nearest("nonsense", names), None);
    }

    #[test]
    fn counts_edits() {
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!(distance(b"", b"abc"), 3);
    }
}
