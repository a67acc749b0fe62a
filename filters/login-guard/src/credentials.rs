//! The users and the passwords of a request.
//!
//! Backends differ in which of several values they take, and attackers send values that only the guard takes for the user. So each value
//! that may be the user counts as an account, and each that may be the password as a password.

mod account;
mod charset;
mod form;
mod json;
mod media;
mod multipart;
mod transfer;

use std::borrow::Cow;

use charset::Charset;
use exchange::{Headers, Request};
use media::Media;
use sha2::{Digest as _, Sha256};

/// The longest value that is kept, in bytes; of a longer one its beginning and a hash of all of it.
const MAX_VALUE: usize = 256;
const HASH: usize = 32;
/// The most different values of one kind that count for themselves. With more, the request counts for what hides users as well
/// ([`Credentials::hides`]).
const MAX_VALUES: usize = 4;

/// The most fields with a user or a password that are read.
const MAX_TAKEN: u8 = 64;

/// What a request says of users and passwords.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The accounts that may be meant, each once.
    pub(crate) users: Vec<Vec<u8>>,
    /// All that may be the password, each once.
    pub(crate) passwords: Vec<Vec<u8>>,
    /// A part of the body could not be read: it may have another user.
    pub(crate) odd: bool,
    /// The user may be where it is not looked for, which no ordinary login has: behind too many values, fields or bytes, or under a
    /// content coding.
    pub(crate) hides: bool,
    /// There are more passwords than those that are kept.
    pub(crate) more_passwords: bool,
    /// A hash of all fields with a user, in their order, with where they are: which of several users a backend takes is the same for the
    /// same hash.
    sent: [u8; HASH],
    /// A hash of all passwords in their order.
    sent_passwords: [u8; HASH],
    /// The fields that were read.
    taken: u8,
}

/// The names of the fields that are read, folded.
pub(crate) struct Fields {
    users: Vec<Vec<u8>>,
    passwords: Vec<Vec<u8>>,
}

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Password,
}

/// Where a field is: a part of the request, and what it has in front of the name.
type Place<'a> = (&'a [u8], &'a [u8]);

impl Fields {
    pub(crate) fn new(users: Vec<String>, passwords: Vec<String>) -> Self {
        let all = |names: Vec<String>| names.iter().map(|name| folded(name.as_bytes())).collect();
        Self { users: all(users), passwords: all(passwords) }
    }

    /// What a field of this name is, if anything. Backends differ in which case they want, and in what they cut off.
    fn kind(&self, name: &[u8]) -> Option<Kind> {
        let name = folded(name);
        let user = self.users.contains(&name).then_some(Kind::User);
        user.or_else(|| self.passwords.contains(&name).then_some(Kind::Password))
    }

    /// Takes the value of a field if it is one of the names.
    fn take(&self, place: Place<'_>, name: &[u8], value: &[u8], found: &mut Credentials) {
        if let Some(kind) = self.kind(name) {
            found.take(kind, place, name, value);
        }
        // A field in which a form names its charset.
        if name.eq_ignore_ascii_case(b"_charset_")
            && (Charset::is_hiding(value) || matches!(Charset::named(value), Charset::Wide(..)))
        {
            (found.odd, found.hides) = (true, true);
        }
    }

    /// Reads what is in front of the body: basic authentication (RFC 7617), and the query, which some backends read like a form.
    pub(crate) fn of_head(&self, request: &Request) -> Credentials {
        let mut found = Credentials::default();
        form::read((b"query", b""), request.query(), self, &mut found);
        let mut entries = request.headers.all("authorization").flat_map(basics);
        for (number, entry) in entries.by_ref().take(MAX_BASIC).enumerate() {
            found.odd |= number > 0 || entry.is_odd;
            match entry.pair {
                Some((user, password)) => {
                    found.add_user((b"basic", b""), b"", &user);
                    found.add_password(&password);
                }
                None => found.add_user((b"basic", b"odd"), b"", entry.encoded),
            }
        }
        if entries.next().is_some() {
            (found.odd, found.hides) = (true, true);
        }
        if found.hides {
            // Requests that hide the user behind different fields are different.
            found.note([b"query".as_slice(), request.query()]);
        }
        found
    }

