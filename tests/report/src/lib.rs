//! What a replay found: a [`Row`] per request, [`Totals`], differences between two replays, and how they are shown.
//!
//! Rows come one by one and are not kept: what is here takes the same memory for a hundred requests and for millions.
//! A [`sink::Sink`] writes one of the outputs, [`diff`] compares two JSON documents that [`sink::Json`] wrote.

mod about;
pub mod diff;
mod row;
pub mod sink;
pub mod text;
mod totals;

pub use about::{About, BadEntryText, Fact};
pub use row::{Effect, Row, Rule, Signal};
pub use totals::{
    Change, Changed, Counted, Effects, Fault, Faults, Held, Latency, Notes, Scores, Summary, Timeline, Timing, Top,
    Totals, Unreadable,
};

#[cfg(test)]
mod fixture;
