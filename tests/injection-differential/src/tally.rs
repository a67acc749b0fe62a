//! What was compared, and what differed.

use std::collections::BTreeMap;

/// How many samples of each difference are kept.
const SAMPLES: usize = 12;

/// The counts of one language.
pub struct Tally {
    name: &'static str,
    /// Values compared, and those of them that were given and not made.
    pub values: usize,
    pub payloads: usize,
    /// Readings compared.
    pub readings: usize,
    /// Values that the library takes for injections.
    pub found: usize,
    differences: BTreeMap<&'static str, (usize, Vec<String>)>,
    expected: BTreeMap<&'static str, (usize, Vec<String>)>,
}

impl Tally {
    pub fn new(name: &'static str) -> Self {
        let (differences, expected) = (BTreeMap::new(), BTreeMap::new());
        Self { name, values: 0, payloads: 0, readings: 0, found: 0, differences, expected }
    }

    /// Counts a difference that nothing explains.
    pub fn differs(&mut self, what: &'static str, value: &[u8], detail: impl FnOnce() -> String) {
        let (count, samples) = self.differences.entry(what).or_default();
        *count += 1;
        if samples.len() < SAMPLES && value.len() < 300 {
            samples.push(format!("{} {}", value.escape_ascii(), detail()));
        }
    }

    /// Counts a difference that is wanted.
    pub fn expected(&mut self, what: &'static str, value: &[u8]) {
        let (count, samples) = self.expected.entry(what).or_default();
        *count += 1;
        if samples.len() < 3 && value.len() < 100 {
            samples.push(value.escape_ascii().to_string());
        }
    }

    /// Whether nothing is left to explain.
    pub fn is_clean(&self) -> bool {
        self.differences.is_empty()
    }

    pub fn print(&self) {
        println!(
            "{}: {} values ({} given), {} readings, {} injections to the library",
            self.name, self.values, self.payloads, self.readings, self.found
        );
        for (mark, differences) in [("as intended", &self.expected), ("DIFFERS", &self.differences)] {
            for (what, (count, samples)) in differences {
                println!("  {mark}: {what}: {count}");
                for sample in samples {
                    println!("    {sample}");
                }
            }
        }
        if self.is_clean() {
            println!("  no difference is left to explain");
        }
    }
}
