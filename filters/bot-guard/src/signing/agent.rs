//! Identifiers of key directories: what a policy names, and what requests name in `Signature-Agent`
//! (draft-ietf-webbotauth-httpsig-protocol).

/// How a URL leads to keys; what `type` of a member of `Signature-Agent` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DirectoryKind {
    /// An origin, with a key set at its well-known URI.
    Directory,
    /// The URL of a key set (JWKS).
    JwksUri,
    /// The URL of a card (a client ID metadata document), which has a key set or names one.
    Cimd,
}

/// The longest URL, in bytes: an identifier is the detail of a signal as a whole.
const MAX_URL: usize = 500;

impl DirectoryKind {
    /// The kind of a word; `None` for one that is not known.
    pub(crate) fn of(word: &[u8]) -> Option<DirectoryKind> {
        [DirectoryKind::Directory, DirectoryKind::JwksUri, DirectoryKind::Cimd]
            .into_iter()
            .find(|kind| kind.word().as_bytes() == word)
    }

    /// The word of `Signature-Agent` and of policies.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            DirectoryKind::Directory => "directory",
            DirectoryKind::JwksUri => "jwks_uri",
            DirectoryKind::Cimd => "cimd",
        }
    }
}

/// The identifier of a directory: its kind and its URL in one spelling. Equal identifiers are one directory. `None` for a URL that
/// identifies none: not http or https, with credentials, longer than 500 bytes, or as a `directory` more than an origin.
#[must_use]
pub fn identifier(kind: DirectoryKind, url: &[u8]) -> Option<Vec<u8>> {
    if url.len() > MAX_URL || !url.is_ascii() || url.iter().any(u8::is_ascii_control) {
        return None;
    }
    let scheme_end = url.windows(3).position(|part| part == b"://")?;
    let scheme = url.get(..scheme_end)?.to_ascii_lowercase();
    let default_port: &[u8] = match scheme.as_slice() {
        b"https" => b":443",
        b"http" => b":80",
        _ => return None,
    };
    let rest = url.get(scheme_end.saturating_add(3)..)?;
    let authority_end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(authority_end)?;
    let authority = authority.to_ascii_lowercase();
    let authority = authority.strip_suffix(default_port).unwrap_or(&authority);
    if authority.is_empty() || authority.starts_with(b":") || authority.contains(&b'@') {
        return None;
    }
    // The query is no part of an identifier: one key set would have as many as anyone likes.
    let path = path.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
    let path: &[u8] = match kind {
        DirectoryKind::Directory if path.is_empty() || path == b"/" => b"",
        DirectoryKind::Directory => return None,
        _ if path.is_empty() => b"/",
        _ => path,
    };
    Some([kind.word().as_bytes(), b" ", &scheme, b"://", authority, path].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_directory_have_one_identifier() {
        let of = |kind, url: &str| identifier(kind, url.as_bytes()).map(|id| String::from_utf8(id).unwrap());
        for url in ["https://a.example", "HTTPS://A.Example/", "https://a.example:443", "https://a.example:443/?x#y"] {
            let id = of(DirectoryKind::Directory, url);
            assert_eq!(id.as_deref(), Some("directory https://a.example"), "{url}");
        }
        let jwks = of(DirectoryKind::JwksUri, "https://A.example/Keys.json?x=1");
        assert_eq!(jwks.as_deref(), Some("jwks_uri https://a.example/Keys.json"));
        assert_eq!(of(DirectoryKind::Cimd, "http://a.example:80").as_deref(), Some("cimd http://a.example/"));
        assert_ne!(of(DirectoryKind::Directory, "http://a.example"), of(DirectoryKind::Directory, "https://a.example"));
    }

    #[test]
    fn what_is_no_url_of_a_directory_has_none() {
        for url in [
            "",
            "a.example",
            "https://",
            "https://:443",
            "https:///x",
            "ftp://a.example",
            "data:,x",
            "https://u@a.example",
            "https://a.example/keys",
            "https://a.example\n",
            "https://\u{e4}.example",
        ] {
            assert_eq!(identifier(DirectoryKind::Directory, url.as_bytes()), None, "{url}");
        }
        assert_eq!(
            identifier(DirectoryKind::Cimd, &[b"https://a.example/".as_slice(), &[b'x'; MAX_URL]].concat()),
            None
        );
        assert_eq!(DirectoryKind::of(b"cimd"), Some(DirectoryKind::Cimd));
        assert_eq!(DirectoryKind::of(b"Cimd"), None);
    }
}
