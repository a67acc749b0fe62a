//! From a JSON body to its shape: types and names of fields. Values are read past and kept nowhere.

use std::fmt;

use exchange::fold::fold_segment;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::inventory::messages::{Field, Shape};

/// The deepest nesting that is looked at.
const MAX_DEPTH: usize = 24;
/// The most places of a body that are told apart.
const MAX_PLACES: usize = 512;
/// The most items of an array that are looked at.
const MAX_ITEMS: usize = 64;

/// The shape of a body; `None` where it is no JSON.
pub(crate) fn shape_of(body: &[u8]) -> Option<Shape> {
    let mut shape = Shape::default();
    let mut places = MAX_PLACES;
    let mut reader = serde_json::Deserializer::from_slice(body);
    Looker { shape: &mut shape, places: &mut places, depth: 0 }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(shape)
}

/// Looks at a value, and adds it to the shape of its place.
struct Looker<'s> {
    shape: &'s mut Shape,
    /// The places that may still be added.
    places: &'s mut usize,
    depth: usize,
}

impl Looker<'_> {
    fn is(&mut self, kind: u32) {
        self.shape.types |= kind;
    }
}

impl<'de> DeserializeSeed<'de> for Looker<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        self.shape.values = self.shape.values.saturating_add(1);
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Looker<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.is(Shape::NULL);
        Ok(())
    }

    fn visit_bool<E>(mut self, _: bool) -> Result<(), E> {
        self.is(Shape::BOOLEAN);
        Ok(())
    }

    fn visit_u64<E>(mut self, _: u64) -> Result<(), E> {
        self.is(Shape::INTEGER);
        Ok(())
    }

    fn visit_i64<E>(mut self, _: i64) -> Result<(), E> {
        self.is(Shape::INTEGER);
        Ok(())
    }

    fn visit_f64<E>(mut self, number: f64) -> Result<(), E> {
        self.is(if number.fract() == 0.0 { Shape::INTEGER } else { Shape::NUMBER });
        Ok(())
    }

    fn visit_str<E>(mut self, _: &str) -> Result<(), E> {
        self.is(Shape::STRING);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.is(Shape::ARRAY);
        if self.depth >= MAX_DEPTH {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let mut shape = self.shape.items.take().unwrap_or_default();
        for _ in 0..MAX_ITEMS {
            let looker = Looker { shape: &mut shape, places: &mut *self.places, depth: self.depth + 1 };
            if items.next_element_seed(looker)?.is_none() {
                break;
            }
        }
        if shape.values > 0 {
            self.shape.items = Some(shape);
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.is(Shape::OBJECT);
        self.shape.objects = self.shape.objects.saturating_add(1);
        while let Some(name) = fields.next_key::<String>()? {
            let name = fold_segment(name.as_bytes());
            let known = self.shape.fields.iter().position(|field| field.name == name);
            let place = match known {
                Some(place) => place,
                None if *self.places == 0 || self.depth >= MAX_DEPTH => {
                    self.shape.more = true;
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
                None => {
                    *self.places -= 1;
                    self.shape.fields.push(Field { name, shape: Some(Shape::default()) });
                    self.shape.fields.len() - 1
                }
            };
            let Some(shape) = self.shape.fields.get_mut(place).and_then(|field| field.shape.as_mut()) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            fields.next_value_seed(Looker { shape, places: &mut *self.places, depth: self.depth + 1 })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn field<'s>(shape: &'s Shape, name: &str) -> &'s Shape {
        shape.fields.iter().find(|field| field.name == name).unwrap().shape.as_ref().unwrap()
    }

    #[test]
    fn names_and_types_are_kept_and_values_are_not() {
        let body = br#"{"id": 7, "mail": "ann@example.com", "tags": [1, 2.5, null], "more": [{"a": true}, {"b": 1.0}],
            "ann@example.com": {"4711": 1, "4712": 2}}"#;
        let shape = shape_of(body).unwrap();
        assert_eq!((shape.types, shape.values, shape.objects), (Shape::OBJECT, 1, 1));
        assert_eq!(field(&shape, "id").types, Shape::INTEGER);
        let tags = field(&shape, "tags").items.as_ref().unwrap();
        assert_eq!((tags.types, tags.values), (Shape::INTEGER | Shape::NUMBER | Shape::NULL, 3));
        let more = field(&shape, "more").items.as_ref().unwrap();
        assert_eq!((more.objects, field(more, "a").values, field(more, "b").types), (2, 1, Shape::INTEGER));
        assert_eq!(field(field(&shape, "{id}"), "{id}").values, 2, "names that are values are folded");
        let sent = shape.encode_to_vec();
        assert!(!sent.windows(3).any(|bytes| bytes == b"ann"), "no value is sent");
    }

    #[test]
    fn a_hostile_body_has_a_small_shape_or_none() {
        for wrong in [b"".as_slice(), b"{", b"{} {}", b"{\"a\":\xff}", &b"[".repeat(100_000)] {
            assert_eq!(shape_of(wrong), None);
        }
        let deep = [b"[".repeat(100), b"]".repeat(100)].concat();
        assert!(Shape::decode(shape_of(&deep).unwrap().encode_to_vec().as_slice()).is_ok());
        let nested = [br#"{"a":"#.repeat(100).as_slice(), b"1", &b"}".repeat(100)].concat();
        assert!(Shape::decode(shape_of(&nested).unwrap().encode_to_vec().as_slice()).is_ok());
        let names: Vec<String> = (0..20_000).map(|number| format!("\"field_{}\":1", letters(number))).collect();
        let wide = shape_of(format!("{{{}}}", names.join(",")).as_bytes()).unwrap();
        assert_eq!((wide.fields.len(), wide.more), (MAX_PLACES, true));
        assert!(wide.encoded_len() < 60_000);
    }

    fn letters(number: u32) -> String {
        (0..4).map(|place| char::from(b'a' + u8::try_from(number / 26_u32.pow(place) % 26).unwrap())).collect()
    }
}
