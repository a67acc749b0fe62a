//! The second factor of operators: codes of an authenticator app (TOTP, RFC 6238), and recovery codes for its loss.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use totp_rs::{Algorithm, Builder, Secret, Totp};

/// The bytes of a secret: what RFC 4226 recommends.
pub const SECRET_BYTES: usize = 20;
/// Recovery codes of a second factor.
pub const RECOVERY_CODES: usize = 10;
/// Wrong codes in a row after which a second factor takes one code each [`CODE_PAUSE_MILLIS`].
pub const CODE_FAILURES: u32 = 10;
/// How long a second factor takes no code after [`CODE_FAILURES`] wrong ones, and after each further one, in milliseconds: 15 minutes.
pub const CODE_PAUSE_MILLIS: u64 = 900_000;

/// The length of a step in seconds, and the digits of a code: what every app takes for given.
const STEP_SECONDS: u64 = 30;
const DIGITS: u8 = 6;
/// The steps before and after the current one whose codes are accepted: clocks differ (RFC 6238, section 5.2).
const SKEW: u16 = 1;
/// Letters of recovery codes: 32, none of which looks like another.
const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";
/// Letters of one recovery code: 80 bits.
const RECOVERY_LETTERS: usize = 16;

/// A second factor as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct SecondFactor {
    /// The secret that codes are made of: both sides make the codes of it. As the store has it, it may be encrypted, and
    /// [`FactorKeys::open`](super::FactorKeys::open) decrypts it.
    pub secret: Vec<u8>,
    /// Since when a login needs it, in milliseconds since 1970; `None` until a first code has confirmed that an app has the secret.
    pub confirmed_at_millis: Option<u64>,
    /// The step of the last code that was accepted, in steps of 30 seconds since 1970. Codes of it and of earlier ones are refused.
    pub last_step: u64,
    /// Wrong codes since the last right one.
    pub failures: u32,
    /// When the last wrong code came, in milliseconds since 1970.
    pub failed_at_millis: u64,
    /// The recovery codes that are left.
    pub recovery_codes: u32,
}

/// What a code turned out to be. The store accepts each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The code of this step, in steps of 30 seconds since 1970.
    Step(u64),
    /// Perhaps a recovery code, by its SHA-256.
    Recovery([u8; 32]),
}

/// Recovery codes that have just been made, to be shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCodes {
    /// As they are shown: `xxxx-xxxx-xxxx-xxxx`.
    pub shown: Vec<String>,
    /// What is kept of them. A plain digest: 80 random bits are found by no dictionary, least of all through a login.
    pub sha256: Vec<[u8; 32]>,
}

/// A new secret.
///
/// # Errors
/// When the operating system gives no random bytes.
pub fn new_secret() -> Result<Vec<u8>, std::io::Error> {
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
    Ok(secret.to_vec())
}

// === impl SecondFactor ===

impl SecondFactor {
    /// One with this secret that is not confirmed.
    #[must_use]
    pub fn new(secret: Vec<u8>) -> SecondFactor {
        SecondFactor {
            secret,
            confirmed_at_millis: None,
            last_step: 0,
            failures: 0,
            failed_at_millis: 0,
            recovery_codes: 0,
        }
    }

    /// The secret in base32, as it is typed into an app that cannot read the URI.
    #[must_use]
    pub fn secret_base32(&self) -> String {
        Secret::new(self.secret.clone().into_boxed_slice()).to_base32()
    }

    /// The URI that apps read as a QR code (`otpauth://totp/…`). It has the secret in it.
    #[must_use]
    pub fn uri(&self, operator: &str) -> String {
        let account = utf8_percent_encode(operator, NON_ALPHANUMERIC);
        format!("otpauth://totp/Palisade:{account}?secret={}&issuer=Palisade", self.secret_base32())
    }

    /// What a text is at `now_millis`: the code of this step or its neighbours, or what might be a recovery code; `None` for what
    /// is neither. Whether it was used already, the store knows.
    #[must_use]
    pub fn proof(&self, code: &str, now_millis: u64) -> Option<Proof> {
        let code = without_spaces(code);
        if is_app_code(&code) {
            return self.totp()?.check(&code, now_millis / 1000).map(Proof::Step);
        }
        let code = code.to_ascii_lowercase();
        let sane = code.len() == RECOVERY_LETTERS && code.bytes().all(|byte| LETTERS.contains(&byte));
        sane.then(|| Proof::Recovery(digest(&code)))
    }

    /// How long it takes no code, in seconds from `now_millis`; `None` if it takes one now.
    #[must_use]
    pub fn paused(&self, now_millis: u64) -> Option<u64> {
        let until = self.failed_at_millis.saturating_add(CODE_PAUSE_MILLIS);
        let left = until.saturating_sub(now_millis).div_ceil(1000);
        (self.failures >= CODE_FAILURES && left > 0).then_some(left)
    }

