//! What the gateway says about each request when it is over.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

/// One request, in Envoy's words: a record's begin, the fields, the filter's events, a record's end. Events are lines of
/// JSON, so the separators are control characters, which JSON escapes.
pub(super) const FORMAT: &str = "\u{1e}%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%\t%RESPONSE_CODE%\t%RESPONSE_FLAGS%\t\
    %UPSTREAM_HOST%\t%RESPONSE_CODE_DETAILS%\u{1f}%FILTER_STATE(wasm.svc.event:PLAIN)%\u{1d}\n";

/// A request in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The status of the answer; 0 where there was none.
    pub(super) status: u16,
    /// It went on to the backend.
    pub(super) reached_backend: bool,
    /// Who answered and why.
    pub(super) details: String,
    /// The filter's events, a line each.
    pub(super) events: Vec<u8>,
}

/// The log, read as it grows.
#[derive(Debug)]
pub(super) struct AccessLog {
    path: PathBuf,
    file: Option<File>,
    rest: Vec<u8>,
    /// The first request of each connection, by the client's port.
    entries: HashMap<u16, Entry>,
}

impl AccessLog {
    /// A log that may not be there yet.
    pub(super) fn open(path: PathBuf) -> Self {
        Self { path, file: None, rest: Vec::new(), entries: HashMap::new() }
    }

    /// Takes out the entry of the connection from a port. What follows on the same connection is not the test's request
    /// but the rest of one that the gateway read differently.
    pub(super) fn take(&mut self, port: u16) -> Option<Entry> {
        self.read();
        let entry = self.entries.remove(&port)?;
        self.entries.clear();
        Some(entry)
    }

    fn read(&mut self) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        if let Some(file) = &mut self.file {
            // What cannot be read now can be later.
            let _ = file.read_to_end(&mut self.rest);
        }
        while let Some(end) = self.rest.iter().position(|&byte| byte == b'\x1d') {
            let record: Vec<u8> = self.rest.drain(..=end).collect();
            if let Some((port, entry)) = parse(&record[..end]) {
                self.entries.entry(port).or_insert(entry);
            }
        }
    }
}

fn parse(record: &[u8]) -> Option<(u16, Entry)> {
    let begin = record.iter().position(|&byte| byte == b'\x1e')? + 1;
    let middle = record.iter().position(|&byte| byte == b'\x1f')?;
    let fields = std::str::from_utf8(record.get(begin..middle)?).ok()?;
    let mut fields = fields.split('\t');
    let mut field = || fields.next();
    let port = field()?.rsplit_once(':')?.1.parse().ok()?;
    let status = field()?.parse().ok()?;
    let flags = field()?;
    let reached_backend = field()? != "-";
    let details = match (field()?, flags) {
        (details, "-") => details.to_owned(),
        (details, flags) => format!("{details} {flags}"),
    };
    let events = record.get(middle + 1..).filter(|events| *events != b"-").unwrap_or_default().to_vec();
    Some((port, Entry { status, reached_backend, details, events }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_known_by_their_port() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut access_log = AccessLog::open(log.path().to_owned());
        assert_eq!(access_log.take(7), None);
        let first = "\x1e127.0.0.1:7\t200\t-\t127.0.0.1:9\tvia_upstream\x1f{\"a\":1}\n{\"b\":2}\x1d\n";
        let second = "\x1e127.0.0.1:7\t400\tDPE\t-\thttp1.codec_error\x1f-\x1d\n";
        std::fs::write(log.path(), format!("{first}{second}\x1e127.0.0.1:8")).unwrap();
        let events = b"{\"a\":1}\n{\"b\":2}".to_vec();
        let entry = Entry { status: 200, reached_backend: true, details: "via_upstream".into(), events };
        assert_eq!(access_log.take(7), Some(entry));
        assert_eq!(access_log.take(8), None);
        std::fs::write(log.path(), format!("{first}{second}\x1e127.0.0.1:8{}", &second[12..])).unwrap();
        let refused = access_log.take(8).unwrap();
        assert_eq!((refused.status, refused.reached_backend, refused.events.len()), (400, false, 0));
        assert_eq!(refused.details, "http1.codec_error DPE");
    }
}
