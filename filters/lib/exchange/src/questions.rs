//! The questions of one worker that wait for their answers.

use std::collections::BTreeMap;

/// The most questions of one worker that wait at once. One more has no answer.
pub const MAX_QUESTIONS: usize = 1000;
/// The most of them of one caller: no single one takes the room of all others.
pub const MAX_QUESTIONS_OF_CALLER: usize = 250;
/// The most bytes that these questions have together.
pub const MAX_QUESTION_BYTES: usize = 16 << 20;

/// Questions by their numbers, each with what waits for it. An entry ends with the answer, the deadline, the stream that the
/// question was sent on, or the message that waits.
#[derive(Debug)]
pub struct Questions<T> {
    waiting: BTreeMap<u64, Waiting<T>>,
    /// The number of the last question.
    last: u64,
    /// Of all questions that wait.
    bytes: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    asking: T,
    /// A number of the caller.
    caller: u64,
    bytes: usize,
    /// In milliseconds since the Unix epoch.
    until: u64,
    /// The stream that it was sent on, once it was.
    stream: Option<u32>,
}

impl<T> Default for Questions<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), last: 0, bytes: 0 }
    }
}

impl<T> Questions<T> {
    /// The number of a new question of so many bytes, which `asking` waits for until a time in milliseconds since the Unix epoch.
    /// `caller` is the same number for all questions of one caller.
    ///
    /// # Errors
    ///
    /// `asking` itself if too many questions wait, of all callers or of this one, or too many bytes of them.
    pub fn open(&mut self, asking: T, caller: u64, bytes: usize, until: u64) -> Result<u64, T> {
        let total = self.bytes.saturating_add(bytes);
        let of_caller = self.waiting.values().filter(|waiting| waiting.caller == caller).count();
        if self.waiting.len() >= MAX_QUESTIONS || of_caller >= MAX_QUESTIONS_OF_CALLER || total > MAX_QUESTION_BYTES {
            return Err(asking);
        }
        self.last = self.last.wrapping_add(1);
        self.bytes = total;
        self.waiting.insert(self.last, Waiting { asking, caller, bytes, until, stream: None });
        Ok(self.last)
    }

    /// A question was sent on a stream, which is the one that its answer comes on.
    pub fn sent(&mut self, question: u64, stream: u32) {
        if let Some(waiting) = self.waiting.get_mut(&question) {
            waiting.stream = Some(stream);
        }
    }

    /// Whether a question still waits.
    #[must_use]
    pub fn waits(&self, question: u64) -> bool {
        self.waiting.contains_key(&question)
    }

    /// The stream that a question was sent on, while it waits.
    #[must_use]
    pub fn stream(&self, question: u64) -> Option<u32> {
        self.waiting.get(&question)?.stream
    }

    /// Whether a question waits that was sent on this stream.
    #[must_use]
    pub fn wait_on(&self, stream: u32) -> bool {
        self.waiting.values().any(|waiting| waiting.stream == Some(stream))
    }

    /// How many questions wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no question waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes out what waits for a question.
    pub fn take(&mut self, question: u64) -> Option<T> {
        let waiting = self.waiting.remove(&question)?;
        self.bytes = self.bytes.saturating_sub(waiting.bytes);
        Some(waiting.asking)
    }

    /// Takes out what has waited long enough.
    pub fn take_overdue(&mut self, now: u64) -> Vec<T> {
        self.take_all(|waiting| waiting.until <= now)
    }

    /// Takes out what waits for questions on a stream that has ended.
    pub fn take_lost(&mut self, stream: u32) -> Vec<T> {
        self.take_all(|waiting| waiting.stream == Some(stream))
    }

    /// Takes out what waits for questions that were not sent yet.
    pub fn take_unsent(&mut self) -> Vec<T> {
        self.take_all(|waiting| waiting.stream.is_none())
    }

    /// Forgets the questions of a message that waits no more.
    pub fn forget(&mut self, of: impl Fn(&T) -> bool) {
        self.take_all(|waiting| of(&waiting.asking));
    }

    /// In the order of asking.
    fn take_all(&mut self, of: impl Fn(&Waiting<T>) -> bool) -> Vec<T> {
        let questions: Vec<u64> =
            self.waiting.iter().filter(|(_, waiting)| of(waiting)).map(|(question, _)| *question).collect();
        questions.into_iter().filter_map(|question| self.take(question)).collect()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn an_entry_ends_with_the_answer_the_deadline_the_stream_or_the_message() {
        let mut questions = Questions::default();
        let open = |questions: &mut Questions<u32>, message, until| questions.open(message, 0, 10, until).unwrap();
        let [one, two, three, four, five] = [1, 2, 3, 4, 5].map(|message| open(&mut questions, message, 100));
        questions.sent(one, 7);
        questions.sent(three, 7);
        questions.sent(five, 8);
        assert!(questions.waits(one) && questions.wait_on(7) && !questions.wait_on(9));
        assert_eq!((questions.take(one), questions.take(one)), (Some(1), None), "answered once");
        questions.forget(|message| *message == 2);
        assert!(!questions.waits(two));
        assert_eq!(questions.take_lost(7), [3]);
        assert!(!questions.waits(three));
        assert_eq!(questions.take_unsent(), [4]);
        assert!(!questions.waits(four));
        assert!(questions.take_overdue(99).is_empty());
        assert_eq!(questions.take_overdue(100), [5]);
        assert!(questions.is_empty() && !questions.waits(five));
        assert_eq!(questions.bytes, 0);
    }

    #[test]
    fn questions_are_bounded_in_number_and_bytes() {
        let mut questions = Questions::default();
        assert!((0..MAX_QUESTIONS).all(|message| questions.open(message, message as u64, 1, 9).is_ok()));
        assert_eq!(questions.open(7, 7, 1, 9), Err(7));
        questions.take(1);
        assert!(questions.open(8, 8, 1, 9).is_ok());
        assert_eq!(questions.take_overdue(9).len(), MAX_QUESTIONS);
        let size = 64 << 10;
        let fit =
            (0..MAX_QUESTIONS).take_while(|message| questions.open(*message, *message as u64, size, 9).is_ok()).count();
        assert_eq!((fit, questions.len()), (MAX_QUESTION_BYTES / size, MAX_QUESTION_BYTES / size));
    }

    #[test]
    fn one_caller_leaves_room_for_others() {
        let mut questions = Questions::default();
        assert!((0..MAX_QUESTIONS_OF_CALLER).all(|message| questions.open(message, 7, 1, 9).is_ok()));
        assert_eq!(questions.open(1, 7, 1, 9), Err(1));
        assert!(questions.open(2, 8, 1, 9).is_ok());
        questions.take(1);
        assert!(questions.open(3, 7, 1, 9).is_ok());
    }
}
