//! What an authenticator answers, checked as WebAuthn (Level 2), sections 7.1 and 7.2, wants it.

use std::fmt;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::key::PublicKey;
use super::{Passkey, RelyingParty};

/// The bytes of the id of a credential, at most (WebAuthn, section 4).
const MAX_CREDENTIAL: usize = 1023;
/// The person was there.
const PRESENT: u8 = 0x01;
/// The person has shown a PIN, a fingerprint or the like.
const VERIFIED: u8 = 0x04;
/// The credential can be copied to other devices.
const BACKUP_ELIGIBLE: u8 = 0x08;
/// It is copied.
const BACKED_UP: u8 = 0x10;
/// A new credential is in the data.
const ATTESTED: u8 = 0x40;

/// The answer to a challenge for a new passkey.
#[derive(Clone, Copy, Debug)]
pub struct Registration<'a> {
    /// `clientDataJSON`.
    pub client_data: &'a [u8],
    /// `authenticatorData`.
    pub authenticator_data: &'a [u8],
}

/// The answer to a challenge for a login.
#[derive(Clone, Copy, Debug)]
pub struct Assertion<'a> {
    /// `clientDataJSON`.
    pub client_data: &'a [u8],
    /// `authenticatorData`.
    pub authenticator_data: &'a [u8],
    /// `signature`.
    pub signature: &'a [u8],
}

/// A credential that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCredential {
    /// Its id.
    pub credential: Vec<u8>,
    /// Its public key, as COSE has it.
    pub public_key: Vec<u8>,
    /// The signatures that its authenticator has counted.
    pub sign_count: u32,
}

/// Why an answer is refused, for logs and audit events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasskeyProblem(&'static str);

#[derive(Deserialize)]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    cross_origin: bool,
}

/// The parts of the authenticator data (WebAuthn, section 6.1).
struct AuthenticatorData<'a> {
    site_sha256: &'a [u8],
    flags: u8,
    sign_count: u32,
    rest: &'a [u8],
}

/// The challenge that an answer names; it has to be compared with the one that was given.
#[must_use]
pub fn challenge_of(client_data: &[u8]) -> Option<String> {
    serde_json::from_slice(client_data).ok().map(|ClientData { challenge, .. }| challenge)
}

impl RelyingParty {
    /// Checks the answer to a challenge for a new passkey, but for the challenge itself.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_registration(&self, answer: Registration<'_>) -> Result<NewCredential, PasskeyProblem> {
        let data = self.check(answer.client_data, answer.authenticator_data, "webauthn.create")?;
        if data.flags & ATTESTED == 0 {
            return Err(PasskeyProblem("there is no credential in the answer"));
        }
        let short = PasskeyProblem("the credential in the answer cannot be read");
        // The AAGUID, which names the maker's model, is not asked for.
        let rest = data.rest.get(16..).ok_or(short)?;
        let (length, rest) = rest.split_first_chunk::<2>().ok_or(short)?;
        let (credential, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or(short)?;
        if credential.is_empty() || credential.len() > MAX_CREDENTIAL {
            return Err(PasskeyProblem("the id of the credential is empty or too long"));
        }
        let (_, after) = PublicKey::read(rest).ok_or(PasskeyProblem("the key is none of ES256, EdDSA and RS256"))?;
        let public_key = rest.get(..rest.len() - after.len()).unwrap_or_default().to_vec();
        Ok(NewCredential { credential: credential.to_vec(), public_key, sign_count: data.sign_count })
    }

