//! The nodes that a token or certificate speaks for.

use std::fmt;

use super::error::{MAX_BYTES, NodeNameError};

/// The ids of the nodes that a token or a certificate is for: whole ones, and beginnings (`edge-*`) or ends (`*.example`) of
/// ids.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeNames(Vec<String>);

impl NodeNames {
    /// The node of this id; with a `*` at its end or its beginning all that begin or end as it does.
    ///
    /// # Errors
    ///
    /// What is wrong with it, without it.
    pub fn parse(name: &str) -> Result<NodeNames, NodeNameError> {
        let whole = name.strip_suffix('*').or_else(|| name.strip_prefix('*')).unwrap_or(name);
        let sane = whole.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'*') && !name.is_empty();
        match sane && name.len() <= MAX_BYTES {
            true => Ok(NodeNames(vec![name.to_owned()])),
            false => Err(NodeNameError::Pattern),
        }
    }

    /// Whether something can be the id of one node: 1 to 256 printable ASCII characters without spaces.
    ///
    /// # Errors
    ///
    /// What is wrong with it, without it.
    pub fn check_id(id: &str) -> Result<(), NodeNameError> {
        match !id.is_empty() && id.len() <= MAX_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(()),
            false => Err(NodeNameError::Id),
        }
    }

    /// The nodes of any of these names.
    pub(crate) fn any_of(names: impl IntoIterator<Item = String>) -> NodeNames {
        NodeNames(names.into_iter().collect())
    }

    /// Whether the node of this id is one of them.
    #[must_use]
    pub fn admit(&self, id: &str) -> bool {
        self.0.iter().any(|name| match (name.strip_suffix('*'), name.strip_prefix('*')) {
            (Some(begin), _) => id.starts_with(begin) && !id.is_empty(),
            (None, Some(end)) => id.len() > end.len() && id.ends_with(end),
            (None, None) => name == id,
        })
    }

    /// The one node that it is, where it is one.
    #[must_use]
    pub fn only(&self) -> Option<&str> {
        match self.0.as_slice() {
            [name] if !name.contains('*') => Some(name),
            _ => None,
        }
    }

    /// Whether one of the names is exactly this id, so that it admits no other node.
    #[must_use]
    pub fn names(&self, id: &str) -> bool {
        self.0.iter().any(|name| name == id && !name.contains('*'))
    }
}

impl fmt::Debug for NodeNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_or_open_at_one_end() {
        let admits = |name: &str, id: &str| NodeNames::parse(name).unwrap().admit(id);
        assert!(admits("edge-1", "edge-1") && !admits("edge-1", "edge-10") && !admits("edge-1", ""));
        assert!(admits("edge-*", "edge-1") && !admits("edge-*", "core-edge-1"));
        assert!(admits("*.gw.example", "a.gw.example") && !admits("*.gw.example", ".gw.example"));
        assert!(admits("*", "anything") && !admits("*", ""));
        let only = |name: &str| NodeNames::parse(name).unwrap().only().map(str::to_owned);
        assert_eq!((only("edge-1").as_deref(), only("edge-*"), only("*")), (Some("edge-1"), None, None));
        for wrong in ["", "a b", "a*b", "**", "*a*", "\u{fc}", &"x".repeat(257)] {
            assert!(NodeNames::parse(wrong).is_err(), "{wrong}");
        }
    }
}
