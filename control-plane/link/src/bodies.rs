//! Bodies that come with questions: in chunks, as fast as their answerers take them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use snapshot::{ASK_CHUNK, ASK_WINDOW, Ask, AskBody, AskChunk, AskGrant, MAX_ASK_BODY};
use tokio::sync::mpsc;

/// Chunks of one body that wait for its answerer. A worker sends no more than it is granted, which is fewer.
const CHUNKS: usize = 8;

/// The body of a question. The worker sends it as it is taken: nothing before the first [`QuestionBody::next`], and at most
/// [`ASK_WINDOW`] bytes that were not taken. Dropping it, or answering, ends that.
#[derive(Debug)]
pub struct QuestionBody {
    question: u64,
    length: u64,
    complete: bool,
    taken: u64,
    /// `None` for a question without a body.
    chunks: Option<mpsc::Receiver<Vec<u8>>>,
    grants: Option<mpsc::UnboundedSender<AskGrant>>,
}

/// The rest of a body does not come: its worker has abandoned the question, has sent what is not granted, or has lost the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLost;

impl QuestionBody {
    /// That of a question without a body.
    #[must_use]
    pub fn none() -> Self {
        Self { question: 0, length: 0, complete: true, taken: 0, chunks: None, grants: None }
    }

    /// How many bytes there are; at most [`MAX_ASK_BODY`].
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether they are the whole body of the message; otherwise its beginning.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The next bytes, at most [`ASK_CHUNK`]; `None` behind the last.
    ///
    /// # Errors
    ///
    /// [`BodyLost`] if no more come.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, BodyLost> {
        if self.taken >= self.length {
            return Ok(None);
        }
        if self.taken == 0 {
            self.grant();
        }
        let chunk = self.chunks.as_mut().ok_or(BodyLost)?.recv().await.ok_or(BodyLost)?;
        self.taken = self.taken.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        if chunk.is_empty() || self.taken > self.length {
            return Err(BodyLost);
        }
        self.grant();
        Ok(Some(chunk))
    }

    /// All of it, if it is no longer than `limit` bytes. A longer one is not sent at all.
    ///
    /// # Errors
    ///
    /// [`BodyLost`] if it is longer, or not all of it comes.
    pub async fn collect(mut self, limit: usize) -> Result<Vec<u8>, BodyLost> {
        let length = usize::try_from(self.length).ok().filter(|length| *length <= limit).ok_or(BodyLost)?;
        // It grows with what comes, not with what is announced.
        let mut body = Vec::with_capacity(length.min(ASK_CHUNK));
        while let Some(chunk) = self.next().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn grant(&self) {
        let until = self.taken.saturating_add(ASK_WINDOW).min(self.length);
        if let Some(grants) = &self.grants {
            // A link that has ended takes none.
            let _ended = grants.send(AskGrant { id: self.question, taken: self.taken, until });
        }
    }
}

/// The bodies of the questions of one link. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    open: Arc<Mutex<HashMap<u64, Open>>>,
    grants: mpsc::UnboundedSender<AskGrant>,
}

/// A body that comes.
#[derive(Debug)]
struct Open {
    chunks: mpsc::Sender<Vec<u8>>,
    /// Up to which byte the worker may send.
    granted: u64,
    /// How many bytes came.
    received: u64,
}

impl Bodies {
    /// Those of a new link, whose grants go to `grants`.
    pub(crate) fn new(grants: mpsc::UnboundedSender<AskGrant>) -> Self {
        Self { open: Arc::default(), grants }
    }

    /// The body of a question that comes. One that is too long never comes.
    pub(crate) fn of(&self, ask: &Ask) -> QuestionBody {
        let Some(AskBody { length, complete }) = ask.body else { return QuestionBody::none() };
        let (question, taken) = (ask.id, 0);
        if usize::try_from(length).ok().is_none_or(|length| length > MAX_ASK_BODY) {
            return QuestionBody { question, length, complete, taken, chunks: None, grants: None };
        }
        let (sender, chunks) = mpsc::channel(CHUNKS);
        self.with(|open| drop(open.insert(question, Open { chunks: sender, granted: 0, received: 0 })));
        let (chunks, grants) = (Some(chunks), Some(self.grants.clone()));
        QuestionBody { question, length, complete, taken, chunks, grants }
    }

