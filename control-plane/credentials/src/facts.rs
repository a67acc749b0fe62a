//! What checks credentials on a route: a field of routes.

use kit::FieldProblem;
use kit::checks::{count, text};
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Checks of a route, or of one place in Envoy, at most.
pub(crate) const MAX_CHECKS: usize = 64;
/// Places of a route in Envoy, at most.
pub(crate) const MAX_PLACES: usize = 256;
/// Patterns of a check, at most, of either kind.
pub(crate) const MAX_PATTERNS: usize = 500;
/// Virtual hosts that a place names, at most.
pub(crate) const MAX_HOSTS: usize = 16;
/// Places where a check finds its credential, at most.
const MAX_CARRIERS: usize = 16;
/// The bytes of a pattern and of a name, at most.
pub(crate) const MAX_TEXT: usize = 2048;
/// The largest automaton of one pattern, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// The methods that a contract may have.
pub(crate) const METHODS: [&str; 8] = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"];

/// What checks credentials on a route, in front of Palisade's filters or behind them. Nothing of it reaches a gateway: the audit of
/// credentials reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Credentials {
    /// Checks on every request of the route, wherever the gateway has it; stated by its owner, at most 64. Default `[]`.
    #[schemars(length(max = 64))]
    pub checks: Vec<CredentialCheck>,
    /// The places where Envoy has the route, and what Envoy checks there; written by `palisade routes import`, at most 256.
    /// Default `[]`.
    #[schemars(length(max = 256))]
    pub envoy: Vec<EnvoyRoute>,
}

/// Something that refuses requests without a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CredentialCheck {
    /// The kinds of credentials that it accepts; one of them is enough.
    #[schemars(length(min = 1, max = 10))]
    pub kinds: Vec<CredentialKind>,
    /// The name of what checks, such as `envoy.filters.http.jwt_authn`. Default `""`.
    #[serde(default)]
    pub checked_by: String,
    /// False: it lets requests without a credential pass, and so checks nothing. Default true.
    #[serde(default = "yes")]
    pub mandatory: bool,
    /// Where it finds the credential: `header:NAME`, `query:NAME` or `cookie:NAME`, at most 16. Default `[]`, which means unknown.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub carriers: Vec<String>,
    /// The methods that it checks, in capital letters; empty (the default) means all.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub methods: Vec<String>,
    /// Regular expressions on the path; if not empty, only paths that match one are checked.
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub include: Vec<String>,
    /// Regular expressions on the path; paths that match one are not checked.
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub exclude: Vec<String>,
}

/// A kind of credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    /// A key that was issued to a caller.
    ApiKey,
    /// A signed token (JWT) that is verified.
    Jwt,
    /// A login at an OpenID Connect or OAuth 2 provider.
    Oidc,
    /// A session of an authentication module, such as a login form or LDAP.
    Session,
    /// A name and a password (HTTP basic).
    Basic,
    /// A biscuit token.
    Biscuit,
    /// A client certificate that is verified.
    ClientCertificate,
    /// A signature with a shared secret (HMAC).
    HmacSignature,
    /// An HTTP message signature.
    HttpSignature,
    /// A service outside decides (`ext_authz`); what it asks for is unknown here.
    External,
}

/// A place where Envoy has a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvoyRoute {
    /// The listener.
    pub listener: String,
    /// The virtual hosts, as far as they are listed; at most 16.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub virtual_hosts: Vec<String>,
    /// A regular expression for the paths that get there; empty (the default) means all.
    #[serde(default)]
    pub path: String,
    /// The methods that get there; empty (the default) means all.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub methods: Vec<String>,
    /// What Envoy checks there, in the order of its filters; at most 64.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub checks: Vec<CredentialCheck>,
}

// === impl Credentials ===

impl Credentials {
    /// What is wrong with it; pointers are relative to it.
    #[must_use]
    pub fn check(&self) -> Vec<FieldProblem> {
        let mut problems = checks_of("/checks", &self.checks);
        problems.extend(count("/envoy", self.envoy.len(), MAX_PLACES));
        for (index, place) in self.envoy.iter().take(MAX_PLACES).enumerate() {
            problems.extend(place.check().into_iter().map(|problem| problem.under(&format!("/envoy/{index}"))));
        }
        problems
    }
}

fn checks_of(pointer: &str, checks: &[CredentialCheck]) -> Vec<FieldProblem> {
    let mut problems: Vec<FieldProblem> = count(pointer, checks.len(), MAX_CHECKS).into_iter().collect();
    for (index, check) in checks.iter().take(MAX_CHECKS).enumerate() {
        problems.extend(check.check().into_iter().map(|problem| problem.under(&format!("{pointer}/{index}"))));
    }
    problems
}

// === impl CredentialCheck ===

impl CredentialCheck {
    /// A mandatory check of all paths.
    pub(crate) fn new(kinds: Vec<CredentialKind>, checked_by: &str) -> CredentialCheck {
        CredentialCheck {
            kinds,
            checked_by: checked_by.to_owned(),
            mandatory: true,
            carriers: Vec::new(),
            methods: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
        }
    }

