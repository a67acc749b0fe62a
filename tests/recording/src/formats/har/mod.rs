//! HTTP archives: `log.entries`, element by element.

mod entry;
mod message;

use std::io::BufRead;

use crate::json::{Cut, Scanner, Stop};
use crate::{BadEntry, Entry, Input};

use super::too_long;

/// The entries of an archive.
pub(crate) struct Har {
    scanner: Scanner<Box<dyn BufRead + Send>>,
    /// Its bytes are in the scanner.
    input: Input,
    text: Vec<u8>,
    number: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    Done,
}

impl Har {
    pub(crate) fn new(mut input: Input) -> Self {
        let bytes = std::mem::replace(&mut input.bytes, Box::new(std::io::empty()));
        Self { scanner: Scanner::new(bytes), input, text: Vec::new(), number: 0, state: State::Before }
    }

    /// Goes to the array's first element.
    fn begin(&mut self) -> Result<(), String> {
        let mut found = self.scanner.enter("log").map_err(|stop| stop.to_string())?;
        found = found && self.scanner.enter("entries").map_err(|stop| stop.to_string())?;
        if !found {
            return Err("there is no `log.entries` in the archive".to_owned());
        }
        self.scanner.expect(b'[', "the array `log.entries`").map_err(|stop| stop.to_string())
    }

    /// Cuts out the next element; `None` at the array's end.
    fn cut(&mut self) -> Result<Option<Cut>, Stop> {
        if self.number > 0 && !self.scanner.accept(b',')? {
            self.scanner.expect(b']', "a comma or the end of `log.entries`")?;
            return Ok(None);
        }
        if self.scanner.accept(b']')? {
            return Ok(None);
        }
        self.scanner.value(&mut self.text, self.input.limit).map(Some)
    }
}

impl Iterator for Har {
    type Item = Result<Entry, BadEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Before {
            self.state = State::Inside;
            if let Err(why) = self.begin() {
                self.state = State::Done;
                return Some(Err(self.input.bad(0, why)));
            }
        }
        while self.state == State::Inside {
            match self.cut() {
                Ok(None) => self.state = State::Done,
                Ok(Some(Cut::TooLong(length))) => {
                    self.number += 1;
                    return Some(Err(self.input.bad(self.number, too_long(length, self.input.limit))));
                }
                Ok(Some(Cut::Whole)) => {
                    self.number += 1;
                    match entry::read(&self.text, &self.input, self.number) {
                        Ok(Some(entry)) => return Some(Ok(entry)),
                        Ok(None) => self.input.meter.skip(),
                        Err(why) => return Some(Err(self.input.bad(self.number, why))),
                    }
                }
                Err(stop) => {
                    self.state = State::Done;
                    return Some(Err(self.input.bad(self.number + 1, stop.to_string())));
                }
            }
        }
        None
    }
}
