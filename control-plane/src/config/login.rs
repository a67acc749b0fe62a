//! How operators log in to the console.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use accounts::{FactorKeys, RelyingParty, Role};
use api::console::LoginRules;
use axum::http::Uri;
use base::clock;
use oidc::{LogoutAt, Provider, SecondFactorAt, Settings, is_loopback_host};

/// How long one request to the provider may take.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(10);

/// How operators log in to the console.
#[derive(Clone, Debug, clap::Args)]
pub struct LoginConfig {
    /// Require a second factor of every operator of the console: until they have added one, they have their own account only.
    #[arg(long, env = "PALISADE_REQUIRE_SECOND_FACTOR")]
    pub require_second_factor: bool,

    /// The file of the keys that secrets of authenticator apps are encrypted with in the store: 32 bytes in base64 a line. The first one
    /// encrypts, each decrypts. Without it they are stored as they are. Several control planes of a store have the same.
    #[arg(long, env = "PALISADE_SECOND_FACTOR_KEY_FILE", value_name = "FILE")]
    pub second_factor_key_file: Option<PathBuf>,

    /// The address of the control plane as the browsers of operators reach it: `https://HOST[:PORT]`, without a path. The login provider
    /// sends them back there, and passkeys are bound to its host name. On loopback it is `http://localhost:PORT` by default.
    #[arg(long, env = "PALISADE_CONSOLE_URL", value_name = "URL")]
    pub console_url: Option<Uri>,

    /// The OpenID Connect provider that operators may log in at: its issuer identifier, exactly as its metadata has it.
    #[arg(long, env = "PALISADE_OIDC_ISSUER", value_name = "URL", requires_all = ["oidc_client_id", "console_url"])]
    pub oidc_issuer: Option<String>,

    /// The id of the control plane as a client of the provider. Its redirect URI is `/console/login` of --console-url.
    #[arg(long, env = "PALISADE_OIDC_CLIENT_ID", value_name = "ID", requires = "oidc_issuer")]
    pub oidc_client_id: Option<String>,

    /// The file of the client secret; read for each login. Without it the control plane is a public client, which PKCE alone protects.
    #[arg(long, env = "PALISADE_OIDC_CLIENT_SECRET_FILE", value_name = "FILE", requires = "oidc_issuer")]
    pub oidc_client_secret_file: Option<PathBuf>,

    /// A file with the certificate authorities (PEM) that are trusted for the provider, instead of those of the system.
    #[arg(long, env = "PALISADE_OIDC_CA_FILE", value_name = "FILE", requires = "oidc_issuer")]
    pub oidc_ca_file: Option<PathBuf>,

    /// What the login page calls the provider; its host by default.
    #[arg(long, env = "PALISADE_OIDC_NAME", value_name = "NAME", requires = "oidc_issuer")]
    pub oidc_name: Option<String>,

    /// The scopes that are asked for, separated by spaces or commas.
    #[arg(long, env = "PALISADE_OIDC_SCOPES", value_name = "SCOPES", default_value = "openid profile email")]
    pub oidc_scopes: String,

    /// The claims that the name of a new operator is taken from, separated by commas; the first one that can be a name.
    #[arg(
        long,
        env = "PALISADE_OIDC_NAME_CLAIM",
        value_name = "CLAIM",
        value_delimiter = ',',
        default_value = "preferred_username,email"
    )]
    pub oidc_name_claim: Vec<String>,

    /// The claim with the groups or roles of a person, such as `groups`, or `realm_access.roles` for one inside of another. The role of an
    /// operator follows it at each login. Without it roles are given in the console.
    #[arg(long, env = "PALISADE_OIDC_ROLE_CLAIM", value_name = "CLAIM", requires = "oidc_issuer")]
    pub oidc_role_claim: Option<String>,

    /// Which role a value of the role claim gives: `VALUE=viewer`, `VALUE=analyst` or `VALUE=admin`, separated by commas or given several
    /// times. Of several the highest counts.
    #[arg(long, env = "PALISADE_OIDC_ROLES", value_name = "VALUE=ROLE", value_delimiter = ',', value_parser = mapping,
          requires = "oidc_role_claim")]
    pub oidc_roles: Vec<(String, Role)>,

    /// The role of a person whose role claim gives none, and of new operators if there is no role claim. Without it they are refused.
    #[arg(long, env = "PALISADE_OIDC_DEFAULT_ROLE", value_name = "ROLE", requires = "oidc_issuer")]
    pub oidc_default_role: Option<Role>,

    /// Add an operator at the first login of a person. Without it an admin links operators and persons.
    #[arg(long, env = "PALISADE_OIDC_CREATE", requires = "oidc_issuer")]
    pub oidc_create: bool,

    /// Link a person to the operator with the same email address at the first login, if the provider says that it has verified the address.
    /// Only for a provider that lets no person enter the address of another.
    #[arg(long, env = "PALISADE_OIDC_LINK_EMAIL", requires = "oidc_issuer")]
    pub oidc_link_email: bool,

    /// Log out of the console alone. Without it, an operator who has logged in at the provider is logged out there as well, if the provider
    /// has an end_session_endpoint; `/console/login` of --console-url has to be registered there as a post logout redirect URI.
    #[arg(long, env = "PALISADE_OIDC_LOCAL_LOGOUT", requires = "oidc_issuer")]
    pub oidc_local_logout: bool,

    /// A login at the provider counts as both factors. Without it, operators with a second factor here are asked for it.
    #[arg(long, env = "PALISADE_OIDC_TRUST_SECOND_FACTOR", requires = "oidc_issuer")]
    pub oidc_trust_second_factor: bool,
}

