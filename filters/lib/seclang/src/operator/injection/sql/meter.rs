//! Meters the cost of reading a value.

/// The steps for a token besides its bytes.
pub(super) const TOKEN_COST: usize = 32;

/// Units of work for each reading, each byte that is read, each token, each time that tokens are folded or found to stay,
/// and each token after which it is looked up whether another reading was in this state.
const READING_UNITS: u64 = 600;
const BYTE_UNITS: u64 = 1;
const TOKEN_UNITS: u64 = 180;
const FOLD_UNITS: u64 = 150;
const STATE_UNITS: u64 = 230;

/// Units for each quote at which a window could begin.
const QUOTE_UNITS: u64 = 210;

/// Counts the bytes that are read, and a fixed price for each token, up to a limit; and the units of work of all that is
/// done with them, up to another.
#[derive(Debug)]
pub(super) struct Meter {
    left: usize,
    limit: usize,
    units: u64,
    allowed: u64,
    token_units: u64,
}

impl Meter {
    /// A meter with limits on steps and units of work.
    pub(super) fn new(steps: usize, units: u64) -> Self {
        Self { left: steps, limit: steps, units: 0, allowed: units, token_units: TOKEN_UNITS }
    }

    /// For readings that look their states up.
    pub(super) fn with_states(self) -> Self {
        Self { token_units: TOKEN_UNITS + STATE_UNITS, ..self }
    }

    /// Without limits.
    pub(super) fn endless() -> Self {
        Self::new(usize::MAX, u64::MAX)
    }

    /// Charges for the beginning of a reading.
    pub(super) fn charge_reading(&mut self) {
        self.work(READING_UNITS);
    }

    /// Charges for a quote whose continuation is checked.
    pub(super) fn charge_quote(&mut self) {
        self.work(QUOTE_UNITS);
    }

    /// Charges for bytes; `false` if a limit is reached.
    pub(super) fn charge(&mut self, bytes: usize) -> bool {
        self.left = self.left.saturating_sub(bytes);
        self.work(u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(BYTE_UNITS))
    }

    /// Charges for a token; `false` if a limit is reached.
    pub(super) fn charge_token(&mut self) -> bool {
        self.left = self.left.saturating_sub(TOKEN_COST);
        self.work(self.token_units)
    }

    /// Charges for folding once; `false` if a limit is reached.
    pub(super) fn charge_fold(&mut self) -> bool {
        self.work(FOLD_UNITS)
    }

    fn work(&mut self, units: u64) -> bool {
        self.units = self.units.saturating_add(units);
        if self.units >= self.allowed {
            self.left = 0;
        }
        self.left > 0
    }

    /// Whether a limit was reached.
    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The steps that were charged so far. All there were if the limit of work was reached.
    pub(super) fn spent(&self) -> usize {
        self.limit - self.left
    }

    /// The units of work that were charged so far.
    pub(super) fn units(&self) -> u64 {
        self.units
    }
}
