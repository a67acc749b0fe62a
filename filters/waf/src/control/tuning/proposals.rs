//! The exclusions that are proposed for a match.

use kit::{OperationAnswer, OperationBody, OperationContext, View};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::exclusion::{Exclusion, Place};
use super::matches::KeptMatch;
use super::operations::{Asked, NOT_YET, asked, config, previews, refuse, target, with_matches};
use super::preview::{Preview, Previews};
use super::target::{Target, is_input};
use super::written::free_numbers;

/// A match, by its id or by what it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProposeBody {
    /// The `id` or `key` of a match.
    sample_id: Option<String>,
    /// The id of a request: the `reference` that events and answers name. Of several matches, the one that is seen most is taken, and the
    /// others are in `others`.
    reference: Option<String>,
    /// The id of a WAF config.
    config_ref: Option<String>,
    /// The id of a rule.
    rule_id: Option<u64>,
    /// The input, such as `ARGS:content`.
    target: Option<String>,
    /// The path, identifiers folded: `/orders/{id}`.
    path: Option<String>,
}

impl OperationBody for ProposeBody {
    const SCHEMA: &'static str = "TuningProposeBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let of_same = self.reference.as_deref().and_then(|reference| of_request(reference, context).ok());
        let asked = match self.asked(context) {
            Ok(asked) => asked,
            Err(why) => return refuse(&why),
        };
        let view = View::new(context.entities);
        let proposed = previews(&asked, context, &view).and_then(|previews| {
            let config = config(&asked.config, &view)?;
            let free = free_numbers(config, &view, 1)?;
            Ok(free.first().map(|id| proposals(&previews, &asked.place, *id)).unwrap_or_default())
        });
        match proposed {
            Ok(proposals) => OperationAnswer::Done(json!({
                "config": { "id": asked.config },
                "rule_id": asked.place.rule_id,
                "target": target(&asked.place.target),
                "path": asked.place.path,
                "sample_id": asked.sample_id,
                "others": of_same.into_iter().flatten().skip(1).collect::<Vec<_>>(),
                "proposals": proposals,
            })),
            Err(why) => refuse(&why),
        }
    }
}

impl ProposeBody {
    fn asked(self, context: &OperationContext<'_>) -> Result<Asked, String> {
        let Self { sample_id, reference, config_ref, rule_id, target, path } = self;
        match (sample_id, reference, config_ref, rule_id, target, path) {
            (Some(id), None, None, None, None, None) => asked(&id, context),
            (None, Some(reference), None, None, None, None) => {
                let matches = of_request(&reference, context)?;
                let first = matches.first().ok_or_else(|| {
                    format!(
                        "no match of the request `{}` is kept: gateways report within 30 seconds, and of each match the last few requests",
                        reference.escape_debug()
                    )
                })?;
                asked(first, context)
            }
            (None, None, Some(config), Some(rule_id), Some(target), Some(path)) => {
                let key = format!("{config}|{rule_id}|{target}|{path}");
                if let Ok(known) = asked(&key, context) {
                    return Ok(known);
                }
                let input = Target::parse(target.as_bytes()).filter(|_| is_input(&target));
                let input =
                    input.ok_or_else(|| format!("`{target}` is no input that an exclusion can be written against"))?;
                if !path.starts_with('/') {
                    return Err(format!("`{path}` is no path: it begins with `/`"));
                }
                let place = Place { rule_id, target: input, path };
                Ok(Asked { sample_id: None, config, place, request: None, others: Vec::new() })
            }
            _ => Err("either `sample_id`, or `reference`, or `config_ref`, `rule_id`, `target` and `path`".to_owned()),
        }
    }
}

/// The ids of the matches of a request, those first that are seen most.
fn of_request(reference: &str, context: &OperationContext<'_>) -> Result<Vec<String>, String> {
    let found = with_matches(context, |store| {
        let mut found: Vec<&KeptMatch> = store.of_request(reference).collect();
        found.sort_by_key(|one| std::cmp::Reverse((one.matched.would_block, one.matched.count)));
        found.into_iter().map(KeptMatch::id).collect()
    });
    found.ok_or_else(|| NOT_YET.to_owned())
}

/// The exclusions for a match with their previews, as they are shown.
fn proposals(previews: &Previews<'_>, place: &Place, id: u64) -> Vec<Value> {
    let tried: Vec<(Exclusion, Preview)> = Exclusion::candidates(place, id)
        .into_iter()
        .map(|one| {
            let preview = previews.preview_exclusion(&one);
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
