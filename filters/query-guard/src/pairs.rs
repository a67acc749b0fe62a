//! Queries and forms, and the parts of a GraphQL request in them.

/// The parts of a GraphQL request.
pub(crate) const PARTS: &[&str] = &["query", "operationName", "variables", "extensions"];

/// What a query or a form has of a GraphQL request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// It has parts, however they are written.
    pub(crate) any: bool,
    /// It has parts that some servers find and others do not.
    pub(crate) odd: bool,
}

impl Parts {
    /// Looks for the parts in the ways that servers do. Some split at `;` as well. Some (PHP, qs) read `+query`, `query[]` and `query%00x`
    /// as `query`. Some find names in any case.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut found = Self::default();
        for part in text.split(|byte| *byte == b'&') {
            let plain = is_part(&split(part).0);
            for (place, piece) in part.split(|byte| *byte == b';').enumerate() {
                let like = is_like_part(&split(piece).0);
                found.any |= like;
                found.odd |= like && !(plain && place == 0);
            }
        }
        found
    }
}

/// The pairs of a query or a form, decoded.
pub(crate) fn pairs(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    text.split(|byte| *byte == b'&').filter(|part| !part.is_empty()).map(split).collect()
}

/// A pair, decoded.
fn split(part: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let at = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
    (decoded(part.get(..at).unwrap_or_default()), decoded(part.get(at + 1..).unwrap_or_default()))
}

/// Whether a parameter is a part of a GraphQL request.
fn is_part(name: &[u8]) -> bool {
    PARTS.iter().any(|part| part.as_bytes() == name)
}

/// Whether some server takes a parameter for a part of a GraphQL request.
fn is_like_part(name: &[u8]) -> bool {
    PARTS.iter().any(|part| names::equal(bare(name), part.as_bytes()))
}

/// A name of a parameter, decoded, without what some servers leave out of it.
fn bare(name: &[u8]) -> &[u8] {
    let leading = name.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r' | b'[' | b']')).count();
    let name = name.get(leading..).unwrap_or_default();
    name.split(|byte| matches!(byte, 0 | b'[' | b']')).next().unwrap_or_default()
}

/// Whether some server finds one of these parameters in a query or a form.
pub(crate) fn has_any(text: &[u8], known: &[&str]) -> bool {
    let is_known = |name: &[u8]| known.iter().any(|known| names::equal(bare(name), known.as_bytes()));
    text.split(|byte| matches!(byte, b'&' | b';')).any(|piece| is_known(&split(piece).0))
}

/// The names, as [`bare`] ones, of the parameters that some server finds with a value in a query or a form.
pub(crate) fn given(text: &[u8]) -> Vec<Vec<u8>> {
    let parts = text.split(|byte| *byte == b'&');
    // Some servers split at `;` as well. The first piece has the name of the whole.
    let pieces = parts.flat_map(|part| std::iter::once(part).chain(part.split(|byte| *byte == b';').skip(1)));
    pieces.map(split).filter(|(_, value)| !value.is_empty()).map(|(name, _)| bare(&name).to_vec()).collect()
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let digit = |place: usize| text.get(place).and_then(|digit| char::from(*digit).to_digit(16));
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 3;
            }
            (b'+', ..) => {
                out.push(b' ');
                at += 1;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_every_spelling() {
        let found = |text: &str| {
            let found = Parts::of(text.as_bytes());
            (found.any, found.odd)
        };
        for text in ["query=1", "a=1&%71uery=2", "operationName=A&x", "variables", "query=a;b=1", "query=%7Ba%7D;"] {
            assert_eq!(found(text), (true, false), "{text}");
        }
        for text in [
            "Query=1",
            "query=1&OPERATIONNAME=A",
            "variable%C5%BF=1",
            "+query=1",
            "%0a%20query=1",
            "[query=1",
            "]query=1",
            "query[]=1",
            "query%5B0%5D=1",
            "query]=1",
            "query%00x=1",
            "a=1;query=2",
            "query=1;query=2",
            ";query=1",
            "query;x=1",
            "a;b;Variables[a]=1",
        ] {
            assert_eq!(found(text), (true, true), "{text}");
        }
        for text in [
            "",
            "&;&",
            "a=1;b=2",
            "a=query;b",
            "q=x%3Bquery=1",
            "queries=1",
            "myquery=1",
            "query_id=1",
            "query%20=1",
            "a[query]=1",
            "%00query=1",
            "note=some+words;+more=words",
        ] {
            assert_eq!(found(text), (false, false), "{text}");
        }
    }
}
