//! The work itself.

use exchange::MAX_SCORE;
use sha2::{Digest as _, Sha256};
use snapshot::Challenge;

/// The zero bits that are asked of a caller with this score: from the floor at 0 to the ceiling at 100.
#[must_use]
pub fn difficulty(settings: &Challenge, score: f64) -> u32 {
    let span = settings.difficulty_ceiling.saturating_sub(settings.difficulty_floor);
    let share = if score.is_finite() { score.clamp(0.0, MAX_SCORE) } else { MAX_SCORE };
    // A saturating conversion of a number between 0 and the span.
    let more = (f64::from(span) * share / MAX_SCORE) as u32;
    settings.difficulty_floor.saturating_add(more)
}

/// Whether SHA-256 of `challenge:nonce` begins with so many zero bits.
#[must_use]
pub fn solves(challenge: &[u8], nonce: &[u8], difficulty: u32) -> bool {
    let hash = Sha256::new().chain_update(challenge).chain_update(b":").chain_update(nonce).finalize();
    leading_zero_bits(&hash) >= difficulty
}

fn leading_zero_bits(hash: &[u8]) -> u32 {
    let mut bits = 0;
    for byte in hash {
        bits += byte.leading_zeros();
        if *byte != 0 {
            break;
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_over_bytes() {
        assert_eq!(leading_zero_bits(&[0xff]), 0);
        assert_eq!(leading_zero_bits(&[0x01, 0]), 7);
        assert_eq!(leading_zero_bits(&[0, 0x40, 0]), 9);
        assert_eq!(leading_zero_bits(&[0, 0, 0]), 24);
        let nonce = (0_u32..).map(|nonce| nonce.to_string()).find(|nonce| solves(b"a", nonce.as_bytes(), 5)).unwrap();
        let hash = Sha256::digest(format!("a:{nonce}"));
        assert!(hash[0] < 8, "{hash:?}");
        assert!(!solves(b"a", nonce.as_bytes(), 33));
    }

    #[test]
    fn difficulty_grows_with_the_score_from_floor_to_ceiling() {
        let settings = Challenge { difficulty_floor: 18, difficulty_ceiling: 24, ..Challenge::default() };
        let at = |score| difficulty(&settings, score);
        assert_eq!([0.0, 16.0, 17.0, 50.0, 99.0, 100.0].map(at), [18, 18, 19, 21, 23, 24]);
        assert_eq!([-5.0, 500.0, f64::NAN].map(at), [18, 24, 24]);
        let turned = Challenge { difficulty_floor: 20, difficulty_ceiling: 10, ..Challenge::default() };
        assert_eq!(difficulty(&turned, 100.0), 20);
    }
}
