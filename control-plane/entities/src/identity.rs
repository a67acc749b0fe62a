//! How callers are identified, and what verifies them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FieldProblem;
use super::api_key::{ApiKey, ApiKeyDocument, MAX_API_KEYS};
use super::gateway::Delivery;
use base::identity::OWN_KEYS;

/// Verifiers, at most: each is asked about every request.
const MAX_VERIFIERS: usize = 8;
/// The words of a path in metadata, at most, and the bytes of each.
const MAX_PATH: usize = 8;
const MAX_WORD: usize = 256;

/// How callers are identified: by the most specific verified identity, an API key, else a user, else the address that Envoy
/// sees. An unverified API key or user is shown in events as a label and is no identity: bans, quotas, the ledger and
/// incidents then use the address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename = "Identity", expecting = "struct Identity")]
pub struct IdentitySettings {
    /// The header with an API key. It is verified if the key is one of `api_keys`.
    pub api_key_header: Option<String>,
    /// The query parameter with an API key. It is verified if the key is one of `api_keys`.
    pub api_key_query: Option<String>,
    /// Whether events show a key in plain text that is none of `api_keys`. Default false: they show a fingerprint.
    pub api_key_is_id: bool,
    /// The known API keys, at most 10000. A caller with one of them is `apikey:<id>`.
    #[schemars(with = "Vec<ApiKeyDocument>")]
    pub api_keys: Vec<ApiKey>,
    /// The header that names a user, for events: any client can write it, so it is not an identity.
    pub user_header: Option<String>,
    /// Sources of verified identities in front of the filters, at most 8; the first that has a user, or an API key, counts. The
    /// listener that xDS serves (`delivery: full`) has no other filters and asks for no certificate: there only a `trusted_header`
    /// that a proxy sets works.
    pub verified_by: Vec<Verifier>,
    /// Number of proxies in front whose `x-forwarded-for` is trusted. Default 0: the header is not trusted. It applies to the
    /// listener that xDS serves; other listeners have their own setting.
    pub trusted_hops: u32,
    /// The width of the network that identifies an IPv6 caller, in bits: 48, 56, 64 (the default) or 128, which means each
    /// address by itself.
    pub ipv6_prefix: u8,
    /// Whether many banned IPv6 networks within one wider network lead to a ban on that network: 8 within a /56, 32 within a
    /// /48. Default true.
    pub ipv6_widen: bool,
    /// Whether bans hold on TLS fingerprints (`ja4:<fingerprint>`) as well. A fingerprint is that of a software, so a ban on it refuses
    /// everyone who uses that. It needs a listener with TLS that computes them (`gateway.tls`). Default false.
    pub tls_fingerprint: bool,
}

/// A source of verified identities in front of the filters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verifier {
    /// The kind of source.
    pub kind: VerifierKind,
    /// The kind of identity that it gives. Default user.
    #[serde(default)]
    pub gives: Gives,
    /// `metadata`: the namespace of the dynamic metadata, such as `envoy.filters.http.ext_authz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `jwt` and `metadata`: the path of the value, word by word. Of `jwt` the first word is the provider's `payload_in_metadata`, the
    /// others lead to the claim: `[payload, sub]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// `mtls`: the name of the client's certificate. Default uri_san.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<CertificateName>,
    /// `basic_auth` and `trusted_header`: the header, which only the verifier may be able to set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// `trusted_header`: what sets the header. Default filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_by: Option<SetBy>,
}

/// A kind of source of verified identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifierKind {
    /// Envoy's filter `jwt_authn`, by the payload that it leaves in dynamic metadata (`payload_in_metadata`).
    Jwt,
    /// Any filter that writes dynamic metadata, such as `ext_authz`.
    Metadata,
    /// The listener's TLS, by the client's certificate. Its validation context must name an authority.
    Mtls,
    /// Envoy's filter `basic_auth`, by the header of its `forward_username_header`.
    BasicAuth,
    /// A header that a filter in front of ours sets (`ext_authz`), or a proxy in front of the gateway.
    TrustedHeader,
}

