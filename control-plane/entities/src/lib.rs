//! Entities: the documents that say what gateways shall do.
//!
//! One generic machinery serves every collection. A collection is a type that implements [`Entity`] and one line in
//! [`registry`]; store, REST and command line handle it through [`Kind`] and never learn its type.

mod admission;
mod alerts;
mod api_key;
mod asn;
mod backend_address;
mod batch;
mod bots;
mod bouncers;
mod challenges;
mod change;
mod contracts;
mod document;
mod entity;
mod feeds;
mod files;
mod gateway;
mod geo;
mod global;
mod groups;
mod honeypots;
pub mod host_pattern;
mod identity;
mod limits;
mod listener;
mod number;
mod parse;
mod patch;
pub mod path_prefix;
mod plugin_refs;
pub mod plugins;
mod problem;
pub mod registry;
mod route;
mod scanners;
mod schema;
mod secret;
mod security;
mod service;
mod set;
mod suggest;
mod threat;
pub mod unused;
mod waf;
mod write_queue;
mod writes;

pub use admission::{Admission, Change, EntityRef, Refusal, Warning};
pub use alerts::{AlertChannel, AlertRule, AlertTrigger, ChannelKind, EventCategory};
pub use api_key::ApiKey;
pub use asn::{AsnAction, AsnCategory, AsnDatabase, AsnFormat};
pub use bots::{BotAction, BotCategory, BotPolicy, BotRule, BotSignature};
pub use bouncers::{DecisionScope, SvcBouncer};
pub use challenges::{CHALLENGE_PRESETS, ChallengeKind, ChallengeProvider};
pub use change::{
    BatchEntry, BatchOptions, BatchOutcome, BatchWrite, Precondition, Replacement, WriteError, Written, exactly,
};
pub use contracts::ApiContract;
pub use entity::{AnyEntity, Entity, Head, Item, References};
pub use feeds::{FEED_CATALOG, FeedFormat, FeedOptions, FetchMethod, SourceAction, ThreatFeed};
pub use files::{FileEntity, FileProblem};
pub use gateway::{Delivery, Gateway};
pub use geo::GeoDatabase;
pub use global::{GlobalConfig, Validator, WafSettings};
pub use groups::{DEFAULT_GROUP, Group};
pub use honeypots::{Canary, CanaryPlace, DECOYS, HoneypotAction, HoneypotPolicy};
pub use identity::{CertificateName, Gives, IdentitySettings, SetBy, Verifier, VerifierKind};
pub use limits::Headers;
pub use listener::{EscapedSlashes, ListenerConfig, RequestTrailers, UnderscoreHeaders};
pub use problem::FieldProblem;
pub use registry::Kind;
pub use route::{Backend, Protocol, Route, RoutePlugin};
pub use scanners::{IcapMode, MalwareScanner, ScannerKind};
pub use secret::{MASK, Secret};
pub use security::{IncidentSettings, LedgerSettings, SecuritySettings, TarpitSettings};
pub use service::EntityService;
pub use set::{Collection, EntitySet, Slot};
pub use threat::{BanIdentity, ThreatPolicy, Tier, TierAction};
pub use waf::{Crs, OversizeBody, UndecodableBody, WafBudget, WafConfig, WafRuleset, XmlDoctype};

pub use groups::missing as missing_group;
pub use parse::{typed, unsaved};
pub use suggest::did_you_mean;
pub use threat::MAX_SCORE;
