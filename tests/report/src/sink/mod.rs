//! The outputs. Each takes rows as they come and writes itself to its end; none keeps more than its caps.

mod fail_on;
mod html;
mod json;
mod junit;
mod page;
mod table;

use std::io;

pub use fail_on::FailOn;
pub use html::Html;
pub(crate) use html::facts;
pub use json::Json;
pub(crate) use json::VERSION;
pub use junit::Junit;
pub(crate) use page::{FILTERED, grid, page};
pub(crate) use table::{Grid, Tone, figures_of, first_of, heading, paint, side};
pub use table::{Screen, Table};

use crate::about::{About, BadEntryText};
use crate::row::Row;
use crate::totals::Totals;

/// An output of a replay. What was written before an error stays as it is; after an error there is nothing to go on with.
pub trait Sink {
    /// Takes a request.
    ///
    /// # Errors
    /// The output cannot be written.
    fn row(&mut self, row: &Row) -> io::Result<()>;

    /// Takes an entry that could not be read.
    ///
    /// # Errors
    /// The output cannot be written.
    fn bad(&mut self, bad: &BadEntryText) -> io::Result<()>;

    /// Writes what comes last and flushes. `totals` have counted every row and bad entry that this sink was given.
    ///
    /// # Errors
    /// The output cannot be written.
    fn end(self: Box<Self>, totals: &Totals, about: &About) -> io::Result<()>;
}

#[cfg(test)]
mod tests;
