//! What an exclusion would change: the sample and known attacks, through the engine with it and without it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use kit::{Item, Tool, View};
use seclang::MATCHED_IDS;
use serde::Serialize;
use snapshot::{Message as _, PartHash, content_hash};

use super::exclusion::{Exclusion, Place};
use super::matches::KeptMatch;
use super::target::{Target, is_input};
use crate::Watched;
use crate::control::AtWork;
use crate::control::composition::{Composition, Element, elements};
use crate::control::config::WafConfig;
use crate::control::lookups::LookupSources;
use crate::control::operations::engines::{BuildError, Built, Engines};
use crate::control::operations::trial::{ReadRequest, ReadResponse, Trial};
use crate::control::tuning::corpus::{self, Attack};
use crate::samples::messages::{SampledHeader, SampledRequest};

/// The regressions that are listed, at most.
const MAX_LISTED: usize = 50;
/// The address that samples come from; which one it was is not kept.
const PEER: &str = "192.0.2.1:40000";

/// What a preview runs on: a match of a config, as entities are now.
pub(super) struct Bench<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) config: &'a Item<WafConfig>,
    pub(super) engines: Arc<Engines>,
    pub(super) bases: Arc<Bases>,
    pub(super) at_work: Option<Arc<AtWork>>,
    pub(super) now_millis: u64,
}

/// The outcome of a preview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Preview {
    /// The exclusion compiles with all other rules of the config.
    pub(super) compiles: bool,
    /// Why it does not.
    pub(super) error: Option<String>,
    /// The match was had again.
    pub(super) reproduced: bool,
    /// The exclusion ends it.
    pub(super) effective: bool,
    /// It compiles and ends the match, every attack that was caught still is, and no other rule is silenced.
    pub(super) safe: bool,
    /// Attacks that are not caught any more, at most 50.
    pub(super) regressions: Vec<Regression>,
    /// Other rules that matched the sample at an input, and do not any more.
    pub(super) collateral_rules: Vec<u64>,
    /// The sample without the exclusion, and with it.
    pub(super) sample_before: Option<SampleOutcome>,
    pub(super) sample_after: Option<SampleOutcome>,
    /// The attacks that were tried.
    pub(super) corpus: CorpusOutcome,
    /// The keys of other matches that it ends as well.
    pub(super) also_ended: Vec<String>,
}

/// An attack that is not caught any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Regression {
    pub(super) name: String,
    pub(super) category: String,
    /// The number of the core rule set's file that is meant to catch it, and the lowest paranoia level at which it does.
    pub(super) family: u32,
    pub(super) paranoia: u32,
    /// Where the payload was: at the input of the exclusion, or in a request of its own.
    pub(super) at: &'static str,
    pub(super) caught_before: bool,
    pub(super) caught_after: bool,
}

/// What the engine makes of the sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct SampleOutcome {
    /// The rules that matched.
    pub(super) rule_ids: Vec<u64>,
    /// It is refused, or would be if the config blocked.
    pub(super) blocked: bool,
}

/// How many attacks were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct CorpusOutcome {
    /// Requests with an attack, those at the input included.
    pub(super) attacks: usize,
    /// Those with an attack at the input of the exclusion.
    pub(super) injected: usize,
    pub(super) caught_before: usize,
    pub(super) caught_after: usize,
}

/// A request that is tried, with the response to it.
struct Tried {
    name: String,
    attack: &'static Attack,
    at: &'static str,
    request: ReadRequest,
    response: Option<ReadResponse>,
}

/// What an exchange came to.
struct Seen {
    rules: BTreeSet<u64>,
    /// Rules that matched at an input, with its name.
    inputs: BTreeSet<(u64, String)>,
    blocked: bool,
}

/// Exclusions that go with the one that is tried.
#[derive(Default)]
pub(super) struct Beside {
    /// SecLang.
    pub(super) texts: Vec<String>,
    /// The rules that they silence.
    pub(super) rules: BTreeSet<u64>,
}

/// Previews of exclusions for one match.
pub(super) struct Previews<'a> {
    bench: Bench<'a>,
    place: Place,
    base: Arc<Base>,
}

/// What is the same for all exclusions of a match.
struct Base {
    /// The request of the match.
    sample: Option<ReadRequest>,
    /// What it comes to without an exclusion.
    seen: Option<Seen>,
    /// What attacks are put into.
    carrier: SampledRequest,
    /// The outcome of each candidate without an exclusion. The requests are made anew for each preview: all of them would take much memory.
    caught: Vec<Outcome>,
    corpus: CorpusOutcome,
    /// Other matches that are had again, with their keys.
    others: Vec<(String, Place, ReadRequest)>,
}

/// The outcome of an attack.
#[derive(Clone, PartialEq)]
enum Outcome {
    /// It cannot be put at the input.
    NotTried,
    Passed,
    /// The rules that match it.
    Caught(Arc<[u64]>),
}

