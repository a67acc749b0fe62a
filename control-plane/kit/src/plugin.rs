//! What the control plane knows of a plugin.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Context, FieldProblem, Gather, Guard, Kind, Operation, Report, Runtime, SettingsKind, Tuning, typed};

/// A field or a key that names an entity, and the collection of the entity.
pub type Reference = (&'static str, &'static str);

/// The control-plane side of one plugin. Everything that the suite needs to know of it outside of its own folder is here.
#[derive(Debug)]
pub struct Plugin {
    /// The name that filters know it by.
    pub name: &'static str,
    /// Its name in sentences.
    pub title: &'static str,
    /// What it does and its configuration, in Markdown; a part of docs/plugins.md.
    pub documentation: &'static str,
    /// The other names by which routes and the global chain may call it; the first is the one that messages show.
    pub classes: &'static [&'static str],
    /// Its place in a full preset: lower ones come first. In front of all others 1 to 99, access 100 to 199, requests 200 to 299, the
    /// threat response 300, responses 400 to 499.
    pub order: u16,
    /// Its collections. Without the plugin their entities have no effect.
    pub kinds: &'static [Kind],
    /// The fields of its configuration that name an entity, or a list of them, with the collection.
    pub references: &'static [Reference],
    /// The fields of its configuration that have no effect yet, with the part of the suite that this release lacks for them. They are
    /// taken, and answered with a warning.
    pub inert: &'static [(&'static str, &'static str)],
    /// The keys of a route's metadata that name an entity, with the collection.
    pub route_metadata: &'static [Reference],
    /// Its fields in the configuration of a preset.
    pub preset: Section,
    /// The categories of events that no other plugin reports.
    pub categories: &'static [&'static str],
    /// Its settings for all gateways.
    pub settings: &'static [SettingsKind],
    /// Its endpoints in the console.
    pub operations: &'static [Operation],
    /// Its reports, for the console and for pipelines.
    pub reports: &'static [Report],
    /// What `palisade tune` tunes of it from recorded traffic.
    pub tuning: Option<Tuning>,
    /// Its trail events say what its refusals are charged in the ledger, so that the security events of the same refusals are not charged
    /// as well.
    pub charged_by_trail: bool,
    /// The kinds of what its filters report that are counted once for all gateways: of several control planes with one store, the one that
    /// leads gets them, and the others take over what its gatherer stores.
    pub counted_once: &'static [&'static str],
    /// What it does with a score or a ban.
    pub acts: Acts,
    /// The longest ban that gateways may order because of its configuration; see [`Entity::longest_ban`](crate::Entity::longest_ban).
    pub longest_ban: Option<LongestBan>,
    /// Compiles its configuration; `None` where this release does not have the plugin.
    pub compile: Option<CompileConfig>,
    /// Makes of its configuration that of a step which only answers what other plugins of a filter refuse; `None` where it is the same.
    pub as_companion: Option<AsCompanion>,
    /// It looks at the trailers of requests.
    pub inspects_trailers: bool,
    /// Makes what it has at work in a control plane: the one object that its gatherer ([`Sources::runtime`](crate::Sources::runtime)) and
    /// its operations ([`OperationContext::runtime`](crate::OperationContext::runtime)) share.
    pub runtime: Option<fn() -> Runtime>,
    /// Keeps its tables up to date.
    pub gather: Option<Gather>,
    /// It is an example of the documentation, which no release has: pages of the documentation leave it out.
    pub example: bool,
    /// Names gaps of a chain as a whole, from its guards; called for every chain, also for one without the plugin. Each gap is a
    /// sentence without its end.
    pub check_chain: Option<CheckChain>,
}

/// What a plugin does with a score or a ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acts {
    /// Nothing: at most it adds to the score, or refuses by its own rules.
    No,
    /// It refuses banned callers.
    Bans,
    /// It acts on the score.
    Score,
}

/// The fields of one plugin in the configuration of a preset.
#[derive(Debug)]
pub struct Section {
    /// The field that switches it on and off.
    pub switch: Option<&'static str>,
    /// The other fields.
    pub fields: &'static [&'static str],
    /// Those of them that name an entity, with the collection.
    pub references: &'static [Reference],
    /// Its `plugin_index` in the chain that a preset lays down.
    pub index: f64,
    /// Makes its configuration from that of the preset; `None` where a preset does not lay it down.
    pub lay_down: Option<LayDown>,
}

