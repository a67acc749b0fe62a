//! The table of all lists in force.

use std::sync::Arc;

use feeds::AddressSet;
use tables::{BaseError, SourceBuilder, SourceLabels};

use crate::LISTS;

/// The table of these lists (see [`AddressSet::to_bytes`]), each with its label, and the numbers of sets of labels: those that the table
/// `before` had too are as they were there.
///
/// # Errors
/// Why there is no such table, for people.
pub(super) fn table(lists: &[(String, Arc<[u8]>)], before: &SourceLabels) -> Result<(Vec<u8>, SourceLabels), String> {
    let mut builder = SourceBuilder::default();
    for (label, list) in lists {
        let set = AddressSet::from_bytes(list).map_err(|error| error.to_string())?;
        let source = builder.source(label).map_err(|error| error.to_string())?;
        for (first, last) in set.ranges().chain([(LISTS, LISTS)]) {
            builder.add(source, first, last).map_err(|error| error.to_string())?;
        }
    }
    builder.build_after(before).map_err(|error: BaseError| error.to_string())
}
