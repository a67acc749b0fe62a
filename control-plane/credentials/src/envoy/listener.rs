//! Listeners: what TLS and network filters check, and the chains of HTTP filters.

use super::ImportError;
use super::document::Document;
use super::filters::{self, HttpFilter};
use super::node::{Node, Notes, short};
use super::routes::{Chain, Collected};
use crate::facts::{CredentialCheck, CredentialKind};

/// HTTP filters of a chain, at most.
const MAX_FILTERS: usize = 100;

/// The name of a listener; its address if it has none.
pub(super) fn name(listener: &Node<'_>) -> String {
    let quiet = Notes::default();
    let own = listener.text("name", &quiet).filter(|name| !name.is_empty());
    let of_address = || {
        let address = listener.at(&["address", "socket_address"])?;
        let port = address.number("port_value", &quiet).unwrap_or(0);
        Some(format!("{}:{port}", address.text("address", &quiet).unwrap_or_default()))
    };
    let name = own.map(str::to_owned).or_else(of_address).unwrap_or_default();
    name.chars().take(256).collect()
}

/// Whether it takes the calls of a workload to others.
pub(super) fn is_outbound(listener: &Node<'_>) -> bool {
    listener.word("traffic_direction", &["UNSPECIFIED", "INBOUND", "OUTBOUND"], &Notes::default()) == Some("OUTBOUND")
}

/// Reads a listener.
///
/// # Errors
/// There are more routes than the limit.
pub(super) fn read<'a>(
    listener: &Node<'a>,
    name: &str,
    document: &Document<'a>,
    notes: &Notes,
    collected: &mut Collected,
) -> Result<(), ImportError> {
    let mut chains = listener.objects("filter_chains", notes);
    chains.extend(listener.object("default_filter_chain", notes));
    for chain in chains {
        let mut before: Vec<CredentialCheck> = tls(&chain, document, notes).into_iter().collect();
        for filter in chain.objects("filters", notes) {
            let typed = filter.object("typed_config", notes).and_then(|typed| typed.any(notes));
            match typed {
                Some((
                    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                    manager,
                )) => {
                    connection_manager(&manager, name, &before, document, notes, collected)?;
                    break;
                }
                _ => before.extend(filters::of_network(&filter, notes)),
            }
        }
    }
    Ok(())
}

fn connection_manager<'a>(
    manager: &Node<'a>,
    listener: &str,
    before: &[CredentialCheck],
    document: &Document<'a>,
    notes: &Notes,
    collected: &mut Collected,
) -> Result<(), ImportError> {
    let listed = manager.objects("http_filters", notes);
    if listed.len() > MAX_FILTERS {
        return Err(ImportError {
            pointer: manager.pointer(),
            message: format!("there are more than {MAX_FILTERS} filters"),
        });
    }
    let filters: Vec<HttpFilter<'a>> = listed.iter().map(|filter| HttpFilter::read(filter, document, notes)).collect();
    filters::warn_of_order(&filters, notes);
    for upgrade in manager.list("upgrade_configs", notes) {
        if upgrade.get("filters").is_some_and(|own| !own.is_empty()) {
            let kind = upgrade.text("upgrade_type", notes).unwrap_or_default();
            notes
                .warn(&upgrade, format!("upgrades to `{}` pass filters of their own, which are not read", short(kind)));
        }
    }
    let chain = Chain { listener, before, filters: &filters };
    for config in route_configs(manager, document, notes) {
        collected.add(&config, &chain, notes)?;
    }
    Ok(())
}

