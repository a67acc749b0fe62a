//! The bytes of one shard: per entry the expiry (u64), the key's and the value's length (u16 each), key, value; little endian.

use crate::Entry;

/// The longest key and the longest value that an entry may have, in bytes.
pub const MAX_FIELD: usize = 1024;

/// An entry in the bytes of its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored<'a> {
    pub(crate) expires_at: u64,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl Stored<'_> {
    pub(crate) fn to_entry(self) -> Entry {
        Entry { key: self.key.to_vec(), value: self.value.to_vec(), expires_at: self.expires_at }
    }
}

/// Every whole entry; a damaged tail ends the list, since a shard that cannot be read must not stop a request.
pub(crate) fn entries(mut bytes: &[u8]) -> impl Iterator<Item = Stored<'_>> {
    std::iter::from_fn(move || {
        let (entry, rest) = decode_one(bytes)?;
        bytes = rest;
        Some(entry)
    })
}

fn decode_one(bytes: &[u8]) -> Option<(Stored<'_>, &[u8])> {
    let (expires_at, rest) = bytes.split_first_chunk::<8>()?;
    let (key_length, rest) = rest.split_first_chunk::<2>()?;
    let (value_length, rest) = rest.split_first_chunk::<2>()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*key_length)))?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*value_length)))?;
    Some((Stored { expires_at: u64::from_le_bytes(*expires_at), key, value }, rest))
}

pub(crate) fn encode<'a>(entries: impl Iterator<Item = Stored<'a>> + Clone) -> Vec<u8> {
    let size = entries.clone().map(|entry| 12 + entry.key.len() + entry.value.len()).sum();
    let mut bytes = Vec::with_capacity(size);
    for entry in entries {
        let (Ok(key_length), Ok(value_length)) = (u16::try_from(entry.key.len()), u16::try_from(entry.value.len()))
        else {
            continue;
        };
        bytes.extend_from_slice(&entry.expires_at.to_le_bytes());
        bytes.extend_from_slice(&key_length.to_le_bytes());
        bytes.extend_from_slice(&value_length.to_le_bytes());
        bytes.extend_from_slice(entry.key);
        bytes.extend_from_slice(entry.value);
    }
    bytes
}
