//! The tokens by which gateways are let in to xDS and the node link.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::NodeNames;
use super::error::ListenError;
use super::token_lines::{self, TokenLine, TokenValue};
use crate::Kept;
use base::atomic_file;

/// A token that is shorter can be guessed; it is taken with a warning.
const SHORT: usize = 16;
/// The hexadecimal digits of a derived token, in front of the node's id.
const DERIVED: usize = 64;

/// The tokens of a file. Any of them lets a gateway in, so that one can take the place of another. Only their SHA-256 is
/// kept: a plain digest, because a token is random and not a word.
pub struct NodeTokens {
    tokens: Vec<NodeToken>,
    secrets: Vec<NodeSecret>,
}

/// A secret of which the token of each node is derived. It is no token itself.
struct NodeSecret {
    secret: Vec<u8>,
    digest: [u8; 32],
    nodes: Option<NodeNames>,
}

/// A token without the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeToken {
    digest: [u8; 32],
    nodes: Option<NodeNames>,
    /// The SHA-256 of the secret that it is derived of.
    secret: Option<[u8; 32]>,
}

impl NodeToken {
    /// The nodes that it is for; `None` for a token that many share, whose nodes are whom they say they are.
    #[must_use]
    pub fn nodes(&self) -> Option<&NodeNames> {
        self.nodes.as_ref()
    }
}

impl NodeTokens {
    /// The tokens in this file, one on each line, with the nodes that it is for before it (`node=edge-1 TOKEN`); in place of a
    /// token there may be a secret (`node=edge-* derive=SECRET`) of which each of these nodes has a token of its own, see
    /// [`NodeTokens::derived`]. Blank lines and those that begin with `#` count for nothing. They follow the file once they are among those of
    /// [`crate::follow`].
    ///
    /// # Errors
    ///
    /// What is wrong with the file, with its line and without the token.
    pub fn open(file: PathBuf) -> Result<Kept<NodeTokens>, ListenError> {
        Kept::open("node tokens", vec![file.clone()], move |contents| {
            NodeTokens::parse(&file, contents.first().map(Vec::as_slice).unwrap_or_default())
        })
    }

    /// What a file begins with.
    pub const HEAD: &str = "# Tokens of gateways: `node=ID TOKEN`, one on each line.\n";

    /// Makes a file with a fresh token for the nodes of a name; false where there is one already. It is for its owner alone.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn create_file(file: &Path, node: &str) -> io::Result<bool> {
        let token = NodeTokens::fresh()?;
        let text = format!("{}node={node} {token}\n", NodeTokens::HEAD);
        atomic_file::create(file, text.as_bytes())
    }

    /// The token of one node, of the secret of a line `derive=SECRET`: the HMAC-SHA256 of its id in hexadecimal, a dot, and the
    /// id. Who has it is that node and no other.
    #[must_use]
    pub fn derived(secret: &[u8], node: &str) -> String {
        format!("{}.{node}", snapshot::hex(&mac(secret, node.as_bytes())))
    }

    /// A random token of 256 bits: 64 hexadecimal digits.
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
        found.cloned().or_else(|| self.admit_derived(token, digest))
    }

    fn admit_derived(&self, token: &[u8], digest: [u8; 32]) -> Option<NodeToken> {
        let (presented, id) = token.split_at_checked(DERIVED)?;
        let id = std::str::from_utf8(id.strip_prefix(b".")?).ok().filter(|id| NodeNames::check_id(id).is_ok())?;
        let nodes = NodeNames::any_of([id.to_owned()]);
        // Such an id would be taken for a pattern.
        nodes.only()?;
        let is_of = |secret: &&NodeSecret| {
            let expected = snapshot::hex(&mac(&secret.secret, id.as_bytes()));
            let same: bool = expected.as_bytes().ct_eq(presented).into();
            same && secret.is_for(id)
        };
        let secret = self.secrets.iter().find(is_of)?;
        Some(NodeToken { digest, nodes: Some(nodes), secret: Some(secret.digest) })
    }

    /// Whether a token is one of them, for the same nodes.
    #[must_use]
    pub fn hold(&self, token: &NodeToken) -> bool {
        let Some(of) = token.secret else { return self.tokens.contains(token) };
        let id = token.nodes.as_ref().and_then(NodeNames::only).unwrap_or_default();
        self.secrets.iter().any(|secret| secret.digest == of && secret.is_for(id))
    }

    /// How many of them are for no single node: who has one may say that it is any of those that it is for.
    #[must_use]
    pub fn shared(&self) -> usize {
        let single = |token: &NodeToken| token.nodes.as_ref().is_some_and(|nodes| nodes.only().is_some());
        self.tokens.iter().filter(|token| !single(token)).count()
    }

    /// The newest token of a file that is for a node: a token of a line with `node=`, or the one that is derived for it. `None`
    /// if no line is for it. For a pattern such as `edge-*` tokens alone are found: nothing is derived for a pattern.
    ///
    /// # Errors
    ///
    /// What is wrong with the file, with its line and without the token.
    pub fn newest(file: &Path, bytes: &[u8], node: &str) -> Result<Option<String>, ListenError> {
        let of_node = |line: TokenLine<'_>| {
            line.nodes.filter(|nodes| nodes.admit(node))?;
            match line.value {
                TokenValue::Token(token) => Some(String::from_utf8_lossy(token).into_owned()),
                TokenValue::Secret(secret) => (!node.contains('*')).then(|| NodeTokens::derived(secret, node)),
            }
        };
        let lines = token_lines::read(file, bytes).map_err(ListenError::File)?;
        Ok(lines.into_iter().rev().find_map(of_node))
    }

    fn parse(file: &Path, bytes: &[u8]) -> Result<NodeTokens, String> {
        let (mut tokens, mut secrets) = (Vec::new(), Vec::new());
        for TokenLine { at, nodes, value } in token_lines::read(file, bytes)? {
            if value.len() < SHORT {
                tracing::warn!("{at}: this token has fewer than {SHORT} characters and can be guessed");
            }
            match value {
                TokenValue::Token(token) => {
                    tokens.push(NodeToken { digest: Sha256::digest(token).into(), nodes, secret: None });
                }
                TokenValue::Secret(secret) => {
                    let digest = Sha256::digest(secret).into();
                    secrets.push(NodeSecret { secret: secret.to_vec(), digest, nodes });
                }
            }
        }
        Ok(NodeTokens { tokens, secrets })
    }
}

