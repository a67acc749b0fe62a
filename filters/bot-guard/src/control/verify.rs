//! The verification of crawlers that gateways met: which of them are looked up, and the table of verdicts that gateways read.

mod confirm;
mod gather;
mod health;
mod keep;
mod runtime;
mod verdicts;
mod waiting;
mod wanted;

pub(super) use gather::gather;
pub(super) use runtime::Verification;

#[cfg(test)]
mod tests;
