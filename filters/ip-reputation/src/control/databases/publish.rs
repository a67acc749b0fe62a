//! The tables of all databases, as gateways have them.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::tables::SourceLabels;
use kit::Item;

use super::super::{AsnCategory, AsnDatabase};
use super::classes::Classifier;
use super::networks::Networks;
use super::places::Places;
use super::tables::{self, Classified, Made};
use super::{DatabaseKey, DatabaseKind, Gatherer, subject};
use crate::{CLASSES, COUNTRIES, NETWORKS};

/// What is published, and what of entities the tables need.
#[derive(Default)]
pub(super) struct Published {
    /// The classes of each database of networks, by its id.
    categories: BTreeMap<String, Vec<AsnCategory>>,
    networks: Option<LastTable>,
    classes: Option<LastTable>,
    /// The labels of the table of classes, which they keep.
    class_labels: SourceLabels,
    countries: Option<LastTable>,
}

/// The databases that a table was made of last, each with a hash of what it has, and the outcome of publishing it.
type LastTable = (MadeOf, Result<(), String>);
type MadeOf = Vec<(String, [u8; 32])>;

impl Published {
    /// Takes over the classes of all databases.
    pub(super) fn follow(&mut self, databases: &[&Item<AsnDatabase>]) {
        let classes = databases.iter().map(|entity| (entity.head.id.clone(), entity.categories.clone()));
        self.categories = classes.collect();
    }
}

impl Gatherer {
    /// Publishes the tables that are not made of the databases in force; what went wrong if gateways have another one.
    pub(super) async fn publish(&mut self) -> Result<(), String> {
        let networks = self.publish_networks().await;
        let classes = self.publish_classes().await;
        let countries = self.publish_countries().await;
        networks.and(classes).and(countries)
    }

    async fn publish_networks(&mut self) -> Result<(), String> {
        let all = self.networks();
        let made_of: MadeOf = all.iter().map(|(id, hash, _)| (id.clone(), *hash)).collect();
        if let Some(outcome) = known(&made_of, self.published.networks.as_ref()) {
            return outcome;
        }
        let all: Vec<(String, Arc<Networks>)> = all.into_iter().map(|(id, _, networks)| (id, networks)).collect();
        let made = tokio::task::spawn_blocking(move || tables::numbers(&all)).await;
        let made = made.unwrap_or_else(|_| Err("the table of networks could not be made".to_owned()));
        let outcome = self.publish_table(NETWORKS, "the table of networks", made, Some(DatabaseKind::Asn)).await;
        self.published.networks = Some((made_of, outcome.clone()));
        outcome
    }

    async fn publish_classes(&mut self) -> Result<(), String> {
        let all = self.networks();
        let mut with_classes = Vec::with_capacity(all.len());
        for (id, hash, networks) in all {
            let categories = self.published.categories.get(&id).cloned().unwrap_or_default();
            // Plain data: writing it has no way to fail.
            let written = serde_json::to_vec(&categories).unwrap_or_default();
            let hash = snapshot::content_hash(&[&hash[..], &written].concat());
            with_classes.push((id, hash, networks, categories));
        }
        let made_of: MadeOf = with_classes.iter().map(|(id, hash, ..)| (id.clone(), *hash)).collect();
        if let Some(outcome) = known(&made_of, self.published.classes.as_ref()) {
            return outcome;
        }
        let before = self.published.class_labels.clone();
        let making = tokio::task::spawn_blocking(move || {
            let mut all = Vec::with_capacity(with_classes.len());
            for (id, _, networks, categories) in with_classes {
                let classes = Classifier::new(&categories)?.classes_of(&networks);
                let names = categories.into_iter().map(|category| category.name).collect();
                all.push(Classified { id, networks, classes, names });
            }
            let (base, labels) = tables::classes(&all, &before)?;
            Ok((Made { base, left_out: BTreeMap::new() }, labels))
        });
        let made = making.await;
        let made = made.unwrap_or_else(|_| Err("the table of classes of networks could not be made".to_owned()));
        let (made, labels) = made.map(|(made, labels)| (Ok(made), Some(labels))).unwrap_or_else(|why| (Err(why), None));
        let outcome = self.publish_table(CLASSES, "the table of classes of networks", made, None).await;
        if let Some(labels) = labels.filter(|_| outcome.is_ok()) {
            self.published.class_labels = labels;
        }
        self.published.classes = Some((made_of, outcome.clone()));
        outcome
    }

