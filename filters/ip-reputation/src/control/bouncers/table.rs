//! The tables of the decisions of all bouncers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use tables::{BaseError, KeysBuilder, MAX_ROWS, SourceBuilder, SourceLabels};

use super::super::table::bouncer_key;
use super::super::{DecisionScope, MAX_BOUNCERS};
use super::decisions::{Decisions, Key, Kind, Subject};
use crate::MILD;

/// The most addresses of IPv4 that the decisions of one service may cover together: a tenth of all, as of a list.
const MAX_V4: u64 = feeds::MAX_V4;
/// Of IPv6, in networks /32.
const MAX_V6: u64 = feeds::MAX_V6_PREFIXES;

/// A range of addresses with a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) struct Row {
    pub(crate) first: IpAddr,
    pub(crate) last: IpAddr,
    /// A ban; any other decision is milder.
    pub(crate) ban: bool,
}

/// The countries (`country:cn`) and networks (`as:64496`) with decisions of a bouncer, and whether each is a ban.
pub(in crate::control) type NamedRows = BTreeMap<String, bool>;

/// The tables, and what belongs to them.
#[derive(Debug, Default)]
pub(super) struct Flattened {
    /// Ranges of addresses, as gateways get them.
    pub(super) ranges: Vec<u8>,
    /// Countries and networks.
    pub(super) named: Vec<u8>,
    /// The rows of each bouncer, by its id.
    pub(super) rows: BTreeMap<String, Arc<Vec<Row>>>,
    /// The countries and networks of each bouncer, by its id.
    pub(super) named_rows: BTreeMap<String, Arc<NamedRows>>,
    /// The bouncers that are not in the tables, and why.
    pub(super) left_out: BTreeMap<String, String>,
    /// The labels of `ranges`, which the next table keeps.
    pub(super) labels: SourceLabels,
}

/// What labels call a bouncer by, for a decision of a kind.
fn label(id: &str, ban: bool) -> String {
    if ban { bouncer_key(id) } else { format!("{}{MILD}", bouncer_key(id)) }
}

/// The tables of the decisions of bouncers, by their ids. Labels keep their numbers from one table to the next. It may take a second.
///
/// # Errors
/// Why there are none, for people.
pub(super) fn flatten(all: &[(String, Arc<Decisions>)], before: &SourceLabels) -> Result<Flattened, String> {
    let mut made = Flattened::default();
    let mut sources: Vec<(&str, Arc<Vec<Row>>)> = Vec::new();
    for (id, decisions) in all.iter().take(MAX_BOUNCERS) {
        let rows: Vec<Row> = decisions.keys().filter_map(row).collect();
        if let Some(why) = too_much(&rows) {
            made.left_out.insert(id.clone(), why);
            continue;
        }
        let rows = Arc::new(rows);
        made.rows.insert(id.clone(), Arc::clone(&rows));
        sources.push((id, rows));
    }
    loop {
        let count: usize = sources.iter().map(|(_, rows)| rows.len()).sum();
        match ranges(&sources, before) {
            Ok((base, labels)) if count <= MAX_ROWS => {
                (made.ranges, made.labels) = (base, labels);
                break;
            }
            Ok(_) | Err(BaseError::TooLarge) => {}
            Err(error) => return Err(format!("the table of all decisions: {error}")),
        }
        let largest = (0..sources.len()).max_by_key(|place| sources.get(*place).map(|(_, rows)| rows.len()));
        let Some(place) = largest else { return Err("the table of all decisions cannot be made".to_owned()) };
        let (id, _) = sources.remove(place);
        let why = format!("its decisions are not used: all together make more ranges than gateways keep ({MAX_ROWS})");
        made.left_out.insert(id.to_owned(), why);
    }
    made.rows.retain(|id, _| !made.left_out.contains_key(id));
    let in_tables = all.iter().filter(|(id, _)| !made.left_out.contains_key(id)).take(MAX_BOUNCERS);
    made.named_rows = in_tables.map(|(id, decisions)| (id.clone(), Arc::new(named_rows(decisions)))).collect();
    made.named = named(&made.named_rows)
        .map_err(|error| format!("the table of decisions on countries and networks: {error}"))?;
    Ok(made)
}

fn row(key: &Key) -> Option<Row> {
    match key.subject {
        Subject::Range(first, last) => Some(Row { first, last, ban: key.kind == Kind::Ban }),
        Subject::Named(_) => None,
    }
}

/// Why decisions are not used although each may be.
fn too_much(rows: &[Row]) -> Option<String> {
    let (mut v4, mut v6) = (0_u64, 0_u128);
    // Of ranges within others, both count: more than one decision on so much is as odd.
    for Row { first, last, .. } in rows {
        match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                v4 = v4.saturating_add(u64::from(u32::from(*last) - u32::from(*first)) + 1);
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => {
                v6 = v6.saturating_add((u128::from(*last) - u128::from(*first)) >> 64);
            }
            _ => {}
        }
    }
    let covers = if v4 > MAX_V4 {
        format!("{v4} addresses of IPv4")
    } else if v6 >> 32 > u128::from(MAX_V6) {
        format!("{} networks /32 of IPv6", v6 >> 32)
    } else {
        return None;
    };
    Some(format!("its decisions cover {covers}: they are not used, as they would refuse ordinary callers"))
}

fn ranges(sources: &[(&str, Arc<Vec<Row>>)], before: &SourceLabels) -> Result<(Vec<u8>, SourceLabels), BaseError> {
    let mut builder = SourceBuilder::default();
    for (id, rows) in sources {
        let mut number = |ban| builder.source(&label(id, ban)).map_err(|_| BaseError::TooLarge);
        let (ban, mild) = (number(true)?, number(false)?);
        for row in rows.iter() {
            builder.add(if row.ban { ban } else { mild }, row.first, row.last).map_err(|_| BaseError::TooLarge)?;
        }
    }
    builder.build_after(before)
}

/// The countries and networks with decisions. A ban counts before what is milder.
fn named_rows(decisions: &Decisions) -> NamedRows {
    let mut rows = NamedRows::new();
    for Key { scope, subject, kind } in decisions.keys() {
        let Subject::Named(name) = subject else { continue };
        let scope = if *scope == DecisionScope::As { "as" } else { "country" };
        *rows.entry(format!("{scope}:{name}")).or_default() |= *kind == Kind::Ban;
    }
    rows
}

/// Countries and networks, each with the keys of its bouncers.
fn named(all: &BTreeMap<String, Arc<NamedRows>>) -> Result<Vec<u8>, BaseError> {
    let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (id, rows) in all {
        for (name, ban) in rows.iter() {
            found.entry(name).or_default().insert(label(id, *ban));
        }
    }
    let mut builder = KeysBuilder::default();
    for (name, labels) in found {
        let labels: Vec<String> = labels.into_iter().collect();
        builder.put(name.as_bytes(), labels.join(",").as_bytes()).map_err(|_| BaseError::TooLarge)?;
    }
    builder.build()
}