impl VerifierKind {
    /// As documents have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            VerifierKind::Jwt => "jwt",
            VerifierKind::Metadata => "metadata",
            VerifierKind::Mtls => "mtls",
            VerifierKind::BasicAuth => "basic_auth",
            VerifierKind::TrustedHeader => "trusted_header",
        }
    }
}

/// The kind of identity that a verifier gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Gives {
    /// A user.
    #[default]
    User,
    /// The id of an API key.
    Apikey,
}

/// A name in a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CertificateName {
    /// The first URI of its alternative names, such as a SPIFFE id.
    #[default]
    UriSan,
    /// The first DNS name of its alternative names.
    DnsSan,
    /// Its subject.
    Subject,
}

/// What sets a trusted header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SetBy {
    /// A filter of the gateway. The listener that xDS serves removes the header of clients; your own listener must do so.
    #[default]
    Filter,
    /// A proxy in front of the gateway, one of `trusted_hops`, which must overwrite the header of clients. A client that bypasses
    /// that proxy can claim any identity.
    Proxy,
}

// === impl IdentitySettings ===

impl Default for IdentitySettings {
    fn default() -> IdentitySettings {
        IdentitySettings {
            api_key_header: None,
            api_key_query: None,
            api_key_is_id: false,
            api_keys: Vec::new(),
            user_header: None,
            verified_by: Vec::new(),
            trusted_hops: 0,
            ipv6_prefix: base::identity::IPV6_PREFIX,
            ipv6_widen: true,
            tls_fingerprint: false,
        }
    }
}

impl IdentitySettings {
    pub(super) fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        for (field, header) in [("/api_key_header", &self.api_key_header), ("/user_header", &self.user_header)] {
            problems.extend(header.as_ref().and_then(|name| no_header(field, name)));
        }
        let is_secret =
            |name: &&String| ["cookie", "authorization"].iter().any(|secret| name.eq_ignore_ascii_case(secret));
        if let Some(name) = self.user_header.as_ref().filter(is_secret) {
            let message = format!("the values of `{name}` are secrets, and names of users are shown in events");
            problems.push(FieldProblem::new("/user_header", message).expected("a header that names the user alone"));
        }
        if self.api_key_query.as_deref() == Some("") {
            problems.push(
                FieldProblem::new("/api_key_query", "a query parameter has a name")
                    .expected("a name, or null for none"),
            );
        }
        if self.ipv6_prefix != 128 && !OWN_KEYS.contains(&self.ipv6_prefix) {
            let message = format!("{} bits is not a width that identifies callers", self.ipv6_prefix);
            problems.push(FieldProblem::new("/ipv6_prefix", message).expected("48, 56, 64 or 128"));
        }
        if self.api_keys.len() > MAX_API_KEYS {
            let message = format!("{} api keys", self.api_keys.len());
            problems.push(FieldProblem::new("/api_keys", message).expected(format!("at most {MAX_API_KEYS}")));
        }
        problems.extend(ApiKey::check_all(&self.api_keys).into_iter().map(|problem| problem.under("/api_keys")));
        if self.verified_by.len() > MAX_VERIFIERS {
            let message = format!("{} verifiers", self.verified_by.len());
            problems.push(FieldProblem::new("/verified_by", message).expected(format!("at most {MAX_VERIFIERS}")));
        }
        for (index, verifier) in self.verified_by.iter().enumerate() {
            let place = format!("/verified_by/{index}");
            problems.extend(verifier.check(self.trusted_hops).into_iter().map(|problem| problem.under(&place)));
        }
        problems
    }

    /// The headers that callers are identified by, as the configuration writes them.
    pub fn headers(&self) -> Vec<String> {
        let own = [&self.api_key_header, &self.user_header].into_iter().flatten().cloned();
        let mut names: Vec<String> = own.chain(self.verified_by.iter().filter_map(Verifier::header_name)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The headers that the gateway's listener takes from clients, because only a filter of its own may set them.
    #[must_use]
    pub fn taken_from_clients(&self) -> Vec<String> {
        let set_here = |verifier: &&Verifier| verifier.set_by != Some(SetBy::Proxy);
        let mut names: Vec<String> =
            self.verified_by.iter().filter(set_here).filter_map(Verifier::header_name).collect();
        names.sort();
        names.dedup();
        names
    }

    /// What is given here and counts for nothing but events; for people.
    #[must_use]
    pub fn labels(&self) -> Vec<&'static str> {
        let gives = |gives| self.verified_by.iter().any(|verifier| verifier.gives == gives);
        let key = self.api_key_header.is_some() || self.api_key_query.is_some();
        let mut found = Vec::new();
        if key && self.api_keys.is_empty() && !gives(Gives::Apikey) {
            found.push("`identity.api_key_header` or `api_key_query`, and no api key is verified: give `api_keys`");
        }
        if self.user_header.is_some() && !gives(Gives::User) {
            found.push("`identity.user_header`, and no user is verified: give `verified_by`");
        }
        found
    }

    /// Whether anything verifies identities of this kind (`apikey`, `user`) on a gateway that takes this from the control plane;
    /// addresses need none.
    #[must_use]
    pub fn verifies(&self, kind: &str, delivery: Delivery) -> bool {
        let gives =
            |gives| self.verified_by.iter().any(|verifier| verifier.gives == gives && verifier.can_verify(delivery));
        let keys = !self.api_keys.is_empty() && (self.api_key_header.is_some() || self.api_key_query.is_some());
        match kind {
            "apikey" => keys || gives(Gives::Apikey),
            "user" => gives(Gives::User),
            "ja4" => self.tls_fingerprint,
            _ => true,
        }
    }
}

