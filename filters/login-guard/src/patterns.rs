//! Which patterns of attack the counts show.
//!
//! Ordinary users fail too, but most of them log in soon after, and a source with many users has many successes. So what counts of
//! a source, and of all logins together, are accounts whose latest login failed, beside those that were logged in to.

use crate::LoginLimits;
use crate::counts::{Origin, Realm, Seen, Target};

/// How many unresolved failures are ordinary for an account that is logged in to.
const ORDINARY: f64 = 0.25;
/// How many times the thresholds of a window those of a network, of a day and of all logins are.
const NETWORK: f64 = 3.0;
const DAY: f64 = 4.0;
const REALM: f64 = 4.0;
/// How many times what is usual on a day is unusual, and its bounds.
const UNUSUAL: f64 = 4.0;
const USUAL: (f64, f64) = (0.05, 1.0);
/// The fewest successes of a day that say what is usual.
const LEARNED: u32 = 50;

/// A pattern of attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    Stuffing,
    Spraying,
    AccountAttack,
    Takeover,
    BreachedPassword,
}

/// What a pattern is about: each is reported once a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Source,
    Network,
    Password,
    Account,
    All,
}

/// A pattern that the counts show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    pub(crate) pattern: Pattern,
    pub(crate) subject: Subject,
    /// The count in thresholds: 1 and more.
    pub(crate) times: f64,
    pub(crate) detail: String,
}

impl Pattern {
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Self::Stuffing => "login:credential_stuffing",
            Self::Spraying => "login:password_spraying",
            Self::AccountAttack => "login:account_under_attack",
            Self::Takeover => "login:account_takeover",
            Self::BreachedPassword => "login:breached_password",
        }
    }

    pub(crate) fn weight(self, limits: &LoginLimits) -> f64 {
        match self {
            Self::Stuffing => limits.stuffing_weight,
            Self::Spraying => limits.spraying_weight,
            Self::AccountAttack => limits.account_attack_weight,
            Self::Takeover => limits.takeover_weight,
            Self::BreachedPassword => limits.breached_weight,
        }
    }
}

/// The patterns that a login is a part of. Its user, if the account was logged in to from there before, is not charged for them
/// ([`Seen::known`]): only a source that attacks the accounts of its own users is of interest then.
pub(crate) fn found(seen: &Seen, limits: &LoginLimits) -> Vec<Finding> {
    if seen.known {
        return stuffing(seen, limits).filter(|finding| finding.subject == Subject::Source).into_iter().collect();
    }
    [stuffing(seen, limits), spraying(seen, limits), account_attack(seen, limits)].into_iter().flatten().collect()
}

/// Whether a login is charged for a pattern that it is a part of. In an attack of many sources the users who mistype their own
/// password are not: their source has failed for no other account.
pub(crate) fn is_charged(finding: &Finding, seen: &Seen) -> bool {
    let by_others = matches!(finding.subject, Subject::Network | Subject::All);
    !seen.known && (!by_others || seen.others() > 0)
}

/// How far all logins together are beyond what is usual; an attack from many sources from 1 on.
pub(crate) fn realm_times(seen: &Seen, limits: &LoginLimits) -> f64 {
    let Seen { realm, realm_day: day, .. } = seen;
    // What the window has is not usual yet: an attack would hide itself.
    let succeeded = day.succeeded.saturating_sub(realm.succeeded);
    let unresolved = day.unresolved().saturating_sub(realm.unresolved());
    let usual = if succeeded < LEARNED { 0.0 } else { ratio(unresolved, f64::from(succeeded)) };
    let slope = (UNUSUAL * usual).clamp(USUAL.0, USUAL.1);
    let room = REALM * f64::from(limits.source_accounts) + slope * f64::from(realm.succeeded);
    ratio(realm.unresolved(), room)
}

/// The same for a day, in which an attack is seen that stays below the threshold of a window. What is usual on a day is not known: so many
/// as are ordinary for an account that is logged in to.
fn realm_day_times(seen: &Seen, limits: &LoginLimits) -> f64 {
    let day = seen.realm_day;
    let room = REALM * DAY * f64::from(limits.source_accounts) + ORDINARY * f64::from(day.succeeded);
    ratio(day.unresolved(), room)
}

