//! The filters of Envoy that check credentials.

mod jwt;
mod oauth2;
mod principal;
mod rbac;
mod simple;

use super::document::Document;
use super::matching::Reach;
use super::node::{Node, Notes, short};
use crate::facts::{CredentialCheck, CredentialKind};

/// A filter of a chain, read once for all of its routes.
pub(super) struct HttpFilter<'a> {
    /// The name of its entry: the key of per-route configurations.
    pub(super) name: &'a str,
    /// The entry, for warnings.
    node: Node<'a>,
    /// It runs only where a route enables it.
    disabled: bool,
    kind: Kind<'a>,
}

/// What a filter is.
enum Kind<'a> {
    Jwt(jwt::Jwt),
    OAuth2(Option<oauth2::OAuth2>),
    Basic(simple::Basic),
    ApiKey(simple::ApiKey),
    ExtAuthz(simple::ExtAuthz),
    Rbac(Option<rbac::Rbac>),
    /// It checks no credential, or none that is understood.
    Other(&'a str),
}

/// Filters that check no credential of a caller.
const WITHOUT_CHECKS: [&str; 44] = [
    "adaptive_concurrency",
    "admission_control",
    "alternate_protocols_cache",
    "aws_lambda",
    "aws_request_signing",
    "bandwidth_limit",
    "bandwidth_share",
    "body_size_limit",
    "buffer",
    "cache",
    "cache_v2",
    "cdn_loop",
    "compressor",
    "connect_grpc_bridge",
    "cors",
    "credential_injector",
    "csrf",
    "custom_response",
    "decompressor",
    "dynamic_forward_proxy",
    "fault",
    "file_server",
    "file_system_buffer",
    "gcp_authn",
    "geoip",
    "grpc_http1_bridge",
    "grpc_http1_reverse_bridge",
    "grpc_json_transcoder",
    "grpc_stats",
    "grpc_web",
    "header_mutation",
    "header_to_metadata",
    "health_check",
    "ip_tagging",
    "json_to_metadata",
    "kill_request",
    "local_ratelimit",
    "on_demand",
    "original_src",
    "ratelimit",
    "router",
    "set_filter_state",
    "set_metadata",
    "tap",
];

/// What the names of Palisade's own filters begin with, none of which checks credentials.
const OWN: &str = "palisade.";

/// Filters that may answer requests before filters behind them see them.
const ANSWERING: [&str; 3] = ["cache", "cache_v2", "health_check"];

/// The configurations that a route has for filters, the most specific first.
pub(super) struct Levels<'n, 'a> {
    pub(super) levels: &'n [Node<'a>],
}

/// What a route says of one filter.
enum Override<'a> {
    /// Nothing.
    None,
    /// It does not run.
    Off,
    /// It runs as it is configured.
    On,
    /// It runs with this configuration: its type, and the content.
    With(&'a str, Node<'a>),
    /// It is not understood.
    Unknown,
}

// === impl HttpFilter ===

impl<'a> HttpFilter<'a> {
    /// Reads an entry of `http_filters`.
    pub(super) fn read(node: &Node<'a>, document: &Document<'a>, notes: &Notes) -> HttpFilter<'a> {
        let before = notes.faults();
        let name = node.text("name", notes).unwrap_or_default();
        let disabled = node.flag("disabled", notes).unwrap_or(false);
        let discovered = node.get("config_discovery").is_some();
        let typed = match document.filters.get(name) {
            Some(typed) if discovered => Some(typed.clone()),
            _ if discovered => {
                if !is_own(node, name, notes) {
                    let what = "comes from elsewhere (ECDS), is not in the file, and counts as no check";
                    notes.warn(node, format!("the configuration of filter `{}` {what}", short(name)));
                }
                None
            }
            _ => node.object("typed_config", notes),
        };
        let read = typed.and_then(|typed| typed.any(notes));
        let kind = match &read {
            None => Kind::Other(""),
            Some((kind, config)) => Kind::read(kind, config, node, name, notes),
        };
        // What is partly not understood is no check.
        let kind = if notes.faults() == before { kind } else { Kind::Other("") };
        HttpFilter { name, node: node.clone(), disabled, kind }
    }

    /// What it checks on a route, in front of the others.
    pub(super) fn checks(&self, levels: &Levels<'_, 'a>, route: &Reach, notes: &Notes) -> Vec<CredentialCheck> {
        let checked_by = self.name;
        let before = notes.faults();
        let over = levels.of(self.name, notes);
        let on = match over {
            Override::Off | Override::Unknown => false,
            Override::None => !self.disabled,
            Override::On | Override::With(..) => true,
        };
        if !on {
            return Vec::new();
        }
        let with = match &over {
            Override::With(kind, node) => Some((*kind, node)),
            _ => None,
        };
        let checks = match &self.kind {
            Kind::Jwt(jwt) => jwt.checks(with, route, checked_by, notes),
            Kind::OAuth2(oauth2) => oauth2::checks(oauth2.as_ref(), with, route, checked_by, notes),
            Kind::Basic(basic) => basic.checks(with, checked_by, notes),
            Kind::ApiKey(api_key) => api_key.checks(with, checked_by, notes),
            Kind::ExtAuthz(ext_authz) => ext_authz.checks(with, checked_by, notes),
            Kind::Rbac(rbac) => rbac::checks(rbac.as_ref(), with, route, checked_by, notes),
            Kind::Other(_) => Vec::new(),
        };
        if notes.faults() == before { checks } else { Vec::new() }
    }

    /// Whether it checks credentials on some route.
    fn may_check(&self) -> bool {
        !matches!(self.kind, Kind::Other(_))
    }
}

