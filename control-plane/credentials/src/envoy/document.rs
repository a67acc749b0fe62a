//! The kinds of files that have a configuration, and what of them matters.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ImportError;
use super::node::{Node, Notes};

/// What of a configuration matters here.
pub(super) struct Document<'a> {
    /// In the order of the file.
    pub(super) listeners: Vec<Node<'a>>,
    /// Route configurations that listeners refer to by name (RDS).
    pub(super) route_configs: BTreeMap<&'a str, Node<'a>>,
    /// Secrets that listeners refer to by name (SDS).
    pub(super) secrets: BTreeMap<&'a str, Node<'a>>,
    /// Configurations of filters that listeners refer to by name (ECDS).
    pub(super) filters: BTreeMap<&'a str, Node<'a>>,
}

const EXPECTED: &str = "a bootstrap (`static_resources`), a listener (`filter_chains`), a file of `resources`, or a `config_dump` (`configs`)";

// === impl Document ===

impl<'a> Document<'a> {
    /// Finds listeners, and what they refer to.
    ///
    /// # Errors
    /// The value is none of the known kinds.
    pub(super) fn of(root: &'a Value, notes: &Notes) -> Result<Document<'a>, ImportError> {
        let root = Node::root(root);
        let mut document = Document {
            listeners: Vec::new(),
            route_configs: BTreeMap::new(),
            secrets: BTreeMap::new(),
            filters: BTreeMap::new(),
        };
        if root.fields().is_none() {
            return Err(ImportError::whole(format!("the file is no configuration of Envoy; {EXPECTED} is expected")));
        }
        if root.get("configs").is_some() {
            document.dump(&root, notes);
        } else if root.get("static_resources").is_some() || root.get("dynamic_resources").is_some() {
            document.bootstrap(&root, notes);
            if let (Some(dynamic), true) = (root.get("dynamic_resources"), document.listeners.is_empty()) {
                let message =
                    "listeners come from a management server; import the output of `config_dump` of the running Envoy";
                notes.warn(&dynamic, message);
            }
        } else if root.get("resources").is_some() {
            for resource in root.objects("resources", notes) {
                document.resource(&resource, notes);
            }
        } else if root.get("filter_chains").is_some() || root.get("default_filter_chain").is_some() {
            document.listeners.push(root);
        } else if root.get("virtual_hosts").is_some() {
            let message = "a route configuration alone does not say which filters its requests pass; import the listener, or a `config_dump`";
            return Err(ImportError::whole(message));
        } else {
            return Err(ImportError::whole(format!("the file is no configuration of Envoy; {EXPECTED} is expected")));
        }
        Ok(document)
    }

    fn bootstrap(&mut self, bootstrap: &Node<'a>, notes: &Notes) {
        let Some(resources) = bootstrap.object("static_resources", notes) else { return };
        for listener in resources.objects("listeners", notes) {
            self.listener(listener);
        }
        for secret in resources.list("secrets", notes) {
            self.secret(&secret, notes);
        }
    }

    /// Adds a listener; the bootstrap and the listeners of a dump have the static ones both.
    fn listener(&mut self, listener: Node<'a>) {
        let name = super::listener::name(&listener);
        if !self.listeners.iter().any(|known| super::listener::name(known) == name) {
            self.listeners.push(listener);
        }
    }

    /// `config_dump` of the admin interface.
    fn dump(&mut self, root: &Node<'a>, notes: &Notes) {
        let mut bootstraps = Vec::new();
        for config in root.objects("configs", notes) {
            let Some((kind, config)) = config.any(notes) else { continue };
            match kind {
                "envoy.admin.v3.BootstrapConfigDump" => bootstraps.extend(config.object("bootstrap", notes)),
                "envoy.admin.v3.ListenersConfigDump" => self.dumped_listeners(&config, notes),
                // What a dump has that was asked for some resources alone (`?resource=`).
                "envoy.admin.v3.ListenersConfigDump.StaticListener"
                | "envoy.admin.v3.ListenersConfigDump.DynamicListener" => self.dumped_listener(&config, notes),
                "envoy.admin.v3.RoutesConfigDump.StaticRouteConfig"
                | "envoy.admin.v3.RoutesConfigDump.DynamicRouteConfig" => self.dumped_routes(&config, notes),
                "envoy.admin.v3.RoutesConfigDump" => {
                    for list in ["static_route_configs", "dynamic_route_configs"] {
                        config.list(list, notes).iter().for_each(|entry| self.dumped_routes(entry, notes));
                    }
                }
                "envoy.admin.v3.SecretsConfigDump" => {
                    for list in ["static_secrets", "dynamic_active_secrets"] {
                        for entry in config.list(list, notes) {
                            let Some(secret) = entry.object("secret", notes) else { continue };
                            self.secret(&secret, notes);
                        }
                    }
                }
                "envoy.admin.v3.EcdsConfigDump" => {
                    for entry in config.list("ecds_filters", notes) {
                        let Some(filter) = entry.object("ecds_filter", notes) else { continue };
                        if let (Some(name), Some(typed)) = (filter.text("name", notes), filter.get("typed_config")) {
                            self.filters.insert(name, typed);
                        }
                    }
                }
                _ => {}
            }
        }
        for bootstrap in bootstraps {
            self.bootstrap(&bootstrap, notes);
        }
    }

    fn dumped_listeners(&mut self, config: &Node<'a>, notes: &Notes) {
        for list in ["static_listeners", "dynamic_listeners"] {
            config.list(list, notes).iter().for_each(|entry| self.dumped_listener(entry, notes));
        }
    }

    /// A listener of a dump; those from a management server have a state.
    fn dumped_listener(&mut self, entry: &Node<'a>, notes: &Notes) {
        let active = || entry.object("active_state", notes)?.object("listener", notes);
        match entry.object("listener", notes).or_else(active) {
            Some(listener) => self.listener(listener),
            None => notes.warn(entry, "the listener is not active and is left out"),
        }
    }

    fn dumped_routes(&mut self, entry: &Node<'a>, notes: &Notes) {
        if let Some(routes) = entry.object("route_config", notes) {
            self.resource(&routes, notes);
        }
    }

    /// A resource of a file for listeners or routes, by its type.
    fn resource(&mut self, resource: &Node<'a>, notes: &Notes) {
        let kind = resource.get("@type").and_then(|_| resource.any(notes));
        let (kind, resource) = kind.unwrap_or(("envoy.config.route.v3.RouteConfiguration", resource.clone()));
        match kind {
            "envoy.config.listener.v3.Listener" => self.listener(resource),
            "envoy.config.route.v3.RouteConfiguration" => {
                self.route_configs.insert(resource.text("name", notes).unwrap_or_default(), resource);
            }
            "envoy.extensions.transport_sockets.tls.v3.Secret" => self.secret(&resource, notes),
            "envoy.config.core.v3.TypedExtensionConfig" => {
                if let (Some(name), Some(typed)) = (resource.text("name", notes), resource.get("typed_config")) {
                    self.filters.insert(name, typed);
                }
            }
            _ => {}
        }
    }

    fn secret(&mut self, secret: &Node<'a>, notes: &Notes) {
        if let Some(name) = secret.text("name", notes) {
            self.secrets.insert(name, secret.clone());
        }
    }
}
