//! Countries and networks of addresses.

/// The table of address ranges, each labelled with its country, see [`country_label`].
pub const COUNTRIES: &str = "ip-reputation.countries";

/// The table of address ranges, each labelled with the number of its network (autonomous system).
pub const NETWORKS: &str = "ip-reputation.networks";

/// The label of a country in [`COUNTRIES`]: its two letters, the first one in the higher byte.
#[must_use]
pub fn country_label(letters: [u8; 2]) -> u32 {
    u32::from(u16::from_be_bytes(letters))
}

/// The country of a label of [`COUNTRIES`].
#[must_use]
pub fn label_country(label: u32) -> Option<[u8; 2]> {
    u16::try_from(label).ok().map(u16::to_be_bytes)
}
