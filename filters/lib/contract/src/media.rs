//! Media types (RFC 9110, section 8.3.1).

use crate::record::MediaRecord;

/// A media type without its parameters, in lower case.
pub(crate) fn essence(text: &[u8]) -> Vec<u8> {
    let essence = text.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().to_ascii_lowercase()
}

/// Whether what has it is JSON (RFC 6839, section 3.1).
pub(crate) fn is_json(essence: &[u8]) -> bool {
    essence == b"application/json" || essence == b"text/json" || essence.ends_with(b"+json")
}

/// The entry that takes a media type: the most exact one. `ranges` are the texts of the entries.
pub(crate) fn find<'r>(essence: &[u8], media: &'r [MediaRecord], ranges: &[&[u8]]) -> Option<&'r MediaRecord> {
    let fit = |range: &[u8]| match range {
        b"*/*" | b"*" => 1,
        range if range == essence => 4,
        range => match range.strip_suffix(b"/*") {
            Some(kind) => usize::from(essence.strip_prefix(kind).is_some_and(|rest| rest.starts_with(b"/"))) * 2,
            // `application/*+json`
            None => match range.split(|byte| *byte == b'*').collect::<Vec<_>>().as_slice() {
                [before, behind] if range.contains(&b'*') => {
                    let long = essence.len() > before.len() + behind.len();
                    usize::from(long && essence.starts_with(before) && essence.ends_with(behind)) * 3
                }
                _ => 0,
            },
        },
    };
    let fits = media.iter().zip(ranges).map(|(entry, range)| (fit(range), entry));
    fits.filter(|(fit, _)| *fit > 0).max_by_key(|(fit, _)| *fit).map(|(_, entry)| entry)
}
