//! Threat policies as filters run them, for the plugins that act by one.

use serde::Deserialize;
use serde_json::{Map, Value};
use snapshot::{Policy, Tier, TierAction};

use crate::{BanIdentity, PolicyGuard, ThreatPolicy, challenge};
use kit::{Acts, Context, FieldProblem, Item, View, typed};

/// The configuration of a plugin that acts by a threat policy and needs nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyConfig {
    /// A threat policy; null for the first enabled one.
    #[serde(default)]
    policy: Option<String>,
}

/// The policy of such a plugin, as filters run it. The chain gets a [`PolicyGuard`]; `acts_on_score` is that of the plugin.
///
/// # Errors
/// The configuration has another field, or names a policy that does not exist.
pub fn of_config(
    config: &Map<String, Value>,
    context: &mut Context<'_>,
    acts_on_score: bool,
) -> Result<Policy, Vec<FieldProblem>> {
    let config: PolicyConfig = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
    let named = config.policy.as_deref();
    let policy = policy(named, context.view).map_err(|problem| vec![problem])?;
    let challenge = challenge::of(&policy, context);
    let policy = Policy { challenge, ..lower(&policy) };
    context.guards.push(Box::new(PolicyGuard::new(named, &policy, acts_on_score)));
    Ok(policy)
}

/// The policy that a plugin's `policy` names. None named is the first enabled one; where there is none, or the named one
/// is disabled, the built-in one, which enforces nothing.
///
/// # Errors
/// There is no policy of that name.
pub fn policy(id: Option<&str>, view: &View<'_>) -> Result<Item<ThreatPolicy>, FieldProblem> {
    let named = match id {
        Some(id) => Some(view.get::<ThreatPolicy>(id).ok_or_else(|| {
            FieldProblem::new("/policy", format!("there is no threat policy `{id}`"))
                .expected("the id of a threat policy, or null")
        })?),
        None => view.all::<ThreatPolicy>().find(|policy| policy.enabled),
    };
    Ok(named.filter(|policy| policy.enabled).cloned().unwrap_or_else(ThreatPolicy::builtin))
}

/// A policy as filters run it, without what its tiers present to callers.
#[must_use]
pub fn lower(policy: &Item<ThreatPolicy>) -> Policy {
    let tiers = policy.tiers.iter().enumerate().map(|(index, tier)| Tier {
        index: saturate(index as u64),
        min_score: tier.min_score,
        action: action(tier.action.read_as).into(),
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

fn action(action: crate::TierAction) -> TierAction {
    match action {
        crate::TierAction::Log => TierAction::Log,
        crate::TierAction::Challenge => TierAction::Challenge,
        crate::TierAction::Throttle => TierAction::Throttle,
        crate::TierAction::Tarpit => TierAction::Tarpit,
        crate::TierAction::Deny => TierAction::Deny,
        crate::TierAction::Maze => TierAction::Maze,
        crate::TierAction::Ban => TierAction::Ban,
    }
}

/// What a block of the WAF weighs on a chain: what the policy of the plugin that acts on the score says, else the default.
#[must_use]
pub fn block_weight(context: &Context<'_>) -> f64 {
    response_policy(context).map_or(ThreatPolicy::default().waf_block_weight, |policy| policy.waf_block_weight)
}

/// Whether the policy of the plugin that acts on the score of a chain has a tier with the action `maze`.
#[must_use]
pub fn has_maze(context: &Context<'_>) -> bool {
    response_policy(context)
        .is_some_and(|policy| policy.tiers.iter().any(|tier| tier.action.read_as == crate::TierAction::Maze))
}

/// The policy of the plugin that acts on the score of a chain, or the one that such a plugin would have; `None` if what it names does not
/// exist.
fn response_policy(context: &Context<'_>) -> Option<Item<ThreatPolicy>> {
    let response = context.chain.iter().find(|chained| chained.plugin.acts == Acts::Score);
    let named = response.and_then(|chained| chained.config.get("policy")?.as_str());
    policy(named, context.view).ok()
}

fn saturate(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
