//! The tables of the IP reputation that several plugins read: countries and networks of addresses, and
//! verdicts of DNS blocklists.
//!
//! The control plane side of the IP reputation fills them. A plugin asks for one by its name while it is built
//! (`exchange::Build::ranges`, `exchange::Build::keys`).

mod blocklist;
mod country;
mod key;

pub use blocklist::{
    AddressAnswer, AddressQuestion, AddressVerdict, BlocklistVerdict, Blocklists, REPORTS, UNKNOWN, VERDICTS,
    address_bytes, is_listable, network, read_address, verdict_key,
};
pub use country::{COUNTRIES, NETWORKS, country_label, label_country};
pub use key::{label_key, zone_key, zone_name};
