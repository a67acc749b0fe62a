//! Threat feeds: lists of addresses and ranges that others publish.
//!
//! [`parse`] reads a list in one of its formats; what is no address, and what lies in space that no caller of the Internet has, is
//! counted and left out. [`check`] refuses a list that would do harm as a whole, and [`Churn`] tells one that has nothing to do with
//! the list before. All of it is without I/O: fetching and keeping lists is for its users.

mod addresses;
mod check;
mod encoding;
mod entry;
mod json;
mod misp;
mod text;

use std::fmt;

pub use addresses::AddressSet;
pub use check::{CANARIES, Churn, MAX_V4, MAX_V6_PREFIXES, MIN_FOR_CHURN, check};
pub use encoding::NotASet;
pub use json::{Path, PathError};

use entry::Collector;

/// The format of a list, with what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// An address, a CIDR or `first-last` at the beginning of each line. What follows a space, a comma or a comment (`#`, `;`, `//`)
    /// is not read, nor are lines that begin with `!`.
    CidrLines,
    /// A column of a table.
    Csv {
        /// The column, from 0.
        column: usize,
        /// The byte between columns.
        separator: u8,
        /// Whether the first row is left out.
        skip_header: bool,
    },
    /// A JSON array of texts, or of objects with such a field. One object a line is read as well.
    JsonArray(Option<String>),
    /// The values at a path through a JSON document.
    JsonPath(Path),
    /// The form in which operators of crawlers publish: the texts at `prefixes[].ipv4Prefix` and `prefixes[].ipv6Prefix` of a JSON document.
    Prefixes,
    /// The attributes with addresses of MISP events, in any of its exports; a warning list of CIDRs as well.
    Misp,
}

/// What a list says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Parsed {
    /// How many entries are used.
    pub entries: usize,
    /// How many are not: they are no address, or in space that no caller of the Internet has.
    pub rejected: usize,
    /// The addresses.
    pub addresses: AddressSet,
}

/// Why a list is not used. Nothing of the list is repeated: a feed may lead to an address that those who see the error may not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedError {
    /// No entry of it can be used; how many were rejected.
    Empty(usize),
    /// It has more entries than it may, this many.
    TooMany(usize),
    /// It is no JSON document, or no complete one.
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// Nothing of the document is where the format says.
    Nowhere(String),
    /// It covers an address that many depend on.
    Canary(std::net::IpAddr),
    /// It covers more addresses than any list of hostile ones does.
    Coverage(String),
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty(0) => f.write_str("the list is empty"),
            Self::Empty(rejected) => {
                write!(f, "no entry is an address of the Internet ({rejected} rejected)")
            }
            Self::TooMany(most) => write!(f, "the list has more than {most} entries (max_entries)"),
            Self::Json { line, column } => {
                write!(f, "the list is no complete JSON document: line {line}, column {column}")
            }
            Self::Nowhere(place) => write!(f, "the document has nothing at `{place}`"),
            Self::Canary(address) => {
                write!(
                    f,
                    "the list covers {address}, a public resolver: it is not used, as it would refuse ordinary callers"
                )
            }
            Self::Coverage(how_much) => {
                write!(f, "the list covers {how_much}: it is not used, as it would refuse ordinary callers")
            }
        }
    }
}

impl std::error::Error for FeedError {}

/// Reads a list. Bytes that are no UTF-8 are part of entries that are rejected.
///
/// # Errors
///
/// [`FeedError::Empty`], [`FeedError::TooMany`], [`FeedError::Json`], [`FeedError::Nowhere`]: nothing of the list is used.
pub fn parse(format: &Format, list: &[u8], max_entries: usize) -> Result<Parsed, FeedError> {
    let mut found = Collector::new(max_entries);
    let list = list.strip_prefix(b"\xef\xbb\xbf").unwrap_or(list);
    match format {
        Format::CidrLines => text::lines(list, &mut found)?,
        Format::Csv { column, separator, skip_header } => {
            text::table(list, *column, *separator, *skip_header, &mut found)?;
        }
        Format::JsonArray(field) => json::array(list, field.as_deref(), &mut found)?,
        Format::JsonPath(path) => json::at(list, path, &mut found)?,
        Format::Prefixes => json::prefixes(list, &mut found)?,
        Format::Misp => misp::attributes(list, &mut found)?,
    }
    found.parsed()
}

/// The first and the last address of one entry: an address, a CIDR (bits behind its length are ignored) or `first-last`. IPv4 addresses
/// mapped to IPv6 are those of IPv4. `None` for all else.
#[must_use]
pub fn range(entry: &str) -> Option<(std::net::IpAddr, std::net::IpAddr)> {
    let span = entry::span(entry)?;
    AddressSet::of(&[span]).ranges().next()
}

#[cfg(test)]
mod tests;
