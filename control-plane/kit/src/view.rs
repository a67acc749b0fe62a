//! What a compilation looked at, so that its result holds for as long as that stays as it is.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use material::{Gathered, GatheredSet};
use serde_json::Value;

use crate::{AnyEntity, Collection, Entity, EntitySource, Item};

/// What is compiled: the entities, and what was gathered beside them.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The entities.
    pub entities: &'a dyn EntitySource,
    /// What gatherers have given the compiler.
    pub gathered: &'a GatheredSet,
}

/// The inputs as a compilation sees them. It notes what was looked at.
pub struct View<'a> {
    inputs: Inputs<'a>,
    seen: RefCell<Vec<Seen>>,
}

/// Something that was looked at, as it was.
enum Seen {
    /// One entity, or that there was none.
    One { collection: &'static str, id: String, entity: Option<Arc<dyn AnyEntity>> },
    /// All entities of a collection.
    All { collection: &'static str, entities: Option<Arc<Collection>> },
    /// Something gathered, or that there was none.
    Gathered { name: String, gathered: Option<Arc<Gathered>> },
}

/// What was compiled, by what it was compiled from. All that is asked for in one pass has the same inputs.
pub struct Memory<V> {
    /// By collection and id.
    known: HashMap<&'static str, HashMap<String, Known<V>>>,
    /// The collections that anything was compiled from.
    collections: Vec<Watched>,
    /// Counts the passes, so that what no entity asks for any more is forgotten.
    pass: u64,
    /// The pass whose inputs the collections were compared with.
    compared: Option<u64>,
}

/// A collection, as it was in the last pass.
struct Watched {
    name: &'static str,
    entities: Option<Arc<Collection>>,
    /// The pass that found it changed.
    changed: u64,
}

struct Known<V> {
    /// With the place of the collection in [`Memory::collections`]; `None` for what was gathered.
    seen: Vec<(Option<usize>, Seen)>,
    value: Arc<V>,
    pass: u64,
}

// === impl Inputs ===

impl<'a> Inputs<'a> {
    /// Entities alone.
    #[must_use]
    pub fn entities(entities: &'a dyn EntitySource) -> Self {
        static NOTHING: LazyLock<GatheredSet> = LazyLock::new(GatheredSet::new);
        Self { entities, gathered: &NOTHING }
    }
}

// === impl View ===

impl<'a> View<'a> {
    /// A view of entities alone.
    #[must_use]
    pub fn new(entities: &'a dyn EntitySource) -> Self {
        Self::of(Inputs::entities(entities))
    }

    /// A view of all inputs.
    #[must_use]
    pub fn of(inputs: Inputs<'a>) -> Self {
        Self { inputs, seen: RefCell::default() }
    }

    /// What a gatherer has given under this name; `None` where it has nothing yet, as after each start. A plugin compiles without it
    /// then, and says in a warning what is missing: an entity is not refused for what is not its own fault.
    pub fn gathered(&self, name: &str) -> Option<Arc<Gathered>> {
        let gathered = self.inputs.gathered.get(name).cloned();
        self.note(Seen::Gathered { name: name.to_owned(), gathered: gathered.clone() });
        gathered
    }

    /// The entity of a type with this id.
    pub fn get<T: Entity>(&self, id: &str) -> Option<&'a Item<T>> {
        self.entity(T::COLLECTION, id)?.as_any().downcast_ref()
    }

    /// An entity of another plugin as it is shown, where its type is not known; `None` if there is none.
    pub fn shown(&self, collection: &'static str, id: &str) -> Option<Value> {
        self.entity(collection, id).map(AnyEntity::shown)
    }

    /// Whether a collection of another plugin has an entity that is enabled.
    pub fn has_enabled(&self, collection: &'static str) -> bool {
        let entities = self.inputs.entities.collection(collection);
        self.note(Seen::All { collection, entities: entities.cloned() });
        entities.is_some_and(|all| all.values().any(|slot| slot.entity.is_enabled()))
    }

    fn entity(&self, collection: &'static str, id: &str) -> Option<&'a dyn AnyEntity> {
        let slot = self.inputs.entities.slot(collection, id);
        let entity = slot.map(|slot| Arc::clone(&slot.entity));
        self.note(Seen::One { collection, id: id.to_owned(), entity });
        slot.map(|slot| &*slot.entity)
    }

    /// All entities of a type, by id.
    pub fn all<T: Entity>(&self) -> impl Iterator<Item = &'a Item<T>> + use<'a, T> {
        let entities = self.inputs.entities.collection(T::COLLECTION);
        self.note(Seen::All { collection: T::COLLECTION, entities: entities.cloned() });
        entities.into_iter().flat_map(|all| all.values()).filter_map(|slot| slot.entity.as_any().downcast_ref())
    }

    fn note(&self, seen: Seen) {
        self.seen.borrow_mut().push(seen);
    }
}

// === impl Seen ===

impl Seen {
    /// Whether it would be seen again in these inputs.
    fn holds(&self, Inputs { entities: set, gathered: given }: Inputs<'_>) -> bool {
        match self {
            Self::Gathered { name, gathered } => match (gathered, given.get(name)) {
                (Some(gathered), Some(now)) => gathered.version() == now.version(),
                (None, None) => true,
                _ => false,
            },
            Self::One { collection, id, entity } => {
                let now = set.slot(collection, id).map(|slot| &slot.entity);
                match (entity, now) {
                    (Some(entity), Some(now)) => Arc::ptr_eq(entity, now),
                    (None, None) => true,
                    _ => false,
                }
            }
            Self::All { collection, entities } => is_same(entities.as_ref(), set.collection(collection)),
        }
    }

    /// The collection that was looked at.
    fn collection(&self) -> Option<&'static str> {
        match self {
            Self::One { collection, .. } | Self::All { collection, .. } => Some(collection),
            Self::Gathered { .. } => None,
        }
    }
}

// === impl Memory ===

impl<V> Memory<V> {
    /// What `compile` makes for an entity; what it made before where nothing that it looked at has changed. Failures are
    /// not kept.
    pub fn get<E>(
        &mut self,
        collection: &'static str,
        id: &str,
        inputs: Inputs<'_>,
        compile: impl FnOnce(&View<'_>) -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        if self.compared != Some(self.pass) {
            self.compare(inputs);
        }
        let of_collection = self.known.entry(collection).or_default();
        if let Some(known) = of_collection.get_mut(id)
            && known.holds(&self.collections, inputs)
        {
            known.pass = self.pass;
            return Ok(Arc::clone(&known.value));
        }
        let view = View::of(inputs);
        let value = Arc::new(compile(&view)?);
        let seen = view.seen.into_inner().into_iter();
        let seen = seen.map(|seen| (seen.collection().map(|name| self.watched(name, inputs)), seen)).collect();
        let known = Known { seen, value: Arc::clone(&value), pass: self.pass };
        self.known.entry(collection).or_default().insert(id.to_owned(), known);
        Ok(value)
    }

