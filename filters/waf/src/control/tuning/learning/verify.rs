//! Exclusions for what a window has counted, each verified by a preview. What was verified is remembered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use kit::{Item, OperationContext, Tool, View};
use snapshot::{Message as _, PartHash, content_hash};

use super::super::exclusion::{Exclusion, ExclusionKind, IDS, Place};
use super::super::matches::KeptMatch;
use super::super::operations::bench;
use super::super::preview::{Beside, Preview, Previews};
use super::super::target::Target;
use super::super::windows::{Entry, Window, entry_key};
use super::super::written::free_numbers;
use super::with;
use crate::control::config::WafConfig;

/// The exclusions that a call proposes, at most.
const MAX_PROPOSALS: usize = 25;
/// How often an entry has matched before something is proposed.
const MIN_COUNT: u64 = 3;
/// From how many callers: one alone cannot make a proposal.
const MIN_CALLERS: usize = 3;
/// From how many networks, unless all matches of the window come from one: addresses of one are cheap.
const MIN_NETWORKS: usize = 2;
/// The entries that a call verifies, beside those that were verified before: for one, 2,000 attacks are put at its input.
const FRESH: usize = 3;
/// The verifications that are remembered.
const REMEMBERED: usize = 200;

/// An entry, and what can be done about it.
#[derive(Clone, Debug)]
pub(in super::super) struct Verified {
    pub(in super::super) entry: Entry,
    /// The narrowest exclusion that is safe, or else the narrowest.
    pub(in super::super) proposal: Option<Exclusion>,
    pub(in super::super) preview: Option<Preview>,
    /// It may be applied.
    pub(in super::super) accepted: bool,
    /// Why, or why not.
    pub(in super::super) note: String,
}

impl Verified {
    pub(super) fn key(&self) -> String {
        entry_key(self.entry.rule_id, &self.entry.target, &self.entry.path)
    }

    fn open(entry: &Entry, note: impl Into<String>) -> Self {
        Self { entry: entry.clone(), proposal: None, preview: None, accepted: false, note: note.into() }
    }

    /// The exclusion with the number that it is written under.
    pub(in super::super) fn written(&self, number: u64) -> Option<String> {
        let (target, proposal) = (Target::parse(self.entry.target.as_bytes())?, self.proposal.as_ref()?);
        let place = Place { rule_id: self.entry.rule_id, target, path: self.entry.path.clone() };
        Some(Exclusion::new(proposal.kind, &place, number)?.seclang)
    }
}

/// The exclusions that were tried for one input.
type Attempts = Arc<Vec<(Exclusion, Preview)>>;

/// What was verified before.
#[derive(Default)]
pub(super) struct Verifications(Mutex<VecDeque<(PartHash, Attempts)>>);

impl Tool for Verifications {}

impl Verifications {
    fn get(&self, key: &PartHash) -> Option<Attempts> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == key).map(|(_, tried)| Arc::clone(tried))
    }

    fn put(&self, key: PartHash, tried: &Attempts) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((key, Arc::clone(tried)));
        kept.truncate(REMEMBERED);
    }
}

/// How much is verified.
pub(in super::super) struct Effort<'a> {
    /// The entries that are looked at, at most.
    pub(in super::super) entries: usize,
    /// Those of them that were not verified before and are now, at most.
    pub(in super::super) fresh: usize,
    /// Is told how many entries are done, and how many there are.
    pub(in super::super) progress: &'a dyn Fn(usize, usize),
}

impl Effort<'_> {
    /// That of a call, which has to answer soon.
    const CALL: Effort<'static> = Effort { entries: MAX_PROPOSALS, fresh: FRESH, progress: &|_, _| {} };
}

/// [`verify_with`] the effort of a call.
///
/// # Errors
/// As of [`verify_with`].
pub(super) fn verify(
    window: &Window,
    config: &Item<WafConfig>,
    context: &OperationContext<'_>,
    view: &View<'_>,
) -> Result<Vec<Verified>, String> {
    verify_with(&Effort::CALL, window, config, context, view)
}

