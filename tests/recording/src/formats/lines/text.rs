//! Bytes in JSON: a string where they are UTF-8, `{"base64": "..."}` where they are not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<u8>);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(&self.0) {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("base64", &STANDARD.encode(&self.0))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Text;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or {\"base64\": ...}")
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.into()))
            }

            fn visit_string<E>(self, text: String) -> Result<Text, E> {
                Ok(Text(text.into_bytes()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
                let (Some((key, packed)), None) =
                    (map.next_entry::<String, String>()?, map.next_entry::<String, String>()?)
                else {
                    return Err(A::Error::custom("expected `base64` and nothing else"));
                };
                if key != "base64" {
                    return Err(A::Error::unknown_field(&key, &["base64"]));
                }
                decode(&packed).map(Text).map_err(A::Error::custom)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// What is packed in base64.
pub(super) fn decode(packed: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(packed).map_err(|error| format!("no base64: {error}"))
}