/// Of each attack of the corpus as a request of its own, its outcome.
type Alone = Arc<Vec<Outcome>>;

/// The last few of them: who looks at a match tries several exclusions for it.
#[derive(Default)]
pub(super) struct Bases(Mutex<VecDeque<(PartHash, Arc<Base>)>>, Mutex<VecDeque<(PartHash, Alone)>>);

impl Tool for Bases {}

/// How many are kept.
const BASES: usize = 4;

impl Bases {
    fn get(&self, key: &PartHash) -> Option<Arc<Base>> {
        found(&self.0, key)
    }

    fn put(&self, key: PartHash, base: &Arc<Base>) {
        keep(&self.0, key, base);
    }
}

fn found<T>(kept: &Mutex<VecDeque<(PartHash, Arc<T>)>>, key: &PartHash) -> Option<Arc<T>> {
    let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.iter().find(|(known, _)| known == key).map(|(_, one)| Arc::clone(one))
}

fn keep<T>(kept: &Mutex<VecDeque<(PartHash, Arc<T>)>>, key: PartHash, one: &Arc<T>) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push_front((key, Arc::clone(one)));
    kept.truncate(BASES);
}

impl<'a> Previews<'a> {
    /// Runs everything without an exclusion, unless that was done lately.
    ///
    /// # Errors
    /// The config does not compile; for people.
    pub(super) fn new(
        bench: Bench<'a>,
        place: Place,
        sample: Option<&SampledRequest>,
        others: &[KeptMatch],
    ) -> Result<Self, String> {
        let requests = others.iter().filter_map(|other| Some((other.key(), other.matched.request.as_ref()?)));
        let requests: Vec<u8> =
            requests.flat_map(|(key, request)| [key.into_bytes(), request.encode_to_vec()].concat()).collect();
        let sampled = sample.map(SampledRequest::encode_to_vec).unwrap_or_default();
        let at = format!("{}|{}|{}", place.rule_id, place.target, place.path);
        let key = [bench.fingerprint().as_slice(), at.as_bytes(), &sampled, &content_hash(&requests)].concat();
        let key = content_hash(&key);
        let base = match bench.bases.get(&key) {
            Some(base) => base,
            None => {
                let base = Arc::new(Base::new(&bench, &place, sample, others)?);
                bench.bases.put(key, &base);
                base
            }
        };
        Ok(Self { bench, place, base })
    }

    /// What SecLang that a person has written would change.
    pub(super) fn preview(&self, seclang: &str) -> Preview {
        self.run(&Beside::default(), seclang, None)
    }

    /// What an exclusion for the match would change together with others. It keeps one rule from an input, or switches it off, so that only
    /// attacks that the rule, or one of the others, has matched can come to another end: the rest is not run again.
    pub(super) fn preview_beside(&self, others: &Beside, exclusion: &Exclusion) -> Preview {
        let rules: BTreeSet<u64> = others.rules.iter().copied().chain([self.place.rule_id]).collect();
        self.run(others, &exclusion.seclang, Some(&rules))
    }

    /// `changed` are the rules that SecLang changes; `None` for any.
    fn run(&self, others: &Beside, seclang: &str, changed: Option<&BTreeSet<u64>>) -> Preview {
        let base = &self.base;
        let mut preview = Preview { corpus: base.corpus.clone(), ..Preview::default() };
        let before = base.seen.as_ref();
        preview.reproduced = before.is_some_and(|seen| seen.has(&self.place));
        preview.sample_before = before.map(Seen::outcome);
        let together = others.texts.iter().map(String::as_str).chain([seclang]).collect::<Vec<_>>().join("\n");
        let built = match self.bench.build(Some(&together)) {
            Ok(built) => built,
            Err(why) => return Preview { error: Some(why), ..preview },
        };
        preview.compiles = true;
        let trial = self.bench.trial(&built);
        let after = base.sample.as_ref().and_then(|request| seen(&trial, request, None));
        if let (Some(before), Some(after)) = (before, &after) {
            preview.effective = preview.reproduced && !after.has(&self.place);
            let is_meant = |rule: &u64| *rule == self.place.rule_id || others.rules.contains(rule);
            let silenced = before.inputs.iter().filter(|(rule, _)| !is_meant(rule));
            let silenced: BTreeSet<u64> =
                silenced.map(|(rule, _)| *rule).filter(|rule| !after.rules.contains(rule)).collect();
            preview.collateral_rules = silenced.into_iter().collect();
        }
        preview.sample_after = after.as_ref().map(Seen::outcome);
        let mut missed = 0;
        for (candidate, rules) in Candidate::all().zip(&base.caught) {
            let Outcome::Caught(rules) = rules else { continue };
            let is_touched = changed
                .is_none_or(|changed| rules.len() >= MATCHED_IDS || rules.iter().any(|rule| changed.contains(rule)));
            let now_missed = || {
                let tried = candidate.build(&base.carrier, &self.place.target)?;
                caught_by(&trial, &tried).is_none().then_some(tried)
            };
            let Some(tried) = is_touched.then(now_missed).flatten() else {
                preview.corpus.caught_after += 1;
                continue;
            };
            missed += 1;
            if preview.regressions.len() < MAX_LISTED {
                preview.regressions.push(Regression {
                    name: tried.name,
                    category: tried.attack.category.clone(),
                    family: tried.attack.family,
                    paranoia: tried.attack.paranoia,
                    at: tried.at,
                    caught_before: true,
                    caught_after: false,
                });
            }
        }
        let ended = base
            .others
            .iter()
            .filter(|(_, place, request)| seen(&trial, request, None).is_some_and(|seen| !seen.has(place)));
        preview.also_ended = ended.map(|(key, _, _)| key.clone()).collect();
        preview.safe = preview.effective && missed == 0 && preview.collateral_rules.is_empty();
        preview
    }
}

