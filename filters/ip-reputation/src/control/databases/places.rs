//! Where addresses are.

use std::fmt;
use std::net::IpAddr;

use axum::body::Bytes;
use maxminddb::Reader;
use serde::Serialize;
use serde_json::Value;

use super::mmdb;
use super::networks::CountryCode;
use super::spans::Spans;

/// The longest text of a record that is shown, in bytes.
const MAX_TEXT: usize = 256;

/// A database of places.
pub(in crate::control) struct Places {
    reader: Reader<Bytes>,
    /// Ranges of addresses, labelled with their countries.
    countries: Spans,
}

/// What is known of the place of an address, and of its network. `None` for what is not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(in crate::control) struct Place {
    /// The number of the network.
    pub(in crate::control) asn: Option<u32>,
    /// Two letters, in upper case.
    pub(in crate::control) country: Option<String>,
    /// The owner of the network.
    pub(in crate::control) org: Option<String>,
    pub(in crate::control) country_name: Option<String>,
    /// Two letters, in upper case.
    pub(in crate::control) continent: Option<String>,
    pub(in crate::control) continent_name: Option<String>,
    /// The code of the largest subdivision of the country.
    pub(in crate::control) region: Option<String>,
    pub(in crate::control) region_name: Option<String>,
    pub(in crate::control) city: Option<String>,
    pub(in crate::control) postal_code: Option<String>,
    /// Degrees, north is positive.
    pub(in crate::control) latitude: Option<f64>,
    /// Degrees, east is positive.
    pub(in crate::control) longitude: Option<f64>,
    /// False: the country is at most where the network is registered.
    pub(in crate::control) located: bool,
}

// === impl Places ===

impl Places {
    pub(super) fn new(reader: Reader<Bytes>, countries: Spans) -> Places {
        Places { reader, countries }
    }

    /// What the database has of an address; `None` for nothing.
    pub(in crate::control) fn find(&self, address: IpAddr) -> Option<Place> {
        let record: Value = self.reader.lookup(address.to_canonical()).ok()?.decode().ok()??;
        let place = Place::of(&record);
        (place != Place::default()).then_some(place)
    }

    /// Ranges of addresses with a country each, labelled with [`CountryCode::label`].
    pub(super) fn countries(&self) -> &Spans {
        &self.countries
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("countries", &self.countries.len()).finish_non_exhaustive()
    }
}

// === impl Place ===

impl Place {
    /// What a record says, under the names that MaxMind and DB-IP use (a tree of objects), and those of IPinfo and of ip-location-db (flat).
    fn of(record: &Value) -> Place {
        let own = country(record);
        let registered = code_at(record, &["registered_country", "iso_code"]).and_then(|code| CountryCode::read(&code));
        // IPinfo has the name of a country under `country`.
        let flat = |names: &[&str]| names.iter().find_map(|name| text(record.get(name)?));
        let flat_name = |name: &str| flat(&[name]).filter(|text| text.len() > 2);
        let number_at = |path: &[&str], name: &str| at(record, path).or_else(|| record.get(name)).and_then(degrees);
        Place {
            asn: ["autonomous_system_number", "asn"].iter().find_map(|name| mmdb::number(record.get(name)?)),
            country: own.or(registered).map(|country| country.to_string()),
            org: flat(&["autonomous_system_organization", "as_name", "organization"]),
            country_name: match own {
                Some(_) => name_at(record, "country").or_else(|| flat(&["country_name"]).or(flat_name("country"))),
                None => name_at(record, "registered_country"),
            },
            continent: code_at(record, &["continent", "code"]).or_else(|| flat(&["continent_code"])),
            continent_name: name_at(record, "continent").or_else(|| flat_name("continent")),
            region: code_at(record, &["subdivisions", "0", "iso_code"]).or_else(|| flat(&["region_code"])),
            region_name: at(record, &["subdivisions", "0", "names", "en"])
                .and_then(text)
                .or_else(|| flat(&["region", "state1"])),
            city: name_at(record, "city").or_else(|| flat(&["city"])),
            postal_code: code_at(record, &["postal", "code"]).or_else(|| flat(&["postal_code", "postcode"])),
            latitude: number_at(&["location", "latitude"], "latitude"),
            longitude: number_at(&["location", "longitude"], "longitude"),
            located: own.is_some(),
        }
    }

    /// Takes over from another database what this one does not know, where both do not contradict each other.
    pub(in crate::control) fn complete(&mut self, other: Place) {
        if (self.asn, &self.org) == (None, &None) {
            (self.asn, self.org) = (other.asn, other.org);
        }
        if self.located && other.located && self.country != other.country {
            return;
        }
        if other.located && !self.located || self.country.is_none() {
            *self = Place { asn: self.asn, org: self.org.take(), ..other };
            return;
        }
        if !other.located {
            return;
        }
        let fill = |own: &mut Option<String>, other: Option<String>| {
            if own.is_none() {
                *own = other;
            }
        };
        fill(&mut self.country_name, other.country_name);
        fill(&mut self.continent, other.continent);
        fill(&mut self.continent_name, other.continent_name);
        fill(&mut self.city, other.city);
        fill(&mut self.postal_code, other.postal_code);
        if self.region.is_none() && self.region_name.is_none() {
            (self.region, self.region_name) = (other.region, other.region_name);
        }
        if self.latitude.is_none() || self.longitude.is_none() {
            (self.latitude, self.longitude) = (other.latitude, other.longitude);
        }
    }
}

/// The country that an address is in; not the one that its network is registered in.
pub(super) fn country(record: &Value) -> Option<CountryCode> {
    let code = at(record, &["country", "iso_code"]).or_else(|| record.get("country_code"));
    let code = code.or_else(|| record.get("country"))?;
    CountryCode::read(code.as_str()?)
}

/// What is at a path of names; a number is a place in a list.
fn at<'a>(record: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(record, |value, name| match value {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        Value::Object(_) => value.get(name),
        _ => None,
    })
}

fn code_at(record: &Value, path: &[&str]) -> Option<String> {
    at(record, path).and_then(text)
}

/// The English name of something.
fn name_at(record: &Value, thing: &str) -> Option<String> {
    at(record, &[thing, "names", "en"]).and_then(text)
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty())?;
    Some(text.get(..text.floor_char_boundary(MAX_TEXT))?.to_owned())
}

/// A number, or the text of one.
fn degrees(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    (-180.0..=180.0).contains(&number).then_some(number)
}
