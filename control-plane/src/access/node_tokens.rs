//! The tokens by which gateways are let in to xDS and the node link.

use std::fmt;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use crate::listen::Kept;

/// A token that is shorter can be guessed; it is taken with a warning.
const SHORT: usize = 16;
/// The bytes of a token, at most: it travels in a header.
const MAX_BYTES: usize = 4096;
/// The tokens of a file, at most: each is compared on every stream.
const MAX_TOKENS: usize = 1000;

/// The tokens of a file. Any of them lets a gateway in, so that one can take the place of another. Only their SHA-256 is
/// kept: a plain digest, because a token is random and not a word.
pub struct NodeTokens {
    digests: Vec<[u8; 32]>,
}

impl NodeTokens {
    /// The tokens in this file, one on each line; blank lines and those that begin with `#` count for nothing. They follow
    /// the file once they are among those of [`crate::listen::follow`].
    ///
    /// # Errors
    ///
    /// What is wrong with the file, with its line and without the token.
    pub fn open(file: PathBuf) -> Result<Kept<NodeTokens>, String> {
        Kept::open("node tokens", vec![file.clone()], move |contents| {
            NodeTokens::parse(&file, contents.first().map(Vec::as_slice).unwrap_or_default())
        })
    }

    /// Whether `token` is one of them. Takes as long for each.
    #[must_use]
    pub fn admit(&self, token: &[u8]) -> Option<[u8; 32]> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        self.hold(&digest).then_some(digest)
    }

    /// Whether the token of this digest is one of them.
    #[must_use]
    pub fn hold(&self, digest: &[u8; 32]) -> bool {
        let any = self.digests.iter().fold(Choice::from(0), |any, known| any | known.ct_eq(digest));
        any.into()
    }

    fn parse(file: &Path, bytes: &[u8]) -> Result<NodeTokens, String> {
        let mut digests = Vec::new();
        for (number, line) in
            (1..).zip(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).split(|byte| *byte == b'\n'))
        {
            let token = line.trim_ascii();
            if token.is_empty() || token.starts_with(b"#") {
                continue;
            }
            let at = format!("{}: line {number}", file.display());
            if !token.iter().all(u8::is_ascii_graphic) {
                return Err(format!("{at}: a token has no spaces and only printable ASCII characters"));
            }
            if token.len() > MAX_BYTES {
                return Err(format!("{at}: a token has at most {MAX_BYTES} bytes"));
            }
            if digests.len() >= MAX_TOKENS {
                return Err(format!("{at}: there are more than {MAX_TOKENS} tokens"));
            }
            if token.len() < SHORT {
                tracing::warn!("{at}: this token has fewer than {SHORT} characters and can be guessed");
            }
            digests.push(Sha256::digest(token).into());
        }
        match digests.is_empty() {
            true => Err(format!("{}: there is no token in it, which would let nobody in", file.display())),
            false => Ok(NodeTokens { digests }),
        }
    }
}

impl fmt::Debug for NodeTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeTokens").field("count", &self.digests.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<NodeTokens, String> {
        NodeTokens::parse(Path::new("tokens"), text.as_bytes())
    }

    #[test]
    fn any_token_of_the_file_is_taken() {
        let tokens = parse("# the old one\r\n  first-token-0123456789\r\n\n\tsecond-token-0123456\n#third").unwrap();
        assert!(tokens.admit(b"first-token-0123456789").is_some());
        assert!(tokens.admit(b"second-token-0123456").is_some());
        for wrong in [&b"#third"[..], b"", b"first-token-012345678", b"first-token-0123456789 ", b"# the old one"] {
            assert!(tokens.admit(wrong).is_none(), "{}", String::from_utf8_lossy(wrong));
        }
        assert_eq!(format!("{tokens:?}"), "NodeTokens { count: 2, .. }");
    }

    #[test]
    fn what_is_no_token_is_told_by_its_line_and_not_shown() {
        assert!(parse("\n# none\n").unwrap_err().contains("no token"));
        for (text, said) in [
            ("good-token-0123456789\nhunter two\n", "line 2: a token has no spaces"),
            ("hunter\u{fc}two-0123456789", "line 1: "),
            (&"h".repeat(MAX_BYTES + 1), "line 1: "),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("tokens: ") && error.contains(said) && !error.contains("hunter"), "{error}");
        }
        assert!(parse(&"a-token-that-is-long\n".repeat(MAX_TOKENS + 1)).unwrap_err().contains("line 1001"));
    }
}
