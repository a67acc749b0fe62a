//! Ranges of addresses with labels.

mod address;
mod build;
mod diff;
mod index;
mod layout;
mod merge;
mod ops;
mod overlay;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use address::{Address, Span};
pub use build::{RangesBuilder, SourceBuilder, SourceLabels};
use diff::Deltas;
use index::Index;
pub use layout::LabelWidth;
use layout::{BaseRows, Layout, encode};
use merge::Merge;
use ops::Op;
pub use ops::RangeOps;
use overlay::Overlay;

use crate::{BaseError, MAX_OPS, MAX_OVERLAY, Progress, TableError, TableIndex, canonical};

/// The longest name of a label, in bytes.
pub const MAX_LABEL: usize = 1024;

/// How many labels of a table can have names: those below this number.
pub const MAX_LABELS: u32 = 1 << 16;

/// Ranges of IPv4 and IPv6 addresses that do not overlap, each with a label: a country, an autonomous system, the set of feeds
/// that list it.
///
/// A lookup compares the few rows of the base that an index by leading bits leaves, after a binary search in each overlay; nothing is
/// allocated.
#[derive(Debug, Clone)]
pub struct Ranges {
    base: Vec<u8>,
    layout: Layout,
    v4: Family<u32>,
    v6: Family<u128>,
    /// Names that deltas gave, over those of the base.
    names: BTreeMap<u32, Vec<u8>>,
    compaction: Option<Box<Compaction>>,
}

/// What deltas changed in one family, and where the rows of the base are.
#[derive(Debug, Clone)]
struct Family<A: Address> {
    index: Index<A>,
    /// The deltas since the last compaction began.
    overlay: Overlay<A>,
    /// The deltas that are being merged into the next base.
    merging: Overlay<A>,
}

#[derive(Debug, Clone)]
struct Compaction {
    v4: Merge<u32>,
    v6: Merge<u128>,
}

impl<A: Address> Family<A> {
    fn new(base: &BaseRows<'_, A>) -> Self {
        Self { index: base.index(), overlay: Overlay::new(), merging: Overlay::new() }
    }

    #[inline]
    fn find(&self, base: &BaseRows<'_, A>, address: A) -> Option<u32> {
        // Most of the time there is no delta.
        if self.overlay.len() + self.merging.len() > 0
            && let Some(assigned) = self.overlay.find(address).or_else(|| self.merging.find(address))
        {
            return assigned;
        }
        base.find(address, &self.index)
    }
}

impl Ranges {
    /// The label of the range that contains an address. An IPv4 address in IPv6 form is looked up as IPv4, see [`canonical`].
    #[must_use]
    #[inline]
    pub fn find(&self, address: IpAddr) -> Option<u32> {
        match canonical(address) {
            IpAddr::V4(address) => self.v4.find(&self.layout.v4(&self.base), address.into()),
            IpAddr::V6(address) => self.v6.find(&self.layout.v6(&self.base), address.into()),
        }
    }

    /// The name of a label, if it has one.
    #[must_use]
    pub fn name(&self, label: u32) -> Option<&[u8]> {
        let given = self.names.get(&label).map(Vec::as_slice);
        given.or_else(|| self.layout.name(&self.base, label)).filter(|name| !name.is_empty())
    }

    /// The width of the labels, for [`RangeOps`].
    #[must_use]
    pub fn width(&self) -> LabelWidth {
        self.layout.width
    }

    /// The number of rows in the base: IPv4 and IPv6.
    #[must_use]
    pub fn rows(&self) -> (usize, usize) {
        (self.layout.v4(&self.base).len(), self.layout.v6(&self.base).len())
    }

