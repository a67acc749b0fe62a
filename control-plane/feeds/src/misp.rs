//! Addresses in MISP's JSON: events, attributes, searches and warning lists.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

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
        let (mut kind, mut value, mut listed) = (None, None, Vec::new());
        let (mut to_ids, mut deleted) = (true, false);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "type" => kind = text(map.next_value()?),
                "value" => value = text(map.next_value()?),
                "to_ids" => to_ids = !is(&map.next_value()?, false),
                "deleted" => deleted = is(&map.next_value()?, true),
                "list" => listed = map.next_value::<Vec<Value>>()?,
                _ => map.next_value_seed(Attributes(self.0))?,
            }
        }
        match (kind.as_deref(), value) {
            (Some("cidr"), None) => listed.into_iter().filter_map(text).try_for_each(|entry| self.0.take(&entry)),
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

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Whether a flag has this value; exports write it as a boolean, a number or a text.
fn is(value: &Value, wanted: bool) -> bool {
    match value {
        Value::Bool(flag) => *flag == wanted,
        Value::Number(number) => (number.as_u64() != Some(0)) == wanted,
        Value::String(text) => matches!(text.as_str(), "1" | "true") == wanted,
        _ => false,
    }
}
