//! JSON of requests. A name that comes twice in an object is an error: which of the two the backend takes is not known.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Number;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Reads a text. Its nesting is limited to 128.
pub(crate) fn read(text: &[u8]) -> Result<Json, String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Seed.deserialize(&mut reader).map_err(|error| said(&error))?;
    reader.end().map_err(|error| said(&error))?;
    Ok(value)
}

/// What is wrong, and never a part of the text.
fn said(error: &serde_json::Error) -> String {
    let twice = error.to_string().starts_with(TWICE);
    let what = if twice { TWICE } else { "the text is no JSON" };
    format!("{what} (line {}, column {})", error.line(), error.column())
}

const TWICE: &str = "a name comes twice in an object";

impl Json {
    /// The value of a name of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(own, _)| own == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The members of an object; none of anything else.
    pub(crate) fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// An object without names, as PHP writes it.
    pub(crate) fn is_empty_array(&self) -> bool {
        matches!(self, Self::Array(elements) if elements.is_empty())
    }

    /// An object, also one that PHP writes as an empty array.
    pub(crate) fn is_object_or_empty(&self) -> bool {
        matches!(self, Self::Object(_)) || self.is_empty_array()
    }

    /// The known name that a name of this object equals but for its case.
    pub(crate) fn lookalike(&self, known: &[&'static str]) -> Option<&'static str> {
        match self {
            Self::Object(members) => members.iter().find_map(|(name, _)| names::lookalike(name, known)),
            _ => None,
        }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(elements) => elements.serialize(serializer),
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

struct Seed;

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Json;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Json, E> {
        Ok(Json::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Json, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element_seed(Seed)? {
            elements.push(element);
        }
        Ok(Json::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members: Vec<(String, Json)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(Seed)?;
            members.push((name, value));
        }
        let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(A::Error::custom(TWICE));
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_once_and_texts_stay_as_they_are() {
        for text in [r#"{"a":[1,-2,2.5,null,true,"x"],"b":{"a":{}}}"#, "[]", "18446744073709551615"] {
            assert_eq!(serde_json::to_string(&read(text.as_bytes()).unwrap()).unwrap(), text);
        }
        assert!(read(br#"{"a":{"b":1,"b":2}}"#).unwrap_err().contains("twice"));
        assert!(read("[".repeat(5000).as_bytes()).is_err());
        for text in ["", "{", "1 2", "{\"secret\": tru}"] {
            let wrong = read(text.as_bytes()).unwrap_err();
            assert!(wrong.contains("no JSON") && !wrong.contains("secret"), "{wrong}");
        }
    }
}
