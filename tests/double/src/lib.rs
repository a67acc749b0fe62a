//! A double of the control plane that answers questions from a script: natively, in the harness, and over a socket.

mod bodies;
mod counting;
mod grpc;
mod load;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use exchange::Question;
use snapshot::{Answered, Down, Message as _, Up};

use proxy_host::traffic::Headers;
use proxy_host::{Answer, Clusters, Delivery, Word, unreachable};

use bodies::Bodies;
pub use bodies::read as read_body;
pub use counting::{Counting, CountingClusters};
pub use grpc::ControlPlane;
pub use load::{AskLoad, AskReport};

/// The path of the node link.
const NODE_LINK: &str = "/palisade.v1.NodeLink/Stream";
/// gRPC's word for a service that ends a stream.
const UNAVAILABLE: u32 = 14;

/// What the double does with a question.
#[derive(Debug, Clone)]
pub enum Scripted {
    /// Answers at once.
    Data(Vec<u8>),
    /// Answers after so many milliseconds.
    After(u64, Vec<u8>),
    /// Answers once [`ControlPlane::release`] was called; never in the harness.
    Held(Vec<u8>),
    /// Takes the body of the question, at most so many bytes of it, and answers with what this makes of them.
    Read {
        /// In bytes. The answer comes early if there are more.
        most: u64,
        /// The answer.
        answer: fn(&[u8]) -> Vec<u8>,
    },
    /// The same with all of the body, of which it takes nothing behind the first window before [`ControlPlane::release`] was called.
    Stall {
        /// The answer.
        answer: fn(&[u8]) -> Vec<u8>,
    },
    /// Answers that it does not know.
    Unknown,
    /// Never answers.
    Never,
    /// Ends the stream that the question came on.
    Lose,
}

/// Decides on each question.
pub type Script = Arc<dyn Fn(&Question) -> Scripted + Send + Sync>;

/// What a double has seen.
#[derive(Debug, Default)]
pub struct Seen {
    questions: AtomicU64,
    streams: AtomicU64,
    open: AtomicU64,
    chunks: AtomicU64,
    abandoned: AtomicU64,
    taking: AtomicU64,
}

impl Seen {
    /// How many questions came.
    #[must_use]
    pub fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    /// How many links were opened.
    #[must_use]
    pub fn streams(&self) -> u64 {
        self.streams.load(Ordering::Relaxed)
    }

    /// How many chunks of bodies came.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.chunks.load(Ordering::Relaxed)
    }

    /// How many bodies were abandoned.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// How many bodies were under way on the link that the last message came on.
    #[must_use]
    pub fn taking(&self) -> u64 {
        self.taking.load(Ordering::Relaxed)
    }

    /// How many links are open.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }
}

fn question(ask: &snapshot::Ask) -> Question {
    let (topic, data) = ask.question();
    Question { topic: topic.into_owned().into(), data: data.into_owned() }
}

fn answer(id: u64, data: Option<Vec<u8>>) -> Down {
    Down { answers: vec![Answered { id, answer: 0, data }], ..Down::default() }
}

/// The double behind the clusters of the harness.
pub struct ScriptedClusters {
    script: Script,
    bodies: Bodies,
}

impl ScriptedClusters {
    /// A double that answers by this script.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { script, bodies: Bodies::default() }
    }
}

impl Clusters for ScriptedClusters {
    fn hear(&mut self, worker: u32, _now_millis: u64, word: Word) -> Vec<Answer> {
        let deliver = |token, after_millis, delivery| Answer { worker, token, after_millis, delivery };
        match word {
            Word::Open { token, path, .. } if path == NODE_LINK => {
                let greeting = Delivery::Message(Down::default().encode_to_vec());
                vec![deliver(token, 0, Delivery::Metadata(Headers::new())), deliver(token, 0, greeting)]
            }
            Word::Open { token, .. } | Word::Grpc { token, .. } => vec![deliver(token, 0, unreachable(true))],
            Word::Http { token, .. } => vec![deliver(token, 0, unreachable(false))],
            Word::Message { token, message, .. } => {
                let up = Up::decode(message.as_slice()).unwrap_or_default();
                let Self { script, bodies } = self;
                let mut said = |ask: &snapshot::Ask| {
                    let down = |data| Delivery::Message(answer(ask.id, data).encode_to_vec());
                    let scripted = script(&question(ask));
                    match scripted {
                        Scripted::Read { .. } | Scripted::Stall { .. } => {
                            let down = bodies.asked(ask, &scripted)?;
                            Some(deliver(token, 0, Delivery::Message(down.encode_to_vec())))
                        }
                        Scripted::Data(data) => Some(deliver(token, 0, down(Some(data)))),
                        Scripted::After(millis, data) => Some(deliver(token, millis, down(Some(data)))),
                        Scripted::Unknown => Some(deliver(token, 0, down(None))),
                        Scripted::Never | Scripted::Held(_) => None,
                        Scripted::Lose => Some(deliver(token, 0, Delivery::Close(UNAVAILABLE, "lost".to_owned()))),
                    }
                };
                let mut answers: Vec<Answer> = up.asks.iter().filter_map(&mut said).collect();
                let taken = up.chunks.iter().filter_map(|chunk| self.bodies.take(chunk, false));
                answers.extend(taken.map(|down| deliver(token, 0, Delivery::Message(down.encode_to_vec()))));
                answers
            }
            Word::Close { .. } | Word::Gone => Vec::new(),
        }
    }
}
