//! The console's `security/_fingerprints`: the pairs that were learned, and what operators decide on them.

use kit::{BodyKind, NamedSchema, Operation, OperationAnswer, OperationAudit, OperationBody, OperationContext};
use kit::{FieldProblem, OperationMethod};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::operations::{GET, failed, object, text};
use super::super::verify::Verification;
use super::learned::{Learned, Pair, PairKey, PairState};
use crate::{FAMILIES, Family};

/// The pairs of a page where nothing is said, and at most.
const PAGE: u32 = 100;
const MAX_PAGE: u32 = 500;

/// A pair in answers.
const FINGERPRINT: NamedSchema = NamedSchema { name: "LearnedFingerprint", schema: fingerprint };

/// The operation that shows pairs.
pub(in super::super) const fn list_operation() -> Operation {
    Operation {
        path: "/security/_fingerprints",
        method: OperationMethod::Post,
        id: "fingerprints",
        summary: "Show the learned pairs of TLS fingerprint and software",
        description: "Those that were seen from the most networks come first. A pair acts once it is accepted.",
        body: BodyKind::of::<FingerprintsBody>(),
        example: || json!({ "state": "candidate", "min_networks": 8 }),
        answer_text: "A page of them, or why there is none.",
        answer: pairs,
        schemas: &[FINGERPRINT],
        at_once: true,
        ..GET
    }
}

/// The operation that decides on one.
pub(in super::super) const fn decide_operation() -> Operation {
    Operation {
        path: "/security/_fingerprint_decide",
        method: OperationMethod::Post,
        id: "fingerprintDecide",
        summary: "Accept, reject or forget a learned pair",
        description: "An accepted pair says that the software has this fingerprint: agents of other software with it are a mismatch, and its own \
                      are not. Look at `also` first: a fingerprint that comes with agents of different software is that of none of them. A pair \
                      that is forgotten is a candidate again when it is seen.",
        body: BodyKind::of::<FingerprintDecideBody>(),
        example: || json!({ "family": "curl", "ja4": "t13d3012h2_1d37bd780c83_d339722ba4af", "decision": "accept" }),
        answer_text: "What was done, or why nothing was.",
        answer: decided,
        busy: "others are being decided on",
        audit: Some(OperationAudit { action: "fingerprint-decision", of: subject, detail: outcome }),
        ..GET
    }
}

/// Which pairs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FingerprintsBody {
    /// Those of this state alone: `candidate`, `accepted` or `rejected`.
    #[serde(default)]
    state: Option<String>,
    /// Those of this software alone.
    #[serde(default)]
    family: Option<String>,
    /// Those with this JA4 alone.
    #[serde(default)]
    ja4: Option<String>,
    /// Those that were seen from so many networks. Default 0.
    #[serde(default)]
    min_networks: u32,
    /// The page, from 1 on. Default 1.
    #[serde(default = "one")]
    page: u32,
    /// The pairs of a page, 1 to 500. Default 100.
    #[serde(default = "page_size")]
    page_size: u32,
}

/// A pair, and the decision.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FingerprintDecideBody {
    /// The software, such as `chrome`.
    family: String,
    /// The JA4.
    ja4: String,
    /// The decision.
    decision: PairDecision,
}

/// A decision on a pair.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PairDecision {
    /// It acts.
    Accept,
    /// It does not act, and stays so.
    Reject,
    /// It and the decision on it are forgotten.
    Forget,
}

fn one() -> u32 {
    1
}

fn page_size() -> u32 {
    PAGE
}

impl OperationBody for FingerprintsBody {
    const SCHEMA: &'static str = "FingerprintsBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let problem = [
            self.state.as_deref().and_then(|state| kit::checks::word("/state", state, &PairState::WORDS)),
            self.family.as_deref().and_then(|family| kit::checks::word("/family", family, &FAMILIES)),
            kit::checks::within("/page", self.page, 1..=u32::MAX),
            kit::checks::within("/page_size", self.page_size, 1..=MAX_PAGE),
        ];
        if let Some(problem) = problem.into_iter().flatten().next() {
            return OperationAnswer::Done(failed(&problem.to_string()));
        }
        let Some(runtime) = context.runtime::<Verification>() else {
            return OperationAnswer::Done(failed("this control plane gathers no fingerprints"));
        };
        OperationAnswer::Done(self.page_of(&runtime.fingerprints.learned()))
    }
}

impl FingerprintsBody {
    fn page_of(&self, learned: &Learned) -> Value {
        let wanted = |(key, pair): &(&PairKey, &Pair)| {
            self.state.as_ref().is_none_or(|state| pair.state.word() == state)
                && self.family.as_ref().is_none_or(|family| key.family() == family)
                && self.ja4.as_ref().is_none_or(|ja4| key.ja4() == ja4.as_bytes())
                && u64::try_from(pair.networks.len()).is_ok_and(|networks| networks >= u64::from(self.min_networks))
        };
        let mut found: Vec<(&PairKey, &Pair)> = learned.pairs.iter().filter(wanted).collect();
        // Stable: those seen from as many networks stay in the order of their names.
        found.sort_by_key(|(_, pair)| std::cmp::Reverse(pair.networks.len()));
        let size = usize::try_from(self.page_size).unwrap_or(usize::MAX);
        let skip = usize::try_from(self.page - 1).unwrap_or(usize::MAX).saturating_mul(size);
        let entries: Vec<Value> =
            found.iter().skip(skip).take(size).map(|(key, pair)| shown(key, pair, learned)).collect();
        json!({ "done": true, "entries": entries, "total": found.len() })
    }
}

