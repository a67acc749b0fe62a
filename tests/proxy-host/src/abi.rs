//! The ABI's numbers and encodings.

use crate::traffic::Headers;

/// The most pairs of a header map that the gateway hands out.
const MAX_PAIRS: usize = 1024;
/// The most bytes of a header map that the gateway hands out.
const MAX_PAIRS_BYTES: usize = 1 << 20;

/// What a hostcall answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    Ok = 0,
    NotFound = 1,
    BadArgument = 2,
    ParseFailure = 4,
    InvalidMemory = 6,
    Empty = 7,
    CasMismatch = 8,
    InternalFailure = 10,
}

/// Why a hostcall did not do its work: an answer for the filter, or its end.
#[derive(Debug)]
pub(crate) enum Refusal {
    Status(Status),
    Trap(wasmtime::Error),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<wasmtime::Error> for Refusal {
    fn from(error: wasmtime::Error) -> Self {
        Self::Trap(error)
    }
}

pub(crate) type Answer<T = ()> = Result<T, Refusal>;

/// What the filter sees of an answer.
pub(crate) fn status(answer: Answer) -> wasmtime::Result<i32> {
    match answer {
        Ok(()) => Ok(Status::Ok as i32),
        Err(Refusal::Status(status)) => Ok(status as i32),
        Err(Refusal::Trap(error)) => Err(error),
    }
}

/// Callback results.
pub(crate) const PAUSE: u32 = 1;

/// Buffers by number.
pub(crate) mod buffer {
    pub(crate) const REQUEST_BODY: u32 = 0;
    pub(crate) const RESPONSE_BODY: u32 = 1;
    pub(crate) const HTTP_CALL_BODY: u32 = 4;
    pub(crate) const GRPC_MESSAGE: u32 = 5;
    pub(crate) const VM_CONFIGURATION: u32 = 6;
    pub(crate) const PLUGIN_CONFIGURATION: u32 = 7;
}

/// A pairs map as the ABI encodes it; `None` where it is larger than the gateway hands out.
pub(crate) fn encode_pairs(pairs: &Headers) -> Option<Vec<u8>> {
    if pairs.len() > MAX_PAIRS {
        return None;
    }
    let length = |bytes: usize| u32::try_from(bytes).ok().map(u32::to_le_bytes);
    let mut out = length(pairs.len())?.to_vec();
    for (name, value) in pairs {
        out.extend_from_slice(&length(name.len())?);
        out.extend_from_slice(&length(value.len())?);
    }
    for part in pairs.iter().flat_map(|(name, value)| [name, value]) {
        out.extend_from_slice(part);
        out.push(0);
    }
    (out.len() <= MAX_PAIRS_BYTES).then_some(out)
}

/// Reads a pairs map; nothing at all is an empty one.
pub(crate) fn decode_pairs(bytes: &[u8]) -> Option<Headers> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    let (lengths, mut rest) = rest.split_at_checked(count.checked_mul(8)?)?;
    let mut part = |length: &[u8]| {
        let length = usize::try_from(u32::from_le_bytes(*length.first_chunk::<4>()?)).ok()?;
        let (part, behind) = rest.split_at_checked(length)?;
        rest = behind.get(1..)?;
        Some(part.to_vec())
    };
    let mut pairs = Vec::with_capacity(count);
    for pair in lengths.chunks_exact(8) {
        pairs.push((part(&pair[..4])?, part(&pair[4..])?));
    }
    Some(pairs)
}
