//! Schemas into records.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::references::{Resources, Target, join, last};
use super::{CompileError, Dialect, MAX_SCHEMAS, Warnings};
use crate::compiled::MAX_PATTERNS;
use crate::format::Format;
use crate::pattern::{Matcher, Untranslated, build, translate};
use crate::record::{Dependent, NamedSchema, ResourceRecord, SchemaRecord, types};

/// The longest chain of references.
const MAX_CHAIN: usize = 64;

/// Compiles schemas of a document, each place once.
pub(super) struct Compiler<'d> {
    pub(super) root: &'d Value,
    pub(super) dialect: Dialect,
    pub(super) warnings: Warnings,
    resources: Resources,
    texts: Vec<Vec<u8>>,
    text_places: HashMap<Vec<u8>, u32>,
    places: HashMap<String, u32>,
    records: Vec<SchemaRecord>,
    pending: Vec<(u32, String)>,
    patterns: HashMap<String, Option<u32>>,
    /// The memory that they take when they are compiled, in bytes.
    pattern_bytes: usize,
    outside: HashSet<String>,
}

impl<'d> Compiler<'d> {
    pub(super) fn new(root: &'d Value, dialect: Dialect, is_schema: bool) -> Self {
        let resources = match dialect {
            Dialect::Version30 => Resources::plain(),
            Dialect::Version31 => Resources::find(root, is_schema),
        };
        let mut compiler = Self {
            root,
            dialect,
            warnings: Warnings::default(),
            resources,
            texts: Vec::new(),
            text_places: HashMap::new(),
            places: HashMap::new(),
            records: Vec::new(),
            pending: Vec::new(),
            patterns: HashMap::new(),
            pattern_bytes: 0,
            outside: HashSet::new(),
        };
        // The number 0 is the empty text.
        compiler.text(b"");
        compiler
    }

