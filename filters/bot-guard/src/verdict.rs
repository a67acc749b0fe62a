//! Verdicts on crawlers, as they are in the table that the control plane keeps up to date.

use std::net::{IpAddr, Ipv4Addr};

/// The table of verdicts, by [`key`].
pub const TABLE: &str = "bot-guard.verdicts";
/// The table of the addresses that owners of bots publish, labelled with their lists, with commas between them.
pub const RANGES: &str = "bot-guard.ranges";
/// The address whose row has the labels of all lists in force: a bot that has none in [`RANGES`] is an impersonator only if its lists are
/// there, and both arrive at once. No caller has it.
pub const LISTS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// The kind of the reports by which gateways ask for verdicts.
pub const REPORTS: &str = "bot-guard.crawlers";
/// The bytes that stand for a method of verification.
pub const METHOD_BYTES: usize = 8;

/// The result of the verification of a crawler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// It is the bot that it says it is.
    Verified,
    /// It is not.
    Impersonator,
    /// It could not be found out.
    Unverifiable,
}

/// A finding and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrawlerVerdict {
    /// What was found.
    pub finding: Finding,
    /// Until when it holds, in milliseconds since the Unix epoch.
    pub until: u64,
    /// From when on it should be renewed if the crawler is met, in milliseconds since the Unix epoch.
    pub renew: u64,
}

impl CrawlerVerdict {
    /// The value in the table.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let finding = match self.finding {
            Finding::Verified => 1,
            Finding::Impersonator => 2,
            Finding::Unverifiable => 3,
        };
        [&[finding][..], &self.until.to_be_bytes(), &self.renew.to_be_bytes()].concat()
    }

    /// Reads a value of the table; `None` if it is none that this release knows.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<CrawlerVerdict> {
        let (finding, rest) = bytes.split_first()?;
        let finding = match finding {
            1 => Finding::Verified,
            2 => Finding::Impersonator,
            3 => Finding::Unverifiable,
            _ => return None,
        };
        let (until, rest) = rest.split_first_chunk()?;
        let renew = rest.first_chunk()?;
        Some(CrawlerVerdict { finding, until: u64::from_be_bytes(*until), renew: u64::from_be_bytes(*renew) })
    }
}

/// The key of a verdict: the method, and the 4 or 16 bytes of the address.
#[must_use]
pub fn key(method: &[u8], address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(address) => [method, &address.octets()].concat(),
        IpAddr::V6(address) => [method, &address.octets()].concat(),
    }
}

/// The method and the address of a key; `None` if it is none.
#[must_use]
pub fn read_key(key: &[u8]) -> Option<([u8; METHOD_BYTES], IpAddr)> {
    let (method, address) = key.split_first_chunk()?;
    let address = match address.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
    };
    // A mapped address would be a second key of the same caller.
    (address == address.to_canonical()).then_some((*method, address))
}
