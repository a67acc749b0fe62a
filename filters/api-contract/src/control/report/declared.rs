//! What a contract declares of payloads: the fields and the types of each place, without what else schemas ask for.
//!
//! Every member of `allOf`, `oneOf` and `anyOf` counts as declared. So a place is a set of schemas, and the same set is the same place:
//! schemas that refer to themselves end there.

use std::collections::{BTreeMap, HashMap};

use exchange::fold::fold_segment;
use serde_json::{Map, Value};

use crate::inventory::messages::Shape;

/// The places of one contract, at most; what is beyond takes anything.
const MAX_PLACES: usize = 200_000;
/// The schemas of one place, at most.
const MAX_SCHEMAS: usize = 64;
/// The longest chain of references.
const MAX_REFERENCES: usize = 32;
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
/// Every type.
pub(super) const ANY: u32 = 127;

/// A contract's operations with what they declare.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// In the order of the document.
    pub(super) operations: Vec<DeclaredOperation>,
    by_label: HashMap<(String, String), usize>,
    places: Vec<Place>,
}

/// An operation.
#[derive(Debug)]
pub(super) struct DeclaredOperation {
    /// `GET`.
    pub(super) method: String,
    /// As the document has it.
    pub(super) path: String,
    /// Empty where it has none.
    pub(super) operation_id: String,
    /// The media types of its body, with the places of their schemas.
    pub(super) body: Vec<Media>,
    /// The responses.
    pub(super) responses: Vec<DeclaredResponse>,
}

/// A response.
#[derive(Debug)]
pub(super) struct DeclaredResponse {
    /// The status, the class (2 for `2XX`), or 0 for `default`.
    pub(super) status: u32,
    /// Its media types.
    pub(super) media: Vec<Media>,
}

/// A media type, or a range of them, in lower case, and the place of its schema.
pub(super) type Media = (String, Option<usize>);

/// What is declared of one place.
#[derive(Debug, Default, Clone)]
pub(super) struct Place {
    /// Bits of [`Shape`].
    pub(super) types: u32,
    /// The properties by their folded names.
    pub(super) properties: BTreeMap<String, usize>,
    /// Other properties are declared to be possible.
    pub(super) open: bool,
    /// The properties that must be there.
    pub(super) required: Vec<Required>,
    /// The place of items.
    pub(super) items: Option<usize>,
}

/// A required property.
#[derive(Debug, Clone)]
pub(super) struct Required {
    /// Folded.
    pub(super) name: String,
    /// It need not be in requests.
    pub(super) read_only: bool,
    /// It need not be in responses.
    pub(super) write_only: bool,
}

/// A schema of a place, and whether every value has to match it.
type Member<'d> = (&'d Value, bool);

struct Reader<'d> {
    root: &'d Value,
    places: Vec<Place>,
    known: HashMap<Vec<(usize, bool)>, usize>,
    /// Places whose schemas were not read yet: a long chain of references takes no stack.
    waiting: Vec<(usize, Vec<Member<'d>>)>,
}

impl Declared {
    /// Reads what a document declares. What it has wrong is left out: whether it compiles is another question.
    pub(super) fn read(root: &Value) -> Self {
        let anything = Place { types: ANY, open: true, ..Place::default() };
        let mut reader = Reader { root, places: vec![anything], known: HashMap::new(), waiting: Vec::new() };
        let mut operations = Vec::new();
        for (path, item) in root.get("paths").and_then(Value::as_object).into_iter().flatten() {
            let Some(item) = reader.followed(item).and_then(Value::as_object).filter(|_| path.starts_with('/')) else {
                continue;
            };
            for method in METHODS {
                let Some(operation) = item.get(method).and_then(Value::as_object) else { continue };
                operations.push(reader.operation(path, method, operation));
            }
        }
        while let Some((number, members)) = reader.waiting.pop() {
            let place = reader.declared(&members);
            if let Some(own) = reader.places.get_mut(number) {
                *own = place;
            }
        }
        let labels = operations.iter().enumerate();
        let by_label = labels.map(|(number, one)| ((one.method.clone(), one.path.clone()), number)).collect();
        Self { operations, by_label, places: reader.places }
    }

