//! What the IP reputation of a chain will do.

use std::any::Any;
use std::fmt;

use kit::Guard;

use super::{MAX_BOUNCERS, MAX_FEEDS};

/// What it will do.
#[derive(Debug, Default)]
pub(super) struct ReputationGuard {
    /// The feeds that it names and that are disabled.
    pub(super) disabled: Ids,
    /// The feeds that are left out because too many are enabled.
    pub(super) left_out: Ids,
    /// The bouncers that it names and that are disabled.
    pub(super) disabled_bouncers: Ids,
    /// The bouncers that are left out because too many are enabled.
    pub(super) bouncers_left_out: Ids,
    /// The bouncers with decisions on networks, where there is no database of networks.
    pub(super) without_networks: Ids,
    /// The bouncers with decisions on countries, where there is no geolocation database.
    pub(super) without_countries: Ids,
    /// It was asked for, and there is no feed, no bouncer and no zone at all.
    pub(super) idle: bool,
}

impl Guard for ReputationGuard {
    fn gaps(&self, _before: &[&dyn Guard], _behind: &[&dyn Guard]) -> Vec<String> {
        let mut gaps: Vec<String> = Vec::new();
        let (feeds, bouncers) = ("threat feed", "bouncer");
        let off = [Sources::of(feeds, &self.disabled), Sources::of(bouncers, &self.disabled_bouncers)];
        for off in off.into_iter().flatten() {
            gaps.push(format!("{off} {} disabled", off.verb("is", "are")));
        }
        let left_out = [
            (MAX_FEEDS, Sources::of(feeds, &self.left_out)),
            (MAX_BOUNCERS, Sources::of(bouncers, &self.bouncers_left_out)),
        ];
        for (most, unused) in left_out {
            let Some(unused) = unused else { continue };
            let (verb, object) = (unused.verb("is", "are"), unused.verb("it", "them"));
            gaps.push(format!("{unused} {verb} not used: {most} others before {object} are enabled"));
        }
        let without = [
            (&self.without_networks, "networks", "an ASN database"),
            (&self.without_countries, "countries", "a geolocation database"),
        ];
        for (ids, on, lacking) in without {
            let Some(bouncers) = Sources::of(bouncers, ids) else { continue };
            let verb = bouncers.verb("has", "have");
            gaps.push(format!("{bouncers} {verb} decisions on {on}, which match nothing without {lacking}"));
        }
        if self.idle {
            gaps.push(
                "no threat feed, no bouncer and no DNS blocklist is enabled, so the IP reputation does nothing"
                    .to_owned(),
            );
        }
        gaps
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The sources that a gap names.
const NAMED: usize = 3;

/// The ids of sources: each route has its own gaps, so that of many only the first are kept.
#[derive(Debug, Default)]
pub(super) struct Ids {
    first: Vec<String>,
    count: usize,
}

impl Ids {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'i> FromIterator<&'i String> for Ids {
    fn from_iter<I: IntoIterator<Item = &'i String>>(ids: I) -> Self {
        ids.into_iter().fold(Self::default(), |mut all, id| {
            if all.count < NAMED {
                all.first.push(id.clone());
            }
            all.count += 1;
            all
        })
    }
}

/// Sources of one kind: ``the bouncers `a`, `b` and 5 more``.
struct Sources<'i> {
    what: &'static str,
    ids: &'i Ids,
}

impl<'i> Sources<'i> {
    /// `None` where there are none.
    fn of(what: &'static str, ids: &'i Ids) -> Option<Self> {
        (!ids.is_empty()).then_some(Self { what, ids })
    }

    /// The word that fits their number.
    fn verb(&self, one: &'static str, several: &'static str) -> &'static str {
        if self.ids.count == 1 { one } else { several }
    }
}

impl fmt::Display for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {}{}", self.what, self.verb("", "s"))?;
        for (number, id) in self.ids.first.iter().enumerate() {
            write!(f, "{} `{id}`", if number == 0 { "" } else { "," })?;
        }
        match self.ids.count.saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sources_are_one_gap() {
        let ids = |count: usize| {
            let all: Vec<String> = (0..count).map(|number| format!("b{number}")).collect();
            all.iter().collect::<Ids>()
        };
        let gaps = |left_out, without| {
            let guard = ReputationGuard {
                bouncers_left_out: ids(left_out),
                without_networks: ids(without),
                ..ReputationGuard::default()
            };
            guard.gaps(&[], &[])
        };
        assert_eq!(gaps(1, 0), [format!("the bouncer `b0` is not used: {MAX_BOUNCERS} others before it are enabled")]);
        assert_eq!(
            gaps(900, 2),
            [
                format!(
                    "the bouncers `b0`, `b1`, `b2` and 897 more are not used: {MAX_BOUNCERS} others before them are enabled"
                ),
                "the bouncers `b0`, `b1` have decisions on networks, which match nothing without an ASN database"
                    .to_owned(),
            ]
        );
    }
}
