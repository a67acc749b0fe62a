//! What stands for a secret, and the ways in which a secret may be written.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode;
use sha2::{Digest, Sha256};

/// Schemes of `authorization` that are no secret. What follows no such word is masked as a whole.
const SCHEMES: [&[u8]; 9] =
    [b"basic", b"bearer", b"digest", b"negotiate", b"ntlm", b"apikey", b"token", b"hawk", b"aws4-hmac-sha256"];
/// The longest that stands for a secret.
const LONGEST: usize = 4096;

/// Makes values from secrets.
pub(super) struct Values {
    key: [u8; 32],
}

impl Values {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// A value of the secret's kind (digits, letters and digits, anything) and about its length: the next power of two,
    /// from 8 to 4096. Nothing stands for nothing.
    pub(super) fn mask(&self, secret: &[u8]) -> Vec<u8> {
        if secret.is_empty() {
            return Vec::new();
        }
        let alphabet: &[u8] = match secret {
            digits if digits.iter().all(u8::is_ascii_digit) => b"1234567891234567",
            _ => b"abcdefghjkmnpqrstuvwxyz023456789",
        };
        let length = secret.len().checked_next_power_of_two().unwrap_or(LONGEST).clamp(8, LONGEST);
        // The key comes first and last: without it nothing can be appended or tried.
        let seed = Sha256::new().chain_update(self.key).chain_update(secret).chain_update(self.key).finalize();
        let block = |number: u64| {
            let hash = Sha256::new().chain_update(self.key).chain_update(seed).chain_update(number.to_be_bytes());
            hash.finalize()
        };
        let random = (0..).flat_map(|number| block(number).to_vec());
        let mut masked: Vec<u8> =
            random.take(length).map(|byte| alphabet[usize::from(byte) % alphabet.len()]).collect();
        if !secret.iter().all(u8::is_ascii_alphanumeric) {
            masked[length / 2] = b'-';
        }
        masked
    }
}

/// A secret as it stands there, without quotes around it, decoded as a URL or a form has it, and all of these as forms, URLs
/// and JSON write them.
pub(super) fn writings(secret: &[u8]) -> BTreeSet<Vec<u8>> {
    let bare = secret.trim_ascii();
    let bare = bare.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(bare);
    let mut writings = BTreeSet::from([secret.to_vec(), bare.to_vec()]);
    let decoded = [secret, bare].into_iter().flat_map(|text| [text.to_vec(), spaced(text)]);
    for decoded in decoded.map(|text| percent_decode(&text).collect::<Vec<u8>>()).chain([bare.to_vec()]) {
        let form: String = form_urlencoded::byte_serialize(&decoded).collect();
        writings.insert(form.replace('+', "%20").into());
        writings.insert(form.into());
        let quoted = std::str::from_utf8(&decoded).ok().and_then(|text| serde_json::to_string(text).ok());
        writings.extend(quoted.map(|quoted| quoted[1..quoted.len() - 1].into()));
        writings.insert(decoded);
    }
    writings
}

/// What a form writes as plus is a blank.
fn spaced(text: &[u8]) -> Vec<u8> {
    text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect()
}

/// A field's name as it was meant, in lower case.
pub(super) fn decoded_name(name: &[u8]) -> String {
    percent_decode(&spaced(name)).decode_utf8_lossy().to_lowercase()
}

/// A known scheme with the blanks behind it, and the rest.
pub(super) fn scheme(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = value.iter().position(u8::is_ascii_whitespace)?;
    let rest = value[end..].iter().position(|byte| !byte.is_ascii_whitespace())?;
    let known = SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(&value[..end]));
    known.then(|| value.split_at(end + rest))
}

/// User and password.
pub(super) fn basic(packed: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let both = STANDARD.decode(packed.trim_ascii()).ok()?;
    let colon = both.iter().position(|&byte| byte == b':')?;
    Some((both[..colon].to_vec(), both[colon + 1..].to_vec()))
}

pub(super) fn encode_basic(user: &[u8], password: &[u8]) -> Vec<u8> {
    STANDARD.encode([user, b":", password].concat()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_in_all_its_writings() {
        let text = |secret: &[u8]| -> Vec<String> {
            writings(secret).into_iter().map(|writing| String::from_utf8(writing).unwrap()).collect()
        };
        let all = ["a b+\"", "a b+\\\"", "a%20b%2B%22", "a+b%2B%22", "a+b+\"", "a+b+\\\""];
        let found = text(b"a+b%2B%22");
        assert!(all.iter().all(|writing| found.contains(&(*writing).to_owned())), "{found:?}");
        assert_eq!(text(b"plain"), ["plain"]);
        assert!(text(b" \"quoted\" ").contains(&"quoted".to_owned()));
    }
}
