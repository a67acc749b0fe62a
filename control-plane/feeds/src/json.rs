//! Values at a path through JSON documents, without a tree of them: a list of a million objects takes no more than its texts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::FeedError;
use super::entry::Collector;

/// A path such as `data[].ipAddress`: names with dots between them, `[]` behind a name for every entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    text: String,
    steps: Vec<Step>,
}

/// A text that is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathError;

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path has names with dots between them, and `[]` behind those of lists")
    }
}

impl std::error::Error for PathError {}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Each,
}

impl std::str::FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let name = part.trim_end_matches("[]");
            if part.is_empty() || name.contains(['[', ']']) {
                return Err(PathError);
            }
            if !name.is_empty() {
                steps.push(Step::Name(name.to_owned()));
            }
            steps.extend((0..(part.len() - name.len()) / 2).map(|_| Step::Each));
        }
        Ok(Path { text: text.to_owned(), steps })
    }
}

/// An array of texts, or of objects with a field; objects one after the other as well.
pub(crate) fn array(list: &[u8], field: Option<&str>, found: &mut Collector) -> Result<(), FeedError> {
    let steps: Vec<Step> = [Step::Each].into_iter().chain(field.map(|name| Step::Name(name.to_owned()))).collect();
    let place = field.map_or("[]".to_owned(), |field| format!("[].{field}"));
    walk(list, &steps, &place, found)
}

/// The values at a path.
pub(crate) fn at(list: &[u8], path: &Path, found: &mut Collector) -> Result<(), FeedError> {
    walk(list, &path.steps, &path.text, found)
}

/// The prefixes of both families.
pub(crate) fn prefixes(list: &[u8], found: &mut Collector) -> Result<(), FeedError> {
    let of = |family: &str| [Step::Name("prefixes".to_owned()), Step::Each, Step::Name(family.to_owned())];
    let place = "prefixes[].ipv4Prefix";
    let v4 = walk(list, &of("ipv4Prefix"), place, found);
    let v6 = walk(list, &of("ipv6Prefix"), place, found);
    match (v4, v6) {
        // Some crawlers have addresses of one family alone.
        (Ok(()), Err(FeedError::Nowhere(_))) | (Err(FeedError::Nowhere(_)), Ok(())) => Ok(()),
        (v4, v6) => v4.and(v6),
    }
}

fn walk(list: &[u8], steps: &[Step], place: &str, found: &mut Collector) -> Result<(), FeedError> {
    let mut walked = Walked { found, refused: None, reached: false };
    documents(list, |document| At { steps, walked: &mut walked }.deserialize(document)).or_else(|error| {
        // What the collector refuses ends the document.
        walked.refused.take().map_or(Err(error), Err)
    })?;
    if walked.reached { Ok(()) } else { Err(FeedError::Nowhere(place.to_owned())) }
}

/// Reads documents that stand one after the other, at least one.
pub(crate) fn documents<'de>(
    list: &'de [u8],
    mut read: impl FnMut(&mut serde_json::Deserializer<serde_json::de::SliceRead<'de>>) -> Result<(), serde_json::Error>,
) -> Result<(), FeedError> {
    let wrong = |error: serde_json::Error| FeedError::Json { line: error.line(), column: error.column() };
    // Where a document ends is found first, without reading it: to ask a deserializer whether more follows takes the time of all that
    // came before.
    let mut documents = serde_json::Deserializer::from_slice(list).into_iter::<IgnoredAny>();
    let mut from = 0;
    while let Some(document) = documents.next() {
        document.map_err(wrong)?;
        let to = documents.byte_offset();
        let document = list.get(from..to).unwrap_or_default();
        read(&mut serde_json::Deserializer::from_slice(document)).map_err(wrong)?;
        from = to;
    }
    if from == 0 {
        // There is none: this says so.
        read(&mut serde_json::Deserializer::from_slice(list)).map_err(wrong)?;
    }
    Ok(())
}

/// What a walk has come to.
struct Walked<'a> {
    found: &'a mut Collector,
    refused: Option<FeedError>,
    /// Something was where the path leads to.
    reached: bool,
}

impl Walked<'_> {
    fn take<E: serde::de::Error>(&mut self, entry: &str) -> Result<(), E> {
        self.reached = true;
        self.found.take(entry).map_err(|refused| {
            let error = E::custom("refused");
            self.refused = Some(refused);
            error
        })
    }
}

/// The values that the rest of a path leads to.
struct At<'a, 'b> {
    steps: &'a [Step],
    walked: &'a mut Walked<'b>,
}

impl<'de> DeserializeSeed<'de> for At<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // An object where an array is expected is one entry of it: one object a line.
        let (name, rest) = match self.steps {
            [Step::Name(name), rest @ ..] | [Step::Each, Step::Name(name), rest @ ..] => (name, rest),
            _ => {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return if self.steps.is_empty() { self.walked.take("an object") } else { Ok(()) };
            }
        };
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == name.as_str() {
                map.next_value_seed(At { steps: rest, walked: self.walked })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let rest = match self.steps {
            // A list of addresses whose `[]` was left out.
            [] => &[][..],
            [Step::Each, rest @ ..] => rest,
            [Step::Name(_), ..] => {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(());
            }
        };
        self.walked.reached |= rest.is_empty();
        while seq.next_element_seed(At { steps: rest, walked: self.walked })?.is_some() {}
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        if self.steps.is_empty() { self.walked.take(text) } else { Ok(()) }
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.visit_str(if value { "true" } else { "false" })
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.visit_str(&format!("the number {value}"))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.visit_str(&format!("the number {value}"))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.visit_str(&format!("the number {value}"))
    }
}
