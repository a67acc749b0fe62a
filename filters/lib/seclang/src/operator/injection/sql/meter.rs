//! What reading a value may cost.

/// What a token costs besides its bytes.
pub(super) const TOKEN_COST: usize = 32;

/// Counts the bytes that are read, and a fixed price for each token, up to a limit.
#[derive(Debug)]
pub(super) struct Meter {
    left: usize,
    limit: usize,
}

impl Meter {
    pub(super) fn new(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    /// Charges for bytes; `false` if the limit is reached.
    pub(super) fn charge(&mut self, bytes: usize) -> bool {
        self.left = self.left.saturating_sub(bytes);
        self.left > 0
    }

    /// Charges for a token; `false` if the limit is reached.
    pub(super) fn charge_token(&mut self) -> bool {
        self.charge(TOKEN_COST)
    }

    /// Whether the limit was reached.
    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// What was charged so far.
    pub(super) fn spent(&self) -> usize {
        self.limit - self.left
    }
}
