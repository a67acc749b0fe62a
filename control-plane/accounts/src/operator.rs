//! Operators: the people who use the console.

use std::fmt;

use super::Role;

/// The characters of a name, at most.
const MAX_NAME: usize = 64;
/// The characters of an address that mail can be sent to, at most (RFC 5321).
const MAX_EMAIL: usize = 254;

/// A person who may log in to the console.
#[derive(Clone, PartialEq, Eq)]
pub struct Operator {
    /// The name to log in with: 1 to 64 of `a-z 0-9 . _ @ -`.
    pub name: String,
    /// Where to reach them; shown in what they did.
    pub email: String,
    /// What they may do.
    pub role: Role,
    /// Their password, hashed with argon2id, as a PHC string; empty if they have none and log in by a login link.
    pub password_hash: String,
    /// When they were added, in milliseconds since 1970.
    pub created_at_millis: u64,
    /// When their password was last set or removed, in milliseconds since 1970.
    pub changed_at_millis: u64,
    /// Whether they have an authenticator app. The store derives it and ignores it in what is written.
    pub second_factor: bool,
    /// Whether they are linked to an identity at a provider. The store derives it and ignores it in what is written.
    pub has_identity: bool,
    /// How many passkeys they have. The store derives it and ignores it in what is written.
    pub passkeys: u32,
}

/// Why a name or email address is refused for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidOperator {
    /// The name.
    Name,
    /// The address.
    Email,
}

impl Operator {
    /// An operator with this password hash (empty: none), added at `now_millis`. The name is taken in lower case.
    ///
    /// # Errors
    /// What cannot be.
    pub fn new(
        name: &str,
        email: &str,
        role: Role,
        password_hash: String,
        now_millis: u64,
    ) -> Result<Operator, InvalidOperator> {
        let name = normal_name(name).ok_or(InvalidOperator::Name)?;
        let parts = email.split_once('@').filter(|(user, host)| !user.is_empty() && !host.is_empty());
        let sane = email.len() <= MAX_EMAIL && email.bytes().all(|byte| byte.is_ascii_graphic());
        if !sane || parts.is_none() {
            return Err(InvalidOperator::Email);
        }
        Ok(Operator {
            name,
            email: email.to_owned(),
            role,
            password_hash,
            created_at_millis: now_millis,
            changed_at_millis: now_millis,
            second_factor: false,
            has_identity: false,
            passkeys: 0,
        })
    }

    /// Whether a login needs a second step: a code of the app, or a passkey.
    #[must_use]
    pub fn has_second_factor(&self) -> bool {
        self.second_factor || self.passkeys > 0
    }

    /// The hash that a password is checked against; `None` if there is no password.
    #[must_use]
    pub fn password(&self) -> Option<String> {
        (!self.password_hash.is_empty()).then(|| self.password_hash.clone())
    }
}

/// A name as it is kept, in lower case; `None` for what cannot be one.
pub fn normal_name(name: &str) -> Option<String> {
    let name = name.trim().to_ascii_lowercase();
    let sane = (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._@-".contains(&byte));
    sane.then_some(name)
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the hash: what is derived from a password is to stay out of logs.
        f.debug_struct("Operator").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Display for InvalidOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InvalidOperator::Name => "a name has 1 to 64 characters of a-z 0-9 . _ @ -",
            InvalidOperator::Email => "an e-mail address such as alice@example.com is expected",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_checked() {
        let add =
            |name, email| Operator::new(name, email, Role::Viewer, String::new(), 7).map(|operator| operator.name);
        assert_eq!(add(" Alice", "alice@example.com"), Ok("alice".to_owned()));
        assert_eq!(add("a.b-c_d@e", "a@b"), Ok("a.b-c_d@e".to_owned()));
        let long = "a".repeat(65);
        for name in ["", "a b", "ä", "a\nb", &long] {
            assert_eq!(add(name, "a@b"), Err(InvalidOperator::Name), "{name}");
        }
        for email in ["", "alice", "@b", "a@", "a b@c", "a@b\r\nx"] {
            assert_eq!(add("a", email), Err(InvalidOperator::Email), "{email}");
        }
    }
}