impl Base {
    fn new(
        bench: &Bench<'_>,
        place: &Place,
        sample: Option<&SampledRequest>,
        others: &[KeptMatch],
    ) -> Result<Self, String> {
        let built = bench.build(None).map_err(|why| format!("the rules of the WAF config do not compile: {why}"))?;
        let trial = bench.trial(&built);
        let read_sample = sample.map(read);
        let seen = read_sample.as_ref().and_then(|request| self::seen(&trial, request, None));
        let carrier = carrier(sample, place);
        let alone = bench.alone(&trial);
        let mut alone = alone.iter().cloned();
        let injected = |candidate: Candidate| match candidate.build(&carrier, &place.target) {
            Some(tried) => caught_by(&trial, &tried).map_or(Outcome::Passed, Outcome::Caught),
            None => Outcome::NotTried,
        };
        let (mut caught, mut corpus) = (Vec::new(), CorpusOutcome::default());
        for candidate in Candidate::all() {
            let is_injected = candidate.payload.is_some();
            let outcome = match is_injected {
                true => injected(candidate),
                false => alone.next().unwrap_or(Outcome::NotTried),
            };
            let is_tried = outcome != Outcome::NotTried;
            corpus.attacks += usize::from(is_tried);
            corpus.injected += usize::from(is_tried && is_injected);
            corpus.caught_before += usize::from(matches!(outcome, Outcome::Caught(_)));
            caught.push(outcome);
        }
        let again = |other: &KeptMatch| {
            let matched = &other.matched;
            let (target, request) = (Target::parse(matched.target.as_bytes())?, read(matched.request.as_ref()?));
            let other_place = Place { rule_id: matched.rule_id, target, path: matched.path.clone() };
            let is_again = other_place != *place && self::seen(&trial, &request, None)?.has(&other_place);
            is_again.then(|| (other.key(), other_place, request))
        };
        let others = others.iter().filter_map(again).collect();
        Ok(Self { sample: read_sample, seen, carrier, caught, corpus, others })
    }
}

/// The request that attacks are put into: the sample, or where there is none, one for the path. A body that is cut cannot be read: where the
/// input is not in it, it is left out, because it would be refused for itself.
fn carrier(sample: Option<&SampledRequest>, place: &Place) -> SampledRequest {
    let of_body = ["ARGS", "ARGS_NAMES", "ARGS_POST", "ARGS_POST_NAMES", "FILES", "FILES_NAMES", "REQUEST_BODY", "XML"];
    match sample {
        Some(sample) if sample.cut && !of_body.contains(&place.target.collection.as_str()) => {
            let is_of_body = |header: &&SampledHeader| !header.name.starts_with(b"content-");
            let headers = sample.headers.iter().filter(is_of_body).cloned().collect();
            SampledRequest { method: "GET".to_owned(), headers, body: Vec::new(), ..sample.clone() }
        }
        Some(sample) => sample.clone(),
        None => SampledRequest {
            method: "GET".to_owned(),
            uri: place.path.replace(['{', '}'], "").into_bytes(),
            protocol: "HTTP/1.1".to_owned(),
            headers: vec![SampledHeader { name: b"host".to_vec(), value: b"localhost".to_vec() }],
            ..SampledRequest::default()
        },
    }
}

