//! The names of the language that are neither operators nor transformations.

mod country;
mod nearest;
mod severity;
mod variable;

pub use country::Country;
pub(crate) use nearest::nearest;
pub use severity::Severity;
pub(crate) use variable::IMPOSSIBLE;
pub use variable::{Shape, Variable};
