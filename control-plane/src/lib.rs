//! The `palisade` program: it puts the crates of the control plane together ([`cli`]), reads how to ([`config`]), and watches
//! whether what it stands on works ([`health`]). [`stored`] is where its events are kept.

pub mod cli;
pub mod config;
mod gather;
pub mod health;
mod heap;
pub mod stored;
