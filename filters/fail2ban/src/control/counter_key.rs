//! `counter_key`: texts, and places of a request in `${...}`.

use kit::{FieldProblem, did_you_mean};

use crate::{KeyPart, KeyPlace};

/// The longest key, in bytes.
const MAX_KEY: usize = 512;
/// The most places of a key.
const MAX_PLACES: usize = 16;
/// What stands in front of the name of a header.
const HEADERS: &str = "req.headers.";
/// The places, but for headers.
const PLACES: [(&str, KeyPlace); 9] = [
    ("route.id", KeyPlace::RouteId),
    ("route.name", KeyPlace::RouteName),
    ("req.ip", KeyPlace::Ip),
    ("req.method", KeyPlace::Method),
    ("req.path", KeyPlace::Path),
    ("req.host", KeyPlace::Host),
    ("req.user", KeyPlace::User),
    ("req.apikey", KeyPlace::ApiKey),
    ("req.identity", KeyPlace::Identity),
];

/// Whether callers have different values of a place.
pub(super) fn tells_callers_apart(place: KeyPlace) -> bool {
    use KeyPlace::{ApiKey, Header, Identity, Ip, User};
    matches!(place, Ip | User | ApiKey | Identity | Header)
}

/// The parts of a key.
pub(super) fn read(text: &str) -> Result<Vec<KeyPart>, FieldProblem> {
    let fail = |message: String| FieldProblem::new("/counter_key", message);
    if text.is_empty() || text.len() > MAX_KEY {
        let expected = format!("1 to {MAX_KEY} bytes, such as `${{route.id}}-${{req.ip}}`");
        return Err(fail(format!("the key has {} bytes", text.len())).expected(expected));
    }
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, behind)) = behind.split_once('}') else {
            return Err(fail("a `${` has no `}`".to_owned()).expected(known()));
        };
        literal(before, &mut parts);
        parts.push(place(name.trim()).ok_or_else(|| unknown(name))?);
        rest = behind;
    }
    literal(rest, &mut parts);
    let places = parts.iter().filter(|part| part.place() != KeyPlace::Literal).count();
    if !(1..=MAX_PLACES).contains(&places) {
        return Err(fail(format!("the key has {places} places")).expected(format!("1 to {MAX_PLACES}: {}", known())));
    }
    Ok(parts)
}

fn literal(text: &str, parts: &mut Vec<KeyPart>) {
    if !text.is_empty() {
        parts.push(KeyPart { place: KeyPlace::Literal.into(), text: text.to_owned() });
    }
}

fn place(name: &str) -> Option<KeyPart> {
    if let Some(header) = name.strip_prefix(HEADERS) {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let named = !header.is_empty() && header.bytes().all(token);
        return named.then(|| KeyPart { place: KeyPlace::Header.into(), text: header.to_ascii_lowercase() });
    }
    let (_, place) = PLACES.iter().find(|(known, _)| *known == name)?;
    Some(KeyPart { place: (*place).into(), text: String::new() })
}

fn unknown(name: &str) -> FieldProblem {
    let near = did_you_mean(name, PLACES.iter().map(|(known, _)| *known));
    let hint = near.map(|near| format!(", did you mean `${{{near}}}`?")).unwrap_or_default();
    let message = format!("a request has no place `${{{}}}`{hint}", name.escape_debug());
    FieldProblem::new("/counter_key", message).expected(known())
}

fn known() -> String {
    let places: Vec<String> = PLACES.iter().map(|(known, _)| format!("`${{{known}}}`")).collect();
    format!("{}, `${{{HEADERS}NAME}}`", places.join(", "))
}
