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
mod contracts;
mod desk;
mod entity;
mod feeds;
mod files;
mod geo;
mod global;
mod groups;
mod honeypots;
pub(crate) mod host_pattern;
mod identity;
mod limits;
mod listener;
mod number;
mod parse;
mod patch;
pub(crate) mod path_prefix;
mod plugin_refs;
mod problem;
pub mod registry;
mod route;
mod scanners;
mod schema;
mod secret;
mod service;
mod set;
mod suggest;
mod threat;
mod waf;

pub use admission::{Admission, Change, EntityRef, Refusal};
pub use alerts::{AlertChannel, AlertRule, AlertTrigger, ChannelKind, EventCategory};
pub use api_key::ApiKey;
pub use asn::{AsnAction, AsnCategory, AsnDatabase, AsnFormat};
pub use batch::{BatchEntry, BatchOptions, BatchOutcome, BatchWrite};
pub use bots::{BotAction, BotCategory, BotPolicy, BotRule, BotSignature};
pub use bouncers::{DecisionScope, SvcBouncer};
pub use challenges::{CHALLENGE_PRESETS, ChallengeKind, ChallengeProvider};
pub use contracts::ApiContract;
pub use entity::{AnyEntity, Entity, Head, Item, References};
pub use feeds::{FEED_CATALOG, FeedFormat, FeedOptions, FetchMethod, SourceAction, ThreatFeed};
pub use files::{FileEntity, FileProblem};
pub use geo::GeoDatabase;
pub use global::{Gateway, GlobalConfig, LedgerSettings, SecuritySettings, TarpitSettings, Validator, WafSettings};
pub use groups::{DEFAULT_GROUP, Delivery, Group};
pub use honeypots::{Canary, CanaryPlace, DECOYS, HoneypotAction, HoneypotPolicy};
pub use identity::{CertificateName, Gives, Identity, SetBy, Verifier, VerifierKind};
pub use limits::Headers;
pub use listener::{EscapedSlashes, ListenerConfig, RequestTrailers, UnderscoreHeaders};
pub use problem::FieldProblem;
pub use registry::Kind;
pub use route::{Backend, Protocol, Route, RoutePlugin};
pub use scanners::{IcapMode, MalwareScanner, ScannerKind};
pub use secret::{MASK, Secret};
pub use service::{EntityService, Precondition, Replacement, WriteError, Written, exactly};
pub use set::{Collection, EntitySet, Slot};
pub use threat::{BanIdentity, ThreatPolicy, Tier, TierAction};
pub use waf::{Crs, OversizeBody, UndecodableBody, WafBudget, WafConfig, WafRuleset, XmlDoctype};

pub(crate) use groups::missing as missing_group;
pub(crate) use parse::{typed, unsaved};
pub(crate) use suggest::did_you_mean;
pub(crate) use threat::MAX_SCORE;