impl OperationBody for FingerprintDecideBody {
    const SCHEMA: &'static str = "FingerprintDecideBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        OperationAnswer::Done(match self.decide(context) {
            Ok(networks) => json!({ "done": true, "decision": self.decision, "networks": networks }),
            Err(why) => failed(&why),
        })
    }
}

impl FingerprintDecideBody {
    /// From how many networks the pair was seen.
    fn decide(&self, context: &OperationContext<'_>) -> Result<usize, String> {
        let family = kit::checks::word("/family", &self.family, &FAMILIES);
        let no_ja4 =
            || FieldProblem::new("/ja4", "that is no JA4").expected("such as `t13d1516h2_8daaf6152771_02713d6af862`");
        let key = PairKey::read(&self.family, self.ja4.as_bytes());
        let key = key.ok_or_else(|| family.unwrap_or_else(no_ja4).to_string())?;
        let nowhere = "this control plane gathers no fingerprints";
        let runtime = context.runtime::<Verification>().ok_or_else(|| nowhere.to_owned())?;
        let pairs = &runtime.fingerprints;
        let networks = pairs.learned().pairs.get(&key).map_or(0, |pair| pair.networks.len());
        let state = match self.decision {
            PairDecision::Accept => Some(PairState::Accepted),
            PairDecision::Reject => Some(PairState::Rejected),
            PairDecision::Forget => None,
        };
        pairs.order(key, state)?;
        Ok(networks)
    }
}

fn shown(key: &PairKey, pair: &Pair, learned: &Learned) -> Value {
    let others = FAMILIES.iter().filter(|family| **family != key.family());
    let also: Vec<Value> = others
        .filter_map(|family| {
            let other = learned.pairs.get(&PairKey::read(Family::read(family)?.word(), key.ja4())?)?;
            Some(json!({ "family": family, "networks": other.networks.len(), "state": other.state.word() }))
        })
        .collect();
    json!({
        "family": key.family(),
        "ja4": key.ja4_text(),
        "state": pair.state.word(),
        "networks": pair.networks.len(),
        "also": also,
        "first_seen": pair.first_seen,
        "last_seen": pair.last_seen,
        "decided_at": (pair.state != PairState::Candidate).then_some(pair.decided_at),
    })
}

/// The pair that a body names.
fn subject(body: &Value) -> Option<String> {
    let field = |name: &str| body.get(name)?.as_str();
    let key = PairKey::read(field("family")?, field("ja4")?.as_bytes())?;
    Some(format!("fingerprints/{}:{}", key.family(), key.ja4_text()))
}

/// What was decided.
fn outcome(answer: &Value) -> Option<String> {
    let decision = answer.get("decision").filter(|_| answer.get("done") == Some(&json!(true)))?.as_str()?;
    let networks = answer.get("networks").and_then(Value::as_u64).unwrap_or(0);
    Some(format!("{decision}, seen from {networks} networks"))
}

fn fingerprint() -> Value {
    let time = |about: &str| json!({ "type": "integer", "minimum": 0, "description": about });
    let state = json!({ "enum": PairState::WORDS });
    let networks = json!({ "type": "integer", "minimum": 0, "maximum": 64, "description": "from how many networks (/24, /48) within 30 days; 64 stands for more as well" });
    let other = object(json!({ "family": { "enum": FAMILIES }, "networks": networks, "state": state }));
    object(json!({
        "family": { "enum": FAMILIES },
        "ja4": text(),
        "state": state,
        "networks": networks,
        "also": { "type": "array", "items": other, "description": "other software whose agents came with the fingerprint" },
        "first_seen": time("in milliseconds since 1970"),
        "last_seen": time("in milliseconds since 1970"),
        "decided_at": { "type": ["integer", "null"], "description": "when it was accepted or rejected, in milliseconds since 1970" },
    }))
}

fn pairs() -> Value {
    let total = json!({ "type": "integer", "minimum": 0, "description": "of all pages" });
    let entries = json!({ "type": "array", "items": FINGERPRINT.reference() });
    let done = object(json!({ "done": { "const": true }, "entries": entries, "total": total }));
    json!({ "anyOf": [done, super::super::operations::FAILED.reference()] })
}

fn decided() -> Value {
    let decision = json!({ "enum": ["accept", "reject", "forget"] });
    let networks = json!({ "type": "integer", "minimum": 0 });
    let done = object(json!({ "done": { "const": true }, "decision": decision, "networks": networks }));
    json!({ "anyOf": [done, super::super::operations::FAILED.reference()] })
}