    /// Reads a body by its content type, and by how it begins: some backends read JSON whatever the type says. `coded`: the backend reads
    /// other bytes, or other characters in them.
    pub(crate) fn read_body(&self, content_type: &[u8], coded: bool, body: &[u8], found: &mut Credentials) {
        let media = Media::of(content_type);
        let text = charset::text(body, Charset::of(content_type));
        let first = text.utf8.iter().copied().find(|byte| !is_before_text(*byte));
        let looks_like_json = matches!(first, Some(b'{' | b'['));
        let before = found.users.len();
        if media.is_json || looks_like_json {
            json::read(&text.utf8, self, found);
        }
        if media.is_multipart {
            multipart::read(content_type, body, self, found);
        }
        if media.is_form {
            form::read((b"form", b""), body, self, found);
            if let Cow::Owned(other) = &text.utf8 {
                form::read((b"form", b"text"), other, self, found);
            }
        }
        found.note([b"media".as_slice(), &media.name.to_ascii_lowercase()]);
        // Parts may have files in them, and what the guard does not know may be binary.
        let is_text = media.is_json || looks_like_json || (media.is_form && !media.is_odd);
        found.odd |= text.is_doubtful && is_text;
        found.hides |= text.is_doubtful && is_text;
        // Some backends read XML whatever the type says. And where the body has no user that can be read, it may have one that the
        // backend reads.
        let is_empty = body.trim_ascii().is_empty();
        found.odd |= coded || first == Some(b'<') || (!is_empty && (media.is_odd || found.users.len() == before));
    }
}

/// Whether the backend reads other characters than the guard in the bytes of a body, by the charset of its content type.
pub(crate) fn has_foreign_charset(content_type: &[u8]) -> bool {
    Charset::of(content_type) == Charset::Foreign
}

/// Whether a content type names a charset in which a text of ASCII may be hidden.
pub(crate) fn hides_ascii(content_type: &[u8]) -> bool {
    Charset::hides_ascii(content_type)
}

/// The content type of a message; of several all, between commas.
pub(crate) fn content_type(headers: &Headers) -> Vec<u8> {
    headers.all("content-type").collect::<Vec<_>>().join(b",".as_slice())
}

impl Credentials {
    /// A request names more than one user, or may name one that is not read.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.users.len() > 1 || self.odd || self.hides
    }

    /// What stands for the users of an ambiguous request all together.
    pub(crate) fn all_users(&self) -> &[u8] {
        &self.sent
    }

    /// All passwords together, in one value; `None` without any.
    pub(crate) fn all_passwords(&self) -> Option<Vec<u8>> {
        match self.passwords.as_slice() {
            [] => None,
            [only] if !self.more_passwords => Some(only.clone()),
            _ => Some(self.sent_passwords.to_vec()),
        }
    }

    fn take(&mut self, kind: Kind, place: Place<'_>, name: &[u8], value: &[u8]) {
        if !self.has_room() {
            return;
        }
        self.taken += 1;
        match kind {
            Kind::User => self.add_user(place, name, value),
            Kind::Password => self.add_password(value),
        }
    }

    /// Whether another field is read. Where it is not, it may have the user.
    fn has_room(&mut self) -> bool {
        let has_room = self.taken < MAX_TAKEN;
        self.odd |= !has_room;
        self.hides |= !has_room;
        has_room
    }

    fn add_user(&mut self, (part, before): Place<'_>, name: &[u8], value: &[u8]) {
        let user = account::folded(value);
        if user.is_empty() {
            return;
        }
        self.note([part, before, name, &user]);
        self.hides |= !add(&mut self.users, user);
        // Backends in C cut a value off at a NUL.
        if let Some(end) = value.iter().position(|byte| *byte == 0) {
            let start = account::folded(value.get(..end).unwrap_or_default());
            self.hides |= !start.is_empty() && !add(&mut self.users, start);
        }
    }

    fn add_password(&mut self, value: &[u8]) {
        let long = value.get(..MAX_VALUE - HASH).filter(|_| value.len() > MAX_VALUE);
        let value = long.map_or_else(|| value.to_vec(), |start| [start, &Sha256::digest(value)[..]].concat());
        if value.is_empty() {
            return;
        }
        self.sent_passwords = chained(&self.sent_passwords, [value.as_slice()]);
        self.more_passwords |= !add(&mut self.passwords, value);
    }

    /// Notes where the request goes: other paths, hosts and methods may take another one of several users.
    pub(crate) fn sent_to(&mut self, request: &Request) {
        self.note([request.method.as_slice(), &request.authority, request.path_only()]);
    }

    fn note<const PARTS: usize>(&mut self, parts: [&[u8]; PARTS]) {
        self.sent = chained(&self.sent, parts);
    }
}

