//! The node link: one bidirectional stream, `/palisade.v1.NodeLink/Stream`, of [`Up`] from a worker and [`Down`] to it.

use prost::Message;

use crate::{CountsDown, CountsUp};

/// From a worker to the control plane, in batches.
#[derive(Clone, PartialEq, Message)]
pub struct Up {
    /// The node's id (`xds.node.id`).
    #[prost(string, tag = "1")]
    pub node: String,
    /// Events, each one a line of JSON (`SvcSecurityEvent`, `SvcWafTrailEvent`).
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub events: Vec<Vec<u8>>,
    /// How many events and bans this worker dropped since the last batch, because the link was down and the queue full.
    #[prost(uint64, tag = "3")]
    pub dropped: u64,
    /// Bans that this worker has already put in force on its node.
    #[prost(message, repeated, tag = "4")]
    pub bans: Vec<BanRequest>,
    /// Which snapshots were taken or refused.
    #[prost(message, repeated, tag = "5")]
    pub loads: Vec<LoadReport>,
    /// Questions that requests wait for the answer of.
    #[prost(message, repeated, tag = "6")]
    pub asks: Vec<Ask>,
    /// The tables that this worker keeps, all of them; absent where nothing about them has changed.
    #[prost(message, optional, tag = "7")]
    pub tables: Option<KeptTables>,
    /// Reports of plugins, a batch of each kind.
    #[prost(message, repeated, tag = "8")]
    pub reports: Vec<ReportBatch>,
    /// What this node has counted together with others.
    #[prost(message, optional, tag = "9")]
    pub counts: Option<CountsUp>,
    /// Chunks of bodies that go with questions, as far as they are granted.
    #[prost(message, repeated, tag = "10")]
    pub chunks: Vec<AskChunk>,
}

/// Reports of one kind.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ReportBatch {
    /// The kind (`inventory`, `matches`); empty where a worker has more kinds than it keeps apart.
    #[prost(string, tag = "1")]
    pub kind: String,
    /// The reports: messages that both sides of the plugin define, at most 64 KiB each.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub reports: Vec<Vec<u8>>,
    /// How many reports of this kind the worker dropped since the last batch.
    #[prost(uint64, tag = "3")]
    pub dropped: u64,
}

/// The tables that a worker keeps.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct KeptTables {
    /// Each of them, by its name.
    #[prost(message, repeated, tag = "1")]
    pub tables: Vec<KeptTable>,
}

/// A table as a worker has it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct KeptTable {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The kind of its index ([`TableKind`]).
    #[prost(enumeration = "TableKind", tag = "2")]
    pub kind: i32,
    /// Its state, 32 bytes; empty where the worker has nothing of it yet.
    #[prost(bytes = "vec", tag = "3")]
    pub state: Vec<u8>,
    /// Why the worker took no change since it last sent its tables; empty where it took all. It needs the base then.
    #[prost(string, tag = "4")]
    pub refused: String,
}

/// What a table maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum TableKind {
    /// Ranges of addresses to labels.
    Ranges = 0,
    /// Keys to values.
    Keys = 1,
}

/// A change of a table: a chunk of its base, a delta, or another state for the same content.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TableChange {
    /// The table's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The state that a delta changes, or the first bytes of it, at least eight; empty for a chunk of a base.
    #[prost(bytes = "vec", tag = "2")]
    pub from: Vec<u8>,
    /// The state that it leads to, 32 bytes; of a chunk, that of the whole base.
    #[prost(bytes = "vec", tag = "3")]
    pub state: Vec<u8>,
    /// The operations of a delta; none where the content has that state already. A chunk of a base.
    #[prost(bytes = "vec", tag = "4")]
    pub data: Vec<u8>,
    /// Where the chunk begins in the base, in bytes.
    #[prost(uint32, tag = "5")]
    pub offset: u32,
    /// The length of the base, in bytes; 0 in a delta.
    #[prost(uint32, tag = "6")]
    pub size: u32,
}

/// A question of a worker. It is answered on the same stream, or not at all.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Ask {
    /// Tells the questions of one worker apart.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The question of this type as earlier releases asked it; see [`Ask::question`].
    #[prost(message, optional, tag = "2")]
    pub spend_puzzle: Option<SpendPuzzle>,
    /// The question of this type as earlier releases asked it; see [`Ask::question`].
    #[prost(message, optional, tag = "3")]
    pub verify_token: Option<VerifyToken>,
    /// Names the answerer, see [`Topic::TOPIC`](crate::Topic::TOPIC).
    #[prost(string, tag = "4")]
    pub topic: String,
    /// The question, in the message of its topic; at most [`MAX_QUESTION`](crate::MAX_QUESTION) bytes.
    #[prost(bytes = "vec", tag = "5")]
    pub data: Vec<u8>,
    /// How long the worker waits for the answer, in milliseconds; 0 for the longest that any question does.
    #[prost(uint32, tag = "6")]
    pub wait_millis: u32,
    /// A body goes with the question. Nothing of it is sent before it is granted ([`AskGrant`]).
    #[prost(message, optional, tag = "7")]
    pub body: Option<AskBody>,
}

/// The body that goes with a question.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct AskBody {
    /// How many bytes are sent; at most [`MAX_ASK_BODY`](crate::MAX_ASK_BODY).
    #[prost(uint64, tag = "1")]
    pub length: u64,
    /// They are the whole body of the message; false for its beginning.
    #[prost(bool, tag = "2")]
    pub complete: bool,
}

/// The next bytes of a body that goes with a question, on the stream that the question was sent on.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct AskChunk {
    /// The question's id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The bytes, at most [`ASK_CHUNK`](crate::ASK_CHUNK).
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
    /// No more of the body follows, and the answer is not waited for: the client has left, or the time is over.
    #[prost(bool, tag = "3")]
    pub abandoned: bool,
}

