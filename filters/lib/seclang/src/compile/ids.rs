//! Ids and ranges of ids: `942100 942200-942300`.

use crate::program::wire::IdRange;

/// Any number of ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct IdRanges(pub(super) Vec<IdRange>);

impl IdRanges {
    /// Parses ids and ranges separated by white space or commas. The error is the piece that is neither.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let mut ranges = Vec::new();
        let pieces = text.split(|byte| byte.is_ascii_whitespace() || *byte == b',');
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let shown = String::from_utf8_lossy(piece).into_owned();
            let (first, last) = shown.split_once('-').unwrap_or((&shown, &shown));
            match (first.trim().parse(), last.trim().parse()) {
                (Ok(first), Ok(last)) if first <= last => ranges.push(IdRange { first, last }),
                _ => return Err(shown),
            }
        }
        if ranges.is_empty() {
            return Err(String::new());
        }
        Ok(Self(ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ids_and_ranges() {
        let ranges = IdRanges::parse(b"942100, 5-7 9").unwrap();
        let found: Vec<_> = ranges.0.iter().map(|range| (range.first, range.last)).collect();
        assert_eq!(found, [(942_100, 942_100), (5, 7), (9, 9)]);
        assert_eq!(IdRanges::parse(b"7-5"), Err("7-5".to_owned()));
        assert_eq!(IdRanges::parse(b"x"), Err("x".to_owned()));
        assert!(IdRanges::parse(b"").is_err());
    }
}
