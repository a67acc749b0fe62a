//! The tables of gateways, for tests of rules.

use std::sync::OnceLock;

use exchange::Tables;
use material::{Material, Next};
use reputation_tables::{COUNTRIES, VERDICTS};
use snapshot::TableKind;

/// The deltas of a table that are followed, at most: it may change while it is read.
const MAX_STEPS: usize = 10_000;

/// The tables that gateways have. A test looks up in them, so that it finds what gateways find.
#[derive(Default)]
pub(in crate::control) struct GatewayTables(OnceLock<Material>);

impl GatewayTables {
    /// Takes the tables of the control plane; those of the first call stay.
    pub(in crate::control) fn set(&self, material: &Material) {
        let _ = self.0.set(material.clone());
    }

    /// Fills the tables that a plugin has asked for, as the links of a worker do. A table that is not there yet stays away.
    pub(super) fn fill(&self, tables: &Tables) {
        let Some(material) = self.0.get() else { return };
        for name in tables.names() {
            let kind = match name.as_str() {
                COUNTRIES => TableKind::Ranges,
                VERDICTS => TableKind::Keys,
                _ => continue,
            };
            let mut state = None;
            for _ in 0..MAX_STEPS {
                state = match material.next(&name, kind, state) {
                    None => break,
                    Some(Next::Base(published)) => {
                        published.chunks(&name).for_each(|chunk| drop(tables.take(&chunk)));
                        Some(published.base_state())
                    }
                    Some(Next::Change(change, after)) => {
                        tables.take(&change);
                        Some(after)
                    }
                };
            }
        }
    }
}
