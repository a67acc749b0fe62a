//! Keywords for objects.

use super::evaluated::Evaluated;
use super::{Side, Validator, bounds, within};
use crate::contract::Schema;
use crate::json::{Kind, Value};

impl Validator<'_> {
    pub(super) fn object(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        let (lower, upper) = (record.min_properties, record.max_properties);
        if !within(value.count(), lower, upper) {
            return self.wrong(value, || bounds("an object of", "properties", lower, upper));
        }
        let one_sided = match self.side {
            Side::Request => &record.required_write,
            Side::Response => &record.required_read,
        };
        for name in record.required.iter().chain(one_sided) {
            if !self.charge(value.count() / 8) {
                return true;
            }
            let name = self.contract.text(*name);
            if !value.has(name) {
                return self.wrong(value, || format!("the property `{}`", String::from_utf8_lossy(name)));
            }
        }
        self.dependent(schema, value, evaluated.as_deref_mut()) && self.members(schema, value, evaluated)
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
        let record = &schema.record;
        let looks = !record.properties.is_empty()
            || !record.pattern_properties.is_empty()
            || record.additional_properties.is_some()
            || record.property_names.is_some();
        if !looks {
            return true;
        }
        let contract = self.contract;
        for (name, member) in value.members() {
            if !self.charge(1) {
                return true;
            }
            if let Some(names) = record.property_names
                && !self.valid(names, name, None)
            {
                return false;
            }
            let text = name.string();
            let mut known = false;
            let found = record.properties.binary_search_by(|property| contract.text(property.name).cmp(text.as_ref()));
            if let Some(property) = found.ok().and_then(|place| record.properties.get(place)) {
                known = true;
                if !self.valid(property.schema, member, None) {
                    return false;
                }
            }
            for property in &record.pattern_properties {
                let pattern = contract.pattern(property.name);
                if !self.charge(1 + text.len() / 8) {
                    return true;
                }
                if pattern.is_some_and(|pattern| pattern.is_match(text.as_ref())) {
                    known = true;
                    if !self.valid(property.schema, member, None) {
                        return false;
                    }
                }
            }
            if let Some(additional) = record.additional_properties.filter(|_| !known) {
                let never = contract.schema(additional).is_some_and(|schema| schema.record.never);
                if never {
                    return self.wrong(member, || "no property that the schema does not declare".to_owned());
                }
                known = true;
                if !self.valid(additional, member, None) {
                    return false;
                }
            }
            if let Some(evaluated) = evaluated.as_deref_mut().filter(|_| known) {
                evaluated.add(member.at);
            }
        }
        true
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
