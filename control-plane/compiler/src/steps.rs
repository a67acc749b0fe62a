//! Chains and their steps, compiled, before they are divided among filters.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use snapshot::Step;

use kit::{Guard, Parts};

/// Every chain of every gateway. Each is compiled once, however many groups have it.
#[derive(Debug, Default)]
pub(super) struct Chains {
    pub(super) global: Arc<Steps>,
    pub(super) routes: Vec<Chain>,
}

/// The chain of one route.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) label: String,
    /// The groups that have it; empty for all.
    pub(super) groups: Vec<String>,
    /// Its backend speaks HTTP/1.1.
    pub(super) no_grpc: bool,
    pub(super) steps: Arc<Steps>,
}

/// Steps with what they need.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) list: Vec<Step>,
    /// The parts that they refer to, by plugin.
    pub(super) parts: BTreeMap<&'static str, Parts>,
    /// The largest body that any of them holds, in bytes.
    pub(super) largest_body: u64,
    /// The largest request body that any of them holds, files included, in bytes.
    pub(super) largest_request: u64,
    /// Things that are allowed and probably not meant.
    pub(super) warnings: Vec<String>,
    /// What each plugin will do, disabled ones included, in their order.
    pub(super) guards: Vec<Box<dyn Guard>>,
}

impl Chain {
    /// Whether the gateways of a group have it.
    pub(super) fn is_in(&self, group: &str) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|named| named == group)
    }
}

/// A plugin as a route, a validator or the preset uses it.
#[derive(Debug, Clone)]
pub(super) struct PluginUse {
    pub(super) plugin: String,
    pub(super) include: Vec<String>,
    pub(super) exclude: Vec<String>,
    pub(super) index: Option<f64>,
    pub(super) config: Map<String, Value>,
}
