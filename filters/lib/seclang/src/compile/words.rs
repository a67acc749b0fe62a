//! The words of the language, for documentation that must not fall behind.

use super::{actions, control, directives, rules};
use crate::operator::OperatorKind;
use crate::transform::Transform;
use crate::vocabulary::{IMPOSSIBLE, Variable};

/// Every word that the compiler knows, whether it takes it or refuses it with a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// Variables, in capitals.
    pub variables: Vec<&'static str>,
    /// Operators, without `@`.
    pub operators: Vec<&'static str>,
    /// Transformations.
    pub transformations: Vec<&'static str>,
    /// Actions.
    pub actions: Vec<&'static str>,
    /// What `ctl` changes.
    pub controls: Vec<&'static str>,
    /// Directives.
    pub directives: Vec<&'static str>,
}

/// All words.
pub fn words() -> Words {
    let named = |list: &'static [(&'static str, &'static str)]| list.iter().map(|(name, _)| *name);
    Words {
        variables: Variable::names().chain(named(IMPOSSIBLE)).collect(),
        operators: OperatorKind::names().chain(named(rules::FOREIGN_OPERATORS)).collect(),
        transformations: Transform::names().collect(),
        actions: actions::NAMES.iter().copied().chain(named(actions::REFUSED)).collect(),
        controls: control::NAMES.to_vec(),
        directives: (directives::KNOWN.iter().copied())
            .chain(named(directives::WITHOUT_MEANING))
            .chain(named(directives::REFUSED))
            .collect(),
    }
}
