//! The suite's files as recorded traffic: each stage is an entry, whatever its test expects.

use std::io::Read as _;
use std::path::Path;

use recording::{Entries, Entry, Input, Reader};

use super::{case, request};

/// How much of a suite's file is read; the longest of the core rule set's has 0.2 MiB.
const MAX_LENGTH: u64 = 16 << 20;

/// Reads the suite's files, for [`recording::Options::other`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Stages;

impl Reader for Stages {
    fn name(&self) -> &str {
        "ftw"
    }

    fn knows(&self, path: &Path, _head: &[u8]) -> bool {
        path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
    }

    fn read(&self, mut input: Input) -> Entries {
        let mut text = String::new();
        let bytes = std::mem::replace(&mut input.bytes, Box::new(std::io::empty()));
        let file = match bytes.take(MAX_LENGTH).read_to_string(&mut text) {
            Ok(_) => case::parse(&text),
            Err(error) => Err(error.to_string()),
        };
        let file = match file {
            Ok(file) => file,
            Err(why) => return Box::new(std::iter::once(Err(input.bad(0, format!("no file of tests: {why}"))))),
        };
        let stages = file.tests.into_iter().flat_map(|test| test.stages);
        Box::new(stages.zip(1..).map(move |(stage, number)| {
            let mut exchange = request::exchange(&stage.input).map_err(|why| input.bad(number, why))?;
            exchange.request.peer.clone_from(&input.peer);
            Ok(Entry { place: input.place(number), at_millis: None, status: None, notes: Vec::new(), exchange })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn every_stage_is_an_entry() {
        let text = "rule_id: 1\ntests:\n- test_id: 1\n  stages:\n  - input: {uri: /a, method: POST, data: x=1}\n  - input: \
                    {uri: /b}\n- test_id: 2\n  stages:\n  - input: {encoded_request: '!'}\n";
        let options = recording::Options { other: vec![Arc::new(Stages)], ..recording::Options::default() };
        let read = |text: &str| -> Vec<_> {
            recording::Recording::of("1.yaml", std::io::Cursor::new(text.to_owned()), &options).collect()
        };
        let entries = read(text);
        let path = |at: usize| entries[at].as_ref().unwrap().exchange.request.header(":path").unwrap().to_owned();
        assert_eq!((path(0), path(1), entries.len()), (b"/a".to_vec(), b"/b".to_vec(), 3));
        assert_eq!(entries[0].as_ref().unwrap().exchange.request.body, b"x=1");
        assert_eq!(entries[2].as_ref().unwrap_err().place.to_string(), "1.yaml#3");
        let bad = read("rule_id: [").remove(0).unwrap_err();
        assert!(bad.to_string().starts_with("1.yaml#0: no file of tests: "), "{bad}");
    }
}
