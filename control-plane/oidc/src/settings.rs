//! The provider, as the operator of the control plane has configured it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use accounts::Role;
use axum::http::Uri;

/// The provider and what its claims mean.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The issuer identifier, exactly as the provider has it in its metadata and tokens.
    pub issuer: String,
    /// The id of this client at the provider.
    pub client_id: String,
    /// The file of the client secret, read for each exchange; `None` for a public client, which PKCE alone protects.
    pub client_secret_file: Option<PathBuf>,
    /// The certificate authorities (PEM) that the provider's certificate is checked by; `None` for those of the system.
    pub ca_file: Option<PathBuf>,
    /// What the login page calls the provider.
    pub display_name: String,
    /// Where the provider sends the browser back to.
    pub redirect_uri: String,
    /// Where the provider sends the browser back to after a logout.
    pub post_logout_redirect_uri: String,
    /// What a logout ends.
    pub logout: LogoutAt,
    /// The scopes that are asked for; `openid` is one of them.
    pub scopes: Vec<String>,
    /// The claims that the name of a new operator is taken from; the first one that there is.
    pub name_claims: Vec<String>,
    /// The claim with the roles or groups of a person: its name, or a path with dots. `None`: roles are given in the console.
    pub role_claim: Option<String>,
    /// Which role a value of the claim gives. Of several the highest counts.
    pub roles: Vec<(String, Role)>,
    /// The role of a person without a value that gives one, and of new operators without a role claim. `None` refuses them.
    pub default_role: Option<Role>,
    /// Whether an operator is added at the first login of a person.
    pub creates: bool,
    /// Whether a person is linked to the operator with the same email address, if the provider has verified it.
    pub links_by_email: bool,
    /// Who asks for a second factor.
    pub second_factor: SecondFactorAt,
    /// How long one request to the provider may take.
    pub timeout: Duration,
}

/// Who asks for a second factor after a login at the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecondFactorAt {
    /// The control plane, as after a password.
    #[default]
    ControlPlane,
    /// The provider: its login counts as both factors.
    Provider,
}

/// What a logout of an operator who has logged in at the provider ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogoutAt {
    /// The session here, and then the one at the provider, if it has an endpoint for that.
    #[default]
    Provider,
    /// The session here alone.
    ControlPlane,
}

/// What is wrong with [`Settings`], in a sentence that names the option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsProblem(String);

// === impl Settings ===

impl Settings {
    /// Checks what can be checked without the provider.
    ///
    /// # Errors
    /// The first value that cannot be used.
    pub fn check(&self) -> Result<(), SettingsProblem> {
        let problem = |text: String| Err(SettingsProblem(text));
        if let Err(what) = check_url(&self.issuer) {
            return problem(format!("--oidc-issuer `{}`: {what}", self.issuer));
        }
        if self.issuer.contains('?') {
            return problem(format!("--oidc-issuer `{}`: an issuer has no query", self.issuer));
        }
        if self.client_id.is_empty() {
            return problem("--oidc-client-id is empty".to_owned());
        }
        if !self.scopes.iter().any(|scope| scope == "openid") {
            return problem("--oidc-scopes lacks `openid`, without which there is no ID token".to_owned());
        }
        if let Some(scope) = self.scopes.iter().find(|scope| !is_scope(scope)) {
            return problem(format!("--oidc-scopes: `{scope}` is no scope"));
        }
        if self.role_claim.is_some() && self.roles.is_empty() && self.default_role.is_none() {
            return problem("--oidc-role-claim needs --oidc-roles, or every login is refused".to_owned());
        }
        if self.role_claim.is_none() && !self.roles.is_empty() {
            return problem("--oidc-roles needs --oidc-role-claim: the claim that has these values".to_owned());
        }
        if self.creates && self.role_claim.is_none() && self.default_role.is_none() {
            return problem(
                "--oidc-create needs --oidc-role-claim or --oidc-default-role: new operators need a role".to_owned(),
            );
        }
        if let Some(file) = &self.client_secret_file {
            self.secret()
                .map_err(|error| SettingsProblem(format!("--oidc-client-secret-file {}: {error}", file.display())))?;
        }
        Ok(())
    }

