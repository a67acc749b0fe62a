//! What plugins gather for filters beside entities, and from what.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use material::{Material, MaterialError};
use outbound::Outbound;
use snapshot::TableKind;
use store::Store;
use tokio::sync::watch;

use crate::{EntitySource, Plugin, Runtime, Runtimes};

/// Keeps tables of a plugin up to date for as long as the control plane runs. Ends when [`Sources::entities`] does.
pub type Gather = fn(Sources) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// All entities as they are now, and as they change.
pub type EntityWatch = watch::Receiver<Arc<dyn EntitySource + Send + Sync>>;

/// Says what does not work, for the operator: the name of the plugin, and a sentence.
pub type Trouble = Arc<dyn Fn(&'static str, &str) + Send + Sync>;

/// Tells operators which sources outside of the control plane fail. A source is named by a subject, such as `threat feed tor`.
pub trait SourceHealth: Send + Sync {
    /// A source fails, and why. Only its first failure is an event.
    fn fails(&self, subject: &str, why: &str);

    /// A source works. An event where it failed before.
    fn works(&self, subject: &str);

    /// A source is not used any more: whether it fails is of no interest.
    fn ends(&self, subject: &str);
}

/// What gateways report of one kind, as it comes.
pub trait ReportStream: Send {
    /// The next reports of a gateway; `None` once the kind has another receiver. A call that is given up loses nothing.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<GatewayReports>> + Send + '_>>;
}

/// Reports of one kind from one gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayReports {
    /// The gateway.
    pub node: String,
    /// The reports, in the order of one worker: messages that both sides of the plugin define. A gateway is not to be believed: they may
    /// be anything.
    pub reports: Vec<Vec<u8>>,
}

/// Opens the stream of a kind of reports, in place of any before.
pub type OpenReports = Arc<dyn Fn(&'static str) -> Box<dyn ReportStream> + Send + Sync>;

/// The events of gateways, as they come.
pub trait EventStream: Send {
    /// The next events, each a line of JSON (`SvcSecurityEvent`, `SvcWafTrailEvent`) without its end. A gateway is not to be believed. A
    /// call that is given up loses nothing.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Vec<Arc<[u8]>>> + Send + '_>>;
}

/// Where the events of gateways are had from.
#[derive(Clone)]
pub struct Events {
    /// Opens a stream of them for a plugin, from that moment on. It is bounded: a receiver that is slow loses the oldest.
    pub open: Arc<dyn Fn(&'static str) -> Box<dyn EventStream> + Send + Sync>,
    /// Whether a module of this name tells of its refusals in `SvcWafTrailEvent`s as well ([`Plugin::charged_by_trail`]).
    pub has_trail: fn(&str) -> bool,
}

impl Events {
    /// None, of a control plane without gateways.
    #[must_use]
    pub fn none() -> Events {
        struct Silence;
        impl EventStream for Silence {
            fn next(&mut self) -> Pin<Box<dyn Future<Output = Vec<Arc<[u8]>>> + Send + '_>> {
                Box::pin(std::future::pending())
            }
        }
        Events { open: Arc::new(|_| Box::new(Silence)), has_trail: |_| false }
    }
}

/// What the gatherers of all plugins share.
#[derive(Clone)]
pub struct Surroundings {
    /// All entities.
    pub entities: EntityWatch,
    /// The tables of all plugins.
    pub material: Material,
    /// What must not be forgotten.
    pub store: Arc<dyn Store>,
    /// Calls to addresses that come from entities.
    pub outbound: Outbound,
    /// Which sources fail.
    pub health: Arc<dyn SourceHealth>,
    /// The time, in milliseconds since 1970.
    pub clock: fn() -> u64,
    /// A line in the log.
    pub trouble: Trouble,
    /// What plugins have at work.
    pub runtimes: Runtimes,
    /// What gateways report.
    pub reports: OpenReports,
    /// The events of gateways.
    pub events: Events,
}

/// What a plugin gathers from, and where it puts what it has gathered.
#[derive(Clone)]
pub struct Sources {
    /// All entities.
    pub entities: EntityWatch,
    /// The tables of all plugins. The name of a table should begin with that of its plugin.
    pub material: Material,
    /// What must not be forgotten.
    pub store: Arc<dyn Store>,
    /// Calls to addresses that come from entities.
    pub outbound: Outbound,
    /// Which sources fail.
    pub health: Arc<dyn SourceHealth>,
    /// The time, in milliseconds since 1970.
    pub clock: fn() -> u64,
    plugin: &'static str,
    trouble: Trouble,
    runtime: Option<Runtime>,
    reports: OpenReports,
    events: Events,
}

impl Sources {
    /// Those of a plugin.
    #[must_use]
    pub fn new(plugin: &'static Plugin, around: &Surroundings) -> Sources {
        let Surroundings { entities, material, store, outbound, health, clock, trouble, runtimes, reports, events } =
            around.clone();
        let runtime = runtimes.get(plugin.name);
        Sources {
            entities,
            material,
            store,
            outbound,
            health,
            clock,
            plugin: plugin.name,
            trouble,
            runtime,
            reports,
            events,
        }
    }

    /// What the plugin has at work, see [`Plugin::runtime`]; `None` where it has none of that type.
    #[must_use]
    pub fn runtime<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.runtime.as_ref()?).downcast().ok()
    }

    /// What gateways report of a kind (`Host::send_report` of the plugin). A receiver that is slow loses reports.
    #[must_use]
    pub fn reports(&self, kind: &'static str) -> Box<dyn ReportStream> {
        (self.reports)(kind)
    }

    /// The events of all gateways from now on. A receiver that is slow loses the oldest; drop it where they are not needed, as it costs
    /// with each event.
    #[must_use]
    pub fn events(&self) -> Box<dyn EventStream> {
        (self.events.open)(self.plugin)
    }

    /// Whether a module of this name tells of its refusals in `SvcWafTrailEvent`s as well.
    #[must_use]
    pub fn has_trail(&self, module: &str) -> bool {
        (self.events.has_trail)(module)
    }

    /// Publishes a table of address ranges as a whole, in a thread that may take long; what differs from the one before goes to the
    /// workers that keep it.
    ///
    /// # Errors
    /// [`MaterialError::Base`]: the bytes are no such table. The one before stays.
    pub async fn publish_ranges(&self, name: &str, base: Vec<u8>) -> Result<(), MaterialError> {
        let (material, name) = (self.material.clone(), name.to_owned());
        let publishing = tokio::task::spawn_blocking(move || material.publish(&name, TableKind::Ranges, base));
        // A runtime that ends takes its threads along: then nothing is published any more.
        publishing.await.unwrap_or(Ok(()))
    }

    /// Tells the operator what does not work: a line in the log.
    pub fn trouble(&self, what: &str) {
        (self.trouble)(self.plugin, what);
    }
}
