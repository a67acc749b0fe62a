//! The validator of JSON Schema (2020-12; OpenAPI 3.0's dialect is compiled into the same records).

mod arrays;
mod evaluated;
mod objects;

use std::cmp::Ordering;

use crate::contract::{Contract, Schema};
use crate::json::{Document, Kind, Value};
use crate::record::types;
use evaluated::Evaluated;

/// The deepest nesting of schemas within one check.
const MAX_NESTING: u32 = 250;

/// The most schemas in turn for one value that lead to one another: more are a circle.
const MAX_TURNS: u32 = 100;

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
    /// It is not: where in it, as a JSON pointer, and what is expected there.
    Invalid(String, String),
    /// The check took more work than it may, or the value is nested too deep for it.
    TooCostly,
    /// A schema refers to itself in a circle, and checks nothing.
    Unjudged,
}

/// The first thing that is wrong.
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
    failure: Option<Failure>,
    /// How many failures are expected, and so not described.
    silent: u32,
    /// The resources that the check has come through, where dynamic references look for their anchors.
    scope: Vec<u32>,
    dynamic: bool,
}

/// Checks a value. `budget` is the work that it may take: about one for each pair of a value and a schema.
pub(crate) fn check(contract: &Contract, schema: u32, document: &Document<'_>, side: Side, budget: u64) -> Checked {
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
        failure: None,
        silent: 0,
        scope: Vec::new(),
        dynamic,
    };
    let valid = validator.valid(schema, document.root(), None);
    if validator.circle {
        return Checked::Unjudged;
    }
    if validator.exhausted {
        return Checked::TooCostly;
    }
    match validator.failure.filter(|_| !valid) {
        Some(failure) => Checked::Invalid(document.pointer(failure.at), failure.expected),
        None if valid => Checked::Valid,
        None => Checked::Invalid(String::new(), "a value that matches the schema".to_owned()),
    }
}

impl<'a> Validator<'a> {
    /// Takes work off the budget; false where nothing is left.
    fn charge(&mut self, work: usize) -> bool {
        let work = u64::try_from(work).unwrap_or(u64::MAX);
        self.exhausted |= work > self.budget;
        self.budget = self.budget.saturating_sub(work);
        !self.exhausted
    }

    /// Notes what is wrong, and is false.
    fn wrong(&mut self, value: Value<'_>, expected: impl FnOnce() -> String) -> bool {
        if self.silent == 0 && self.failure.is_none() {
            self.failure = Some(Failure { at: value.at, expected: expected() });
        }
        false
    }

    /// Whether a value is valid, without a word on why not.
    fn probe(&mut self, schema: u32, value: Value<'_>, evaluated: Option<&mut Evaluated>) -> bool {
        self.silent += 1;
        let valid = self.valid(schema, value, evaluated);
        self.silent -= 1;
        valid
    }

    /// Whether a value is valid. Of a valid one, `evaluated` learns which properties and items were looked at.
    fn valid(&mut self, entry: u32, value: Value<'_>, evaluated: Option<&mut Evaluated>) -> bool {
        let before = (self.place, self.turns);
        self.turns = if value.at == self.place { self.turns + 1 } else { 0 };
        self.place = value.at;
        self.circle |= self.turns >= MAX_TURNS;
        self.exhausted |= self.circle || self.nesting >= MAX_NESTING;
        let valid = !self.charge(1) || self.valid_here(entry, value, evaluated);
        (self.place, self.turns) = before;
        valid
    }

    fn valid_here(&mut self, entry: u32, value: Value<'_>, evaluated: Option<&mut Evaluated>) -> bool {
        let contract = self.contract;
        let Some(schema) = contract.schema(entry) else {
            // A damaged record checks nothing.
            return true;
        };
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
    }