/// The entries that matched most, and what can be done about each.
///
/// # Errors
/// The config does not compile; for people.
pub(in super::super) fn verify_with(
    effort: &Effort<'_>,
    window: &Window,
    config: &Item<WafConfig>,
    context: &OperationContext<'_>,
    view: &View<'_>,
) -> Result<Vec<Verified>, String> {
    let mut entries: Vec<&Entry> = window.entries.values().filter(|entry| entry.count >= MIN_COUNT).collect();
    // What would be refused comes first, then what many have sent.
    let order = |entry: &&Entry| (entry.would_block, entry.callers.len(), entry.count, entry.rule_id);
    entries.sort_by(|one, other| {
        order(other).cmp(&order(one)).then_with(|| (&one.target, &one.path).cmp(&(&other.target, &other.path)))
    });
    entries.truncate(effort.entries);
    let kept: BTreeMap<String, KeptMatch> = with(context, |known| {
        let of_config = known.matches.all().filter(|one| one.matched.config == config.head.id);
        of_config
            .map(|one| (entry_key(one.matched.rule_id, &one.matched.target, &one.matched.path), one.clone()))
            .collect()
    })
    .unwrap_or_default();
    let memory = context.tools.get::<Verifications>();
    // What is harmless by itself may let attacks pass together with others: each is tried with those that are accepted before it.
    let numbers = free_numbers(config, view, entries.len())?;
    let mut accepted = Beside::default();
    let fingerprint = bench(config, context, view).fingerprint();
    let mut fresh = 0;
    let networks_needed = window.networks().min(MIN_NETWORKS);
    let count = entries.len();
    let mut all = Vec::with_capacity(count);
    for (done, entry) in entries.into_iter().enumerate() {
        (effort.progress)(done, count);
        let key = entry_key(entry.rule_id, &entry.target, &entry.path);
        let (callers, networks) = (entry.callers.len(), entry.networks());
        if callers < MIN_CALLERS || networks < networks_needed {
            let note = format!(
                "not proposed: {callers} callers of {networks} networks have sent it, those with other signs left out; what fewer than \
                 {MIN_CALLERS} of {networks_needed} networks send may be an attack"
            );
            all.push(Verified::open(entry, note));
            continue;
        }
        let Some(target) = Target::parse(entry.target.as_bytes()) else { continue };
        let Some(sample) = kept.get(&key).filter(|one| one.matched.request.is_some()) else {
            all.push(Verified::open(entry, "not verified: no sample of it is kept"));
            continue;
        };
        let place = Place { rule_id: entry.rule_id, target, path: entry.path.clone() };
        let request = sample.matched.request.as_ref().map(|request| request.encode_to_vec()).unwrap_or_default();
        let before = accepted.texts.join("\n");
        let hash = content_hash(&[fingerprint.as_slice(), key.as_bytes(), before.as_bytes(), &request].concat());
        let tried = match memory.get(&hash) {
            Some(tried) => tried,
            None if fresh >= effort.fresh => {
                all.push(Verified::open(entry, "not verified yet: ask for the report again"));
                continue;
            }
            None => {
                fresh += 1;
                let previews =
                    Previews::new(bench(config, context, view), place.clone(), sample.matched.request.as_ref(), &[])?;
                let number = numbers.get(accepted.texts.len()).copied().unwrap_or(*IDS.end());
                let tried = Arc::new(tried(&previews, &place, &accepted, number));
                memory.put(hash, &tried);
                tried
            }
        };
        let verified = judged(entry, &tried);
        let number = numbers.get(accepted.texts.len()).copied();
        if verified.accepted
            && let Some(text) = number.and_then(|number| verified.written(number))
        {
            accepted.texts.push(text);
            accepted.rules.insert(entry.rule_id);
        }
        all.push(verified);
    }
    Ok(all)
}

/// The exclusions of one input, the narrowest first, up to the first that is safe together with those that are accepted.
fn tried(previews: &Previews<'_>, place: &Place, accepted: &Beside, number: u64) -> Vec<(Exclusion, Preview)> {
    let mut tried = Vec::new();
    for kind in [ExclusionKind::ScopedTarget, ExclusionKind::UpdateTarget] {
        let Some(exclusion) = Exclusion::new(kind, place, number) else { continue };
        let preview = previews.preview_beside(accepted, &exclusion);
        let is_safe = preview.safe;
        tried.push((exclusion, preview));
        if is_safe {
            break;
        }
    }
    tried
}

fn judged(entry: &Entry, tried: &[(Exclusion, Preview)]) -> Verified {
    let safe = tried.iter().find(|(_, preview)| preview.safe);
    let Some((exclusion, preview)) = safe.or_else(|| tried.first()) else {
        return Verified::open(entry, "not proposed: the name of the input cannot be written in a rule");
    };
    let missed = preview.corpus.caught_before.saturating_sub(preview.corpus.caught_after);
    let note = match preview {
        Preview { safe: true, .. } => format!(
            "verified, together with those before it: it ends the match, and all {} known attacks that are caught still are",
            preview.corpus.caught_before
        ),
        Preview { compiles: false, .. } => "not verified: it does not compile".to_owned(),
        Preview { reproduced: false, .. } => "not verified: the sample does not match again".to_owned(),
        Preview { effective: false, .. } => "not verified: the rule still matches".to_owned(),
        _ if missed > 0 => format!("not safe: {missed} known attacks would pass"),
        _ => format!("not safe: it silences other rules, {:?}", preview.collateral_rules),
    };
    Verified {
        entry: entry.clone(),
        proposal: Some(exclusion.clone()),
        preview: Some(preview.clone()),
        accepted: preview.safe,
        note,
    }
}
