//! The user and the password of a request.
//!
//! Backends differ in which of several values they take, and attackers may send values that only the guard takes for the user. So all
//! values count: the account of a request is made of all that may be its user.

mod form;
mod json;
mod multipart;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exchange::Request;

/// The longest value that is taken, in bytes; of a longer one the beginning counts.
const MAX_VALUE: usize = 256;
/// The most different values of one kind.
const MAX_VALUES: usize = 8;

/// What a request says of a user and a password.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// All that may be the user, each value once.
    pub(crate) users: Vec<Vec<u8>>,
    /// All that may be the password.
    pub(crate) passwords: Vec<Vec<u8>>,
    /// A part of the body could not be read, or there are too many values: there may be others.
    pub(crate) odd: bool,
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

    /// Takes the value of a field if it is one of the names.
    fn take(&self, name: &[u8], value: &[u8], found: &mut Credentials) {
        let is = |names: &[String]| names.iter().any(|known| known.as_bytes() == name);
        if is(&self.users) {
            found.add_user(value);
        } else if is(&self.passwords) {
            found.add_password(value);
        }
    }

    /// Reads what is in front of the body: basic authentication (RFC 7617), and the query, which some backends read like a form.
    pub(crate) fn of_head(&self, request: &Request) -> Credentials {
        let mut found = Credentials::default();
        form::read(request.query(), self, &mut found);
        found.odd = false;
        if let Some((user, password)) = request.headers.get("authorization").and_then(basic) {
            found.add_user(&user);
            found.add_password(&password);
        }
        found
    }

    /// Reads a body by its content type, or without a known one by how it begins.
    pub(crate) fn read_body(&self, content_type: &[u8], body: &[u8], found: &mut Credentials) {
        let media = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let looks_like_json = body.trim_ascii_start().first().is_some_and(|byte| b"{[".contains(byte));
        if ends_with(media, b"json") || (looks_like_json && !ends_with(media, b"form-urlencoded")) {
            json::read(body, self, found);
        } else if media.eq_ignore_ascii_case(b"multipart/form-data") {
            multipart::read(content_type, body, self, found);
        } else {
            form::read(body, self, found);
        }
    }
}

impl Credentials {
    /// The account that is counted: all users, without case and white space around them, which backends ignore. `None` without any.
    pub(crate) fn account(&self) -> Option<Vec<u8>> {
        let users: Vec<Vec<u8>> = self.users.iter().map(|user| normalized(user)).collect();
        (!users.is_empty()).then(|| users.join(&0))
    }

    /// The password that is counted: all of them.
    pub(crate) fn password(&self) -> Option<Vec<u8>> {
        (!self.passwords.is_empty()).then(|| self.passwords.join(&0))
    }

    fn add_user(&mut self, value: &[u8]) {
        self.odd |= !add(&mut self.users, value);
    }

    fn add_password(&mut self, value: &[u8]) {
        self.odd |= !add(&mut self.passwords, value);
    }
}

/// False if there is no room.
fn add(values: &mut Vec<Vec<u8>>, value: &[u8]) -> bool {
    let value = value.get(..MAX_VALUE).unwrap_or(value);
    if value.is_empty() || values.iter().any(|known| known == value) {
        return true;
    }
    let fits = values.len() < MAX_VALUES;
    if fits {
        values.push(value.to_vec());
    }
    fits
}

fn basic(authorization: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, encoded) = authorization.split_at_checked(6)?;
    let decoded = STANDARD.decode(encoded.trim_ascii()).ok().filter(|_| scheme.eq_ignore_ascii_case(b"basic "))?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let (user, password) = decoded.split_at_checked(colon)?;
    Some((user.to_vec(), password.get(1..)?.to_vec()))
}

fn normalized(user: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(user) {
        Ok(text) => text.trim().to_lowercase().into_bytes(),
        Err(_) => user.trim_ascii().to_ascii_lowercase(),
    }
}

fn ends_with(media: &[u8], end: &[u8]) -> bool {
    let from = media.len().checked_sub(end.len());
    from.and_then(|from| media.get(from..)).is_some_and(|last| last.eq_ignore_ascii_case(end))
}
