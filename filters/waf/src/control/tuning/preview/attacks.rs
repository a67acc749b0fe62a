//! Requests that are tried: samples, and known attacks at an input or by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, LazyLock};

use seclang::{MATCHED_IDS, REPORTED_INPUTS};

use super::super::exclusion::{Place, selects};
use super::super::shape::Shape;
use super::super::target::{Target, is_input};
use super::SampleOutcome;
use crate::Watched;
use crate::control::operations::trial::{ReadRequest, ReadResponse, Trial};
use crate::control::tuning::corpus::{self, Attack, Spot};
use crate::samples::messages::SampledRequest;
use crate::signals::inbound_score;

/// The address that samples come from; which one it was is not kept.
pub(super) const PEER: &str = "192.0.2.1:40000";
/// The longest tag of an attack, in bytes.
const MAX_TAG: usize = 64;
/// Where a payload is put at the input of the exclusion.
pub(super) const INJECTED: &str = "input";
/// Where an attack is a request of its own.
const ALONE: &str = "alone";

/// All candidates, by where payloads are put.
static VALUES: LazyLock<Vec<Candidate>> = LazyLock::new(|| Candidate::all(&[Spot::Value]).collect());
static QUERIES: LazyLock<Vec<Candidate>> = LazyLock::new(|| Candidate::all(spots_of("QUERY_STRING")).collect());
static PATHS: LazyLock<Vec<Candidate>> = LazyLock::new(|| Candidate::all(spots_of("REQUEST_FILENAME")).collect());
static URIS: LazyLock<Vec<Candidate>> = LazyLock::new(|| Candidate::all(spots_of("REQUEST_URI")).collect());
static WRITES: LazyLock<Vec<Candidate>> = LazyLock::new(|| Candidate::all(spots_of("REQUEST_METHOD")).collect());

/// The outcome of an attack.
#[derive(Clone, PartialEq)]
pub(super) enum Outcome {
    /// It cannot be put at the input.
    NotTried,
    Passed,
    Caught(Hits),
}

/// What matches an attack.
#[derive(Clone, PartialEq)]
pub(super) struct Hits {
    /// The ids of the rules.
    rules: Arc<[u64]>,
    /// [`hit`] of the rules with their inputs.
    inputs: Arc<[u64]>,
}

impl Hits {
    pub(super) fn of(seen: &Watched) -> Self {
        let mut inputs = Vec::new();
        for rule in seen.transaction.matched_rules() {
            inputs.extend(rule.inputs().map(|(variable, _)| hit(rule.rule_id, variable)));
            if rule.earlier.len() >= REPORTED_INPUTS {
                inputs.push(hit(rule.rule_id, ANY));
            }
        }
        Self { rules: seen.transaction.matched_ids().collect(), inputs: inputs.into() }
    }

    /// Whether one of the rules matches.
    pub(super) fn have_rule(&self, rules: &BTreeSet<u64>) -> bool {
        self.are_many() || self.rules.iter().any(|rule| rules.contains(rule))
    }

    /// Whether a rule matches at an input.
    pub(super) fn have(&self, place: &Place) -> bool {
        let wanted = [hit(place.rule_id, place.target.reported().as_bytes()), hit(place.rule_id, ANY)];
        self.are_many() || self.inputs.iter().any(|one| wanted.contains(one))
    }

    /// Whether rules of one file of the core rule set matched, by its number. The first of a file say which of the others run.
    fn are_of(&self, family: u32) -> bool {
        let is_of = |rule: u64| rule / 1000 == u64::from(family) && rule % 1000 >= FIRST_RULE;
        self.are_many() || self.rules.iter().any(|rule| is_of(*rule))
    }

    /// Whether not all of them are known.
    fn are_many(&self) -> bool {
        self.rules.len() >= MATCHED_IDS
    }
}

/// From which number on the rules of a file of the core rule set look for attacks.
const FIRST_RULE: u64 = 100;
/// Stands for an input that is not reported.
const ANY: &[u8] = b"";

