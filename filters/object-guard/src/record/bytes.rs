//! Numbers in bytes, little endian.

/// Appends numbers.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

/// Takes numbers off; `None` at the end of the bytes.
pub(crate) struct Reader<'b>(&'b [u8]);

impl Writer {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(crate) fn u16(&mut self, number: u16) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Bytes with their number in front.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.u16(u16::try_from(bytes.len()).unwrap_or(u16::MAX));
        self.0.extend_from_slice(bytes.get(..usize::from(u16::MAX)).unwrap_or(bytes));
    }

    pub(crate) fn end(self) -> Vec<u8> {
        self.0
    }
}

impl<'b> Reader<'b> {
    pub(crate) fn of(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = usize::from(self.u16()?);
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}