    /// The operation of a label.
    pub(super) fn operation(&self, method: &str, path: &str) -> Option<&DeclaredOperation> {
        let number = self.by_label.get(&(method.to_owned(), path.to_owned()))?;
        self.operations.get(*number)
    }

    /// What is declared of a place.
    pub(super) fn place(&self, number: usize) -> Option<&Place> {
        self.places.get(number)
    }
}

impl<'d> Reader<'d> {
    fn operation(&mut self, path: &str, method: &str, operation: &'d Map<String, Value>) -> DeclaredOperation {
        let body = operation.get("requestBody").and_then(|body| self.followed(body));
        let body = body.map(|body| self.media(body)).unwrap_or_default();
        let mut responses = Vec::new();
        for (status, response) in operation.get("responses").and_then(Value::as_object).into_iter().flatten() {
            let number = match status.as_bytes() {
                b"default" => 0,
                [class @ b'1'..=b'5', b'X' | b'x', b'X' | b'x'] => u32::from(class - b'0'),
                _ => match status.parse::<u32>() {
                    Ok(number) if (100..600).contains(&number) => number,
                    _ => continue,
                },
            };
            let media = self.followed(response).map(|response| self.media(response)).unwrap_or_default();
            responses.push(DeclaredResponse { status: number, media });
        }
        let operation_id = operation.get("operationId").and_then(Value::as_str).unwrap_or_default().to_owned();
        DeclaredOperation { method: method.to_ascii_uppercase(), path: path.to_owned(), operation_id, body, responses }
    }

    fn media(&mut self, owner: &'d Value) -> Vec<Media> {
        let mut media = Vec::new();
        for (range, content) in owner.get("content").and_then(Value::as_object).into_iter().flatten() {
            let essence = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            let place = content.get("schema").map(|schema| self.place(&[(schema, true)]));
            media.push((essence, place));
        }
        media
    }

    /// What a reference within the document leads to; the value itself where it is none.
    fn followed(&self, value: &'d Value) -> Option<&'d Value> {
        let mut value = value;
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Some(value) };
            value = self.target(reference)?;
        }
        None
    }

    fn target(&self, reference: &str) -> Option<&'d Value> {
        let pointer = reference.strip_prefix('#')?;
        self.root.pointer(pointer).or_else(|| self.root.pointer(&unescaped(pointer)))
    }

    /// The place of a set of schemas.
    fn place(&mut self, schemas: &[Member<'d>]) -> usize {
        let mut members = Vec::new();
        schemas.iter().for_each(|(schema, certain)| self.collect(schema, *certain, 0, &mut members));
        let mut key: Vec<(usize, bool)> =
            members.iter().map(|(schema, certain)| (std::ptr::from_ref::<Value>(schema).addr(), *certain)).collect();
        key.sort_unstable();
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        // The first place takes anything.
        let number = if self.places.len() < MAX_PLACES { self.places.len() } else { 0 };
        self.known.insert(key, number);
        if number > 0 {
            self.places.push(Place::default());
            self.waiting.push((number, members));
        }
        number
    }

    /// A schema and those that it is made of.
    fn collect(&self, schema: &'d Value, certain: bool, depth: usize, members: &mut Vec<Member<'d>>) {
        if depth > MAX_REFERENCES || members.len() >= MAX_SCHEMAS {
            return;
        }
        if members.iter().any(|(known, _)| std::ptr::eq(*known, schema)) {
            return;
        }
        members.push((schema, certain));
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| self.target(reference));
        target.into_iter().for_each(|target| self.collect(target, certain, depth + 1, members));
        let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        list("allOf").for_each(|part| self.collect(part, certain, depth + 1, members));
        list("oneOf").chain(list("anyOf")).for_each(|part| self.collect(part, false, depth + 1, members));
        let branches = ["then", "else"].into_iter().filter_map(|key| schema.get(key));
        branches.for_each(|part| self.collect(part, false, depth + 1, members));
    }

    fn declared(&mut self, members: &[Member<'d>]) -> Place {
        let mut place = Place { types: types_of(members), ..Place::default() };
        let mut properties: BTreeMap<String, Vec<Member<'d>>> = BTreeMap::new();
        let mut items: Vec<Member<'d>> = Vec::new();
        for (schema, certain) in members {
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                properties.entry(fold_segment(name.as_bytes())).or_default().push((property, *certain));
            }
            items.extend(schema.get("items").filter(|items| items.is_object()).map(|items| (items, *certain)));
            for prefixed in schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten() {
                items.push((prefixed, false));
            }
            let others = |key: &str| schema.get(key).is_some_and(|value| *value != Value::Bool(false));
            place.open |=
                ["additionalProperties", "patternProperties", "unevaluatedProperties"].into_iter().any(others);
            // A reference out of the document, and a schema that takes anything.
            let outside = schema.get("$ref").and_then(Value::as_str).is_some_and(|to| self.target(to).is_none());
            place.open |= outside || !schema.is_object() || schema.as_object().is_some_and(Map::is_empty);
        }
        for (schema, _) in members.iter().filter(|(_, certain)| *certain) {
            for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
            {
                let name = fold_segment(name.as_bytes());
                let own = properties.get(&name).map(Vec::as_slice).unwrap_or_default();
                let is = |key: &str| own.iter().any(|(schema, _)| self.says(schema, key));
                let (read_only, write_only) = (is("readOnly"), is("writeOnly"));
                if place.required.iter().all(|known| known.name != name) {
                    place.required.push(Required { name, read_only, write_only });
                }
            }
        }
        for (name, schemas) in properties {
            let number = self.place(&schemas);
            place.properties.insert(name, number);
        }
        if !items.is_empty() {
            place.items = Some(self.place(&items));
        }
        place
    }

    fn says(&self, schema: &'d Value, key: &str) -> bool {
        self.followed(schema).is_some_and(|schema| schema.get(key) == Some(&Value::Bool(true)))
    }
}

