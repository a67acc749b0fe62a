//! Threat policies, for the plugins that act by one.

use serde::Deserialize;
use serde_json::{Map, Value};
use snapshot::{Policy, Tier, TierAction};

use super::super::guards::{Guard, PolicyGuard};
use super::super::view::View;
use super::challenge;
use super::kind::Context;
use entities::{self, BanIdentity, FieldProblem, Item, ThreatPolicy, typed};

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
pub(in super::super) fn policy(id: Option<&str>, view: &View<'_>) -> Result<Item<ThreatPolicy>, FieldProblem> {
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

pub(super) fn saturate(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
