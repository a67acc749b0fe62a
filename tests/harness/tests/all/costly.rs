//! The costliest requests that searches have found stay below a ceiling: instructions of the shipped module, not time.
//! Honest ones leave much of the budget.

use std::path::PathBuf;

use ftw::corpus::Corpus;
use palisade_bench::cost::{Meter, Recipe, seeds};
use palisade_bench::waf::{Native, rules};
use proxy_host::Module;
use seclang::BudgetLimits;

use crate::kit;

/// A size of requests, in bytes of their text, and the most instructions that one may take: 60 ms and 250 ms of a VM, which runs 15 to
/// 20 instructions in a nanosecond of small requests, and 16 to 20 of large ones.
const SMALL: (usize, u64) = (64 << 10, 60_000_000 * 15);
const LARGE: (usize, u64) = (1 << 20, 250_000_000 * 16);
/// The most bytes by which a VM's memory may grow beyond the request's own.
const MEMORY: usize = 40 << 20;

fn crs() -> PathBuf {
    std::env::var_os("PALISADE_CRS_DIR").map_or_else(|| kit::own("../../.cache/crs"), PathBuf::from)
}

/// The recipes of a folder.
fn kept(folder: &str) -> Vec<(String, Recipe)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(kit::own(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let read = |path: &PathBuf| {
        let recipe = serde_json::from_slice(&std::fs::read(path).unwrap());
        let recipe = recipe.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.file_name().unwrap().to_string_lossy().into_owned(), recipe)
    };
    files.iter().map(read).collect()
}

/// All recipes, or one of so many.
fn stay_below(paranoia: u8, (size, most): (usize, u64), one_of: usize) {
    let mut recipes = kept("costly");
    assert!(recipes.len() >= 10);
    recipes.extend(seeds().into_iter().map(|recipe| (format!("{:?}: {}", recipe.place, recipe.what), recipe)));
    recipes = recipes.into_iter().step_by(one_of).collect();
    // What a gateway takes less of anyway is the same at every size.
    recipes.retain(|(_, recipe)| size <= SMALL.0 || recipe.place.limit() >= size);
    let out = tempfile::tempdir().unwrap();
    let snapshot = rules::compile(&crs(), paranoia, out.path()).unwrap().snapshot;
    let module = Module::metered(&kit::filter("waf")).unwrap();
    let mut meter = Meter::new(&module, &snapshot, 2 * most).unwrap();
    let mut over = Vec::new();
    for (name, recipe) in recipes {
        let exchange = recipe.exchange(size);
        let mut cost = meter.run(&exchange);
        if !cost.died && cost.instructions > most {
            // The first one pays for the states of automata that the next one finds.
            cost = meter.run(&exchange);
        }
        if cost.memory > MEMORY + size {
            // All requests so far together have taken as much.
            cost.memory = meter.run_alone(&exchange).unwrap().memory;
        }
        if cost.died || cost.instructions > most || cost.memory > MEMORY + size {
            let (million, mebibytes) = (cost.instructions / 1_000_000, cost.memory >> 20);
            over.push(format!("{name}: {million} million instructions, {mebibytes} MiB, died: {}", cost.died));
        }
    }
    assert!(over.is_empty(), "paranoia level {paranoia}, {size} bytes:\n{}", over.join("\n"));
}

#[test]
fn some_of_the_costliest_small_requests_stay_below_the_ceiling() {
    stay_below(1, SMALL, 9);
    stay_below(4, SMALL, 7);
}

#[test]
fn the_costliest_small_requests_stay_below_the_ceiling_at_paranoia_level_1() {
    stay_below(1, SMALL, 1);
}

#[test]
fn the_costliest_small_requests_stay_below_the_ceiling_at_paranoia_level_4() {
    stay_below(4, SMALL, 1);
}

#[test]
fn the_costliest_large_requests_stay_below_the_ceiling_at_paranoia_level_1() {
    stay_below(1, LARGE, 1);
}

#[test]
fn the_costliest_large_requests_stay_below_the_ceiling_at_paranoia_level_4() {
    stay_below(4, LARGE, 1);
}

/// The engine of the core rule set at a paranoia level.
fn native(paranoia: u8) -> Native<'static> {
    let out = tempfile::tempdir().unwrap();
    Native::load(&rules::compile(&crs(), paranoia, out.path()).unwrap().program, &[]).unwrap()
}

#[test]
fn no_honest_request_of_the_corpus_comes_near_the_ceilings() {
    let corpus = Corpus::read(&kit::own("../corpus/benign")).unwrap();
    for paranoia in [1, 4] {
        let native = native(paranoia);
        for request in &corpus.requests {
            let spent = native.charged(&request.exchange).spent;
            let part = 5;
            assert!(spent.work < spent.work_ceiling / part, "{}: {spent:?}", request.name);
            assert!(spent.memory < spent.memory_ceiling / part, "{}: {spent:?}", request.name);
        }
    }
}

/// Bodies as large as a request may bring by default, of prose and of text full of quotes, parentheses and words of SQL. At
/// level 4 every line of the latter is several matches: much of it is refused one way or the other.
#[test]
fn honest_bodies_of_every_size_leave_much_of_the_budget() {
    for paranoia in [1, 4] {
        let native = native(paranoia);
        for (name, recipe) in kept("honest") {
            let is_odd = name.ends_with("-odd.json");
            for size in [2 << 10, 64 << 10, 256 << 10, 1 << 20] {
                if is_odd && paranoia == 4 && size > 64 << 10 {
                    continue;
                }
                let exchange = recipe.exchange(size);
                let spent = native.charged(&exchange).spent;
                // Without what the response has besides.
                let limits = BudgetLimits::default();
                let of =
                    |fixed: u64, each: u64, used: u64| used * 100 / (fixed + each * exchange.request.body.len() as u64);
                let work = of(limits.work, limits.work_per_byte, spent.work);
                let memory = of(limits.memory, limits.memory_per_byte, spent.memory);
                println!("paranoia {paranoia}, {name}, {size} bytes: {work} % of the work, {memory} % of the memory");
                // A body of a type that no processor reads is read as pairs and as text.
                let (most, most_memory) = match (is_odd, name.starts_with("text-")) {
                    (true, true) => (95, 90),
                    (true, false) => (80, 80),
                    (false, _) => (60, 80),
                };
                assert!(work < most && memory < most_memory, "paranoia {paranoia}, {name}, {size} bytes: {spent:?}");
            }
        }
    }
}
