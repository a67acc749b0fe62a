//! The names of the language that are neither operators nor transformations.

mod nearest;
mod severity;
mod variable;

pub(crate) use nearest::nearest;
pub use severity::Severity;
pub(crate) use variable::IMPOSSIBLE;
pub use variable::{Shape, Variable};