    /// The number of a text.
    pub(super) fn text(&mut self, text: &[u8]) -> u32 {
        if let Some(place) = self.text_places.get(text) {
            return *place;
        }
        let place = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.to_vec());
        self.text_places.insert(text.to_vec(), place);
        place
    }

    /// The value at a pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&'d Value> {
        self.root.pointer(pointer)
    }

    /// Where a reference of a schema leads.
    pub(super) fn target(&self, reference: &str, from: &str) -> Target {
        self.resources.target(reference, from)
    }

    /// Follows the references of an object of the document that is no schema; `None` with a warning where it cannot.
    pub(super) fn object_at(&mut self, pointer: &str) -> Option<(String, &'d Map<String, Value>)> {
        let mut place = pointer.to_owned();
        for _ in 0..MAX_CHAIN {
            let object = self.at(&place)?.as_object()?;
            let Some(reference) = object.get("$ref").and_then(Value::as_str) else { return Some((place, object)) };
            place = self.follow(reference, &place)?;
        }
        self.warnings.add(pointer, "its references lead in a circle, so that it checks nothing");
        None
    }

    /// Where a reference leads; `None` with a warning where that is nowhere in the document.
    fn follow(&mut self, reference: &str, from: &str) -> Option<String> {
        if let Target::Inside(pointer, _) = self.resources.target(reference, from)
            && self.at(&pointer).is_some()
        {
            return Some(pointer);
        }
        if self.outside.insert(reference.to_owned()) {
            let shown: String = reference.chars().take(200).collect();
            let message = if reference.starts_with('#') {
                format!("there is no `{shown}` in the document; what refers to it checks nothing")
            } else {
                format!("`{shown}` is outside of the document and is not fetched; what refers to it checks nothing")
            };
            self.warnings.add(from, message);
        }
        None
    }

    /// The number of the schema at a place, which is compiled later.
    pub(super) fn schema_at(&mut self, pointer: &str) -> Result<u32, CompileError> {
        if let Some(place) = self.places.get(pointer) {
            return Ok(*place);
        }
        if self.records.len() >= MAX_SCHEMAS {
            let message = format!("the document has more than {MAX_SCHEMAS} schemas");
            return Err(CompileError { pointer: pointer.to_owned(), message });
        }
        let place = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        self.records.push(SchemaRecord::default());
        self.places.insert(pointer.to_owned(), place);
        self.pending.push((place, pointer.to_owned()));
        Ok(place)
    }

    /// Compiles what is due, and what that refers to.
    pub(super) fn finish_schemas(&mut self) -> Result<(), CompileError> {
        self.drain()?;
        // Dynamic anchors may lead to schemas that nothing else refers to.
        let anchors: Vec<String> = self.dynamic_anchors().map(|(_, _, pointer)| pointer).collect();
        for pointer in anchors {
            self.schema_at(&pointer)?;
        }
        self.drain()
    }

    fn drain(&mut self) -> Result<(), CompileError> {
        while let Some((place, pointer)) = self.pending.pop() {
            let record = self.compile(&pointer)?;
            if let Some(slot) = usize::try_from(place).ok().and_then(|place| self.records.get_mut(place)) {
                *slot = record;
            }
        }
        Ok(())
    }

    fn dynamic_anchors(&self) -> impl Iterator<Item = (usize, String, String)> {
        self.resources.list.iter().enumerate().flat_map(|(place, resource)| {
            resource.dynamic.iter().map(move |(name, pointer)| (place, name.clone(), pointer.clone()))
        })
    }

    /// The texts, the schemas and the resources.
    pub(super) fn into_records(mut self) -> (Vec<Vec<u8>>, Vec<SchemaRecord>, Vec<ResourceRecord>) {
        let mut resources = vec![ResourceRecord::default(); self.resources.list.len()];
        let anchors: Vec<_> = self.dynamic_anchors().collect();
        for (resource, name, pointer) in anchors {
            let name = self.text(name.as_bytes());
            if let (Some(schema), Some(resource)) = (self.places.get(&pointer), resources.get_mut(resource)) {
                resource.anchors.push(NamedSchema { name, schema: *schema });
            }
        }
        (self.texts, self.records, resources)
    }

    fn compile(&mut self, pointer: &str) -> Result<SchemaRecord, CompileError> {
        let resource = u32::try_from(self.resources.of(pointer)).unwrap_or(0);
        let mut record = SchemaRecord { resource, ..SchemaRecord::default() };
        let object = match self.at(pointer) {
            Some(Value::Object(object)) => object,
            Some(Value::Bool(allowed)) => {
                record.never = !allowed;
                return Ok(record);
            }
            _ => {
                self.warnings.add(pointer, "this is no schema, so that it checks nothing");
                return Ok(record);
            }
        };
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            record.reference = match self.follow(reference, pointer) {
                Some(target) => Some(self.schema_at(&target)?),
                None => None,
            };
            if self.dialect == Dialect::Version30 {
                // Its siblings are ignored (OpenAPI 3.0.3, reference object).
                return Ok(record);
            }
        }
        if let Some(reference) = object.get("$dynamicRef").and_then(Value::as_str)
            && let Some(target) = self.follow(reference, pointer)
        {
            record.dynamic_reference = Some(self.schema_at(&target)?);
            if let Target::Inside(_, Some(anchor)) = self.resources.target(reference, pointer) {
                record.dynamic_anchor = Some(self.text(anchor.as_bytes()));
            }
        }
        self.value_keywords(object, pointer, &mut record);
        self.object_keywords(object, pointer, &mut record)?;
        self.array_keywords(object, pointer, &mut record)?;
        self.combinations(object, pointer, &mut record)?;
        Ok(record)
    }

    fn value_keywords(&mut self, object: &'d Map<String, Value>, pointer: &str, record: &mut SchemaRecord) {
        let old = self.dialect == Dialect::Version30;
        record.types = self.types(object);
        record.nullable = old && object.get("nullable") == Some(&Value::Bool(true));
        let number = |key: &str| match object.get(key) {
            Some(Value::Number(number)) => Some(number.to_string().into_bytes()),
            _ => None,
        };
        let excludes = |key: &str| object.get(key) == Some(&Value::Bool(true));
        if excludes("exclusiveMinimum") {
            record.above = number("minimum")
        } else {
            record.minimum = number("minimum")
        }
        if excludes("exclusiveMaximum") {
            record.below = number("maximum")
        } else {
            record.maximum = number("maximum")
        }
        record.above = number("exclusiveMinimum").or(record.above.take());
        record.below = number("exclusiveMaximum").or(record.below.take());
        record.multiple_of = number("multipleOf").filter(|text| text.iter().any(|byte| (b'1'..=b'9').contains(byte)));
        let values = match (object.get("enum"), object.get("const")) {
            // Both at once are rare: the constant is the stricter one.
            (_, Some(constant)) if !old => Some(vec![constant.clone()]),
            (Some(Value::Array(values)), _) => Some(values.clone()),
            _ => None,
        };
        record.values = values.and_then(|values| serde_json::to_vec(&values).ok());
        record.min_length = count(object, "minLength");
        record.max_length = count(object, "maxLength");
        if let Some(format) = object.get("format").and_then(Value::as_str).and_then(Format::named) {
            record.format = format as u32;
        }
        if let Some(pattern) = object.get("pattern").and_then(Value::as_str) {
            record.pattern = self.pattern(pattern, &join(pointer, "pattern"));
        }
    }

    /// The types that `type` names; 0 for all.
    pub(super) fn types(&self, object: &Map<String, Value>) -> u32 {
        let strict = if self.dialect == Dialect::Version30 { types::STRICT_INTEGER } else { 0 };
        let bit = |name: &str| match name {
            "null" => types::NULL,
            "boolean" => types::BOOLEAN,
            "object" => types::OBJECT,
            "array" => types::ARRAY,
            "number" => types::NUMBER,
            "string" => types::STRING,
            "integer" => types::INTEGER | strict,
            // `file`, `any` and other words check nothing.
            _ => 0,
        };
        match object.get("type") {
            Some(Value::String(name)) => bit(name),
            Some(Value::Array(names)) => {
                let bits: Vec<u32> = names.iter().filter_map(Value::as_str).map(bit).collect();
                if bits.contains(&0) { 0 } else { bits.iter().fold(0, |all, bit| all | bit) }
            }
            _ => 0,
        }
    }

    /// The number of a pattern in the engine's syntax; `None` with a warning where it cannot be translated.
    fn pattern(&mut self, pattern: &str, pointer: &str) -> Option<u32> {
        if let Some(known) = self.patterns.get(pattern) {
            return *known;
        }
        let translated = match translate(pattern) {
            Ok(translated) => build(&translated).map(|_| translated).map_err(|error| {
                let last = error.lines().last().unwrap_or_default().to_owned();
                format!("the engine does not take it ({last})")
            }),
            Err(Untranslated::Unsupported(why)) => Err(format!("the engine has no such pattern: {why}")),
            Err(Untranslated::Wrong(why)) => Err(format!("it is no pattern: {why}")),
        };
        let place = match translated {
            Ok(translated) => {
                self.count_pattern(&translated, pointer);
                Some(self.text(translated.as_bytes()))
            }
            Err(why) => {
                self.warnings.add(pointer, format!("the pattern checks nothing: {why}"));
                None
            }
        };
        self.patterns.insert(pattern.to_owned(), place);
        place
    }

    /// Adds up the memory of patterns, with a warning where a filter has no room for all of them.
    fn count_pattern(&mut self, translated: &str, pointer: &str) {
        let before = self.pattern_bytes;
        self.pattern_bytes += Matcher::build(translated).map_or(0, |matcher| matcher.memory());
        if before <= MAX_PATTERNS && self.pattern_bytes > MAX_PATTERNS {
            let message = "with this one the compiled patterns of the document have more than 8 MiB, which is what a gateway keeps: \
                they are compiled again and again, and a body with many of them may take too much work";
            self.warnings.add(pointer, message);
        }
    }

    fn object_keywords(
        &mut self,
        object: &'d Map<String, Value>,
        pointer: &str,
        record: &mut SchemaRecord,
    ) -> Result<(), CompileError> {
        record.min_properties = count(object, "minProperties");
        record.max_properties = count(object, "maxProperties");
        let mut properties = Vec::new();
        for (name, place) in members(object, pointer, "properties") {
            properties.push((name, self.schema_at(&place)?));
        }
        properties.sort_by(|one, two| one.0.as_bytes().cmp(two.0.as_bytes()));
        for (name, schema) in properties {
            record.properties.push(NamedSchema { name: self.text(name.as_bytes()), schema });
        }
        for (pattern, place) in members(object, pointer, "patternProperties") {
            let schema = self.schema_at(&place)?;
            if let Some(name) = self.pattern(pattern, &place) {
                record.pattern_properties.push(NamedSchema { name, schema });
            } else {
                // What the pattern would have taken out of `additionalProperties` is unknown.
                record.pattern_properties.push(NamedSchema { name: self.text(b""), schema: self.anything()? });
            }
        }
        record.additional_properties = self.child(object, pointer, "additionalProperties")?;
        record.property_names = self.child(object, pointer, "propertyNames")?;
        record.unevaluated_properties = self.child(object, pointer, "unevaluatedProperties")?;
        for name in texts(object.get("required")) {
            let (reads, writes) = self.sides(pointer, name);
            let name = self.text(name.as_bytes());
            match (reads, writes) {
                (true, false) => record.required_read.push(name),
                (false, true) => record.required_write.push(name),
                (true, true) => {}
                (false, false) => record.required.push(name),
            }
        }
        for key in ["dependentRequired", "dependencies"] {
            for (name, needed) in object.get(key).and_then(Value::as_object).into_iter().flatten() {
                if needed.is_array() {
                    let required = texts(Some(needed)).map(|name| self.text(name.as_bytes())).collect();
                    record.dependent_required.push(Dependent { name: self.text(name.as_bytes()), required });
                }
            }
        }
        for key in ["dependentSchemas", "dependencies"] {
            for (name, place) in members(object, pointer, key) {
                if self.at(&place).is_some_and(|schema| !schema.is_array()) {
                    let schema = self.schema_at(&place)?;
                    record.dependent_schemas.push(NamedSchema { name: self.text(name.as_bytes()), schema });
                }
            }
        }
        Ok(())
    }

    /// A schema that everything matches.
    fn anything(&mut self) -> Result<u32, CompileError> {
        if let Some(place) = self.places.get("anything") {
            return Ok(*place);
        }
        // No pointer is this word.
        let place = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        self.records.push(SchemaRecord::default());
        self.places.insert("anything".to_owned(), place);
        Ok(place)
    }

    fn array_keywords(
        &mut self,
        object: &'d Map<String, Value>,
        pointer: &str,
        record: &mut SchemaRecord,
    ) -> Result<(), CompileError> {
        record.min_items = count(object, "minItems");
        record.max_items = count(object, "maxItems");
        record.unique_items = object.get("uniqueItems") == Some(&Value::Bool(true));
        record.prefix_items = self.children(object, pointer, "prefixItems")?;
        if object.get("items").is_some_and(Value::is_array) {
            // The form of earlier drafts.
            record.prefix_items = self.children(object, pointer, "items")?;
            record.items = self.child(object, pointer, "additionalItems")?;
        } else {
            record.items = self.child(object, pointer, "items")?;
        }
        record.contains = self.child(object, pointer, "contains")?;
        record.min_contains = count(object, "minContains");
        record.max_contains = count(object, "maxContains");
        record.unevaluated_items = self.child(object, pointer, "unevaluatedItems")?;
        Ok(())
    }

    fn combinations(
        &mut self,
        object: &'d Map<String, Value>,
        pointer: &str,
        record: &mut SchemaRecord,
    ) -> Result<(), CompileError> {
        record.all_of = self.children(object, pointer, "allOf")?;
        record.any_of = self.children(object, pointer, "anyOf")?;
        record.one_of = self.children(object, pointer, "oneOf")?;
        record.not = self.child(object, pointer, "not")?;
        if self.dialect == Dialect::Version31 {
            record.condition = self.child(object, pointer, "if")?;
            record.then = self.child(object, pointer, "then")?;
            record.otherwise = self.child(object, pointer, "else")?;
        }
        let discriminator = object.get("discriminator").and_then(Value::as_object);
        let property = discriminator.and_then(|discriminator| discriminator.get("propertyName")?.as_str());
        if let Some(property) = property {
            record.discriminator = Some(self.text(property.as_bytes()));
            let mapping = discriminator.and_then(|discriminator| discriminator.get("mapping")?.as_object());
            for (key, numbers) in [("oneOf", record.one_of.clone()), ("anyOf", record.any_of.clone())] {
                let branches = object.get(key).and_then(Value::as_array).into_iter().flatten();
                for (branch, schema) in branches.zip(numbers) {
                    let Some(reference) = branch.get("$ref").and_then(Value::as_str) else { continue };
                    let named = mapping.into_iter().flatten().filter(|(_, target)| {
                        target.as_str().is_some_and(|target| {
                            target == reference || format!("#/components/schemas/{target}") == reference
                        })
                    });
                    let names: Vec<String> = named.map(|(name, _)| name.clone()).chain([last(reference)]).collect();
                    for name in names {
                        record.mapping.push(NamedSchema { name: self.text(name.as_bytes()), schema });
                    }
                }
            }
        }
        Ok(())
    }

    fn child(&mut self, object: &Map<String, Value>, pointer: &str, key: &str) -> Result<Option<u32>, CompileError> {
        match object.get(key) {
            Some(Value::Object(_) | Value::Bool(_)) => self.schema_at(&join(pointer, key)).map(Some),
            _ => Ok(None),
        }
    }

    fn children(&mut self, object: &Map<String, Value>, pointer: &str, key: &str) -> Result<Vec<u32>, CompileError> {
        let count = object.get(key).and_then(Value::as_array).map_or(0, Vec::len);
        (0..count).map(|place| self.schema_at(&format!("{pointer}/{key}/{place}"))).collect()
    }

    /// The schema at a place and behind its references, and where it is.
    pub(super) fn followed(&self, pointer: &str) -> Option<(String, &'d Map<String, Value>)> {
        let mut place = pointer.to_owned();
        for _ in 0..MAX_CHAIN {
            let object = self.at(&place)?.as_object()?;
            match object.get("$ref").and_then(Value::as_str) {
                Some(reference) => match self.resources.target(reference, &place) {
                    Target::Inside(target, _) => place = target,
                    Target::Outside => return None,
                },
                None => return Some((place, object)),
            }
        }
        None
    }
}

/// A count; also one that is written with a fraction of 0.
fn count(object: &Map<String, Value>, key: &str) -> Option<u64> {
    let value = object.get(key)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
    value.as_u64().or_else(|| {
        value
            .as_f64()
            .filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number))
            .map(|number| number as u64)
    })
}

fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The members of an object below a key, with where they are.
fn members<'d>(object: &'d Map<String, Value>, pointer: &str, key: &str) -> Vec<(&'d str, String)> {
    let below = join(pointer, key);
    let all = object.get(key).and_then(Value::as_object).into_iter().flatten();
    all.map(|(name, _)| (name.as_str(), join(&below, name))).collect()
}
