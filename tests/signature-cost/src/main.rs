//! What the verification of one signature and a page of the maze cost, natively and on wasm32-wasip1 (`make bench-signatures`).

use std::time::Instant;

use ed25519_dalek::{Signer as _, SigningKey};

/// How often each is done in a round; the median of the rounds counts.
const REPEATED: u32 = 200;
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
        measure(&format!("a {what} signature"), |_| {
            assert_eq!(bot_guard::is_signature(&public, std::hint::black_box(&base), &signature), expected);
        });
    }
    for page_bytes in [1024, 8192, 32_768] {
        let limits = maze::MazeLimits { path: "/archive/".to_owned(), page_bytes, ..Default::default() };
        measure(&format!("a page of {page_bytes} bytes"), |at| {
            let page = maze::generate(&limits, &at.to_le_bytes());
            assert!(page.len() <= std::hint::black_box(page_bytes as usize));
        });
    }
}

/// Prints the median of the rounds, for one run of `once`.
fn measure(what: &str, once: impl Fn(u32)) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..REPEATED).for_each(&once);
            start.elapsed().as_secs_f64() * 1e6 / f64::from(REPEATED)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{what}: {:.1} us (fastest round {:.1} us)", rounds[ROUNDS / 2], rounds[0]);
}
