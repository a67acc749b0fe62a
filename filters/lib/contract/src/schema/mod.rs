//! The validator of JSON Schema (2020-12; OpenAPI 3.0's dialect is compiled into the same records).

mod arrays;
mod evaluated;
mod folded;
mod objects;

use std::cmp::Ordering;

use crate::compiled::Contract;
use crate::json::{Document, Kind, Value};
use crate::opened::{Schema, has};
use crate::record::types;
use evaluated::Evaluated;
use folded::Folds;

/// The deepest nesting of schemas within one check.
const MAX_NESTING: u32 = 250;

/// The most places of one value that are told of: behind them the check stops at the first thing that is wrong.
const MAX_FAILURES: usize = 8;

/// The most schemas in turn for one value that lead to one another: more are a circle.
const MAX_TURNS: u32 = 100;

/// The bytes of a pattern that is compiled once more which count as one of the work of a check.
const COMPILED_BYTES: usize = 16;

/// Which way a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// To the backend: what is `readOnly` need not be there.
    Request,
    /// From the backend: what is `writeOnly` need not be there.
    Response,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// The value is valid.
    Valid,
    /// It is not: where in it, as JSON pointers, and what is expected there. There is at least one, and at most eight.
    Invalid(Vec<(String, String)>),
    /// The check took more work than it may, or the value is nested too deep for it.
    TooCostly,
    /// A schema refers to itself in a circle, and checks nothing.
    Unjudged,
}

/// Something that is wrong.
struct Failure {
    at: usize,
    expected: String,
}

/// One check of one value.
pub(crate) struct Validator<'a> {
    contract: &'a Contract,
    side: Side,
    budget: u64,
    nesting: u32,
    exhausted: bool,
    /// Where the value is that is looked at, and how many schemas it came through in turn.
    place: usize,
    turns: u32,
    circle: bool,
    failures: Vec<Failure>,
    /// How many failures are expected, and so not described.
    silent: u32,
    /// The resources that the check has come through, where dynamic references look for their anchors.
    scope: Vec<u32>,
    dynamic: bool,
    /// What is done with members whose names are declared in another case, and whether there are any.
    folds: Folds,
    folded: bool,
    /// The outermost schema of the value that is looked at.
    outermost: Option<&'a Schema>,
}

/// Checks a value. `budget` is the work that it may take: about one for each pair of a value and a schema.
pub(crate) fn check(contract: &Contract, schema: u32, document: &Document<'_>, side: Side, budget: u64) -> Checked {
    run(contract, schema, document, (side, Folds::Off), budget).0
}

/// Checks a value of a request: as [`check`], and members whose names are declared in another case against these properties, as
/// backends bind them. It only takes away from what is valid, for which `budget` is given once more.
pub(crate) fn check_request(contract: &Contract, schema: u32, document: &Document<'_>, budget: u64) -> Checked {
    match run(contract, schema, document, (Side::Request, Folds::Notes), budget) {
        (Checked::Valid, true) => run(contract, schema, document, (Side::Request, Folds::Checks), budget).0,
        (checked, _) => checked,
    }
}

/// What came of a check, and whether members were noted that are declared in another case.
fn run(
    contract: &Contract,
    schema: u32,
    document: &Document<'_>,
    (side, folds): (Side, Folds),
    budget: u64,
) -> (Checked, bool) {
    let dynamic = contract.is_dynamic();
    let mut validator = Validator {
        contract,
        side,
        budget,
        nesting: 0,
        exhausted: false,
        place: usize::MAX,
        turns: 0,
        circle: false,
        failures: Vec::new(),
        silent: 0,
        scope: Vec::new(),
        dynamic,
        folds,
        folded: false,
        outermost: None,
    };
    let valid = validator.valid(schema, document.root(), None);
    let checked = match valid {
        _ if validator.circle => Checked::Unjudged,
        _ if validator.exhausted => Checked::TooCostly,
        true => Checked::Valid,
        false => Checked::Invalid(told(validator.failures, document)),
    };
    (checked, validator.folded)
}

/// Failures with their places: at least one.
fn told(failures: Vec<Failure>, document: &Document<'_>) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for failure in failures {
        let one = (document.pointer(failure.at), failure.expected);
        if !found.contains(&one) {
            found.push(one);
        }
    }
    if found.is_empty() {
        found.push((String::new(), "a value that matches the schema".to_owned()));
    }
    found
}

