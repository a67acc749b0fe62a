//! The questions that plugins ask the control plane: messages that both sides define, under a topic.

use std::borrow::Cow;

use prost::Message;

use crate::{AnswerWord, Answered, Ask, SpendPuzzle, VerifyToken};

/// The longest topic, in bytes.
pub const MAX_TOPIC: usize = 64;
/// The most bytes that a question has, encoded.
pub const MAX_QUESTION: usize = 64 << 10;
/// The most bytes that an answer has, encoded.
pub const MAX_ANSWER: usize = 64 << 10;
/// The most bytes of a body that goes with a question.
pub const MAX_ASK_BODY: usize = 32 << 20;
/// The most bytes of such a body in one message.
pub const ASK_CHUNK: usize = 64 << 10;
/// How much of such a body may be on its way to the answerer, in bytes: it is granted that much beyond what it has taken.
pub const ASK_WINDOW: u64 = 128 << 10;
/// The longest that a question waits for its answer, in milliseconds.
pub const MAX_WAIT_MILLIS: u32 = 10_000;

/// A question of one topic, and the message that answers it.
pub trait Topic: Message + Default {
    /// What an answerer of the control plane is registered for; `plugin.question`, at most [`MAX_TOPIC`] bytes.
    const TOPIC: &'static str;
    /// The answer.
    type Answer: Message + Default;
}

/// An answer that is a yes or a no. A control plane that could not find out gives none at all.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct YesNo {
    /// Whether it is a yes.
    #[prost(bool, tag = "1")]
    pub yes: bool,
}

impl Topic for SpendPuzzle {
    const TOPIC: &'static str = "challenge.spend-puzzle";
    type Answer = YesNo;
}

impl Topic for VerifyToken {
    const TOPIC: &'static str = "challenge.verify-token";
    type Answer = YesNo;
}

impl Ask {
    /// The topic and the encoded question. Earlier releases sent their two questions in fields of their own.
    #[must_use]
    pub fn question(&self) -> (Cow<'_, str>, Cow<'_, [u8]>) {
        match (&self.spend_puzzle, &self.verify_token) {
            (Some(puzzle), _) => (SpendPuzzle::TOPIC.into(), puzzle.encode_to_vec().into()),
            (None, Some(token)) => (VerifyToken::TOPIC.into(), token.encode_to_vec().into()),
            (None, None) => (self.topic.as_str().into(), self.data.as_slice().into()),
        }
    }

    /// The answer in the form that the asking release reads; `data` is `None` where there is no answer.
    #[must_use]
    pub fn answered(&self, data: Option<Vec<u8>>) -> Answered {
        let earlier = self.spend_puzzle.is_some() || self.verify_token.is_some();
        if !earlier {
            return Answered { id: self.id, answer: 0, data };
        }
        let word = match data.and_then(|data| YesNo::decode(data.as_slice()).ok()) {
            Some(YesNo { yes: true }) => AnswerWord::Yes,
            Some(YesNo { yes: false }) => AnswerWord::No,
            None => AnswerWord::Unknown,
        };
        Answered { id: self.id, answer: word.into(), data: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_of_earlier_releases_are_of_a_topic_and_are_answered_with_their_words() {
        let puzzle = SpendPuzzle { id: "p".into(), until_millis: 7 };
        let earlier = Ask { id: 3, spend_puzzle: Some(puzzle.clone()), ..Ask::default() };
        let now = Ask { id: 3, topic: SpendPuzzle::TOPIC.into(), data: puzzle.encode_to_vec(), ..Ask::default() };
        assert_eq!(earlier.question(), now.question());
        let token = Ask { verify_token: Some(VerifyToken::default()), ..Ask::default() };
        assert_eq!(token.question().0, VerifyToken::TOPIC);
        for (yes, word) in [(true, AnswerWord::Yes), (false, AnswerWord::No)] {
            let data = YesNo { yes }.encode_to_vec();
            assert_eq!(earlier.answered(Some(data.clone())), Answered { id: 3, answer: word.into(), data: None });
            assert_eq!(now.answered(Some(data.clone())), Answered { id: 3, answer: 0, data: Some(data) });
        }
        assert_eq!(earlier.answered(None), Answered { id: 3, answer: AnswerWord::Unknown.into(), data: None });
        assert_eq!(now.answered(None), Answered { id: 3, answer: 0, data: None });
    }
}
