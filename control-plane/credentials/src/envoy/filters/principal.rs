//! Principals of RBAC: which of them only callers with a credential can be.

use std::collections::BTreeSet;

use crate::envoy::node::{Node, Notes};
use crate::facts::CredentialKind;

/// Principals within each other, at most.
const MAX_DEPTH: usize = 16;

/// What a principal says of credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Principal {
    /// A caller who is one has a credential of one of these kinds; `None` where a caller without any can be one.
    pub(super) has: Option<BTreeSet<CredentialKind>>,
    /// A caller without a credential of these kinds is one for sure; `None` where that cannot be said.
    pub(super) lacks: Option<BTreeSet<CredentialKind>>,
}

// === impl Principal ===

impl Principal {
    fn unknown() -> Principal {
        Principal { has: None, lacks: None }
    }

    fn with(kind: CredentialKind) -> Principal {
        Principal { has: Some(BTreeSet::from([kind])), lacks: None }
    }

    /// One of several.
    pub(super) fn any_of(all: Vec<Principal>) -> Principal {
        let has = all.iter().try_fold(BTreeSet::new(), |mut kinds, one| {
            kinds.extend(one.has.clone()?);
            Some(kinds)
        });
        let has = has.filter(|_| !all.is_empty());
        Principal { has, lacks: all.into_iter().find_map(|one| one.lacks) }
    }

    /// All of several at once.
    fn all_of(all: Vec<Principal>) -> Principal {
        let lacks = all.iter().try_fold(BTreeSet::new(), |mut kinds, one| {
            kinds.extend(one.lacks.clone()?);
            Some(kinds)
        });
        let lacks = lacks.filter(|_| !all.is_empty());
        Principal { has: all.into_iter().find_map(|one| one.has), lacks }
    }

    /// Reads a principal.
    pub(super) fn read(node: &Node<'_>, notes: &Notes) -> Principal {
        Principal::at(node, notes, MAX_DEPTH)
    }

    fn at(node: &Node<'_>, notes: &Notes, depth: usize) -> Principal {
        let Some(depth) = depth.checked_sub(1) else {
            notes.fault(node, "principals are nested too deep");
            return Principal::unknown();
        };
        let mut fields = node.each().filter(|(name, _)| *name != "@type");
        let (Some((name, inner)), None) = (fields.next(), fields.next()) else {
            notes.fault(node, "a principal has one field");
            return Principal::unknown();
        };
        let each = || inner.list("ids", notes).iter().map(|one| Principal::at(one, notes, depth)).collect::<Vec<_>>();
        match name {
            // Everyone, so that a caller without any credential is one for sure.
            "any" => Principal { has: None, lacks: None },
            "authenticated" => Principal::with(CredentialKind::ClientCertificate),
            "and_ids" | "andIds" => Principal::all_of(each()),
            "or_ids" | "orIds" => Principal::any_of(each()),
            "not_id" | "notId" => {
                let inner = Principal::at(&inner, notes, depth);
                // Who lacks the credential is not one of those who have it.
                Principal { has: inner.lacks, lacks: inner.has }
            }
            "metadata" => metadata(&inner, notes),
            "sourced_metadata" | "sourcedMetadata" => match inner.get("metadata_source") {
                // Of the request; metadata of routes is the same for all callers.
                None => inner
                    .object("metadata_matcher", notes)
                    .map_or_else(Principal::unknown, |matcher| metadata(&matcher, notes)),
                Some(_) => Principal::unknown(),
            },
            "filter_state" | "filterState" => match inner.text("key", notes) {
                Some("io.istio.peer_principal") => Principal::with(CredentialKind::ClientCertificate),
                _ => Principal::unknown(),
            },
            "source_ip" | "sourceIp" | "direct_remote_ip" | "directRemoteIp" | "remote_ip" | "remoteIp" | "header"
            | "url_path" | "urlPath" => Principal::unknown(),
            "custom" => {
                notes.warn(&inner, "the principal is not read: callers without a credential may be it");
                Principal::unknown()
            }
            _ => {
                notes.fault(&inner, "the principal is not known to this release");
                Principal::unknown()
            }
        }
    }
}

