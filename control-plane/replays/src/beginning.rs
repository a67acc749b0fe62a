//! The beginning of a recording, for what only looks at some of its requests.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Cursor, Read as _};

use flate2::read::MultiGzDecoder;
use recording::{Entry, Options};

use crate::contents;
use crate::error::ReplayError;
use crate::recording::Recording;
use crate::replays::Replays;

/// The distinct requests of a beginning, at most.
pub const MAX_ENTRIES: usize = 1_000;
/// The bytes that are read for it, compressed and not, at most.
const MAX_READ: usize = 4 << 20;
const MAX_CONTENT: u64 = 64 << 20;
/// The bytes of an entry as JSON, at most; a longer one is left out.
const MAX_ENTRY: usize = 1 << 20;
/// The bytes of all requests that are kept, from which on no further one joins them.
const MAX_KEPT: usize = 8 << 20;

impl Replays {
    /// The first requests of a recording that differ in method, path, body or type of the body, at most [`MAX_ENTRIES`] and 8 MiB, in
    /// the order of time. The first 4 MiB of the recording are read, 64 MiB without compression. Responses have no bodies.
    ///
    /// # Errors
    /// The store has failed, or nothing of the recording can be read.
    pub async fn beginning(&self, of: &Recording) -> Result<Vec<Entry>, ReplayError> {
        let packed = contents::beginning(self.store(), &of.id, of.bytes, MAX_READ).await?;
        let failed = |why: String| ReplayError::Unreadable(why);
        let read = tokio::task::spawn_blocking(move || first(packed)).await;
        read.map_err(|error| failed(error.to_string()))?.map_err(failed)
    }
}

/// What is cut off at the end is left out.
fn first(packed: Vec<u8>) -> Result<Vec<Entry>, String> {
    let content = MultiGzDecoder::new(Cursor::new(packed)).take(MAX_CONTENT);
    let options = Options { entry_limit: MAX_ENTRY, ..Options::default() };
    let (mut entries, mut known, mut kept, mut problem) = (Vec::new(), HashSet::new(), 0_usize, None);
    for entry in recording::Recording::of("recording.jsonl", content, &options) {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(bad) => {
                problem.get_or_insert(bad.why);
                continue;
            }
        };
        if !known.insert(likeness(&entry)) {
            continue;
        }
        entry.exchange.response.body = Vec::new();
        kept = kept.saturating_add(size(&entry));
        entries.push(entry);
        if entries.len() >= MAX_ENTRIES || kept >= MAX_KEPT {
            break;
        }
    }
    match problem {
        Some(why) if entries.is_empty() => Err(why),
        _ => Ok(entries),
    }
}

/// The same for requests that are alike.
fn likeness(entry: &Entry) -> u64 {
    let request = &entry.exchange.request;
    let mut hasher = DefaultHasher::new();
    for name in [":method", ":path", "content-type"] {
        request.header(name).hash(&mut hasher);
    }
    request.body.hash(&mut hasher);
    hasher.finish()
}

fn size(entry: &Entry) -> usize {
    let request = &entry.exchange.request;
    let headers = request.headers.iter().chain(&entry.exchange.response.headers);
    headers.map(|(name, value)| name.len().saturating_add(value.len())).fold(request.body.len(), usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use recording::write::Writer;

    use super::*;

    fn packed(entries: &[Entry]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("recording.jsonl");
        let mut writer = Writer::create(&file).unwrap();
        entries.iter().for_each(|entry| writer.write(entry).unwrap());
        writer.finish().unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&std::fs::read(&file).unwrap()).unwrap();
        gzip.finish().unwrap()
    }

    fn entry(number: u64) -> Entry {
        let (_, mut exchange) = recording::varied::exchange(7, number);
        exchange.response.body = b"a page".to_vec();
        let place = recording::Place { file: "a".into(), number };
        Entry { place, at_millis: Some(number), status: Some(200), notes: Vec::new(), exchange }
    }

    fn numbers(entries: &[Entry]) -> Vec<u64> {
        entries.iter().filter_map(|entry| entry.at_millis).collect()
    }

    #[test]
    fn the_first_requests_that_differ_are_read() {
        let mut twice: Vec<Entry> = (0..3).map(entry).collect();
        twice.push(Entry { at_millis: Some(3), ..entry(1) });
        twice.push(Entry { at_millis: Some(4), ..entry(4) });
        let found = first(packed(&twice)).unwrap();
        assert_eq!(numbers(&found), [0, 1, 2, 4]);
        assert!(found.iter().all(|entry| entry.exchange.response.body.is_empty()));
        assert_eq!(found[3].exchange.request, entry(4).exchange.request);

        let many: Vec<Entry> = (0..1_200).map(entry).collect();
        let found = first(packed(&many)).unwrap();
        assert_eq!(found.len(), MAX_ENTRIES);

        let whole = packed(&many[..100]);
        let cut = first(whole[..whole.len() / 2].to_vec()).unwrap();
        assert!(cut.len() > 10 && cut.len() < 100, "{}", cut.len());
        assert!(first(b"no gzip".to_vec()).is_err());
        assert!(first(Vec::new()).is_err(), "it was deleted");
    }

    #[test]
    fn large_requests_are_few() {
        let large: Vec<Entry> = (0..40)
            .map(|number| {
                let mut one = entry(number);
                one.exchange.request.body = vec![b'a'; 512 << 10];
                one.exchange.request.body.extend(number.to_string().into_bytes());
                one
            })
            .collect();
        let found = first(packed(&large)).unwrap();
        assert_eq!(found.len(), MAX_KEPT.div_ceil(512 << 10));
    }
}
