//! The questions of one worker that wait for their answers.

use std::collections::BTreeMap;

use crate::Answer;

/// The most questions of one worker that wait at once. One more has no answer.
pub const MAX_QUESTIONS: usize = 1000;
/// The most of them of one caller: no single one takes the room of all others.
pub const MAX_QUESTIONS_OF_CALLER: usize = 500;
/// The most bytes that these questions have together.
pub const MAX_QUESTION_BYTES: usize = 16 << 20;
/// For how long questions wait and none is answered before the control plane is taken to stall, in milliseconds. Long compared to
/// what an answer takes: a burst of one caller must not look like a stall.
const STALL: u64 = 500;
/// How far the clock may step back before a wait is over, in milliseconds: small corrections of the time are common.
const STEP_BACK: u64 = 1000;

/// Whether a wait is over that began and ends at these times, all in milliseconds since the Unix epoch. How long it lasts is unknown where
/// it began more than a second after `now`, because the clock was set back: then it is over as well.
#[must_use]
pub fn wait_is_over(began: u64, until: u64, now: u64) -> bool {
    now >= until || now.saturating_add(STEP_BACK) < began
}

/// Questions by their numbers, each with what waits for it. An entry ends with the answer, the deadline, the stream that the
/// question was sent on, or the message that waits.
#[derive(Debug)]
pub struct Questions<T> {
    waiting: BTreeMap<u64, Waiting<T>>,
    /// The number of the last question.
    last: u64,
    /// Of all questions that wait.
    bytes: usize,
    /// Since when questions wait and none was answered, in milliseconds since the Unix epoch.
    silent_since: Option<u64>,
    /// The last question whose time was over.
    overdue: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    asking: T,
    /// A number of the caller, where it is known.
    caller: Option<u64>,
    bytes: usize,
    /// From when until when, in milliseconds since the Unix epoch.
    times: (u64, u64),
    /// The stream that it was sent on, once it was.
    stream: Option<u32>,
}

impl<T> Default for Questions<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), last: 0, bytes: 0, silent_since: None, overdue: 0 }
    }
}

impl<T> Questions<T> {
    /// The number of a new question of so many bytes, which `asking` waits for from `now` until a time, both in milliseconds since the
    /// Unix epoch. `caller` is the same number for all questions of one caller; `None` where it is not known who is calling, which
    /// may be many.
    ///
    /// # Errors
    ///
    /// The answer if there is no room, of all callers or of this one. [`Answer::Overrun`] as a rule: callers bring that about.
    /// [`Answer::Unavailable`] while the control plane answers none of the questions: then the callers do not.
    pub fn open(&mut self, asking: T, caller: Option<u64>, bytes: usize, times: (u64, u64)) -> Result<u64, Answer> {
        let now = times.0;
        let total = self.bytes.saturating_add(bytes);
        let is_full = self.waiting.len() >= MAX_QUESTIONS || total > MAX_QUESTION_BYTES;
        if is_full || caller.is_some_and(|caller| self.of_caller(caller) >= MAX_QUESTIONS_OF_CALLER) {
            return Err(if self.stalls(now) { Answer::Unavailable } else { Answer::Overrun });
        }
        self.last = self.last.wrapping_add(1);
        self.bytes = total;
        self.silent_since.get_or_insert(now);
        self.waiting.insert(self.last, Waiting { asking, caller, bytes, times, stream: None });
        Ok(self.last)
    }

    /// How many questions of a caller wait.
    fn of_caller(&self, caller: u64) -> usize {
        self.waiting.values().filter(|waiting| waiting.caller == Some(caller)).count()
    }