    /// `None` only for a secret that no release has written.
    fn totp(&self) -> Option<Totp> {
        let builder = Builder::new().with_algorithm(Algorithm::SHA1).with_digits(DIGITS).with_skew(SKEW);
        builder.with_step_duration(STEP_SECONDS).with_secret(self.secret.clone()).build().ok()
    }
}

impl fmt::Debug for SecondFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret must not reach a log by way of a derived Debug.
        f.debug_struct("SecondFactor").field("confirmed_at_millis", &self.confirmed_at_millis).finish_non_exhaustive()
    }
}

// === impl RecoveryCodes ===

impl RecoveryCodes {
    /// [`RECOVERY_CODES`] new ones of 80 random bits.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn random() -> Result<RecoveryCodes, std::io::Error> {
        let mut codes = RecoveryCodes { shown: Vec::new(), sha256: Vec::new() };
        for _ in 0..RECOVERY_CODES {
            let mut bytes = [0; RECOVERY_LETTERS];
            getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
            // 32 letters: five bits of each byte, evenly.
            let letters = bytes.iter().filter_map(|byte| LETTERS.get(usize::from(byte % 32)));
            let code: String = letters.map(|letter| char::from(*letter)).collect();
            codes.sha256.push(digest(&code));
            let parts: Vec<&str> = [0, 4, 8, 12].iter().filter_map(|from| code.get(*from..from + 4)).collect();
            codes.shown.push(parts.join("-"));
        }
        Ok(codes)
    }
}

impl fmt::Debug for RecoveryCodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoveryCodes").finish_non_exhaustive()
    }
}

/// Whether a text can be a code of an app, and so no recovery code.
#[must_use]
pub fn is_app_code(code: &str) -> bool {
    let code = without_spaces(code);
    code.len() == usize::from(DIGITS) && code.bytes().all(|byte| byte.is_ascii_digit())
}

fn without_spaces(code: &str) -> String {
    code.chars().filter(|char| !char.is_whitespace() && *char != '-').take(64).collect()
}

fn digest(code: &str) -> [u8; 32] {
    Sha256::new_with_prefix(b"palisade recovery code\0").chain_update(code).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor() -> SecondFactor {
        SecondFactor::new(b"12345678901234567890".to_vec())
    }

    /// RFC 6238, appendix B (SHA-1), its last six digits.
    #[test]
    fn codes_are_those_of_the_rfc() {
        for (seconds, code) in
            [(59, "287082"), (1_111_111_109, "081804"), (1_111_111_111, "050471"), (2_000_000_000, "279037")]
        {
            assert_eq!(factor().proof(code, seconds * 1000), Some(Proof::Step(seconds / 30)), "{seconds}");
        }
    }

    #[test]
    fn a_code_holds_for_one_step_before_and_after() {
        let step = 1_111_111_109 / 30;
        let at = |steps: u64| factor().proof("081 804", steps * 30_000);
        assert_eq!(
            (at(step - 1), at(step), at(step + 1)),
            (Some(Proof::Step(step)), Some(Proof::Step(step)), Some(Proof::Step(step)))
        );
        assert_eq!((at(step - 2), at(step + 2)), (None, None));
        for bad in ["", "081805", "81804", "0818040", "abcdef", "08180\u{660}"] {
            assert_eq!(factor().proof(bad, step * 30_000), None, "{bad}");
        }
    }

    #[test]
    fn recovery_codes_are_read_as_people_type_them() {
        let codes = RecoveryCodes::random().unwrap();
        assert_eq!((codes.shown.len(), codes.sha256.len()), (10, 10));
        let typed = codes.shown[0].to_uppercase().replace('-', " ");
        assert_eq!(factor().proof(&typed, 0), Some(Proof::Recovery(codes.sha256[0])));
        assert_eq!(codes.shown[0].len(), 19);
        assert_ne!(codes.sha256[0], codes.sha256[1]);
        assert!(!format!("{codes:?}").contains(&codes.shown[0]));
    }

    #[test]
    fn the_uri_has_the_account_and_the_secret_and_debug_has_not() {
        let uri = "otpauth://totp/Palisade:a%40b?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Palisade";
        assert_eq!(factor().uri("a@b"), uri);
        assert!(!format!("{:?}", factor()).contains("49"));
        assert_eq!(new_secret().unwrap().len(), SECRET_BYTES);
    }

    #[test]
    fn after_ten_wrong_codes_there_is_a_pause() {
        assert_eq!((CODE_FAILURES, CODE_PAUSE_MILLIS), (10, 900_000));
        let failed = |failures| SecondFactor { failures, failed_at_millis: 1000, ..factor() };
        assert_eq!((failed(9).paused(1000), failed(10).paused(1000)), (None, Some(900)));
        assert_eq!((failed(10).paused(900_999), failed(10).paused(901_000)), (Some(1), None));
    }
}
