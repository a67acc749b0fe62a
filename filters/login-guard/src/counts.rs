//! What is counted of logins, over all workers and all nodes.
//!
//! Sets have pseudonyms of accounts, sources and passwords as members, so that a client that repeats one request counts once,
//! wherever its requests arrive.

use exchange::Host;
use exchange::shared_counts::{CappedSet, Membership, Window};
use snapshot::content_hash;

use crate::attempt::Attempt;
use crate::patterns::attack_times;
use crate::pseudonym::Pseudonym;
use crate::{EndpointKind, LoginLimits};

/// The slices of a window: a count stays for up to a tenth of the window longer.
const SLICES: u8 = 10;
/// The most members of the sets of a source and of a password.
const WIDE: u16 = 256;
/// The most members of the sets of an account.
const NARROW: u16 = 64;
/// From how many members on every node has a set.
const EVERYWHERE: u32 = 3;
const DAY: u64 = 86_400_000;
/// From how many networks on a value that was beside another one in logins that succeeded within a day is no account: it is a button of
/// the form, or the company of the user.
const SHARED: u32 = 32;

/// What a set or a count is of; a byte of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Accounts of failed logins of a source.
    Failed = 0,
    /// Those of them that it has logged in to since.
    Resolved = 1,
    /// Accounts that a source has logged in to.
    Succeeded = 2,
    /// Different failed logins of a source.
    Tries = 3,
    /// Sources of failed logins to an account.
    Sources = 4,
    /// Accounts that a password has failed for.
    Password = 5,
    /// Accounts that a suspicious source has logged in to for the first time.
    Taken = 6,
    /// Logins to an account from a source.
    Known = 7,
    /// Users that were named beside others where a source has logged in.
    Named = 8,
    /// The networks of successful logins that had a value beside others.
    Shared = 9,
    /// Successful logins that named the same users in the same way.
    Established = 10,
}

/// The groups of counts of a guard.
pub(crate) struct Counts {
    wide: CappedSet,
    wide_day: CappedSet,
    narrow: CappedSet,
    narrow_day: CappedSet,
    sums: Window,
    sums_day: Window,
    known: Window,
    realm: [u8; 8],
}

/// The accounts of a source or a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// With failed logins.
    pub(crate) failed: u32,
    /// Those of them that it has logged in to since.
    pub(crate) resolved: u32,
    /// That it has logged in to.
    pub(crate) succeeded: u32,
    /// Different failed logins: pairs of an account and a password. Of a source within the window alone.
    pub(crate) tries: u32,
}

/// The failed logins to an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Their sources.
    pub(crate) sources: u32,
    /// Different ones: pairs of a source and a password.
    pub(crate) tries: u32,
}

/// The pairs of an account and a source of all logins together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Realm {
    /// With failed logins.
    pub(crate) failed: u32,
    /// Those of them that have succeeded since.
    pub(crate) resolved: u32,
    /// With successful logins.
    pub(crate) succeeded: u32,
}

/// What is known when a login is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) source: Origin,
    pub(crate) source_day: Origin,
    pub(crate) network: Origin,
    pub(crate) account: Target,
    pub(crate) account_day: Target,
    /// The account that these are of: of several the one that is attacked most.
    pub(crate) attacked: Pseudonym,
    /// It stands for all that requests hide.
    pub(crate) is_hidden: bool,
    /// The accounts that the password has failed for; of several passwords the most.
    pub(crate) password: u32,
    /// That password.
    pub(crate) sprayed: Pseudonym,
    pub(crate) realm: Realm,
    pub(crate) realm_day: Realm,
    /// The source, or its network, has logged in to the account within the last 30 days.
    pub(crate) known: bool,
    /// A login of this source to this account has failed, and none has succeeded since.
    pub(crate) failed_here: bool,
}

impl Origin {
    /// Accounts whose latest login failed.
    pub(crate) fn unresolved(self) -> u32 {
        self.failed.saturating_sub(self.resolved)
    }
}

impl Seen {
    /// Accounts other than this one whose latest login from this source failed.
    pub(crate) fn others(&self) -> u32 {
        self.source.unresolved().saturating_sub(u32::from(self.failed_here))
    }
}

impl Realm {
    pub(crate) fn unresolved(self) -> u32 {
        self.failed.saturating_sub(self.resolved)
    }
}

impl Counts {
    pub(crate) fn new(window_millis: u64, realm: &str) -> Result<Self, String> {
        let set =
            |name, cap, span| Ok::<_, String>(CappedSet::new(name, cap, span, SLICES)?.everywhere_from(EVERYWHERE));
        Ok(Self {
            wide: set("login.sources", WIDE, window_millis)?,
            wide_day: set("login.sources-day", WIDE, DAY)?,
            narrow: set("login.accounts", NARROW, window_millis)?,
            narrow_day: set("login.accounts-day", NARROW, DAY)?,
            sums: Window::new("login.sums", window_millis, SLICES)?.everywhere_from(1),
            sums_day: Window::new("login.sums-day", DAY, SLICES)?.everywhere_from(1),
            known: Window::new("login.known", 30 * DAY, SLICES)?.everywhere_from(1).max_keys(200_000),
            realm: content_hash(realm.as_bytes()).first_chunk().copied().unwrap_or_default(),
        })
    }

