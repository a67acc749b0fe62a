//! Members whose names are declared in another case: ASP.NET Core and Go bind `{"Role": ...}` to `role`.

use super::{Evaluated, Validator};
use crate::json::Value;
use crate::opened::Schema;

/// What is done with such members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folds {
    /// Nothing.
    Off,
    /// They are noted.
    Notes,
    /// Their values are checked.
    Checks,
}

impl<'a> Validator<'a> {
    /// Checks a member that a schema does not declare against the property that it declares in another case.
    pub(super) fn in_other_case(&mut self, schema: &Schema, name: &[u8], member: Value<'_>) -> bool {
        if self.folds == Folds::Off || schema.names.is_empty() {
            return true;
        }
        let mut properties = schema.names.in_other_case(name, self.contract).peekable();
        if properties.peek().is_none() {
            return true;
        }
        if self.folds == Folds::Notes {
            self.folded = true;
            return true;
        }
        self.declares(schema, name) || properties.all(|property| self.valid(property, member, None))
    }

    /// Whether a value is valid, for `not` and `if`: a check of members in another case could turn a refusal into its opposite there.
    pub(super) fn asks(&mut self, schema: u32, value: Value<'_>, evaluated: Option<&mut Evaluated>) -> bool {
        let folds = std::mem::replace(&mut self.folds, Folds::Off);
        let valid = self.probe(schema, value, evaluated);
        self.folds = folds;
        valid
    }

    /// Whether one of the schemas for the value that is looked at declares a name: the exact one, or by a pattern.
    fn declares(&mut self, own: &Schema, text: &[u8]) -> bool {
        let contract = self.contract;
        let mut known: Vec<u32> = Vec::new();
        let mut due: Vec<&Schema> = self.outermost.into_iter().chain([own]).collect();
        while let Some(schema) = due.pop() {
            let record = &schema.record;
            if !self.charge(1 + (known.len() + record.pattern_properties.len() * text.len()) / 8) {
                return true;
            }
            let mut patterns = record.pattern_properties.iter().map(|property| property.name);
            if schema.names.find(text, contract).is_some() || patterns.any(|pattern| self.has_match(pattern, text)) {
                return true;
            }
            let single = [record.reference, record.dynamic_reference, record.condition, record.then, record.otherwise];
            let lists = [&record.all_of, &record.any_of, &record.one_of];
            let dependent = record.dependent_schemas.iter().map(|dependent| dependent.schema);
            let parts = single.into_iter().flatten().chain(lists.into_iter().flatten().copied()).chain(dependent);
            for part in parts {
                if !known.contains(&part) {
                    known.push(part);
                    due.extend(contract.schema(part));
                }
            }
        }
        false
    }
}
