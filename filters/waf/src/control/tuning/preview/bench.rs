//! What previews run on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use kit::{Item, Tool, TrafficSource, View};
use snapshot::PartHash;

use super::Base;
use super::attacks::{Outcome, alone, outcome};
use super::traffic::Ran;
use crate::control::AtWork;
use crate::control::composition::{Composition, Element, elements};
use crate::control::config::WafConfig;
use crate::control::lookups::LookupSources;
use crate::control::operations::engines::{BuildError, Built, Engines};
use crate::control::operations::trial::Trial;
use crate::control::tuning::corpus;

/// What a preview runs on: a match of a config, as entities are now.
pub(in super::super) struct Bench<'a> {
    pub(in super::super) view: &'a View<'a>,
    pub(in super::super) config: &'a Item<WafConfig>,
    pub(in super::super) engines: Arc<Engines>,
    pub(in super::super) bases: Arc<Bases>,
    pub(in super::super) at_work: Option<Arc<AtWork>>,
    pub(in super::super) now_millis: u64,
    /// The threads that attacks run on.
    pub(in super::super) threads: usize,
    /// Recorded traffic; `None` where it is not replayed.
    pub(in super::super) traffic: Option<&'a dyn TrafficSource>,
}

/// Of each attack of the corpus as a request of its own, its outcome.
pub(super) type Alone = Arc<Vec<Outcome>>;

/// What the requests of a recording come to without an exclusion.
pub(super) type Recorded = Arc<Vec<Option<Ran>>>;

/// The last few of them: who looks at a match tries several exclusions for it.
#[derive(Default)]
pub(in super::super) struct Bases {
    of_matches: Kept<Base>,
    alone: Kept<Vec<Outcome>>,
    recorded: Kept<Vec<Option<Ran>>>,
}

type Kept<T> = Mutex<VecDeque<(PartHash, Arc<T>)>>;

impl Tool for Bases {}

/// How many are kept.
const BASES: usize = 4;

impl Bases {
    pub(super) fn get(&self, key: &PartHash) -> Option<Arc<Base>> {
        found(&self.of_matches, key)
    }

    pub(super) fn put(&self, key: PartHash, base: &Arc<Base>) {
        keep(&self.of_matches, key, base);
    }

    pub(super) fn traffic(&self, key: &PartHash) -> Option<Recorded> {
        found(&self.recorded, key)
    }

    pub(super) fn put_traffic(&self, key: PartHash, recorded: &Recorded) {
        keep(&self.recorded, key, recorded);
    }
}

fn found<T>(kept: &Kept<T>, key: &PartHash) -> Option<Arc<T>> {
    let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.iter().find(|(known, _)| known == key).map(|(_, one)| Arc::clone(one))
}

fn keep<T>(kept: &Kept<T>, key: PartHash, one: &Arc<T>) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push_front((key, Arc::clone(one)));
    kept.truncate(BASES);
}

impl Bench<'_> {
    /// The engine of the config, with one exclusion more. It stands before all rules: an exclusion that changes rules behind it takes
    /// effect wherever it stands.
    pub(in super::super) fn build(&self, seclang: Option<&str>) -> Result<Built, String> {
        let exclusion =
            seclang.map(|text| Element { origin: "the exclusion".to_owned(), pointer: None, text: text.to_owned() });
        self.engines.build(&self.composition(exclusion)).map_err(|error| match error {
            BuildError::Elements(problems) => {
                problems.first().map_or_else(String::new, |problem| problem.diagnostic.to_string())
            }
            BuildError::Engine(message) => message,
        })
    }

    fn composition(&self, exclusion: Option<Element>) -> Composition {
        let all: Vec<Element> = exclusion.into_iter().chain(elements(self.config, self.view)).collect();
        Composition::new(&all, &self.config.crs)
    }

    /// What becomes of the attacks of the corpus without an exclusion: the same for all matches of the config.
    pub(super) fn alone(&self, trial: &Trial<'_>) -> Alone {
        let key = self.fingerprint();
        if let Some(known) = found(&self.bases.alone, &key) {
            return known;
        }
        let of = |attack| outcome(trial, alone(attack).as_ref(), b"");
        let outcomes: Vec<Outcome> = corpus::attacks().iter().map(of).collect();
        let outcomes = Arc::new(outcomes);
        keep(&self.bases.alone, key, &outcomes);
        outcomes
    }

    /// Stands for the rules of the config.
    pub(in super::super) fn fingerprint(&self) -> PartHash {
        self.composition(None).fingerprint()
    }

    pub(in super::super) fn trial<'t>(&'t self, built: &'t Built) -> Trial<'t> {
        Trial {
            engine: &built.engine,
            config: Some(self.config),
            places: built.lookups.places,
            zones: LookupSources::of(self.view).zones_of(&built.lookups),
            tables: self.at_work.as_ref().map(|at_work| &at_work.tables),
            now_millis: self.now_millis,
        }
    }
}
