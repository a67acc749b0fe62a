//! `@geoLookup` and `@rbl`: what the node knows of addresses.
//!
//! The engine asks [`Lookups`], which answers at once from tables. What is not known now neither matches nor fails to match: a rule
//! with `!@rbl` must not refuse everyone while a list cannot be asked.

use std::net::IpAddr;
use std::rc::Rc;

use super::arena::Value;
use super::build::Engine;
use super::rules::BuiltOperator;
use super::store::Entry;
use super::transaction::Transaction;
use crate::operator::OperatorKind;
use crate::vocabulary::Country;

/// Units of work for a search in the table of countries.
const PLACE: u64 = 4_000;
/// Units of work for a verdict of a list: a search in a table, and one in the shared data of the node.
const LISTING: u64 = 20_000;

/// What a node knows of addresses, for `@geoLookup` and `@rbl`. It answers at once: a lookup that has to be asked elsewhere is
/// [`Lookup::Unknown`], and its outcome counts in a later transaction.
pub trait Lookups {
    /// Where an address is. [`Lookup::Unknown`] if there is no table of places.
    fn place_of(&self, address: IpAddr) -> Lookup<Place>;

    /// Whether a zone, in lower case without a dot at its end, lists an address. [`Lookup::Unknown`] if the zone is not asked, or
    /// its answer is not known yet. `now_millis` is the time, in milliseconds since 1970.
    fn is_listed(&self, zone: &[u8], address: IpAddr, now_millis: u64) -> Lookup<()>;
}

/// The answer of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup<T> {
    /// It is not known: the operator does not match, negated or not.
    Unknown,
    /// The address is in no table.
    Absent,
    /// The address is there.
    Found(T),
}

/// Where an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The country: two letters in upper case.
    pub country: [u8; 2],
}

impl Engine {
    /// Whether a rule has `@geoLookup` or `@rbl`: only then [`Transaction::set_lookups`] has an effect.
    pub fn uses_lookups(&self) -> bool {
        self.operators.iter().any(|built| built.operator.looks_up())
    }
}

impl Transaction {
    /// Sets what the node knows of addresses. Without it, `@geoLookup` and `@rbl` never match.
    pub fn set_lookups(&mut self, lookups: Rc<dyn Lookups>) {
        self.lookups = Some(lookups);
    }

    /// Runs `@geoLookup` or `@rbl`; `None` if the answer is not known.
    pub(super) fn look_up(&mut self, operator: &BuiltOperator, value: Value) -> Option<bool> {
        let kind = operator.operator.kind();
        self.arena.budget.charge(if kind == OperatorKind::Rbl { LISTING } else { PLACE });
        let lookups = Rc::clone(self.lookups.as_ref()?);
        let bytes = self.arena.get(value);
        let address = std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse::<IpAddr>().ok());
        // What is no address is in no table, as in ModSecurity.
        let Some(address) = address.map(|address| address.to_canonical()) else { return Some(false) };
        if kind == OperatorKind::Rbl {
            return match lookups.is_listed(operator.operator.argument(), address, self.now_millis) {
                Lookup::Unknown => None,
                Lookup::Absent => Some(false),
                Lookup::Found(()) => {
                    self.captures.set(0, bytes);
                    Some(true)
                }
            };
        }
        match lookups.place_of(address) {
            Lookup::Unknown => None,
            Lookup::Absent => Some(false),
            Lookup::Found(place) => {
                // GEO is of the address that was found last.
                if self.place.replace(place) != Some(place) {
                    self.geo.entries.clear();
                }
                Some(true)
            }
        }
    }

    /// Makes the values of GEO before a rule reads them. Not at the lookup: a full value cache releases what a test makes.
    pub(super) fn show_geo(&mut self) {
        if !self.geo.entries.is_empty() {
            return;
        }
        let Some(place) = self.place else { return };
        for (name, text) in place.fields() {
            let (name, value) = (self.arena.push(name), self.arena.push(text));
            self.geo.entries.push(Entry { name, value });
        }
    }
}

impl Place {
    /// The fields of GEO that are known, by name.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let known = Country::of(self.country);
        let fields = [
            ("COUNTRY_CODE", std::str::from_utf8(&self.country).ok()),
            ("COUNTRY_CODE3", known.map(|country| country.code3)),
            ("COUNTRY_NAME", known.map(|country| country.name)),
            ("COUNTRY_CONTINENT", known.map(|country| country.continent)),
        ];
        fields.into_iter().filter_map(|(name, text)| Some((name, text?)))
    }
}

#[cfg(test)]
mod tests;
