//! All entities at one revision, immutable.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::registry::{self, KINDS};
use super::{
    AnyEntity, Collection, Entity, EntitySource, FieldProblem, GlobalConfig, Item, Kind, References, Slot,
    did_you_mean, unused,
};
use store::{EntityRow, Store, StoreError};

/// An immutable view of all entities at one revision. Cloning it is cheap: collections are shared.
#[derive(Clone, Default)]
pub struct EntitySet {
    revision: u64,
    collections: BTreeMap<&'static str, Arc<Collection>>,
    unreadable: Arc<Vec<(String, FieldProblem)>>,
}

impl EntitySet {
    /// Reads all entities of a store.
    ///
    /// A stored document that this release cannot read (a newer one wrote it) is left out and listed in
    /// [`EntitySet::unreadable`]; it stays in the store.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn load(store: &dyn Store) -> Result<EntitySet, StoreError> {
        let stored = store.entities().await?;
        let mut set = EntitySet::empty();
        set.revision = stored.revision;
        let mut unreadable = Vec::new();
        for row in stored.rows {
            let place = format!("{}/{}", row.collection, row.id);
            match read_row(&row) {
                Ok((kind, entity)) => set.insert(kind, entity, row.revision),
                Err(problems) => unreadable.extend(problems.into_iter().map(|problem| (place.clone(), problem))),
            }
        }
        set.unreadable = Arc::new(unreadable);
        Ok(set)
    }

    /// What [`unused::of_entity`] says of all entities, each with its collection and id.
    pub fn unused(&self) -> Vec<(&'static str, String, FieldProblem)> {
        let all = self.iter().flat_map(|(collection, id, slot)| {
            unused::of_entity(collection, &*slot.entity)
                .into_iter()
                .map(move |problem| (collection, id.to_owned(), problem))
        });
        all.collect()
    }

    /// The longest ban that any of its entities leads to, in seconds; see [`Entity::longest_ban`].
    pub fn longest_ban(&self) -> Option<u64> {
        self.iter().filter_map(|(_, _, slot)| slot.entity.longest_ban()).max()
    }

    /// No entities but the singletons with their defaults.
    pub fn empty() -> EntitySet {
        let mut set = EntitySet::default();
        for kind in KINDS.iter() {
            if let Some(id) = kind.singleton
                && let Ok(entity) = kind.read(Value::Object(Map::from_iter([("id".to_owned(), Value::from(id))])))
            {
                set.insert(kind, entity, 0);
            }
        }
        set
    }

    /// The revision it was read at; 0 when it comes from files.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The entity of a type with this id.
    pub fn get<T: Entity>(&self, id: &str) -> Option<&Item<T>> {
        self.slot(T::COLLECTION, id)?.entity.as_any().downcast_ref()
    }

    /// All entities of a type, by id.
    pub fn all<T: Entity>(&self) -> impl Iterator<Item = &Item<T>> {
        self.slots(T::COLLECTION).filter_map(|slot| slot.entity.as_any().downcast_ref())
    }

    /// The global configuration; the default one if the set has none.
    pub fn global(&self) -> &Item<GlobalConfig> {
        static DEFAULT: LazyLock<Item<GlobalConfig>> = LazyLock::new(|| Item {
            head: super::Head { id: GlobalConfig::ID.to_owned(), ..super::Head::default() },
            body: GlobalConfig::default(),
        });
        self.get(GlobalConfig::ID).unwrap_or_else(|| &DEFAULT)
    }

    /// An entity whose type does not matter.
    pub fn slot(&self, collection: &str, id: &str) -> Option<&Slot> {
        self.collections.get(collection)?.get(id)
    }

    /// The entities of a collection, by id.
    pub fn slots(&self, collection: &str) -> impl Iterator<Item = &Slot> {
        self.collections.get(collection).into_iter().flat_map(|collection| collection.values())
    }

    /// A collection as a whole; shared with every set in which it is the same.
    pub fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        self.collections.get(collection)
    }

    /// Every entity, as (collection, id, entity).
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str, &Slot)> {
        let all = self.collections.iter();
        all.flat_map(|(name, entities)| entities.iter().map(|(id, slot)| (*name, id.as_str(), slot)))
    }

    /// Stored documents that this release cannot read, as (`collection/id`, what is wrong).
    pub fn unreadable(&self) -> &[(String, FieldProblem)] {
        &self.unreadable
    }

    /// Everything that is wrong with any of its entities, as (collection, id, problem).
    pub fn check(&self) -> Vec<(&'static str, String, FieldProblem)> {
        let mut problems = Vec::new();
        for (collection, entities) in &self.collections {
            for (id, slot) in entities.iter() {
                let found = slot.entity.check(self);
                problems.extend(found.into_iter().map(|problem| (*collection, id.clone(), problem)));
            }
        }
        problems
    }

    /// Adds an entity, or replaces the one with its id.
    pub fn insert(&mut self, kind: &Kind, entity: Arc<dyn AnyEntity>, revision: u64) {
        let id = entity.head().id.clone();
        let collection = self.collections.entry(kind.collection).or_default();
        Arc::make_mut(collection).insert(id, Slot { revision, entity });
    }

    /// Removes an entity.
    pub fn remove(&mut self, collection: &str, id: &str) {
        if let Some(collection) = self.collections.get_mut(collection) {
            Arc::make_mut(collection).remove(id);
        }
    }

    pub(super) fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

impl EntitySource for EntitySet {
    fn slot(&self, collection: &str, id: &str) -> Option<&Slot> {
        self.slot(collection, id)
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        self.collection(collection)
    }

    fn is_unreadable(&self, collection: &str, id: &str) -> bool {
        let place = format!("{collection}/{id}");
        self.slot(collection, id).is_none() && self.unreadable.iter().any(|(unreadable, _)| *unreadable == place)
    }
}

impl References for EntitySet {
    fn exists(&self, collection: &str, id: &str) -> Option<bool> {
        registry::by_collection(collection)?;
        Some(self.slot(collection, id).is_some())
    }

    fn nearest(&self, collection: &str, id: &str) -> Option<String> {
        let known = self.slots(collection).map(|slot| slot.entity.head().id.as_str());
        did_you_mean(id, known).map(ToOwned::to_owned)
    }

    fn groups(&self) -> Option<Vec<String>> {
        Some(self.global().groups.keys().cloned().collect())
    }
}

impl std::fmt::Debug for EntitySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts: BTreeMap<_, _> = self.collections.iter().map(|(name, entities)| (*name, entities.len())).collect();
        f.debug_struct("EntitySet").field("revision", &self.revision).field("entities", &counts).finish_non_exhaustive()
    }
}

fn read_row(row: &EntityRow) -> Result<(&'static Kind, Arc<dyn AnyEntity>), Vec<FieldProblem>> {
    let unknown = || vec![FieldProblem::new("", registry::unknown_collection(&row.collection))];
    let kind = registry::by_collection(&row.collection).ok_or_else(unknown)?;
    let document = serde_json::from_str(&row.body).map_err(|error| vec![FieldProblem::new("", error.to_string())])?;
    Ok((kind, kind.read(document)?))
}
