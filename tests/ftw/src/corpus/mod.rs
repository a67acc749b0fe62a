//! Requests of good intent, to see what a rule set denies of them.
//!
//! A corpus is a folder of YAML files with `requests` each; `clients.yaml` beside them has the headers of the clients
//! that send them. What a client would encode is written plainly and encoded here.

mod encode;
mod file;

use std::collections::BTreeMap;
use std::path::Path;

use crate::Engine;
use crate::case::find;
use crate::judge::Found;
use proxy_host::traffic::Exchange;

/// The file with the clients' headers.
const CLIENTS: &str = "clients.yaml";

/// A folder's requests.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    /// In the order of their files.
    pub requests: Vec<Benign>,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Benign {
    /// `FILE: what it is`.
    pub name: String,
    /// The request; an empty 200 answers it.
    pub exchange: Exchange,
    /// The rules by which the core rule set denies it at its lowest paranoia level; none for all but a few.
    pub known: Vec<u64>,
}

/// What became of a request.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The request's name.
    pub name: String,
    /// It was not let pass.
    pub denied: bool,
    /// The status that its client got.
    pub status: u16,
    /// The rules that matched, those that deny by a score left out.
    pub ids: Vec<u64>,
    /// The rules that are known to match it.
    pub known: Vec<u64>,
}

impl Corpus {
    /// Reads a folder.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is of another shape, a client that nobody knows, a name that is there twice.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let clients: BTreeMap<String, file::Pairs> = file::read(&folder.join(CLIENTS))?;
        let mut requests: Vec<Benign> = Vec::new();
        for path in find(folder)?.into_iter().filter(|path| !path.ends_with(CLIENTS)) {
            let topic = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let file: file::File = file::read(&path)?;
            for request in file.requests {
                let name = format!("{topic}: {}", request.name);
                if requests.iter().any(|known| known.name == name) {
                    return Err(format!("{}: there are two requests named `{}`", path.display(), request.name));
                }
                let known = request.known.clone();
                let exchange =
                    request.exchange(&clients).map_err(|error| format!("{}: {name}: {error}", path.display()))?;
                requests.push(Benign { name, exchange, known });
            }
        }
        Ok(Self { requests })
    }

    /// Runs every request on an engine.
    pub fn run(&self, engine: &mut dyn Engine) -> Vec<Verdict> {
        self.requests
            .iter()
            .map(|request| {
                let outcome = engine.exchange(&request.exchange);
                let found = Found::read(&outcome);
                let sums =
                    |id: &u64| !(949_000..950_000).contains(id) && !(959_000..960_000).contains(id) && *id < 980_000;
                Verdict {
                    name: request.name.clone(),
                    denied: outcome.local_reply.is_some() || outcome.fault.is_some(),
                    status: outcome.status,
                    ids: found.ids.into_iter().filter(sums).collect(),
                    known: request.known.clone(),
                }
            })
            .collect()
    }
}

impl Verdict {
    /// It is on the list of what the rule set is known to deny.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.known.is_empty()
    }
}
