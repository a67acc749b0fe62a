//! The loop: lists are fetched when they are due, kept, and published.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kit::Sources;
use lists::{Failure, Fetched};
use metrics::{counter, gauge};
use tables::SourceLabels;
use tokio::task::{Id, JoinSet};

use super::list::PublishedList;
use super::{WantedList, keep, label, table, wanted};
use crate::RANGES;
use crate::control::fetching::{self, AT_ONCE};
use crate::control::verify::Verification;

struct Gatherer {
    sources: Sources,
    /// By URL.
    lists: BTreeMap<String, PublishedList>,
    fetches: JoinSet<Result<Fetched, Failure>>,
    fetching: HashMap<Id, String>,
    /// The lists that the table was last made of: labels and hashes. `None` before the first.
    published: Option<Vec<(String, [u8; 32])>>,
    /// The labels of that table, which sets of lists keep.
    labels: SourceLabels,
}

/// Keeps the published addresses of bots up to date for as long as the control plane runs.
pub(in super::super) async fn gather(sources: Sources) {
    let mut gatherer = Gatherer {
        sources,
        lists: BTreeMap::new(),
        fetches: JoinSet::new(),
        fetching: HashMap::new(),
        published: None,
        labels: SourceLabels::default(),
    };
    gatherer.run().await;
}

impl Gatherer {
    async fn run(&mut self) {
        self.follow_entities().await;
        loop {
            self.publish().await;
            self.start_fetches();
            self.show();
            let now = (self.sources.clock)();
            let sleep = fetching::sleep(self.lists.values().filter_map(PublishedList::next), now);
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

    /// Takes up new lists, and gives up those that no policy wants any more.
    async fn follow_entities(&mut self) {
        let entities = Arc::clone(&self.sources.entities.borrow_and_update());
        let wanted = wanted(&*entities);
        let unwanted = |url: &String| !wanted.iter().any(|wanted| wanted.url == *url);
        let gone: Vec<String> = self.lists.keys().filter(|url| unwanted(url)).cloned().collect();
        for url in gone {
            if let Some(list) = self.lists.remove(&url) {
                self.sources.health.ends(&subject(&url, &list.bot));
            }
        }
        for wanted in &wanted {
            if !self.lists.contains_key(&wanted.url) {
                self.take_up(wanted).await;
            }
        }
        self.forget_documents(&wanted).await;
    }

    async fn take_up(&mut self, wanted: &WantedList) {
        let name = format!("{}{}", keep::PREFIX, label(&wanted.url));
        let kept = fetching::load(&self.sources, &name, "published addresses of bots").await;
        let kept = kept.and_then(|document| keep::restored(&document));
        match PublishedList::new(&wanted.url, &wanted.bot, kept, (self.sources.clock)()) {
            Ok(list) => drop(self.lists.insert(wanted.url.clone(), list)),
            Err(why) => self.sources.trouble(&format!("{}: {why}", subject(&wanted.url, &wanted.bot))),
        }
    }

    /// Removes what is kept of lists that no policy wants.
    async fn forget_documents(&self, wanted: &[WantedList]) {
        let wanted: Vec<String> =
            wanted.iter().map(|wanted| format!("{}{}", keep::PREFIX, label(&wanted.url))).collect();
        fetching::forget(&self.sources, keep::PREFIX, &wanted, "a list of published addresses").await;
    }

    fn start_fetches(&mut self) {
        let now = (self.sources.clock)();
        for (url, list) in &mut self.lists {
            if self.fetches.len() >= AT_ONCE {
                return;
            }
            if list.must_be_fetched(now) {
                let start = list.start(now);
                let fetch = start.fetch.run(self.sources.outbound.clone(), start.validators, start.before, now);
                self.fetching.insert(self.fetches.spawn(fetch).id(), url.clone());
            }
        }
    }

    async fn ended(&mut self, task: Id, outcome: Result<Fetched, Failure>) {
        let Some(url) = self.fetching.remove(&task) else { return };
        // No policy wants it any more.
        let Some(list) = self.lists.get_mut(&url) else { return };
        let random = getrandom::u32().unwrap_or(u32::MAX / 2);
        let ended = list.ended(outcome, (self.sources.clock)(), random);
        let subject = subject(&url, &list.bot);
        match ended {
            Ok(()) => {
                self.sources.health.works(&subject);
                let document = list.current.as_ref().map(keep::document).unwrap_or_default();
                let name = format!("{}{}", keep::PREFIX, label(&url));
                fetching::keep(&self.sources, &name, document, &subject).await;
            }
            Err(why) => {
                counter!("palisade_bots_range_failures_total").increment(1);
                self.sources.health.fails(&subject, &why);
            }
        }
    }

    /// Publishes the table if it is not made of the lists in force.
    async fn publish(&mut self) {
        let now = (self.sources.clock)();
        let lists: Vec<_> =
            self.lists.iter().filter_map(|(url, list)| Some((label(url), list.in_force(now)?))).collect();
        let made_of: Vec<(String, [u8; 32])> =
            lists.iter().map(|(label, list)| (label.clone(), list.list.hash)).collect();
        // Gateways keep the table of the control plane before while nothing is known: right after the first start. A list that is known and
        // too old is none any more, there as well.
        let knows_none = self.lists.values().all(|list| list.current.is_none());
        let waits = self.published.is_none() && made_of.is_empty() && !self.lists.is_empty() && knows_none;
        if waits || self.published.as_ref() == Some(&made_of) {
            return;
        }
        let lists: Vec<(String, Arc<[u8]>)> =
            lists.into_iter().map(|(label, list)| (label, Arc::clone(&list.list.bytes))).collect();
        let before = self.labels.clone();
        let making = tokio::task::spawn_blocking(move || table::table(&lists, &before));
        let made =
            making.await.unwrap_or_else(|_| Err("the table of published addresses could not be made".to_owned()));
        let published = match made {
            Ok((base, labels)) => {
                let published = self.sources.publish_ranges(RANGES, base).await.map_err(|error| error.to_string());
                published.map(|()| self.labels = labels)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = published {
            self.sources.trouble(&error);
        }
        self.published = Some(made_of);
    }

    fn show(&self) {
        let now = (self.sources.clock)();
        let shown: Vec<_> = self.lists.iter().map(|(url, list)| list.shown(url, now)).collect();
        let count = |which: fn(&&PublishedList) -> bool| u32::try_from(self.lists.values().filter(which).count());
        let failing = count(|list| list.error().is_some()).unwrap_or(u32::MAX);
        let in_force = shown.iter().filter(|list| list.in_force).count();
        gauge!("palisade_bots_range_lists", "state" => "failing").set(f64::from(failing));
        gauge!("palisade_bots_range_lists", "state" => "in_force")
            .set(f64::from(u32::try_from(in_force).unwrap_or(u32::MAX)));
        if let Some(runtime) = self.sources.runtime::<Verification>() {
            runtime.show_lists(shown);
        }
    }
}

/// A list as operators are told of it. Of its URL the label: the rest may be a secret.
fn subject(url: &str, bot: &str) -> String {
    format!("published addresses of `{bot}` ({})", label(url))
}
