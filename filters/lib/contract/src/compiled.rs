//! A compiled contract in a filter: what an image says is decoded when it is needed first.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

use prost::Message;

use crate::image::{Image, Table};
use crate::json::Item;
use crate::opened::Schema;
use crate::pattern::Matcher;
use crate::record::{OperationRecord, ResourceRecord, RouteRecord, SchemaRecord};

/// The most memory that is kept from one body for the next one, in items of 16 bytes: 1 MiB.
const MAX_KEPT: usize = 1 << 16;

/// The memory that compiled patterns of a contract take, at most. In bytes: 8 MiB.
pub(crate) const MAX_PATTERNS: usize = 8 << 20;

/// A compiled contract.
pub struct Contract {
    image: Image,
    schemas: Vec<OnceCell<Option<Box<Schema>>>>,
    routes: Vec<OnceCell<Option<RouteRecord>>>,
    operations: Vec<OnceCell<Option<OperationRecord>>>,
    resources: Vec<ResourceRecord>,
    dynamic: bool,
    patterns: RefCell<HashMap<u32, Option<Matcher>>>,
    pattern_bytes: Cell<usize>,
    /// There was no room for all patterns.
    pattern_overflow: Cell<bool>,
    /// The memory of the last body's items.
    items: Cell<Vec<Item>>,
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
        let resources: Vec<ResourceRecord> = resources.collect::<Result<_, _>>()?;
        Ok(Self {
            schemas: cells(image.count(Table::Schemas)),
            routes: cells(image.count(Table::Routes)),
            operations: cells(image.count(Table::Operations)),
            dynamic: resources.iter().any(|resource| !resource.anchors.is_empty()),
            resources,
            image,
            patterns: RefCell::default(),
            pattern_bytes: Cell::new(0),
            pattern_overflow: Cell::new(false),
            items: Cell::default(),
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

    /// Where a text is in the image.
    pub(crate) fn text_place(&self, entry: u32) -> (u32, u32) {
        self.image.text_place(entry)
    }

    /// A part of the image.
    #[inline]
    pub(crate) fn slice(&self, start: u32, end: u32) -> &[u8] {
        self.image.slice(start, end)
    }

    /// Memory for the items of a body.
    pub(crate) fn take_items(&self) -> Vec<Item> {
        self.items.take()
    }

    /// Keeps that memory for the next body.
    pub(crate) fn keep_items(&self, items: Vec<Item>) {
        if items.capacity() <= MAX_KEPT {
            self.items.set(items);
        }
    }

    pub(crate) fn shown(&self, entry: u32) -> String {
        String::from_utf8_lossy(self.text(entry)).into_owned()
    }

    /// A schema; `None` where the record is damaged.
    #[inline]
    pub(crate) fn schema(&self, entry: u32) -> Option<&Schema> {
        let place = usize::try_from(entry).ok()?;
        self.schemas.get(place)?.get_or_init(|| self.open_schema(place)).as_deref()
    }

    #[cold]
    fn open_schema(&self, place: usize) -> Option<Box<Schema>> {
        let record = SchemaRecord::decode(self.image.record(Table::Schemas, place)?).ok()?;
        Some(Box::new(Schema::of(record, self)))
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
        self.dynamic
    }

    /// The schema with a dynamic anchor in a resource.
    pub(crate) fn dynamic_anchor(&self, resource: u32, name: u32) -> Option<u32> {
        let resource = self.resources.get(usize::try_from(resource).ok()?)?;
        resource.anchors.iter().find(|anchor| anchor.name == name).map(|anchor| anchor.schema)
    }

    /// A compiled pattern; `None` where it cannot be. Where patterns take too much memory, all others make room. Also the bytes of it, if
    /// it was compiled now and may have been compiled before: that is work which requests can ask for again and again.
    pub(crate) fn pattern(&self, entry: u32) -> (Option<Matcher>, usize) {
        if let Some(known) = self.patterns.borrow().get(&entry) {
            return (known.clone(), 0);
        }
        let made = std::str::from_utf8(self.text(entry)).ok().and_then(|text| Matcher::build(text).ok());
        let size = made.as_ref().map_or(0, Matcher::memory);
        let mut patterns = self.patterns.borrow_mut();
        let mut bytes = self.pattern_bytes.get().saturating_add(size);
        if bytes > MAX_PATTERNS {
            patterns.clear();
            self.pattern_overflow.set(true);
            bytes = size;
        }
        self.pattern_bytes.set(bytes);
        patterns.insert(entry, made.clone());
        (made, if self.pattern_overflow.get() { size } else { 0 })
    }
}

impl std::fmt::Debug for Contract {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (size, operations) = (self.size(), self.operations());
        f.debug_struct("Contract").field("size", &size).field("operations", &operations).finish_non_exhaustive()
    }
}
