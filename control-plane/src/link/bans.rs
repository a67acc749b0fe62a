//! Where bans are kept.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use snapshot::{AllowChange, BanChange, BanRequest};

/// What the keeper of bans made of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The ban is live; this is how nodes hold it now (an earlier, longer one may have won).
    Live(BanChange),
    /// There is to be no such ban, for example because the identity is on the allowlist, and there is none; with the reason.
    Refused(String),
}

/// Who asks for bans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker<'a> {
    /// The node of this id; empty where it has not said which it is.
    Node(&'a str),
    /// The control plane itself.
    ControlPlane,
}

/// The keeper of bans. Calls may block: the link makes them on a thread for that, one at a time.
pub trait BanSink: Send + Sync + 'static {
    /// Checks the bans that a node asks for, before any is recorded or announced: which identities it may ban and for how long.
    /// Returns for each, in their order, the ban to record in its place, or why no node may ask for it.
    fn vet(&self, bans: &[BanRequest]) -> Vec<Result<BanRequest, String>> {
        bans.iter().cloned().map(Ok).collect()
    }

    /// Records bans, all or none; a verdict on each, in their order.
    ///
    /// # Errors
    ///
    /// Why they could not be recorded.
    fn put(&self, by: Asker<'_>, bans: &[BanRequest]) -> Result<Vec<Verdict>, String>;

    /// Bans that have come of these: of what is around them, because there are so many of them. Nodes are told.
    ///
    /// # Errors
    ///
    /// Why they could not be recorded.
    fn widen(&self, _live: &[BanChange]) -> Result<Vec<BanChange>, String> {
        Ok(Vec::new())
    }

    /// Lifts a ban; nothing happens where there is none.
    ///
    /// # Errors
    ///
    /// Why that could not be recorded.
    fn lift(&self, key: &str) -> Result<(), String>;

    /// Every ban that ends after `now`, in milliseconds since the Unix epoch; before them, with an end of 0, those that were
    /// lifted and that a node may hold all the same, because it was away.
    ///
    /// # Errors
    ///
    /// Why they could not be read.
    fn list(&self, now: u64) -> Result<Vec<BanChange>, String>;

    /// The allowlist in the same way.
    ///
    /// # Errors
    ///
    /// Why it could not be read.
    fn allowed(&self, _now: u64) -> Result<Vec<AllowChange>, String> {
        Ok(Vec::new())
    }
}

/// Bans in memory: they are gone when the process ends. For tests and for a control plane that nobody relies on yet.
#[derive(Debug, Default)]
pub struct MemoryBans {
    bans: Mutex<BTreeMap<String, BanChange>>,
}

/// The most bans that [`MemoryBans`] holds; what ends first goes first.
const MAX_BANS: usize = 1_000_000;

impl BanSink for MemoryBans {
    fn put(&self, _by: Asker<'_>, bans: &[BanRequest]) -> Result<Vec<Verdict>, String> {
        let mut held = self.lock();
        Ok(bans.iter().map(|ban| Verdict::Live(put(&mut held, ban))).collect())
    }

    fn lift(&self, key: &str) -> Result<(), String> {
        self.lock().remove(key);
        Ok(())
    }

    fn list(&self, now: u64) -> Result<Vec<BanChange>, String> {
        let mut bans = self.lock();
        bans.retain(|_, ban| ban.until_millis > now);
        Ok(bans.values().cloned().collect())
    }
}

fn put(bans: &mut BTreeMap<String, BanChange>, ban: &BanRequest) -> BanChange {
    if bans.len() >= MAX_BANS && !bans.contains_key(&ban.key) {
        let soonest = bans.values().min_by_key(|held| held.until_millis).map(|held| held.key.clone());
        soonest.and_then(|key| bans.remove(&key));
    }
    let (key, reason) = (ban.key.clone(), ban.reason.clone());
    let change = BanChange { key, until_millis: ban.until_millis, reason, ..BanChange::default() };
    let held = bans.entry(ban.key.clone()).or_insert_with(|| change.clone());
    if held.until_millis < change.until_millis {
        *held = change;
    }
    held.clone()
}

impl MemoryBans {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, BanChange>> {
        self.bans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(until_millis: u64) -> BanRequest {
        BanRequest { key: "ip:192.0.2.1".into(), until_millis, ..BanRequest::default() }
    }

    #[test]
    fn the_longer_ban_wins_and_an_ended_one_is_gone() {
        let bans = MemoryBans::default();
        let verdicts = bans.put(Asker::Node("n"), &[request(200), request(100)]).unwrap();
        assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Live(change) if change.until_millis == 200)));
        assert_eq!(bans.list(199).unwrap().len(), 1);
        assert!(bans.list(200).unwrap().is_empty());
        bans.put(Asker::Node("n"), &[request(300)]).unwrap();
        bans.lift("ip:192.0.2.1").unwrap();
        assert!(bans.list(0).unwrap().is_empty());
    }
}
