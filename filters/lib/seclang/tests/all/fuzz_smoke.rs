//! A short run of the fuzz targets (folder `fuzz` of the repository), without a fuzzer: the checked-in seeds, every
//! input that ever crashed one (`tests/crashes/TARGET-*`), and a fixed number of mutations of them.

#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::cast_possible_truncation,
    reason = "shared with the fuzz targets"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

#[path = "../../../../../fuzz/src/bodies/mod.rs"]
mod bodies;

/// How many mutations each target runs: by how long one takes.
fn mutations(target: &str) -> usize {
    match target {
        "transaction" => 300,
        "parser" | "regex" | "snapshot" => 1000,
        _ => 5000,
    }
}

/// No mutation is longer, in bytes.
const LONGEST: usize = 4096;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn crashes() -> Vec<PathBuf> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crashes"))
}

/// The target a crash input belongs to.
fn target_of(crash: &Path) -> String {
    let name = crash.file_name().unwrap().to_string_lossy().into_owned();
    name.split('-').next().unwrap().to_owned()
}

fn run(target: bodies::Target, input: &[u8], what: &str) {
    let (name, body) = target;
    if catch_unwind(AssertUnwindSafe(|| body(input))).is_err() {
        panic!("fuzz target {name}, {what}: b\"{}\"", input.escape_ascii());
    }
}

/// A generator of numbers that is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }

    /// A copy of a seed with one to four changes; what is inserted often comes from another seed.
    fn mutation(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(4) {
            let at = self.below(input.len() + 1);
            match self.below(6) {
                0 if at < input.len() => input[at] = self.below(256) as u8,
                1 if at < input.len() => input[at] ^= 1 << self.below(8),
                2 => input.insert(at, self.below(256) as u8),
                3 => {
                    let end = (at + self.below(16)).min(input.len());
                    input.drain(at..end);
                }
                4 => {
                    let end = (at + self.below(32)).min(input.len());
                    let piece = input[at..end].repeat(1 + self.below(8));
                    input.splice(at..at, piece);
                }
                _ => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.below(other.len() + 1);
                    let to = (from + self.below(64)).min(other.len());
                    input.splice(at..at, other[from..to].iter().copied());
                }
            }
        }
        input.truncate(LONGEST);
        input
    }
}

/// What a compiled rule set looks like: text cannot be checked in for it.
fn stored() -> Vec<Vec<u8>> {
    let sources = [include_str!("../../../../../fuzz/rules.conf"), seclang::ENGINE_CONF];
    let compile =
        |text: &str| seclang::compile(&[seclang::Source::new("seed", text)], &bodies::Files).unwrap().encode();
    sources.iter().map(|text| compile(text)).collect()
}

fn smoke(name: &str) {
    let target = *bodies::TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let mut seeds = if name == "snapshot" { stored() } else { Vec::new() };
    if name != "snapshot" {
        seeds.extend(files(&root().join("fuzz/seeds").join(name)).iter().map(|path| std::fs::read(path).unwrap()));
    }
    for seed in &seeds {
        run(target, seed, "seed");
    }
    for path in crashes().iter().filter(|path| target_of(path) == name) {
        let input = std::fs::read(path).unwrap();
        run(target, &input, &path.display().to_string());
        seeds.push(input);
    }
    let mut random = Random(name.len() as u64);
    for number in 0..mutations(name) {
        let mut input = random.mutation(&seeds);
        // Our own rules: compiling the core rule set takes longer than all the rest, and another test runs exchanges on it.
        if let Some(choice) = input.first_mut().filter(|_| name == "transaction") {
            *choice |= 1;
        }
        run(target, &input, &format!("mutation {number}"));
    }
}

#[test]
fn every_crash_belongs_to_a_target() {
    for path in crashes() {
        let target = target_of(&path);
        assert!(bodies::TARGETS.iter().any(|(name, _)| *name == target), "{}", path.display());
    }
}

macro_rules! targets {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                smoke(stringify!($target));
            }
        )*

        #[test]
        fn no_target_is_left_out() {
            let tested = [$(stringify!($target)),*];
            assert_eq!(tested.len(), bodies::TARGETS.len());
        }
    };
}

targets! { decode json multipart operators parser regex snapshot tables transaction transformations urlencoded xml }
