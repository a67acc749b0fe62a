//! The lines of a file of node tokens.

use std::borrow::Cow;
use std::path::Path;

use super::NodeNames;

/// The bytes of a token, at most: it travels in a header.
pub(super) const MAX_BYTES: usize = 4096;
/// The tokens and secrets of a file, at most: each is compared on every stream.
pub(super) const MAX_TOKENS: usize = 1000;

/// The prefix of a line that names the nodes of its token.
const NODE: &[u8] = b"node=";
/// The prefix of a secret from which the tokens of single nodes are derived.
pub const DERIVE: &str = "derive=";

/// A token or a secret, with the nodes that it is for.
pub(super) struct TokenLine<'a> {
    /// The file and the number of the line, for errors.
    pub(super) at: String,
    /// `None` for all nodes.
    pub(super) nodes: Option<NodeNames>,
    pub(super) value: TokenValue<'a>,
}

/// What a line has.
pub(super) enum TokenValue<'a> {
    Token(&'a [u8]),
    /// A secret from which the token of each node is derived.
    Secret(&'a [u8]),
}

impl TokenValue<'_> {
    /// The bytes of the token or of the secret.
    pub(super) fn len(&self) -> usize {
        match self {
            TokenValue::Token(bytes) | TokenValue::Secret(bytes) => bytes.len(),
        }
    }
}

/// Reads a file of node tokens.
///
/// # Errors
///
/// The first fault, with its line and without the token.
pub(super) fn read<'a>(file: &Path, bytes: &'a [u8]) -> Result<Vec<TokenLine<'a>>, String> {
    let mut lines = Vec::new();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let at = format!("{}: line {number}", file.display());
        let (nodes, value) = read_line(line).map_err(|why| format!("{at}: {why}"))?;
        if lines.len() >= MAX_TOKENS {
            return Err(format!("{at}: there are more than {MAX_TOKENS} tokens"));
        }
        lines.push(TokenLine { at, nodes, value });
    }
    match lines.is_empty() {
        true => Err(format!("{}: there is no token in it, so no gateway could connect", file.display())),
        false => Ok(lines),
    }
}

fn read_line(line: &[u8]) -> Result<(Option<NodeNames>, TokenValue<'_>), Cow<'static, str>> {
    let (nodes, token) = match line.strip_prefix(NODE) {
        Some(rest) => {
            let end = rest.iter().position(u8::is_ascii_whitespace);
            let (name, token) = end
                .and_then(|end| rest.split_at_checked(end))
                .ok_or("there is no token behind the node: expected `node=ID TOKEN`")?;
            (
                Some(NodeNames::parse(&String::from_utf8_lossy(name)).map_err(|error| error.to_string())?),
                token.trim_ascii(),
            )
        }
        None => (None, line),
    };
    if !token.iter().all(u8::is_ascii_graphic) {
        return Err("a token has no spaces and only printable ASCII characters".into());
    }
    if token.len() > MAX_BYTES {
        return Err(format!("a token has at most {MAX_BYTES} bytes").into());
    }
    match token.strip_prefix(DERIVE.as_bytes()) {
        Some([]) => Err(format!("there is no secret behind `{DERIVE}`").into()),
        Some(secret) => Ok((nodes, TokenValue::Secret(secret))),
        None => Ok((nodes, TokenValue::Token(token))),
    }
}