/// A number for a rule at an input. The case of names does not count.
fn hit(rule: u64, variable: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (rule, variable.to_ascii_lowercase()).hash(&mut hasher);
    hasher.finish()
}

/// A request that is tried, with the response to it.
pub(super) struct Tried {
    pub(super) name: String,
    pub(super) attack: &'static Attack,
    pub(super) at: &'static str,
    pub(super) request: ReadRequest,
    /// The operator that selects the path of the exclusion selects the path of the request.
    pub(super) is_on_path: bool,
    pub(super) response: Option<ReadResponse>,
}

/// What an exchange came to.
pub(super) struct Seen {
    /// The kinds of attacks that the rules find, by their tags: `attack-sqli`.
    pub(super) attacks: BTreeMap<u64, Vec<String>>,
    pub(super) rules: BTreeSet<u64>,
    /// Rules that matched at an input, with its name.
    pub(super) inputs: BTreeSet<(u64, String)>,
    pub(super) blocked: bool,
    /// The inbound anomaly score; 0 where the rules have none.
    pub(super) score: f64,
}

impl Seen {
    pub(super) fn has(&self, place: &Place) -> bool {
        self.inputs.contains(&(place.rule_id, place.target.reported()))
    }

    pub(super) fn outcome(&self) -> SampleOutcome {
        SampleOutcome { rule_ids: self.rules.iter().copied().collect(), blocked: self.blocked }
    }
}

/// An attack that is not built yet.
pub(super) struct Candidate {
    pub(super) attack: &'static Attack,
    /// The payload that is put at the input of the exclusion, with its number; without one, the attack is a request of its own.
    pub(super) payload: Option<(usize, String)>,
    /// Where that is.
    spot: Spot,
}

impl Candidate {
    /// All of them, always in the same order: those of the corpus, and their payloads and other spellings of them at the input.
    fn all(spots: &'static [Spot]) -> impl Iterator<Item = Self> {
        corpus::attacks().iter().flat_map(|attack| {
            let payloads: Vec<String> = match spots {
                [Spot::Written] => attack.writes.clone(),
                _ => attack.payload.iter().cloned().chain(corpus::variants(attack)).collect(),
            };
            let placed =
                payloads.into_iter().flat_map(|payload| spots.iter().map(move |spot| (payload.clone(), *spot)));
            let injected = placed.enumerate();
            let injected =
                injected.map(move |(number, (payload, spot))| Self { attack, payload: Some((number, payload)), spot });
            std::iter::once(Self { attack, payload: None, spot: Spot::Value }).chain(injected)
        })
    }

    /// Whether its payload is made of the characters of a shape.
    pub(super) fn is_of(&self, shape: Shape) -> bool {
        self.payload.as_ref().is_some_and(|(_, payload)| shape.holds(payload.as_bytes()))
    }

    /// Whether rules catch it that are not meant to: it is of a higher paranoia level, and none that looks for such attacks matched.
    pub(super) fn is_by_chance(&self, outcome: &Outcome, paranoia: u32) -> bool {
        let Attack { family, paranoia: lowest, .. } = self.attack;
        matches!(outcome, Outcome::Caught(hits) if *lowest > paranoia && !hits.are_of(*family))
    }

    /// `None` where the payload cannot be put there.
    pub(super) fn build(&self, carrier: &SampledRequest, (target, path): (&Target, &str)) -> Option<Tried> {
        let attack = self.attack;
        let Some((number, payload)) = &self.payload else { return alone(attack) };
        let request = read(&corpus::inject_at(carrier, (target, path), self.spot, payload.as_bytes())?);
        let is_on_path = selects(path, &request.uri);
        let name = if *number == 0 { attack.name.clone() } else { format!("{} (variant {number})", attack.name) };
        Some(Tried { name, attack, at: INJECTED, request, is_on_path, response: None })
    }
}

