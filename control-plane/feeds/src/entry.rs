//! One entry of a list, and what is made of all of them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use tables::canonical;

use super::addresses::{AddressSet, Span};
use super::{FeedError, Parsed};

/// Space that no caller of the Internet has, by the IANA registries of special-purpose addresses. Not among it is space for
/// documentation: it does no harm, and examples use it.
static RESERVED: LazyLock<AddressSet> = LazyLock::new(|| {
    let networks = [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/3",
        "4000::/2",
        "8000::/1",
    ];
    AddressSet::of(&networks.iter().filter_map(|network| span(network)).collect::<Vec<_>>())
});

/// Takes the entries of a list.
pub(crate) struct Collector {
    max_entries: usize,
    spans: Vec<Span>,
    rejected: usize,
}

impl Collector {
    pub(crate) fn new(max_entries: usize) -> Collector {
        Collector { max_entries, spans: Vec::new(), rejected: 0 }
    }

    /// Takes an entry as it stands in the list.
    pub(crate) fn take(&mut self, entry: &str) -> Result<(), FeedError> {
        // Rejected ones count as well: a list of any length is no reason to read on.
        if self.spans.len() + self.rejected >= self.max_entries {
            return Err(FeedError::TooMany(self.max_entries));
        }
        match span(entry).filter(|span| !RESERVED.covers(*span)) {
            Some(span) => self.spans.push(span),
            None => self.rejected += 1,
        }
        Ok(())
    }

    pub(crate) fn parsed(self) -> Result<Parsed, FeedError> {
        if self.spans.is_empty() {
            return Err(FeedError::Empty(self.rejected));
        }
        let addresses = AddressSet::of(&self.spans).without(&RESERVED);
        Ok(Parsed { entries: self.spans.len(), rejected: self.rejected, addresses })
    }
}

/// An address, a CIDR (with its length or its mask; bits behind it are ignored) or `first-last`.
pub(crate) fn span(entry: &str) -> Option<Span> {
    let entry = entry.trim();
    if let Some((address, length)) = entry.split_once('/') {
        let address: IpAddr = address.trim_end().parse().ok()?;
        let length = length.trim_start();
        let bits = match length.bytes().all(|digit| digit.is_ascii_digit()) {
            true => length.parse::<u32>().ok()?,
            false => mask(length.parse().ok()?)?,
        };
        return match (address, canonical(address)) {
            // Who lists the prefix of translators as a whole means the prefix, and not all of IPv4.
            (IpAddr::V6(six), IpAddr::V4(_)) if bits <= 96 && six.to_ipv4_mapped().is_none() => {
                Span::network(address, bits)
            }
            // The last 32 bits are those of IPv4.
            (IpAddr::V6(_), four @ IpAddr::V4(_)) => Span::network(four, bits.checked_sub(96)?),
            (address, _) => Span::network(address, bits),
        };
    }
    let address = |text: &str| Some(canonical(text.trim().parse().ok()?));
    match entry.split_once('-') {
        Some((first, last)) => match (address(first)?, address(last)?) {
            (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::BROADCAST)) if first.contains(':') => None,
            (first, last) => Span::between(first, last),
        },
        None => address(entry).and_then(|address| Span::between(address, address)),
    }
}

/// The length that a mask stands for.
fn mask(mask: Ipv4Addr) -> Option<u32> {
    let bits = u32::from(mask);
    (bits.leading_ones() + bits.trailing_zeros() >= 32).then(|| bits.leading_ones())
}
