//! Sessions of operators: what is kept of them, and when they end.

/// A session as it is kept: without its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of the token. A plain digest, as for admin keys: 256 random bits are found by no dictionary.
    pub token_sha256: [u8; 32],
    /// The name of the operator.
    pub operator: String,
    /// When it began, in milliseconds since 1970.
    pub created_at_millis: u64,
    /// When it was last used, in milliseconds since 1970; exact to [`SessionLimits::touch_millis`].
    pub seen_at_millis: u64,
}

/// How long sessions live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// A session that is not used for this long has ended. Default 30 minutes.
    pub idle_millis: u64,
    /// A session ends this long after the login, used or not. Default 12 hours.
    pub absolute_millis: u64,
    /// The use of a session is written down when the last note is this old: not every request is a write. Default one
    /// minute.
    pub touch_millis: u64,
    /// Sessions of one operator; a further login ends the one least recently used. Default 10.
    pub per_operator: u32,
}

// === impl SessionLimits ===

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits {
            idle_millis: 30 * 60_000,
            absolute_millis: 12 * 3_600_000,
            touch_millis: 60_000,
            per_operator: 10,
        }
    }
}

// === impl Session ===

impl Session {
    /// When it ends if it is used all the time, in milliseconds since 1970.
    pub fn ends_at(&self, limits: &SessionLimits) -> u64 {
        self.created_at_millis.saturating_add(limits.absolute_millis)
    }

    /// Whether it still holds at `now_millis`.
    pub fn holds(&self, limits: &SessionLimits, now_millis: u64) -> bool {
        now_millis < self.ends_at(limits) && now_millis < self.seen_at_millis.saturating_add(limits.idle_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_those_of_the_documentation() {
        let limits = SessionLimits::default();
        assert_eq!((limits.idle_millis, limits.absolute_millis), (1_800_000, 43_200_000));
        assert_eq!((limits.touch_millis, limits.per_operator), (60_000, 10));
        let session = Session {
            token_sha256: [0; 32],
            operator: String::new(),
            created_at_millis: 0,
            seen_at_millis: 40_000_000,
        };
        assert!(session.holds(&limits, 41_799_999));
        assert!(!session.holds(&limits, 41_800_000), "idle");
        let used = Session { seen_at_millis: 43_199_999, ..session };
        assert!(used.holds(&limits, 43_199_999));
        assert!(!used.holds(&limits, 43_200_000), "over, used or not");
    }
}