    /// Subscribes the node to the counts of others.
    pub(crate) fn introduce(&self, host: &dyn Host) {
        for set in [&self.wide, &self.wide_day, &self.narrow, &self.narrow_day] {
            let _ = set.contains(host, b"", b"");
        }
        for window in [&self.sums, &self.sums_day, &self.known] {
            let _ = window.get(host, b"");
        }
    }

    /// What is known of a login that has not been counted yet, or of one that has.
    pub(crate) fn look(&self, attempt: &Attempt, limits: &LoginLimits, host: &dyn Host) -> Seen {
        let Attempt { source, network, user, .. } = attempt;
        let of = |set: &CappedSet, what, subject: &[u8], member: &[u8]| {
            let (there, size) = set.contains(host, &self.key(what, attempt, subject), member);
            (there, u32::from(size))
        };
        let origin = |set: &CappedSet, subject: &[u8], with_tries: bool| {
            let failed = of(set, What::Failed, subject, b"").1;
            if failed == 0 {
                // Without a failure nothing else of it counts: so it is with most logins.
                return Origin::default();
            }
            Origin {
                failed,
                resolved: of(set, What::Resolved, subject, b"").1,
                succeeded: of(set, What::Succeeded, subject, b"").1,
                tries: if with_tries { of(set, What::Tries, subject, b"").1 } else { 0 },
            }
        };
        let target = |set: &CappedSet, account: &Pseudonym| Target {
            sources: of(set, What::Sources, account, b"").1,
            tries: of(set, What::Tries, account, b"").1,
        };
        let mut attacked = (Target::default(), Target::default(), *user);
        for account in &attempt.accounts {
            let (window, day) = (target(&self.narrow, account), target(&self.narrow_day, account));
            if attack_times(window, day, limits) > attack_times(attacked.0, attacked.1, limits) {
                attacked = (window, day, *account);
            }
        }
        let (account, account_day, attacked) = attacked;
        let failed_for = |password: &Pseudonym| (of(&self.wide, What::Password, password, b"").1, *password);
        let (password, sprayed) = attempt.passwords.iter().map(failed_for).max().unwrap_or_default();
        let failed_here =
            of(&self.wide, What::Failed, source, user).0 && !of(&self.wide, What::Resolved, source, user).0;
        Seen {
            source: origin(&self.wide, source, true),
            source_day: origin(&self.wide_day, source, false),
            network: origin(&self.wide, network, false),
            account,
            account_day,
            attacked,
            is_hidden: attempt.hidden == Some(attacked),
            password,
            sprayed,
            realm: self.realm(&self.sums, attempt, host),
            realm_day: self.realm(&self.sums_day, attempt, host),
            known: self.is_known(attempt, host),
            failed_here,
        }
    }

    /// Counts a failed login. While `alarm` is on, the day does not learn from it what is usual. Users who are `known` do not add to an
    /// attack from many sources: they fail together if the backend has failed.
    pub(crate) fn failed(&self, attempt: &Attempt, (known, alarm): (bool, bool), host: &dyn Host) {
        let Attempt { source, network, user, password, .. } = attempt;
        let try_of = |subject: &[u8]| [subject, password.as_ref().map_or(&b""[..], |password| password)].concat();
        let key = |what, subject: &[u8]| self.key(what, attempt, subject);
        let first = self.wide.insert(host, &key(What::Failed, source), user).membership == Membership::Added;
        self.wide.insert(host, &key(What::Tries, source), &try_of(user));
        self.wide.insert(host, &key(What::Failed, network), user);
        self.wide_day.insert(host, &key(What::Failed, source), user);
        for account in &attempt.accounts {
            for set in [&self.narrow, &self.narrow_day] {
                set.insert(host, &key(What::Sources, account), source);
                set.insert(host, &key(What::Tries, account), &try_of(source));
            }
        }
        for password in &attempt.passwords {
            self.wide.insert(host, &key(What::Password, password), user);
        }
        if first && !known {
            self.sum(What::Failed, attempt, alarm, host);
        }
    }

