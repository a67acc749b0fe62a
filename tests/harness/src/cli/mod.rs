//! The commands.

mod benign;
mod default_route;
mod diff;
mod engines;
mod entities;
mod ftw;
mod gate;
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
