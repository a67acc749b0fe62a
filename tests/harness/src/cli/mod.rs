//! The commands.

mod benign;
mod engines;
mod ftw;
mod record;

pub(crate) use benign::{Benign, benign};
pub(crate) use ftw::{Ftw, ftw};
pub(crate) use record::{Record, record};
