//! A compiled contract in a filter: what an image says is decoded when it is needed first.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use prost::Message;
use regex_automata::meta::Regex;

use crate::format::Format;
use crate::image::{Image, Table};
use crate::json::Document;
use crate::number::Number;
use crate::record::{OperationRecord, ResourceRecord, RouteRecord, SchemaRecord};

/// The memory that compiled patterns of a contract take, at most; those that are not compiled check nothing. In bytes: 8 MiB.
const MAX_PATTERNS: usize = 8 << 20;

/// A compiled contract.
pub struct Contract {
    image: Image,
    schemas: Vec<OnceCell<Option<Box<Schema>>>>,
    routes: Vec<OnceCell<Option<RouteRecord>>>,
    operations: Vec<OnceCell<Option<OperationRecord>>>,
    resources: Vec<ResourceRecord>,
    patterns: RefCell<HashMap<u32, Option<Rc<Regex>>>>,
    pattern_bytes: Cell<usize>,
}

/// A schema, with what its record holds as text.
pub(crate) struct Schema {
    pub(crate) record: SchemaRecord,
    pub(crate) values: Option<Document<'static>>,
    pub(crate) minimum: Option<Number>,
    pub(crate) maximum: Option<Number>,
    pub(crate) above: Option<Number>,
    pub(crate) below: Option<Number>,
    pub(crate) multiple_of: Option<Number>,
    pub(crate) format: Option<Format>,
    pattern: OnceCell<Option<Rc<Regex>>>,
    /// It has keywords for objects.
    pub(crate) for_objects: bool,
    /// It has keywords for arrays.
    pub(crate) for_arrays: bool,
}

impl Contract {
    /// Takes the compiled form.
    ///
    /// # Errors
    ///
    /// It is damaged, too large, or of another version.
    pub fn open(bytes: &[u8]) -> Result<Self, String> {
        let image = Image::open(bytes)?;
        fn cells<T>(count: usize) -> Vec<OnceCell<T>> {
            std::iter::repeat_with(OnceCell::new).take(count).collect()
        }
        let resources = (0..image.count(Table::Resources)).map(|entry| {
            ResourceRecord::decode(image.record(Table::Resources, entry).unwrap_or_default())
                .map_err(|error| format!("a compiled contract is damaged: {error}"))
        });
        let resources = resources.collect::<Result<_, _>>()?;
        Ok(Self {
            schemas: cells(image.count(Table::Schemas)),
            routes: cells(image.count(Table::Routes)),
            operations: cells(image.count(Table::Operations)),
            resources,
            image,
            patterns: RefCell::default(),
            pattern_bytes: Cell::new(0),
        })
    }

    /// The bytes of its compiled form.
    #[must_use]
    pub fn size(&self) -> usize {
        self.image.size()
    }

    /// The operations that it has.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    pub(crate) fn text(&self, entry: u32) -> &[u8] {
        self.image.text(entry)
    }

    pub(crate) fn shown(&self, entry: u32) -> String {
        String::from_utf8_lossy(self.text(entry)).into_owned()
    }

    /// A schema; `None` where the record is damaged.
    pub(crate) fn schema(&self, entry: u32) -> Option<&Schema> {
        let place = usize::try_from(entry).ok()?;
        let made = self.schemas.get(place)?.get_or_init(|| {
            let record = SchemaRecord::decode(self.image.record(Table::Schemas, place)?).ok()?;
            Some(Box::new(Schema::of(record)))
        });
        made.as_deref()
    }

    pub(crate) fn route(&self, entry: u32) -> Option<&RouteRecord> {
        let place = usize::try_from(entry).ok()?;
        let decode = || RouteRecord::decode(self.image.record(Table::Routes, place)?).ok();
        self.routes.get(place)?.get_or_init(decode).as_ref()
    }

    pub(crate) fn operation(&self, entry: u32) -> Option<&OperationRecord> {
        let place = usize::try_from(entry).ok()?;
        let decode = || OperationRecord::decode(self.image.record(Table::Operations, place)?).ok();
        self.operations.get(place)?.get_or_init(decode).as_ref()
    }

    /// Whether schemas refer to dynamic anchors, so that the dynamic scope matters.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.resources.iter().any(|resource| !resource.anchors.is_empty())
    }

    /// The schema with a dynamic anchor in a resource.
    pub(crate) fn dynamic_anchor(&self, resource: u32, name: u32) -> Option<u32> {
        let resource = self.resources.get(usize::try_from(resource).ok()?)?;
        resource.anchors.iter().find(|anchor| anchor.name == name).map(|anchor| anchor.schema)
    }

    /// A compiled pattern; `None` where it cannot be, or where patterns take too much memory already.
    pub(crate) fn pattern(&self, entry: u32) -> Option<Rc<Regex>> {
        if let Some(known) = self.patterns.borrow().get(&entry) {
            return known.clone();
        }
        let text = std::str::from_utf8(self.text(entry)).ok();
        let room = self.pattern_bytes.get() < MAX_PATTERNS;
        let made = text.filter(|_| room).and_then(|text| crate::pattern::build(text).ok()).map(Rc::new);
        let size = made.as_ref().map_or(0, |made| made.memory_usage());
        self.pattern_bytes.set(self.pattern_bytes.get().saturating_add(size));
        self.patterns.borrow_mut().insert(entry, made.clone());
        made
    }
}

impl Schema {
    fn of(record: SchemaRecord) -> Self {
        let number = |text: &Option<Vec<u8>>| text.as_deref().and_then(Number::read);
        let for_objects = !record.properties.is_empty()
            || !record.pattern_properties.is_empty()
            || record.additional_properties.is_some()
            || record.property_names.is_some()
            || !record.required.is_empty()
            || !record.required_read.is_empty()
            || !record.required_write.is_empty()
            || !record.dependent_required.is_empty()
            || !record.dependent_schemas.is_empty()
            || record.min_properties.is_some()
            || record.max_properties.is_some();
        let for_arrays = !record.prefix_items.is_empty()
            || record.items.is_some()
            || record.contains.is_some()
            || record.unique_items
            || record.min_items.is_some()
            || record.max_items.is_some();
        Self {
            values: record.values.clone().and_then(|text| Document::read(text).ok()),
            minimum: number(&record.minimum),
            maximum: number(&record.maximum),
            above: number(&record.above),
            below: number(&record.below),
            multiple_of: number(&record.multiple_of),
            format: Format::numbered(record.format),
            pattern: OnceCell::new(),
            for_objects,
            for_arrays,
            record,
        }
    }

    /// Its compiled pattern.
    pub(crate) fn pattern(&self, contract: &Contract) -> Option<&Regex> {
        let entry = self.record.pattern?;
        self.pattern.get_or_init(|| contract.pattern(entry)).as_deref()
    }
}

impl std::fmt::Debug for Contract {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (size, operations) = (self.size(), self.operations());
        f.debug_struct("Contract").field("size", &size).field("operations", &operations).finish_non_exhaustive()
    }
}
