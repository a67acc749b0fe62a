//! The exclusions that are proposed for a match.

use serde_json::{Value, json};

use super::exclusion::{Exclusion, Place};
use super::preview::{Preview, Previews};

/// The exclusions for a match with their previews, as they are shown.
pub(super) fn proposals(previews: &Previews<'_>, place: &Place, id: u64) -> Vec<Value> {
    let tried: Vec<(Exclusion, Preview)> = Exclusion::candidates(place, id)
        .into_iter()
        .map(|one| {
            let preview = previews.preview(&one.seclang);
            (one, preview)
        })
        .collect();
    let recommended = tried.iter().position(|(_, preview)| preview.safe);
    let shown = tried.iter().enumerate().map(|(number, (one, preview))| {
        json!({
            "kind": one.kind,
            "placement": one.kind.placement(),
            "title": one.title,
            "seclang": one.seclang,
            "reach": one.reach,
            "reach_rank": one.kind.rank(),
            "rationale": rationale(preview),
            "still_caught": preview.corpus.caught_after,
            "no_longer_caught": preview.corpus.caught_before.saturating_sub(preview.corpus.caught_after),
            "recommended": recommended == Some(number),
            "preview": preview,
        })
    });
    shown.collect()
}

fn rationale(preview: &Preview) -> String {
    let missed = preview.corpus.caught_before.saturating_sub(preview.corpus.caught_after);
    match preview {
        Preview { compiles: false, error, .. } => {
            format!("It does not compile: {}", error.as_deref().unwrap_or("the reason is not known"))
        }
        Preview { reproduced: false, .. } => {
            "The match could not be had again from the sample, so whether this ends it is not known.".to_owned()
        }
        Preview { effective: false, .. } => "The rule still matches.".to_owned(),
        _ if missed > 0 => format!(
            "It ends the match, and {missed} of {} known attacks that are caught now would pass.",
            preview.corpus.caught_before
        ),
        Preview { collateral_rules, .. } if !collateral_rules.is_empty() => {
            format!("It ends the match, and silences other rules as well: {collateral_rules:?}.")
        }
        _ => format!(
            "It ends the match, and all {} known attacks that are caught now still are, {} of them tried at this very input.",
            preview.corpus.caught_before, preview.corpus.injected
        ),
    }
}
