//! The time of a lookup in tables of ranges, beside a plain binary search in the same ranges: `make bench-ranges`.
//!
//! `bench-ranges [FILE.csv...]` takes ranges from files whose lines begin with `first,last,number,`, and generates others. It also runs
//! in a VM (wasm32-wasip1), without files.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use tables::{LabelWidth, Ranges, RangesBuilder, TableIndex as _};

/// Different addresses that are looked up, how often in a round, and rounds, of which the median counts.
const ADDRESSES: usize = 1 << 18;
const TIMES: usize = 4;
const ROUNDS: usize = 9;

type Range = (IpAddr, IpAddr, u32);

fn main() {
    println!(
        "{:34} {:>9} {:>7} {:>7} {:>6} {:>9} {:>9}",
        "ranges", "number", "table", "search", "ratio", "bytes", "load"
    );
    for file in std::env::args().skip(1) {
        let ranges: Vec<Range> = std::fs::read_to_string(&file).unwrap().lines().filter_map(range).collect();
        let name = file.rsplit('/').next().unwrap_or_default();
        measure(name, &ranges);
    }
    let mut random = Random(1);
    for count in [10, 16, 17, 30, 100, 1_000, 10_000, 100_000, 400_000, 4_000_000] {
        measure("generated, IPv4", &spread(count, |place| Ipv4Addr::from((place >> 96) as u32).into(), &mut random));
    }
    for count in [10, 16, 17, 30, 100, 1_000, 10_000, 100_000, 1_000_000] {
        let networks = |place: u128| Ipv6Addr::from(0x2000 << 112 | place >> 3).into();
        measure("generated, IPv6", &spread(count, networks, &mut random));
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

fn range(line: &str) -> Option<Range> {
    let mut fields = line.splitn(4, ',');
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Ranges between random places, every other one of which is left out.
fn spread(count: usize, address: impl Fn(u128) -> IpAddr, random: &mut Random) -> Vec<Range> {
    let mut places: Vec<IpAddr> = (0..2 * count).map(|_| address(random.wide())).collect();
    places.sort_unstable();
    places.dedup();
    let (pairs, _) = places.as_chunks::<2>();
    pairs.iter().zip(1..).map(|([first, last], label)| (*first, *last, label)).collect()
}

fn measure(name: &str, ranges: &[Range]) {
    let mut builder = RangesBuilder::new(LabelWidth::Four);
    for (first, last, label) in ranges {
        builder.set(*first, *last, *label).unwrap();
    }
    let base = builder.build().unwrap();
    let began = Instant::now();
    let table = Ranges::load(base).unwrap();
    let load = began.elapsed();
    let is_ipv4 = ranges.first().is_some_and(|range| range.0.is_ipv4());
    // Half of what is looked up is anywhere in the space of the ranges, half is on the list. Numbers take less of the cache than `IpAddr`.
    let mut random = Random(2);
    let mut addresses = (0..ADDRESSES).map(|at| {
        let range = ranges.get(random.next() as usize % ranges.len()).unwrap();
        match (at % 2 == 0, is_ipv4) {
            (true, true) => Ipv4Addr::from(random.next() as u32).into(),
            (true, false) => Ipv6Addr::from(0x2000 << 112 | random.wide() >> 3).into(),
            _ => range.0,
        }
    });
    let (found, expected, [table_time, search_time]) = if is_ipv4 {
        let number = |address| if let IpAddr::V4(address) = address { address.into() } else { 0_u32 };
        let (rows, addresses) = (rows(ranges, number), addresses.by_ref().map(number).collect::<Vec<u32>>());
        time(&addresses, |address| table.find(Ipv4Addr::from(address).into()), |address| search(&rows, address))
    } else {
        let number = |address| if let IpAddr::V6(address) = address { address.into() } else { 0_u128 };
        let (rows, addresses) = (rows(ranges, number), addresses.by_ref().map(number).collect::<Vec<u128>>());
        time(&addresses, |address| table.find(Ipv6Addr::from(address).into()), |address| search(&rows, address))
    };
    assert_eq!(found, expected, "both find the same");
    let (rows, memory) = (table.rows().0 + table.rows().1, table.memory());
    println!(
        "{name:34} {:>9} {table_time:>4.1} ns {search_time:>4.1} ns {:>5.1}x {:>9.1} {:>6.2} ms",
        ranges.len(),
        search_time / table_time,
        memory as f64 / rows as f64,
        load.as_secs_f64() * 1e3,
    );
}

fn rows<A>(ranges: &[Range], number: impl Fn(IpAddr) -> A) -> Vec<(A, A, u32)> {
    ranges.iter().map(|(first, last, label)| (number(*first), number(*last), *label)).collect()
}

/// The peer: one binary search in sorted rows.
fn search<A: Ord + Copy>(rows: &[(A, A, u32)], address: A) -> Option<u32> {
    let at = rows.partition_point(|row| row.0 <= address).checked_sub(1)?;
    rows.get(at).filter(|row| row.1 >= address).map(|row| row.2)
}

/// Sums of what both find, and the nanoseconds of a lookup of each: the medians of rounds in turns.
fn time<A: Copy>(
    addresses: &[A],
    one: impl Fn(A) -> Option<u32>,
    other: impl Fn(A) -> Option<u32>,
) -> (u64, u64, [f64; 2]) {
    let (mut sums, mut times) = ((0, 0), [Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        sums.0 = round(addresses, &one, &mut times[0]);
        sums.1 = round(addresses, &other, &mut times[1]);
    }
    (sums.0, sums.1, times.map(median))
}

fn round<A: Copy>(addresses: &[A], find: impl Fn(A) -> Option<u32>, times: &mut Vec<f64>) -> u64 {
    let began = Instant::now();
    let mut sum = 0;
    for _ in 0..TIMES {
        sum += addresses.iter().map(|address| u64::from(find(black_box(*address)).unwrap_or(1))).sum::<u64>();
    }
    times.push(began.elapsed().as_secs_f64() * 1e9 / (TIMES * addresses.len()) as f64);
    sum
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