/// All of them for a target, always in the same order.
pub(super) fn candidates(target: &Target) -> &'static [Candidate] {
    match corpus::spots(target) {
        [Spot::Written] => &WRITES,
        [Spot::Path, ..] => &PATHS,
        [Spot::Query, Spot::RawQuery] => &QUERIES,
        [Spot::Query, ..] => &URIS,
        _ => &VALUES,
    }
}

/// Those of them with a payload at the target.
pub(super) fn injected(target: &Target) -> impl Iterator<Item = &'static Candidate> + Clone {
    candidates(target).iter().filter(|candidate| candidate.payload.is_some())
}

fn spots_of(collection: &str) -> &'static [Spot] {
    corpus::spots(&Target { collection: collection.to_owned(), member: None })
}

/// An attack as a request of its own.
pub(super) fn alone(attack: &'static Attack) -> Option<Tried> {
    let request = attack.request().read().ok()?;
    let response = attack.response().map(|response| response.read()).transpose().ok()?;
    Some(Tried { name: attack.name.clone(), attack, at: ALONE, request, is_on_path: false, response })
}

/// A sample as the engine takes it.
pub(in super::super) fn read(sample: &SampledRequest) -> ReadRequest {
    ReadRequest {
        method: sample.method.clone(),
        uri: sample.uri.clone(),
        protocol: sample.protocol.clone(),
        headers: sample.headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect(),
        body: sample.body.clone(),
        peer: PEER.to_owned(),
    }
}

/// How many attacks of the corpus are not caught, and how many there are.
pub(in super::super) fn missed(trial: &Trial<'_>) -> (usize, usize) {
    let attacks: Vec<Tried> = corpus::attacks().iter().filter_map(alone).collect();
    (attacks.iter().filter(|tried| outcome(trial, Some(tried), b"") == Outcome::Passed).count(), attacks.len())
}

/// The outcome of an attack; `id` is the unique id of its request.
pub(super) fn outcome(trial: &Trial<'_>, tried: Option<&Tried>, id: &[u8]) -> Outcome {
    let Some(tried) = tried else { return Outcome::NotTried };
    match trial.pass_as(id, &tried.request, tried.response.as_ref()) {
        Ok(seen) if is_blocked(&seen) => Outcome::Caught(Hits::of(&seen)),
        _ => Outcome::Passed,
    }
}

/// Whether rules refuse an exchange, or would if the config blocked.
pub(in super::super) fn is_blocked(outcome: &Watched) -> bool {
    // 0 is a limit, which an exclusion has nothing to do with.
    let blocked = outcome.blocked.as_ref().or(outcome.transaction.would_block());
    blocked.is_some_and(|demanded| demanded.rule_id != 0)
}

/// What a request comes to; `id` is its unique id.
pub(super) fn seen(trial: &Trial<'_>, request: &ReadRequest, id: &[u8]) -> Option<Seen> {
    let outcome = trial.pass_as(id, request, None).ok()?;
    let logged = || outcome.transaction.matched_rules().iter().filter(|rule| rule.logged);
    let named = logged().flat_map(|rule| rule.inputs().map(|(variable, _)| (rule.rule_id, variable)));
    let named = named.map(|(rule, variable)| (rule, String::from_utf8_lossy(variable).into_owned()));
    let attacks = |tags: &[Vec<u8>]| -> Vec<String> {
        let tags = tags.iter().filter_map(|tag| std::str::from_utf8(tag).ok());
        tags.filter(|tag| tag.starts_with("attack-") && tag.len() <= MAX_TAG).map(str::to_owned).collect()
    };
    Some(Seen {
        attacks: logged().map(|rule| (rule.rule_id, attacks(&rule.tags))).collect(),
        rules: logged().map(|rule| rule.rule_id).collect(),
        inputs: named.filter(|(_, name)| is_input(name)).collect(),
        blocked: is_blocked(&outcome),
        score: inbound_score(&outcome.transaction).unwrap_or(0.0),
    })
}
