//! Steps that are skipped for an exchange, because an earlier step vouches for it (a verified crawler, an allowlisted caller).

use std::borrow::Cow;

use crate::{Exchange, Host, Level};

/// The most skips of one exchange; further ones are ignored and logged.
pub const MAX_SKIPS: usize = 8;
/// The longest reason that is kept, in bytes.
const MAX_REASON: usize = 256;

/// What a plugin asks to be skipped, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The steps.
    pub steps: Skipped,
    /// Why, for the operator; events of the exchange have it. At most 256 bytes are kept.
    pub reason: String,
}

/// Steps behind the one that skips them. A step of the role [`Role::Enforcement`] is never skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skipped {
    /// The access phase of steps that neither enforce nor respond.
    Access,
    /// Detectors of these names.
    Plugins(Vec<Cow<'static, str>>),
    /// All detectors.
    Detectors,
    /// All detectors, and the threat response.
    All,
}

/// What a step does in a chain. It decides what may skip it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Neither of the others.
    #[default]
    Other,
    /// Enforces what is decided already, such as bans.
    Enforcement,
    /// Looks for attacks and leaves signals or refuses.
    Detector,
    /// Acts on the score.
    Response,
}

/// The most that a plugin may skip. Each right includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SkipRight {
    /// Nothing.
    #[default]
    None,
    /// [`Skipped::Access`].
    Access,
    /// [`Skipped::Plugins`] and [`Skipped::Detectors`].
    Detectors,
    /// [`Skipped::All`].
    All,
}

/// A skip that holds, as events show it and as it travels between filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipNote {
    /// The plugin that asked for it.
    pub by: Cow<'static, str>,
    /// The steps.
    pub steps: Skipped,
    /// Why, for the operator.
    pub reason: String,
}

impl Skipped {
    /// The word of events.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Plugins(_) => "plugins",
            Self::Detectors => "detectors",
            Self::All => "all",
        }
    }

    /// The names of [`Skipped::Plugins`].
    #[must_use]
    pub fn plugins(&self) -> &[Cow<'static, str>] {
        match self {
            Self::Plugins(names) => names,
            _ => &[],
        }
    }

    fn needs(&self) -> SkipRight {
        match self {
            Self::Access => SkipRight::Access,
            Self::Plugins(_) | Self::Detectors => SkipRight::Detectors,
            Self::All => SkipRight::All,
        }
    }

    /// Whether a step is skipped in a phase, `access` or another.
    pub(crate) fn covers(&self, name: &str, role: Role, access: bool) -> bool {
        match self {
            Self::Access => access && matches!(role, Role::Other | Role::Detector),
            Self::Plugins(names) => role == Role::Detector && names.iter().any(|known| known == name),
            Self::Detectors => role == Role::Detector,
            Self::All => matches!(role, Role::Detector | Role::Response),
        }
    }
}

/// The skips of one run. Empty in nearly all of them, and then it costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Skips(Vec<(usize, Skipped)>);

impl Skips {
    /// Skips that other filters of this gateway have asked for, in front of this one: they hold for all steps here.
    pub(crate) fn received(exchange: &Exchange) -> Self {
        Self(exchange.skips.iter().map(|note| (0, note.steps.clone())).collect())
    }

    /// Whether the step at a place is skipped in a phase, `access` or another.
    pub(crate) fn cover(&self, at: usize, name: &str, role: Role, access: bool) -> bool {
        self.0.iter().any(|(from, skipped)| at >= *from && skipped.covers(name, role, access))
    }

    /// Notes a skip that the step at a place asks for, if it has the right to.
    pub(crate) fn add(
        &mut self,
        skip: Skip,
        at: usize,
        (by, right): (&'static str, SkipRight),
        exchange: &mut Exchange,
        host: &dyn Host,
    ) {
        if right < skip.steps.needs() {
            let what = skip.steps.word();
            host.log(
                Level::Error,
                &format!("palisade: the plugin `{by}` has no right to skip ({what}); nothing was skipped"),
            );
            return;
        }
        if exchange.skips.len() >= MAX_SKIPS {
            host.log(
                Level::Error,
                &format!("palisade: more than {MAX_SKIPS} skips in one exchange; that of `{by}` was ignored"),
            );
            return;
        }
        let Skip { steps, mut reason } = skip;
        let mut end = reason.len().min(MAX_REASON);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        reason.truncate(end);
        self.0.push((at.saturating_add(1), steps.clone()));
        exchange.skips.push(SkipNote { by: by.into(), steps, reason });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    const ALL: (&str, SkipRight) = ("crawlers", SkipRight::All);

    fn skip(steps: Skipped) -> Skip {
        Skip { steps, reason: "verified".to_owned() }
    }

    #[test]
    fn each_skip_covers_its_steps_behind_it() {
        let roles = [Role::Other, Role::Enforcement, Role::Detector, Role::Response];
        let named = Skipped::Plugins(vec!["waf".into()]);
        for (steps, access, later) in [
            (Skipped::Access, [true, false, true, false], [false; 4]),
            (named, [false, false, true, false], [false, false, true, false]),
            (Skipped::Detectors, [false, false, true, false], [false, false, true, false]),
            (Skipped::All, [false, false, true, true], [false, false, true, true]),
        ] {
            let (host, mut exchange, mut skips) = (FakeHost::at(0), Exchange::default(), Skips::default());
            skips.add(skip(steps.clone()), 1, ALL, &mut exchange, &host);
            assert_eq!(roles.map(|role| skips.cover(2, "waf", role, true)), access, "{steps:?}");
            assert_eq!(roles.map(|role| skips.cover(2, "waf", role, false)), later, "{steps:?}");
            assert_eq!(roles.map(|role| skips.cover(1, "waf", role, true)), [false; 4], "{steps:?}");
            assert_eq!(skips.cover(2, "bots", Role::Detector, false), steps.plugins().is_empty() && later[2]);
            assert!(Skips::received(&exchange).cover(0, "waf", Role::Detector, true), "in a filter behind");
        }
    }

    #[test]
    fn a_plugin_skips_no_more_than_it_may() {
        let all = [Skipped::Access, Skipped::Plugins(Vec::new()), Skipped::Detectors, Skipped::All];
        for (right, allowed) in
            [(SkipRight::None, 0), (SkipRight::Access, 1), (SkipRight::Detectors, 3), (SkipRight::All, 4)]
        {
            let (host, mut exchange, mut skips) = (FakeHost::at(0), Exchange::default(), Skips::default());
            all.iter().for_each(|steps| skips.add(skip(steps.clone()), 0, ("p", right), &mut exchange, &host));
            assert_eq!((exchange.skips.len(), host.logged.borrow().len()), (allowed, 4 - allowed), "{right:?}");
        }
    }

    #[test]
    fn skips_are_few_and_their_reasons_short() {
        let (host, mut exchange, mut skips) = (FakeHost::at(0), Exchange::default(), Skips::default());
        for _ in 0..=MAX_SKIPS {
            let long = Skip { steps: Skipped::Access, reason: format!("a{}", "ä".repeat(200)) };
            skips.add(long, 0, ALL, &mut exchange, &host);
        }
        assert_eq!((exchange.skips.len(), host.logged.borrow().len()), (MAX_SKIPS, 1));
        assert!(exchange.skips.iter().all(|note| note.reason.len() == MAX_REASON - 1));
    }
}
