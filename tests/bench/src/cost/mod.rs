//! The search for the request that costs a worker most.
//!
//! What counts is the number of WebAssembly instructions that the shipped module runs for a request, and how far the
//! VM's memory grows: both are the same on every machine, whatever else it does. A [`Recipe`] describes a request that
//! scales to any size; [`search`] mutates recipes and keeps the dearest of each kind; [`Meter`] runs one.
//!
//! What a search finds can be kept in `tests/harness/costly`, where the next one begins.

mod meter;
mod mutate;
mod recipe;
pub mod search;
mod seeds;

pub use meter::{Cost, Meter};
pub use recipe::{Piece, Place, Recipe};
pub use seeds::seeds;
