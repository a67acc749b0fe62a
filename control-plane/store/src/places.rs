//! Where bans come from: so that one place cannot fill the store, and that a run of neighbours is seen.
//!
//! A place is one number: the first 64 bits of an IPv6 address, or an IPv4 address where no IPv6 address that routers carry
//! can be. So every network around it is a range of numbers, and one index finds what is in any of them.

use std::collections::HashSet;
use std::net::IpAddr;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::ban_rows;
use super::fabric::{
    Ban, MAX_BANS_PER_ADDRESS, MAX_BANS_PER_NETWORK, MAX_BANS_PER_REGION, MAX_BANS_UNPLACED, NEIGHBOURS_48,
    NEIGHBOURS_56,
};
use base::identity::{Identity, canonical};

/// A network of IPv6 that is banned as one once enough networks in it are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) network: Identity,
    /// How many of them it takes.
    pub(super) count: usize,
    /// Their width, in bits.
    pub(super) bits: u8,
}

/// The place of bans of which no address is known: in the last network of IPv6, from which no request comes.
const UNPLACED: i64 = i64::MAX;

/// The place that a ban came from, or that it is on.
pub(super) fn of(ban: &Ban) -> i64 {
    address(ban).map_or(UNPLACED, number)
}

fn address(ban: &Ban) -> Option<IpAddr> {
    let known = ban.address.parse::<IpAddr>().ok().map(canonical);
    known.or_else(|| Some(Identity::parse(&ban.key).ok()?.network()?.network()))
}

/// The number of a place, in the order of the addresses.
fn number(address: IpAddr) -> i64 {
    ordered(unsigned(address))
}

/// SQLite's integers have a sign: with its bit turned the order is that of the unsigned number.
fn ordered(number: u64) -> i64 {
    (number ^ (1 << 63)).cast_signed()
}

fn unsigned(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(u32::from(address)) << 16,
        IpAddr::V6(address) => u64::try_from(u128::from(address) >> 64).unwrap_or(u64::MAX),
    }
}

/// The numbers of all places that differ from one in no bit but the last `bits`.
fn within(address: IpAddr, bits: u32) -> (i64, i64) {
    let (number, mask) = (unsigned(address), (1_u64 << bits).wrapping_sub(1));
    (ordered(number & !mask), ordered(number | mask))
}

/// Makes room for a ban not made by hand among those of its place; answers the node of each ban that is gone for it.
pub(super) fn make_room(db: &Connection, ban: &Ban) -> rusqlite::Result<Vec<String>> {
    let mut released = Vec::new();
    let Some(address) = address(ban) else {
        release(db, ban, (UNPLACED, UNPLACED), MAX_BANS_UNPLACED, false, &mut released)?;
        return Ok(released);
    };
    let levels: &[(u32, u32)] = match address {
        // A /24 has 256 addresses, 65,536 places each.
        IpAddr::V4(_) => &[(16, MAX_BANS_PER_ADDRESS), (24, MAX_BANS_PER_NETWORK)],
        IpAddr::V6(_) => &[(0, MAX_BANS_PER_ADDRESS), (16, MAX_BANS_PER_NETWORK), (32, MAX_BANS_PER_REGION)],
    };
    // A node that reports made-up users at an address must not end the ban on that address.
    let mut spares_addresses = !ban.key.starts_with("ip:");
    for (bits, most) in levels {
        release(db, ban, within(address, *bits), *most, spares_addresses, &mut released)?;
        spares_addresses = false;
    }
    Ok(released)
}

/// Releases what is too much among the places `first` to `last` for a further ban.
fn release(
    db: &Connection,
    ban: &Ban,
    (first, last): (i64, i64),
    most: u32,
    spares_addresses: bool,
    released: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let count = "SELECT count(*) FROM ban WHERE hand_until = 0 AND place BETWEEN ?1 AND ?2";
    let held: u32 = db.prepare_cached(count)?.query_row(params![first, last], |row| row.get(0))?;
    let superfluous = (held + 1).saturating_sub(most);
    for _ in 0..superfluous {
        let gone = match spares_addresses
            && release_one(db, ban, (first, last), "substr(ref_key, 1, 3) <> 'ip:'", released)?
        {
            true => true,
            false => release_one(db, ban, (first, last), "1", released)?,
        };
        if !gone {
            break;
        }
    }
    Ok(())
}

