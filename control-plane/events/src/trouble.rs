//! What the control plane does not do as it should right now: since when, and why.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// A part of the control plane that can be in trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The entities of the store, as this process sees them.
    Entities,
    /// Ways of operators to log in; the subject is `oidc`.
    Login,
    /// What gateways made of what they are served.
    Nodes,
    /// What gateways are served; the subject is the group.
    Publication,
    /// What plugins gather from elsewhere, such as threat feeds; the subject is the source.
    Sources,
    /// The store.
    Store,
}

/// Trouble of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trouble {
    /// `entities`, `login`, `nodes`, `publication`, `sources` or `store`.
    pub part: String,
    /// What of it: `oidc` for the login provider, the group of gateways, `refusals` of gateways, the source, `reads` or `writes` of the store; empty for the whole part.
    pub subject: String,
    /// Why, at most 1000 characters.
    pub reason: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub since: u64,
}

/// All troubles that last.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    lasting: BTreeMap<(Part, String), (String, u64)>,
}

/// The longest reason, in characters.
const MAX_REASON: usize = 1000;

impl Part {
    /// All of them.
    pub const ALL: [Part; 6] =
        [Part::Entities, Part::Login, Part::Nodes, Part::Publication, Part::Sources, Part::Store];

    /// As answers, metrics and events have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Part::Entities => "entities",
            Part::Login => "login",
            Part::Nodes => "nodes",
            Part::Publication => "publication",
            Part::Sources => "sources",
            Part::Store => "store",
        }
    }
}

impl Troubles {
    /// Notes trouble; true where it has just begun. The reason is the latest.
    pub(super) fn begin(&mut self, part: Part, subject: &str, reason: &str, now: u64) -> bool {
        let reason: String = reason.chars().take(MAX_REASON).collect();
        let key = (part, subject.to_owned());
        let since = self.lasting.get(&key).map(|(_, since)| *since);
        self.lasting.insert(key, (reason, since.unwrap_or(now)));
        since.is_none()
    }

    /// Ends trouble; since when it lasted, `None` where there was none.
    pub(super) fn end(&mut self, part: Part, subject: &str) -> Option<u64> {
        self.lasting.remove(&(part, subject.to_owned())).map(|(_, since)| since)
    }

    pub(super) fn count(&self, part: Part) -> u32 {
        let of_part = self.lasting.keys().filter(|(found, _)| *found == part).count();
        u32::try_from(of_part).unwrap_or(u32::MAX)
    }

    pub(super) fn all(&self) -> Vec<Trouble> {
        let trouble = |((part, subject), (reason, since)): (&(Part, String), &(String, u64))| Trouble {
            part: part.word().to_owned(),
            subject: subject.clone(),
            reason: reason.clone(),
            since: *since,
        };
        self.lasting.iter().map(trouble).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_lasts_from_its_begin_and_has_its_latest_reason() {
        let mut troubles = Troubles::default();
        assert!(troubles.begin(Part::Publication, "eu", "one", 5));
        assert!(!troubles.begin(Part::Publication, "eu", "two", 7));
        assert!(troubles.begin(Part::Publication, "us", &"x".repeat(2000), 8));
        let all = troubles.all();
        assert_eq!((all[0].subject.as_str(), all[0].reason.as_str(), all[0].since), ("eu", "two", 5));
        assert_eq!((all[1].reason.len(), troubles.count(Part::Publication), troubles.count(Part::Store)), (1000, 2, 0));
        assert_eq!((troubles.end(Part::Publication, "eu"), troubles.end(Part::Publication, "eu")), (Some(5), None));
        assert!(troubles.begin(Part::Publication, "eu", "again", 9));
        assert_eq!(troubles.all()[0].since, 9);
    }
}
