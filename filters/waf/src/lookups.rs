//! What the node knows of addresses, for `@geoLookup` and `@rbl`: the tables that the control plane fills for the IP reputation.
//!
//! A rule never waits. An address without a verdict of DNS blocklists is noted, and asked for once the rules have run: the answer counts
//! from a later request on.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use exchange::{Build, Host, RangesTable, SharedData};
use reputation_tables::{Blocklists, COUNTRIES, VERDICTS, label_country};
use seclang::{Lookup, Lookups, Place, Transaction};

use crate::{WafStep, WafZone};

/// The addresses that are asked for because of one exchange, at most: rules may look up what a caller sends.
const MAX_WANTED: usize = 8;

/// The tables of a step on one worker; only those that its rules use.
pub(crate) struct NodeTables {
    countries: Option<RangesTable>,
    blocklists: Option<Blocklists>,
    zones: Vec<WafZone>,
}

/// The tables in one exchange.
pub(crate) struct NodeLookups {
    tables: Rc<NodeTables>,
    shared: Rc<dyn SharedData>,
    /// Addresses without a verdict, or with one that is due.
    wanted: RefCell<Vec<IpAddr>>,
}

impl NodeTables {
    /// The tables that the rules of a step use; `None` if they use none.
    ///
    /// # Errors
    /// A worker has too many tables.
    pub(crate) fn new(step: &WafStep, build: &Build<'_>) -> Result<Option<Rc<NodeTables>>, String> {
        if !step.places && step.zones.is_empty() {
            return Ok(None);
        }
        let countries = if step.places { Some(build.ranges(COUNTRIES)?) } else { None };
        let blocklists = match step.zones.is_empty() {
            true => None,
            // No request waits.
            false => Some(Blocklists::new(build.keys(VERDICTS)?, 0)),
        };
        Ok(Some(Rc::new(NodeTables { countries, blocklists, zones: step.zones.clone() })))
    }
}

impl NodeLookups {
    pub(crate) fn new(tables: &Rc<NodeTables>, host: &dyn Host) -> NodeLookups {
        NodeLookups { tables: Rc::clone(tables), shared: host.shared_handle(), wanted: RefCell::default() }
    }

    /// Gives them to a transaction of the exchange.
    pub(crate) fn lend(self: &Rc<Self>, transaction: &mut Transaction) {
        transaction.set_lookups(Rc::clone(self) as Rc<dyn Lookups>);
    }

    /// Asks for the verdicts that were missed.
    pub(crate) fn ask(&self, host: &dyn Host) {
        let wanted = self.wanted.take();
        if let Some(blocklists) = &self.tables.blocklists {
            for address in wanted {
                // It is a report: there is nothing to wait for.
                let _ = blocklists.ask(address, host);
            }
        }
    }

    fn want(&self, address: IpAddr) {
        let mut wanted = self.wanted.borrow_mut();
        if wanted.len() < MAX_WANTED && !wanted.contains(&address) {
            wanted.push(address);
        }
    }
}

impl Lookups for NodeLookups {
    fn place_of(&self, address: IpAddr) -> Lookup<Place> {
        let found = self.tables.countries.as_ref().and_then(|table| table.read(|ranges| ranges.find(address)));
        match found {
            None => Lookup::Unknown,
            Some(label) => match label.and_then(label_country) {
                Some(country) => Lookup::Found(Place { country }),
                None => Lookup::Absent,
            },
        }
    }

    fn is_listed(&self, zone: &[u8], address: IpAddr, now_millis: u64) -> Lookup<()> {
        let tables = &self.tables;
        let zone = tables.zones.iter().find(|known| known.name.as_bytes() == zone);
        let (Some(zone), Some(blocklists)) = (zone, &tables.blocklists) else { return Lookup::Unknown };
        let verdict = blocklists.look_up(address, &*self.shared, now_millis);
        if verdict.as_ref().is_none_or(|verdict| verdict.is_due) {
            self.want(address);
        }
        match verdict.and_then(|verdict| verdict.lists(&zone.key)) {
            None => Lookup::Unknown,
            Some(false) => Lookup::Absent,
            Some(true) => Lookup::Found(()),
        }
    }
}
