//! What the tiers of a policy that challenge present.

use snapshot::Challenge;

use crate::widget;
use crate::{ChallengeKind, ChallengeProvider, ThreatPolicy, TierAction};
use kit::{ChallengeRoot, Context, Item, View};

/// The bytes of the hash of an id that the name of a cookie has.
const ID_BYTES: usize = 4;

/// What a policy presents: nothing where no tier asks for it, and, with a warning, where nothing can be.
pub(super) fn of(policy: &Item<ThreatPolicy>, context: &mut Context<'_>) -> Option<Challenge> {
    if !policy.tiers.iter().any(|tier| tier.action.read_as == TierAction::Challenge) {
        return None;
    }
    let lowered = provider(policy, context).and_then(|provider| lower(provider, context));
    match lowered {
        Ok(challenge) => Some(challenge),
        Err(why) => {
            let id = &policy.head.id;
            let warning = format!("threat policy `{id}` challenges callers, but nothing is presented to them: {why}");
            context.warnings.push(warning);
            None
        }
    }
}

fn provider<'a>(policy: &Item<ThreatPolicy>, context: &Context<'a>) -> Result<&'a Item<ChallengeProvider>, String> {
    let id = policy.challenge_provider.as_deref().ok_or("it names no challenge provider")?;
    let provider = context.view.get::<ChallengeProvider>(id);
    let provider = provider.ok_or_else(|| format!("there is no challenge provider `{id}`"))?;
    if !provider.enabled {
        return Err(format!("the challenge provider `{id}` is not enabled"));
    }
    Ok(provider)
}

/// The names of the cookie of a provider's clearances: the one that it is given, and the one that it may have from before. Of providers with
/// one `cookie_name` only the first by id has it as it is: a browser keeps one cookie of a name, so that each clearance would take away the
/// one of the other provider. Where a provider is enabled or disabled the name changes, and what callers have counts on.
fn cookie_names(provider: &Item<ChallengeProvider>, view: &View<'_>) -> [String; 2] {
    let (id, plain) = (&provider.head.id, provider.cookie_name.clone());
    let mut others = view.all::<ChallengeProvider>();
    let is_taken = others.any(|other| other.enabled && other.cookie_name == plain && other.head.id < *id);
    let hash = snapshot::content_hash(id.as_bytes());
    let own = format!("{plain}-{}", snapshot::hex(hash.get(..ID_BYTES).unwrap_or(&hash)));
    if is_taken { [own, plain] } else { [plain, own] }
}

fn lower(provider: &Item<ChallengeProvider>, context: &Context<'_>) -> Result<Challenge, String> {
    let [cookie_name, other_cookie_name] = cookie_names(provider, context.view);
    Ok(Challenge {
        provider: provider.head.id.clone(),
        difficulty_floor: provider.difficulty_floor,
        difficulty_ceiling: provider.difficulty_ceiling,
        challenge_ttl_seconds: provider.challenge_ttl_seconds,
        clearance_ttl_seconds: provider.clearance_ttl_seconds,
        cookie_name,
        other_cookie_name,
        keys: keys(provider, context.keys)?,
        bind_ip: provider.bind_ip,
        bind_ua: provider.bind_ua,
        title: provider.title.clone(),
        message: provider.message.clone(),
        widget: match provider.kind {
            ChallengeKind::Pow => None,
            ChallengeKind::Vendor => Some(widget::lower(provider)?),
        },
        without_javascript: provider.without_javascript,
        wait_floor_seconds: provider.wait_floor_seconds,
        wait_ceiling_seconds: provider.wait_ceiling_seconds,
    })
}

/// The key that signs, then the one before it.
fn keys(provider: &Item<ChallengeProvider>, root: &ChallengeRoot) -> Result<Vec<Vec<u8>>, String> {
    let secrets = [provider.secret.reveal(), provider.previous_secret.reveal()];
    if !secrets[0].is_empty() {
        return Ok(secrets
            .iter()
            .filter(|secret| !secret.is_empty())
            .map(|secret| secret.as_bytes().to_vec())
            .collect());
    }
    let generations = [Some(provider.secret_generation), provider.secret_generation.checked_sub(1)];
    let made: Vec<_> = generations.into_iter().flatten().filter_map(|one| root.key(&provider.head.id, one)).collect();
    if made.is_empty() {
        let id = &provider.head.id;
        return Err(format!("the challenge provider `{id}` has no `secret`, and there is no store to keep one in"));
    }
    // A secret of its own that was taken away again is still good for what it has signed.
    let before = Some(secrets[1]).filter(|secret| !secret.is_empty()).map(|secret| secret.as_bytes().to_vec());
    Ok(made.into_iter().chain(before).collect())
}
