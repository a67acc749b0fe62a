//! A filter of small plugins, each of which shows one capability of the plugin frame to tests.
//!
//! `cases/` has the cases: steps with their configuration, an exchange, and its outcome. Tests run each natively, in the harness
//! and in a real gateway, with all plugins in one filter and with a filter for each.
// The SDK's entry macro exports unmangled functions, which the gateway calls.
#![allow(unsafe_code, missing_docs)]

mod plugins;

host::filter!("probe", plugins::PLUGINS);
