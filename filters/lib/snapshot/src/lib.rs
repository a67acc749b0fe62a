//! What the control plane compiles and the filters run.
//!
//! A [`Snapshot`] is everything that one filter needs: the global chain, the chain of every route, and the large parts
//! (rule programs) that those chains share, each named by its content hash. It travels in an [`Envelope`] whose version
//! is the hash of its bytes, so two equal configurations are one version wherever and whenever they were compiled. Parts travel
//! beside it: those that the receiver has already are left out.

mod chain;
mod configuration;
mod counts;
mod envelope;
mod fingerprint;
mod hash;
mod link;
mod policy;
mod question;

pub use chain::{ApiKeyDigest, IdentitySource, LinkSettings, Part, RouteChain, Snapshot, Step, Trailers, Verifier};
pub use configuration::{Configuration, configuration_json, read_configuration};
pub use counts::{
    AddToSet, AddedToSet, BudgetTaken, COUNT_KEY, CountBatch, CountGroup, CountKind, CountNow, CountedNow, CountsDown,
    CountsUp, KeyCount, KeyMembers, MAX_COUNT_MEMBERS, MAX_COUNT_NAME, MAX_COUNT_SLICE_MILLIS, MAX_COUNT_SLICES,
    SetMembership, TakeBudget,
};
pub use envelope::{Envelope, FORMAT, OpenError, open, seal};
pub use fingerprint::{JA3_BYTES, JA4_BYTES, JA4_PARTS, is_ja3, is_ja4, is_ja4_part};
pub use hash::{PartHash, content_hash, hex, unhex};
pub use link::{
    AllowChange, AnswerWord, Answered, Ask, AskBody, AskChunk, AskGrant, BanChange, BanRequest, Down, KeptTable,
    KeptTables, LoadReport, ReportBatch, SpendPuzzle, TableChange, TableKind, Up, VerifyToken,
};
pub use policy::{Challenge, Policy, Tier, TierAction, Widget};
pub use prost::Message;
pub use question::{
    ASK_CHUNK, ASK_WINDOW, MAX_ANSWER, MAX_ASK_BODY, MAX_QUESTION, MAX_TOPIC, MAX_WAIT_MILLIS, Topic, YesNo,
};
