//! The speed of the scanners of responses beside `memchr` over the same bytes: `make bench-responses`. It also runs in a VM
//! (wasm32-wasip1), without files.
//!
//! `bench-responses FOLDER...` scans the pages, texts and JSON files in folders instead, and shows what each match is about.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a benchmark"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use response_scan::leakage;
use response_scan::sensitive::{Detector, Scanner};

const LENGTH: usize = 1 << 20;
const ROUNDS: usize = 41;
/// Files of these names are scanned.
const NAMES: [&str; 6] = ["html", "htm", "json", "txt", "xml", "md"];

fn main() {
    let folders: Vec<String> = std::env::args().skip(1).collect();
    if folders.is_empty() { measure() } else { search(&folders) }
}

fn scanners() -> (leakage::Scanner, Scanner) {
    (leakage::Scanner::new(1), Scanner::new(Detector::BUILT_IN.into_iter().collect(), 50, Vec::new()))
}

fn measure() {
    let (leaks, data) = scanners();
    let numbers = Scanner::new(
        [Detector::Card, Detector::Iban, Detector::FrNir, Detector::UsSsn].into_iter().collect(),
        50,
        Vec::new(),
    );
    println!(
        "{:24} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
        "MB/s, 1 MB", "memchr", "leakage", "numbers", "data", "both", "ratio"
    );
    for (name, text) in [("JSON, orders", orders()), ("JSON, texts", texts()), ("page", page()), ("digits", digits())] {
        let memchr = speed(&text, |text| memchr::memchr(0, text).is_some());
        let leakage = speed(&text, |text| leaks.scan(text).is_empty());
        let sensitive = speed(&text, |text| data.scan(text).is_empty());
        let only = speed(&text, |text| numbers.scan(text).is_empty());
        let both = speed(&text, |text| leaks.scan(text).is_empty() && data.scan(text).is_empty());
        println!("{name:24} {memchr:9.0} {leakage:9.0} {only:9.0} {sensitive:9.0} {both:9.0} {:7.3}", both / memchr);
    }
}

/// The median speed in MB/s.
fn speed(text: &[u8], scan: impl Fn(&[u8]) -> bool) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..4 {
                black_box(scan(black_box(text)));
            }
            start.elapsed().as_secs_f64() / 4.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    text.len() as f64 / times[ROUNDS / 2] / 1e6
}

fn repeated(mut piece: impl FnMut(u64) -> String) -> Vec<u8> {
    let mut text = String::new();
    let mut state = 1u64;
    while text.len() < LENGTH {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&piece(state >> 16));
    }
    text.truncate(LENGTH);
    text.into_bytes()
}

fn orders() -> Vec<u8> {
    repeated(|n| {
        format!(
            "{{\"id\":{},\"sku\":\"SKU-{:05}\",\"name\":\"Desk lamp, black\",\"price\":{}.{:02},\"created_at\":\"2024-0{}-1{}T10:{:02}:00Z\",\"tags\":[\"home\",\"light\"],\"in_stock\":true,\"image_url\":\"https://cdn.shop.example/images/{:x}.jpg\"}},",
            n % 100_000,
            n % 70_001,
            n % 900,
            n % 100,
            n % 9 + 1,
            n % 10,
            n % 60,
            n % 0xff_ffff
        )
    })
}

fn texts() -> Vec<u8> {
    repeated(|n| {
        format!(
            "{{\"title\":\"How to choose a lamp\",\"author\":\"team {}\",\"body\":\"A good lamp lights the whole desk and not the eyes. We compare several kinds of lamps, what they cost and how long they last.\"}},\n",
            n % 100
        )
    })
}

fn page() -> Vec<u8> {
    repeated(|n| {
        let mut row = String::new();
        writeln!(
            row,
            "<tr class=\"row\"><td><a href=\"/items/{}\">Item</a></td><td>A short description of it</td></tr>",
            n % 1000
        )
        .unwrap();
        row
    })
}

fn digits() -> Vec<u8> {
    repeated(|n| format!("{n} "))
}

fn search(folders: &[String]) {
    let (leaks, data) = scanners();
    let (mut bytes, mut files) = (0, 0);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut open: Vec<std::path::PathBuf> = folders.iter().map(|folder| Path::new(folder).to_owned()).collect();
    while let Some(path) = open.pop() {
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            continue;
        }
        let named = path.extension().is_some_and(|name| NAMES.iter().any(|known| name == *known));
        let Some(text) = named.then(|| std::fs::read(&path).ok()).flatten() else { continue };
        (bytes, files) = (bytes + text.len(), files + 1);
        for leak in leaks.scan(&text) {
            *counts.entry(format!("leakage:{}:{}", leak.family.name(), leak.rule)).or_default() += 1;
            show(&path, &text, leak.at, leak.rule);
        }
        let found = data.scan(&text);
        for finding in &found {
            *counts.entry(format!("dlp:{}", finding.detector.name())).or_default() += 1;
        }
        if let Some(finding) = found.iter().find(|finding| finding.detector != Detector::EmailBulk) {
            show(&path, &text, finding.start, finding.detector.name());
        }
    }
    println!("{files} files, {:.1} MB: {counts:#?}", bytes as f64 / 1e6);
}

fn show(path: &Path, text: &[u8], at: usize, what: &str) {
    let around = &text[at.saturating_sub(30)..text.len().min(at + 50)];
    println!("{what}\t{}\t{}", path.display(), around.escape_ascii());
}
