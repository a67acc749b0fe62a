//! Databases in the MaxMind format, and what is wrong with some.

use std::io::Write as _;
use std::net::IpAddr;

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::super::mmdb;
use super::super::places::Place;
use super::write::{assembled, database, encode};

fn places() -> Vec<u8> {
    let whole = json!({
        "continent": { "code": "EU", "names": { "en": "Europe", "de": "Europa" } },
        "country": { "iso_code": "DE", "names": { "en": "Germany" } },
        "subdivisions": [{ "iso_code": "BE", "names": { "en": "Berlin" } }],
        "city": { "names": { "en": "Berlin" } }, "postal": { "code": "10115" },
        "location": { "latitude": 52.5, "longitude": 13.25 },
    });
    let registered = json!({ "registered_country": { "iso_code": "US", "names": { "en": "United States" } } });
    let flat = json!({ "asn": "AS64496", "as_name": "Example", "country": "France", "country_code": "FR", "continent_code": "EU",
                       "region": "Brittany", "latitude": "48.5" });
    database(&[("192.0.2.0/24", whole), ("198.51.100.0/24", registered), ("2001:db8::/32", flat)])
}

fn at(file: &[u8], address: &str) -> Option<Place> {
    mmdb::places(Bytes::copy_from_slice(file)).unwrap().content.find(address.parse().unwrap())
}

#[test]
fn places_are_read_under_the_names_of_several_publishers() {
    let file = places();
    let read = mmdb::places(Bytes::from(file.clone())).unwrap();
    assert_eq!((read.entries, read.rejected), (2, 1), "a country of registration is not where an address is");
    let label = |address: &str| read.content.countries().find(address.parse().unwrap()).map(|(label, ..)| label);
    let country = |letters: [u8; 2]| Some(crate::country_label(letters));
    assert_eq!((label("192.0.2.7"), label("198.51.100.7")), (country(*b"DE"), None));
    assert_eq!((label("2001:db8::7"), label("203.0.113.7")), (country(*b"FR"), None));
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        at(&file, "::ffff:192.0.2.7").unwrap(),
        Place {
            country: text("DE"),
            country_name: text("Germany"),
            continent: text("EU"),
            continent_name: text("Europe"),
            region: text("BE"),
            region_name: text("Berlin"),
            city: text("Berlin"),
            postal_code: text("10115"),
            latitude: Some(52.5),
            longitude: Some(13.25),
            located: true,
            ..Place::default()
        }
    );
    let registered = at(&file, "198.51.100.7").unwrap();
    assert_eq!(
        (registered.country, registered.country_name, registered.located),
        (text("US"), text("United States"), false)
    );
    let flat = at(&file, "2001:db8::7").unwrap();
    assert_eq!(
        (flat.asn, flat.org, flat.country, flat.country_name),
        (Some(64496), text("Example"), text("FR"), text("France"))
    );
    assert_eq!((flat.region_name, flat.latitude, flat.located), (text("Brittany"), Some(48.5), true));
    assert_eq!(at(&file, "203.0.113.7"), None);
}

#[test]
fn places_of_ip_location_db_are_read() {
    // As its files of cities have them: names without codes, and empty texts.
    let record = json!({
        "country_code": "AU", "state1": "New South Wales", "state2": "", "city": "Sydney", "postcode": "2000",
        "latitude": -33.8688_f32, "longitude": 151.209_f32, "timezone": "Australia/Sydney",
    });
    let place = at(&database(&[("192.0.2.0/24", record)]), "192.0.2.7").unwrap();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!((place.country, place.region_name, place.city), (text("AU"), text("New South Wales"), text("Sydney")));
    assert_eq!((place.region, place.postal_code, place.located), (None, text("2000"), true));
    assert!(place.latitude.is_some_and(|degrees| (degrees + 33.8688).abs() < 1e-4));
}

#[test]
fn one_place_completes_another_where_they_agree() {
    let place = |country: &str, city: Option<&str>, located| Place {
        country: Some(country.to_owned()),
        city: city.map(str::to_owned),
        located,
        ..Place::default()
    };
    let of = |one: Place, other: Place| {
        let mut one = one;
        one.complete(other);
        (one.country.unwrap(), one.city, one.located)
    };
    let berlin = || Some("Berlin".to_owned());
    assert_eq!(of(place("DE", None, true), place("DE", Some("Berlin"), true)), ("DE".into(), berlin(), true));
    assert_eq!(of(place("DE", None, true), place("FR", Some("Paris"), true)), ("DE".into(), None, true));
    assert_eq!(of(place("US", None, false), place("DE", Some("Berlin"), true)), ("DE".into(), berlin(), true));
    assert_eq!(of(place("DE", None, true), place("US", None, false)), ("DE".into(), None, true));
}

