//! From a file to its decompressed bytes.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use crate::recording::Meter;

/// How much of a file's beginning is looked at.
const HEAD: usize = 8 << 10;

/// A file's bytes, decompressed, and a copy of the first of them.
pub(crate) struct Source {
    /// At most 8 KiB; they are in `bytes` as well.
    pub(crate) head: Vec<u8>,
    /// All of it.
    pub(crate) bytes: Box<dyn BufRead + Send>,
}

impl Source {
    /// What `input` has; `meter` counts what is read of it, and at its end what of `length` bytes was not read.
    ///
    /// # Errors
    ///
    /// The beginning cannot be read.
    pub(crate) fn new(input: impl Read + Send + 'static, meter: Meter, length: u64) -> io::Result<Self> {
        Self::until(input, meter, length, |_| false)
    }

    /// [`Source::new`] with a shorter head: nothing is waited for once it is long enough.
    ///
    /// # Errors
    ///
    /// The beginning cannot be read.
    pub(crate) fn until(
        input: impl Read + Send + 'static,
        meter: Meter,
        length: u64,
        enough: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Self> {
        let mut packed = BufReader::with_capacity(64 << 10, Counted { input, meter, left: length });
        let magic = beginning(&mut packed, 2, |_| false)?;
        let is_gzip = magic == [0x1f, 0x8b];
        let whole = Cursor::new(magic).chain(packed);
        if !is_gzip {
            return Self::with_head(whole, enough);
        }
        Self::with_head(BufReader::with_capacity(64 << 10, MultiGzDecoder::new(whole)), enough)
    }

    fn with_head(mut bytes: impl BufRead + Send + 'static, enough: impl Fn(&[u8]) -> bool) -> io::Result<Self> {
        let head = beginning(&mut bytes, HEAD, enough)?;
        Ok(Self { head: head.clone(), bytes: Box::new(Cursor::new(head).chain(bytes)) })
    }
}

/// Up to `count` bytes; fewer where they are enough, at the end, or before a fault, which then comes again when reading
/// goes on.
fn beginning(input: &mut impl BufRead, count: usize, enough: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while head.len() < count && !enough(&head) {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) if !head.is_empty() => break,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            break;
        }
        let taken = chunk.len().min(count - head.len());
        head.extend_from_slice(&chunk[..taken]);
        input.consume(taken);
    }
    Ok(head)
}

/// Counts what is read, and at its end what was left.
struct Counted<R> {
    input: R,
    meter: Meter,
    left: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        let bytes = u64::try_from(count).unwrap_or(u64::MAX);
        self.meter.read(bytes);
        self.left = self.left.saturating_sub(bytes);
        Ok(count)
    }
}

impl<R> Drop for Counted<R> {
    fn drop(&mut self) {
        self.meter.read(self.left);
    }
}