// === impl Verifier ===

impl Verifier {
    /// Whether it can verify anybody on a gateway that takes this from the control plane. The listener that xDS serves has our
    /// filters alone and asks for no certificate, so that only a proxy in front of it verifies; other listeners may have any.
    #[must_use]
    pub fn can_verify(&self, delivery: Delivery) -> bool {
        delivery == Delivery::Ecds || self.set_by == Some(SetBy::Proxy)
    }

    /// The header that it is in, in lower case.
    #[must_use]
    pub fn header_name(&self) -> Option<String> {
        self.header.as_ref().map(|name| name.to_ascii_lowercase())
    }

    /// The gateway's property that it is in, word by word; none for one in a header.
    #[must_use]
    pub fn property(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let metadata = |namespace: &str| {
            let mut path = words(&["metadata", "filter_metadata", namespace]);
            path.extend(self.path.iter().cloned());
            path
        };
        match self.kind {
            VerifierKind::Jwt => metadata("envoy.filters.http.jwt_authn"),
            VerifierKind::Metadata => metadata(self.namespace.as_deref().unwrap_or_default()),
            VerifierKind::Mtls => words(&["connection", self.name.unwrap_or_default().property()]),
            VerifierKind::BasicAuth | VerifierKind::TrustedHeader => Vec::new(),
        }
    }

    fn check(&self, trusted_hops: u32) -> Vec<FieldProblem> {
        use VerifierKind::{BasicAuth, Jwt, Metadata, Mtls, TrustedHeader};
        let mut problems = Vec::new();
        let given = [
            ("/namespace", self.namespace.is_some(), &[Metadata][..], true),
            ("/path", !self.path.is_empty(), &[Jwt, Metadata], true),
            ("/name", self.name.is_some(), &[Mtls], false),
            ("/header", self.header.is_some(), &[BasicAuth, TrustedHeader], true),
            ("/set_by", self.set_by.is_some(), &[TrustedHeader], false),
        ];
        for (field, given, kinds, needed) in given {
            match (given, kinds.contains(&self.kind)) {
                (true, false) => problems.push(FieldProblem::new(field, "this kind of verifier has no such field")),
                (false, true) if needed => problems.push(FieldProblem::new(field, "this kind of verifier needs it")),
                _ => {}
            }
        }
        let word = |word: &str| (1..=MAX_WORD).contains(&word.len()) && !word.chars().any(char::is_control);
        for (field, words) in [("/namespace", self.namespace.as_slice()), ("/path", self.path.as_slice())] {
            if words.len() > MAX_PATH || !words.iter().all(|text| word(text)) {
                let expected = format!("at most {MAX_PATH} words of 1 to {MAX_WORD} bytes without control characters");
                problems.push(FieldProblem::new(field, "this is not a place in metadata").expected(expected));
            }
        }
        if self.kind == Jwt && self.path.len() == 1 {
            let problem = FieldProblem::new("/path", "the whole payload is not a name: add the name of the claim");
            problems.push(problem.expected("the provider's `payload_in_metadata`, then the claim: `[payload, sub]`"));
        }
        problems.extend(self.header.as_ref().and_then(|name| no_header("/header", name)));
        if self.set_by == Some(SetBy::Proxy) && trusted_hops == 0 {
            let problem = FieldProblem::new("/set_by", "no proxy in front is trusted");
            problems.push(problem.expected("`filter`, or `trusted_hops` of 1 or more"));
        }
        problems
    }
}

