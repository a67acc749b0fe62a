//! Streamed traces: pieces of many exchanges, put together by their trace's id.

use std::collections::BTreeMap;

use crate::formats::too_long;
use crate::shape;

use super::{Body, Buffered, Message, Piece};

/// How many traces are open at a time.
const OPEN: usize = 1024;

/// A trace that is complete, with notes, or what is wrong with it; and the number of its first segment.
pub(super) type Done = (u64, Result<(Buffered, Vec<String>), String>);

/// The traces that may still get pieces. A trace has no mark at its end: it is done with the response's trailers, when its
/// id comes again, when there are too many, and at the end of the file.
pub(super) struct Streamed {
    open: BTreeMap<u64, Partial>,
    /// The bytes of all of them.
    bytes: usize,
    /// Of one trace; all of them may have twice as many.
    limit: usize,
}

struct Partial {
    number: u64,
    trace: Buffered,
    bytes: usize,
    /// That was told, and nothing of it is kept.
    too_long: bool,
}

impl Streamed {
    pub(super) fn new(limit: usize) -> Self {
        Self { open: BTreeMap::new(), bytes: 0, limit }
    }

    /// Takes a piece; tells what is done by it.
    pub(super) fn add(&mut self, id: u64, number: u64, piece: Piece) -> Vec<Done> {
        let mut done = Vec::new();
        if matches!(piece, Piece::RequestHeaders(_)) {
            done.extend(self.close(id, &[]));
        }
        if !self.open.contains_key(&id) && self.open.len() >= OPEN {
            done.extend(self.close_oldest());
        }
        let is_last = matches!(piece, Piece::ResponseTrailers(_));
        let partial = self.open.entry(id).or_insert_with(|| Partial {
            number,
            trace: Buffered::default(),
            bytes: 0,
            too_long: false,
        });
        let bytes = piece.len();
        partial.bytes += bytes;
        if partial.bytes <= self.limit {
            partial.trace.add(piece);
            self.bytes += bytes;
        } else if !partial.too_long {
            // Its bytes go and its id stays: the pieces that come later are known as its own.
            self.bytes -= partial.bytes - bytes;
            let length = u64::try_from(partial.bytes).unwrap_or(u64::MAX);
            done.push((partial.number, Err(too_long(length, self.limit))));
            partial.trace = Buffered::default();
            partial.too_long = true;
        }
        if is_last {
            done.extend(self.close(id, &[]));
        }
        while self.bytes > self.limit.saturating_mul(2) && !self.open.is_empty() {
            done.extend(self.close_oldest());
        }
        done
    }

    /// All that is left, in the order of their beginnings.
    pub(super) fn finish(&mut self) -> Vec<Done> {
        let mut ids: Vec<(u64, u64)> = self.open.iter().map(|(id, partial)| (partial.number, *id)).collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|(_, id)| self.close(id, &[])).collect()
    }

    fn close_oldest(&mut self) -> Option<Done> {
        let (_, id) = self.open.iter().map(|(id, partial)| (partial.number, *id)).min()?;
        let looks_whole = self.open.get(&id).is_some_and(|partial| partial.trace.looks_whole());
        let notes = ["too many traces were open at a time: what came later of this one is missing"];
        self.close(id, if looks_whole { &[] } else { &notes })
    }

    fn close(&mut self, id: u64, notes: &[&str]) -> Option<Done> {
        let partial = self.open.remove(&id)?;
        if partial.too_long {
            return None;
        }
        self.bytes = self.bytes.saturating_sub(partial.bytes);
        let begun = partial.trace.request.as_ref().is_some_and(|request| !request.headers.is_empty());
        let notes = notes.iter().map(|note| (*note).to_owned()).collect();
        let trace = if begun {
            Ok((partial.trace, notes))
        } else {
            Err("pieces of a streamed trace whose request headers are not in the file, or were too far above"
                .to_owned())
        };
        Some((partial.number, trace))
    }
}

impl Buffered {
    fn add(&mut self, piece: Piece) {
        let request = self.request.get_or_insert_default();
        match piece {
            Piece::RequestHeaders(headers) => request.headers = headers,
            Piece::RequestBody(body) => request.append(body),
            Piece::RequestTrailers(trailers) => request.trailers = trailers,
            Piece::ResponseHeaders(headers) => {
                let response = self.response.get_or_insert_default();
                // A 1xx comes before the response.
                response.headers = headers;
            }
            Piece::ResponseBody(body) => self.response.get_or_insert_default().append(body),
            Piece::ResponseTrailers(trailers) => self.response.get_or_insert_default().trailers = trailers,
            Piece::Nothing => {}
        }
    }
}

