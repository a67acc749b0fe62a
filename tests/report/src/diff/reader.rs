//! The JSON document of a replay, read as a stream.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::de::IgnoredAny;

use super::source::{Error, Source};
use crate::about::{About, BadEntryText};
use crate::row::Row;
use crate::sink::VERSION;
use crate::totals::Summary;

/// Reads a document that [`Json`](crate::sink::Json) wrote, a request at a time. White space may be anywhere, fields that
/// are not known are passed over, and they may stand in any order as long as the version comes before the requests.
#[derive(Debug)]
pub struct Reader<R> {
    source: Source<R>,
    about: Option<About>,
    version: bool,
    totals: Option<Summary>,
    rows: u64,
    state: State,
}

/// What a document says beside its requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rest {
    /// What was replayed.
    pub about: About,
    /// Its totals.
    pub totals: Summary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Among the fields of the document; whether one came already.
    Fields {
        first: bool,
        requests: bool,
    },
    /// Among the requests; whether one came already.
    Requests {
        first: bool,
    },
    Ended,
}

impl Reader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read, or what comes before its requests is no document of a replay.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::new(name, BufReader::with_capacity(1 << 17, file)),
            Err(why) => Err(Error { file: name, line: 1, what: format!("cannot be opened: {why}") }),
        }
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads up to the first request. `name` is what errors call the document.
    ///
    /// # Errors
    /// It is no document of a replay.
    pub fn new(name: impl Into<String>, input: R) -> Result<Self, Error> {
        let source = Source::new(name.into(), input);
        let state = State::Fields { first: true, requests: false };
        let mut reader = Self { source, about: None, version: false, totals: None, rows: 0, state };
        if reader.source.peek()? != Some(b'{') {
            return Err(reader.source.wrong("this is no document of palisade-replay: it does not begin with {"));
        }
        reader.source.take();
        reader.fields()?;
        Ok(reader)
    }

    /// What errors call the document.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// An error at the place that was read last.
    pub(super) fn error(&self, what: impl Into<String>) -> Error {
        self.source.wrong(what)
    }

    /// The next request; `None` after the last, when the rest of the document was read as well.
    ///
    /// # Errors
    /// The document is cut off, or is not as a replay writes it. There is nothing to go on with then.
    pub fn next_row(&mut self) -> Result<Option<Row>, Error> {
        let State::Requests { first } = self.state else { return Ok(None) };
        let what = format!("request {}", self.rows + 1);
        if !self.source.more(first, b']', "requests", &what)? {
            self.state = State::Fields { first: false, requests: true };
            self.fields()?;
            return Ok(None);
        }
        self.state = State::Requests { first: false };
        self.rows += 1;
        self.source.value(&what).map(Some)
    }

    /// What the document says beside its requests. Those that were not read are passed over.
    ///
    /// # Errors
    /// The document is cut off, or is not as a replay writes it.
    pub fn rest(mut self) -> Result<Rest, Error> {
        while self.next_row()?.is_some() {}
        let missing =
            |what: &str| format!("the document ends without `{what}`: it is not as palisade-replay writes it");
        let Some(about) = self.about else { return Err(self.source.wrong(missing("about"))) };
        let Some(totals) = self.totals else { return Err(self.source.wrong(missing("totals"))) };
        if totals.requests != self.rows {
            let what = format!(
                "it has {} requests, but its totals are those of {}: something was taken out or put in",
                self.rows, totals.requests
            );
            return Err(self.source.wrong(what));
        }
        Ok(Rest { about, totals })
    }

    /// Reads fields up to the first request or to the end.
    fn fields(&mut self) -> Result<(), Error> {
        while let State::Fields { first, requests } = self.state {
            if !self.source.more(first, b'}', "document", "field")? {
                self.state = State::Ended;
                return self.ended(requests);
            }
            self.state = State::Fields { first: false, requests };
            let key = self.source.key()?;
            match key.as_str() {
                "palisade_replay" => self.version()?,
                "about" => self.about = Some(self.source.value("`about`")?),
                "totals" => self.totals = Some(self.source.value("`totals`")?),
                "bad_entries" => self.bad_entries()?,
                "requests" => {
                    if !self.version {
                        let what =
                            "this is no document of palisade-replay: `palisade_replay` does not come before `requests`";
                        return Err(self.source.wrong(what));
                    }
                    if requests {
                        return Err(self.source.wrong("`requests` is there twice"));
                    }
                    self.source.open(b'[', "`requests`")?;
                    self.state = State::Requests { first: true };
                }
                _ => drop(self.source.value::<IgnoredAny>(&format!("`{key}`"))?),
            }
        }
        Ok(())
    }

    fn version(&mut self) -> Result<(), Error> {
        let version: u64 = self.source.value("`palisade_replay`")?;
        if version != VERSION {
            let what = format!("the document has version {version}, and only {VERSION} is known: use a newer tool");
            return Err(self.source.wrong(what));
        }
        self.version = true;
        Ok(())
    }

    /// Entry by entry: nobody knows how many there are.
    fn bad_entries(&mut self) -> Result<(), Error> {
        self.source.open(b'[', "`bad_entries`")?;
        let mut number = 1_u64;
        loop {
            let what = format!("bad entry {number}");
            if !self.source.more(number == 1, b']', "bad_entries", &what)? {
                return Ok(());
            }
            self.source.value::<BadEntryText>(&what)?;
            number += 1;
        }
    }

    fn ended(&mut self, requests: bool) -> Result<(), Error> {
        if !requests {
            return Err(self.source.wrong("this is no document of palisade-replay: it has no `requests`"));
        }
        match self.source.peek()? {
            None => Ok(()),
            Some(_) => Err(self.source.wrong("something comes after the document's end")),
        }
    }
}
