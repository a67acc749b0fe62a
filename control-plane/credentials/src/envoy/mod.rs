//! Reading the configuration of an Envoy: which of its filters check credentials, and on which routes.
//!
//! A bootstrap, a listener, a file of resources (`resources`), or the `config_dump` of the admin interface, as JSON or YAML.
//! What is not understood is a warning with its JSON pointer, and never counts as a check. Values of the configuration are not
//! kept: nothing but names, patterns on paths and places of credentials leaves this module.

mod document;
mod filters;
mod listener;
mod matching;
mod node;
mod paths;
mod routes;
mod rules;
mod text;

use serde::Serialize;

use crate::facts::EnvoyRoute;

pub use text::MAX_BYTES;

/// Routes of a configuration, over all listeners, at most.
pub const MAX_ROUTES: usize = 20_000;
/// Warnings that are listed, at most.
const MAX_WARNINGS: usize = 200;

/// What a configuration says of routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The routes, by name.
    pub routes: Vec<ImportedRoute>,
    /// The listeners that were read: facts of routes that name one of them are replaced.
    pub listeners: Vec<String>,
    /// What was not understood, or is worth knowing.
    pub warnings: Vec<ImportWarning>,
    /// How many warnings there are beyond those that are listed.
    pub more_warnings: usize,
}

/// A route, as filters know it: all routes of Envoy that have its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedRoute {
    /// The name of the Envoy route.
    pub name: String,
    /// The hosts of its virtual hosts, in the form of routes.
    pub hosts: Vec<String>,
    /// Its path prefixes, in the form of routes.
    pub paths: Vec<String>,
    /// Where Envoy has it and what is checked there.
    pub places: Vec<EnvoyRoute>,
}

/// Something to know of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ImportWarning {
    /// Where: a JSON pointer into the file.
    pub pointer: String,
    /// What, and what follows.
    pub message: String,
}

/// The file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Where: a JSON pointer into the file; empty for the file as a whole.
    pub pointer: String,
    /// What is wrong and what is expected.
    pub message: String,
}

/// Reads a configuration; of a certain listener alone where one is named.
///
/// # Errors
/// The file is no configuration, larger than the limits, or does not have the listener.
pub fn read(bytes: &[u8], listener: Option<&str>) -> Result<Imported, ImportError> {
    let root = text::parse(bytes)?;
    let notes = node::Notes::default();
    let document = document::Document::of(&root, &notes)?;
    let mut collected = routes::Collected::default();
    let mut listeners = Vec::new();
    for found in &document.listeners {
        let name = listener::name(found);
        if listener.is_some_and(|wanted| wanted != name) {
            continue;
        }
        if listener.is_none() && listener::is_outbound(found) {
            notes.warn(
                found,
                format!(
                    "listener `{}` is for calls of the workload itself and left out; `--listener` reads it",
                    node::short(&name)
                ),
            );
            continue;
        }
        if !listeners.contains(&name) {
            listeners.push(name.clone());
        }
        listener::read(found, &name, &document, &notes, &mut collected)?;
    }
    if let (Some(wanted), true) = (listener, listeners.is_empty()) {
        let known: Vec<String> = document
            .listeners
            .iter()
            .take(20)
            .map(|found| format!("`{}`", node::short(&listener::name(found))))
            .collect();
        return Err(ImportError::whole(format!(
            "there is no listener `{}`; the file has {}",
            node::short(wanted),
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        )));
    }
    let routes = collected.finish()?;
    let (warnings, more_warnings) = notes.finish(MAX_WARNINGS);
    Ok(Imported { routes, listeners, warnings, more_warnings })
}

// === impl ImportError ===

impl ImportError {
    fn whole(message: impl Into<String>) -> ImportError {
        ImportError { pointer: String::new(), message: message.into() }
    }
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.pointer, self.message)
        }
    }
}

impl std::fmt::Display for ImportWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.pointer, self.message)
    }
}
