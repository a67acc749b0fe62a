//! The user and the password of a request.

mod form;
mod json;
mod multipart;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exchange::Headers;

/// The longest value that is taken, in bytes; of a longer one the beginning counts.
const MAX_VALUE: usize = 256;

/// What a request says of a user and a password.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: Option<Vec<u8>>,
    pub(crate) password: Option<Vec<u8>>,
}

/// The names of the fields that are read.
pub(crate) struct Fields {
    users: Vec<String>,
    passwords: Vec<String>,
}

impl Fields {
    pub(crate) fn new(users: Vec<String>, passwords: Vec<String>) -> Self {
        Self { users, passwords }
    }

    /// Takes the value of a field if it is one of the names and none was there before.
    fn take(&self, name: &[u8], value: &[u8], found: &mut Credentials) {
        let is = |names: &[String]| names.iter().any(|known| known.as_bytes() == name);
        let target = if is(&self.users) {
            &mut found.user
        } else if is(&self.passwords) {
            &mut found.password
        } else {
            return;
        };
        if target.is_none() && !value.is_empty() {
            *target = Some(value.get(..MAX_VALUE).unwrap_or(value).to_vec());
        }
    }

    /// Reads a body by its content type, or without a known one by how it begins.
    pub(crate) fn of_body(&self, content_type: &[u8], body: &[u8]) -> Credentials {
        let media = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let mut found = Credentials::default();
        let looks_like_json = body.trim_ascii_start().first().is_some_and(|byte| b"{[".contains(byte));
        if ends_with(media, b"json") || (looks_like_json && !ends_with(media, b"form-urlencoded")) {
            json::read(body, self, &mut found);
        } else if media.eq_ignore_ascii_case(b"multipart/form-data") {
            multipart::read(content_type, body, self, &mut found);
        } else {
            form::read(body, self, &mut found);
        }
        found
    }
}

/// The credentials of basic authentication (RFC 7617).
pub(crate) fn of_basic(headers: &Headers) -> Option<Credentials> {
    let (scheme, encoded) = headers.get("authorization")?.split_at_checked(6)?;
    let decoded = STANDARD.decode(encoded.trim_ascii()).ok().filter(|_| scheme.eq_ignore_ascii_case(b"basic "))?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let (user, password) = decoded.split_at_checked(colon)?;
    let taken = |value: &[u8]| Some(value.get(..MAX_VALUE).unwrap_or(value).to_vec()).filter(|value| !value.is_empty());
    Some(Credentials { user: taken(user), password: taken(password.get(1..)?) })
}

/// A user in the form in which it is counted: backends ignore white space around it and its case.
pub(crate) fn normalized(user: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(user) {
        Ok(text) => text.trim().to_lowercase().into_bytes(),
        Err(_) => user.trim_ascii().to_ascii_lowercase(),
    }
}

fn ends_with(media: &[u8], end: &[u8]) -> bool {
    media
        .len()
        .checked_sub(end.len())
        .and_then(|from| media.get(from..))
        .is_some_and(|last| last.eq_ignore_ascii_case(end))
}
