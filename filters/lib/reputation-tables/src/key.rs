//! The short names by which labels and verdicts call what lists an address.

/// The bytes of a hash that labels call a source by. Ids may be longer than labels have room for.
const KEY_BYTES: usize = 6;

/// What labels call a source by: 12 hexadecimal digits of a hash of its id.
#[must_use]
pub fn label_key(id: &str) -> String {
    let hash = snapshot::content_hash(id.as_bytes());
    hash.iter().take(KEY_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// The name of a zone as it is compared: in lower case, without a dot at its end.
#[must_use]
pub fn zone_name(zone: &str) -> String {
    zone.trim_end_matches('.').to_ascii_lowercase()
}

/// What verdicts call a zone of a DNS blocklist by; `codes` are the answers of it that are listings. It is another one where other
/// answers are listings.
#[must_use]
pub fn zone_key(zone: &str, codes: &[String]) -> String {
    let mut codes = codes.to_vec();
    codes.sort_unstable();
    label_key(&format!("dnsbl/{}/{}", zone_name(zone), codes.join(",")))
}
