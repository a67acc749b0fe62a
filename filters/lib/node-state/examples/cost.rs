//! What one update of each type of node state costs, natively, over shared data in memory: means, at the size that a busy
//! table has. A gateway adds its calls: one read and one write of shared data for each update.
//!
//! ```text
//! cargo run --release -p node-state --example cost
//! ```

#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

use std::time::Instant;

use node_state::{Lease, MemorySharedData, Sets, Sketch, Top, Windows};

const UPDATES: u32 = 300_000;

const KEYS: u32 = 20_000;

const NOW: u64 = 1_700_000_000_000;

fn main() {
    let data = &MemorySharedData::default();
    let windows = Windows::new("windows", 60_000, 6, KEYS);
    measure("Windows::add, 20,000 keys of 6 slices", |key, now| {
        windows.add(data, key, 1, now);
    });
    measure("Windows::get", |key, now| {
        let _ = windows.get(data, key, now);
    });
    let sets = Sets::new("sets", 50, 3_600_000, KEYS);
    measure("Sets::insert, 20,000 sets of up to 50 members", |key, now| {
        sets.insert(data, key, &now.to_le_bytes(), now);
    });
    let sketch = Sketch::new("sketch", 4096, 60_000);
    measure("Sketch::add, 4,096 places in a row", |key, now| {
        sketch.add(data, key, 1, now);
    });
    measure("Sketch::get", |key, now| {
        let _ = sketch.get(data, key, now);
    });
    let top = Top::new("top", 20, 60_000);
    measure("Top::offer, 20 ranks", |key, now| {
        top.offer(data, key, 1, now);
    });
    let lease = Lease { name: "lease", millis: 3000 };
    measure("Lease::hold", |_, now| {
        lease.hold(data, 1, now);
    });
}

/// Runs an update again and again, with one of the keys and a time that goes on by one millisecond.
fn measure(what: &str, mut update: impl FnMut(&[u8], u64)) {
    let began = Instant::now();
    for (number, now) in (0..UPDATES).zip(NOW..) {
        update(&(number.wrapping_mul(2_654_435_761) % KEYS).to_le_bytes(), now);
    }
    println!("{what}: {:.0} ns", began.elapsed().as_nanos() as f64 / f64::from(UPDATES));
}
