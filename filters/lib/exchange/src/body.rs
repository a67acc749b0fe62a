//! A body, or what was buffered of it.

/// The bytes of a body that were buffered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Body<'a> {
    /// The bytes from its beginning.
    pub bytes: &'a [u8],
    /// Nothing follows; false where buffering stopped at the limit.
    pub complete: bool,
}
