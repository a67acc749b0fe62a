//! From a policy to a step.

use std::collections::BTreeMap;

use kit::{CompiledParts, Context, FieldProblem, Item, typed};
use prost::Message as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::guard::HoneypotGuard;
use super::{Canary, CanaryPlace, HoneypotAction, HoneypotPolicy};
use crate::traps::{Place, Traps};
use crate::{CanaryHead, CanaryTail, DecoyPath, HEAD_BYTES, HoneypotReaction, HoneypotStep, HoneypotTraps};

/// The bytes of a description that events repeat, at most: nodes keep 256 bytes of the reason of a ban.
const LABEL_BYTES: usize = 128;

/// The plugin's configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// The id of a honeypot policy.
    policy: String,
}

pub(super) fn compile(
    config: &Map<String, Value>,
    context: &mut Context<'_>,
) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config: Config = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
    let Some(policy) = context.view.get::<HoneypotPolicy>(&config.policy) else {
        let problem = FieldProblem::new("/policy", format!("there is no honeypot policy `{}`", config.policy));
        return Err(vec![problem.expected("the id of a honeypot policy")]);
    };
    let guard = HoneypotGuard {
        policy: policy.head.id.clone(),
        disabled: !policy.enabled,
        empty: policy.paths.is_empty() && policy.canaries.is_empty(),
        bans: policy.action == HoneypotAction::Ban,
    };
    let idle = guard.disabled || guard.empty;
    context.guards.push(Box::new(guard));
    if idle {
        return Ok(None);
    }
    let (hash, part) =
        context.tools.get::<CompiledParts<HoneypotPolicy>>().part(policy, |policy| traps(policy).encode_to_vec());
    context.parts.insert(hash.to_vec(), part);
    Ok(Some(step(policy, hash.to_vec()).encode_to_vec()))
}

/// The step of a policy; `traps` is the hash of its part.
pub(crate) fn step(policy: &Item<HoneypotPolicy>, traps: Vec<u8>) -> HoneypotStep {
    let reaction = match policy.action {
        HoneypotAction::Monitor => HoneypotReaction::Monitor,
        HoneypotAction::Deny => HoneypotReaction::Deny,
        HoneypotAction::Ban => HoneypotReaction::Ban,
    };
    HoneypotStep {
        traps,
        name: if policy.head.name.is_empty() { policy.head.id.clone() } else { policy.head.name.clone() },
        weight: policy.weight,
        reaction: reaction.into(),
        status: policy.status.into(),
        ban_for_seconds: policy.ban_for_seconds,
        id: policy.head.id.clone(),
    }
}

/// The decoys of a policy as they are looked up.
pub(crate) fn traps(policy: &HoneypotPolicy) -> HoneypotTraps {
    let mut exact = BTreeMap::new();
    let mut beginnings = BTreeMap::new();
    for path in &policy.paths {
        match path.strip_suffix('*') {
            Some(beginning) => beginnings.entry(lower(beginning)).or_insert(path),
            None => exact.entry(lower(path)).or_insert(path),
        };
    }
    // A slash at the end makes no other path, be it the policy that has it: `/backup/x/..` is `/backup`. What is odd about a decoy is
    // compared as it is, so that both are there.
    for path in policy.paths.iter().filter(|path| path.ends_with('/')) {
        let page = path.trim_end_matches('/');
        if !page.is_empty() {
            exact.entry(lower(page)).or_insert(path);
        }
    }
    let decoys = |paths: BTreeMap<Vec<u8>, &String>| {
        paths.into_iter().map(|(path, shown)| DecoyPath { path, shown: shown.clone() }).collect::<Vec<_>>()
    };
    let mut prefixes = decoys(beginnings);
    // Behind a prefix come those that begin with it.
    prefixes.dedup_by(|later, kept| later.path.starts_with(&kept.path));
    let mut traps = HoneypotTraps { exact: decoys(exact), prefixes, ..canaries(&policy.canaries) };
    label(&mut traps, &policy.canaries);
    traps
}

fn lower(path: &str) -> Vec<u8> {
    path.to_ascii_lowercase().into_bytes()
}

/// The canaries, without their labels.
fn canaries(canaries: &[Canary]) -> HoneypotTraps {
    let mut heads: BTreeMap<Vec<u8>, CanaryHead> = BTreeMap::new();
    let mut tails = Vec::with_capacity(canaries.len());
    for (index, canary) in (0_u32..).zip(canaries) {
        let value = canary.value.as_bytes();
        let (head, tail) = value.split_at_checked(HEAD_BYTES).unwrap_or((value, &[]));
        tails.push(CanaryTail { tail: tail.to_vec(), label: String::new() });
        let lists =
            heads.entry(head.to_vec()).or_insert_with(|| CanaryHead { head: head.to_vec(), ..CanaryHead::default() });
        let is_at = |place| canary.place == CanaryPlace::Any || canary.place == place;
        for (place, list) in [
            (CanaryPlace::Header, &mut lists.header),
            (CanaryPlace::Path, &mut lists.path),
            (CanaryPlace::Query, &mut lists.query),
        ] {
            if is_at(place) {
                list.push(index);
            }
        }
    }
    let tail = |at: &u32| usize::try_from(*at).ok().and_then(|at| tails.get(at)).map_or(&[][..], |canary| &canary.tail);
    let mut heads: Vec<CanaryHead> = heads.into_values().collect();
    for list in heads.iter_mut().flat_map(|head| [&mut head.header, &mut head.path, &mut head.query]) {
        list.sort_by(|one, other| tail(one).cmp(tail(other)));
        // What begins with another canary of the place is found as that one.
        list.dedup_by(|later, kept| tail(later).starts_with(tail(kept)));
    }
    HoneypotTraps { heads, canaries: tails, ..HoneypotTraps::default() }
}

/// Gives each canary what operators know it by: its description, unless that has a value, or its place in the policy.
fn label(traps: &mut HoneypotTraps, canaries: &[Canary]) {
    let values = Traps::new(traps.clone()).ok();
    let is_secret = |text: &str| {
        let has = |place| values.as_ref().is_none_or(|values| values.canary(place, text.as_bytes()).is_some());
        [Place::Header, Place::Path, Place::Query].into_iter().any(has)
    };
    for (index, (tail, canary)) in traps.canaries.iter_mut().zip(canaries).enumerate() {
        let description = canary.description.trim();
        tail.label = match description.is_empty() || is_secret(description) {
            true => format!("/canaries/{index}"),
            false => format!("`{}`", shortened(description)),
        };
    }
}

fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LABEL_BYTES)).unwrap_or_default()
}