impl CertificateName {
    fn property(self) -> &'static str {
        match self {
            CertificateName::UriSan => "uri_san_peer_certificate",
            CertificateName::DnsSan => "dns_san_peer_certificate",
            CertificateName::Subject => "subject_peer_certificate",
        }
    }
}

fn no_header(field: &str, name: &str) -> Option<FieldProblem> {
    axum::http::HeaderName::from_bytes(name.as_bytes()).is_err().then(|| {
        let message = format!("`{}` is not a header name", name.escape_debug());
        FieldProblem::new(field, message).expected("a header name, or null for none")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(identity: serde_json::Value) -> Vec<String> {
        let identity: IdentitySettings = serde_json::from_value(identity).unwrap();
        identity.check().into_iter().map(|problem| problem.pointer).collect()
    }

    #[test]
    fn a_verifier_has_what_its_kind_needs_and_nothing_else() {
        for (verifier, wrong) in [
            (json!({"kind": "jwt", "path": ["payload", "sub"]}), &[][..]),
            (json!({"kind": "jwt", "path": ["payload"]}), &["/path"]),
            (json!({"kind": "jwt"}), &["/path"]),
            (json!({"kind": "metadata", "namespace": "a", "path": ["user"], "gives": "apikey"}), &[]),
            (json!({"kind": "metadata", "path": ["user"]}), &["/namespace"]),
            (json!({"kind": "mtls"}), &[]),
            (json!({"kind": "mtls", "name": "dns_san", "header": "x-user"}), &["/header"]),
            (json!({"kind": "basic_auth", "header": "x-user"}), &[]),
            (json!({"kind": "basic_auth"}), &["/header"]),
            (json!({"kind": "trusted_header", "header": "x user"}), &["/header"]),
            (json!({"kind": "trusted_header", "header": "x-user", "set_by": "proxy"}), &["/set_by"]),
            (json!({"kind": "metadata", "namespace": "a\u{0}b", "path": ["user"]}), &["/namespace"]),
        ] {
            let expected: Vec<String> = wrong.iter().map(|field| format!("/verified_by/0{field}")).collect();
            assert_eq!(problems(json!({"verified_by": [verifier]})), expected, "{verifier}");
        }
        let behind = json!({
            "trusted_hops": 1, "verified_by": [{"kind": "trusted_header", "header": "x-user", "set_by": "proxy"}],
        });
        assert!(problems(behind).is_empty());
        assert_eq!(problems(json!({"ipv6_prefix": 60})), ["/ipv6_prefix"]);
    }

    #[test]
    fn headers_that_filters_set_are_taken_from_clients() {
        let identity: IdentitySettings =
            serde_json::from_value(json!({"trusted_hops": 1, "user_header": "x-name", "verified_by": [
                {"kind": "trusted_header", "header": "X-User"},
                {"kind": "basic_auth", "header": "x-basic"},
                {"kind": "trusted_header", "header": "x-front", "set_by": "proxy"},
            ]}))
            .unwrap();
        assert_eq!(identity.taken_from_clients(), ["x-basic", "x-user"]);
        assert!(identity.verifies("user", Delivery::Full), "a proxy in front sets one");
        assert!(!identity.verifies("apikey", Delivery::Ecds) && identity.labels().is_empty());
        let labels: IdentitySettings =
            serde_json::from_value(json!({"api_key_header": "x-key", "user_header": "x-user"})).unwrap();
        assert_eq!(labels.labels().len(), 2);
        assert!(!labels.verifies("user", Delivery::Ecds) && labels.verifies("ip", Delivery::Full));
    }
}
