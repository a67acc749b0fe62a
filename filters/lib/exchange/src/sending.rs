//! The bodies of one worker that go with questions, sent in chunks.

use std::collections::VecDeque;

use snapshot::ASK_CHUNK;

/// The most bodies that are sent at once. One more question has no answer.
pub const MAX_SENDINGS: usize = 64;
/// The most bytes that these bodies have together: the gateway keeps them meanwhile.
pub const MAX_SENDING_BYTES: usize = 256 << 20;
/// The most bodies of one caller that are sent at once, and the most bytes that they have together: no single one takes the room of all
/// others.
pub const MAX_SENDINGS_OF_CALLER: usize = MAX_SENDINGS / 4;
/// See [`MAX_SENDINGS_OF_CALLER`].
pub const MAX_SENDING_BYTES_OF_CALLER: usize = MAX_SENDING_BYTES / 4;
/// The most bytes of all bodies that are sent and not taken yet: what other messages of the link may have in front of them.
pub const MAX_UNDER_WAY: usize = 2 << 20;

/// Bodies by the numbers of their questions, each with where its bytes come from. They are sent a chunk of each in turn, as far as
/// the control plane has granted.
#[derive(Debug)]
pub struct Sendings<T> {
    /// The next one's turn is first.
    list: VecDeque<Sending<T>>,
}

#[derive(Debug)]
struct Sending<T> {
    question: u64,
    source: T,
    /// A number of the caller, where it is known.
    caller: Option<u64>,
    length: usize,
    sent: usize,
    /// By the answerer.
    taken: usize,
    /// Up to which byte it may be sent.
    until: usize,
}

/// A chunk that may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// The number of the question.
    pub question: u64,
    /// Where it begins in the body.
    pub from: usize,
    /// In bytes.
    pub length: usize,
}

impl<T> Default for Sendings<T> {
    fn default() -> Self {
        Self { list: VecDeque::new() }
    }
}

impl<T> Sendings<T> {
    /// Adds the body of a question, of so many bytes; nothing of it is sent before it is granted. `caller` is the same number for all
    /// bodies of one caller; `None` where it is not known who is calling, which may be many. `false` if there are [`MAX_SENDINGS`], or more
    /// bytes than [`MAX_SENDING_BYTES`] together, or this caller has its share of either.
    #[must_use]
    pub fn open(&mut self, question: u64, caller: Option<u64>, length: usize, source: T) -> bool {
        let is_own = |sending: &Sending<T>| caller.is_some() && sending.caller == caller;
        let fits = |of: &dyn Fn(&Sending<T>) -> bool, most: usize, most_bytes: usize| {
            let taken = self.list.iter().filter(|sending| of(sending));
            let (count, bytes) =
                taken.fold((0, length), |(count, bytes), one| (count + 1, one.length.saturating_add(bytes)));
            count < most && bytes <= most_bytes
        };
        let has_room = fits(&|_| true, MAX_SENDINGS, MAX_SENDING_BYTES);
        if !has_room || !fits(&is_own, MAX_SENDINGS_OF_CALLER, MAX_SENDING_BYTES_OF_CALLER) {
            return false;
        }
        self.list.push_back(Sending { question, source, caller, length, sent: 0, taken: 0, until: 0 });
        true
    }

    /// The control plane has taken so many bytes of a body, and grants it up to a byte. What it grants no more stays granted.
    pub fn grant(&mut self, question: u64, taken: u64, until: u64) {
        if let Some(sending) = self.list.iter_mut().find(|sending| sending.question == question) {
            let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            sending.taken = sending.taken.max(bytes(taken).min(sending.sent));
            sending.until = sending.until.max(bytes(until).min(sending.length));
        }
    }

    /// The next chunk in turn; `None` if nothing may be sent now. Unless it is [`Sendings::sent`], it comes again after the others.
    pub fn turn(&mut self) -> Option<(Chunk, &T)> {
        let under_way =
            self.list.iter().fold(0_usize, |bytes, one| bytes.saturating_add(one.sent.saturating_sub(one.taken)));
        let room = MAX_UNDER_WAY.saturating_sub(under_way).min(ASK_CHUNK);
        let at = self.list.iter().position(|sending| room > 0 && sending.sent < sending.until)?;
        self.list.rotate_left(at);
        self.list.rotate_left(1);
        let sending = self.list.back()?;
        let length = sending.until.saturating_sub(sending.sent).min(room);
        Some((Chunk { question: sending.question, from: sending.sent, length }, &sending.source))
    }

    /// A chunk was sent.
    pub fn sent(&mut self, chunk: Chunk) {
        if let Some(sending) = self.list.iter_mut().find(|sending| sending.question == chunk.question) {
            sending.sent = chunk.from.saturating_add(chunk.length);
        }
    }

    /// No more of a body is sent: its question is answered, or the body is gone. What it came from.
    pub fn end(&mut self, question: u64) -> Option<T> {
        let at = self.list.iter().position(|sending| sending.question == question)?;
        self.list.remove(at).map(|sending| sending.source)
    }

    /// Ends those whose question waits no more, with their numbers and sources.
    pub fn end_unless(&mut self, waits: impl Fn(u64) -> bool) -> Vec<(u64, T)> {
        let ended: Vec<u64> = self.list.iter().map(|one| one.question).filter(|question| !waits(*question)).collect();
        ended.into_iter().filter_map(|question| Some((question, self.end(question)?))).collect()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Where the bytes of a question's body come from.
    pub fn source(&mut self, question: u64) -> Option<&mut T> {
        self.list.iter_mut().find(|sending| sending.question == question).map(|sending| &mut sending.source)
    }
}

#[cfg(test)]
mod tests {
    use snapshot::{ASK_WINDOW, MAX_ASK_BODY};

