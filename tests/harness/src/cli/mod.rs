//! The commands.

mod benign;
mod diff;
mod engines;
mod entities;
mod ftw;
mod gateway;
mod output;
mod progress;
mod record;
mod run;
mod supervised;
mod traffic;

pub(crate) use benign::{Benign, benign};
pub(crate) use diff::{Compare, diff};
pub(crate) use ftw::{Ftw, ftw};
pub(crate) use record::{Record, record};
pub(crate) use run::{Run, run};
pub(crate) use supervised::Supervised;
