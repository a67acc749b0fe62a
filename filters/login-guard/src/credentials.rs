//! The user and the password of a request.
//!
//! Backends differ in which of several values they take, and attackers may send values that only the guard takes for the user. So all
//! values count: the account of a request is made of all that may be its user.

mod form;
mod json;
mod multipart;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use exchange::Request;
use sha2::{Digest as _, Sha256};

/// The longest value that is kept, in bytes; of a longer one its beginning and a hash of all of it.
const MAX_VALUE: usize = 256;
const HASH: usize = 32;
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

/// The names of the fields that are read, folded.
pub(crate) struct Fields {
    users: Vec<Vec<u8>>,
    passwords: Vec<Vec<u8>>,
}

impl Fields {
    pub(crate) fn new(users: Vec<String>, passwords: Vec<String>) -> Self {
        let all = |names: Vec<String>| names.iter().map(|name| folded(name.as_bytes())).collect();
        Self { users: all(users), passwords: all(passwords) }
    }

    /// Whether a field of this name is a user or a password.
    fn names(&self, name: &[u8]) -> bool {
        let name = folded(name);
        self.users.contains(&name) || self.passwords.contains(&name)
    }

    /// Takes the value of a field if it is one of the names. Backends differ in which case they want, and in what they cut off.
    fn take(&self, name: &[u8], value: &[u8], found: &mut Credentials) {
        let name = folded(name);
        let is = |names: &[Vec<u8>]| names.contains(&name);
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
        if found.odd {
            // What is behind the fields that are read may be the user.
            found.add_user(request.query());
        }
        match request.headers.get("authorization").map_or(Basic::None, basic) {
            Basic::None => {}
            Basic::Pair(user, password) => {
                found.add_user(&user);
                found.add_password(&password);
            }
            Basic::Odd(all) => {
                found.add_user(&all);
                found.odd = true;
            }
        }
        found
    }

    /// Reads a body by its content type, and by how it begins: some backends read JSON whatever the type says. `coded`: the body has
    /// a content coding, so that the backend reads another one.
    pub(crate) fn read_body(&self, content_type: &[u8], coded: bool, body: &[u8], found: &mut Credentials) {
        let media = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let looks_like_json = body.trim_ascii_start().first().is_some_and(|byte| b"{[".contains(byte));
        let is_json = ends_with(media, b"json");
        let before = found.users.len();
        if is_json || looks_like_json {
            json::read(body, self, found);
        }
        if media.eq_ignore_ascii_case(b"multipart/form-data") {
            multipart::read(content_type, body, self, found);
        } else if !is_json && (!looks_like_json || ends_with(media, b"form-urlencoded")) {
            form::read(body, self, found);
        }
        // Where the body has no user that can be read, it may have one that the backend reads.
        found.odd |= coded || (found.users.len() == before && !body.trim_ascii().is_empty());
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
        self.odd |= !add(&mut self.users, trimmed(value));
    }

    fn add_password(&mut self, value: &[u8]) {
        self.odd |= !add(&mut self.passwords, value);
    }
}

/// False if there is no room.
fn add(values: &mut Vec<Vec<u8>>, value: &[u8]) -> bool {
    let long = value.get(..MAX_VALUE - HASH).filter(|_| value.len() > MAX_VALUE);
    let value = long.map_or_else(|| value.to_vec(), |start| [start, &Sha256::digest(value)[..]].concat());
    if value.is_empty() || values.contains(&value) {
        return true;
    }
    let fits = values.len() < MAX_VALUES;
    if fits {
        values.push(value);
    }
    fits
}

/// What basic authentication says.
enum Basic {
    None,
    /// A user and a password.
    Pair(Vec<u8>, Vec<u8>),
    /// What cannot be read here, and may be by the backend.
    Odd(Vec<u8>),
}

/// Base64 as lenient backends read it: without padding, with bits behind the end.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

fn basic(authorization: &[u8]) -> Basic {
    let Some((scheme, encoded)) = authorization.trim_ascii_start().split_at_checked(6) else { return Basic::None };
    let encoded = encoded.trim_ascii();
    if !scheme.eq_ignore_ascii_case(b"basic ") || encoded.is_empty() {
        return Basic::None;
    }
    // Backends take the URL-safe letters too, and leave out what is no letter of base64.
    let letters = encoded.iter().filter_map(|byte| match byte {
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        b'+' | b'/' => Some(*byte),
        letter => letter.is_ascii_alphanumeric().then_some(*letter),
    });
    let decoded = LENIENT.decode(letters.collect::<Vec<u8>>()).unwrap_or_default();
    match decoded.iter().position(|byte| *byte == b':').and_then(|colon| decoded.split_at_checked(colon)) {
        Some((user, password)) => Basic::Pair(user.to_vec(), password.get(1..).unwrap_or_default().to_vec()),
        None => Basic::Odd(encoded.to_vec()),
    }
}

/// A name as the most lenient of backends compare it: without blanks around it, in any case, with the two letters of Unicode that Go
/// takes for letters of ASCII.
fn folded(name: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(name).trim().to_lowercase().replace('\u{17f}', "s").replace('\u{212a}', "k").into_bytes()
}

/// A user without what backends cut off around it.
fn trimmed(user: &[u8]) -> &[u8] {
    std::str::from_utf8(user).map_or_else(|_| user.trim_ascii(), |text| text.trim().as_bytes())
}

/// A user as accounts are compared: in lower case, in the letters of ASCII where it has their full-width forms, without characters
/// that are not shown.
fn normalized(user: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(user) else { return user.trim_ascii().to_ascii_lowercase() };
    let shown =
        |letter: &char| !matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    let narrow = |letter: char| match u32::from(letter) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0).unwrap_or(letter),
        _ => letter,
    };
    let letters: String = text.chars().filter(shown).map(narrow).collect();
    letters.trim().to_lowercase().into_bytes()
}

fn ends_with(media: &[u8], end: &[u8]) -> bool {
    let from = media.len().checked_sub(end.len());
    from.and_then(|from| media.get(from..)).is_some_and(|last| last.eq_ignore_ascii_case(end))
}