    /// The client secret, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or is empty.
    pub(super) fn secret(&self) -> Result<Option<String>, String> {
        let Some(file) = &self.client_secret_file else { return Ok(None) };
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        let secret = text.trim();
        if secret.is_empty() { Err("the file is empty".to_owned()) } else { Ok(Some(secret.to_owned())) }
    }

    /// Whether the provider is called over TLS; plain HTTP is for one on the same machine.
    pub(super) fn is_tls(&self) -> bool {
        self.issuer.starts_with("https://")
    }
}

impl SettingsProblem {
    pub(super) fn new(text: String) -> SettingsProblem {
        SettingsProblem(text)
    }
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsProblem {}

/// An `https` URL, or an `http` one of loopback, without user, password and fragment.
pub(super) fn check_url(text: &str) -> Result<Uri, &'static str> {
    let uri: Uri = text.parse().map_err(|_| "this is no URL; https://HOST[:PORT][/PATH] is expected")?;
    let authority = uri.authority().ok_or("the URL names no host")?;
    if authority.as_str().contains('@') {
        return Err("the URL holds a user or a password");
    }
    if text.contains('#') {
        return Err("the URL has a fragment");
    }
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if is_loopback_host(authority.host()) => Ok(uri),
        Some("http") => Err("plain http:// is for loopback alone; https:// is expected"),
        _ => Err("https:// is expected"),
    }
}

/// Whether a host of a URL is `localhost` or an address of loopback.
#[must_use]
pub fn is_loopback_host(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// RFC 6749, appendix A.4.
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn settings() -> Settings {
        Settings {
            issuer: "https://id.example".to_owned(),
            client_id: "palisade".to_owned(),
            client_secret_file: None,
            ca_file: None,
            display_name: "Example".to_owned(),
            redirect_uri: "https://palisade.example/console/login".to_owned(),
            post_logout_redirect_uri: "https://palisade.example/console/login".to_owned(),
            logout: LogoutAt::default(),
            scopes: vec!["openid".to_owned(), "email".to_owned()],
            name_claims: vec!["preferred_username".to_owned(), "email".to_owned()],
            role_claim: Some("groups".to_owned()),
            roles: vec![("soc".to_owned(), Role::Analyst), ("root".to_owned(), Role::Admin)],
            default_role: None,
            creates: true,
            links_by_email: false,
            second_factor: SecondFactorAt::default(),
            timeout: Duration::from_secs(10),
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_option() {
        assert_eq!(settings().check(), Ok(()));
        let told = |change: fn(&mut Settings)| {
            let mut settings = settings();
            change(&mut settings);
            settings.check().unwrap_err().to_string()
        };
        for (change, option) in [
            ((|s| s.issuer = "id.example".to_owned()) as fn(&mut Settings), "--oidc-issuer"),
            (|s| s.issuer = "http://id.example".to_owned(), "--oidc-issuer"),
            (|s| s.issuer = "https://a:b@id.example".to_owned(), "--oidc-issuer"),
            (|s| s.issuer = "https://id.example/?a".to_owned(), "--oidc-issuer"),
            (|s| s.client_id.clear(), "--oidc-client-id"),
            (|s| s.scopes.clear(), "--oidc-scopes"),
            (|s| s.scopes.push("a b".to_owned()), "--oidc-scopes"),
            (|s| s.roles.clear(), "--oidc-role-claim"),
            (|s| s.role_claim = None, "--oidc-roles"),
            (|s| (s.role_claim, s.roles) = (None, Vec::new()), "--oidc-create"),
            (|s| s.client_secret_file = Some("/no/such/file".into()), "--oidc-client-secret-file"),
        ] {
            assert!(told(change).starts_with(option), "{option}: {}", told(change));
        }
        for loopback in ["http://127.0.0.1:9/x", "http://localhost", "http://[::1]:9"] {
            assert!(check_url(loopback).is_ok(), "{loopback}");
        }
    }
}
