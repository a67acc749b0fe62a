//! Passwords: hashed with argon2id, and checked without letting logins eat the machine.

use std::fmt;
use std::sync::{Arc, LazyLock};

use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The characters that a new password has, at least. Long ones beat odd ones (NIST SP 800-63B).
pub const MIN_PASSWORD_CHARS: usize = 12;
/// The bytes of a password, at most.
pub const MAX_PASSWORD_BYTES: usize = 1024;

/// Passwords that are hashed at the same time: each takes 19 MiB and a processor.
const CONCURRENT: usize = 2;
/// Logins that wait for their turn; further ones are turned away.
const WAITING: usize = 16;

/// What a name that does not exist is checked against, so that it takes the same time. Its password is not known.
static NOBODY: LazyLock<String> = LazyLock::new(|| {
    let mut password = [0xff; 32];
    // Should there be no randomness, nobody gets in either: the name does not exist, whatever the password.
    let _ = getrandom::fill(&mut password);
    hash(&password).unwrap_or_default()
});

/// No password could be hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashFailed(String);

/// Checks passwords off the async threads, a few at a time.
#[derive(Clone)]
pub struct Passwords {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// What a check answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The password is that of the hash.
    Right,
    /// It is another one, or there is no such name.
    Wrong,
    /// Too many logins at the same time: nothing was checked.
    Busy,
}

// === impl Passwords ===

impl Default for Passwords {
    fn default() -> Passwords {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Passwords { running: semaphore(CONCURRENT), waiting: semaphore(CONCURRENT + WAITING) }
    }
}

impl Passwords {
    /// Checks a password against a stored hash; `None` for a name that does not exist, which takes as long.
    pub async fn check(&self, stored: Option<String>, password: String) -> Checked {
        let Ok(_queued) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return Checked::Busy;
        };
        let Ok(turn) = Arc::clone(&self.running).acquire_owned().await else {
            return Checked::Busy;
        };
        let task = tokio::task::spawn_blocking(move || verify(stored, &password, turn));
        match task.await {
            Ok(true) => Checked::Right,
            Ok(false) => Checked::Wrong,
            Err(_) => Checked::Busy,
        }
    }
}

/// The permit goes along: a caller who hangs up does not make room for another hash before this one is done.
fn verify(stored: Option<String>, password: &str, _turn: OwnedSemaphorePermit) -> bool {
    let exists = stored.is_some();
    // Made in either case, so that it is not the first unknown name that pays for it.
    let nobody: &str = &NOBODY;
    let hash = stored.unwrap_or_else(|| nobody.to_owned());
    let right = Argon2::default().verify_password(password.as_bytes(), hash.as_str()).is_ok();
    right && exists
}

// === hashing ===

/// Hashes a password with argon2id (19 MiB, 2 passes, 1 lane) and a random salt, as a PHC string. Takes a processor for
/// some 50 ms; not for async threads.
///
/// # Errors
/// When the operating system gives no random bytes or no memory.
pub fn hash_password(password: &str) -> Result<String, HashFailed> {
    hash(password.as_bytes())
}

fn hash(password: &[u8]) -> Result<String, HashFailed> {
    let mut salt = [0; argon2::RECOMMENDED_SALT_LEN];
    getrandom::fill(&mut salt).map_err(|error| HashFailed(error.to_string()))?;
    let hash = Argon2::default().hash_password_with_salt(password, &salt);
    hash.map(|hash| hash.to_string()).map_err(|error| HashFailed(error.to_string()))
}

/// Why a text cannot be a new password; `None` when it can.
pub fn password_problem(password: &str) -> Option<String> {
    if password.len() > MAX_PASSWORD_BYTES {
        return Some(format!("the password is longer than {MAX_PASSWORD_BYTES} bytes"));
    }
    let chars = password.chars().count();
    (chars < MIN_PASSWORD_CHARS)
        .then(|| format!("the password has {chars} characters; {MIN_PASSWORD_CHARS} are the least"))
}

impl fmt::Display for HashFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the password cannot be hashed: {}", self.0)
    }
}

impl std::error::Error for HashFailed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_password_of_an_existing_operator_is_right() {
        let hash = hash_password("correct horse battery").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_ne!(hash, hash_password("correct horse battery").unwrap(), "the salt is random");
        let passwords = Passwords::default();
        let check =
            async |stored: Option<&String>, password: &str| passwords.check(stored.cloned(), password.to_owned()).await;
        assert_eq!(check(Some(&hash), "correct horse battery").await, Checked::Right);
        assert_eq!(check(Some(&hash), "correct horse batterz").await, Checked::Wrong);
        assert_eq!(check(Some(&"rubbish".to_owned()), "").await, Checked::Wrong);
        assert_eq!(check(None, "correct horse battery").await, Checked::Wrong);
        assert!(NOBODY.starts_with("$argon2id$"), "an unknown name costs a hash");
    }

    #[tokio::test]
    async fn a_crowd_is_turned_away_before_it_costs_anything() {
        let passwords = Passwords::default();
        let _all = Arc::clone(&passwords.waiting).try_acquire_many_owned((CONCURRENT + WAITING) as u32).unwrap();
        assert_eq!(passwords.check(None, String::new()).await, Checked::Busy);
    }

    #[test]
    fn a_new_password_is_long() {
        assert!(password_problem("hunter2").is_some());
        assert!(password_problem(&"a".repeat(MAX_PASSWORD_BYTES + 1)).is_some());
        assert_eq!(password_problem("twelve chars"), None);
        assert_eq!(password_problem("ää ää ää ää ä"), None);
    }
}