/// Makes a plugin's configuration from that of a preset: `None` where the preset leaves the plugin out. The guard, if any, is noted
/// for the chain.
///
/// # Errors
/// A field of the section is wrong.
pub type LayDown = fn(&Map<String, Value>) -> Result<LaidDown, FieldProblem>;

/// A plugin's configuration, if the preset lays it down, and what is noted of the chain.
pub type LaidDown = (Option<Value>, Option<Box<dyn Guard>>);

/// Compiles a plugin's configuration into the bytes of a step; `None` where it has nothing to do.
///
/// # Errors
/// What is wrong with it; pointers are relative to the configuration.
pub type CompileConfig = fn(&Map<String, Value>, &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>>;

/// The longest ban that a plugin's configuration leads to, in seconds; `None` for none, and for a configuration that is wrong.
pub type LongestBan = fn(&Map<String, Value>) -> Option<u64>;

/// Makes of a step's configuration that of a companion, see [`Plugin::as_companion`].
pub type AsCompanion = fn(&[u8]) -> Vec<u8>;

/// Says what is off in a chain, see [`Plugin::check_chain`].
pub type CheckChain = fn(&[&dyn Guard]) -> Vec<String>;

/// What an entity leads to is right; and the warnings about it.
#[derive(Default)]
pub struct Checked {
    /// What was made on the way and is needed again; kept for as long as the entity stays as it is.
    pub kept: Option<Arc<dyn Any + Send + Sync>>,
    /// What has no effect in it.
    pub remarks: Vec<Remark>,
    /// What it would leave unprotected, for an entity that no chain has; of the others their [`Guard`]s say it.
    pub unprotected: Vec<FieldProblem>,
}

/// Something in an entity that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// What has no effect, and where in the entity.
    pub problem: FieldProblem,
    /// Other entities that it is about as well: a collection, and ids in it.
    pub also: Option<(&'static str, Vec<String>)>,
}

// === impl Plugin ===

impl Plugin {
    /// What most plugins leave out.
    pub const NONE: Plugin = Plugin {
        name: "",
        title: "",
        documentation: "",
        classes: &[],
        order: 0,
        kinds: &[],
        references: &[],
        inert: &[],
        route_metadata: &[],
        preset: Section::NONE,
        categories: &[],
        settings: &[],
        operations: &[],
        reports: &[],
        tuning: None,
        charged_by_trail: false,
        counted_once: &[],
        acts: Acts::No,
        longest_ban: None,
        compile: None,
        as_companion: None,
        inspects_trailers: false,
        runtime: None,
        gather: None,
        example: false,
        check_chain: None,
    };

    /// Whether this release has it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.compile.is_some()
    }

    /// The name that messages show.
    #[must_use]
    pub fn class(&self) -> &'static str {
        self.classes.first().copied().unwrap_or(self.name)
    }

    /// Whether it is called so.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.classes.contains(&name)
    }
}

// === impl Section ===

impl Section {
    /// No fields at all.
    pub const NONE: Section = Section { switch: None, fields: &[], references: &[], index: 1.0, lay_down: None };

    /// All fields, the switch first.
    pub fn all(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.switch.into_iter().chain(self.fields.iter().copied())
    }

    /// Whether a field is one of them.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        self.all().any(|own| own == field)
    }

    /// Reads some fields of a preset's configuration as a type; the others are left alone.
    ///
    /// # Errors
    /// The first field that is not what the type has.
    pub fn read<T: DeserializeOwned>(config: &Map<String, Value>, fields: &[&str]) -> Result<T, FieldProblem> {
        let own = config.iter().filter(|(field, _)| fields.contains(&field.as_str()));
        typed(Value::Object(own.map(|(field, value)| (field.clone(), value.clone())).collect()))
    }
}

// === impl Checked ===

impl Debug for Checked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checked").field("remarks", &self.remarks).finish_non_exhaustive()
    }
}
