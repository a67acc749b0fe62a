//! What a compilation looked at, so that its result holds for as long as that stays as it is.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::{AnyEntity, Collection, Entity, EntitySource, Item};

/// The entities as a compilation sees them. It notes what was looked at.
pub struct View<'a> {
    set: &'a dyn EntitySource,
    seen: RefCell<Vec<Seen>>,
}

/// Something that was looked at, as it was.
enum Seen {
    /// One entity, or that there was none.
    One { collection: &'static str, id: String, entity: Option<Arc<dyn AnyEntity>> },
    /// All entities of a collection.
    All { collection: &'static str, entities: Option<Arc<Collection>> },
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

// === impl View ===

impl<'a> View<'a> {
    /// A view of a set.
    #[must_use]
    pub fn new(set: &'a dyn EntitySource) -> Self {
        Self { set, seen: RefCell::default() }
    }

    /// The entity of a type with this id.
    pub fn get<T: Entity>(&self, id: &str) -> Option<&'a Item<T>> {
        self.entity(T::COLLECTION, id)?.as_any().downcast_ref()
    }

    fn entity(&self, collection: &'static str, id: &str) -> Option<&'a dyn AnyEntity> {
        let slot = self.set.slot(collection, id);
        let entity = slot.map(|slot| Arc::clone(&slot.entity));
        self.note(Seen::One { collection, id: id.to_owned(), entity });
        slot.map(|slot| &*slot.entity)
    }

    /// All entities of a type, by id.
    pub fn all<T: Entity>(&self) -> impl Iterator<Item = &'a Item<T>> + use<'a, T> {
        let entities = self.set.collection(T::COLLECTION);
        self.note(Seen::All { collection: T::COLLECTION, entities: entities.cloned() });
        entities.into_iter().flat_map(|all| all.values()).filter_map(|slot| slot.entity.as_any().downcast_ref())
    }

    fn note(&self, seen: Seen) {
        self.seen.borrow_mut().push(seen);
    }
}

// === impl Seen ===

impl Seen {
    /// Whether it would be seen again in this set.
    fn holds(&self, set: &dyn EntitySource) -> bool {
        match self {
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
        set: &dyn EntitySource,
        compile: impl FnOnce(&View<'_>) -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let key = (collection, id.to_owned());
        if let Some(known) = self.known.get_mut(&key)
            && known.seen.iter().all(|seen| seen.holds(set))
        {
            known.pass = self.pass;
            return Ok(Arc::clone(&known.value));
        }
        let view = View::new(set);
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
