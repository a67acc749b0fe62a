//! Who answers the questions of plugins, by topic.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};

use snapshot::{MAX_ANSWER, MAX_QUESTION, Message as _, Topic};
use tokio::sync::Semaphore;

use crate::QuestionBody;

/// Answers the questions of one topic.
pub trait Answerer: Send + Sync + 'static {
    /// What is asked.
    type Question: Topic;

    /// How many questions it takes at once.
    const LIMITS: AnswerLimits = AnswerLimits { running: 64, waiting: 1024 };

    /// The answer to a question of a node; `None` if it could not be found out. It is dropped once the worker that has asked does
    /// not wait any more, so what must happen in any case has to be spawned.
    fn answer(
        &self,
        node: &str,
        question: Self::Question,
    ) -> impl Future<Output = Option<<Self::Question as Topic>::Answer>> + Send;
}

/// Answers the questions of one topic that come with a body, such as files to scan.
pub trait BodyAnswerer: Send + Sync + 'static {
    /// What is asked.
    type Question: Topic;

    /// How many questions it takes at once. Bodies of those that wait are not sent yet.
    const LIMITS: AnswerLimits = AnswerLimits { running: 16, waiting: 256 };

    /// The answer to a question of a node, as [`Answerer::answer`]. The body is sent while it is taken; an answer that comes before its
    /// end saves the rest.
    fn answer(
        &self,
        node: &str,
        question: Self::Question,
        body: QuestionBody,
    ) -> impl Future<Output = Option<<Self::Question as Topic>::Answer>> + Send;
}

/// How many questions of a topic are taken at once, of all nodes together. One more is answered at once, as unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Questions that are being answered.
    pub running: usize,
    /// Questions that wait for their turn.
    pub waiting: usize,
}

type Answer = dyn Fn(Arc<str>, Vec<u8>, QuestionBody) -> Answering + Send + Sync;
/// An answer that is being found out.
pub type Answering = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send>>;

/// Answers an encoded question with an encoded answer; `None` if it could not be found out.
pub type EncodedAnswer = Arc<dyn Fn(Vec<u8>) -> Answering + Send + Sync>;

/// [`EncodedAnswer`] for a question that comes with a body.
pub type EncodedBodyAnswer = Arc<dyn Fn(Vec<u8>, QuestionBody) -> Answering + Send + Sync>;

/// The answerers, by topic. Clones share them.
#[derive(Clone, Default)]
pub struct Answers {
    topics: Arc<RwLock<BTreeMap<&'static str, Registered>>>,
}

#[derive(Clone)]
struct Registered {
    /// The node, the encoded question and its body in, the encoded answer out.
    answer: Arc<Answer>,
    running: Arc<Semaphore>,
    /// Those that run among them.
    taken: Arc<Semaphore>,
}

impl Answers {
    /// Has an answerer answer the questions of its topic. The first of a topic stays. A body that comes with a question is not
    /// sent.
    pub fn register<A: Answerer>(&self, answerer: A) {
        let answerer = Arc::new(answerer);
        self.add(A::Question::TOPIC, A::LIMITS, move |node, data, _body| {
            let answerer = Arc::clone(&answerer);
            Box::pin(async move {
                answerer.answer(&node, read::<A::Question>(&data)?).await.map(|answer| answer.encode_to_vec())
            })
        });
    }

    /// [`Answers::register`] for questions that come with a body.
    pub fn register_with_body<A: BodyAnswerer>(&self, answerer: A) {
        let answerer = Arc::new(answerer);
        self.add(A::Question::TOPIC, A::LIMITS, move |node, data, body| {
            let answerer = Arc::clone(&answerer);
            Box::pin(async move {
                answerer.answer(&node, read::<A::Question>(&data)?, body).await.map(|answer| answer.encode_to_vec())
            })
        });
    }

    /// [`Answers::register`] for questions whose type this crate does not know: those of plugins. Most of them wait for something, so many
    /// are taken at once.
    pub fn register_encoded(&self, topic: &'static str, answer: EncodedAnswer) {
        let limits = AnswerLimits { running: 1024, waiting: 0 };
        self.add(topic, limits, move |_node, data, _body| answer(data));
    }

    /// [`Answers::register_encoded`] for questions that come with a body. Fewer are taken at once: each holds a part of its body.
    pub fn register_encoded_with_body(&self, topic: &'static str, answer: EncodedBodyAnswer) {
        let limits = AnswerLimits { running: 16, waiting: 256 };
        self.add(topic, limits, move |_node, data, body| answer(data, body));
    }

    fn add(
        &self,
        topic: &'static str,
        AnswerLimits { running, waiting }: AnswerLimits,
        answer: impl Fn(Arc<str>, Vec<u8>, QuestionBody) -> Answering + Send + Sync + 'static,
    ) {
        let registered = Registered {
            answer: Arc::new(answer),
            running: Arc::new(Semaphore::new(running)),
            taken: Arc::new(Semaphore::new(running.saturating_add(waiting))),
        };
        self.topics.write().unwrap_or_else(PoisonError::into_inner).entry(topic).or_insert(registered);
    }

    fn find(&self, topic: &str) -> Option<(&'static str, Registered)> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.get_key_value(topic).map(|(topic, registered)| (*topic, registered.clone()))
    }

    /// The answer to a question of a node; `None` if the topic is unknown, too much is asked, or it could not be found out.
    pub async fn answer(&self, node: Arc<str>, topic: &str, data: Vec<u8>, body: QuestionBody) -> Option<Vec<u8>> {
        let Some((topic, registered)) = self.find(topic) else {
            // The name is the caller's: it must not become a label.
            count("other", "unregistered");
            return None;
        };
        let counted = Counted { topic, outcome: "late" };
        let Ok(_taken) = registered.taken.try_acquire() else {
            return counted.end("busy", None);
        };
        // Never closed.
        let _running = registered.running.acquire().await.ok()?;
        if data.len() > MAX_QUESTION {
            return counted.end("unknown", None);
        }
        match (registered.answer)(node, data, body).await {
            Some(answer) if answer.len() > MAX_ANSWER => {
                tracing::error!(topic, bytes = answer.len(), "an answer is over the limit");
                counted.end("unknown", None)
            }
            Some(answer) => counted.end("answered", Some(answer)),
            None => counted.end("unknown", None),
        }
    }
}

fn read<Q: Topic>(data: &[u8]) -> Option<Q> {
    let question = Q::decode(data);
    question.inspect_err(|error| tracing::warn!(topic = Q::TOPIC, %error, "an unreadable question")).ok()
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(topics.keys()).finish()
    }
}

/// Counts a question once, also if its answer is dropped before it is there.
struct Counted {
    topic: &'static str,
    outcome: &'static str,
}

impl Counted {
    fn end<T>(mut self, outcome: &'static str, answer: T) -> T {
        self.outcome = outcome;
        answer
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        count(self.topic, self.outcome);
    }
}

fn count(topic: &'static str, outcome: &'static str) {
    metrics::counter!("palisade_link_questions_total", "topic" => topic, "outcome" => outcome).increment(1);
}
