//! Figures that no test depends on.
//!
//! [`mod@waf`] measures the rule engine beside libmodsecurity; [`cost`] searches for the request that costs a worker most; [`callers`]
//! measures what is known of callers in a VM, [`guards`] what the guards of behaviour, uploads and responses cost there.
//! The binaries `palisade-bench-*` print medians and ratios; `palisade-cost-search` is the search.

pub mod callers;
pub mod console;
pub mod cost;
pub mod guards;
pub mod link;
pub mod site;
pub mod waf;
pub mod workers;
