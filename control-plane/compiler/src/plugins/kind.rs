//! What a plugin's file says of it.

use serde_json::{Map, Value};

use super::super::guards::Guard;
use super::super::rules::RuleCompiler;
use super::super::settings::Settings;
use super::super::steps::Parts;
use super::super::view::View;
use entities::FieldProblem;

/// One plugin.
pub(in super::super) struct PluginKind {
    /// The name that filters know it by; its classes are those of [`entities::plugins`].
    pub(in super::super) name: &'static str,
    /// Compiles its configuration; `None` where it has nothing to do.
    pub(in super::super) compile: CompileConfig,
}

/// Compiles a plugin's configuration into the bytes of a step, or says what is wrong with it.
pub(in super::super) type CompileConfig =
    fn(&Map<String, Value>, &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>>;

/// What is at hand while a plugin's configuration is compiled.
pub(in super::super) struct Context<'a> {
    pub(in super::super) view: &'a View<'a>,
    pub(in super::super) rules: &'a RuleCompiler,
    pub(in super::super) settings: &'a Settings,
    /// What a WAF block weighs on this chain, by the policy of its threat response.
    pub(in super::super) waf_block_weight: f64,
    /// Parts that the steps so far refer to, by hash.
    pub(in super::super) parts: &'a mut Parts,
    /// The largest request or response body that any step holds, in bytes.
    pub(in super::super) largest_body: &'a mut u64,
    /// The largest request body that any step holds, files included, in bytes.
    pub(in super::super) largest_request: &'a mut u64,
    /// Things that are allowed and probably not meant.
    pub(in super::super) warnings: &'a mut Vec<String>,
    /// What each plugin will do.
    pub(in super::super) guards: &'a mut Vec<Guard>,
}
