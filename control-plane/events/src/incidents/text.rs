//! Texts that many incidents have in common, each of which is in memory once.

use std::borrow::{Borrow, Cow};
use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::MAX_TEXT;

/// The texts that [`Texts`] knows, at most. Categories, actions, routes, tags and most messages are far fewer.
const MAX_TEXTS: usize = 4096;

/// A text whose copies are one text in memory.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedText(Arc<str>);

/// The texts of the last events and incidents.
#[derive(Debug, Default)]
pub(super) struct Texts(HashSet<SharedText>);

// === impl SharedText ===

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SharedText {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> SharedText {
        SharedText(text.into())
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> SharedText {
        SharedText(text.into())
    }
}

impl PartialEq<str> for SharedText {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for SharedText {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for SharedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SharedText, D::Error> {
        String::deserialize(deserializer).map(SharedText::from)
    }
}

impl JsonSchema for SharedText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

// === impl Texts ===

impl Texts {
    /// A text, up to 512 characters of it.
    pub(super) fn cut(&mut self, text: &str) -> SharedText {
        let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(end, _)| end);
        let text = text.get(..end).unwrap_or_default();
        match self.0.get(text) {
            Some(known) => known.clone(),
            None => self.learn(text.into()),
        }
    }

    /// Replaces a text by the same one that others have.
    pub(super) fn share(&mut self, text: &mut SharedText) {
        match self.0.get(&**text) {
            Some(known) => text.clone_from(known),
            None => drop(self.learn(text.clone())),
        }
    }

    /// With no room left it begins anew: what is used often is known again soon.
    fn learn(&mut self, text: SharedText) -> SharedText {
        if self.0.len() >= MAX_TEXTS {
            self.0.clear();
        }
        self.0.insert(text.clone());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_in_memory_and_few_are_remembered() {
        let mut texts = Texts::default();
        let (one, mut other) = (texts.cut("threat"), SharedText::from("threat"));
        assert!(!Arc::ptr_eq(&one.0, &other.0));
        texts.share(&mut other);
        assert!(Arc::ptr_eq(&one.0, &other.0) && Arc::ptr_eq(&one.0, &texts.cut("threat").0));
        (0..3 * MAX_TEXTS).for_each(|number| drop(texts.cut(&number.to_string())));
        assert!(texts.0.len() <= MAX_TEXTS);
        assert_eq!(texts.cut(&"ä".repeat(600)).chars().count(), MAX_TEXT);
    }

    #[test]
    fn a_text_is_a_string_in_documents() {
        let read: SharedText = serde_json::from_str(r#""a\"b""#).unwrap();
        assert_eq!((&read, serde_json::to_string(&read).unwrap().as_str()), (&SharedText::from("a\"b"), r#""a\"b""#));
        assert!(serde_json::from_str::<SharedText>("7").is_err());
    }
}
