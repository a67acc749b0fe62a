//! What the verification of one signature costs, natively and on wasm32-wasip1 (`make bench-signatures`).

use std::time::Instant;

use ed25519_dalek::{Signer as _, SigningKey};

/// The verifications of a round; the median of the rounds counts.
const VERIFICATIONS: u32 = 200;
const ROUNDS: usize = 9;

fn main() {
    let key = SigningKey::from_bytes(&[7; 32]);
    let public = key.verifying_key().to_bytes();
    // As long as the base of a deployed agent's request.
    let base = vec![b'x'; 500];
    let right = key.sign(&base).to_bytes();
    let mut wrong = right;
    wrong[0] ^= 1;
    for (what, signature, expected) in [("right", right, true), ("wrong", wrong, false)] {
        let mut rounds: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..VERIFICATIONS {
                    assert_eq!(bot_guard::is_signature(&public, std::hint::black_box(&base), &signature), expected);
                }
                start.elapsed().as_secs_f64() * 1e6 / f64::from(VERIFICATIONS)
            })
            .collect();
        rounds.sort_by(f64::total_cmp);
        println!("a {what} signature: {:.0} us (fastest round {:.0} us)", rounds[ROUNDS / 2], rounds[0]);
    }
}