/// A principal by what filters in front have noted of a verified credential; callers cannot write there.
fn metadata(matcher: &Node<'_>, notes: &Notes) -> Principal {
    let filter = matcher.text("filter", notes).unwrap_or_default();
    let inverted = matcher.flag("invert", notes).unwrap_or(false);
    let nothing = matcher.object("value", notes).is_none_or(|value| {
        value.get("null_match").is_some()
            || value.flag("present_match", notes) == Some(false)
            || value.get("or_match").is_some()
    });
    let first =
        matcher.list("path", notes).first().and_then(|step| step.text("key", notes)).unwrap_or_default().to_owned();
    let kind = match filter {
        "envoy.filters.http.jwt_authn" => CredentialKind::Jwt,
        "envoy.filters.http.basic_auth" => CredentialKind::Basic,
        "envoy.filters.http.ext_authz" => CredentialKind::External,
        "istio_authn" if first.starts_with("request.auth") => CredentialKind::Jwt,
        "istio_authn" if first.starts_with("source.") => CredentialKind::ClientCertificate,
        _ => return Principal::unknown(),
    };
    match (nothing, inverted) {
        (true, _) => Principal::unknown(),
        (false, false) => Principal::with(kind),
        // Who lacks the credential has no such value.
        (false, true) => Principal { has: None, lacks: Some(BTreeSet::from([kind])) },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: &Value) -> (Option<Vec<CredentialKind>>, Option<Vec<CredentialKind>>, usize) {
        let notes = Notes::default();
        let Principal { has, lacks } = Principal::read(&Node::root(value), &notes);
        let list = |kinds: Option<BTreeSet<CredentialKind>>| kinds.map(|kinds| kinds.into_iter().collect());
        (list(has), list(lacks), notes.faults())
    }

    #[test]
    fn principals_that_need_a_credential() {
        use CredentialKind::{ClientCertificate, Jwt};
        let tls = json!({"authenticated": {"principal_name": {"exact": "spiffe://x"}}});
        let path = json!([{"key": "payload"}, {"key": "sub"}]);
        let jwt = json!({"metadata": {"filter": "envoy.filters.http.jwt_authn", "path": path, "value": {"string_match": {"prefix": "a"}}}});
        let address = json!({"direct_remote_ip": {"address_prefix": "10.0.0.0", "prefix_len": 8}});
        let has = |value: Value, kinds: &[CredentialKind]| {
            assert_eq!(read(&value), (Some(kinds.to_vec()), None, 0), "{value}");
        };
        let none = |value: Value| assert_eq!(read(&value), (None, None, 0), "{value}");
        has(tls.clone(), &[ClientCertificate]);
        has(jwt.clone(), &[Jwt]);
        has(json!({"or_ids": {"ids": [tls, jwt]}}), &[Jwt, ClientCertificate]);
        has(json!({"and_ids": {"ids": [address, jwt]}}), &[Jwt]);
        none(json!({"or_ids": {"ids": [address, jwt]}}));
        none(address.clone());
        none(json!({"any": true}));
        none(json!({"header": {"name": "authorization", "present_match": true}}));
        assert_eq!(read(&json!({"not_id": tls})), (None, Some(vec![ClientCertificate]), 0));
        has(json!({"not_id": {"not_id": jwt}}), &[Jwt]);
        assert_eq!(
            read(&json!({"and_ids": {"ids": [{"not_id": tls}, {"not_id": jwt}]}})).1,
            Some(vec![Jwt, ClientCertificate])
        );
        let mut absent = jwt;
        absent["metadata"]["value"] = json!({"null_match": {}});
        none(absent);
    }

    #[test]
    fn what_is_not_known_is_a_fault() {
        let mut deep = json!({"any": true});
        for _ in 0..40 {
            deep = json!({ "not_id": deep });
        }
        for value in [
            json!({}),
            json!([]),
            json!({"later": {}}),
            json!({"any": true, "header": {}}),
            json!({"or_ids": {"ids": 1}}),
            deep,
        ] {
            let (has, _, faults) = read(&value);
            assert!(faults > 0 && has.is_none(), "{value}");
        }
    }
}