    use super::*;

    fn send(sendings: &mut Sendings<char>) -> Option<(u64, usize, usize)> {
        let (chunk, _) = sendings.turn()?;
        sendings.sent(chunk);
        Some((chunk.question, chunk.from, chunk.length))
    }

    #[test]
    fn bodies_take_turns_as_far_as_they_are_granted() {
        let mut sendings = Sendings::default();
        assert!(sendings.open(1, None, 200_000, 'a') && sendings.open(2, None, 70_000, 'b'));
        assert!(sendings.open(3, None, 0, 'c'));
        assert_eq!(send(&mut sendings), None, "nothing is granted");
        sendings.grant(1, 0, ASK_WINDOW);
        sendings.grant(2, 0, ASK_WINDOW);
        sendings.grant(3, 0, ASK_WINDOW);
        let chunk = ASK_CHUNK;
        assert_eq!(send(&mut sendings), Some((1, 0, chunk)));
        assert_eq!(send(&mut sendings), Some((2, 0, chunk)));
        assert_eq!(send(&mut sendings), Some((1, chunk, chunk)));
        assert_eq!(send(&mut sendings), Some((2, chunk, 70_000 - chunk)), "no more than there is");
        assert_eq!(send(&mut sendings), None, "the window is full");
        sendings.grant(1, 65_536, 65_536 + ASK_WINDOW);
        assert_eq!(send(&mut sendings), Some((1, 2 * chunk, chunk)));
        sendings.grant(1, 10, 20);
        assert_eq!(send(&mut sendings), None, "a grant is not taken back");
        sendings.grant(1, 200_000, u64::MAX);
        assert_eq!(send(&mut sendings), Some((1, 3 * chunk, 200_000 - 3 * chunk)));
        assert_eq!(send(&mut sendings), None);
        sendings.grant(9, 0, 10);
        assert_eq!((sendings.end(1), sendings.end(1)), (Some('a'), None));
        assert_eq!(sendings.end_unless(|question| question == 3), [(2, 'b')]);
        assert_eq!((sendings.source(3).copied(), sendings.is_empty()), (Some('c'), false));
    }

    #[test]
    fn a_chunk_that_could_not_be_read_comes_again_after_the_others() {
        let mut sendings = Sendings::default();
        assert!(sendings.open(1, None, 10, 'a') && sendings.open(2, None, 10, 'b'));
        sendings.grant(1, 0, 10);
        sendings.grant(2, 0, 10);
        let of = |turn: Option<(Chunk, &char)>| turn.map(|(chunk, source)| (chunk.question, *source));
        assert_eq!(of(sendings.turn()), Some((1, 'a')));
        assert_eq!(send(&mut sendings), Some((2, 0, 10)));
        assert_eq!(send(&mut sendings), Some((1, 0, 10)));
    }

    #[test]
    fn one_caller_leaves_room_for_others() {
        let fill = |sendings: &mut Sendings<char>, length| {
            (0..100).take_while(|question| sendings.open(*question, Some(7), length, 'a')).count()
        };
        let (mut short, mut long) = (Sendings::default(), Sendings::default());
        assert_eq!(fill(&mut short, 1), MAX_SENDINGS_OF_CALLER);
        assert_eq!(fill(&mut long, MAX_ASK_BODY), MAX_SENDING_BYTES_OF_CALLER / MAX_ASK_BODY);
        for sendings in [&mut short, &mut long] {
            assert!(sendings.open(200, Some(8), MAX_ASK_BODY, 'b'), "another caller");
            assert!(sendings.open(201, None, MAX_ASK_BODY, 'c'), "one that is not known");
            // It has its turn although the other one has more to send.
            (0..201).for_each(|question| sendings.grant(question, 0, ASK_WINDOW));
            let turns: Vec<u64> = std::iter::from_fn(|| send(sendings)).map(|(question, ..)| question).collect();
            assert!(turns.contains(&200));
            assert!(sendings.end(0).is_some() && sendings.open(202, Some(7), 1, 'a'), "its room is free again");
        }
    }

    #[test]
    fn bodies_are_bounded_in_number_in_bytes_and_under_way() {
        let mut sendings = Sendings::default();
        assert!((0..MAX_SENDINGS as u64).all(|question| sendings.open(question, None, 1, 'a')));
        assert!(!sendings.open(100, None, 1, 'a'));
        let mut long = Sendings::default();
        let fit = (0..100).take_while(|question| long.open(*question, None, MAX_ASK_BODY, 'a')).count();
        assert_eq!(fit, MAX_SENDING_BYTES / MAX_ASK_BODY);
        // However much is granted, other messages have a bounded number of bytes in front of them.
        (0..8).for_each(|question| long.grant(question, 0, u64::MAX));
        let mut sent = 0;
        while let Some((_, _, length)) = send(&mut long) {
            sent += length;
        }
        assert_eq!(sent, MAX_UNDER_WAY);
        long.grant(3, 100, u64::MAX);
        assert_eq!(send(&mut long).map(|(_, _, length)| length), Some(100));
        assert_eq!(send(&mut long), None);
        assert!(long.end(3).is_some(), "its bytes are on their way, but nothing of them is waited for");
        assert!(send(&mut long).is_some());
    }
}
