//! Bodies that go with questions: read from where the gateway keeps them, and sent in chunks as the control plane takes them.

use std::cell::RefCell;
use std::rc::Rc;

use exchange::{Answer, Sendings};
use snapshot::{AskBody, AskChunk, AskGrant, Message, Up};

use super::Stream;
use crate::{calls, held, http};

/// The most chunks that are sent in one call of the gateway: what they are taken by grants more of them.
const MAX_AT_ONCE: usize = 16;

/// The bodies of this worker.
#[derive(Default)]
pub(super) struct Bodies(Sendings<Source>);

/// Where a body is, and the stream of the link that it is sent on.
struct Source {
    context: u32,
    stream: Rc<RefCell<http::Stream>>,
    /// Once the question was sent.
    token: Option<u32>,
}

impl Bodies {
    /// Adds the body of a question; `false` if there are too many, of all callers or of this one.
    pub(super) fn open(
        &mut self,
        question: u64,
        body: AskBody,
        (context, caller): (u32, Option<u64>),
        stream: &Rc<RefCell<http::Stream>>,
    ) -> bool {
        let length = usize::try_from(body.length).unwrap_or(usize::MAX);
        self.0.open(question, caller, length, Source { context, stream: Rc::clone(stream), token: None })
    }

    /// A question was sent on a stream; its body goes there as well.
    pub(super) fn asked(&mut self, question: u64, token: u32) {
        if let Some(source) = self.0.source(question) {
            source.token = Some(token);
        }
    }

    pub(super) fn grant(&mut self, grants: &[AskGrant]) {
        grants.iter().for_each(|grant| self.0.grant(grant.id, grant.taken, grant.until));
    }

    /// A question is answered, or was never sent.
    pub(super) fn end(&mut self, question: u64) {
        self.0.end(question);
    }

    /// Tells the control plane which bodies are not waited for any more. Leaves another context in effect.
    pub(super) fn abandon<'a>(&mut self, streams: impl Iterator<Item = &'a Stream> + Clone) {
        for (id, source) in self.0.end_unless(held::waits) {
            if let Some(stream) = streams.clone().find(|stream| source.token == Some(stream.token)) {
                // A stream that takes no message ends, and with it the question.
                send(stream, AskChunk { id, abandoned: true, ..AskChunk::default() });
            }
        }
    }

    /// Sends what is granted, a chunk of each body in turn. Leaves another context in effect.
    pub(super) fn send<'a>(&mut self, streams: impl Iterator<Item = &'a Stream> + Clone) {
        for _ in 0..MAX_AT_ONCE {
            let Some((chunk, source)) = self.0.turn() else { return };
            let Some(stream) = streams.clone().find(|stream| source.token == Some(stream.token)) else { continue };
            // What is in a callback of its own now has its turn later. A client that has left has no context any more.
            let Ok(from) = source.stream.try_borrow() else { continue };
            if !calls::set_effective_context(source.context) {
                continue;
            }
            let data = from.asked_bytes(chunk.from, chunk.length);
            drop(from);
            if data.len() == chunk.length && send(stream, AskChunk { id: chunk.question, data, abandoned: false }) {
                self.0.sent(chunk);
            } else {
                // Without all of the body there is no answer.
                self.0.end(chunk.question);
                held::answered(chunk.question, Answer::Unavailable);
            }
        }
    }
}

fn send(stream: &Stream, chunk: AskChunk) -> bool {
    let up = Up { chunks: vec![chunk], ..Up::default() };
    calls::set_effective_context(stream.owner) && calls::send_stream_message(stream.token, &up.encode_to_vec())
}
