//! What was looked at, for `unevaluatedProperties` and `unevaluatedItems` (JSON Schema 2020-12 core, section 11).

use std::collections::BTreeSet;

/// The properties and items of one value that a schema has looked at.
#[derive(Debug, Default)]
pub(super) struct Evaluated {
    /// Items of the document: values of members, and elements.
    places: BTreeSet<usize>,
    /// All of them.
    all: bool,
}

impl Evaluated {
    /// Notes a member or an element.
    pub(super) fn add(&mut self, place: usize) {
        self.places.insert(place);
    }

    /// Notes all of them.
    pub(super) fn add_all(&mut self) {
        self.all = true;
    }

    /// Whether it was looked at.
    pub(super) fn has(&self, place: usize) -> bool {
        self.all || self.places.contains(&place)
    }

    /// Adds what another schema has looked at.
    pub(super) fn merge(&mut self, other: Self) {
        self.all |= other.all;
        self.places.extend(other.places);
    }
}
