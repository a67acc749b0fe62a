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

/// What was compiled, by what it was compiled from.
pub struct Memory<V> {
    known: HashMap<(&'static str, String), Known<V>>,
    /// Counts the passes, so that what no entity asks for any more is forgotten.
    pass: u64,
}

struct Known<V> {
    seen: Vec<Seen>,
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
            Self::All { collection, entities } => match (entities, set.collection(collection)) {
                (Some(entities), Some(now)) => Arc::ptr_eq(entities, now),
                (None, None) => true,
                _ => false,
            },
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
        let key = (collection, id.to_owned());
        if let Some(known) = self.known.get_mut(&key)
            && known.seen.iter().all(|seen| seen.holds(inputs))
        {
            known.pass = self.pass;
            return Ok(Arc::clone(&known.value));
        }
        let view = View::of(inputs);
        let value = Arc::new(compile(&view)?);
        let known = Known { seen: view.seen.into_inner(), value: Arc::clone(&value), pass: self.pass };
        self.known.insert(key, known);
        Ok(value)
    }

    /// What was made for an entity in this pass.
    pub fn known(&self, collection: &'static str, id: &str) -> Option<&V> {
        let known = self.known.get(&(collection, id.to_owned()))?;
        (known.pass == self.pass).then_some(&*known.value)
    }

    /// Ends a pass over all entities: what was not asked for in it is forgotten.
    pub fn end_pass(&mut self) {
        let pass = self.pass;
        self.known.retain(|_, known| known.pass == pass);
        self.pass += 1;
    }
}

impl<V> Default for Memory<V> {
    fn default() -> Self {
        Self { known: HashMap::new(), pass: 0 }
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
