//! What collections and the control-plane side of plugins are made of.
//!
//! A collection is a type that implements [`Entity`]; a plugin is a [`Plugin`], with its collections, its settings and the function
//! that compiles its configuration into a step. Both are data, which the crates above handle through [`Kind`] and [`Plugin`].

mod challenge_root;
pub mod checks;
mod compile;
mod entity;
mod gather;
mod guard;
mod kind;
pub mod number;
mod operation;
mod parse;
mod plugin;
mod problem;
mod report;
mod runtime;
mod schema;
mod secret;
mod settings;
mod suggest;
mod tuning;
mod view;
mod writing;

pub use challenge_root::ChallengeRoot;
pub use checks::Headers;
pub use compile::{Chained, CompiledParts, Context, Parts, Tool, Tools};
pub use entity::{AnyEntity, Collection, Entity, EntitySource, Examine, Head, Item, References, Slot, reference};
pub use gather::{
    AnswerQuestion, AnswerWithBody, AskedBody, BoxFuture, EntityWatch, EventStream, GatewayReports, Gateways, Gather,
    OpenReports, ReportStream, SourceHealth, Sources, Surroundings, Trouble,
};
pub use guard::Guard;
pub use kind::Kind;
pub use operation::{
    BodyKind, BodyRefusal, NamedSchema, Operation, OperationAnswer, OperationAudit, OperationBody, OperationContext,
    OperationGroup, OperationMethod, Work,
};
pub use parse::{typed, unknown_field, unsaved};
pub use plugin::{
    Acts, AsCompanion, CheckChain, Checked, CompileConfig, LaidDown, LayDown, LongestBan, Plugin, Reference, Remark,
    Section,
};
pub use problem::{FieldProblem, token};
pub use report::{MakeReport, NoReport, Report, ReportParameter};
pub use runtime::{Runtime, Runtimes};
pub use secret::{MASK, Secret, restore, with_masks};
pub use settings::{AnySettings, PluginSettings, Settings, SettingsKind};
pub use suggest::did_you_mean;
pub use tuning::{
    EarlierDocument, OpenTuner, RecordedExchange, RecordedTraffic, TrafficSource, Tuner, Tuning, TuningInput,
    TuningReport,
};
pub use view::{Inputs, Memory, View};
pub use writing::{Edit, EditError, EntityEdit, EntityWriter, Writing};
