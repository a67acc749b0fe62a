//! An address as databases have it: the networks that it belongs to, and where it is.

use std::net::IpAddr;
use std::sync::Arc;

use kit::{Item, View};
use serde_json::{Value, json};

use super::databases::{DatabaseKind, DatabaseState, Network, Place};
use super::runtime::Reputation;
use super::{AsnDatabase, GeoDatabase, MAX_DATABASES};

/// A database of networks that has an address.
pub(super) struct Membership<'a> {
    pub(super) database: &'a Item<AsnDatabase>,
    pub(super) network: Network,
    /// The range of the database that has the address.
    pub(super) range: (IpAddr, IpAddr),
    /// Gateways have the number of the network by this database.
    is_in_table: bool,
}

/// The names that decisions of bouncers on networks and countries are found by at gateways: `as:64496`, `country:cn`.
pub(super) fn names(address: IpAddr, view: &View<'_>, runtime: &Reputation) -> Vec<(&'static str, String)> {
    let network = memberships(address, view, runtime).into_iter().find(|membership| membership.is_in_table);
    let network = network.map(|membership| ("network", format!("as:{}", membership.network.number)));
    let country = places(view, runtime).find_map(|(_, state)| state.country_in_table(address));
    let country = country.map(|country| ("country", format!("country:{}", country.to_string().to_ascii_lowercase())));
    network.into_iter().chain(country).collect()
}

/// The enabled databases of networks that have an address, by id.
pub(super) fn memberships<'a>(address: IpAddr, view: &View<'a>, runtime: &Reputation) -> Vec<Membership<'a>> {
    let found = networks(view, runtime).filter_map(|(database, state)| {
        let (network, first, last) = state.networks()?.find(address)?;
        Some(Membership { database, network: network.clone(), range: (first, last), is_in_table: state.is_in_table() })
    });
    found.collect()
}

/// Where an address is, and its network, by all enabled databases; `None` if none of them has it. What one database does not know is
/// taken from the next, by id; a country that a network is registered in counts if no database has located the address.
pub(super) fn place(address: IpAddr, view: &View<'_>, runtime: &Reputation) -> Option<Place> {
    let mut found: Option<Place> = None;
    let of_places = places(view, runtime).filter_map(|(_, state)| state.places()?.find(address));
    let of_networks = memberships(address, view, runtime).into_iter().map(|membership| membership.network.place());
    for other in of_places.chain(of_networks) {
        match &mut found {
            Some(place) => place.complete(other),
            None => found = Some(other),
        }
    }
    found
}

/// The databases in force, as `{kind, id, name}`.
pub(super) fn sources(view: &View<'_>, runtime: &Reputation) -> Vec<Value> {
    let source = |kind: &str, id: &str, name: &str| json!({ "kind": kind, "id": id, "name": name });
    let of_networks = networks(view, runtime).filter(|(_, state)| state.current.is_some());
    let of_places = places(view, runtime).filter(|(_, state)| state.current.is_some());
    let of_networks = of_networks.map(|(database, _)| source("asn", &database.head.id, &database.head.name));
    of_networks.chain(of_places.map(|(database, _)| source("geo", &database.head.id, &database.head.name))).collect()
}

/// What the licences of the databases in force require to be shown, each once.
pub(super) fn attributions(view: &View<'_>, runtime: &Reputation) -> Vec<Value> {
    let mut found = Vec::new();
    for (database, state) in places(view, runtime) {
        let attribution = json!({ "text": database.attribution, "url": database.attribution_url });
        let is_shown = state.current.is_some() && !database.attribution.is_empty();
        if is_shown && !found.contains(&attribution) {
            found.push(attribution);
        }
    }
    found
}

fn networks<'a>(
    view: &View<'a>,
    runtime: &Reputation,
) -> impl Iterator<Item = (&'a Item<AsnDatabase>, Arc<DatabaseState>)> {
    let enabled = view.all::<AsnDatabase>().filter(|database| database.enabled).take(MAX_DATABASES);
    enabled.map(|database| (database, runtime.database(&(DatabaseKind::Asn, database.head.id.clone()))))
}

fn places<'a>(
    view: &View<'a>,
    runtime: &Reputation,
) -> impl Iterator<Item = (&'a Item<GeoDatabase>, Arc<DatabaseState>)> {
    let enabled = view.all::<GeoDatabase>().filter(|database| database.enabled).take(MAX_DATABASES);
    enabled.map(|database| (database, runtime.database(&(DatabaseKind::Geo, database.head.id.clone()))))
}
