//! The one table of all feeds.

use std::sync::Arc;

use feeds::AddressSet;
use tables::SourceBuilder;

/// The bytes of a hash that labels call a feed by. Ids may be longer than labels have room for.
const KEY_BYTES: usize = 6;

/// What labels call a feed by.
pub(crate) fn key(id: &str) -> String {
    let hash = snapshot::content_hash(id.as_bytes());
    hash.iter().take(KEY_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// The table of these lists (see [`AddressSet::to_bytes`]), each with the id of its feed. It may take seconds.
///
/// # Errors
/// Why there is no such table, for people.
pub(crate) fn flatten(lists: &[(String, Arc<[u8]>)]) -> Result<Vec<u8>, String> {
    let mut builder = SourceBuilder::default();
    for (id, list) in lists {
        let set = AddressSet::from_bytes(list).map_err(|error| format!("the threat feed `{id}`: {error}"))?;
        let source = builder.source(&key(id)).map_err(|error| error.to_string())?;
        for (first, last) in set.ranges() {
            builder.add(source, first, last).map_err(|error| error.to_string())?;
        }
    }
    builder.build().map_err(|error| format!("the table of all threat feeds: {error}"))
}
