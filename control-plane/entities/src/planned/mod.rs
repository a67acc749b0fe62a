//! Plugins of later releases: their names, their collections and their fields in a preset.
//!
//! What only they would use is stored and checked, and answered with a warning ([`super::unused`]), so that no operator relies on
//! it. A plugin that comes takes its file from here into its own folder, and its entities with it.

mod api_report;
mod object_guard;

use kit::Plugin;

#[cfg(test)]
pub(super) use {api_report::ApiSettings, object_guard::ObjectSettings};

/// Every plugin that is still to come.
pub(super) const PLANNED: &[&Plugin] = &[&api_report::PLUGIN, &object_guard::PLUGIN];