/// The route configurations of a connection manager.
fn route_configs<'a>(manager: &Node<'a>, document: &Document<'a>, notes: &Notes) -> Vec<Node<'a>> {
    if let Some(inline) = manager.object("route_config", notes) {
        return vec![inline];
    }
    let named = |name: &str, node: &Node<'a>| {
        let found = document.route_configs.get(name).cloned();
        if found.is_none() {
            let what = "is not in the file, so that its routes are not imported; a `config_dump` has it";
            notes.warn(node, format!("the route configuration `{}` {what}", short(name)));
        }
        found
    };
    if let Some(rds) = manager.object("rds", notes) {
        return named(rds.text("route_config_name", notes).unwrap_or_default(), &rds).into_iter().collect();
    }
    let Some(scoped) = manager.object("scoped_routes", notes) else {
        notes.warn(manager, "the connection manager names no routes");
        return Vec::new();
    };
    let Some(list) = scoped.object("scoped_route_configurations_list", notes) else {
        notes.warn(&scoped, "scoped routes from elsewhere are not read, so that its routes are not imported");
        return Vec::new();
    };
    let scopes = list.list("scoped_route_configurations", notes);
    let of_scope = |scope: &Node<'a>| {
        scope
            .object("route_configuration", notes)
            .or_else(|| named(scope.text("route_configuration_name", notes).unwrap_or_default(), scope))
    };
    scopes.iter().filter_map(of_scope).collect()
}

/// What the TLS of a chain checks.
fn tls(chain: &Node<'_>, document: &Document<'_>, notes: &Notes) -> Option<CredentialCheck> {
    let socket = chain.object("transport_socket", notes)?;
    let before = notes.faults();
    let (kind, mut context) = socket.object("typed_config", notes)?.any(notes)?;
    match kind {
        "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext" => {}
        "envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport" => {
            context = context.object("downstream_tls_context", notes)?;
        }
        "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer" => return None,
        _ => {
            notes.warn(&socket, format!("the transport `{}` is not read and counts as no check", short(kind)));
            return None;
        }
    }
    if !context.flag("require_client_certificate", notes).unwrap_or(false) {
        return None;
    }
    let verified = context.object("common_tls_context", notes).is_some_and(|common| verifies(&common, document, notes));
    if !verified {
        notes.warn(&context, "client certificates are required and any is accepted: no authority is named, so that it counts as no check");
    }
    let check = CredentialCheck::new(vec![CredentialKind::ClientCertificate], "tls");
    (verified && notes.faults() == before).then_some(check)
}

/// Whether a `CommonTlsContext` verifies client certificates.
fn verifies(common: &Node<'_>, document: &Document<'_>, notes: &Notes) -> bool {
    let secret = |reference: &Node<'_>| {
        let name = reference.text("name", notes).unwrap_or_default();
        match document.secrets.get(name).and_then(|secret| secret.get("validation_context")) {
            Some(context) => context_verifies(&context, notes) == Some(true),
            // What is not in the file is sent by a server of secrets, which has nothing else to send under it.
            None => true,
        }
    };
    if let Some(context) = common.object("validation_context", notes) {
        return context_verifies(&context, notes) == Some(true);
    }
    if let Some(reference) = common.object("validation_context_sds_secret_config", notes) {
        return secret(&reference);
    }
    let Some(combined) = common.object("combined_validation_context", notes) else {
        return common.get("validation_context_certificate_provider_instance").is_some();
    };
    let default =
        combined.object("default_validation_context", notes).and_then(|context| context_verifies(&context, notes));
    match (default, combined.object("validation_context_sds_secret_config", notes)) {
        (Some(verifies), _) => verifies,
        (None, Some(reference)) => secret(&reference),
        (None, None) => combined.get("validation_context_certificate_provider_instance").is_some(),
    }
}

/// Whether a `CertificateValidationContext` verifies; `None` where it does not say.
fn context_verifies(context: &Node<'_>, notes: &Notes) -> Option<bool> {
    let trust = context.word("trust_chain_verification", &["VERIFY_TRUST_CHAIN", "ACCEPT_UNTRUSTED"], notes);
    if trust == Some("ACCEPT_UNTRUSTED") {
        notes.warn(context, "certificates of unknown authorities are accepted (`ACCEPT_UNTRUSTED`)");
        return Some(false);
    }
    let sources = [
        "trusted_ca",
        "ca_certificate_provider_instance",
        "system_root_certs",
        "verify_certificate_spki",
        "verify_certificate_hash",
        "custom_validator_config",
    ];
    let names_one = |source: &&str| {
        let Some(node) = context.get(source) else { return false };
        if !node.is_filled() {
            notes.fault(&node, "an object or a list with content is expected");
        }
        node.is_filled()
    };
    sources.iter().any(names_one).then_some(true)
}
