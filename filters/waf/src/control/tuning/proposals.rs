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
                let path = without_more_slashes(&path);
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
                Ok(Asked { sample_id: None, config, place, callers: 0, request: None, others: Vec::new() })
            }
            _ => Err("either `sample_id`, or `reference`, or `config_ref`, `rule_id`, `target` and `path`".to_owned()),
        }
    }
}

/// A path as it is folded, as far as slashes go: `/post/` is `/post`.
fn without_more_slashes(path: &str) -> String {
    if !path.starts_with('/') {
        return path.to_owned();
    }
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    format!("/{}", segments.join("/"))
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
            "rationale": rationale(preview, previews.is_used()),
            "still_caught": preview.corpus.caught_after,
            "no_longer_caught": preview.corpus.caught_before.saturating_sub(preview.corpus.caught_after),
            "recommended": recommended == Some(number),
            "preview": preview,
        })
    });
    shown.collect()
}

fn rationale(preview: &Preview, is_used: bool) -> String {
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
        _ if !is_used => "It ends the match, and no caller has used this method: the backend has refused it, or what was written are files that \
                          servers run. Allow it if the application takes it."
            .to_owned(),
        Preview { is_covered: false, .. } => "It ends the match, and whether attacks pass with it is not known: none runs on this path in a \
                                              request in which rules find nothing else."
            .to_owned(),
        Preview { collateral_rules, .. } if !collateral_rules.is_empty() => {
            format!("It ends the match, and silences other rules as well: {collateral_rules:?}.")
        }
        _ => format!(
            "It ends the match, and all {} known attacks that are caught now still are, {} of them tried at this very input.",
            preview.corpus.caught_before, preview.corpus.injected
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::sync::Arc;

    use kit::{AnyEntity, Collection, EntitySource, Head, Item, Slot, Tools};
    use snapshot::Message as _;

    use super::super::keep::Known;
    use super::*;
    use crate::control::AtWork;
    use crate::control::config::WafConfig;
    use crate::samples::messages::{MatchReport, Matched, SampledHeader, SampledRequest};

    /// One WAF config.
    struct One(Slot);

    impl EntitySource for One {
        fn slot(&self, collection: &str, id: &str) -> Option<&Slot> {
            (collection == "waf-configs" && id == "shop").then_some(&self.0)
        }

        fn collection(&self, _collection: &str) -> Option<&Arc<Collection>> {
            None
        }
    }

    /// Whether one of the exclusions that are proposed for a request with `PUT` is safe.
    fn has_safe(uri: &str, path: &str, callers: &[u64]) -> bool {
        let header = |name: &str, value: &str| SampledHeader { name: name.into(), value: value.into() };
        let request = SampledRequest {
            method: "PUT".to_owned(),
            uri: uri.into(),
            protocol: "HTTP/1.1".to_owned(),
            headers: vec![header("host", "shop.example"), header("user-agent", "Mozilla/5.0"), header("accept", "*/*")],
            ..SampledRequest::default()
        };
        let matched = Matched {
            config: "shop".to_owned(),
            rule_id: 911_100,
            phase: 1,
            target: "REQUEST_METHOD:PUT".to_owned(),
            path: path.to_owned(),
            count: 200,
            callers: callers.to_vec(),
            request: Some(request),
            ..Matched::default()
        };
        let report = MatchReport { worker: 1, sequence: 1, matches: vec![matched], ..MatchReport::default() };
        let at_work = AtWork::default();
        at_work.reported.put(Known::default());
        at_work.reported.with(|known| known.take("a", &report.encode_to_vec(), |_| true, 1));
        let runtime: Arc<dyn Any + Send + Sync> = Arc::new(at_work);
        let rules = vec![
            "SecRule REQUEST_METHOD \"!@within GET POST\" \"id:911100,phase:1,deny,status:403,log,msg:'a method'\""
                .to_owned(),
        ];
        let head = Head { id: "shop".to_owned(), ..Head::default() };
        let config: Item<WafConfig> = Item { head, body: WafConfig { rules, ..WafConfig::default() } };
        let entity: Arc<dyn AnyEntity> = Arc::new(config);
        let context = OperationContext {
            entities: &One(Slot { revision: 1, entity }),
            tools: &Tools::default(),
            at_work: Some(&runtime),
            now_millis: 1_700_000_000_000,
            writing: None,
            traffic: None,
        };
        let body = ProposeBody {
            sample_id: Some(format!("shop|911100|REQUEST_METHOD:PUT|{path}")),
            reference: None,
            config_ref: None,
            rule_id: None,
            target: None,
            path: None,
        };
        let OperationAnswer::Done(answer) = body.run(&context) else { panic!("refused") };
        let proposals = answer["proposals"].as_array().unwrap();
        assert_eq!(proposals.len(), 3, "{answer}");
        proposals.iter().any(|one| one["preview"]["safe"] == true || one["recommended"] == true)
    }

    /// What a scan tries has no callers, because the backend refuses it.
    #[test]
    fn a_method_that_no_application_takes_is_not_proposed_as_safe() {
        assert!(has_safe("/files/1", "/files/{id}", &[1, 2, 3]));
        assert!(!has_safe("/files/1", "/files/{id}", &[]));
        assert!(!has_safe("/uploads/shell.jsp", "/uploads/shell.jsp", &[]));
        assert!(!has_safe("/uploads/shell.jsp", "/uploads/shell.jsp", &[1, 2, 3]));
    }
}

#[cfg(test)]
mod slashes {
    use super::without_more_slashes;

    #[test]
    fn a_typed_path_has_one_spelling() {
        for (path, one) in [("/post/", "/post"), ("//a//b", "/a/b"), ("/", "/"), ("/a", "/a"), ("a/", "a/"), ("", "")] {
            assert_eq!(without_more_slashes(path), one, "{path}");
        }
    }
}