    /// Counts a successful login.
    pub(crate) fn succeeded(&self, attempt: &Attempt, (known, alarm): (bool, bool), host: &dyn Host) {
        let Attempt { source, network, user, .. } = attempt;
        let key = |what, subject: &[u8]| self.key(what, attempt, subject);
        for (set, subject, counts) in
            [(&self.wide, source, true), (&self.wide, network, false), (&self.wide_day, source, false)]
        {
            if set.contains(host, &key(What::Failed, subject), user).0 {
                // The two are compared by their numbers, so they have to expire together.
                set.insert(host, &key(What::Failed, subject), user);
                let resolved = set.insert(host, &key(What::Resolved, subject), user).membership;
                if counts && !known && resolved == Membership::Added {
                    self.sum(What::Resolved, attempt, alarm, host);
                }
            }
            if self.is_another(set, subject, attempt, host) && counts {
                self.sum(What::Succeeded, attempt, alarm, host);
            }
        }
        for subject in [source, network] {
            self.known.add(host, &self.pair(attempt, subject, user), 1);
        }
        for value in attempt.users.iter().chain(&attempt.hidden).chain(&attempt.several_passwords) {
            self.narrow_day.insert(host, &key(What::Shared, value), network);
        }
        if !attempt.users.is_empty() {
            self.known.add(host, &key(What::Established, user), 1);
        }
    }

    /// Notes that a login with a coded body, which hides its user, was answered as one that succeeded, also where nothing else says that
    /// it did: an application whose clients compress what they send hides nothing.
    pub(crate) fn accepted(&self, attempt: &Attempt, host: &dyn Host) {
        if let Some(hidden) = &attempt.hidden {
            self.narrow_day.insert(host, &self.key(What::Shared, attempt, hidden), &attempt.network);
        }
    }

    /// Notes the account that a source, or a network, has logged in to; whether it is another one than those before. A request that
    /// names several users has logged in to one of them, so with one that was named before it is none: decoys make no room for failures.
    fn is_another(&self, set: &CappedSet, subject: &[u8], attempt: &Attempt, host: &dyn Host) -> bool {
        let key = |what| self.key(what, attempt, subject);
        let mut before = false;
        for name in &attempt.named {
            before |= set.contains(host, &key(What::Succeeded), name).0;
            before |= set.insert(host, &key(What::Named), name).membership == Membership::Known;
        }
        !before && set.insert(host, &key(What::Succeeded), &attempt.user).membership == Membership::Added
    }

    /// Decides which of several users are accounts that a login counts for, and which of several passwords are passwords.
    ///
    /// Each of them is, but for values that many logins have beside another one ([`SHARED`]). A request that names its users as one that
    /// has succeeded before is what a form of the site sends, and counts for all of them together alone.
    pub(crate) fn tell_apart(&self, attempt: &mut Attempt, host: &dyn Host) {
        let counts = |value: &&Pseudonym| {
            let (_, networks) = self.narrow_day.contains(host, &self.key(What::Shared, attempt, *value), b"");
            u32::from(networks) < SHARED
        };
        let named: Vec<Pseudonym> = attempt.users.iter().chain(&attempt.hidden).filter(counts).copied().collect();
        let several = attempt.several_passwords.iter().filter(counts).copied().collect::<Vec<_>>();
        let is_established =
            |user: &Pseudonym| self.known.get(host, &self.key(What::Established, attempt, user)).total() > 0;
        if !named.is_empty() && ![attempt.user, attempt.user_before].iter().any(is_established) {
            attempt.accounts.extend(&named);
        }
        attempt.passwords.extend(several);
        attempt.named = named;
    }

    /// Notes that a suspicious source has logged in to an account for the first time; how many such accounts there are, of the source
    /// and of all.
    pub(crate) fn taken(&self, attempt: &Attempt, host: &dyn Host) -> (u32, u32) {
        let size = |subject: &[u8]| {
            u32::from(self.wide.insert(host, &self.key(What::Taken, attempt, subject), &attempt.user).size)
        };
        (size(&attempt.source), size(b"all"))
    }

    fn sum(&self, what: What, attempt: &Attempt, alarm: bool, host: &dyn Host) {
        let key = self.key(what, attempt, b"all");
        self.sums.add(host, &key, 1);
        if !alarm {
            self.sums_day.add(host, &key, 1);
        }
    }

    fn realm(&self, sums: &Window, attempt: &Attempt, host: &dyn Host) -> Realm {
        let of = |what| sums.get(host, &self.key(what, attempt, b"all")).total();
        Realm { failed: of(What::Failed), resolved: of(What::Resolved), succeeded: of(What::Succeeded) }
    }

    fn is_known(&self, attempt: &Attempt, host: &dyn Host) -> bool {
        let pairs = [&attempt.source, &attempt.network]
            .into_iter()
            .flat_map(|subject| [&attempt.user, &attempt.user_before].map(|user| self.pair(attempt, subject, user)));
        pairs.into_iter().any(|pair| self.known.get(host, &pair).total() > 0)
    }

    fn pair(&self, attempt: &Attempt, subject: &[u8], user: &[u8]) -> Vec<u8> {
        self.key(What::Known, attempt, &[subject, b"\0", user].concat())
    }

    fn key(&self, what: What, attempt: &Attempt, subject: &[u8]) -> Vec<u8> {
        let kind = match attempt.kind {
            EndpointKind::Login => 0,
            EndpointKind::Registration => 1,
            EndpointKind::Reset => 2,
        };
        [&[what as u8, kind], self.realm.as_slice(), subject].concat()
    }
}