    /// Checks the answer to a challenge for a login by a passkey, but for the challenge itself and the count of signatures, which it
    /// returns. `alone`: it is the only thing that is shown, so that the authenticator has to have verified the person.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_assertion(
        &self,
        passkey: &Passkey,
        answer: Assertion<'_>,
        alone: bool,
    ) -> Result<u32, PasskeyProblem> {
        let data = self.check(answer.client_data, answer.authenticator_data, "webauthn.get")?;
        if alone && data.flags & VERIFIED == 0 {
            return Err(PasskeyProblem("the authenticator has not verified the person"));
        }
        let unreadable = PasskeyProblem("the stored key cannot be read");
        let (key, _) = PublicKey::read(&passkey.public_key).ok_or(unreadable)?;
        let message = [answer.authenticator_data, Sha256::digest(answer.client_data).as_slice()].concat();
        match key.has_signed(&message, answer.signature) {
            true => Ok(data.sign_count),
            false => Err(PasskeyProblem("the signature is wrong")),
        }
    }

    fn check<'a>(
        &self,
        client_data: &[u8],
        authenticator_data: &'a [u8],
        kind: &str,
    ) -> Result<AuthenticatorData<'a>, PasskeyProblem> {
        let client: ClientData =
            serde_json::from_slice(client_data).map_err(|_| PasskeyProblem("the client data cannot be read"))?;
        if client.kind != kind {
            return Err(PasskeyProblem("the answer is to another kind of challenge"));
        }
        if client.origin != self.origin() || client.cross_origin {
            return Err(PasskeyProblem("the answer was made on another site, or in a frame"));
        }
        let data = AuthenticatorData::read(authenticator_data)
            .ok_or(PasskeyProblem("the authenticator data cannot be read"))?;
        if data.site_sha256 != Sha256::digest(self.id().as_bytes()).as_slice() {
            return Err(PasskeyProblem("the credential is of another site"));
        }
        if data.flags & PRESENT == 0 {
            return Err(PasskeyProblem("the authenticator was not touched"));
        }
        if data.flags & BACKED_UP != 0 && data.flags & BACKUP_ELIGIBLE == 0 {
            return Err(PasskeyProblem("the flags of the authenticator contradict each other"));
        }
        Ok(data)
    }
}

impl<'a> AuthenticatorData<'a> {
    fn read(bytes: &'a [u8]) -> Option<AuthenticatorData<'a>> {
        let (site_sha256, rest) = bytes.split_at_checked(32)?;
        let (flags, rest) = rest.split_first()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        Some(AuthenticatorData { site_sha256, flags: *flags, sign_count: u32::from_be_bytes(*count), rest })
    }
}

impl fmt::Display for PasskeyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for PasskeyProblem {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Authenticator data with these flags and what follows the counter.
    fn registered(flags: u8, rest: &[u8]) -> Result<NewCredential, PasskeyProblem> {
        let site = RelyingParty::of("https://palisade.example").unwrap();
        let client = br#"{"type": "webauthn.create", "challenge": "c", "origin": "https://palisade.example"}"#;
        let data = [Sha256::digest(site.id()).as_slice(), &[flags, 0, 0, 0, 7], rest].concat();
        site.check_registration(Registration { client_data: client, authenticator_data: &data })
    }

    /// An AAGUID, an id of this length, and a key of Ed25519.
    fn attested(id: u16, algorithm: u8) -> Vec<u8> {
        let key = [[0xa4, 1, 1, 3, algorithm, 0x20, 6, 0x21, 0x58, 32].as_slice(), &[9; 32]].concat();
        [[0; 16].as_slice(), &id.to_be_bytes(), &vec![3; usize::from(id)], &key].concat()
    }

    #[test]
    fn a_new_credential_is_one_with_an_id_and_a_key_that_is_asked_for() {
        const EDDSA: u8 = 0x27;
        let flags = PRESENT | VERIFIED | ATTESTED;
        let whole = attested(1023, EDDSA);
        let made = registered(flags, &whole).unwrap();
        assert_eq!((made.credential, made.sign_count), (vec![3; 1023], 7));
        assert_eq!(made.public_key.len(), 42);
        // Extensions follow the key, and are no part of it.
        assert_eq!(registered(flags, &[whole.as_slice(), &[0xa0]].concat()).unwrap().public_key, made.public_key);
        let refused = |flags, rest: &[u8]| registered(flags, rest).unwrap_err().to_string();
        for (without, why) in [(ATTESTED, "no credential"), (PRESENT, "not touched")] {
            assert!(refused(flags & !without, &whole).contains(why), "{without}");
        }
        for id in [0, 1024] {
            assert!(refused(flags, &attested(id, EDDSA)).contains("empty or too long"), "{id}");
        }
        // ES384, with which no key of this kind signs.
        assert!(refused(flags, &attested(8, 0x38)).contains("none of ES256"));
        for end in [0, 15, 17, 18, 1000, whole.len() - 1] {
            assert!(registered(flags, &whole[..end]).is_err(), "{end}");
        }
    }
}
