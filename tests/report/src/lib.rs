//! What a replay found: a [`Row`] per request, totals, differences, and how they are shown.

mod row;

pub use row::{Effect, Row, Rule, Signal};
