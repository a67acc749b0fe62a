//! What is counted of an operation or a path.

use snapshot::content_hash;

use super::messages::{AnswerSeen, Counted};
use super::paths::PathCounts;

/// The callers of one operation that are told apart; of more, their number is an estimate.
pub const MAX_CALLERS: usize = 128;
/// The largest count: what JSON's readers keep exact.
pub const MAX_COUNT: u64 = (1 << 53) - 1;

/// Calls and what was answered to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// All calls.
    pub hits: u64,
    /// Those that a filter of the gateway has refused.
    pub refused: u64,
    /// The answers of the backend by class, 1xx first.
    pub classes: [u64; 5],
    /// Those that were answered with 404, which are among the 4xx.
    pub not_found: u64,
    /// The time of the last one, in milliseconds since the Unix epoch.
    pub last_seen: u64,
    /// What the answers with a 2xx look like.
    pub answer: Option<AnswerSeen>,
}

impl CallCounts {
    /// Counts a call with the status of its backend; without one, the call was refused or has had no answer.
    pub fn count(&mut self, status: Option<u16>, refused: bool, now: u64) {
        self.hits = self.hits.saturating_add(1);
        self.last_seen = self.last_seen.max(now);
        match status {
            Some(status) => {
                let class = usize::from(status / 100).checked_sub(1).and_then(|class| self.classes.get_mut(class));
                if let Some(class) = class {
                    *class = class.saturating_add(1);
                }
                self.not_found = self.not_found.saturating_add(u64::from(status == 404));
            }
            None if refused => self.refused = self.refused.saturating_add(1),
            None => {}
        }
    }

    /// Notes what an answer with a 2xx looks like.
    pub fn answered_with(&mut self, answer: AnswerSeen) {
        match &mut self.answer {
            Some(known) if !known.varies && !known.is_like(&answer) => known.varies = true,
            Some(_) => {}
            none => *none = Some(answer),
        }
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hits == 0
    }

    /// Adds what another counted.
    pub fn add(&mut self, other: &Self) {
        let add = |one: &mut u64, two: u64| *one = one.saturating_add(two).min(MAX_COUNT);
        add(&mut self.hits, other.hits);
        add(&mut self.refused, other.refused);
        add(&mut self.not_found, other.not_found);
        self.classes.iter_mut().zip(other.classes).for_each(|(one, two)| add(one, two));
        self.last_seen = self.last_seen.max(other.last_seen);
        if let Some(answer) = &other.answer {
            self.answered_with(answer.clone());
            if let Some(known) = &mut self.answer {
                known.varies |= answer.varies;
            }
        }
    }

    /// As it is sent and stored.
    #[must_use]
    pub fn message(&self, now: u64) -> Counted {
        Counted {
            hits: self.hits,
            refused: self.refused,
            classes: self.classes.to_vec(),
            not_found: self.not_found,
            age: now.saturating_sub(self.last_seen),
            answer: self.answer.clone(),
        }
    }

    /// What was sent or stored at `now`; numbers that cannot be are made those that can.
    #[must_use]
    pub fn of_message(message: Counted, now: u64) -> Self {
        let mut classes = [0; 5];
        classes.iter_mut().zip(message.classes).for_each(|(one, two)| *one = two.min(MAX_COUNT));
        let mut answer = message.answer;
        if let Some(answer) = &mut answer {
            answer.bound();
        }
        Self {
            hits: message.hits.min(MAX_COUNT),
            refused: message.refused.min(MAX_COUNT),
            classes,
            not_found: message.not_found.min(MAX_COUNT),
            last_seen: now.saturating_sub(message.age),
            answer,
        }
    }
}

impl PathCounts for CallCounts {
    fn merge(&mut self, other: Self) {
        self.add(&other);
    }

    fn exists(&self) -> bool {
        self.classes.get(1).is_some_and(|answers| *answers > 0)
    }

    fn weight(&self) -> u64 {
        self.hits
    }
}

impl AnswerSeen {
    /// An answer: its status, the bytes of its body where they are known, and its media type.
    #[must_use]
    pub fn new(status: u16, length: Option<u64>, content_type: Option<&[u8]>) -> Self {
        let essence = content_type.unwrap_or_default().split(|byte| *byte == b';').next().unwrap_or_default();
        let media: String = essence
            .iter()
            .filter(|byte| byte.is_ascii_graphic())
            .take(64)
            .map(|byte| char::from(byte.to_ascii_lowercase()))
            .collect();
        Self { status: u32::from(status), length: length.map_or(0, length_class), media, varies: false }
    }

    /// Whether two answers look alike. Where the length is not known, pages alone are compared: APIs often do not say it.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.status == other.status
            && self.length == other.length
            && self.media == other.media
            && (self.length > 0 || self.media == "text/html")
    }

    fn bound(&mut self) {
        if self.media.len() > 64 || !self.media.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.media.clear();
        }
    }
}