/// False if there is no room.
fn add(values: &mut Vec<Vec<u8>>, value: Vec<u8>) -> bool {
    if values.contains(&value) {
        return true;
    }
    let fits = values.len() < MAX_VALUES;
    if fits {
        values.push(value);
    }
    fits
}

/// A hash over an earlier one and further values, each with its length.
fn chained<const PARTS: usize>(before: &[u8; HASH], parts: [&[u8]; PARTS]) -> [u8; HASH] {
    let mut hash = Sha256::new_with_prefix(before);
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// The most readings of basic authentication that are taken.
const MAX_BASIC: usize = 4;

/// What a header says of basic authentication.
struct Basic<'a> {
    encoded: &'a [u8],
    /// The user and the password; `None` where it cannot be read here, and may be by the backend.
    pair: Option<(Vec<u8>, Vec<u8>)>,
    /// Backends read it in several ways.
    is_odd: bool,
}

/// What a header says of basic authentication: of several headers, which gateways join by commas, each.
fn basics(authorization: &[u8]) -> impl Iterator<Item = Basic<'_>> {
    let is_list = authorization.contains(&b',');
    // Some leave a comma out, as they do with all that is no letter of base64.
    let whole = is_list.then_some(authorization);
    let entries = authorization.split(|byte| *byte == b',').chain(whole).map(<[u8]>::trim_ascii);
    let encoded = entries.flat_map(|entry| {
        let (scheme, behind) = entry.split_at_checked(5).unwrap_or_default();
        let is_basic = scheme.eq_ignore_ascii_case(b"basic");
        let is_apart = behind.first().is_some_and(|byte| byte.is_ascii_whitespace());
        let whole = behind.trim_ascii();
        // Some do not look at what is behind the scheme: they cut off so many letters, and one more or none.
        let cut = behind.get(1..).filter(|_| !is_apart).map(<[u8]>::trim_ascii);
        let readings = [Some(whole), cut].map(|encoded| encoded.filter(|text| is_basic && !text.is_empty()));
        readings.into_iter().flatten().map(move |encoded| (encoded, !is_apart))
    });
    encoded.map(move |(encoded, is_odd)| {
        let decoded = transfer::base64(encoded);
        let colon = decoded.iter().position(|byte| *byte == b':');
        let pair = colon.and_then(|colon| decoded.split_at_checked(colon));
        let pair = pair.map(|(user, password)| (user.to_vec(), password.get(1..).unwrap_or_default().to_vec()));
        Basic { encoded, is_odd: is_odd || is_list || pair.is_none(), pair }
    })
}

/// A name as the most lenient of backends compare it: the innermost of `user[name]`, up to a NUL, without blanks around it, in any case.
/// PHP makes underscores of dots, blanks and brackets.
fn folded(name: &[u8]) -> Vec<u8> {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let folded = names::folded(String::from_utf8_lossy(name).trim().as_bytes());
    let text = String::from_utf8_lossy(&folded);
    let mut inner = text.as_ref();
    while let Some((before, within)) = inner.strip_suffix(']').and_then(|open| open.rsplit_once('[')) {
        // `users[]` and `users[0]` are lists.
        let is_place = within.bytes().all(|byte| byte.is_ascii_digit());
        inner = if is_place { before } else { within };
        if !is_place {
            break;
        }
    }
    inner.replace(['.', ' ', '['], "_").into_bytes()
}

/// White space, and byte order marks, of which there may be several.
fn is_before_text(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0 | 0xef | 0xbb | 0xbf | 0xfe | 0xff)
}

fn ends_with(media: &[u8], end: &[u8]) -> bool {
    let from = media.len().checked_sub(end.len());
    from.and_then(|from| media.get(from..)).is_some_and(|last| last.eq_ignore_ascii_case(end))
}
