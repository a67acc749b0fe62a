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

/// Something that a plugin waits for.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The events of gateways, as they come.
pub trait EventStream: Send {
    /// The next events, each a line of JSON (`SvcSecurityEvent`, `SvcWafTrailEvent`) without its end. A gateway is not to be believed. A
    /// call that is given up loses nothing.
    fn next(&mut self) -> BoxFuture<'_, Vec<Arc<[u8]>>>;
}

/// Answers questions of gateways: the encoded question in, the encoded answer out; `None` if it could not be found out. It is dropped
/// once the worker that has asked does not wait any more.
pub type AnswerQuestion = Arc<dyn Fn(Vec<u8>) -> BoxFuture<'static, Option<Vec<u8>>> + Send + Sync>;

/// The body that comes with a question. It is sent while it is taken; what is not taken is not sent.
pub trait AskedBody: Send {
    /// How many bytes there are, at most [`snapshot::MAX_ASK_BODY`].
    fn length(&self) -> u64;

    /// Whether they are the whole body of the message; otherwise its beginning.
    fn is_complete(&self) -> bool;

    /// All of it, if it is no longer than `limit` bytes; `None` if it is, and where not all of it comes.
    fn collect(self: Box<Self>, limit: usize) -> BoxFuture<'static, Option<Vec<u8>>>;
}

/// [`AnswerQuestion`] for questions that come with a body (`exchange::Ask::with_body`).
pub type AnswerWithBody = Arc<dyn Fn(Vec<u8>, Box<dyn AskedBody>) -> BoxFuture<'static, Option<Vec<u8>>> + Send + Sync>;

/// What gateways send beside reports: events, and questions.
#[derive(Clone)]
pub struct Gateways {
    /// Opens a stream of them for a plugin, from that moment on. It is bounded: a receiver that is slow loses the oldest.
    pub events: Arc<dyn Fn(&'static str) -> Box<dyn EventStream> + Send + Sync>,
    /// Whether a module of this name tells of its refusals in `SvcWafTrailEvent`s as well ([`Plugin::charged_by_trail`]).
    pub has_trail: fn(&str) -> bool,
    /// Has the questions of a topic answered; the first answerer of a topic stays.
    pub answer: Arc<dyn Fn(&'static str, AnswerQuestion) + Send + Sync>,
    /// The same for questions that come with a body.
    pub answer_with_body: Arc<dyn Fn(&'static str, AnswerWithBody) + Send + Sync>,
}

impl Gateways {
    /// None, of a control plane without gateways.
    #[must_use]
    pub fn none() -> Gateways {
        struct Silence;
        impl EventStream for Silence {
            fn next(&mut self) -> BoxFuture<'_, Vec<Arc<[u8]>>> {
                Box::pin(std::future::pending())
            }
        }
        Gateways {
            events: Arc::new(|_| Box::new(Silence)),
            has_trail: |_| false,
            answer: Arc::new(|_, _| {}),
            answer_with_body: Arc::new(|_, _| {}),
        }
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
    /// What gateways send beside reports.
    pub gateways: Gateways,
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
    gateways: Gateways,
}

impl Sources {
    /// Those of a plugin.
    #[must_use]
    pub fn new(plugin: &'static Plugin, around: &Surroundings) -> Sources {
        let Surroundings { entities, material, store, outbound, health, clock, trouble, runtimes, reports, gateways } =
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
            gateways,
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
        (self.gateways.events)(self.plugin)
    }

    /// Whether a module of this name tells of its refusals in `SvcWafTrailEvent`s as well.
    #[must_use]
    pub fn has_trail(&self, module: &str) -> bool {
        (self.gateways.has_trail)(module)
    }

    /// Has the questions of a topic (`exchange::Ask` of the plugin's filter) answered from now on, in a task of each question.
    pub fn answer(&self, topic: &'static str, answer: AnswerQuestion) {
        (self.gateways.answer)(topic, answer);
    }

    /// [`Sources::answer`] for questions that come with a body. A few of a topic are answered at a time; bodies of those that wait are not
    /// sent yet.
    pub fn answer_with_body(&self, topic: &'static str, answer: AnswerWithBody) {
        (self.gateways.answer_with_body)(topic, answer);
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
