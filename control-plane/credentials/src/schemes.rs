//! Which kinds of credentials are what the security schemes of a contract ask for.

use serde_json::Value;

use crate::facts::{CredentialCheck, CredentialKind};

/// A security scheme of a contract (OpenAPI 3.0 and 3.1, "Security Scheme Object").
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scheme {
    /// Its name in the contract.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: SchemeKind,
}

/// What a security scheme asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SchemeKind {
    /// `apiKey`, and its place as `header:NAME`, `query:NAME` or `cookie:NAME`.
    ApiKey(String),
    /// `http` with the scheme `basic`.
    Basic,
    /// `http` with the scheme `bearer`.
    Bearer,
    /// `http` with another scheme, in small letters.
    Http(String),
    /// `oauth2`.
    OAuth2,
    /// `openIdConnect`.
    OpenIdConnect,
    /// `mutualTLS` (3.1).
    MutualTls,
    /// The contract does not define it, or with a type that is not known.
    Unknown,
}

/// What satisfies what, but for the place of keys (see [`satisfies`]). Each row has its reason.
const TABLE: [(CredentialKind, &[&str], &str); 10] = [
    (CredentialKind::ApiKey, &["apiKey"], "a key that was issued to a caller"),
    (
        CredentialKind::Jwt,
        &["bearer", "oauth2", "openIdConnect"],
        "access tokens and id tokens are JWTs, sent as bearer tokens",
    ),
    (CredentialKind::Oidc, &["oauth2", "openIdConnect"], "the login is an OAuth 2 flow; its cookie is no bearer token"),
    (
        CredentialKind::Session,
        &["oauth2", "openIdConnect"],
        "authentication modules log in at a provider, or stand for one",
    ),
    (CredentialKind::Basic, &["basic"], "a name and a password in `Authorization`"),
    (CredentialKind::Biscuit, &["bearer"], "a biscuit is sent as a bearer token"),
    (CredentialKind::ClientCertificate, &["mutualTLS"], "the handshake proves the client's key"),
    (CredentialKind::HmacSignature, &["http:hmac", "http:signature"], "no scheme has a type of its own for it"),
    (CredentialKind::HttpSignature, &["http:signature"], "no scheme has a type of its own for it"),
    (
        CredentialKind::External,
        &["apiKey", "basic", "bearer", "http:*", "oauth2", "openIdConnect", "mutualTLS"],
        "what another service asks for is unknown, so that nothing can be said against it",
    ),
];

/// The headers that signatures are sent in, which contracts declare as keys.
const SIGNATURE_HEADERS: [&str; 3] = ["header:authorization", "header:signature", "header:signature-input"];

// === impl Scheme ===

impl Scheme {
    /// Reads a scheme of a contract.
    pub(crate) fn read(name: &str, scheme: Option<&Value>) -> Scheme {
        let text =
            |field: &str| scheme.and_then(|scheme| scheme.get(field)).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("type") {
            "apiKey" => SchemeKind::ApiKey(carrier(text("in"), text("name"))),
            "http" => match text("scheme").to_ascii_lowercase().as_str() {
                "basic" => SchemeKind::Basic,
                "bearer" => SchemeKind::Bearer,
                "" => SchemeKind::Unknown,
                other => SchemeKind::Http(other.to_owned()),
            },
            "oauth2" => SchemeKind::OAuth2,
            "openIdConnect" => SchemeKind::OpenIdConnect,
            "mutualTLS" => SchemeKind::MutualTls,
            _ => SchemeKind::Unknown,
        };
        Scheme { name: name.to_owned(), kind }
    }

    /// Its name and what it is, for people.
    pub(crate) fn label(&self) -> String {
        let shown: String = self.name.chars().take(64).collect();
        format!("{shown} ({})", self.kind.word())
    }
}

impl SchemeKind {
    /// As contracts call it.
    pub(crate) fn word(&self) -> String {
        match self {
            SchemeKind::ApiKey(_) => "apiKey".to_owned(),
            SchemeKind::Basic => "basic".to_owned(),
            SchemeKind::Bearer => "bearer".to_owned(),
            SchemeKind::Http(scheme) => format!("http:{scheme}"),
            SchemeKind::OAuth2 => "oauth2".to_owned(),
            SchemeKind::OpenIdConnect => "openIdConnect".to_owned(),
            SchemeKind::MutualTls => "mutualTLS".to_owned(),
            SchemeKind::Unknown => "not defined".to_owned(),
        }
    }
}

/// The place of a credential. Names of headers have no case.
pub(crate) fn carrier(place: &str, name: &str) -> String {
    if place == "header" { format!("header:{}", name.to_ascii_lowercase()) } else { format!("{place}:{name}") }
}

