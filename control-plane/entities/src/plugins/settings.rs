//! Settings that a plugin has for all gateways, in `security` of `global-config`.

use super::plugin::Plugin;
use crate::FieldProblem;

/// The settings of one plugin. Their file is the plugin's.
pub(crate) trait Settings {
    /// The plugin that reads them.
    fn plugin(&self) -> &'static Plugin;
    /// The field of `security`.
    fn field(&self) -> &'static str;
    /// What is wrong with them; pointers are relative to them.
    fn check(&self) -> Vec<FieldProblem>;
    /// Nothing of them was changed.
    fn is_default(&self) -> bool;
}