#[test]
fn networks_are_read() {
    let file = database(&[
        ("192.0.2.0/24", json!({ "autonomous_system_number": 64496, "autonomous_system_organization": "Example" })),
        ("2001:db8::/32", json!({ "asn": "AS4200000000", "as_name": "Other", "country_code": "fr" })),
        ("203.0.113.0/24", json!({ "other": true })),
    ]);
    let read = mmdb::networks(Bytes::from(file.clone()), 10).unwrap();
    assert_eq!((read.entries, read.rejected), (2, 1));
    let found = |address: &str| {
        let (network, ..) = read.content.find(address.parse::<IpAddr>().unwrap())?;
        Some((network.number, network.owner.to_string(), network.country.map(|country| country.to_string())))
    };
    assert_eq!(found("192.0.2.7"), Some((64496, "Example".into(), None)));
    assert_eq!(found("2001:db8::7"), Some((4_200_000_000, "Other".into(), Some("FR".into()))));
    assert_eq!((found("203.0.113.7"), found("192.0.3.0")), (None, None));
    assert!(mmdb::networks(Bytes::from(file), 1).unwrap_err().contains("more than 1 ranges"));
    assert!(mmdb::networks(Bytes::from(places()), 10).is_err(), "it has fewer networks than entries without");
}

#[test]
fn a_damaged_database_is_refused_and_ends_nothing() {
    let file = places();
    for length in 0..file.len() {
        // The end of a file says what it is; without all of it nothing is read.
        let read = mmdb::places(Bytes::copy_from_slice(&file[..length]));
        assert!(read.is_err() || length > file.len() - 16, "{length} of {}", file.len());
    }
    let (mut refused, mut taken) = (0, 0);
    for place in 0..file.len() {
        for mask in [1, 0x20, 0x80, 0xff] {
            let mut other = file.clone();
            other[place] ^= mask;
            match mmdb::places(Bytes::from(other)) {
                Ok(read) => {
                    taken += 1;
                    for address in ["192.0.2.7", "198.51.100.7", "2001:db8::7", "::", "255.255.255.255"] {
                        let _ = read.content.find(address.parse().unwrap());
                    }
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 100 && taken > 100, "{refused} {taken}");
    assert_eq!(mmdb::places(Bytes::from_static(b"<html>")).unwrap_err(), "the answer is no MaxMind database");
}

#[test]
fn a_tree_that_leads_back_to_itself_is_refused() {
    let mut data = Vec::new();
    encode(&json!({ "country": { "iso_code": "DE" } }), &mut data);
    for tree in [[[0, 0], [1, 1]], [[1, 1], [0, 0]], [[1, 1], [1, 1]]] {
        let read = mmdb::places(Bytes::from(assembled(&tree, &data)));
        assert_eq!(read.unwrap_err(), "the database is damaged", "{tree:?}");
    }
    // Each level doubles the ranges: 2^100 of them in 2 KB.
    let doubling: Vec<[u32; 2]> = (1..=100).map(|next| [next, next]).chain([[117, 117]]).collect();
    assert_eq!(mmdb::places(Bytes::from(assembled(&doubling, &data))).unwrap_err(), "the database is damaged");
}

#[test]
fn records_that_unpack_to_far_more_than_the_file_are_refused() {
    // Lists of pointers to lists of pointers: 250 to the power of 4 values in 2 KB.
    let mut data = Vec::new();
    let mut below = 0_usize;
    encode(&json!("x".repeat(200)), &mut data);
    for _ in 0..4 {
        let place = data.len();
        // A list (an extended type) of 250 pointers of two bytes each.
        data.extend([29, 4, 250 - 29]);
        for _ in 0..250 {
            data.extend([0x20 | u8::try_from(below >> 8).unwrap(), u8::try_from(below & 0xff).unwrap()]);
        }
        below = place;
    }
    let record = u32::try_from(1 + 16 + below).unwrap();
    let read = mmdb::places(Bytes::from(assembled(&[[record, record]], &data)));
    assert_eq!(read.unwrap_err(), "the database is damaged");

    // Each record is in bounds and all together are not: many places that lead into one long list.
    let mut data = vec![0; 40_000];
    let end = data.len();
    encode(&Value::Array(vec![json!("x".repeat(250)); 280]), &mut data);
    let start = u32::try_from(end).unwrap();
    let mut records = Vec::new();
    for place in 0..8_000_u32 {
        // A pointer of four bytes (in 0x38) at each place of five bytes.
        let at = usize::try_from(place).unwrap() * 5;
        data[at..at + 5].copy_from_slice(&[[0x38].as_slice(), &start.to_be_bytes()].concat());
        records.push(place * 5);
    }
    // A complete tree of 13 levels.
    let nodes = 8191_u32;
    let child = |number: u32| {
        if number < nodes {
            return number;
        }
        records.get(usize::try_from(number - nodes).unwrap()).map_or(nodes, |place| nodes + 16 + place)
    };
    let tree: Vec<[u32; 2]> = (0..nodes).map(|node| [child(2 * node + 1), child(2 * node + 2)]).collect();
    let read = mmdb::places(Bytes::from(assembled(&tree, &data)));
    assert_eq!(read.unwrap_err(), "the records of the database are too large");
}

#[test]
fn a_compressed_file_that_unpacks_to_too_much_is_refused() {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..64 {
        out.write_all(&[0; 1 << 16]).unwrap();
    }
    let bomb = out.finish().unwrap();
    assert!(bomb.len() < 1 << 16);
    let refused = lists::unpacked(&bomb, 1 << 20).unwrap_err();
    assert!(refused.contains("more than 1048576 bytes"), "{refused}");
}