/// Whether a check asks for a credential of a scheme. A scheme that the contract does not define is satisfied by every check. A key
/// is also what is found in the place that the contract names for it: contracts declare tokens in headers, parameters and
/// cookies of their own as keys.
pub(crate) fn satisfies(check: &CredentialCheck, scheme: &SchemeKind) -> bool {
    if *scheme == SchemeKind::Unknown {
        return true;
    }
    let word = scheme.word();
    let by_kind = |kind: &CredentialKind| {
        words(*kind).iter().any(|known| *known == word || (*known == "http:*" && word.starts_with("http:")))
    };
    if check.kinds.iter().any(by_kind) {
        return true;
    }
    let carriers =
        || check.carriers.iter().filter_map(|known| known.split_once(':')).map(|(place, name)| carrier(place, name));
    match scheme {
        SchemeKind::ApiKey(place) => {
            let signed = |kind: &CredentialKind| {
                matches!(kind, CredentialKind::HmacSignature | CredentialKind::HttpSignature)
                    && SIGNATURE_HEADERS.contains(&place.as_str())
            };
            carriers().any(|known| known == *place) || check.kinds.iter().any(signed)
        }
        // Envoy's filter for keys strips `Bearer ` from the header that it reads.
        SchemeKind::Bearer => {
            check.kinds.contains(&CredentialKind::ApiKey) && carriers().any(|known| known == "header:authorization")
        }
        _ => false,
    }
}

/// The words of the schemes that a kind of credential satisfies.
pub(crate) fn words(kind: CredentialKind) -> &'static [&'static str] {
    TABLE.iter().find(|(known, ..)| *known == kind).map_or(&[], |(_, schemes, _)| *schemes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: CredentialKind, carriers: &[&str]) -> CredentialCheck {
        let carriers = carriers.iter().map(ToString::to_string).collect();
        CredentialCheck { carriers, ..CredentialCheck::new(vec![kind], "") }
    }

    #[test]
    fn each_kind_has_one_row_with_a_reason() {
        use CredentialKind::{
            ApiKey, Basic, Biscuit, ClientCertificate, External, HmacSignature, HttpSignature, Jwt, Oidc, Session,
        };
        for kind in
            [ApiKey, Jwt, Oidc, Session, Basic, Biscuit, ClientCertificate, HmacSignature, HttpSignature, External]
        {
            let rows: Vec<_> = TABLE.iter().filter(|(known, ..)| *known == kind).collect();
            assert!(matches!(rows[..], [(_, [_, ..], reason)] if !reason.is_empty()), "{kind:?}");
        }
    }

    #[test]
    fn kinds_satisfy_schemes() {
        let read = |scheme: Value| Scheme::read("s", Some(&scheme)).kind;
        let key = read(json!({"type": "apiKey", "in": "header", "name": "X-Key"}));
        let cookie = read(json!({"type": "apiKey", "in": "cookie", "name": "sid"}));
        let [basic, bearer, digest, signature] =
            ["Basic", "BEARER", "digest", "signature"].map(|scheme| read(json!({"type": "http", "scheme": scheme})));
        let [oauth2, oidc, mtls] = ["oauth2", "openIdConnect", "mutualTLS"].map(|kind| read(json!({ "type": kind })));
        let unknown = Scheme::read("gone", None).kind;
        let all = [&key, &cookie, &basic, &bearer, &digest, &signature, &oauth2, &oidc, &mtls];
        let cases: [(CredentialKind, &[&str], &[&SchemeKind]); 14] = [
            (CredentialKind::ApiKey, &[], &[&key, &cookie]),
            (CredentialKind::ApiKey, &["header:Authorization"], &[&key, &cookie, &bearer]),
            (CredentialKind::Jwt, &[], &[&bearer, &oauth2, &oidc]),
            (CredentialKind::Jwt, &["header:x-key"], &[&bearer, &oauth2, &oidc, &key]),
            (CredentialKind::Oidc, &[], &[&oauth2, &oidc]),
            (CredentialKind::Session, &["cookie:sid"], &[&oauth2, &oidc, &cookie]),
            (CredentialKind::Session, &["cookie:SID"], &[&oauth2, &oidc]),
            (CredentialKind::Basic, &[], &[&basic]),
            (CredentialKind::Biscuit, &[], &[&bearer]),
            (CredentialKind::ClientCertificate, &[], &[&mtls]),
            (CredentialKind::HmacSignature, &[], &[&signature]),
            (CredentialKind::HttpSignature, &[], &[&signature]),
            (CredentialKind::External, &[], &all),
            (CredentialKind::Basic, &["query:x"], &[&basic]),
        ];
        for (kind, carriers, expected) in cases {
            let check = check(kind, carriers);
            let found: Vec<&SchemeKind> = all.into_iter().filter(|scheme| satisfies(&check, scheme)).collect();
            let expected: Vec<&SchemeKind> = all.into_iter().filter(|scheme| expected.contains(scheme)).collect();
            assert_eq!(found, expected, "{kind:?} {carriers:?}");
            assert!(satisfies(&check, &unknown));
        }
    }
}