/// The types that any of the schemas takes. One that names none, and has others beside it that do, adds none.
fn types_of(members: &[Member<'_>]) -> u32 {
    let mut types = 0;
    for (schema, _) in members {
        if schema.as_object().is_none_or(Map::is_empty) {
            return if *schema == &Value::Bool(false) { continue } else { ANY };
        }
        types |= named(schema.get("type"));
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            types |= Shape::NULL;
        }
        if schema.get("type").is_none() {
            let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
            types |= values.fold(0, |all, value| all | type_of(value));
            types |= if schema.get("properties").is_some() { Shape::OBJECT } else { 0 };
            types |= if schema.get("items").is_some() { Shape::ARRAY } else { 0 };
        }
    }
    // Whole numbers are numbers, and null alone beside a schema without a type says nothing.
    if types & Shape::NUMBER != 0 {
        types |= Shape::INTEGER;
    }
    if types & !Shape::NULL == 0 { ANY } else { types }
}

fn named(types: Option<&Value>) -> u32 {
    let one = |name: &str| match name {
        "null" => Shape::NULL,
        "boolean" => Shape::BOOLEAN,
        "object" => Shape::OBJECT,
        "array" => Shape::ARRAY,
        "number" => Shape::NUMBER,
        "string" => Shape::STRING,
        "integer" => Shape::INTEGER,
        _ => 0,
    };
    match types {
        Some(Value::String(name)) => one(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).fold(0, |all, name| all | one(name)),
        _ => 0,
    }
}

fn type_of(value: &Value) -> u32 {
    match value {
        Value::Null => Shape::NULL,
        Value::Bool(_) => Shape::BOOLEAN,
        Value::Number(number) if number.is_f64() => Shape::NUMBER,
        Value::Number(_) => Shape::INTEGER,
        Value::String(_) => Shape::STRING,
        Value::Array(_) => Shape::ARRAY,
        Value::Object(_) => Shape::OBJECT,
    }
}

/// A pointer without the escapes of URLs.
fn unescaped(pointer: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = pointer.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escape = behind.split_at_checked(2).filter(|_| *first == b'%');
        let byte = escape.and_then(|(hex, _)| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (byte, escape) {
            (Some(byte), Some((_, behind))) => {
                bytes.push(byte);
                rest = behind;
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
