//! The rule engine beside libmodsecurity 3: the same generated exchanges through both, and what they do not agree on.
//!
//! [`generate`] makes exchanges from a seed, always the same ones. [`ours`] and [`peer`] answer each with the ids of the
//! rules that matched; [`compare`] lists where the answers differ and asks [`explained`], a list that people keep, why.
//! Where it can be tested whether a reason is the right one, [`reading`] does. [`golden`] keeps the peer's answers, so that a
//! test can compare without having libmodsecurity at hand.

pub mod case;
pub mod command;
pub mod compare;
pub mod explained;
pub mod generate;
pub mod golden;
mod mutate;
pub mod ours;
mod payloads;
pub mod peer;
pub mod reading;
pub mod rules;
mod templates;
#[cfg(test)]
mod tests;

/// The seed whose answers are kept.
pub const STANDARD_SEED: u64 = 1;
/// How many of its cases.
pub const STANDARD_COUNT: usize = 2000;
