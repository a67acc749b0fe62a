//! A body, or what was buffered of it.

/// The bytes of a body that were buffered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Body<'a> {
    /// The bytes from its beginning.
    pub bytes: &'a [u8],
    /// Nothing follows; false where buffering stopped at the limit.
    pub complete: bool,
}

impl Body<'_> {
    /// At most `limit` bytes of it; where that leaves some out, it is not complete any more.
    #[must_use]
    pub fn prefix(self, limit: usize) -> Self {
        match self.bytes.get(..limit) {
            Some(bytes) if bytes.len() < self.bytes.len() => Self { bytes, complete: false },
            _ => self,
        }
    }
}
