//! One list: how it is fetched, what is known of it, and when it is due.

use feeds::{AddressSet, Format};
use lists::{Before, Failure, Fetched, ListFetch, ListSource, Snapshot, Validators};
use serde::Serialize;

use crate::control::fetching::{LIFETIME, Schedule};

/// The bytes of an answer, and the entries of a list, at most: the longest known one has some thousand.
const MAX_ANSWER: usize = 4 << 20;
const MAX_ENTRIES: usize = 10_000;
/// What a list may cover: a network /12 of IPv4, and a /32 of IPv6 in networks /64. More are no crawlers: an attacker
/// that answers in the publisher's place could vouch for a whole provider.
const MAX_V4: u64 = 1 << 20;
const MAX_V6: u128 = 1 << 32;
/// How often a list is fetched, in milliseconds.
const INTERVAL: u64 = 86_400_000;

/// A list of addresses that the owner of a bot publishes.
#[derive(Debug)]
pub(super) struct PublishedList {
    /// The first bot that names it.
    pub(super) bot: String,
    /// The last list that was taken.
    pub(super) current: Option<Snapshot>,
    fetch: ListFetch,
    schedule: Schedule,
}

/// A list as the console shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in super::super) struct ListShown {
    /// Where it is.
    pub(in super::super) url: String,
    /// The first bot that names it.
    pub(in super::super) bot: String,
    /// Gateways verify by it.
    pub(in super::super) in_force: bool,
    /// The ranges of the list in force.
    pub(in super::super) ranges: u64,
    /// When it was fetched or found unchanged, in milliseconds since 1970.
    pub(in super::super) fetched_at: Option<u64>,
    /// Why the last fetch failed.
    pub(in super::super) error: Option<String>,
}

/// A fetch that begins.
pub(super) struct Start {
    pub(super) fetch: ListFetch,
    pub(super) validators: Validators,
    pub(super) before: Before,
}

impl PublishedList {
    /// A list that was kept, or `None` for one of which nothing is known.
    ///
    /// # Errors
    /// Why it cannot be fetched, for people.
    pub(super) fn new(url: &str, bot: &str, kept: Option<Snapshot>, now: u64) -> Result<PublishedList, String> {
        let source = ListSource::public(url, Format::Prefixes, MAX_ANSWER, MAX_ENTRIES);
        let fetch = ListFetch::new(source, "published addresses of a bot")?;
        // A list from the future would count for longer than its publisher has confirmed it.
        let current = kept.filter(|list| list.source == fetch.source && list.fetched_at <= now);
        let schedule = Schedule::new(INTERVAL, current.as_ref().map(|list| list.fetched_at), now);
        Ok(PublishedList { bot: bot.to_owned(), current, fetch, schedule })
    }

    /// Whether it is to be fetched now.
    pub(super) fn must_be_fetched(&mut self, now: u64) -> bool {
        self.schedule.must_be_fetched(now)
    }

    /// When it is fetched next, or ends; `None` while it is being fetched and has no end.
    pub(super) fn next(&self) -> Option<u64> {
        self.schedule.next(self.current.as_ref().map(|list| list.fetched_at))
    }

    /// Begins a fetch. A list that does not count any more is not compared with: otherwise one that has changed much were never taken.
    pub(super) fn start(&mut self, now: u64) -> Start {
        self.schedule.start();
        let current = self.in_force(now);
        let validators = current.map(|list| list.validators.clone()).unwrap_or_default();
        let before = current.map(|list| list.list.bytes.clone());
        Start { fetch: self.fetch.clone(), validators, before }
    }

    /// Ends a fetch; why it failed.
    pub(super) fn ended(&mut self, outcome: Result<Fetched, Failure>, now: u64, random: u32) -> Result<(), String> {
        let taken = outcome.and_then(|fetched| self.take(fetched, now).map_err(Failure::new));
        self.schedule.ended(taken, now, random)
    }

    fn take(&mut self, fetched: Fetched, now: u64) -> Result<(), String> {
        match (fetched, &mut self.current) {
            (Fetched::Unchanged, Some(current)) => {
                current.fetched_at = now;
                Ok(())
            }
            (Fetched::Unchanged, None) => {
                Err("the server says that the list is unchanged, and there is none".to_owned())
            }
            (Fetched::List(list), current) => {
                let addresses = AddressSet::from_bytes(&list.list.bytes).map_err(|error| error.to_string())?;
                let (v4, v6) = (addresses.v4_addresses(), addresses.v6_callers());
                if v4 > MAX_V4 || v6 > MAX_V6 {
                    return Err(format!(
                        "the list covers {v4} addresses of IPv4 and {v6} networks /64 of IPv6, more than any crawler has"
                    ));
                }
                *current = Some(list);
                Ok(())
            }
        }
    }

    /// The list that gateways verify by, if one counts now.
    pub(super) fn in_force(&self, now: u64) -> Option<&Snapshot> {
        self.current.as_ref().filter(|list| list.fetched_at.saturating_add(LIFETIME) > now)
    }

    /// Why the last fetch failed.
    pub(super) fn error(&self) -> Option<&str> {
        self.schedule.error()
    }

    /// It as the console shows it.
    pub(super) fn shown(&self, url: &str, now: u64) -> ListShown {
        let in_force = self.in_force(now);
        ListShown {
            url: url.to_owned(),
            bot: self.bot.clone(),
            in_force: in_force.is_some(),
            ranges: in_force.map_or(0, |list| list.ranges),
            fetched_at: self.current.as_ref().map(|list| list.fetched_at),
            error: self.error().map(str::to_owned),
        }
    }
}
