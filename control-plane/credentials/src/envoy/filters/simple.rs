//! `basic_auth`, `api_key_auth` and `ext_authz`.

use super::expect;
use crate::envoy::node::{Node, Notes};
use crate::facts::{CredentialCheck, CredentialKind};
use crate::schemes::carrier;

/// `envoy.filters.http.basic_auth`.
pub(super) struct Basic {
    header: String,
    /// Requests without a name and a password pass.
    allows_missing: bool,
}

/// `envoy.filters.http.api_key_auth`.
pub(super) struct ApiKey {
    carriers: Vec<String>,
}

/// `envoy.filters.http.ext_authz`.
pub(super) struct ExtAuthz {
    /// It asks for all requests, and heeds the answer.
    decides: bool,
}

// === impl Basic ===

impl Basic {
    pub(super) fn read(config: &Node<'_>, notes: &Notes) -> Basic {
        config.only(
            &["users", "forward_username_header", "authentication_header", "allow_missing", "emit_dynamic_metadata"],
            notes,
        );
        let header = config.text("authentication_header", notes).filter(|header| !header.is_empty());
        let allows_missing = config.flag("allow_missing", notes).unwrap_or(false);
        if allows_missing {
            notes.warn(config, "requests without a name and a password pass (`allow_missing`): it counts as no check");
        }
        Basic { header: header.unwrap_or("authorization").to_owned(), allows_missing }
    }

    pub(super) fn checks(
        &self,
        with: Option<(&str, &Node<'_>)>,
        checked_by: &str,
        notes: &Notes,
    ) -> Vec<CredentialCheck> {
        // A route may have users of its own, who are asked for as well.
        match expect(with, "basic_auth.v3.BasicAuthPerRoute", notes) {
            Err(()) => return Vec::new(),
            Ok(Some(own)) => own.only(&["users"], notes),
            Ok(None) => {}
        }
        if self.allows_missing {
            return Vec::new();
        }
        let check = CredentialCheck::new(vec![CredentialKind::Basic], checked_by);
        vec![CredentialCheck { carriers: vec![carrier("header", &self.header)], ..check }]
    }
}

// === impl ApiKey ===

impl ApiKey {
    pub(super) fn read(config: &Node<'_>, notes: &Notes) -> ApiKey {
        config.only(&["credentials", "key_sources", "forwarding"], notes);
        ApiKey { carriers: sources(config, notes) }
    }

    pub(super) fn checks(
        &self,
        with: Option<(&str, &Node<'_>)>,
        checked_by: &str,
        notes: &Notes,
    ) -> Vec<CredentialCheck> {
        let Ok(own) = expect(with, "api_key_auth.v3.ApiKeyAuthPerRoute", notes) else { return Vec::new() };
        let mut carriers = self.carriers.clone();
        if let Some(own) = own {
            own.only(&["credentials", "key_sources", "allowed_clients", "forwarding"], notes);
            let sources = sources(own, notes);
            if !sources.is_empty() {
                carriers = sources;
            }
        }
        let check = CredentialCheck::new(vec![CredentialKind::ApiKey], checked_by);
        vec![CredentialCheck { carriers, ..check }]
    }
}

fn sources(config: &Node<'_>, notes: &Notes) -> Vec<String> {
    let place = |source: &Node<'_>| {
        ["header", "query", "cookie"].into_iter().find_map(|place| {
            let name = source.text(place, notes).filter(|name| !name.is_empty() && name.len() < 240)?;
            Some(carrier(place, name))
        })
    };
    config.list("key_sources", notes).iter().take(16).filter_map(place).collect()
}

// === impl ExtAuthz ===

impl ExtAuthz {
    pub(super) fn read(config: &Node<'_>, notes: &Notes) -> ExtAuthz {
        let mut decides = true;
        if config.flag("failure_mode_allow", notes).unwrap_or(false) {
            notes.warn(config, "requests pass while the service cannot be reached (`failure_mode_allow`)");
        }
        if config.flag("shadow_mode", notes).unwrap_or(false) {
            notes.warn(config, "the answer of the service is not heeded (`shadow_mode`): it counts as no check");
            decides = false;
        }
        if let Some(metadata) = config.get("filter_enabled_metadata") {
            notes.warn(&metadata, "metadata decides whether the service is asked: it counts as no check");
            decides = false;
        }
        if let Some(enabled) = config.object("filter_enabled", notes) {
            let all = enabled.object("default_value", notes).is_some_and(|value| {
                let numerator = value.number("numerator", notes).unwrap_or(0);
                let words = ["HUNDRED", "TEN_THOUSAND", "MILLION"];
                let denominator = match value.word("denominator", &words, notes).unwrap_or("HUNDRED") {
                    "HUNDRED" => 100,
                    "TEN_THOUSAND" => 10_000,
                    _ => 1_000_000,
                };
                numerator >= denominator
            });
            let denied = config.at(&["deny_at_disable", "default_value"]);
            let denied = denied.is_some_and(|_| {
                config
                    .object("deny_at_disable", notes)
                    .and_then(|flag| flag.flag("default_value", notes))
                    .unwrap_or(false)
            });
            if !all && !denied {
                notes.warn(
                    &enabled,
                    "the service is asked for a part of the requests alone (`filter_enabled`): it counts as no check",
                );
                decides = false;
            }
        }
        if config.get("grpc_service").or_else(|| config.get("http_service")).is_none() {
            notes.fault(config, "no service is named");
        }
        ExtAuthz { decides }
    }

    pub(super) fn checks(
        &self,
        with: Option<(&str, &Node<'_>)>,
        checked_by: &str,
        notes: &Notes,
    ) -> Vec<CredentialCheck> {
        let Ok(own) = expect(with, "ext_authz.v3.ExtAuthzPerRoute", notes) else { return Vec::new() };
        let disabled = own.is_some_and(|own| {
            own.only(&["disabled", "check_settings"], notes);
            own.flag("disabled", notes).unwrap_or(false)
        });
        if disabled || !self.decides {
            return Vec::new();
        }
        vec![CredentialCheck::new(vec![CredentialKind::External], checked_by)]
    }
}