    /// Whether the control plane answers none of the questions.
    fn stalls(&self, now: u64) -> bool {
        self.silent_since.is_some_and(|since| now.saturating_sub(since) >= STALL)
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

    /// The control plane has answered a question: takes out what waits for it. It may be nothing any more, where the client has left.
    pub fn answered(&mut self, question: u64, now: u64) -> Option<T> {
        let asking = self.remove(question);
        // An answer that comes too late is none: a control plane that is always late stalls.
        if asking.is_some() || question > self.overdue {
            self.silent_since = (!self.waiting.is_empty()).then_some(now);
        }
        asking
    }

    /// Takes out what waits for a question that is not asked any more.
    pub fn take(&mut self, question: u64) -> Option<T> {
        let asking = self.remove(question);
        self.end_silence();
        asking
    }

    /// Takes out what has waited long enough, see [`wait_is_over`].
    pub fn take_overdue(&mut self, now: u64) -> Vec<T> {
        let is_overdue = |waiting: &Waiting<T>| wait_is_over(waiting.times.0, waiting.times.1, now);
        let last = self.waiting.iter().rev().find(|(_, waiting)| is_overdue(waiting));
        self.overdue = last.map_or(self.overdue, |(question, _)| self.overdue.max(*question));
        self.remove_all(is_overdue)
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
        let taken = self.remove_all(of);
        self.end_silence();
        taken
    }

    /// What is taken out for another reason than its time says nothing about the control plane.
    fn end_silence(&mut self) {
        if self.waiting.is_empty() {
            self.silent_since = None;
        }
    }

    fn remove_all(&mut self, of: impl Fn(&Waiting<T>) -> bool) -> Vec<T> {
        let questions: Vec<u64> =
            self.waiting.iter().filter(|(_, waiting)| of(waiting)).map(|(question, _)| *question).collect();
        questions.into_iter().filter_map(|question| self.remove(question)).collect()
    }

    fn remove(&mut self, question: u64) -> Option<T> {
        let waiting = self.waiting.remove(&question)?;
        self.bytes = self.bytes.saturating_sub(waiting.bytes);
        Some(waiting.asking)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn an_entry_ends_with_the_answer_the_deadline_the_stream_or_the_message() {
        let mut questions = Questions::default();
        let open =
            |questions: &mut Questions<u32>, message, until| questions.open(message, Some(0), 10, (0, until)).unwrap();
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
        assert!((0..MAX_QUESTIONS).all(|message| questions.open(message, Some(message as u64), 1, (0, 9)).is_ok()));
        assert_eq!(questions.open(7, Some(7), 1, (0, 9)), Err(Answer::Overrun));
        questions.take(1);
        assert!(questions.open(8, Some(8), 1, (0, 9)).is_ok());
        assert_eq!(questions.take_overdue(9).len(), MAX_QUESTIONS);
        let size = 64 << 10;
        let mut fits = |message: &usize| questions.open(*message, Some(*message as u64), size, (0, 9)).is_ok();
        let fit = (0..MAX_QUESTIONS).take_while(&mut fits).count();
        assert_eq!((fit, questions.len()), (MAX_QUESTION_BYTES / size, MAX_QUESTION_BYTES / size));
    }

    #[test]
    fn one_caller_leaves_room_for_others() {
        let mut questions = Questions::default();
        assert!((0..MAX_QUESTIONS_OF_CALLER).all(|message| questions.open(message, Some(7), 1, (0, 9)).is_ok()));
        assert_eq!(questions.open(1, Some(7), 1, (0, 9)), Err(Answer::Overrun));
        assert!(questions.open(2, Some(8), 1, (0, 9)).is_ok());
        questions.take(1);
        assert!(questions.open(3, Some(7), 1, (0, 9)).is_ok());
    }

    #[test]
    fn a_clock_that_is_set_back_by_more_than_a_second_ends_the_wait() {
        let mut questions = Questions::default();
        assert!(questions.open('a', None, 1, (50_000, 51_000)).is_ok());
        assert!(questions.take_overdue(50_999).is_empty());
        assert!(questions.take_overdue(49_999).is_empty() && questions.take_overdue(49_000).is_empty());
        assert_eq!(questions.take_overdue(48_999), ['a']);
        assert!(questions.open('b', None, 1, (10_000, 11_000)).is_ok());
        assert_eq!((questions.take_overdue(10_000), questions.take_overdue(11_000)), (vec![], vec!['b']));
    }

    #[test]
    fn those_without_an_identity_are_not_one_caller() {
        let mut questions = Questions::default();
        assert!((0..MAX_QUESTIONS).all(|message| questions.open(message, None, 1, (0, 9)).is_ok()));
        assert_eq!(questions.open(1, None, 1, (0, 9)), Err(Answer::Overrun));
    }

    /// Opens so many questions of a caller.
    fn fill(questions: &mut Questions<usize>, count: usize, caller: Option<u64>, now: u64) {
        assert!((0..count).all(|message| questions.open(message, caller, 1, (now, now + 1000)).is_ok()));
    }

    #[test]
    fn what_finds_no_room_is_no_overrun_while_the_control_plane_stalls() {
        for (caller, count) in [(None, MAX_QUESTIONS), (Some(7), MAX_QUESTIONS_OF_CALLER)] {
            let mut questions = Questions::default();
            let more = |questions: &mut Questions<usize>, now| questions.open(1, caller, 1, (now, now + 1000));
            fill(&mut questions, count, caller, 5000);
            assert_eq!(more(&mut questions, 5000 + STALL - 1), Err(Answer::Overrun), "a burst is no stall");
            assert_eq!(more(&mut questions, 5000 + STALL), Err(Answer::Unavailable));
            // An answer ends it.
            assert!(questions.answered(1, 5600).is_some() && more(&mut questions, 5600).is_ok());
            assert_eq!(more(&mut questions, 5700), Err(Answer::Overrun));
            assert_eq!(more(&mut questions, 5600 + STALL), Err(Answer::Unavailable));
            // It lasts as long as all that happens is that times are over.
            assert_eq!(questions.take_overdue(6600).len(), count);
            fill(&mut questions, count, caller, 6600);
            assert_eq!(more(&mut questions, 6601), Err(Answer::Unavailable));
            // A late answer is none; one to a client that has left is one.
            assert_eq!((questions.answered(2, 6602), more(&mut questions, 6602)), (None, Err(Answer::Unavailable)));
            let gone = questions.last - 1;
            assert!(questions.take(gone).is_some() && more(&mut questions, 6603).is_ok());
            assert_eq!((questions.answered(gone, 6604), more(&mut questions, 6604)), (None, Err(Answer::Overrun)));
        }
    }

    #[test]
    fn questions_that_callers_or_the_link_end_are_no_stall() {
        let ends: [fn(&mut Questions<usize>) -> usize; 4] = [
            |questions| questions.take_lost(7).len(),
            |questions| questions.take_unsent().len(),
            |questions| questions.take(1).iter().count(),
            |questions| questions.answered(1, 1).iter().count(),
        ];
        for end in ends {
            let mut questions = Questions::default();
            fill(&mut questions, 1, None, 0);
            if end(&mut questions) == 0 {
                questions.forget(|_| true);
            }
            fill(&mut questions, MAX_QUESTIONS, None, 9000);
            assert_eq!(questions.open(1, None, 1, (9001, 9999)), Err(Answer::Overrun));
        }
    }
}
