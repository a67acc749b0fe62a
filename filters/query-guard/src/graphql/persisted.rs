//! References to documents that a server has stored, in place of a document or beside it.

use snapshot::{content_hash, hex};

use super::GraphqlRequest;
use crate::json::Json;
use crate::messages::Persisted;
use crate::violation::{Mismatch, Violation};

/// The names that servers take a reference from beside Apollo's `extensions.persistedQuery.sha256Hash`: that of GraphQL over HTTP
/// (appendix on persisted documents), those of Relay, of `persistgraphql` and of Hot Chocolate.
pub(crate) const NAMES: [&str; 4] = ["documentId", "queryId", "doc_id", ID];
/// Some clients number each request in it, beside the document (`react-relay-network-modern` of Relay).
const ID: &str = "id";

/// The names that tell of a request of GraphQL; `id` is anything's.
pub(crate) const TELLING: [&str; 3] = ["documentId", "queryId", "doc_id"];

/// A reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The name may number the request.
    Id,
    /// It is nothing but a reference.
    Document,
}

impl Reference {
    /// The reference among the members of a JSON object: a text that is not empty, or a number in another name than `id`, in which clients
    /// number their requests. Names count in any case.
    pub(super) fn of_members(members: &[(String, Json)]) -> Option<Self> {
        let one = |(name, value): &(String, Json)| {
            let named = Self::named(name.as_bytes())?;
            let refers = match value {
                Json::String(text) => !text.is_empty(),
                Json::Number(_) => named == Self::Document,
                _ => false,
            };
            refers.then_some(named)
        };
        Self::strongest(members.iter().filter_map(one))
    }

    /// The reference among the names of parameters that have a value.
    pub(super) fn of_parameters(given: &[Vec<u8>]) -> Option<Self> {
        Self::strongest(given.iter().filter_map(|name| Self::named(name)))
    }

    fn named(name: &[u8]) -> Option<Self> {
        let known = NAMES.iter().find(|known| names::equal(name, known.as_bytes()))?;
        Some(if *known == ID { Self::Id } else { Self::Document })
    }

    fn strongest(mut found: impl Iterator<Item = Self>) -> Option<Self> {
        let first = found.next()?;
        Some(if found.any(|one| one == Self::Document) { Self::Document } else { first })
    }
}

/// Whether a body has a name that tells of a reference, in any case.
pub(crate) fn tells(body: &[u8]) -> bool {
    let folded = names::folded(body);
    let has = |name: &&str| folded.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name.as_bytes()));
    TELLING.iter().any(has)
}

impl GraphqlRequest {
    /// The hash of a persisted query.
    pub(super) fn hash(&self) -> Option<&str> {
        let of = |name: &str, inner: &str| self.extensions.as_ref()?.get(name)?.get(inner)?.text();
        of("persistedQuery", "sha256Hash")
    }

    /// Judges a request without a document.
    pub(super) fn without_document(&self, persisted: Persisted) -> Vec<Violation> {
        let one = |kind: Mismatch, detail: &str| vec![Violation::new(kind, detail)];
        match (self.hash(), self.reference, persisted) {
            (None, None, _) => one(Mismatch::InvalidRequest, "the request has no `query`"),
            (_, _, Persisted::Deny) => one(Mismatch::Persisted, "persisted queries are not allowed"),
            (Some(hash), ..) if !is_hash(hash) => one(Mismatch::Persisted, "expected a hash of 64 hexadecimal digits"),
            _ => Vec::new(),
        }
    }

    /// Judges what stands beside a document: a server may execute what it has stored, and not what was looked at.
    pub(super) fn beside_document(&self, text: &str, persisted: Persisted) -> Vec<Violation> {
        let hash = self.hash();
        if persisted == Persisted::Deny {
            let refers = hash.is_some() || self.reference.is_some();
            let denied = || Violation::new(Mismatch::Persisted, "persisted queries are not allowed");
            return refers.then(denied).into_iter().collect();
        }
        let is_other = |hash: &str| !hash.eq_ignore_ascii_case(&hex(&content_hash(text.as_bytes())));
        let other = || Violation::new(Mismatch::Persisted, "the hash is not that of the document");
        let both = "expected a document or a reference to a stored one, and not both";
        // Clients number their requests with `id`, and a stored document may be asked for here anyway.
        let refers = self.reference == Some(Reference::Document);
        let found =
            [hash.is_some_and(is_other).then(other), refers.then(|| Violation::new(Mismatch::InvalidRequest, both))];
        found.into_iter().flatten().collect()
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