/// Whether a filter whose configuration comes from elsewhere is one of Palisade's.
fn is_own(node: &Node<'_>, name: &str, notes: &Notes) -> bool {
    let types = node.object("config_discovery", notes).map(|discovery| discovery.list("type_urls", notes));
    let wasm = |kind: &Node<'_>| kind.own_text(notes).is_some_and(|kind| kind.ends_with(".wasm.v3.Wasm"));
    name.starts_with(OWN) && types.is_some_and(|types| !types.is_empty() && types.iter().all(wasm))
}

/// Warns of what stands in front of checks and may answer for them.
pub(super) fn warn_of_order(filters: &[HttpFilter<'_>], notes: &Notes) {
    let Some(last) = filters.iter().rposition(HttpFilter::may_check) else { return };
    for filter in filters.iter().take(last).filter(|filter| !filter.disabled) {
        if let Kind::Other(kind) = filter.kind
            && ANSWERING.contains(&kind)
        {
            notes.warn(&filter.node, format!("filter `{}` stands in front of a check of credentials and may answer requests that were not checked", short(filter.name)));
        }
    }
}

/// What a network filter in front of the HTTP filters checks.
pub(super) fn of_network(filter: &Node<'_>, notes: &Notes) -> Vec<CredentialCheck> {
    let Some((kind, config)) = filter.object("typed_config", notes).and_then(|typed| typed.any(notes)) else {
        return Vec::new();
    };
    let checked_by = filter.text("name", notes).unwrap_or_default();
    let before = notes.faults();
    let checks = match kind {
        "envoy.extensions.filters.network.rbac.v3.RBAC" => {
            let rbac = rbac::Rbac::read(&config, notes);
            rbac::checks(rbac.as_ref(), None, &Reach::everything(), checked_by, notes)
        }
        "envoy.extensions.filters.network.ext_authz.v3.ExtAuthz" => {
            vec![CredentialCheck::new(vec![CredentialKind::External], checked_by)]
        }
        _ => Vec::new(),
    };
    if notes.faults() == before { checks } else { Vec::new() }
}

// === impl Kind ===

impl<'a> Kind<'a> {
    fn read(kind: &'a str, config: &Node<'a>, node: &Node<'a>, name: &str, notes: &Notes) -> Kind<'a> {
        let Some(rest) = kind.strip_prefix("envoy.extensions.filters.http.") else {
            notes.warn(
                node,
                format!(
                    "filter `{}` is of the type `{}`, which is not read and counts as no check",
                    short(name),
                    short(kind)
                ),
            );
            return Kind::Other("");
        };
        let folder = rest.split('.').next().unwrap_or_default();
        match rest {
            "jwt_authn.v3.JwtAuthentication" => Kind::Jwt(jwt::Jwt::read(config, notes)),
            "oauth2.v3.OAuth2" => {
                Kind::OAuth2(config.object("config", notes).map(|config| oauth2::OAuth2::read(&config, notes)))
            }
            "basic_auth.v3.BasicAuth" => Kind::Basic(simple::Basic::read(config, notes)),
            "api_key_auth.v3.ApiKeyAuth" => Kind::ApiKey(simple::ApiKey::read(config, notes)),
            "ext_authz.v3.ExtAuthz" => Kind::ExtAuthz(simple::ExtAuthz::read(config, notes)),
            "rbac.v3.RBAC" => Kind::Rbac(rbac::Rbac::read(config, notes)),
            _ if WITHOUT_CHECKS.contains(&folder) => Kind::Other(folder),
            _ => {
                if folder != "wasm" || !name.starts_with(OWN) {
                    let what = "may check credentials in a way that cannot be read, and counts as no check";
                    notes.warn(node, format!("filter `{}` ({}) {what}", short(name), short(folder)));
                }
                Kind::Other("")
            }
        }
    }
}

// === impl Levels ===

impl<'a> Levels<'_, 'a> {
    /// What the most specific level says of a filter that says something.
    fn of(&self, name: &str, notes: &Notes) -> Override<'a> {
        let entry = self.levels.iter().find_map(|level| level.each().find(|(key, _)| *key == name));
        let Some((_, node)) = entry else { return Override::None };
        let Some((kind, content)) = node.any(notes) else { return Override::Unknown };
        if kind != "envoy.config.route.v3.FilterConfig" {
            return Override::With(kind, content);
        }
        let before = notes.faults();
        if content.flag("disabled", notes).unwrap_or(false) {
            return Override::Off;
        }
        let inner = content.object("config", notes);
        let read = inner.as_ref().filter(|inner| !inner.is_empty()).and_then(|inner| inner.any(notes));
        match (inner, read) {
            _ if notes.faults() != before => Override::Unknown,
            (None, _) => Override::On,
            // Envoy's way to say that the filter runs as it is configured.
            (Some(inner), _) if inner.is_empty() => Override::On,
            (Some(_), Some((kind, content))) => Override::With(kind, content),
            (Some(_), None) => Override::Unknown,
        }
    }
}

/// The content of a per-route configuration of the expected type; `Err` where it is of another, which is a fault.
fn expect<'n, 'a>(
    with: Option<(&'a str, &'n Node<'a>)>,
    kind: &str,
    notes: &Notes,
) -> Result<Option<&'n Node<'a>>, ()> {
    match with {
        None => Ok(None),
        Some((own, node)) if own.strip_prefix("envoy.extensions.filters.http.") == Some(kind) => Ok(Some(node)),
        Some((own, node)) => {
            notes.fault(node, format!("a configuration of the type `{}` does not belong to this filter", short(own)));
            Err(())
        }
    }
}
