//! One value of shared data, replaced atomically over all workers.

use crate::SharedData;

/// How often a write is tried against other workers before it is given up.
pub(crate) const ATTEMPTS: usize = 16;

/// A token that no value of a gateway has: with it, a write stores only under a key that has no value yet. Gateways number
/// their writes from 1 on.
pub(crate) const ABSENT: u32 = u32::MAX;

/// The result of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edited<R> {
    /// What the last call of the edit returned.
    pub(crate) result: R,
    /// Whether other workers wrote first at every try, so that nothing was stored.
    pub(crate) lost: bool,
}

/// The value under `key`, empty if it is missing, and the token that replaces this value and no later one.
pub(crate) fn read(data: &dyn SharedData, key: &str) -> (Vec<u8>, u32) {
    data.get(key).unwrap_or((Vec::new(), ABSENT))
}

/// Replaces the value under `key` (empty if it is missing) by the one that `change` returns; `None` leaves it as it is.
/// `change` runs again, on the newer value, each time another worker wrote first.
pub(crate) fn edit<R>(
    data: &dyn SharedData,
    key: &str,
    mut change: impl FnMut(&[u8]) -> (R, Option<Vec<u8>>),
) -> Edited<R> {
    let mut tries = 1;
    loop {
        let (before, token) = read(data, key);
        let (result, after) = change(&before);
        let stored = after.is_none_or(|after| data.set(key, &after, Some(token)).is_ok());
        if stored || tries >= ATTEMPTS {
            return Edited { result, lost: !stored };
        }
        tries += 1;
    }
}
