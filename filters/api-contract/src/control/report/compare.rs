//! A payload's shape beside what its contract declares: drift.

use super::declared::{ANY, Declared, Media, Place};
use super::sensitive::is_sensitive;
use crate::inventory::messages::{DriftSample, Shape};

/// The findings of one payload, at most.
const MAX_FINDINGS: usize = 64;
/// The longest place that is shown, in bytes.
const MAX_WHERE: usize = 200;
/// The deepest place that is compared.
const MAX_DEPTH: usize = 32;

/// How a payload differs from its contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DriftKind {
    /// A field that the schema does not declare, where it declares its properties.
    UndeclaredField,
    /// A required field that is absent.
    MissingField,
    /// A value of another type.
    TypeMismatch,
    /// A status that the operation does not declare.
    UndeclaredStatus,
    /// A media type that the response does not declare.
    UndeclaredMediaType,
}

impl DriftKind {
    /// All of them.
    pub(super) const ALL: [Self; 5] = [
        Self::UndeclaredField,
        Self::MissingField,
        Self::TypeMismatch,
        Self::UndeclaredStatus,
        Self::UndeclaredMediaType,
    ];

    /// Its word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::UndeclaredField => "undeclared_field",
            Self::MissingField => "missing_field",
            Self::TypeMismatch => "type_mismatch",
            Self::UndeclaredStatus => "undeclared_status",
            Self::UndeclaredMediaType => "undeclared_media_type",
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    /// What it is.
    pub(super) kind: DriftKind,
    /// `request $.card`, `200 $.items[].ssn`, `418`.
    pub(super) place: String,
    /// What was there: types, a media type; never a value.
    pub(super) observed: String,
    /// The name of the field is of a sensitive kind.
    pub(super) sensitive: bool,
}

/// The differences of a payload; none for an operation that the contract does not have.
pub(super) fn compare(declared: &Declared, sample: &DriftSample) -> Vec<Finding> {
    let Some(operation) = declared.operation(&sample.method, &sample.path) else { return Vec::new() };
    let mut found = Found { findings: Vec::new(), request: sample.status == 0 };
    let status = sample.status;
    let (start, media) = if found.request {
        ("request".to_owned(), operation.body.as_slice())
    } else {
        let of = |number: u32| operation.responses.iter().find(|response| response.status == number);
        let Some(response) = of(status).or_else(|| of(status / 100)).or_else(|| of(0)) else {
            if !operation.responses.is_empty() {
                found.add(DriftKind::UndeclaredStatus, &status.to_string(), status.to_string(), false);
            }
            return found.findings;
        };
        (status.to_string(), response.media.as_slice())
    };
    let entry = match_media(media, &sample.media);
    if entry.is_none() && !found.request && !media.is_empty() && !sample.media.is_empty() {
        found.add(DriftKind::UndeclaredMediaType, &start, sample.media.clone(), false);
    }
    let place = entry.and_then(|(_, place)| declared.place(*place.as_ref()?));
    if let (Some(place), Some(shape)) = (place, &sample.shape) {
        found.places(declared, place, shape, &format!("{start} $"), "", 0);
    }
    found.findings
}

/// The declared entry of a media type: itself, its range, any.
fn match_media<'m>(declared: &'m [Media], media: &str) -> Option<&'m Media> {
    let range = format!("{}/*", media.split('/').next().unwrap_or_default());
    let of = |wanted: &str| declared.iter().find(|(range, _)| range == wanted);
    of(media).or_else(|| of(&range)).or_else(|| of("*/*"))
}

struct Found {
    findings: Vec<Finding>,
    request: bool,
}

impl Found {
    fn add(&mut self, kind: DriftKind, place: &str, observed: String, sensitive: bool) {
        if self.findings.len() < MAX_FINDINGS {
            let place = place.char_indices().take_while(|(at, _)| *at < MAX_WHERE).map(|(_, shown)| shown).collect();
            let finding = Finding { kind, place, observed, sensitive };
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
    }

    fn places(&mut self, declared: &Declared, place: &Place, shape: &Shape, at: &str, name: &str, depth: usize) {
        if depth > MAX_DEPTH || self.findings.len() >= MAX_FINDINGS {
            return;
        }
        let other = shape.types & !place.types;
        if other != 0 && place.types != ANY {
            let observed = format!("{}, declared {}", names(other), names(place.types));
            self.add(DriftKind::TypeMismatch, at, observed, is_sensitive(name));
        }
        if shape.types & Shape::OBJECT != 0 && place.types & Shape::OBJECT != 0 {
            self.fields(declared, place, shape, at, depth);
        }
        if let (Some(items), Some(shape)) = (place.items.and_then(|items| declared.place(items)), &shape.items) {
            self.places(declared, items, shape, &format!("{at}[]"), name, depth + 1);
        }
    }

    fn fields(&mut self, declared: &Declared, place: &Place, shape: &Shape, at: &str, depth: usize) {
        for field in &shape.fields {
            let Some(own) = &field.shape else { continue };
            let below = format!("{at}.{}", field.name);
            match place.properties.get(&field.name).and_then(|number| declared.place(*number)) {
                Some(place) => self.places(declared, place, own, &below, &field.name, depth + 1),
                None if place.open || place.properties.is_empty() => {}
                None => {
                    self.add(DriftKind::UndeclaredField, &below, names(own.types), is_sensitive(&field.name));
                }
            }
        }
        for required in &place.required {
            let excused = if self.request { required.read_only } else { required.write_only };
            let there = shape.fields.iter().find(|field| field.name == required.name);
            let there = there.and_then(|field| field.shape.as_ref()).map_or(0, |shape| shape.values);
            // One of those that were not looked at may be it.
            if !excused && !shape.more && there < shape.objects {
                let below = format!("{at}.{}", required.name);
                let observed = format!("absent in {} of {}", shape.objects - there, shape.objects);
                self.add(DriftKind::MissingField, &below, observed, is_sensitive(&required.name));
            }
        }
    }
}

/// The names of types.
fn names(types: u32) -> String {
    const ALL: [(u32, &str); 7] = [
        (Shape::NULL, "null"),
        (Shape::BOOLEAN, "boolean"),
        (Shape::OBJECT, "object"),
        (Shape::ARRAY, "array"),
        (Shape::NUMBER, "number"),
        (Shape::STRING, "string"),
        (Shape::INTEGER, "integer"),
    ];
    // A whole number where fractions are declared is named once.
    let is = |bit: u32| types & bit != 0 && !(bit == Shape::INTEGER && types & Shape::NUMBER != 0);
    ALL.iter().filter(|(bit, _)| is(*bit)).map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
}
