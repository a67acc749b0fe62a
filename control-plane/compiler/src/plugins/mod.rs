//! What the control plane knows of each plugin: its names, its configuration, and how that is compiled.
//!
//! A plugin is a file here and a line in [`PLUGINS`]; its other half is a folder under `filters/` and a line in the
//! registry of `filters/preset`.

mod challenge;
mod threat_gate;
mod threat_response;
mod waf;
mod widget;

pub use challenge::ChallengeRoot;
use serde::Deserialize;
use serde_json::{Map, Value};
use snapshot::{Policy, Tier, TierAction};
pub use waf::step as waf_step;

use super::Settings;
use super::guards::{Guard, PolicyGuard};
use super::rules::RuleCompiler;
use super::view::View;
use entities::plugins::PRESET_CLASSES;
use entities::{self, BanIdentity, FieldProblem, Item, ThreatPolicy, typed};

/// Every plugin of this release.
pub(super) const PLUGINS: &[PluginKind] = &[threat_gate::KIND, threat_response::KIND, waf::KIND];

/// One plugin.
pub(super) struct PluginKind {
    /// The name that filters know it by; its classes are those of [`entities::plugins`].
    pub(super) name: &'static str,
    /// Compiles its configuration; `None` where it has nothing to do.
    pub(super) compile: CompileConfig,
}

/// Compiles a plugin's configuration into the bytes of a step, or says what is wrong with it.
type CompileConfig = fn(&Map<String, Value>, &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>>;

/// What is at hand while a plugin's configuration is compiled.
pub(super) struct Context<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) rules: &'a RuleCompiler,
    pub(super) settings: &'a Settings,
    /// What a WAF block weighs on this chain, by the policy of its threat response.
    pub(super) waf_block_weight: f64,
    /// Parts that the steps so far refer to, by hash.
    pub(super) parts: &'a mut super::steps::Parts,
    /// The largest request or response body that any step holds, in bytes.
    pub(super) largest_body: &'a mut u64,
    /// The largest request body that any step holds, files included, in bytes.
    pub(super) largest_request: &'a mut u64,
    /// Things that are allowed and probably not meant.
    pub(super) warnings: &'a mut Vec<String>,
    /// What each plugin will do.
    pub(super) guards: &'a mut Vec<Guard>,
}

/// The plugin of that name or class.
pub(super) fn by_name(name: &str) -> Option<&'static PluginKind> {
    let plugin = entities::plugins::by_name(name)?;
    PLUGINS.iter().find(|kind| kind.name == plugin.name)
}

/// The names to show in the error on an unknown one.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let known = PLUGINS.iter().filter_map(|kind| Some(entities::plugins::by_name(kind.name)?.class()));
    known.chain(PRESET_CLASSES.into_iter().take(1))
}

/// The configuration of a plugin that acts by a threat policy and needs nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyConfig {
    /// A threat policy; null for the first enabled one.
    #[serde(default)]
    policy: Option<String>,
}

/// The policy of such a plugin, as filters run it; `guard` makes a note of the plugin.
pub(super) fn policy_of(
    config: &Map<String, Value>,
    context: &mut Context<'_>,
    guard: fn(PolicyGuard) -> Guard,
) -> Result<Policy, Vec<FieldProblem>> {
    let config: PolicyConfig = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
    let named = config.policy.as_deref();
    let policy = policy(named, context.view).map_err(|problem| vec![problem])?;
    let challenge = challenge::of(&policy, context);
    let policy = Policy { challenge, ..lower(&policy) };
    context.guards.push(guard(PolicyGuard::new(named, &policy)));
    Ok(policy)
}

/// The policy that a plugin's `policy` names. None named is the first enabled one; where there is none, or the named one
/// is disabled, the built-in one, which enforces nothing.
pub(super) fn policy(id: Option<&str>, view: &View<'_>) -> Result<Item<ThreatPolicy>, FieldProblem> {
    let named = match id {
        Some(id) => Some(view.get::<ThreatPolicy>(id).ok_or_else(|| {
            FieldProblem::new("/policy", format!("there is no threat policy `{id}`"))
                .expected("the id of a threat policy, or null")
        })?),
        None => view.all::<ThreatPolicy>().find(|policy| policy.enabled),
    };
    Ok(named.filter(|policy| policy.enabled).cloned().unwrap_or_else(ThreatPolicy::builtin))
}

/// A policy as filters run it.
pub fn lower(policy: &Item<ThreatPolicy>) -> Policy {
    let tiers = policy.tiers.iter().enumerate().map(|(index, tier)| Tier {
        index: saturate(index as u64),
        min_score: tier.min_score,
        action: action(tier.action).into(),
        status: u32::from(tier.status),
        tarpit_millis: saturate(tier.tarpit_millis),
        ban_for_seconds: tier.ban_for_seconds,
        throttle_quota: saturate(tier.throttle_quota),
        throttle_window_seconds: saturate(tier.throttle_window_seconds),
    });
    let mut tiers: Vec<Tier> = tiers.collect();
    tiers.sort_by(|a, b| b.min_score.total_cmp(&a.min_score));
    Policy {
        id: policy.head.id.clone(),
        name: if policy.head.name.is_empty() { policy.head.id.clone() } else { policy.head.name.clone() },
        dry_run: policy.dry_run,
        tiers,
        exemptions: policy.exemptions.clone(),
        ban_address: policy.ban_identity == BanIdentity::Ip,
        ban_api_key_only: policy.ban_identity == BanIdentity::Apikey,
        challenge: None,
    }
}

fn action(action: entities::TierAction) -> TierAction {
    match action {
        entities::TierAction::Log => TierAction::Log,
        entities::TierAction::Challenge => TierAction::Challenge,
        entities::TierAction::Throttle => TierAction::Throttle,
        entities::TierAction::Tarpit => TierAction::Tarpit,
        entities::TierAction::Deny => TierAction::Deny,
        entities::TierAction::Ban => TierAction::Ban,
    }
}

fn saturate(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::expand::expand;

    /// How often a preset with these fields lays a plugin down.
    fn laid_down(plugin: &str, fields: Value) -> usize {
        let Value::Object(fields) = fields else { panic!("no object") };
        let uses = expand(&fields).unwrap_or_else(|problem| panic!("{plugin}: {problem}"));
        uses.iter().filter(|used| used.plugin == plugin).count()
    }

    #[test]
    fn a_plugin_of_this_release_is_compiled_and_laid_down_and_no_other_is() {
        let compiled: Vec<&str> = PLUGINS.iter().map(|kind| kind.name).collect();
        let registered: Vec<&str> = preset::REGISTRY.iter().map(|definition| definition.name).collect();
        assert!(registered.iter().all(|name| compiled.contains(name)), "{registered:?} {compiled:?}");
        assert!(compiled.iter().all(|name| registered.contains(name)), "{registered:?} {compiled:?}");
        for plugin in entities::plugins::ALL {
            assert_eq!(plugin.is_active(), by_name(plugin.class()).is_some(), "{}", plugin.name);
            let Some(switch) = plugin.preset.switch else { continue };
            let mut on = json!({ switch: true });
            for (field, _) in plugin.preset.references {
                on[field] = json!("x");
            }
            assert_eq!(laid_down(plugin.name, on.clone()), usize::from(plugin.is_active()), "{}", plugin.name);
            on[switch] = json!(false);
            assert_eq!(laid_down(plugin.name, on), 0, "{}", plugin.name);
        }
    }
}