impl<'a> Validator<'a> {
    /// Takes work off the budget; false where nothing is left.
    fn charge(&mut self, work: usize) -> bool {
        let work = u64::try_from(work).unwrap_or(u64::MAX);
        self.exhausted |= work > self.budget;
        self.budget = self.budget.saturating_sub(work);
        !self.exhausted
    }

    /// Whether a text has a match of a pattern; not where the pattern cannot be compiled.
    fn has_match(&mut self, pattern: u32, text: &[u8]) -> bool {
        let (matcher, compiled) = self.contract.pattern(pattern);
        self.charge(compiled / COMPILED_BYTES) && matcher.is_some_and(|matcher| matcher.is_match(text))
    }

    /// Notes what is wrong, and is false.
    #[cold]
    fn wrong(&mut self, value: Value<'_>, expected: impl FnOnce() -> String) -> bool {
        if self.goes_on() {
            self.failures.push(Failure { at: value.at, expected: expected() });
        }
        false
    }

    /// Whether a value that is not valid is looked at further, for what else is wrong with it.
    fn goes_on(&self) -> bool {
        self.silent == 0 && self.failures.len() < MAX_FAILURES && !self.exhausted
    }

    /// Whether a value is valid, without a word on why not.
    fn probe(&mut self, schema: u32, value: Value<'_>, evaluated: Option<&mut Evaluated>) -> bool {
        self.silent += 1;
        let valid = self.valid(schema, value, evaluated);
        self.silent -= 1;
        valid
    }

    /// Whether a value is valid. Of a valid one, `evaluated` learns which properties and items were looked at.
    #[inline]
    fn valid(&mut self, entry: u32, value: Value<'_>, evaluated: Option<&mut Evaluated>) -> bool {
        if !self.charge(1) {
            return true;
        }
        // A damaged record checks nothing.
        let Some(schema) = self.contract.schema(entry) else { return true };
        if schema.has(has::COMPOUND) { self.compound(schema, value, evaluated) } else { self.own(schema, value) }
    }

    /// A schema that others are part of.
    fn compound(&mut self, schema: &'a Schema, value: Value<'_>, evaluated: Option<&mut Evaluated>) -> bool {
        let before = (self.place, self.turns, self.outermost);
        if value.at != self.place {
            self.outermost = Some(schema);
        }
        self.turns = if value.at == self.place { self.turns + 1 } else { 0 };
        self.place = value.at;
        self.circle |= self.turns >= MAX_TURNS;
        self.exhausted |= self.circle || self.nesting >= MAX_NESTING;
        let valid = self.exhausted || {
            self.nesting += 1;
            let entered = self.dynamic && self.scope.last() != Some(&schema.record.resource);
            if entered {
                self.scope.push(schema.record.resource);
            }
            let valid = self.schema(schema, value, evaluated);
            if entered {
                self.scope.pop();
            }
            self.nesting -= 1;
            valid
        };
        (self.place, self.turns, self.outermost) = before;
        valid
    }

    fn schema(&mut self, schema: &Schema, value: Value<'_>, outer: Option<&mut Evaluated>) -> bool {
        if !self.own(schema, value) {
            return false;
        }
        if value.kind() == Kind::Null && schema.has(has::NULLABLE) {
            return true;
        }
        let tracks = schema.has(has::UNEVALUATED);
        if outer.is_none() && !tracks {
            let mut valid = self.inside(schema, value, None);
            if schema.has(has::IN_PLACE) && (valid || self.goes_on()) {
                valid &= self.in_place(schema, value, None);
            }
            return valid;
        }
        let mut evaluated = Evaluated::default();
        let valid = self.inside(schema, value, Some(&mut evaluated))
            && self.in_place(schema, value, Some(&mut evaluated))
            && (!tracks || self.unevaluated(schema, value, &mut evaluated));
        if let Some(outer) = outer.filter(|_| valid) {
            outer.merge(evaluated);
        }
        valid
    }

    /// Keywords for the value itself.
    #[inline]
    fn own(&mut self, schema: &Schema, value: Value<'_>) -> bool {
        if schema.has(has::NEVER | has::NULLABLE) {
            if schema.has(has::NEVER) {
                return self.wrong(value, || "nothing to be here".to_owned());
            }
            if value.kind() == Kind::Null {
                return true;
            }
        }
        if !schema.takes_type(value) {
            return self.wrong(value, || names(schema.record.types));
        }
        if !schema.has(has::VALUES | has::TEXT | has::NUMBER) {
            return true;
        }
        if schema.has(has::VALUES) && !self.listed(schema, value) {
            return false;
        }
        match value.kind() {
            Kind::String if schema.has(has::TEXT) => self.text(schema, value),
            Kind::Number if schema.has(has::NUMBER) => self.number(schema, value),
            _ => true,
        }
    }

