//! What is at hand while a plugin's configuration is compiled.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use prost::bytes::Bytes;
use serde_json::{Map, Value};
use snapshot::{PartHash, content_hash};

use crate::{ChallengeRoot, Guard, Item, Plugin, PluginSettings, Settings, View};

/// Large parts of a snapshot by their hash.
pub type Parts = BTreeMap<Vec<u8>, Bytes>;

/// What is at hand while a plugin's configuration is compiled.
pub struct Context<'a> {
    /// The entities.
    pub view: &'a View<'a>,
    /// What plugins keep from one compilation to the next.
    pub tools: &'a Tools,
    /// The settings of all plugins, see [`Context::settings`].
    pub plugin_settings: &'a PluginSettings,
    /// What keys of challenges are made of.
    pub keys: &'a ChallengeRoot,
    /// A request that a plugin could not judge, because it met a limit of its own, goes on (`global-config.waf.fail_open`).
    pub fail_open: bool,
    /// The plugins of the chain, this one among them, in their order.
    pub chain: &'a [Chained<'a>],
    /// The metadata of the route; empty for the global chain.
    pub metadata: &'a BTreeMap<String, Value>,
    /// Parts that the steps so far refer to.
    pub parts: &'a mut Parts,
    /// The largest request or response body that any step holds, in bytes.
    pub largest_body: &'a mut u64,
    /// The largest request body that any step holds, files included, in bytes.
    pub largest_request: &'a mut u64,
    /// Things that are allowed and probably not meant.
    pub warnings: &'a mut Vec<String>,
    /// What each plugin will do.
    pub guards: &'a mut Vec<Box<dyn Guard>>,
}

/// A plugin of a chain.
#[derive(Clone, Copy, Debug)]
pub struct Chained<'a> {
    /// The plugin.
    pub plugin: &'static Plugin,
    /// Its configuration as the entity has it.
    pub config: &'a Map<String, Value>,
}

/// Something that a plugin keeps from one compilation to the next, such as what it has compiled before.
pub trait Tool: Any + Default + Send + Sync {
    /// A pass over all entities has ended: what was not asked for in it may be forgotten.
    fn end_pass(&self) {}
}

/// The tools of all plugins, one of each type, made when they are first asked for.
#[derive(Default)]
pub struct Tools {
    made: Mutex<HashMap<TypeId, Made>>,
}

#[derive(Clone)]
struct Made {
    tool: Arc<dyn Any + Send + Sync>,
    end_pass: fn(&(dyn Any + Send + Sync)),
}

// === impl Context ===

impl Context<'_> {
    /// The settings of a plugin for all gateways.
    #[must_use]
    pub fn settings<T: Settings>(&self) -> T {
        self.plugin_settings.get()
    }
}

/// The parts that entities of one collection are compiled to: of an entity that several chains use, it is made once in a pass.
pub struct CompiledParts<E>(Mutex<HashMap<String, CompiledPart<E>>>);

struct CompiledPart<E> {
    entity: E,
    hash: PartHash,
    bytes: Bytes,
}

// === impl CompiledParts ===

impl<E> Default for CompiledParts<E> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<E: Clone + PartialEq> CompiledParts<E> {
    /// The part of an entity, made by `encode` if it is not there, with its hash.
    pub fn part(&self, item: &Item<E>, encode: impl FnOnce(&E) -> Vec<u8>) -> (PartHash, Bytes) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = known.get(&item.head.id).filter(|part| part.entity == item.body) {
            return (part.hash, part.bytes.clone());
        }
        let bytes = Bytes::from(encode(&item.body));
        let hash = content_hash(&bytes);
        known.insert(item.head.id.clone(), CompiledPart { entity: item.body.clone(), hash, bytes: bytes.clone() });
        (hash, bytes)
    }
}

impl<E: Send + Sync + 'static> Tool for CompiledParts<E> {
    fn end_pass(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

// === impl Tools ===

impl Tools {
    /// The tool of a type.
    #[must_use]
    pub fn get<T: Tool>(&self) -> Arc<T> {
        let make = || Made {
            tool: Arc::new(T::default()),
            end_pass: |tool| {
                if let Some(tool) = tool.downcast_ref::<T>() {
                    tool.end_pass();
                }
            },
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let tool = Arc::clone(&made.entry(TypeId::of::<T>()).or_insert_with(make).tool);
        drop(made);
        tool.downcast().unwrap_or_default()
    }

    /// Tells all of them that a pass has ended.
    pub fn end_pass(&self) {
        let made: Vec<Made> = self.made.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for Made { tool, end_pass } in made {
            end_pass(&*tool);
        }
    }
}