    /// The memory of the base and of the indices of its rows, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.base.len() + self.v4.index.size() + self.v6.index.size()
    }

    /// Begins to merge what the overlay has now.
    fn begin(&mut self) -> Box<Compaction> {
        self.v4.merging = std::mem::replace(&mut self.v4.overlay, Overlay::new());
        self.v6.merging = std::mem::replace(&mut self.v6.overlay, Overlay::new());
        let (v4, v6) = self.rows();
        let width = self.layout.width;
        Box::new(Compaction {
            v4: Merge::new(width, v4 + self.v4.merging.len()),
            v6: Merge::new(width, v6 + self.v6.merging.len()),
        })
    }

    fn finish(&mut self, compaction: Compaction) {
        let known: Vec<&[u8]> = self.layout.names(&self.base).collect();
        let named = self.names.last_key_value().map_or(0, |(label, _)| *label as usize + 1);
        let names = (0..known.len().max(named)).map(|label| {
            let given = u32::try_from(label).ok().and_then(|label| self.names.get(&label));
            given.map(Vec::as_slice).or_else(|| known.get(label).copied()).unwrap_or_default()
        });
        let base = encode(compaction.v4.out, compaction.v6.out, names);
        // It was made here, by the layout; a base beyond the limits is not taken, and the overlay stays.
        let Ok(layout) = Layout::read(&base) else {
            return;
        };
        self.v4.index = layout.v4(&base).index();
        self.v6.index = layout.v6(&base).index();
        self.layout = layout;
        self.base = base;
        self.names.clear();
        self.v4.merging = Overlay::new();
        self.v6.merging = Overlay::new();
    }
}

impl TableIndex for Ranges {
    fn load(base: Vec<u8>) -> Result<Self, BaseError> {
        let layout = Layout::read(&base)?;
        let (v4, v6) = (Family::new(&layout.v4(&base)), Family::new(&layout.v6(&base)));
        Ok(Self { base, layout, v4, v6, names: BTreeMap::new(), compaction: None })
    }

    fn apply(&mut self, ops: &[u8]) -> Result<(), TableError> {
        let mut checked = Vec::new();
        let mut rest = ops;
        let mut room = self.v4.overlay.len() + self.v6.overlay.len() + self.names.len();
        while !rest.is_empty() {
            let (op, left) =
                ops::read(rest, self.layout.width).map_err(|error| TableError::Op(ops.len() - rest.len(), error))?;
            // A range in the middle of another one makes three of it.
            room += if matches!(op, Op::Name(..)) { 1 } else { 2 };
            checked.push(op);
            rest = left;
            if checked.len() > MAX_OPS {
                return Err(TableError::TooLarge);
            }
        }
        if room > MAX_OVERLAY {
            return Err(TableError::OverlayFull);
        }
        for op in checked {
            match op {
                Op::V4(entry) => self.v4.overlay.set(entry),
                Op::V6(entry) => self.v6.overlay.set(entry),
                Op::Name(label, name) => {
                    self.names.insert(label, name.to_vec());
                }
            }
        }
        Ok(())
    }

    fn overlay(&self) -> usize {
        let merging = self.v4.merging.len() + self.v6.merging.len();
        self.v4.overlay.len() + self.v6.overlay.len() + self.names.len() + merging
    }

    fn compact(&mut self, budget: usize) -> Progress {
        let mut compaction = match self.compaction.take() {
            Some(compaction) => compaction,
            None if self.overlay() == 0 => return Progress::Done,
            // The last round made a base beyond the limits: this table needs a new one.
            None if self.v4.merging.len() + self.v6.merging.len() > 0 => return Progress::Done,
            None => self.begin(),
        };
        // A budget of nothing would never end.
        let mut budget = budget.max(1);
        let Compaction { v4, v6 } = &mut *compaction;
        let done = v4.run(&self.layout.v4(&self.base), &self.v4.merging, &mut budget)
            && v6.run(&self.layout.v6(&self.base), &self.v6.merging, &mut budget);
        if done {
            self.finish(*compaction);
            Progress::Done
        } else {
            self.compaction = Some(compaction);
            Progress::More
        }
    }

    fn base(&self) -> &[u8] {
        &self.base
    }

    fn changes(&self) -> Vec<Vec<u8>> {
        let mut deltas = Deltas::new(self.layout.width);
        for (v4, v6) in [(&self.v4.merging, &self.v6.merging), (&self.v4.overlay, &self.v6.overlay)] {
            v4.iter().for_each(|entry| deltas.put(Span::V4(entry.first, entry.last), entry.label));
            v6.iter().for_each(|entry| deltas.put(Span::V6(entry.first, entry.last), entry.label));
        }
        self.names.iter().for_each(|(label, name)| deltas.name(*label, name));
        deltas.finish()
    }

    fn save(&self) -> Vec<u8> {
        let mut copy = self.clone();
        // The first round ends a compaction that has begun, the second one takes the deltas since.
        for _ in 0..2 {
            while copy.compact(usize::MAX) == Progress::More {}
        }
        copy.base
    }
}