    /// What was made for an entity in this pass.
    pub fn known(&self, collection: &'static str, id: &str) -> Option<&V> {
        let known = self.known.get(collection)?.get(id)?;
        (known.pass == self.pass).then_some(&*known.value)
    }

    /// Ends a pass over all entities: what was not asked for in it is forgotten.
    pub fn end_pass(&mut self) {
        let pass = self.pass;
        for of_collection in self.known.values_mut() {
            of_collection.retain(|_, known| known.pass == pass);
        }
        self.pass += 1;
    }

    /// Notes which collections have changed since the pass before: what looked at the others alone still holds.
    fn compare(&mut self, inputs: Inputs<'_>) {
        self.compared = Some(self.pass);
        for watched in &mut self.collections {
            let now = inputs.entities.collection(watched.name);
            if !is_same(watched.entities.as_ref(), now) {
                (watched.entities, watched.changed) = (now.cloned(), self.pass);
            }
        }
    }

    /// The place of a collection.
    fn watched(&mut self, name: &'static str, inputs: Inputs<'_>) -> usize {
        self.collections.iter().position(|watched| watched.name == name).unwrap_or_else(|| {
            let entities = inputs.entities.collection(name).cloned();
            self.collections.push(Watched { name, entities, changed: self.pass });
            self.collections.len() - 1
        })
    }
}

impl<V> Known<V> {
    /// Whether everything would be seen again. In the pass of its own, which was the one before or an earlier one, it did.
    fn holds(&self, collections: &[Watched], inputs: Inputs<'_>) -> bool {
        let is_as_before = |at: usize| collections.get(at).is_some_and(|watched| watched.changed <= self.pass);
        self.seen.iter().all(|(at, seen)| at.is_some_and(is_as_before) || seen.holds(inputs))
    }
}

fn is_same(one: Option<&Arc<Collection>>, other: Option<&Arc<Collection>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

impl<V> Default for Memory<V> {
    fn default() -> Self {
        Self { known: HashMap::new(), collections: Vec::new(), pass: 0, compared: None }
    }
}

#[cfg(test)]
mod tests {
    use material::Material;

    use super::*;

    struct Empty;

    impl EntitySource for Empty {
        fn slot(&self, _: &str, _: &str) -> Option<&crate::Slot> {
            None
        }

        fn collection(&self, _: &str) -> Option<&Arc<Collection>> {
            None
        }
    }

    #[test]
    fn what_was_gathered_is_compiled_anew_where_it_was_looked_at() {
        let material = Material::default();
        let (mut memory, mut compiled) = (Memory::<Vec<u8>>::default(), Vec::new());
        let mut pass = |memory: &mut Memory<Vec<u8>>| {
            let gathered = material.gathered().borrow().clone();
            let inputs = Inputs { entities: &Empty, gathered: &gathered };
            for id in ["one", "two"] {
                let made = memory.get("routes", id, inputs, |view| {
                    compiled.push(id);
                    Ok::<_, ()>(view.gathered(id).map_or(b"nothing".to_vec(), |found| found.bytes().to_vec()))
                });
                let expected = gathered.get(id).map_or(&b"nothing"[..], |found| found.bytes());
                assert_eq!(made.unwrap().as_slice(), expected);
            }
            memory.end_pass();
            std::mem::take(&mut compiled)
        };
        assert_eq!(pass(&mut memory), ["one", "two"]);
        material.give("one", b"contract".to_vec());
        assert_eq!(pass(&mut memory), ["one"], "the other has not asked for it");
        material.give("one", b"contract".to_vec());
        material.give("three", b"another".to_vec());
        assert!(pass(&mut memory).is_empty());
        material.give("one", b"changed".to_vec());
        material.give("two", b"new".to_vec());
        assert_eq!(pass(&mut memory), ["one", "two"]);
        material.take_back("two");
        assert_eq!(pass(&mut memory), ["two"]);
    }
}
