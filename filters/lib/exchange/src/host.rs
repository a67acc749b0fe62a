//! What a plugin may ask of the world around it.

use std::rc::Rc;

use node_state::SharedData;

use crate::IdentityRef;

/// The world around one exchange. One implementation speaks to the gateway, one lives in memory for tests.
///
/// Nothing here fails loudly: what the gateway refuses is absent, so that no plugin needs a way out of an error that it
/// could not do anything about.
pub trait Host {
    /// Milliseconds since the Unix epoch.
    fn now(&self) -> u64;

    /// An unpredictable random number.
    fn random(&self) -> u64;

    /// A value that stays with the request through all filters, readable by all of them and by the access log.
    fn filter_state(&self, token: &str) -> Option<Vec<u8>>;

    /// Sets such a value. The token is one word; the value must be safe to print, because access logs print it raw.
    fn set_filter_state(&self, token: &str, value: &[u8]);

    /// The gateway's own address and port that the connection came to, as it writes them (`192.0.2.1:443`,
    /// `[2001:db8::1]:443`); [`split_address`](crate::split_address) takes them apart. `None` where it does not say.
    fn local_address(&self) -> Option<Vec<u8>>;

    /// A property of the request or its connection, by the words of its path (`connection`, `uri_san_peer_certificate`).
    /// Text is as it is, numbers are eight bytes; `None` where the gateway has none.
    fn property(&self, path: &[String]) -> Option<Vec<u8>>;

    /// What all workers of this node share.
    fn shared(&self) -> &dyn SharedData;

    /// The same, to keep for as long as an exchange lasts.
    fn shared_handle(&self) -> Rc<dyn SharedData>;

    /// Counts something for the operator.
    fn count(&self, metric: Metric);

    /// A line in the gateway's log.
    fn log(&self, level: Level, message: &str);

    /// Sends an event, a line of JSON, to the control plane.
    fn send_event(&self, event: &[u8]);

    /// Asks the control plane to make a ban hold everywhere. It is in force on this node already.
    fn send_ban(&self, ban: BanOrder);

    /// Sends a report of a kind (`inventory`, `matches`) to the control plane, in batches: bytes of a message that both sides of
    /// the plugin define, at most [`MAX_REPORT`](crate::MAX_REPORT). Each kind has a quota of its own, beyond which its oldest
    /// reports are dropped and counted.
    fn send_report(&self, kind: &'static str, data: Vec<u8>);
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Requests that entered a chain.
    Requests,
    /// Events with the outcome `blocked`: requests and responses refused, whatever by.
    Refused,
    /// Events with the outcome `observed`: what would have been refused but for a dry run, and what is only noted.
    Observed,
    /// Bans that tiers and plugins have set.
    Bans,
    /// Requests held by tarpit.
    Held,
    /// Events emitted.
    Events,
    /// Events dropped because the link was down and the queue full.
    EventsDropped,
    /// Messages that a plugin could not judge, because it met a limit of its own or of the gateway's.
    PluginFailures,
    /// Writes to the rules' persistent collections that were given up.
    CollectionWritesLost,
    /// Rules that gave up on a value at a limit, each counted once per exchange.
    RuleLimits,
    /// Times that the node lost its control plane.
    ControlPlaneLosses,
    /// Changes of tables that a worker did not take, because one before was missing or they were damaged.
    TableRefusals,
    /// Reports of plugins that were dropped, because their kind was over its quota.
    ReportsDropped,
    /// Changes of counts that other nodes were not told of, because too many keys changed at once.
    CountsDropped,
    /// Questions to the control plane without an answer, unless the gateway has no control plane: those that it did not answer in
    /// time or could not answer, that were lost with the link, and that were too many or too long to be sent.
    QuestionsUnanswered,
    /// Signatures of bots that were verified, with either result.
    SignaturesVerified,
    /// Signatures of bots that were not verified, because the caller or the worker had no verification left.
    SignaturesOverBudget,
}

impl Metric {
    /// Every metric, in the order of its declaration.
    pub const ALL: [Self; 17] = [
        Self::Requests,
        Self::Refused,
        Self::Observed,
        Self::Bans,
        Self::Held,
        Self::Events,
        Self::EventsDropped,
        Self::PluginFailures,
        Self::CollectionWritesLost,
        Self::RuleLimits,
        Self::ControlPlaneLosses,
        Self::TableRefusals,
        Self::ReportsDropped,
        Self::CountsDropped,
        Self::QuestionsUnanswered,
        Self::SignaturesVerified,
        Self::SignaturesOverBudget,
    ];

    /// The name in the gateway's statistics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "palisade.requests",
            Self::Refused => "palisade.refused",
            Self::Observed => "palisade.observed",
            Self::Bans => "palisade.bans",
            Self::Held => "palisade.held",
            Self::Events => "palisade.events",
            Self::EventsDropped => "palisade.events_dropped",
            Self::PluginFailures => "palisade.plugin_failures",
            Self::CollectionWritesLost => "palisade.collection_writes_lost",
            Self::RuleLimits => "palisade.rule_limits",
            Self::ControlPlaneLosses => "palisade.control_plane_losses",
            Self::TableRefusals => "palisade.table_refusals",
            Self::ReportsDropped => "palisade.reports_dropped",
            Self::CountsDropped => "palisade.counts_dropped",
            Self::QuestionsUnanswered => "palisade.questions_unanswered",
            Self::SignaturesVerified => "palisade.signatures_verified",
            Self::SignaturesOverBudget => "palisade.signatures_over_budget",
        }
    }
}

/// How important a line in the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Diagnostics.
    Debug,
    /// Worth knowing.
    Info,
    /// Something needs attention soon.
    Warn,
    /// Protection is impaired.
    Error,
}

/// A ban that the control plane is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct BanOrder {
    /// Who is banned.
    pub identity: IdentityRef,
    /// When it ends, in milliseconds since the Unix epoch.
    pub until: u64,
    /// Why, for the operator.
    pub reason: String,
    /// The score that led to it.
    pub score: f64,
    /// The tags of the signals that led to it.
    pub tags: Vec<String>,
    /// The address that the caller has used; empty where the gateway gave none.
    pub address: String,
}
