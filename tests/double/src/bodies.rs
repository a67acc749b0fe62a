//! Bodies of questions, as the double takes them.

use std::collections::HashMap;

use snapshot::{ASK_WINDOW, Ask, AskChunk, AskGrant, Down};

use super::{Scripted, answer};

/// The bodies of one link that are under way, by their questions.
#[derive(Debug, Default)]
pub(super) struct Bodies(HashMap<u64, Taking>);

#[derive(Debug)]
struct Taking {
    most: u64,
    answer: fn(&[u8]) -> Vec<u8>,
    bytes: Vec<u8>,
    length: u64,
    stalls: bool,
}

/// How much of a body of this length is taken, and what the answer is made of it.
#[must_use]
pub fn read(body: &[u8], most: u64, answer: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    answer(body.get(..most).unwrap_or(body))
}

impl Bodies {
    /// Begins to take the body of a question, if that is what it is scripted for.
    pub(super) fn asked(&mut self, ask: &Ask, scripted: &Scripted) -> Option<Down> {
        let (most, answer, stalls) = match *scripted {
            Scripted::Read { most, answer } => (most, answer, false),
            Scripted::Stall { answer } => (u64::MAX, answer, true),
            _ => return None,
        };
        let length = ask.body.unwrap_or_default().length;
        self.0.insert(ask.id, Taking { most: most.min(length), answer, bytes: Vec::new(), length, stalls });
        Some(self.next(ask.id))
    }

    /// Takes a chunk; `None` for a question that is over, or stalls and is not released.
    pub(super) fn take(&mut self, chunk: &AskChunk, released: bool) -> Option<Down> {
        if chunk.abandoned {
            self.0.remove(&chunk.id);
            return None;
        }
        let taking = self.0.get_mut(&chunk.id)?;
        assert!(chunk.data.len() <= snapshot::ASK_CHUNK, "a chunk of {} bytes", chunk.data.len());
        taking.bytes.extend_from_slice(&chunk.data);
        let waits = taking.stalls && !released && (taking.bytes.len() as u64) < taking.most;
        (!waits).then(|| self.next(chunk.id))
    }

    /// How many are under way.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Grants more of a body that has stalled behind its first window.
    pub(super) fn released(ask: &Ask) -> Down {
        let length = ask.body.unwrap_or_default().length;
        let (taken, until) = (ASK_WINDOW.min(length), (2 * ASK_WINDOW).min(length));
        Down { grants: vec![AskGrant { id: ask.id, taken, until }], ..Down::default() }
    }

    /// The answer, or a grant.
    fn next(&mut self, id: u64) -> Down {
        let Some(Taking { most, bytes, length, .. }) = self.0.get(&id) else { return Down::default() };
        let taken = bytes.len() as u64;
        if taken < *most {
            let until = (taken + ASK_WINDOW).min(*length);
            return Down { grants: vec![AskGrant { id, taken, until }], ..Down::default() };
        }
        let taken = self.0.remove(&id);
        answer(id, taken.map(|Taking { most, answer, bytes, .. }| read(&bytes, most, answer)))
    }
}