/// Lets a worker send more of a body.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct AskGrant {
    /// The question's id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// How many bytes the answerer has taken.
    #[prost(uint64, tag = "2")]
    pub taken: u64,
    /// Up to which byte the body may be sent.
    #[prost(uint64, tag = "3")]
    pub until: u64,
}

/// Whether this is the first time that a puzzle is spent, on whichever node; it is spent from then on. A completed wait is spent
/// like a puzzle.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SpendPuzzle {
    /// Its id, unique among all puzzles: at most 64 bytes.
    #[prost(string, tag = "1")]
    pub id: String,
    /// When it expires, in milliseconds since the Unix epoch: from then on nobody takes it in any case.
    #[prost(uint64, tag = "2")]
    pub until_millis: u64,
}

/// Whether the vendor of a widget vouches for a token that was never used, on whichever node; it is used from then on.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct VerifyToken {
    /// The id of the challenge provider whose widget gave it.
    #[prost(string, tag = "1")]
    pub provider: String,
    /// The token: printable ASCII, at most 4096 bytes.
    #[prost(string, tag = "2")]
    pub token: String,
    /// The caller's address.
    #[prost(string, tag = "3")]
    pub ip: String,
    /// The host name that the caller's request is for, without its port; empty where it names none.
    #[prost(string, tag = "4")]
    pub host: String,
}

/// A ban that a tier asks for.
#[derive(Clone, PartialEq, Message)]
pub struct BanRequest {
    /// The identity, such as `ip:192.0.2.1`.
    #[prost(string, tag = "1")]
    pub key: String,
    /// When it ends, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "2")]
    pub until_millis: u64,
    /// Why, for people.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// The score that led to it.
    #[prost(double, tag = "4")]
    pub score: f64,
    /// The tags of the signals that led to it.
    #[prost(string, repeated, tag = "5")]
    pub tags: Vec<String>,
    /// When it was decided, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "6")]
    pub issued_at_millis: u64,
    /// The address that the caller has used; empty where the gateway gave none.
    #[prost(string, tag = "7")]
    pub address: String,
}

/// What became of a snapshot in a filter.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LoadReport {
    /// The filter (`preset`, ...).
    #[prost(string, tag = "1")]
    pub filter: String,
    /// The snapshot's version; empty where it could not be read.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Why it was refused; empty where it was taken.
    #[prost(string, tag = "3")]
    pub error: String,
    /// How many large parts of it were decoded.
    #[prost(uint32, tag = "4")]
    pub parts_decoded: u32,
    /// How many the VM had decoded already, for a snapshot before.
    #[prost(uint32, tag = "5")]
    pub parts_reused: u32,
}

/// From the control plane to a worker.
#[derive(Clone, PartialEq, Message)]
pub struct Down {
    /// Bans to put in force or to lift on this node.
    #[prost(message, repeated, tag = "1")]
    pub bans: Vec<BanChange>,
    /// Answers to questions of this worker.
    #[prost(message, repeated, tag = "2")]
    pub answers: Vec<Answered>,
    /// Changes of tables that the worker keeps, in their order.
    #[prost(message, repeated, tag = "12")]
    pub tables: Vec<TableChange>,
    /// Identities to put on or to take off this node's allowlist.
    #[prost(message, repeated, tag = "10")]
    pub allowed: Vec<AllowChange>,
    /// Random bytes for this stream alone, in its first message: the worker mixes them into its own random numbers.
    #[prost(bytes = "vec", tag = "11")]
    pub seed: Vec<u8>,
    /// What all other nodes have counted.
    #[prost(message, optional, tag = "13")]
    pub counts: Option<CountsDown>,
    /// Grants for bodies that go with questions.
    #[prost(message, repeated, tag = "14")]
    pub grants: Vec<AskGrant>,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Answered {
    /// The question's id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The answer to a question in the form of earlier releases.
    #[prost(enumeration = "AnswerWord", tag = "2")]
    pub answer: i32,
    /// The answer, in the message of the question's topic, at most [`MAX_ANSWER`](crate::MAX_ANSWER) bytes; absent where the
    /// control plane could not find out or does not know the topic.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub data: Option<Vec<u8>>,
}

/// What a question of earlier releases is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum AnswerWord {
    /// The control plane could not find out.
    Unknown = 0,
    /// Yes.
    Yes = 1,
    /// No.
    No = 2,
}

/// An entry of the allowlist as a node holds it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct AllowChange {
    /// The identity, such as `ip:192.0.2.1` or `ip:192.0.2.0/24`.
    #[prost(string, tag = "1")]
    pub key: String,
    /// When it ends, in milliseconds since the Unix epoch; 0 takes it off.
    #[prost(uint64, tag = "2")]
    pub until_millis: u64,
}

/// A ban as a node holds it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BanChange {
    /// The identity, such as `ip:192.0.2.1` or `ip:2001:db8::/64`, or a range of addresses.
    #[prost(string, tag = "1")]
    pub key: String,
    /// When it ends, in milliseconds since the Unix epoch; 0 lifts it.
    #[prost(uint64, tag = "2")]
    pub until_millis: u64,
    /// Why, for the event of a refusal.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// Until when by an operator's hand, in milliseconds since the Unix epoch; 0 where no operator made it. Until then it holds
    /// under a policy in dry run as well.
    #[prost(uint64, tag = "4")]
    pub hand_until_millis: u64,
    /// The control plane could not record it, and so does not know what stands: the node keeps the later end of this one and
    /// the one that it has, and until when it is an operator's.
    #[prost(bool, tag = "5")]
    pub unrecorded: bool,
}