impl Bench<'_> {
    /// The engine of the config, with one exclusion more. It stands before all rules: an exclusion that changes rules behind it takes
    /// effect wherever it stands.
    pub(super) fn build(&self, seclang: Option<&str>) -> Result<Built, String> {
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
    fn alone(&self, trial: &Trial<'_>) -> Alone {
        let key = self.fingerprint();
        if let Some(known) = found(&self.bases.1, &key) {
            return known;
        }
        let outcome = |attack| match alone(attack) {
            Some(tried) => caught_by(trial, &tried).map_or(Outcome::Passed, Outcome::Caught),
            None => Outcome::NotTried,
        };
        let outcomes = Arc::new(corpus::attacks().iter().map(outcome).collect());
        keep(&self.bases.1, key, &outcomes);
        outcomes
    }

    /// Stands for the rules of the config.
    pub(super) fn fingerprint(&self) -> PartHash {
        self.composition(None).fingerprint()
    }

    pub(super) fn trial<'t>(&'t self, built: &'t Built) -> Trial<'t> {
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

impl Seen {
    fn has(&self, place: &Place) -> bool {
        self.inputs.contains(&(place.rule_id, place.target.to_string()))
    }

    fn outcome(&self) -> SampleOutcome {
        SampleOutcome { rule_ids: self.rules.iter().copied().collect(), blocked: self.blocked }
    }
}

/// Where a payload is put at the input of the exclusion.
const INJECTED: &str = "input";
/// Where an attack is a request of its own.
const ALONE: &str = "alone";

/// An attack that is not built yet.
struct Candidate {
    attack: &'static Attack,
    /// The payload that is put at the input of the exclusion, with its number; without one, the attack is a request of its own.
    payload: Option<(usize, String)>,
}

impl Candidate {
    /// All of them, always in the same order: those of the corpus, and their payloads and other spellings of them at the input.
    fn all() -> impl Iterator<Item = Self> {
        corpus::attacks().iter().flat_map(|attack| {
            let payloads = attack.payload.iter().cloned().chain(corpus::variants(attack)).enumerate();
            let injected = payloads.map(move |payload| Self { attack, payload: Some(payload) });
            std::iter::once(Self { attack, payload: None }).chain(injected)
        })
    }

    /// `None` where the payload cannot be put there.
    fn build(self, carrier: &SampledRequest, target: &Target) -> Option<Tried> {
        let attack = self.attack;
        let Some((number, payload)) = self.payload else { return alone(attack) };
        let request = read(&corpus::inject(carrier, target, payload.as_bytes())?);
        let name = if number == 0 { attack.name.clone() } else { format!("{} (variant {number})", attack.name) };
        Some(Tried { name, attack, at: INJECTED, request, response: None })
    }
}

/// An attack as a request of its own.
fn alone(attack: &'static Attack) -> Option<Tried> {
    let request = attack.request().read().ok()?;
    let response = attack.response().map(|response| response.read()).transpose().ok()?;
    Some(Tried { name: attack.name.clone(), attack, at: ALONE, request, response })
}

/// A sample as the engine takes it.
pub(super) fn read(sample: &SampledRequest) -> ReadRequest {
    ReadRequest {
        method: sample.method.clone(),
        uri: sample.uri.clone(),
        protocol: sample.protocol.clone(),
        headers: sample.headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect(),
        body: sample.body.clone(),
        peer: PEER.to_owned(),
    }
}

/// How many attacks of the corpus are not caught.
pub(super) fn missed(trial: &Trial<'_>) -> (usize, usize) {
    let attacks: Vec<Tried> = corpus::attacks().iter().filter_map(alone).collect();
    (attacks.iter().filter(|tried| caught_by(trial, tried).is_none()).count(), attacks.len())
}

/// The rules that match an attack; `None` where it passes.
fn caught_by(trial: &Trial<'_>, tried: &Tried) -> Option<Arc<[u64]>> {
    let outcome = trial.pass(&tried.request, tried.response.as_ref()).ok()?;
    is_blocked(&outcome).then(|| outcome.transaction.matched_ids().collect())
}

/// Whether rules refuse an exchange, or would if the config blocked.
pub(super) fn is_blocked(outcome: &Watched) -> bool {
    // 0 is a limit, which an exclusion has nothing to do with.
    let blocked = outcome.blocked.as_ref().or(outcome.transaction.would_block());
    blocked.is_some_and(|demanded| demanded.rule_id != 0)
}

fn seen(trial: &Trial<'_>, request: &ReadRequest, response: Option<&ReadResponse>) -> Option<Seen> {
    let outcome = trial.pass(request, response).ok()?;
    let logged = || outcome.transaction.matched_rules().iter().filter(|rule| rule.logged);
    let named = logged().flat_map(|rule| rule.inputs().map(|(variable, _)| (rule.rule_id, variable)));
    let named = named.map(|(rule, variable)| (rule, String::from_utf8_lossy(variable).into_owned()));
    Some(Seen {
        rules: logged().map(|rule| rule.rule_id).collect(),
        inputs: named.filter(|(_, name)| is_input(name)).collect(),
        blocked: is_blocked(&outcome),
    })
}

#[cfg(test)]
mod tests;