impl LoginConfig {
    /// The rules, checked as far as it goes without the provider. `plain` is where the admin port listens for plain HTTP: on loopback the
    /// pages of `localhost` can have passkeys without further options.
    ///
    /// # Errors
    /// What is wrong, with the name of its option.
    pub fn rules(&self, plain: Option<SocketAddr>) -> Result<LoginRules, String> {
        let console = self.console_url.as_ref().map(origin).transpose()?;
        let made =
            self.settings(console.as_deref()).map(|settings| Provider::new(settings, Arc::new(clock::now_millis)));
        let provider = made.transpose().map_err(|problem| problem.to_string())?;
        let local = plain.filter(|address| address.ip().is_loopback());
        let local = local.map(|address| format!("http://localhost:{}", address.port()));
        let site = console.or(local).and_then(|origin| RelyingParty::of(&origin));
        let factor_keys = self.factor_keys()?;
        Ok(LoginRules { requires_second_factor: self.require_second_factor, factor_keys, provider, site })
    }

    fn factor_keys(&self) -> Result<FactorKeys, String> {
        let Some(file) = &self.second_factor_key_file else { return Ok(FactorKeys::default()) };
        let wrong = |problem: String| format!("--second-factor-key-file {}: {problem}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        FactorKeys::read(&text).map_err(|problem| wrong(problem.to_string()))
    }

    fn settings(&self, console: Option<&str>) -> Option<Settings> {
        let issuer = self.oidc_issuer.clone()?;
        let host = issuer.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        let scopes = self.oidc_scopes.split([' ', ',']).filter(|scope| !scope.is_empty());
        let second_factor = match self.oidc_trust_second_factor {
            true => SecondFactorAt::Provider,
            false => SecondFactorAt::ControlPlane,
        };
        let logout = if self.oidc_local_logout { LogoutAt::ControlPlane } else { LogoutAt::Provider };
        let login_page = format!("{}/console/login", console.unwrap_or_default());
        Some(Settings {
            client_id: self.oidc_client_id.clone().unwrap_or_default(),
            client_secret_file: self.oidc_client_secret_file.clone(),
            ca_file: self.oidc_ca_file.clone(),
            display_name: self.oidc_name.clone().or(host).unwrap_or_else(|| issuer.clone()),
            redirect_uri: login_page.clone(),
            post_logout_redirect_uri: login_page,
            logout,
            scopes: scopes.map(str::to_owned).collect(),
            name_claims: self.oidc_name_claim.clone(),
            role_claim: self.oidc_role_claim.clone(),
            roles: self.oidc_roles.clone(),
            default_role: self.oidc_default_role,
            creates: self.oidc_create,
            links_by_email: self.oidc_link_email,
            second_factor,
            timeout: PROVIDER_TIMEOUT,
            issuer,
        })
    }
}

/// Scheme, host and port of --console-url, as a browser writes an origin.
fn origin(url: &Uri) -> Result<String, String> {
    let wrong = |what: &str| Err(format!("--console-url `{url}`: {what}"));
    let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return wrong("https://HOST[:PORT] is expected");
    };
    if authority.as_str().contains('@') || url.query().is_some() || !matches!(url.path(), "" | "/") {
        return wrong("https://HOST[:PORT] without anything else is expected");
    }
    if !(scheme == "https" || scheme == "http" && is_loopback_host(authority.host())) {
        return wrong("https:// is expected; plain http:// is for loopback alone");
    }
    let host = authority.host().to_ascii_lowercase();
    let usual = if scheme == "https" { 443 } else { 80 };
    Ok(match authority.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    })
}

fn mapping(text: &str) -> Result<(String, Role), String> {
    // The last `=`, because names of groups may have one.
    let (value, role) = text.rsplit_once('=').ok_or("VALUE=ROLE is expected, such as soc=analyst")?;
    let role = role.trim().parse::<Role>().map_err(|error| error.to_string())?;
    if value.is_empty() { Err("the value before `=` is empty".to_owned()) } else { Ok((value.to_owned(), role)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        let shown = |url: &str| origin(&url.parse().unwrap());
        assert_eq!(shown("https://Palisade.Example:443/").as_deref(), Ok("https://palisade.example"));
        assert_eq!(shown("http://localhost:8900").as_deref(), Ok("http://localhost:8900"));
        assert_eq!(shown("http://[::1]:80").as_deref(), Ok("http://[::1]"));
        for wrong in
            ["palisade.example", "http://palisade.example", "https://a@b", "https://a/console", "https://a/?x", "/x"]
        {
            assert!(shown(wrong).unwrap_err().starts_with("--console-url"), "{wrong}");
        }
    }

    #[test]
    fn a_mapping_has_a_value_and_a_role() {
        assert_eq!(mapping("soc=analyst"), Ok(("soc".to_owned(), Role::Analyst)));
        assert_eq!(mapping("cn=soc=admin"), Ok(("cn=soc".to_owned(), Role::Admin)));
        for wrong in ["soc", "=admin", "soc=root", "soc="] {
            assert!(mapping(wrong).is_err(), "{wrong}");
        }
    }
}
