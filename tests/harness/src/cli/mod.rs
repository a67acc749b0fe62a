//! The commands.

mod benign;
mod engines;
mod entities;
mod ftw;
mod gateway;
mod progress;
mod record;
mod run;

pub(crate) use benign::{Benign, benign};
pub(crate) use ftw::{Ftw, ftw};
pub(crate) use record::{Record, record};
pub(crate) use run::{Run, run};