fn stuffing(seen: &Seen, limits: &LoginLimits) -> Option<Finding> {
    let accounts = f64::from(limits.source_accounts);
    let origin = |subject, origin: Origin, factor: f64, span: &str| {
        let times = ratio(origin.unresolved(), factor * accounts + ORDINARY * f64::from(origin.succeeded));
        let (failed, of) = (origin.unresolved(), if subject == Subject::Network { "a network" } else { "one source" });
        (subject, times, format!("logins to {failed} accounts failed from {of}{span}"))
    };
    // One account may be tried with many passwords as well. A user who got in at last has needed three tries or so.
    let is_open = seen.source.unresolved() > 0 || seen.failed_here;
    let tries = seen.source.tries.saturating_sub(3 * seen.source.resolved) * u32::from(is_open);
    let room = f64::from(limits.source_failures) + ORDINARY * f64::from(seen.source.succeeded);
    let many = (Subject::Source, ratio(tries, room), format!("{tries} different logins failed from one source"));
    // A caller that has logged in to anything is not taken for a part of an attack that others make.
    let unproven = seen.source.succeeded == 0 && seen.source.unresolved() > 0;
    let Realm { succeeded, .. } = seen.realm;
    let all = format!(
        "logins to {} accounts failed from many sources, and to {succeeded} succeeded",
        seen.realm.unresolved()
    );
    let all_day = format!(
        "logins to {} accounts failed from many sources within a day, and to {} succeeded",
        seen.realm_day.unresolved(),
        seen.realm_day.succeeded
    );
    let candidates = [
        Some(origin(Subject::Source, seen.source, 1.0, "")),
        Some(many),
        Some(origin(Subject::Source, seen.source_day, DAY, " within a day")),
        unproven.then(|| origin(Subject::Network, seen.network, NETWORK, "")),
        unproven.then(|| (Subject::All, realm_times(seen, limits), all)),
        unproven.then(|| (Subject::All, realm_day_times(seen, limits), all_day)),
    ];
    let most = candidates.into_iter().flatten().max_by(|one, other| one.1.total_cmp(&other.1));
    let (subject, times, detail) = most.filter(|(_, times, _)| *times >= 1.0)?;
    Some(Finding { pattern: Pattern::Stuffing, subject, times, detail })
}

/// One password on many accounts. Among many users who fail, some fail with the same common password.
fn spraying(seen: &Seen, limits: &LoginLimits) -> Option<Finding> {
    let common = 0.05 * f64::from(seen.realm.unresolved());
    let times = ratio(seen.password, f64::from(limits.source_accounts) + common);
    let detail = || format!("one password failed for {} accounts", seen.password);
    (times >= 1.0).then(|| Finding { pattern: Pattern::Spraying, subject: Subject::Password, times, detail: detail() })
}

/// How far the failures of an account, within the window and within a day, are beyond their thresholds; an attack from 1 on.
pub(crate) fn attack_times(window: Target, day: Target, limits: &LoginLimits) -> f64 {
    target_times(window, 1.0, limits).max(target_times(day, DAY, limits))
}

fn target_times(target: Target, factor: f64, limits: &LoginLimits) -> f64 {
    let sources = ratio(target.sources, factor * f64::from(limits.account_sources));
    sources.min(ratio(target.tries, factor * f64::from(limits.account_failures)))
}

/// Many failures of one account from many sources.
pub(crate) fn account_attack(seen: &Seen, limits: &LoginLimits) -> Option<Finding> {
    let (window, day) = (target_times(seen.account, 1.0, limits), target_times(seen.account_day, DAY, limits));
    let (times, of, span) =
        if window >= day { (window, seen.account, "") } else { (day, seen.account_day, " within a day") };
    let whom = if seen.is_hidden { "with a hidden user" } else { "to an account" };
    let detail = || format!("{} different logins {whom} failed from {} sources{span}", of.tries, of.sources);
    let subject = Subject::Account;
    (times >= 1.0).then(|| Finding { pattern: Pattern::AccountAttack, subject, times, detail: detail() })
}

fn ratio(count: u32, threshold: f64) -> f64 {
    f64::from(count) / threshold.max(1.0)
}
