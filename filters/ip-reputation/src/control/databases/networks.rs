//! Address ranges and the networks (autonomous systems) that they belong to.

use std::collections::HashMap;
use std::net::IpAddr;

use super::places::Place;
use super::spans::Spans;

/// The longest name of an owner that is kept, in bytes.
const MAX_NAME: usize = 256;

/// A network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::control) struct Network {
    /// Its number, not 0.
    pub(in crate::control) number: u32,
    /// The country that it is registered in.
    pub(in crate::control) country: Option<CountryCode>,
    /// The name of its owner; empty if the database has none.
    pub(in crate::control) owner: Box<str>,
}

/// The two letters of a country, in upper case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::control) struct CountryCode([u8; 2]);

/// Which network each address belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::control) struct Networks {
    /// Labelled with places in `all`.
    spans: Spans,
    all: Vec<Network>,
}

/// Networks that are being read.
#[derive(Debug)]
pub(super) struct NetworksReader {
    networks: Networks,
    places: HashMap<Network, u32>,
    /// The ranges of networks so far, and how many there may be.
    entries: usize,
    max_entries: usize,
    rejected: usize,
}

/// What was read of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read<T> {
    pub(super) content: T,
    /// The entries that are used.
    pub(super) entries: usize,
    /// The entries that are not: they are no ranges, or narrower ones count in all of their places.
    pub(super) rejected: usize,
}

// === impl CountryCode ===

impl CountryCode {
    /// The country of two letters in any case; `None` for other text.
    pub(super) fn read(text: &str) -> Option<CountryCode> {
        let letters: [u8; 2] = text.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_alphabetic).then(|| CountryCode(letters.map(|byte| byte.to_ascii_uppercase())))
    }

    /// The label of the country in tables, see [`crate::country_label`].
    pub(super) fn label(self) -> u32 {
        crate::country_label(self.0)
    }

    pub(super) fn of_label(label: u32) -> Option<CountryCode> {
        crate::label_country(label).map(CountryCode)
    }
}

impl std::fmt::Display for CountryCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

// === impl Network ===

impl Network {
    /// A network; an owner's name that is too long is cut.
    pub(super) fn new(number: u32, country: Option<CountryCode>, owner: &str) -> Network {
        let end = owner.floor_char_boundary(MAX_NAME);
        Network { number, country, owner: owner.get(..end).unwrap_or_default().into() }
    }

    /// What is known of the place of its addresses: the country that it is registered in.
    pub(in crate::control) fn place(&self) -> Place {
        Place {
            asn: Some(self.number),
            org: (!self.owner.is_empty()).then(|| self.owner.to_string()),
            country: self.country.map(|country| country.to_string()),
            ..Place::default()
        }
    }
}

// === impl Networks ===

impl Networks {
    /// The network of an address, and the range of the database that has it.
    pub(in crate::control) fn find(&self, address: IpAddr) -> Option<(&Network, IpAddr, IpAddr)> {
        let (place, first, last) = self.spans.find(address)?;
        Some((self.all.get(usize::try_from(place).ok()?)?, first, last))
    }

    /// The number of ranges.
    pub(in crate::control) fn len(&self) -> usize {
        self.spans.len()
    }

    /// All networks.
    pub(super) fn all(&self) -> &[Network] {
        &self.all
    }

    /// All ranges, each with the place of its network in [`Networks::all`].
    pub(super) fn ranges(&self) -> impl Iterator<Item = (IpAddr, IpAddr, usize)> {
        self.spans.iter().filter_map(|(first, last, place)| Some((first, last, usize::try_from(place).ok()?)))
    }
}

// === impl NetworksReader ===

impl NetworksReader {
    pub(super) fn new(max_entries: usize) -> NetworksReader {
        NetworksReader { networks: Networks::default(), places: HashMap::new(), entries: 0, max_entries, rejected: 0 }
    }

    /// Takes the range of a network.
    ///
    /// # Errors
    /// There are more than `max_entries`; for people.
    pub(super) fn add(&mut self, first: IpAddr, last: IpAddr, network: Network) -> Result<(), String> {
        if self.entries >= self.max_entries {
            return Err(format!("the database has more than {} ranges", self.max_entries));
        }
        let Networks { spans, all } = &mut self.networks;
        // At most 10 million entries.
        let next = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let place = *self.places.entry(network).or_insert_with_key(|network| {
            all.push(network.clone());
            next
        });
        match spans.add(first, last, place) {
            true => self.entries += 1,
            false => self.rejected += 1,
        }
        Ok(())
    }

    /// Notes an entry that cannot be used.
    pub(super) fn reject(&mut self) {
        self.rejected += 1;
    }

    /// What was read.
    ///
    /// # Errors
    /// It is no database of networks; for people.
    pub(super) fn finish(mut self) -> Result<Read<Networks>, String> {
        let overlapping = self.networks.spans.finish();
        let (entries, rejected) = (self.entries - overlapping, self.rejected + overlapping);
        if entries == 0 {
            return Err("the answer has no range of a network".to_owned());
        }
        if rejected > entries {
            return Err(format!("{rejected} entries cannot be read and {entries} can: it is no database of networks"));
        }
        Ok(Read { content: self.networks, entries, rejected })
    }
}
