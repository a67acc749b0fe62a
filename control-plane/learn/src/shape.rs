//! What is known of JSON values at one place.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::Room;
use crate::number::Numbers;
use crate::tally::Ends;
use crate::text::Texts;

/// The deepest nesting that is described.
const MAX_DEPTH: usize = 16;
/// The properties of an object that are kept at once; rare ones give way.
const MAX_PROPERTIES: usize = 128;
/// The elements of a list that are looked at.
const MAX_ELEMENTS: usize = 64;

/// The values of one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) count: u64,
    pub(crate) nulls: u64,
    pub(crate) booleans: u64,
    pub(crate) numbers: Option<Box<Numbers>>,
    pub(crate) texts: Option<Box<Texts>>,
    pub(crate) lists: Option<Box<Lists>>,
    pub(crate) objects: Option<Box<Objects>>,
}

/// Lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    pub(crate) count: u64,
    pub(crate) lengths: Option<Ends>,
    pub(crate) items: Shape,
    /// Too deep to be described.
    pub(crate) any: bool,
}

/// Objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub(crate) count: u64,
    pub(crate) properties: BTreeMap<String, Property>,
    /// Values of properties that gave way.
    pub(crate) rest: Shape,
    /// Those that gave way, or were not kept.
    pub(crate) gone: u64,
    /// Too deep to be described.
    pub(crate) any: bool,
}

/// A property.
#[derive(Clone, Debug, Default)]
pub(crate) struct Property {
    /// The objects that have it.
    pub(crate) count: u64,
    pub(crate) shape: Shape,
}

impl Shape {
    pub(crate) fn observe(&mut self, value: &Value, room: &mut Room) {
        self.observe_at(value, room, 0);
    }

    fn observe_at(&mut self, value: &Value, room: &mut Room, depth: usize) {
        self.count += 1;
        match value {
            Value::Null => self.nulls += 1,
            Value::Bool(_) => self.booleans += 1,
            Value::Number(number) => {
                let numbers = self.numbers.get_or_insert_default();
                numbers.observe(number.as_f64().unwrap_or(f64::MAX), 1);
            }
            Value::String(text) => self.texts.get_or_insert_default().observe(text, 1),
            Value::Array(elements) => {
                let lists = self.lists.get_or_insert_default();
                lists.observe(elements, room, depth);
            }
            Value::Object(members) => {
                let objects = self.objects.get_or_insert_default();
                objects.observe(members, room, depth);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self, room: &mut Room) {
        self.count += other.count;
        self.nulls += other.nulls;
        self.booleans += other.booleans;
        if let Some(others) = other.numbers {
            self.numbers.get_or_insert_default().merge(*others);
        }
        if let Some(others) = other.texts {
            self.texts.get_or_insert_default().merge(*others);
        }
        if let Some(others) = other.lists {
            let lists = self.lists.get_or_insert_default();
            lists.count += others.count;
            lists.any |= others.any;
            match (&mut lists.lengths, others.lengths) {
                (Some(lengths), Some(more)) => lengths.merge(more),
                (None, more) => lists.lengths = more,
                (Some(_), None) => {}
            }
            lists.items.merge(others.items, room);
        }
        if let Some(others) = other.objects {
            self.objects.get_or_insert_default().merge(*others, room);
        }
    }

    /// How many kinds of values it has, `null` apart.
    pub(crate) fn kinds(&self) -> usize {
        let has = [
            self.booleans > 0,
            self.numbers.is_some(),
            self.texts.is_some(),
            self.lists.is_some(),
            self.objects.is_some(),
        ];
        has.into_iter().filter(|has| *has).count()
    }

    /// The places that it takes.
    fn places(&self) -> usize {
        let own = self.objects.as_ref().map_or(0, |objects| {
            objects.properties.values().map(|property| 1 + property.shape.places()).sum::<usize>()
                + objects.rest.places()
        });
        own + self.lists.as_ref().map_or(0, |lists| lists.items.places())
    }
}

impl Lists {
    fn observe(&mut self, elements: &[Value], room: &mut Room, depth: usize) {
        self.count += 1;
        #[expect(clippy::cast_precision_loss, reason = "lengths are small")]
        let length = Ends::of(elements.len() as f64, 1);
        match &mut self.lengths {
            Some(lengths) => lengths.merge(length),
            None => self.lengths = Some(length),
        }
        if depth >= MAX_DEPTH {
            self.any = true;
            return;
        }
        for element in elements.iter().take(MAX_ELEMENTS) {
            self.items.observe_at(element, room, depth + 1);
        }
    }
}

impl Objects {
    fn observe(&mut self, members: &Map<String, Value>, room: &mut Room, depth: usize) {
        self.count += 1;
        if depth >= MAX_DEPTH {
            self.any = true;
            return;
        }
        for (name, value) in members {
            if let Some(property) = self.properties.get_mut(name) {
                property.count += 1;
                property.shape.observe_at(value, room, depth + 1);
                continue;
            }
            // Keys that are values have no place of their own: maps have any number of them.
            if !crate::names::is_name(name) {
                self.gone += 1;
                self.rest.observe_at(value, room, MAX_DEPTH);
                continue;
            }
            if self.properties.len() >= MAX_PROPERTIES {
                self.shrink(room);
            }
            if !room.take() {
                self.gone += 1;
                continue;
            }
            let property = self.properties.entry(name.clone()).or_default();
            property.count += 1;
            property.shape.observe_at(value, room, depth + 1);
        }
    }

    /// Lets the rarer half of the properties go. What is in most objects is never among them, so that it keeps its count.
    fn shrink(&mut self, room: &mut Room) {
        let mut counts: Vec<u64> = self.properties.values().map(|property| property.count).collect();
        counts.sort_unstable();
        let bar = counts.get(counts.len() / 2).copied().unwrap_or_default();
        let gone: Vec<String> = self
            .properties
            .iter()
            .filter(|(_, property)| property.count <= bar)
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            if let Some(property) = self.properties.remove(&name) {
                room.give(1 + property.shape.places());
                self.gone += property.count;
                self.rest.merge(flat(property.shape), room);
            }
        }
    }

    fn merge(&mut self, other: Self, room: &mut Room) {
        self.count += other.count;
        self.gone += other.gone;
        self.any |= other.any;
        self.rest.merge(other.rest, room);
        for (name, property) in other.properties {
            if self.properties.len() >= MAX_PROPERTIES && !self.properties.contains_key(&name) {
                self.shrink(room);
            }
            if self.properties.contains_key(&name) {
                room.give(1);
            }
            let own = self.properties.entry(name).or_default();
            own.count += property.count;
            own.shape.merge(property.shape, room);
        }
    }
}

/// A shape without what is within its lists and objects.
pub(crate) fn flat(mut shape: Shape) -> Shape {
    if let Some(lists) = &mut shape.lists {
        lists.items = Shape::default();
        lists.any = true;
    }
    if let Some(objects) = &mut shape.objects {
        objects.properties = BTreeMap::new();
        objects.rest = Shape::default();
        objects.any = true;
    }
    shape
}
