//! What a pipeline does not let through.

use crate::row::{Effect, Row};
use crate::totals::Change;

/// What makes a request a failure. One that the filter died of is a failure in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailOn {
    /// That it was blocked.
    pub blocked: bool,
    /// That the client gets something else than it did: a status that is not the recorded one, or its answer later. Where
    /// no status was recorded, that it was blocked.
    pub changed: bool,
}

impl FailOn {
    /// Why a request is a failure, in a word; `None` where it is not.
    #[must_use]
    pub fn failure(self, row: &Row) -> Option<&'static str> {
        let blocked = row.effect == Effect::Blocked;
        let changed =
            Change::of(row).is_some() || row.effect == Effect::Slowed || (blocked && row.recorded_status.is_none());
        match row.effect {
            Effect::Failed => Some("failed"),
            _ if self.blocked && blocked => Some("blocked"),
            _ if self.changed && changed => Some("changed"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_depends_on_what_was_asked() {
        let row = |effect, status, recorded_status| Row { effect, status, recorded_status, ..Row::default() };
        let failure = |blocked, changed, row: &Row| FailOn { blocked, changed }.failure(row);
        let table = [
            (row(Effect::Passed, 200, Some(200)), None, None),
            (row(Effect::Passed, 200, Some(403)), None, Some("changed")),
            (row(Effect::Observed, 200, None), None, None),
            (row(Effect::Slowed, 200, Some(200)), None, Some("changed")),
            (row(Effect::Blocked, 403, Some(200)), Some("blocked"), Some("changed")),
            (row(Effect::Blocked, 403, Some(403)), Some("blocked"), None),
            (row(Effect::Blocked, 403, None), Some("blocked"), Some("changed")),
            (row(Effect::Failed, 503, Some(503)), Some("failed"), Some("failed")),
        ];
        for (row, blocked, changed) in table {
            assert_eq!((failure(true, false, &row), failure(false, true, &row)), (blocked, changed), "{row:?}");
            let dies = (row.effect == Effect::Failed).then_some("failed");
            assert_eq!(failure(false, false, &row), dies);
        }
    }
}
