//! The tables that gateways get of databases.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use tables::{BaseError, LabelWidth, RangesBuilder, SourceBuilder, SourceLabels};

use super::networks::Networks;
use super::places::Places;
use crate::control::table::class_key;

/// A database of networks, and the classes of its networks.
pub(super) struct Classified {
    pub(super) id: String,
    pub(super) networks: Arc<Networks>,
    /// The class of each network, in the order of [`Networks::all`].
    pub(super) classes: Vec<Option<usize>>,
    /// The names of the classes.
    pub(super) names: Vec<String>,
}

/// A table, and the databases that are not in it, each with the reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) base: Vec<u8>,
    /// Databases by id.
    pub(super) left_out: BTreeMap<String, String>,
}

/// Ranges of addresses, labelled with the numbers of their networks. Where databases disagree, the first counts.
///
/// # Errors
/// Why there is no such table, for people.
pub(super) fn numbers(all: &[(String, Arc<Networks>)]) -> Result<Made, String> {
    fitting(
        all,
        "networks",
        |networks| networks.len(),
        |databases| {
            labelled(LabelWidth::Four, databases, |networks| {
                networks
                    .ranges()
                    .filter_map(|(first, last, place)| Some((first, last, networks.all().get(place)?.number)))
            })
        },
    )
}

/// Ranges of addresses, labelled with their countries, see [`crate::country_label`]. Where databases disagree, the first counts.
///
/// # Errors
/// Why there is no such table, for people.
pub(super) fn countries(all: &[(String, Arc<Places>)]) -> Result<Made, String> {
    fitting(
        all,
        "countries",
        |places| places.countries().len(),
        |databases| labelled(LabelWidth::Two, databases, |places| places.countries().iter()),
    )
}

/// Ranges of addresses, labelled with the keys of the classes that databases have them in, and the labels of these: those that the table
/// before had too are as they were there.
///
/// # Errors
/// Why there is no such table, for people.
pub(super) fn classes(all: &[Classified], before: &SourceLabels) -> Result<(Vec<u8>, SourceLabels), String> {
    let failed = |error: BaseError| format!("the table of classes of networks: {error}");
    let mut builder = SourceBuilder::default();
    for database in all {
        let mut sources = Vec::with_capacity(database.names.len());
        for name in &database.names {
            // Keys of 12 digits are not refused.
            let source = builder.source(&class_key(&database.id, name));
            sources.push(source.map_err(|_| failed(BaseError::TooLarge))?);
        }
        for (first, last, place) in database.networks.ranges() {
            let class = database.classes.get(place).copied().flatten();
            if let Some(source) = class.and_then(|class| sources.get(class)) {
                builder.add(*source, first, last).map_err(|_| failed(BaseError::TooLarge))?;
            }
        }
    }
    builder.build_after(before).map_err(failed)
}

fn labelled<'a, T, I: Iterator<Item = (IpAddr, IpAddr, u32)> + 'a>(
    width: LabelWidth,
    databases: &[&'a Arc<T>],
    ranges: impl Fn(&'a T) -> I,
) -> Result<Vec<u8>, BaseError> {
    let mut builder = RangesBuilder::new(width);
    // What is added last counts.
    for database in databases.iter().rev() {
        for (first, last, label) in ranges(database) {
            // Neither ranges of a database nor labels of this width are refused.
            builder.set(first, last, label).map_err(|_| BaseError::TooLarge)?;
        }
    }
    builder.build()
}

/// The table of as many databases as it has room for: the largest are left out.
fn fitting<T>(
    all: &[(String, Arc<T>)],
    of: &str,
    ranges: impl Fn(&T) -> usize,
    build: impl Fn(&[&Arc<T>]) -> Result<Vec<u8>, BaseError>,
) -> Result<Made, String> {
    let (mut used, mut left_out): (Vec<&(String, Arc<T>)>, _) = (all.iter().collect(), BTreeMap::new());
    loop {
        let databases: Vec<&Arc<T>> = used.iter().map(|(_, database)| database).collect();
        match build(&databases) {
            Ok(base) => return Ok(Made { base, left_out }),
            Err(BaseError::TooLarge) if !used.is_empty() => {}
            Err(error) => return Err(format!("the table of {of}: {error}")),
        }
        let largest = (0..used.len()).max_by_key(|place| used.get(*place).map(|(_, database)| ranges(database)));
        let Some(place) = largest else { return Err(format!("the table of {of} cannot be made")) };
        let (id, _) = used.remove(place);
        left_out.insert(id.clone(), format!("its {of} are not sent to gateways, whose table has no room for them"));
    }
}
