//! Alternatives that a property tells apart, as a discriminator would: each of them requires it and lists its values, such as
//! `{"type": {"enum": ["card"]}}`. Those that its value rules out are not looked at.

use crate::compiled::Contract;
use crate::json::{Kind, Value};
use crate::opened::{Schema, has};

/// The fewest alternatives for which it is worth the work.
const MIN_BRANCHES: usize = 3;
/// The most alternatives in all lists of one choice.
const MAX_LISTED: usize = 10_000;

/// What a property says about alternatives.
pub(crate) struct Choice {
    /// The name of the property.
    name: u32,
    /// Its values in order, and the alternatives that are left for each.
    listed: Vec<(Box<[u8]>, Vec<u32>)>,
    /// The alternatives that no value of the property rules out.
    others: Vec<u32>,
}

impl Choice {
    /// Looks for a property that tells alternatives apart.
    pub(crate) fn of(branches: &[u32], contract: &Contract) -> Option<Self> {
        if branches.len() < MIN_BRANCHES {
            return None;
        }
        let schemas: Vec<Option<&Schema>> = branches.iter().map(|branch| contract.schema(*branch)).collect();
        let first = schemas.iter().flatten().find(|schema| schema.names_due().next().is_some())?;
        // Of the names that must be there, the one that most alternatives can be told by.
        let counted = first.names_due().map(|name| {
            let told = schemas.iter().flatten().filter(|schema| values(schema, name, contract).is_some());
            (told.count(), name)
        });
        let (told, name) = counted.max_by_key(|(told, _)| *told)?;
        if told < 2 {
            return None;
        }
        let mut pairs: Vec<(&[u8], usize)> = Vec::new();
        let mut others: Vec<usize> = Vec::new();
        for (place, schema) in schemas.iter().enumerate() {
            match schema.and_then(|schema| values(schema, name, contract)) {
                Some(values) => pairs.extend(values.iter().map(|value| (value.as_ref(), place))),
                None => others.push(place),
            }
        }
        pairs.sort_unstable();
        if pairs.len().saturating_mul(others.len() + 1) > MAX_LISTED {
            return None;
        }
        let entries = |places: &[usize]| places.iter().filter_map(|place| branches.get(*place).copied()).collect();
        let listed = pairs.chunk_by(|one, two| one.0 == two.0).filter_map(|same| {
            let mut places: Vec<usize> = same.iter().map(|(_, place)| *place).chain(others.iter().copied()).collect();
            places.sort_unstable();
            places.dedup();
            Some((same.first()?.0.into(), entries(&places)))
        });
        Some(Self { name, listed: listed.collect(), others: entries(&others) })
    }

    /// The alternatives that an object may match.
    pub(crate) fn left(&self, value: Value<'_>, contract: &Contract) -> &[u32] {
        let Some(own) = value.member(contract.text(self.name)).filter(|own| own.kind() == Kind::String) else {
            return &self.others;
        };
        let text = own.string();
        let found = self.listed.binary_search_by(|(value, _)| value.as_ref().cmp(text.as_ref()));
        found.ok().and_then(|place| self.listed.get(place)).map_or(&self.others, |(_, branches)| branches)
    }
}

/// The values that a schema takes for a property which must be there: texts alone.
fn values<'c>(schema: &Schema, name: u32, contract: &'c Contract) -> Option<&'c [Box<[u8]>]> {
    let own = schema.names.find(contract.text(name), contract)?;
    let [request, response] = schema.due;
    if own.bit & request & response == 0 {
        return None;
    }
    let property = contract.schema(own.schema()?)?;
    let values = property.values.as_ref().filter(|_| !property.has(has::NULLABLE))?;
    let all = values.all.root().count() == values.texts.len();
    (all && !values.texts.is_empty()).then_some(&values.texts)
}