    /// Its name, for people.
    pub(crate) fn label(&self) -> String {
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.title()).collect();
        let kinds = kinds.join(" or ");
        if self.checked_by.is_empty() { kinds } else { format!("{} ({kinds})", self.checked_by) }
    }

    fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        if self.kinds.is_empty() {
            problems.push(FieldProblem::new("/kinds", "a check asks for a credential").expected("at least one kind"));
        }
        problems.extend(count("/kinds", self.kinds.len(), 10));
        problems.extend(text("/checked_by", &self.checked_by, 256));
        problems.extend(count("/carriers", self.carriers.len(), MAX_CARRIERS));
        for (index, carrier) in self.carriers.iter().enumerate() {
            let place = carrier.split_once(':').filter(|(_, name)| !name.is_empty()).map(|(place, _)| place);
            if !matches!(place, Some("header" | "query" | "cookie")) || carrier.len() > 256 {
                let problem = FieldProblem::new(format!("/carriers/{index}"), "not a place of a credential");
                problems.push(problem.expected("`header:NAME`, `query:NAME` or `cookie:NAME`, at most 256 bytes"));
            }
        }
        problems.extend(methods(&self.methods));
        for (field, patterns) in [("/include", &self.include), ("/exclude", &self.exclude)] {
            problems.extend(count(field, patterns.len(), MAX_PATTERNS));
            let wrong = patterns.iter().take(MAX_PATTERNS).enumerate();
            problems.extend(wrong.filter_map(|(index, one)| pattern(format!("{field}/{index}"), one)));
        }
        problems
    }
}

// === impl CredentialKind ===

impl CredentialKind {
    /// Its name, for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            CredentialKind::ApiKey => "API key",
            CredentialKind::Jwt => "JWT",
            CredentialKind::Oidc => "OpenID Connect or OAuth 2 login",
            CredentialKind::Session => "login session",
            CredentialKind::Basic => "name and password",
            CredentialKind::Biscuit => "biscuit",
            CredentialKind::ClientCertificate => "client certificate",
            CredentialKind::HmacSignature => "HMAC signature",
            CredentialKind::HttpSignature => "HTTP signature",
            CredentialKind::External => "decided by another service",
        }
    }
}

// === impl EnvoyRoute ===

impl EnvoyRoute {
    /// Its name, for people.
    pub(crate) fn label(&self) -> String {
        match self.virtual_hosts.as_slice() {
            [] => format!("listener `{}`", self.listener),
            [host] => format!("virtual host `{host}` of listener `{}`", self.listener),
            [host, rest @ ..] => {
                format!("virtual host `{host}` (and {} more) of listener `{}`", rest.len(), self.listener)
            }
        }
    }

    fn check(&self) -> Vec<FieldProblem> {
        let mut problems: Vec<FieldProblem> = text("/listener", &self.listener, MAX_TEXT).into_iter().collect();
        problems.extend(count("/virtual_hosts", self.virtual_hosts.len(), MAX_HOSTS));
        for (index, host) in self.virtual_hosts.iter().enumerate() {
            problems.extend(text(&format!("/virtual_hosts/{index}"), host, MAX_TEXT));
        }
        if !self.path.is_empty() {
            problems.extend(pattern("/path".to_owned(), &self.path));
        }
        problems.extend(methods(&self.methods));
        problems.extend(checks_of("/checks", &self.checks));
        problems
    }
}

fn methods(methods: &[String]) -> Vec<FieldProblem> {
    let mut problems: Vec<FieldProblem> = count("/methods", methods.len(), 16).into_iter().collect();
    for (index, method) in methods.iter().enumerate() {
        if method.is_empty() || method.len() > 32 || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            let problem = FieldProblem::new(format!("/methods/{index}"), "not a method");
            problems.push(problem.expected("a method in capital letters, such as `GET`"));
        }
    }
    problems
}

fn pattern(pointer: String, pattern: &str) -> Option<FieldProblem> {
    if let Some(problem) = text(&pointer, pattern, MAX_TEXT) {
        return Some(problem);
    }
    let reason = compiles(pattern).err()?;
    let problem = FieldProblem::new(pointer, format!("the regular expression does not compile: {reason}"));
    Some(problem.expected("a regular expression on the bytes of the path, without Unicode classes"))
}

/// Whether a pattern on paths can be used.
///
/// # Errors
/// Why it cannot.
pub(crate) fn compiles(pattern: &str) -> Result<(), String> {
    let built = Regex::builder()
        .syntax(syntax_config())
        .configure(Regex::config().utf8_empty(false).nfa_size_limit(Some(PATTERN_SIZE)))
        .build(pattern);
    match built {
        Ok(_) => Ok(()),
        Err(error) if error.syntax_error().is_some() => Err("its syntax is not known".to_owned()),
        Err(_) => Err("it is too large".to_owned()),
    }
}

/// How patterns on paths are read: as those of plugins.
pub(crate) fn syntax_config() -> syntax::Config {
    syntax::Config::new().unicode(false).utf8(false)
}

fn yes() -> bool {
    true
}
