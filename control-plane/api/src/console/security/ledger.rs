//! The ledger, and what a policy would do.

use axum::Extension;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::call::{Answer, Body, Caller, charged, done, not_done, read};
use super::{describe, shapes};
use crate::console::roles;
use crate::openapi::Routes;
use accounts::{Operator, Role};
use base::identity::Identity;
use entities::Item;
use fabric::{Fabric, Ledger};
use policies::ThreatPolicy;
use policies::lower;

/// How many identities the ledger shows.
const TOP: u32 = 50;

/// A query or change of the ledger.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct LedgerBody {
    /// The identity; without it the answer has the highest totals.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// Whether its entry is removed.
    forget: bool,
}

/// A score and a policy.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SimulateBody {
    /// The score, 0 to 100.
    score: Option<f64>,
    /// The id of a threat policy; null for the first enabled one, or the built-in one if there is none.
    policy: Option<String>,
}

pub(super) fn routes() -> Routes<Fabric> {
    Routes::new()
        .on(describe::ledger(), ledger)
        .on(describe::simulate(), simulate)
        .schema::<LedgerBody>()
        .schema::<SimulateBody>()
}

async fn ledger(
    State(fabric): State<Fabric>,
    Caller(actor): Caller,
    Extension(operator): Extension<Operator>,
    body: Body,
) -> Answer {
    let parse = |body: LedgerBody| match &body.reference {
        None if body.forget => Err("no identity provided".to_owned()),
        None => Ok((None, false)),
        reference => Ok((Some(charged(&fabric, reference.as_deref())?), body.forget)),
    };
    let asked: (Option<Identity>, bool) = match read(body).and_then(parse) {
        Ok(asked) => asked,
        Err(error) => return not_done(&error),
    };
    let since = fabric.now().saturating_sub(Ledger::of(fabric.entities()).window_millis());
    match asked {
        (None, _) => {
            let top = fabric.store().ledger_top(since, TOP).await?;
            let top = top.iter().map(|(key, score)| json!({ "key": key, "score": shapes::number(*score) }));
            done(json!({ "top": top.collect::<Vec<_>>() }))
        }
        (Some(identity), false) => {
            let score = fabric.store().ledger_score(&identity.key(), since).await?;
            done(json!({ "ref": shapes::reference(&identity.key()), "score": shapes::number(score) }))
        }
        (Some(identity), true) => {
            roles::demand(&operator, Role::Analyst)?;
            fabric.forget(&actor, &identity).await?;
            done(json!({}))
        }
    }
}

async fn simulate(State(fabric): State<Fabric>, body: Body) -> Answer {
    let parse = |body: SimulateBody| {
        let score = body.score.filter(|score| (0.0..=100.0).contains(score));
        Ok((score.ok_or_else(|| "`score` is a number from 0 to 100".to_owned())?, body.policy))
    };
    let (score, id): (f64, Option<String>) = match read(body).and_then(parse) {
        Ok(asked) => asked,
        Err(error) => return not_done(&error),
    };
    let entities = fabric.entities().current();
    let builtin = ThreatPolicy::builtin();
    let policy: Item<ThreatPolicy> = match id {
        Some(id) if id == builtin.head.id => builtin,
        Some(id) => match entities.get::<ThreatPolicy>(&id) {
            Some(policy) => policy.clone(),
            None => {
                let shown: String = id.chars().take(128).collect();
                return not_done(&format!("there is no threat policy `{}`", shown.escape_debug()));
            }
        },
        None => entities.all::<ThreatPolicy>().find(|policy| policy.enabled).cloned().unwrap_or(builtin),
    };
    // What gateways run: the tier is chosen by the same function.
    let policy = lower(&policy);
    let tier = policy.tier_at(score);
    done(json!({
        "policy": { "id": policy.id, "name": policy.name, "dry_run": policy.dry_run },
        "score": shapes::number(score),
        "tier": tier.map(|tier| tier.index),
        "action": tier.map_or("allow", |tier| tier.action().word()),
        "enforced": !policy.dry_run && tier.is_some_and(|tier| tier.action().denies()),
    }))
}