/// Of the node that has most bans there, the asking one among equals, releases the one that ends first; false where there is none.
fn release_one(
    db: &Connection,
    ban: &Ban,
    (first, last): (i64, i64),
    which: &str,
    released: &mut Vec<String>,
) -> rusqlite::Result<bool> {
    let of = format!("hand_until = 0 AND place BETWEEN ?1 AND ?2 AND {which}");
    let largest =
        format!("SELECT node FROM ban WHERE {of} GROUP BY node ORDER BY count(*) DESC, node = ?3 DESC LIMIT 1");
    let node: Option<String> =
        db.prepare_cached(&largest)?.query_row(params![first, last, ban.node], |row| row.get(0)).optional()?;
    let Some(node) = node else { return Ok(false) };
    let delete = format!(
        "DELETE FROM ban WHERE rowid IN (SELECT rowid FROM ban WHERE {of} AND node = ?3 ORDER BY until_millis LIMIT 1)"
    );
    let gone = db.prepare_cached(&delete)?.execute(params![first, last, node])? > 0;
    if gone {
        released.push(node);
    }
    Ok(gone)
}

/// The networks around these identities that a run of neighbours is banned as, each once.
pub(super) fn around(keys: &[String]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut seen = HashSet::new();
    for network in keys.iter().filter_map(|key| Identity::parse(key).ok()?.network_v6()) {
        let bits = network.prefix_len();
        for (width, count) in [(56, NEIGHBOURS_56), (48, NEIGHBOURS_48)] {
            let wide = Identity::of_network_v6(network, width).filter(|_| bits > width);
            let Some(wide) = wide.filter(|wide| seen.insert((wide.key(), bits))) else { continue };
            runs.push(Run { network: wide, count: usize::try_from(count).unwrap_or(usize::MAX), bits });
        }
    }
    runs
}

/// The bans not made by hand on the networks of a run.
pub(super) fn neighbours(db: &Connection, run: &Run, now: u64) -> rusqlite::Result<Vec<Ban>> {
    let Some(network) = run.network.network_v6() else { return Ok(Vec::new()) };
    let bits = 64_u32.saturating_sub(u32::from(network.prefix_len()));
    let (first, last) = within(IpAddr::V6(network.network()), bits);
    let select = format!(
        "{} WHERE hand_until = 0 AND place BETWEEN ?1 AND ?2 AND until_millis > ?3 AND substr(ref_key, 1, 3) = 'ip:'
         LIMIT {MAX_BANS_PER_NETWORK}",
        ban_rows::BANS
    );
    let mut found: Vec<Ban> = db
        .prepare_cached(&select)?
        .query_map(params![first, last, now], ban_rows::ban)?
        .collect::<rusqlite::Result<_>>()?;
    let bits = |ban: &Ban| Some(Identity::parse(&ban.key).ok()?.network_v6()?.prefix_len());
    found.retain(|ban| bits(ban) == Some(run.bits));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_the_order_of_addresses_and_networks_are_ranges_of_them() {
        let number = |text: &str| number(text.parse().unwrap());
        let ordered = ["10.0.0.1", "10.0.0.2", "200.0.0.1", "2001:db8::1", "2001:db8:0:1::", "fd00::1"];
        let numbers: Vec<i64> = ordered.iter().map(|text| number(text)).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        assert_eq!(number("2001:db8::1"), number("2001:db8::ffff:1"), "a /64 is one place");
        let (first, last) = within("192.0.2.77".parse().unwrap(), 24);
        assert!(first <= number("192.0.2.0") && number("192.0.2.255") <= last);
        assert!(number("192.0.1.255") < first && last < number("192.0.3.0"));
        let (first, last) = within("2001:db8:1:2::9".parse().unwrap(), 16);
        assert!(first <= number("2001:db8:1::") && number("2001:db8:1:ffff::") <= last);
        assert!(number("2001:db8:0:ffff::") < first && last < number("2001:db8:2::"));
    }

    #[test]
    fn what_is_around_a_network_is_wider_than_it() {
        let runs = |keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
            around(&keys).into_iter().map(|run| (run.network.key(), run.count, run.bits)).collect::<Vec<_>>()
        };
        let both = [("ip:2001:db8:1:200::/56".to_owned(), 8, 64), ("ip:2001:db8:1::/48".to_owned(), 32, 64)];
        assert_eq!(runs(&["ip:2001:db8:1:2ff::/64"]), both);
        assert_eq!(runs(&["ip:2001:db8:1:2ff::/64", "ip:2001:db8:1:201::/64"]), both, "each network once");
        assert_eq!(runs(&["ip:2001:db8:1:200::/56"]), [("ip:2001:db8:1::/48".to_owned(), 32, 56)]);
        assert!(runs(&["ip:2001:db8:1::/48", "ip:192.0.2.1", "user:ada"]).is_empty());
    }
}
