//! The commands.

mod benign;
mod engines;
mod ftw;

pub(crate) use benign::{Benign, benign};
pub(crate) use ftw::{Ftw, ftw};