    /// Chunks of a worker. What nothing waits for any more is dropped, and what breaks the bounds ends its body.
    pub(crate) fn take(&self, chunks: Vec<AskChunk>) {
        for AskChunk { id, data, abandoned } in chunks {
            self.with(|open| {
                let fits = data.len() <= ASK_CHUNK && !abandoned;
                let taken = open.get_mut(&id).is_some_and(|one| {
                    one.received = one.received.saturating_add(data.len() as u64);
                    fits && one.received <= one.granted && one.chunks.try_send(data).is_ok()
                });
                if !taken {
                    open.remove(&id);
                }
            });
        }
    }

    /// A grant goes to the worker: what comes beyond it ends its body.
    pub(crate) fn granted(&self, grant: &AskGrant) {
        self.with(|open| {
            if let Some(one) = open.get_mut(&grant.id) {
                one.granted = one.granted.max(grant.until);
            }
        });
    }

    /// A question is answered, or is not waited for.
    pub(crate) fn end(&self, question: u64) {
        self.with(|open| drop(open.remove(&question)));
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<u64, Open>) -> T) -> T {
        work(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(id: u64, length: u64) -> Ask {
        Ask { id, body: Some(AskBody { length, complete: true }), ..Ask::default() }
    }

    fn chunk(id: u64, length: usize) -> AskChunk {
        AskChunk { id, data: vec![b'x'; length], abandoned: false }
    }

    fn granted(grants: &mut mpsc::UnboundedReceiver<AskGrant>) -> Option<(u64, u64, u64)> {
        grants.try_recv().ok().map(|AskGrant { id, taken, until }| (id, taken, until))
    }

    #[tokio::test]
    async fn a_body_is_granted_as_it_is_taken() {
        let (sender, mut grants) = mpsc::unbounded_channel();
        let bodies = Bodies::new(sender);
        let mut body = bodies.of(&ask(7, 200_000));
        assert_eq!((body.length(), body.is_complete(), granted(&mut grants)), (200_000, true, None));
        bodies.granted(&AskGrant { id: 7, taken: 0, until: 200_000 });
        bodies.take(vec![chunk(7, 65_536), chunk(7, 65_536), chunk(8, 1)]);
        assert_eq!(body.next().await.unwrap().unwrap().len(), 65_536);
        assert_eq!(granted(&mut grants), Some((7, 0, 131_072)));
        assert_eq!(granted(&mut grants), Some((7, 65_536, 196_608)));
        assert_eq!(body.next().await.unwrap().unwrap().len(), 65_536);
        assert_eq!(granted(&mut grants), Some((7, 131_072, 200_000)));
        bodies.take(vec![chunk(7, 65_536), chunk(7, 3_392)]);
        assert_eq!(body.collect(200_000).await.unwrap().len(), 68_928);
        assert_eq!(bodies.of(&ask(8, 0)).next().await, Ok(None));
        assert_eq!(QuestionBody::none().next().await, Ok(None));
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_lost() {
        let (sender, mut grants) = mpsc::unbounded_channel();
        let bodies = Bodies::new(sender);
        let mut abandoned = bodies.of(&ask(1, 10));
        bodies.granted(&AskGrant { id: 1, taken: 0, until: 10 });
        bodies.take(vec![chunk(1, 5), AskChunk { id: 1, abandoned: true, ..AskChunk::default() }, chunk(1, 5)]);
        assert_eq!(abandoned.next().await.map(|chunk| chunk.map(|chunk| chunk.len())), Ok(Some(5)));
        assert_eq!(abandoned.next().await, Err(BodyLost));
        // More than was granted, in bytes of a chunk, in chunks, and in bytes of the body.
        for chunks in [
            vec![chunk(2, ASK_CHUNK + 1)],
            (0..=CHUNKS).map(|_| chunk(2, 1)).collect(),
            vec![chunk(2, 11)],
            vec![chunk(2, 0)],
        ] {
            let body = bodies.of(&ask(2, 10));
            bodies.granted(&AskGrant { id: 2, taken: 0, until: 10 });
            bodies.take(chunks);
            assert_eq!(body.collect(10).await, Err(BodyLost));
        }
        // Nothing is granted yet, or less than what comes.
        for until in [0, 4] {
            let body = bodies.of(&ask(2, 10));
            bodies.granted(&AskGrant { id: 2, taken: 0, until });
            bodies.take(vec![chunk(2, 5), chunk(2, 5)]);
            assert_eq!(body.collect(10).await, Err(BodyLost), "granted up to {until}");
        }
        while granted(&mut grants).is_some() {}
        assert_eq!(bodies.of(&ask(3, 11)).collect(10).await, Err(BodyLost), "it is too long for the answerer");
        assert_eq!(bodies.of(&ask(4, MAX_ASK_BODY as u64 + 1)).next().await, Err(BodyLost));
        assert_eq!(granted(&mut grants), None, "nothing was asked for");
    }
}
