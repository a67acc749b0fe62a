//! The loop: directories are fetched when they are due, kept, and published.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kit::Sources;
use lists::Failure;
use metrics::{counter, gauge};
use snapshot::TableKind;
use tables::KeysBuilder;
use tokio::task::{Id, JoinSet};

use super::directory::KeyDirectory;
use super::fetch::{FetchedKeys, fetch};
use super::jwks::{KeySet, thumbprint};
use super::{WantedDirectory, keep, wanted};
use crate::control::fetching::{self, AT_ONCE};
use crate::control::verify::Verification;
use crate::{DIRECTORY_BYTES, KEYS, directory_label, key_row};

/// Directories in force, by their labels.
type InForce = Vec<([u8; DIRECTORY_BYTES], KeySet)>;

struct Gatherer {
    sources: Sources,
    /// By identifier.
    directories: BTreeMap<String, KeyDirectory>,
    fetches: JoinSet<Result<FetchedKeys, Failure>>,
    fetching: HashMap<Id, WantedDirectory>,
    /// What the table was last made of; `None` before the first.
    published: Option<InForce>,
}

/// Keeps the keys of signers up to date for as long as the control plane runs.
pub(in super::super) async fn gather(sources: Sources) {
    let mut gatherer = Gatherer {
        sources,
        directories: BTreeMap::new(),
        fetches: JoinSet::new(),
        fetching: HashMap::new(),
        published: None,
    };
    gatherer.run().await;
}

impl Gatherer {
    async fn run(&mut self) {
        self.follow_entities().await;
        loop {
            self.publish();
            self.start_fetches();
            self.show();
            let now = (self.sources.clock)();
            let sleep = fetching::sleep(self.directories.values().filter_map(KeyDirectory::next), now);
            tokio::select! {
                changed = self.sources.entities.changed() => match changed {
                    Ok(()) => self.follow_entities().await,
                    Err(_) => return,
                },
                Some(ended) = self.fetches.join_next_with_id() => {
                    let (task, outcome) = match ended {
                        Ok((task, outcome)) => (task, outcome),
                        Err(error) => (error.id(), Err(Failure::broken())),
                    };
                    self.ended(task, outcome).await;
                }
                () = tokio::time::sleep(sleep) => {}
            }
        }
    }

    /// Takes up new directories, and gives up those that no policy wants any more.
    async fn follow_entities(&mut self) {
        let entities = Arc::clone(&self.sources.entities.borrow_and_update());
        let wanted = wanted(&*entities);
        let stays = |known: &WantedDirectory| {
            wanted.iter().any(|wanted| wanted.identifier == known.identifier && wanted.url == known.url)
        };
        let health = Arc::clone(&self.sources.health);
        self.directories.retain(|_, directory| {
            let stays = stays(&directory.wanted);
            if !stays {
                health.ends(&directory.subject());
            }
            stays
        });
        for wanted in &wanted {
            if !self.directories.contains_key(&wanted.identifier) {
                self.take_up(wanted).await;
            }
        }
        self.forget_documents(&wanted).await;
    }

    async fn take_up(&mut self, wanted: &WantedDirectory) {
        let kept = fetching::load(&self.sources, &document_name(wanted), "keys of bots").await;
        let kept = kept.and_then(|document| keep::restored(&document));
        let directory = KeyDirectory::new(wanted.clone(), kept, (self.sources.clock)());
        self.directories.insert(wanted.identifier.clone(), directory);
    }

    /// Removes what is kept of directories that no policy wants.
    async fn forget_documents(&self, wanted: &[WantedDirectory]) {
        let wanted: Vec<String> = wanted.iter().map(document_name).collect();
        fetching::forget(&self.sources, keep::PREFIX, &wanted, "a key directory").await;
    }

    fn start_fetches(&mut self) {
        let now = (self.sources.clock)();
        for directory in self.directories.values_mut() {
            if self.fetches.len() >= AT_ONCE {
                return;
            }
            if directory.must_be_fetched(now) {
                let fetch = fetch(directory.wanted.clone(), directory.start(now), self.sources.outbound.clone());
                self.fetching.insert(self.fetches.spawn(fetch).id(), directory.wanted.clone());
            }
        }
    }

    async fn ended(&mut self, task: Id, outcome: Result<FetchedKeys, Failure>) {
        let Some(fetched) = self.fetching.remove(&task) else { return };
        // No policy wants it any more, or it is somewhere else now.
        let known = self.directories.get_mut(&fetched.identifier);
        let Some(directory) = known.filter(|directory| directory.wanted.url == fetched.url) else { return };
        let random = getrandom::u32().unwrap_or(u32::MAX / 2);
        let ended = directory.ended(outcome, (self.sources.clock)(), random);
        let subject = directory.subject();
        match ended {
            Ok(()) => {
                self.sources.health.works(&subject);
                let document = directory.current.as_ref().map(keep::document).unwrap_or_default();
                let name = document_name(&directory.wanted);
                fetching::keep(&self.sources, &name, document, &subject).await;
            }
            Err(why) => {
                counter!("palisade_bots_key_directory_failures_total").increment(1);
                self.sources.health.fails(&subject, &why);
            }
        }
    }

    /// Publishes the table if it is not made of the directories in force.
    fn publish(&mut self) {
        let now = (self.sources.clock)();
        let in_force = self.directories.iter().filter_map(|(identifier, directory)| {
            Some((directory_label(identifier.as_bytes()), directory.in_force(now)?.set.clone()))
        });
        let in_force: InForce = in_force.collect();
        // Gateways keep the table of the control plane before while nothing is known: right after the first start. A directory that is known
        // and too old is none any more, there as well.
        let knows_none = self.directories.values().all(|directory| directory.current.is_none());
        let waits = self.published.is_none() && in_force.is_empty() && !self.directories.is_empty() && knows_none;
        if waits || self.published.as_ref() == Some(&in_force) {
            return;
        }
        let published = table(&in_force).and_then(|table| {
            self.sources.material.publish(KEYS, TableKind::Keys, table).map_err(|error| error.to_string())
        });
        if let Err(error) = published {
            self.sources.trouble(&error);
        }
        self.published = Some(in_force);
    }

    fn show(&self) {
        let now = (self.sources.clock)();
        let shown: Vec<_> = self.directories.values().map(|directory| directory.shown(now)).collect();
        let gauge = |state: &'static str, count: usize| {
            gauge!("palisade_bots_key_directories", "state" => state)
                .set(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        };
        gauge("failing", self.directories.values().filter(|directory| directory.error().is_some()).count());
        gauge("in_force", shown.iter().filter(|directory| directory.in_force).count());
        if let Some(runtime) = self.sources.runtime::<Verification>() {
            runtime.show_directories(shown);
        }
    }
}

/// The table of all directories in force: a row of each directory, and one of each of its keys.
fn table(directories: &InForce) -> Result<Vec<u8>, String> {
    let mut builder = KeysBuilder::default();
    for (label, set) in directories {
        builder.put(label, &[]).map_err(|error| error.to_string())?;
        for key in &set.keys {
            let row = key_row(label, &thumbprint(&key.public));
            builder.put(&row, &key.to_bytes()).map_err(|error| error.to_string())?;
        }
    }
    builder.build().map_err(|error| error.to_string())
}

fn document_name(wanted: &WantedDirectory) -> String {
    format!("{}{}", keep::PREFIX, wanted.label())
}