impl Buffered {
    /// There is a response, and as much of it as it announced.
    fn looks_whole(&self) -> bool {
        self.response.as_ref().filter(|response| !response.headers.is_empty()).is_some_and(|response| {
            let length = shape::value(&response.headers, "content-length");
            let has = response.body.bytes.len().to_string();
            response.body.truncated || length.is_none_or(|length| length == has.as_bytes())
        })
    }
}

impl Message {
    fn append(&mut self, body: Body) {
        self.body.truncated |= body.truncated;
        self.body.bytes.extend_from_slice(&body.bytes);
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::RequestBody(body) | Self::ResponseBody(body) => body.bytes.len(),
            Self::RequestHeaders(headers)
            | Self::RequestTrailers(headers)
            | Self::ResponseHeaders(headers)
            | Self::ResponseTrailers(headers) => headers.iter().map(|(name, value)| name.len() + value.len()).sum(),
            Self::Nothing => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin() -> Piece {
        Piece::RequestHeaders(vec![(b":method".to_vec(), b"GET".to_vec())])
    }

    fn body(length: usize) -> Piece {
        Piece::RequestBody(Body { bytes: vec![b'x'; length], truncated: false })
    }

    #[test]
    fn traces_are_done_at_their_trailers_and_where_their_id_comes_again() {
        let mut streamed = Streamed::new(1_000);
        assert!(streamed.add(7, 1, begin()).is_empty());
        assert!(streamed.add(7, 2, body(3)).is_empty());
        let again = streamed.add(7, 3, begin());
        assert_eq!((again[0].0, again[0].1.as_ref().unwrap().0.request.as_ref().unwrap().body.bytes.len()), (1, 3));
        assert_eq!(streamed.add(7, 4, Piece::ResponseTrailers(Vec::new()))[0].0, 3);
        assert!(streamed.finish().is_empty());
        // Of a trace whose beginning is missing one fault is told.
        streamed.add(8, 5, body(1));
        streamed.add(8, 6, body(1));
        assert!(streamed.finish()[0].1.is_err());
        assert_eq!(streamed.bytes, 0);
    }

    #[test]
    fn no_more_are_open_than_may_be() {
        let mut streamed = Streamed::new(100_000);
        let open = u64::try_from(OPEN).unwrap();
        assert!((1..=open).all(|id| streamed.add(id, id, begin()).is_empty()));
        let done = streamed.add(open + 1, open + 1, begin());
        assert_eq!(done.len(), 1);
        assert_eq!((done[0].0, done[0].1.as_ref().unwrap().1.len()), (1, 1));
        // One that got its response is not noted.
        let response = vec![(b":status".to_vec(), b"200".to_vec()), (b"content-length".to_vec(), b"1".to_vec())];
        streamed.add(2, open + 2, Piece::ResponseHeaders(response));
        let done = streamed.add(open + 2, open + 3, begin());
        assert_eq!((done[0].0, done[0].1.as_ref().unwrap().1.len()), (2, 1));
        let response = vec![(b":status".to_vec(), b"200".to_vec())];
        streamed.add(3, open + 4, Piece::ResponseHeaders(response));
        let done = streamed.add(open + 3, open + 5, begin());
        assert_eq!((done[0].0, done[0].1.as_ref().unwrap().1.len()), (3, 0));
        assert_eq!(streamed.finish().len(), OPEN);
    }

    #[test]
    fn no_more_bytes_are_kept_than_may_be() {
        let mut streamed = Streamed::new(1_000);
        streamed.add(1, 1, begin());
        streamed.add(1, 2, body(900));
        // Too long: told once, with all the pieces that come later.
        let done = streamed.add(1, 3, body(900));
        assert!(done.len() == 1 && done[0].0 == 1 && done[0].1.is_err());
        assert!(streamed.add(1, 4, body(900)).is_empty());
        assert_eq!(streamed.bytes, 0);
        // Together too long: the oldest goes.
        let mut gone = Vec::new();
        for id in 2..6 {
            gone.extend(streamed.add(id, id * 10, begin()));
            gone.extend(streamed.add(id, id * 10 + 1, body(900)));
        }
        assert_eq!(gone.iter().map(|done| done.0).collect::<Vec<_>>(), [20, 30]);
        assert!(streamed.bytes <= 2_000);
        assert_eq!(streamed.finish().len(), 2);
    }
}
