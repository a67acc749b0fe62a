//! Numbers of each database, for monitoring.

use std::collections::BTreeSet;

use metrics::{counter, gauge};

use super::DatabaseKey;
use super::state::DatabaseState;

/// The most databases that have numbers of their own: a label that was used once stays for as long as the process lives.
const MAX_LABELS: usize = 64;

/// Shows the numbers of databases.
#[derive(Default)]
pub(super) struct DatabaseMetrics {
    known: BTreeSet<DatabaseKey>,
}

impl DatabaseMetrics {
    /// Shows a database; `None` for one that is not used, or gone.
    pub(super) fn show(&mut self, key: &DatabaseKey, state: Option<&DatabaseState>) {
        if !(self.known.contains(key) || state.is_some() && self.takes(key)) {
            return;
        }
        // Whole numbers up to 2^53 are exact.
        #[allow(clippy::cast_precision_loss)]
        let number = |number: u64| number as f64;
        let has = state.filter(|state| state.current.is_some());
        let ranges = has.map_or(0, |state| state.numbers().1);
        gauge!("palisade_databases_ranges", "database" => label(key)).set(number(ranges));
        let fetched = number(has.map_or(0, |state| state.fetched_at)) / 1000.0;
        gauge!("palisade_databases_fetched_timestamp_seconds", "database" => label(key)).set(fetched);
        let failing = state.is_some_and(|state| state.trouble().is_some());
        gauge!("palisade_databases_failing", "database" => label(key)).set(f64::from(u8::from(failing)));
    }

    /// Counts a fetch that failed.
    pub(super) fn failed(&mut self, key: &DatabaseKey) {
        if self.takes(key) {
            counter!("palisade_databases_failures_total", "database" => label(key)).increment(1);
        }
    }

    fn takes(&mut self, key: &DatabaseKey) -> bool {
        self.known.contains(key) || (self.known.len() < MAX_LABELS && self.known.insert(key.clone()))
    }
}

/// A database as its collection and its id.
fn label((kind, id): &DatabaseKey) -> String {
    format!("{}/{id}", kind.collection())
}

#[cfg(test)]
mod tests {
    use super::super::DatabaseKind;
    use super::*;

    #[test]
    fn labels_are_bounded() {
        let mut metrics = DatabaseMetrics::default();
        for number in 0..1_000 {
            for kind in [DatabaseKind::Asn, DatabaseKind::Geo] {
                metrics.show(&(kind, format!("database-{number}")), Some(&DatabaseState::default()));
                metrics.failed(&(kind, format!("database-{number}")));
            }
        }
        assert_eq!(metrics.known.len(), MAX_LABELS);
        let mut unused = DatabaseMetrics::default();
        unused.show(&(DatabaseKind::Asn, "a".to_owned()), None);
        assert!(unused.known.is_empty(), "what is not used has none");
    }
}
