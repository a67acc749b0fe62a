//! The report of a learning window.

use kit::{Item, OperationContext, View};
use serde_json::{Value, json};

use super::super::operations::{bench, target};
use super::super::preview::{is_blocked, missed, read};
use super::super::target::Target;
use super::super::windows::{Entry, Window};
use super::super::written::free_numbers;
use super::figures::{is_tolerable, mode, paranoia, threshold, withheld};
use super::verify::Verified;
use super::{profile, with};
use crate::control::composition::elements;
use crate::control::config::WafConfig;
use crate::control::operations::trial::Trial;
use crate::samples::messages::SampledRequest;

/// The entries that a report shows, at most.
const MAX_ENTRIES: usize = 5000;
/// The samples that are tried with all exclusions, at most.
const MAX_SAMPLES: usize = 200;

/// What all verified exclusions change together.
struct Impact {
    /// Samples that are refused without them.
    sampled: usize,
    /// Those that are not with them.
    resolved: usize,
    /// Known attacks that pass without them and with them, and all.
    missed_before: usize,
    missed_after: usize,
    attacks: usize,
    /// The requests that are refused with them, where that was counted.
    refused_after: Option<u64>,
}

/// Makes the report.
///
/// # Errors
/// The config does not compile; for people.
pub(super) fn report(
    window: &Window,
    config: &Item<WafConfig>,
    verified: &[Verified],
    context: &OperationContext<'_>,
    view: &View<'_>,
) -> Result<Value, String> {
    report_with(None, window, config, verified, context, view)
}

/// [`report`], where it was `counted` how many requests of the window are refused with all verified exclusions.
///
/// # Errors
/// As of [`report`].
pub(in super::super) fn report_with(
    counted: Option<u64>,
    window: &Window,
    config: &Item<WafConfig>,
    verified: &[Verified],
    context: &OperationContext<'_>,
    view: &View<'_>,
) -> Result<Value, String> {
    let impact = Impact { refused_after: counted, ..impact(config, verified, context, view)? };
    let mut entries: Vec<_> = window.entries.values().collect();
    // The same order each time, whatever that of the window is.
    let order = |one: &Entry| (std::cmp::Reverse(one.count), one.target.clone(), one.path.clone(), one.rule_id);
    entries.sort_by_cached_key(|one| order(one));
    let of_entry = |one: &Entry| {
        json!({
            "rule_id": one.rule_id,
            "target": Target::parse(one.target.as_bytes()).map(|parsed| target(&parsed)),
            "path": one.path,
            "count": one.count,
            "would_block": one.would_block,
            "paranoia": one.paranoia,
            "callers": one.callers.len(),
            "networks": one.networks(),
        })
    };
    let exclusions = verified.iter().map(|one| {
        let proposal = one.proposal.as_ref().map(|proposal| {
            json!({
                "kind": proposal.kind,
                "placement": proposal.kind.placement(),
                "title": proposal.title,
                "seclang": proposal.seclang,
                "reach": proposal.reach,
                "reach_rank": proposal.kind.rank(),
            })
        });
        json!({
            "key": one.key(),
            "entry": of_entry(&one.entry),
            "proposal": proposal,
            "preview": one.preview,
            "accepted": one.accepted,
            "ended": one.ended,
            "note": one.note,
        })
    });
    let until = if window.is_running() { context.now_millis } else { window.stopped_at };
    let rate = if window.requests == 0 { 0.0 } else { ratio(window.would_block, window.requests) };
    let residual = impact.sampled - impact.resolved;
    Ok(json!({
        "running": window.is_running(),
        "distributed": window.nodes.len() > 1,
        "run": {
            "config_ref": config.head.id,
            "started_at": window.started_at,
            "stopped_at": (!window.is_running()).then_some(window.stopped_at),
            "running": window.is_running(),
            "requests": window.requests,
            "matched": window.matched,
            "would_block": window.would_block,
            "would_block_rate": rate,
            "duration_millis": until.saturating_sub(window.started_at),
        },
        "nodes": window.nodes.len(),
        "mode": mode(config),
        "entries": entries.iter().take(MAX_ENTRIES).map(|one| of_entry(one)).collect::<Vec<_>>(),
        "left_out": window.left_out,
        "suspects": window.suspects.len(),
        "exclusions": exclusions.collect::<Vec<_>>(),
        "paranoia": paranoia(window, config, verified),
        "threshold": threshold(window, config),
        "impact": {
            "sampled": impact.sampled,
            "resolved": impact.resolved,
            "residual": residual,
            "rationale": format!(
                "Of {} samples that are refused, {} pass with all verified exclusions, {residual} do not.",
                impact.sampled, impact.resolved
            ),
        },
        "proof": {
            "attacks": impact.attacks,
            "attacks_missed_before": impact.missed_before,
            "attacks_missed_after": impact.missed_after,
            "refused_before": window.would_block,
            "refused_after": refused_after(window, &impact),
        },
        "profile": profile::shown(window, elements(config, view).iter().map(|element| element.text.as_str())),
        "verdict": verdict(window, config, verified, &impact),
    }))
}

