//! `envoy.filters.http.oauth2`.

use super::expect;
use crate::envoy::matching::{HeaderReach, Reach};
use crate::envoy::node::{Node, Notes};
use crate::envoy::rules::{self, Demand, Rule};
use crate::facts::{CredentialCheck, CredentialKind};

/// The rules of the filter.
pub(super) struct OAuth2 {
    /// Requests that pass without a login, then all others.
    rules: Vec<Rule>,
}

/// The cookie of the access token if no other name is set.
const DEFAULT_COOKIE: &str = "BearerToken";

/// The fields of `OAuth2Config` in Envoy 1.40; none but the matchers frees requests.
const FIELDS: [&str; 34] = [
    "token_endpoint",
    "retry_policy",
    "authorization_endpoint",
    "end_session_endpoint",
    "post_logout_redirect_uri",
    "credentials",
    "redirect_uri",
    "redirect_path_matcher",
    "signout_path",
    "forward_bearer_token",
    "forward_id_token",
    "preserve_authorization_header",
    "pass_through_matcher",
    "auth_scopes",
    "resources",
    "auth_type",
    "use_refresh_token",
    "default_expires_in",
    "deny_redirect_matcher",
    "default_refresh_token_expires_in",
    "disable_id_token_set_cookie",
    "disable_access_token_set_cookie",
    "disable_refresh_token_set_cookie",
    "cookie_configs",
    "stat_prefix",
    "csrf_token_expires_in",
    "code_verifier_token_expires_in",
    "disable_token_encryption",
    "allow_failed_matcher",
    "original_request_uri",
    "allowed_redirect_domains",
    "use_access_token_expiry_for_id_token_cookie",
    "private_key_jwt_config",
    "retry_options",
];

// === impl OAuth2 ===

impl OAuth2 {
    /// Reads an `OAuth2Config`.
    pub(super) fn read(config: &Node<'_>, notes: &Notes) -> OAuth2 {
        config.only(&FIELDS, notes);
        let mut rules = Vec::new();
        for field in ["pass_through_matcher", "allow_failed_matcher"] {
            for header in config.list(field, notes) {
                let mut reach = Reach::everything();
                let found = HeaderReach::of(&header, notes);
                if matches!(found, HeaderReach::Other) {
                    notes.warn(
                        &header,
                        "requests with this header pass without a login, and callers choose their headers: the filter counts as no \
                         check. If a filter behind it checks what these requests bring, state that on the route (`credentials.checks`)",
                    );
                }
                reach.add(found);
                rules.push(Rule { reach, demand: None });
            }
        }
        let name = config.at(&["credentials", "cookie_names", "bearer_token"]).and_then(|name| name.own_text(notes));
        let name = name.filter(|name| !name.is_empty() && name.len() < 240).unwrap_or(DEFAULT_COOKIE);
        let demand = Demand { kinds: vec![CredentialKind::Oidc], carriers: vec![format!("cookie:{name}")] };
        rules.push(Rule { reach: Reach::everything(), demand: Some(demand) });
        OAuth2 { rules }
    }
}

/// What the filter checks on a route. Without a configuration it does nothing.
pub(super) fn checks(
    filter: Option<&OAuth2>,
    with: Option<(&str, &Node<'_>)>,
    route: &Reach,
    checked_by: &str,
    notes: &Notes,
) -> Vec<CredentialCheck> {
    let Ok(own) = expect(with, "oauth2.v3.OAuth2PerRoute", notes) else { return Vec::new() };
    let own = own.and_then(|own| own.object("config", notes)).map(|config| OAuth2::read(&config, notes));
    own.as_ref().or(filter).map(|oauth2| rules::checks(&oauth2.rules, route, checked_by)).unwrap_or_default()
}
