//! Which account a user names.
//!
//! Databases and frameworks compare users by different rules: in any case, without accents (the default of MySQL), in compatibility forms
//! (NFKC, as RFC 8265 asks for). A client that spells one user in many ways must not have an account of its own for each, so what any of
//! them ignores is ignored here. Two users who differ in an accent alone are counted together, which makes a count by one user too high.

use sha2::{Digest as _, Sha256};
use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

use super::{HASH, MAX_VALUE};

/// The combining class of a virama. It makes another consonant, where other marks are points and accents.
const VIRAMA: u8 = 9;

/// The account of a user, of at most [`MAX_VALUE`] bytes: in compatibility decomposition (NFKD), without case and accents, white space
/// around it and characters that are not shown. Bytes that are no UTF-8 stay. Of a longer one its beginning and a hash of all of it.
/// Linear in its length.
pub(super) fn folded(user: &[u8]) -> Vec<u8> {
    let mut account = Account::default();
    for chunk in user.utf8_chunks() {
        for character in chunk.valid().chars() {
            account.take(character);
        }
        account.put(chunk.invalid());
        if account.text.len() > MAX_VALUE {
            let mut text = account.text;
            text.truncate(MAX_VALUE - HASH);
            text.extend_from_slice(&Sha256::digest(user)[..]);
            return text;
        }
    }
    account.text
}

#[derive(Default)]
struct Account {
    text: Vec<u8>,
    /// White space that counts once something follows it.
    space: Vec<u8>,
}

impl Account {
    fn take(&mut self, character: char) {
        // What is behind them is in the hash.
        if self.text.len() > MAX_VALUE {
            return;
        }
        if character.is_ascii() {
            self.lower(character);
        } else {
            decompose_compatible(character, |part| {
                if matches!(canonical_combining_class(part), 0 | VIRAMA) {
                    self.lower(part);
                }
            });
        }
    }

    /// Without case: `ß` is `ss`, and what has one upper case is one letter (`ı` and `i`, `ς` and `σ`).
    fn lower(&mut self, character: char) {
        if character.is_whitespace() {
            if !self.text.is_empty() && self.space.len() <= MAX_VALUE {
                self.space.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        } else if is_shown(character) {
            let upper = character.to_lowercase().flat_map(char::to_uppercase);
            for letter in upper.flat_map(char::to_lowercase) {
                match without_stroke(letter) {
                    Some(plain) => self.put(plain),
                    None => self.put(letter.encode_utf8(&mut [0; 4]).as_bytes()),
                }
            }
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.text.append(&mut self.space);
            self.text.extend_from_slice(bytes);
        }
    }
}

/// Letters that have no decomposition, and that collations compare like their parts.
fn without_stroke(letter: char) -> Option<&'static [u8]> {
    let plain: &'static [u8] = match letter {
        '\u{e6}' => b"ae",
        '\u{f8}' => b"o",
        '\u{111}' => b"d",
        '\u{127}' => b"h",
        '\u{142}' => b"l",
        '\u{153}' => b"oe",
        '\u{167}' => b"t",
        _ => return None,
    };
    Some(plain)
}

/// Whether a character is none of those that nothing is shown of (control characters, and the default ignorable code points of Unicode),
/// nor a mark around another one, which collations ignore like accents.
fn is_shown(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{488}'..='\u{489}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{1abe}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{20dd}'..='\u{20e0}'
                | '\u{20e2}'..='\u{20e4}'
                | '\u{3164}'
                | '\u{a670}'..='\u{a672}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}
