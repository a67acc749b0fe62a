//! Rows of bans: how they are read and counted.

use base::identity::Identity;
use rusqlite::{Connection, Row};

use super::fabric::Ban;

/// What a ban is read of.
pub(super) const BANS: &str = "SELECT ref_key, json, until_millis, hand_until, node FROM ban";

/// Reads a row of [`BANS`].
pub(super) fn ban(row: &Row<'_>) -> rusqlite::Result<Ban> {
    let json: String = row.get(1)?;
    // Evidence that cannot be read does not end a ban.
    let evidence: Ban = serde_json::from_str(&json).unwrap_or_default();
    let (until, hand_until): (u64, u64) = (row.get(2)?, row.get(3)?);
    Ok(Ban { key: row.get(0)?, until, hand_until, by_hand: hand_until > 0, node: row.get(4)?, ..evidence })
}

/// Whether gateways find a ban on it in the list of all ranges, which has a bound of its own.
pub(super) fn is_listed(key: &str) -> bool {
    Identity::parse(key).is_ok_and(|identity| identity.is_range() && !identity.has_own_key())
}

/// What a query counts.
pub(super) fn count(db: &Connection, select: &str) -> rusqlite::Result<u32> {
    db.prepare_cached(select)?.query_row([], |row| row.get(0))
}