impl NodeSecret {
    fn is_for(&self, id: &str) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.admit(id))
    }
}

fn mac(secret: &[u8], id: &[u8]) -> [u8; 32] {
    // HMAC takes keys of any length.
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(secret) else { return Sha256::digest(secret).into() };
    mac.chain_update(id).finalize().into_bytes().into()
}

impl fmt::Debug for NodeTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeTokens").field("count", &(self.tokens.len() + self.secrets.len())).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::token_lines::{MAX_BYTES, MAX_TOKENS};
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
        assert_eq!((nodes("third-token-0123456789"), tokens.shared()), (None, 2), "a pattern is shared as well");
        let first = tokens.admit(b"first-token-0123456789").unwrap();
        assert!(tokens.hold(&first));
        assert!(!parse("node=edge-2 first-token-0123456789").unwrap().hold(&first), "it is for another node now");
    }

    #[test]
    fn every_node_may_have_a_token_of_its_own_from_one_secret() {
        let secret = "one-secret-0123456789";
        let tokens = parse(&format!("node=edge-* derive={secret}\nderive=another-0123456789")).unwrap();
        let (one, two) =
            (NodeTokens::derived(secret.as_bytes(), "edge-1"), NodeTokens::derived(secret.as_bytes(), "core-1"));
        let admitted = tokens.admit(one.as_bytes()).unwrap();
        assert_eq!(admitted.nodes().unwrap().only(), Some("edge-1"));
        assert!(tokens.hold(&admitted) && tokens.shared() == 0);
        assert!(tokens.admit(two.as_bytes()).is_none(), "it is for other nodes");
        let anywhere = NodeTokens::derived(b"another-0123456789", "core-1");
        assert!(tokens.admit(anywhere.as_bytes()).unwrap().nodes().unwrap().names("core-1"));
        let stolen = one.replace("edge-1", "edge-2");
        let pattern = NodeTokens::derived(secret.as_bytes(), "edge-*");
        let none = NodeTokens::derived(secret.as_bytes(), "");
        for wrong in [stolen.as_str(), secret, "derive=one-secret-0123456789", &pattern, &none, &one[..64], &one[1..]] {
            assert!(tokens.admit(wrong.as_bytes()).is_none(), "{wrong}");
        }
        let still = parse(&format!("node=edge-1 derive={secret}")).unwrap();
        assert!(still.hold(&admitted));
        assert!(!parse(&format!("node=edge-2 derive={secret}")).unwrap().hold(&admitted));
        assert!(!parse("derive=another-0123456789").unwrap().hold(&admitted), "the secret was taken away");
        assert!(parse("derive=").unwrap_err().contains("no secret"));
    }

    #[test]
    fn a_file_of_tokens_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        assert!(NodeTokens::create_file(&file, "edge-1").unwrap());
        let made = std::fs::read(&file).unwrap();
        assert!(NodeTokens::parse(&file, &made).is_ok());
        assert!(!NodeTokens::create_file(&file, "edge-1").unwrap());
        assert_eq!(std::fs::read(&file).unwrap(), made, "an existing file is unchanged");
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
