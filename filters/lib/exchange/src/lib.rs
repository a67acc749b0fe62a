//! One request and its response, as plugins see it.
//!
//! A plugin reads an [`Exchange`] and answers with a [`Verdict`]; a [`Chain`] holds the plugins of every route in their
//! order, and a [`Run`] drives one exchange through one chain. Whatever the outside world gives (time, randomness,
//! shared data, the link to the control plane) comes through the [`Host`] trait, so all of it runs under test.
//!
//! Nothing in here knows proxy-wasm, and nothing in here can panic.

mod ask;
pub mod bans;
mod body;
mod chain;
mod changes;
pub mod codings;
mod decision;
mod event;
mod exchange;
mod exempt;
mod flow;
pub mod fold;
mod headers;
mod host;
mod identity;
mod lax;
pub mod offline;
mod operation;
pub mod outage;
mod parts;
mod path;
mod plugin;
mod questions;
pub mod random;
mod read;
mod refusal;
mod reply;
mod reports;
mod rest;
mod run;
mod scope;
mod sending;
pub mod shared_counts;
mod signal;
mod skip;
pub mod spelling;
mod tables;
mod timer;
pub mod tls;
mod trailers;
mod transfer;
mod unreadable;

#[cfg(any(test, feature = "fake"))]
pub mod fake;

pub use ::tables::canonical;
pub use ask::{Answer, Ask, MAX_FOLLOW_UPS, Question};
pub use body::Body;
pub use chain::{Chain, LoadError, Registry};
pub use changes::{Changes, HeaderChange, MAX_CHANGE_BYTES, MAX_CHANGES};
pub use decision::{About, Action, Decision, Reply, printable_id};
pub use event::{Category, EVENT_TOKEN, Outcome, SecurityEvent, timestamp as event_timestamp};
pub use exchange::{DecidedBy, Exchange, GivenAnswer, Request, Response, Route};
pub use exempt::Exemptions;
pub use flow::Flow;
pub use headers::Headers;
pub use host::{BanOrder, Host, Level, Metric};
pub use identity::{Caller, IdentityKind, IdentityRef, Labels, split_address};
pub use lax::{LaxPath, Reach};
pub use node_state::{Conflict, MemorySharedData, SharedData, Table, Update, WorkerMemory};
pub use operation::MatchedOperation;
pub use parts::{Build, FindPart, Loaded};
pub use path::{PathReadings, SeveralReadings};
pub use plugin::{BodyNeed, BuildPlugin, Plugin, PluginDefinition, Slot, Verdict, is_error};
pub use questions::{MAX_QUESTION_BYTES, MAX_QUESTIONS, MAX_QUESTIONS_OF_CALLER, Questions, wait_is_over};
pub use read::Opening;
pub use refusal::{MAX_REPLY_BODY, MAX_REPLY_HEADERS, Refusal, ReplyBody};
pub use reports::{MAX_REPORT, MAX_REPORT_KINDS, REPORT_QUOTA, ReportQueues};
pub use run::{AskedBody, Half, Run, Start};
pub use scope::Scope;
pub use sending::{
    Chunk, MAX_SENDING_BYTES, MAX_SENDING_BYTES_OF_CALLER, MAX_SENDINGS, MAX_SENDINGS_OF_CALLER, MAX_UNDER_WAY,
    Sendings,
};
pub use signal::{MAX_SCORE, Score, Signal, SignalRule};
pub use skip::{MAX_SKIPS, Role, Skip, SkipNote, SkipRight, Skipped};
pub use tables::{KeysTable, MAX_TABLE_NAME, MAX_TABLES, RangesTable, TableHandle, Tables, Taken};
pub use timer::{Timer, Workers};
pub use transfer::EXCHANGE_TOKEN;
