//! Keywords for objects.

use super::evaluated::Evaluated;
use super::{Side, Validator, bounds, within};
use crate::json::{Kind, Value};
use crate::opened::{Schema, has};

impl Validator<'_> {
    pub(super) fn object(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        let (lower, upper) = (record.min_properties, record.max_properties);
        let mut valid = true;
        if (lower.is_some() || upper.is_some()) && !within(value.count(), lower, upper) {
            valid = self.wrong(value, || bounds("an object of", "properties", lower, upper));
            if !self.goes_on() {
                return false;
            }
        }
        if !record.dependent_required.is_empty() || !record.dependent_schemas.is_empty() {
            valid &= self.dependent(schema, value, evaluated.as_deref_mut());
            if !valid && !self.goes_on() {
                return false;
            }
        }
        if schema.has(has::MEMBERS) {
            valid &= self.members(schema, value, evaluated);
        }
        let unnoted = match self.side {
            Side::Request => schema.unnoted.first(),
            Side::Response => schema.unnoted.last(),
        };
        for name in unnoted.into_iter().flatten() {
            if (!valid && !self.goes_on()) || !self.charge(1 + value.count() / 8) {
                break;
            }
            if !value.has(self.contract.text(*name)) {
                valid = self.absent(value, *name);
            }
        }
        valid
    }

    fn absent(&mut self, value: Value<'_>, name: u32) -> bool {
        let contract = self.contract;
        self.wrong(value, || format!("the property `{}`", contract.shown(name)))
    }

    fn dependent(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        for dependent in &record.dependent_required {
            if !self.charge(value.count() / 8 * (1 + dependent.required.len())) {
                return true;
            }
            let contract = self.contract;
            let missing = || dependent.required.iter().find(|name| !value.has(contract.text(**name)));
            if value.has(contract.text(dependent.name))
                && let Some(name) = missing()
            {
                return self.wrong(value, || format!("the property `{}`", contract.shown(*name)));
            }
        }
        for dependent in &record.dependent_schemas {
            if !self.charge(value.count() / 8) {
                return true;
            }
            if value.has(self.contract.text(dependent.name))
                && !self.valid(dependent.schema, value, evaluated.as_deref_mut())
            {
                return false;
            }
        }
        true
    }

    fn members(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let contract = self.contract;
        let [request, response] = schema.due;
        let due = if self.side == Side::Request { request } else { response };
        let (mut there, mut valid) = (0, true);
        for (name, member) in value.members() {
            if !self.charge(1) {
                return true;
            }
            let text = name.string();
            let own = schema.names.find(&text, contract);
            let mut known = false;
            if let Some(own) = own {
                there |= own.bit;
                if let Some(property) = own.schema() {
                    known = true;
                    valid &= self.valid(property, member, None);
                }
            } else {
                valid &= self.in_other_case(schema, &text, member);
            }
            valid &= self.other_keywords(schema, (name, member), &text, &mut known);
            if !valid && !self.goes_on() {
                return false;
            }
            if let Some(evaluated) = evaluated.as_deref_mut().filter(|_| known) {
                evaluated.add(member.at);
            }
        }
        let absent = due & !there;
        if absent == 0 || self.exhausted {
            return valid;
        }
        for name in schema.names.of_bits(absent) {
            valid = self.absent(value, name);
            if !self.goes_on() {
                break;
            }
        }
        valid
    }

    /// What is asked of a member beside its property; whether it is known so far, and then.
    #[inline]
    fn other_keywords(
        &mut self,
        schema: &Schema,
        (name, member): (Value<'_>, Value<'_>),
        text: &[u8],
        known: &mut bool,
    ) -> bool {
        let record = &schema.record;
        let mut valid = true;
        if let Some(names) = record.property_names {
            valid &= self.valid(names, name, None);
        }
        for property in &record.pattern_properties {
            if !self.charge(1 + text.len() / 8) {
                return true;
            }
            if self.has_match(property.name, text) {
                *known = true;
                valid &= self.valid(property.schema, member, None);
            }
        }
        if let Some(additional) = record.additional_properties.filter(|_| !*known) {
            let never = self.contract.schema(additional).is_some_and(|schema| schema.has(has::NEVER));
            if never {
                return self.wrong(member, || "no property that the schema does not declare".to_owned());
            }
            *known = true;
            valid &= self.valid(additional, member, None);
        }
        valid
    }

    /// `unevaluatedProperties` and `unevaluatedItems`.
    pub(super) fn unevaluated(&mut self, schema: &Schema, value: Value<'_>, evaluated: &mut Evaluated) -> bool {
        let due = match value.kind() {
            Kind::Object => schema.record.unevaluated_properties,
            Kind::Array => schema.record.unevaluated_items,
            _ => None,
        };
        let Some(due) = due else { return true };
        for member in value.members().map(|(_, member)| member).chain(value.elements()) {
            if !self.charge(1) {
                return true;
            }
            if !evaluated.has(member.at) && !self.valid(due, member, None) {
                return false;
            }
        }
        evaluated.add_all();
        true
    }
}
