//! Databases in the MaxMind format: of networks, and of places.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;

use axum::body::Bytes;
use maxminddb::{Reader, WithinOptions};
use serde_json::Value;

use super::networks::{CountryCode, Network, Networks, NetworksReader, Read};
use super::places::{self, Places};
use super::spans::Spans;

/// The most ranges of a database, those without data included.
const MAX_RANGES: usize = 20_000_000;
/// The bytes that all records of a database may unpack to, for each byte of the file: records share parts by pointers, so a small file
/// may have large ones.
const MAX_EXPANSION: usize = 64;
/// The bytes that all records may unpack to in any case.
const ALWAYS: usize = 64 << 20;
const DAMAGED: &str = "the database is damaged";

/// Reads a database of networks.
///
/// # Errors
/// It has more than `max_entries` ranges, or is no such database; for people.
pub(super) fn networks(file: Bytes, max_entries: usize) -> Result<Read<Networks>, String> {
    let (size, reader) = (file.len(), open(file)?);
    let mut networks = NetworksReader::new(max_entries);
    each((&reader, size), network, |first, last, network| match network {
        Some(network) => networks.add(first, last, network.clone()),
        None => {
            networks.reject();
            Ok(())
        }
    })?;
    networks.finish()
}

/// Reads a database of places. The countries of its ranges are read at once, all else when an address is looked up.
///
/// # Errors
/// It is no such database; for people.
pub(super) fn places(file: Bytes) -> Result<Read<Places>, String> {
    let (size, reader) = (file.len(), open(file)?);
    let (mut countries, mut entries, mut rejected) = (Spans::default(), 0_usize, 0_usize);
    let country = |record: &Value| places::country(record).map(CountryCode::label);
    each((&reader, size), country, |first, last, country| {
        match country.is_some_and(|country| countries.add(first, last, *country)) {
            true => entries += 1,
            false => rejected += 1,
        }
        Ok(())
    })?;
    // No ranges of a tree overlap.
    countries.finish();
    if entries == 0 {
        return Err("the database has no country of an address".to_owned());
    }
    Ok(Read { content: Places::new(reader, countries), entries, rejected })
}

/// Opens a database. Its errors repeat nothing of the file.
fn open(file: Bytes) -> Result<Reader<Bytes>, String> {
    let reader = Reader::from_source(file.clone()).map_err(|_| "the answer is no MaxMind database".to_owned())?;
    let (nodes, width) = (reader.metadata().node_count, reader.metadata().record_size);
    if is_tree(&file, nodes, width) { Ok(reader) } else { Err(DAMAGED.to_owned()) }
}

/// Calls `found` with every range that has data, and what `read` makes of its record. Each record is read once. `size` is of
/// the file.
fn each<T>(
    (reader, size): (&Reader<Bytes>, usize),
    read: impl Fn(&Value) -> Option<T>,
    mut found: impl FnMut(IpAddr, IpAddr, Option<&T>) -> Result<(), String>,
) -> Result<(), String> {
    let damaged = |_| DAMAGED.to_owned();
    let mut records: HashMap<usize, Option<T>> = HashMap::new();
    let mut left = size.saturating_mul(MAX_EXPANSION).saturating_add(ALWAYS);
    let all = reader.networks(WithinOptions::default().include_networks_without_data()).map_err(damaged)?;
    for (number, entry) in all.enumerate() {
        if number >= MAX_RANGES {
            return Err(format!("the database has more than {MAX_RANGES} ranges"));
        }
        let entry = entry.map_err(damaged)?;
        let Some(place) = entry.offset() else { continue };
        let network = entry.network().map_err(damaged)?;
        let record = match records.entry(place) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let record: Option<Value> = entry.decode().map_err(damaged)?;
                left = left
                    .checked_sub(record.as_ref().map_or(0, bytes_of))
                    .ok_or("the records of the database are too large")?;
                new.insert(record.as_ref().and_then(&read))
            }
        };
        found(network.network(), network.broadcast(), record.as_ref())?;
    }
    Ok(())
}

/// About how many bytes a record takes.
fn bytes_of(value: &Value) -> usize {
    const EACH: usize = 16;
    EACH + match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + bytes_of(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// The network of a record, under the names that MaxMind, DB-IP and IPinfo use.
fn network(record: &Value) -> Option<Network> {
    let text = |names: &[&str]| names.iter().find_map(|name| record.get(name)?.as_str());
    let number = ["autonomous_system_number", "asn"].iter().find_map(|name| number(record.get(name)?))?;
    let country = text(&["country_code", "country"]).and_then(CountryCode::read);
    let owner = text(&["autonomous_system_organization", "as_name", "name", "organization"]);
    (number > 0).then(|| Network::new(number, country, owner.unwrap_or_default()))
}

/// The number of a network: 64496, or `AS64496`.
pub(super) fn number(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) => u32::try_from(number.as_u64()?).ok(),
        Value::String(text) => text.strip_prefix("AS").unwrap_or(text).parse().ok(),
        _ => None,
    }
}

/// Whether the nodes of a database are a tree, so that all of its ranges are seen in a time that grows with the file alone. One node may
/// have several parents: the one of IPv4, which parts of IPv6 lead to as well.
fn is_tree(file: &[u8], nodes: u32, width: u16) -> bool {
    let Ok(count) = usize::try_from(nodes) else { return false };
    let mut seen = vec![false; count];
    let mut shared = None;
    for node in 0..count {
        let Some(children) = children(file, node, width) else { return false };
        for child in children {
            match seen.get_mut(child) {
                // Data, or none.
                None => {}
                Some(_) if child == 0 => return false,
                Some(seen) if !*seen => *seen = true,
                Some(_) if shared.is_none_or(|shared| shared == child) => shared = Some(child),
                Some(_) => return false,
            }
        }
    }
    true
}

/// The two records of a node; `None` where the file has no such node.
fn children(file: &[u8], node: usize, width: u16) -> Option<[usize; 2]> {
    let length = usize::from(width) / 4;
    let at = node.checked_mul(length)?;
    let bytes = file.get(at..at.checked_add(length)?)?;
    let join = |bytes: &[u8]| bytes.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
    match (width, bytes) {
        (24 | 32, _) => {
            let (left, right) = bytes.split_at_checked(length / 2)?;
            Some([join(left), join(right)])
        }
        (28, [left @ .., middle, a, b, c]) => {
            let middle = usize::from(*middle);
            Some([(middle >> 4) << 24 | join(left), (middle & 15) << 24 | join(&[*a, *b, *c])])
        }
        _ => None,
    }
}