    /// `enum`, `const`.
    fn listed(&mut self, schema: &Schema, value: Value<'_>) -> bool {
        let Some(values) = &schema.values else { return true };
        let found = if value.kind() == Kind::String {
            let text = value.string();
            values.texts.binary_search_by(|own| own.as_ref().cmp(text.as_ref())).is_ok()
        } else {
            let found = values.all.root().elements().any(|one| value.equals(one, &mut self.budget));
            self.exhausted |= self.budget == 0;
            found
        };
        found
            || self.wrong(value, || {
                let listed = String::from_utf8_lossy(values.all.root().raw()).chars().take(120).collect::<String>();
                format!("one of {listed}")
            })
    }

    fn text(&mut self, schema: &Schema, value: Value<'_>) -> bool {
        let record = &schema.record;
        let (lower, upper) = (record.min_length, record.max_length);
        let text = value.string();
        if !self.charge(text.len() / 16) {
            return true;
        }
        if (lower.is_some() || upper.is_some()) && !fits(&text, lower, upper) {
            return self.wrong(value, || bounds("a text of", "characters", lower, upper));
        }
        if let Some(format) = schema.format.filter(|format| !format.takes_text(&text)) {
            return self.wrong(value, || format!("the format {}", format.name()));
        }
        if record.pattern.is_some()
            && let (Some(pattern), compiled) = schema.pattern(self.contract)
            && self.charge(compiled / COMPILED_BYTES + text.len() / 8)
            && !pattern.is_match(&text)
        {
            return self.wrong(value, || "a text that matches the pattern".to_owned());
        }
        true
    }

    fn number(&mut self, schema: &Schema, value: Value<'_>) -> bool {
        let Some(number) = value.number() else { return true };
        let text = |text: &Option<Vec<u8>>| String::from_utf8_lossy(text.as_deref().unwrap_or_default()).into_owned();
        let record = &schema.record;
        if schema.minimum.is_some_and(|bound| number.compare(bound) == Ordering::Less) {
            return self.wrong(value, || format!("a number of at least {}", text(&record.minimum)));
        }
        if schema.maximum.is_some_and(|bound| number.compare(bound) == Ordering::Greater) {
            return self.wrong(value, || format!("a number of at most {}", text(&record.maximum)));
        }
        if schema.above.is_some_and(|bound| number.compare(bound) != Ordering::Greater) {
            return self.wrong(value, || format!("a number over {}", text(&record.above)));
        }
        if schema.below.is_some_and(|bound| number.compare(bound) != Ordering::Less) {
            return self.wrong(value, || format!("a number under {}", text(&record.below)));
        }
        if schema.multiple_of.is_some_and(|divisor| !number.is_multiple_of(divisor)) {
            return self.wrong(value, || format!("a multiple of {}", text(&record.multiple_of)));
        }
        if let Some(format) = schema.format.filter(|format| !format.takes_number(number)) {
            return self.wrong(value, || format!("the format {}", format.name()));
        }
        true
    }

    /// Keywords for what the value holds.
    fn inside(&mut self, schema: &Schema, value: Value<'_>, evaluated: Option<&mut Evaluated>) -> bool {
        match value.kind() {
            Kind::Object if schema.has(has::OBJECT) => self.object(schema, value, evaluated),
            Kind::Array if schema.has(has::ARRAY) => self.array(schema, value, evaluated),
            _ => true,
        }
    }

    /// Schemas for the same value.
    fn in_place(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        let dynamic = record.dynamic_reference.map(|target| self.dynamic_target(target, record.dynamic_anchor));
        let mut valid = true;
        for target in record.reference.into_iter().chain(dynamic).chain(record.all_of.iter().copied()) {
            valid &= self.valid(target, value, evaluated.as_deref_mut());
            if !valid && !self.goes_on() {
                return false;
            }
        }
        if let Some(not) = record.not
            && self.asks(not, value, None)
            && !self.exhausted
        {
            return self.wrong(value, || "a value that the schema does not exclude".to_owned());
        }
        valid && self.choice(schema, value, evaluated.as_deref_mut()) && self.condition(schema, value, evaluated)
    }

