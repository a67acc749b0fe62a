//! Keywords for arrays.

use std::collections::HashMap;

use super::evaluated::Evaluated;
use super::{Validator, bounds, within};
use crate::contract::Schema;
use crate::json::{Kind, Value};

impl Validator<'_> {
    pub(super) fn array(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        let (lower, upper) = (record.min_items, record.max_items);
        if !within(value.count(), lower, upper) {
            return self.wrong(value, || bounds("an array of", "items", lower, upper));
        }
        if !record.prefix_items.is_empty() || record.items.is_some() {
            for (place, element) in value.elements().enumerate() {
                let Some(due) = record.prefix_items.get(place).copied().or(record.items) else { break };
                if self.exhausted {
                    return true;
                }
                if !self.valid(due, element, None) {
                    return false;
                }
                if let Some(evaluated) = evaluated.as_deref_mut() {
                    evaluated.add(element.at);
                }
            }
        }
        self.contains(schema, value, evaluated) && (!record.unique_items || self.unique(value))
    }

    fn contains(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        let Some(contains) = record.contains else { return true };
        let (lower, upper) = (record.min_contains.or(Some(1)), record.max_contains);
        let mut found = 0;
        for element in value.elements() {
            if self.exhausted {
                return true;
            }
            if self.probe(contains, element, None) {
                found += 1;
                if let Some(evaluated) = evaluated.as_deref_mut() {
                    evaluated.add(element.at);
                }
            }
        }
        within(found, lower, upper)
            || self.wrong(value, || bounds("an array that contains", "matching items", lower, upper))
    }

    /// Whether no two elements are equal. Only those with the same fingerprint are compared.
    fn unique(&mut self, value: Value<'_>) -> bool {
        let mut seen: HashMap<u64, Vec<Value<'_>>> = HashMap::new();
        for element in value.elements() {
            let mark = self.fingerprint(element);
            let alike = seen.entry(mark).or_default();
            for other in alike.iter() {
                if !self.charge(1) {
                    return true;
                }
                if element.equals(*other, &mut self.budget) {
                    return self.wrong(element, || "items that are unique".to_owned());
                }
            }
            alike.push(element);
        }
        true
    }

    /// A number that equal values have in common.
    fn fingerprint(&mut self, value: Value<'_>) -> u64 {
        const PRIME: u64 = 0x0100_0000_01b3;
        let bytes = |bytes: &[u8]| {
            bytes.iter().fold(0xcbf2_9ce4_8422_2325, |mark: u64, byte| (mark ^ u64::from(*byte)).wrapping_mul(PRIME))
        };
        if !self.charge(1) {
            return 0;
        }
        match value.kind() {
            Kind::Null => 1,
            Kind::False => 2,
            Kind::True => 3,
            Kind::Number => value
                .number()
                .map_or(4, |number| bytes(format!("{number:?}").replace("plain: true", "plain: false").as_bytes())),
            Kind::String => bytes(&value.string()),
            Kind::Array => value
                .elements()
                .fold(5, |mark: u64, element| mark.wrapping_mul(PRIME).wrapping_add(self.fingerprint(element))),
            Kind::Object => value.members().fold(6, |mark: u64, (name, member)| {
                mark.wrapping_add(bytes(&name.string()).rotate_left(17) ^ self.fingerprint(member))
            }),
        }
    }
}
