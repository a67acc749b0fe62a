//! From a policy to a step.

use kit::{CompiledParts, Context, FieldProblem, Item, typed};
use maze::MazeSettings;
use prost::Message as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::guard::BotGuardOf;
use super::robots::robots_txt;
use super::signature::method;
use super::{BotAction, BotPolicy, BotSignature};
use super::{fingerprints, ranges};
use crate::{BotGuardStep, BotList, BotReaction, KnownBot};

/// The plugin's configuration.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// The id of a bot policy; without one the first that is enabled counts.
    policy: Option<String>,
}

pub(super) fn compile(
    config: &Map<String, Value>,
    context: &mut Context<'_>,
) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    // Presets name none by `null`: they lay the plugin down by default.
    let laid_down = config.get("policy").is_some_and(Value::is_null);
    let Config { policy } = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
    let policy = match policy {
        Some(id) => Some(context.view.get::<BotPolicy>(&id).ok_or_else(|| {
            let problem = FieldProblem::new("/policy", format!("there is no bot policy `{}`", id.escape_debug()));
            vec![problem.expected("the id of a bot policy")]
        })?),
        None => context.view.all::<BotPolicy>().find(|policy| policy.enabled),
    };
    let Some(policy) = policy else {
        context.guards.push(Box::new(BotGuardOf::None { laid_down }));
        return Ok(None);
    };
    let id = policy.head.id.clone();
    let guard = match () {
        () if !policy.enabled => BotGuardOf::Disabled(id),
        () if !policy.acts() => BotGuardOf::Empty(id),
        () => BotGuardOf::Policy { id, fingerprints: policy.fingerprints.enabled },
    };
    let acts = matches!(guard, BotGuardOf::Policy { .. });
    context.guards.push(Box::new(guard));
    if !acts {
        return Ok(None);
    }
    let (hash, part) =
        context.tools.get::<CompiledParts<BotPolicy>>().part(policy, |policy| list(policy).encode_to_vec());
    context.parts.insert(hash.to_vec(), part);
    let shows = policy.rules.iter().any(|rule| rule.action == BotAction::Maze);
    let step = BotGuardStep {
        maze: shows.then(|| context.settings::<MazeSettings>().limits()),
        marks_spared: policies::has_maze(context),
        ..step(policy, hash.to_vec())
    };
    Ok(Some(step.encode_to_vec()))
}

/// The step of a policy; `bots` is the hash of its part.
pub(super) fn step(policy: &Item<BotPolicy>, bots: Vec<u8>) -> BotGuardStep {
    BotGuardStep {
        bots,
        name: if policy.head.name.is_empty() { policy.head.id.clone() } else { policy.head.name.clone() },
        verify: policy.verify_known_bots,
        bypass: policy.verified_bypass,
        impersonator_weight: policy.impersonator_weight,
        impersonator: reaction(policy.impersonator_action).into(),
        unknown_weight: policy.unknown_bot_weight,
        status: policy.deny_status.into(),
        robots_weight: policy.robots_weight,
        signatures: policy.uses_signatures(),
        signature_max_age: policy.signature_max_age_seconds,
        signature_nonce: policy.signature_nonce_required,
        signatures_per_second: policy.signatures_per_second,
        signature_hosts: policy.signature_hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
        maze: None,
        marks_spared: false,
        fingerprints: fingerprints::step(&policy.fingerprints),
    }
}

/// The part of a policy: its bots, and the texts that it serves.
pub(super) fn list(policy: &BotPolicy) -> BotList {
    let robots_txt = if policy.serve_robots_txt { robots_txt(policy) } else { String::new() };
    let llms_txt = if policy.serve_llms_txt { policy.llms_txt.clone() } else { String::new() };
    BotList {
        bots: bots(policy),
        robots_txt: robots_txt.into_bytes(),
        llms_txt: llms_txt.into_bytes(),
        fingerprints: fingerprints::list(&policy.fingerprints),
    }
}

/// The bots of a policy, each with its rule: a name takes precedence over a category, a category over `*`. A bot without a rule is
/// allowed.
pub(super) fn bots(policy: &BotPolicy) -> Vec<KnownBot> {
    let rules = policy.rules_by_target();
    let rule = |signature: &BotSignature| {
        let rule = rules.get(format!("name:{}", signature.name).as_str());
        let rule = rule.or_else(|| rules.get(format!("category:{}", signature.category.word()).as_str()));
        rule.or_else(|| rules.get("*")).map_or((BotAction::Allow, 0.0), |rule| (rule.action, rule.weight))
    };
    let bot = |signature: &BotSignature| {
        let (action, weight) = rule(signature);
        KnownBot {
            name: signature.name.clone(),
            category: signature.category.word().to_owned(),
            tokens: signature.ua_contains.iter().map(|token| token.to_ascii_lowercase().into_bytes()).collect(),
            reaction: reaction(action).into(),
            weight,
            method: signature.domains().map(|domains| method(&domains).to_vec()).unwrap_or_default(),
            ranges: match policy.uses_ranges() {
                true => signature.ip_ranges.iter().map(|url| ranges::label(url)).collect(),
                false => Vec::new(),
            },
            directory: match policy.uses_signatures() {
                true => signature.directory().map(|directory| directory.identifier).unwrap_or_default(),
                false => String::new(),
            },
        }
    };
    policy.signatures.iter().map(bot).collect()
}

pub(super) fn reaction(action: BotAction) -> BotReaction {
    match action {
        BotAction::Allow => BotReaction::Allow,
        BotAction::Monitor => BotReaction::Monitor,
        BotAction::Deny => BotReaction::Deny,
        BotAction::Maze => BotReaction::Maze,
    }
}
