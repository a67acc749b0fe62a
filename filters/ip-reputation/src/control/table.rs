//! The one table of all feeds.

use std::collections::BTreeMap;
use std::sync::Arc;

use feeds::AddressSet;
pub(crate) use reputation_tables::label_key as key;
use tables::{BaseError, SourceBuilder, SourceLabels};

/// What labels call a bouncer by: never as a feed of the same id.
pub(crate) fn bouncer_key(id: &str) -> String {
    key(&format!("svc-bouncers/{id}"))
}

/// What labels call a class of networks of a database by.
pub(crate) fn class_key(database: &str, class: &str) -> String {
    key(&format!("asn-databases/{database}/{class}"))
}

/// A table, and the feeds that are not in it, each with the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flattened {
    /// The bytes of the table.
    pub(crate) base: Vec<u8>,
    /// The labels of its sets of feeds, which the next table keeps.
    pub(crate) labels: SourceLabels,
    /// Feeds by id, and why.
    pub(crate) left_out: BTreeMap<String, String>,
}

/// The table of these lists (see [`AddressSet::to_bytes`]), each with the id of its feed. It may take seconds. Where they make more than
/// `max_ranges`, or more than a table has room for, the largest lists are left out. Sets of feeds keep their `labels` of the table before.
///
/// # Errors
/// Why there is no such table, for people.
pub(crate) fn flatten(
    lists: &[(String, Arc<[u8]>)],
    max_ranges: usize,
    before: &SourceLabels,
) -> Result<Flattened, String> {
    let (mut sets, mut left_out) = (Vec::new(), BTreeMap::new());
    for (id, list) in lists {
        match AddressSet::from_bytes(list) {
            Ok(set) => sets.push((id, set)),
            Err(error) => drop(left_out.insert(id.clone(), format!("the list is not used: {error}"))),
        }
    }
    loop {
        let ranges: usize = sets.iter().map(|(_, set)| set.len()).sum();
        if ranges <= max_ranges {
            match built(&sets, before) {
                Err(BaseError::TooLarge) => {}
                Ok((base, labels)) => return Ok(Flattened { base, labels, left_out }),
                Err(error) => return Err(format!("the table of all threat feeds: {error}")),
            }
        }
        // Of lists of one length the one whose id comes last: it is the same one each time.
        let largest = (0..sets.len()).max_by_key(|place| sets.get(*place).map(|(_, set)| set.len()));
        let Some(place) = largest else { return Err("the table of all threat feeds cannot be made".to_owned()) };
        let (id, set) = sets.remove(place);
        let why = format!(
            "the list is not used: all lists together make more ranges than gateways keep ({max_ranges}), and this is the longest of \
             them ({})",
            set.len()
        );
        left_out.insert(id.clone(), why);
    }
}

fn built(sets: &[(&String, AddressSet)], before: &SourceLabels) -> Result<(Vec<u8>, SourceLabels), BaseError> {
    let mut builder = SourceBuilder::default();
    for (id, set) in sets {
        // Neither keys of 12 digits nor ranges of a set are refused.
        let Ok(source) = builder.source(&key(id)) else { return Err(BaseError::TooLarge) };
        for (first, last) in set.ranges() {
            builder.add(source, first, last).map_err(|_| BaseError::TooLarge)?;
        }
    }
    builder.build_after(before)
}
