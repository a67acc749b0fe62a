//! Keywords for arrays.

use super::evaluated::Evaluated;
use super::{Validator, bounds, within};
use crate::json::{Kind, Value};
use crate::opened::{Schema, has};

impl Validator<'_> {
    pub(super) fn array(&mut self, schema: &Schema, value: Value<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let record = &schema.record;
        let (lower, upper) = (record.min_items, record.max_items);
        let mut valid = true;
        if (lower.is_some() || upper.is_some()) && !within(value.count(), lower, upper) {
            valid = self.wrong(value, || bounds("an array of", "items", lower, upper));
            if !self.goes_on() {
                return false;
            }
        }
        if record.prefix_items.is_empty()
            && evaluated.is_none()
            && let Some(items) = record.items.and_then(|items| self.contract.schema(items))
            && !items.has(has::COMPOUND)
        {
            valid &= self.plain_items(items, value);
            if !valid && !self.goes_on() {
                return false;
            }
        } else if !record.prefix_items.is_empty() || record.items.is_some() {
            for (place, element) in value.elements().enumerate() {
                let Some(due) = record.prefix_items.get(place).copied().or(record.items) else { break };
                if self.exhausted {
                    return true;
                }
                valid &= self.valid(due, element, None);
                if !valid && !self.goes_on() {
                    return false;
                }
                if let Some(evaluated) = evaluated.as_deref_mut() {
                    evaluated.add(element.at);
                }
            }
        }
        valid && self.contains(schema, value, evaluated) && (!record.unique_items || self.unique(value))
    }

    /// The elements of a list whose schema has no part: most long ones are of numbers or words.
    fn plain_items(&mut self, items: &Schema, value: Value<'_>) -> bool {
        if !self.charge(value.count()) {
            return true;
        }
        let only_types = !items.has(has::NEVER | has::NULLABLE | has::VALUES | has::TEXT | has::NUMBER);
        let mut valid = true;
        for element in value.elements() {
            if only_types && items.takes_type(element) {
                continue;
            }
            valid &= self.own(items, element);
            if self.exhausted || (!valid && !self.goes_on()) {
                break;
            }
        }
        valid
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
        if value.count() < 2 {
            return true;
        }
        let mut marked: Vec<(u64, Value<'_>)> = Vec::with_capacity(value.count());
        for element in value.elements() {
            let mark = self.fingerprint(element);
            marked.push((mark, element));
        }
        // Equal marks stay in the order of the array, so that the later element is told of.
        marked.sort_by_key(|(mark, element)| (*mark, element.at));
        for alike in marked.chunk_by(|one, two| one.0 == two.0) {
            for (place, (_, element)) in alike.iter().enumerate() {
                for (_, other) in alike.iter().take(place) {
                    if !self.charge(1) {
                        return true;
                    }
                    if element.equals(*other, &mut self.budget) {
                        return self.wrong(*element, || "items that are unique".to_owned());
                    }
                }
            }
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
            Kind::Number => value.number().map_or(4, |number| number.fingerprint().wrapping_mul(PRIME) ^ 4),
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