/// The class of a length, from 1 on: exact below 64 bytes, of an eighth of the length above.
fn length_class(length: u64) -> u32 {
    if length < 64 {
        return u32::try_from(length).unwrap_or(0).saturating_add(1);
    }
    let power = length.ilog2();
    let eighth = u32::try_from((length >> (power - 3)) & 7).unwrap_or(0);
    65 + (power - 6) * 8 + eighth
}

/// Different callers: exactly up to [`MAX_CALLERS`], beyond them an estimate within a tenth or so. It keeps the smallest of their
/// hashes, so that what several workers and nodes have seen adds up to what one would have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Callers(Vec<u64>);

impl Callers {
    /// The hash of a caller. It says nothing of the caller to those who do not know it.
    #[must_use]
    pub fn hash(caller: &str) -> u64 {
        let hash = content_hash(format!("api caller\0{caller}").as_bytes());
        hash.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Adds a caller; whether it changed anything.
    pub fn insert(&mut self, hash: u64) -> bool {
        let Err(place) = self.0.binary_search(&hash) else { return false };
        if place >= MAX_CALLERS {
            return false;
        }
        self.0.insert(place, hash);
        self.0.truncate(MAX_CALLERS);
        true
    }

    /// The hashes.
    #[must_use]
    pub fn hashes(&self) -> &[u64] {
        &self.0
    }

    /// How many there are.
    #[must_use]
    pub fn number(&self) -> u64 {
        let few = u64::try_from(self.0.len()).unwrap_or(u64::MAX);
        match self.0.last() {
            Some(largest) if self.0.len() >= MAX_CALLERS => {
                // Hashes are spread evenly: the k-th smallest of n lies at k / n of all.
                let number = u128::from(few - 1) * (u128::from(u64::MAX) + 1) / u128::from((*largest).max(1));
                u64::try_from(number).unwrap_or(u64::MAX).clamp(few, MAX_COUNT)
            }
            _ => few,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_what_was_answered() {
        let mut counts = CallCounts::default();
        for (status, refused) in
            [(Some(200), false), (Some(404), false), (None, true), (None, false), (Some(999), false)]
        {
            counts.count(status, refused, 7);
        }
        assert_eq!((counts.hits, counts.refused, counts.not_found), (5, 1, 1));
        assert_eq!(counts.classes, [0, 1, 0, 1, 0]);
        let sent = counts.message(10);
        assert_eq!(CallCounts::of_message(sent, 10), counts);
        let huge = Counted { hits: u64::MAX, classes: vec![u64::MAX; 9], age: u64::MAX, ..Counted::default() };
        let mut sum = CallCounts::of_message(huge.clone(), 10);
        sum.add(&CallCounts::of_message(huge, 10));
        assert_eq!((sum.hits, sum.classes[4], sum.last_seen), (MAX_COUNT, MAX_COUNT, 0));
    }

    #[test]
    fn answers_are_alike_by_status_length_and_media_type() {
        let html = |length| AnswerSeen::new(200, length, Some(b"text/html; charset=utf-8"));
        assert!(html(Some(1000)).is_like(&html(Some(1020))));
        assert!(!html(Some(1000)).is_like(&html(Some(1300))));
        assert!(!html(Some(10)).is_like(&html(Some(11))));
        assert!(html(None).is_like(&html(None)));
        let json = |length| AnswerSeen::new(200, length, Some(b"application/json"));
        assert!(!json(None).is_like(&json(None)) && json(Some(5)).is_like(&json(Some(5))));
        assert!(!json(Some(1000)).is_like(&html(Some(1000))));
        let mut counts = CallCounts::default();
        counts.answered_with(html(Some(1000)));
        counts.answered_with(html(Some(1001)));
        assert!(!counts.answer.as_ref().unwrap().varies);
        counts.answered_with(html(Some(5000)));
        assert!(counts.answer.unwrap().varies);
        assert!((0..200_000_u64).map(length_class).is_sorted(), "no two lengths apart share a class by chance");
        assert!(length_class(u64::MAX) > length_class(1 << 40));
    }

    #[test]
    fn callers_add_up_over_workers_and_are_estimated_where_there_are_many() {
        let (mut one, mut two, mut all) = (Callers::default(), Callers::default(), Callers::default());
        for caller in 0..100 {
            let hash = Callers::hash(&format!("ip:{caller}"));
            if caller % 2 == 0 {
                one.insert(hash)
            } else {
                two.insert(hash)
            };
            all.insert(hash);
        }
        assert_eq!((one.number(), two.number(), all.number()), (50, 50, 100));
        two.hashes().iter().for_each(|hash| _ = one.insert(*hash));
        assert_eq!(one, all);
        (0..50_000).for_each(|caller| _ = all.insert(Callers::hash(&format!("ip:{caller}"))));
        assert!((35_000..65_000).contains(&all.number()), "{}", all.number());
        assert_eq!(all.hashes().len(), MAX_CALLERS);
        assert!(!all.insert(u64::MAX));
    }
}