    fn schema(&mut self, schema: &Schema, value: Value<'_>, outer: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        if record.never {
            return self.wrong(value, || "nothing to be here".to_owned());
        }
        if record.nullable && value.kind() == Kind::Null {
            return true;
        }
        if record.types != 0 && !has_type(record.types, value) {
            return self.wrong(value, || names(record.types));
        }
        if !self.own(schema, value) {
            return false;
        }
        let tracks = record.unevaluated_properties.is_some() || record.unevaluated_items.is_some();
        if outer.is_none() && !tracks {
            return self.inside(schema, value, None) && self.in_place(schema, value, None);
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
    fn own(&mut self, schema: &Schema, value: Value<'_>) -> bool {
        if let Some(values) = &schema.values {
            let found = values.root().elements().any(|one| value.equals(one, &mut self.budget));
            self.exhausted |= self.budget == 0;
            if !found {
                return self.wrong(value, || {
                    let listed = String::from_utf8_lossy(values.root().raw()).chars().take(120).collect::<String>();
                    format!("one of {listed}")
                });
            }
        }
        match value.kind() {
            Kind::String => self.text(schema, value),
            Kind::Number => self.number(schema, value),
            _ => true,
        }
    }

    fn text(&mut self, schema: &Schema, value: Value<'_>) -> bool {
        let record = &schema.record;
        let (lower, upper) = (record.min_length, record.max_length);
        if lower.is_none() && upper.is_none() && record.pattern.is_none() && schema.format.is_none() {
            return true;
        }
        let text = value.string();
        if !self.charge(text.len() / 16) {
            return true;
        }
        if lower.is_some() || upper.is_some() {
            let characters = text.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
            if !within(characters, lower, upper) {
                return self.wrong(value, || bounds("a text of", "characters", lower, upper));
            }
        }
        if let Some(format) = schema.format.filter(|format| !format.takes_text(&text)) {
            return self.wrong(value, || format!("the format {}", format.name()));
        }
        if let Some(pattern) = schema.pattern(self.contract)
            && self.charge(text.len() / 8)
            && !pattern.is_match(text.as_ref())
        {
            return self.wrong(value, || "a text that matches the pattern".to_owned());
        }
        true
    }

    fn number(&mut self, schema: &Schema, value: Value<'_>) -> bool {
        let bounded = schema.minimum.is_some()
            || schema.maximum.is_some()
            || schema.above.is_some()
            || schema.below.is_some()
            || schema.multiple_of.is_some()
            || schema.format.is_some();
        let Some(number) = value.number().filter(|_| bounded) else { return true };
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
            Kind::Object if schema.for_objects => self.object(schema, value, evaluated),
            Kind::Array if schema.for_arrays => self.array(schema, value, evaluated),
            _ => true,
        }
    }

    /// Schemas for the same value.
    fn in_place(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        if let Some(target) = record.reference
            && !self.valid(target, value, evaluated.as_deref_mut())
        {
            return false;
        }
        if let Some(target) = record.dynamic_reference {
            let target = self.dynamic_target(target, record.dynamic_anchor);
            if !self.valid(target, value, evaluated.as_deref_mut()) {
                return false;
            }
        }
        for branch in &record.all_of {
            if !self.valid(*branch, value, evaluated.as_deref_mut()) {
                return false;
            }
        }
        if let Some(not) = record.not
            && self.probe(not, value, None)
            && !self.exhausted
        {
            return self.wrong(value, || "a value that the schema does not exclude".to_owned());
        }
        self.choice(schema, value, evaluated.as_deref_mut()) && self.condition(schema, value, evaluated)
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
            let mut any = false;
            for branch in &record.any_of {
                any |= self.probe(*branch, value, evaluated.as_deref_mut());
                if any && evaluated.is_none() {
                    break;
                }
            }
            if !any {
                return self.no_branch(&record.any_of, value);
            }
        }
        if !record.one_of.is_empty() {
            let mut matched = 0;
            for branch in &record.one_of {
                matched += u32::from(self.probe(*branch, value, evaluated.as_deref_mut()));
                if matched > 1 {
                    return self.exhausted
                        || self.wrong(value, || {
                            "a value that matches one alternative alone; it matches several".to_owned()
                        });
                }
            }
            if matched == 0 {
                return self.no_branch(&record.one_of, value);
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
        let holds = self.probe(condition, value, evaluated.as_deref_mut());
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

/// Whether a value has one of the types.
fn has_type(allowed: u32, value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Null => allowed & types::NULL != 0,
        Kind::True | Kind::False => allowed & types::BOOLEAN != 0,
        Kind::Object => allowed & types::OBJECT != 0,
        Kind::Array => allowed & types::ARRAY != 0,
        Kind::String => allowed & types::STRING != 0,
        Kind::Number => {
            let integer = |number: crate::number::Number| {
                if allowed & types::STRICT_INTEGER == 0 { number.is_integer() } else { number.is_plain() }
            };
            allowed & types::NUMBER != 0 || (allowed & types::INTEGER != 0 && value.number().is_some_and(integer))
        }
    }
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
