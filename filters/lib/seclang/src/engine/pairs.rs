//! A set of byte pairs that quickly shows that a text is not part of a list.

/// The number of bits for pairs.
const BITS: usize = 1024;

/// The pairs of adjacent bytes of a text; pairs may share a bit.
pub(super) struct Pairs([u64; BITS / 64]);

impl Pairs {
    pub(super) fn of(text: &[u8]) -> Self {
        let mut pairs = Self([0; BITS / 64]);
        for (word, bit) in places(text) {
            if let Some(word) = pairs.0.get_mut(word) {
                *word |= bit;
            }
        }
        pairs
    }

    /// Whether the text may hold another one: each pair of the part is one of the whole.
    pub(super) fn may_hold(&self, part: &[u8]) -> bool {
        places(part).all(|(word, bit)| self.0.get(word).is_some_and(|word| word & bit != 0))
    }
}

/// The word and the bit of each pair.
fn places(text: &[u8]) -> impl Iterator<Item = (usize, u64)> {
    text.iter().zip(text.iter().skip(1)).map(|(one, other)| {
        let place = (usize::from(*one) * 31 + usize::from(*other)) % BITS;
        (place / 64, 1 << (place % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_every_part() {
        let text = b"/content-encoding/ /proxy/ /if/\xff\x00";
        let pairs = Pairs::of(text);
        for from in 0..text.len() {
            assert!((from..=text.len()).all(|to| pairs.may_hold(&text[from..to])), "{from}");
        }
        for (one, other) in (0..=255).flat_map(|one| (0..=255).map(move |other| (one, other))) {
            assert!(Pairs::of(&[b'x', one, other]).may_hold(&[one, other]), "{one} {other}");
        }
        assert!(!pairs.may_hold(b"/host/") && !pairs.may_hold(b"yx"));
        assert!(pairs.may_hold(b"z") && Pairs::of(b"").may_hold(b"") && !Pairs::of(b"").may_hold(b"ab"));
    }
}