    async fn publish_countries(&mut self) -> Result<(), String> {
        let used = self.databases.iter().filter(|((kind, _), database)| *kind == DatabaseKind::Geo && database.used);
        let all: Vec<(String, [u8; 32], Arc<Places>)> = used
            .filter_map(|((_, id), database)| {
                let hash = database.state.current.as_ref()?.hash;
                Some((id.clone(), hash, Arc::clone(database.state.places()?)))
            })
            .collect();
        let made_of: MadeOf = all.iter().map(|(id, hash, _)| (id.clone(), *hash)).collect();
        if let Some(outcome) = known(&made_of, self.published.countries.as_ref()) {
            return outcome;
        }
        let all: Vec<(String, Arc<Places>)> = all.into_iter().map(|(id, _, places)| (id, places)).collect();
        let made = tokio::task::spawn_blocking(move || tables::countries(&all)).await;
        let made = made.unwrap_or_else(|_| Err("the table of countries could not be made".to_owned()));
        let outcome = self.publish_table(COUNTRIES, "the table of countries", made, Some(DatabaseKind::Geo)).await;
        self.published.countries = Some((made_of, outcome.clone()));
        outcome
    }

    /// The databases of networks that are in force, by id, each with the hash of its file.
    fn networks(&self) -> Vec<(String, [u8; 32], Arc<Networks>)> {
        let used = self.databases.iter().filter(|((kind, _), database)| *kind == DatabaseKind::Asn && database.used);
        let in_force = used.filter_map(|((_, id), database)| {
            let hash = database.state.current.as_ref()?.hash;
            Some((id.clone(), hash, Arc::clone(database.state.networks()?)))
        });
        in_force.collect()
    }

    /// Publishes a table. What it has no room for is noted of the databases of `kind`.
    async fn publish_table(
        &mut self,
        table: &'static str,
        about: &str,
        made: Result<Made, String>,
        kind: Option<DatabaseKind>,
    ) -> Result<(), String> {
        let outcome = match made {
            Ok(Made { base, left_out }) => {
                let published = self.sources.publish_ranges(table, base).await.map_err(|error| error.to_string());
                if let Some(kind) = kind.filter(|_| published.is_ok()) {
                    self.leave_out(kind, &left_out);
                }
                published
            }
            Err(error) => Err(error),
        };
        match &outcome {
            Ok(()) => self.sources.health.works(about),
            // The table before stays in force.
            Err(error) => {
                self.sources.trouble(error);
                self.sources.health.fails(about, error);
            }
        }
        outcome
    }

    /// Notes which databases of a kind are not in its table, each with the reason.
    fn leave_out(&mut self, kind: DatabaseKind, left_out: &BTreeMap<String, String>) {
        let keys: Vec<DatabaseKey> = self.databases.keys().filter(|(own, _)| *own == kind).cloned().collect();
        for key in keys {
            let Some(database) = self.databases.get_mut(&key) else { continue };
            let why = left_out.get(&key.1).cloned();
            let was_left_out = std::mem::replace(&mut database.state.left_out, why.clone()).is_some();
            let works = database.used && database.state.trouble().is_none();
            match why {
                Some(why) => self.sources.health.fails(&subject(&key), &why),
                None if was_left_out && works => self.sources.health.works(&subject(&key)),
                None => {}
            }
            self.show(&key);
        }
    }
}

/// The outcome of publishing a table, where it is not to be published again. Without any database, the table of the control plane before
/// stays where gateways have one: right after a start there may be none yet.
fn known(made_of: &MadeOf, last: Option<&LastTable>) -> Option<Result<(), String>> {
    match last {
        None => made_of.is_empty().then_some(Ok(())),
        Some((published, outcome)) => (published == made_of).then(|| outcome.clone()),
    }
}
