//! What was published of the entities, and what was not: for people who ask why a change does not arrive.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::ResourceSet;

/// The reasons that are shown of one group, at most, and the characters of each.
const MAX_REASONS: usize = 16;
const MAX_REASON: usize = 1000;

/// The state of the publication.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublicationStatus {
    /// The revision of the entities that were compiled last.
    pub revision: u64,
    /// Every group of gateways, by name.
    pub groups: Vec<GroupPublication>,
}

/// The publication to one group of gateways.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GroupPublication {
    /// The group's name; `default` for gateways that belong to no other.
    pub group: String,
    /// The published revision of the entities; null if nothing was published to the group since the control plane
    /// started, so that its gateways keep the last version.
    pub revision: Option<u64>,
    /// When that was published, in milliseconds since the Unix epoch.
    pub published_at: Option<u64>,
    /// Why the current entities are not published to it; null if they are.
    pub failure: Option<PublicationFailure>,
}

/// Why something is not published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublicationFailure {
    /// Since when no change was published to the group, in milliseconds since the Unix epoch.
    pub since: u64,
    /// What is wrong, at most 16 reasons.
    pub reasons: Vec<String>,
}

impl PublicationStatus {
    /// Takes over what entities of this revision came to.
    pub(super) fn update(
        &mut self,
        revision: u64,
        outcomes: &BTreeMap<String, Result<ResourceSet, Vec<String>>>,
        now: u64,
    ) {
        let before = std::mem::take(&mut self.groups);
        self.revision = revision;
        self.groups = outcomes
            .iter()
            .map(|(group, outcome)| {
                let before = before.iter().find(|known| known.group == *group);
                match outcome {
                    Ok(_) => GroupPublication {
                        group: group.clone(),
                        revision: Some(revision),
                        published_at: Some(now),
                        failure: None,
                    },
                    Err(reasons) => {
                        let lasting = before.and_then(|before| before.failure.as_ref());
                        let cut = |reason: &String| reason.chars().take(MAX_REASON).collect();
                        let failure = PublicationFailure {
                            since: lasting.map_or(now, |failure| failure.since),
                            reasons: reasons.iter().take(MAX_REASONS).map(cut).collect(),
                        };
                        GroupPublication {
                            group: group.clone(),
                            revision: before.and_then(|before| before.revision),
                            published_at: before.and_then(|before| before.published_at),
                            failure: Some(failure),
                        }
                    }
                }
            })
            .collect();
    }

    /// Why a group is not published; `None` where it is, or where there is no such group.
    pub(super) fn failure(&self, group: &str) -> Option<&PublicationFailure> {
        self.groups.iter().find(|known| known.group == group)?.failure.as_ref()
    }
}