    fn choice(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        if record.any_of.is_empty() && record.one_of.is_empty() {
            return true;
        }
        if let Some(branch) = self.discriminated(schema, value) {
            return self.valid(branch, value, evaluated);
        }
        if !record.any_of.is_empty() {
            let branches = schema.any_of(value, self.contract);
            let mut any = false;
            for branch in branches {
                any |= self.probe(*branch, value, evaluated.as_deref_mut());
                if any && evaluated.is_none() {
                    break;
                }
            }
            if !any {
                return self.no_branch(branches, value);
            }
        }
        if !record.one_of.is_empty() {
            let branches = schema.one_of(value, self.contract);
            let mut matched = 0;
            for branch in branches {
                matched += u32::from(self.probe(*branch, value, evaluated.as_deref_mut()));
                if matched > 1 {
                    return self.exhausted
                        || self.wrong(value, || {
                            "a value that matches one alternative alone; it matches several".to_owned()
                        });
                }
            }
            if matched == 0 {
                return self.no_branch(branches, value);
            }
        }
        true
    }

    /// Says what is wrong where no alternative matches: of a single one, its own words.
    fn no_branch(&mut self, branches: &[u32], value: Value<'_>) -> bool {
        match branches {
            [only] if self.silent == 0 => self.valid(*only, value, None),
            _ => self.wrong(value, || "a value that matches one of the alternatives".to_owned()),
        }
    }

    /// The branch that the discriminator chooses.
    fn discriminated(&mut self, schema: &Schema, value: Value<'_>) -> Option<u32> {
        let property = schema.record.discriminator?;
        let chosen = value.member(self.contract.text(property)).filter(|chosen| chosen.kind() == Kind::String)?;
        let name = chosen.string();
        let mapping = schema.record.mapping.iter();
        mapping.into_iter().find(|entry| self.contract.text(entry.name) == name.as_ref()).map(|entry| entry.schema)
    }

    fn condition(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        let Some(condition) = record.condition else { return true };
        let holds = self.asks(condition, value, evaluated.as_deref_mut());
        let due = if holds { record.then } else { record.otherwise };
        due.is_none_or(|due| self.valid(due, value, evaluated))
    }

    /// Where a dynamic reference leads: to the outermost resource of the scope that has the anchor.
    fn dynamic_target(&self, target: u32, anchor: Option<u32>) -> u32 {
        let found = anchor
            .and_then(|anchor| self.scope.iter().find_map(|resource| self.contract.dynamic_anchor(*resource, anchor)));
        found.unwrap_or(target)
    }
}

/// Whether a text, which is UTF-8, has a number of characters.
fn fits(text: &[u8], lower: Option<u64>, upper: Option<u64>) -> bool {
    // A character has one to four bytes: mostly the length alone says it.
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let surely = lower.is_none_or(|lower| length / 4 >= lower) && upper.is_none_or(|upper| length <= upper);
    surely || within(text.iter().filter(|byte| **byte & 0xc0 != 0x80).count(), lower, upper)
}

fn names(allowed: u32) -> String {
    let all = [
        (types::NULL, "null"),
        (types::BOOLEAN, "boolean"),
        (types::OBJECT, "object"),
        (types::ARRAY, "array"),
        (types::NUMBER, "number"),
        (types::STRING, "string"),
        (types::INTEGER, "integer"),
    ];
    let named: Vec<&str> = all.iter().filter(|(bit, _)| allowed & bit != 0).map(|(_, name)| *name).collect();
    format!("the type {}", named.join(" or "))
}

/// Whether a count is in bounds.
fn within(count: usize, lower: Option<u64>, upper: Option<u64>) -> bool {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    lower.is_none_or(|lower| count >= lower) && upper.is_none_or(|upper| count <= upper)
}

fn bounds(what: &str, unit: &str, lower: Option<u64>, upper: Option<u64>) -> String {
    match (lower, upper) {
        (Some(lower), Some(upper)) => format!("{what} {lower} to {upper} {unit}"),
        (Some(lower), None) => format!("{what} at least {lower} {unit}"),
        (None, Some(upper)) => format!("{what} at most {upper} {unit}"),
        (None, None) => format!("{what} any number of {unit}"),
    }
}
