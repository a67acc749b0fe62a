//! Addresses in MISP's JSON: events, attributes, searches and warning lists.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::FeedError;
use super::entry::Collector;
use super::json::documents;

/// The attributes of all events, wherever they stand in the document: those with `to_ids: false` (context, not to be detected) and
/// deleted ones left out.
pub(crate) fn attributes(list: &[u8], found: &mut Collector) -> Result<(), FeedError> {
    let mut walk = Walk { found, refused: None };
    documents(list, |document| Attributes(&mut walk).deserialize(document))
        .or_else(|error| walk.refused.take().map_or(Err(error), Err))
}

struct Walk<'a> {
    found: &'a mut Collector,
    refused: Option<FeedError>,
}

impl Walk<'_> {
    fn take<E: serde::de::Error>(&mut self, entry: &str) -> Result<(), E> {
        self.found.take(entry).map_err(|refused| {
            self.refused = Some(refused);
            E::custom("refused")
        })
    }
}

/// A value with attributes somewhere in it.
struct Attributes<'a, 'b>(&'a mut Walk<'b>);

impl<'de> DeserializeSeed<'de> for Attributes<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Attributes<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut kind, mut value, mut listed) = (None, None, String::new());
        let (mut to_ids, mut deleted) = (true, false);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "type" => kind = map.next_value::<Scalar>()?.text(),
                "value" => value = map.next_value::<Scalar>()?.text(),
                "to_ids" => to_ids = !map.next_value::<Scalar>()?.is(false),
                "deleted" => deleted = map.next_value::<Scalar>()?.is(true),
                "list" => map.next_value_seed(Lines(&mut listed))?,
                _ => map.next_value_seed(Attributes(self.0))?,
            }
        }
        match (kind.as_deref(), value) {
            (Some("cidr"), None) => listed.lines().try_for_each(|entry| self.0.take(entry)),
            (Some("ip-src" | "ip-dst"), Some(value)) if to_ids && !deleted => self.0.take(&value),
            (Some("ip-src|port" | "ip-dst|port"), Some(value)) if to_ids && !deleted => {
                self.0.take(value.split('|').next().unwrap_or_default())
            }
            (Some("domain|ip"), Some(value)) if to_ids && !deleted => {
                self.0.take(value.rsplit('|').next().unwrap_or_default())
            }
            _ => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Attributes(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}

/// The texts of a list, a line each: what the list is of is known behind it. Takes no more than the list itself.
struct Lines<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Lines<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Lines<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of texts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(entry) = seq.next_element::<Scalar>()? {
            if let Scalar::Text(entry) = entry {
                self.0.push_str(&entry);
                self.0.push('\n');
            }
        }
        Ok(())
    }
}

/// A value of one piece; of lists and objects nothing is kept.
enum Scalar {
    Text(String),
    Flag(bool),
    Number(bool),
    Other,
}

impl Scalar {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether a flag has this value; exports write it as a boolean, a number or a text.
    fn is(&self, wanted: bool) -> bool {
        match self {
            Self::Flag(value) | Self::Number(value) => *value == wanted,
            Self::Text(text) => matches!(text.as_str(), "1" | "true") == wanted,
            Self::Other => false,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Flag(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value != 0))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value != 0))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Scalar, E> {
        // As every number that is not 0.
        Ok(Scalar::Number(true))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}
