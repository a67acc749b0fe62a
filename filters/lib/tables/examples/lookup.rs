//! What a table of half a million ranges costs: bytes, time to load, lookups, deltas, compaction.
//!
//! ```text
//! cargo run --release -p tables --example lookup [-- ROWS]
//! ```
//!
//! Nine in ten ranges are of IPv4. Lookups are of random addresses, half of them in a range; times are means.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use tables::{KeyOps, Keys, KeysBuilder, LabelWidth, Loading, Progress, RangeOps, Ranges, RangesBuilder, State, Table};

const LOOKUPS: u32 = 2_000_000;

/// What a worker does in one slice of a compaction.
const SLICE: usize = 20_000;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// The n-th of `count` ranges that cover half of the space of the public addresses, evenly.
fn v4(n: u64, count: u64, offset: u64) -> IpAddr {
    Ipv4Addr::from(u32::try_from((n << 32) / count + offset % ((1 << 31) / count)).unwrap()).into()
}

fn v6(n: u64, offset: u64) -> IpAddr {
    Ipv6Addr::from(0x2a00 << 112 | u128::from(n) << 81 | u128::from(offset) << 16).into()
}

fn main() {
    let rows: u64 = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(500_000);
    ranges(rows);
    keys(rows);
}

fn ranges(rows: u64) {
    let (fours, sixes) = (rows - rows / 10, rows / 10);
    let mut builder = RangesBuilder::new(LabelWidth::Two);
    for n in 0..fours {
        builder.set(v4(n, fours, 0), v4(n, fours, (1 << 31) / fours - 1), n as u32 % 200).unwrap();
    }
    for n in 0..sixes {
        builder.set(v6(n, 0), v6(n, u64::MAX), n as u32 % 200).unwrap();
    }
    let (base, time) = timed(|| builder.build().unwrap());
    println!("ranges: {fours} of IPv4, {sixes} of IPv6: {} bytes, built in {time:.1?}", base.len());
    let mut table: Table<Ranges> = load(&base);

    let mut random = Random(7);
    let addresses: Vec<IpAddr> = (0..1 << 16).map(|_| Ipv4Addr::from(random.next() as u32).into()).collect();
    let found = lookups("IPv4", &addresses, |address| table.index().find(*address).is_some());
    println!("  of them in a range: {:.0} %", found * 100.0);
    let sixes: Vec<IpAddr> = (0..1 << 16).map(|_| v6(random.next() % (2 * sixes), random.next())).collect();
    lookups("IPv6", &sixes, |address| table.index().find(*address).is_some());

    let mut applied = Duration::ZERO;
    let mut bytes = 0;
    for _ in 0..400 {
        let mut ops = RangeOps::new(LabelWidth::Two);
        for _ in 0..10 {
            let address = Ipv4Addr::from(random.next() as u32).into();
            ops.set(address, address, 7).unwrap();
        }
        let ops = ops.finish();
        bytes = ops.len();
        let (from, to) = (table.state(), table.state().after(&ops));
        let (result, time) = timed(|| table.delta(&from.0[..8], &to, &ops));
        result.unwrap();
        applied += time;
    }
    println!("  delta of 10 IPv4 addresses: {bytes} bytes, applied in {:.1?}", applied / 400);
    lookups("IPv4 behind 4,000 entries of an overlay", &addresses, |address| table.index().find(*address).is_some());
    compaction(|| table.compact(SLICE));
    lookups("IPv4 after it", &addresses, |address| table.index().find(*address).is_some());
}

fn keys(rows: u64) {
    let key = |n: u64| format!("fingerprint-{:016x}", Random(n).next());
    let mut builder = KeysBuilder::default();
    (0..rows).for_each(|n| builder.put(key(n).as_bytes(), b"deny").unwrap());
    let (base, time) = timed(|| builder.build().unwrap());
    println!("keys: {rows} of 28 bytes with values of 4: {} bytes, built in {time:.1?}", base.len());
    let mut table: Table<Keys> = load(&base);
    let mut random = Random(7);
    let asked: Vec<String> = (0..1 << 16).map(|_| key(random.next() % (2 * rows))).collect();
    lookups("key", &asked, |key| table.index().find(key.as_bytes()).is_some());
    let mut ops = KeyOps::default();
    (0..10).for_each(|n| ops.put(key(rows + n).as_bytes(), b"deny").unwrap());
    let ops = ops.finish();
    let (from, to) = (table.state(), table.state().after(&ops));
    let (result, time) = timed(|| table.delta(&from.0[..8], &to, &ops));
    result.unwrap();
    println!("  delta of 10 keys: {} bytes, applied in {time:.1?}", ops.len());
    compaction(|| table.compact(SLICE));
}

fn load<I: tables::TableIndex>(base: &[u8]) -> Table<I> {
    let mut longest = Duration::ZERO;
    let (table, time) = timed(|| {
        let mut loading = Loading::new(base.len(), State::of_base(base)).unwrap();
        for chunk in base.chunks(1 << 20) {
            longest = longest.max(timed(|| loading.push(chunk).unwrap()).1);
        }
        loading.finish().unwrap()
    });
    println!("  loaded and hashed in {time:.1?}, {longest:.1?} for a chunk of 1 MiB");
    table
}

fn lookups<T>(what: &str, asked: &[T], find: impl Fn(&T) -> bool) -> f64 {
    let mut found = 0_u32;
    let ((), time) = timed(|| {
        for item in asked.iter().cycle().take(LOOKUPS as usize) {
            found += u32::from(black_box(find(black_box(item))));
        }
    });
    println!("  lookup, {what}: {:.0} ns", time.as_nanos() as f64 / f64::from(LOOKUPS));
    f64::from(found) / f64::from(LOOKUPS)
}

fn compaction(mut compact: impl FnMut() -> Progress) {
    let (mut slices, mut longest, mut all) = (0, Duration::ZERO, Duration::ZERO);
    loop {
        let (progress, time) = timed(&mut compact);
        (slices, longest, all) = (slices + 1, longest.max(time), all + time);
        if progress == Progress::Done {
            break;
        }
    }
    println!("  compaction in {all:.1?}: {slices} slices of {SLICE} rows, the longest {longest:.1?}");
}

fn timed<R>(run: impl FnOnce() -> R) -> (R, Duration) {
    let began = Instant::now();
    let result = run();
    (result, began.elapsed())
}