fn ratio(part: u64, whole: u64) -> f64 {
    // Counts end at 2^53.
    part as f64 / whole as f64
}

/// How many requests would be refused with the exclusions: as it was counted, or else by the share of the samples; `None` without samples.
fn refused_after(window: &Window, impact: &Impact) -> Option<u64> {
    if impact.refused_after.is_some() {
        return impact.refused_after;
    }
    let (sampled, residual) =
        (u64::try_from(impact.sampled).ok()?, u64::try_from(impact.sampled - impact.resolved).ok()?);
    window.would_block.saturating_mul(residual).checked_div(sampled)
}

/// What a person should do, in a sentence.
fn verdict(window: &Window, config: &Item<WafConfig>, verified: &[Verified], impact: &Impact) -> String {
    if let Some(why) = withheld(window, config) {
        return format!("No verdict yet ({why}).");
    }
    let accepted = verified.iter().filter(|one| one.accepted).count();
    let (before, after) = (window.would_block, refused_after(window, impact).unwrap_or(window.would_block));
    if is_tolerable(before, window.requests) {
        return format!("Blocking is safe: {before} of {} requests would be refused.", window.requests);
    }
    if accepted > 0 && is_tolerable(after, window.requests) {
        return format!(
            "Apply the {accepted} verified exclusions, then blocking is safe: about {after} of {} requests would be refused, {before} without \
             them.",
            window.requests
        );
    }
    format!(
        "Blocking is not safe yet: {before} of {} requests would be refused, about {after} with the {accepted} verified exclusions. Look at the \
         entries that refuse most.",
        window.requests
    )
}

/// Tries the samples of the config and the known attacks with all exclusions that are accepted.
fn impact(
    config: &Item<WafConfig>,
    verified: &[Verified],
    context: &OperationContext<'_>,
    view: &View<'_>,
) -> Result<Impact, String> {
    let bench = bench(config, context, view);
    let accepted: Vec<&Verified> = verified.iter().filter(|one| one.accepted).collect();
    let numbers = free_numbers(config, view, accepted.len())?;
    let all: Vec<String> = accepted.iter().zip(numbers).filter_map(|(one, number)| one.written(number)).collect();
    let before = bench.build(None)?;
    let after = match all.is_empty() {
        true => before.clone(),
        false => bench.build(Some(&all.join("\n")))?,
    };
    let samples: Vec<SampledRequest> = with(context, |known| {
        let of_config = known.matches.all().filter(|one| one.matched.config == config.head.id);
        of_config.filter_map(|one| one.matched.request.clone()).take(MAX_SAMPLES).collect()
    })
    .unwrap_or_default();
    let (unchanged, changed) = (bench.trial(&before), bench.trial(&after));
    let (mut sampled, mut resolved) = (0, 0);
    for sample in samples.iter().map(read) {
        let refused = |trial: &Trial<'_>| trial.pass(&sample, None).is_ok_and(|seen| is_blocked(&seen));
        if refused(&unchanged) {
            sampled += 1;
            resolved += usize::from(!refused(&changed));
        }
    }
    let (missed_before, attacks) = missed(&unchanged);
    let missed_after = if all.is_empty() { missed_before } else { missed(&changed).0 };
    Ok(Impact { sampled, resolved, missed_before, missed_after, attacks, refused_after: None })
}
