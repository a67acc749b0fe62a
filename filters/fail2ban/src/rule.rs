//! Which failures count, and how many lead to a ban.

use exchange::shared_counts::Window;
use exchange::{Host, IdentityKind, IdentityRef, PathReadings, Request, Scope};
use snapshot::content_hash;

use crate::{Fail2BanRule, StatusRange};

/// The slices of a window. A failure counts for the time of the configuration, and for up to a tenth of it more.
const SLICES: u8 = 10;

/// A set of statuses from 0 to 1023.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Statuses([u64; 16]);

/// The limits of some requests.
pub(crate) struct Rule {
    /// The pattern, and the methods: what the rule is called in keys.
    pub(crate) label: String,
    /// The pattern, for people.
    pub(crate) pattern: String,
    scope: Scope,
    methods: Vec<String>,
    pub(crate) statuses: Statuses,
    pub(crate) max_retry: u32,
    pub(crate) detect_millis: u64,
    pub(crate) ban_millis: u64,
    failures: Window,
    /// How often failures of a key led to a ban on an identity within the window. They are counted anew after each, for that identity.
    bans: Window,
}

impl Rule {
    pub(crate) fn new(rule: Fail2BanRule) -> Result<Self, String> {
        let Fail2BanRule { pattern, methods, statuses, max_retry, detect_millis, ban_millis } = rule;
        let max_retry = max_retry.max(1);
        let patterns: Vec<String> = if pattern.is_empty() { Vec::new() } else { vec![pattern.clone()] };
        Ok(Self {
            label: if pattern.is_empty() { String::new() } else { format!("{} {pattern}", methods.join(",")) },
            scope: Scope::new(&patterns, &[])?,
            pattern,
            methods,
            statuses: Statuses::of(&statuses),
            max_retry,
            detect_millis,
            ban_millis,
            failures: Window::new("fail2ban.failures", detect_millis, SLICES)?.everywhere_from(shared_from(max_retry)),
            bans: Window::new("fail2ban.bans", detect_millis, SLICES)?.everywhere_from(1),
        })
    }

    /// Whether the rule is about a request.
    pub(crate) fn covers(&self, request: &Request, path: &PathReadings<'_>) -> bool {
        // Some backends take methods in any case.
        let is_same = |method: &String| method.as_bytes().eq_ignore_ascii_case(&request.method);
        (self.methods.is_empty() || self.methods.iter().any(is_same)) && self.scope.covers(path)
    }

    /// Whether it is about a request, whatever the backend takes the path for.
    pub(crate) fn surely_covers(&self, path: &PathReadings<'_>) -> bool {
        self.scope.surely_covers(path)
    }

    /// Subscribes the node to the counts of others: a node that has never looked at a count is not sent it.
    pub(crate) fn introduce(&self, host: &dyn Host) {
        let _ = (self.failures.get(host, b""), self.bans.get(host, b""));
    }

    /// Counts a failure of a key; how many there are on all nodes that a ban would be for which counts by `own` ([`banned_by`]).
    ///
    /// A ban uses the failures up for whom it is on. The next request may come with another identity: were they used up for all, each
    /// throw-away identity would take a ban and begin the count of its address anew. So one that was banned is judged by what it has
    /// failed since, and all others by everything that was counted since the last ban on the address.
    pub(crate) fn count(&self, key: &[u8], own: &[u8], host: &dyn Host) -> u32 {
        let since =
            |key: &[u8], ban: Option<(u64, u32)>| self.failures.add(host, &[key, &behind(ban)].concat(), 1).total();
        let all = since(key, self.bans.newest(host, key));
        if own == key {
            return all;
        }
        match self.bans.newest(host, own) {
            None => all,
            ban => since(own, ban),
        }
    }

    /// Notes that failures have led to a ban that counts by `own`: for whom it is on they are used up.
    pub(crate) fn note_ban(&self, own: &[u8], host: &dyn Host) {
        self.bans.add(host, own, 1);
    }
}

/// What the failures behind a ban are counted by beside their key: by the newest one alone. Were it the number of bans within the window,
/// it would go down when the oldest one leaves, to failures that have led to a ban already.
fn behind(ban: Option<(u64, u32)>) -> Vec<u8> {
    match ban {
        None => 0_u32.to_le_bytes().to_vec(),
        Some((slice, bans)) => [slice.to_le_bytes().as_slice(), &bans.to_le_bytes()].concat(),
    }
}

/// What bans on an identity for the failures of a key are counted by: the key itself for an address, and where no one can be banned.
pub(crate) fn banned_by(key: &[u8], banned: Option<&IdentityRef>) -> Vec<u8> {
    match banned.filter(|banned| banned.kind != IdentityKind::Ip) {
        Some(banned) => content_hash(&[key, banned.key().as_bytes()].concat()).to_vec(),
        None => key.to_vec(),
    }
}

/// From which count on every node learns of a key, so that the failure that reaches `max_retry` does so on any of them. Rounded down
/// to a power of two: what differs in it is a group of counts of its own, of which a node has few.
fn shared_from(max_retry: u32) -> u32 {
    let before = max_retry.saturating_sub(1).max(1);
    1 << before.ilog2()
}

// === impl Statuses ===

impl Statuses {
    pub(crate) fn of(ranges: &[StatusRange]) -> Self {
        let mut statuses = Self::default();
        for StatusRange { first, last } in ranges {
            for status in *first..=(*last).min(1023) {
                statuses.insert(status);
            }
        }
        statuses
    }

    fn insert(&mut self, status: u32) {
        if let Some(word) = usize::try_from(status / 64).ok().and_then(|at| self.0.get_mut(at)) {
            *word |= 1 << (status % 64);
        }
    }

    pub(crate) fn contains(self, status: u16) -> bool {
        self.0.get(usize::from(status / 64)).is_some_and(|word| word >> (status % 64) & 1 == 1)
    }

    pub(crate) fn union(self, other: Self) -> Self {
        let mut both = self;
        both.0.iter_mut().zip(other.0).for_each(|(own, other)| *own |= other);
        both
    }
}
