//! The tokens by which gateways are let in to xDS and the node link.

use std::fmt;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::NodeNames;
use crate::listen::Kept;

/// A token that is shorter can be guessed; it is taken with a warning.
const SHORT: usize = 16;
/// The bytes of a token, at most: it travels in a header.
const MAX_BYTES: usize = 4096;
/// The tokens of a file, at most: each is compared on every stream.
const MAX_TOKENS: usize = 1000;

/// What a line with the nodes of its token begins with.
const NODE: &[u8] = b"node=";

/// The tokens of a file. Any of them lets a gateway in, so that one can take the place of another. Only their SHA-256 is
/// kept: a plain digest, because a token is random and not a word.
pub struct NodeTokens {
    tokens: Vec<NodeToken>,
}

/// A token without the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeToken {
    digest: [u8; 32],
    nodes: Option<NodeNames>,
}

impl NodeToken {
    /// The nodes that it is for; `None` for a token that many share, whose nodes are whom they say they are.
    #[must_use]
    pub fn nodes(&self) -> Option<&NodeNames> {
        self.nodes.as_ref()
    }
}

impl NodeTokens {
    /// The tokens in this file, one on each line, with the nodes that it is for before it (`node=edge-1 TOKEN`); blank lines
    /// and those that begin with `#` count for nothing. They follow the file once they are among those of
    /// [`crate::listen::follow`].
    ///
    /// # Errors
    ///
    /// What is wrong with the file, with its line and without the token.
    pub fn open(file: PathBuf) -> Result<Kept<NodeTokens>, String> {
        Kept::open("node tokens", vec![file.clone()], move |contents| {
            NodeTokens::parse(&file, contents.first().map(Vec::as_slice).unwrap_or_default())
        })
    }

    /// Makes a file with a fresh token for the nodes of a name; false where there is one already. It is for its owner alone.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn create_file(file: &Path, node: &str) -> io::Result<bool> {
        let mut options = std::fs::File::options();
        let mut out = match options.write(true).create_new(true).mode(0o600).open(file) {
            Ok(out) => out,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        };
        let token = NodeTokens::fresh()?;
        out.write_all(
            format!("# Tokens of gateways: `node=ID TOKEN`, one on each line.\nnode={node} {token}\n").as_bytes(),
        )?;
        out.sync_all()?;
        Ok(true)
    }

    /// A token that nobody can guess: 64 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub fn fresh() -> io::Result<String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(snapshot::hex(&bytes))
    }

    /// Which of them `token` is. Takes as long for each.
    #[must_use]
    pub fn admit(&self, token: &[u8]) -> Option<NodeToken> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let found = self.tokens.iter().fold(None, |found, known| {
            let same: bool = known.digest.ct_eq(&digest).into();
            if same && found.is_none() { Some(known) } else { found }
        });
        found.cloned()
    }

    /// Whether a token is one of them, for the same nodes.
    #[must_use]
    pub fn hold(&self, token: &NodeToken) -> bool {
        self.tokens.contains(token)
    }

    /// How many of them are for no node of their own.
    #[must_use]
    pub fn shared(&self) -> usize {
        self.tokens.iter().filter(|token| token.nodes.as_ref().is_none_or(NodeNames::is_all)).count()
    }

    fn parse(file: &Path, bytes: &[u8]) -> Result<NodeTokens, String> {
        let mut tokens = Vec::new();
        for (number, line) in
            (1..).zip(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).split(|byte| *byte == b'\n'))
        {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let at = format!("{}: line {number}", file.display());
            let (nodes, token) = match line.strip_prefix(NODE) {
                Some(rest) => {
                    let end = rest.iter().position(u8::is_ascii_whitespace);
                    let (name, token) = end
                        .and_then(|end| rest.split_at_checked(end))
                        .ok_or_else(|| format!("{at}: there is no token behind the node: expected `node=ID TOKEN`"))?;
                    let name = String::from_utf8_lossy(name);
                    (Some(NodeNames::parse(&name).map_err(|why| format!("{at}: {why}"))?), token.trim_ascii())
                }
                None => (None, line),
            };
            if !token.iter().all(u8::is_ascii_graphic) {
                return Err(format!("{at}: a token has no spaces and only printable ASCII characters"));
            }
            if token.len() > MAX_BYTES {
                return Err(format!("{at}: a token has at most {MAX_BYTES} bytes"));
            }
            if tokens.len() >= MAX_TOKENS {
                return Err(format!("{at}: there are more than {MAX_TOKENS} tokens"));
            }
            if token.len() < SHORT {
                tracing::warn!("{at}: this token has fewer than {SHORT} characters and can be guessed");
            }
            tokens.push(NodeToken { digest: Sha256::digest(token).into(), nodes });
        }
        match tokens.is_empty() {
            true => Err(format!("{}: there is no token in it, which would let nobody in", file.display())),
            false => Ok(NodeTokens { tokens }),
        }
    }
}

impl fmt::Debug for NodeTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeTokens").field("count", &self.tokens.len()).finish_non_exhaustive()
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
    fn a_token_may_be_for_nodes_of_its_own() {
        let tokens =
            parse("node=edge-1 first-token-0123456789\nnode=core-*\tsecond-token-0123456789\nthird-token-0123456789");
        let tokens = tokens.unwrap();
        let nodes = |token: &str| tokens.admit(token.as_bytes()).unwrap().nodes().cloned();
        assert_eq!(nodes("first-token-0123456789").unwrap().only(), Some("edge-1"));
        assert!(nodes("second-token-0123456789").unwrap().admit("core-7"));
        assert_eq!((nodes("third-token-0123456789"), tokens.shared()), (None, 1));
        let first = tokens.admit(b"first-token-0123456789").unwrap();
        assert!(tokens.hold(&first));
        assert!(!parse("node=edge-2 first-token-0123456789").unwrap().hold(&first), "it is for another node now");
    }

    #[test]
    fn what_is_no_token_is_told_by_its_line_and_not_shown() {
        assert!(parse("\n# none\n").unwrap_err().contains("no token"));
        for (text, said) in [
            ("good-token-0123456789\nhunter two\n", "line 2: a token has no spaces"),
            ("hunter\u{fc}two-0123456789", "line 1: "),
            (&"h".repeat(MAX_BYTES + 1), "line 1: "),
            ("node=hunter", "line 1: there is no token behind the node"),
            ("node=a*b hunter-0123456789", "line 1: a node's id has"),
            ("node=edge-1 hunter two", "line 1: a token has no spaces"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("tokens: ") && error.contains(said) && !error.contains("hunter"), "{error}");
        }
        assert!(parse(&"a-token-that-is-long\n".repeat(MAX_TOKENS + 1)).unwrap_err().contains("line 1001"));
    }
}
