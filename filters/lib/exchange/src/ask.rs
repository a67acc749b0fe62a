//! Questions that only the control plane can answer.

use std::borrow::Cow;

use snapshot::{MAX_QUESTION, MAX_TOPIC, Message, Topic};

/// How often an answer may lead to a further question, for one step in one phase.
pub const MAX_FOLLOW_UPS: u8 = 4;

/// A question, and how long the request or the response waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What is asked.
    pub question: Question,
    /// How long the message waits at most, in milliseconds; no longer than [`snapshot::MAX_WAIT_MILLIS`]. The end of it is
    /// noticed at a tick of the worker, up to a second later.
    pub millis: u32,
    /// The body that the step has in hand goes with the question, see [`Ask::with_body`].
    pub body: bool,
}

impl Ask {
    /// A question of a topic that both sides define.
    #[must_use]
    pub fn new<Q: Topic>(question: &Q, millis: u32) -> Self {
        Self { question: Question::new(question), millis, body: false }
    }

    /// The same, with the body that the step was given: as much as it has asked for, [`snapshot::MAX_ASK_BODY`] bytes at most. The
    /// host sends it behind the question, in chunks and as fast as the control plane takes them, from where the gateway keeps it;
    /// an answer that comes before ends that. In `request_body`, `response_body`, and `answered` after them; elsewhere the answer is
    /// [`Answer::Unavailable`]. Where too many bodies are being sent already (see [`Sendings::open`](crate::Sendings::open)), it is
    /// [`Answer::Overrun`].
    #[must_use]
    pub fn with_body(mut self) -> Self {
        self.body = true;
        self
    }
}

/// What is asked, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Names the answerer of the control plane; 1 to [`snapshot::MAX_TOPIC`] bytes. A topic without an answerer is answered with
    /// [`Answer::Unavailable`].
    pub topic: Cow<'static, str>,
    /// At most [`snapshot::MAX_QUESTION`] bytes; a longer one is answered with [`Answer::Unavailable`] and never sent.
    pub data: Vec<u8>,
}

impl Question {
    /// A question of a topic that both sides define.
    #[must_use]
    pub fn new<Q: Topic>(question: &Q) -> Self {
        Self { topic: Cow::Borrowed(Q::TOPIC), data: question.encode_to_vec() }
    }

    /// The question, if it is of this topic and can be read.
    #[must_use]
    pub fn read<Q: Topic>(&self) -> Option<Q> {
        (self.topic == Q::TOPIC).then(|| Q::decode(self.data.as_slice()).ok()).flatten()
    }

    /// Whether it is within the limits of what is sent.
    #[must_use]
    pub fn fits(&self) -> bool {
        (1..=MAX_TOPIC).contains(&self.topic.len()) && self.data.len() <= MAX_QUESTION
    }
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The answer, in the message of the question's topic; at most [`snapshot::MAX_ANSWER`] bytes.
    Data(Vec<u8>),
    /// This gateway has no control plane.
    NoControlPlane,
    /// There is no answer: the control plane did not answer in time, could not find out, does not know the topic, cannot be
    /// reached, or answers nothing at all, so that too much is asked already. A plugin goes on without it unless it must not be bypassed, in which case it refuses.
    Unavailable,
    /// The wait was given up, because more of the body came than may wait, or too much is asked already: by all callers of the
    /// worker, or by this one ([`MAX_QUESTIONS_OF_CALLER`](crate::MAX_QUESTIONS_OF_CALLER)), while others are answered. Callers can bring that about, and it
    /// says nothing about the control plane: a plugin takes it for no outage, and lets nothing pass for it that it would refuse.
    Overrun,
}

impl Answer {
    /// The answer to a question of this topic; `None` if there is none or it cannot be read.
    #[must_use]
    pub fn read<Q: Topic>(&self) -> Option<Q::Answer> {
        match self {
            Self::Data(data) => Q::Answer::decode(data.as_slice()).ok(),
            Self::NoControlPlane | Self::Unavailable | Self::Overrun => None,
        }
    }
}
